"""Records as database values: canonical JSON, compressed where that pays."""

from __future__ import annotations

import zlib
from typing import Any, TypeVar

from pluribus.codec import decode, to_json
from pluribus.errors import StoreError

T = TypeVar("T")
COMPRESS_FROM_BYTES = 2048
"""Below this, compressing saves little and costs more than the row."""
_ZLIB_HEADER = b"x"  # no JSON text begins with it


def pack(value: Any) -> bytes:
    """The value's JSON in UTF-8, compressed when it is long. TypeError and ValueError as `codec.to_json`."""
    text = to_json(value).encode()
    return text if len(text) < COMPRESS_FROM_BYTES else zlib.compress(text, 1)


def unpack(cls: type[T], blob: bytes, what: str) -> T:
    """The record that `pack` wrote; `what` names it in the StoreError of a blob that can not be read.

    >>> from pluribus.types import Message
    >>> unpack(Message, pack(Message("user", "hi" * 2000)), "message").content[:4]
    'hihi'
    """
    try:
        return decode(cls, zlib.decompress(blob) if blob[:1] == _ZLIB_HEADER else blob)
    except (zlib.error, ValueError, TypeError) as error:
        raise StoreError(
            f"the stored {what} can not be read: {error}",
            hint="it may come from a newer pluribus; else the file is damaged",
        ) from error
