"""`pluribus plan`: questions, calls and dollars from a pilot, and what can not be planned."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pluribus.fake_server import FakeServer
from pluribus.stats import questions_needed, wilson

Run = Callable[..., Any]


@pytest.fixture
def run(pluribus: Run, lines: Run) -> Run:
    """Runs recorded models over twenty questions with key 1: each entry is a model's answers, `-` none."""

    def go(answers: dict[str, list[str]], *more: str) -> str:
        n = len(next(iter(answers.values()))[0])
        data = lines([{"id": f"q{i}", "question": f"Question {i}?", "answer": "1"} for i in range(n)], "pilot.jsonl")
        rows = [
            {"question_id": f"q{i}", "model": model, "sample": s, "text": f"A: {answer}"}
            | {"usage": {"prompt_tokens": 30, "completion_tokens": 10}}
            for model, samples in answers.items()
            for s, answered in enumerate(samples)
            for i, answer in enumerate(answered)
        ]
        file = lines(rows, f"outputs-{'-'.join(answers)}.jsonl")
        models = ",".join(f"replay/{file}#{model}" for model in answers)
        said = pluribus("run", "--task", "jsonl", "--data", data, "--agent-models", models, *more, "--json")
        return str(said.object["run"])

    return go


A, B, C = "1" * 14 + "2" * 6, "1" * 8 + "2" * 6 + "1" * 6, "1" * 10 + "2" * 10
"""Right on 14, 14 and 10 of 20."""


def test_questions_calls_and_tokens_from_two_runs(pluribus: Run, run: Run) -> None:
    first, other = run({"a": [A]}, "--method", "single"), run({"b": [B]}, "--method", "single")
    found = pluribus("plan", first, "--effect", "10", "--against", other, "--json").object
    pilot = found["pilot"]
    assert (pilot["n"], pilot["only_council"], pilot["only_control"], pilot["discordance"]) == (20, 6, 6, 0.6)
    low, high = wilson(12, 20)
    needed = {name: questions_needed(at, 0.1) for name, at in (("low", low), ("estimate", 0.6), ("high", high))}
    assert {name: line["questions"] for name, line in found["needed"].items()} == needed
    assert found["needed"]["estimate"]["calls"] == 2 * needed["estimate"]
    assert found["needed"]["estimate"]["tokens"] == 80 * needed["estimate"]
    said = pluribus("plan", first, "--effect", "10", "--against", other)
    assert said.code == 0
    for part in (f"{needed['estimate']:,} questions ({needed['low']:,} – {needed['high']:,})", "80 % power", "60.0 %"):
        assert part in " ".join(said.out.split())


def test_more_power_needs_more_questions(pluribus: Run, run: Run) -> None:
    pair = run({"a": [A]}, "--method", "single"), "--against", run({"b": [B]}, "--method", "single")
    base, strong, strict = (
        pluribus("plan", *pair, "--effect", "10", *more, "--json").object["needed"]["estimate"]["questions"]
        for more in ((), ("--power", "0.95"), ("--alpha", "0.01"))
    )
    assert base < strong
    assert base < strict


def test_the_control_is_self_consistency_where_the_workspace_has_it(pluribus: Run, run: Run) -> None:
    council = run({"a": [A, A, A], "b": [B, B, B], "c": [C, C, C]})
    alone = pluribus("plan", council, "--effect", "10", "--json").object
    assert alone["pilot"]["control"].endswith(" alone")
    assert alone["pilot"]["shared"] is True
    estimate = alone["needed"]["estimate"]
    assert estimate["calls"] == 3 * estimate["questions"], "the best member's answers are the council's own"
    assert "cost nothing more" in " ".join(pluribus("plan", council, "--effect", "10").out.split())
    file = "outputs-a-b-c.jsonl"
    model = next(s["model"] for s in pluribus("show", council, "--json").object["seats"] if file in s["model"])
    data = str(Path(model.partition("/")[2].partition("#")[0]).with_name("pilot.jsonl"))
    draws = ("--method", "self_consistency", "--set", "parallel_num=3", "--agent-models", model)
    assert pluribus("run", "--task", "jsonl", "--data", data, *draws).code == 0
    found = pluribus("plan", council, "--effect", "10", "--json").object
    assert found["pilot"]["control"] == "a, self-consistency of 3"
    assert found["pilot"]["shared"] is False
    estimate = found["needed"]["estimate"]
    assert estimate["calls"] == 6 * estimate["questions"]
    assert estimate["tokens"] == 240 * estimate["questions"]
    assert estimate["cost_usd"] == 0


def test_what_is_unpriced_stays_unpriced(pluribus: Run, council: Run) -> None:
    with FakeServer(answers="keyed", accuracy=0.6) as server:
        file = council(models=[f"openai/m@{server.url}"], num_agents=5)
        name = pluribus("run", file, "--json").object["run"]
    found = pluribus("plan", name, "--effect", "5", "--json").object
    assert found["needed"]["estimate"]["cost_usd"] is None
    assert found["needed"]["estimate"]["tokens"] > 0
    said = pluribus("plan", name, "--effect", "5").out
    assert said.count("unpriced") == 3, "in each line of the table"
    assert "nothing is known of its price" in " ".join(said.split())


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--effect", "0"), "--effect is 0; expected points above 0"),
        (("--effect", "-2"), "--effect is -2"),
        (("--effect", "101"), "at most 100"),
        (("--effect", "2", "--power", "1"), "--power is 1"),
        (("--effect", "2", "--alpha", "0"), "--alpha is 0"),
        (("--effect", "61"), "an effect of 61 points is more than the pilot allows"),
        ((), "--effect"),
    ],
)
def test_impossible_aims_are_one_line(pluribus: Run, run: Run, flags: tuple[str, ...], complaint: str) -> None:
    pair = run({"a": [A]}, "--method", "single"), "--against", run({"b": [B]}, "--method", "single")
    assert complaint in pluribus("plan", *pair, *flags).complaint()


def test_copies_differ_on_no_question(pluribus: Run, run: Run) -> None:
    council = run({"a": [A], "b": [A]})
    assert "differ on 0.0 % [0.0, 16.1] of 20 questions" in pluribus("plan", council, "--effect", "2").complaint()


def test_a_member_alone_needs_another_side(pluribus: Run, run: Run) -> None:
    assert "--against RUN" in pluribus("plan", run({"a": [A]}, "--method", "single"), "--effect", "2").complaint()


def test_runs_without_a_shared_question(pluribus: Run, run: Run, lines: Run) -> None:
    first = run({"a": [A]}, "--method", "single")
    others = lines([{"id": "other", "question": "Another?", "answer": "1"}], "others.jsonl")
    other = pluribus("run", "--task", "jsonl", "--data", others, "--agent-models", "scripted/number", "--json").object
    complaint = pluribus("plan", first, "--effect", "2", "--against", other["run"]).complaint()
    assert "share no question" in complaint
    assert "unknown run" in pluribus("plan", "nobody", "--effect", "2").complaint()
