"""transcript and key → labels: whether each turn that stands as an answer is right, and who says so.

An answer is compared with the key. A program is run with the key's tests behind it, in the sandbox that the caller
allowed; without one its label says neither. What that leaves open a judge decides (`judged`); where nobody knows the
answer, agreement with the council's decision can stand for it (`agreed`). `settle` says whose word counts.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from pluribus import sandbox
from pluribus.answers import canonical, read
from pluribus.judges import Juror, verdict
from pluribus.sandbox import Limits, Run, Sandbox
from pluribus.types import Decision, Key, Label, Question, Transcript

PROGRAM, TEXT = "program", "text"
CONSENSUS = "consensus"
"""The checker of labels that are agreement with the council, no more."""


async def label(question: Question, key: Key, transcript: Transcript) -> list[Label]:
    """One label for each turn that stands as an answer and gave a completion, in their order.

    A reply without a readable answer is not right. `correct` is None where nobody can say: a key without an answer or
    without tests, or programs that may not run here (see `pluribus.sandbox.allowing`).
    """
    reads = read_turns(question, transcript)
    right = await verdicts_on(question, key, set(reads.values()))
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


async def checked(question: Question, key: Key | None, transcript: Transcript) -> list[Label]:
    """As `label`, but `correct` is None wherever the checker alone does not know.

    That is without a key, and for free text that is not the key's: an equal text is right, another one may say the same
    in other words.
    """
    reads = read_turns(question, transcript)
    if key is None:
        return [Label(transcript.attempt.id, turn, None) for turn in reads]
    right, by = await verdicts_on(question, key, set(reads.values())), checker(question, key)

    def known(answer: str | None) -> bool | None:
        return right[answer] or (None if question.kind == TEXT and answer is not None else right[answer])

    return [Label(transcript.attempt.id, turn, known(answer), checker=by) for turn, answer in reads.items()]


async def judged(
    juror: Juror, key: Key | None, transcript: Transcript, turns: Collection[int] | None = None
) -> list[Label]:
    """What a judge says of each turn that stands as an answer, all asked at once.

    A free text is held against the key (`judges.verdict.grade`); everything else the judge works out for itself
    (`judges.verdict.judge`). `correct` is None where the call failed or the verdict could not be read.

    Args:
        juror: sits at the transcript's question, with an agent; its name is the labels' `judge`.
        key: of the question; None: there is none.
        turns: the ones to judge; None: all of `read_turns`.

    Raises:
        BudgetExceeded: not all of them can be judged; none of the labels is lost, since calls are kept.
    """
    wanted = [turn for turn in read_turns(juror.question, transcript) if turns is None or turn in turns]
    good = accepted(juror.question, key)
    said = await asyncio.gather(*(_ask(juror, transcript.turns[turn].text, good) for turn in wanted))
    return [
        Label(transcript.attempt.id, turn, right, judge=juror.name) for turn, right in zip(wanted, said, strict=True)
    ]


async def _ask(juror: Juror, candidate: str, good: tuple[str, ...]) -> bool | None:
    if juror.agent is None:
        raise ValueError(f"judge {juror.name!r} has no agent to ask")
    if not good:
        return (await verdict.judge(juror.agent, candidate)).value
    first, *others = good
    return (await verdict.grade(juror.agent, candidate, first, aliases=others)).value


def accepted(question: Question, key: Key | None) -> tuple[str, ...]:
    """What a judge may see of the key: the right answers to a question in free text; empty for every other kind.

    >>> accepted(Question("q", "t", "Who?", "text"), Key("q", "Lord Byron", ("Byron",)))
    ('Lord Byron', 'Byron')
    """
    if question.kind != TEXT or key is None or key.answer is None:
        return ()
    return (key.answer, *key.aliases)


def agreed(question: Question, transcript: Transcript, decision: Decision, least: float = 0.0) -> list[Label]:
    """Pseudo-labels: a turn is right that says what the council decided, and not right that does not.

    Args:
        decision: of this transcript.
        least: confidence of the decision, or its share of the votes where it has none, below which `correct` is None,
            in [0, 1]. It is None as well where the council decided nothing, or its lead was shared.
    """
    sure = decision.share if decision.confidence is None else decision.confidence
    open_ = decision.answer is None or bool(decision.tie) or sure is None or sure < least
    by = consensus_checker(least)
    return [
        Label(transcript.attempt.id, turn, None if open_ else answer == decision.answer, checker=by)
        for turn, answer in read_turns(question, transcript).items()
    ]


def consensus_checker(least: float) -> str:
    """
    >>> consensus_checker(0.0), consensus_checker(0.8)
    ('consensus', 'consensus 0.8')
    """
    return f"{CONSENSUS} {least:g}" if least else CONSENSUS


def settle(labels: Iterable[Label]) -> dict[int, bool | None]:
    """Turn → right or not, for the labels of one attempt: the checker's word, else the judge's, else the consensus.

    None: nobody decided, or as many judges said yes as no.

    >>> by_key, by_judge = Label("a", 0, True, checker="key"), Label("a", 0, False, judge="J")
    >>> settle([by_judge, by_key, replace(by_key, turn=1, correct=None), replace(by_judge, turn=1)])
    {0: True, 1: False}
    """
    return {turn: label.correct for turn, label in deciding(labels).items()}


def deciding(labels: Iterable[Label]) -> dict[int, Label]:
    """Turn → the label whose word counts; see `settle`. Labels of single steps are left aside."""
    by_turn: dict[int, list[Label]] = {}
    for one in labels:
        if one.step is None:
            by_turn.setdefault(one.turn, []).append(one)
    return {turn: _deciding(said) for turn, said in sorted(by_turn.items())}


def _deciding(said: list[Label]) -> Label:
    """Of the highest rank that decided, the first of the majority."""
    decided = [one for one in said if one.correct is not None]
    if not decided:
        return said[0]
    highest = min(map(_rank, decided))
    heard = [one for one in decided if _rank(one) == highest]
    (most, count), *rest = Counter(one.correct for one in heard).most_common()
    if rest and rest[0][1] == count:
        return replace(heard[0], correct=None)
    return next(one for one in heard if one.correct == most)


def _rank(label: Label) -> int:
    """0: a key or tests; 1: a judge; 2: the council's agreement with itself."""
    if label.checker is None:
        return 1
    return 2 if label.checker.partition(" ")[0] == CONSENSUS else 0


def read_turns(question: Question, transcript: Transcript) -> dict[int, str | None]:
    """Index of each turn that stands as an answer → its answer; a failed turn has no entry."""
    stand = set(transcript.finals)
    return {
        index: read(question, turn.text)
        for index, turn in enumerate(transcript.turns)
        if turn.ok and (turn.role == "answer" or index in stand)
    }


async def verdicts_on(question: Question, key: Key, answers: set[str | None]) -> Mapping[str | None, bool | None]:
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
