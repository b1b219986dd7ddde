"""`pluribus list`: what there is, from the folders themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pluribus.load import names
from pluribus.zoo import members

Run = Callable[..., Any]


def test_methods_with_settings_and_calls(pluribus: Run) -> None:
    rows = {row["method"]: row for row in pluribus("list", "methods", "--json").object}
    assert set(names("methods")) <= set(rows)
    assert (rows["debate"]["agents"], rows["debate"]["calls"]) == (5, "30")
    assert rows["debate"]["settings"]["topology"] == "decentralized"
    assert rows["debate"]["source"].startswith("Du et al. 2023, arXiv 2305.14325; topologies of Agent-Scaling")
    assert rows["cot"]["source"] == "Wei et al. 2022, arXiv 2201.11903"
    assert rows["vanilla"]["what"] == "another name of single"
    assert "debate_rounds=5" in pluribus("list", "methods").out


def test_tasks_with_their_aliases(pluribus: Run) -> None:
    rows = {row["task"]: row for row in pluribus("list", "tasks", "--json").object}
    assert set(names("tasks")) <= set(rows)
    assert rows["pro_medicine"]["what"] == "another name of mmlu:professional_medicine"
    assert rows["arc"]["splits"][0] == "test", "the usual split comes first"


def test_backends_say_which_key_is_missing(pluribus: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "OPENAI_API_KEY (not set)" in pluribus("list", "backends").out
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    said = pluribus("list", "backends").out
    assert "OPENAI_API_KEY (set)" in said
    assert "sk-secret" not in said
    assert "another name of openai/gpt-4o" in said


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("personas", "conservative verifier"),
        ("zoo", f"zoo/{members()[0]}"),
        ("prompts", "debate_revise"),
        ("presets", "agentark"),
        ("embedders", "minilm"),
        ("judges", "verdict"),
        ("logs", "lm_eval"),
    ],
)
def test_the_other_lists(pluribus: Run, what: str, expected: str) -> None:
    said = pluribus("list", what)
    assert said.code == 0
    assert expected in said.out
    assert pluribus("list", what, "--json").object


def test_runs_the_latest_first(pluribus: Run, council: Run) -> None:
    assert pluribus("list", "runs").out == "no runs yet\n"
    first = pluribus("run", council(), "--json").object
    second = pluribus("run", council(seed=1), "--json").object
    rows = pluribus("list", "runs", "--json").object
    assert [row["run"] for row in rows] == [second["run"], first["run"]]
    assert (rows[0]["status"], rows[0]["questions"], rows[0]["accuracy"]) == (
        "finished",
        12,
        second["council"]["value"],
    )


def test_sweeps_with_their_finished_cells(pluribus: Run, tmp_path: Path) -> None:
    assert pluribus("list", "sweeps").out == "no sweeps yet\n"
    told = (
        "name: pair\nbase: {task: sums, limit: 2, models: [{model: scripted/constant, text: '4'}]}\ncontrols: false\n"
    )
    (tmp_path / "pair.yaml").write_text(told + "grid: {num_agents: [1, 2]}\n")
    assert pluribus("sweep", str(tmp_path / "pair.yaml")).code == 0
    (row,) = pluribus("list", "sweeps", "--json").object
    assert (row["sweep"], row["cells"], row["finished"]) == ("pair", 2, 2)
