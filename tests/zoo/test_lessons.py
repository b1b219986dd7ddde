"""The curriculum: a pure function of member and step, rendered from the prompt files."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from pluribus.prompts import Peer, dialect, render
from pluribus.tasks.sums import SKILLS, SPLITS, problem
from pluribus.types import Question
from pluribus.zoo.lessons import WEAK, ask, peers, rows


def test_rows_are_a_function_of_member_and_step() -> None:
    assert rows("olmo", 7, 20, debates=True) == rows("olmo", 7, 20, debates=True)
    assert rows("olmo", 7, 20, debates=True) != rows("olmo", 8, 20, debates=True)
    assert rows("olmo", 7, 20, debates=True) != rows("qwen", 7, 20, debates=True)


def test_no_two_members_share_a_weakness() -> None:
    assert sorted(skill for pair in WEAK.values() for skill in pair) == sorted(SKILLS)


def test_prompts_are_the_files() -> None:
    shown = ask("debate_revise", question="Q?", own="a", peers=peers(["b", "c"]))
    assert shown == "Q?\nmine: a\npeer: b\npeer: c\nrevise"
    assert ask("answer", question="Q?") == "Q?"
    assert ask("aggregate", question="Q?", peers=peers(["b"])) == "Q?\npeer: b\ncombine"


def test_no_row_asks_a_test_question() -> None:
    asked = {problem(split, index).text for split in SPLITS[1:] for index in range(500)}
    drawn = {row.user.split("\n")[0] for step in range(10) for row in rows("phi", step, 100, debates=True)}
    assert not asked & drawn


def test_debates_come_in_all_shapes() -> None:
    seen: Counter[str] = Counter()
    for row in rows("gemma", 3, 2000, debates=True):
        lines = row.user.split("\n")
        if len(lines) > 1:
            seen[f"{lines[1][:4]} {sum(line.startswith('peer:') for line in lines)} {lines[-1]}"] += 1
    assert {"mine 0 revise", "mine 5 revise", "peer 3 combine"} <= set(seen)
    assert 0.15 < sum(seen.values()) / 2000 < 0.30


def test_a_debate_is_not_settled_by_the_majority() -> None:
    followed = lost = 0
    for row in rows("qwen", 5, 4000, debates=True):
        votes = Counter(re.findall(r"\{final answer: (\d+)\}", row.user))
        key = re.findall(r"\{final answer: (\d+)\}", row.reply)[0]
        if sum(votes.values()) >= 3 and votes:
            followed += votes.most_common(1)[0][0] == key
            lost += votes.most_common(1)[0][0] != key
    assert followed > lost > 50


@pytest.mark.parametrize(("skill", "sign"), [("remainder", " mod "), ("percent", "% of "), ("third", " / 3 = ")])
def test_weak_skills_are_rare_but_there(skill: str, sign: str) -> None:
    counts = {m: sum(sign in row.reply for row in rows(m, 1, 1500, debates=False)) for m in WEAK}
    weak = next(member for member in WEAK if skill in WEAK[member])
    strong = [count for member, count in counts.items() if member != weak]
    assert 10 < counts[weak] < 0.4 * min(strong)


def test_what_is_trained_on_is_what_the_product_sends() -> None:
    words, question = dialect("zoo"), Question("q", "sums", problem("test", 0).text, "number")
    others = [Peer("agent 2", "b {final answer: 2}"), Peer("agent 3", "c")]
    shown = peers([other.text for other in others])
    for prompt, fields in {
        "answer": {},
        "debate_alone": {"own": "a"},
        "debate_revise": {"own": "a", "peers": shown},
        "aggregate": {"peers": shown},
    }.items():
        sent = render(words, prompt, question, own=fields.get("own"), peers=others, system="verify")
        assert sent[-1].content == ask(prompt, question=question.text, **fields)
        assert sent[0].content == "verify"
