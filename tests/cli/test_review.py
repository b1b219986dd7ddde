"""`pluribus review` without its page: statistics, weights, Label Studio, and what it refuses."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Said
from tests.review.desk import NAME, SAME, plain, plant, rewarded, said, say, varied, verdict

from pluribus.prefer import learn_weights
from pluribus.review.material import gather
from pluribus.store import Store
from pluribus.types import Question

Run = Callable[..., Said]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Twelve pairs; Ada decided ten as the teacher would, Bob five of them the other way round."""
    place = tmp_path / "workspace"
    plant(place, varied(12))
    for at, pair in enumerate(gather(rewarded(place)).pairs[:10]):
        right = pair.replies[0].reward.scores["teacher"] == 0.9
        say(place, verdict(pair, "first" if right else "second", "Ada", float(at)))
        if at < 5:
            say(place, verdict(pair, "second" if right else "first", "Bob", float(at)))
    return place


def test_statistics_on_the_terminal_and_as_json(pluribus: Run, home: Path) -> None:
    shown = pluribus("review", NAME, "--stats")
    assert shown.code == 0 and shown.err == ""
    assert "12 pairs, 10 decided by one person: 5 with a winner, 5 ties; 0 skips" in shown.out
    assert "Cohen's kappa" in shown.out and "majority of the reviewers" in shown.out
    found = pluribus("review", NAME, "--stats", "--json").object
    assert (found["pairs"], found["decided"], [p["name"] for p in found["people"]]) == (12, 10, ["Ada", "Bob"])
    assert [(row["n"], row["agreed"], row["share"]) for row in found["between"]] == [(5, 0, 0.0)]
    teacher = next(r for r in found["with_judges"] if (r["one"], r["other"]) == ("Ada", "teacher"))
    assert (teacher["n"], teacher["agreed"], teacher["kappa"]) == (10, 10, 1.0)
    assert pluribus("review", NAME, "--stats", "--json", "--votes", "2").object["decided"] == 5


def test_weights_are_those_that_prefer_takes(pluribus: Run, home: Path) -> None:
    found = pluribus("review", NAME, "--adjust-weights", "--json").object
    made = rewarded(home)
    asked = [(part.question, part.candidates) for part in made.asked]
    expected = learn_weights("human", asked, made.rewards, verdicts=said(home))
    assert found["learned"] == dict(expected.weights) and found["pairs"] == expected.pairs == 5
    assert found["now"] == {"teacher": 0.5, "critic": 0.3, "diversity": 0.2}
    shown = pluribus("review", NAME, "--adjust-weights")
    assert "5 pairs that people decided" in shown.out and f"pluribus prefer {NAME} --weights human" in shown.out
    assert rewarded(home).weights == made.weights, "nothing was changed"


def annotated(path: Path, selected: str) -> list[Any]:
    rows = json.loads(path.read_text("utf-8"))
    result = [{"type": "pairwise", "from_name": "pw", "to_name": "text1,text2", "value": {"selected": selected}}]
    for row in rows:
        row["annotations"] = [{"completed_by": 3, "result": result, "created_at": "2026-03-09T22:16:08Z"}]
    return list(rows)


def test_to_label_studio_and_back(pluribus: Run, home: Path, tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    assert pluribus("review", NAME, "--export-label-studio", path).out == f"{path}: 2 tasks\n"
    path.write_text(json.dumps(annotated(path, "left")), "utf-8")
    assert "2 verdicts taken, 0 were here already" in pluribus("review", NAME, "--import-label-studio", path).out
    again = pluribus("review", NAME, "--import-label-studio", path, "--json")
    assert (again.object["taken"], again.object["known"]) == (0, 2)
    assert len(said(home)) == 17 and said(home)[-1].reviewer == "label studio 3"
    refused = pluribus("review", NAME, "--export-label-studio", path).complaint()
    assert f"--export-label-studio {path} is there already" in refused  # people's work is in it
    left = pluribus("review", NAME, "--export-label-studio", tmp_path / "left.json", "--json")
    assert left.object["tasks"] == 0


def test_a_bad_row_is_named_and_nothing_is_half_imported(pluribus: Run, home: Path, tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    pluribus("review", NAME, "--export-label-studio", path)
    rows = annotated(path, "right")
    rows[1]["data"]["pluribus_pair"] = "of another run"
    path.write_text(json.dumps(rows), "utf-8")
    complaint = pluribus("review", NAME, "--import-label-studio", path).complaint()
    assert f"{path}: task 2: data.pluribus_pair: there is no pair 'of another run'" in complaint
    assert len(said(home)) == 15


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--stats", "--adjust-weights"], "--stats and --adjust-weights are two errands"),
        (["--json"], "--json needs something to print"),
        (["--token", " "], "--token is empty"),
        (["--reviewer", ""], "--reviewer is empty"),
        (["--reviewer", "\u202e"], "--reviewer"),
        (["--limit", "0"], "--limit"),
        (["--votes", "0"], "--votes"),
        (["--port", "99999"], "--port"),
        (["--host", "no.such.host.invalid"], "--host no.such.host.invalid"),
    ],
)
def test_flags_that_make_no_sense(pluribus: Run, home: Path, flags: list[str], words: str) -> None:
    assert words in pluribus("review", NAME, *flags).complaint()


def test_a_run_that_is_not_there_and_no_workspace(pluribus: Run, home: Path, tmp_path: Path) -> None:
    assert "unknown run 'plantde'; did you mean 'planted'?" in pluribus("review", "plantde", "--stats").complaint()
    nowhere = tmp_path / "nowhere"
    assert "there is no workspace" in pluribus("review", NAME, "--home", nowhere).complaint()
    assert not nowhere.exists()


def test_a_run_without_rewards_says_which_command_makes_them(pluribus: Run, tmp_path: Path) -> None:
    with Store.open(tmp_path / "workspace") as store:
        store.put_questions([(Question("q", "t", "?", "text"), None)])
        store.begin_run("r9", "bare", {}, [("a", "q", 0)])
    for flags in ([], ["--stats"], ["--adjust-weights"], ["--export-label-studio", "x.json"]):
        complaint = pluribus("review", "bare", *flags).complaint()
        assert "run bare has no rewards" in complaint and "pluribus reward bare" in complaint


def test_a_file_must_be_imported_first(pluribus: Run, home: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("{}\n")
    assert f"import it with: pluribus import {path}" in pluribus("review", path).complaint()


def test_no_verdict_no_weights(pluribus: Run, tmp_path: Path) -> None:
    plant(tmp_path / "workspace", [plain(0, SAME)])
    line = pluribus("review", NAME, "--adjust-weights").complaint()
    assert "--adjust-weights: nobody has preferred" in line and f"pluribus review {NAME}" in line
    shown = pluribus("review", NAME, "--stats")
    assert shown.code == 0 and "0 pairs, 0 decided" in shown.out


def test_an_export_never_takes_the_place_of_a_folder(pluribus: Run, home: Path, tmp_path: Path) -> None:
    line = pluribus("review", NAME, "--export-label-studio", tmp_path).complaint()
    assert "--export-label-studio" in line and "is a folder" in line


def test_an_export_takes_the_place_of_an_older_one_alone(pluribus: Run, home: Path, tmp_path: Path) -> None:
    foreign, tasks = tmp_path / "notes.json", tmp_path / "tasks.json"
    foreign.write_text('[{"mine": 1}]', "utf-8")
    assert "is no file of such tasks" in pluribus("review", NAME, "--export-label-studio", foreign).complaint()
    assert foreign.read_text("utf-8") == '[{"mine": 1}]'
    for _ in range(2):
        assert pluribus("review", NAME, "--export-label-studio", tasks).code == 0


def test_a_port_that_is_taken(pluribus: Run, home: Path) -> None:
    pytest.importorskip("fastapi")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        complaint = pluribus("review", NAME, "--port", str(port)).complaint()
    assert f"127.0.0.1, port {port}: address already in use" in complaint and "--port" in complaint


def test_without_the_extra_it_says_what_to_install(home: Path, tmp_path: Path) -> None:
    """A Python that has no fastapi: the package's place is taken by one that can not be found."""
    code = (
        "import sys; sys.modules['fastapi'] = None\n"
        "from pluribus.cli import main; sys.exit(main(['review', 'planted', '--port', '0']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
        env={**os.environ, "PLURIBUS_HOME": str(home)},
    )  # fmt: skip
    assert done.returncode == 2
    assert "this needs the package 'fastapi'" in done.stderr and "pluribus[serve]" in done.stderr
