"""transcript and key → labels: whether each turn that stands as an answer is right.

An answer is compared with the key. A program is run with the key's tests behind it, in the sandbox that the caller
allowed; without one its label says neither.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping

from pluribus import sandbox
from pluribus.answers import canonical, read
from pluribus.sandbox import Limits, Run, Sandbox
from pluribus.types import Key, Label, Question, Transcript

PROGRAM = "program"


async def label(question: Question, key: Key, transcript: Transcript) -> list[Label]:
    """One label for each turn that stands as an answer and gave a completion, in their order.

    A reply without a readable answer is not right. `correct` is None where nobody can say: a key without an answer or
    without tests, or programs that may not run here (see `pluribus.sandbox.allowing`).
    """
    reads = read_turns(question, transcript)
    right = await _verdicts(question, key, set(reads.values()))
    by = checker(question, key)
    return [Label(transcript.attempt.id, turn, right[answer], checker=by) for turn, answer in reads.items()]


def checker(question: Question, key: Key) -> str:
    """What decides about a question's answers; other tests are another checker, whose labels do not stand for these.

    >>> checker(Question("q", "t", "1 + 1?", "number"), Key("q", "2"))
    'key'
    """
    if question.kind != PROGRAM:
        return "key"
    return f"tests {hashlib.sha256(_joined(key.tests).encode()).hexdigest()[:12]}"


def read_turns(question: Question, transcript: Transcript) -> dict[int, str | None]:
    """Index of each turn that stands as an answer → its answer; a failed turn has no entry."""
    stand = set(transcript.finals)
    return {
        index: read(question, turn.text)
        for index, turn in enumerate(transcript.turns)
        if turn.ok and (turn.role == "answer" or index in stand)
    }


async def _verdicts(question: Question, key: Key, answers: set[str | None]) -> Mapping[str | None, bool | None]:
    """Each different answer is judged once."""
    if question.kind == PROGRAM:
        return await _passing(key, answers)
    if key.answer is None:
        return dict.fromkeys(answers)
    right = {canonical(question, good) for good in (key.answer, *key.aliases)} - {None}
    return {answer: answer in right for answer in answers}


async def _passing(key: Key, programs: set[str | None]) -> Mapping[str | None, bool | None]:
    box = sandbox.allowed()
    if box is None or not key.tests:
        return dict.fromkeys(programs)
    written = sorted(program for program in programs if program is not None)
    passed = await asyncio.gather(*(passes(box, program, key.tests) for program in written))
    return {None: False, **dict(zip(written, passed, strict=True))}


async def passes(box: Sandbox, program: str, tests: tuple[str, ...], limits: Limits | None = None) -> bool:
    """Whether a program passes all tests: it is run with them behind it and gets to the end of them.

    Args:
        box: where it runs.
        program: its source.
        tests: Python that fails where the program is not right.
        limits: in the place of the sandbox's own.
    """
    return (await try_tests(box, program, tests, limits))[0]


async def try_tests(
    box: Sandbox, program: str, tests: tuple[str, ...], limits: Limits | None = None
) -> tuple[bool, Run]:
    """`passes`, with the run that tells why not; arguments as there."""
    checks = _joined(tests)
    # A program that ends early leaves with exit code 0 too, so the last line of all has to be printed.
    end = hashlib.sha256(f"{program}\0{checks}".encode()).hexdigest()
    run = await sandbox.run_program(box, f"{program}\n\n{checks}\n\nprint()\nprint({end!r})\n", limits=limits)
    return run.ok and run.stdout.rstrip().rpartition("\n")[2] == end, run


def _joined(tests: tuple[str, ...]) -> str:
    return "\n".join(tests)
