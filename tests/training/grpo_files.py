"""Small trainings by GRPO: prompts, an untrained student, a trainer that is told what to write, and its gradient."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pluribus import zoo
from pluribus.rows import Row

LENGTH = 32
"""max_new_tokens: what the loss is divided by."""
SHAPE = {
    "vocab_size": 896, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 1, "head_dim": 8, "max_position_embeddings": 256, "pad_token_id": 0, "eos_token_id": 4,
    "initializer_range": 0.3,
}  # fmt: skip


def prompt(i: int) -> str:
    return f"{3 + i} + {4 + 2 * i} ?"


def answer(i: int) -> int:
    return 7 + 3 * i


def prompts(n: int = 2, **more: Any) -> list[Row]:
    """Sums with their answers."""
    return [
        {"prompt": [{"role": "user", "content": prompt(i)}], "kind": "number", "answer": str(answer(i)), **more}
        for i in range(n)
    ]


def said(i: int, off: int | None, *steps: str) -> str:
    """A reply to the i-th prompt whose answer is off by so much; None: it has no answer."""
    end = "no idea" if off is None else f"{{final answer: {answer(i) + off}}}"
    return " ".join([*steps, end])


def write(folder: Path, rows: Sequence[Mapping[str, Any]], name: str = "prompts") -> Path:
    file = folder / f"{name}.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return file


def wishes(data: Path, out: Path, grpo: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """One step of plain gradient descent's size: nothing is clipped, and the rate stays."""
    return {
        "kind": "grpo", "model": "zoo/qwen", "data": str(data), "out": str(out), "learning_rate": 1.0, "max_steps": 1,
        "batch_size": 12, "logging_steps": 1, "max_grad_norm": 1e9, "scheduler": "constant",
        "grpo": {"max_new_tokens": LENGTH, "samples": 6, **grpo}, **more,
    }  # fmt: skip


def student(folder: Path, **shape: Any) -> str:
    """Saves an untrained student with the tokenizer of a member of the zoo."""
    import torch
    import transformers

    torch.manual_seed(5)
    config = transformers.Qwen3Config(**{**SHAPE, **shape})
    transformers.Qwen3ForCausalLM(config).save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(zoo.folder("qwen")).save_pretrained(folder)
    return str(folder)


# --- a trainer that is told what to write ----------------------------------------------------------------------------


class Told:
    """Over a trainer: the samples of each prompt are the given replies, in their order."""

    replies: Mapping[str, Sequence[str]]
    """By the prompt's last message."""
    drawings: int
    """How often samples were drawn."""

    def _generate_single_turn(self, prompt_ids: Any, *_: Any, **__: Any) -> Any:
        words: Any = self.processing_class  # type: ignore[attr-defined]  # a trainer's
        number: Counter[str] = Counter()
        found = []
        for ids in prompt_ids:
            asked = next(one for one in self.replies if f">{one}<" in words.decode(ids))
            texts = self.replies[asked]
            found.append([*words.encode(texts[number[asked] % len(texts)]), words.eos_token_id])
            number[asked] += 1
        self.drawings += 1
        return found, None


def tell(trainer: Any, replies: Sequence[Sequence[str]]) -> Any:
    """The trainer, in float64, with one group of replies for each of `prompts`."""
    trainer.__class__ = type("Told", (Told, type(trainer)), {})
    trainer.replies, trainer.drawings = {prompt(i): group for i, group in enumerate(replies)}, 0
    trainer.model.double()
    if getattr(trainer, "ref_model", None) is not None:
        trainer.ref_model.double()
    return trainer


def weights_of(model: Any) -> dict[str, Any]:
    """A copy of each weight, by name."""
    return {name: value.detach().clone() for name, value in model.named_parameters()}


def stepped(trainer: Any) -> dict[str, Any]:
    """What gradient descent took off each weight, divided by the rate: the gradient of its loss, over all steps."""
    before = weights_of(trainer.model)
    trainer.args.optim = "sgd"
    trainer.train()
    after = weights_of(trainer.model)
    return {name: (before[name] - after[name]) / trainer.args.learning_rate for name in before}


def plain(trainer: Any) -> Any:
    """A model of `transformers` with the trainer's weights, and nothing of the trainer's around it."""
    import transformers

    model = transformers.AutoModelForCausalLM.from_config(trainer.model.config).double().eval()
    model.load_state_dict(trainer.model.state_dict())
    return model


def by_hand(
    model: Any, words: Any, replies: Sequence[Sequence[str]], advantages: Sequence[Sequence[Any]], heat: float = 1
) -> dict[str, Any]:
    """Gradient of −1 / L · mean over prompts of Σ_i A_i log π(y_i), one sample after the other and without padding.

    Args:
        advantages: of each reply to each prompt, in sum form: a number, or one per token.
        heat: the temperature of the samples.
    """
    import torch

    model.zero_grad()
    for i, (group, weights) in enumerate(zip(replies, advantages, strict=True)):
        for text, weight in zip(group, weights, strict=True):
            logprobs = logprobs_of(model, words, i, text, heat)
            (-(torch.as_tensor(weight, dtype=torch.float64) * logprobs).sum() / LENGTH / len(replies)).backward()
    return {name: value.grad.clone() for name, value in model.named_parameters()}


def logprobs_of(model: Any, words: Any, i: int, text: str, heat: float = 1) -> Any:
    """log π of each token of a reply to the i-th prompt, its end included."""
    import torch

    chat = [{"role": "user", "content": prompt(i)}]
    asked = words.apply_chat_template(chat, add_generation_prompt=True, return_dict=True)["input_ids"]
    reply = torch.tensor([*words.encode(text), words.eos_token_id])
    ids = torch.cat([torch.tensor(asked), reply])[None]
    logits = model(input_ids=ids).logits[0, len(asked) - 1 : -1] / heat
    return logits.log_softmax(-1).gather(-1, reply[:, None])[:, 0]


def apart(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """The greatest difference of two gradients, as a share of the second's greatest value."""
    assert one.keys() == other.keys()
    scale = max(float(value.abs().max()) for value in other.values())
    return max(float((one[name] - other[name]).abs().max()) for name in other) / scale


# --- a process reward model ------------------------------------------------------------------------------------------


def step_model(folder: Path, *, cut: str = "sentences", tokens: int | None = None) -> str:
    """Saves an untrained process reward model whose tokens are single bytes: other ones than any member's of the zoo.

    Args:
        tokens: that its weights know; None: those of its tokenizer.
    """
    import torch
    import transformers

    words = _bytes()
    torch.manual_seed(17)
    config = transformers.Qwen3Config(
        **SHAPE
        | {"vocab_size": len(words) if tokens is None else tokens, "num_labels": 2, "eos_token_id": 1}
        | {"max_position_embeddings": 1024}  # a byte is a token
    )
    model = transformers.AutoModelForTokenClassification.from_config(config)
    with torch.no_grad():
        model.score.weight.mul_(2)  # scores far enough apart to be told from rounding
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    (folder / "prm.json").write_text(json.dumps({"separator": "\n", "cut": cut}), "utf-8")
    return str(folder)


def _bytes() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    letters = Tokenizer(models.BPE({one: i for i, one in enumerate(["<pad>", "<end>", *alphabet])}, []))
    letters.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    letters.decoder = decoders.ByteLevel()
    words = PreTrainedTokenizerFast(tokenizer_object=letters, pad_token="<pad>", eos_token="<end>")
    words.chat_template = "{% for one in messages %}[{{ one.role }}]{{ one.content }}{% endfor %}[assistant]"
    return words
