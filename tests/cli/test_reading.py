"""What commands that only read do with names that are not there, names that are two things, and odd flags."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from pluribus.store import Store

Run = Callable[..., Any]
EMBED = ("--embedder", "hashing")


@pytest.fixture
def name(pluribus: Run, council: Run) -> str:
    return str(pluribus("run", council(), "--json").object["run"])


@pytest.mark.parametrize(
    "command", ["analyze", "report", "recommend", "show", "team", "plan --effect 5", "export --out x.jsonl"]
)
def test_looking_for_a_run_makes_no_workspace(pluribus: Run, tmp_path: Path, command: str) -> None:
    line = pluribus(*command.split(), "nothing", "--home", tmp_path / "nowhere").complaint()
    assert "'nothing'; there is no workspace at " in line
    assert not (tmp_path / "nowhere").exists()


def test_lists_of_no_workspace_are_empty_and_make_none(pluribus: Run, tmp_path: Path) -> None:
    for what in ("runs", "sweeps"):
        said = pluribus("list", what, "--home", tmp_path / "nowhere", "--json")
        assert (said.code, said.object) == (0, [])
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("command", ["analyze", "report", "recommend", "plan --effect 5"])
def test_an_empty_name_is_not_this_folder(pluribus: Run, command: str) -> None:
    assert "the name of a run is empty" in pluribus(*command.split(), "").complaint()


def test_a_list_of_names_is_short_and_has_the_nearest(pluribus: Run, council: Run, name: str) -> None:
    for seed in range(1, 15):
        assert pluribus("run", council(seed=seed, num_agents=1), "--json").code == 0
    line = pluribus("analyze", name + "x").complaint()
    assert f"did you mean '{name}'?" in line
    assert line.endswith(", …")
    assert line.count("vote-jsonl-") <= 14


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["report", "--embedder", "hashing,minilm"], "--embedder names 2: hashing, minilm; name one"),
        (["recommend", "--embedder", "hashing,minilm"], "--embedder names 2: hashing, minilm; name one"),
        (["report", "--embedder", ""], "unknown embedder ''"),
        (["analyze", "--embedder", ""], "unknown embedder ''"),
        (["report", "--seed", "-1"], "invalid value for '--seed'"),
        (["recommend", "--seed", "-1"], "invalid value for '--seed'"),
    ],
)
def test_a_wrong_flag_of_what_measures(pluribus: Run, name: str, flags: list[str], expected: str) -> None:
    command, *rest = flags
    assert expected in pluribus(command, name, *rest).complaint()


def test_a_report_that_can_not_be_written_is_refused_before_the_work(pluribus: Run, name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in ("file", "file/page.html"):
        said = pluribus("report", name, *EMBED, "--out", tmp_path / out)
        assert (said.code, "can not be made: " in said.err) == (2, True)
    assert pluribus("report", name, *EMBED, "--out", tmp_path / "v1.2").code == 0
    assert (tmp_path / "v1.2" / "report.html").is_file()


def test_a_run_that_nobody_answered_is_not_said_to_have_no_key(pluribus: Run, council: Run) -> None:
    models = ["vllm/a@http://127.0.0.1:9/v1", "vllm/b@http://127.0.0.1:9/v1"]
    failed = pluribus("run", council(models=models, retries=1), "--json")
    assert failed.code == 1
    said = pluribus("analyze", failed.object["run"], *EMBED)
    assert "unknown: no question was answered" in said.out
    assert "failed attempts: 12" in said.out


def test_a_member_alone_needs_another_side_to_plan(pluribus: Run, council: Run) -> None:
    assert pluribus("run", council(method="self_consistency", models=["scripted/number"])).code == 0
    alone = pluribus("run", council(method="single", models=["scripted/number"]), "--json").object["run"]
    assert "a member alone" in pluribus("plan", alone, "--effect", "5").complaint()


def test_a_stopped_run_without_its_first_question_has_a_council(pluribus: Run, name: str) -> None:
    with Store.open() as store:
        (first, _), *_ = store.run_attempts(store.run(name).id)
        path = store.path
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM transcripts WHERE attempt_id = ?", (first,))
    said = pluribus("recommend", name, "--json")
    assert said.code == 0
    assert said.object["council"] is not None


# --- sweeps ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def half(pluribus: Run, tmp_path: Path, data: Path) -> str:
    """A sweep of two cells, one of which no model answers."""
    models = {"here": ["scripted/number"], "gone": ["vllm/a@http://127.0.0.1:9/v1"]}
    base = {"task": "jsonl", "data": str(data), "retries": 1}
    path = tmp_path / "half.yaml"
    grid = {"models": models, "num_agents": [2]}
    path.write_text(yaml.safe_dump({"name": "single", "base": base, "controls": False, "grid": grid}), "utf-8")
    assert pluribus("sweep", path).code == 1
    return "single"


def test_a_report_says_which_cells_it_leaves_out(pluribus: Run, half: str, tmp_path: Path) -> None:
    said = pluribus("report", half, *EMBED, "--out", tmp_path / "out")
    assert "left out: cells that are failed: 1" in said.out
    told = pluribus("report", half, *EMBED, "--out", tmp_path / "out", "--json").object
    assert told["omitted"] == {"cells that are failed": 1}
    (row,) = pluribus("list", "sweeps", "--json").object
    assert (row["cells"], row["finished"], row["failed"]) == (2, 1, 1)


def test_a_sweep_of_this_name_wins_over_a_run_that_begins_so(
    pluribus: Run, half: str, council: Run, tmp_path: Path
) -> None:
    run = pluribus("run", council(method="single", models=["scripted/number"]), "--json").object["run"]
    assert run.startswith(half)
    told = pluribus("report", half, *EMBED, "--out", tmp_path / "out", "--json").object
    assert told["omitted"] == {"cells that are failed": 1}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\x8c\xff\x00", "not a text in UTF-8; give the path of a sweep file"),
        (b"name: a b\ngrid: {num_agents: [2]}", "name is 'a b'; expected letters, digits"),
        (b"name: x\ngrid: {num_agents: []}", "axis num_agents is []; expected a list of values"),
        (b"name: x\ngrid: {num_agents: 2}", "axis num_agents is 2; expected a list of values, such as [2]"),
        (b"name: x\nbase: {task: sums}\ngrid: {num_agents: [2]}", "grid: no models are named; add the axis models"),
    ],
)
def test_a_wrong_sweep_file(pluribus: Run, tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_bytes(content)
    line = pluribus("sweep", path).complaint()
    assert expected in line
    assert "[[]]" not in line
    assert "Is a directory; give the path of a sweep file" in pluribus("sweep", tmp_path).complaint()


# --- logs ------------------------------------------------------------------------------------------------------------


def test_a_path_of_several_runs_says_how_to_name_one(pluribus: Run, tmp_path: Path) -> None:
    for stem in ("one", "two"):
        row = {"0": {"responses": {"a": "{final answer: 1}", "b": "{final answer: 2}"}, "answer": 1}}
        (tmp_path / f"{stem}.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    for command in (["recommend"], ["plan", "--effect", "5"]):
        line = pluribus(*command, tmp_path).complaint()
        assert "holds 2 runs: one; two; name a file or folder of one, or make runs of them: pluribus import" in line


def test_an_import_says_once_why_questions_failed(pluribus: Run, tmp_path: Path) -> None:
    rounds = [{"responses": {"a": "{final answer: 1}", "b": "{final answer: 2}"}, "answer": 1}] * 2
    rows = [{str(n): round for n, round in enumerate(rounds)} for _ in range(4)]
    for row in rows[2:]:
        del row["0"]
    path = tmp_path / "rounds.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    said = pluribus("import", path)
    assert said.code == 0
    assert said.err.count("failed: ") == 1
    assert "2 of 4 questions failed: every seat failed" in said.err
