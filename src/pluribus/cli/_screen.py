"""How things look: consoles, and numbers as people read them."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pluribus.panel import bare_name

NOTHING = "–"
_PIPE_WIDTH = 120
"""Columns when nobody looks: enough that no table wraps."""


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def out() -> Console:
    """The console for results."""
    return _console(sys.stdout.isatty())


def err() -> Console:
    """The console for progress and remarks."""
    return _console(sys.stderr.isatty(), stderr=True)


def _console(terminal: bool, stderr: bool = False) -> Console:
    width = None if terminal or "COLUMNS" in os.environ else _PIPE_WIDTH
    return _Console(stderr=stderr, width=width, highlight=False, soft_wrap=False)


def table() -> Table:
    """An empty table in the house's look: one rule under the heads, no frame."""
    from rich.box import Box

    lines = ["    ", "    ", " ── ", "    ", " ── ", " ── ", "    ", "    "]
    return Table(box=Box("\n".join(lines)), padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="dim")


def grid() -> Table:
    """Facts: a name and what stands behind it, one a line."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    return facts


def text(said: str, style: str = "") -> Text:
    """Text as it was said: nothing in it is markup, and nothing in it steers the terminal.

    >>> text("[bold]\\x1b[2J").plain
    '[bold]␛[2J'
    """
    return Text(said.translate(_STEERING), style=style)


_TURNING = (*range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_STEERING = dict.fromkeys(_TURNING, 0xFFFD) | {c: 0x2400 + c for c in range(32) if chr(c) not in "\n\t"}
"""Control characters, and those that turn the direction of writing → a sign one can see."""


def line(said: str, style: str = "") -> Text:
    """`text` in one line, broken where the screen ends."""
    return text(" ".join(said.split()), style)


def cell(said: str, style: str = "") -> Text:
    """`text` in one line, cut off where a table's column ends."""
    one = line(said, style)
    one.no_wrap, one.overflow = True, "ellipsis"
    return one


def model(name: str) -> str:
    """A model's name without the folders on the way to it, where they would fill a table.

    >>> model("replay//data/recorded/outputs.jsonl.gz#gpt-4o"), model("local/Qwen/Qwen3-8B")
    ('replay/…#gpt-4o', 'local/Qwen/Qwen3-8B')
    >>> model("local//data/someone/models/checkpoint-1000")
    'local/…/checkpoint-1000'
    """
    name = bare_name(name)
    service, _, rest = name.partition("/")
    if service == "replay" and "#" in rest:
        return f"{service}/…#{rest.rpartition('#')[2]}"
    path, _, url = rest.partition("@")
    if path.count("/") < 2:
        return name
    return f"{service}/…/{path.rpartition('/')[2]}" + (f"@{url}" if url else "")


def count(number: int | None) -> str:
    """
    >>> count(1319), count(None)
    ('1,319', '–')
    """
    return NOTHING if number is None else f"{number:,}"


def large(number: int | None) -> str:
    """A count to three digits, with its unit; small ones in full.

    >>> large(950), large(13_190), large(1_234_567)
    ('950', '13.2 k', '1.23 M')
    """
    if number is None or abs(number) < 10_000:
        return count(number)
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= size * 0.9995:
            return f"{number / size:.3g} {unit}"
    raise AssertionError(number)


def usd(amount: float | None) -> str:
    """US dollars; None is unpriced, which is not 0.

    >>> usd(0.0), usd(0.00123), usd(12.3456), usd(None)
    ('$0', '$0.0012', '$12.35', 'unpriced')
    """
    if amount is None:
        return "unpriced"
    if amount == 0:
        return "$0"
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.2g}" if amount < 0.0001 else f"${amount:.4f}"


def share(value: float | None) -> str:
    """A share in [0, 1] to four places.

    >>> share(0.39044), share(None)
    ('0.3904', '–')
    """
    return NOTHING if value is None else f"{value:.4f}"


def between(interval: tuple[float, float] | None) -> str:
    """
    >>> between((0.5354, 0.5890))
    '0.535 – 0.589'
    """
    return NOTHING if interval is None else f"{interval[0]:.3f} – {interval[1]:.3f}"


def seconds(duration_s: float) -> str:
    """
    >>> seconds(0.2), seconds(3.2), seconds(75), seconds(7300)
    ('0.20 s', '3.2 s', '1 min 15 s', '2 h 1 min')
    """
    if duration_s < 60:
        return f"{duration_s:.2f} s" if duration_s < 1 else f"{duration_s:.1f} s"
    minutes, rest = divmod(round(duration_s), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def plural(number: int, word: str, many: str | None = None) -> str:
    """
    >>> plural(1, "question"), plural(1319, "question"), plural(2, "retry", "retries")
    ('1 question', '1,319 questions', '2 retries')
    """
    return f"{number:,} {word if number == 1 else many or word + 's'}"
