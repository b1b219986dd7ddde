"""Models in this process that mark the steps of a reply."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from pluribus.backends import Request, connect, parse  # noqa: E402  # after the skip
from pluribus.backends._reading import Reading, steps  # noqa: E402  # likewise
from pluribus.errors import BackendError, Refused, UsageError  # noqa: E402  # likewise
from pluribus.types import Completion, Message, Sampling  # noqa: E402  # likewise
from pluribus.zoo import folder  # noqa: E402  # likewise

TEXTS = ["2 + 2 = 4. {final answer: 4}", "It is 5.\nNo: it is 4.\nSo 4.", "4", "One.\n\nTwo. Still two.\n\nThree."]
STEPS = [["2 + 2 = 4.", "{final answer: 4}"], ["It is 5.", "No: it is 4.", "So 4."], ["4"],
         ["One.", "Two. Still two.", "Three."]]  # fmt: skip
SHAPE = {
    "vocab_size": 896, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 200, "pad_token_id": 0,
}  # fmt: skip
PROMPT = "<|user|>what is 2 + 2 ?<|assistant|>"
Make = Callable[..., str]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # several threads wait for each other on a busy machine
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Saves an untrained model that marks steps, with the tokenizer of a member of the zoo; returns its folder."""

    def make(family: str = "Qwen3", form: Any = None, **changes: Any) -> str:
        torch.manual_seed(11)
        config = getattr(transformers, f"{family}Config")(**{**SHAPE, "num_labels": 2, **changes})
        model = transformers.AutoModelForTokenClassification.from_config(config)
        with torch.no_grad():
            head = model.score if hasattr(model, "score") else model.classifier
            head.weight.mul_(30)  # scores far enough apart to be told from rounding
        path = tmp_path_factory.mktemp("prm")
        model.save_pretrained(path)
        transformers.AutoTokenizer.from_pretrained(folder("qwen")).save_pretrained(path)
        if form is not False:
            (path / "prm.json").write_text(json.dumps({"separator": "\n"} if form is None else form))
        return str(path)

    return make


def conversation(answer: str, question: str = "what is 2 + 2 ?") -> Request:
    return Request((Message("user", question), Message("assistant", answer)), Sampling())


async def say(model: str | dict[str, Any], requests: Sequence[Request]) -> list[Any]:
    backend = connect(parse(model))
    try:
        return list(await asyncio.gather(*map(backend.complete, requests), return_exceptions=True))
    finally:
        await backend.close()


async def trouble(model: dict[str, Any], request: Request) -> str:
    (found,) = await say(model, [request])
    assert isinstance(found, BackendError | UsageError) and "\n" not in str(found)
    return str(found)


def alone(path: str, parts: Sequence[str], separator: str, join: str) -> tuple[list[float], int]:
    """P(good) behind each step, by the model itself on one row; and the row's length."""
    model = transformers.AutoModelForTokenClassification.from_pretrained(path).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    ids, places = tokenizer(PROMPT, add_special_tokens=False)["input_ids"], []
    for number, part in enumerate(parts):
        for text in (join * (number > 0) + part, separator):
            ids = ids + tokenizer(text, add_special_tokens=False)["input_ids"]
        places.append(len(ids) - 1)
    with torch.inference_mode():
        logits = model(torch.tensor([ids])).logits[0, places]
    found: list[float] = logits.softmax(-1)[:, 1].tolist()
    return found, len(ids)


@pytest.mark.parametrize("family", ["Qwen3", "Llama", "GPTNeoX"])
@pytest.mark.parametrize("separator, join", [("\n", ""), ("\n\n+", ""), ("", " ")])
async def test_each_step_has_the_heads_probability_in_any_batch(
    family: str, separator: str, join: str, made: Make
) -> None:
    path = made(family, {"separator": separator, "cut": "auto", "max_length": 7, "join": join})
    told = await say({"model": f"local/{path}", "head": "prm"}, [conversation(text) for text in TEXTS])
    for completion, parts in zip(told, STEPS, strict=True):
        wanted, size = alone(path, parts, separator, join)
        scores = dict(completion.scores)
        said = [scores.pop(f"step {number}") for number in range(1, len(parts) + 1)]
        assert said == pytest.approx(wanted, abs=1e-5)
        assert scores == pytest.approx(
            {"min": min(said), "mean": sum(said) / len(said), "last": said[-1], "product": math.prod(said)}, abs=1e-9
        )
        assert (completion.text, completion.prompt_tokens, completion.completion_tokens) == ("", size, 0)
        assert completion.logprobs is None and completion.cost_usd == 0.0
    assert len({round(value, 3) for completion in told for value in completion.scores.values()}) > 8


async def test_the_reply_is_cut_as_the_model_was_taught(made: Make) -> None:
    path = made(form={"separator": "\n", "cut": "paragraphs"})
    told = await say({"model": f"local/{path}", "head": "prm"}, [conversation(TEXTS[3]), conversation(TEXTS[1])])
    assert [sum(name.startswith("step") for name in one.scores) for one in told] == [3, 1]


@pytest.mark.parametrize(
    "request_, complaint",
    [
        (conversation(" \n "), "there is no step in the reply"),
        (Request((Message("assistant", "4"),), Sampling()), "there is no question"),
        (Request((Message("user", "2 + 2?"),), Sampling()), "do not end with one of the assistant's"),
        (conversation("7. " * 300), r"of \d+ tokens does not fit in the context of 200"),
        (Request(conversation("4").messages, Sampling(), continuation="4"), "ask without head: prm"),
    ],
)
async def test_what_it_refuses_is_one_failure_and_the_others_are_marked(
    request_: Request, complaint: str, made: Make
) -> None:
    good, bad = await say({"model": f"local/{made()}", "head": "prm"}, [conversation("4"), request_])
    assert isinstance(good, Completion) and isinstance(bad, Refused)
    with pytest.raises(Refused, match=complaint):
        raise bad


async def test_a_model_that_marks_no_steps_is_named(made: Make, tmp_path: Path) -> None:
    three = {"model": f"local/{made(num_labels=3)}", "head": "prm"}
    assert "has 3 outputs, a process reward model has 2" in await trouble(three, conversation("4"))
    config = transformers.LlamaConfig(**SHAPE)
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(folder("qwen")).save_pretrained(tmp_path)
    formless = {"model": f"local/{tmp_path}", "head": "prm"}
    assert "has no prm.json: nobody can say where its steps end; name a folder" in await trouble(
        formless, conversation("4")
    )
    (tmp_path / "prm.json").write_text('{"separator": "\\n"}')
    assert "has no head that marks steps: its weights lack score.bias" in await trouble(formless, conversation("4"))


@pytest.mark.parametrize(
    "form, complaint",
    [
        ({"separator": None}, "has separator None, join '' and cut 'auto'"),
        ({"separator": "", "join": 2}, "has separator '', join 2 and cut 'auto'"),
        ({"separator": "\n", "cut": "words"}, "a cut is one of: auto, paragraphs, lines, sentences"),
        ({"separator": "\n", "max_length": -4}, "has max_length -4; expected a number of tokens, or null"),
        ({"separator": "\n", "max_length": "x"}, "has max_length 'x'; expected a number of tokens, or null"),
        ({"step": "\n"}, "says no step form"),
        ([1], "says no step form: it holds list"),
    ],
)
async def test_a_form_that_is_none_is_named(form: Any, complaint: str, made: Make) -> None:
    assert complaint in await trouble({"model": f"local/{made(form=form)}", "head": "prm"}, conversation("4"))


async def test_without_its_head_it_answers_nothing(made: Make) -> None:
    backend = connect(parse({"model": f"local/{made()}"}))
    with pytest.raises(UsageError, match="is a Qwen3ForTokenClassification: it scores replies and writes none"):
        getattr(backend, "context_length", None)
    assert "it scores replies and writes none" in await trouble({"model": f"local/{made()}"}, conversation("4"))


@pytest.mark.parametrize("options", [{"dtype": "bfloat16"}, {"quantization": "4bit"}])
async def test_in_lower_precision_it_says_nearly_the_same(options: dict[str, str], made: Make) -> None:
    if "quantization" in options:
        pytest.importorskip("bitsandbytes")
    model, requests = {"model": f"local/{made()}", "head": "prm"}, [conversation(text) for text in TEXTS]
    exact = [one.scores["last"] for one in await say({**model, "device": "cpu"}, requests)]
    rough = [one.scores["last"] for one in await say({**model, "device": "cpu", **options}, requests)]
    assert rough != exact and rough == pytest.approx(exact, abs=0.2)


def test_a_rows_marks_do_not_depend_on_its_neighbours(made: Make) -> None:
    model = transformers.AutoModelForTokenClassification.from_pretrained(made()).eval()
    rows = [Reading(tuple(range(5, 5 + size)), lambda: False, places=(2, size - 1)) for size in (4, 30, 9)]
    with torch.inference_mode():
        together = steps(model, rows)
        assert together == [pytest.approx(steps(model, [row])[0], abs=1e-5) for row in rows]
