"""Does the council pay? Paired comparisons with what the same spend buys otherwise, and the verdict in words.

The control is chosen by cross-fitting: on each half of the questions it is what did best on the other half. So its
accuracy is not made better by the choice; it is that of a control picked on half as many questions, which with few
questions or members alike need not be the best one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pluribus import stats
from pluribus.consensus.subsets import codes, plurality_credit
from pluribus.panel import Item, Member, Panel, Word, credits, right_Q_A, short_name
from pluribus.stats import Estimate, McNemar

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Spend = Literal["one call", "equal calls", "equal tokens"]
_LEVEL = 0.05
"""A test with a larger p does not confirm what the interval says."""
_ZERO = 1e-9
"""Differences of fractional credits that cancel leave less than this."""
_ITSELF = "the council is such a vote itself"
_TURNS = ("mad",)
"""Methods whose seats speak one after the other within the first round: only the first speaker has heard nobody."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A council against one control, on the questions neither failed."""

    council: str
    control: str
    """In words: `zoo/gemma alone`, `zoo/gemma, self-consistency of 8`."""
    spend: Spend
    n: int
    council_accuracy: float
    control_accuracy: float
    difference: Estimate
    """Council's minus control's accuracy, in [−1, 1]; `stats.paired_difference`."""
    test: McNemar
    """First is the council."""
    council_calls: float | None
    """Per question."""
    control_calls: float | None
    council_tokens: float | None
    """Per question; None: unknown."""
    control_tokens: float | None
    sources: tuple[str, ...]
    """The panels it is made of."""
    p_adjusted: float | None = None
    """Holm's, over the comparisons of a sweep."""
    note: str | None = None
    """How the control was chosen, or how far the spend is from equal."""
    chosen: tuple[str, ...] = ()
    """The members (of one call) or models that are the control; two where the halves chose differently."""
    equal: bool = True
    """Whether the spend is what `spend` says; False: too few draws are recorded, see `note`."""
    member: bool = True
    """Whether the control's model sits in the council."""
    left_out: int = 0
    """Questions that either side failed, or that are not scored or not asked on both."""
    remedy: str | None = None
    """How to record the control at equal spend that is missing."""
    lacking: tuple[str, ...] = ()
    """Models of the council that could not compete as the control: too few draws of them are recorded."""
    best_competes: bool = True
    """Whether the model of a member that does best alone was among those the control was chosen from."""


@dataclass(frozen=True, slots=True)
class Verdict:
    pays: bool | None
    """None: nothing to compare with at equal spend."""
    words: str
    """One sentence: "the council pays here: +4.1 points [2.2, 6.0] over …"."""
    comparison: Comparison | None
    """The one the sentence rests on."""


# --- what an item took -----------------------------------------------------------------------------------------------


def calls(item: Item) -> int:
    """Calls of the whole attempt; where the source does not say, the answers it holds."""
    return item.usage.calls if item.usage else sum(word is not None for row in item.words for word in row)


def tokens(item: Item) -> int | None:
    """Tokens of the whole attempt; None: unknown."""
    if item.usage:
        return item.usage.tokens
    counts = [word.tokens for row in item.words for word in row if word is not None]
    return sum(count for count in counts if count is not None) if counts and None not in counts else None


def cost_usd(item: Item) -> float | None:
    """US dollars of the whole attempt; None: unpriced."""
    if item.usage:
        return item.usage.cost_usd
    costs = [word.cost_usd for row in item.words for word in row if word is not None]
    return sum(cost for cost in costs if cost is not None) if costs and None not in costs else None


def per_question(panel: Panel, amount: Callable[[Item], float | None]) -> float | None:
    """Mean over the questions that did not fail; None: unknown of one of them."""
    amounts = [amount(item) for item in panel.items if not item.failed]
    known = [value for value in amounts if value is not None]
    return sum(known) / len(known) if known and len(known) == len(amounts) else None


def whole_credits(panel: Panel) -> Floats:
    """(questions,): 0 or 1, for McNemar's test; of tied answers that share the credit the one shown; NaN: no credit."""
    import numpy as np

    rows = [(item, credit) for item, credit in zip(panel.items, credits(panel).tolist(), strict=True)]
    return np.array([credit if credit in (0, 1) or math.isnan(credit) else _shown(item) for item, credit in rows])


def _shown(item: Item) -> float:
    said = [word for row in item.words for word in row if word is not None]
    return float(
        any(w.answer == item.decided and w.correct == 1 for w in said)
        or (item.key is not None and item.decided == item.key)
    )


# --- sides of a comparison -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Side:
    """One way to answer the council's questions."""

    name: str
    model: str
    source: str
    credit_Q: Floats
    """NaN: failed, not asked, or nobody can say."""
    whole_Q: Floats
    """0 or 1: ties settled for the first."""
    tokens_Q: Floats
    """NaN: unknown."""
    calls: float
    equal: bool = True


def _council(panel: Panel) -> _Side:
    import numpy as np

    tokens_Q = np.array([math.nan if (n := tokens(item)) is None else n for item in panel.items], dtype=np.float64)
    return _Side(
        panel.name, "", panel.source, credits(panel), whole_credits(panel), tokens_Q, per_question(panel, calls) or 0.0
    )


def halves(ids: Sequence[str], seed: int = 0) -> NDArray[np.bool_]:
    """(questions,): which half each question is in, by a seeded hash of its id; sizes differ by one at most.

    >>> halves(["q1", "q2", "q3", "q4"]).tolist()
    [True, False, False, True]
    """
    import numpy as np

    order = sorted(range(len(ids)), key=lambda i: hashlib.sha256(f"{seed} {ids[i]}".encode()).digest())
    half_Q = np.zeros(len(ids), dtype=np.bool_)
    half_Q[order[len(ids) // 2 :]] = True
    return half_Q


def _chosen(sides: Sequence[_Side], half_Q: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """(questions,): the side that did best on the other half; None: nothing is known of a half."""
    import numpy as np

    choice_Q = np.zeros(len(half_Q), dtype=np.int64)
    for half in (False, True):
        means = [_mean(side.credit_Q[half_Q != half]) for side in sides]
        if all(mean is None for mean in means):
            return None
        choice_Q[half_Q == half] = int(np.argmax([-1.0 if mean is None else mean for mean in means]))
    return choice_Q


def _mean(values: Floats) -> float | None:
    known = values[values == values]
    return float(known.mean()) if len(known) else None


def _crossed(panel: Panel, sides: Sequence[_Side], spend: Spend, note: str | None, seed: int) -> Comparison | None:
    """The council against the sides, each question's side chosen on the other half."""
    import numpy as np

    choice_Q = _chosen(sides, halves([item.question_id for item in panel.items], seed)) if sides else None
    if choice_Q is None:
        return None
    council, at = _council(panel), np.arange(len(choice_Q))
    credit_Q = np.array([side.credit_Q for side in sides])[choice_Q, at]
    both = ~np.isnan(council.credit_Q) & ~np.isnan(credit_Q)
    if not both.any():
        return None
    used = [sides[i] for i in dict.fromkeys(choice_Q[both].tolist())]
    whole_Q = np.array([side.whole_Q for side in sides])[choice_Q, at]
    tokens_Q = np.array([side.tokens_Q for side in sides])[choice_Q, at]
    calls_Q = np.array([side.calls for side in sides])[choice_Q]
    ours, theirs = council.credit_Q[both], credit_Q[both]
    members = {member.model for member in panel.members}
    return Comparison(
        council=panel.name,
        control=_control(used, spend),
        spend=spend,
        n=int(both.sum()),
        council_accuracy=float(ours.mean()),
        control_accuracy=float(theirs.mean()),
        difference=stats.paired_difference(ours.tolist(), theirs.tolist(), seed=seed),
        test=stats.mcnemar(council.whole_Q[both].tolist(), whole_Q[both].tolist()),
        council_calls=float(np.mean([calls(item) for item, kept in zip(panel.items, both, strict=True) if kept])),
        control_calls=float(calls_Q[both].mean()),
        council_tokens=_all_known(council.tokens_Q[both]),
        control_tokens=_all_known(tokens_Q[both]),
        sources=tuple(dict.fromkeys([panel.source, *(side.source for side in used)])),
        note="; ".join(filter(None, [note, _left_out(panel, both)])) or None,
        chosen=tuple(dict.fromkeys(side.name for side in used)),
        equal=all(side.equal for side in used),
        member=all(side.model in members for side in used),
        left_out=int((~both).sum()),
    )


def _all_known(values: Floats) -> float | None:
    mean = float(values.mean())
    return None if math.isnan(mean) else mean


def _control(used: Sequence[_Side], spend: Spend) -> str:
    who = " or ".join(dict.fromkeys(side.name for side in used))
    if spend == "one call":
        return f"{' or '.join(dict.fromkeys(short_name(side.model) for side in used))} alone"
    return f"{who}, self-consistency of {' or '.join(dict.fromkeys(f'{side.calls:g}' for side in used))}"


def _left_out(panel: Panel, both: NDArray[np.bool_]) -> str | None:
    reasons = Counter(
        "the council failed" if item.failed else "without a score" if item.credit is None else "the control lacks"
        for item, used in zip(panel.items, both.tolist(), strict=True)
        if not used
    )
    if not reasons:
        return None
    return f"left out of {len(panel.items):,} questions: " + ", ".join(f"{n:,} {why}" for why, n in reasons.items())


# --- the best member alone -------------------------------------------------------------------------------------------


def against_best_single(panel: Panel, *, seed: int = 0) -> Comparison | None:
    """The council against its best member alone, chosen on the other half of the questions.

    A member's credit is that of its first answer, before it heard anybody; of several draws of a seat the first counts,
    and of seats that speak one after the other the first.

    Args:
        panel: a council that spends more than one call on a question; else there is nothing to compare.
        seed: of the halves and of the bootstrap.

    Returns: None for a member alone, for a vote that stopped before all members were asked, or where no question of a
        half has a key and an answer.
    """
    if (per_question(panel, calls) or 0.0) <= 1:
        return None
    return _crossed(panel, _alone(panel), "one call", "the best member of each half is chosen on the other", seed)


def _alone(panel: Panel) -> list[_Side]:
    import numpy as np

    if panel.unasked:
        return []  # the members answered different questions
    right = right_Q_A(panel, 0)
    firsts = [(place, member) for place, member in enumerate(panel.members) if member.draw == 0]
    sides = []
    for place, member in firsts[:1] if panel.method in _TURNS else firsts:
        if np.isnan(right[:, place]).all():
            continue
        said = [item.words[0][place] if item.words else None for item in panel.items]
        tokens_Q = np.array([_word_tokens(word) for word in said], dtype=np.float64)
        credit_Q = right[:, place]
        sides.append(_Side(_member_name(member), member.model, panel.source, credit_Q, credit_Q, tokens_Q, 1.0))
    return sides


def _member_name(member: Member) -> str:
    return member.name.removesuffix(" #1")


def _word_tokens(word: Word | None) -> float:
    """A failed turn brought no tokens; NaN: a word whose tokens nobody counted."""
    if word is None:
        return 0.0
    return math.nan if word.tokens is None else float(word.tokens)


# --- self-consistency ------------------------------------------------------------------------------------------------


def draws(panel: Panel) -> dict[str, list[int]]:
    """Model → places of its draws among the panel's members: samples of seats without a persona.

    Seats that answer each other in the first round are no draws, nor are those of a vote that stopped asking early.
    """
    found: dict[str, list[int]] = {}
    if panel.unasked:
        return found
    for place, member in enumerate(panel.members):
        if member.persona is None and panel.method not in _TURNS:
            found.setdefault(member.model, []).append(place)
    return found


def is_self_consistency(panel: Panel) -> bool:
    """Whether the panel is nothing but draws of one model: one round, no persona, at least two members."""
    n = len(panel.members)
    return panel.rounds == 1 and n > 1 and [len(places) for places in draws(panel).values()] == [n]


def against_self_consistency(
    panel: Panel, controls: Sequence[Panel], spend: Spend = "equal calls", *, seed: int = 0
) -> Comparison | None:
    """The council against the best model's self-consistency, model chosen on the other half of the questions.

    The control's answer on a question is the plurality of its first k draws: k = the council's calls per question
    (`equal calls`), or the largest k ≥ 1 whose mean tokens do not exceed the council's (`equal tokens`). Models that
    sit in the council compete; others only where none of these is recorded. Too few draws are used as they are: then
    `equal` is False and `note` says how many there were.

    Args:
        controls: panels of draws of one model; others are passed over. The council's own first answers serve as well.
        spend: equal calls or equal tokens.

    Returns: None where no draws are recorded, or, for equal tokens, where nobody counted them.

    Source: Wang et al. 2022, arXiv 2203.11171, for the control.
    """
    if spend == "one call":
        raise ValueError("spend is 'one call'; expected equal calls or equal tokens (`against_best_single` is for one)")
    return _against(panel, _recorded(panel, controls), spend, seed)


def _against(panel: Panel, recorded: Sequence[_Draws], spend: Spend, seed: int) -> Comparison | None:
    sides = [side for source in recorded if (side := source.side(panel, spend)) is not None]
    members = {member.model for member in panel.members}
    inside = [side for side in sides if side.model in members]
    eligible = inside or sides
    enough = [side for side in eligible if side.equal]
    most = max((side.calls for side in eligible), default=0)
    used = enough or [side for side in eligible if side.calls == most]
    found = _crossed(panel, used, spend, _how(panel, used, spend), seed)
    if found is None:
        return None
    competes = not {side.model for side in used}.isdisjoint(_best_alone(panel, seed) or members)
    return dataclasses.replace(found, lacking=_lacking(panel, used), best_competes=competes)


def _best_alone(panel: Panel, seed: int) -> tuple[str, ...]:
    """Models of the members that do best alone, those of each half found on the other; empty: nobody knows."""
    sides = _alone(panel)
    choice_Q = _chosen(sides, halves([item.question_id for item in panel.items], seed))
    return () if choice_Q is None else tuple(dict.fromkeys(sides[i].model for i in choice_Q.tolist()))


@dataclass(frozen=True, slots=True)
class _Draws:
    """Draws of one model, in the council's order of questions."""

    model: str
    source: str
    codes_Q_A: NDArray[np.int64]
    """As `consensus.subsets.codes` gives them."""
    right_Q_A: Floats
    """1, 0, or NaN: nothing said, or no key."""
    tokens_Q_A: Floats
    """0: nothing said; NaN: nobody counted them."""
    said_Q_A: NDArray[np.bool_]

    def side(self, panel: Panel, spend: Spend) -> _Side | None:
        """The vote of the first k; None: tokens are to be equal, and unknown."""
        there = self.said_Q_A.shape[1]
        if spend == "equal calls":
            k = _whole_number(per_question(panel, calls) or 0.0)
            return self.vote(min(k, there), equal=there >= k)
        found = self._within(panel)
        return None if found is None else self.vote(found[0], equal=found[1])

    def _within(self, panel: Panel) -> tuple[int, bool] | None:
        """The most draws whose mean tokens the council's cover, and whether one more would not fit."""
        import numpy as np

        asked_Q = self.said_Q_A.any(axis=1) & np.array([not item.failed for item in panel.items])
        spent = [tokens(item) for item, asked in zip(panel.items, asked_Q.tolist(), strict=True) if asked]
        used_A = self.tokens_Q_A[asked_Q].mean(axis=0) if spent else np.array([math.nan])
        if None in spent or np.isnan(used_A).any():
            return None
        budget = sum(n for n in spent if n is not None) / len(spent) + 1e-9
        total_A = used_A.cumsum()
        k = int((total_A <= budget).sum())
        full = k < len(total_A) or total_A[-1] * (1 + 1 / len(total_A)) > budget
        return max(1, k), bool(k > 0 and full)

    def vote(self, k: int, *, equal: bool) -> _Side:
        """The plurality of the first k; a question on which all of them failed has no credit."""
        import numpy as np

        everybody, silent_Q = np.ones((1, k), dtype=np.bool_), ~self.said_Q_A[:, :k].any(axis=1)
        credit_Q, whole_Q = (
            np.where(
                silent_Q, np.nan, plurality_credit(self.codes_Q_A[:, :k], self.right_Q_A[:, :k], everybody, tie)[0]
            )
            for tie in ("fractional", "first")
        )
        used_Q, name = self.tokens_Q_A[:, :k].sum(axis=1), short_name(self.model)
        return _Side(name, self.model, self.source, credit_Q, whole_Q, used_Q, float(k), equal)


def _whole_number(value: float) -> int:
    return max(1, math.floor(value + 0.5))


def _recorded(panel: Panel, controls: Sequence[Panel]) -> list[_Draws]:
    """Every set of draws that may serve: the controls', and those inside the council itself."""
    sources = [*(c for c in controls if is_self_consistency(c) and _id(c) != _id(panel)), panel]
    found = [
        _draws(panel, source, model, places)
        for source in sources
        for model, places in draws(source).items()
        if panel.items and len(places) > 1
    ]
    return sorted(found, key=lambda one: (one.model, one.source))  # equals are settled alike, whatever the order was


def _draws(panel: Panel, source: Panel, model: str, places: Sequence[int]) -> _Draws:
    import numpy as np

    items = {item.question_id: item for item in source.items}
    rows = [_first_words(items.get(item.question_id), places) for item in panel.items]
    right = [[math.nan if word is None or word.correct is None else word.correct for word in row] for row in rows]
    return _Draws(
        model,
        source.source,
        codes([[word.answer if word else None for word in row] for row in rows]),
        np.array(right, dtype=np.float64),
        np.array([[_word_tokens(word) for word in row] for row in rows], dtype=np.float64),
        np.array([[word is not None for word in row] for row in rows]),
    )


def _id(panel: Panel) -> tuple[str, str]:
    return panel.source, panel.name


def _first_words(item: Item | None, places: Sequence[int]) -> tuple[Word | None, ...]:
    return tuple(item.words[0][place] if item is not None and item.words else None for place in places)


def _how(panel: Panel, used: Sequence[_Side], spend: Spend) -> str | None:
    """How the control was chosen and what is missing."""
    if not used:
        return None
    parts = []
    if len({side.model for side in used}) > 1:
        parts.append("the model of each half is chosen on the other")
    if lacking := _lacking(panel, used):
        parts.append(f"too few draws to compete: {', '.join(lacking)}")
    if not all(side.equal for side in used):
        parts.append(_unequal(panel, used, spend))
    if any(side.source == panel.source for side in used):
        whole = is_self_consistency(panel)
        parts.append(_ITSELF if whole else "the draws are the council's own first answers")
    return "; ".join(parts) or None


def _lacking(panel: Panel, used: Sequence[_Side]) -> tuple[str, ...]:
    there = {side.model for side in used}
    return tuple(short_name(model) for model in dict.fromkeys(m.model for m in panel.members) if model not in there)


def _unequal(panel: Panel, used: Sequence[_Side], spend: Spend) -> str:
    k = max(side.calls for side in used)
    if spend == "equal calls":
        return f"only {k:g} draws are recorded, the council takes {_number(per_question(panel, calls) or 0)} calls"
    over = k == 1 and (_mean(used[0].tokens_Q) or 0) > (per_question(panel, tokens) or 0)
    return "one draw alone takes more tokens than the council" if over else f"only {k:g} draws are recorded"


# --- all of it, and the verdict --------------------------------------------------------------------------------------


def compare(
    panel: Panel, controls: Sequence[Panel] = (), *, seed: int = 0, command: str | None = None
) -> list[Comparison]:
    """All comparisons that the panels allow, best single first; none of a member alone that gave one answer.

    Args:
        controls: see `against_self_consistency`; `controls.controls_of` finds them in a workspace.
        seed: of the halves and of the bootstrap.
        command: what records the control at equal calls where none is there; None: worked out from the panel, which
            does not know the split, the file and the sampling (`controls.command` does).
    """
    if len(panel.members) == 1 and per_question(panel, calls) == 1:
        return []
    alone = against_best_single(panel, seed=seed)
    recorded = _recorded(panel, controls)
    votes = [_against(panel, recorded, "equal calls", seed), _against(panel, recorded, "equal tokens", seed)]
    found = [comparison for comparison in (alone, *votes) if comparison is not None]
    if not panel.members or any(c.equal and c.best_competes and c.spend == "equal calls" for c in found):
        return found
    remedy = command or _remedy(panel, seed)
    return [dataclasses.replace(comparison, remedy=remedy) for comparison in found]


def wanted(panel: Panel, *, seed: int = 0) -> tuple[str, int]:
    """The control that equal calls ask for: the model of the best member (of one half, chosen on the other), draws.

    Args:
        panel: with at least one member.
    """
    best = _best_alone(panel, seed) or (panel.members[0].model,)
    return best[0], _whole_number(per_question(panel, calls) or 0.0)


def _remedy(panel: Panel, seed: int) -> str:
    """The command that records the missing control on the same questions."""
    model, k = wanted(panel, seed=seed)
    if not panel.source.startswith("run "):
        return f"record {k} answers of {short_name(model)} to each of the same questions and give them as a control"
    data = ["--data", "FILE"] if panel.task == "jsonl" else []
    words = ["pluribus", "run", "--task", panel.task, *data, "--limit", str(len(panel.items))]
    return shlex.join([*words, "--method", "self_consistency", "--agent-models", model, "--set", f"parallel_num={k}"])


def holm_adjusted(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The same comparisons, as one family: McNemar's p adjusted by Holm's method."""
    adjusted = stats.holm([comparison.test.p for comparison in comparisons])
    return [dataclasses.replace(c, p_adjusted=p) for c, p in zip(comparisons, adjusted, strict=True)]


def verdict(comparisons: Sequence[Comparison]) -> Verdict:
    """In words, at equal spend: it rests on equal calls, and names equal tokens where these disagree.

    A council pays where the interval of the difference is above 0 and McNemar's test agrees at 5 %, and the best member
    could compete as the control: to beat the self-consistency of another model alone leaves it open.

    Args:
        comparisons: of one council.
    """
    of = {comparison.spend: comparison for comparison in comparisons}
    calls, tokens = of.get("equal calls"), of.get("equal tokens")
    told = next((c for c in (calls, tokens) if c is not None and c.equal), calls or tokens)
    alone = of.get("one call")
    open_ = told is not None and _verb(told) == "pays" and not told.best_competes
    if told is None or (open_ and alone is not None and _verb(alone) == "loses"):
        return _unknown(alone)
    if not told.equal:
        return _uneven(told)
    head = "whether the council pays is not known" if open_ else f"the council {_verb(told)} here"
    words = f"{head}: {points(told.difference)} over {_whose(told)} at the same {_spent(told)}{_doubts(told, tokens)}"
    return Verdict(None, words + _then(told), told) if open_ else Verdict(_verb(told) == "pays", words, told)


def _verb(told: Comparison) -> str:
    if told.test.p >= _LEVEL or not _excludes_0(told.difference):
        return "does not pay"
    return "pays" if told.difference.low > 0 else "loses"


def _excludes_0(difference: Estimate) -> bool:
    return difference.low > _ZERO or difference.high < -_ZERO


def points(difference: Estimate) -> str:
    """A difference of accuracies with its interval, in points.

    >>> points(Estimate(0.041, 0.022, 0.06, 0.001)), points(Estimate(-0.0001, -0.009, 0.015, 0.6))
    ('+4.1 points [2.2, 6.0]', '+0.0 points [−0.9, 1.5]')
    """
    value = _tenth(difference.value)
    sign = "" if value.startswith("−") else "+"
    return f"{sign}{value} points [{_tenth(difference.low)}, {_tenth(difference.high)}]"


def _tenth(share: float) -> str:
    return f"{round(100 * share, 1) + 0.0:.1f}".replace("-", "−")


def _whose(told: Comparison) -> str:
    if told.best_competes:
        return "the best member's self-consistency"
    return f"the self-consistency of a {'member that is not its best' if told.member else 'model that is no member'}"


def _spent(told: Comparison) -> str:
    """What both spend, on whom, over how many questions, and the test."""
    if told.spend == "equal calls":
        amount = _amount("calls", told.control_calls, told.council_calls)
    else:
        amount = _amount("tokens", told.control_tokens, told.council_tokens)
    return f"{amount}; {' or '.join(told.chosen)}; n = {told.n:,}, McNemar p {_p(told.test.p)})"


def _amount(unit: str, control: float | None, council: float | None) -> str:
    theirs, ours = _number(control or 0), _number(council or 0)
    return f"{unit} ({theirs}" if theirs == ours else f"{unit} ({theirs}, the council {ours}"


def _number(value: float) -> str:
    """
    >>> _number(16.0), _number(7.42), _number(12345.6)
    ('16', '7.42', '12,346')
    """
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"


def _p(p: float) -> str:
    """
    >>> _p(0.00042), _p(1.0), _p(0.000003)
    ('= 0.00042', '= 1', '< 0.0001')
    """
    return f"= {p:.2g}" if p >= 1e-4 else "< 0.0001"


def _doubts(told: Comparison, tokens: Comparison | None = None) -> str:
    """What speaks against the sentence: the other spend, the tests that disagree or are many, members without draws."""
    parts = [_ITSELF] if told.note is not None and _ITSELF in told.note else []
    if tokens is not None and tokens is not told and _verb(tokens) != _verb(told):
        cheaper = (tokens.control_tokens or 0) < (tokens.council_tokens or 0) and _verb(tokens) != "pays"
        if tokens.equal or cheaper:
            spent = "at the same tokens" if tokens.equal else "even at fewer tokens"
            parts.append(f"{spent} it {_verb(tokens)}: {points(tokens.difference)}")
    if told.p_adjusted is not None and _verb(told) == "pays":
        open_ = ", so that this may be chance" if told.p_adjusted >= _LEVEL else ""
        parts.append(f"Holm's p over the sweep {_p(told.p_adjusted)}{open_}")
    if told.test.p >= _LEVEL and _excludes_0(told.difference):
        parts.append("the interval excludes 0, McNemar's test does not: ask more questions")
    elif told.test.p < _LEVEL and not _excludes_0(told.difference):
        parts.append("McNemar's test finds a difference, the interval holds 0: ask more questions")
    if told.lacking:
        parts.append(f"too few draws to compete: {', '.join(told.lacking)}")
    return "".join(f"; {part}" for part in parts)


def _uneven(told: Comparison) -> Verdict:
    """Too few draws: a council that does not beat a cheaper control does not pay; one that does may or may not."""
    ahead = _verb(told) == "pays"
    head = "whether the council pays at equal spend is not known" if ahead else f"the council {_verb(told)} here"
    k, calls = _number(told.control_calls or 0), _number(told.council_calls or 0)
    spent = f"{k} draws against {calls} calls; {' or '.join(told.chosen)}"
    words = (
        f"{head}: {points(told.difference)} over {_whose(told)} at fewer calls ({spent}; n = {told.n:,}, "
        f"McNemar p {_p(told.test.p)})"
    )
    return Verdict(None if ahead else False, words + _doubts(told) + _then(told), told)


def _unknown(alone: Comparison | None) -> Verdict:
    """Without draws of the best member: a council that loses to one call of it does not pay; else nobody knows."""
    if alone is None:
        words = (
            "nothing to compare with: no member's own answers to questions with a key, a member alone, or a vote that "
            "stopped before all members were asked (stop_shadow=true asks them all)"
        )
        return Verdict(None, words, None)
    times, gain = (alone.council_calls or 0) / (alone.control_calls or 1), points(alone.difference)
    loses = _verb(alone) == "loses"
    open_ = "whether the council pays at equal spend is not known"
    words = (
        f"{'the council loses here to less than its spend' if loses else open_}: the best member's self-consistency is "
        f"not recorded; {gain} over its best member alone ({alone.control.removesuffix(' alone')}; n = {alone.n:,}, "
        f"McNemar p {_p(alone.test.p)}) at {_number(times)} times the calls"
    )
    return Verdict(False if loses else None, words + _doubts(alone) + _then(alone), alone)


def _then(told: Comparison) -> str:
    return f"; for equal spend: {told.remedy}" if told.remedy else ""
