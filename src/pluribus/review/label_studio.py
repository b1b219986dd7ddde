"""The same pairs in Label Studio's pairwise comparison template, and its verdicts back.

Source: https://labelstud.io/guide/task_format (tasks, annotations, `completed_by`, `lead_time`);
https://labelstud.io/templates/pairwise_comparison and https://labelstud.io/tags/pairwise (`text1`, `text2`, and a
result of type `pairwise` whose value is `{"selected": "left"}` or `"right"`; a selection that was taken back leaves no
result).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pluribus.errors import DataError
from pluribus.review.guard import plain_name
from pluribus.review.material import Pair
from pluribus.review.queue import shown
from pluribus.store.files import whole
from pluribus.types import Choice, Verdict

EVERYBODY = "label studio"
"""Draws which reply is left: a task has one order for all who see it."""
_EXPORT = "export the project from Label Studio as JSON (not JSON-MIN or CSV)"
_EMAIL_LENGTH = 320
"""Characters; a reviewer's name is cut there, so that no two addresses become one person."""
_SELECTED: Mapping[str, Choice] = {"left": "first", "right": "second", "none": "tie"}


def tasks(run: str, pairs: Iterable[Pair]) -> list[dict[str, Any]]:
    """One task per pair. Nothing in it says which model wrote what, or what the judges gave."""
    return [{"data": _data(run, pair)} for pair in pairs]


def _data(run: str, pair: Pair) -> dict[str, Any]:
    left, right = shown(pair, EVERYBODY)
    question = pair.question
    choices = "".join(f"\n{chr(ord('A') + i)}. {choice}" for i, choice in enumerate(question.choices))
    return {
        "question": question.text + choices,
        "context": question.context or "",
        "text1": left.text,
        "text2": right.text,
        "pluribus_run": run,
        "pluribus_pair": pair.id,
        "pluribus_left": list(left.item),
        "pluribus_right": list(right.item),
    }


def write(path: Path, run: str, pairs: Iterable[Pair]) -> int:
    """Writes the tasks as JSON for Label Studio's import; how many there are."""
    made = tasks(run, pairs)
    with whole(path) as part:
        # half a surrogate pair, which UTF-8 can not hold, stays an escape
        part.write_text(json.dumps(made, ensure_ascii=True, indent=1) + "\n", "utf-8")
    return len(made)


def read(path: Path, run: str, pairs: Mapping[str, Pair]) -> list[Verdict]:
    """The verdicts of an export, all or none: whatever can not be read is an error that names its task.

    An annotation without a selection, or with both sides selected, is a tie; a cancelled one is a skip. The reviewer is
    who completed it, by email, else by number. A task nobody has annotated gives no verdict.

    Args:
        run: id of the run that the tasks are to be of.
        pairs: every pair it has.

    Raises DataError.
    """
    found = []
    for number, task in enumerate(_rows(path), 1):
        place = f"{path}: task {number}"
        if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
            raise DataError(place, f"expected an object with data and annotations, found {_short(task)}", hint=_EXPORT)
        place += f" (id {task['id']})" if "id" in task else ""
        found += _of_task(task, place, run, pairs)
    return found


def _rows(path: Path) -> Sequence[Any]:
    try:
        rows = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise DataError(str(path), f"can not be read: {error.strerror}") from None
    except (ValueError, RecursionError):  # not UTF-8, not JSON, or too deep
        raise DataError(str(path), "this is not JSON", hint=_EXPORT) from None
    if not isinstance(rows, list):
        raise DataError(str(path), f"expected a list of tasks, found {_short(rows)}", hint=_EXPORT)
    return rows


def _of_task(task: Mapping[str, Any], place: str, run: str, pairs: Mapping[str, Pair]) -> list[Verdict]:
    pair, left, right = _sides(task["data"], place, run, pairs)
    said = task.get("annotations")
    if not isinstance(said, list) or not all(isinstance(one, dict) for one in said):
        raise DataError(place, f"annotations: expected a list of objects, found {_short(said)}", hint=_EXPORT)
    found = []
    for number, one in enumerate(said, 1):
        here = f"{place}, annotation {number}"
        choice: Choice = "skip" if one.get("was_cancelled") else _choice(one.get("result"), here)
        at, lasted = _time(one, here), _seconds(one.get("lead_time"))
        found.append(Verdict(pair.id, pair.question.id, left, right, choice, _who(one, here), at, lasted))
    return found


def _sides(
    data: Mapping[str, Any], place: str, run: str, pairs: Mapping[str, Pair]
) -> tuple[Pair, tuple[str, int], tuple[str, int]]:
    """The pair of a task, and its replies as they were shown."""
    id, of = data.get("pluribus_pair"), data.get("pluribus_run")
    if not isinstance(id, str):
        raise DataError(
            place, f"data.pluribus_pair: expected a pair's id, found {_short(id)}",
            hint="import tasks that pluribus review --export-label-studio wrote",
        )  # fmt: skip
    if of != run:
        raise DataError(place, f"data.pluribus_run is {_short(of)}, and this run is {run}", hint="name the other run")
    pair = pairs.get(id)
    if pair is None:
        raise DataError(place, f"data.pluribus_pair: there is no pair {id!r} in this run", hint="was it judged anew?")
    left, right = _item(data.get("pluribus_left")), _item(data.get("pluribus_right"))
    if left is None or right is None or {left, right} != {reply.item for reply in pair.replies}:
        raise DataError(place, "data.pluribus_left and data.pluribus_right are not the replies of this pair")
    return pair, left, right


def _item(said: Any) -> tuple[str, int] | None:
    match said:
        case [str(attempt), int(turn)] if not isinstance(turn, bool):
            return attempt, turn
    return None


def _choice(result: Any, place: str) -> Choice:
    if not isinstance(result, list) or not all(isinstance(one, dict) for one in result):
        raise DataError(place, f"result: expected a list of objects, found {_short(result)}", hint=_EXPORT)
    said = [_selected(one, place) for one in result if one.get("type") == "pairwise"]
    return said[0] if len(set(said)) == 1 else "tie"


def _selected(result: Mapping[str, Any], place: str) -> Choice:
    value = result.get("value")
    selected = value.get("selected") if isinstance(value, dict) else value
    choice = _SELECTED.get(selected) if isinstance(selected, str) else None
    if choice is None:
        raise DataError(place, f"selected: expected 'left' or 'right', found {_short(selected)}")
    return choice


def _who(annotation: Mapping[str, Any], place: str) -> str:
    who = annotation.get("completed_by")
    if isinstance(who, dict):
        who = who.get("email") or who.get("id")
    if isinstance(who, str) and (name := plain_name(who, _EMAIL_LENGTH)):
        return name
    if isinstance(who, int) and not isinstance(who, bool):
        return f"label studio {who}"
    raise DataError(place, f"completed_by: expected a person's number or email, found {_short(who)}", hint=_EXPORT)


def _time(annotation: Mapping[str, Any], place: str) -> float:
    """When it was last changed, else made (Unix time, s)."""
    said = annotation.get("updated_at") or annotation.get("created_at")
    try:
        when = datetime.fromisoformat(said or "")
    except (TypeError, ValueError):
        raise DataError(
            place, f"updated_at: expected a time such as 2026-03-09T22:16:08Z, found {_short(said)}", hint=_EXPORT
        ) from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def _seconds(said: Any) -> float | None:
    """None: not known, or no length of time."""
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 <= said < math.inf:
        return None
    try:
        return float(said)
    except OverflowError:
        return None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
