"""The whole walk as a newcomer takes it: the demo's own command, on the embedded models, offline."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pluribus import Council, Store
from pluribus.cli import main
from pluribus.run import reload
from pluribus.zoo import members

pytest.importorskip("torch", reason="the zoo runs on torch: pip install 'pluribus[local]'")

QUESTION = "Ann has 12 apples. Ann buys 8 more. Half of them break. How many apples are left?"


def pluribus(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "import sys; from pluribus.cli import main; sys.exit(main())", *arguments]
    environment = os.environ | {"PLURIBUS_HOME": str(home), "HF_HUB_OFFLINE": "1", "COLUMNS": "120"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, check=False)


def test_the_demo_measures_every_arm_and_stores_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 20
    monkeypatch.setenv("PLURIBUS_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    code = main(["demo", "--questions", str(n)])
    said, complaints = capsys.readouterr()
    assert code == 0, complaints
    assert "At 8 calls a question" in said
    assert "round 1, after reading the others" in said
    with Store.open(tmp_path) as store:
        runs = [reload(store, listed.id) for listed in store.runs()]
    methods = [result.table.method for result in runs]
    assert sorted(set(methods)) == ["debate", "self_consistency", "single", "vote"]
    assert all(result.score.failed == 0 and len(result.rows) == result.asked for result in runs)
    tested = [result for result in runs if result.asked == n]
    assert [result.table.method for result in tested].count("debate") == 3 and methods.count("debate") == 4
    equal_calls = [result.score.calls for result in tested if result.table.method in ("debate", "self_consistency")]
    assert set(equal_calls) == {8 * n}
    (student,) = (tmp_path / "demo").glob("*/student")
    assert "Many into one: qwen alone" in said and (student / "model.safetensors").is_file()
    asked = [result.table.seats[0] for result in tested if str(student) in result.table.seats[0].model]
    assert [seat.dialect for seat in asked] == ["zoo"]


def test_the_python_door_asks_and_runs(tmp_path: Path) -> None:
    council = Council(["zoo/qwen", "zoo/olmo"], method="debate", settings={"debate_rounds": 1}, home=tmp_path)
    answer = council.ask(QUESTION, kind="number")
    assert answer.decision is not None
    assert len(answer.transcript.turns) == 4
    result = council.run("sums", limit=5)
    assert (len(result.rows), result.score.failed) == (5, 0)
    assert list(result.frame()["question_id"]) == [f"sums/test/{i}" for i in range(5)]


def test_four_models_loaded_at_once_in_a_new_process_all_answer(tmp_path: Path) -> None:
    everybody = ",".join(f"zoo/{name}" for name in members())
    done = pluribus("ask", QUESTION, "--kind", "number", "--agent-models", everybody, "--json", home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "missing" not in done.stdout and '"failure": null' in done.stdout
