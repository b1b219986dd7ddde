"""Files that take their name only when they are whole."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, cast

from pluribus.errors import StoreError


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """Opens the file for writing, compressed if its name ends in `.gz`; after an error nothing is left of it."""
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
                    yield cast(IO[bytes], file)
            else:
                yield raw
        part.replace(path)
    except OSError as error:
        raise StoreError(f"{path} can not be written: {error.strerror}", hint="choose another file") from error
    finally:
        with suppress(OSError):  # it is gone after the rename, and was never there if the folder could not be made
            part.unlink()
