"""A layered network of agents that answer and rate each other; weak ones drop out, and each one's importance is known.

Source: Liu et al. 2023, arXiv 2310.02170 (DyLAN).

1. Every agent answers.
2. Every agent reads the answers of the layer before, answers again, and rates each of them from 1 to 5.
3. From the third layer on a ranker reads the seats' standing answers; the `keep` best go on as in 2.

The network stops when more than `consensus` of a layer give the same answer; the last layer votes. Then the agents'
importance is read off the ratings, from the last layer back to the first: `importance`, in the transcript's notes.
`optimise_team` keeps the agents that were most important on a development set.

Differences: the agents of a layer are asked in parallel, where the published code asks one by one and may stop inside
a layer. Agreement is equality of answers, not overlap of texts. Ratings ride in the answer's call. Each reader sees
the answers in an order of its own, by the seed. The ranker is the next seat in line, by the seed; a seat that dropped
out stands with its last answer and can be chosen again. It is not asked when nobody would drop out. An agent alone
reads itself, and stops as soon as it has an answer.
"""

from __future__ import annotations

import random
from asyncio import gather
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Literal

from pluribus.agents import Agent
from pluribus.answers import read
from pluribus.consensus.votes import plurality
from pluribus.errors import UsageError
from pluribus.methods import missing, require
from pluribus.prompts import Peer
from pluribus.replies import REPAIR, Form, ask, ranking, ratings
from pluribus.types import Message, Outcome, Question, Transcript, Turn

AGENTS = 4
PROMPTS = ("answer", "dylan_revise", "rank", REPAIR)
IMPORTANCE = "importance"
"""The note that holds each seat's importance."""


@dataclass(frozen=True, slots=True)
class Settings:
    num_rounds: int = 3
    """Layers of the network, the first answers counted, at least 1."""
    activation: Literal["listwise", "none"] = "listwise"
    """Whether a ranker picks who goes on from the third layer, or everybody does."""
    keep: int = 2
    """Agents that go on from the third layer, at least 1."""
    consensus: float = 2 / 3
    """Part of a layer, in [0, 1]; when more of it agree the network stops. 1: it never stops early."""

    def __post_init__(self) -> None:
        if self.num_rounds < 1:
            raise ValueError(f"num_rounds is {self.num_rounds}; it counts the layers, 1 or more")
        if self.keep < 1:
            raise ValueError(f"keep is {self.keep}; at least 1 agent goes on")
        if not 0 <= self.consensus <= 1:
            raise ValueError(f"consensus is {self.consensus}; it is a part of a layer, from 0 to 1")


@dataclass(frozen=True, slots=True)
class Node:
    """One agent in one layer, as far as it said something."""

    seat: int
    answer: str | None
    ratings: Mapping[int, float] = field(default_factory=dict)
    """Seat of each node of the layer before → its rating, at least 0; empty: first layer, or unreadable."""


def calls(settings: Settings, n_agents: int) -> tuple[int, int]:
    layers = min(settings.num_rounds, 2)
    later = settings.num_rounds - layers
    most = n_agents * layers + later * (1 + settings.keep if _ranked(settings, n_agents) else n_agents)
    return (most if settings.consensus == 1 else n_agents), most


def _ranked(settings: Settings, n: int) -> bool:
    return settings.activation == "listwise" and settings.keep < n


async def solve(question: Question, agents: Sequence[Agent], settings: Settings, seed: int) -> Outcome:
    turns: list[Turn] = []
    layers: list[list[Node]] = []
    standing: dict[int, Turn] = {}
    for round in range(settings.num_rounds):
        order = _Orders(seed, question.id, round)
        asked, active = await _activate(question, agents, standing, settings, order)
        before = [(node.seat, standing[node.seat].text) for node in layers[-1]] if layers else []
        said = await gather(*(_node(question, agents[seat], before, order) for seat in active))
        turns += asked + [turn for node_turns, _, _ in said for turn in node_turns]
        standing |= {turn.seat: turn for _, turn, _ in said if turn is not None}
        require(list(standing.values()), turns)
        nodes = [Node(t.seat, read(question, t.text), rated) for _, t, rated in said if t is not None]
        if not nodes:
            break
        layers.append(nodes)
        if _agreed(nodes, len(active), settings.consensus):
            break
    finals = tuple(standing[node.seat] for node in layers[-1])
    decided = plurality([node.answer for node in layers[-1]]).winner
    notes = {IMPORTANCE: list(importance(layers, decided, len(agents)))}
    return Outcome(tuple(turns), finals, missing(turns), notes)


@dataclass(frozen=True, slots=True)
class _Orders:
    """The random choices of one layer: of the run's seed and the question, the same whenever it is asked again."""

    seed: int
    question_id: str
    round: int

    def shuffled(self, seats: Sequence[int], reader: object) -> list[int]:
        order = list(seats)
        random.Random(f"{self.seed}:{self.question_id}:{self.round}:{reader}").shuffle(order)
        return order

    def ranker(self, n: int) -> int:
        """The seat that ranks: another one in each layer."""
        return (random.Random(f"{self.seed}:{self.question_id}").randrange(n) + self.round) % n


async def _activate(
    question: Question, agents: Sequence[Agent], standing: Mapping[int, Turn], settings: Settings, order: _Orders
) -> tuple[list[Turn], list[int]]:
    """What the rankers said, and the seats of the next layer."""
    if order.round < 2 or settings.activation == "none":
        return [], list(range(len(agents)))
    if settings.keep >= len(standing):
        return [], sorted(standing)
    shown = order.shuffled(sorted(standing), "ranker")
    peers = [Peer(str(place), standing[seat].text) for place, seat in enumerate(shown, 1)]
    form = ranking([peer.name for peer in peers])
    turns: list[Turn] = []
    for place in range(len(agents)):
        ranker = agents[(order.ranker(len(agents)) + place) % len(agents)]
        reply = await ask(ranker, "rank", form, role="ranking", round=order.round, peers=peers)
        turns += reply.turns
        if reply.value is not None:
            return turns, sorted(shown[int(name) - 1] for name in reply.value[: settings.keep])
    return turns, _most_backed(question, standing)[: settings.keep]


def _most_backed(question: Question, standing: Mapping[int, Turn]) -> list[int]:
    """The seats, those first whose answer most others give too."""
    said = {seat: read(question, turn.text) for seat, turn in standing.items()}
    votes = Counter(answer for answer in said.values() if answer is not None)
    return sorted(said, key=lambda seat: (-votes.get(said[seat] or "", 0), seat))


async def _node(
    question: Question, agent: Agent, before: Sequence[tuple[int, str]], order: _Orders
) -> tuple[tuple[Turn, ...], Turn | None, dict[int, float]]:
    """One agent's turns in a layer, the one that stands, and how it rated the layer before, by seat."""
    if not before:
        turn = await agent.speak("answer", round=order.round)
        return (turn,), turn if turn.ok else None, {}
    texts = dict(before)
    shown = order.shuffled(list(texts), agent.index)
    peers = [Peer(str(place), texts[seat]) for place, seat in enumerate(shown, 1)]
    form = ratings(len(shown))
    turn = await agent.speak("dylan_revise", round=order.round, peers=peers, form=form)
    if turn.ok and turn.unread is not None:  # the answer stands; what is asked for again is the ratings alone
        heard = (*turn.messages, Message("assistant", turn.text))
        again = await agent.speak(
            REPAIR, round=order.round, role="ratings", form=form, after=heard, problem=turn.unread
        )  # fmt: skip
        return (turn, again), turn, _by_seat(form, again, shown)
    return (turn,), turn if turn.ok else None, _by_seat(form, turn, shown)


def _by_seat(form: Form[tuple[float, ...]], turn: Turn, shown: Sequence[int]) -> dict[int, float]:
    """The ratings that a turn gives, by the seats in the order shown; empty when it gives none."""
    if not turn.ok or turn.unread is not None:
        return {}
    return dict(zip(shown, form.read(turn.text), strict=True))


def _agreed(nodes: Sequence[Node], asked: int, part: float) -> bool:
    votes = Counter(node.answer for node in nodes if node.answer is not None)
    return max(votes.values(), default=0) > part * asked


# --- what an agent was worth -----------------------------------------------------------------------------------------


def importance(layers: Sequence[Sequence[Node]], answer: str | None, n_agents: int) -> tuple[float, ...]:
    """Each seat's part in the answer, from the ratings alone.

    In the last layer T the n nodes that gave the answer have I_T(j) = 1/n each, the others 0; before it
    I_t(i) = Σ_j I_{t+1}(j) · w_ji, with w_ji the rating that j gave i over the sum of all that j gave. A seat's
    importance is the sum over the layers. Who gave no readable ratings passes its part on evenly.

    >>> first = [Node(0, "4"), Node(1, "5")]
    >>> importance([first, [Node(0, "4", {0: 3, 1: 1}), Node(1, "5", {0: 1, 1: 1})]], "4", 2)
    (1.75, 0.25)

    Args:
        layers: the nodes of each layer, first layer first; none is empty.
        answer: what was decided; None, or an answer nobody in the last layer gave: all its nodes have equal parts.
        n_agents: seats at the table, at least 1.

    Returns: one number per seat, in [0, layers]; together they are the number of layers.

    Source: Liu et al. 2023, arXiv 2310.02170, section 3; the last layer's parts as in the published code.
    """
    total = [0.0] * n_agents
    part = _last_parts(layers[-1], answer)
    for nodes, before in zip(reversed(layers), [*reversed(layers[:-1]), ()], strict=True):
        for seat, value in part.items():
            total[seat] += value
        part = _passed_back(nodes, part, [node.seat for node in before])
    return tuple(total)


def _last_parts(nodes: Sequence[Node], answer: str | None) -> dict[int, float]:
    right = [node.seat for node in nodes if answer is not None and node.answer == answer]
    seats = right or [node.seat for node in nodes]
    return {node.seat: (node.seat in seats) / len(seats) for node in nodes}


def _passed_back(nodes: Sequence[Node], part: Mapping[int, float], before: Sequence[int]) -> dict[int, float]:
    weights = {node.seat: _weights(node.ratings, before) for node in nodes}
    return {seat: fsum(part[node.seat] * weights[node.seat][seat] for node in nodes) for seat in before}


def _weights(given: Mapping[int, float], before: Sequence[int]) -> dict[int, float]:
    """Ratings that sum to 1; even where there are none or all are 0."""
    total = fsum(given.get(seat, 0.0) for seat in before)
    return {seat: given.get(seat, 0.0) / total if total else 1 / len(before) for seat in before}


def importances(transcripts: Sequence[Transcript]) -> list[tuple[float, ...]]:
    """The importance of each seat, one row per transcript that has it; UsageError when none has."""
    rows = [tuple(map(float, t.notes[IMPORTANCE])) for t in transcripts if IMPORTANCE in t.notes]
    if not rows:
        raise UsageError(
            f"none of {len(transcripts)} transcripts says how important each agent was",
            hint="run the council with --method dylan first",
        )
    return rows


def optimise_team(transcripts: Sequence[Transcript], keep: int) -> tuple[int, ...]:
    """The seats of highest mean importance over a development set, the best first; ties go to the earlier seat.

    Args:
        transcripts: of one council under `dylan`; failed ones are left out.
        keep: seats to keep, in [1, seats].

    Raises UsageError when no transcript holds an importance, or on a `keep` out of range.

    Source: Liu et al. 2023, arXiv 2310.02170, section 3 (agent team optimisation).
    """
    rows = importances(transcripts)
    if not 1 <= keep <= len(rows[0]):
        raise UsageError(f"keep is {keep} of {len(rows[0])} seats", hint=f"keep from 1 to {len(rows[0])}")
    means = [fsum(column) / len(rows) for column in zip(*rows, strict=True)]
    return tuple(sorted(range(len(means)), key=lambda seat: (-means[seat], seat))[:keep])
