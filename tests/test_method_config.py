"""Method files of the published codes are read as they are; what is unknown is one line that lists what is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pluribus.council import Council
from pluribus.errors import ConfigError, UnknownName
from pluribus.load import load, names
from pluribus.method_config import ENTRIES, SYNONYMS, MethodConfig, read_method_config, setting_hints, translated

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes the file where the published codes keep it: methods/NAME/configs/config_main.yaml."""

    def file(method: str, text: str) -> Path:
        path = tmp_path / "methods" / method / "configs" / "config_main.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    return file


PUBLISHED: Mapping[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "dylan": (
        "random_seed: 3\ndebug: false\nnum_agents: 4\nnum_rounds: 3\nactivation: listwise\ntype: open-ended\n"
        "roles: [Assistant, Assistant, Assistant, Assistant]\n",
        {"num_rounds": 3, "activation": "listwise"},
        {"num_agents": 4, "seed": 3, "roles": ["Assistant"] * 4},
    ),
    "llm_debate": ("agents_num: 3\nrounds_num: 2\n", {"num_rounds": 2}, {"num_agents": 3}),
    "agentverse": (
        "cnt_agents: 2\nmax_turn: 3\nmax_criticizing_rounds: 3\n",
        {"cnt_agents": 2, "max_turn": 3, "max_criticizing_rounds": 3},
        {},
    ),
    "self_consistency": ("parallel_num: 7\n", {"parallel_num": 7}, {}),
    "mad": ("num_players: 3\nmax_round: 2\n", {"max_round": 2}, {}),
    "mav": ("n_solutions: 2\nn_max_verifiers: 3\nvera_temp: 0.0\n", {"n_solutions": 2, "n_verifiers": 3}, {}),
    "camel": (
        "chat_turn_limit: 3\nassistant_role: Postdoc\nuser_role: PhD Student\nwith_critic: True\noption_num: 1\n"
        "critic_role: Professor\n",
        {"chat_turn_limit": 3, "with_critic": True, "option_num": 1},
        {"num_agents": 4, "roles": ["Postdoc", "PhD Student", "PhD Student", "Professor"]},
    ),
    "macnet": (
        "agent_num: 4\ntopology: random\nreverse: False\ntype: Travel\naggregate_retry_limit: 10\n"
        "aggregate_unit_num: 2\nnode_in_id: -1\nnode_out_id: -2\n",
        {"agent_num": 4, "topology": "random"},
        {},
    ),
    "autogen": (
        "max_turn: 3\nis_termination_msg: TERMINATE\ncode_execute: False\n",
        {"max_turn": 3, "code_execute": False},
        {},
    ),
    "mapcoder": ("k: 3\nt: 5\nlanguage: python\n", {"k": 3, "t": 5}, {}),
    "evomac": ("iteration: 5\nlanguage: python\n", {"iteration": 5}, {}),
    "chatdev": ("gui_design: True\n", {}, {}),
}
"""Their file → settings of the method, and entries of a council file."""


@pytest.mark.parametrize("method", sorted(PUBLISHED))
def test_a_published_method_file_is_read_as_it_is(method: str, write: Write) -> None:
    text, settings, entries = PUBLISHED[method]
    found = read_method_config(write(method, text))
    said = dict(found.entries.get("settings", {}))
    assert settings.items() <= said.items()
    assert {**entries, "method": method}.items() <= {k: v for k, v in found.entries.items() if k != "settings"}.items()
    load("methods", method).Settings(**said)


def test_what_changes_nothing_is_named_with_its_reason(write: Write) -> None:
    found = read_method_config(write("debate", "debug: true\nlanguage: Python\n"))
    assert [line.split(" ")[0] for line in found.idle] == ["debug", "language"]
    assert found == MethodConfig({"method": "debate"}, found.idle)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("debate_round: 2", ["unknown key 'debate_round' for the method debate", "did you mean 'debate_rounds'?"]),
        ("num_rounds: 2", ["unknown key 'num_rounds'", "debate_rounds"]),
        ("debate_rounds: two", ["setting debate_rounds of debate is 'two'", "int"]),
        ("debate_rounds: -1", ["debate_rounds is -1"]),
        ("language: Java", ["language is 'Java'", "Python"]),
        ("num_agents: many", ["num_agents is 'many'"]),
        ("method: vote", ["for the method 'vote', not for 'debate'"]),
        ("settings: {rounds: 2}", ["unknown setting of debate 'rounds'", "debate_rounds"]),
        ("method: [debate]", ["method is ['debate']"]),
        ("1: 2", ["unknown key 1"]),
        ("roles: Doctor", ["roles is 'Doctor'"]),
        ("task: gsm8k", ["unknown key 'task'"]),
        ("[1]", ["expected a mapping"]),
    ],
)
def test_a_wrong_file_is_one_line_that_names_it(write: Write, text: str, words: list[str]) -> None:
    path = write("debate", text)
    with pytest.raises(ConfigError) as caught:
        read_method_config(path, "debate")
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert "\n" not in said
    assert [part for part in words if part not in said] == [], said


def test_whose_settings_they_are(write: Write, tmp_path: Path) -> None:
    """The caller's word, then the file's, then the folder's, then the fallback; else an error."""
    text = "num_agents: 2\n"
    assert read_method_config(write("debate", text), "vote").entries["method"] == "vote"
    assert read_method_config(write("debate", text + "method: vote\n")).entries["method"] == "vote"
    assert read_method_config(write("debate", text), None, "single").entries["method"] == "debate"
    loose = tmp_path / "loose.yaml"
    loose.write_text(text, "utf-8")
    assert read_method_config(loose, None, "single").entries["method"] == "single"
    with pytest.raises(ConfigError, match="say --method NAME"):
        read_method_config(loose)


def test_our_own_style_and_theirs_in_one_file() -> None:
    entries, idle = translated(
        "debate",
        {"settings": {"debate_rounds": 1}, "topology": "sparse", "model_temperature": 0.5, "max_tokens": 99, "seed": 4},
    )
    assert entries == {
        "settings": {"debate_rounds": 1, "topology": "sparse"},
        "sampling": {"temperature": 0.5, "max_tokens": 99},
        "seed": 4,
    }
    assert idle == ()


def test_the_entries_make_a_council(write: Write) -> None:
    entries = read_method_config(write("debate", "agents_num: 4\ntopology: sparse\nroles: [Doctor, Lawyer]\n")).entries
    council = Council(["scripted/number"], **entries)
    answer = council.ask("1 + 1?", kind="number", remember=False)
    seats = answer.transcript.attempt.agents
    assert [seat.persona for seat in seats] == ["Doctor", "Lawyer"] * 2
    assert answer.transcript.attempt.settings["topology"] == "sparse"


def test_an_unknown_method_is_named(write: Write) -> None:
    with pytest.raises(UnknownName, match="unknown method 'debat'; did you mean 'debate'"):
        read_method_config(write("debate", "agents_num: 4\n"), "debat")


def test_a_type_is_the_topology_only_where_it_can_be() -> None:
    assert translated("debate", {"type": "sparse"})[0] == {"settings": {"topology": "sparse"}}
    assert translated("debate", {"type": "single_choice"})[0] == {}
    assert translated("debate", {"topology": "sparse", "type": "centralized"})[0]["settings"] == {"topology": "sparse"}


def test_a_number_of_agents_is_the_method_s_where_it_has_such_a_setting() -> None:
    assert translated("macnet", {"agent_num": 4, "num_agents": 3})[0] == {
        "num_agents": 3,
        "settings": {"agent_num": 4},
    }
    assert translated("vote", {"agent_num": 4})[0] == {"num_agents": 4}


def test_as_many_seats_as_roles_unless_it_says_how_many() -> None:
    assert translated("vote", {"roles": ["Doctor", "Lawyer"]})[0]["num_agents"] == 2
    assert translated("vote", {"num_agents": 4, "roles": ["Doctor", "Lawyer"]})[0]["num_agents"] == 4


def test_every_synonym_leads_somewhere() -> None:
    there = {name for method in names("methods") for name in setting_hints(method)} | ENTRIES
    there |= {"temperature", "top_p", "max_tokens"}
    assert [key for key, ours in SYNONYMS.items() if not set(ours) & there] == []
