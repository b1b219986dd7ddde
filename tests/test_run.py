"""The door: resume, failures, budgets, equal results however often it is stopped."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pluribus.config import make_config
from pluribus.errors import PluribusError, UnknownName
from pluribus.fake_server import FakeServer
from pluribus.run import RunResult, execute, prepare, reload
from pluribus.store import Store

LINES = [{"id": f"q{i}", "question": f"How much is {i} + 1? [key: {i + 1}]", "answer": str(i + 1)} for i in range(40)]


def write(path: Path, lines: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return str(path)


@pytest.fixture
def data(tmp_path: Path) -> str:
    return write(tmp_path / "questions.jsonl", LINES)


def keyed(accuracy: float) -> dict[str, Any]:
    return {"model": "scripted/keyed", "accuracy": accuracy}


async def go(data: str, **options: Any) -> RunResult:
    with Store.open() as store:
        return await execute(prepare(make_config({"task": "jsonl", "data": data, **options})), store)


async def test_right_wrong_and_failed_are_told_apart(data: str) -> None:
    result = await go(data, models=[keyed(1.0), keyed(0.0), "scripted/broken"], retries=1)
    council, (right, wrong, broken) = result.score, result.seat_scores().values()
    assert (council.n, council.failed, council.answered) == (40, 0, 40)
    assert all(row.status == "degraded" for row in result.rows)
    assert (right.value, right.failed) == (1.0, 0)
    assert (wrong.value, wrong.failed) == (0.0, 0)
    assert (broken.value, broken.failed, broken.answered) == (None, 40, 0)


async def test_an_attempt_in_which_all_fail_is_no_wrong_answer_and_is_asked_again(data: str) -> None:
    result = await go(data, models=["scripted/broken"], method="single", retries=1, limit=3)
    assert (result.score.n, result.score.failed, result.score.value) == (3, 3, None)
    assert result.failures().total() == 3
    again = await go(data, models=["scripted/broken"], method="single", retries=1, limit=3)
    assert again.tally.calls == 3


async def test_a_finished_run_makes_no_call_and_gives_the_same_rows(data: str) -> None:
    first = await go(data, models=[keyed(0.6)], num_agents=5)
    again = await go(data, models=[keyed(0.6)], num_agents=5)
    assert first.tally.calls == 200
    assert again.tally.calls == again.tally.hits == 0
    assert again.rows == first.rows
    assert again.id == first.id


async def test_a_larger_council_shares_the_calls_of_a_smaller_one(data: str) -> None:
    await go(data, models=[keyed(0.6)], num_agents=3)
    larger = await go(data, models=[keyed(0.6)], num_agents=5)
    assert (larger.tally.calls, larger.tally.hits) == (80, 120)


async def test_another_rule_costs_no_call(data: str) -> None:
    await go(data, models=[keyed(0.6)], num_agents=4)
    other = await go(data, models=[keyed(0.6)], num_agents=4, tie="abstain")
    assert other.tally.calls == 0


async def test_a_stored_run_reads_back_as_it_was(data: str) -> None:
    result = await go(data, models=[keyed(0.6)], num_agents=4, tie="fractional")
    with Store.open() as store:
        stored = reload(store, result.name)
        with pytest.raises(UnknownName, match="unknown run"):
            reload(store, "nothing")
    assert stored.rows == result.rows
    assert stored.score == result.score


async def test_the_frame_has_one_line_per_question(data: str) -> None:
    frame = (await go(data, models=[keyed(1.0)], num_agents=2)).frame()
    assert list(frame["credit"]) == [1.0] * 40
    assert {"question_id", "answer", "key", "share", "calls", "seat_1", "seat_2"} <= set(frame.columns)


async def test_a_budget_of_calls_stops_the_run_and_resuming_finishes_it(data: str) -> None:
    stopped = await go(data, models=[keyed(0.6)], num_agents=5, budget={"calls": 33})
    assert stopped.stopped and stopped.tally.calls <= 33
    assert len(stopped.rows) < 40
    whole = await go(data, models=[keyed(0.6)], num_agents=5)
    assert whole.stopped is None and len(whole.rows) == 40
    assert stopped.tally.calls + whole.tally.calls == 200


async def test_faults_on_the_wire_end_as_records_with_reasons(data: str) -> None:
    faults = {"429": 0.1, "500": 0.1, "cut": 0.05, "garbage": 0.05, "empty_choices": 0.05, "wrong_model": 0.05}
    with FakeServer(faults=faults, seed=3) as server:
        result = await go(data, models=[f"vllm/m@{server.url}"], num_agents=3, retries=2)
    council = result.score
    assert council.n == 40 and len(result.rows) == 40
    missing = sum(row.status != "complete" for row in result.rows)
    assert missing > 0
    assert all(row.reason for row in result.rows if row.status != "complete")
    assert all(row.credit is None for row in result.rows if row.status == "failed")


async def test_recorded_outputs_must_hold_what_is_asked(tmp_path: Path, data: str) -> None:
    rows = [{"question_id": f"q{i}", "model": "m", "sample": 0, "text": f"A: {i + 1}"} for i in range(39)]
    recorded = write(tmp_path / "outputs.jsonl", rows)
    result = await go(data, models=[f"replay/{recorded}#m"], num_agents=1)
    assert (result.score.value, result.score.failed) == (1.0, 1)
    with pytest.raises(PluribusError, match="sample 1"):
        await go(data, models=[f"replay/{recorded}#m"], num_agents=2)


CHILD = """
import sys
from pluribus.config import make_config
from pluribus.run import prepare, run
from pluribus.store import Store
config = make_config({"task": "jsonl", "data": sys.argv[1], "method": "debate", "settings": {"debate_rounds": 1},
    "models": [{"model": "scripted/keyed", "accuracy": 0.6, "latency_s": 0.01}], "num_agents": 3, "concurrency": 8})
with Store.open(sys.argv[2]) as store:
    run(prepare(config), store, progress=lambda row, tally: print(row.question_id, flush=True))
"""


def killed_after(attempts: int, data: str, home: Path) -> bool:
    """Runs the child and kills it with SIGKILL once it has reported so many attempts; False: it finished before."""
    with subprocess.Popen([sys.executable, "-c", CHILD, data, str(home)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for seen, _ in enumerate(child.stdout, 1):
            if seen == attempts:
                os.kill(child.pid, signal.SIGKILL)
        return child.wait(60) == -signal.SIGKILL


def outcome(home: Path) -> tuple[list[Any], int]:
    with Store.open(home) as store:
        (listed,) = store.runs()
        rows = [(r.question_id, r.status, r.answer, r.rounds) for r in reload(store, listed.id).rows]
        return rows, store.count_calls()


def test_killed_at_random_points_and_resumed_equals_never_killed(tmp_path: Path, data: str) -> None:
    assert not killed_after(0, data, tmp_path / "whole")
    draws = random.Random(7)
    kills = [killed_after(draws.randint(1, 39), data, tmp_path / "killed") for _ in range(3)]
    assert kills[0]
    assert not killed_after(0, data, tmp_path / "killed")
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "whole")
    assert outcome(tmp_path / "whole")[1] == 240
