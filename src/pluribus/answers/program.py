"""Python programs. Canonical: the source as `ast.unparse` writes it, without comments and docstrings.

Read is the last fenced block that defines the function asked for (`entry_point` in the question's metadata), else a
block or a bare text that completes the function whose beginning the question shows (`prompt` in its metadata), else
code without a fence. What the question's beginning imports and defines stands before a program that needs it. Two
programs are one answer when they say the same; whether a program is right, its tests say, never its text.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain

from pluribus.types import Question

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)[^\n]*\n(.*?)(?:^[ \t]*\1|\Z)", re.MULTILINE | re.DOTALL)
_LANGUAGES = frozenset({"", "python", "python3", "py", "py3"})
_CODE = re.compile(r"^(?:(?:from|import|def|async\ def|class)\ |@)", re.MULTILINE)
_TOP = re.compile(r"^(?=[^\s#)\]}])", re.MULTILINE)
"""Where a line begins that is not indented, no comment, and closes nothing."""
_CUTS = 30
"""Ends of a text without fence that are tried."""
_LONGEST = 100_000
"""Characters of a program at most."""
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
_INDENT = "    "


def read(text: str, question: Question) -> str | None:
    """The last program of a text that defines what was asked for, canonical.

    >>> ask = Question("q", "t", "Double x.", "program", metadata={"entry_point": "double"})
    >>> print(read("So:\\n```python\\ndef double(x):\\n    return 2*x  # twice\\n```", ask))
    def double(x):
        return 2 * x
    """
    blocks = [found[3] for found in _FENCE.finditer(text) if found[2].lower() in _LANGUAGES]
    sources = chain(reversed(blocks), _completed(reversed(blocks), question), _unfenced(text, question))
    return next((found for source in sources if (found := canonical(source, question)) is not None), None)


def canonical(answer: str, question: Question) -> str | None:
    """A bare program, canonical; None when it does not parse or does not define what was asked for."""
    about = question.metadata
    return _canonical(textwrap.dedent(answer), str(about.get("entry_point") or ""), str(about.get("prompt") or ""))


def _unfenced(text: str, question: Question) -> Iterator[str]:
    """Text without fence as programs, the likeliest first."""
    if question.metadata.get("prompt"):
        end = next((found.start() for found in _TOP.finditer(text) if text[: found.start()].strip()), len(text))
        yield from _completed([text[:end], text], question)
    if (start := _CODE.search(text)) is not None:
        ends = [found.start() for found in _TOP.finditer(text, start.end())]
        yield from (text[start.start() : end] for end in (len(text), *reversed(ends[-_CUTS:])))


def _completed(bodies: Iterable[str], question: Question) -> Iterator[str]:
    """The beginning that the question shows, with each of these bodies as it may have been indented."""
    prompt = str(question.metadata.get("prompt") or "")
    for body in bodies if prompt else ():
        first_lost = _INDENT + body.strip()
        for meant in (body, textwrap.indent(textwrap.dedent(body), _INDENT), first_lost):
            if _is_body(meant):
                yield f"{prompt.rstrip()}\n{meant}"


def _is_body(text: str) -> bool:
    """Whether a text is the body of a function and does something: a stray word parses too."""
    tree = _parsed(f"def f():\n{text}")
    if tree is None or any(isinstance(node, ast.Return) for node in tree.body):
        return False
    function = tree.body[0]
    return isinstance(function, ast.FunctionDef) and not all(isinstance(node, ast.Expr) for node in function.body)


@lru_cache(maxsize=4096)
def _canonical(code: str, entry_point: str, prompt: str) -> str | None:
    tree = _parsed(code)
    if tree is None or not tree.body or (entry_point and entry_point not in _names(tree.body)):
        return None
    shown = _parsed(prompt)
    before = [node for node in shown.body if _names([node]) != {entry_point}] if shown is not None else []
    tree.body = _joined(before, tree.body)
    for node in ast.walk(tree):
        _strip(node)
    try:
        return ast.unparse(ast.fix_missing_locations(tree)) or None
    except _UNREADABLE:
        return code.strip()


def _parsed(code: str) -> ast.Module | None:
    if len(code) > _LONGEST:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a program's escapes and comparisons, which are its own affair
        try:
            return ast.parse(code.replace("\r\n", "\n"))
        except _UNREADABLE:
            return None


def _names(body: Sequence[ast.stmt]) -> set[str]:
    """What statements define."""
    found: set[str] = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def _joined(before: Sequence[ast.stmt], body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """A program behind what stands before it, each import once, and nothing defined that it defines itself."""
    own = _names(body)
    needed = [node for node in before if not _names([node]) & own and not _is_text(node)]
    imported = {ast.dump(node) for node in needed}
    rest = [node for node in body if ast.dump(node) not in imported and not _is_main(node)]
    future = [node for node in rest if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    return [*future, *needed, *(node for node in rest if node not in future)]


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_main(node: ast.stmt) -> bool:
    """`if __name__ == "__main__":`, which is not run when others use the program."""
    return isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'"


def _strip(node: ast.AST) -> None:
    """Takes a docstring away."""
    if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        body = [statement for statement in node.body if not _is_text(statement)]
        node.body = body if body or isinstance(node, ast.Module) else [ast.Pass()]
