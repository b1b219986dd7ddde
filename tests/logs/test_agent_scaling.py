"""Histories of Agent-Scaling: what is read out of every form of them, what is counted, and the way there and back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pluribus.errors import DataError
from pluribus.logs import Recording, reader_of
from pluribus.logs import agent_scaling as history
from pluribus.logs._panels import EMPTY, NO_TEXT, SILENT, panel_of_recording
from pluribus.logs._rows import CUT_OFF
from pluribus.panel import Item, Member, Panel, Word, answers, credits, right_Q_A
from pluribus.types import Key, Question

Lines = Callable[..., Path]
NAME = "gsm8k_vote_2__MIXED2_N=2_R=1_SPARSE_HETERO_ENHANCED.jsonl"
FIRST, SECOND = "gsm8k_2__qwen2.5-7b__Logic__Agent1", "gsm8k_2__llama3.1-8b__None__Agent2"


def spoken(
    texts: Sequence[Any], answers: Sequence[Any], gold: Any, agents: Sequence[str] = (FIRST, SECOND), **more: Any
) -> dict[str, Any]:
    """A round as its code writes it."""
    right = [answer == gold for answer in answers]
    decided = next((answer for answer in answers if answer != ""), "")
    return {
        "responses": dict(zip(agents, texts, strict=True)), "final_answers": list(answers),
        "final_answer_iscorr": right, "debate_answer": decided, "debate_answer_iscorr": decided == gold,
        "answer": gold, "persona_configs": ["None", "None"],
    }  # fmt: skip


def one(path: Path) -> Recording:
    (found,) = history.read(path)
    return found


@pytest.fixture
def two_rounds(lines: Lines) -> Path:
    return lines(
        [
            {"0": spoken(["{final answer: 18}", "so {final answer: 17}"], [18.0, 17.0], 18.0),
             "1": spoken(["{final answer: 18}", "{final answer: 18}"], [18.0, 18.0], 18.0)},
            {"0": spoken(["no idea", "{final answer: 3}"], ["", 3.0], 4.0),
             "1": spoken(["{final answer: 3}", "{final answer: 3}"], [3.0, 3.0], 4.0)},
        ],
        NAME,
    )  # fmt: skip


def test_rounds_agents_answers_and_verdicts(two_rounds: Path) -> None:
    assert reader_of(two_rounds) is history
    panel = panel_of_recording(one(two_rounds))
    assert (panel.task, panel.method, panel.rounds, panel.omitted) == ("gsm8k", "debate", 2, {})
    assert [(m.model, m.persona) for m in panel.members] == [("qwen2.5-7b", "Logic"), ("llama3.1-8b", None)]
    assert answers(panel, 0) == [["18", "17"], [None, "3"]]
    assert answers(panel) == [["18", "18"], ["3", "3"]]
    assert right_Q_A(panel, 0).tolist() == [[1, 0], [0, 0]]
    assert [item.key for item in panel.items] == ["18", "4"]
    assert credits(panel).tolist() == [1, 0]


def test_the_file_name_says_how_it_was_made(two_rounds: Path) -> None:
    assert one(two_rounds).settings == {
        "method": "debate", "solver": "vote", "debate_rounds": 1, "size": 2, "topology": "sparse",
        "multi_persona": True,
    }  # fmt: skip


def test_a_name_in_no_form_is_read_all_the_same(two_rounds: Path, tmp_path: Path) -> None:
    other = two_rounds.rename(tmp_path / "mine.jsonl")
    found = one(other)
    assert (found.name, found.task, found.settings) == ("mine", "gsm8k", {})


@pytest.mark.parametrize("name", ["output_text", "text", "content", "output", "response"])
def test_every_form_of_a_response(lines: Lines, name: str) -> None:
    path = lines([{"0": spoken([{name: "A"}, "B"], ["(A)", "(B)"], "(A)")}])
    assert [output.text for output in one(path).outputs] == ["A", "B"]


def test_the_first_text_that_says_something_is_taken(lines: Lines) -> None:
    path = lines([{"0": spoken([{"output_text": " ", "response": "A"}, "B"], ["(A)", "(B)"], "(A)")}])
    assert [output.text for output in one(path).outputs] == ["A", "B"]


@pytest.mark.parametrize(
    ("answers", "gold", "kind", "canonical"),
    [(["(A)", "(C)"], "(C)", "choice", ["A", "C"]), ([18.0, 1200], 18.0, "number", ["18", "1200"]),
     (["yes", "no"], "no", "boolean", ["true", "false"]), (["Rome", "the Paris"], "Paris", "text", ["rome", "paris"])],
)  # fmt: skip
def test_the_kind_is_found_from_what_is_recorded(
    lines: Lines, answers: list[Any], gold: Any, kind: str, canonical: list[str]
) -> None:
    found = one(lines([{"0": spoken(["x", "y"], answers, gold)}]))
    assert {question.kind for question, _ in found.pairs} == {kind}
    assert [output.answer for output in found.outputs] == canonical


def test_a_recorded_verdict_wins_over_the_text(lines: Lines) -> None:
    round = spoken(["The answer is 4.", "The answer is 5."], [5.0, ""], 4.0)
    panel = panel_of_recording(one(lines([{"0": round}])))
    assert answers(panel) == [["5", None]]
    assert right_Q_A(panel).tolist() == [[0, 0]]


def test_without_recorded_answers_the_texts_are_read(lines: Lines) -> None:
    round = {"responses": {FIRST: "The answer is 4.", SECOND: "The answer is 5."}, "answer": 4.0}
    panel = panel_of_recording(one(lines([{"0": round}])))
    assert answers(panel) == [["4", "5"]]
    assert right_Q_A(panel).tolist() == [[1, 0]]
    assert (panel.items[0].decided, panel.items[0].credit) == ("4", 1.0)


def test_a_centralised_round_records_its_hub_alone(lines: Lines) -> None:
    round = spoken(["The answer is 4.", "The answer is 5."], [4.0, 0.0], 4.0)
    round |= {"final_answers": [4.0], "final_answer_iscorr": [True]}
    panel = panel_of_recording(one(lines([{"0": round}])))
    assert answers(panel) == [["4", "5"]]
    assert right_Q_A(panel).tolist() == [[1, 0]]
    assert panel.omitted == {}


def test_answers_that_do_not_match_the_agents_are_counted_and_read_from_the_texts(lines: Lines) -> None:
    agents = (FIRST, SECOND, "gsm8k_2__x__None__Agent3")
    round = spoken(["is 4", "The answer is 5.", "The answer is 4."], [4.0] * 3, 4.0, agents)
    panel = panel_of_recording(one(lines([{"0": round | {"final_answers": [4.0, 5.0]}}])))
    assert answers(panel) == [["4", "5", "4"]]
    assert panel.omitted == {history.MISMATCHED: 1}


def test_rounds_and_verdicts_that_can_not_be_read_are_counted(lines: Lines) -> None:
    whole = spoken(["{final answer: 1}", "{final answer: 2}"], [1.0, 2.0], 1.0)
    odd = {"final_answers": "1", "final_answer_iscorr": None}
    found = one(
        lines(
            [
                {"0": whole, "-1": whole, "99999": whole, "about": {"seed": 1}},
                {"0": whole | {"final_answer_iscorr": [True]}},
                {"0": whole | odd},
            ]
        )
    )
    assert found.omitted == {history.NO_NUMBER: 2, history.MISJUDGED: 1, history.MISMATCHED: 1}
    assert answers(panel_of_recording(found)) == [["1", "2"]] * 3


def test_answers_of_nobody_and_ids_that_stand_twice_are_counted(lines: Lines) -> None:
    whole = spoken(["{final answer: 1}", "{final answer: 2}"], [1.0, 2.0], 1.0) | {"question_id": "q"}
    nobody = {"responses": {}, "final_answers": [1.0], "answer": 1.0}
    found = one(lines([{"0": whole}, {"0": whole}, {"0": nobody}]))
    assert [question.id for question, _ in found.pairs] == ["q", "q-1", "rows-2"]
    assert answers(panel_of_recording(found))[:2] == [["1", "2"], ["1", "2"]]
    assert found.omitted == {history.TWICE: 1, history.MISMATCHED: 1}


def test_what_is_missing_is_counted(lines: Lines) -> None:
    whole = spoken(["{final answer: 1}", "{final answer: 1}"], [1.0, 1.0], 1.0)
    alone = {**spoken(["{final answer: 1}"], [1.0], 1.0, [FIRST])}
    empty = spoken(["", {"text": "  "}], ["", ""], 1.0)
    no_text = spoken([None, "{final answer: 1}"], ["", 1.0], 1.0)
    rows = [{"0": whole, "1": whole}, {"0": alone}, {"0": empty, "1": whole}, {"id": "nothing"},
            {"0": no_text, "1": whole}, '{"0": {"responses": {"']  # fmt: skip
    panel = panel_of_recording(one(lines(rows)))
    assert len(panel.items) == 5
    assert panel.omitted == {
        history.MISSING_ROUNDS: 1, history.NO_ROUND: 1, history.NOT_TEXT: 1, CUT_OFF: 1, EMPTY: 2, SILENT: 2,
        NO_TEXT: 1,
    }  # fmt: skip
    assert panel.items[3].failed and panel.items[3].credit is None


@pytest.mark.parametrize(
    ("rows", "message"),
    [([{"0": {"responses": {}}}, {"0": 3}], r"rows\.jsonl:2: round '0' is int"),
     ([{"0": {"responses": {}}}, "{nonsense}\n", {"0": {}}], r"rows\.jsonl:2: not JSON"),
     (['{"0": {"resp'], "no question can be read")],
)  # fmt: skip
def test_a_malformed_file_is_an_error_with_its_place(lines: Lines, rows: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        history.read(lines(rows))


# --- there and back --------------------------------------------------------------------------------------------------


def panel(kind_answers: Sequence[Sequence[str | None]], rounds: int = 2, **more: Any) -> Panel:
    """Three agents; the key of every question is the first answer of all."""
    members = (Member("a", "vllm/org/small@http://x/v1", "Logic"), Member("b", "replay/x.jsonl#m_one", None, 1),
               Member("c", "openai/gpt__x", None, 2))  # fmt: skip
    key = next(answer for row in kind_answers for answer in row if answer)
    items = []
    for number, row in enumerate(kind_answers):
        words = tuple(Word(f"I say {answer}.", answer, float(answer == key)) for answer in row)
        said = (words, (words[1], *words[1:]), (None, *words[1:]))[:rounds]
        items.append(Item(f"q{number}", key, said, row[1], float(row[1] == key)))
    return Panel("p", "run x", "mmlu:formal_logic", "debate", members, tuple(items), {"topology": "sparse"}, **more)


def asked(panel: Panel, kind: Any, choices: tuple[str, ...] = ()) -> dict[str, tuple[Question, Key | None]]:
    keys = {item.question_id: Key(item.question_id, item.key) for item in panel.items}
    return {id: (Question(id, panel.task, f"{id}?", kind, choices), key) for id, key in keys.items()}


@pytest.mark.parametrize(
    ("kind", "choices", "rows"),
    [("choice", ("x", "y", "z"), [["A", "B", None], ["B", "A", "A"]]),
     ("number", (), [["18", "-2.5", "12345678901234567890"], ["18", "18", None], ["0.1", "1/3", "18"]]),
     ("boolean", (), [["true", "false", "true"]]), ("text", (), [["lord byron", "rome", None]])],
)  # fmt: skip
def test_what_is_written_is_read_again(tmp_path: Path, kind: str, choices: tuple[str, ...], rows: Any) -> None:
    made = panel(rows, rounds=3)
    (file,) = history.write(made, asked(made, kind, choices), tmp_path)
    assert Path(file).name == f"formal_logic_debate_{len(rows)}__MIXED3_N=3_R=2_SPARSE_HETERO_ENHANCED.jsonl"
    again = panel_of_recording(one(Path(file)))
    assert [item.question_id for item in again.items] == [item.question_id for item in made.items]
    for round in range(3):
        assert answers(again, round) == answers(made, round)
        np.testing.assert_array_equal(right_Q_A(again, round), right_Q_A(made, round))
    assert [[w and w.text for w in row] for item in again.items for row in item.words] == [
        [w and w.text for w in row] for item in made.items for row in item.words
    ]
    assert [(i.decided, i.credit, i.key) for i in again.items] == [(i.decided, i.credit, i.key) for i in made.items]


def test_agents_are_named_as_its_own_code_names_them(tmp_path: Path) -> None:
    made = panel([["A", "B", "A"]])
    (file,) = history.write(made, asked(made, "choice", ("x", "y")), tmp_path / "history.jsonl")
    row = json.loads(Path(file).read_text("utf-8"))
    assert list(row) == ["0", "1"]
    assert list(row["0"]["responses"]) == [
        "formal_logic_1__small__Logic__Agent1", "formal_logic_1__m_one__None__Agent2",
        "formal_logic_1__gpt_x__None__Agent3",
    ]  # fmt: skip
    assert row["1"]["final_answers"] == ["(B)", "(B)", "(A)"]
    assert row["1"]["answer"] == "(A)"
    assert row["1"]["debate_answer_iscorr"] is False


def test_a_failed_attempt_keeps_its_place_and_stays_failed(tmp_path: Path) -> None:
    made = panel([["18", "18", "18"]])
    lost = Item("q1", "18", ((made.items[0].words[0][0], None, None),), None, None, failed=True)
    whole = Panel(made.name, made.source, made.task, made.method, made.members, (*made.items, lost))
    (file,) = history.write(whole, asked(whole, "number"), tmp_path / "h.jsonl")
    again = panel_of_recording(one(Path(file)))
    assert [(item.failed, item.credit) for item in again.items] == [(False, 1.0), (True, None)]
    assert math.isnan(credits(again)[1])
