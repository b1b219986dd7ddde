"""Examples → rows of a training file, in the forms that TRL's trainers read.

A column stands in every row or in none: a loader fills what one row lacks with null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from pluribus.distil import Case, Example, Kind, Trace
from pluribus.errors import ConfigError
from pluribus.prefer import PROMPT
from pluribus.prefer import rows as preference_rows
from pluribus.prompts import dialect, render
from pluribus.types import Demonstration, Message, Preference, Question, Side, StepMarks

Row = dict[str, Any]
Item = tuple[str, int]
SEVERAL = "a step-marked prompt is one text, and dialect {} asks in {} messages"


def rows(kind: Kind, examples: Sequence[Example], cases: Sequence[Case], *, view: str) -> list[Row]:
    """The lines of a training file, one an example, in their order.

    The prompt is the plain question in the dialect of the reply's seat: no persona, nothing of the debate.

    Args:
        view: its name, for the column.
    """
    known = _Known(cases, view)
    if kind == "preferences":
        return known.preferences(cast(Sequence[Preference], examples))
    if kind == "steps":
        return whole([known.steps(one) for one in cast(Sequence[StepMarks], examples)])
    return whole([known.demonstration(one) for one in cast(Sequence[Demonstration], examples)])


def whole(found: Sequence[Row]) -> list[Row]:
    """The rows without the columns that some of them have no value for."""
    lacking = {name for row in found for name, value in row.items() if value is None}
    return [{name: value for name, value in row.items() if name not in lacking} for row in found]


class _Known:
    """What an example's row says beside the example."""

    def __init__(self, cases: Iterable[Case], view: str) -> None:
        self.cases = {case.question.id: case for case in cases}
        self.traces = {(one.attempt_id, one.turn): one for case in self.cases.values() for one in case.traces}
        self.view = view

    def demonstration(self, one: Demonstration) -> Row:
        case = self.cases[one.question_id]
        trace = self._trace(one.attempt_id, one.turn)
        words = trace.dialect if trace else case.dialect
        return {
            "prompt": [_message(said) for said in ask(words, case.question)],
            "completion": [_message(Message("assistant", one.text))],
            **self._source(case, trace),
            "corrective": one.corrective if trace else None,
        }

    def steps(self, one: StepMarks) -> Row:
        case, trace = self.cases[one.question_id], self.traces[one.attempt_id, one.turn]
        return {
            "prompt": _single(trace.dialect, case.question),
            "completions": list(one.steps),
            "labels": list(one.marks),
            **self._source(case, trace),
            "correct": one.correct,
        }

    def preferences(self, pairs: Sequence[Preference]) -> list[Row]:
        """As `pluribus prefer` writes them; where a pair is of two runs, `rejected_run` names the other."""
        rewards = [one.reward for one in self.traces.values() if one.reward is not None]
        questions = {id: case.question for id, case in self.cases.items()}
        found = preference_rows(
            pairs, questions, rewards, run="", dialect_of=lambda side: self._of(side).dialect,
            model_of=lambda side: self._of(side).model,
        )  # fmt: skip
        runs = [(self._of(pair.chosen).run, self._of(pair.rejected).run) for pair in pairs]
        crossed = any(chosen != rejected for chosen, rejected in runs)
        for row, (chosen, rejected) in zip(found, runs, strict=True):
            row |= {"run": chosen, "rejected_run": rejected} if crossed else {"run": chosen}
        return found

    def _of(self, side: Side) -> Trace:
        return self.traces[side.attempt_id, side.turn]

    def _trace(self, attempt: str | None, turn: int | None) -> Trace | None:
        return None if attempt is None or turn is None else self.traces[attempt, turn]

    def _source(self, case: Case, trace: Trace | None) -> Row:
        return {
            "question_id": case.question.id,
            "task": case.question.task,
            "split": case.split,
            "run": trace.run if trace else case.run,
            "view": self.view,
            "attempt": trace and trace.attempt_id,
            "turn": trace.turn if trace else None,
            "seat": trace.seat if trace else None,
            "model": trace and trace.model,
            "round": trace.round if trace else None,
        }


def ask(words: str, question: Question) -> tuple[Message, ...]:
    """What the student will be asked."""
    return render(dialect(words), PROMPT, question)


def _single(words: str, question: Question) -> str:
    messages = ask(words, question)
    if len(messages) != 1:
        raise ConfigError(SEVERAL.format(words, len(messages)), hint="use prompts whose `answer` is one user message")
    return messages[0].content


def _message(one: Message) -> Row:
    return {"role": one.role, "content": one.content}


def replies(row: Mapping[str, Any]) -> list[str]:
    """The texts that are learned of a row: the completion, the steps in one, or the better and the worse reply."""
    if "completions" in row:
        return ["\n".join(row["completions"])]
    sides = [row["completion"]] if "completion" in row else [row["chosen"], row["rejected"]]
    return ["\n".join(message["content"] for message in messages) for messages in sides]
