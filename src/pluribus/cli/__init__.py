"""The terminal's door: `pluribus COMMAND …`. One file is one command; files with an underscore serve them.

Exit codes: 0 done · 1 some questions failed, a seat is not usable, or the work could not be done · 2 wrong input ·
3 stopped by the budget · 70 a bug · 130 interrupted · 141 the reader of the output went away.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

OK, FAILED, USAGE, BUDGET, BUG, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 3, 70, 130, 141


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line and returns its exit code; every expected error is one line on stderr."""
    arguments = list(sys.argv[1:] if argv is None else argv) or ["--help"]
    for stream in (sys.stdout, sys.stderr):  # a model may write what this terminal, or UTF-8, can not show
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _guarded(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains at its exit
        return BROKEN_PIPE


def _guarded(arguments: list[str]) -> int:
    from pluribus.cli._app import invoke
    from pluribus.errors import PluribusError, UsageError

    try:
        return invoke(arguments)
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    except UsageError as error:
        return _say(str(error), USAGE)
    except PluribusError as error:
        return _say(str(error), FAILED)
    except BrokenPipeError:
        raise
    except Exception as error:
        if os.environ.get("PLURIBUS_DEBUG"):
            raise
        what = f"{type(error).__name__}: {error}"
        return _say(f"{what}; this is a bug: set PLURIBUS_DEBUG=1 for the traceback and report it", BUG)


def _say(message: str, code: int) -> int:
    """One line on stderr, whatever the message holds."""
    line = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in " ".join(message.split())
    )
    print(f"pluribus: {line}", file=sys.stderr)
    return code
