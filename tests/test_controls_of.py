"""Which runs of the workspace serve as controls."""

from __future__ import annotations

import dataclasses
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from pluribus.cli import main
from pluribus.compare import compare, draws, verdict
from pluribus.config import make_config
from pluribus.controls import command, controls_of
from pluribus.panel import Panel
from pluribus.run import panel, prepare, run
from pluribus.store import Store

LINES = [{"id": f"q{i}", "question": f"How much is {i} + 1? [key: {i + 1}]", "answer": str(i + 1)} for i in range(40)]


def keyed(accuracy: float) -> dict[str, Any]:
    return {"model": "scripted/keyed", "accuracy": accuracy}


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in LINES), "utf-8")
    return str(path)


def go(store: Store, data: str, **options: Any) -> Panel:
    return panel(store, run(prepare(make_config({"task": "jsonl", "data": data, **options})), store).id)


COUNCIL: dict[str, Any] = {"models": [keyed(0.9), keyed(0.6)], "num_agents": 4}
CONTROL: dict[str, Any] = {"method": "self_consistency", "settings": {"parallel_num": 4}}


def test_runs_of_one_model_on_the_same_questions_serve(data: str) -> None:
    with Store.open() as store:
        council = go(store, data, **COUNCIL)
        assert controls_of(store, council) == []
        drawn = go(store, data, models=[keyed(0.9)], **CONTROL)
        voted = go(store, data, models=[keyed(0.6)], num_agents=5)
        assert controls_of(store, council) == [voted, drawn]


@pytest.mark.parametrize(
    "other",
    [
        {"models": [keyed(0.9)], "method": "single"},
        {"models": [keyed(0.9), keyed(0.6)], "num_agents": 6},
        {"models": [keyed(0.9)], "num_agents": 4, "personas": "general"},
        {"models": [keyed(0.9)], "num_agents": 4, "method": "debate", "settings": {"debate_rounds": 1}},
        {"models": [keyed(0.9)], "limit": 37, **CONTROL},
    ],
    ids=["one draw", "two models", "personas", "a debate", "too few of the questions"],
)
def test_other_runs_do_not(data: str, other: dict[str, Any]) -> None:
    with Store.open() as store:
        council = go(store, data, **COUNCIL)
        go(store, data, **other)
        assert controls_of(store, council) == []


def test_a_few_missing_questions_are_left_out_and_counted(data: str) -> None:
    with Store.open() as store:
        council = go(store, data, **COUNCIL)
        go(store, data, models=[keyed(0.9)], limit=38, **CONTROL)
        _, equal, _ = compare(council, controls_of(store, council))
    assert (equal.n, equal.left_out) == (38, 2)
    assert "left out of 40 questions: 2 the control lacks" in str(equal.note)


def test_models_that_do_not_sit_in_the_council_serve_only_where_none_does(data: str) -> None:
    with Store.open() as store:
        council = go(store, data, **COUNCIL)
        stranger = go(store, data, models=["scripted/number"], **CONTROL)
        assert controls_of(store, council) == [stranger]
        member = go(store, data, models=[keyed(0.6)], **CONTROL)
        assert controls_of(store, council) == [member]
        assert list(draws(member)) == [council.members[1].model]


def test_the_command_records_what_is_missing(data: str) -> None:
    models, seed = ["scripted/number", "scripted/echo"], {"seed": 3, "sampling": {"temperature": 0.5}}
    with Store.open() as store:
        council = go(store, data, models=models, num_agents=4, limit=30, **seed)
        line = str(command(store, council))
        assert verdict(compare(dressed(council), [], command=line)).words.endswith(f"for equal spend: {line}")
        assert main(shlex.split(line)[1:]) == 0
        [control] = controls_of(store, council)
        assert len(control.members) == 4
        found = {comparison.spend: comparison for comparison in compare(council, [control])}
        assert (found["equal calls"].n, found["equal calls"].equal) == (30, True)
        [seat, *_] = next(iter(store.transcripts([store.run_attempts(control.source[4:])[0][0]]))).attempt.agents
        assert seat.sampling.temperature == 0.5
        assert command(store, dataclasses.replace(council, source="a/file.jsonl")) is None


def dressed(council: Panel) -> Panel:
    """With personas, so that its own first answers are no draws."""
    members = tuple(dataclasses.replace(member, persona="Ann") for member in council.members)
    return dataclasses.replace(council, members=members)
