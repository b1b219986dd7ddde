"""`pluribus ask`: one question, one decision, and who said what."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_the_decision_its_votes_and_who_said_what(pluribus: Run, council: Run) -> None:
    said = pluribus("ask", "What is 2 + 2? [key: 4]", "--council", council(tie="first"), "--kind", "number")
    assert said.code == 0
    assert "scripted/keyed[accuracy=0.9]" in said.out
    assert "decision" in said.out
    assert "of the votes (plurality" in said.out
    assert "3 calls" in said.out


def test_a_choice_shows_letter_and_text(pluribus: Run) -> None:
    said = pluribus("ask", "Which? [key: B]", "--agent-models", "scripted/keyed", "--choices", "red,blue", "--json")
    found = said.object
    assert found["question"]["kind"] == "choice"
    assert set(found["decision"]["votes"]) <= {"A", "B"}
    assert len(found["turns"]) == 5, "five agents, as the method vote has when nobody says otherwise"


def test_labels_make_a_label_question(pluribus: Run) -> None:
    said = pluribus("ask", "Is it? [key: no]", "--agent-models", "scripted/keyed", "--labels", "yes,no", "--json")
    assert said.object["question"]["labels"] == ["yes", "no"]
    assert said.object["question"]["kind"] == "label"


def test_the_transcript_round_by_round(pluribus: Run, council: Run) -> None:
    flags = ["--method", "debate", "--debate-rounds", "1", "--kind", "number", "--show"]
    said = pluribus("ask", "What is 2 + 2? [key: 4]", "--council", council(), *flags)
    for part in ("round 0 ──", "round 1 ──", "make it plain. {final answer: "):
        assert part in said.out
    assert said.out.index("round 1 ──") < said.out.index("decision")


def test_a_failed_attempt_says_why_and_ends_with_one(pluribus: Run) -> None:
    said = pluribus("ask", "What?", "--agent-models", "scripted/broken", "--retries", "1")
    assert said.code == 1
    assert "failed: every seat failed; the first said: scripted/broken: 500" in said.out
    assert (
        pluribus("ask", "What?", "--agent-models", "scripted/broken", "--retries", "1", "--json").object["decision"]
        is None
    )


def test_asking_again_costs_nothing_and_leaves_the_calls_in_the_workspace(pluribus: Run, tmp_path: Path) -> None:
    arguments = ["ask", "What is 2 + 2?", "--agent-models", "scripted/number", "--kind", "number", "--json"]
    first, again = pluribus(*arguments).object, pluribus(*arguments).object
    assert again == first
    assert (tmp_path / "workspace" / "store.db").is_file()


def test_a_dash_reads_the_question_from_the_standard_input(pluribus: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("What is 2 + 2?\n"))
    said = pluribus("ask", "-", "--agent-models", "scripted/number", "--kind", "number", "--json")
    assert said.object["question"]["text"] == "What is 2 + 2?"


def test_brackets_in_answers_are_no_markup(pluribus: Run, council: Run) -> None:
    file = council(models=[{"model": "scripted/constant", "text": "{final answer: [bold]x[/bold]}"}])
    assert "[bold]x[/bold]" in pluribus("ask", "What [i]now[/i]?", "--council", file, "--kind", "text", "--show").out
