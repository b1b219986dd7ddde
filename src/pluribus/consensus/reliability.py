"""How far each voter can be believed: from labelled questions, or from agreement alone.

A voter's weight is the log odds of its being right against its giving one wrong answer:

    w_a = max(0, log(p_a (K − 1) / (1 − p_a))),

p_a its accuracy, K the answers a question has. For voters who err independently of each other, and whose wrong answers
are spread evenly over K − 1, the answer with most weight is the likeliest one. A voter at chance (p = 1 / K) has no
weight. Real voters share their errors: weak ones who fail together outvote the few who do not. So K is not taken from
the question but fitted, and comes out near 2, whatever the number of options (docs/reliability.md).

Source: Nitzan and Paroush 1982, Int. Econ. Rev. 23, 289–297; Shapley and Grofman 1984, Public Choice 43, 329–343.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pluribus.consensus.subsets import codes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PRIOR = 2.0
"""Least votes the panel's mean counts as: those of a uniform distribution. They keep accuracies off 0 and 1."""
_ROUNDS = 1000
_STILL = 1e-10
"""Accuracies that move less than this in a round stand still."""
_HALVINGS = 12
_FLOOR = 1e-10
"""Least prior of a label, so that its logarithm exists."""


@dataclass(frozen=True, slots=True)
class Reliability:
    accuracy: tuple[float, ...]
    """Of each voter, shrunk, in (0, 1)."""
    weights: tuple[float, ...]
    """Vote weights: log odds against chance, finite, at least 0; 0 for a voter at or below chance. All are 0 where
    nobody is seen to be better than chance: then there is no weighted vote to hold."""
    answered: tuple[int, ...]
    """Votes each estimate rests on."""
    options: float
    """Answers a question has, as the weights count them: above 1."""


@dataclass(frozen=True, slots=True, eq=False)
class DawidSkene:
    labels: tuple[str, ...]
    """K labels; the order of all axes K."""
    posterior_Q_K: NDArray[np.float64]
    """Chance of each label to be the right one; rows sum to 1."""
    prior_K: NDArray[np.float64]
    """Share of each label among the right ones."""
    confusion_A_K_K: NDArray[np.float64]
    """[voter, right label, label given]: rows sum to 1; a label that a voter never gives has 0."""
    log_likelihood: float
    """Of all votes under prior and confusion, nats."""
    iterations: int


def from_labels(
    answers_Q_A: Sequence[Sequence[str | None]], right_Q: Sequence[str | None], *, options: float | None = None
) -> Reliability:
    """Accuracies and weights from questions whose right answers are known.

    p_a = (x_a + s m) / (n_a + s): x_a of a voter's n_a votes right; m the panel's mean, (N x̄ + 1) / (N + 2) over N
    labelled questions, x̄ the share right of all votes; s = 1/ρ − 1 at least 2, ρ the correlation of two votes of one
    voter, estimated from how much more the voters differ than chance makes them. Voters who do not differ beyond chance
    all get m. Where `options` is not given, K is the one at which the weights explain the labels best: it maximises

        Σ_q log softmax_c(α Σ_a w_a [a says c])[right answer] − (log(K − 1))² / 2

    over K and α in [0, 1], over the questions that somebody got right. α below 1 is what shared errors leave of the
    votes; it moves no winner. The last term says 2 where the labels say nothing.

    >>> answers = [["4", "4", "5"], ["7", "7", "7"], ["1", "2", "3"], ["9", "8", "8"]]
    >>> found = from_labels(answers, ["4", "7", "1", "9"], options=3)
    >>> [round(p, 2) for p in found.accuracy], [round(w, 2) for w in found.weights]
    ([0.85, 0.52, 0.35], [2.44, 0.77, 0.08])

    Args:
        answers_Q_A: canonical, one per question and voter; None: an abstention or a missing seat, which is no vote.
        right_Q: the canonical right answer; None: not labelled, the question is left out.
        options: K, above 1; 2 asks a voter to be right more often than wrong before it counts.

    Raises ValueError on no labelled question, rows of different lengths, or a K that can not be.

    Source: weights as above; ρ from Kleinman 1973, J. Am. Stat. Assoc. 68, 46–54; (N x̄ + 1) / (N + 2) is Laplace's
        rule, with questions counted instead of votes, since all voters share their questions; the likelihood is
        McFadden's conditional logit, 1974.
    """
    import numpy as np

    _check(answers_Q_A, options)
    code_Q_A = _right_first(answers_Q_A, right_Q)
    right_A = np.asarray((code_Q_A == 0).sum(axis=0), dtype=np.float64)
    votes_A, p_A = _votes(code_Q_A), _shrunk(right_A, code_Q_A >= 0)
    return _reliability(p_A, votes_A, options or _fitted_options(code_Q_A, p_A))


def from_agreement(answers_Q_A: Sequence[Sequence[str | None]], *, options: float | None = None) -> Reliability:
    """The same without labels: the accuracies that explain best who agrees with whom.

    One-coin Dawid–Skene: a voter gives the right answer with chance p_a, else one of K − 1 wrong answers, each with the
    same chance; voters err independently. EM from voters who are all alike and better than chance, in turn

        P_q(c) ∝ Π_a (p_a (K − 1) / (1 − p_a))^[a says c] for each answer c given, K − (answers given) for all others,
        p_a = (Σ_q P_q(answer of a) + s m) / (n_a + s), m halfway between chance and 1, s = 2,

    until no p_a moves. The expected numbers of right votes are then shrunk as in `from_labels`. Where `options` is not
    given, the K of the EM is `effective_options` with expected numbers; the weights take K = 2, the worst case, where
    all who err give the same wrong answer, or the K of the EM if that leaves no voter a weight.

    >>> good, bad = list("ABCDABCD"), list("ABCDBCDA")
    >>> found = from_agreement(list(zip(good, good, bad, list("ABCCABCC"))), options=4)
    >>> [round(p, 2) for p in found.accuracy]
    [0.94, 0.94, 0.56, 0.75]

    Args:
        answers_Q_A: canonical, as for `from_labels`. Answers of one question are compared with each other only, so
            open answers, which differ from question to question, will do.
        options: K of both, above 1.

    Returns: accuracies that hold as far as the voters err independently. The crowd is believed: where most voters make
        the same mistake, those who do not look unreliable; copies of one voter look like good voters. One voter alone
        can not be compared, and stays near m.

    Raises ValueError on no questions, rows of different lengths, or a K that can not be.

    Source: Dawid and Skene 1979, J. R. Stat. Soc. C 28, 20–28, with one parameter per voter.
    """
    _check(answers_Q_A, options)
    code_Q_A = codes(answers_Q_A)
    k = options or _effective(code_Q_A, _alike(code_Q_A, 2.0))
    posterior_Q_C = _one_coin(code_Q_A, k)
    if options is None:
        k = _effective(code_Q_A, posterior_Q_C)
        posterior_Q_C = _one_coin(code_Q_A, k)
    p_A = _shrunk(_expected_right(code_Q_A, posterior_Q_C), code_Q_A >= 0)
    worst = options is None and bool((p_A > 0.5).any())
    return _reliability(p_A, _votes(code_Q_A), 2.0 if worst else k)


def effective_options(answers_Q_A: Sequence[Sequence[str | None]], right_Q: Sequence[str | None]) -> float:
    """How many answers a question has, as far as wrong ones are spread: K = 1 + (T + 1) / (E + 1).

    Of T pairs of wrong votes on one question E are the same answer. Evenly spread wrong answers give the true K.

    >>> effective_options([["4", "5", "5"], ["1", "2", "3"]], ["4", "1"])
    2.5

    Args: as for `from_labels`; a question that is not labelled is left out.

    Returns: at least 2; 2 where no two votes are wrong together.
    """
    import numpy as np

    _check(answers_Q_A, None)
    code_Q_A = _right_first(answers_Q_A, right_Q)
    right_Q_C = np.zeros((len(code_Q_A), _width(code_Q_A)))
    right_Q_C[:, 0] = 1.0
    return _effective(code_Q_A, right_Q_C)


def dawid_skene(
    answers_Q_A: Sequence[Sequence[str | None]],
    *,
    labels: Sequence[str] | None = None,
    iterations: int = 100,
    tolerance: float = 1e-6,
    smoothing: float = 1e-10,
) -> DawidSkene:
    """Right labels, and what each voter says where which label is right, without knowing any right label.

    EM from the shares of the votes (so the labels can not switch where most voters are better than chance), in turn

        π_a(j, l) ∝ max(smoothing, Σ_q P_q(j) [a says l]) over the labels l that a gives,  prior_j = mean_q P_q(j),
        P_q(j) ∝ prior_j Π_a π_a(j, answer of a).

    >>> found = dawid_skene([["x", "x", "y"], ["y", "y", "y"], ["x", "x", "y"], ["y", "y", "y"], ["x", "x", "y"]])
    >>> found.labels, found.posterior_Q_K.argmax(axis=1).tolist(), found.confusion_A_K_K[2].round(3).tolist()
    (('x', 'y'), [0, 1, 0, 1, 0], [[0.0, 1.0], [0.0, 1.0]])

    Args:
        answers_Q_A: labels of a closed set; None: an abstention or a missing seat, which is no vote.
        labels: the set, K ≥ 1; else the labels given, sorted.
        iterations: rounds at most, ≥ 1.
        tolerance: the log likelihood per vote that a round has to gain, else it was the last; −inf: never the last.
        smoothing: above 0; the least count of a label that the voter gives.

    Returns: a question without votes has the prior, and does not shape it; a label that nobody gives is never right.

    Raises ValueError on no questions, rows of different lengths, an answer that is no label, no vote at all.

    Source: Dawid and Skene 1979, J. R. Stat. Soc. C 28, 20–28. Same posteriors as crowd-kit's DawidSkene after the same
        number of rounds.
    """
    _check(answers_Q_A, None)
    if iterations < 1 or not smoothing > 0:
        raise ValueError(f"{iterations} iterations, smoothing {smoothing}: expected at least 1, and above 0")
    given = {answer for row in answers_Q_A for answer in row if answer is not None}
    names = tuple(sorted(given)) if labels is None else tuple(dict.fromkeys(labels))
    if not given or given - set(names):
        what = f"answers {sorted(given - set(names))} are none of the labels {list(names)}" if given else "no votes"
        raise ValueError(f"{what}: expected votes for the labels of a closed set")
    return _confusions(_label_codes(answers_Q_A, names), names, iterations, tolerance, smoothing)


# --- shared ----------------------------------------------------------------------------------------------------------


def _check(answers_Q_A: Sequence[Sequence[str | None]], options: float | None) -> None:
    lengths = {len(row) for row in answers_Q_A}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(f"rows of {sorted(lengths)} voters: expected questions with the same number of voters, ≥ 1")
    if options is not None and not (math.isfinite(options) and options > 1):
        raise ValueError(f"{options} options: expected a number above 1")


def _right_first(answers_Q_A: Sequence[Sequence[str | None]], right_Q: Sequence[str | None]) -> NDArray[np.int64]:
    """Codes of the labelled questions, in which the right answer is 0."""
    if len(answers_Q_A) != len(right_Q):
        raise ValueError(f"{len(answers_Q_A)} questions and {len(right_Q)} right answers: expected one for each")
    labelled = [(right, *row) for row, right in zip(answers_Q_A, right_Q, strict=True) if right is not None]
    if not labelled:
        raise ValueError("no question has a right answer; without labels use from_agreement")
    return codes(labelled)[:, 1:]


def _votes(code_Q_A: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple((code_Q_A >= 0).sum(axis=0).tolist())


def _reliability(p_A: NDArray[np.float64], answered: tuple[int, ...], options: float) -> Reliability:
    return Reliability(tuple(p_A.tolist()), tuple(_log_odds(p_A, options).tolist()), answered, float(options))


def _log_odds(p_A: NDArray[np.float64], options: float) -> NDArray[np.float64]:
    """Against one wrong answer of K − 1, and none below chance."""
    import numpy as np

    odds: NDArray[np.float64] = np.maximum(0.0, np.log(p_A) - np.log1p(-p_A) + math.log(options - 1))
    return odds


def _shrunk(right_A: NDArray[np.float64], voted_Q_A: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Accuracies drawn toward the panel's mean, the further the fewer votes and the more alike the voters."""
    import numpy as np

    votes_A, questions = voted_Q_A.sum(axis=0), int(voted_Q_A.any(axis=1).sum())
    mean = (questions * float(right_A.sum()) / max(1, int(votes_A.sum())) + 1) / (questions + 2)
    between = _between_voters(right_A, votes_A)
    if between == 0:
        return np.full(len(votes_A), mean)
    strength = max(_PRIOR, 1 / between - 1)
    shrunk: NDArray[np.float64] = (right_A + strength * mean) / (votes_A + strength)
    return shrunk


def _between_voters(right_A: NDArray[np.float64], votes_A: NDArray[np.int64]) -> float:
    """ρ in [0, 1]: Σ n_a (p_a − p)² / (p (1 − p)) is A − 1 where voters are equal, plus ρ times what votes allow.

    One voter can not be compared: 1, so that it keeps its own accuracy.
    """
    n_A, x_A = votes_A[votes_A > 0].astype(float), right_A[votes_A > 0]
    if len(n_A) < 2:
        return 1.0
    total, spare = n_A.sum(), len(n_A) - 1
    share = x_A.sum() / total
    room = total - (n_A**2).sum() / total - spare
    if share <= 0 or share >= 1 or room <= 0:
        return 0.0
    spread = (n_A * (x_A / n_A - share) ** 2).sum() / (share * (1 - share))
    return float(min(1.0, max(0.0, (spread - spare) / room)))


def _width(code_Q_A: NDArray[np.int64]) -> int:
    """Most answers of any question."""
    return max(1, int(code_Q_A.max(initial=0)) + 1)


def _sums(code_Q_A: NDArray[np.int64], value_A: NDArray[np.float64]) -> NDArray[np.float64]:
    """(questions, answers): the values of the voters who gave each answer, summed."""
    import numpy as np

    width = _width(code_Q_A)
    at_V, voter_V = np.nonzero(code_Q_A >= 0)
    cells_V = at_V * width + code_Q_A[at_V, voter_V]
    flat = np.bincount(cells_V, value_A[voter_V], len(code_Q_A) * width)
    return flat.astype(np.float64).reshape(len(code_Q_A), width)


def _counts(code_Q_A: NDArray[np.int64]) -> NDArray[np.float64]:
    """(questions, answers) votes."""
    import numpy as np

    return _sums(code_Q_A, np.ones(code_Q_A.shape[1]))


def _effective(code_Q_A: NDArray[np.int64], right_Q_C: NDArray[np.float64]) -> float:
    """`effective_options` where each answer is right with a chance; pairs are counted twice, so 2 stands for one."""
    count_Q_C = _counts(code_Q_A)
    votes_Q_1 = count_Q_C.sum(axis=1, keepdims=True)
    rest_Q_C, none_Q_1 = votes_Q_1 - count_Q_C, 1 - right_Q_C.sum(axis=1, keepdims=True)
    equal = ((1 - right_Q_C) * count_Q_C * (count_Q_C - 1)).sum()
    pairs = (right_Q_C * rest_Q_C * (rest_Q_C - 1)).sum() + (none_Q_1 * votes_Q_1 * (votes_Q_1 - 1)).sum()
    return float(1 + (pairs + 2) / (equal + 2))


# --- the K that fits -------------------------------------------------------------------------------------------------


def _fitted_options(code_Q_A: NDArray[np.int64], p_A: NDArray[np.float64]) -> float:
    """The best of a fixed row of K, from 1 + 1/16 to 65 in steps of √√2; see `from_labels`."""
    known_Q_A = code_Q_A[(code_Q_A == 0).any(axis=1)]
    tried = sorted((2 ** (step / 4) for step in range(-16, 25)), key=lambda wrong: abs(math.log(wrong)))
    if not len(known_Q_A):
        return 2.0
    return 1 + max(tried, key=lambda wrong: _explained(known_Q_A, _log_odds(p_A, 1 + wrong)) - math.log(wrong) ** 2 / 2)


def _explained(code_Q_A: NDArray[np.int64], weight_A: NDArray[np.float64]) -> float:
    """Σ_q log softmax(α · weight)[0] at the best α in [0, 1]. It is concave in α: halving finds where it is flat."""
    import numpy as np

    lead_Q_C = _sums(code_Q_A, weight_A)
    lead_Q_C -= lead_Q_C[:, :1]
    lead_Q_C[_counts(code_Q_A) == 0] = -np.inf
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _rises(lead_Q_C, middle) else (low, middle)
    top_Q_1 = lead_Q_C.max(axis=1, keepdims=True)
    return -float((np.log(np.exp(high * (lead_Q_C - top_Q_1)).sum(axis=1)) + high * top_Q_1[:, 0]).sum())


def _rises(lead_Q_C: NDArray[np.float64], alpha: float) -> bool:
    """Whether the labels are likelier with a little more than α."""
    import numpy as np

    odds_Q_C = np.exp(alpha * (lead_Q_C - lead_Q_C.max(axis=1, keepdims=True)))
    finite_Q_C = np.where(np.isfinite(lead_Q_C), lead_Q_C, 0.0)
    return float(((odds_Q_C * finite_Q_C).sum(axis=1) / odds_Q_C.sum(axis=1)).sum()) < 0


# --- one coin --------------------------------------------------------------------------------------------------------


def _halfway(options: float) -> float:
    return (1 + 1 / options) / 2


def _alike(code_Q_A: NDArray[np.int64], options: float) -> NDArray[np.float64]:
    """The posterior where all voters are alike and better than chance."""
    import numpy as np

    return _answers_by(code_Q_A, np.full(code_Q_A.shape[1], _halfway(options)), options)


def _answers_by(code_Q_A: NDArray[np.int64], p_A: NDArray[np.float64], options: float) -> NDArray[np.float64]:
    """(questions, answers): chance of each answer given; what is missing to 1 belongs to those nobody gave."""
    import numpy as np

    weight_A = np.log(p_A) - np.log1p(-p_A) + math.log(options - 1)
    given_Q_C = _counts(code_Q_A) > 0
    score_Q_C = np.where(given_Q_C, _sums(code_Q_A, weight_A), -np.inf)
    other_Q = np.maximum(options - given_Q_C.sum(axis=1), 0.0)
    top_Q = np.maximum(score_Q_C.max(axis=1), 0.0)
    odds_Q_C = np.exp(score_Q_C - top_Q[:, None])
    total_Q = odds_Q_C.sum(axis=1) + other_Q * np.exp(-top_Q)
    posterior: NDArray[np.float64] = odds_Q_C / np.where(total_Q > 0, total_Q, 1.0)[:, None]
    return posterior


def _expected_right(code_Q_A: NDArray[np.int64], posterior_Q_C: NDArray[np.float64]) -> NDArray[np.float64]:
    import numpy as np

    of_answer_Q_A = np.take_along_axis(posterior_Q_C, np.maximum(code_Q_A, 0), axis=1)
    right: NDArray[np.float64] = np.where(code_Q_A >= 0, of_answer_Q_A, 0.0).sum(axis=0)
    return right


def _one_coin(code_Q_A: NDArray[np.int64], options: float) -> NDArray[np.float64]:
    """The posterior at the accuracies that EM ends at."""
    import numpy as np

    middle, votes_A = _halfway(options), (code_Q_A >= 0).sum(axis=0)
    p_A = np.full(code_Q_A.shape[1], middle)
    for _ in range(_ROUNDS):
        posterior_Q_C = _answers_by(code_Q_A, p_A, options)
        before_A, p_A = p_A, (_expected_right(code_Q_A, posterior_Q_C) + _PRIOR * middle) / (votes_A + _PRIOR)
        if np.abs(p_A - before_A).max() < _STILL:
            break
    return posterior_Q_C


# --- confusion matrices ----------------------------------------------------------------------------------------------


def _label_codes(answers_Q_A: Sequence[Sequence[str | None]], names: Sequence[str]) -> NDArray[np.int64]:
    import numpy as np

    place = {name: k for k, name in enumerate(names)}
    return np.array([[-1 if answer is None else place[answer] for answer in row] for row in answers_Q_A])


def _confusions(
    code_Q_A: NDArray[np.int64], names: tuple[str, ...], iterations: int, tolerance: float, smoothing: float
) -> DawidSkene:
    import numpy as np

    said_Q_A_K = (code_Q_A[:, :, None] == np.arange(len(names))).astype(np.float64)
    asked_Q = np.asarray((code_Q_A >= 0).any(axis=1))
    votes = said_Q_A_K.sum()
    share_Q_K = said_Q_A_K.sum(axis=1) / np.maximum((code_Q_A >= 0).sum(axis=1), 1)[:, None]
    prior_K, confusion = _maximise(said_Q_A_K, share_Q_K, asked_Q, smoothing)
    posterior_Q_K, before = _expect(said_Q_A_K, prior_K, confusion)
    for done in range(1, iterations + 1):
        prior_K, confusion = _maximise(said_Q_A_K, posterior_Q_K, asked_Q, smoothing)
        following_Q_K, likelihood = _expect(said_Q_A_K, prior_K, confusion)
        if done == iterations or (likelihood - before) / votes < tolerance:
            break
        posterior_Q_K, before = following_Q_K, likelihood
    posterior_Q_K = np.where(asked_Q[:, None], posterior_Q_K, prior_K)
    return DawidSkene(names, posterior_Q_K, prior_K, confusion, likelihood, done)


def _maximise(
    said_Q_A_K: NDArray[np.float64], posterior_Q_K: NDArray[np.float64], asked_Q: NDArray[np.bool_], smoothing: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    import numpy as np

    gives_A_K = np.asarray(said_Q_A_K.any(axis=0))
    count_A_K_K = np.einsum("qj,qal->ajl", posterior_Q_K, said_Q_A_K, optimize=True)
    count_A_K_K = np.where(gives_A_K[:, None, :], np.maximum(count_A_K_K, smoothing), 0.0)
    total_A_K = count_A_K_K.sum(axis=2, keepdims=True)
    return posterior_Q_K[asked_Q].mean(axis=0), count_A_K_K / np.where(total_A_K > 0, total_A_K, 1.0)


def _expect(
    said_Q_A_K: NDArray[np.float64], prior_K: NDArray[np.float64], confusion_A_K_K: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Posterior of each question, and the log likelihood of all votes."""
    import numpy as np

    log_A_K_K = np.log(np.where(confusion_A_K_K > 0, confusion_A_K_K, 1.0))  # a label never given is never asked for
    log_prior_K = np.where(said_Q_A_K.any(axis=(0, 1)), np.log(np.maximum(prior_K, _FLOOR)), -np.inf)
    joint_Q_K = log_prior_K + np.einsum("qal,ajl->qj", said_Q_A_K, log_A_K_K, optimize=True)
    top_Q_1 = joint_Q_K.max(axis=1, keepdims=True)
    odds_Q_K = np.exp(joint_Q_K - top_Q_1)
    total_Q_1 = odds_Q_K.sum(axis=1, keepdims=True)
    asked_Q = np.asarray(said_Q_A_K.any(axis=(1, 2)))
    return odds_Q_K / total_Q_1, float((np.log(total_Q_1) + top_Q_1)[asked_Q].sum())
