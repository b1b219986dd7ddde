"""What a complaint about an unknown name lists."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LISTED = 12


def few(wanted: str, names: Iterable[str]) -> list[str]:
    """The names nearest to the wanted one and the first of the others, each once; a last `…` where there are more.

    >>> few("b", ["a", "b2", "c"]), len(few("x", map(str, range(100))))
    (['b2', 'a', 'c'], 13)
    """
    every = list(dict.fromkeys(names))
    near = difflib.get_close_matches(wanted, every, n=3)
    listed = list(dict.fromkeys([*near, *every]))
    return listed if len(listed) <= LISTED else [*listed[:LISTED], "…"]
