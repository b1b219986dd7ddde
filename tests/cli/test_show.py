"""`pluribus show`: stored runs, single questions, prompts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.fixture
def name(pluribus: Run, council: Run) -> str:
    found = pluribus("run", council(method="debate", settings={"debate_rounds": 1}), "--json").object
    return str(found["run"])


def test_a_run_is_shown_as_it_was_printed_without_its_files(pluribus: Run, name: str, data: Path) -> None:
    printed = pluribus("show", name, "--json").object
    data.unlink()
    shown = pluribus("show", name)
    assert shown.code == 0
    assert f"{printed['council']['value']:.4f}" in shown.out
    assert "debate: debate_rounds 1, topology decentralized" in shown.out
    assert "finished" in shown.out
    assert printed["status"] == "finished"
    assert printed["council"]["calls"] == 72
    assert printed["sent"] is None


def test_a_run_answers_to_the_beginning_of_its_name(pluribus: Run, name: str) -> None:
    assert pluribus("show", name[:9], "--json").object["run"] == name


def test_one_question_round_by_round(pluribus: Run, name: str) -> None:
    said = pluribus("show", name, "--question", "q3")
    for part in (
        "3 + 1? [key: 4]",
        "key: 4",
        "round 0 ──",
        "round 1 ──",
        "1. scripted/keyed[accuracy=0.9] →",
        "decision: ",
    ):
        assert part in said.out
    assert pluribus("show", name, "--question", "4").out == said.out, "4 is the place of q3"
    found = pluribus("show", name, "--question", "q3", "--json").object
    assert [len(found["transcript"]["turns"]), found["key"]["answer"]] == [6, "4"]


def test_a_question_that_is_not_there(pluribus: Run, name: str) -> None:
    assert "has no question 'zz'; give an id, e.g. q0" in pluribus("show", name, "--question", "zz").complaint()


def test_the_prompts_a_method_would_send(pluribus: Run, tmp_path: Path) -> None:
    said = pluribus("show", "prompt", "debate", "--persona", "conservative verifier")
    for part in (
        "debate_revise (standard) ─",
        "[system]",
        "conservative verifier",
        "agent 2",
        "{final answer: NUMBER}",
    ):
        assert part in said.out
    own = tmp_path / "words"
    own.mkdir()
    (own / "answer.txt").write_text("[user]\nMine: $question\n", "utf-8")
    found = pluribus("show", "prompt", "vote", "--prompts", own, "--json").object
    assert found["answer"][0]["content"].startswith("Mine: A shelf holds 12 books.")


def test_what_a_model_wrote_can_not_steer_the_terminal(pluribus: Run, lines: Run, data: Path) -> None:
    text = "\x1b[2J\x1b]0;owned\x07 \u202e [red]x[/red] \ud83d A: 1"
    file = lines([{"question_id": f"q{i}", "model": "a", "text": text} for i in range(12)], "outputs.jsonl")
    arguments = [
        "--task",
        "jsonl",
        "--data",
        data,
        "--method",
        "single",
        "--agent-models",
        f"replay/{file}#a",
        "--json",
    ]
    name = pluribus("run", *arguments).object["run"]
    said = pluribus("show", name, "--question", "q0")
    assert said.code == 0
    assert "␛[2J␛]0;owned" in said.out
    assert "[red]x[/red]" in said.out
    assert not {"\x1b", "\x07", "\u202e"} & set(said.out)


@pytest.mark.parametrize("method", ["vote", "vanilla", "cot", "self_consistency", "debate"])
@pytest.mark.parametrize("words", ["standard", "zoo"])
def test_every_method_has_prompts_to_show(pluribus: Run, method: str, words: str) -> None:
    assert "A shelf holds 12 books." in pluribus("show", "prompt", method, "--prompts", words).out
