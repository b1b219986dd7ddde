"""A tokenizer and a model of `transformers`, causal or with a head that scores, read from a folder or the hub.

Importing this file is cheap; torch and transformers are imported when something is loaded.
"""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pluribus.errors import Refused, UsageError
from pluribus.steps import CUTS, Cut
from pluribus.types import Message

if TYPE_CHECKING:
    import torch

REWARD = "reward"
PRM = "prm"
OUTPUTS: Mapping[str, int] = {REWARD: 1, PRM: 2}
"""Head → its outputs; the second of a process reward model's says that a step is good."""
STEP_FORM = "prm.json"
"""The file beside a process reward model's weights that says how it reads a reply."""
_SCORING = ("ForTokenClassification", "ForSequenceClassification")
"""How architectures end whose head scores."""
_BLOCK = 64
"""Weights that bitsandbytes' 4-bit format scales together."""


@dataclass(frozen=True, slots=True)
class Source:
    """Which weights, and how they are run. Equal sources share one loaded model."""

    path: str
    """A folder or a hub id."""
    max_batch: int
    """Most sequences run at once."""
    revision: str | None = None
    adapter: str | None = None
    """A folder or a hub id of LoRA weights."""
    quantization: str | None = None
    """`8bit` or `4bit`."""
    device: str | None = None
    """None: the GPU where there is one, else the CPU."""
    dtype: str | None = None
    """None: bfloat16 on a GPU, float32 on the CPU."""
    chat_template: str | None = None
    """`on`: it must have one; `off`: messages are written as paragraphs; None: as the model has it."""
    head: str | None = None
    """`reward`: sequence classification with one output; `prm`: token classification that marks steps; None: a causal
    language model."""
    weights: str = ""
    """What lay in the folder, as letters: another model's weights are not shared because they lie where it lay."""


_ONE_AT_A_TIME = threading.RLock()
"""transformers is loaded into by one thread at a time: `from_pretrained` sets defaults of the whole process while it
builds (two at once give models without weights), and a first import of the package from two threads fails in one."""


def load_model(source: Source) -> Any:
    """The model in evaluation mode.

    Raises:
        UsageError: no such model, revision, adapter or device; a head that is not there.
    """
    with _ONE_AT_A_TIME, _explained(source.path):
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it untyped
        device = _device(source.device)
        config = load_config(source.path, source.revision)
        if source.head is not None:
            _check_outputs(source, config)
        else:
            check_writes(source.path, config)
        model, found = _class(source).from_pretrained(
            source.path,
            config=config,
            output_loading_info=True,
            revision=source.revision,
            local_files_only=_offline(),
            dtype=_dtype(source, device),
            **_quantized(source, device),
        )
        if source.head is not None:
            _head_found(source, found["missing_keys"])
        model = _unpacked(model)
        if source.adapter is not None:
            model = _adapted(model, source.adapter, merge=source.quantization is None)
        return (model if source.quantization else model.to(device)).eval()


def _class(source: Source) -> Any:
    import transformers

    if source.head is None:
        return transformers.AutoModelForCausalLM
    if source.head == PRM:
        return transformers.AutoModelForTokenClassification
    return transformers.AutoModelForSequenceClassification


def check_writes(path: str, config: Any) -> None:
    """UsageError where the configuration says that the model scores replies: as a language model it would be half of
    itself, and what it writes would be measured all the same."""
    made = next((name for name in config.architectures or () if name.endswith(_SCORING)), None)
    if made is not None:
        raise UsageError(
            f"model {path!r} is a {made}: it scores replies and writes none",
            hint=f"a judge asks it with head: {PRM} (or {REWARD}); name a language model here",
        )


def _check_outputs(source: Source, config: Any) -> None:
    """A reward head has one output, a process reward model's two; over a base model that says nothing of it, the
    adapter brings such a head."""
    wanted = OUTPUTS[str(source.head)]
    if source.adapter is not None:
        config.num_labels = wanted
    if config.num_labels == wanted:
        return
    if source.head == PRM:
        raise UsageError(
            f"model {source.path!r} has {config.num_labels} outputs, a process reward model has 2",
            hint="name a token-classification model with labels 0 (bad) and 1 (good), as pluribus train prm makes one",
        )
    raise UsageError(
        f"model {source.path!r} has {config.num_labels} outputs, a reward model has 1",
        hint="name a sequence-classification model with num_labels: 1; a chat model judges without head: reward",
    )


def _head_found(source: Source, missing: Iterable[str]) -> None:
    """Weights that are neither in the model nor in its adapter would be random numbers, and so would the scores."""
    lacking = sorted(missing)
    if lacking and source.adapter is not None:
        from peft import load_peft_weights

        brought = load_peft_weights(source.adapter, device="cpu", local_files_only=_offline())
        lacking = [name for name in lacking if not any(key.endswith(name) for key in brought)]
    if lacking and source.head == PRM:
        raise UsageError(
            f"model {source.path!r} has no head that marks steps: its weights lack {lacking[0]}",
            hint="name a folder that pluribus train prm made, or give the adapter that it made",
        )
    if lacking:
        raise UsageError(
            f"model {source.path!r} has no reward head: its weights lack {lacking[0]}",
            hint="name a model that was trained as a reward model, or give the adapter that was",
        )


# --- how a process reward model reads a reply -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StepForm:
    """How a reply becomes the tokens that a process reward model was taught on."""

    separator: str = "\n"
    """Stands behind each step; what is said of the step is read off its last token, of an empty one off the step's own
    last token."""
    cut: Cut = "auto"
    """How a reply is cut into steps."""
    max_length: int | None = None
    """Most tokens of a row it was trained on; None: no limit was set."""
    join: str = ""
    """What each step but the first begins with."""


def load_form(source: Source) -> StepForm:
    """What `prm.json` beside the weights says; beside the adapter's, where there is one.

    Raises UsageError: there is no such file, or it says something else.
    """
    places = [source.path] if source.adapter is None else [source.adapter, source.path]
    found = next((file for place in places if (file := _beside(place, source.revision)) is not None), None)
    if found is None:
        raise UsageError(
            f"model {source.path!r} has no {STEP_FORM}: nobody can say where its steps end",
            hint=f'name a folder that pluribus train prm made; or write {{"separator": "\\n"}} into its {STEP_FORM}',
        )
    return read_form(found)


def _beside(place: str, revision: str | None) -> Path | None:
    if Path(place).is_dir():
        file = Path(place) / STEP_FORM
        return file if file.is_file() else None
    with _ONE_AT_A_TIME, _explained(place):
        from transformers.utils.hub import cached_file

        name = cached_file(
            place, STEP_FORM, revision=revision, local_files_only=_offline(),
            _raise_exceptions_for_missing_entries=False,
        )  # fmt: skip
        return None if name is None else Path(name)


def read_form(file: Path) -> StepForm:
    """The form a file holds; UsageError with one line where it holds none."""
    try:
        said = json.loads(file.read_text("utf-8"))
        if not isinstance(said, dict):
            raise ValueError(f"it holds {type(said).__name__}")
        form = StepForm(**said)
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{file} says no step form: {error}", hint='expected {"separator": "\\n"}') from None
    if not (isinstance(form.separator, str) and isinstance(form.join, str) and form.cut in CUTS):
        raise UsageError(
            f"{file} has separator {form.separator!r}, join {form.join!r} and cut {form.cut!r}",
            hint=f"separator and join are texts, a cut is one of: {', '.join(CUTS)}",
        )
    most: object = form.max_length
    if most is not None and not (isinstance(most, int) and not isinstance(most, bool) and most > 0):
        raise UsageError(f"{file} has max_length {most!r}", hint="expected a number of tokens, or null")
    return form


def marked(
    tokenizer: Any, prompt: Sequence[int], steps: Sequence[str], form: StepForm
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A prompt and the steps of its reply as a process reward model reads them.

    tokens = prompt ‖ step₁ ‖ separator ‖ join step₂ ‖ separator ‖ …, each part made into tokens on its own: as one text
    a step's last sign and a line's end may be one token (`.\\n` is one of Qwen's), and a mark would have no place.

    Returns: the tokens, and the place of the last token of each step and its separator.

    Raises UsageError: the tokenizer knows no token for the separator.
    """
    ending = tuple(tokenizer(form.separator, add_special_tokens=False)["input_ids"]) if form.separator else ()
    if form.separator and not ending:
        raise UsageError(
            f"the separator {form.separator!r} is no token of this tokenizer", hint="take another, such as \\n"
        )
    tokens, places = list(prompt), []
    texts = [*steps[:1], *(form.join + step for step in steps[1:])]
    for step in tokenizer(texts, add_special_tokens=False)["input_ids"] if texts else ():
        tokens += [*step, *ending]
        places.append(len(tokens) - 1)
    return tuple(tokens), tuple(places)


def summaries(good_S: Sequence[float]) -> dict[str, float]:
    """What a reply's steps come to: the least, the mean, the last, and the product of their P(good), each in [0, 1].

    >>> summaries([0.5, 0.8])
    {'min': 0.5, 'mean': 0.65, 'last': 0.8, 'product': 0.4}

    Source: product and minimum, Lightman et al. 2023, arXiv 2305.20050; minimum, Wang et al. 2023, arXiv 2312.08935;
    last, Snell et al. 2024, arXiv 2408.03314.
    """
    mean = math.fsum(good_S) / len(good_S)
    return {"min": min(good_S), "mean": mean, "last": good_S[-1], "product": math.prod(good_S)}


# --- configuration and tokenizer ------------------------------------------------------------------------------------


def load_config(path: str, revision: str | None) -> Any:
    """The model's configuration. Read before the weights: what is not there is found out at once."""
    with _ONE_AT_A_TIME, _explained(path):
        from transformers import AutoConfig

        return AutoConfig.from_pretrained(path, revision=revision, local_files_only=_offline())


@lru_cache(maxsize=8)
def load_words(path: str, revision: str | None, template: str | None = None, _weights: str = "") -> Words:
    """The model's tokenizer. Kept, because prompts are counted before any model is loaded.

    Args:
        template: `off`: without its chat template; `on`: it must have one; None: as it comes.
        _weights: what lies in the folder, see `Source.weights`: another tokenizer there is another one here.
    """
    with _ONE_AT_A_TIME, _explained(path):
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(path, revision=revision, local_files_only=_offline())
    if not tokenizer("0 a", add_special_tokens=False)["input_ids"]:  # transformers makes up one that knows no word
        raise UsageError(f"model {path!r} has no tokenizer", hint="save its tokenizer beside the weights")
    if template == "on" and tokenizer.chat_template is None:
        raise UsageError(f"model {path!r} has no chat template", hint="drop chat_template: on")
    if template == "off":
        tokenizer.chat_template = None
    return Words(tokenizer)


def context_length(config: Any) -> int | None:
    """Most tokens of prompt and completion together; None when the model does not say."""
    length: int | None = getattr(config.get_text_config(), "max_position_embeddings", None)
    return length


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Turns what transformers and the hub raise for what is not there into one line that says what to do."""
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError

    try:
        yield
    except SafetensorError as error:
        raise UsageError(
            f"model {path!r} could not be loaded: its weights are not whole: {error}",
            hint="save or download it again",
        ) from error
    except (OSError, ValueError, StrictDataclassError) as error:
        first = str(error).strip().splitlines()[0]
        hint = "check the name, the revision and the network; a private model needs HF_TOKEN"
        if _offline():
            hint = "HF_HUB_OFFLINE is set: unset it to download the model, or give a folder"
        raise UsageError(f"model {path!r} could not be loaded: {first}", hint=hint) from error


def _offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").strip().lower() in ("1", "true", "yes", "on")


def _device(name: str | None) -> torch.device:
    import torch

    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # AssertionError: torch was built without CUDA
        raise UsageError(f"there is no device {name!r} here", hint="write cpu, cuda or cuda:N") from error
    return device


def _dtype(source: Source, device: torch.device) -> torch.dtype:
    import torch

    dtype: torch.dtype = getattr(torch, source.dtype or ("bfloat16" if device.type == "cuda" else "float32"))
    return dtype


def _quantized(source: Source, device: torch.device) -> Mapping[str, Any]:
    """Arguments that make `from_pretrained` quantize through bitsandbytes."""
    if source.quantization is None:
        return {}
    from transformers import BitsAndBytesConfig

    four = source.quantization == "4bit"
    config = BitsAndBytesConfig(  # type: ignore[no-untyped-call]  # transformers leaves it untyped
        load_in_4bit=four,
        load_in_8bit=not four,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_compute_dtype=_dtype(source, device),
    )
    return {"quantization_config": config, "device_map": {"": device}}


def _unpacked(model: Any) -> Any:
    """Switches off bitsandbytes' packed CPU kernel where rows are no whole number of its blocks: it fails there."""
    for module in model.modules():
        if getattr(module, "support_avx512bf16_for_cpu", False) and module.in_features % _BLOCK:
            module.support_avx512bf16_for_cpu = False
    return model


def _adapted(model: Any, adapter: str, *, merge: bool) -> Any:
    """The model with LoRA weights; merged where the weights are plain numbers, which is faster."""
    from peft import PeftModel

    adapted: Any = PeftModel.from_pretrained(model, adapter, local_files_only=_offline())
    return adapted.merge_and_unload() if merge else adapted.get_base_model()


class Words:
    """A tokenizer's three uses, one at a time: it is not safe to share between threads."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self._lock = threading.Lock()
        self.prompt = lru_cache(maxsize=1024)(self._prompt)
        """Messages → text and token ids; seats that ask the same thing ask at the same time."""
        self.piece = lru_cache(maxsize=2**16)(self._piece)
        """Token → its text; a special token has one too."""

    def _prompt(self, messages: tuple[Message, ...]) -> tuple[str, tuple[int, ...]]:
        text = render(self.tokenizer, messages)
        return text, self.encode(text)

    def marked(
        self, messages: tuple[Message, ...], steps: Sequence[str], form: StepForm
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The token ids of a prompt and the steps that follow it, and the place where each step ends."""
        _, prompt = self.prompt(messages)
        with self._lock:
            return marked(self.tokenizer, prompt, steps, form)

    def conversation(self, messages: tuple[Message, ...]) -> tuple[int, ...]:
        """The token ids of messages to which nothing is added."""
        return self.encode(render(self.tokenizer, messages, reply=False))

    def bare(self, text: str) -> tuple[int, ...]:
        """Token ids without any special token: text that goes on where other text ends."""
        with self._lock:
            return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _piece(self, token: int) -> str:
        with self._lock:
            text: str = self.tokenizer.decode([token], clean_up_tokenization_spaces=False)
            return text

    def encode(self, text: str) -> tuple[int, ...]:
        """Token ids. A chat template writes the special tokens itself; without one the tokenizer adds them."""
        with self._lock:
            return tuple(self.tokenizer(text, add_special_tokens=self.tokenizer.chat_template is None)["input_ids"])

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of the tokens without the special ones."""
        with self._lock:
            text: str = self.tokenizer.decode(list(tokens), skip_special_tokens=True)
            return text


def ends(model: Any, tokenizer: Any) -> frozenset[int]:
    """The ids that end a completion, by the generation settings, the model and the tokenizer."""
    found: set[int] = set()
    for value in (model.generation_config.eos_token_id, model.config.eos_token_id, tokenizer.eos_token_id):
        found.update(value if isinstance(value, list | tuple) else [] if value is None else [value])
    return frozenset(found)


def render(tokenizer: Any, messages: tuple[Message, ...], *, reply: bool = True) -> str:
    """The messages in the model's chat template, open for the reply; without a template, as paragraphs.

    A template that knows no system role gets the system's words at the head of the first user message.

    Args:
        reply: whether a reply is to follow; the messages end with one otherwise.

    Raises:
        Refused: the template takes the messages in neither form.
    """
    from jinja2 import TemplateError

    if tokenizer.chat_template is None:
        return "\n\n".join(message.content for message in messages)
    refusals = []
    for form in (messages, _without_system(messages)):
        chat = [{"role": message.role, "content": message.content} for message in form]
        try:
            text: str = tokenizer.apply_chat_template(chat, add_generation_prompt=reply, tokenize=False)
        except TemplateError as error:
            refusals.append(str(error))
        else:
            return text
    raise Refused(f"the model's chat template does not take these messages: {refusals[0]}")


def _without_system(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """
    >>> _without_system((Message("system", "Be brief."), Message("user", "Why?")))
    (Message(role='user', content='Be brief.\\n\\nWhy?'),)
    """
    if len(messages) < 2 or messages[0].role != "system":
        return messages
    first, second, *rest = messages
    return (Message(second.role, f"{first.content}\n\n{second.content}"), *rest)
