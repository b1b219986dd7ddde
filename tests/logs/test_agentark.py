"""Inference records of AgentArk: blocks, errors, labels, usage, and the way there and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pluribus.errors import DataError
from pluribus.evaluate import Usage
from pluribus.logs import Recording, agentark, reader_of
from pluribus.logs._panels import combine, panel_of_recording
from pluribus.logs._rows import CUT_OFF
from pluribus.panel import Item, Member, Panel, Word, answers, right_Q_A
from pluribus.types import Key, Question

Lines = Callable[..., Path]
PLACE = "results/SVAMP/Qwen/Qwen3-8B/llm_debate_infer.jsonl"


def blocks(*texts: str) -> str:
    return "".join(f"===== Solution {i} =====\n{text}\n" for i, text in enumerate(texts, 1))


def row(number: int, response: str | None = None, **more: Any) -> dict[str, Any]:
    said = {} if response is None else {"response": response}
    return {"query": f"What is {number} + 1?", "gt": str(number + 1), "tag": ["x"], "source": "SVAMP", **said, **more}


def one(path: Path) -> Recording:
    (found,) = agentark.read(path)
    return found


def test_a_debate_is_a_council_and_its_last_block_the_decision(lines: Lines) -> None:
    stats = {"Qwen3-8B": {"num_llm_calls": 7, "prompt_tokens": 900, "completion_tokens": 120}}
    path = lines(
        [row(1, blocks("It is 2.", "The answer is 3.", "Final Answer: 3"), token_stats=stats),
         row(2, blocks("The answer is 3.", "The answer is 4.", "Final Answer: 3"))],
        PLACE,
    )  # fmt: skip
    assert reader_of(path) is agentark
    panel = panel_of_recording(one(path))
    assert (panel.name, panel.task, panel.method) == ("SVAMP-Qwen/Qwen3-8B-llm_debate", "SVAMP", "llm_debate")
    assert [(m.name, m.model) for m in panel.members] == [("Qwen3-8B #1", "Qwen3-8B"), ("Qwen3-8B #2", "Qwen3-8B")]
    assert answers(panel) == [["2", "3"], ["3", "4"]]
    assert right_Q_A(panel).tolist() == [[1, 0], [1, 0]]
    assert [(item.decided, item.credit) for item in panel.items] == [("3", 0), ("3", 1)]
    assert panel.items[0].usage == Usage(7, 900, 120, None)


def test_the_older_headings_and_quoted_ones(lines: Lines) -> None:
    older = "Solution 1:\nSolution 7: they say. The answer is 2.\n\nSolution 2:\nThe answer is 2."
    panel = panel_of_recording(one(lines([row(1, older)])))
    assert answers(panel) == [["2"]]
    assert panel.items[0].decided == "2"


def test_one_response_is_one_agent_and_models_come_together(lines: Lines) -> None:
    paths = [lines([row(n, f"The answer is {n + off}.") for n in range(3)], f"results/SVAMP/m{off}/cot_infer.jsonl")
             for off in (1, 2)]  # fmt: skip
    (panel,) = combine([one(path) for path in paths])
    assert [member.model for member in panel.members] == ["m1", "m2"]
    assert right_Q_A(panel).tolist() == [[1, 0]] * 3


def test_errors_uneven_blocks_and_repeated_questions_are_counted(lines: Lines) -> None:
    path = lines(
        [row(1, blocks("2", "2", "Final Answer: 2")), row(2, error="Traceback …"),
         row(3, blocks("4", "Final Answer: 4")), row(1, blocks("9", "9", "9")), row(4), '{"query": "cut of']
    )  # fmt: skip
    found = one(path)
    assert found.omitted == {
        agentark.ERRORS: 1, agentark.NO_RESPONSE: 1, agentark.UNEVEN: 1, agentark.DUPLICATES: 1, CUT_OFF: 1,
    }  # fmt: skip
    panel = panel_of_recording(found)
    assert [item.failed for item in panel.items] == [False, True, False, True]


def test_labels_are_verdicts(lines: Lines) -> None:
    solutions = [{"id": i, "text": text, "is_correct": right} for i, (text, right) in
                 enumerate([("The answer is 2.", False), ("It is 9.", True), ("Final Answer: 2", True)])]  # fmt: skip
    panel = panel_of_recording(one(lines([row(1, solutions=solutions)])))
    assert right_Q_A(panel).tolist() == [[0, 1]]
    assert (panel.items[0].decided, panel.items[0].credit) == ("2", 1.0)


@pytest.mark.parametrize(
    ("rows", "message"),
    [([row(1, "2"), {"query": 3, "response": "x"}], r"rows\.jsonl:2: 'query' is int"),
     ([row(1, error="e"), row(2, error="e")], "no response can be read")],
)  # fmt: skip
def test_a_malformed_file_is_an_error(lines: Lines, rows: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        agentark.read(lines(rows))


# --- there and back --------------------------------------------------------------------------------------------------


def made(
    rows: Sequence[Sequence[str | None]], kind: Any, choices: tuple[str, ...] = ()
) -> tuple[Panel, dict[str, Any]]:
    key = next(answer for row in rows for answer in row if answer)
    members = tuple(Member(f"m{i}", "vllm/org/small@http://x/v1", None, i) for i in range(len(rows[0])))
    said = [tuple(Word(f"The answer is {a}." if a else "Hm.", a, float(a == key)) for a in row) for row in rows]
    items = tuple(Item(f"q{n}", key, (words,), row[-1], float(row[-1] == key), Usage(9, 50, None, None))
                  for n, (row, words) in enumerate(zip(rows, said, strict=True)))  # fmt: skip
    panel = Panel("p", "run x", "arc:easy", "llm_debate", members, items)
    return panel, {
        i.question_id: (Question(i.question_id, panel.task, "?", kind, choices), Key(i.question_id, key)) for i in items
    }


@pytest.mark.parametrize(
    ("kind", "choices", "rows"),
    [("choice", ("x", "y", "z"), [["A", "B", "C"], ["B", "A", "A"]]), ("boolean", (), [["true", "false"]]),
     ("number", (), [["18", "-2.5", "18"], ["18", None, "7"]]), ("text", (), [["byron", "rome"]]),
     ("latex", (), [["\\frac{1}{2}", "3"]])],
)  # fmt: skip
def test_what_is_written_is_read_again(tmp_path: Path, kind: str, choices: tuple[str, ...], rows: Any) -> None:
    panel, questions = made(rows, kind, choices)
    (file,) = agentark.write(panel, questions, tmp_path)
    assert Path(file).relative_to(tmp_path).as_posix() == "results/arc-easy/org/small/llm_debate_infer.jsonl"
    again = panel_of_recording(one(Path(file)))
    assert [[w and w.text for w in item.words[0]] for item in again.items] == [
        [w and w.text for w in item.words[0]] for item in panel.items
    ]
    if kind != "latex":  # "The answer is" an expression in words is another matter than this form
        assert [[a for a in row if a] for row in answers(again)] == [[a for a in row if a] for row in answers(panel)]
    assert [(i.question_id, i.decided, i.credit, i.usage) for i in again.items] == [
        (i.question_id, i.decided, i.credit, i.usage) for i in panel.items
    ]


def test_nobody_decided_and_failures_come_back_as_such(tmp_path: Path) -> None:
    panel, questions = made([["18", "18"], ["18", "18"]], "number")
    nothing = tuple(Word("Hm.", None, 0.0) for _ in panel.members)
    items = (panel.items[0], Item("q1", "18", (nothing,), None, 0.0), Item("q2", "18", (), None, None, failed=True))
    questions["q2"] = questions["q1"]
    whole = Panel(panel.name, panel.source, panel.task, panel.method, panel.members, items)
    (file,) = agentark.write(whole, questions, tmp_path / "one.jsonl")
    last = json.loads(Path(file).read_text("utf-8").splitlines()[-1])
    assert "response" not in last and last["error"]


def test_a_single_agent_is_written_without_blocks(tmp_path: Path) -> None:
    panel, questions = made([["18"], ["7"]], "number")
    (file,) = agentark.write(panel, questions, tmp_path / "one.jsonl")
    assert [json.loads(line)["response"] for line in Path(file).read_text("utf-8").splitlines()] == [
        "The answer is 18.", "The answer is 7.",
    ]  # fmt: skip
    np.testing.assert_array_equal(right_Q_A(panel_of_recording(one(Path(file)))), [[1], [0]])


# --- labelled, there and back ----------------------------------------------------------------------------------------


def labelled(kind: Any, **more: Any) -> agentark.Labelled:
    question = Question("q7", "task", "Which \ud83d one?", kind, metadata={"source": "SVAMP", "tag": ["a"]}, **more)
    solutions = [
        agentark.Solution("The answer is A.", True, "Ada", "vllm/m", 0, 0, "key"),
        agentark.Solution("The answer is B.", False, "Ada", "vllm/m", 0, 1, "J 1a2b"),
        agentark.Solution("The answer is A.", True, "Bob", "vllm/n", 1, 0),
    ]
    return question, Key("q7", "A"), solutions


@pytest.mark.parametrize(
    ("kind", "more"),
    [("choice", {"choices": ("x", "y")}), ("label", {"labels": ("A", "B"), "context": "Read this."}), ("text", {})],
)
def test_labelled_solutions_come_back_with_label_round_and_agent(tmp_path: Path, kind: Any, more: Any) -> None:
    question, key, solutions = labelled(kind, **more)
    agentark.write_labelled([(question, key, solutions)], tmp_path / "labeled.jsonl.gz")
    assert reader_of(tmp_path / "labeled.jsonl.gz") is agentark
    found = one(tmp_path / "labeled.jsonl.gz")
    ((again, gold),) = found.pairs
    assert dict(again.metadata) == {"source": "SVAMP", "tag": ["a"]}
    assert (again.id, again.text, again.kind, again.choices, again.labels, again.context) == (
        question.id, question.text, question.kind, question.choices, question.labels, question.context,
    )  # fmt: skip
    assert gold is not None and gold.answer == ("a" if kind == "text" else "A")
    assert [(o.text, o.correct, o.agent, found.models[o.agent], o.round, o.sample) for o in found.outputs] == [
        (s.text, s.correct, s.agent, s.model, s.round, s.sample) for s in solutions
    ]
    assert found.decided == {}
    panel = panel_of_recording(found)
    assert [member.name for member in panel.members] == ["Ada #1", "Ada #2", "Bob"]
    assert panel.rounds == 2


def test_the_labelled_form_is_the_other_codes(tmp_path: Path) -> None:
    question, _, solutions = labelled("text")
    agentark.write_labelled([(question, None, solutions)], tmp_path / "labeled.jsonl")
    row = json.loads((tmp_path / "labeled.jsonl").read_text("utf-8"))
    assert {"query", "gt", "solutions", "labels", "tag", "source"} <= row.keys()
    assert (row["gt"], row["labels"], row["tag"], row["source"]) == (None, [True, False, True], ["a"], "SVAMP")
    assert [(s["id"], s["is_correct"]) for s in row["solutions"]] == [(1, True), (2, False), (3, True)]
    assert [s.get("by") for s in row["solutions"]] == ["key", "J 1a2b", None]


def test_places_that_only_some_solutions_have_are_none(lines: Lines) -> None:
    solutions = [{"id": 1, "text": "2", "is_correct": True, "agent": "Ada", "round": 0},
                 {"id": 2, "text": "3", "is_correct": False, "agent": "Ada", "round": -1},
                 {"id": 3, "text": "Final Answer: 2", "is_correct": True}]  # fmt: skip
    found = one(lines([row(1, solutions=solutions)]))
    assert [(o.round, o.correct) for o in found.outputs] == [(0, True), (0, False)]
    assert list(found.decided.values()) == ["2"]
