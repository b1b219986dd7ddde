"""The embedders that a command names, opened on the workspace's cache, and how far they are."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pluribus.cli import _screen
from pluribus.embedders import Embedder, open_embedder
from pluribus.errors import ConfigError, MissingDependency
from pluribus.store import Store

_PLAIN_EVERY_S = 2.0


def split(said: Sequence[str]) -> list[str]:
    """Names of embedders with commas between, those of options left alone; each once.

    >>> split(["minilm,openai/m[dimensions=256,batch=8]", "minilm"])
    ['minilm', 'openai/m[dimensions=256,batch=8]']
    """
    return list(dict.fromkeys(part.strip() for names in said for part in re.split(r",(?![^\[]*\])", names)))


def opened(said: Sequence[str], store: Store, progress: Callable[[int, int], None]) -> list[Embedder]:
    """Those that are named; without a name `minilm`, or where its package is not installed `hashing`, which is said."""
    names = split(said)
    if names:
        return [open_embedder(name, cache=store.vectors, progress=progress) for name in names]
    try:
        return [open_embedder("minilm", cache=store.vectors, progress=progress)]
    except MissingDependency as error:
        words = f"embedded by hashing, which knows spelling and not meaning: {error}"
        _screen.err().print(_screen.text(words, style="dim"), soft_wrap=True)
        return [open_embedder("hashing", cache=store.vectors, progress=progress)]


def one(said: str | None, store: Store, progress: Callable[[int, int], None]) -> Embedder:
    """The embedder of a command that takes one.

    Raises:
        ConfigError: several are named.
    """
    found = opened([] if said is None else [said], store, progress)
    if len(found) > 1:
        raise ConfigError(
            f"--embedder names {len(found)}: {', '.join(embed.name for embed in found)}",
            hint="name one; several are compared by: pluribus analyze",
        )
    return found[0]


@contextmanager
def embedding() -> Iterator[Callable[[int, int], None]]:
    """Shows how far the embedding is: a bar on a terminal, elsewhere a line now and then; always on stderr."""
    if not sys.stderr.isatty():
        yield _plain()
        return
    columns = (TextColumn("embedding"), BarColumn(), MofNCompleteColumn(), TextColumn("texts"), TimeRemainingColumn())
    with Progress(*columns, console=_screen.err(), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _plain() -> Callable[[int, int], None]:
    told = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal told
        if done < total and time.monotonic() - told >= _PLAIN_EVERY_S:
            told = time.monotonic()
            print(f"embedding {done:,}/{total:,} texts", file=sys.stderr, flush=True)

    return tell
