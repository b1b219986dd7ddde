"""One file per format of recorded runs that people already own. Each reads files into recordings: questions, outputs
and the verdicts the source gave; nothing is asked.

A member has `TITLE`, `recognise(path) -> bool` (looks into the file, cheap), and `read(path) -> list[Recording]`;
where the format is also written, `write(panel, questions, path)`.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from pluribus.errors import DataError
from pluribus.load import load, names
from pluribus.logs._panels import combine, groups, merged, panel_of_recording
from pluribus.logs._records import Output, Recording

__all__ = [
    "Output", "Recording", "combine", "groups", "merged", "panel_of_recording", "read", "reader_of", "titles",
]  # fmt: skip


def reader_of(path: Path) -> ModuleType | None:
    """The member that reads this file; None: nobody knows it."""
    for name in names("logs"):
        member = load("logs", name)
        if member.recognise(path):
            return member
    return None


def read(path: Path) -> list[Recording]:
    """What a file of any format here holds.

    Raises DataError: nobody knows the format, or the file is malformed.
    """
    member = reader_of(path)
    if member is None:
        raise DataError(str(path), "not a recorded run of any format known here", hint=f"known: {titles()}")
    found: list[Recording] = member.read(path)
    return found


def titles() -> str:
    """The formats by their titles, for a message."""
    return "; ".join(load("logs", name).TITLE for name in names("logs"))
