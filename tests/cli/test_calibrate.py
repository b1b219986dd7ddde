"""`pluribus calibrate`, and runs that use what it wrote."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Kept

from pluribus.cli import main
from pluribus.store import Store

Run = Callable[..., Any]

MODELS = [{"model": "scripted/keyed", "accuracy": p} for p in (0.85, 0.6, 0.4)]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return Kept.make(tmp_path_factory.mktemp("kept"), MODELS, 80)


@pytest.fixture(scope="module")
def calibrated(kept: Kept, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `calibrate` writes of the run."""
    folder = tmp_path_factory.mktemp("calibrated")
    home, path = folder / "home", folder / "c.json"
    shutil.copytree(kept.home, home)
    assert main(["calibrate", kept.run, "--home", str(home), "--out", str(path)]) == 0
    return path.read_text("utf-8")


@pytest.fixture
def many(kept: Kept) -> Path:
    return kept.data


@pytest.fixture
def name(kept: Kept) -> str:
    return kept.lay_out()


@pytest.fixture
def file(calibrated: str, name: str, tmp_path: Path) -> Path:
    path = tmp_path / "c.json"
    path.write_text(calibrated, "utf-8")
    return path


def test_seats_what_it_is_worth_and_how_to_use_it(pluribus: Run, name: str, tmp_path: Path) -> None:
    out = tmp_path / "c.json"
    said = pluribus("calibrate", name, "--out", out, "--target-accuracy", "0.7", "--confidence", "platt")
    assert said.code == 0, said
    for part in (
        "weights from keys, learned from 40 questions; all that follows the seats is of the other 40 (split by seed 0)",
        "scripted/keyed[accuracy=0.85]",
        "weighted vote 0.",
        "best seat, chosen where it was learned: seat 1 with 0.",
        "expected calibration error: 0.",
        "for an accuracy of 0.7: answering at a confidence of at least 0.",
        "100 %",
        f"--calibration {out} --abstain-below 0.",
    ):
        assert part in said.out
    assert "pluribus run --calibration" not in said.out
    known = json.loads(out.read_text())
    assert (known["format"], known["version"], known["rule"]) == ("pluribus-calibration", 1, "weighted")
    assert known["runs"][0].startswith(name) and known["threshold"] > 0


def test_json_has_the_report_and_the_file(pluribus: Run, name: str, tmp_path: Path) -> None:
    found = pluribus("calibrate", name, "--out", tmp_path / "c.json", "--check", "0.25", "--json").object
    assert found["questions"] == {"learned_from": 60, "checked_on": 20}
    assert found["report"]["n"] == 20 and found["report"]["coverage"][0]["coverage"] == 1.0
    assert found["calibration"] == json.loads((tmp_path / "c.json").read_text())


def test_the_same_runs_give_the_same_bytes(pluribus: Run, name: str, file: Path, tmp_path: Path) -> None:
    exported, other = tmp_path / "run.jsonl", tmp_path / "other.json"
    pluribus("export", name, "--out", exported)
    assert pluribus("calibrate", exported, name, "--out", other).code == 0
    assert other.read_bytes() == file.read_bytes()


def test_nothing_held_out_is_said(pluribus: Run, name: str, tmp_path: Path) -> None:
    said = pluribus("calibrate", name, "--out", tmp_path / "c.json", "--check", "0")
    assert said.code == 0 and "nothing is held out" in said.out and "weighted vote" not in said.out


def test_a_run_without_keys_gives_weights_alone(pluribus: Run, council: Run, lines: Run, tmp_path: Path) -> None:
    data = lines(
        [{"id": f"q{i}", "question": f"{i} + 1? [key: {i + 1}]", "kind": "number"} for i in range(60)], "n.jsonl"
    )
    run = pluribus("run", council(data=str(data), models=MODELS), "--json").object["run"]
    out = tmp_path / "c.json"
    assert "--without-labels" in pluribus("calibrate", run, "--out", out).complaint()
    assert not out.exists()
    said = pluribus("calibrate", run, "--out", out, "--without-labels")
    assert said.code == 0 and "0 questions with a key are too few for a confidence" in said.out
    used = council(data=str(data), models=MODELS)
    assert "no confidence: the calibration has none" in pluribus("run", used, "--calibration", out).out
    line = pluribus("run", used, "--calibration", out, "--abstain-below", "0.5").complaint()
    assert "abstain_below is 0.5, but there is no confidence: the calibration has none" in line


def test_a_run_says_how_sure_it_is_and_what_abstaining_gave(
    pluribus: Run, council: Run, many: Path, file: Path
) -> None:
    used = council(data=str(many), models=MODELS, calibration=str(file))
    said = pluribus("run", used, "--abstain-below", "0.9")
    assert said.code == 0, said
    for part in (
        "weighted; ties: first; seed 0; confidence learned from 40 questions of jsonl; no answer below 0.9",
        "mean confidence 0.",
        "expected calibration error 0.",
        "at a confidence of at least 0.9 it answers ",
        "council, with what it withheld, − seat 1, the best alone",
        "no call sent",
    ):
        assert part in said.out, part
    found = pluribus("run", used, "--abstain-below", "0.9", "--json").object
    sure = found["confidence"]
    assert (sure["n"], sure["abstain_below"]) == (80, 0.9)
    assert sure["answered"] == found["council"]["answered"] == 80 - found["council"]["abstained"] < 80
    assert sure["answered_accuracy"] > sure["accuracy"]


def test_show_and_resume_need_no_file(pluribus: Run, council: Run, many: Path, file: Path) -> None:
    used = council(data=str(many), models=MODELS, calibration=str(file))
    first = pluribus("run", used, "--abstain-below", "0.9", "--json").object
    file.unlink()
    shown = pluribus("show", first["run"], "--json").object
    assert (shown["council"], shown["confidence"]) == (first["council"], first["confidence"])
    with Store.open() as store:
        rules = {d.rule for a, _ in store.run_attempts(first["id"]) for _, d in store.all_decisions(a)}
    assert len(rules) == 1 and rules.pop().startswith("weighted@")
    again = pluribus("run", "--resume", first["run"], "--json").object
    assert (again["id"], again["council"]) == (first["id"], first["council"])
    assert "c.json: No such file" in pluribus("run", used).complaint()


def test_one_question_shows_its_confidence(pluribus: Run, council: Run, many: Path, file: Path) -> None:
    used = council(data=str(many), models=MODELS, calibration=str(file))
    run = pluribus("run", used, "--abstain-below", "1", "--json").object["run"]
    said = pluribus("show", run, "--question", "q3").out
    assert "decision: –" in said and ", less than 1: no answer" in said


def test_ask_prints_the_confidence(pluribus: Run, council: Run, file: Path) -> None:
    asked = ["ask", "3 + 4? [key: 7]", "--kind", "number", "--council", council(models=MODELS), "--calibration", file]
    said = pluribus(*asked)
    assert said.code == 0 and "confidence  0." in said.out and "(weighted)" in said.out
    silent = pluribus(*asked, "--abstain-below", "1")
    assert silent.code == 0 and "less than 1: no answer" in silent.out
    decision = pluribus(*asked, "--json").object["decision"]
    assert 0 < decision["confidence"] < 1 and decision["answer"] is not None


def test_ask_says_why_there_is_no_confidence(pluribus: Run, council: Run, file: Path) -> None:
    asked = ["ask", "3 + 4? [key: 7]", "--kind", "number", "--council", council(models=MODELS)]
    said = pluribus(*asked, "--calibration", file, "--set", "stop=unassailable")
    assert said.code == 0
    assert "confidence none: the vote stops asking (stop=unassailable)" in " ".join(said.out.split())
    assert "confidence" not in pluribus(*asked).out


def test_what_was_withheld_is_said_where_runs_are_measured(
    pluribus: Run, council: Run, many: Path, file: Path, tmp_path: Path
) -> None:
    used = council(data=str(many), models=MODELS, calibration=str(file))
    silent = pluribus("run", used, "--abstain-below", "0.9", "--json").object
    n = silent["council"]["abstained"]
    assert n > 0
    planned = ["plan", silent["run"], "--effect", "2"]
    assert f"Of the council's decisions {n} were withheld" in " ".join(pluribus(*planned).out.split())
    assert pluribus(*planned, "--json").object["pilot"]["withheld"] == n
    told = ["analyze", silent["run"], "--embedder", "hashing", "--output-dir", tmp_path / "t", "--json"]
    omitted = pluribus(*told).object["runs"][0]["omitted"]
    assert omitted["decisions withheld for too low a confidence (no answer, counted as not right)"] == n
    whole = pluribus("run", used, "--json").object["run"]
    assert "withheld" not in pluribus("plan", whole, "--effect", "2").out


def test_a_council_of_fewer_seats_drops_the_rule_of_the_calibration(
    pluribus: Run, council: Run, many: Path, file: Path
) -> None:
    run = pluribus("run", council(data=str(many), models=MODELS, calibration=str(file)), "--json").object["run"]
    kept = pluribus("recommend", run, "--json").object["council"]
    assert kept is not None and not {"rule", "calibration"} & set(kept)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["nope", "--out", "x.json"], "unknown run 'nope'"),
        (["RUN"], "--out"),
        (["--out", "x.json"], "missing argument"),
        (["RUN", "--out", "x.json", "--check", "1"], "the share to check on is 1"),
        (["RUN", "--out", "x.json", "--check", "-0.1"], "the share to check on is -0.1"),
        (["RUN", "--out", "x.json", "--check", "half"], "--check"),
        (["RUN", "--out", "x.json", "--target-accuracy", "1.2"], "the target accuracy is 1.2"),
        (["RUN", "--out", "x.json", "--confidence", "beta"], "platt"),
        (["RUN", "--out", "x.json", "--check", "0.95"], "are left to learn from"),
    ],
)
def test_wrong_flags(pluribus: Run, name: str, flags: list[str], expected: str) -> None:
    assert expected in pluribus("calibrate", *(name if flag == "RUN" else flag for flag in flags)).complaint()


def test_runs_that_can_not_be_calibrated(pluribus: Run, council: Run, many: Path, name: str, tmp_path: Path) -> None:
    out = tmp_path / "c.json"
    few = pluribus("run", council(), "--json").object["run"]
    assert (
        "questions with a key and a vote: 12; expected at least 20"
        in pluribus("calibrate", few, "--out", out).complaint()
    )
    other = pluribus("run", council(data=str(many)), "--json").object["run"]
    assert "other seats" in pluribus("calibrate", name, other, "--out", out).complaint()
    stopping = council(data=str(many), models=MODELS, settings={"stop": "unassailable"})
    short = pluribus("run", stopping, "--json").object["run"]
    assert "--set stop_shadow=true" in pluribus("calibrate", short, "--out", out).complaint()
    log = tmp_path / "some.json"
    log.write_text("{}")
    assert pluribus("calibrate", log, "--out", out).code == 2
    assert not out.exists()


def test_nothing_but_an_older_calibration_is_written_over(
    pluribus: Run, council: Run, name: str, file: Path, tmp_path: Path
) -> None:
    exported, empty = tmp_path / "run.jsonl", tmp_path / "empty.json"
    pluribus("export", name, "--out", exported)
    before = exported.read_bytes()
    assert "run.jsonl is there already and is no calibration" in (
        pluribus("calibrate", exported, "--out", exported).complaint()
    )
    assert exported.read_bytes() == before
    yaml = council(models=MODELS)
    assert "is no calibration; choose another file" in pluribus("calibrate", name, "--out", yaml).complaint()
    empty.touch()
    for out in (file, empty):
        assert pluribus("calibrate", name, "--out", out).code == 0


def test_what_is_no_file_is_not_written(pluribus: Run, name: str, tmp_path: Path) -> None:
    """A device, such as /dev/null, would be replaced by a file."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for command in (["calibrate", name], ["export", name], ["export", name, "--format", "agent-scaling"]):
        assert "is no file; choose another" in pluribus(*command, "--out", pipe).complaint()
    for command in (["calibrate", name], ["export", name], ["export", name, "--format", "replay"]):
        for out in ("", ".", tmp_path):
            assert "is a folder; choose another" in pluribus(*command, "--out", out).complaint()
    assert pipe.is_fifo()


def test_a_file_that_can_not_be_written_is_said_and_left_out(pluribus: Run, name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file")
    said = pluribus("calibrate", name, "--out", tmp_path / "folder" / "c.json")
    assert said.code == 1 and "can not be written" in said.err


@pytest.mark.parametrize(
    ("content", "flags", "expected"),
    [
        ("{oops", [], "c.json: not JSON"),
        ("[" * 100_000, [], "c.json: not JSON"),
        ('{"accuracy": 0.9}', [], "c.json: not a calibration; write one with `pluribus calibrate RUN --out FILE`"),
        ('{"format": "pluribus-calibration", "version": 9}', [], "version 9 of a calibration; this pluribus reads 1"),
        ('{"format": "pluribus-calibration", "version": 1}', [], "c.json: task is missing"),
        (None, ["--rule", "plurality"], "rule is plurality, but the calibration gives the seats different weights"),
        (None, ["--num-agents", "4"], "the calibration is of 3 seats, the council has 4"),
        (None, ["--agent-models", "scripted/a,scripted/b,scripted/c"], "seat 1 of the calibration is scripted/keyed["),
        (None, ["--multi-persona"], "seat 1 of the calibration is"),
        (None, ["--abstain-below", "1.5"], "abstain_below is 1.5; input should be less than or equal to 1"),
        (None, ["--abstain-below", "-1"], "abstain_below is -1.0"),
        (None, ["--abstain-below", "nan"], "abstain_below is nan"),
        (None, ["--abstain-below", "0.5", "--set", "stop=beta"], "there is no confidence: the vote stops asking"),
    ],
)
def test_a_calibration_that_can_not_be_used(
    pluribus: Run, council: Run, file: Path, content: str | None, flags: list[str], expected: str
) -> None:
    if content is not None:
        file.write_text(content)
    for command in (["run", council(models=MODELS)], ["ask", "1 + 1?", "--council", council(models=MODELS)]):
        assert expected in pluribus(*command, "--calibration", file, *flags).complaint()


def test_abstaining_needs_a_calibration(pluribus: Run, council: Run) -> None:
    line = pluribus("run", council(), "--abstain-below", "0.5").complaint()
    assert "abstain_below is 0.5, but nothing gives a confidence; say --calibration FILE" in line
    assert (
        "--calibration can not be given with --resume"
        in pluribus("run", "--resume", "x", "--calibration", "c").complaint()
    )


def test_a_calibration_in_the_council_file_is_checked_like_the_file(pluribus: Run, council: Run, file: Path) -> None:
    known = json.loads(file.read_text())
    known["seats"][1]["weight"] = -2
    line = pluribus("run", council(models=MODELS, calibration=known)).complaint()
    assert "calibration: seats.1.weight is -2" in line
