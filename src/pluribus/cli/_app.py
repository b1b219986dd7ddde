"""The command tree: every file of this folder whose name does not begin with an underscore is a command, and the
function of that name in it is what it does; what the function returns, if anything, is the exit code."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperCommand

from pluribus import cli
from pluribus.cli._flags import SWITCH, flat
from pluribus.errors import UnknownName, UsageError

_ORDER = (
    "demo", "run", "ask", "sweep", "plan", "show", "analyze", "report", "recommend", "calibrate", "label", "reward",
    "prefer", "review", "distil", "train", "evaluate", "team", "list", "export", "import", "doctor", "version",
)  # fmt: skip
"""How the help lists them, the walk's order; what is not named here follows."""


_ALLOW = "--allow-code-execution"
"""The one flag that may be given with a value or without."""
_SETTINGS = {"help_option_names": ["-h", "--help"]}


class _Command(TyperCommand):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [f"{word}=bubblewrap" if word == _ALLOW else word for word in args])


def names() -> list[str]:
    """The commands, in the order of the help."""
    found = [m.name.rstrip("_") for m in pkgutil.iter_modules(cli.__path__) if not m.name.startswith("_")]
    return sorted(found, key=lambda name: (_ORDER.index(name) if name in _ORDER else len(_ORDER), name))


@cache
def tree() -> Any:
    """The whole command tree; its parts import what is heavy only when they run."""
    app = typer.Typer(name="pluribus", add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
    app.callback(context_settings=_SETTINGS)(_root)
    for name in names():
        module = importlib.import_module(f"pluribus.cli.{_file(name)}")
        app.command(name, cls=_Command, context_settings=_SETTINGS)(flat(getattr(module, _file(name))))
    return typer.main.get_command(app)


def _file(name: str) -> str:
    """Names that Python keeps for itself carry an underscore behind them as a file."""
    return f"{name}_" if name in ("list", "import") else name


def _version(asked: bool) -> None:
    if asked:
        print(f"pluribus {importlib.import_module('pluribus').__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option("--version", metavar=SWITCH, help="Print the version and stop.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    """Councils of language models: many agents answer, one decision comes out.

    Try `pluribus demo`, then `pluribus run --help`. Everything is kept in a workspace; what was answered costs nothing.
    """


def invoke(arguments: list[str]) -> int:
    """Runs the command the arguments name; a command line that can not be read is a UsageError."""
    try:
        with tree().make_context("pluribus", arguments) as context:
            code = tree().invoke(context)
            return int(code or 0)
    except typer.Exit as end:
        return end.exit_code
    except typer.TyperException as problem:
        raise UsageError(_words(problem)) from None


def _words(problem: typer.TyperException) -> str:
    context = getattr(problem, "ctx", None)
    where = f"; see `{context.command_path} --help`" if context is not None else ""
    message = problem.format_message().strip().rstrip(".")
    if message.startswith("No such command"):
        return str(UnknownName("command", message.split("'")[1], names()))
    message = message.replace("Value error, ", "").replace("Input should", "it should")
    return f"{message[:1].lower()}{message[1:]}{where}"
