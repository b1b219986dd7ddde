"""Candidates with labels and rewards → pairs, one better than the other; near-copies; whether length decides."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Literal, get_args

from pluribus.consensus._numbers import floats, pearson
from pluribus.errors import UnknownName
from pluribus.stats import wilson

if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    from pluribus.consensus._numbers import Floats, Values

    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Groups = Sequence[object] | NDArray[Any]

Basis = Literal["label", "reward", "both"]
BASES: tuple[Basis, ...] = get_args(Basis)

NO_LABEL = "candidates without a label"
NO_REWARD = "candidates without a reward"
LONELY = "questions with fewer than two candidates to compare"
ONE_SIDED = "questions without both a right and a wrong candidate"
JUDGED = "pairs that a person has judged"
EQUAL = "pairs of equal reward"
REVERSED = "pairs in which the wrong candidate has the higher reward"
UNKNOWN_MARGIN = "pairs whose margin is not known"
SMALL_MARGIN = "pairs with too small a margin"
UNKNOWN_DISAGREEMENT = "pairs whose disagreement is not known"
DISPUTED = "pairs with too much disagreement"
REUSED = "pairs with a candidate that stands in another pair"
BEYOND = "pairs beyond the number per question"
REASONS = (
    NO_LABEL, NO_REWARD, LONELY, ONE_SIDED,
    JUDGED, EQUAL, REVERSED, UNKNOWN_MARGIN, SMALL_MARGIN, UNKNOWN_DISAGREEMENT, DISPUTED, REUSED, BEYOND,
)  # fmt: skip
"""Why something is in no pair, in the order in which it is looked at; the first word says what is counted."""

_SAME = 1e-12
"""Rewards that differ by less are equal: the rest is rounding."""
_BLOCK = 200_000
"""Characters whose words are numbered together: few enough to stay in a processor's cache."""
_HELD = 4_000_000
"""Counts of common runs that are kept before they are added up."""
_MIX = 0x9E3779B97F4A7C15
"""Odd, its bits spread: multiplying by it makes numbers of words."""


# --- pairs -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """P pairs, question by question in the order first seen; within one, as they were taken."""

    chosen_P: Ints
    """Index of the better candidate."""
    rejected_P: Ints
    """Index of the worse one."""
    margin_P: Floats
    """Chosen's minus rejected's reward; NaN: one of them has none."""
    disagreement_P: Floats
    """Mean of both rewards' disagreements; NaN: one is not known."""
    dropped: Mapping[str, int]
    """Reason → how many; reasons that dropped nothing are not there."""


def form_pairs(
    group_N: Groups,
    value_N: Values,
    disagreement_N: Values,
    correct_N: Values,
    *,
    basis: Basis,
    margin: float = 0.0,
    max_disagreement: float | None = None,
    per_question: int = 1,
    reuse: bool = False,
    judged: Iterable[Collection[int]] = (),
    seed: int = 0,
) -> Pairs:
    """Pairs of candidates of one question, the better one first.

    What could be a pair: under `label` and `both` every right candidate with every wrong one of its question, under
    `reward` any two. Pairs that break a condition are dropped; of the others the pair with the largest margin is taken,
    then the next one, until the question has enough. Margins that are not known come last, equal ones in an order drawn
    from the seed.

    >>> found = form_pairs(["q", "q", "q"], [0.9, 0.4, 0.1], [0.0, 0.0, 0.0], [1, 0, None], basis="reward")
    >>> found.chosen_P.tolist(), found.rejected_P.tolist(), dict(found.dropped)
    ([0], [2], {'pairs beyond the number per question': 2})
    >>> found = form_pairs(["q", "q", "q"], [0.9, 0.4, 0.1], [0.0, 0.0, 0.0], [1, 0, None], basis="label")
    >>> found.chosen_P.tolist(), found.rejected_P.tolist(), dict(found.dropped)
    ([0], [1], {'candidates without a label': 1})

    Args:
        group_N: the question of each candidate.
        value_N: its reward; None or NaN: unscored, and under `reward` and `both` in no pair.
        disagreement_N: the judges' about it, at least 0; None or NaN: not known.
        correct_N: 1 right, 0 wrong; None or NaN: nobody can say, and under `label` and `both` in no pair.
        basis: label: right over wrong, whatever the rewards say; reward: more over less; both: right over wrong with
            less reward. Equal rewards make no pair under `reward` and `both`.
        margin: least difference of the two rewards, at least 0. Under `label` 0 is no condition, and with another one a
            pair whose margin is not known is dropped.
        max_disagreement: most mean disagreement of the two; a pair whose disagreement is not known is dropped. None: no
            condition.
        per_question: pairs of a question at most; 0: all.
        reuse: whether a candidate may stand in several pairs.
        judged: two indexes each, in any order: pairs that are not to be formed.
        seed: of the order among equal margins.

    Returns: pairs, and in `dropped` what makes none. Candidates, questions and pairs are counted apart: a candidate
        that is left out is in no pair that could be, and each pair that could be is taken or counted once, under the
        first of `REASONS` that holds.

    Raises UnknownName on another basis, ValueError on lists of different lengths and numbers that can not be. Takes
        memory for all pairs that could be: n² / 2 of a question with n candidates.
    """
    import numpy as np

    _check(basis, margin, max_disagreement, per_question)
    of = _candidates(group_N, value_N, disagreement_N, correct_N)
    kept = _Kept.start(of, basis)
    kept.drop(JUDGED, _among(kept, of.n, judged))
    if basis != "label":
        kept.drop(EQUAL, np.abs(kept.margin_P) <= _SAME)
        kept.drop(REVERSED, kept.margin_P < 0)
    if basis != "label" or margin:
        kept.drop(UNKNOWN_MARGIN, np.isnan(kept.margin_P))
        kept.drop(SMALL_MARGIN, kept.margin_P < margin - _SAME)
    if max_disagreement is not None:
        kept.drop(UNKNOWN_DISAGREEMENT, np.isnan(kept.disagreement_P))
        kept.drop(DISPUTED, kept.disagreement_P > max_disagreement + _SAME)
    _take(kept, of, per_question, reuse, seed)
    return Pairs(kept.chosen_P, kept.rejected_P, kept.margin_P, kept.disagreement_P, _in_order(kept.dropped))


@dataclass(frozen=True, slots=True, eq=False)
class _Candidates:
    n: int
    question_N: Ints
    """Numbered in the order first seen."""
    value_N: Floats
    disagreement_N: Floats
    correct_N: Floats


@dataclass(slots=True, eq=False)
class _Kept:
    """Pairs that are still possible, and how many are not."""

    chosen_P: Ints
    rejected_P: Ints
    margin_P: Floats
    disagreement_P: Floats
    dropped: Counter[str] = field(default_factory=Counter)

    @classmethod
    def start(cls, of: _Candidates, basis: Basis) -> _Kept:
        """All pairs that could be, the better candidate first."""
        import numpy as np

        dropped = Counter[str]()
        first_P, second_P = _possible(of, basis, _usable(of, basis, dropped), dropped)
        if basis == "reward":
            swap_P = of.value_N[second_P] > of.value_N[first_P]
            first_P, second_P = np.where(swap_P, second_P, first_P), np.where(swap_P, first_P, second_P)
        margin_P = of.value_N[first_P] - of.value_N[second_P]
        return cls(first_P, second_P, margin_P, (of.disagreement_N[first_P] + of.disagreement_N[second_P]) / 2, dropped)

    def drop(self, reason: str, out_P: Bools) -> None:
        self.dropped[reason] += int(out_P.sum())
        self.keep(~out_P)

    def keep(self, which: Bools | Ints) -> None:
        self.chosen_P, self.rejected_P = self.chosen_P[which], self.rejected_P[which]
        self.margin_P, self.disagreement_P = self.margin_P[which], self.disagreement_P[which]


def _check(basis: str, margin: float, max_disagreement: float | None, per_question: int) -> None:
    if basis not in BASES:
        raise UnknownName("basis", basis, BASES)
    if not 0 <= margin < float("inf"):
        raise ValueError(f"margin {margin}: expected a finite number of at least 0")
    if max_disagreement is not None and not max_disagreement >= 0:
        raise ValueError(f"max_disagreement {max_disagreement}: expected at least 0, or None for no limit")
    if per_question < 0:
        raise ValueError(f"per_question {per_question}: expected at least 1, or 0 for all pairs")


def _candidates(group_N: Groups, value_N: Values, disagreement_N: Values, correct_N: Values) -> _Candidates:
    import numpy as np

    value, correct = floats(value_N, "reward"), floats(correct_N, "label")
    disagreement = floats(disagreement_N, "disagreement")
    sizes = [len(group_N), len(value), len(disagreement), len(correct)]
    if len(set(sizes)) > 1:
        raise ValueError(
            f"questions, rewards, disagreements and labels of {sizes} candidates: expected one for each candidate"
        )
    odd = np.flatnonzero(~np.isnan(correct) & (correct != 0) & (correct != 1))
    if len(odd):
        raise ValueError(f"label {odd[0]} is {correct[odd[0]]}: expected 1 (right), 0 (wrong) or None (not known)")
    return _Candidates(len(value), _numbered(group_N), value, disagreement, correct)


def _numbered(group_N: Groups) -> Ints:
    """Equal numbers for equal names, in the order first seen."""
    import numpy as np

    names: defaultdict[object, int] = defaultdict(count().__next__)
    listed = group_N.tolist() if isinstance(group_N, np.ndarray) else group_N
    return np.fromiter(map(names.__getitem__, listed), np.int64, len(group_N))


def _usable(of: _Candidates, basis: Basis, dropped: Counter[str]) -> Bools:
    import numpy as np

    usable_N = np.ones(of.n, bool)
    for needed, reason, values_N in (("reward", NO_LABEL, of.correct_N), ("label", NO_REWARD, of.value_N)):
        if basis != needed:
            dropped[reason] += int((usable_N & np.isnan(values_N)).sum())
            usable_N &= ~np.isnan(values_N)
    return usable_N


def _possible(of: _Candidates, basis: Basis, usable_N: Bools, dropped: Counter[str]) -> tuple[Ints, Ints]:
    """Every pair that could be: right with wrong, or any two. Candidates are sorted by question, right ones first, so
    that those whom one of them meets stand in a row."""
    import numpy as np

    wrong_N = np.zeros(of.n) if basis == "reward" else 1 - of.correct_N
    order_M = np.lexsort((wrong_N, of.question_N))
    order_M = order_M[usable_N[order_M]]
    question_M, n_questions = of.question_N[order_M], int(of.question_N.max(initial=-1)) + 1
    size_G = np.bincount(question_M, minlength=n_questions)
    right_G = np.bincount(question_M, 1 - wrong_N[order_M], n_questions).astype(np.int64)
    dropped[LONELY] += int((size_G < 2).sum())
    end_M, place_M = np.cumsum(size_G)[question_M], np.arange(len(order_M))
    if basis == "reward":
        next_M = place_M + 1
    else:
        dropped[ONE_SIDED] += int(((size_G >= 2) & ((right_G == 0) | (right_G == size_G))).sum())
        next_M = np.where(wrong_N[order_M] == 1, end_M, (np.cumsum(size_G) - size_G + right_G)[question_M])
    met_M = end_M - next_M
    first_P = np.repeat(place_M, met_M)
    second_P = np.arange(len(first_P)) + np.repeat(next_M - (np.cumsum(met_M) - met_M), met_M)
    return order_M[first_P], order_M[second_P]


def _among(kept: _Kept, n: int, judged: Iterable[Collection[int]]) -> Bools:
    import numpy as np

    pairs = [sorted(pair) for pair in judged]
    for pair in pairs:
        if len(pair) != 2 or not 0 <= pair[0] < pair[1] < n:
            raise ValueError(f"judged pair {pair}: expected two different indexes of the {n} candidates")
    listed = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    low_P, high_P = np.minimum(kept.chosen_P, kept.rejected_P), np.maximum(kept.chosen_P, kept.rejected_P)
    return np.isin(low_P * n + high_P, listed[:, 0] * n + listed[:, 1])


def _take(kept: _Kept, of: _Candidates, per_question: int, reuse: bool, seed: int) -> None:
    """Largest margins first, as many as a question may have."""
    import numpy as np

    kept.keep(_ranked(kept, of, seed))
    question_P = of.question_N[kept.chosen_P]
    if not reuse:
        _one_each(question_P, kept, of.n, per_question)
    elif per_question:
        kept.drop(BEYOND, np.arange(len(question_P)) - np.searchsorted(question_P, question_P) >= per_question)


def _one_each(question_P: Ints, kept: _Kept, n: int, per_question: int) -> None:
    """In order, where a candidate stands in one pair at most."""
    import numpy as np

    most = per_question or n
    left, busy = [most] * (int(question_P.max(initial=-1)) + 1), bytearray(n)
    taken, beyond = [], 0
    triples = zip(question_P.tolist(), kept.chosen_P.tolist(), kept.rejected_P.tolist(), strict=True)
    for place, (question, better, worse) in enumerate(triples):
        if not left[question]:
            beyond += 1
        elif not busy[better] and not busy[worse]:
            taken.append(place)
            left[question] -= 1
            busy[better] = busy[worse] = 1
    kept.dropped[BEYOND] += beyond
    kept.dropped[REUSED] += len(question_P) - beyond - len(taken)
    kept.keep(np.array(taken, dtype=np.int64))


def _ranked(kept: _Kept, of: _Candidates, seed: int) -> Ints:
    """By question, then margin, then a number drawn for each pair, which no condition on other pairs changes."""
    import numpy as np

    draw_N = np.random.default_rng(seed).random(of.n)
    behind_P = np.nan_to_num(-np.round(kept.margin_P, 12), nan=np.inf)
    draw_P = (draw_N[kept.chosen_P] + draw_N[kept.rejected_P]) % 1
    return np.lexsort((draw_P, behind_P, of.question_N[kept.chosen_P]))


def _in_order(dropped: Counter[str]) -> dict[str, int]:
    return {reason: dropped[reason] for reason in REASONS if dropped[reason]}


# --- copies ----------------------------------------------------------------------------------------------------------


def near_duplicates(texts: Sequence[str], group_N: Groups, *, threshold: float = 0.9, n: int = 5) -> Bools:
    """Which texts say nearly what an earlier one of their group says.

    |A ∩ B| / |A ∪ B| ≥ threshold, A and B the sets of n words in a row of the two texts (all words of a text that has
    fewer), or the same words in the same order.

    >>> near_duplicates(["1 + 1 is 2", "1 + 1\\n is 2", "It is 2", "1 + 1 is 2"], ["a", "a", "a", "b"]).tolist()
    [False, True, False, False]

    Args:
        texts: words are what spaces part; a text in a script without spaces is one word, and found only if it is equal.
        group_N: texts of different groups are not compared.
        threshold: in (0, 1].
        n: words in a row, at least 1.

    Returns: one mark per text. The first text of a group is never marked. A text is compared with every earlier one,
        marked or not. Words and runs of words are
        compared by 64-bit numbers, of which a text's place takes a few bits.

    Raises ValueError on lists of different lengths, a threshold or an n that can not be.

    Source: shingles and their resemblance, Broder 1997, Compression and Complexity of Sequences, 21–29.
    """
    import numpy as np

    if len(texts) != len(group_N):
        raise ValueError(f"{len(texts)} texts and {len(group_N)} groups: expected one for each text")
    if not 0 < threshold <= 1 or n < 1:
        raise ValueError(f"threshold {threshold} over {n} words: expected in (0, 1], and at least 1 word")
    found_N = np.zeros(len(texts), bool)
    number_N = _numbered(group_N)
    size_N = np.array([len(text) for text in texts], dtype=np.int64)
    for members in _blocks(number_N, size_N):
        key_E, bits = _runs([texts[place] for place in members.tolist()], number_N[members], n)
        found_N[members[_later(key_E, bits, threshold)]] = True
    return found_N


def _blocks(number_N: Ints, size_N: Ints) -> Iterator[Ints]:
    """Texts of whole groups of at least two, about as many at once as stay in a processor's cache."""
    import numpy as np

    order = np.argsort(number_N, kind="stable")
    order = order[np.bincount(number_N)[number_N[order]] > 1]
    start, held_M = 0, np.cumsum(size_N[order]).tolist()
    for end in (np.flatnonzero(np.diff(number_N[order], append=-1)) + 1).tolist():
        if end == len(order) or held_M[end - 1] - held_M[start] > _BLOCK:
            yield order[start:end]
            start = end


def _runs(texts: Sequence[str], number_T: Ints, n: int) -> tuple[NDArray[np.uint64], int]:
    """Each text's set of runs of n words, sorted by run: the run's number, which differs from group to group, in the
    high bits, the text's place in the low ones. And how many these are."""
    import numpy as np

    word_W, text_W = _padded(*_words(texts), len(texts), n)
    run_E = number_T.astype(np.uint64)[text_W[n - 1 :]]
    for at in range(n):
        run_E = run_E * np.uint64(_MIX) + word_W[at : at + len(run_E)]
    within_E = text_W[: len(run_E)] == text_W[n - 1 :]
    bits = np.uint64((len(texts) - 1).bit_length())
    key_E = np.sort(_mixed(run_E[within_E]) >> bits << bits | text_W[n - 1 :][within_E].astype(np.uint64))
    return key_E[np.diff(key_E, prepend=~key_E[:1]) > 0], int(bits)


def _words(texts: Sequence[str]) -> tuple[NDArray[np.uint64], Ints]:
    """A number for each word, Σ_k b_k M^k over its bytes, and the text that it stands in."""
    import numpy as np

    # in ASCII the bytes alone say what a space is
    parts = [(text if text.isascii() else " ".join(text.split())).encode("utf-8", "surrogatepass") for text in texts]
    byte_C = np.frombuffer(b"\n".join((*parts, b"")), np.uint8)
    value = np.array([0 if chr(code).isspace() and code < 128 else code + 1 for code in range(256)], np.uint64)
    value_C = value[byte_C]
    word_C = value_C > 0
    start_W = np.flatnonzero(word_C & ~np.concatenate([[False], word_C[:-1]]))
    if not len(start_W):
        return np.zeros(0, np.uint64), start_W
    sum_W = np.add.reduceat(value_C * _powers(_MIX, len(byte_C)), start_W)
    back_W = _powers(pow(_MIX, -1, 1 << 64), len(byte_C))[start_W]
    return _mixed(sum_W * back_W), np.searchsorted(np.cumsum([len(part) + 1 for part in parts]), start_W, "right")


def _powers(base: int, n: int) -> NDArray[np.uint64]:
    return _many_powers(base, n.bit_length())[:n]


@lru_cache(maxsize=4)
def _many_powers(base: int, bits: int) -> NDArray[np.uint64]:
    import numpy as np

    powers: NDArray[np.uint64] = np.multiply.accumulate(np.full(1 << bits, base, np.uint64))
    powers.setflags(write=False)
    return powers


def _padded(word_W: NDArray[np.uint64], text_W: Ints, n_texts: int, n: int) -> tuple[NDArray[np.uint64], Ints]:
    """The same with words numbered 0 behind each text that has fewer than n."""
    import numpy as np

    words_T = np.bincount(text_W, minlength=n_texts)
    size_T = np.maximum(words_T, n)
    moved_T = (np.cumsum(size_T) - size_T) - (np.cumsum(words_T) - words_T)
    padded_W = np.zeros(size_T.sum(), np.uint64)
    padded_W[np.arange(len(word_W)) + moved_T[text_W]] = word_W
    return padded_W, np.repeat(np.arange(n_texts), size_T)


def _mixed(number_W: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One-to-one; every bit moves the high ones."""
    import numpy as np

    number_W = (number_W ^ (number_W >> np.uint64(32))) * np.uint64(_MIX)
    number_W = (number_W ^ (number_W >> np.uint64(29))) * np.uint64(_MIX)
    return number_W ^ (number_W >> np.uint64(32))


def _later(key_E: NDArray[np.uint64], bits: int, threshold: float) -> Ints:
    """The later texts of the pairs that resemble each other."""
    import numpy as np

    run_E, text_E = key_E >> np.uint64(bits), (key_E & np.uint64((1 << bits) - 1)).astype(np.int64)
    size_T = np.bincount(text_E)
    first_P, later_P, shared_P = _shared(run_E, text_E)
    return np.unique(later_P[shared_P / (size_T[first_P] + size_T[later_P] - shared_P) >= threshold])


def _shared(run_E: NDArray[np.uint64], text_E: Ints, held: int = _HELD) -> tuple[Ints, Ints, Ints]:
    """Pairs of texts with a run in common, and how many they have: equal runs stand together, by text."""
    import numpy as np

    n = int(text_E.max()) + 1
    pairs, times = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    at_E, step = np.arange(len(run_E)), 1
    while len(at_E := at_E[at_E + step < len(run_E)]) and len(at_E := at_E[run_E[at_E] == run_E[at_E + step]]):
        pair_K, times_K = np.unique(text_E[at_E] * n + text_E[at_E + step], return_counts=True)
        pairs, times, step = [*pairs, pair_K], [*times, times_K], step + 1
        if sum(map(len, pairs)) > held:
            pairs, times = ([one] for one in _summed(pairs, times))
    pair_P, shared_P = _summed(pairs, times)
    return pair_P // n, pair_P % n, shared_P


def _summed(pairs: Sequence[Ints], times: Sequence[Ints]) -> tuple[Ints, Ints]:
    import numpy as np

    pair_P, which = np.unique(np.concatenate(pairs), return_inverse=True)
    return pair_P, np.bincount(which, np.concatenate(times), len(pair_P)).astype(np.int64)


# --- length ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LengthBias:
    """Whether the longer reply is the one that is chosen."""

    share_longer: float
    """Of the pairs, those whose chosen reply is the longer one, equal lengths counting half, in [0, 1]; at 0.5 length
    decides nothing."""
    low: float
    high: float
    """Wilson's 95 % interval of the share, as if pairs were independent."""
    difference: float
    """Mean of the chosen minus the rejected reply's length, in the unit of the lengths."""
    correlation: float | None
    """Of that difference with the margin, over the pairs whose margin is known; None: fewer than three, or one of the
    two does not vary."""
    n: int
    """Pairs."""


def length_bias(chosen_P: Values, rejected_P: Values, margin_P: Values) -> LengthBias | None:
    """How far the choice goes with length.

    >>> found = length_bias([30, 20, 10, 40], [10, 10, 10, 80], [0.5, 0.3, 0.1, None])
    >>> found.share_longer, found.difference, round(found.correlation, 2)
    (0.625, -2.5, 1.0)

    Args:
        chosen_P, rejected_P: lengths of the two replies of each pair, in words or tokens.
        margin_P: chosen's minus rejected's reward; None or NaN: not known.

    Returns: None where there is no pair.

    Raises ValueError on lists of different lengths, or a length that is missing or negative.
    """
    import numpy as np

    chosen, rejected = floats(chosen_P, "length"), floats(rejected_P, "length")
    margin = floats(margin_P, "margin")
    if not len(chosen) == len(rejected) == len(margin):
        raise ValueError(
            f"{len(chosen)} and {len(rejected)} lengths, {len(margin)} margins: expected one for each pair"
        )
    if not (chosen >= 0).all() or not (rejected >= 0).all():
        raise ValueError("a length is missing or negative: expected a number of words or tokens for every reply")
    if not len(chosen):
        return None
    apart, known = chosen - rejected, ~np.isnan(margin)
    longer = float((apart > 0).sum() + (apart == 0).sum() / 2)
    low, high = wilson(longer, len(apart))
    return LengthBias(
        longer / len(apart), low, high, float(apart.mean()), pearson(apart[known], margin[known]), len(apart)
    )
