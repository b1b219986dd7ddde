"""Councils of language models: run them, measure them, turn them into rewards, distil them into one model.

The doors are imported on first use, so that `import pluribus` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pluribus.council import Answer, Council
    from pluribus.store import Store
    from pluribus.types import Decision, Key, Question, Transcript

__version__ = "0.1.0"
__all__ = ["Answer", "Council", "Decision", "Key", "Question", "Store", "Transcript", "__version__"]

_HOMES = {
    "Answer": "pluribus.council",
    "Council": "pluribus.council",
    "Decision": "pluribus.types",
    "Key": "pluribus.types",
    "Question": "pluribus.types",
    "Store": "pluribus.store",
    "Transcript": "pluribus.types",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'pluribus' has no attribute {name!r}")
