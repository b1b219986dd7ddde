"""Samples of lm-evaluation-harness: files that it wrote itself (in data/), and the forms that other tasks leave."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pluribus.errors import DataError
from pluribus.logs import Recording, lm_eval, reader_of
from pluribus.logs._panels import combine, panel_of_recording
from pluribus.logs._rows import CUT_OFF
from pluribus.panel import answers, credits, right_Q_A

DATA = Path(__file__).parent / "data" / "lm_eval"
Lines = Callable[..., Path]


def samples(task: str, model: str = "*") -> list[Path]:
    return sorted(DATA.glob(f"{model}/samples_{task}_2*.jsonl"))


def one(path: Path) -> Recording:
    (found,) = lm_eval.read(path)
    return found


def test_a_file_it_wrote_itself_and_its_model() -> None:
    (path,) = samples("tiny_sums_once", "jar__alpha")
    assert reader_of(path) is lm_eval
    found = one(path)
    assert (found.task, found.agents, found.omitted) == ("tiny_sums_once", ("jar/alpha",), {})
    assert [key.answer for _, key in found.pairs if key] == ["7", "35", "1217", "16"]
    assert {question.kind for question, _ in found.pairs} == {"number"}
    assert found.pairs[0][0].text == "A shelf holds 3 jars and 4 more arrive. How many jars are there?"
    assert [(output.answer, output.correct) for output in found.outputs] == [
        ("7", True), ("35", True), ("1217", True), ("16", True),
    ]  # fmt: skip


def test_of_several_filters_the_one_that_read_most_is_taken() -> None:
    (path,) = samples("tiny_sums_once", "jar__alpha")
    strict = [row for row in map(json.loads, path.read_text("utf-8").splitlines()) if row["filter"] == "strict-match"]
    assert [row["exact_match"] for row in strict] == [1, 1, 1, 0]  # it found no #### in the last text
    assert all(output.correct for output in one(path).outputs)


def test_repeats_are_samples_of_one_model_and_the_key_judges_them() -> None:
    panel = panel_of_recording(one(samples("tiny_sums", "jar__beta")[0]))
    assert [(m.name, m.draw) for m in panel.members] == [("jar/beta #1", 0), ("jar/beta #2", 1)]
    assert answers(panel) == [["7", "7"], ["36", "35"], ["1217", "1218"], ["16", "16"]]
    assert right_Q_A(panel).tolist() == [[1, 1], [0, 1], [1, 0], [1, 1]]


def test_of_options_the_likeliest_is_the_answer() -> None:
    found = one(samples("tiny_choice", "jar__alpha")[0])
    question, key = found.pairs[0]
    assert (question.kind, question.choices, key and key.answer) == ("choice", ("chair", "plum", "hammer"), "B")
    assert [(output.answer, output.text) for output in found.outputs] == [("B", "B. plum")] * 3
    assert [output.correct for output in found.outputs] == [True, False, False]


def test_files_of_several_models_are_one_council_per_task() -> None:
    panels = combine([one(path) for task in ("tiny_choice", "tiny_sums_once") for path in samples(task)])
    assert [(p.name, [m.model for m in p.members]) for p in panels] == [
        ("tiny_choice, 2 models", ["jar/alpha", "jar/beta"]), ("tiny_sums_once, 2 models", ["jar/alpha", "jar/beta"]),
    ]  # fmt: skip
    assert answers(panels[1]) == [["7", "8"], ["35", "35"], ["1217", "1217"], ["16", "17"]]
    assert credits(panels[1]).tolist() == [1, 1, 1, 1]  # a tie goes to the first
    assert panels[1].settings["files"] == [str(path) for path in samples("tiny_sums_once")]


def test_without_results_beside_it_the_folder_names_the_model(tmp_path: Path) -> None:
    (path,) = samples("tiny_choice", "jar__alpha")
    other = tmp_path / "org__model-7b" / path.name
    other.parent.mkdir()
    other.write_bytes(path.read_bytes())
    assert one(other).agents == ("org/model-7b",)


# --- forms of other tasks --------------------------------------------------------------------------------------------


def chosen(
    scores: Sequence[float], conts: Sequence[str], target: Any, acc: float | None, doc: Any = None, contexts: Any = None
) -> dict[str, Any]:
    contexts = contexts or ["Q"] * len(conts)
    given = [{"arg_0": context, "arg_1": cont} for context, cont in zip(contexts, conts, strict=True)]
    row = {
        "doc_id": 0, "doc": doc or {"question": "Which?"}, "target": str(target), "filter": "none", "doc_hash": "d0",
        "arguments": {f"gen_args_{i}": one for i, one in enumerate(given)},
        "resps": [[[str(s), "False"]] for s in scores], "filtered_resps": [[str(s), "False"] for s in scores],
    }  # fmt: skip
    return row if acc is None else row | {"acc": acc}


def generated(texts: list[str], filtered: list[Any], target: str, number: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "doc_id": number, "doc": {"question": f"Which {number}?"}, "target": target, "resps": [texts],
        "filtered_resps": filtered, "filter": "none", "doc_hash": f"d{number}", **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("conts", "doc", "target", "options", "key"),
    [([" A", " B"], {"question": "q", "choices": ["Rome", "Paris"]}, "1", ("Rome", "Paris"), "B"),
     ([" A", " B"], {"question": "q", "choices": {"text": ["Rome", "Paris"]}}, "B", ("Rome", "Paris"), "B"),
     ([" A", " B"], {"question": "q"}, "0", ("A", "B"), "A"),
     ([" Rome", " Paris"], None, "Paris", ("Rome", "Paris"), "B"),
     ([" Rome", " Paris"], None, "[0, 1]", ("Rome", "Paris"), None)],
)  # fmt: skip
def test_options_and_targets_of_every_form(
    lines: Lines, conts: list[str], doc: Any, target: str, options: tuple[str, ...], key: str | None
) -> None:
    question, gold = one(lines([chosen([-1.0, -2.0], conts, target, None, doc)])).pairs[0]
    assert (question.choices, gold and gold.answer) == (options, key)


def test_an_ambiguous_target_is_what_fits_the_verdict(lines: Lines) -> None:
    """Options that are numbers: "1" is the option at place 1, or the option 1."""
    at_place = one(lines([chosen([-1.0, -2.0], [" 1", " 0"], "1", 0.0)], "a.jsonl"))
    by_text = one(lines([chosen([-1.0, -2.0], [" 1", " 0"], "1", 1.0)], "b.jsonl"))
    assert [r.pairs[0][1] and r.pairs[0][1].answer for r in (at_place, by_text)] == ["B", "A"]


def test_options_that_differ_in_their_beginning(lines: Lines) -> None:
    found = one(lines([chosen([-5.0, -2.0], [" ran."] * 2, "1", 1.0, contexts=["The dog", "The cat"])]))
    assert found.pairs[0][0].choices == ("The dog", "The cat")
    assert found.outputs[0].answer == "B"


def test_unconditional_likelihoods_are_no_options(lines: Lines) -> None:
    row = chosen([-5.0, -2.0, -1.0, -0.5], [" a cat", " a dog"] * 2, "1", 1.0, contexts=["Q", "Q", "", ""])
    found = one(lines([row]))
    assert found.pairs[0][0].choices == ("a cat", "a dog")
    assert found.outputs[0].answer == "B"


def test_a_text_that_no_filter_read_is_read_here(lines: Lines) -> None:
    text = "It must be so. The answer is 12."
    found = panel_of_recording(one(lines([generated([text], [text], "12", exact_match=0.0)])))
    assert answers(found) == [["12"]]
    assert right_Q_A(found).tolist() == [[0]]  # the source's verdict stands


def test_what_the_filter_called_invalid_is_no_answer(lines: Lines) -> None:
    rows = [
        generated(["is 12"], ["[invalid]"], "12", exact_match=0.0),
        generated(["13"], ["13"], "13", 1, exact_match=1.0),
    ]
    assert answers(panel_of_recording(one(lines(rows)))) == [[None], ["13"]]


def test_letters_that_were_generated_and_the_options_they_stand_for(lines: Lines) -> None:
    rows = [generated(["It is Paris."], ["[invalid]"], "B", exact_match=0.0),
            generated(["(A)"], ["A"], "A", 1, exact_match=1.0)]  # fmt: skip
    rows[0]["doc"]["options"] = rows[1]["doc"]["options"] = ["Rome", "Paris"]
    found = one(lines(rows))
    assert [(q.kind, q.choices, key and key.answer) for q, key in found.pairs] == [
        ("choice", ("Rome", "Paris"), "B"), ("choice", ("Rome", "Paris"), "A"),
    ]  # fmt: skip
    assert [output.answer for output in found.outputs] == [None, "A"]


def test_one_filtered_answer_for_many_texts_is_not_theirs(lines: Lines) -> None:
    texts = ["The answer is 4.", "The answer is 5.", "The answer is 5."]
    found = panel_of_recording(one(lines([generated(texts, ["5"], "5", exact_match=1.0)])))
    assert answers(found) == [["4", "5", "5"]]
    assert right_Q_A(found).tolist() == [[0, 1, 1]]


def test_older_files_without_hashes_and_with_plain_lists(lines: Lines) -> None:
    rows = []
    for number in range(2):
        row = chosen([-1.0, -2.0], [" Rome", " Paris"], 0, 1.0, {"query": f"Where {number}?"})
        rows.append(row | {"arguments": [["Q", " Rome"], ["Q", " Paris"]], "resps": [[[-1.0, False]], [[-2.0, False]]],
                           "doc_id": number})  # fmt: skip
        del rows[-1]["doc_hash"], rows[-1]["filter"]
    found = one(lines(rows))
    assert [question.text for question, _ in found.pairs] == ["Where 0?", "Where 1?"]
    assert [output.answer for output in found.outputs] == ["A", "A"]


def test_what_is_left_out_is_counted(lines: Lines) -> None:
    rows = [generated(["4"], ["4"], "4"), generated(["5"], ["5"], "4"), generated(["4"], ["4"], "4", 1),
            chosen([-1.0], [" word"], "word", 1.0) | {"doc_hash": "x"}, '{"doc_id": 4, "doc"']  # fmt: skip
    found = one(lines(rows))
    assert found.omitted == {lm_eval.DUPLICATES: 1, lm_eval.NO_ANSWERS: 1, CUT_OFF: 1}
    assert len(found.pairs) == len(found.outputs) == 2


def test_the_same_words_under_another_number_are_another_question(lines: Lines) -> None:
    found = one(lines([generated(["4"], ["4"], "4", 0), generated(["4"], ["4"], "4", 7) | {"doc_hash": "d0"}]))
    assert [question.id for question, _ in found.pairs] == ["d0", "d0-7"]
    assert found.omitted == {}


@pytest.mark.parametrize(
    ("rows", "message"),
    [([chosen([-1.0], [" word"], "word", 1.0)], "log-likelihoods of given texts are no answers"),
     ([generated(["4"], ["4"], "4"), {"doc": 3, "resps": []}], r"rows\.jsonl:2: no sample of lm-evaluation-harness"),
     ([generated(["4"], ["4"], "4"), "{\n", generated(["4"], ["4"], "4")], r"rows\.jsonl:2: not JSON")],
)  # fmt: skip
def test_a_malformed_file_is_an_error(lines: Lines, rows: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        lm_eval.read(lines(rows))
