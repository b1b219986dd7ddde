"""One file per view of what runs can teach: `examples(material, settings)` takes the replies worth learning from.

A member has

- `KIND`, what its examples are: `demonstrations` (Demonstration), `steps` (StepMarks) or `preferences` (Preference);
- `Settings`, a frozen dataclass of what can be varied, checked in `__post_init__` (ValueError);
- `HINT`, what to do where nothing is found;
- `examples(material, settings) -> Found`: the examples in the order of the questions, and why the rest was left out. It
  calls no model and reads no file; the same material and settings give the same examples.

A view reads cases: one question with every reply to it, of one run or of several. `pluribus.distilling` makes them of
stored runs, and rows of a file of the examples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from pluribus.types import Demonstration, Key, Preference, Question, Reward, StepMarks, Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Kind = Literal["demonstrations", "steps", "preferences"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Example = Demonstration | StepMarks | Preference
Embed = Callable[[Sequence[str]], "NDArray[np.float64]"]
"""Texts → one unit row each."""

NO_LABEL = "replies nobody can call right or wrong"
CUT_OFF = "right replies that were cut off at their longest"
NO_RIGHT = "questions without a right reply"
"""Reasons that several views share; the first word says what is counted."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One reply that stood as an answer in some round, with what is known of it."""

    run: str
    """Id of the run."""
    attempt_id: str
    turn: int
    text: str
    seat: int = 0
    round: int = 0
    model: str = ""
    dialect: str = "standard"
    """The words its seat was asked in."""
    answer: str | None = None
    """Read out of the text, canonical; None: no readable answer."""
    correct: bool | None = None
    """By label; None: nobody can say."""
    corrective: bool = False
    """Its seat was wrong before, in an earlier round, and is right here."""
    final: bool = True
    """It stands as an answer at the end."""
    decided: bool = False
    """It is final and says what the council decided."""
    cut_off: bool = False
    """The reply ended where it had reached its longest."""
    candidate: bool = True
    """It is compared with others in pairs: by default the final ones are."""
    reward: Reward | None = None
    marks: Mapping[int, bool] = field(default_factory=dict)
    """Index of a step → whether it is good, by the labels of its steps."""


@dataclass(frozen=True, slots=True)
class Case:
    """One question with every reply to it, each once."""

    question: Question
    key: Key | None
    traces: tuple[Trace, ...]
    run: str = ""
    """Id of the first run that asked it."""
    dialect: str = "standard"
    """The words that the first seat was asked in: for what no seat said."""
    split: str | None = None
    """The split the question is of; None: not known."""


@dataclass(frozen=True, slots=True)
class Material:
    """Everything a view may look at."""

    cases: tuple[Case, ...]
    embed: Embed | None = None
    """For views that look for different replies."""
    verdicts: tuple[Verdict, ...] = ()
    """What people said of pairs."""
    seed: int = 0
    """Settles what nothing else does."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a view took."""

    examples: tuple[Example, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Why something was not taken → how many; the first word says what is counted."""
    available: tuple[str, ...] = ()
    """The texts that could have been taken, the ones that were among them."""
