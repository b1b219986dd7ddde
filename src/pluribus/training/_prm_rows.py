"""Rows of steps: read, made into tokens and marks, dealt into batches, and what was said of them measured.

Names: _S steps of a row, _N rows.
"""

from __future__ import annotations

import json
import math
import random
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pluribus.backends._loading import StepForm, Words, summaries
from pluribus.errors import DataError
from pluribus.metrics.first_error import auroc, below, first_error, place
from pluribus.rows import Row, is_conversation, is_flag, is_prompt, is_text, numbered_rows, shown
from pluribus.steps import Cut, split_steps
from pluribus.types import Message

STEPWISE, LABELLED = ("prompt", "completions", "labels"), ("query", "solutions")
_WRITE = "write one with: pluribus distil RUN --view steps --out FILE"


# --- files -----------------------------------------------------------------------------------------------------------


def read_steps(path: Path) -> list[Row]:
    """The rows of a file of steps, checked.

    Two forms are known. TRL's stepwise form: `prompt`, `completions` (the steps), `labels` (one per step: true is
    good); `question_id` and `correct` (whether the reply's answer is right) where they are known. And solutions with
    one label each, `query`, `solutions` (`text`, `is_correct`): such a row becomes one row a solution, with `solution`
    in the place of steps; it is cut by the training's own `cut`, and its label is that of its last step alone, because
    nobody has said where a wrong solution went wrong.

    Raises DataError, with file and line.
    """
    labelled = _first(path).keys() >= set(LABELLED)
    return _labelled(path) if labelled else _stepwise(path)


def _first(path: Path) -> Mapping[str, Any]:
    """The first row, where it can be read; what is wrong with it is said later."""
    try:
        with path.open("rb") as file:
            row = json.loads(next((line for line in file if not line.isspace()), b"{}"))
    except (OSError, ValueError, RecursionError):
        return {}
    return row if isinstance(row, dict) else {}


def _stepwise(path: Path) -> list[Row]:
    fields = {
        "prompt": (True, _is_prompt, "the question's text, or a list of messages that ends before the reply"),
        "completions": (True, _is_steps, "a list of the reply's steps, texts that are not empty"),
        "labels": (True, _is_labels, "a list of true and false, one per step"),
        "correct": (False, is_flag, "true or false: whether the reply's answer is right"),
    }
    rows = []
    for number, row in numbered_rows(path, fields, "row of steps", _WRITE):
        steps, labels = row["completions"], row["labels"]
        if len(steps) != len(labels):
            raise DataError(f"{path}:{number}", f"{len(steps)} completions and {len(labels)} labels; expected as many")
        rows.append(row)
    return rows


def _is_prompt(value: Any) -> bool:
    return (is_text(value) and bool(value)) or is_prompt(value)


def _is_steps(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) and one for one in value)


def _is_labels(value: Any) -> bool:
    """A label may also be null: nobody knows."""
    return isinstance(value, list) and all(one is None or isinstance(one, bool) for one in value)


def _labelled(path: Path) -> list[Row]:
    fields = {
        "query": (True, lambda value: is_text(value) and bool(value), "the question's text"),
        "solutions": (True, _is_solutions, 'a list of {"text": TEXT, "is_correct": true or false}'),
        "labels": (False, _is_labels, "a list of true and false, one per solution"),
    }
    rows = []
    for number, row in numbered_rows(path, fields, "question with labelled solutions", _WRITE):
        said = [one["is_correct"] for one in row["solutions"]]
        if row.get("labels", said) != said:
            here = f"{path}:{number}"
            raise DataError(here, f"labels are {shown(row['labels'])}, and the solutions' own are {shown(said)}")
        rows += [
            {"prompt": row["query"], "question_id": f"{number}", "solution": one["text"], "correct": one["is_correct"]}
            for one in row["solutions"]
        ]
    return rows


def _is_solutions(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_solution(one) for one in value)


def _is_solution(one: Any) -> bool:
    return isinstance(one, dict) and is_text(one.get("text")) and bool(one["text"]) and is_flag(one.get("is_correct"))


# --- rows as a model reads them --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Marked:
    """One reply as tokens."""

    tokens: tuple[int, ...]
    places: tuple[int, ...]
    """_S: where each step ends."""
    marks: tuple[bool | None, ...]
    """_S: good or not; None: nobody knows."""
    question: str
    """Rows of one question are set against each other."""
    right: bool | None
    """Whether the reply's answer is right."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of a file's rows."""

    rows: int
    """That are learned from."""
    too_long: int
    """Left out: no marked step lies within the most tokens."""
    unmarked: int
    """Left out: no step has a mark."""
    cut_steps: int
    """Steps behind the most tokens, of rows that are learned from."""
    steps: int
    """Marked ones that are learned from."""
    good: int
    """Of these."""

    @property
    def share_good(self) -> float:
        """In [0, 1]."""
        return self.good / self.steps


def mark_rows(rows: Sequence[Row], words: Words, form: StepForm, file: str) -> tuple[list[Marked], Counts]:
    """Rows as tokens and marks; steps past `form.max_length` are cut, rows that keep none are left out and counted.

    Args:
        words: the student's tokenizer.
        file: their file, for the complaint.

    Raises DataError: no row is left.
    """
    found, too_long, unmarked, cut = [], 0, 0, 0
    for row in rows:
        steps, marks = steps_of(row, form.cut)
        tokens, places = words.marked(messages_of(row), steps, form)
        kept = sum(at < form.max_length for at in places) if form.max_length is not None else len(places)
        if all(mark is None for mark in marks):
            unmarked += 1
        elif all(mark is None for mark in marks[:kept]):
            too_long += 1
        else:
            cut += len(places) - kept
            one = (tokens[: places[kept - 1] + 1], places[:kept], tuple(marks[:kept]))
            found.append(Marked(*one, question_of(row), right_of(row)))
    if not found:
        raise DataError(
            file, f"no row has a marked step within {form.max_length} tokens: {too_long} too long, {unmarked} unmarked",
            hint="give a larger max_length, or label the steps first: pluribus label RUN --steps checker",
        )  # fmt: skip
    told = [mark for one in found for mark in one.marks if mark is not None]
    return found, Counts(len(found), too_long, unmarked, cut, len(told), sum(told))


def steps_of(row: Row, cut: Cut) -> tuple[Sequence[str], Sequence[bool | None]]:
    """A row's steps and their marks; a whole solution's label is its last step's.

    >>> steps_of({"solution": "1 + 1 = 2. 2 + 1 = 4.", "correct": False}, "auto")
    (('1 + 1 = 2.', '2 + 1 = 4.'), (None, False))
    """
    if "solution" not in row:
        return row["completions"], row["labels"]
    steps = split_steps(row["solution"], cut)
    return steps, (*(None,) * (len(steps) - 1), row["correct"])[: len(steps)]


def messages_of(row: Row) -> tuple[Message, ...]:
    """What stands before the reply; a plain text is what the user says."""
    prompt = row["prompt"]
    if is_conversation(prompt):
        return tuple(Message(one["role"], one["content"]) for one in prompt)
    return (Message("user", prompt),)


def question_of(row: Row) -> str:
    return str(row["question_id"]) if "question_id" in row else json.dumps(row["prompt"])


def right_of(row: Row) -> bool | None:
    """Whether the reply is right: what the row says of it, else whether no step of it is bad.

    >>> right_of({"labels": [True, False]}), right_of({"labels": [True, None]}), right_of({"labels": [True]})
    (False, None, True)
    """
    if "correct" in row:
        return bool(row["correct"])
    marks = row["labels"]
    return False if False in marks else None if None in marks else True


# --- the order of rows -----------------------------------------------------------------------------------------------


class QuestionOrder:
    """Rows in an order whose consecutive batches hold questions whole, for a DataLoader's `sampler`.

    Questions are drawn in random order and packed first-fit into batches of `batch` rows; the rows of one lie beside
    each other. A question is divided only where it is larger than a batch, or where none that is left fits the room
    that remains: each batch but the last is full, so that every process gets as many. The order depends on seed and
    epoch alone, so a training that goes on after a kill meets the rows that it would have met.

    Args:
        questions_N: the question of each row.
        batch: rows of a batch on one device.
    """

    def __init__(self, questions_N: Sequence[str], batch: int, seed: int) -> None:
        self._rows: dict[str, list[int]] = defaultdict(list)
        for row, question in enumerate(questions_N):
            self._rows[question].append(row)
        self._batch, self._seed, self._epoch, self._length = batch, seed, 0, len(questions_N)

    def __len__(self) -> int:
        return self._length

    def set_epoch(self, epoch: int) -> None:
        self._epoch = epoch

    def __iter__(self) -> Iterator[int]:
        """
        >>> order = QuestionOrder(["a", "b", "a", "b", "c", "c"], 2, seed=0)
        >>> sorted(sorted(pair) for pair in zip(*[iter(order)] * 2))
        [[0, 2], [1, 3], [4, 5]]
        """
        draws = random.Random(f"{self._seed}/{self._epoch}")
        groups = [draws.sample(rows, len(rows)) for rows in self._rows.values()]
        draws.shuffle(groups)
        yield from pack(groups, self._batch)


def pack(groups: Sequence[Sequence[int]], batch: int) -> list[int]:
    """The groups' members in an order in which every `batch` of them are a batch; see `QuestionOrder`.

    >>> pack([[1, 2, 3], [4, 5], [6], [7, 8]], 4)
    [1, 2, 3, 6, 4, 5, 7, 8]
    """
    waiting: dict[int, deque[tuple[int, Sequence[int]]]] = defaultdict(deque)
    turn = 0
    for group in groups:
        for start in range(0, len(group), batch):
            piece = group[start : start + batch]
            waiting[len(piece)].append((turn, piece))
            turn += 1
    order: list[int] = []
    while any(waiting.values()):
        room = batch - len(order) % batch
        fits = [size for size, line in waiting.items() if line and size <= room]
        size = min(fits or (size for size, line in waiting.items() if line), key=lambda one: waiting[one][0][0])
        turn, piece = waiting[size].popleft()
        order += piece[:room]
        if size > room:
            waiting[size - room].appendleft((turn, piece[room:]))
    return order


# --- what was said of them -------------------------------------------------------------------------------------------


def measures(rows: Sequence[Marked], good_N_S: Sequence[Sequence[float]], by: str = "min") -> dict[str, float]:
    """How well P(good) of each step tells good from bad; what can not be said is left out.

    `steps`: marked ones, and `share_good` of them · `accuracy`: P(good) of at least one half where the step is good,
    and only there · `auroc`: chance that a good step has more than a bad one · of the replies whose first bad step is
    known, `first_error`: share where it is the first with less than one half (or none is bad and none has less), and
    `first_error_f1` · of questions with several replies, `best_of_n`: share whose reply with the highest `by` is right,
    beside `mean_of_n`, the same for a reply drawn at random, and `oracle_of_n`, for a perfect choice.

    Args:
        good_N_S: in [0, 1].
        by: what a reply's steps come to: min, mean, last or product.

    Source: `metrics.first_error`; best of n as in Lightman et al. 2023, arXiv 2305.20050.
    """
    told = [
        (value, mark)
        for row, good_S in zip(rows, good_N_S, strict=True)
        for value, mark in zip(good_S, row.marks, strict=True)
        if mark is not None
    ]
    found: dict[str, float | None] = {
        "steps": float(len(told)),
        "share_good": _share([mark for _, mark in told]),
        "accuracy": _share([(value >= 0.5) == mark for value, mark in told]),
        "auroc": auroc([value for value, _ in told], [mark for _, mark in told]),
        **_first_errors(rows, good_N_S),
        **_choices(rows, good_N_S, by),
    }
    return {name: value for name, value in found.items() if value is not None}


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None


def _first_errors(rows: Sequence[Marked], good_N_S: Sequence[Sequence[float]]) -> dict[str, float | None]:
    known = [
        (below(good_S, 0.5), at)
        for row, good_S in zip(rows, good_N_S, strict=True)
        if (at := place(row.marks)) is not None
    ]
    said, truth = [one for one, _ in known], [one for _, one in known]
    exact = _share([one == at for one, at in known])
    return {"first_error": exact, "first_error_f1": first_error(said, truth).f1}


def _choices(rows: Sequence[Marked], good_N_S: Sequence[Sequence[float]], by: str) -> dict[str, float | None]:
    replies: dict[str, list[tuple[float, bool]]] = defaultdict(list)
    for row, good_S in zip(rows, good_N_S, strict=True):
        if row.right is not None:
            replies[row.question].append((summaries(good_S)[by], row.right))
    several = [one for one in replies.values() if len(one) > 1]
    if not several:
        return {}
    return {
        "best_of_n": math.fsum(_best(one) for one in several) / len(several),
        "mean_of_n": math.fsum(sum(right for _, right in one) / len(one) for one in several) / len(several),
        "oracle_of_n": _share([any(right for _, right in one) for one in several]),
    }


def _best(replies: Sequence[tuple[float, bool]]) -> float:
    """Whether the highest is right; of equally high ones the share that is."""
    most = max(value for value, _ in replies)
    tied = [right for value, right in replies if value == most]
    return sum(tied) / len(tied)
