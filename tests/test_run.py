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

from pluribus.agents import Agent
from pluribus.calibrate import STOPPING, calibrate
from pluribus.codec import content_id
from pluribus.compare import draws
from pluribus.config import make_config
from pluribus.council import Council
from pluribus.errors import ConfigError, PluribusError, UnknownName
from pluribus.fake_server import FakeServer
from pluribus.load import load
from pluribus.prompts import dialect, fingerprint
from pluribus.run import RunResult, execute, opened, panel, prepare, reload, seat_table
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


# --- a run that uses neither stopping nor calibration is the run it always was ---------------------------------------


@pytest.mark.parametrize("method", ["vote", "self_consistency", "debate"])
def test_what_stops_nothing_leaves_an_attempts_id_as_it_was_before_a_method_could_stop(data: str, method: str) -> None:
    def asked(**said: Any) -> tuple[str, str]:
        config = make_config(
            {"task": "jsonl", "data": data, "models": [keyed(1.0)], "method": method, "settings": said}
        )
        prepared = prepare(config)
        attempt, (question, _) = prepared.attempts[0], prepared.task.pairs[0]
        early = {name: value for name, value in attempt.settings.items() if name not in STOPPING}
        words = {"standard": fingerprint(dialect("standard"), load("methods", method).PROMPTS)}
        before = {"question": question, "method": method, "settings": early, "prompts": words,
                  "agents": attempt.agents, "seed": 0}  # fmt: skip
        return attempt.id, content_id(before)

    assert asked()[0] == asked()[1] == asked(stop="none")[0]
    for said in ({"stop": "beta"}, {"stop": "beta", "stop_eps": 0.2}, {"stop": "beta", "stop_shadow": True}):
        assert asked(**said)[0] not in (asked()[0], asked(**said)[1])


def test_seats_without_a_price_can_not_be_asked_by_cost(data: str) -> None:
    unpriced = "openai/own-model@http://127.0.0.1:9/v1"
    config = make_config({"task": "jsonl", "data": data, "models": [keyed(1.0), unpriced], "settings":
                          {"stop": "beta", "stop_order": "cost"}})  # fmt: skip
    with pytest.raises(ConfigError, match=r"seat 2 .*own-model.* no known price.*--prices"):
        prepare(config)


# --- stopping --------------------------------------------------------------------------------------------------------

SEATS = [keyed(0.85), keyed(0.65), keyed(0.5), keyed(0.4), keyed(0.3)]
STOP = {"stop": "unassailable"}


async def test_a_vote_that_stops_saves_calls_and_decides_alike(data: str) -> None:
    full = await go(data, models=SEATS)
    early = await go(data, models=SEATS, settings=STOP)
    told = early.stopping()
    assert told is not None and not told.shadow and told.n == 40 and full.stopping() is None
    assert (told.asked, told.of) == (early.score.calls, 200) and told.asked < 200
    assert told.saved.value == pytest.approx(1 - told.asked / 200)
    assert told.saved.low <= told.saved.value <= told.saved.high
    assert [row.answer for row in early.rows] == [row.answer for row in full.rows]
    assert early.tally.calls == 0, "every vote was stored before"


async def test_seats_of_a_vote_that_stops_are_not_compared(data: str) -> None:
    early = await go(data, models=SEATS, settings=STOP)
    short = sum(None in row.seats for row in early.rows)
    assert early.stopped_short() == short > 0
    assert early.seat_scores() == {}
    with Store.open() as store:
        stored, found = reload(store, early.name), panel(store, early.name)
    assert (stored.rows, stored.seat_scores()) == (early.rows, {})
    assert found.unasked == short and short in found.omitted.values()


async def test_samples_not_drawn_because_the_vote_had_stopped_are_said(data: str) -> None:
    early = await go(data, models=[keyed(0.6)], method="self_consistency", settings={"parallel_num": 9, **STOP})
    short = sum(row.stopping is not None and row.stopping.asked < 9 for row in early.rows)
    with Store.open() as store:
        found = panel(store, early.name)
    assert found.unasked == short > 0 and short in found.omitted.values()
    assert draws(found) == {}, "the last samples are of the hard questions only"


async def test_a_debate_that_stops_has_asked_every_seat(data: str) -> None:
    settings = {"debate_rounds": 2, "stop": "beta", "stop_eps": 0.3}
    early = await go(data, models=[keyed(0.9)] * 4, method="debate", settings=settings)
    with Store.open() as store:
        found = panel(store, early.name)
    assert any(row.stopping is not None and row.stopping.asked < row.stopping.of for row in early.rows)
    assert found.unasked == 0


async def test_in_shadow_all_are_asked_and_compared(data: str) -> None:
    settings = {"stop": "beta", "stop_eps": 0.2, "stop_shadow": True}
    shadow = await go(data, models=SEATS, settings=settings)
    told = shadow.stopping()
    assert shadow.score.calls == 200 and len(shadow.seat_scores()) == 5 and shadow.stopped_short() == 0
    assert told is not None and told.shadow and told.asked < told.of == 200
    assert told.changed == sum(row.stopping is not None and row.stopping.answer != row.answer for row in shadow.rows)
    assert told.full == shadow.score.value
    assert told.difference is not None and told.accuracy is not None and told.full is not None
    assert told.difference.value == pytest.approx(told.accuracy - told.full)


async def test_draws_of_one_seat_that_stop_leave_nobody_out(data: str) -> None:
    result = await go(data, models=[keyed(0.9)], method="self_consistency", settings={"parallel_num": 9, **STOP})
    told = result.stopping()
    assert told is not None and told.asked == result.score.calls < told.of == 360
    assert result.stopped_short() == 0


def test_stopping_must_count_as_the_decision_does(data: str) -> None:
    seats: list[dict[str, Any]] = [{"model": keyed(0.9), "weight": 2.0}, {"model": keyed(0.5)}]
    config: dict[str, Any] = {"task": "jsonl", "data": data, "seats": seats, "settings": STOP}
    with pytest.raises(ConfigError, match=r"stopping counts the seats' weights.*--rule weighted"):
        prepare(make_config(config))
    prepare(make_config({**config, "rule": "weighted"}))
    prepare(make_config({**config, "seats": [{**seat, "weight": 2.0} for seat in seats]}))


async def test_an_agent_knows_what_its_tokens_cost(tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('["vllm/own"]\ninput = 1.0\noutput = 3.5\n')
    config = make_config({"models": ["vllm/own", "vllm/other", keyed(1.0)], "prices": str(prices)})
    async with opened(seat_table(config), config, None) as live:
        agents: tuple[Agent, ...] = live.agents
        assert [agent.price for agent in agents] == [3.5, None, 0.0]


# --- calibration -----------------------------------------------------------------------------------------------------


async def learned(data: str) -> dict[str, Any]:
    """What is in a calibration of SEATS."""
    result = await go(data, models=SEATS)
    with Store.open() as store:
        known = calibrate([panel(store, result.name)], kind="platt", check=0.0).calibration
    return known.model_dump(mode="json", exclude_none=True)


def saved(known: dict[str, Any], path: Path) -> str:
    path.write_text(json.dumps(known), "utf-8")
    return str(path)


def forget(file: str) -> None:
    Path(file).unlink()


async def test_a_calibrated_run_weighs_its_seats_and_says_how_sure_it_is(data: str, tmp_path: Path) -> None:
    known = await learned(data)
    result = await go(data, models=SEATS, calibration=saved(known, tmp_path / "c.json"))
    assert result.tally.calls == 0, "the calls were stored"
    weights = [seat.weight for seat in result.table.seats]
    assert weights == [seat["weight"] for seat in known["seats"]]
    assert all(row.confidence is not None and 0 < row.confidence < 1 for row in result.rows)
    told = result.sureness()
    assert told is not None and (told.n, told.answered) == (40, 40)
    assert told.accuracy == result.score.value == told.answered_accuracy
    assert {"confidence", "vote_credit", "asked"} <= set(result.frame().columns)


async def test_a_calibrated_run_reads_back_when_the_file_is_gone(data: str, tmp_path: Path) -> None:
    file = saved(await learned(data), tmp_path / "c.json")
    result = await go(data, models=SEATS, calibration=file, abstain_below=0.9)
    forget(file)
    with Store.open() as store:
        stored, config = reload(store, result.name), make_config(store.run(result.name).config)
        again = await execute(prepare(config), store)
    assert stored.rows == result.rows == again.rows
    assert (stored.abstain_below, again.id) == (0.9, result.id)
    assert again.tally.calls == again.tally.hits == 0


async def test_what_is_withheld_is_not_answered(data: str) -> None:
    known = await learned(data)
    sure = await go(data, models=SEATS, calibration=known)
    chances = sorted(row.confidence for row in sure.rows if row.confidence is not None)
    least = chances[20]
    result = await go(data, models=SEATS, calibration=known, abstain_below=least)
    kept = [row for row in sure.rows if row.confidence is not None and row.confidence >= least]
    assert 0 < len(kept) < 40 and result.score.answered == len(kept)
    told = result.sureness()
    assert told is not None and (told.n, told.answered) == (40, len(kept))
    assert told.accuracy == sure.score.value
    assert told.answered_accuracy == pytest.approx(sum(row.credit or 0 for row in kept) / len(kept))
    assert result.score.value == pytest.approx(sum(row.credit or 0 for row in kept) / 40)
    assert [row.confidence for row in result.rows] == [row.confidence for row in sure.rows]


async def test_decisions_under_different_calibrations_are_never_mixed_up(data: str) -> None:
    """Weights that are all equal leave the attempts as they are, so the decisions alone tell the runs apart."""
    known = await learned(data)
    equal = {**known, "rule": "plurality", "seats": [{**seat, "weight": 1.0} for seat in known["seats"]]}
    other = {**equal, "confidence": {**known["confidence"], "intercept": known["confidence"]["intercept"] - 1}}
    served: list[dict[str, Any]] = [{"calibration": equal}, {"calibration": other}]
    asked: list[dict[str, Any]] = [{}, *served, {"calibration": equal, "abstain_below": 0.9}]
    runs = [await go(data, models=SEATS, **options) for options in asked]
    assert len({run.id for run in runs}) == 4
    assert len({run.rows[0].attempt_id for run in runs}) == 1
    with Store.open() as store:
        assert [reload(store, run.id).rows for run in runs] == [run.rows for run in runs]
        rules = [decision.rule for _, decision in store.all_decisions(runs[0].rows[0].attempt_id)]
    assert len(rules) == len(set(rules)) == 4
    assert runs[0].rows[0].confidence is None
    assert runs[1].rows[0].confidence != runs[2].rows[0].confidence


async def test_weights_serve_another_protocol_and_its_confidence_does_not(data: str) -> None:
    known = await learned(data)
    others: list[dict[str, Any]] = [{"method": "debate", "settings": {"debate_rounds": 1}}, {"settings": STOP}]
    for options in others:
        result = await go(data, models=SEATS, calibration=known, limit=3, **options)
        assert [seat.weight for seat in result.table.seats] == [seat["weight"] for seat in known["seats"]]
        assert {row.confidence for row in result.rows} == {None}
        with pytest.raises(ConfigError, match=r"abstain_below is 0.5, but there is no confidence"):
            await go(data, models=SEATS, calibration=known, abstain_below=0.5, **options)


async def test_a_calibration_that_does_not_fit_is_refused_before_anything_is_asked(data: str) -> None:
    known = await learned(data)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"models": SEATS, "rule": "plurality"}, "rule is plurality, but the calibration gives the seats different"),
        ({"models": SEATS[:4]}, "the calibration is of 5 seats, the council has 4"),
        ({"models": SEATS[::-1]}, "seat 1 of the calibration is scripted/keyed"),
        ({"seats": [{"model": one, "weight": 2.0} for one in SEATS]}, "seat 1 has a weight of its own, 2"),
        ({"models": SEATS, "abstain_below": 1.5}, "abstain_below is 1.5"),
    ]
    for options, words in wrong:
        with pytest.raises(ConfigError) as caught:
            await go(data, calibration=known, **options)
        assert words in str(caught.value)
    with pytest.raises(ConfigError, match="nothing gives a confidence; say --calibration FILE"):
        await go(data, models=SEATS, abstain_below=0.5)


async def test_a_council_asks_by_its_calibration(data: str) -> None:
    known = await learned(data)
    ask = "How much is 3 + 1? [key: 4]"
    answer = await Council(SEATS, calibration=known).aask(ask, kind="number", remember=False)
    assert answer.decision is not None and answer.decision.confidence is not None
    assert answer.decision.rule.startswith("weighted@")
    silent = await Council(SEATS, calibration=known, abstain_below=1.0).aask(ask, kind="number", remember=False)
    assert silent.decision is not None and silent.decision.answer is None
    assert silent.decision.votes == answer.decision.votes
