"""The council against its best seat, and the lines under a table that not every run has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Run = Callable[..., Any]


def recorded(lines: Run, answers: dict[str, str]) -> list[Any]:
    """Arguments of a run over four questions with key 1, one recorded model per entry: its four answers."""
    data = lines([{"id": f"q{i}", "question": f"Question {i}?", "answer": "1"} for i in range(4)], "four.jsonl")
    rows = [
        {"question_id": f"q{i}", "model": name, "text": f"A: {answer}" if answer != "-" else "no idea"}
        for name, four in answers.items()
        for i, answer in enumerate(four)
    ]
    file = lines(rows, "outputs.jsonl")
    return ["--task", "jsonl", "--data", data, "--agent-models", ",".join(f"replay/{file}#{name}" for name in answers)]


def test_the_difference_is_paired_and_counts_who_is_right_alone(pluribus: Run, lines: Run) -> None:
    arguments = recorded(lines, {"a": "1112", "b": "1221", "c": "2222"})  # the council: 1, 2, 2, 2
    found = pluribus("run", *arguments, "--json").object
    assert [score["value"] for score in found["alone"]] == [0.75, 0.5, 0.0]
    assert found["council"]["value"] == 0.25, "right on q0"
    told = found["comparison"]
    assert (told["chosen"], told["n"], told["difference"]["value"]) == (["seat 1"], 4, -0.5)
    assert (told["test"]["only_first"], told["test"]["only_second"]) == (0, 2)
    said = pluribus("run", *arguments).out
    assert "council − seat 1, the best alone: -0.5000" in said
    assert "right where the other is wrong: council 0, best alone 2 of 4" in said


def test_the_best_alone_may_be_another_seat_on_each_half(pluribus: Run, lines: Run) -> None:
    told = [
        pluribus("run", *recorded(lines, {f"a{i}": a, f"b{i}": b}), "--json").object["comparison"]
        for i, (a, b) in enumerate((("1122", "2211"), ("1212", "2121"), ("1221", "2112")))
    ]
    assert sorted(len(one["chosen"]) for one in told) == [1, 1, 2], "one split puts each seat's successes in one half"
    crossed = next(one for one in told if len(one["chosen"]) == 2)
    assert crossed["control_accuracy"] == 0.0


def test_a_run_and_its_panel_are_compared_alike(pluribus: Run, lines: Run) -> None:
    from pluribus.compare import against_best_single
    from pluribus.run import panel
    from pluribus.store import Store

    found = pluribus("run", *recorded(lines, {"a": "1112", "b": "1221", "c": "2221"}), "--json").object
    with Store.open() as store:
        told = against_best_single(panel(store, found["run"]))
    assert told is not None
    assert (told.difference.value, told.test.p) == (
        found["comparison"]["difference"]["value"],
        found["comparison"]["test"]["p"],
    )


def test_of_a_tie_that_shares_the_credit_the_test_takes_the_answer_shown(pluribus: Run, lines: Run) -> None:
    arguments = recorded(lines, {"a": "1111", "b": "2222"})
    found = pluribus("run", *arguments, "--tie", "fractional", "--json").object
    assert found["council"]["value"] == 0.5
    assert found["comparison"]["difference"]["value"] == -0.5
    assert found["comparison"]["test"]["p"] == 1.0, "the first of the tied is right, as the best seat is"
    assert "4 questions with a shared lead" in pluribus("run", *arguments).out


def test_abstentions_are_counted_apart_from_failures_and_wrong_answers(pluribus: Run, lines: Run) -> None:
    found = pluribus("run", *recorded(lines, {"a": "11--", "b": "1---"}), "--json").object
    first, council = found["alone"][0], found["council"]
    assert (first["answered"], first["abstained"], first["failed"], first["value"]) == (2, 2, 0, 0.5)
    assert (council["answered"], council["abstained"], council["value"]) == (2, 2, 0.5)


def test_questions_without_a_key_are_answered_and_not_scored(pluribus: Run, lines: Run) -> None:
    data = lines([{"question": f"{i} + 1?", "kind": "number"} for i in range(3)])
    said = pluribus("run", "--task", "jsonl", "--data", data, "--agent-models", "scripted/number")
    assert said.code == 0
    assert "3 questions without a key: answered, not scored" in said.out
    assert "McNemar" not in said.out


def test_reasons_are_grouped_and_the_rare_ones_summed_up(pluribus: Run, council: Run, lines: Run) -> None:
    rows = [{"question_id": f"q{i}", "model": "a", "text": "A: 1"} for i in range(2)]
    models = [f"replay/{lines(rows, 'outputs.jsonl')}#a", "scripted/number"]
    out = pluribus("run", council(models=models)).out
    assert "10 questions went on without a seat or a reply:" in out
    assert "10 × seat 1 in round 0: 'a' has no output for question '…'" in out


def test_a_failed_turn_stands_in_the_transcript_with_its_reason(pluribus: Run, council: Run) -> None:
    file = council(models=["scripted/number", "scripted/broken"], retries=1)
    name = pluribus("run", file, "--json").object["run"]
    out = pluribus("show", name, "--question", "1").out
    assert "2. scripted/broken failed" in out
    assert "scripted/broken: 500: it never answers" in out
    assert "degraded: " in out


def test_weights_show_in_the_seating_and_decide(pluribus: Run, council: Run) -> None:
    seats = [
        {"model": {"model": "scripted/constant", "text": "A: 1"}, "weight": 3},
        {"model": {"model": "scripted/constant", "text": "A: 2"}},
        {"model": {"model": "scripted/constant", "text": "A: 2"}},
    ]
    file = council(models=[], seats=seats, rule="weighted")
    assert "weight" in pluribus("run", file, "--dry-run").out
    said = pluribus("ask", "Which?", "--council", file, "--kind", "number", "--json")
    assert (said.object["decision"]["answer"], said.object["decision"]["share"]) == ("1", 0.6)
