"""`pluribus team`: the importance of each seat of a stored run, and a council file that can be run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Run = Callable[..., Any]


@pytest.fixture
def name(pluribus: Run, council: Run) -> str:
    file = council(method="dylan", multi_persona=True, num_agents=4, settings={"num_rounds": 2})
    return str(pluribus("run", file, "--json").object["run"])


def test_each_seat_has_its_importance_and_the_best_are_kept(pluribus: Run, name: str) -> None:
    found = pluribus("team", name, "--keep", "2", "--json").object
    worth = [seat["importance"] for seat in found["seats"]]
    assert (found["run"], found["questions"], len(worth)) == (name, 12, 4)
    assert 1 <= sum(worth) <= 2, "one for each layer"
    best = sorted(range(4), key=lambda seat: -worth[seat])[:2]
    assert [seat["seat"] - 1 for seat in found["seats"] if seat["kept"]] == sorted(best)
    assert all(seat["interval"][0] <= seat["importance"] <= seat["interval"][1] for seat in found["seats"])


def test_the_council_it_prints_can_be_run(pluribus: Run, name: str, tmp_path: Path, data: Path) -> None:
    said = pluribus("team", name, "--keep", "2")
    assert said.code == 0
    assert "importance" in said.out
    file = tmp_path / "team.yaml"
    file.write_text(said.out.split("pluribus run FILE:\n")[1], "utf-8")
    written = yaml.safe_load(file.read_text("utf-8"))
    kept = [s for s in pluribus("team", name, "--keep", "2", "--json").object["seats"] if s["kept"]]
    assert [seat["persona"] for seat in written["seats"]] == [seat["persona"] for seat in kept]
    again = pluribus("run", file, "--task", "jsonl", "--data", data, "--json")
    assert again.code == 0
    seated = again.object["seats"]
    assert [(seat["model"], seat["persona"]) for seat in seated] == [(s["model"], s["persona"]) for s in kept]


def test_roles_stay_with_their_seats(pluribus: Run, council: Run, tmp_path: Path) -> None:
    roles = ["Economist", "Doctor", "Lawyer"]
    name = pluribus("run", council(method="dylan", roles=roles, settings={"num_rounds": 1}), "--json").object["run"]
    found = pluribus("team", name, "--keep", "2", "--json").object
    kept = [seat["seat"] - 1 for seat in found["seats"] if seat["kept"]]
    assert found["council"]["roles"] == [roles[seat] for seat in kept]


def test_an_exported_run_has_its_importance_too(pluribus: Run, name: str, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl.gz"
    assert pluribus("export", name, "--out", file).code == 0
    there, here = (pluribus("team", run, "--json").object for run in (file, name))
    assert there["seats"] == here["seats"]


def test_seats_of_a_council_file_keep_what_was_said_about_them(pluribus: Run, council: Run) -> None:
    seats = [{"model": "scripted/number", "name": f"seat {i}", "temperature": 0.1 * i} for i in range(3)]
    file = council(method="dylan", models=[], seats=seats, settings={"num_rounds": 1})
    found = pluribus("team", pluribus("run", file, "--json").object["run"], "--keep", "2", "--json").object
    kept = [seat["seat"] - 1 for seat in found["seats"] if seat["kept"]]
    assert found["council"] == {"method": "dylan", "settings": {"num_rounds": 1}, "seats": [seats[i] for i in kept]}


def test_a_control_stays_a_control(pluribus: Run, council: Run) -> None:
    file = council(method="dylan", baseline_b=True, settings={"num_rounds": 1})
    found = pluribus("team", pluribus("run", file, "--json").object["run"], "--keep", "1", "--json").object
    assert found["council"]["baseline_b"] is True
    assert "persona" not in found["council"]["seats"][0]


def test_a_run_without_ratings(pluribus: Run, council: Run) -> None:
    name = pluribus("run", council(method="vote"), "--json").object["run"]
    assert "none of 12 transcripts" in pluribus("team", name).complaint()


def test_more_than_there_are(pluribus: Run, name: str) -> None:
    assert "keep is 9 of 4 seats" in pluribus("team", name, "--keep", "9").complaint()


def test_a_run_with_a_seed_below_zero_has_intervals_too(pluribus: Run, council: Run) -> None:
    file = council(method="dylan", seed=-1, settings={"num_rounds": 1})
    name = pluribus("run", file, "--json").object["run"]
    said = pluribus("team", name, "--keep", "2", "--json")
    assert said.code == 0
    assert all(seat["interval"] for seat in said.object["seats"])
