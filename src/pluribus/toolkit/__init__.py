"""The door for applications: ask analysts several times each, vote, and know how sure.

    desk = Manager([StrategyAgent("zoo/qwen", k=5), StrategyAgent("zoo/olmo", k=5)])
    found = desk.decide("Sales rose by 4. Debt fell by 2. …", labels=["BULLISH", "BEARISH", "NEUTRAL"])
    found.decision, found.confidence, found.dissent

No workspace is opened here: what is to be kept, the application keeps (`ManagerDecision.plain`).
"""

from __future__ import annotations

from pluribus.toolkit.analysts import Analysis, FailedCall, Sample, StrategyAgent, asample, sample
from pluribus.toolkit.manager import Dissent, Manager, ManagerDecision, Opinion
from pluribus.toolkit.tools import ConsensusToolkit
from pluribus.toolkit.voting import MajorityVote, majority_vote

__all__ = [
    "Analysis",
    "ConsensusToolkit",
    "Dissent",
    "FailedCall",
    "MajorityVote",
    "Manager",
    "ManagerDecision",
    "Opinion",
    "Sample",
    "StrategyAgent",
    "asample",
    "majority_vote",
    "sample",
]
