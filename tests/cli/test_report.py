"""`pluribus report`: of a run, of several, of a sweep and of files; where it is written; what it says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Run = Callable[..., Any]


@pytest.fixture
def report(pluribus: Run, tmp_path: Path) -> Run:
    """Reports into a folder of its own, and gives what `--json` says."""

    def run(*arguments: str | Path) -> Any:
        said = pluribus("report", *arguments, "--out", tmp_path / "out", "--embedder", "hashing", "--json")
        assert said.code == 0, said
        return said.object

    return run


@pytest.fixture
def name(pluribus: Run, council: Run) -> str:
    return str(pluribus("run", council(), "--json").object["run"])


def test_a_run(report: Run, name: str, tmp_path: Path) -> None:
    found = report(name)
    assert found["report"] == str(tmp_path / "out" / "report.html")
    text = Path(found["report"]).read_text("utf-8")
    assert f"<title>{name}</title>" in text
    (council,) = found["councils"]
    assert council["run"] == name
    assert found["verdict"].rstrip(".") in text.replace("&#x27;", "'")
    assert {Path(path).name for path in found["tables"]} >= {"cells.csv", "comparisons.csv", "seats.csv", "runs.csv"}
    assert all(Path(path).read_bytes().startswith(b"\x89PNG") for path in found["figures"])


def test_self_consistency_of_the_workspace_serves_as_control(
    pluribus: Run, report: Run, council: Run, name: str
) -> None:
    assert report(name)["councils"][0]["pays"] is None
    draws = {"method": "self_consistency", "models": [{"model": "scripted/keyed", "accuracy": 0.9}]}
    assert pluribus("run", council(**draws, settings={"parallel_num": 3})).code == 0
    found = report(name)
    assert found["councils"][0]["pays"] is False
    assert "does not pay" in found["verdict"]


def test_several_runs_and_an_exported_file(pluribus: Run, report: Run, council: Run, name: str, tmp_path: Path) -> None:
    more = pluribus("run", council(num_agents=6), "--json").object["run"]
    file = tmp_path / "run.jsonl.gz"
    assert pluribus("export", more, "--out", file).code == 0
    found = report(name, file, name, "--title", "Two <councils>")
    assert found["title"] == "Two <councils>"
    assert [council["run"] for council in found["councils"]] == [name, more]
    text = Path(found["report"]).read_text("utf-8")
    assert "<h1>Two &lt;councils&gt;</h1>" in text
    assert '<figure id="accuracy-agents">' in text


def test_a_sweep(pluribus: Run, report: Run, tmp_path: Path, data: Path) -> None:
    one, two = {"model": "scripted/keyed", "accuracy": 0.9}, "scripted/number"
    grid = {"models": {"mixed": [one, two]}, "num_agents": [2, 4], "persona": ["none", "multi"]}
    file = tmp_path / "sweep.yaml"
    file.write_text(
        yaml.safe_dump({"name": "try", "base": {"task": "jsonl", "data": str(data)}, "grid": grid}), "utf-8"
    )
    assert pluribus("sweep", file).code == 0
    found = report("try")
    assert found["title"] == "try"
    lines = {council["line"] for council in found["councils"]}
    assert {"mixed · no personas · vote", "mixed · personas · vote"} <= lines
    assert len(found["councils"]) == 6, "four cells and a control of each model"
    assert "2 more are one model's self-consistency" in found["verdict"]


def test_a_history_of_another_code_with_a_line_cut_off(report: Run, tmp_path: Path) -> None:
    file = tmp_path / "sums_debate_12__toy_N=3_R=1.jsonl"
    lines = [json.dumps({str(r): _round(q, r) for r in (0, 1)}) for q in range(12)]
    file.write_text("\n".join(lines) + '\n{"0": {"resp', "utf-8")
    found = report(file)
    text = Path(found["report"]).read_text("utf-8")
    assert str(file) in text, "every number is traced to the file"
    assert "cut off at the end" in text
    assert '<figure id="round-accuracy">' in text


def _round(question: int, round: int) -> dict[str, Any]:
    gold, n = str(question), 3
    right = [(question + agent) % (3 + 2 * round) > 0 for agent in range(n)]
    answers = [gold if one else "99" for one in right]
    said = {f"sums_12__toy__None__Agent{agent}": f"agent {agent}: {answers[agent]}" for agent in range(n)}
    return {
        "responses": said, "final_answers": answers, "final_answer_iscorr": right, "debate_answer": gold,
        "debate_answer_iscorr": True, "answer": gold,
    }  # fmt: skip


def test_a_run_in_which_nobody_answered(pluribus: Run, council: Run, name: str, report: Run, tmp_path: Path) -> None:
    failing = ["scripted/broken"]
    run = pluribus("run", council(models=failing, retries=1), "--json")
    assert run.code == 1
    silent = run.object["run"]
    assert "runs without an answer: 1" in pluribus("report", silent, "--out", tmp_path / "none").complaint()
    text = Path(report(name, silent)["report"]).read_text("utf-8")
    assert "runs without an answer" in text


def test_one_file_with_its_figures_beside_it(pluribus: Run, name: str, tmp_path: Path) -> None:
    said = pluribus("report", name, "--out", tmp_path / "deep" / "page.html", "--embedder", "hashing")
    assert said.code == 0
    assert (tmp_path / "deep" / "page.html").is_file()
    assert (tmp_path / "deep" / "page-files" / "tables" / "cells.csv").is_file()
    assert "report: " in said.out
    assert "figures as PNG" in said.out


def test_no_call_is_made_and_the_same_report_is_the_same_file(report: Run, name: str) -> None:
    first = Path(report(name)["report"]).read_bytes()
    assert Path(report(name)["report"]).read_bytes() == first


def test_what_is_not_there(pluribus: Run, name: str) -> None:
    assert "unknown run or sweep 'nothing'; there are: " in pluribus("report", "nothing").complaint()
    assert "unknown embedder" in pluribus("report", name, "--embedder", "nothing").complaint()


def test_without_matplotlib_it_says_what_to_install(name: str, tmp_path: Path) -> None:
    code = "import sys; sys.modules['matplotlib'] = None; from pluribus.cli import main; sys.exit(main(sys.argv[1:]))"
    arguments = ["report", name, "--out", str(tmp_path / "out"), "--embedder", "hashing"]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'pluribus[report]'" in done.stderr
    assert not (tmp_path / "out").exists()
