"""What the commands say of a vote that stops asking early, or would have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

MODELS = [{"model": "scripted/keyed", "accuracy": p} for p in (0.95, 0.9, 0.85, 0.6, 0.5)]
STOP = {"stop": "unassailable"}


@pytest.fixture
def name(pluribus: Run, council: Run) -> str:
    found: str = pluribus("run", council(models=MODELS, settings=STOP), "--json").object["run"]
    return found


def test_a_run_says_what_was_saved_and_compares_no_seats(pluribus: Run, council: Run, name: str) -> None:
    said = pluribus("run", council(models=MODELS, settings=STOP))
    again = pluribus("show", name)
    for out in (said.out, again.out):
        flat = " ".join(out.split())
        assert "stopping by unassailable: " in flat and " of 60 calls needed, " in flat and " % saved [" in flat
        assert "seats alone and the best of them are left out" in flat and "--set stop_shadow=true asks all" in flat
        assert "the best alone:" not in out and "seat 1 " not in out
    assert "would change" not in said.out
    found = pluribus("show", name, "--json").object
    assert found["alone"] == [] and found["comparison"] is None
    assert 0 < found["stopped_short"] <= 12
    assert found["stopping"]["asked"] == found["council"]["calls"] < found["stopping"]["of"] == 60


def test_in_shadow_it_says_what_would_have_changed(pluribus: Run, council: Run) -> None:
    config = council(models=MODELS, settings={"stop": "beta", "stop_eps": 0.3, "stop_shadow": True})
    said = pluribus("run", config)
    flat = " ".join(said.out.split())
    assert "stopping by beta in shadow: " in flat and "it would change " in flat
    assert "accuracy at the stop " in flat and ", of all votes " in flat and "the best alone:" in said.out
    told = pluribus("run", config, "--json").object
    assert told["stopped_short"] == 0 and len(told["alone"]) == 5
    assert told["stopping"]["shadow"] and told["stopping"]["changed"] is not None
    assert told["council"]["calls"] == 60


def test_without_stopping_nothing_is_said_of_it(pluribus: Run, council: Run) -> None:
    said = pluribus("run", council(models=MODELS))
    assert "stop" not in said.out.split("council")[0].replace("stored", "")
    found = pluribus("run", council(models=MODELS), "--json").object
    assert found["stopping"] is None and found["confidence"] is None and found["stopped_short"] == 0


def test_one_question_and_one_answer_say_how_many_were_asked(pluribus: Run, council: Run, name: str) -> None:
    assert " of 5 calls needed (stop=unassailable)" in pluribus("show", name, "--question", "q1").out
    ask = ["ask", "3 + 4? [key: 7]", "--kind", "number", "--council", council(models=MODELS, settings=STOP)]
    assert " of 5 calls needed (stop=unassailable)" in pluribus(*ask).out


def test_what_compares_seats_refuses_or_says_it(pluribus: Run, name: str, tmp_path: Path) -> None:
    assert "the vote stopped before every seat was asked" in pluribus("recommend", name).complaint()
    assert "a vote that stopped before all were asked" in pluribus("plan", name, "--effect", "5").complaint()
    found = pluribus("analyze", name, "--embedder", "hashing", "--output-dir", tmp_path / "t", "--json").object
    assert any("the vote had stopped" in reason for reason in found["runs"][0]["omitted"])
    pytest.importorskip("matplotlib")
    page = tmp_path / "report.html"
    told = pluribus("report", name, "--embedder", "hashing", "--out", page, "--json").object
    assert told["councils"][0]["pays"] is None and "a vote that stopped" in told["councils"][0]["verdict"]


def test_unequal_weights_need_the_rule_that_counts_them(pluribus: Run, council: Run) -> None:
    seats = [{"model": MODELS[0], "weight": 2.0}, {"model": MODELS[1]}, {"model": MODELS[2]}]
    config = council(models=[], seats=seats, settings=STOP)
    assert "say --rule weighted" in pluribus("run", config).complaint()
    assert pluribus("run", config, "--rule", "weighted").code == 0
