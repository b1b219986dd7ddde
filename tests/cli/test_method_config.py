"""`--method-config FILE`: --set over the method's own file over the council file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def method_file(tmp_path: Path) -> Callable[..., Path]:
    def write(text: str, method: str = "debate") -> Path:
        path = tmp_path / "methods" / method / "configs" / "config_main.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    return write


def planned(pluribus: Run, *arguments: Any) -> Any:
    said = pluribus("run", *arguments, "--dry-run", "--json")
    assert said.code == 0, said
    return said.object


def test_set_wins_over_the_method_file_and_that_over_the_council_file(
    pluribus: Run, council: Run, method_file: Run
) -> None:
    file = council(method="debate", settings={"debate_rounds": 4, "stop_on_consensus": True}, num_agents=2, seed=1)
    own = method_file("debate_rounds: 3\ntopology: sparse\nagents_num: 4\nrandom_seed: 9\n")
    plan = planned(pluribus, file, "--method-config", own)
    assert plan["config"]["settings"] == {"debate_rounds": 3, "topology": "sparse", "stop_on_consensus": True}
    assert (len(plan["seats"]), plan["config"]["seed"]) == (4, 9)
    plan = planned(pluribus, file, "--method-config", own, "--set", "debate_rounds=1", "--num-agents", "3", "--seed", 2)
    assert plan["config"]["settings"]["debate_rounds"] == 1
    assert (len(plan["seats"]), plan["config"]["seed"]) == (3, 2)


def test_the_method_files_method_drops_the_settings_of_another(pluribus: Run, council: Run, method_file: Run) -> None:
    file = council(method="self_consistency", settings={"parallel_num": 3})
    plan = planned(pluribus, file, "--method-config", method_file("debate_rounds: 1\n"))
    assert (plan["config"]["method"], plan["config"]["settings"]["debate_rounds"]) == ("debate", 1)


def test_roles_become_personas(pluribus: Run, council: Run, method_file: Run) -> None:
    own = method_file("roles: [Rigorous Formalist, Economist]\n")
    seats = planned(pluribus, council(), "--method-config", own)["seats"]
    assert [seat["persona"] for seat in seats] == ["rigorous formalist", "Economist"]
    assert seats[0]["sampling"]["temperature"] == 0.5, "the persona's own"
    assert "Economist" in seats[1]["system"]


def test_sampling_of_the_method_file_wins_over_the_seats_and_yields_to_a_flag(
    pluribus: Run, council: Run, method_file: Run
) -> None:
    file = council(models=[], seats=[{"model": "scripted/number", "temperature": 0.3}])
    own = method_file("model_temperature: 0.7\n")
    assert planned(pluribus, file, "--method-config", own)["seats"][0]["sampling"]["temperature"] == 0.7
    flagged = planned(pluribus, file, "--method-config", own, "--temperature", "0.1")
    assert flagged["seats"][0]["sampling"]["temperature"] == 0.1


def test_what_changes_nothing_is_said_on_stderr(pluribus: Run, council: Run, method_file: Run) -> None:
    said = pluribus("run", council(), "--method-config", method_file("debug: true\n"), "--dry-run", "--json")
    assert "debug changes nothing: every turn is stored anyway" in " ".join(said.err.split())


def test_a_wrong_method_file_is_one_line(pluribus: Run, council: Run, method_file: Run, tmp_path: Path) -> None:
    line = pluribus("run", council(), "--method-config", method_file("debate_round: 2\n")).complaint()
    assert "config_main.yaml: unknown key 'debate_round'" in line
    assert "No such file" in pluribus("run", council(), "--method-config", tmp_path / "none.yaml").complaint()


def test_set_num_agents_is_the_council_s_size(pluribus: Run, council: Run) -> None:
    assert len(planned(pluribus, council(), "--set", "num_agents=5")["seats"]) == 5
    assert "differ" in pluribus("run", council(), "--set", "num_agents=5", "--num-agents", "2").complaint()
    assert "num_agents is 'x'" in pluribus("run", council(), "--set", "num_agents=x").complaint()
