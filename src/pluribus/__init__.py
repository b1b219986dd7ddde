"""Councils of language models: run them, measure them, turn them into rewards, distil them into one model.

The doors are imported on first use, so that `import pluribus` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pluribus.council import Answer, Council
    from pluribus.judging import CouncilReward
    from pluribus.store import Store
    from pluribus.toolkit import ConsensusToolkit, Manager, StrategyAgent, majority_vote
    from pluribus.types import Decision, Key, Question, Transcript

__version__ = "0.1.0"
__all__ = [
    "Answer",
    "ConsensusToolkit",
    "Council",
    "CouncilReward",
    "Decision",
    "Key",
    "Manager",
    "Question",
    "Store",
    "StrategyAgent",
    "Transcript",
    "__version__",
    "majority_vote",
]

_HOMES = {
    "Answer": "pluribus.council",
    "ConsensusToolkit": "pluribus.toolkit",
    "Council": "pluribus.council",
    "CouncilReward": "pluribus.judging",
    "Decision": "pluribus.types",
    "Key": "pluribus.types",
    "Manager": "pluribus.toolkit",
    "Question": "pluribus.types",
    "Store": "pluribus.store",
    "StrategyAgent": "pluribus.toolkit",
    "Transcript": "pluribus.types",
    "majority_vote": "pluribus.toolkit",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'pluribus' has no attribute {name!r}")
