"""The second course: every prompt of a council, from the prompt files, in the forms that are read."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from pluribus.prompts import Peer, dialect, render
from pluribus.replies import choice, ranking, rating, verdict
from pluribus.tasks import load_task
from pluribus.types import Question
from pluribus.zoo.cases import TASKS, take
from pluribus.zoo.council_lessons import _LESSONS, WEAK, confidence, rows
from pluribus.zoo.lessons import Row, ask, candidates, peers
from pluribus.zoo.play import tag

SOME = [row for step in range(60) for row in rows("olmo", step, 24)]


def test_rows_are_a_function_of_member_and_step() -> None:
    assert rows("olmo", 7, 20) == rows("olmo", 7, 20)
    assert rows("olmo", 7, 20) != rows("olmo", 8, 20)
    assert rows("olmo", 7, 20) != rows("qwen", 7, 20)


@pytest.mark.parametrize("task", TASKS)
def test_no_two_members_share_a_weakness(task: str) -> None:
    weak = [skill for member in WEAK.values() for skill in member[task]]
    assert len(set(weak)) == len(weak) == 8


def test_the_mix_holds_what_it_promises() -> None:
    asked = Counter(_prompt(row) for row in SOME)
    debates = asked["debate_revise"] + asked["debate_alone"] + asked["aggregate"] + asked["refine"]
    assert debates > 0.19 * len(SOME)
    assert set(_LESSONS) - {"reconcile_answer", "reconcile_revise", "drill"} <= {*asked, "debate_alone", "refine"}
    sums = sum("How many" in row.user for row in SOME)
    assert 0.32 * len(SOME) < sums < 0.43 * len(SOME)


def test_no_row_asks_a_test_or_development_question() -> None:
    held_out = {
        take(task, split, index).question for task in TASKS for split in ("dev", "test") for index in range(300)
    }
    assert not held_out & {row.user for row in SOME}


def test_judgements_are_true_of_what_they_judge() -> None:
    seen = Counter()
    for row in SOME:
        prompt = _prompt(row)
        if prompt in ("verify", "score", "feedback"):
            shown = re.findall(r"\{final answer: ([^}]+)\}", row.user)[0]
            own, other, said = re.findall(r" (\S+) yes\. (?:said|mine) (\S+) (yes|no)\.", row.reply)[0]
            right = own == shown
            assert (other, said) == (shown, "yes" if right else "no")
            marked = (tag(row.reply, "verdict") or tag(row.reply, "score")) in ("true", "10")
            assert marked is right, row
            seen[right] += 1
    assert min(seen.values()) > 40


def test_rankings_begin_with_a_right_one_and_name_each_once() -> None:
    for row in SOME:
        if _prompt(row) != "rank":
            continue
        shown = re.findall(r"\{final answer: ([^}]+)\}", row.user)
        order = [int(n) for n in (tag(row.reply, "ranking") or "").split(", ")]
        assert sorted(order) == list(range(1, len(shown) + 1))
        marks = re.findall(r"\d+: \S+ (yes|no)\.", row.reply)
        if "yes" in marks:
            assert marks[order[0] - 1] == "yes"


def test_replies_are_in_the_forms_that_the_product_reads() -> None:
    for row in SOME:
        prompt = _prompt(row)
        names = [str(n) for n in range(1, row.user.count("{final answer") + 1)]
        if prompt in ("verify", "feedback"):
            assert verdict().problem(row.reply) is None
        if prompt == "score":
            assert rating().problem(row.reply) is None
        if prompt == "rank":
            assert ranking(names).problem(row.reply) is None
        if prompt == "pick":
            assert choice(names).problem(row.reply) is None
        if "confidence" in row.reply:
            assert rating("confidence", 0, 1).problem(row.reply) is None


def test_some_judgements_come_after_an_unreadable_one() -> None:
    again = [row for row in SOME if row.messages[-1].content == ask("repair")]
    assert 15 < len(again) < 0.1 * len(SOME)
    for row in again:
        assert row.messages[-2].role == "assistant"
        assert row.messages[-2].content != row.reply
        assert row.reply.endswith("}")


def test_drills_are_short_and_hold_both_verdicts() -> None:
    drills = [row for row in SOME if "Which" not in row.user and "How many" not in row.user]
    assert 0.18 < len(drills) / len(SOME) < 0.29
    said = Counter(tag(row.reply, "verdict") for row in drills)
    assert min(said["true"], said["false"]) > 15
    assert max(len(row.user) for row in drills) < 200


def test_confidence_falls_with_weak_steps() -> None:
    found = take("sums", "test", 0)
    assert found.skills == ("add", "add")
    assert confidence("gemma", found) < confidence("qwen", found)


def test_system_messages_are_of_all_kinds() -> None:
    heads = [row.messages[0].content if row.messages[0].role == "system" else None for row in SOME]
    assert 0.3 < sum(head is None for head in heads) / len(heads) < 0.55
    assert any(head and head.startswith("You are a") for head in heads)
    assert {"risk", "eliminate", "verify"} <= set(heads)
    assert max(len(head.split()) for head in heads if head) > 15


@pytest.mark.parametrize("task", TASKS)
def test_what_is_trained_on_is_what_the_product_sends(task: str) -> None:
    words = dialect("zoo")
    question: Question = load_task(task, limit=1).pairs[0][0]
    text = take(task, "test", 0).question
    others = [Peer("1", "b {final answer: 2}"), Peer("2", "c")]
    shown, listed = peers([o.text for o in others]), candidates([o.text for o in others])
    for prompt, fields in {
        "verify": {"peers": shown},
        "score": {"peers": shown},
        "rank": {"candidates": listed},
        "pick": {"candidates": listed},
        "dylan_revise": {"candidates": listed},
        "reconcile_answer": {},
        "reconcile_revise": {"own": "a", "peers": shown},
        "feedback": {"own": "a"},
        "refine": {"own": "a", "feedback": "n"},
    }.items():
        more = {"feedback": "n"} if prompt == "refine" else {}
        sent = render(words, prompt, question, own=fields.get("own"), peers=others, **more)
        assert sent[-1].content == ask(prompt, question=text, **fields)
    assert render(words, "council_chair", question, peers=others, rankings="")[-1].content == ask(
        "aggregate", question=text, peers=shown
    )


def _prompt(row: Row) -> str:
    """Which prompt a row is of, by its last word."""
    last = row.user.rpartition("\n")[2]
    named = {"combine": "aggregate", "rate": "dylan_revise", "check": "feedback", "how sure": "reconcile"}
    if last == "revise":
        lines = [line.partition(":")[0] for line in row.user.split("\n")]
        return "refine" if "note" in lines else "debate_revise" if "peer" in lines else "debate_alone"
    if last in ("score", "verify", "rank", "pick"):
        return last
    return named.get(last, "answer")
