"""panel → which seats to keep: every sub-council's vote counted again, chosen on one half of the questions and
measured on the other. No model is called.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Literal

from pluribus import stats
from pluribus.compare import halves
from pluribus.consensus.subsets import codes, plurality_accuracy, plurality_credit
from pluribus.errors import DataError, UsageError
from pluribus.panel import Member, Panel, answers, right_Q_A
from pluribus.stats import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EVERY_SUBSET = 15
"""Up to so many seats every subset is counted; beyond, seats are added and removed greedily."""
TOLERANCE = 0.005
"""The loss of accuracy that is accepted, as a share: half a point."""
_SAME = Estimate(0.0, 0.0, 0.0, 1.0)
"""All seats against themselves."""
_ANSWERED = 0.95
"""Share of the calibration half that a sub-council must have answered to be chosen."""
_ZERO = 1e-9
"""Differences of fractional credits that cancel leave less than this."""

Unit = Literal["US dollars", "tokens", "calls"]
Loss = Literal["gain", "no loss", "loss", "open"]
"""What an interval of a difference says; `no loss` is none that is measurable, which is not equality."""
Embed = Callable[[Sequence[str]], "NDArray[np.float64]"]
"""Texts → (texts, dimensions), rows of unit length; an empty text is a row of zeros."""


@dataclass(frozen=True, slots=True)
class Spend:
    """What first answers take per question."""

    calls: float
    tokens: float | None
    """None: at least one answer has no count."""
    cost_usd: float | None
    """None: at least one answer is unpriced."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A sub-council: how good on the half it was chosen on, and on the half it was not."""

    seats: tuple[int, ...]
    """Indexes into the panel's members, in their order."""
    chosen_on: float
    """Accuracy on the calibration half; being chosen there favours it."""
    measured: float
    """Accuracy on the other half."""
    interval: tuple[float, float]
    """95 % Wilson interval of `measured`."""
    difference: Estimate
    """Its accuracy minus the full council's on the other half, paired."""
    loss: Loss
    spend: Spend
    saved: float
    """Part of the full council's spend that it does not need, in [0, 1]; in the unit of the recommendation."""
    n: int
    """Questions of the other half that both answered."""


@dataclass(frozen=True, slots=True)
class Seat:
    """What happens without one seat."""

    index: int
    """Into the panel's members."""
    without: Choice
    """The council of all the others."""
    delta_kstar: float | None
    """Mean over questions of K* of all first answers minus K* without this one's; None: no embedder, or undefined."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Which seats to keep, and on what evidence."""

    panel: Panel
    seed: int
    tolerance: float
    """Accepted loss of accuracy, as a share."""
    unit: Unit
    """What `saved` and the Pareto front count."""
    searched: Literal["every subset", "greedy"]
    subsets: int
    """How many sub-councils were counted."""
    calibration: int
    """Questions the choice was made on."""
    measured: int
    """Questions it is reported on."""
    full: Choice
    """All seats that have first answers."""
    kept: Choice
    """The cheapest sub-council within the tolerance of the best one, on the calibration half."""
    front: tuple[Choice, ...]
    """Those that no cheaper one matched on the calibration half, the cheapest first."""
    seats: tuple[Seat, ...]
    notes: tuple[str, ...]
    """What the numbers do not say."""


@dataclass(frozen=True, slots=True)
class _Ballots:
    """First answers as arrays; columns are the seats that gave any."""

    members: tuple[int, ...]
    ids: tuple[str, ...]
    codes_Q_A: NDArray[np.int64]
    right_Q_A: NDArray[np.float64]
    spends: tuple[Spend, ...]
    unit: Unit
    price_A: NDArray[np.float64]
    """Each seat's spend per question, in the unit."""

    def part(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        return self.codes_Q_A[rows], self.right_Q_A[rows]


def recommend(
    panel: Panel, *, seed: int = 0, tolerance: float = TOLERANCE, embed: Embed | None = None
) -> Recommendation:
    """Which seats of a council to keep, from the first answers of a stored run.

    Every sub-council is a plain plurality of its seats' first answers, ties at their expectation. Of those that
    answered at least 95 % of the calibration half, the cheapest is kept whose accuracy there is at most `tolerance`
    below the best one's; the other half says what that costs: a paired interval against all seats, which decides
    between a gain (its lower end is above 0), no measurable loss (its lower end is at or above −tolerance), a loss (its
    upper end is below 0), and open.

    Args:
        panel: of a run whose seats answer for themselves in the first round, with keys.
        seed: splits the questions by the hash of seed and id.
        tolerance: accepted loss of accuracy, a share in [0, 1].
        embed: texts → rows of unit length; None: no delta-K*.

    Raises:
        DataError: fewer than two seats with first answers, or fewer than two questions with a key.
        UsageError: a tolerance that is no share.
    """
    import numpy as np

    if not (math.isfinite(tolerance) and 0 <= tolerance <= 1):
        raise UsageError(f"tolerance is {100 * tolerance:g} points", hint="give a number from 0 to 100")
    ballots = _ballots(panel)
    half_Q = halves(ballots.ids, seed)
    first, second = np.flatnonzero(~half_Q), np.flatnonzero(half_Q)
    members_M_A, searched = _candidates(ballots, first)
    accuracy_M = _accuracies(ballots, first, members_M_A)
    price_M = members_M_A @ ballots.price_A
    judge = _Judge(ballots, first, second, seed, tolerance)
    front = tuple(judge.choice(members_M_A[i]) for i in _front(accuracy_M, price_M))
    delta_A = _deltas(panel, ballots, embed) if embed else [None] * len(ballots.members)
    return Recommendation(
        panel=panel, seed=seed, tolerance=tolerance, unit=ballots.unit, searched=searched, subsets=len(members_M_A),
        calibration=len(first), measured=len(second), full=judge.choice(judge.all_A), front=front,
        kept=judge.choice(members_M_A[_cheapest(accuracy_M, price_M, tolerance)]),
        seats=tuple(judge.seat(place, delta) for place, delta in enumerate(delta_A)),
        notes=_notes(panel, ballots, accuracy_M),
    )  # fmt: skip


# --- first answers ---------------------------------------------------------------------------------------------------


def _ballots(panel: Panel) -> _Ballots:
    import numpy as np

    if panel.unasked:
        raise DataError(panel.source, f"on {panel.unasked:,} questions the vote stopped before every seat was asked",
                        hint="seats compare on the same questions: run it with --set stop_shadow=true")  # fmt: skip
    said = [m for m in range(len(panel.members)) if any(item.words and item.words[0][m] for item in panel.items)]
    if len(said) < 2:
        raise DataError(panel.source, f"seats with first answers of their own: {len(said)}; expected at least 2",
                        hint="take a run whose seats answer for themselves, such as a vote")  # fmt: skip
    right = right_Q_A(panel, 0)[:, said]
    keyed = [q for q in range(len(panel.items)) if not np.isnan(right[q]).all()]
    if len(keyed) < 2:
        raise DataError(panel.source, f"questions with a key and an answer: {len(keyed)}; expected at least 2",
                        hint="take a run on a task with keys")  # fmt: skip
    read = answers(panel, 0)
    voted = codes([[read[q][m] for m in said] for q in keyed])
    spends = tuple(_spend(panel, member) for member in said)
    unit, price = _prices(spends)
    return _Ballots(tuple(said), tuple(panel.items[q].question_id for q in keyed), voted, right[keyed], spends, unit,
                    np.array(price))  # fmt: skip


def _spend(panel: Panel, member: int) -> Spend:
    """Per question, over all questions; a silent one took no call that gave an answer."""
    words = [word for item in panel.items if item.words and (word := item.words[0][member])]
    n = len(panel.items)
    return Spend(len(words) / n, _mean([word.tokens for word in words], n), _mean([word.cost_usd for word in words], n))


def _mean(values: Sequence[float | None], n: int) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / n if len(known) == len(values) else None


def _prices(spends: Sequence[Spend]) -> tuple[Unit, list[float]]:
    """Dollars where every seat is priced and something costs anything, else tokens, else calls."""
    dollars = [spend.cost_usd for spend in spends if spend.cost_usd is not None]
    tokens = [spend.tokens for spend in spends if spend.tokens is not None]
    if len(dollars) == len(spends) and any(dollars):
        return "US dollars", dollars
    if len(tokens) == len(spends) and any(tokens):
        return "tokens", tokens
    return "calls", [spend.calls for spend in spends]


# --- the search ------------------------------------------------------------------------------------------------------


def _candidates(
    ballots: _Ballots, rows: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], Literal["every subset", "greedy"]]:
    import numpy as np

    n = len(ballots.members)
    if n <= EVERY_SUBSET:
        every = np.array(list(product([False, True], repeat=n)), dtype=np.bool_)
        return every[every.any(axis=1)], "every subset"
    tried = [*np.eye(n, dtype=np.bool_), *_grown(ballots, rows), *_shrunk(ballots, rows)]
    return np.unique(np.array(tried), axis=0), "greedy"


def _accuracies(ballots: _Ballots, rows: NDArray[np.int64], members_M_A: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(subsets,): how often each is right; NaN: it answered too few of the questions to be compared with the others."""
    import numpy as np

    votes_Q_A, right_Q_A = ballots.part(rows)
    accuracy_M = plurality_accuracy(votes_Q_A, right_Q_A, members_M_A)
    known_Q_A = ~np.isnan(right_Q_A)
    if known_Q_A.all():
        return accuracy_M
    answered_M = plurality_accuracy(np.where(known_Q_A, 0, -1), known_Q_A.astype(np.float64), members_M_A)
    return np.where(answered_M >= _ANSWERED, accuracy_M, np.nan)


def _grown(ballots: _Ballots, rows: NDArray[np.int64]) -> list[NDArray[np.bool_]]:
    """From nobody to all: each step seats whoever helps most."""
    import numpy as np

    chain = [np.zeros(len(ballots.members), dtype=np.bool_)]
    while not chain[-1].all():
        chain.append(_best_step(ballots, rows, chain[-1], np.flatnonzero(~chain[-1])))
    return chain[1:]


def _shrunk(ballots: _Ballots, rows: NDArray[np.int64]) -> list[NDArray[np.bool_]]:
    """From all to one: each step drops whom the others miss least."""
    import numpy as np

    chain = [np.ones(len(ballots.members), dtype=np.bool_)]
    while chain[-1].sum() > 1:
        chain.append(_best_step(ballots, rows, chain[-1], np.flatnonzero(chain[-1])))
    return chain


def _best_step(
    ballots: _Ballots, rows: NDArray[np.int64], now_A: NDArray[np.bool_], movable: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """The council one move away that is most accurate, the cheapest of equals."""
    import numpy as np

    next_M_A = np.repeat(now_A[None], len(movable), axis=0)
    next_M_A[np.arange(len(movable)), movable] ^= True
    accuracy_M = _accuracies(ballots, rows, next_M_A)
    best = np.lexsort((next_M_A @ ballots.price_A, -np.nan_to_num(accuracy_M, nan=-1.0)))[0]
    chosen: NDArray[np.bool_] = next_M_A[best]
    return chosen


def _cheapest(accuracy_M: NDArray[np.float64], price_M: NDArray[np.float64], tolerance: float) -> int:
    """Of those within the tolerance of the best: the cheapest, the most accurate of equals, the first of these."""
    import numpy as np

    good = np.flatnonzero(accuracy_M >= np.nanmax(accuracy_M) - tolerance - 1e-12)
    return int(good[np.lexsort((-accuracy_M[good], np.round(price_M[good], 12)))[0]])


def _front(accuracy_M: NDArray[np.float64], price_M: NDArray[np.float64]) -> list[int]:
    """The Pareto front, the cheapest first: each is more accurate than everything that costs no more."""
    import numpy as np

    best, found = -math.inf, []
    for i in np.lexsort((-accuracy_M, np.round(price_M, 12))):
        if accuracy_M[i] > best + 1e-12:
            best = accuracy_M[i]
            found.append(int(i))
    return found


# --- the other half --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Judge:
    """Measures sub-councils on the half they were not chosen on."""

    ballots: _Ballots
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    seed: int
    tolerance: float

    @property
    def all_A(self) -> NDArray[np.bool_]:
        import numpy as np

        return np.ones(len(self.ballots.members), dtype=np.bool_)

    def choice(self, sits_A: NDArray[np.bool_]) -> Choice:
        import numpy as np

        ballots = self.ballots
        credit, whole = plurality_credit(*ballots.part(self.second), np.array([sits_A, self.all_A]))
        both = ~np.isnan(credit)
        if not both.any():
            names = ", ".join(str(ballots.members[place] + 1) for place in np.flatnonzero(sits_A))
            raise DataError("the half to measure on", f"none of its questions was answered by seat {names}",
                            hint="take a run with more answered questions, or another --seed")  # fmt: skip
        pairs = credit[both].tolist(), whole[both].tolist()
        difference = _SAME if sits_A.all() else stats.paired_difference(*pairs, seed=self.seed)
        return Choice(
            seats=tuple(ballots.members[place] for place in np.flatnonzero(sits_A)),
            chosen_on=float(plurality_accuracy(*ballots.part(self.first), sits_A[None])[0]),
            measured=float(credit[both].mean()),
            interval=stats.wilson(float(credit[both].sum()), int(both.sum())),
            difference=difference,
            loss=judge(difference, self.tolerance),
            spend=_sum([spend for spend, sits in zip(ballots.spends, sits_A, strict=True) if sits]),
            saved=1 - float(ballots.price_A[sits_A].sum() / ballots.price_A.sum()),
            n=int(both.sum()),
        )

    def seat(self, place: int, delta: float | None) -> Seat:
        others = self.all_A
        others[place] = False
        return Seat(self.ballots.members[place], self.choice(others), delta)


def judge(difference: Estimate, tolerance: float) -> Loss:
    """What an interval of a difference in accuracy says: gain, no loss (none measurable), loss, or open.

    gain: low > 0; no loss: low ≥ −tolerance (non-inferiority at 97.5 %); loss: high < 0; open: all others.

    >>> judge(Estimate(-0.001, -0.004, 0.002, 0.6), 0.005), judge(Estimate(-0.001, -0.02, 0.018, 0.9), 0.005)
    ('no loss', 'open')

    Args:
        difference: of shares, in [−1, 1], with its 95 % interval; its p-value is not used.
        tolerance: in [0, 1].
    """
    if difference.low > _ZERO:
        return "gain"
    if difference.low >= -tolerance - _ZERO:
        return "no loss"
    return "loss" if difference.high < -_ZERO else "open"


def _sum(spends: Sequence[Spend]) -> Spend:
    n = 1
    calls = math.fsum(spend.calls for spend in spends)
    return Spend(calls, _mean([s.tokens for s in spends], n), _mean([s.cost_usd for s in spends], n))


# --- diversity -------------------------------------------------------------------------------------------------------


def _deltas(panel: Panel, ballots: _Ballots, embed: Embed) -> list[float | None]:
    """Each seat's mean part in K* of the first answers, over the questions where it gave one beside others."""
    import numpy as np

    from pluribus.diversity.kstar import delta_batch

    items = [item for item in panel.items if item.words]
    words = [[item.words[0][member] for member in ballots.members] for item in items]
    texts = [[word.text if word else "" for word in row] for row in words]
    vectors = embed([text for row in texts for text in row])
    said_Q_A = np.array([[bool(text.strip()) for text in row] for row in texts])
    delta_Q_A = delta_batch(vectors.reshape(*said_Q_A.shape, -1), said_Q_A)
    delta_Q_A = np.where(said_Q_A & (said_Q_A.sum(axis=1, keepdims=True) > 1), delta_Q_A, np.nan)
    known = [column[~np.isnan(column)] for column in delta_Q_A.T]
    return [float(column.mean()) if len(column) else None for column in known]


# --- in words --------------------------------------------------------------------------------------------------------


def _notes(panel: Panel, ballots: _Ballots, accuracy_M: NDArray[np.float64]) -> tuple[str, ...]:
    import numpy as np

    found = []
    if panel.rounds > 1:
        found.append(
            f"seats of a {panel.method} read each other; what the rest would have said without one is not recorded. "
            "So first answers alone are counted, as a vote: this says which seats know something the others do not, "
            f"not what the {panel.method} would lose"
        )
    silent = len(panel.members) - len(ballots.members)
    if silent:
        found.append(f"{silent} of {len(panel.members)} seats gave no first answer and are left out")
    unkeyed = len(panel.items) - len(ballots.ids)
    if unkeyed:
        found.append(f"{unkeyed} of {len(panel.items)} questions have no key, or failed, and are left out")
    thin = int(np.isnan(accuracy_M).sum())
    if thin:
        found.append(
            f"{thin} of {len(accuracy_M)} sub-councils answered less than {100 * _ANSWERED:g} % of the calibration "
            "half and could not be chosen"
        )
    if _alike([panel.members[m] for m in ballots.members]):
        found.append("some seats have the same model and persona: how many of them stay matters, not which")
    return tuple(found) + tuple(f"{reason}: {count}" for reason, count in panel.omitted.items())


def _alike(members: Sequence[Member]) -> bool:
    return len({(member.model, member.persona) for member in members}) < len(members)


def sentence(found: Recommendation) -> str:
    """What to keep, in one sentence."""
    total, kept = len(found.full.seats), found.kept
    if len(kept.seats) == total:
        return f"keep all {total} seats: no cheaper council came within {_points(found.tolerance)} of the best"
    return (
        f"keep {_called(found.panel, kept.seats)} of {total} seats: {_saving(found.unit, kept)}, {verdict(found, kept)}"
    )


def drop_sentences(found: Recommendation) -> list[str]:
    """One per seat: what happens without it, the least missed first."""
    return [_drop(found, seat) for seat in sorted(found.seats, key=lambda seat: -seat.without.difference.value)]


def _drop(found: Recommendation, seat: Seat) -> str:
    delta = [] if seat.delta_kstar is None else [f"delta-K* {seat.delta_kstar:.2f}".replace("-0.", "−0.")]
    parts = [*delta, _saving(found.unit, seat.without), verdict(found, seat.without)]
    return f"drop {_called(found.panel, [seat.index])}: {', '.join(parts)}"


def verdict(found: Recommendation, choice: Choice) -> str:
    """How a sub-council compares with the full one, by its interval and the tolerance."""
    gap = choice.difference
    numbers = f"{signed(gap.value)} points [{signed(gap.low)}, {signed(gap.high)}]"
    if choice.loss == "open":
        return f"open: {numbers} leaves room for a loss above {_points(found.tolerance)}"
    words = {"gain": "a gain", "no loss": "no measurable loss", "loss": "a loss"}[choice.loss]
    return f"{words} ({numbers})"


def _saving(unit: Unit, choice: Choice) -> str:
    what = {"US dollars": "cost"}.get(unit, unit)
    return f"−{100 * choice.saved:.0f} % {what}"


def labels(panel: Panel, seats: Sequence[int]) -> list[str]:
    """What to call seats: their numbers, from 1; draws of one seat go by their names."""
    draws = any(member.draw for member in panel.members)
    return [panel.members[m].name if draws else str(panel.members[m].seat + 1) for m in seats]


def _called(panel: Panel, seats: Sequence[int]) -> str:
    names = labels(panel, seats)
    what = "" if any(member.draw for member in panel.members) else "seat " if len(seats) == 1 else "seats "
    return what + ", ".join(names)


def signed(share: float) -> str:
    """A difference of shares in percentage points, with its sign.

    >>> signed(-0.0021), signed(0.0), signed(0.012)
    ('−0.2', '0.0', '+1.2')
    """
    points = round(100 * share, 1)
    return f"{points:+.1f}".replace("-", "−") if points else "0.0"


def _points(share: float) -> str:
    return f"{100 * share:g} points"
