"""What the code methods share: the program in a reply, the examples a question prints, trials in the sandbox, and a
conversation that counts its calls.

A trial's result is an exit code and an output, never whether a program parses. On questions that do not ask for a
program, a reply gives its answer in the usual form and may carry a Python program that prints it: what is printed is
compared with what is said. Nothing runs unless `sandbox.allowed()` says where.
"""

from __future__ import annotations

import ast
import re
from asyncio import gather
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pluribus import sandbox
from pluribus.agents import Agent
from pluribus.answers import canonical, read
from pluribus.replies import Form, ask
from pluribus.types import Question, Turn

T = TypeVar("T")

PROGRAM = "program"
_COMPARED = ("number", "choice", "label", "boolean")
"""Kinds whose printed answer can be told right or wrong by its canonical form."""
_FENCED = re.compile(r"^[ \t]*(`{3,})[ \t]*(\w*)[^\n]*\n(.*?)(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)
_LANGUAGES = ("", "python", "python3", "py")
_PROMPTED = re.compile(r"^\s*>>> ?(.*)$")
_MORE = re.compile(r"^\s*\.\.\. ?(.*)$")
_SHOWN = re.compile(r"\b(\w+\(.*?\))\s*#?\s*(?:==+>?|=>?|->|[➞→➡]|(?:should )?returns?:?)\s*(.+)$")
_BARE_WORDS = {"true": "True", "false": "False", "none": "None"}
_LONGEST_SHOWN = 2000
"""Characters of an output that are shown: its end, where the error stands."""
_REACHED = "every check was reached"


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of trying a reply out."""

    passed: bool
    report: str
    """Exit code and output, or why there was nothing to run."""
    crashed: bool = False
    """The program that was to compute the answer did not end well."""


# --- what is in a text -----------------------------------------------------------------------------------------------


def blocks(text: str) -> list[str]:
    """The Python in a text's fenced blocks, in order.

    >>> blocks("First\\n```python\\nprint(1)\\n```\\nand then\\n```json\\n{}\\n```")
    ['print(1)\\n']
    """
    return [found[3] for found in _FENCED.finditer(text) if found[2].lower() in _LANGUAGES]


def source(question: Question, text: str) -> str | None:
    """The program that a reply to a question that asks for one gives, as it will be read."""
    return read(question, text)


def examples(text: str) -> tuple[str, ...]:
    """The examples that a question prints, as assert statements: `>>>` sessions, calls with what they give, asserts.

    >>> examples("Double x.\\n>>> double(2)\\n4\\ndouble('a') ➞ 'aa'\\nIt must pass: assert double(0) == 0")
    ('assert double(2) == 4', "assert double('a') == 'aa'", 'assert double(0) == 0')
    """
    return tuple(dict.fromkeys((*_sessions(text), *_pairs(text), *asserts(text))))


def _pairs(text: str) -> Iterator[str]:
    """Lines such as `f(1) == 2`, `f(1) => 2`, `f(1) -> 2`, `f(1) should return 2.`"""
    for line in text.splitlines():
        found = None if "assert " in line else _SHOWN.search(line)
        if found is None:
            continue
        call, said = _called(found[1]), found[2]
        given = next((word for part in (said, said.partition("#")[0], said.rstrip(". ")) if (word := _value(part))), "")
        if call and given:
            yield f"assert {call} == {given}"


def _called(text: str) -> str | None:
    """A call as Python writes it; None for what is none, or depends on a variable.

    >>> _called("f([1,  g('a')])  # why"), _called("f(x)"), _called("4")
    ("f([1, g('a')])", None, None)
    """
    if not _parses(text, "eval"):
        return None
    body = ast.parse(text.strip(), mode="eval").body
    functions = {id(node.func) for node in ast.walk(body) if isinstance(node, ast.Call)}
    variables = [node for node in ast.walk(body) if isinstance(node, ast.Name) and id(node) not in functions]
    return ast.unparse(body) if isinstance(body, ast.Call) and not variables else None


def _value(text: str) -> str | None:
    """A literal as Python writes it."""
    word = _BARE_WORDS.get(text.strip(), text.strip())
    return ast.unparse(ast.parse(word, mode="eval").body) if _literal(word) else None


def _sessions(text: str) -> Iterator[str]:
    lines = text.splitlines()
    for place, line in enumerate(lines):
        if (found := _PROMPTED.match(line)) is None:
            continue
        asked, said = _heard([found[1]], lines[place + 1 :])
        call, given = _called(asked), _value(said)
        if call and given:
            yield f"assert {call} == {given}"


def _heard(asked: list[str], rest: Sequence[str]) -> tuple[str, str]:
    """An example's expression, with the lines that go on with it, and what it gives."""
    given: list[str] = []
    for line in rest:
        more = _MORE.match(line)
        if more is not None and not given:
            asked.append(more[1])
        elif not line.strip() or _PROMPTED.match(line) or line.strip() in ('"""', "'''"):
            break
        else:
            given.append(line.strip())
    joined = "\n".join(given)
    while given and not _literal(joined):  # prose may follow without an empty line
        joined = "\n".join(given := given[:-1])
    return "\n".join(asked).strip(), joined.removesuffix('"""').removesuffix("'''").strip()


def asserts(text: str) -> tuple[str, ...]:
    """The assert statements of a text, each on a line of its own or behind a few words.

    >>> asserts("Your code should pass: assert f(1) == 2\\nassert that it works")
    ('assert f(1) == 2',)
    """
    said = (line[line.find("assert ") :].strip().strip("`") for line in text.splitlines() if "assert " in line)
    return tuple(line for line in said if _is_assert(line))


def _is_assert(line: str) -> bool:
    if not _parses(line, "exec"):
        return False
    body = ast.parse(line).body
    return len(body) == 1 and isinstance(body[0], ast.Assert) and isinstance(body[0].test, ast.Compare | ast.Call)


def _parses(text: str, mode: str) -> bool:
    try:
        compile(text, "<example>", mode, ast.PyCF_ONLY_AST)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return bool(text.strip())


def _literal(text: str) -> bool:
    try:
        ast.literal_eval(text)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return False
    return True


# --- trials ----------------------------------------------------------------------------------------------------------


async def trial(question: Question, text: str, checks: Sequence[str] = ()) -> Trial:
    """Tries a reply out: its program on the checks, or the program that it computes its answer with.

    Args:
        checks: assert statements, for questions that ask for a program.
    """
    if question.kind == PROGRAM:
        program = source(question, text)
        if program is None:
            return Trial(False, "There is no complete program in the reply.")
        return await _checked(program, checks)
    if read(question, text) is None:
        return Trial(False, "The reply states no final answer in the form that was asked for.")
    programs = blocks(text)
    return await printed(question, text, programs[-1]) if programs else Trial(True, "There is nothing to run.")


async def _checked(program: str, checks: Sequence[str]) -> Trial:
    """Runs a program with checks behind it; a program that leaves before the last of them has not passed."""
    box = sandbox.allowed()
    if box is None:
        return Trial(True, "There was no trial: programs may not run here.")
    run = await sandbox.run_program(box, "\n\n".join((program, *map(loud, checks), f"print({_REACHED!r})")))
    ended = run.stdout.rstrip().endswith(_REACHED)
    return Trial(run.ok and ended, shown(run) if run.ok is ended else f"{shown(run)}\nIt ended before the checks.")


async def on_test(question: Question, text: str, test: str) -> Trial | None:
    """A reply on one test that somebody wrote: the test's program behind the reply's, or, on a question that does not
    ask for a program, one that works the answer out by itself and prints it.

    Returns: None where the test itself can not be used.
    """
    programs = blocks(test)
    if not programs:
        return None
    if question.kind == PROGRAM:
        program = source(question, text)
        return await _checked(program, programs) if program else Trial(False, "There is no complete program.")
    found = await printed(question, text, programs[-1])
    return None if found.crashed else found


async def printed(question: Question, text: str, program: str) -> Trial:
    """A program that computes the answer: it must end well, and print what the reply says."""
    box = sandbox.allowed()
    if box is None:
        return Trial(True, "There was no trial: programs may not run here.")
    run = await sandbox.run_program(box, program)
    last = run.stdout.strip().rpartition("\n")[2].strip()
    computed = canonical(question, last) if last and question.kind in _COMPARED else None
    said = read(question, text)
    if not run.ok or computed in (None, said):
        return Trial(run.ok, shown(run), crashed=not run.ok)
    return Trial(False, f"The program printed {last}, but the final answer given is {said}.\n{shown(run)}")


def loud(code: str) -> str:
    """A test whose asserts say what they got.

    >>> print(loud("assert f(1) == 2"))
    assert f(1) == 2, 'f(1) == 2 is false; f(1) gave ' + repr(f(1))
    """
    if not _parses(code, "exec"):
        return code
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and node.msg is None and isinstance(node.test, ast.Compare):
            left = ast.unparse(node.test.left)
            words = f"{ast.unparse(node.test)} is false; {left} gave "
            node.msg = ast.parse(f"{words!r} + repr({left})", mode="eval").body
    return ast.unparse(tree)


def shown(run: sandbox.Run) -> str:
    """A run as an agent reads it.

    >>> print(shown(sandbox.Run(1, "3", "ValueError: no", None, 0.1)))
    Exit code: 1
    Standard output:
    3
    Standard error:
    ValueError: no
    """
    how = f"Stopped: it passed the limit of {run.stopped}." if run.stopped else f"Exit code: {run.exit_code}"
    parts = (("Standard output", run.stdout.replace(_REACHED, "")), ("Standard error", run.stderr))
    return "\n".join((how, *(f"{name}:\n{_end(text)}" for name, text in parts if text.strip())))


def _end(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _LONGEST_SHOWN else f"… {text[-_LONGEST_SHOWN:]}"


# --- a conversation --------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Talk:
    """A conversation that counts its calls; it lives as long as one question is worked on.

    Args:
        most: calls after which nobody is asked any more, repairs and those that failed included; None: no limit.
    """

    agents: Sequence[Agent]
    most: int | None = None
    turns: list[Turn] = field(default_factory=list)

    def room(self, calls: int = 1) -> bool:
        """Whether so many calls may still be made."""
        return self.most is None or len(self.turns) + calls <= self.most

    async def say(self, first: int, prompt: str, **about: Any) -> Turn | None:
        """A turn of the agent at place `first` (counted round), or of the next in line when it fails.

        Returns: None when everybody failed, or no call is left.
        """
        for place in range(len(self.agents)):
            if not self.room():
                break
            self.turns.append(await self.agents[(first + place) % len(self.agents)].speak(prompt, **about))
            if self.turns[-1].ok:
                return self.turns[-1]
        return None

    async def ask(self, first: int, prompt: str, form: Form[T], **about: Any) -> T | None:
        """A reply in a form, of the agent at place `first`, or of the next in line when its call fails.

        Returns: None when nobody answered, when what was answered could not be read, or when fewer than the two calls
        are left that it can take.
        """
        for place in range(len(self.agents)):
            if not self.room(2):
                break
            reply = await ask(self.agents[(first + place) % len(self.agents)], prompt, form, **about)
            self.turns += reply.turns
            if reply.turn.ok:
                return reply.value
        return None

    async def at_once(self, parts: Sequence[Callable[[Talk], Awaitable[T]]]) -> list[T]:
        """Parts that go on at the same time, each with its share of the calls left; their turns stand in order."""
        share = None if self.most is None else (self.most - len(self.turns)) // max(len(parts), 1)
        talks = [Talk(self.agents, share) for _ in parts]
        done = await gather(*(part(talk) for part, talk in zip(parts, talks, strict=True)))
        for talk in talks:
            self.turns += talk.turns
        return done
