"""The documentation says what is there: every command and flag is described, every printed command can be typed."""

from __future__ import annotations

import contextlib
import doctest
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from pluribus.cli._app import names, tree

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CLI = (ROOT / "docs" / "cli.md").read_text("utf-8")
COMING_FROM = (ROOT / "docs" / "coming-from.md").read_text("utf-8")
_BLOCK = re.compile(r"^```(?:bash|sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PYTHON = re.compile(r"^```(?:python|pycon)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PLANNED = re.compile(r"\*planned:\* `(pluribus [^`]+)`")


def command(name: str) -> Any:
    return tree().commands[name]


def flags(name: str) -> list[str]:
    return [flag for parameter in command(name).params for flag in parameter.opts if flag.startswith("--")]


@pytest.mark.parametrize("name", names())
def test_every_command_has_a_section_and_a_line_in_the_table(name: str) -> None:
    assert f"\n## pluribus {name}\n" in CLI
    assert f"(#pluribus-{name})" in CLI


@pytest.mark.parametrize("name", names())
def test_every_flag_is_described(name: str) -> None:
    section = CLI.split(f"\n## pluribus {name}\n")[1].split("\n## ")[0]
    shared = CLI.split("### Flags of a council")[1].split("\n## ")[0]
    missing = [flag for flag in flags(name) if not re.search(rf"`{flag}[ `]", section + shared)]
    assert not missing


def test_no_flag_is_described_that_is_not_there() -> None:
    known = {flag for name in names() for flag in flags(name)} | {"--help", "--version"}
    assert set(re.findall(r"(?<![\w-])--[a-z][\w-]*", CLI)) <= known


def typed(text: str) -> list[str]:
    """The pluribus commands of a text's shell blocks, one a line, continued lines joined."""
    found = []
    for block in _BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            line = line.partition(" # ")[0].strip().removeprefix("$ ")
            if line.startswith("pluribus "):
                found.append(line.split(" | ")[0].split(" > ")[0])
    return found


def check(line: str) -> None:
    """Raises what the command line itself would say, without running anything."""
    _, name, *arguments = shlex.split(line)
    assert name in names(), f"no command {name!r}"
    with contextlib.suppress(typer.Exit):  # --help stops here, and is fine
        command(name).make_context(name, arguments)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_printed_command_can_be_typed(page: Path) -> None:
    for line in typed(page.read_text("utf-8")):
        check(line)


def test_readme_and_the_cli_page_print_commands_at_all() -> None:
    assert len(typed(CLI)) > 10
    assert len(typed(PAGES[0].read_text("utf-8"))) > 2


def test_commands_for_those_who_come_from_elsewhere() -> None:
    planned = _PLANNED.findall(COMING_FROM)
    there = [line for line in re.findall(r"`(pluribus [^`]+)`", COMING_FROM) if line not in planned]
    assert len(there) > 5
    for line in there:
        check(line)


@pytest.mark.parametrize("line", _PLANNED.findall(COMING_FROM))
def test_what_is_planned_is_not_there_yet(line: str) -> None:
    with pytest.raises((AssertionError, typer.TyperException)):
        check(line)


def test_pages_link_to_pages_that_are_there() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", [page for page in PAGES if ">>> " in page.read_text("utf-8")], ids=lambda p: p.stem)
def test_the_examples_of_a_page_give_what_they_print(page: Path) -> None:
    text = "\n".join(_PYTHON.findall(page.read_text("utf-8")))
    examples = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    assert examples.examples
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples).failed == 0
