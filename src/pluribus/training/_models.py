"""A student and its tokenizer, read so that it can learn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pluribus import backends
from pluribus.backends import aliases, parse, services
from pluribus.backends._loading import _ONE_AT_A_TIME, load_config, load_words
from pluribus.errors import UsageError
from pluribus.load import load
from pluribus.training.config import LoraConfig, TrainConfig


def path_of(model: str) -> str:
    """Where a student's weights are: a folder, a hub id, or a member of a library, as in `zoo/qwen`.

    A folder wins over a hub id; `local/NAME` is the same as NAME.

    >>> Path(path_of("zoo/qwen")).name
    'qwen'
    """
    if Path(model).expanduser().is_dir():
        return _checked_folder(Path(model).expanduser())
    model = aliases().get(model, model)
    service, slash, _ = model.partition("/")
    if not slash or service not in services():
        return load("backends", "local")._folder(model, "model", "config.json")  # type: ignore[no-any-return]
    if services()[service]["backend"] != "local":
        raise UsageError(
            f"model {model!r} is asked over the network and can not be trained here",
            hint="give a folder or a hub id, such as Qwen/Qwen3-0.6B",
        )
    return str(load("backends", "local")._path(parse(model)))


def dialect_of(model: str) -> str | None:
    """The prompts a student was made for; what is trained on it was asked in them, and so is the trained model.

    >>> dialect_of("zoo/qwen"), dialect_of("Qwen/Qwen3-0.6B")
    ('zoo', None)
    """
    if Path(model).expanduser().is_dir():
        return backends.trained_dialect(Path(model))
    named = aliases().get(model, model)
    return backends.dialect_of(parse(named)) if named.partition("/")[0] in services() else None


def _checked_folder(folder: Path) -> str:
    if (folder / "config.json").is_file():
        return str(folder.resolve())
    if (folder / "adapter_config.json").is_file():
        raise UsageError(
            f"model folder {str(folder)!r} holds an adapter alone", hint="train on the merged model, or on its base"
        )
    raise UsageError(f"model folder {str(folder)!r} has no config.json", hint="give the folder that holds the weights")


def tokenizer_of(path: str, *, template: bool = True) -> Any:
    """The student's tokenizer, of its own: a trainer changes it.

    Args:
        template: whether the rows are conversations; UsageError then, where it has no chat template.
    """
    import copy

    tokenizer = copy.deepcopy(load_words(path, None).tokenizer)
    if template and tokenizer.chat_template is None:
        raise UsageError(
            f"the tokenizer of {path!r} has no chat template, and the rows are conversations",
            hint="take an instruction-tuned model, or save a chat_template.jinja beside the tokenizer",
        )
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def student(config: TrainConfig, path: str, cls: Any, **options: Any) -> Any:
    """The model in training mode on this process's device; quantized where that is wished.

    Args:
        cls: `AutoModelForCausalLM`, or the auto class of another head.
        options: for `from_pretrained`.

    Raises UsageError: no such weights, or another architecture than the head needs.
    """
    import torch
    from safetensors import SafetensorError

    wanted = load_config(path, None)
    dtype = torch.bfloat16 if bf16(config) and config.lora is not None else torch.float32
    if config.attention is not None:
        options["attn_implementation"] = config.attention
    if config.quantization is not None:
        options["quantization_config"] = _bits(config)
    try:
        with _ONE_AT_A_TIME, _unsaid():
            model, found = cls.from_pretrained(
                path, dtype=dtype, output_loading_info=True, ignore_mismatched_sizes=True, **options
            )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError) as error:
        raise UsageError(
            f"model {config.model!r} ({wanted.model_type}) can not be trained here: {_line(error)}",
            hint="check that its weights are whole and of this architecture",
        ) from error
    _check_weights(path, found)
    return model.train()


@contextmanager
def _unsaid() -> Iterator[None]:
    """Without transformers' own report of what is missing: `_check_weights` says it in a line."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]  # transformers leaves it untyped
    try:
        yield
    finally:
        logging.set_verbosity(before)


def _check_weights(path: str, found: Any) -> None:
    """Weights of another architecture load as random numbers; a new head alone may be missing."""
    lacking = sorted(name for name in found["missing_keys"] if not name.startswith(("score", "classifier")))
    unlike = sorted(str(one[0]) for one in found.get("mismatched_keys", ()))
    if lacking or unlike:
        raise UsageError(
            f"model {path!r} holds weights of another architecture: {(lacking + unlike)[0]} is "
            f"{'missing' if lacking else 'of another shape'}",
            hint="give the folder as it was saved; config.json and the weights have to belong together",
        )


def _line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _bits(config: TrainConfig) -> Any:
    import torch
    from transformers import BitsAndBytesConfig

    four = config.quantization == "4bit"
    return BitsAndBytesConfig(  # type: ignore[no-untyped-call]  # transformers leaves it untyped
        load_in_4bit=four, load_in_8bit=not four, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=four,
        bnb_4bit_compute_dtype=torch.bfloat16 if bf16(config) else torch.float32,
    )  # fmt: skip


def bf16(config: TrainConfig) -> bool:
    """Whether it computes in bfloat16."""
    import torch

    return config.precision == "bf16" or (config.precision == "auto" and torch.cuda.is_available())


def adapter(lora: LoraConfig | None, task: str = "CAUSAL_LM") -> Any:
    """peft's form of it; None for all weights."""
    if lora is None:
        return None
    from peft import LoraConfig as Peft

    return Peft(r=lora.r, lora_alpha=lora.alpha, lora_dropout=lora.dropout, target_modules=lora.targets, task_type=task)  # type: ignore[arg-type]  # peft takes the name of the task


def save(trainer: Any, tokenizer: Any, folder: Path, config: TrainConfig) -> None:
    """The trained weights as a folder that is loaded like any other model; every process has to call it.

    An adapter is merged into the weights, and kept beside them in `adapter/`; over quantized weights, or without
    `lora.merge`, the folder holds the adapter.
    """
    from peft import PeftModel

    model = trainer.accelerator.unwrap_model(trainer.model)
    if isinstance(model, PeftModel) and config.lora is not None and config.lora.merge and not config.quantization:
        if trainer.is_world_process_zero():
            model.save_pretrained(str(folder / "adapter"))
            merged: Any = model.merge_and_unload()
            merged.save_pretrained(folder)
    else:
        trainer.save_model(str(folder))
    if trainer.is_world_process_zero():
        tokenizer.save_pretrained(folder)
        (folder / "training_args.bin").unlink(missing_ok=True)  # a pickle: nobody should have to trust one


def finished(folder: Path) -> dict[str, Any]:
    """What `training.json` of a folder says; empty where there is none."""
    try:
        found = json.loads((folder / backends.TRAINED).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
