"""Each dataset in each form it is published in."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pluribus.errors import DataError
from pluribus.tasks import load_task
from pluribus.types import Key, Question


def jsonl(folder: Path, *rows: dict[str, Any], name: str = "data.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def array(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "data.json"
    path.write_text(json.dumps(rows, indent=1), "utf-8")
    return path


def one(task: str, path: Path) -> tuple[Question, str | None]:
    ((question, key),) = load_task(task, data=path).pairs
    assert key is None or key.question_id == question.id
    return question, None if key is None else key.answer


def right(question: Question, letter: str | None) -> str:
    assert letter is not None
    return question.choices["ABCDE".index(letter)]


@pytest.mark.parametrize("answer", ["57,500", "-5", "3.14", "18"])
def test_gsm8k_keeps_the_published_number(tmp_path: Path, answer: str) -> None:
    row = {"question": "How much?", "answer": f"Half of #### is <<1+1=2>>2.\n####  {answer} "}
    question, kept = one("gsm8k", jsonl(tmp_path, row))
    assert (question.kind, question.task, kept) == ("number", "gsm8k", answer)


def test_gsm8k_reads_the_projects_form_too(tmp_path: Path) -> None:
    question, kept = one("gsm8k", jsonl(tmp_path, {"id": "x1", "question": "How much?", "answer": "57,500"}))
    assert (question.id, question.kind, question.task, kept) == ("x1", "number", "gsm8k", "57,500")


def arc_row(labels: str, key: str) -> dict[str, Any]:
    choices = [{"text": f"option {label}", "label": label} for label in labels]
    return {"id": f"Q_{labels}", "question": {"stem": "Which?", "choices": choices}, "answerKey": key}


@pytest.mark.parametrize(("labels", "key", "letter"), [("ABCD", "C", "C"), ("1234", "4", "D"), ("ABC", "A", "A")])
def test_arc_turns_every_label_into_the_letter_of_its_place(tmp_path: Path, labels: str, key: str, letter: str) -> None:
    question, answer = one("arc", jsonl(tmp_path, arc_row(labels, key)))
    assert (answer, right(question, answer)) == (letter, f"option {key}")
    assert (question.id, question.text) == (f"Q_{labels}", "Which?")


def test_arc_refuses_a_key_that_labels_no_option(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"data\.jsonl:2: .*must be one of the labels A, B, C, found 'D'"):
        load_task("arc", data=jsonl(tmp_path, arc_row("ABCD", "D"), arc_row("ABC", "D")))


def adapters_row(task: str, word: str, stem: str, options: list[str], answer: int, gap: str = " ") -> dict[str, str]:
    body = gap.join(f"{word.title()}{n}: {option}" for n, option in enumerate(options, 1))
    wanted = "/".join(f"{word}{n}" for n in range(1, len(options) + 1))
    return {
        "instruction": f"Please choose the correct {task}: {stem}\n\n{body}\n\nAnswer format: {wanted}",
        "input": "",
        "output": f"the correct answer is {word}{answer}",
        "answer": f"{word}{answer}",
    }


@pytest.mark.parametrize(
    ("name", "row", "text", "choice"),
    [
        (
            "arc:easy",
            adapters_row("answer to the question", "answer", "Which gas?", ["helium", "argon: rare", "neon"], 2),
            "Which gas?",
            "argon: rare",
        ),
        (
            "piqa",
            adapters_row("solution to the question", "solution", "dresser", ["use a pin ", "paint it"], 1, "\n\n"),
            "dresser",
            "use a pin",
        ),
        (
            "winogrande",
            adapters_row("answer to fill in the blank to complete the given sentence", "option",
                         "Ann met Bo and _ sang.", ["Ann", "Bo"], 2),
            "Ann met Bo and _ sang.",
            "Bo",
        ),
        (
            "hellaswag",
            adapters_row("ending to complete the given sentence", "ending", "He", ["runs", "is", "a", "b"], 4, "\n\n"),
            "He",
            "b",
        ),
    ],
)  # fmt: skip
def test_the_adapters_form(tmp_path: Path, name: str, row: dict[str, str], text: str, choice: str) -> None:
    question, answer = one(name, array(tmp_path, row))
    assert question.text.endswith(text)
    assert right(question, answer) == choice
    assert "Answer format" not in question.text + "".join(question.choices)


def test_adapters_options_that_can_not_be_told_apart_are_refused(tmp_path: Path) -> None:
    row = adapters_row("answer to the question", "answer", "Which?", ["x", "as Answer2: said", "z"], 1)
    with pytest.raises(DataError, match=r"data\.json:item 1: .*can not be told apart"):
        load_task("arc", data=array(tmp_path, row))


def test_hellaswags_own_form_and_its_withheld_answers(tmp_path: Path) -> None:
    row = {"ind": 24, "ctx": "A man sits on a roof. He", "endings": ["flies.", "sings.", "falls.", "x."], "label": "2"}
    question, answer = one("hellaswag", jsonl(tmp_path, row))
    assert (right(question, answer), question.metadata["ind"]) == ("falls.", 24)
    assert question.text.endswith("A man sits on a roof. He")
    assert one("hellaswag", jsonl(tmp_path, {**row, "label": ""}))[1] is None


def test_hellaswag_rows_may_share_their_published_number(tmp_path: Path) -> None:
    row = {"ind": 24, "endings": ["a", "b", "c", "d"], "label": 0}
    loaded = load_task("hellaswag", data=jsonl(tmp_path, {**row, "ctx": "one"}, {**row, "ctx": "two"}))
    assert len({question.id for question, _ in loaded.pairs}) == 2


def test_hellaswag_lettered(tmp_path: Path) -> None:
    row = {"question": "He", "choices": {"A": "a", "B": "b", "C": "c", "D": "d"}, "answer": "D", "id": 3}
    question, answer = one("hellaswag", jsonl(tmp_path, row))
    assert right(question, answer) == "d"
    with pytest.raises(DataError, match="must be one of the letters A, B, C, D"):
        load_task("hellaswag", data=jsonl(tmp_path, {**row, "answer": "E"}))


TRUE, WRONG = "It passes through you.", ["You grow melons", "You die", "You get sick", "You dream"]


def truthful_csv(folder: Path) -> Path:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["Type", "Category", "Question", "Best Answer", "Correct Answers", "Incorrect Answers", "Source"])
    for n in range(40):
        writer.writerow(["Adversarial", "Myths", f"Seeds, {n}?", TRUE[:-1], "It passes; Nothing", "; ".join(WRONG), ""])
    path = folder / "truthful.csv"
    path.write_text("\ufeff" + out.getvalue(), "utf-8")
    return path


def truthful_json(folder: Path) -> Path:
    targets = {TRUE: 1, **{f"{option}.": 0 for option in WRONG}}
    return array(folder, *({"question": f"Seeds, {n}?", "mc1_targets": targets} for n in range(40)))


def test_truthfulqa_shuffles_the_same_way_in_every_form(tmp_path: Path) -> None:
    table, targets = (load_task("truthfulqa", data=make(tmp_path)).pairs for make in (truthful_csv, truthful_json))
    assert [key.answer for _, key in table if key] == [key.answer for _, key in targets if key]
    assert {right(question, key.answer) for question, key in targets if key} == {TRUE}
    assert table[0][0].metadata["category"] == "Myths"


def test_truthfulqas_true_answer_stands_in_every_place(tmp_path: Path) -> None:
    counts = Counter(key.answer for _, key in load_task("truthfulqa", data=truthful_csv(tmp_path)).pairs if key)
    assert set(counts) == set("ABCDE")
    assert max(counts.values()) <= 18, "of 40; uniform has 8 each"


@pytest.mark.parametrize(
    ("targets", "why"),
    [
        ({"a": 1, "b": 1}, "must mark one option with 1, found 2"),
        ({"a": 0, "b": 0}, "must mark one option with 1, found 0"),
        ({"a": 1}, "there is no wrong option"),
        ({"choices": ["a", "b"], "labels": 1}, "must mark one option with 1, found 0"),
        ({"choices": [["a"], "b"], "labels": [1, 0]}, "'choices' must be a list of texts"),
        (["a", "b"], "'mc1_targets' must be an object"),
    ],
)
def test_truthfulqa_needs_one_true_answer_and_a_wrong_one(tmp_path: Path, targets: Any, why: str) -> None:
    with pytest.raises(DataError, match=rf"data\.json:item 1: .*{why}"):
        load_task("truthfulqa", data=array(tmp_path, {"question": "x", "mc1_targets": targets}))


def test_a_csv_row_that_is_too_short_is_named_by_its_line(tmp_path: Path) -> None:
    path = truthful_csv(tmp_path)
    path.write_text(path.read_text("utf-8") + "one,two\n", "utf-8")
    with pytest.raises(DataError, match=r"truthful\.csv:42: expected 7 columns"):
        load_task("truthfulqa", data=path)
    assert len(load_task("truthfulqa", data=path, skip_bad=True).pairs) == 40


PIQA = {"goal": "Dry a shirt.", "sol1": "Hang it up.", "sol2": "Bury it."}


def test_piqa_takes_labels_from_the_file_beside(tmp_path: Path) -> None:
    path = tmp_path / "valid.jsonl.gz"
    rows = [PIQA, {**PIQA, "goal": "Hide a shirt."}]
    path.write_bytes(gzip.compress("\n".join(json.dumps(row) for row in rows).encode()))
    assert [key for _, key in load_task("piqa", data=path).pairs] == [None, None]
    (tmp_path / "valid-labels.lst").write_text("0\n1\n", "utf-8")
    assert [key.answer for _, key in load_task("piqa", data=path).pairs if key] == ["A", "B"]


def test_piqa_labels_that_do_not_match_the_questions_are_refused(tmp_path: Path) -> None:
    path = jsonl(tmp_path, PIQA, name="valid.jsonl")
    (tmp_path / "valid-labels.lst").write_text("0\n1\n", "utf-8")
    with pytest.raises(DataError, match="1 questions, but the file of labels beside it 2"):
        load_task("piqa", data=path)


def test_piqa_with_labels_in_the_rows(tmp_path: Path) -> None:
    question, answer = one("piqa", jsonl(tmp_path, {**PIQA, "label": 1}))
    assert (right(question, answer), question.text.endswith("Dry a shirt.")) == ("Bury it.", True)


def test_winograndes_own_form_counts_from_one(tmp_path: Path) -> None:
    row = {"qID": "3FCO-2", "sentence": "Ann met Bo and _ sang.", "option1": "Ann", "option2": "Bo", "answer": "2"}
    question, answer = one("winogrande", jsonl(tmp_path, row))
    assert (question.id, right(question, answer)) == ("3FCO-2", "Bo")
    assert one("winogrande", jsonl(tmp_path, {**row, "answer": ""}))[1] is None


def mmlu_row(subject: str, split: str, n: int, answer: Any = "C") -> dict[str, Any]:
    text = f"{subject} {split} {n}?"
    return {"split": split, "subject": subject, "question": text, "choices": ["w", "x", "y", "z"], "answer": answer}


def test_mmlu_takes_the_subject_and_the_split_that_are_asked_for(tmp_path: Path) -> None:
    subjects, splits = ("formal_logic", "anatomy"), ("test", "dev")
    path = jsonl(tmp_path, *(mmlu_row(a, b, n) for a in subjects for b in splits for n in range(3)))
    assert len(load_task("mmlu", data=path).pairs) == 6
    assert len(load_task("mmlu", "dev", data=path).pairs) == 6
    loaded = load_task("formal_logic", data=path)
    assert (loaded.task, loaded.family, len(loaded.pairs)) == ("mmlu:formal_logic", "logic", 3)
    assert {question.metadata["subject"] for question, _ in loaded.pairs} == {"formal_logic"}


@pytest.mark.parametrize("answer", ["C", 2])
def test_mmlu_answers_are_letters_or_numbers_from_zero(tmp_path: Path, answer: Any) -> None:
    question, letter = one("mmlu", jsonl(tmp_path, mmlu_row("anatomy", "test", 0, answer)))
    assert right(question, letter) == "y"


@pytest.mark.parametrize("answer", ["E", 4, "", None, True])
def test_mmlu_refuses_an_answer_that_is_no_option(tmp_path: Path, answer: Any) -> None:
    with pytest.raises(DataError, match=r"data\.jsonl:1: "):
        load_task("mmlu", data=jsonl(tmp_path, mmlu_row("anatomy", "test", 0, answer)))


def test_mmlu_reads_the_authors_csv(tmp_path: Path) -> None:
    path = tmp_path / "formal_logic_test.csv"
    path.write_text('"What, if {1, 2}?",w,x,"y, or z",z,C\n"Two\nlines?",1,2,3,4,A\n', "utf-8")
    (first, key), (second, _) = load_task("formal_logic", data=path).pairs
    assert key is not None and right(first, key.answer) == "y, or z"
    assert second.text == "Two\nlines?" and second.choices == ("1", "2", "3", "4")


def answers(pairs: tuple[tuple[Question, Key | None], ...]) -> list[str | None]:
    return [key.answer if key else None for _, key in pairs]


@pytest.mark.parametrize(
    ("name", "file", "n", "first"),
    [
        ("gsm8k", "gsm8k/test.jsonl.gz", 1319, "18"),
        ("arc:challenge", "arc/ARC-Challenge-Test.jsonl.gz", 1172, "C"),
        ("arc:easy", "arc/arc_easy_test.llmadapters.json.gz", 2376, "A"),
        ("hellaswag", "hellaswag/hellaswag_val_sample2000.jsonl.gz", 2000, "D"),
        ("truthfulqa", "truthfulqa/TruthfulQA.csv.gz", 817, None),
        ("truthfulqa", "truthfulqa/mc_task.json.gz", 817, None),
        ("piqa", "piqa/valid.jsonl.gz", 1838, "A"),
        ("piqa", "piqa/piqa_val.llmadapters.json.gz", 1838, "A"),
        ("winogrande", "winogrande/winogrande_val.llmadapters.json.gz", 1267, "B"),
        ("mmlu", "mmlu/mmlu_all57.jsonl.gz", 14042, None),
        ("formal_logic", "mmlu/mmlu_all57.jsonl.gz", 126, None),
        ("formal_logic", "mmlu/formal_logic.jsonl", 126, None),
        ("professional_medicine", "mmlu/professional_medicine.jsonl", 272, None),
    ],
)
def test_real_files_load_whole(shared_data: Path, name: str, file: str, n: int, first: str | None) -> None:
    found = load_task(name, data=shared_data / "benchmarks" / file).pairs
    assert len(found) == n
    assert None not in answers(found)
    assert len({question.id for question, _ in found}) == n
    assert first is None or answers(found)[0] == first


def test_real_gold_numbers_keep_sign_and_separators(shared_data: Path) -> None:
    found = answers(load_task("gsm8k", data=shared_data / "benchmarks/gsm8k/test.jsonl.gz").pairs)
    assert {"57,500", "-10", "-3", "1,450,000", "2,125"} & set(found) == {"-10", "-3", "1,450,000", "2,125"}


def test_both_forms_of_real_piqa_give_the_same_questions_and_keys(shared_data: Path) -> None:
    folder = shared_data / "benchmarks" / "piqa"
    own, adapted = (
        load_task("piqa", data=folder / f).pairs for f in ("valid.jsonl.gz", "piqa_val.llmadapters.json.gz")
    )
    assert answers(own) == answers(adapted)
    assert sum(a.id == b.id for (a, _), (b, _) in zip(own, adapted, strict=True)) > 1800


def test_both_forms_of_real_truthfulqa_agree_question_by_question(shared_data: Path) -> None:
    folder = shared_data / "benchmarks" / "truthfulqa"
    table, targets = (
        {question.text: key.answer for question, key in load_task("truthfulqa", data=folder / f).pairs if key}
        for f in ("TruthfulQA.csv.gz", "mc_task.json.gz")
    )
    shared = table.keys() & targets.keys()
    assert len(shared) == 817
    assert all(table[text] == targets[text] for text in shared)
