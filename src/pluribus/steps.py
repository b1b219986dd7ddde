"""A reply cut into the steps of its reasoning: what step labels and process reward models are about."""

from __future__ import annotations

import re
from typing import Literal, get_args

Cut = Literal["auto", "paragraphs", "lines", "sentences"]
CUTS: tuple[Cut, ...] = get_args(Cut)
_AT = {
    "paragraphs": re.compile(r"\n[^\S\n]*\n\s*"),
    "lines": re.compile(r"\s*\n\s*"),
    "sentences": re.compile(r"(?<=[.!?])\s+"),
}


def split_steps(text: str, cut: Cut = "auto") -> tuple[str, ...]:
    """The steps of a reply in order, none of them empty, without the white space between them.

    `paragraphs` ends a step at an empty line, `lines` at a line's end, `sentences` where white space follows a full
    stop, a question or an exclamation mark. `auto` takes the first of these that gives more than one step. A text
    without a letter has no step.

    >>> split_steps("12 + 7 = 19. 19 - 5 = 14. {final answer: 14}")
    ('12 + 7 = 19.', '19 - 5 = 14.', '{final answer: 14}')
    >>> split_steps("First, 3.5 + 1.\\nThat is 4.5. Good.")
    ('First, 3.5 + 1.', 'That is 4.5. Good.')
    >>> split_steps("One.\\nStill one.\\n\\nTwo.", "lines")
    ('One.', 'Still one.', 'Two.')
    """
    if cut != "auto":
        return tuple(part for part in _AT[cut].split(text.strip()) if part)
    steps: tuple[str, ...] = ()
    for way in _AT:
        steps = split_steps(text, way)  # type: ignore[arg-type]  # the keys are the cuts
        if len(steps) > 1:
            break
    return steps
