"""Reasoning that a model writes into its text between `<think>` and `</think>`."""

from __future__ import annotations

OPEN, CLOSE = "<think>", "</think>"


def split_think(text: str) -> tuple[str, str | None]:
    """What was said and what was thought; None when nothing was thought.

    A block that is never closed (the token limit came first) is reasoning to its end. A `</think>` that was never
    opened closes what stands before it: several chat templates open the block in the prompt.

    >>> split_think("<think>2 and 2</think>It is 4.")
    ('It is 4.', '2 and 2')
    >>> split_think("It is 4.")
    ('It is 4.', None)
    >>> split_think("<think>2 and")
    ('', '2 and')
    >>> split_think("2 and 2</think>It is 4.")
    ('It is 4.', '2 and 2')
    """
    if OPEN not in text and CLOSE not in text:
        return text, None
    said, thought = _blocks(text)
    reasoning = "\n\n".join(part for part in map(str.strip, thought) if part)
    return "".join(said).strip(), reasoning or None


def _blocks(text: str) -> tuple[list[str], list[str]]:
    """Pieces outside and inside the blocks, in order."""
    said: list[str] = []
    thought: list[str] = []
    if CLOSE in text and OPEN not in text.split(CLOSE, 1)[0]:
        inside, _, text = text.partition(CLOSE)
        thought.append(inside)
    while OPEN in text:
        before, _, rest = text.partition(OPEN)
        inside, _, text = rest.partition(CLOSE)
        said.append(before)
        thought.append(inside)
    return [*said, text], thought
