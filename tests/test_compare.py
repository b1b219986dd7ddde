"""Does the council pay: controls chosen on the other half, equal spend, and the sentence."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence

import pytest

from pluribus.compare import (
    Comparison,
    against_best_single,
    against_self_consistency,
    compare,
    halves,
    holm_adjusted,
    is_self_consistency,
    verdict,
)
from pluribus.evaluate import Usage
from pluribus.panel import Item, Member, Panel, Word
from pluribus.stats import Estimate

KEY = "1"


def word(answer: str | None, used: int | None = 10) -> Word:
    return Word(f"it is {answer}", answer, float(answer == KEY), used, None if used is None else 0, 0.0)


def panel(
    rows: Sequence[Sequence[str | None]],
    models: Sequence[str],
    *,
    name: str = "council",
    decided: Sequence[str | None] | None = None,
    used: int | None = 10,
    calls: int | None = None,
    personas: Sequence[str | None] | None = None,
) -> Panel:
    """One round: rows[question] holds each member's answer, `!` for a failed turn; decided by the first majority."""
    who = personas or [None] * len(models)
    members = tuple(Member(f"agent {i + 1}", m, p, i) for i, (m, p) in enumerate(zip(models, who, strict=True)))
    items = []
    for i, row in enumerate(rows):
        words = tuple(None if answer == "!" else word(answer, used) for answer in row)
        votes = [a for a in row if a not in (None, "!")]
        answer = decided[i] if decided is not None else max(votes, key=votes.count) if votes else None
        failed = all(a == "!" for a in row)
        n = len(row) if calls is None else calls
        usage = Usage(n, None if used is None else used * n, None if used is None else 0, 0.0)
        credit = None if failed else float(answer == KEY)
        items.append(Item(f"q{i}", KEY, (words,), answer, credit, usage, failed))
    return Panel(name, f"run {name}", "sums", "vote", members, tuple(items))


def drawn(accuracies: Sequence[float], models: Sequence[str], n: int = 400, *, seed: int = 0, **about: object) -> Panel:
    """Independent members of these accuracies; a wrong answer is one of many."""
    rng = random.Random(seed)
    rows = [[KEY if rng.random() < a else str(rng.randrange(2, 50)) for a in accuracies] for _ in range(n)]
    return panel(rows, models, **about)  # type: ignore[arg-type]  # passed through


# --- the best member alone -------------------------------------------------------------------------------------------


def test_the_best_member_is_chosen_on_the_other_half() -> None:
    ids = [f"q{i}" for i in range(8)]
    second = halves(ids)
    rows = [["1", "2"] if half else ["2", "1"] for half in second]  # each is right on one half only
    told = against_best_single(panel(rows, ["zoo/a", "zoo/b"]))
    assert told is not None
    assert told.control_accuracy == 0.0, "who shines on one half is asked on the other"
    assert set(told.chosen) == {"agent 1", "agent 2"}
    assert told.control in ("zoo/a or zoo/b alone", "zoo/b or zoo/a alone")


def test_equal_members_are_not_made_better_by_the_choice() -> None:
    gaps = []
    for seed in range(20):
        council = drawn([0.5] * 8, [f"zoo/{i}" for i in range(8)], n=60, seed=seed)
        told = against_best_single(council)
        assert told is not None
        gaps.append(told.control_accuracy - 0.5)
    best_on_the_same_questions = 0.09
    assert abs(sum(gaps) / len(gaps)) < best_on_the_same_questions / 2


def test_the_difference_the_counts_and_the_spend() -> None:
    rows = [["1", "2", "1"], ["1", "2", "2"], ["1", "1", "1"], ["1", "2", "3"]] * 5
    told = against_best_single(panel(rows, ["zoo/a", "zoo/b", "zoo/c"], used=7))
    assert told is not None
    assert (told.n, told.council_accuracy, told.control_accuracy) == (20, 0.75, 1.0)
    assert told.difference.value == -0.25
    assert (told.test.only_first, told.test.only_second) == (0, 5)
    assert (told.council_calls, told.control_calls) == (3, 1)
    assert (told.council_tokens, told.control_tokens) == (21, 7)
    assert (told.control, told.chosen, told.sources) == ("zoo/a alone", ("agent 1",), ("run council",))


def test_questions_failed_on_either_side_are_left_out_and_counted() -> None:
    rows: list[list[str | None]] = [["1", "1"]] * 10 + [["!", "!"], ["!", "1"], ["!", "1"]]
    told = against_best_single(panel(rows, ["zoo/a", "zoo/b"]))
    assert told is not None
    assert (told.n, told.left_out) == (10, 3)
    assert "left out of 13 questions" in str(told.note)
    assert "1 the council failed" in str(told.note)
    assert "2 the control lacks" in str(told.note)


def test_of_a_shared_lead_the_test_takes_the_answer_shown_and_the_bootstrap_the_credit() -> None:
    whole = panel([["1", "2"]] * 6, ["zoo/a", "zoo/b"])
    items = tuple(dataclasses.replace(item, credit=0.5) for item in whole.items)
    told = against_best_single(dataclasses.replace(whole, items=items))
    assert told is not None
    assert told.difference.value == -0.5
    assert (told.test.only_first, told.test.only_second) == (0, 0)


def test_nothing_to_compare_without_keys_or_for_one_call() -> None:
    council = panel([["1", "2"]] * 6, ["zoo/a", "zoo/b"])
    unkeyed = tuple(
        Item(i.question_id, None, ((Word("x", "1", None), Word("x", "2", None)),), "1", None, i.usage)
        for i in council.items
    )
    assert compare(dataclasses.replace(council, items=unkeyed)) == []
    assert compare(panel([["1"]] * 6, ["zoo/a"])) == []
    assert compare(panel([["1", "2"]], ["zoo/a", "zoo/b"])) == [], "no other half to choose on"
    said = verdict([])
    assert (said.pays, said.comparison) == (None, None)
    assert said.words.startswith("nothing to compare with")


# --- self-consistency ------------------------------------------------------------------------------------------------


def control(rows: Sequence[Sequence[str | None]], model: str, **about: object) -> Panel:
    return panel(rows, [model] * len(rows[0]), name=f"sc of {model}", **about)  # type: ignore[arg-type]


def test_the_control_is_the_plurality_of_its_first_k_draws() -> None:
    council = panel([["1", "1", "1"]] * 8, ["zoo/a", "zoo/b", "zoo/c"])
    rows = [["2", "1", "1", "2", "2"], ["1", "2", "3", "1", "1"]] * 4
    told = against_self_consistency(council, [control(rows, "zoo/a")])
    assert told is not None
    assert (told.control_calls, told.council_calls, told.equal) == (3, 3, True)
    assert told.control_accuracy == pytest.approx((1 + 1 / 3) / 2), "two of three, and a three-way tie"
    assert (told.test.only_first, told.test.only_second) == (0, 0), "of the tie the first, which is right"
    assert told.control == "zoo/a, self-consistency of 3"
    assert told.sources == ("run council", "run sc of zoo/a")


def test_equal_tokens_takes_as_many_draws_as_the_council_pays_for() -> None:
    council = panel([["1", "1", "1"]] * 8, ["zoo/a", "zoo/b", "zoo/c"], used=20)  # 60 tokens a question
    cheap = control([["1"] * 8] * 8, "zoo/a", used=11)
    told = against_self_consistency(council, [cheap], "equal tokens")
    assert told is not None
    assert (told.control_calls, told.control_tokens, told.equal) == (5, 55, True)
    few = against_self_consistency(council, [control([["1"] * 4] * 8, "zoo/a", used=11)], "equal tokens")
    assert few is not None
    assert (few.control_calls, few.equal) == (4, False)
    assert "only 4 draws are recorded" in str(few.note)
    dear = against_self_consistency(council, [control([["1"] * 4] * 8, "zoo/a", used=61)], "equal tokens")
    assert dear is not None
    assert (dear.control_calls, dear.equal) == (1, False)
    assert "one draw alone takes more tokens" in str(dear.note)
    assert against_self_consistency(council, [control([["1"] * 4] * 8, "zoo/a", used=None)], "equal tokens") is None


def test_only_members_compete_and_strangers_only_without_them() -> None:
    council = panel([["1", "2"]] * 10, ["zoo/a", "zoo/b"])
    weak, strong = control([["2", "2"]] * 10, "zoo/a"), control([["1", "1"]] * 10, "zoo/z")
    member = against_self_consistency(council, [strong, weak])
    stranger = against_self_consistency(council, [strong])
    assert member is not None
    assert stranger is not None
    assert (member.chosen, member.member, member.lacking) == (("zoo/a",), True, ("zoo/b",))
    assert (stranger.chosen, stranger.member, stranger.lacking) == (("zoo/z",), False, ("zoo/a", "zoo/b"))
    assert "too few draws to compete: zoo/b" in verdict([member]).words
    assert "a model that is no member" in verdict([stranger]).words


def test_to_beat_another_than_the_best_member_leaves_it_open() -> None:
    council = panel([["1", "1", "2"]] * 60, ["zoo/a", "zoo/b", "zoo/c"])
    for model, who in (("zoo/c", "a member that is not its best"), ("zoo/z", "a model that is no member")):
        weak = control([["2", "2", "2"]] * 60, model)
        told = compare(council, [weak])
        said = verdict(told)
        assert [c.best_competes for c in told if c.spend == "equal calls"] == [False]
        assert said.pays is None
        assert said.words.startswith(
            "whether the council pays is not known: +100.0 points [100.0, 100.0] over the self-"
        )
        assert f"over the self-consistency of {who} at the same calls (3; {model}; n = 60" in said.words
        assert "too few draws to compete: zoo/a, zoo/b" in said.words
        assert "; for equal spend: pluribus run --task sums --limit 60 --method self_consistency" in said.words
        assert said.words.endswith("--agent-models zoo/a --set parallel_num=3")
        as_good = verdict(compare(council, [control([["1", "1", "1"]] * 60, model)]))
        assert as_good.pays is False
    known = verdict(compare(council, [control([["2", "2", "2"]] * 60, "zoo/a"), weak]))
    assert known.pays is True


def test_a_council_that_loses_to_one_call_does_not_pay_though_it_beats_a_stranger() -> None:
    council = panel([["1", "2", "2"], ["1", "1", "1"]] * 30, ["zoo/a", "zoo/b", "zoo/c"])
    said = verdict(compare(council, [control([["2", "2", "2"]] * 60, "zoo/z")]))
    assert said.pays is False
    assert said.words.startswith(
        "the council loses here to less than its spend: the best member's self-consistency is not"
    )
    assert "−50.0 points [" in said.words


def test_draws_inside_the_council_serve() -> None:
    council = panel([["1", "1", "2"]] * 10, ["zoo/a", "zoo/a", "zoo/b"], calls=2)
    told = against_self_consistency(council, [])
    assert told is not None
    assert (told.chosen, told.equal, told.sources) == (("zoo/a",), True, ("run council",))
    assert "the council's own first answers" in str(told.note)
    dressed = panel([["1", "1", "2"]] * 10, ["zoo/a", "zoo/a", "zoo/b"], calls=2, personas=["Ann", "Bob", None])
    assert against_self_consistency(dressed, []) is None


def test_too_few_draws_are_used_and_no_equal_spend_is_claimed() -> None:
    council = drawn([0.9] * 8, ["zoo/a", "zoo/b"] * 4)
    short = drawn([0.4] * 3, ["zoo/a"] * 3, name="short", seed=1)
    ours = [c for c in compare(panel_without_own_draws(council), [short]) if c.spend == "equal calls"]
    assert [(c.control_calls, c.equal) for c in ours] == [(3, False)]
    said = verdict(ours)
    assert said.pays is None
    assert "at fewer calls (3 draws against 8 calls; zoo/a; n = 400" in said.words
    assert "same calls" not in said.words
    better = drawn([0.99] * 3, ["zoo/a"] * 3, name="short", seed=1)
    beaten = verdict(compare(panel_without_own_draws(drawn([0.5] * 8, ["zoo/a", "zoo/b"] * 4)), [better]))
    assert beaten.pays is False, "what loses to a cheaper control does not pay"


def panel_without_own_draws(council: Panel) -> Panel:
    members = tuple(dataclasses.replace(m, persona=f"persona {i}") for i, m in enumerate(council.members))
    return dataclasses.replace(council, members=members)


def test_debates_and_personas_are_no_controls() -> None:
    votes = control([["1", "2"]] * 4, "zoo/a")
    assert is_self_consistency(votes)
    twice = tuple(dataclasses.replace(item, words=item.words * 2) for item in votes.items)
    assert not is_self_consistency(dataclasses.replace(votes, items=twice))
    assert not is_self_consistency(panel([["1", "2"]] * 4, ["zoo/a"] * 2, personas=["Ann", None]))
    assert not is_self_consistency(panel([["1"]] * 4, ["zoo/a"]))
    assert not is_self_consistency(panel([["1", "2"]] * 4, ["zoo/a", "zoo/b"]))


def test_one_call_is_not_a_spend_of_self_consistency() -> None:
    with pytest.raises(ValueError, match="equal tokens"):
        against_self_consistency(panel([["1", "2"]], ["zoo/a", "zoo/b"]), [], "one call")


# --- the verdict -----------------------------------------------------------------------------------------------------


def test_independent_members_pay_and_copies_do_not() -> None:
    models = [f"zoo/{i}" for i in range(9)]
    stuck = [[answer] * 9 for [answer] in [[KEY if i % 10 < 6 else "7"] for i in range(400)]]
    council = drawn([0.6] * 9, models)
    controls = [control(stuck, model) for model in models]
    said = verdict(compare(council, controls))
    assert said.pays is True
    assert said.words.startswith("the council pays here: +")
    assert "over the best member's self-consistency at the same calls (9; zoo/" in said.words
    assert "n = 400, McNemar p < 0.0001)" in said.words
    copies = panel(stuck, models)
    copied = verdict(compare(copies, controls))
    assert copied.pays is False
    assert copied.words.startswith("the council does not pay here: +0.0 points [−0.9, 0.9] over the best member's")
    assert "McNemar p = 1)" in copied.words


def test_a_council_that_loses_is_told_so() -> None:
    rows: list[list[str | None]] = [["1", "2", "2"]] * 30 + [["1", "1", "2"]] * 30
    said = verdict(compare(panel(rows, ["zoo/a", "zoo/b", "zoo/c"]), [control([["1"] * 3] * 60, "zoo/a")]))
    assert said.pays is False
    assert said.words.startswith("the council loses here: −50.0 points [−")


def test_without_draws_the_sentence_names_the_command_and_the_price() -> None:
    council = drawn([0.6] * 4, ["zoo/a", "zoo/b", "zoo/c", "zoo/d"], n=100)
    told = compare(council)
    said = verdict(told)
    assert [c.spend for c in told] == ["one call"]
    assert said.pays is None
    assert "self-consistency is not recorded" in said.words
    assert "at 4 times the calls" in said.words
    assert "pluribus run --task sums --limit 100 --method self_consistency --agent-models zoo/" in said.words
    assert said.words.endswith("--set parallel_num=4")
    logged = verdict(compare(dataclasses.replace(council, source="logs/file.jsonl")))
    assert "record 4 answers of zoo/" in logged.words
    assert "pluribus run" not in logged.words


def test_a_council_that_loses_to_one_call_does_not_pay_whatever_is_recorded() -> None:
    rows: list[list[str | None]] = [["1", "2", "2"]] * 30 + [["1", "1", "2"]] * 30
    said = verdict(compare(panel(rows, ["zoo/a", "zoo/b", "zoo/c"])))
    assert said.pays is False
    assert said.words.startswith("the council loses here to less than its spend: the best member's self-")
    assert "at 3 times the calls" in said.words


def test_tokens_are_named_where_they_disagree() -> None:
    models = ["zoo/a", "zoo/b", "zoo/c"]
    council = panel([["1", "1", "2"]] * 60, models, used=100)
    for draws, words in ((20, "even at fewer tokens"), (30, "at the same tokens")):
        rows = [["2", "2", "2", *["1"] * draws]] * 60
        said = verdict(compare(council, [control(rows, "zoo/a", used=10)]))
        assert said.pays is True
        assert f"; {words} it does not pay: +0.0 points [−6.0, 6.0]" in said.words


def test_tokens_alone_can_carry_the_sentence() -> None:
    council = panel([["1", "2", "1"]] * 20, ["zoo/a", "zoo/b", "zoo/c"], used=10, calls=3)
    dear = verdict(compare(council, [control([["1", "1"]] * 20, "zoo/a", used=14)]))
    assert dear.comparison is not None
    assert dear.comparison.spend == "equal tokens"
    assert "at the same tokens (28, the council 30; zoo/a" in dear.words


def settled(ahead: int, behind: int, n: int = 100) -> list[Comparison]:
    """A council that alone is right on so many questions, and alone is wrong on so many."""
    rows: list[list[str | None]] = [["2", "1", "1"]] * ahead + [["1", "2", "2"]] * behind
    rows += [["1", *("12" if i % 2 else "21")] for i in range(n - len(rows))]
    draws = control([[row[0]] * 3 for row in rows], "zoo/a")
    return compare(panel(rows, ["zoo/a", "zoo/b", "zoo/c"]), [draws])


def test_a_council_pays_only_where_the_test_confirms_the_interval() -> None:
    said = verdict(settled(11, 3))
    assert said.comparison is not None
    assert said.comparison.difference.low > 0
    assert said.comparison.test.p == pytest.approx(0.0574, abs=1e-4)
    assert said.pays is False
    assert said.words.startswith("the council does not pay here: +8.0 points [1.0, 15.0] over")
    assert "; the interval excludes 0, McNemar's test does not: ask more questions" in said.words
    confirmed = verdict(settled(12, 2))
    assert confirmed.pays is True
    assert "ask more questions" not in confirmed.words
    assert verdict(settled(2, 12)).words.startswith("the council loses here: −10.0 points")
    open_ = verdict(settled(3, 11))
    assert open_.pays is False
    assert open_.words.startswith("the council does not pay here: −8.0 points [−15.0, −1.0] over")
    assert "; the interval excludes 0, McNemar's test does not: ask more questions" in open_.words


def test_a_handful_of_questions_that_differ_leaves_0_in_the_interval() -> None:
    said = verdict(settled(4, 0))
    assert said.comparison is not None
    assert said.comparison.difference.low < 0 < said.comparison.difference.high
    assert said.pays is False
    assert "ask more questions" not in said.words


def test_where_test_and_interval_disagree_the_sentence_says_so_in_every_branch() -> None:
    doubt = "the interval excludes 0, McNemar's test does not: ask more questions"
    [votes] = [c for c in settled(11, 3) if c.spend == "equal calls"]
    unknown = verdict([dataclasses.replace(votes, spend="one call", lacking=())])
    assert (unknown.pays, doubt in unknown.words) == (None, True)
    uneven = verdict([dataclasses.replace(votes, equal=False, control_calls=2.0)])
    assert uneven.pays is False
    assert "at fewer calls (2 draws against 3 calls" in uneven.words
    assert doubt in uneven.words
    assert "too few draws to compete: zoo/b, zoo/c" in uneven.words
    other = dataclasses.replace(votes, test=dataclasses.replace(votes.test, p=0.01), difference=Estimate(1, -1, 2, 1))
    assert "McNemar's test finds a difference, the interval holds 0: ask more questions" in verdict([other]).words


def test_a_vote_of_equal_members_is_told_that_it_is_self_consistency() -> None:
    votes = panel([["1", "2", "1"]] * 20, ["zoo/a"] * 3)
    said = verdict(compare(votes))
    assert said.pays is False
    assert "; the council is such a vote itself" in said.words


def test_a_panel_without_members_has_nothing_to_compare() -> None:
    none = dataclasses.replace(panel([[]] * 6, []), items=panel([["1", "2"]] * 6, ["zoo/a", "zoo/b"]).items)
    bare = dataclasses.replace(none, items=tuple(dataclasses.replace(item, words=()) for item in none.items))
    assert compare(bare) == []
    told = compare(bare, [control([["1"]] * 6, "zoo/a"), control([["1", "2", "2"]] * 6, "zoo/b")])
    assert [(c.spend, c.member, c.remedy) for c in told] == [
        ("equal calls", False, None), ("equal tokens", False, None)]  # fmt: skip


def test_seats_that_answer_each_other_in_the_first_round_are_no_draws_and_only_the_first_is_alone() -> None:
    sides = dataclasses.replace(panel([["2", "1"]] * 20, ["zoo/a", "zoo/a"], calls=3), method="mad")
    assert against_self_consistency(sides, []) is None
    assert not is_self_consistency(sides)
    told = against_best_single(sides)
    assert told is not None
    assert (told.chosen, told.control_accuracy) == (("agent 1",), 0.0)


def test_holm_is_over_the_family_and_enters_the_sentence() -> None:
    [told] = [c for c in settled(12, 2) if c.spend == "equal calls"]
    few, many = holm_adjusted([told] * 2), holm_adjusted([told] * 40)
    assert [c.p_adjusted for c in few] == [2 * told.test.p] * 2
    assert "; Holm's p over the sweep = 0.026" in verdict(few[:1]).words
    assert "may be chance" not in verdict(few[:1]).words
    assert "; Holm's p over the sweep = 0.52, so that this may be chance" in verdict(many[:1]).words
    [lost] = [c for c in settled(2, 12) if c.spend == "equal calls"]
    assert "Holm" not in verdict(holm_adjusted([lost])).words


def test_the_halves_are_even_and_follow_the_seed() -> None:
    ids = [f"q{i}" for i in range(101)]
    assert halves(ids).sum() == 51
    assert halves(ids).tolist() == halves(ids).tolist()
    assert halves(ids, 1).tolist() != halves(ids).tolist()


def test_a_comparison_keeps_what_others_build_on() -> None:
    told = against_best_single(panel([["1", "2"]] * 6, ["zoo/a", "zoo/b"]))
    assert isinstance(told, Comparison)
    assert told.difference.low <= told.difference.value <= told.difference.high
    assert told.p_adjusted is None


def test_a_member_alone_is_compared_with_nothing() -> None:
    single = panel([["1"], ["2"], ["1"]] * 20, ["zoo/a"])
    draws = control([["1"] * 3] * 60, "zoo/a")
    assert compare(single, [draws]) == []
    assert verdict([]).pays is None
    assert "a member alone" in verdict([]).words
