"""How files of questions are read, whatever the dataset."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pluribus.errors import DataError, UsageError
from pluribus.tasks import load_task
from pluribus.tasks._files import BadRow, Form, Item, numbered, pairs, texts

GOOD = {"question": "How many?", "answer": "It is 57,500.\n#### 57,500"}


def lines(path: Path, *rows: Mapping[str, Any] | str) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), "utf-8")
    return path


def gsm8k(n: int) -> list[dict[str, str]]:
    return [{"question": f"How many is {i} and 1?", "answer": f"#### {i + 1}"} for i in range(n)]


def test_gzip_is_known_by_its_bytes_not_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "questions.txt"
    path.write_bytes(gzip.compress(json.dumps(GOOD).encode()))
    assert load_task("gsm8k", data=path).pairs[0][1].answer == "57,500"


def test_a_cut_gzip_file_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(GOOD).encode())[:-12])
    with pytest.raises(DataError, match=r"cut\.jsonl\.gz: not a whole gzip file"):
        load_task("gsm8k", data=path)


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c"])
def test_only_newlines_end_a_line(tmp_path: Path, sign: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps({**GOOD, "question": f"one{sign}two"}, ensure_ascii=sign < " ") + "\n", "utf-8")
    ((question, _),) = load_task("gsm8k", data=path).pairs
    assert question.text == f"one{sign}two"


def test_byte_order_mark_carriage_returns_and_blank_lines_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode() + b"\r\n\r\n  \n")
    assert len(load_task("gsm8k", data=path).pairs) == 1


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"question": "cut', "not JSON"),
        ("[1, 2]", "expected an object"),
        ("null", "expected an object"),
        ('{"question": "no key", "answer": "forty"}', "must end in '#### NUMBER'"),
        ('{"answer": "#### 4"}', "no field 'question'"),
        ('{"question": 4, "answer": "#### 4"}', "'question' must be text, found 4"),
        ('{"question": " ", "answer": "#### 4"}', "'question' is empty"),
    ],
)
def test_a_malformed_line_is_named_and_can_be_skipped(tmp_path: Path, line: str, why: str) -> None:
    path = lines(tmp_path / "q.jsonl", GOOD, line, {**GOOD, "question": "How much?"})
    with pytest.raises(DataError, match=rf"q\.jsonl:2: .*{why}") as caught:
        load_task("gsm8k", data=path)
    assert "--skip-bad" in str(caught.value)
    loaded = load_task("gsm8k", data=path, skip_bad=True)
    assert [question.text for question, _ in loaded.pairs] == ["How many?", "How much?"]
    (said,) = loaded.skipped
    assert said.startswith(f"{path}:2: ") and why in said


def test_a_line_that_is_not_utf8_is_skipped_alone(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(b'{"question": "\xff", "answer": "#### 1"}\n' + json.dumps(GOOD).encode())
    loaded = load_task("gsm8k", data=path, skip_bad=True)
    assert len(loaded.pairs) == 1
    assert "q.jsonl:1: not UTF-8 at byte 15" in loaded.skipped[0]


@pytest.mark.parametrize("content", ["", "\n\n", "[]"])
def test_an_empty_file_is_an_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(content, "utf-8")
    with pytest.raises(UsageError, match=r"q\.jsonl holds no question of task gsm8k"):
        load_task("gsm8k", data=path)


def test_a_file_of_bad_lines_alone_is_an_error_even_when_they_may_be_skipped(tmp_path: Path) -> None:
    path = lines(tmp_path / "q.jsonl", "oops", "oops")
    with pytest.raises(UsageError, match=r"no readable question .*first problem: .*q\.jsonl:1: not JSON"):
        load_task("gsm8k", data=path, skip_bad=True)


def test_missing_file_and_folder_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no file '.*absent\.jsonl'"):
        load_task("gsm8k", data=tmp_path / "absent.jsonl")
    with pytest.raises(UsageError, match="can not read"):
        load_task("gsm8k", data=tmp_path)


def test_a_form_the_task_does_not_read_is_named_with_those_it_does(tmp_path: Path) -> None:
    path = lines(tmp_path / "q.jsonl", {"prompt": "2 + 2", "target": "4"})
    with pytest.raises(DataError, match=r"found the fields 'prompt', 'target'; it reads: GSM8K's own JSONL"):
        load_task("gsm8k", data=path)


def test_a_broken_array_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "q.json"
    path.write_text('[{"question": "a",\n "answer": }]', "utf-8")
    with pytest.raises(DataError, match=r"q\.json:2: not JSON"):
        load_task("gsm8k", data=path)


def test_the_same_question_has_the_same_id_in_every_order(tmp_path: Path) -> None:
    rows = gsm8k(5)
    forward = load_task("gsm8k", data=lines(tmp_path / "a.jsonl", *rows)).pairs
    backward = load_task("gsm8k", data=lines(tmp_path / "b.jsonl", *rows[::-1])).pairs
    assert [question.id for question, _ in forward] == [question.id for question, _ in backward[::-1]]
    assert len({question.id for question, _ in forward}) == 5


def test_a_question_that_a_published_set_repeats_is_kept_and_told_apart(tmp_path: Path) -> None:
    loaded = load_task("gsm8k", data=lines(tmp_path / "q.jsonl", GOOD, GOOD, GOOD))
    ids = [question.id for question, _ in loaded.pairs]
    assert ids[1:] == [f"{ids[0]}-2", f"{ids[0]}-3"]


def test_a_published_id_that_comes_twice_is_an_error(tmp_path: Path) -> None:
    form = Form("x", lambda row: True, lambda row: Item(row["t"], "text", None, id="same"))
    path = lines(tmp_path / "q.jsonl", {"t": "one"}, {"t": "two"})
    with pytest.raises(DataError, match=r"q\.jsonl:2: the id 'same' stands already at .*q\.jsonl:1"):
        list(pairs("x", path, [form]))


def test_the_limit_takes_the_first_good_lines(tmp_path: Path) -> None:
    path = lines(tmp_path / "q.jsonl", "oops", *gsm8k(5))
    loaded = load_task("gsm8k", data=path, limit=2, skip_bad=True)
    assert [key.answer for _, key in loaded.pairs if key] == ["1", "2"]
    with pytest.raises(UsageError, match="limit must be at least 1, found 0"):
        load_task("gsm8k", data=path, limit=0)


def test_ten_thousand_lines_are_all_read(tmp_path: Path) -> None:
    path = lines(tmp_path / "q.jsonl", *gsm8k(10_000))
    assert len(load_task("gsm8k", data=path).pairs) == 10_000


@pytest.mark.parametrize("found", ["", None, -1, "-1"])
def test_a_withheld_answer_is_none_not_the_first_option(found: Any) -> None:
    assert numbered(found, 0, ["x", "y"]) is None


@pytest.mark.parametrize("found", [2, "2", True, "one", 1.0, []])
def test_an_answer_number_that_names_no_option_is_refused(found: Any) -> None:
    with pytest.raises(BadRow):
        numbered(found, 0, ["x", "y"])


@pytest.mark.parametrize("found", ["ab", [1], ["", "b"], None])
def test_a_list_of_texts_is_just_that(found: Any) -> None:
    with pytest.raises(BadRow, match="'endings' must be a list of texts"):
        texts({"endings": found}, "endings")
