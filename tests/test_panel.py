"""A run as a table: who said what in which round, what was read out of it, what stands."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pluribus.codec import plain
from pluribus.config import make_config
from pluribus.errors import UnknownName
from pluribus.panel import Panel, answers, credits, right_Q_A, standing
from pluribus.run import panel, prepare, run
from pluribus.store import Store

QUESTIONS = [
    {"id": "q1", "question": "How much is 1 + 1?", "answer": "2", "kind": "number"},
    {"id": "q2", "question": "How much is 2 + 2?", "answer": "4", "kind": "number"},
    {"id": "q3", "question": "How much is 3 + 3?", "kind": "number"},
]
SAID = {
    # (question, model, sample, round) → text; m2 is missing on q2 in round 1, and never answers q3 readably
    ("q1", "m1", 0, 0): "{final answer: 3}", ("q1", "m1", 0, 1): "{final answer: 2}",
    ("q1", "m2", 0, 0): "{final answer: 2}", ("q1", "m2", 0, 1): "{final answer: 2}",
    ("q2", "m1", 0, 0): "{final answer: 4}", ("q2", "m1", 0, 1): "{final answer: 5}",
    ("q2", "m2", 0, 0): "{final answer: 4}",
    ("q3", "m1", 0, 0): "{final answer: 6}", ("q3", "m1", 0, 1): "{final answer: 6}",
    ("q3", "m2", 0, 0): "no idea", ("q3", "m2", 0, 1): "no idea",
}  # fmt: skip


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    import json

    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, QUESTIONS)))
    lines = [
        {"question_id": q, "model": m, "sample": s, "round": r, "text": text,
         "usage": {"prompt_tokens": 10, "completion_tokens": 5}}
        for (q, m, s, r), text in SAID.items()
    ]  # fmt: skip
    (tmp_path / "outputs.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return tmp_path


def _panel(folder: Path, models: list[str], **options: Any) -> Panel:
    named = [f"replay/{folder / 'outputs.jsonl'}#{model}" for model in models]
    data = {"task": "jsonl", "data": str(folder / "questions.jsonl"), "models": named, **options}
    with Store.open(folder / "ws") as store:
        return panel(store, run(prepare(make_config(data)), store).name)


@pytest.fixture
def debate(recorded: Path) -> Panel:
    return _panel(recorded, ["m1", "m2"], method="debate", settings={"debate_rounds": 1})


def test_words_stand_by_question_round_and_member(debate: Panel) -> None:
    assert [m.name for m in debate.members] == ["agent 1", "agent 2"]
    assert debate.rounds == 2
    said = [[[w.answer if w else "silent" for w in row] for row in item.words] for item in debate.items]
    assert said == [[["3", "2"], ["2", "2"]], [["4", "4"], ["5", "silent"]], [["6", None], ["6", None]]]


def test_what_stands_after_a_round_outlives_silence(debate: Panel) -> None:
    assert answers(debate, 0) == [["3", "2"], ["4", "4"], ["6", None]]
    assert answers(debate) == [["2", "2"], ["5", "4"], ["6", None]]
    latest = standing(debate.items[1])[1]
    assert latest is not None and latest.answer == "4"


def test_right_is_unknown_without_a_key_and_never_zero(debate: Panel) -> None:
    right = right_Q_A(debate, 0)
    assert right[:2].tolist() == [[0, 1], [1, 1]]
    assert np.isnan(right[2]).all()
    assert math.isnan(credits(debate)[2])
    assert credits(debate)[:2].tolist() == [1, 0]


def test_tokens_and_usage_are_the_turns_own(debate: Panel) -> None:
    word = debate.items[0].words[0][0]
    assert word is not None and word.tokens == 15 and word.cost_usd is not None
    usage = debate.items[0].usage
    assert usage is not None and (usage.calls, usage.tokens) == (4, 60)


def test_a_panel_is_traced_to_its_run(debate: Panel, recorded: Path) -> None:
    with Store.open(recorded / "ws") as store:
        assert debate.source == f"run {store.run(debate.name).id}"


def test_the_draws_of_one_seat_are_members(tmp_path: Path) -> None:
    options = {"models": [{"model": "scripted/constant", "text": "{final answer: 17}"}], "method": "self_consistency",
               "settings": {"parallel_num": 3}, "task": "sums", "limit": 2}  # fmt: skip
    with Store.open(tmp_path) as store:
        found = panel(store, run(prepare(make_config(options)), store).name)
    assert [m.name for m in found.members] == ["agent 1 #1", "agent 1 #2", "agent 1 #3"]
    assert [m.draw for m in found.members] == [0, 1, 2]
    assert answers(found) == [["17"] * 3] * 2


def test_failed_attempts_and_questions_not_asked_are_counted(recorded: Path) -> None:
    lines = [line for line in (recorded / "outputs.jsonl").read_text().splitlines() if '"q1"' not in line]
    (recorded / "outputs.jsonl").write_text("\n".join(lines))
    found = _panel(recorded, ["m1"], method="single")
    assert found.items[0].failed and found.items[0].credit is None
    assert found.omitted == {"failed attempts": 1}
    assert np.isnan(right_Q_A(found)[0]).all()


def test_questions_that_the_budget_left_out_are_counted(tmp_path: Path) -> None:
    options = {"models": [{"model": "scripted/constant", "text": "{final answer: 17}"}], "num_agents": 1,
               "task": "sums", "limit": 3, "budget": {"calls": 1}}  # fmt: skip
    with Store.open(tmp_path) as store:
        found = panel(store, run(prepare(make_config(options)), store).name)
    assert (len(found.items), found.omitted) == (1, {"questions not asked": 2})


def test_a_panel_is_plain_data(debate: Panel) -> None:
    assert plain(debate)["items"][0]["words"][0][0]["answer"] == "3"


def test_no_such_run(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store, pytest.raises(UnknownName, match="run"):
        panel(store, "nothing")
