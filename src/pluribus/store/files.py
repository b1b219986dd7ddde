"""Files that take their name only when they are whole."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedWriter
from pathlib import Path
from typing import Any

from pluribus.codec import to_json
from pluribus.errors import StoreError, UsageError

Output = gzip.GzipFile | BufferedWriter


def write_line(file: Output, line: Mapping[str, Any]) -> None:
    file.write(to_json(line).encode() + b"\n")


@contextmanager
def writing(path: Path) -> Iterator[Output]:
    """Opens the file for writing, compressed if its name ends in `.gz`; after an error nothing is left of it."""
    with whole(path) as part:
        if path.suffix == ".gz":
            # neither name nor time go in: the same run exports to the same bytes
            with part.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
                yield file
        else:
            with part.open("wb") as file:
                yield file


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A path beside `path` to write to, renamed at the end. StoreError if it can not be written."""
    if not path.name or (path.exists() and not path.is_file()):
        what = "a folder" if path.is_dir() else "no plain file"
        raise StoreError(f"{str(path)!r} can not be written: it is {what}", hint="choose another file")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")  # several processes may write the same
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield part
        part.replace(path)
    except OSError as error:
        raise StoreError(f"{path} can not be written: {error.strerror}", hint="choose another file") from error
    finally:
        with suppress(OSError):  # it is gone after the rename, and was never there if the folder could not be made
            part.unlink()


def make_folder(folder: Path) -> Path:
    """The folder, there from now on: made before long work whose result goes into it.

    Raises:
        UsageError: it can not be made, or is a file.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"the folder {folder} can not be made: {error.strerror}", hint="choose another") from error
    return folder
