"""The lines of the tables, one record each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pluribus.errors import UnknownName
from pluribus.panel import Panel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Mode = Literal["round_agent_avg", "per_question", "round_cumulative"]
MODES: Mapping[str, Mode] = {
    "round_agent_avg": "round_agent_avg",
    "per_question": "per_question",
    "per_question_agent": "per_question",
    "round_cumulative": "round_cumulative",
    "round_cum_text": "round_cumulative",
}
"""Every name of a mode, the published code's too → the mode."""

Embed = Callable[[Sequence[str]], "NDArray[np.float64]"]
"""Texts → (texts, dimensions), rows of unit length; an empty text is a row of zeros."""


@dataclass(frozen=True, slots=True)
class RoundRow:
    """K* of one round."""

    file: str
    round: int
    kind: str
    """The mode that gave it."""
    n_texts: int
    n_agents: int
    n_questions: int
    H: float
    """Entropy of the spectrum, bits."""
    Nstar: float
    delta: float | None
    """Nstar minus the round before's; None in the first."""
    Nstar_centred: float | None = None
    agreement: float | None = None
    """Fleiss' kappa of the answers that stand after the round."""
    acc: float | None = None
    """Mean accuracy of the members as they stand after the round."""
    settled: int | None = None
    """Questions whose answers no longer changed after this round; None: a question has one round at most."""


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """One question: K* of one text per agent, the answers' spread, and whether the council was right."""

    file: str
    q_idx: int
    n_agents: int
    H: float
    """Bits."""
    Nstar: float
    gini: float | None
    """1 − Σ p² of the answers; None: nobody gave one."""
    consensus: float | None
    """Σ p²."""
    acc01: float | None
    """Whether the majority is right (ties: the answer that comes first); None: no key, or nobody gave an answer."""
    valid_answers: int
    question_id: str = ""
    answer_entropy: float | None = None
    """Bits."""
    effective_answers: float | None = None
    Nstar_correct: float | None = None
    Nstar_wrong: float | None = None
    Nstar_effective: float | None = None
    Nstar_weighted: float | None = None


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent's part in the diversity: mean over questions of N*(all) − N*(without it)."""

    file: str
    agent: str
    model: str
    persona: str | None
    delta_Nstar: float | None
    low: float | None
    high: float | None
    """95 % bootstrap interval over questions."""
    n_questions: int
    accuracy: float | None
    accuracy_low: float | None
    accuracy_high: float | None
    calls: int
    tokens: int | None
    cost_usd: float | None
    accuracy_first: float | None = None
    """Before it heard anybody; `accuracy` is as it stands at the end."""


@dataclass(frozen=True, slots=True)
class MoveRow:
    """How often one agent went over to what another had answered the round before; shared by those who held it."""

    file: str
    listener: str
    speaker: str | None
    """None: it went to an answer that no other agent had held."""
    moved: float
    wrong_to_right: float | None
    right_to_wrong: float | None
    stayed: float | None = None
    """The speaker held another answer, and the listener stayed with its own."""


@dataclass(frozen=True, slots=True)
class FileRow:
    """One run or file in one line."""

    file: str
    source: str
    task: str
    method: str
    mode: str
    embedder: str
    n_agents: int
    n_rounds: int
    n_questions: int
    H: float | None
    """Of the last round, bits."""
    Nstar: float | None
    Nstar_first: float | None
    """Of the first round."""
    Nstar_question: float | None
    """Mean over questions of K* per question."""
    accuracy: float | None
    accuracy_low: float | None
    accuracy_high: float | None
    mean_member: float | None
    best_member: float | None
    oracle: float | None
    beta: float | None
    """All-wrong rate: no rule that picks one of the answers exceeds 1 − beta."""
    beta_low: float | None
    beta_high: float | None
    error_correlation: float | None
    double_fault: float | None
    kappa: float | None
    rho_disagreement: float | None
    """Pearson correlation over questions of K* with gini."""
    rho_consensus: float | None
    rho_accuracy: float | None
    calls: int | None
    tokens: int | None
    cost_usd: float | None
    error_correlation_low: float | None = None
    error_correlation_high: float | None = None
    """95 % bootstrap interval over questions."""
    rho_n: int | None = None
    """Questions behind rho_disagreement and rho_consensus."""
    rho_accuracy_n: int | None = None
    mean_member_first: float | None = None
    best_member_first: float | None = None
    oracle_first: float | None = None
    error_correlation_first: float | None = None
    """These four before anybody heard anybody; without `_first` they are of the answers that stand at the end."""
    n_texts: int | None = None


@dataclass(frozen=True, slots=True)
class Analysis:
    panel: Panel
    file: FileRow
    rounds: tuple[RoundRow, ...]
    questions: tuple[QuestionRow, ...]
    agents: tuple[AgentRow, ...]
    omitted: Mapping[str, int]
    """Reason → count of what the measures had to leave out."""
    moves: tuple[MoveRow, ...] = ()
    """Who moved whom, most moves first, by the topology of a debate; elsewhere everybody is taken to read everybody.
    Empty without a second round."""


@dataclass(frozen=True, slots=True)
class RobustnessRow:
    """How alike two embedders rank the same runs."""

    first: str
    second: str
    measure: str
    """Nstar, Nstar_question (over runs), or questions (N* of every question of every run)."""
    rho: float | None
    """Spearman's rank correlation; None: fewer than 3, or all equal."""
    n: int


def mode_of(name: str) -> Mode:
    """The mode of that name; the published code's names too.

    >>> mode_of("round_cum_text")
    'round_cumulative'

    Raises:
        UnknownName: no such mode.
    """
    if name not in MODES:
        raise UnknownName("mode", name, MODES)
    return MODES[name]
