"""What is known of samples, what they are worth, and when to worry: all that needs no model."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.training.grpo_files import prompts, write

from pluribus import objectives, sandbox
from pluribus.embedders import open_embedder
from pluribus.errors import DataError
from pluribus.training import _grpo_watch as watch
from pluribus.training._grpo_rows import asked, check_rows, key_of, question_of, read_prompts
from pluribus.training._grpo_samples import (
    Sample,
    graded,
    leaders,
    outcome_advantages,
    rewarded,
    step_advantages,
    step_ends,
)
from pluribus.training.config import GrpoConfig

walls = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


def voted(letters: str, **more: Any) -> list[Sample]:
    """One sample per letter: A is right, `-` abstains, `?` is nobody's knowledge."""
    return [
        Sample(one, None if one == "-" else one, None if one == "?" else one == "A",
               reward=None if one == "?" else float(one == "A"), **more)
        for one in letters
    ]  # fmt: skip


# --- rows ------------------------------------------------------------------------------------------------------------


def test_a_row_is_a_question_and_a_key() -> None:
    row = {
        "prompt": [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "First?"},
            {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Which?"},
        ],
        "kind": "choice", "answer": "B", "aliases": ["two"], "choices": ["one", "two"], "labels": ["A", "B"],
        "question_id": "q7", "task": "t",
    }  # fmt: skip
    question, key = question_of(row), key_of(row)
    assert (question.id, question.task, question.text, question.kind) == ("q7", "t", "Which?", "choice")
    assert (question.choices, question.labels) == (("one", "two"), ("A", "B"))
    assert (key.question_id, key.answer, key.aliases) == ("q7", "B", ("two",))
    assert asked({"prompt": [{"role": "system", "content": "x"}]}) == ""


def test_files_are_read_with_their_free_columns(tmp_path: Path) -> None:
    rows = prompts(3, source="here")
    assert read_prompts(write(tmp_path, rows)) == rows


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"prompt": "3 + 4 ?"}, "prompt is .* expected a list of messages that ends before the reply"),
        ({"prompt": [{"role": "assistant", "content": "7"}]}, "prompt is "),
        ({"kind": "sum"}, 'kind is "sum"; expected the kind of the answer: number, choice'),
        ({"answer": 7}, "answer is 7; expected the right answer, as text"),
        ({"aliases": "7"}, 'aliases is "7"; expected a list of other right answers'),
        ({"tests": [1]}, r"tests is \[1\]; expected a list of Python texts"),
        ({"choices": [1]}, r"choices is \[1\]"),
        ({"question_id": 4}, "question_id is 4; expected text"),
        ({"answer": None}, "answer is null"),
    ],
)
def test_a_column_that_is_another_thing(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    rows = prompts(3)
    rows[1] |= change
    with pytest.raises(DataError, match=rf"prompts.jsonl:2: {complaint}"):
        read_prompts(write(tmp_path, rows))


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    rows = prompts(2)
    del rows[0]["kind"]
    with pytest.raises(DataError, match=r"prompts.jsonl:1: kind is missing; .*; its columns are: answer, prompt"):
        read_prompts(write(tmp_path, rows))
    with pytest.raises(DataError, match=r"prompts.jsonl: no prompt is in it; name a task instead"):
        read_prompts(write(tmp_path, []))


@pytest.mark.parametrize(
    ("wishes", "row", "complaint"),
    [
        ({}, {"kind": "text"}, "row 2 is of kind text, which has no checker, and reward_mode VR needs one; say .* ORM"),
        ({}, {"answer": ""}, "row 2 has no answer, and reward_mode VR needs one"),
        ({}, {"kind": "program"}, "row 2 has no tests, and reward_mode VR needs one"),
        (
            {"objective": "majority", "k": 3}, {"kind": "program", "tests": ["assert f() == 1"]},
            "kind program, whose replies have no answers in common, and objective majority is a vote",
        ),
        ({"self_labelled": True}, {"kind": "text"}, "kind text, .* and self_labelled is a vote"),
    ],
)  # fmt: skip
def test_rows_that_the_reward_can_not_be_had_of(wishes: dict[str, Any], row: dict[str, Any], complaint: str) -> None:
    rows = prompts(2)
    rows[1] |= row
    with pytest.raises(DataError, match=f"^here: .*{complaint}"):
        check_rows(GrpoConfig(**wishes), rows, "here")


@pytest.mark.parametrize(
    "wishes",
    [
        {"reward_mode": "PRM", "prm": "p"}, {"reward_mode": "ORM", "judges": "j"}, {"self_labelled": True},
        {"reward_mode": "ORM", "judges": "j", "objective": "best_of", "k": 2},
    ],
)  # fmt: skip
def test_rewards_that_need_no_key(wishes: dict[str, Any]) -> None:
    rows = prompts(2)
    for row in rows:
        del row["answer"]
    check_rows(GrpoConfig(**wishes), rows, "here")


# --- grading ---------------------------------------------------------------------------------------------------------


async def test_replies_are_graded_by_their_own_rows_keys() -> None:
    three, five = ({**row, "answer": answer} for row, answer in zip(prompts(2), ("3", "5"), strict=True))
    texts = ["{final answer: 3}", "{final answer: 5}", "{final answer: 3.0}", "none", "{final answer: 5}"]
    found = await graded([three, three, five, five, five], texts)
    assert [one.text for one in found] == texts
    assert [one.answer for one in found] == ["3", "5", "3", None, "5"]
    assert [one.right for one in found] == [True, False, False, False, True]
    assert all(one.reward is None and one.score is None for one in found)


async def test_what_was_thought_is_no_answer() -> None:
    (row,) = prompts(1)
    said, thought = await graded([row, row], ["<think>It is 7.</think>{final answer: 8}", "<think>It is 7."])
    assert (said.answer, said.right) == ("8", False)
    assert (thought.answer, thought.right) == (None, False)


async def test_without_a_key_nobody_knows() -> None:
    row = prompts(1)[0]
    del row["answer"]
    (found,) = await graded([row], ["{final answer: 7}"])
    assert (found.answer, found.right) == ("7", None)


PROGRAM = {"prompt": [{"role": "user", "content": "add"}], "kind": "program", "tests": ["assert add(2) == 3"]}
SAID = ["```python\ndef add(x):\n    return x + 1\n```", "```python\ndef add(x):\n    return x\n```", "I can not."]


@walls
async def test_programs_are_run_where_they_may() -> None:
    with sandbox.allowing(sandbox.sandbox(True)):
        found = await graded([PROGRAM] * 3, SAID)
    assert [one.right for one in found] == [True, False, False]
    rewards = rewarded(GrpoConfig(samples=3), found, own_labels=False)
    assert [one.reward for one in rewards] == [1.0, 0.0, 0.0]


async def test_programs_that_may_not_run_have_no_reward() -> None:
    found = rewarded(GrpoConfig(samples=3), await graded([PROGRAM] * 3, SAID), own_labels=False)
    assert [one.reward for one in found] == [None, None, None]


# --- rewards ---------------------------------------------------------------------------------------------------------


def test_rewards_of_the_checker_and_of_a_model() -> None:
    group = [Sample("a", "3", True, 0.25), Sample("b", "4", False, 0.75), Sample("c", None, None, None)]
    by_key = rewarded(GrpoConfig(), group, own_labels=False)
    by_score = rewarded(GrpoConfig(reward_mode="ORM", judges="j"), group, own_labels=False)
    assert [one.reward for one in by_key] == [1.0, 0.0, None]
    assert [one.reward for one in by_score] == [0.25, 0.75, None]


@pytest.mark.parametrize(
    ("letters", "known"),
    [
        ("AABC", [1, 1, 0, 0]), ("BBA", [1, 1, 0]), ("AABB", [0.5, 0.5, 0.5, 0.5]), ("AB-", [0.5, 0.5, 0]),
        ("ABC", [1 / 3] * 3), ("B--", [1, 0, 0]), ("---", [None] * 3),
    ],
)  # fmt: skip
def test_own_labels_are_the_groups_majority(letters: str, known: list[float | None]) -> None:
    """B may lead and be wrong: the key is not looked at."""
    found = rewarded(GrpoConfig(self_labelled=True), voted(letters), own_labels=True)
    assert [one.reward for one in found] == known


def test_who_leads() -> None:
    assert leaders(["1", "2", "1", None, None, None]) == {"1"}
    assert leaders(["1", "2", None]) == {"1", "2"}
    assert leaders([None]) == leaders([]) == set()


# --- advantages ------------------------------------------------------------------------------------------------------

KNOWN = "AABC-A"
SCORES = (0.2, 0.9, 0.5, 0.7, 0.1, 0.4)


def scored(letters: str = KNOWN) -> list[Sample]:
    return [
        Sample(one.text, one.answer, one.right, score, reward=one.reward)
        for one, score in zip(voted(letters), SCORES, strict=False)
    ]


@pytest.mark.parametrize("objective", [one for one in objectives.OBJECTIVES if one != "mean"])
@pytest.mark.parametrize(("estimator", "k"), [("urloo", 3), ("loo1", 3), ("loo", 6), ("naive", 6)])
def test_outcomes_are_n_times_the_sum_form(objective: Any, estimator: Any, k: int) -> None:
    judges = "j" if objective in ("best_of", "weighted_majority") else None
    config = GrpoConfig(objective=objective, estimator=estimator, k=k, samples=6, judges=judges)
    group = objectives.Group(
        [float(one == "A") for one in KNOWN], answers=[None if one == "-" else one for one in KNOWN],
        scores=SCORES, weights=SCORES,
    )  # fmt: skip
    known = 6 * objectives.advantages(group, objective, k, estimator)
    np.testing.assert_allclose(outcome_advantages(config, scored(), k), known, rtol=0, atol=1e-12)


@pytest.mark.parametrize("estimator", ["urloo", "rloo"])
def test_the_mean_is_each_less_the_mean_of_the_others(estimator: Any) -> None:
    found = outcome_advantages(GrpoConfig(estimator=estimator, samples=4), voted("AABC"), 1)
    np.testing.assert_allclose(found, [1 - 1 / 3, 1 - 1 / 3, -2 / 3, -2 / 3], atol=1e-12)


def test_who_has_no_reward_is_left_out_of_the_group() -> None:
    config = GrpoConfig(objective="pass", k=2, samples=5)
    found = outcome_advantages(config, voted("A?AB-"), 2)
    alone = outcome_advantages(config, voted("AAB-"), 2)
    assert found[1] == 0
    np.testing.assert_allclose(found[[0, 2, 3, 4]], alone, atol=1e-12)
    assert alone.any()


def test_who_has_no_score_is_left_out_where_scores_count() -> None:
    """Here the third has none: without it the others' weights alone decide."""
    for objective in ("best_of", "weighted_majority"):
        config = GrpoConfig(objective=objective, k=2, samples=6, judges="j")  # type: ignore[arg-type]  # both are
        group = scored()
        group[2] = Sample("B", "B", False, None, reward=0.0)
        found, without = outcome_advantages(config, group, 2), outcome_advantages(config, group[:2] + group[3:], 2)
        assert found[2] == 0 and without.any()
        np.testing.assert_allclose(np.delete(found, 2), without, atol=1e-12)
    assert outcome_advantages(GrpoConfig(objective="pass", k=2, samples=6), group, 2)[2] != 0


@pytest.mark.parametrize(("letters", "taught"), [("AB????", False), ("AAB???", False), ("ABBB??", True)])
def test_too_few_rewards_for_k_teach_nothing(letters: str, taught: bool) -> None:
    """urloo needs more samples than k = 3."""
    config = GrpoConfig(objective="pass", k=3, samples=6)
    assert bool(outcome_advantages(config, voted(letters), 3).any()) is taught
    assert not outcome_advantages(config, voted("??????"), 3).any()


def test_loo_takes_all_that_have_rewards() -> None:
    """Of four samples three have rewards: majority of the three."""
    config = GrpoConfig(objective="majority", estimator="loo", k=4, samples=4)
    np.testing.assert_allclose(outcome_advantages(config, voted("AA?B"), 4), [1.5, 1.5, 0, 0], atol=1e-12)


def test_a_vote_without_weight_is_not_refused() -> None:
    config = GrpoConfig(objective="weighted_majority", k=2, samples=3, judges="j")
    group = [Sample("a", "A", True, 0.0, reward=1.0), *voted("BB", score=0.5)]
    assert np.isfinite(outcome_advantages(config, group, 2)).all()


def test_steps_have_the_tokens_between_their_ends() -> None:
    group = [
        Sample("a", steps=(0.5, -0.5), ends=(4, 9)), Sample("b", steps=None, ends=(7,)),
        Sample("c", steps=(0.25,), ends=(6,)),
    ]  # fmt: skip
    config = GrpoConfig(reward_mode="PRM", prm="p", reward_baseline="token", credit_temperature=0.5)
    found = step_advantages(config, group)
    from pluribus.objectives.process import process_advantages

    known = process_advantages([(0.5, -0.5), (0.25,)], [(4, 5), (6,)], "token", 0.5)
    assert found[1] is None
    for one, other in zip((found[0], found[2]), known, strict=True):
        np.testing.assert_array_equal(one, other)


# --- where steps end -------------------------------------------------------------------------------------------------


def characters(tokens: Sequence[int]) -> str:
    return "".join(map(chr, tokens))


def pairs(tokens: Sequence[int]) -> str:
    """Two letters a token."""
    return "".join(chr(one // 256) + chr(one % 256) for one in tokens)


def in_pairs(text: str) -> list[int]:
    return [ord(one) * 256 + ord(other) for one, other in zip(text[::2], text[1::2], strict=True)]


@pytest.mark.parametrize(
    ("text", "steps", "known"),
    [
        ("One. Two. Three.", ["One.", "Two.", "Three."], (4, 9, 16)),
        ("Same. Same.", ["Same.", "Same."], (5, 11)),
        ("  One.\n\nTwo.  ", ["One.", "Two."], (6, 14)),
        ("<think>hm</think>One. Two.", ["One.", "Two."], (21, 26)),
        ("Alone", ["Alone"], (5,)),
        ("none", [], ()),
    ],
)
def test_text_says_where_a_step_ends(text: str, steps: list[str], known: tuple[int, ...]) -> None:
    assert step_ends(characters, [*map(ord, text)], steps) == known


def test_a_token_that_holds_the_end_of_one_step_and_the_begin_of_the_next_is_the_firsts() -> None:
    """`On|e.| T|wo|.!`: the first step ends with its second token, the last with the last."""
    assert step_ends(pairs, in_pairs("One. Two.!"), ["One.", "Two."]) == (2, 5)
    assert step_ends(pairs, in_pairs("Ones. Two."), ["Ones.", "Two."]) == (3, 5)


def test_a_thought_that_says_the_same_ends_no_step() -> None:
    thought = "One. Two.</think>"
    assert step_ends(characters, [*map(ord, f"{thought}One. Two.")], ["One.", "Two."]) == (len(thought) + 4, 26)


def test_ends_that_are_seen_by_nobody_belong_to_the_last_step() -> None:
    """The end token is no text."""

    def decode(tokens: Sequence[int]) -> str:
        return characters([one for one in tokens if one])

    assert step_ends(decode, [*map(ord, "One. Two."), 0], ["One.", "Two."]) == (4, 10)


# --- watching --------------------------------------------------------------------------------------------------------


def test_what_is_logged_of_a_batch() -> None:
    groups = [voted("AABC"), voted("BB-A")]
    found = watch.metrics(GrpoConfig(objective="majority", k=3, samples=4), groups, 3, open_embedder("hashing"))
    assert found["pass@3"] == pytest.approx((1 + 3 / 4) / 2)
    assert found["maj@3"] == pytest.approx((2 / 3 + (1 / 2 + 1 / 2) / 4) / 2)
    assert (found["accuracy"], found["unanswered"], found["unscored"]) == (3 / 8, 1 / 8, 0)
    assert found["agreement"] == pytest.approx((2 / 4 + 2 / 3) / 2)
    entropies = 1.5 * math.log(2), math.log(3) - 2 / 3 * math.log(2)
    assert found["answers"] == pytest.approx(sum(map(math.exp, entropies)) / 2)
    assert 1 < found["kstar"] < 4 and found["k"] == 3
    assert "own_label_right" not in found and "step_score" not in found


def test_replies_whose_steps_were_not_marked_are_counted() -> None:
    config = GrpoConfig(reward_mode="PRMVR", prm="p", samples=2)
    group = [Sample("a", "A", True, steps=(0.5,), reward=1.0), Sample("b", "B", False, reward=0.0)]
    assert watch.metrics(config, [group], 2, None)["steps_unscored"] == 0.5


def test_what_can_not_be_known_is_not_logged() -> None:
    found = watch.metrics(GrpoConfig(objective="pass", k=2, samples=3), [voted("A?B")], 2, None)
    assert "kstar" not in found and "pass@2" not in found and "maj@2" not in found
    assert found["unscored"] == pytest.approx(1 / 3) and found["accuracy"] == 0.5
    nobody = watch.metrics(GrpoConfig(samples=3), [voted("???")], 1, None)
    assert "accuracy" not in nobody and nobody["unscored"] == 1


def test_for_the_mean_the_whole_group_is_looked_at() -> None:
    found = watch.metrics(GrpoConfig(samples=4), [voted("AABC")], 1, None)
    assert found["pass@4"] == found["maj@4"] == 1.0


def test_steps_and_own_labels_are_watched() -> None:
    group = [
        Sample("a", "A", True, steps=(0.5, 0.1), ends=(3, 9), reward=1.0), Sample("b", reward=1.0, ends=(7,)),
        Sample("c", "C", False, steps=(-0.5,), ends=(5,), reward=0.0),
    ]  # fmt: skip
    found = watch.metrics(GrpoConfig(samples=3, self_labelled=True), [group], 1, None)
    assert found["steps_per_reply"] == 1.5 and found["step_score"] == pytest.approx(-0.1)
    assert found["own_label_right"] == 0.5  # A and C share the lead


def test_diversity_is_one_for_one_text_and_as_many_as_there_are() -> None:
    embed = open_embedder("hashing")
    same = watch.kstar([[Sample("two and two is four")] * 4], embed)
    mixed = watch.kstar([[Sample(text) for text in ("apples", "by the river", "42", "Hm!")]], embed)
    assert same == pytest.approx(1) and mixed > 3.5
    assert watch.kstar([[Sample(""), Sample("two")]], embed) == pytest.approx(1)  # nothing said is nothing new


def log(name: str, *values: float) -> list[dict[str, float]]:
    return [{name: value, "step": step} for step, value in enumerate(values)]


@pytest.mark.parametrize(
    ("name", "values", "alarm"),
    [
        ("kstar", (4, 4, 4, 1.5, 1.5, 1.5), "alarm/collapse"),
        ("kstar", (4, 4, 4, 2, 2, 2), None),
        ("kstar", (4, 4, 4, 1, 1), None),
        ("kstar", (1, 1, 1, 1, 1, 1), None),
        ("kstar", (4, 4, 4, 1, 1, 1, 4, 4, 4), None),
        ("completions/mean_length", (100, 100, 100, 50, 50, 50), "alarm/shorter"),
        ("completions/mean_length", (100, 100, 100, 65, 65, 65), None),
        ("completions/mean_length", (50, 50, 50, 100, 100, 100), None),
        ("eval_completions/mean_length", (100, 100, 100, 1, 1, 1), None),
        ("eval_change_high", (0.2, -0.01, -0.01), "alarm/held_out"),
        ("eval_change_high", (-0.01,), None),
        ("eval_change_high", (-0.01, 0.01, -0.01), None),
        ("eval_change_high", (0.0, 0.0), None),
        ("eval_change_low", (-0.5,), None),
    ],
)
def test_alarms(name: str, values: tuple[float, ...], alarm: str | None) -> None:
    assert watch.alarms(GrpoConfig(), log(name, *values)) == ([] if alarm is None else [alarm])
    assert alarm is None or alarm in watch.WORDS


def test_an_alarm_is_given_once() -> None:
    entries = log("kstar", 4, 4, 4, 1, 1, 1)
    (alarm,) = watch.alarms(GrpoConfig(), entries)
    entries[-1] |= {alarm: 1.0}
    assert watch.alarms(GrpoConfig(), [*entries, {"kstar": 1.0}]) == []
    fell = [*entries, {"eval_change_high": -0.1}, {"kstar": 1.0}, {"eval_change_high": -0.1}]
    assert watch.alarms(GrpoConfig(), fell) == ["alarm/held_out"]


def test_how_far_it_may_fall_is_a_wish() -> None:
    collapsed, short = log("kstar", 4, 4, 4, 2, 2, 2), log("completions/mean_length", 9, 9, 9, 8, 8, 8)
    assert watch.alarms(GrpoConfig(collapse_alarm=0.4), collapsed) == ["alarm/collapse"]
    assert watch.alarms(GrpoConfig(collapse_alarm=0.0), log("kstar", 4, 4, 4, 1, 1, 1)) == []
    assert watch.alarms(GrpoConfig(length_alarm=0.9), short) == ["alarm/shorter"]


def test_a_metric_that_was_not_known_once_is_no_fall() -> None:
    entries: list[dict[str, Any]] = [{"kstar": value} for value in (4.0, 4.0, 4.0)]
    entries += [{"kstar": None}, {"loss": 1.0}, *({"kstar": 3.9} for _ in range(3))]
    assert watch.alarms(GrpoConfig(), entries) == []


def test_the_change_is_paired_by_question() -> None:
    before, now = {0: 1.0, 1: 0.5, 2: 0.0, 9: 1.0}, {2: 0.0, 1: 0.0, 0: 0.5, 7: 1.0}
    found = watch.change(before, now)
    assert found is not None
    mean, low, high = found
    wide = 1.96 * np.std([-0.5, -0.5, 0.0], ddof=1) / math.sqrt(3)
    assert mean == pytest.approx(-1 / 3) and (high - mean, mean - low) == pytest.approx((wide, wide))
    assert watch.change({0: 1.0}, {0: 0.0}) is None
    assert watch.change({0: 1.0, 1: 1.0}, {0: 0.0, 1: 0.0}) == (-1.0, -1.0, -1.0)


def test_the_log_survives_as_json() -> None:
    found = watch.metrics(GrpoConfig(samples=4), [voted("AAB-")], 1, open_embedder("hashing"))
    assert json.loads(json.dumps(found)) == found
