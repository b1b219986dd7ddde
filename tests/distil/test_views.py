"""Which replies each view takes, and what it leaves out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pluribus.distil import CUT_OFF, NO_LABEL, NO_RIGHT, answers, da, gold, preferences, rsft, steps
from pluribus.distil._forms import answer_text, solution_text
from pluribus.types import Key, Question, Verdict

Make = Callable[..., Any]


# --- rsft ------------------------------------------------------------------------------------------------------------


def taken(found: Any) -> list[tuple[str, int | None]]:
    return [(one.question_id, one.turn) for one in found.examples]


def test_what_the_council_decided_comes_before_a_higher_reward_and_a_later_round(
    material: Make, case: Make, reply: Make
) -> None:
    replies = [reply(0, decided=True), reply(1, value=0.9, final=False), reply(2, round=2, final=False)]
    assert taken(rsft.examples(material(case(*replies)), rsft.Settings())) == [("q", 0)]


def test_where_the_council_is_wrong_the_best_right_reply_is_taken(material: Make, case: Make, reply: Make) -> None:
    wrong = reply(0, "3", correct=False, decided=True, answer="3")
    by_reward = case(wrong, reply(1, value=0.2, round=2), reply(2, value=0.8), id="q1")
    by_round = case(wrong, reply(1), reply(2, round=1), id="q2")
    found = rsft.examples(material(by_reward, by_round), rsft.Settings())
    assert taken(found) == [("q1", 2), ("q2", 2)]
    assert [one.correct for one in found.examples] == [True, True]


def test_no_seat_is_preferred_among_equals(material: Make, case: Make, reply: Make) -> None:
    cases = [case(*(reply(turn, seat=turn) for turn in range(3)), id=f"q{i}") for i in range(60)]
    first, again, other = (rsft.examples(material(*cases, seed=seed), rsft.Settings()) for seed in (0, 0, 1))
    counts = [sum(one.turn == turn for one in first.examples) for turn in range(3)]
    assert min(counts) > 8
    assert first == again and taken(first) != taken(other)


def test_what_can_not_be_learned_by_heart_is_counted(material: Make, case: Make, reply: Make) -> None:
    cases = [
        case(reply(0, correct=None), reply(1, correct=False), id="q1"),
        case(reply(0, cut_off=True), id="q2"),
        case(reply(0, cut_off=True), reply(1), id="q3"),
    ]
    found = rsft.examples(material(*cases), rsft.Settings())
    assert taken(found) == [("q3", 1)]
    assert found.left_out == {NO_LABEL: 1, CUT_OFF: 2, NO_RIGHT: 2}


def test_a_corrective_reply_is_written_as_often_as_it_counts(material: Make, case: Make, reply: Make) -> None:
    cases = [case(reply(0, corrective=True), id="q1"), case(reply(0), id="q2")]
    found = rsft.examples(material(*cases), rsft.Settings(corrective_weight=3))
    assert taken(found) == [("q1", 0)] * 3 + [("q2", 0)]
    assert [one.corrective for one in found.examples] == [True] * 3 + [False]


# --- da --------------------------------------------------------------------------------------------------------------


def test_replies_are_chosen_far_apart(material: Make, case: Make, reply: Make) -> None:
    texts = ["a", "b", "c", "i", "e"]
    replies = [reply(turn, text, decided=turn == 0) for turn, text in enumerate(texts)]
    found = da.examples(material(case(*replies)), da.Settings())
    assert [one.text for one in found.examples] == ["a", "i", "e"]
    assert found.left_out == {da.BEYOND: 2}
    assert [one.text for one in da.examples(material(case(*replies)), da.Settings(per_question=1)).examples] == ["a"]


def test_of_equally_far_replies_the_corrective_one_is_taken(material: Make, case: Make, reply: Make) -> None:
    """d and D are different texts in the same place."""
    replies = [reply(0, "a", decided=True), reply(1, "d one", value=0.9), reply(2, "d two", value=0.1, corrective=True)]
    found = da.examples(material(case(*replies)), da.Settings(per_question=2))
    assert [one.text for one in found.examples] == ["a", "d two"]


def test_questions_without_two_different_right_replies_are_left_out(material: Make, case: Make, reply: Make) -> None:
    cases = [
        case(reply(0, "a"), reply(1, " a\n"), id="same"),
        case(reply(0, "a"), id="one"),
        case(reply(0, "a", correct=False), id="none"),
        case(reply(0, "a b c d e f g"), reply(1, "a b c d e f h"), id="near"),
    ]
    found = da.examples(material(*cases), da.Settings())
    assert {one.question_id for one in found.examples} == {"near"}
    assert found.left_out[da.ONE_ONLY] == 2 and found.left_out[NO_RIGHT] == 1
    near = da.examples(material(*cases), da.Settings(near_duplicates=0.5))
    assert near.examples == () and near.left_out[da.ONE_ONLY] == 3


def test_questions_are_embedded_in_portions_that_change_nothing(material: Make, case: Make, reply: Make) -> None:
    sizes: list[int] = []

    def embed(texts: list[str]) -> Any:
        sizes.append(len(texts))
        return by_first_letter(texts)

    by_first_letter = material().embed
    one = case(*(reply(turn, letter, decided=turn == 0) for turn, letter in enumerate("abcdefghijklmnopqrs")))
    cases = [replace(one, question=replace(one.question, id=f"q{i}")) for i in range(300)]
    found = da.examples(material(*cases, embed=embed), da.Settings(per_question=2))
    assert len(sizes) == 2 and sum(sizes) == 300 * 19
    assert [each.text for each in found.examples] == ["a", "s"] * 300


def test_spread_is_the_greedy_choice() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(12, 5))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    chosen = [0]
    while len(chosen) < 6:
        near = {i: min(1 - vectors[i] @ vectors[j] for j in chosen) for i in range(12) if i not in chosen}
        chosen.append(max(near, key=lambda i: near[i]))
    assert da.spread(vectors, 6) == chosen
    assert sorted(da.spread(vectors, 99)) == list(range(12))
    assert da.spread(np.ones((3, 1)), 3) == [0, 1, 2]


@pytest.mark.parametrize("k", [0, 4, -1])
def test_one_to_three_replies(k: int) -> None:
    with pytest.raises(ValueError, match=f"per_question is {k}; expected 1, 2 or 3"):
        da.Settings(per_question=k)


# --- answers and gold ------------------------------------------------------------------------------------------------


def test_the_final_answer_alone_stands_for_the_reply_that_rsft_takes(material: Make, case: Make, reply: Make) -> None:
    everything = material(case(reply(0), reply(1, decided=True)), case(reply(0, correct=False), id="wrong"))
    found = answers.examples(everything, answers.Settings())
    assert taken(found) == taken(rsft.examples(everything, rsft.Settings()))
    assert [one.text for one in found.examples] == ["{final answer: 2}"]


def test_without_a_key_the_reply_says_the_answer(material: Make, case: Make, reply: Make) -> None:
    found = answers.examples(material(case(reply(0, answer="7"), key=None)), answers.Settings())
    assert [one.text for one in found.examples] == ["{final answer: 7}"]


@pytest.mark.parametrize(
    ("kind", "answer", "text"),
    [
        ("number", "57,500", "{final answer: 57500}"),
        ("choice", "C", "{final answer: C}"),
        ("text", "The Beatles", "{final answer: The Beatles}"),
        ("latex", "\\frac{1}{2}", "{final answer: \\frac{1}{2}}"),
        ("program", "print(1)\n", "```python\nprint(1)\n```"),
    ],
)
@pytest.mark.parametrize("words", ["standard", "zoo"])
def test_an_answer_is_written_as_it_is_asked_for_and_reads_back(words: str, kind: Any, answer: str, text: str) -> None:
    from pluribus.answers import canonical, read

    question = Question("q", "t", "?", kind, choices=("x", "y", "z") if kind == "choice" else ())
    said = answer_text(words, question, answer)
    assert said == text
    assert read(question, said) == canonical(question, answer)


def test_a_dialect_of_ones_own_says_the_form(tmp_path: Any) -> None:
    (tmp_path / "format_number.txt").write_text("Put the number into \\boxed{NUMBER}.")
    (tmp_path / "format_latex.txt").write_text("End with #### EXPRESSION")
    assert answer_text(str(tmp_path), Question("q", "t", "?", "number"), "2") == "\\boxed{2}"
    assert answer_text(str(tmp_path), Question("q", "t", "?", "latex"), "x^2") == "#### x^2"


def test_a_solution_is_closed_by_the_answer_once(material: Make, case: Make) -> None:
    cases = [
        case(id="open", key=Key("open", "2", solution="1 + 1 = 2.\n")),
        case(id="closed", key=Key("closed", "2", solution="1 + 1 = 2. {final answer: 2}")),
        case(id="other", key=Key("other", "2", solution="No: {final answer: 3}")),
        case(id="none"),
        case(id="blank", key=Key("blank", "2", solution=" ")),
        case(id="no answer", key=Key("no answer", None, solution="Well.")),
    ]
    found = gold.examples(material(*cases), gold.Settings())
    assert {one.question_id: one.text for one in found.examples} == {
        "open": "1 + 1 = 2. {final answer: 2}",
        "closed": "1 + 1 = 2. {final answer: 2}",
        "other": "No: {final answer: 3} {final answer: 2}",
    }
    assert found.left_out == {gold.NO_SOLUTION: 3}
    assert all(one.attempt_id is None for one in found.examples)


def test_the_standard_dialect_asks_for_a_line_of_its_own() -> None:
    question = Question("q", "t", "1 + 1?", "number")
    assert solution_text("standard", question, Key("q", "2", solution="1 + 1 = 2.")) == (
        "1 + 1 = 2.\n{final answer: 2}"
    )


# --- steps -----------------------------------------------------------------------------------------------------------


def test_a_reply_is_taken_when_each_step_has_a_mark(material: Make, case: Make, reply: Make) -> None:
    text = "1 + 1 = 2. 2 + 1 = 4. {final answer: 4}"
    marks = {0: True, 1: False, 2: False}
    replies = [
        reply(0, text, correct=False, marks=marks),
        reply(1, text + " ", correct=False, marks=marks),
        reply(2, "1 + 1 = 2. So 2.", marks={0: True}),
        reply(3, "Only one", marks={0: True, 1: True}),
        reply(4),
    ]
    found = steps.examples(material(case(*replies)), steps.Settings())
    (one,) = found.examples
    assert one.steps == ("1 + 1 = 2.", "2 + 1 = 4.", "{final answer: 4}")
    assert one.marks == (True, False, False) and one.correct is False
    assert found.left_out == {steps.COPY: 1, steps.SOME_MARKS: 1, steps.OTHER_CUT: 1, steps.NO_MARKS: 1}
    assert steps.facts([one]) == steps.Facts(3, 1 / 3, 1.0, 2.0)


def test_the_cut_is_the_one_that_was_labelled(material: Make, case: Make, reply: Make) -> None:
    one = reply(0, "One. Still one.\nTwo.", marks={0: True, 1: True, 2: True})
    assert steps.examples(material(case(one)), steps.Settings()).examples == ()
    found = steps.examples(material(case(one)), steps.Settings(cut="sentences"))
    assert [len(marked.steps) for marked in found.examples] == [3]


def test_some_replies_of_a_question_are_drawn(material: Make, case: Make, reply: Make) -> None:
    cases = [case(*(reply(turn, f"Said {turn}", marks={0: True}) for turn in range(5)), id=f"q{i}") for i in range(9)]
    found = steps.examples(material(*cases), steps.Settings(per_question=2))
    assert [one.question_id for one in found.examples] == [f"q{i}" for i in range(9) for _ in range(2)]
    assert found.left_out == {steps.BEYOND: 27}
    assert len({one.turn for one in found.examples}) == 5


# --- preferences -----------------------------------------------------------------------------------------------------


def test_pairs_are_of_candidates_and_by_what_there_is(material: Make, case: Make, reply: Make) -> None:
    replies = [reply(0, "3", correct=False), reply(1, "2"), reply(2, "two", candidate=False)]
    (pair,) = preferences.examples(material(case(*replies)), preferences.Settings(per_question=0)).examples
    assert (pair.chosen.text, pair.rejected.text, pair.by) == ("2", "3", "label")
    rewarded = [reply(0, "3", correct=False, value=0.9), reply(1, "2", value=0.1)]
    (pair,) = preferences.examples(material(case(*rewarded)), preferences.Settings()).examples
    assert (pair.chosen.text, pair.by) == ("3", "reward")
    (pair,) = preferences.examples(material(case(*rewarded)), preferences.Settings(by="label")).examples
    assert (pair.chosen.text, pair.by) == ("2", "label")


def test_what_people_said_stands(material: Make, case: Make, reply: Make) -> None:
    said = (Verdict("p", "q", ("q", 0), ("q", 1), "first", "ada", 1.0),)
    replies = [reply(0, "3", correct=None), reply(1, "2", correct=None)]
    (pair,) = preferences.examples(material(case(*replies), verdicts=said), preferences.Settings()).examples
    assert (pair.chosen.text, pair.by) == ("3", "human")


def test_nothing_to_go_by_is_no_pair(material: Make, case: Make, reply: Make) -> None:
    replies = [reply(0, "3", correct=None), reply(1, "2", correct=None)]
    found = preferences.examples(material(case(*replies)), preferences.Settings())
    assert found.examples == () and found.left_out == {"replies without reward, label and verdict": 2}
