"""Preference pairs: where they come from, what drops them, what they are worth, and the file that trainers read."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pluribus.consensus import pairs as forming
from pluribus.errors import ConfigError, DataError
from pluribus.judges import Candidate
from pluribus.prefer import (
    COPY,
    ELSEWHERE,
    OPTIONAL,
    SKIPPED,
    TIE,
    Preferred,
    Replies,
    accuracy,
    held_out,
    learn_weights,
    preferences,
    quartiles,
    read_rows,
    rows,
)
from pluribus.types import Choice, Label, Preference, Question, Reward, Side, Verdict

Write = Callable[[list[Any]], Path]


def ask(*texts: str, id: str = "q") -> tuple[Question, list[Candidate]]:
    """One question whose replies are turns 0, 1, … of an attempt of its name."""
    return Question(id, "t", f"What is {id}?", "number"), [Candidate(id, turn, text) for turn, text in enumerate(texts)]


def reward(
    turn: int, value: float | None, disagreement: float | None = 0.0, id: str = "q", **scores: float | None
) -> Reward:
    return Reward(id, turn, scores or {"judge": value}, {}, value, disagreement, "agreed")


def label(turn: int, correct: bool | None, id: str = "q") -> Label:
    return Label(id, turn, correct, checker="key")


def said(choice: Choice, first: int = 0, second: int = 1, by: str = "ada", at: float = 0.0, id: str = "q") -> Verdict:
    pair = f"{id} {min(first, second)} {max(first, second)}"
    return Verdict(pair, id, (id, first), (id, second), choice, by, at)


def texts(found: Preferred) -> list[tuple[str, str, str]]:
    return [(pair.chosen.text, pair.rejected.text, pair.by) for pair in found.pairs]


# --- sources ---------------------------------------------------------------------------------------------------------


def test_by_label_right_wins_over_wrong_whatever_the_rewards_say() -> None:
    found = preferences(
        [ask("right", "wrong")], [reward(0, 0.1, 0.02), reward(1, 0.9, 0.04)], [label(0, True), label(1, False)],
        by="label",
    )  # fmt: skip
    (pair,) = found.pairs
    assert texts(found) == [("right", "wrong", "label")]
    assert pair.margin == pytest.approx(-0.8) and pair.disagreement == pytest.approx(0.03)
    assert pair.chosen == Side("q", 0, "right", 0.1, True) and pair.rejected == Side("q", 1, "wrong", 0.9, False)
    assert not found.dropped


def test_by_reward_the_larger_margin_is_taken() -> None:
    rewards = [reward(0, 0.5), reward(1, 0.9), reward(2, 0.2)]
    found = preferences([ask("a", "b", "c")], rewards, by="reward")
    assert texts(found) == [("b", "c", "reward")]
    assert found.pairs[0].chosen.correct is None
    every = preferences([ask("a", "b", "c")], rewards, by="reward", per_question=0, reuse=True)
    assert texts(every) == [("b", "c", "reward"), ("b", "a", "reward"), ("a", "c", "reward")]


def test_both_takes_only_what_label_and_reward_agree_on() -> None:
    asked = [ask("right", "wrong", id="agree"), ask("right", "wrong", id="differ")]
    labels = [label(turn, not turn, id) for id in ("agree", "differ") for turn in (0, 1)]
    rewards = [
        reward(0, 0.9, id="agree"),
        reward(1, 0.1, id="agree"),
        reward(0, 0.1, id="differ"),
        reward(1, 0.9, id="differ"),
    ]
    found = preferences(asked, rewards, labels, by="both")
    assert [(pair.question_id, pair.by) for pair in found.pairs] == [("agree", "label")]
    assert found.dropped == {forming.REVERSED: 1}


def test_one_label_that_decides_is_enough_and_steps_are_left_aside() -> None:
    labels = [label(0, None), label(0, True), Label("q", 1, True, step=0), label(1, False)]
    assert texts(preferences([ask("a", "b")], (), labels, by="label")) == [("a", "b", "label")]


def test_pairs_are_within_a_question_in_the_order_asked() -> None:
    asked = [ask("a", "b", id="z"), ask("c", "d", id="y")]
    labels = [label(0, False, "z"), label(1, True, "z"), label(0, True, "y"), label(1, False, "y")]
    found = preferences(asked, (), labels, by="label")
    assert [(p.question_id, p.chosen.text) for p in found.pairs] == [("z", "b"), ("y", "c")]
    assert all(p.chosen.attempt_id == p.rejected.attempt_id == p.question_id for p in found.pairs)


# --- people ----------------------------------------------------------------------------------------------------------


def test_a_person_wins_over_reward_and_label_and_is_never_filtered() -> None:
    found = preferences(
        [ask("a", "b")], [reward(0, 0.9, 0.2), reward(1, 0.1, 0.2)], [label(0, True), label(1, False)],
        [said("second")], by="both", margin=0.5, max_disagreement=0.01,
    )  # fmt: skip
    assert texts(found) == [("b", "a", "human")]
    assert found.pairs[0].margin == pytest.approx(-0.8)
    assert not found.dropped


def test_the_side_a_reply_was_shown_on_does_not_matter() -> None:
    left = preferences([ask("a", "b")], (), (), [said("first", 1, 0)], by="human")
    right = preferences([ask("a", "b")], (), (), [said("second", 0, 1)], by="human")
    assert texts(left) == texts(right) == [("b", "a", "human")]


@pytest.mark.parametrize(
    ("verdicts", "expected", "dropped"),
    [
        ([said("tie")], [], {TIE: 1}),
        ([said("skip")], [], {SKIPPED: 1}),
        ([said("first", by="ada"), said("second", by="bob")], [], {TIE: 1}),
        ([said("first", by="ada"), said("second", by="bob"), said("second", by="cy")], [("b", "a", "human")], {}),
        ([said("first", by="ada"), said("skip", by="bob")], [("a", "b", "human")], {}),
        ([said("first", at=1), said("second", at=2)], [("b", "a", "human")], {}),
        ([said("second", at=1), said("undo", at=2)], [("a", "b", "reward")], {}),
        ([said("first", 0, 7)], [("a", "b", "reward")], {ELSEWHERE: 1}),
    ],
)  # fmt: skip
def test_what_people_said(
    verdicts: list[Verdict], expected: list[tuple[str, str, str]], dropped: dict[str, int]
) -> None:
    found = preferences([ask("a", "b")], [reward(0, 0.9), reward(1, 0.1)], (), verdicts, by="reward")
    assert (texts(found), found.dropped) == (expected, dropped)


def test_a_pair_people_called_a_tie_leaves_room_for_the_next() -> None:
    rewards = [reward(0, 0.9), reward(1, 0.1), reward(2, 0.5)]
    found = preferences([ask("a", "b", "c")], rewards, (), [said("tie")], by="reward")
    assert texts(found) in ([("a", "c", "reward")], [("c", "b", "reward")])
    assert found.dropped[TIE] == 1 and forming.JUDGED not in found.dropped


def test_what_people_said_of_a_text_holds_for_its_copies() -> None:
    asked, rewards = [ask("a", "b", "a")], [reward(0, 0.9), reward(1, 0.1), reward(2, 0.9)]
    for verdict in (said("second", 2, 1), said("tie", 2, 1)):
        for reuse in (False, True):
            found = preferences(asked, rewards, (), [verdict], by="reward", per_question=0, reuse=reuse)
            assert texts(found) == ([("b", "a", "human")] if verdict.choice == "second" else [])


def test_peoples_pairs_count_among_those_of_a_question_and_are_never_too_many() -> None:
    rewards = [reward(turn, value) for turn, value in enumerate((0.9, 0.7, 0.5, 0.3, 0.1))]
    asked, verdicts = [ask(*"abcde")], [said("second", 0, 1), said("second", 0, 2)]
    alone = preferences(asked, rewards, (), verdicts, by="reward", per_question=1)
    assert texts(alone) == [("b", "a", "human"), ("c", "a", "human")]
    more = preferences(asked, rewards, (), verdicts, by="reward", per_question=3)
    assert texts(more) == [*texts(alone), ("d", "e", "reward")]
    again = preferences(asked, rewards, (), verdicts, by="reward", per_question=3, reuse=True)
    assert texts(again) == [*texts(alone), ("a", "e", "reward")]
    every = preferences(asked, rewards, (), verdicts, by="reward", per_question=0, reuse=True)
    assert len(every.pairs) == 10 and len({frozenset(pair[:2]) for pair in texts(every)}) == 10


def test_by_human_takes_nothing_else() -> None:
    asked = [ask("a", "b", id="q"), ask("c", "d", id="r")]
    rewards = [reward(turn, 1.0 - turn, id=id) for id in "qr" for turn in (0, 1)]
    assert texts(preferences(asked, rewards, (), [said("second")], by="human")) == [("b", "a", "human")]


# --- what drops a pair -----------------------------------------------------------------------------------------------

GOOD, BAD = label(0, True), label(1, False)
BY_REWARD: dict[str, Any] = {"by": "reward"}


@pytest.mark.parametrize(
    ("reason", "rewards", "labels", "wishes"),
    [
        (forming.NO_LABEL, [], [GOOD], {"by": "label"}),
        (forming.NO_REWARD, [reward(0, 0.9), reward(1, None, None)], [], {"by": "reward"}),
        (forming.NO_REWARD, [reward(0, 0.9)], [], {"by": "reward"}),
        (forming.LONELY, [], [GOOD], {"by": "label"}),
        (forming.ONE_SIDED, [], [GOOD, label(1, True)], {"by": "label"}),
        (forming.EQUAL, [reward(0, 0.5), reward(1, 0.5)], [], {"by": "reward"}),
        (forming.REVERSED, [reward(0, 0.2), reward(1, 0.5)], [GOOD, BAD], {"by": "both"}),
        (forming.SMALL_MARGIN, [reward(0, 0.6), reward(1, 0.5)], [], {"by": "reward", "margin": 0.2}),
        (forming.UNKNOWN_MARGIN, [reward(0, 0.6)], [GOOD, BAD], {"by": "label", "margin": 0.2}),
        (forming.DISPUTED, [reward(0, 0.9, 0.01), reward(1, 0.1, 0.05)], [], {**BY_REWARD, "max_disagreement": 0.02}),
        (
            forming.UNKNOWN_DISAGREEMENT,
            [reward(0, 0.9, None), reward(1, 0.1, 0.0)], [], {**BY_REWARD, "max_disagreement": 0.02},
        ),
    ],
)  # fmt: skip
def test_every_reason(reason: str, rewards: list[Reward], labels: list[Label], wishes: dict[str, Any]) -> None:
    found = preferences([ask("a", "b")], rewards, labels, **wishes)
    assert (len(found.pairs), found.dropped[reason]) == (0, 1)
    assert found.length is None


def test_pairs_beyond_the_number_and_replies_in_use() -> None:
    rewards = [reward(turn, value) for turn, value in enumerate((0.9, 0.7, 0.5, 0.3))]
    one = preferences([ask(*"abcd")], rewards, by="reward", reuse=True)
    assert (len(one.pairs), dict(one.dropped)) == (1, {forming.BEYOND: 5})
    disjoint = preferences([ask(*"abcd")], rewards, by="reward", per_question=0)
    assert (len(disjoint.pairs), dict(disjoint.dropped)) == (2, {forming.REUSED: 4})


def test_disagreement_at_the_limit_is_kept_and_is_the_mean_of_both() -> None:
    rewards = [reward(0, 0.9, 0.04), reward(1, 0.1, 0.0)]
    assert len(preferences([ask("a", "b")], rewards, by="reward", max_disagreement=0.02).pairs) == 1
    assert not preferences([ask("a", "b")], rewards, by="reward", max_disagreement=0.019).pairs


def test_the_same_text_never_stands_against_itself() -> None:
    rewards = [reward(0, 0.5), reward(1, 0.9), reward(2, 0.1)]
    found = preferences([ask("same", "same", "other")], rewards, by="reward")
    assert texts(found) == [("same", "other", "reward")] and found.pairs[0].chosen.turn == 0
    assert found.dropped == {COPY: 1}
    person = preferences([ask("same", "same")], rewards, (), [said("first")], by="human")
    assert (person.pairs, person.dropped) == ((), {ELSEWHERE: 1})


def test_near_copies_are_left_out_from_the_share_that_is_asked_for() -> None:
    long = " ".join(f"word{i}" for i in range(40))
    asked = [ask(long, f"{long} more", "something else entirely, with other words")]
    rewards = [reward(0, 0.5), reward(1, 0.9), reward(2, 0.1)]
    assert texts(preferences(asked, rewards, by="reward"))[0][0] == f"{long} more"
    near = preferences(asked, rewards, by="reward", similar=0.9)
    assert texts(near)[0][0] == long and near.dropped == {COPY: 1}
    assert texts(preferences(asked, rewards, by="reward", similar=1.0))[0][0] == f"{long} more"


def test_no_questions_at_all() -> None:
    found = preferences([], by="reward")
    assert (found.pairs, found.dropped, found.length) == ((), {}, None)


# --- what pairs are worth --------------------------------------------------------------------------------------------


def test_length_bias_is_in_words() -> None:
    found = preferences([ask("one two three", "one")], [reward(0, 0.9), reward(1, 0.1)], by="reward").length
    assert found is not None and (found.share_longer, found.difference, found.n) == (1.0, 2.0, 1)


def made(id: str, chosen: int, rejected: int) -> Preference:
    return Preference(id, Side(id, chosen, "a"), Side(id, rejected, "b"), "reward")


def test_accuracy_counts_right_reversed_same_and_unknown() -> None:
    right = {("q", 0): True, ("q", 1): False, ("q", 2): True, ("q", 3): None}
    found = accuracy([made("q", 0, 1), made("q", 1, 2), made("q", 0, 2), made("q", 0, 3), made("q", 0, 9)], right)
    assert (found.n, found.unknown) == (3, 2)
    assert [span[0] for span in (found.right, found.reversed, found.same) if span] == [pytest.approx(1 / 3)] * 3
    assert accuracy([made("q", 0, 3)], right).right is None


def test_intervals_see_that_pairs_of_one_question_are_no_strangers() -> None:
    right: dict[tuple[str, int], bool | None] = {}
    for i in range(20):
        right |= {(f"q{i}", turn): (turn % 2 == 0) == (i < 10) for turn in range(4)}
    alone = accuracy([made(f"q{i}", 0, 1) for i in range(20)], right).right
    several = accuracy([made(f"q{i}", a, b) for i in range(20) for a in (0, 2) for b in (1, 3)], right).right
    assert alone is not None and several is not None
    assert alone[0] == several[0] == 0.5
    # four pairs a question that stand or fall together tell no more than one
    assert several[2] - several[1] == pytest.approx(alone[2] - alone[1], abs=0.05)


def test_quartiles_of_what_is_known() -> None:
    assert quartiles([None]) is None
    assert quartiles(iter([0.0, 1.0, None])) == (0.0, 0.25, 0.5, 0.75, 1.0)


# --- weights ---------------------------------------------------------------------------------------------------------


def council(questions: int = 30) -> tuple[Replies, list[Reward], list[Label]]:
    """A judge that is right about every pair, one that is wrong on a third, and one that always errs."""
    asked, rewards, labels = [], [], []
    for i in range(questions):
        id = f"q{i}"
        asked.append(ask("right", "wrong", id=id))
        labels += [label(0, True, id), label(1, False, id)]
        for turn in (0, 1):
            fair = 1.0 - turn if i % 3 else float(turn)
            rewards.append(reward(turn, 0.5, id=id, good=1.0 - turn, fair=fair, bad=float(turn)))
    return asked, rewards, labels


def test_weights_from_labels_follow_who_orders_pairs_right() -> None:
    asked, rewards, labels = council()
    found = learn_weights("labels", asked, rewards, labels)
    assert list(found.weights) == ["good", "fair", "bad"] and found.pairs == 30
    assert found.weights["good"] > found.weights["fair"] > found.weights["bad"] == 0.0
    assert found.accuracy["good"] > 0.9 > 0.7 > found.accuracy["fair"] > 0.6


def test_weights_from_people_follow_people_not_labels() -> None:
    asked, rewards, labels = council()
    verdicts = [said("second", id=question.id) for question, _ in asked]
    found = learn_weights("human", asked, rewards, labels, verdicts)
    assert found.weights["bad"] > found.weights["good"] == 0.0


def test_weights_from_agreement_need_no_labels() -> None:
    asked, rewards, _ = council()
    found = learn_weights("agreement", asked, rewards)
    assert found.pairs == 30 and any(found.weights.values())


def test_weights_are_learned_from_many_pairs_by_a_draw() -> None:
    many = 250
    asked = [ask(*(f"reply {i}" for i in range(many)))]
    rewards = [reward(i, 0.5, a=i / many, b=i / many) for i in range(many)]
    found = learn_weights("agreement", asked, rewards, seed=1)
    assert found.pairs == 20_000 < many * (many - 1) / 2
    assert found == learn_weights("agreement", asked, rewards, seed=1)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("labels", "--weights labels: no question has a right and a wrong reply by label; take --weights config"),
        ("human", "--weights human: people have decided no pair of this run"),
        ("agreement", "--weights agreement: no question has two different replies"),
    ],
)
def test_nothing_to_learn_weights_from(how: Any, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        learn_weights(how, [ask("a")], [reward(0, 0.5)])


def test_judges_that_are_no_better_than_chance_get_no_weights() -> None:
    asked, _, labels = council()
    rewards = [reward(turn, 0.5, id=question.id, bad=float(turn)) for question, _ in asked for turn in (0, 1)]
    with pytest.raises(ConfigError, match="on 30 pairs no judge is seen to be better than chance"):
        learn_weights("labels", asked, rewards, labels)
    with pytest.raises(ConfigError, match="the run has no rewards"):
        learn_weights("labels", asked, [], labels)


# --- a part held out -------------------------------------------------------------------------------------------------


def test_a_share_of_the_questions_is_held_out_by_their_words() -> None:
    questions = [Question(f"q{i}", "t", f"What is {i // 2}?", "number") for i in range(40)]
    held = held_out(questions, 0.25, seed=3)
    assert len(held) == 10 and held == held_out(reversed(questions), 0.25, seed=3)
    assert held != held_out(questions, 0.25, seed=4)
    assert all((f"q{i}" in held) == (f"q{i + 1}" in held) for i in range(0, 40, 2))
    spaced = [Question("other", "t", "what  IS 3?", "number"), *questions]
    assert ("other" in held_out(spaced, 0.25, seed=3)) == ("q6" in held_out(spaced, 0.25, seed=3))


@pytest.mark.parametrize("share", [0.0, 1.0, 0.01, 0.99, -1.0, math.nan])
def test_a_share_that_leaves_a_part_empty(share: float) -> None:
    with pytest.raises(ConfigError, match="of 5 questions leaves one part empty"):
        held_out([Question(str(i), "t", str(i), "number") for i in range(5)], share)


# --- the file --------------------------------------------------------------------------------------------------------


def lines_of(
    asked: Replies, rewards: Sequence[Reward], labels: Sequence[Label] = (), words: str = "standard", **wishes: Any
) -> list[dict[str, Any]]:
    found = preferences(asked, rewards, labels, **{"by": "reward", **wishes})
    questions = {question.id: question for question, _ in asked}
    models = ("zoo/qwen", "openai/gpt-4o")
    return rows(
        found.pairs,
        questions,
        rewards,
        run="r",
        dialect_of=lambda side: words,
        model_of=lambda side: models[side.turn % 2],
    )


TWO = [reward(0, 0.9, 0.01, a=9.0, b=None), reward(1, 0.4, 0.02, a=1.0, b=0.25)]


@pytest.fixture
def line() -> dict[str, Any]:
    return lines_of([ask("good", "bad")], TWO, [label(0, True), label(1, False)])[0]


def test_a_row_has_prompt_replies_numbers_and_where_they_came_from(line: dict[str, Any]) -> None:
    prompt = line.pop("prompt")
    assert [message["role"] for message in prompt] == ["user"] and prompt[0]["content"].startswith("What is q?")
    assert line.pop("margin") == pytest.approx(0.5) and line.pop("disagreement") == pytest.approx(0.015)
    assert line == {
        "chosen": [{"role": "assistant", "content": "good"}],
        "rejected": [{"role": "assistant", "content": "bad"}],
        "chosen_reward": 0.9, "rejected_reward": 0.4, "by": "reward",
        "chosen_scores": [{"judge": "a", "score": 9.0}],
        "rejected_scores": [{"judge": "a", "score": 1.0}, {"judge": "b", "score": 0.25}],
        "question_id": "q", "task": "t", "run": "r",
        "chosen_attempt": "q", "chosen_turn": 0, "rejected_attempt": "q", "rejected_turn": 1,
        "chosen_correct": True, "rejected_correct": False,
        "chosen_model": "zoo/qwen", "rejected_model": "openai/gpt-4o",
    }  # fmt: skip


def test_the_prompt_is_in_the_dialect_of_the_chosen_replys_seat() -> None:
    (zoo,) = lines_of([ask("good", "bad")], TWO, words="zoo")
    assert zoo["prompt"] == [{"role": "user", "content": "What is q?"}]


def test_a_column_stands_in_every_row_or_in_none() -> None:
    asked = [ask("a", "b", id="q"), ask("c", "d", id="r")]
    labels = [label(turn, not turn, id) for id in "qr" for turn in (0, 1)]
    one, two = lines_of(asked, TWO, labels, by="label")
    assert one.keys() == two.keys()
    assert not {"chosen_reward", "rejected_reward", "margin", "disagreement"} & one.keys()
    assert one["chosen_correct"] is True and one["chosen_scores"] and two["chosen_scores"] == []
    bare = lines_of(asked, [], labels, by="label")[0]
    assert not {"chosen_scores", "rejected_scores", *OPTIONAL[:4]} & bare.keys()


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(found: list[Any]) -> Path:
        path = tmp_path / "pairs.jsonl"
        path.write_text("".join(one if isinstance(one, str) else json.dumps(one) + "\n" for one in found), "utf-8")
        return path

    return written


def test_what_is_written_reads_back(line: dict[str, Any], write: Write, tmp_path: Path) -> None:
    path = write([line, "\n", {**line, "question_id": "other"}])
    assert [row["question_id"] for row in read_rows(path)] == ["q", "other"]
    packed = tmp_path / "pairs.jsonl.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_rows(packed) == read_rows(path)
    least = {name: line[name] for name in ("prompt", "chosen", "rejected")}
    assert read_rows(write([least])) == [least]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("{oops\n", "pairs.jsonl:2: not JSON: Expecting property name"),
        ("[1, 2]\n", "pairs.jsonl:2: not an object but list; expected one preference pair a line"),
        ("[" * 100_000 + "\n", "pairs.jsonl:2: not JSON"),
        ({"prompt": ...}, "pairs.jsonl:2: prompt is missing; expected a list of messages that ends before the reply"),
        ({"chosen": ...}, "pairs.jsonl:2: chosen is missing; expected a list of assistant messages"),
        ({"prompt": "What is q?"}, 'pairs.jsonl:2: prompt is "What is q?"; expected a list of messages'),
        ({"prompt": []}, "prompt is []; expected"),
        ({"prompt": [{"role": "assistant", "content": "x"}]}, "expected a list of messages that ends before the reply"),
        ({"prompt": [{"role": "robot", "content": "x"}]}, 'prompt is [{"role": "robot"'),
        ({"chosen": "good"}, 'chosen is "good"; expected a list of assistant messages: [{"role": "assistant"'),
        ({"chosen": [{"role": "user", "content": "x"}]}, "expected a list of assistant messages"),
        ({"rejected": [{"role": "assistant", "content": None}]}, "rejected is"),
        ({"rejected": [{"role": "assistant", "content": "good"}]}, "chosen and rejected are the same; expected two"),
        ({"margin": None}, "margin is null; expected a number"),
        ({"margin": "large"}, 'margin is "large"; expected a number'),
        ({"margin": True}, "margin is true; expected a number"),
        ({"disagreement": math.nan}, "disagreement is NaN; expected a number"),
        ({"by": "dice"}, 'by is "dice"; expected label, reward or human'),
        ({"chosen_turn": -1}, "chosen_turn is -1; expected a whole number from 0 on"),
        ({"question_id": 7}, "question_id is 7; expected a text"),
        ({"chosen_correct": 1}, "chosen_correct is 1; expected true or false"),
        ({"chosen_scores": [{"judge": "a"}]}, 'expected a list of {"judge": text, "score": number}'),
        ({"chosen_scores": [{"judge": "a", "score": None}]}, "chosen_scores is"),
        ({"own": None}, "own is null; expected a value; a column stands in every row or in none"),
        ({"run": ...}, "run is missing; line 1 has it; a column stands in every row or in none"),
        ({"own": 1}, "own is there; line 1 has none; a column stands in every row or in none"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_pair(line: dict[str, Any], write: Write, change: Any, expected: str) -> None:
    if isinstance(change, dict):
        changed = {**line, **change}
        change = {name: value for name, value in changed.items() if value is not ...}
    with pytest.raises(DataError) as problem:
        read_rows(write([line, change]))
    assert expected in str(problem.value) and "pairs.jsonl:2" in str(problem.value)
    assert len(str(problem.value)) < 400


@pytest.mark.parametrize("content", ["", "\n \n"])
def test_a_file_without_pairs(write: Write, content: str) -> None:
    with pytest.raises(DataError, match="no preference pair is in it; write one with: pluribus prefer RUN --out FILE"):
        read_rows(write([content]))


def test_a_file_that_can_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nope\.jsonl: can not be read: No such file"):
        read_rows(tmp_path / "nope.jsonl")
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(b'{"prompt": 1}\n' * 1000)[:40])
    with pytest.raises(DataError, match=r"cut\.jsonl\.gz"):
        read_rows(cut)
    binary = tmp_path / "binary.jsonl"
    binary.write_bytes(b"\xff\xfe\x00\n")
    with pytest.raises(DataError, match=r"binary\.jsonl:1: not JSON"):
        read_rows(binary)


# --- trainers --------------------------------------------------------------------------------------------------------


@pytest.fixture
def sums(write: Write) -> Path:
    """Eight pairs as a run of the embedded models would give them; some replies no judge gave a score."""
    asked, rewards, labels = [], [], []
    for i in range(8):
        id = f"sums/{i}"
        asked.append(ask(f"{i} + 1 = {i + 1}. {{final answer: {i + 1}}}", f"{{final answer: {i}}}", id=id))
        labels += [label(0, True, id), label(1, False, id)]
        score = None if i == 0 else 0.9
        rewards += [reward(0, score, None, id=id, a=score), reward(1, 0.2, 0.01, id=id, a=0.2)]
    return write(lines_of(asked, rewards, labels, words="zoo", by="label"))


def test_datasets_reads_the_file_without_a_null(sums: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="training data: pip install 'pluribus[train]'")
    found = datasets.load_dataset("json", data_files=str(sums), split="train", cache_dir=str(tmp_path / "cache"))
    assert len(found) == 8 and found.column_names == list(read_rows(sums)[0])
    for row, stored in zip(found, read_rows(sums), strict=True):
        assert row == stored
        assert all(value is not None for value in row.values())
    assert found.features["chosen_scores"].feature["score"].dtype == "float64"


def test_scores_that_come_late_in_a_long_file_are_read(line: dict[str, Any], write: Write, tmp_path: Path) -> None:
    """A loader reads blocks: columns that are empty lists in the first ones must not settle the type."""
    datasets = pytest.importorskip("datasets", reason="training data: pip install 'pluribus[train]'")
    long = [{"role": "assistant", "content": "word " * 2000}]
    empty = {**line, "rejected": long, "chosen_scores": [], "rejected_scores": []}
    path = write([empty] * 100 + [{**line, "rejected": long}])
    found = datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))
    assert found[0]["chosen_scores"] == [] and found[100]["chosen_scores"] == [{"judge": "a", "score": 9.0}]


# TRL 1.16 uses the old names that transformers 5.20 gave new ones
@pytest.mark.filterwarnings("ignore:`.*gradient_checkpointing.*` is deprecated:FutureWarning")
def test_one_step_of_dpo_on_the_file_as_it_is(sums: Path, tmp_path: Path) -> None:
    trl = pytest.importorskip("trl", reason="training: pip install 'pluribus[train]'")
    datasets = pytest.importorskip("datasets")
    from pluribus.zoo import folder

    found = datasets.load_dataset("json", data_files=str(sums), split="train", cache_dir=str(tmp_path / "cache"))
    config = trl.DPOConfig(
        output_dir=str(tmp_path / "out"), max_steps=1, per_device_train_batch_size=4, report_to="none", use_cpu=True,
        save_strategy="no", logging_steps=1, bf16=False, disable_tqdm=True,
    )  # fmt: skip
    trainer = trl.DPOTrainer(model=str(folder("qwen")), args=config, train_dataset=found)
    before = {name: value.clone() for name, value in trainer.model.named_parameters()}
    done = trainer.train()
    assert done.global_step == 1 and done.training_loss == pytest.approx(math.log(2), abs=1e-3)
    assert any(not before[name].equal(value) for name, value in trainer.model.named_parameters())


@pytest.mark.filterwarnings("ignore:`.*gradient_checkpointing.*` is deprecated:FutureWarning")
def test_one_step_of_a_reward_model_adds_the_margin_to_its_loss(
    line: dict[str, Any], write: Write, tmp_path: Path
) -> None:
    """TRL takes a column of this name into the loss: the documentation says so, and how to leave it out."""
    trl = pytest.importorskip("trl", reason="training: pip install 'pluribus[train]'")
    datasets = pytest.importorskip("datasets")
    from pluribus.zoo import folder

    path = write([{**line, "margin": 50.0}] * 4)
    found = datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))
    losses = []
    for rows_of in (found, found.remove_columns("margin")):
        config = trl.RewardConfig(
            output_dir=str(tmp_path / "out"), max_steps=1, per_device_train_batch_size=4, report_to="none",
            use_cpu=True, save_strategy="no", bf16=False, disable_tqdm=True, seed=0,
        )  # fmt: skip
        done = trl.RewardTrainer(model=str(folder("qwen")), args=config, train_dataset=rows_of).train()
        assert done.global_step == 1
        losses.append(done.training_loss)
    assert losses[0] - losses[1] > 40
