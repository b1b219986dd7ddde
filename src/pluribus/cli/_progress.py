"""What is shown while a run goes on: a live bar on a terminal, plain lines elsewhere, always on stderr."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from pluribus.cli import _screen
from pluribus.evaluate import Row
from pluribus.traffic import Tally

PLAIN_EVERY_S = 2.0
"""Between two plain lines pass at least so many seconds, …"""
PLAIN_STEPS = 10
"""… and a tenth of the questions."""


@dataclass(slots=True)
class Watch:
    """Counts the questions of a run as they come; `tally` counts its calls.

    Args:
        total: questions of the run.
        stored: of these, the ones that were answered before it began.
    """

    total: int
    stored: int
    tally: Tally = field(default_factory=Tally)
    done: int = 0
    failed: int = 0
    started: float = field(default_factory=time.monotonic)
    _live: AbstractContextManager[Any] = field(default_factory=nullcontext)
    _told: int = 0
    _told_at: float = 0.0

    def __enter__(self) -> Watch:
        if sys.stderr.isatty():
            self._live = Live(console=_screen.err(), get_renderable=self.render, refresh_per_second=5, transient=True)
        self._live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.__exit__(kind, error, at)

    def __call__(self, row: Row, tally: Tally) -> None:
        self.done += 1
        self.failed += row.status == "failed"
        if not isinstance(self._live, Live):
            self._tell()

    def _tell(self) -> None:
        """A plain line, if enough happened since the last."""
        now = time.monotonic()
        step = (self.done - self._told) * PLAIN_STEPS >= self.total and now - self._told_at >= PLAIN_EVERY_S
        if self.done > self.stored and (step or self.done == self.total):
            self._told, self._told_at = self.done, now
            print(f"{self.done:,}/{self.total:,} questions · {self.counters()}", file=sys.stderr, flush=True)

    def counters(self) -> str:
        """Calls, tokens, cost and failures so far, in one line."""
        tally = self.tally
        parts = [_screen.plural(tally.calls, "call")]
        if tally.hits:
            parts.append(f"{tally.hits:,} cached")
        if tally.retries:
            parts.append(_screen.plural(tally.retries, "retry", "retries"))
        parts += [_metered(tally), spent(tally)]
        return " · ".join([*parts, f"{self.failed:,} failed"])

    def render(self) -> RenderableType:
        elapsed_s = time.monotonic() - self.started
        line = Table.grid(padding=(0, 1), expand=True)
        line.add_column(ratio=1)
        for _ in range(3):
            line.add_column(no_wrap=True)
        line.add_row(
            ProgressBar(total=self.total, completed=self.done),
            f"{self.done:,}/{self.total:,} questions",
            f"{self.done / self.total:.0%}",
            _clock(elapsed_s, self.done - self.stored, self.total - self.done),
        )
        return Group(line, Text(self.counters(), style="dim", no_wrap=True, overflow="ellipsis"))


def _metered(tally: Tally) -> str:
    """Tokens of the calls whose service told them."""
    told = tally.prompt_tokens + tally.completion_tokens
    return f"{_screen.large(told)} tokens" if told or not tally.unmetered else "tokens not told"


def spent(tally: Tally) -> str:
    """What the priced calls cost, and that there were others.

    >>> spent(Tally(calls=2, unpriced=2)), spent(Tally(calls=2, cost_usd=0.5, unpriced=1)), spent(Tally())
    ('unpriced', '$0.5000 + 1 unpriced', '$0')
    """
    if not tally.unpriced:
        return _screen.usd(tally.cost_usd)
    return f"{_screen.usd(tally.cost_usd)} + {tally.unpriced:,} unpriced" if tally.cost_usd else "unpriced"


def _clock(elapsed_s: float, asked: int, left: int) -> str:
    """Time so far and, once something came back, the time it will still take at this pace."""
    ahead = f", about {_short(elapsed_s / asked * left)} left" if asked > 0 and left else ""
    return f"{_short(elapsed_s)}{ahead}"


def _short(duration_s: float) -> str:
    """
    >>> _short(59.6), _short(3700)
    ('1:00', '1:01:40')
    """
    minutes, rest = divmod(round(duration_s), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
