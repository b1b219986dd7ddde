"""One file per embedder. Texts become vectors once: duplicates, and what the cache holds, are not embedded again.

A member module has `FORM`, how its name is written; `OPTIONS`, the options it accepts; and
`open(rest, options) -> RawEmbedder`. It turns a batch of texts into vectors and knows nothing of caches, duplicates
and empty texts: `Embedder` does that for all members alike. One that reads tokens in their context has
`tokens(texts) -> list[TokenVectors]` beside it.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pluribus.embedders._tokens import TokenVectors
from pluribus.errors import ConfigError, DataError, UnknownName
from pluribus.load import load, names

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")
Progress = Callable[[int, int], object]
"""Called with (texts done, texts in all), each distinct text counted once."""

_BEGINNING = 60
_FLOAT32 = "<f4"
_SILENT_OPTIONS = frozenset(
    {
        "api_key_env",
        "attempts",
        "base_url",
        "batch",
        "concurrency",
        "device",
        "encoding",
        "timeout_s",
        "trust_remote_code",
    }
)
"""Options that say how to get to the vectors, not which vectors they are."""


class RawEmbedder(Protocol):
    """What a member opens. Nothing is loaded and nothing sent before the first `embed`."""

    @property
    def name(self) -> str:
        """What identifies the vectors in the cache: the model with its revision, and every option that changes them."""
        ...

    @property
    def dimension(self) -> int | None:
        """None: not known before the first vector came."""
        ...

    @property
    def chunk(self) -> int:
        """How many texts one `embed` takes at its best; they are stored after it."""
        ...

    @property
    def windowed(self) -> int:
        """How many of the texts so far were too long for the model, and were read in several windows."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row per text, of any length. The texts are valid Unicode, distinct and not blank."""
        ...


class VectorCache(Protocol):
    """Vectors by embedder and text. `pluribus.store` has one; vectors are little-endian float32."""

    def get_many(self, embedder: str, digests: Sequence[bytes]) -> Mapping[bytes, bytes]: ...

    def put_many(self, embedder: str, vectors: Mapping[bytes, bytes]) -> None: ...


@dataclass(frozen=True, slots=True)
class EmbedderSpec:
    """An embedder as the user names it, resolved."""

    member: str
    rest: str = ""
    """What stands behind the member's name: a hub id, a folder, a service's model."""
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The embedder with the options that change its vectors; no address, no device."""
        changed = [f"{key}={self.options[key]}" for key in sorted(self.options) if key not in _SILENT_OPTIONS]
        return (f"{self.member}/{self.rest}" if self.rest else self.member) + (
            f"[{','.join(changed)}]" if changed else ""
        )


_NAME = re.compile(r"(?P<head>.*?)(?:\[(?P<options>[^\[\]]*=[^\[\]]*)\])?", re.DOTALL)


def parse(name: str) -> EmbedderSpec:
    """Reads `MEMBER`, `MEMBER/REST`, `MEMBER/REST@http://…`, each with options behind it: `[NAME=VALUE,…]`.

    Raises:
        UnknownName: no such embedder or option; lists what there is.
        ConfigError: an address for an embedder that has none, an option without a value.

    >>> parse("openai/text-embedding-3-small@http://127.0.0.1:8001/v1[dimensions=256]").name
    'openai/text-embedding-3-small[dimensions=256]'
    >>> parse("hashing")
    EmbedderSpec(member='hashing', rest='', options={})
    """
    match = _NAME.fullmatch(name.strip())
    assert match  # it fits every text
    head, at, address = match["head"].rpartition("@http")
    member, _, rest = (head if at else match["head"]).partition("/")
    if member not in names("embedders"):
        raise UnknownName("embedder", member or name, forms())
    options = _options(match["options"])
    known = load("embedders", member).OPTIONS
    if at:
        if "base_url" not in known:
            raise ConfigError(
                f"embedder {member!r} has an address, but it runs in this process", hint=f"write {member}"
            )
        options["base_url"] = f"http{address}"
    for key in options:
        if key not in known:
            raise UnknownName(f"option of {member}", key, known)
    return EmbedderSpec(member, rest, options)


def forms() -> list[str]:
    """How each embedder is written.

    >>> forms()
    ['hashing', 'minilm', 'openai/MODEL', 'sentence_transformers/MODEL']
    """
    return [getattr(load("embedders", member), "FORM", member) for member in names("embedders")]


def _options(text: str | None) -> dict[str, str]:
    options: dict[str, str] = {}
    for entry in text.split(",") if text else ():
        key, equals, value = (part.strip() for part in entry.partition("="))
        if not equals or not key or not value:
            raise ConfigError(f"embedder option {entry!r} has no value", hint="write [NAME=VALUE,NAME=VALUE]")
        options[key] = value
    return options


_SWITCH = {"true": True, "false": False}
_EXPECTED: Mapping[object, str] = {bool: "true or false", int: "a whole number", float: "a number"}


def option(options: Mapping[str, str], name: str, kind: Callable[[str], T], default: T) -> T:
    """An option's value, read as `bool`, `int`, `float` or `str`; ConfigError if it can not be.

    >>> option({"batch": "64"}, "batch", int, 32), option({}, "batch", int, 32), option({"x": "true"}, "x", bool, False)
    (64, 32, True)
    """
    text = options.get(name)
    if text is None:
        return default
    try:
        value: Any = _SWITCH[text] if kind is bool else kind(text)
    except (ValueError, KeyError):
        value = math.nan
    if value != value or value in (math.inf, -math.inf):
        raise ConfigError(f"embedder option {name} is {text!r}; expected {_EXPECTED.get(kind, 'a text')}")
    found: T = value
    return found


def at_least_one(options: Mapping[str, str], name: str, default: int) -> int:
    """An option that counts something; ConfigError below 1."""
    value = option(options, name, int, default)
    if value < 1:
        raise ConfigError(f"embedder option {name} is {value}; expected 1 or more")
    return value


def open_embedder(name: str, *, cache: VectorCache | None = None, progress: Progress | None = None) -> Embedder:
    """Opens an embedder by name. No model is loaded and no service asked before the first text that is not cached.

    Args:
        name: as `parse` reads it: `minilm`, `hashing`, `openai/MODEL`, `sentence_transformers/MODEL`.
        cache: vectors of earlier times, `Store.vectors`; None: nothing is remembered beyond one call.
        progress: told how far a call is, after each chunk.

    Raises:
        UnknownName, ConfigError: a name, option or model that is not there.
        MissingDependency: the extra `embed` is not installed.

    >>> embed = open_embedder("hashing[dimensions=64]")
    >>> embed(["two and two", "", "two and two"]).shape, embed.name, embed.empty
    ((3, 64), 'hashing[dimensions=64]', 1)
    """
    spec = parse(name)
    raw: RawEmbedder = load("embedders", spec.member).open(spec.rest, spec.options)
    return Embedder(spec.name, raw, cache, progress)


class Embedder:
    """Texts → unit vectors. What it did so far stands in its counts."""

    def __init__(
        self, name: str, raw: RawEmbedder, cache: VectorCache | None = None, progress: Progress | None = None
    ) -> None:
        self.name = name
        """As the user wrote it, without address and device."""
        self.empty = 0
        """Blank texts so far: rows of zeros."""
        self.cached = 0
        """Distinct texts found in the cache."""
        self.embedded = 0
        """Distinct texts the model read."""
        self._raw = raw
        self._cache = cache
        self._progress = progress

    @property
    def identity(self) -> str:
        """What the cache knows these vectors by: the name, and the model's revision where there is one."""
        return self._raw.name

    @property
    def windowed(self) -> int:
        """Texts the model read in several windows, being longer than one; their vector is the mean. None from the
        cache is counted."""
        return self._raw.windowed

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """One unit row per text, in order; the same text is embedded once. A blank text is a row of zeros.

        Args:
            texts: any Unicode; half a surrogate pair is read as U+FFFD.

        Returns:
            (n, d) float64; d is 1 when all texts are blank and the width is not known.

        Raises:
            DataError: a vector is not finite, or not as wide as the others; names the text's beginning.
            BackendError: the service of an `openai/…` embedder gave none.
        """
        import numpy as np

        readable = [_readable(text) for text in texts]
        place = {text: i for i, text in enumerate(dict.fromkeys(text for text in readable if text.strip()))}
        unit_M_D = _unit(self._parts(list(place)), place, self._raw.dimension or 1)
        rows_N = np.array([place.get(text, len(place)) for text in readable], dtype=np.intp)
        self.empty += int((rows_N == len(place)).sum())
        return unit_M_D[:-1] if len(place) == len(rows_N) else unit_M_D[rows_N]

    @property
    def contextual(self) -> bool:
        """Whether `tokens` are the model's own, in their context; else they are words, each embedded alone."""
        return hasattr(self._raw, "tokens")

    def tokens(self, texts: Sequence[str]) -> list[TokenVectors]:
        """The tokens of each text, in order; the same text is read once, a blank one has none. They are not cached.

        >>> (found,) = open_embedder("hashing[dimensions=64]").tokens(["two and two"])
        >>> found.vectors_T_D.shape, found.ids_T[0] == found.ids_T[2]
        ((3, 64), True)
        """
        readable = [_readable(text) for text in texts]
        there = list(dict.fromkeys(text for text in readable if text.strip()))
        read: Callable[[Sequence[str]], list[TokenVectors]] = getattr(self._raw, "tokens", self._words)
        found = dict(zip(there, read(there), strict=True)) if there else {}
        return [found[text] if text in found else _no_tokens() for text in readable]

    def _words(self, texts: Sequence[str]) -> list[TokenVectors]:
        import numpy as np

        words = [text.split() for text in texts]
        vocabulary = list(dict.fromkeys(word for text in words for word in text))
        vectors_V_D = self(vocabulary).astype(np.float32)
        place = {word: i for i, word in enumerate(vocabulary)}
        return [
            TokenVectors(
                tuple(int.from_bytes(_digest(word)[:8], "big") for word in text),
                vectors_V_D[[place[word] for word in text]],
                (False,) * len(text),
            )
            for text in words
        ]

    def _parts(self, texts: Sequence[str]) -> list[Part]:
        """Every text's vector: from the cache, else from the model, chunk by chunk, long texts first."""
        parts = self._known(texts)
        known = {text for part in parts for text in part.texts}
        missing = sorted((text for text in texts if text not in known), key=len, reverse=True)
        self._tell(len(known), len(texts))
        for start in range(0, len(missing), self._raw.chunk):
            parts.append(self._made(missing[start : start + self._raw.chunk]))
            self._tell(len(known) + start + len(parts[-1].texts), len(texts))
        _same_width(self.name, parts)
        return parts

    def _known(self, texts: Sequence[str]) -> list[Part]:
        """What the cache has of them; one part for each width, which is one unless somebody changed the model."""
        import numpy as np

        digests = [] if self._cache is None else [_digest(text) for text in texts]
        held = self._cache.get_many(self.identity, digests) if self._cache is not None and digests else {}
        by_size: dict[int, list[tuple[str, bytes]]] = {}
        for text, digest in zip(texts, digests, strict=False):
            if digest in held:
                by_size.setdefault(len(held[digest]), []).append((text, held[digest]))
        self.cached += len(held)
        return [
            Part(
                [text for text, _ in rows],
                np.frombuffer(b"".join(blob for _, blob in rows), _FLOAT32).reshape(len(rows), -1),
            )
            for rows in by_size.values()
        ]

    def _made(self, texts: Sequence[str]) -> Part:
        made = Part(texts, self._raw.embed(texts))
        self.embedded += len(texts)
        for text, length in zip(texts, made.length_B, strict=True):
            if not math.isfinite(length):
                raise DataError(self.name, f"the vector of the text {_beginning(text)} is not finite")
        if self._cache is not None:
            rows = made.vectors_B_D.astype(_FLOAT32)
            self._cache.put_many(
                self.identity, {_digest(text): row.tobytes() for text, row in zip(texts, rows, strict=True)}
            )
        return made

    def _tell(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(done, total)


def _readable(text: str) -> str:
    """The text as UTF-8 can hold it: tokenizers and services take nothing else.

    >>> _readable("½ \\ud83d"), _readable("\\ud83d\\ude00") == "😀"
    ('½ �', True)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _no_tokens() -> TokenVectors:
    import numpy as np

    return TokenVectors((), np.zeros((0, 1), np.float32), ())


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _beginning(text: str) -> str:
    return repr(text if len(text) <= _BEGINNING else text[: _BEGINNING - 1] + "…")


class Part:
    """Some texts and their vectors of any length, one row each."""

    def __init__(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        import numpy as np

        self.texts = texts
        self.vectors_B_D = vectors
        self.length_B = np.sqrt(np.einsum("bd,bd->b", vectors, vectors, dtype=np.float64))
        """Not finite where the vector is not."""


def _unit(parts: Sequence[Part], place: Mapping[str, int], width: int) -> NDArray[np.float64]:
    """Each text's row of length 1 at its place, and behind them the row of zeros for blank texts."""
    import numpy as np

    unit_M_D = np.zeros((len(place) + 1, parts[0].vectors_B_D.shape[1] if parts else width))
    for part in parts:
        rows_B_D = part.vectors_B_D.astype(np.float64)
        rows_B_D /= np.where(part.length_B > 0, part.length_B, 1.0)[:, None]
        unit_M_D[[place[text] for text in part.texts]] = rows_B_D
    return unit_M_D


def _same_width(name: str, parts: Sequence[Part]) -> None:
    by_width = {part.vectors_B_D.shape[1]: part.texts[0] for part in parts}
    if len(by_width) > 1:
        (one, text), (other, _), *_ = sorted(by_width.items())
        raise DataError(
            name,
            f"vectors have {one} and {other} dimensions; the text {_beginning(text)} has {one}",
            hint="another model answers under this name than when the workspace was filled; take another with --home",
        )
