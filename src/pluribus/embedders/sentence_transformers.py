"""Any model that sentence-transformers loads, from the hub or a folder: `sentence_transformers/nvidia/NV-Embed-v2`.

Options: `trust_remote_code` for models that bring their own program, `revision`, `dtype` (bfloat16 halves the
memory), `prompt` (a name the model's configuration knows), `device`, `batch`. A text longer than the model's window
is read in several. `layer` says which hidden layer the tokens' vectors of BERTScore come from; the texts' own vectors
do not depend on it.

Source: Reimers and Gurevych 2019, Sentence-BERT, arXiv 1908.10084.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pluribus.backends._folders import folder_digest
from pluribus.embedders import at_least_one, option
from pluribus.embedders._tokens import Encoded, TokenVectors, read_tokens
from pluribus.embedders._windows import embed_windows
from pluribus.errors import ConfigError, MissingDependency

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FORM = "sentence_transformers/MODEL"
OPTIONS = ("batch", "device", "dtype", "layer", "prompt", "revision", "trust_remote_code")

_DTYPES = ("float32", "float16", "bfloat16")
_CHUNK_BATCHES = 8
_NO_END = 1_000_000
"""A tokenizer that names more tokens than this does not know its model's length."""


@dataclass(frozen=True, slots=True)
class Source:
    """Which model, found."""

    path: str
    """A folder or a hub id."""
    revision: str | None
    """Commit of a hub model."""
    name: str
    """The hub id, or the folder's own name: the same model may lie elsewhere tomorrow."""
    mark: str
    """What changes when the model does."""


def open(rest: str, options: Mapping[str, str]) -> SentenceTransformers:
    """Opens it. The model is loaded, and if need be fetched from the hub, with the first text.

    Raises:
        ConfigError: no model named, no such folder or model, an option of the wrong type.
        MissingDependency: sentence-transformers is not installed.
    """
    if not rest:
        raise ConfigError("embedder 'sentence_transformers' names no model", hint=f"write {FORM}, a hub id or a folder")
    if find_spec("sentence_transformers") is None:
        raise MissingDependency("sentence-transformers", "embed")
    dtype = option(options, "dtype", str, _DTYPES[0])
    if dtype not in _DTYPES:
        raise ConfigError(f"embedder option dtype is {dtype!r}; expected one of {', '.join(_DTYPES)}")
    option(options, "trust_remote_code", bool, False)
    at_least_one(options, "layer", 1)
    batch = at_least_one(options, "batch", 32)
    return SentenceTransformers(_source(rest, options.get("revision")), {**options, "dtype": dtype}, batch)


class SentenceTransformers:
    def __init__(self, source: Source, options: Mapping[str, str], batch: int) -> None:
        how = [f"{name}={options[name]}" for name in ("dtype", "prompt") if options.get(name, _DTYPES[0]) != _DTYPES[0]]
        self.name = f"sentence_transformers/{source.name}@{source.mark}" + (f"[{','.join(how)}]" if how else "")
        self.dimension: int | None = None
        self.chunk = batch * _CHUNK_BATCHES
        self.windowed = 0
        self._source = source
        self._options = options
        self._batch = batch
        self._loaded: Any = None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        limit = self._model().max_seq_length
        if limit is None:
            return self._short(texts)
        vectors_B_D, windowed = embed_windows(texts, self._count, limit, self._short)
        self.windowed += windowed
        return vectors_B_D

    def tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """A hidden layer's vector of every token; a `prompt` is not put before a text."""
        model, encoder = self._model(), self._encoder()
        tokenizer = model.tokenizer

        def encode(text: str) -> Encoded:
            found = tokenizer(text, truncation=False, verbose=False, return_special_tokens_mask=True)
            return Encoded(tuple(found["input_ids"]), tuple(map(bool, found["special_tokens_mask"])))

        found, windowed = read_tokens(
            texts, count=self._count, limit=_window(model), encode=encode, model=encoder, layer=self._layer(encoder)
        )
        self.windowed += windowed
        return found

    def _layer(self, encoder: Any) -> int | None:
        if "layer" not in self._options:
            return None
        layer, layers = at_least_one(self._options, "layer", 1), encoder.config.num_hidden_layers
        if layer > layers:
            raise ConfigError(f"embedder option layer is {layer}, and {self._source.path} has {layers} layers")
        return layer

    def _encoder(self) -> Any:
        """The transformers model inside."""
        encoder = getattr(self._model()[0], "auto_model", None)
        if encoder is None:
            raise ConfigError(
                f"embedder sentence_transformers/{self._source.path} has no tokens in context", hint="take minilm"
            )
        return encoder

    def _model(self) -> Any:
        """The model, loaded once."""
        if self._loaded is None:
            self._loaded = _load(self._source, self._options)
            self.dimension = self._loaded.get_embedding_dimension()
        return self._loaded

    def _count(self, texts: Sequence[str]) -> list[int]:
        tokenizer = self._model().tokenizer
        return [len(ids) for ids in tokenizer(list(texts), truncation=False, verbose=False)["input_ids"]]

    def _short(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        vectors_B_D = self._model().encode(
            list(texts),
            batch_size=self._batch,
            prompt_name=self._options.get("prompt"),
            show_progress_bar=False,
            convert_to_numpy=True,
        )
        return np.asarray(vectors_B_D, np.float32)


def _window(model: Any) -> int:
    """Tokens the encoder has places for, as its tokenizer says; else those of a text."""
    places, window = model.tokenizer.model_max_length, model.max_seq_length
    return int(places if places < _NO_END or window is None else window)


def _source(path: str, revision: str | None) -> Source:
    folder = Path(path).expanduser()
    if folder.is_dir():
        return Source(str(folder), None, folder.resolve().name, _folder_digest(folder))
    commit = _commit(path, revision)
    return Source(path, commit, path, commit[:12])


def _commit(hub_id: str, revision: str | None) -> str:
    """The commit that the revision, or the latest, stands for: the newest the hub has, else the one on this disk."""
    with _explained(hub_id):
        from huggingface_hub import hf_hub_download

        with _quiet("huggingface_hub"):  # it logs each of its tries; the error says it once
            found = hf_hub_download(hub_id, "config.json", revision=revision, local_files_only=_offline())
        return Path(found).parent.name


def _offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").lower() in ("1", "true", "yes", "on")


def _folder_digest(folder: Path) -> str:
    """12 letters that change when a file of the model does."""
    return folder_digest(folder, (path for path in folder.rglob("*") if not _hidden(path.relative_to(folder))))


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _load(source: Source, options: Mapping[str, str]) -> Any:
    with _explained(source.path):
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging

        logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it untyped
        return SentenceTransformer(
            source.path,
            revision=source.revision,
            device=options.get("device") or None,
            trust_remote_code=option(options, "trust_remote_code", bool, False),
            local_files_only=_offline(),
            model_kwargs={"dtype": getattr(torch, options["dtype"])},
        )


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """What goes wrong while a model is found and loaded, in one line."""
    what = f"embedder sentence_transformers/{path}"
    try:
        yield
    except ImportError as error:
        raise ConfigError(f"{what} can not be loaded: {_line(error)}", hint="install what it asks for") from error
    except (OSError, ValueError, RuntimeError, AssertionError) as error:
        if "trust_remote_code" in str(error):
            hint = f"if you trust it: 'sentence_transformers/{path}[trust_remote_code=true]'"
            raise ConfigError(f"{what} brings a program of its own", hint=hint) from error
        hint = "name a folder of a model, or a hub id; HF_HUB_OFFLINE=1 forbids to fetch one"
        raise ConfigError(f"{what} can not be loaded: {_line(error)}", hint=hint) from error


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Keeps the warnings of a library off the terminal."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
