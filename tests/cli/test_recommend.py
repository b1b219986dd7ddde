"""`pluribus recommend`: which seats of a stored run to keep, and a council file that can be run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Run = Callable[..., Any]
MODELS = [
    {"model": "scripted/keyed", "accuracy": 0.95},
    {"model": "scripted/keyed", "accuracy": 0.9},
    "scripted/number",
]
"""The last one never knows the key."""


@pytest.fixture
def many(lines: Callable[..., Path]) -> Path:
    rows = [{"id": f"q{i}", "question": f"{i} + 1? [key: {i + 1}]", "answer": str(i + 1)} for i in range(60)]
    return lines(rows, "many.jsonl")


@pytest.fixture
def name(pluribus: Run, council: Run, many: Path) -> str:
    return str(pluribus("run", council(data=str(many), models=MODELS), "--json").object["run"])


def test_the_seat_that_never_knows_is_not_kept(pluribus: Run, name: str) -> None:
    found = pluribus("recommend", name, "--json").object
    assert (found["run"], found["questions"]) == (name, {"chosen_on": 30, "measured_on": 30})
    assert (found["searched"], found["subsets"], found["tolerance"]) == ("every subset", 7, 0.005)
    assert 3 not in found["kept"]["seats"]
    assert found["kept"]["saved"] > 0
    assert [seat["seat"] for seat in found["drop"]] == [1, 2, 3]
    assert found["drop"][2]["without"]["seats"] == [1, 2]
    assert found["drop"][2]["delta_kstar"] is None
    assert found["all"]["seats"] == [1, 2, 3]
    low, high = found["kept"]["difference_interval"]
    assert low <= found["kept"]["difference"] <= high


def test_what_is_printed_names_the_split_and_ends_in_a_council_that_can_be_run(
    pluribus: Run, name: str, tmp_path: Path, many: Path
) -> None:
    said = pluribus("recommend", name)
    assert said.code == 0
    assert "chosen on 30 questions, measured on the other 30 (split by seed 0)" in said.out
    assert "drop seat 3: " in said.out
    file = tmp_path / "kept.yaml"
    file.write_text(said.out.split("pluribus run FILE:\n")[1], "utf-8")
    kept = pluribus("recommend", name, "--json").object["kept"]["seats"]
    assert len(yaml.safe_load(file.read_text("utf-8"))["seats"]) == len(kept)
    again = pluribus("run", file, "--task", "jsonl", "--data", many, "--json")
    assert again.code == 0
    assert len(again.object["seats"]) == len(kept)


def test_the_seed_and_the_tolerance_are_the_callers(pluribus: Run, name: str) -> None:
    wide = pluribus("recommend", name, "--tolerance", "100", "--json").object
    assert wide["tolerance"] == 1.0
    assert len(wide["kept"]["seats"]) == 1, "anything goes, so one seat, the cheapest"
    assert wide["kept"]["verdict"] in ("no loss", "gain")
    shares = [pluribus("recommend", name, "--seed", str(seed), "--json").object["all"]["accuracy"] for seed in range(4)]
    assert len(set(shares)) > 1


def test_one_seat_alone_needs_no_method(pluribus: Run, council: Run, many: Path, tmp_path: Path) -> None:
    file = council(data=str(many), models=MODELS, method="debate", settings={"debate_rounds": 1})
    debate = pluribus("run", file, "--json").object["run"]
    found = pluribus("recommend", debate, "--tolerance", "100", "--json").object
    assert any("first answers alone are counted" in note for note in found["notes"])
    assert (found["council"]["method"], len(found["council"]["seats"])) == ("single", 1)
    alone = tmp_path / "alone.yaml"
    alone.write_text(yaml.safe_dump(found["council"]), "utf-8")
    assert pluribus("run", alone, "--task", "jsonl", "--data", many, "--json").code == 0


def test_draws_of_one_seat_have_no_council_of_their_own(pluribus: Run, council: Run, many: Path) -> None:
    file = council(data=str(many), models=MODELS[:1], method="self_consistency", settings={"parallel_num": 3})
    found = pluribus("recommend", pluribus("run", file, "--json").object["run"], "--json").object
    assert found["council"] is None
    assert any("how many of them stay matters" in note for note in found["notes"])
    assert all("#" in said for said in found["sentences"])


def test_delta_kstar_is_there_with_an_embedder(pluribus: Run, name: str) -> None:
    found = pluribus("recommend", name, "--embedder", "hashing", "--json").object
    assert found["embedder"] == "hashing"
    assert all(seat["delta_kstar"] is not None for seat in found["drop"])
    assert all("delta-K* " in said for said in found["sentences"])


def test_an_exported_run_gets_the_same_advice(pluribus: Run, name: str, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl.gz"
    assert pluribus("export", name, "--out", file).code == 0
    there, here = (pluribus("recommend", run, "--json").object for run in (file, name))
    assert there == here


def test_logs_of_other_codes_have_advice_and_no_council(pluribus: Run, name: str, tmp_path: Path) -> None:
    folder = tmp_path / "history"
    folder.mkdir()
    assert pluribus("export", name, "--format", "agent-scaling", "--out", folder).code == 0
    for source in (folder, *folder.iterdir()):
        found = pluribus("recommend", source, "--json").object
        assert (found["council"], found["unit"]) == (None, "calls"), "a history has no tokens"
        assert 3 not in found["kept"]["seats"]


def test_a_folder_of_several_runs_is_no_run(pluribus: Run, council: Run, many: Path, name: str, tmp_path: Path) -> None:
    folder = tmp_path / "history"
    folder.mkdir()
    other = pluribus("run", council(data=str(many), models=MODELS[:2]), "--json").object["run"]
    for run in (name, other):
        assert pluribus("export", run, "--format", "agent-scaling", "--out", folder).code == 0
    assert "holds 2 runs: " in pluribus("recommend", folder).complaint()


def test_wrong_input_is_one_line(pluribus: Run, council: Run, name: str) -> None:
    assert "unknown run 'nosuch'" in pluribus("recommend", "nosuch").complaint()
    assert (
        "tolerance is -1 points; give a number from 0 to 100"
        in pluribus("recommend", name, "--tolerance", "-1").complaint()
    )
    assert "unknown embedder 'nosuch'" in pluribus("recommend", name, "--embedder", "nosuch").complaint()
    alone = pluribus("run", council(models=MODELS[:1], method="single"), "--json").object["run"]
    assert "seats with first answers of their own: 1; expected at least 2" in pluribus("recommend", alone).complaint()
