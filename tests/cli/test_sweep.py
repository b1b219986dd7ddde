"""`pluribus sweep` at the terminal: forecast, results, exit codes; processes that are killed; trackers."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from pluribus.store import Store
from pluribus.sweep import stored

Pluribus = Callable[..., Any]


def keyed(accuracy: float, latency_s: float = 0.0) -> dict[str, Any]:
    return {"model": "scripted/keyed", "accuracy": accuracy, "latency_s": latency_s}


@pytest.fixture
def sweep(tmp_path: Path, data: Path) -> Callable[..., Path]:
    """Writes a sweep file: two models that know the key sometimes, in councils of two and four; entries may be
    replaced."""

    def write(latency_s: float = 0.0, **entries: Any) -> Path:
        models = {"mixed": [keyed(0.9, latency_s), keyed(0.6, latency_s)]}
        grid = {"models": models, "num_agents": [2, 4], "persona": ["none", "multi"]}
        whole = {"name": "try", "base": {"task": "jsonl", "data": str(data), "retries": 1}, "grid": grid, **entries}
        path = tmp_path / "sweep.yaml"
        path.write_text(yaml.safe_dump(whole), "utf-8")
        return path

    return write


def calls(home: Path | None = None) -> int:
    with Store.open(home) as store:
        return store.count_calls()


# --- in this process -------------------------------------------------------------------------------------------------


def test_a_rehearsal_shows_cells_and_forecast_and_asks_nobody(pluribus: Pluribus, sweep: Callable[..., Path]) -> None:
    said = pluribus("sweep", sweep(), "--dry-run")
    assert said.code == 0
    assert "4 of the grids + 2 controls at equal calls" in said.out
    assert "each cell alone: 240; shared calls made once: 144" in said.out
    assert "4 agents · persona multi" in said.out
    as_json = pluribus("sweep", sweep(), "--dry-run", "--json").object
    assert as_json["forecast"]["shared_calls"] == 144
    assert {cell["coordinates"]["num_agents"] for cell in as_json["cells"]} == {2, 4}
    assert calls() == 0


def test_a_sweep_ends_with_a_line_per_cell_and_where_to_look_next(
    pluribus: Pluribus, sweep: Callable[..., Path]
) -> None:
    said = pluribus("sweep", sweep())
    assert said.code == 0
    assert "6 cells, 144 calls sent, 96 from the store" in said.out
    assert "pluribus report try" in said.out
    progress = [line for line in said.err.splitlines() if "/6 cells · " in line]
    assert [line.split("/")[0] for line in progress] == ["1", "2", "3", "4", "5", "6"]
    again = pluribus("sweep", sweep(), "--json")
    assert (again.code, [cell["sent"] for cell in again.object["results"]]) == (0, [0] * 6)
    assert all(0 <= cell["score"]["value"] <= 1 for cell in again.object["results"])


def test_a_cell_is_a_run_that_can_be_shown(pluribus: Pluribus, sweep: Callable[..., Path]) -> None:
    results = pluribus("sweep", sweep(), "--json").object["results"]
    shown = pluribus("show", results[0]["run"], "--json").object
    assert shown["council"]["value"] == results[0]["score"]["value"]


def test_an_unreachable_model_is_exit_code_1_and_the_other_cells_are_there(
    pluribus: Pluribus, sweep: Callable[..., Path]
) -> None:
    grid = {"models": {"dead": ["vllm/m@http://127.0.0.1:9/v1"], "good": [keyed(0.9)]}, "num_agents": [2]}
    said = pluribus("sweep", sweep(grid=grid), "--limit", "2")
    assert said.code == 1
    assert "1 cell failed: no question was answered" in said.out
    with Store.open() as store:
        assert {c.coordinates["models"]: c.status for c in stored(store, "try").cells} == {
            "dead": "failed", "good": "finished",
        }  # fmt: skip


def test_the_budget_of_the_flags_bounds_the_sweep(pluribus: Pluribus, sweep: Callable[..., Path]) -> None:
    said = pluribus("sweep", sweep(), "--budget-calls", "50")
    assert said.code == 3
    assert "stopped: the budget is used up" in said.out and "go on with: pluribus sweep" in said.out
    assert calls() <= 50
    assert pluribus("sweep", sweep()).code == 0
    assert calls() == 144


@pytest.mark.parametrize(
    ("entries", "flags", "complaint"),
    [
        ({"grid": {"num_agent": [2]}}, [], "did you mean 'num_agents'?"),
        ({}, ["--gpus", "x"], "'x' is no GPU"),
        ({}, ["--gpus", "0", "--jobs", "2"], "--jobs and --gpus exclude each other"),
        ({}, ["--jobs-per-gpu", "2"], "--jobs-per-gpu needs --gpus"),
        ({}, ["--jobs", "0"], "--jobs"),
        ({}, ["--report-to", "mlflow"], "mlflow"),
        ({}, ["--budget-calls", "-1"], "budget.calls"),
        ({}, ["--task", "nothing"], "unknown task 'nothing'"),
        (
            {"base": {"task": "sums", "limit": 2, "models": ["openai/gpt-4o"]}, "grid": {"seed": [0]}},
            [],
            "OPENAI_API_KEY",
        ),
    ],
)
def test_wrong_input_is_exit_code_2_before_anything_is_asked(
    pluribus: Pluribus, sweep: Callable[..., Path], entries: dict[str, Any], flags: list[str], complaint: str
) -> None:
    said = pluribus("sweep", sweep(**entries), *flags)
    assert said.code == 2
    assert complaint in said.err.splitlines()[-1]
    assert calls() == 0


def test_no_file_is_a_complaint_in_one_line(pluribus: Pluribus, tmp_path: Path) -> None:
    assert "No such file" in pluribus("sweep", tmp_path / "nothing.yaml").complaint()


# --- processes -------------------------------------------------------------------------------------------------------


@contextmanager
def started(*arguments: str | Path, home: Path) -> Iterator[subprocess.Popen[str]]:
    code = "import sys; from pluribus.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "sweep", *map(str, arguments), "--home", str(home)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, preexec_fn=_heed_interrupts, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def _heed_interrupts() -> None:
    """Whoever runs the tests in a shell's background has them, and all they start, ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    """The first line on stderr that fits."""
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(pattern, line):
            return found
    raise AssertionError(f"no line fits {pattern!r}")


def statuses(home: Path) -> list[str]:
    with Store.open(home) as store:
        return [cell.status for cell in stored(store, "try").cells]


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("crew", [("--gpus", "0,1"), ("--gpus", "cpu", "--jobs-per-gpu", "3")])
def test_processes_give_the_same_sweep_and_ask_nothing_twice(
    pluribus: Pluribus, sweep: Callable[..., Path], tmp_path: Path, crew: tuple[str, ...]
) -> None:
    here = pluribus("sweep", sweep(), "--json", "--home", tmp_path / "here").object
    there = pluribus("sweep", sweep(), "--json", "--home", tmp_path / "there", *crew).object
    scores = [{cell["label"]: cell["score"] for cell in whole["results"]} for whole in (here, there)]
    assert scores[0] == scores[1]
    assert sum(cell["sent"] for cell in there["results"]) == calls(tmp_path / "there") == 144
    assert set(statuses(tmp_path / "there")) == {"finished"}


def test_each_process_sees_its_own_gpu(pluribus: Pluribus, sweep: Callable[..., Path], tmp_path: Path) -> None:
    with started(sweep(latency_s=0.5), "--gpus", "3,5", home=tmp_path / "w") as process:
        seen = {}
        for _ in range(2):
            found = wait_for(process, r"process (\d+) on GPU (\d)")
            environment = Path(f"/proc/{found[1]}/environ").read_text("utf-8").split("\0")
            seen[found[2]] = next(word for word in environment if word.startswith("CUDA_VISIBLE_DEVICES="))
    assert seen == {"3": "CUDA_VISIBLE_DEVICES=3", "5": "CUDA_VISIBLE_DEVICES=5"}


def test_a_process_that_is_killed_costs_its_cell_and_the_same_command_makes_up_for_it(
    pluribus: Pluribus, sweep: Callable[..., Path], tmp_path: Path
) -> None:
    home, path = tmp_path / "w", sweep(latency_s=0.4)
    with started(path, "--gpus", "0,1", home=home) as process:
        victim = int(wait_for(process, r"process (\d+) on GPU 0")[1])
        wait_for(process, r"process (\d+) on GPU 1")
        os.kill(victim, signal.SIGKILL)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 1
    why = f"process {victim} on GPU 0 was killed by SIGKILL"
    assert why in err and f"1 cell failed: {why}" in out
    assert sorted(statuses(home)) == ["failed"] + ["finished"] * 5
    before = calls(home)
    again = pluribus("sweep", path, "--gpus", "0,1", "--home", home, "--json")
    assert again.code == 0
    assert sum(cell["sent"] for cell in again.object["results"]) == 144 - before
    assert calls(home) == 144


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("crew", [("--jobs", "2"), ("--gpus", "0,1")])
def test_a_sweep_that_is_stopped_leaves_no_process_and_goes_on_where_it_was(
    pluribus: Pluribus, sweep: Callable[..., Path], tmp_path: Path, end: signal.Signals, crew: tuple[str, str]
) -> None:
    home, path = tmp_path / "w", sweep(latency_s=1.0)
    with started(path, *crew, home=home) as process:
        workers = [int(wait_for(process, r"process (\d+) on GPU")[1]) for _ in range(2)] if crew[0] == "--gpus" else []
        wait_for(process, r"1/6 cells")
        process.send_signal(end)
        _, err = process.communicate(timeout=60)
    assert process.returncode == (130 if end == signal.SIGINT else -end)
    assert ("go on with the same command" in err) == (end == signal.SIGINT)
    for pid in workers:
        _wait_until_gone(pid)
    before = calls(home)
    assert 0 < before < 144
    again = pluribus("sweep", path, "--home", home, "--json")
    assert (again.code, sum(cell["sent"] for cell in again.object["results"])) == (0, 144 - before)


def _wait_until_gone(pid: int) -> None:
    for _ in range(600):
        if not alive(pid):
            return
        subprocess.run(["sleep", "0.1"], check=True)
    raise AssertionError(f"process {pid} lives on")


# --- trackers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["trackio", "wandb"])
def test_a_tracker_that_is_not_installed_is_named_with_its_command(
    pluribus: Pluribus, sweep: Callable[..., Path], name: str
) -> None:
    if find_spec(name) is not None:
        pytest.skip(f"{name} is installed")
    said = pluribus("sweep", sweep(), "--report-to", name)
    assert said.code == 2
    assert f"pip install {name}" in said.err
    assert calls() == 0


def test_trackio_gets_a_step_per_cell(sweep: Callable[..., Path], tmp_path: Path, monkeypatch: Any) -> None:
    pytest.importorskip("trackio")
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    with started(sweep(), "--report-to", "trackio", "--json", home=tmp_path / "w") as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    (file,) = (tmp_path / "trackio").glob("*.db")
    with closing(sqlite3.connect(file)) as db:
        steps = [json.loads(values) for (values,) in db.execute("SELECT metrics FROM metrics ORDER BY step")]
    assert [step["cell/run"] for step in steps] == [cell["id"] for cell in json.loads(out)["results"]]
    assert all(step["accuracy_low"] <= step["accuracy"] <= step["accuracy_high"] for step in steps)


def test_wandb_writes_its_run_offline(sweep: Callable[..., Path], tmp_path: Path, monkeypatch: Any) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    with started(sweep(), "--report-to", "wandb", home=tmp_path / "w") as process:
        _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert list(tmp_path.rglob("*.wandb"))


def test_what_is_logged_holds_coordinates_accuracy_interval_calls_and_tokens(
    pluribus: Pluribus, sweep: Callable[..., Path]
) -> None:
    from pluribus.codec import build
    from pluribus.sweep import Outcome, make_plan, read_sweep
    from pluribus.sweep.trackers import values

    path = sweep()
    results = pluribus("sweep", path, "--json").object["results"]
    plan = make_plan(read_sweep(path))
    names = {"label", "run", "id"}
    first = build(Outcome, {key: value for key, value in results[0].items() if key not in names})
    logged = values(plan, first)
    assert json.loads(json.dumps(logged)) == logged
    assert logged["cell/num_agents"] == plan.cells[first.cell].coordinates["num_agents"]
    assert logged["accuracy_low"] <= logged["accuracy"] <= logged["accuracy_high"]
    assert (logged["calls"], logged["status"]) == (results[0]["score"]["calls"], "finished")
