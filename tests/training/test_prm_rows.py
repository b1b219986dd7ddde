"""Rows of steps: where the labels sit, what is cut, which rows share a batch, what is measured."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

tokenizers = pytest.importorskip("tokenizers")
transformers = pytest.importorskip("transformers")

from pluribus.backends._loading import StepForm, Words  # noqa: E402  # after the skip
from pluribus.errors import DataError, UsageError  # noqa: E402  # likewise
from pluribus.rows import Row  # noqa: E402  # likewise
from pluribus.training._prm_model import IGNORED, collate  # noqa: E402  # likewise
from pluribus.training._prm_rows import (  # noqa: E402  # likewise
    Marked,
    QuestionOrder,
    mark_rows,
    measures,
    pack,
    read_steps,
)
from pluribus.zoo import folder  # noqa: E402  # likewise

# --- where the labels sit --------------------------------------------------------------------------------------------

DIGITS = {"llama": r"\p{N}{1,3}", "qwen": r"\p{N}"}
TIKTOKEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}"
    r"| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Llama 3's and Qwen's tokenizers cut a text before the merges; GPT-NeoX's cuts as GPT-2's does."""
TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
STEPS = ("First, 12 + 7 = 19.", "Then it's 19 - 5 = 14!", "So: (x = 14)", "{final answer: 14}")
MERGED = {"llama": ".\n", "qwen": ".\n", "neox": "\n\n"}
"""What is one token where it stands in one text: the place of a mark would be lost."""


def family(name: str, template: str | None = TEMPLATE) -> Any:
    """A tokenizer cut and merged as the family's are, on few words."""
    cut = tokenizers.pre_tokenizers
    if name == "neox":
        before = cut.ByteLevel(add_prefix_space=False)
    else:
        pattern = tokenizers.Regex(TIKTOKEN.format(digits=DIGITS[name]))
        split = cut.Split(pattern, "isolated")
        before = cut.Sequence([split, cut.ByteLevel(add_prefix_space=False, use_regex=False)])
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer, made.decoder = before, tokenizers.decoders.ByteLevel()
    special = ["<|system|>", "<|user|>", "<|assistant|>", "<|end|>"]
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=cut.ByteLevel.alphabet(), show_progress=False
    )
    made.train_from_iterator(["\n".join(STEPS) + ".\n\nSo.\n" + "\n\n".join(STEPS) + "\n\n"] * 9, trainer)
    found = transformers.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|end|>", pad_token="<|end|>")
    found.chat_template = template
    return found


def row(steps: Sequence[str] = STEPS, labels: Sequence[bool | None] = (True, True, True, False), **more: Any) -> Row:
    return {"prompt": "What is left?", "completions": list(steps), "labels": list(labels), **more}


@pytest.mark.parametrize("name", ["llama", "qwen", "neox"])
@pytest.mark.parametrize("separator, join", [("\n", ""), ("\n\n", ""), ("\n***\n", "- "), ("", " "), ("", "\n")])
def test_each_label_sits_on_the_last_token_of_its_separator(name: str, separator: str, join: str) -> None:
    tokenizer = family(name)

    def text(ids: Sequence[int]) -> str:
        return str(tokenizer.decode(list(ids), clean_up_tokenization_spaces=False))

    assert len(tokenizer(MERGED[name])["input_ids"]) == 1, "the trap is there"
    (marked,), _ = mark_rows([row()], Words(tokenizer), StepForm(separator, join=join), "rows")
    prompt = "<|user|>\nWhat is left?<|end|>\n<|assistant|>\n"
    began = len(tokenizer(prompt)["input_ids"])
    assert text(marked.tokens[:began]) == prompt
    for step, place in zip((STEPS[0], *(join + one for one in STEPS[1:])), marked.places, strict=True):
        assert text(marked.tokens[began : place + 1]) == step + separator
        began = place + 1
    assert began == len(marked.tokens) and marked.marks == (True, True, True, False)
    labels = collate([marked])["labels"][0].tolist()
    assert {place: label for place, label in enumerate(labels) if label != IGNORED} == dict(
        zip(marked.places, (1, 1, 1, 0), strict=True)
    )


def test_without_a_template_the_prompt_is_its_plain_text() -> None:
    tokenizer = family("qwen", template=None)
    (marked,), _ = mark_rows([row()], Words(tokenizer), StepForm(), "rows")
    assert tokenizer.decode(marked.tokens).startswith("What is left?First, 12 + 7 = 19.\n")


def test_a_separator_that_is_no_token_is_named() -> None:
    plain = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, unk_token="a"))
    plain.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=plain)
    with pytest.raises(UsageError, match=r"separator '\\n' is no token"):
        mark_rows([row(("a",), (True,))], Words(tokenizer), StepForm(), "rows")


# --- what is cut and left out ----------------------------------------------------------------------------------------


def words() -> Words:
    return Words(transformers.AutoTokenizer.from_pretrained(folder("qwen")))


def test_steps_past_the_most_tokens_are_cut_and_rows_that_keep_none_are_counted() -> None:
    rows = [row(), row(prompt="What is left? " * 40), row(labels=(None,) * 4), row(labels=(None, None, None, True))]
    everything, counts = mark_rows(rows[:1], words(), StepForm(), "rows")
    assert (counts.rows, counts.steps, counts.good, counts.share_good, counts.cut_steps) == (1, 4, 3, 0.75, 0)
    limit = everything[0].places[1] + 1
    kept, counts = mark_rows(rows, words(), StepForm(max_length=limit), "rows")
    assert [one.tokens for one in kept] == [everything[0].tokens[:limit]] and kept[0].marks == (True, True)
    assert (counts.rows, counts.too_long, counts.unmarked, counts.cut_steps) == (1, 2, 1, 2)
    with pytest.raises(DataError, match="no row has a marked step within 5 tokens: 1 too long, 1 unmarked"):
        mark_rows([rows[0], rows[2]], words(), StepForm(max_length=5), "rows")


def test_a_reply_is_right_by_its_column_or_by_its_steps() -> None:
    rows = [row(), row(correct=True), row(labels=(True,) * 4), row(labels=(True, True, None, True))]
    assert [one.right for one in mark_rows(rows, words(), StepForm(), "rows")[0]] == [False, True, True, None]


# --- files -----------------------------------------------------------------------------------------------------------


def written(path: Path, *rows: Any) -> Path:
    file = path / "rows.jsonl"
    file.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in rows))
    return file


def test_labelled_solutions_mark_the_last_step_alone(tmp_path: Path) -> None:
    solutions = [
        {"id": 1, "text": "12 + 7 = 19. 19 - 5 = 14.", "is_correct": True},
        {"id": 2, "text": "So 20.", "is_correct": False},
    ]
    said = {"query": "What is left?", "gt": "14", "solutions": solutions, "labels": [True, False]}
    rows = read_steps(written(tmp_path, said, {**said, "query": "And now?"}))
    marked, counts = mark_rows(rows, words(), StepForm(), "rows")
    assert [one.marks for one in marked] == [(None, True), (False,)] * 2
    assert [one.right for one in marked] == [True, False] * 2
    assert marked[0].question == marked[1].question != marked[2].question and counts.share_good == 0.5
    with pytest.raises(DataError, match=r"rows.jsonl:1: labels are \[false, false\], and the solutions' own are"):
        read_steps(written(tmp_path, {**said, "labels": [False, False]}))


@pytest.mark.parametrize(
    "bad, complaint",
    [
        (row(labels=(True,)), "4 completions and 1 labels"),
        (row(labels=(1, 0, 1, 1)), r"labels is \[1, 0, 1, 1\]; expected a list of true and false"),
        (row(steps=(), labels=()), r"completions is \[\]; expected a list of the reply's steps"),
        (row(correct="yes"), 'correct is "yes"; expected true or false'),
        ({"prompt": "2 + 2?", "completion": "4"}, "completions is missing"),
        ({"query": "2 + 2?", "solutions": [{"text": "4"}]}, "expected a list of"),
        ("{", "not JSON"),
    ],
)
def test_a_row_that_is_none_is_named_with_its_line(tmp_path: Path, bad: Any, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint) as caught:
        read_steps(written(tmp_path, bad, row()))
    assert "rows.jsonl:1:" in str(caught.value) and "\n" not in str(caught.value)


def test_an_empty_file_says_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="pluribus distil RUN --view steps"):
        read_steps(written(tmp_path))


# --- the order of rows -----------------------------------------------------------------------------------------------


def batches(order: Sequence[int], size: int) -> list[Sequence[int]]:
    return [order[start : start + size] for start in range(0, len(order), size)]


def test_questions_that_fit_are_never_divided_and_epochs_differ() -> None:
    questions = [f"q{number % 30}" for number in range(120)]
    order = QuestionOrder(questions, 8, seed=3)
    first = list(order)
    assert sorted(first) == list(range(120)) and len(order) == 120
    for batch in batches(first, 8):
        assert sorted(Counter(questions[at] for at in batch).values()) == [4, 4]
    order.set_epoch(1)
    assert list(order) != first
    again = QuestionOrder(questions, 8, seed=3)
    assert list(again) == first
    again.set_epoch(1)
    assert list(again) == list(order)


def test_any_sizes_make_full_batches_and_few_questions_are_divided() -> None:
    draws = random.Random(0)
    sizes = [draws.randint(1, 20) for _ in range(200)]
    starts = [sum(sizes[:at]) for at in range(len(sizes))]
    groups = [range(start, start + size) for start, size in zip(starts, sizes, strict=True)]
    order = pack(groups, 16)
    assert sorted(order) == list(range(sum(sizes)))
    lies = {member: number for number, batch in enumerate(batches(order, 16)) for member in batch}
    divided = [group for group in groups if len({lies[member] for member in group}) > 1]
    larger = [group for group in groups if len(group) > 16]
    assert set(larger) <= set(divided) and len(divided) - len(larger) < 30


# --- what is measured ------------------------------------------------------------------------------------------------


def test_measures_of_a_model_that_knows_and_of_one_that_says_the_reverse() -> None:
    rows = [
        Marked((), (), (True, True), "a", True),
        Marked((), (), (True, False), "a", False),
        Marked((), (), (True, False), "b", False),
        Marked((), (), (None, True), "c", True),
    ]
    good: list[list[float]] = [[0.95, 0.8], [0.9, 0.1], [0.7, 0.4], [0.2, 0.9]]
    said = measures(rows, good)
    assert (
        said["accuracy"] == said["auroc"] == said["first_error"] == said["best_of_n"] == said["first_error_f1"] == 1.0
    )
    assert (said["steps"], said["mean_of_n"], said["oracle_of_n"]) == (7.0, 0.5, 1.0)
    assert said["share_good"] == pytest.approx(5 / 7)
    reverse = measures(rows, [[1 - value for value in row] for row in good])
    assert reverse["accuracy"] == reverse["auroc"] == reverse["first_error"] == reverse["best_of_n"] == 0.0
    assert measures(rows, [[0.9, 0.9]] * 4)["first_error"] == pytest.approx(1 / 3)  # the last row's is not known
    level = measures(rows, [[0.5, 0.5]] * 4)
    assert level["auroc"] == level["best_of_n"] == 0.5


def test_what_can_not_be_measured_is_left_out() -> None:
    said = measures([Marked((), (), (None, True), "a", None)], [[0.5, 0.9]])
    assert said == {"steps": 1.0, "share_good": 1.0, "accuracy": 1.0}
