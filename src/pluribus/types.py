"""The words of the walk: question → transcript → decision → label → reward → example → score.

Every record is a frozen dataclass with plain fields. `None` means "there is none"; it never means zero,
false or "use a default".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["number", "choice", "label", "boolean", "latex", "text", "program"]
Role = Literal["system", "user", "assistant"]
Status = Literal["complete", "degraded", "failed"]
KINDS: tuple[Kind, ...] = ("number", "choice", "label", "boolean", "latex", "text", "program")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. It holds no answer, so nothing that gets a Question can peek at the key."""

    id: str
    task: str
    text: str
    kind: Kind
    choices: tuple[str, ...] = ()
    """The options of a `choice` question in order; their letters are A, B, C, …"""
    labels: tuple[str, ...] = ()
    """The closed label set of a `label` question."""
    context: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Key:
    """What only the scorer may see."""

    question_id: str
    answer: str | None
    """Canonical: a letter for `choice`, `true`/`false` for `boolean`, else the text as published."""
    aliases: tuple[str, ...] = ()
    tests: tuple[str, ...] = ()
    solution: str | None = None
    """A worked solution, as published with the task; None: there is none."""


@dataclass(frozen=True, slots=True)
class Message:
    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a completion is drawn. The values here are the ones sent."""

    temperature: float = 1.0
    top_p: float = 0.9
    max_tokens: int = 4096
    stop: tuple[str, ...] = ()
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """What came back from one model call. Unknown usage, latency or price is None, never 0."""

    text: str
    model: str
    finish_reason: str | None = None
    reasoning: str | None = None
    """Hidden or `<think>` reasoning: kept, never voted on."""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    """All generated tokens, reasoning included."""
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    logprobs: tuple[float, ...] | None = None
    """Log-probability of each generated token, nats; where a continuation was asked about, of each of its tokens."""
    latency_s: float | None = None
    cost_usd: float | None = None
    """None: unpriced."""
    scores: Mapping[str, float] | None = None
    """By name: `reward` of a reward model, or what was recorded with a replayed output."""
    top_logprobs: tuple[Mapping[str, float], ...] | None = None
    """For each generated token the likeliest tokens at its place: text → log-probability, nats, likeliest first."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something did not happen. A failure is a record, never an answer."""

    kind: str
    """The error's class in snake case: `rate_limited`, `timeout`, `not_recorded`, …"""
    message: str
    retryable: bool = False


@dataclass(frozen=True, slots=True)
class Seat:
    """One place at the table: which model sits there, as whom, and how it samples."""

    index: int
    name: str
    model: str
    """`service/model`, with the base URL behind an `@` where one was given."""
    persona: str | None = None
    """The persona's name; its words are in `system`."""
    system: str | None = None
    """The persona's words as they stand in the seat's dialect."""
    sampling: Sampling = field(default_factory=Sampling)
    weight: float = 1.0
    dialect: str = "standard"
    sample: int = 0
    """How many earlier seats have the same model, persona and sampling: seats that would ask the same thing
    draw different samples, and sixteen seats share the calls of eight."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing said by one seat. Exactly one of `completion` and `failure` is there."""

    round: int
    seat: int
    role: str
    """answer, critique, aggregate, verdict, ranking, plan, code, …"""
    messages: tuple[Message, ...]
    completion: Completion | None = None
    failure: Failure | None = None
    sample: int = 0
    """Which draw of the same request this was."""
    form: str | None = None
    """The form the reply was asked for in: rating, verdict, ranking, …; None: free text."""
    unread: str | None = None
    """Why the reply could not be read in that form; None where it could, or none was asked for."""

    @property
    def ok(self) -> bool:
        return self.completion is not None

    @property
    def text(self) -> str:
        """The text that came back; a failed turn has none and raises."""
        if self.completion is None:
            raise ValueError(f"seat {self.seat} failed in round {self.round}: {self.failure}")
        return self.completion.text


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is asked, before asking. The id is the hash of all the rest."""

    id: str
    question_id: str
    method: str
    settings: Mapping[str, Any]
    agents: tuple[Seat, ...]
    seed: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a method returns."""

    turns: tuple[Turn, ...]
    finals: tuple[Turn, ...]
    """The turns that stand as answers; all of them are in `turns`."""
    degraded: str | None = None
    """Who is missing and why, when the protocol went on without a seat."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What the method found out beside the turns, as plain values by name: importance, …"""


@dataclass(frozen=True, slots=True)
class Transcript:
    """One attempt as it went."""

    attempt: Attempt
    turns: tuple[Turn, ...]
    finals: tuple[int, ...]
    """Indexes into `turns` of the turns that stand as answers."""
    status: Status
    failure: Failure | None = None
    """Why the attempt failed, or who is missing in a degraded one."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What the method found out beside the turns, as plain values by name."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the council decided: read out of a transcript, never stored into it."""

    attempt_id: str
    rule: str
    answer: str | None
    """None: nobody answered, or the tie rule abstained."""
    votes: Mapping[str, float]
    """Answer class → votes (weights under a weighted rule), in the order first seen."""
    share: float | None
    """The winner's part of the votes cast, in (0, 1]; abstentions are not votes cast."""
    margin: float | None
    """Winner's minus runner-up's share, in [0, 1]; 0 in a tie."""
    tie: tuple[str, ...] = ()
    """The tied answers when the lead was shared, else empty."""
    abstained: int = 0
    """Finals that gave no readable answer."""
    answers: tuple[tuple[str | None, ...], ...] = ()
    """answers[round][seat]: each seat's answer as it stood after each round."""
    confidence: float | None = None
    tie_rule: str = "first"
    """How a shared lead is settled: first, random, abstain, or fractional."""


@dataclass(frozen=True, slots=True)
class Label:
    """Whether a turn (or one step of it) is right, and who says so."""

    attempt_id: str
    turn: int
    correct: bool | None
    step: int | None = None
    checker: str | None = None
    judge: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one judge said of one turn, and the calls it came from."""

    attempt_id: str
    turn: int
    """The turn that was judged."""
    judge: str
    """The judge's name at its council."""
    asked: str
    """Content id of everything the score depends on beside the candidate: kind, model, sampling, settings, prompts,
    and from round 1 on what it had read of the others."""
    score: float | None
    """The judge's own, not normalised; None: no verdict."""
    round: int = 0
    """0: judged alone; from 1 on: judged again after reading the other judges' reasons."""
    samples: tuple[float | None, ...] = ()
    """What the score is the mean of, where the judge was asked several times."""
    reason: str | None = None
    turns: tuple[Turn, ...] = ()
    """Every call; empty for a kind that asks no model."""
    failure: Failure | None = None
    """Why there is no score."""
    notes: Mapping[str, Any] = field(default_factory=dict)
    """What the kind found out beside the score, as plain values: the comparisons of `pairwise`, …"""


RewardStatus = Literal["agreed", "disputed", "adjudicated", "alone", "unscored"]
"""agreed: disagreement at most the threshold. disputed: above it, for a person. adjudicated: a person has decided; it
is never judged again. alone: one verdict of several judges, so nobody knows. unscored: no verdict, no reward."""


@dataclass(frozen=True, slots=True)
class Reward:
    """What a council of judges gives one turn."""

    attempt_id: str
    turn: int
    scores: Mapping[str, float | None]
    """Judge → its own score of the last round it gave one in; None: no verdict, which is never 0."""
    normalised: Mapping[str, float | None]
    """Judge → the same on the common scale, in [0, 1]."""
    value: float | None
    """Consensus: the weighted mean of what is in `normalised`; None: no judge gave a verdict."""
    disagreement: float | None
    """Weighted variance of what is in `normalised`; None: fewer than two verdicts."""
    status: RewardStatus
    rounds: int = 0
    """Times it was judged again."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two replies of a pair."""

    attempt_id: str
    turn: int
    text: str
    reward: float | None = None
    correct: bool | None = None
    """By label; None: nobody can say."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One reply to learn by heart: supervised fine-tuning."""

    question_id: str
    text: str
    attempt_id: str | None = None
    """None: it was said by nobody, such as a published solution."""
    turn: int | None = None
    correct: bool | None = None
    """By label; None: nobody can say."""
    corrective: bool = False
    """Its seat was wrong in the round before and is right here."""


@dataclass(frozen=True, slots=True)
class StepMarks:
    """One reply cut into steps, each good or not: what a process reward model learns from."""

    question_id: str
    attempt_id: str
    turn: int
    steps: tuple[str, ...]
    marks: tuple[bool, ...]
    """One per step. A step is good if the right answer can still come of it."""
    correct: bool | None = None
    """Whether the reply's answer is right."""


PairSource = Literal["label", "reward", "human"]


@dataclass(frozen=True, slots=True)
class Preference:
    """Two replies to one question, one better than the other, and who says so."""

    question_id: str
    chosen: Side
    rejected: Side
    by: PairSource
    margin: float | None = None
    """Chosen's minus rejected's reward; None where one of them has none."""
    disagreement: float | None = None
    """Mean of both rewards' disagreements; None where one is not known."""


Choice = Literal["first", "second", "tie", "skip", "undo"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a person said of a pair. Verdicts are only ever added: `undo` takes back that person's last one on the pair,
    and of several that stand the last counts."""

    pair: str
    """`pair_id` of the two sides; does not depend on their order."""
    question_id: str
    first: tuple[str, int]
    """Attempt id and turn of the reply shown first (left)."""
    second: tuple[str, int]
    choice: Choice
    reviewer: str
    at: float
    """Unix time, s."""
    seconds: float | None = None
    """From showing the pair to the verdict."""
    note: str | None = None


@dataclass(frozen=True, slots=True)
class Score:
    """Accuracy of one subject on one task, with what it cost."""

    subject: str
    task: str
    n: int
    """Questions asked that have a key."""
    answered: int
    failed: int
    """Attempts without a transcript to read: not counted as wrong, not counted in `value`."""
    value: float | None
    """Share right of those that did not fail; an abstention counts as not right."""
    interval: tuple[float, float] | None
    """95 % Wilson interval of `value`."""
    calls: int
    tokens: int | None
    cost_usd: float | None
