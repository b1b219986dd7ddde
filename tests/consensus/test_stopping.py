"""Stopping rules: their numbers against enumeration and scipy, what they promise, and waves that cost no call more."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special, stats

from pluribus.consensus._doubt import beta_doubt, dirichlet_doubt, pair_doubt, table_doubt, urn_doubt
from pluribus.consensus.stopping import (
    RULES,
    Halt,
    Stopping,
    Voters,
    cheapest_first,
    doubt,
    halt,
    posterior,
    settled,
    wave,
)
from pluribus.consensus.votes import plurality
from pluribus.errors import UnknownName, UsageError


def equal(n: int) -> Voters:
    return Voters((1.0,) * n)


def one_by_one(votes: Sequence[str | None], voters: Voters, stopping: Stopping) -> int:
    """Calls when everybody is asked alone."""
    return next(asked for asked in range(1, len(votes) + 1) if settled(votes[:asked], voters, stopping))


def by_waves(votes: Sequence[str | None], voters: Voters, stopping: Stopping) -> int:
    """Calls when each wave is asked at once."""
    asked = 0
    while more := wave(votes[:asked], voters, stopping):
        asked += more
    return asked


# The numbers


@pytest.mark.parametrize(("a", "b"), [(1, 0), (1, 1), (4, 1), (20, 19), (3.3, 1.2), (400, 380), (0.2, 0.1)])
def test_beta_is_the_incomplete_beta_function(a: float, b: float) -> None:
    assert beta_doubt(a, b) == pytest.approx(special.betainc(a + 1, b + 1, 0.5), abs=1e-12)


def test_the_published_threshold_of_four_equal_answers() -> None:
    """At 0.95 the Beta rule ends after four equal answers: 1 − 2^−5 > 0.95 > 1 − 2^−4."""
    assert halt(["a"] * 40, equal(40), Stopping("beta", 0.05)).asked == 4
    assert beta_doubt(3, 0) == pytest.approx(1 / 16)


@pytest.mark.parametrize(
    "votes", [(4, 1, 1), (1, 1, 1), (10, 8, 3, 1, 1), (2.5, 1.3, 0.2), (100, 90, 50), (0.4, 0.2, 0.1)]
)
def test_dirichlet_is_the_chance_that_another_share_is_the_largest(votes: tuple[float, ...]) -> None:
    def density(x: float) -> float:
        return float(stats.gamma.pdf(x, votes[0] + 1) * np.prod([stats.gamma.cdf(x, v + 1) for v in votes[1:]]))

    largest, _ = integrate.quad(density, 0, 400, epsabs=1e-11, limit=500)
    assert dirichlet_doubt(votes) == pytest.approx(1 - largest, abs=1e-8)


def test_dirichlet_of_two_answers_is_beta_and_a_third_answer_adds_doubt() -> None:
    assert dirichlet_doubt((5, 2)) == beta_doubt(5, 2)
    assert dirichlet_doubt((5, 2, 2)) > beta_doubt(5, 2)


def test_thousands_of_votes_are_no_certainty() -> None:
    """The third answer has no chance: what is left is the doubt of two."""
    for first, second in ((1000.0, 990.0), (1000.5, 990.25), (60_000.0, 59_000.0)):
        assert dirichlet_doubt((first, second, 1.0)) == pytest.approx(beta_doubt(first, second), abs=1e-6)


def test_posterior_is_one_minus_the_doubt_in_the_leader_and_known_of_others_too() -> None:
    votes, weights = ["a", "b", "a", "c", None, "a", "b"], [1.0, 2.0, 0.5, 1.0, 1.0, 3.0, 0.7]
    of = {answer: posterior(answer, votes, weights) for answer in "abc"}
    assert sum(of.values()) == pytest.approx(1)
    assert of["a"] == 1 - (doubt(votes, Voters(tuple(weights)), Stopping("dirichlet")) or 0)
    assert posterior("a", ["a", "b"]) == posterior("b", ["a", "b"]) == pytest.approx(0.5)
    assert posterior("a", ["a", *["b"] * 3000]) == pytest.approx(0, abs=1e-12), "far behind is not far ahead"
    with pytest.raises(UsageError, match="2 votes for 1 voters"):
        posterior("a", ["a", "b"], [1.0])


def urn(counts: tuple[int, ...], abstained: int, remaining: int) -> float:
    """`urn_doubt` by walking through every way the votes may go on."""

    @cache
    def walk(counts: tuple[int, ...], new: int, abstained: int, remaining: int) -> float:
        if remaining == 0:
            return float(max((*counts[1:], new)) >= counts[0])
        total = sum(counts) + new + abstained + 1
        ways = [(c, (*counts[:i], c + 1, *counts[i + 1 :]), new, abstained) for i, c in enumerate(counts)]
        ways += [(new + 1, counts, new + 1, abstained), (abstained, counts, new, abstained + 1)]
        return sum(w / total * walk(*then, remaining - 1) for w, *then in ways if w)

    return walk(counts, 0, abstained, remaining)


@pytest.mark.parametrize("counts", [(1,), (3,), (2, 1), (2, 2, 1), (4, 1, 1, 1), (5, 3)])
@pytest.mark.parametrize("abstained", [0, 2])
def test_the_urn_against_every_way_the_votes_may_go_on(counts: tuple[int, ...], abstained: int) -> None:
    for remaining in range(7):
        assert urn_doubt(counts, abstained, remaining) == pytest.approx(urn(counts, abstained, remaining), abs=1e-12)


@pytest.mark.parametrize(
    ("lead", "todo", "alphas"),
    [
        (1, (1, 2, 3), (3, 2, 1)),
        (2.5, (1, 1, 1, 2, 5), (3, 1, 0)),
        (0, (1, 1), (1, 1, 1)),
        (4, (3, 2, 1, 1, 1), (5, 2, 3)),
    ],
)
def test_weighted_votes_to_come_against_every_way_they_may_go(
    lead: float, todo: tuple[int, ...], alphas: tuple[int, int, int]
) -> None:
    expected = 0.0
    for signs in product((1, -1, 0), repeat=len(todo)):
        chance, shares = 1.0, {1: alphas[0], -1: alphas[1], 0: alphas[2]}
        for sign in signs:
            chance *= shares[sign] / sum(shares.values())
            shares[sign] += 1
        caught = lead + sum(w * sign for w, sign in zip(todo, signs, strict=True)) <= 0
        expected += chance * caught
    assert pair_doubt(lead, todo, alphas) == pytest.approx(expected, abs=1e-12)


def test_many_voters_of_unlike_weight_need_no_more_nodes() -> None:
    """Equal weights leave two ways to the same number: the exact product of polynomials, and nodes over the shares."""
    assert pair_doubt(4, (1,) * 36, (4, 1, 0)) == pytest.approx(urn_doubt((4,), 0, 36), abs=1e-6)


@pytest.mark.parametrize("n", [2, 7, 30])
def test_the_table_is_the_sum_built_anew(n: int) -> None:
    rng = np.random.default_rng(n)
    weights = tuple(int(weight) for weight in rng.integers(1, 9, n))
    for asked in range(1, n):
        said = rng.multinomial(asked - 1, [0.5, 0.3, 0.2])
        alphas = (int(said[0]) + 1, int(said[1]) + 1, int(said[2]))
        lead = float(rng.integers(0, sum(weights[asked:]) // 2 + 1))
        anew = pair_doubt(lead, weights[asked:], alphas)
        assert table_doubt(lead, weights, asked, alphas) == pytest.approx(anew, abs=1e-5)


def test_more_voters_than_a_table_is_kept_for_are_judged_alike() -> None:
    """The 65th and 66th voter have no weight: nothing changes but the way it is worked out."""
    weights = tuple(float(1 + i % 3) for i in range(64))
    votes = ["a"] * 9 + ["b"] * 5
    tabled, anew = (doubt(votes, Voters(weights + more), Stopping("predictive")) for more in ((), (0.0, 0.0)))
    assert tabled == pytest.approx(anew, abs=1e-3)


# The rules


def test_unassailable_is_strict_and_counts_all_weight_to_come() -> None:
    rule = Stopping("unassailable")
    assert not settled(["a", "a"], equal(4), rule), "two more could come level"
    assert settled(["a", "a"], equal(3), rule)
    assert halt(["a", "b", "a", "a", "b"], Voters((1, 1, 1, 1, 1.5)), rule) == Halt(4, "a", 0.0)
    assert halt(["a", "b", "a", "a", "b"], Voters((1, 1, 1, 1, 2)), rule) == Halt(5, "a", None), "a tie in the end"


def test_weights_that_come_level_but_for_rounding_are_level() -> None:
    votes, voters = ["a", "a", "b"], Voters((0.1, 0.2, 0.3))
    assert not settled(votes[:2], voters, Stopping("unassailable"))


def test_a_window_is_a_block_not_any_run_of_equal_answers() -> None:
    rule = Stopping("window", window=3)
    assert halt(["b", "a", "a", "a", "a", "a", "b"], equal(7), rule) == Halt(6, "a", None)
    assert halt(["a", "a", "a", "b"], equal(4), rule) == Halt(3, "a", None)
    assert halt(["a", "a", None, "a", "a", "a"], equal(6), rule).asked == 6, "an abstention agrees with nobody"
    assert halt([None, None, None, "a"], equal(4), rule) == Halt(4, "a", None)


def test_the_answer_of_a_window_is_the_vote_on_everything_so_far() -> None:
    votes = ["a", "a", "a", "b", "a", "a", "a", "b", "b", "b", "b", "b"]
    assert halt(votes, equal(12), Stopping("window", window=4)) == Halt(12, "a", None)


@pytest.mark.parametrize("rule", RULES)
def test_while_nobody_answers_all_are_asked(rule: str) -> None:
    assert halt([None] * 6, equal(6), Stopping(rule, 0.4, 2)) == Halt(6, None, None)
    assert not settled([None] * 5, equal(6), Stopping(rule, 0.4, 2))
    assert doubt([None] * 5, equal(6), Stopping(rule)) is None


@pytest.mark.parametrize("rule", RULES)
def test_one_voter_is_asked_and_that_is_all(rule: str) -> None:
    assert wave([], equal(1), Stopping(rule)) == 1
    assert wave(["a"], equal(1), Stopping(rule)) == 0


@pytest.mark.parametrize("rule", ["unassailable", "beta", "dirichlet", "predictive"])
@pytest.mark.parametrize("scale", [0.1, 3.0, 1e-200, 1e190])
def test_the_unit_of_the_weights_does_not_matter(rule: str, scale: float) -> None:
    votes = ["a", "b", "a", None, "a", "c", "a", "a", "b", "a"]
    weights = (1.0, 2.0, 0.5, 1.0, 1.0, 3.0, 1.0, 0.7, 1.0, 2.0)
    one = halt(votes, Voters(weights), Stopping(rule, 0.2))
    other = halt(votes, Voters(tuple(w * scale for w in weights)), Stopping(rule, 0.2))
    assert (one.asked, one.answer) == (other.asked, other.answer)
    assert halt(votes, Voters((scale,) * 10), Stopping(rule, 0.2)) == halt(votes, equal(10), Stopping(rule, 0.2))


@pytest.mark.parametrize("rule", ["beta", "dirichlet"])
def test_weighted_votes_count_as_effective_ones(rule: str) -> None:
    """Two of ten voters carry nearly all the weight: what they say counts for one vote each, not for forty."""
    heavy = Voters((40.0, 40.0, *(0.001,) * 8))
    assert doubt(["a", "a"], heavy, Stopping(rule)) == pytest.approx(beta_doubt(2, 0), abs=1e-3)
    later = Voters((1.0, 1.0, 1.0, 1.0, 10.0))
    assert doubt(["a", "a", "b", "a"], later, Stopping(rule)) == pytest.approx(beta_doubt(3 * 14 / 104, 14 / 104))


def test_what_no_rival_can_reach_leaves_no_doubt() -> None:
    assert halt(["a"] * 5, Voters((3.0, 3.0, 1.0, 1.0, 1.0)), Stopping("predictive", 1e-6)) == Halt(2, "a", 0.0)


@pytest.mark.parametrize("light", [40, 100])
@pytest.mark.parametrize("known", [False, True])
def test_votes_too_light_for_a_unit_still_count(light: int, known: bool) -> None:
    """Two heavy seats cancel, the third is silent: the light ones decide, and only one of them has spoken."""
    n = 3 + light
    voters = Voters((3000.0,) * 3 + (1.0,) * light, (0.6,) * n if known else None, 2)
    assert (doubt(["a", "b", None, "a"], voters, Stopping("predictive")) or 0) > 0.3


@pytest.mark.parametrize("known", [False, True])
def test_rounding_weights_to_units_never_hides_a_vote_that_can_turn_it(known: bool) -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        n = int(rng.integers(10, 30))
        weights, votes = rng.uniform(0.2, 3, n), rng.choice(["a", "b"], n).tolist()
        lead = abs(sum(w if vote == "a" else -w for w, vote in zip(weights, votes, strict=True)))
        voters = Voters((*weights.tolist(), float(lead * 1.001)), (0.6,) * (n + 1) if known else None, 2)
        behind = n - max(votes.count("a"), votes.count("b"))
        chance = 0.4 if known else min(votes.count("a"), behind) / (n + 1)
        assert (doubt(votes, voters, Stopping("predictive")) or 0) >= chance - 1e-6


def test_of_two_answers_one_is_right_whoever_errs() -> None:
    """Voters nearly always wrong tell as much as voters nearly always right."""
    rng = np.random.default_rng(0)
    for _ in range(60):
        right = tuple(rng.choice([0.9, 0.95, 0.97, 0.98], 40).tolist())
        votes = rng.choice(["a", "b"], int(rng.integers(1, 7))).tolist()
        good, bad = (
            doubt(votes, Voters((1.0, 2.0) * 20, known, 2), Stopping("predictive"))
            for known in (right, tuple(1 - p for p in right))
        )
        assert bad == pytest.approx(good, rel=1e-6)


def test_a_doubt_of_1_is_never_small() -> None:
    assert not settled(["a", "a", "b"], equal(5), Stopping("unassailable", 1 - 1e-13))


def test_third_answers_are_no_friends_of_the_runner_up() -> None:
    """Ten scattered answers threaten the leader less than ten that agree."""
    apart, together = ["a"] * 10 + list("bcdefghijk"), ["a"] * 10 + ["b"] * 10
    rule = Stopping("predictive")
    assert doubt(apart, equal(40), rule) < 0.02 < 0.4 < doubt(together, equal(40), rule)


# Waves


RULE = st.sampled_from(RULES)
EPS = st.sampled_from([0.01, 0.05, 0.1, 0.25, 0.4])
VOTES = st.lists(st.sampled_from(["a", "a", "a", "b", "b", "c", None]), min_size=1, max_size=14)
WEIGHT = st.sampled_from([0.0, 0.3, 0.5, 1.0, 1.7, 2.0, 5.0])


@settings(deadline=None, max_examples=150)
@given(VOTES, RULE, EPS, st.integers(2, 5))
def test_waves_ask_exactly_as_many_as_one_by_one(votes: list[str | None], rule: str, eps: float, width: int) -> None:
    stopping = Stopping(rule, eps, width)
    asked = one_by_one(votes, equal(len(votes)), stopping)
    assert by_waves(votes, equal(len(votes)), stopping) == asked == halt(votes, equal(len(votes)), stopping).asked


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(["a", "a", "b", "c", None]), WEIGHT), min_size=1, max_size=7), RULE, EPS)
def test_so_do_waves_of_unequal_voters(seats: list[tuple[str | None, float]], rule: str, eps: float) -> None:
    votes, weights = [vote for vote, _ in seats], (*(weight for _, weight in seats[1:]), 1.0)
    stopping = Stopping(rule, eps, 2)
    assert by_waves(votes, Voters(weights), stopping) == one_by_one(votes, Voters(weights), stopping)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "a", "b", "c", None]), WEIGHT, st.floats(0.1, 0.95)), min_size=1, max_size=9
    ),
    st.sampled_from([None, 3, 5]),
    EPS,
)
def test_so_do_waves_of_voters_of_known_accuracy(
    seats: list[tuple[str | None, float, float]], options: int | None, eps: float
) -> None:
    votes = [vote for vote, _, _ in seats]
    voters = Voters((*(weight for _, weight, _ in seats[1:]), 1.0), tuple(a for *_, a in seats), options)
    stopping = Stopping("predictive", eps)
    assert by_waves(votes, voters, stopping) == one_by_one(votes, voters, stopping)


def test_the_first_wave_is_as_large_as_it_can_be() -> None:
    assert [wave([], equal(40), Stopping(rule, 0.05, 5)) for rule in RULES] == [21, 4, 4, 5, 5]
    assert wave(["a", "b"], equal(9), Stopping("window", window=3)) == 4, "this window is lost: its rest and the next"
    assert wave(["a", "a"], equal(9), Stopping("window", window=3)) == 1
    assert wave(["a"], equal(2), Stopping("window", window=3)) == 1, "nobody else is left"


def test_a_new_answer_of_a_heavy_voter_may_settle_it_first() -> None:
    voters = Voters((1.0, 0.5, 4.0, 1.0))
    assert wave(["a", "b"], voters, Stopping("unassailable")) == 1


# What `predictive` promises


def differs(votes: Sequence[str | None], voters: Voters, eps: float) -> bool:
    """Whether the decision is not that of the full vote, or that one is shared."""
    at = halt(votes, voters, Stopping("predictive", eps))
    full = plurality(votes, voters.weights)
    return at.asked < len(votes) and (at.answer != full.winner or bool(full.tie))


ACCURACIES = (0.9, 0.6, 0.75, 0.5, 0.8, 0.55)


@pytest.mark.parametrize("weights", [(1.0,) * 6, (2.2, 0.4, 1.1, 0.2, 1.4, 0.3), (1.0, 3.0, 0.5, 2.0, 1.0, 0.7)])
@pytest.mark.parametrize("options", [2, 3, 4])
@pytest.mark.parametrize("eps", [0.02, 0.05, 0.2])
def test_known_accuracies_every_vote_with_its_probability(weights: tuple[float, ...], options: int, eps: float) -> None:
    """No simulation: P(the decision is not the full vote's) summed over all votes of six voters is at most eps."""
    voters, missed = Voters(weights, ACCURACIES, options), 0.0
    for named in product(range(options), repeat=6):  # answer 0 is the right one
        wrong = [answer for answer in dict.fromkeys(named) if answer]
        if wrong != sorted(wrong) or len(wrong) != max(named):
            continue  # the same votes under other names: counted with those that are named in the order seen
        chance = math.prod(
            a if answer == 0 else (1 - a) / (options - 1) for a, answer in zip(ACCURACIES, named, strict=True)
        )
        times = math.perm(options - 1, len(wrong))
        missed += times * chance * differs([str(answer) for answer in named], voters, eps)
    assert missed <= eps + 1e-12


def test_two_options_spend_the_doubt_that_was_allowed() -> None:
    """The bound is not kept by asking everybody: most of it is used, and calls are saved."""
    voters = Voters((1.0,) * 9, (0.8,) * 9, 2)
    missed, asked = 0.0, 0.0
    for named in product((True, False), repeat=9):
        chance = math.prod(0.8 if right else 0.2 for right in named)
        votes = ["right" if right else "wrong" for right in named]
        missed += chance * differs(votes, voters, 0.05)
        asked += chance * halt(votes, voters, Stopping("predictive", 0.05)).asked
    assert 0.01 < missed <= 0.05
    assert asked < 5


@pytest.mark.parametrize("options", [2, 3, 5])
@pytest.mark.parametrize("kind", ["equal", "log odds", "arbitrary"])
def test_known_accuracies_by_simulation(options: int, kind: str) -> None:
    n, questions, eps = 15, 600, 0.1
    rng = np.random.default_rng([options, len(kind)])
    accuracies = tuple(rng.uniform(max(1 / options + 0.05, 0.35), 0.9, n))
    weights = {
        "equal": (1.0,) * n,
        "log odds": tuple(math.log(a * (options - 1) / (1 - a)) for a in accuracies),
        "arbitrary": tuple(rng.uniform(0.2, 3, n)),
    }[kind]
    voters, missed = Voters(weights, accuracies, options), 0
    for truth in rng.integers(options, size=questions):
        right = rng.random(n) < accuracies
        named = np.where(right, truth, (truth + rng.integers(1, options, n)) % options)
        missed += differs([str(answer) for answer in named], voters, eps)
    assert missed / questions <= eps + 3 * math.sqrt(eps * (1 - eps) / questions)


def partitions(n: int) -> Iterator[tuple[float, list[str]]]:
    """Every sequence of answers that Hoppe's urn can give, with its probability."""
    if n == 0:
        yield 1.0, []
        return
    for chance, votes in partitions(n - 1):
        for answer in sorted({*votes, str(len(set(votes)))}):
            yield chance * max(votes.count(answer), 1) / n, [*votes, answer]


@pytest.mark.parametrize(
    ("weights", "eps"),
    [
        ((1.0,) * 8, 0.05),
        ((1.0,) * 8, 0.2),
        ((1.0, 2.0, 1.5, 0.5, 1.0, 3.0, 0.7), 0.1),
        ((3.0, 1.0, 1.0, 1.0, 2.0, 0.1), 0.2),
    ],
)
def test_exchangeable_voters_every_vote_with_its_probability(weights: tuple[float, ...], eps: float) -> None:
    every = list(partitions(len(weights)))
    assert sum(chance for chance, _ in every) == pytest.approx(1)
    assert sum(chance * differs(votes, Voters(weights), eps) for chance, votes in every) <= eps


def test_known_accuracy_tells_more_than_a_count() -> None:
    """Two voters that are nearly always right settle what two unknown ones do not."""
    sure = Voters((1.0,) * 7, (0.99, 0.99, 0.6, 0.6, 0.6, 0.6, 0.6), 4)
    assert wave([], sure, Stopping("predictive", 0.1)) < wave([], equal(7), Stopping("predictive", 0.1))


# Input


@pytest.mark.parametrize(
    ("votes", "voters", "stopping", "words"),
    [
        ([], equal(3), Stopping(eps=0.0), "eps is 0.0"),
        ([], equal(3), Stopping(eps=1.0), "eps is 1.0"),
        ([], equal(3), Stopping(eps=math.nan), "eps is nan"),
        ([], equal(3), Stopping("window", window=1), "window is 1"),
        (["a"] * 4, equal(3), Stopping(), "4 votes for 3 voters"),
        ([], Voters((1.0, -1.0)), Stopping(), "weight -1.0 of voter 1"),
        ([], Voters((math.inf,)), Stopping(), "weight inf of voter 0"),
        ([], Voters((0.0, 0.0)), Stopping(), "no voter has a weight above 0"),
        ([], Voters(()), Stopping(), "no voter has a weight above 0"),
        ([], Voters((1.0, 1.0), (0.5, 1.0)), Stopping(), "accuracy 1.0 of voter 1"),
        ([], Voters((1.0, 1.0), (0.5,)), Stopping(), "1 accuracies for 2 voters"),
        ([], Voters((1.0,), (0.5,), 1), Stopping(), "options is 1"),
        ([], Voters((1.0,), (0.5,), 2.5), Stopping(), "options is 2.5"),  # type: ignore[arg-type]
        ([], Voters((1.0,), (0.5,), math.nan), Stopping(), "options is nan"),  # type: ignore[arg-type]
        ([], Voters((1e308, 1e308)), Stopping(), r"weight 1e\+308 of voter 0"),
    ],
)
def test_bad_input_is_named(votes: list[str | None], voters: Voters, stopping: Stopping, words: str) -> None:
    for ask in (settled, wave, halt, doubt):
        with pytest.raises(UsageError, match=words) as caught:
            ask(votes, voters, stopping)
        assert "\n" not in str(caught.value)


def test_an_unknown_rule_lists_the_known() -> None:
    with pytest.raises(UnknownName, match="did you mean 'beta'"):
        settled([], equal(1), Stopping("betta"))


def test_a_sequence_to_replay_is_whole() -> None:
    with pytest.raises(UsageError, match="2 votes of 3 voters"):
        halt(["a", "a"], equal(3), Stopping())


def test_cheapest_first_the_heavier_of_equal_cost_and_else_as_they_sit() -> None:
    assert cheapest_first([2.0, 0.0, 0.5, 0.5, 0.0], [1.0, 1.0, 1.0, 3.0, 1.0]) == (1, 4, 3, 2, 0)
    with pytest.raises(UsageError, match="1 costs for 2 voters"):
        cheapest_first([1.0], [1.0, 1.0])
    with pytest.raises(UsageError, match="cost nan of voter 0"):
        cheapest_first([math.nan], [1.0])
