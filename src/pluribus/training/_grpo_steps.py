"""A process reward model beside the policy: P(good) of each step of each sample."""

from __future__ import annotations

from asyncio import gather
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pluribus.backends import Request, connect, parse
from pluribus.backends._loading import PRM, Source, load_config, load_form, load_words
from pluribus.backends._think import split_think
from pluribus.errors import Refused, UsageError
from pluribus.rows import Row
from pluribus.steps import split_steps
from pluribus.training._grpo_rows import asked
from pluribus.training._grpo_samples import Sample, step_ends
from pluribus.types import Message, Sampling

_ONE = Sampling(temperature=0.0, max_tokens=1)


class StepScorer:
    """Marks steps with the model of `pluribus train prm`; it may have another tokenizer than the policy.

    Raises UsageError where the folder holds no process reward model, or one that does not fit its own tokenizer.
    """

    def __init__(self, folder: str) -> None:
        path = check_folder(folder)
        self.form = load_form(Source(path, 1, head=PRM))
        self.backend = connect(parse({"model": f"local/{path}", "head": PRM}))

    async def scored(
        self, rows: Sequence[Row], samples: Sequence[Sample], ids: Sequence[Sequence[int]], words: Any
    ) -> list[Sample]:
        """The samples with P(good) − P(bad) of each step, and where its tokens end; a reply without a step has none.

        Args:
            ids: the policy's tokens of each sample.
            words: the policy's tokenizer.
        """

        def decode(tokens: Sequence[int]) -> str:
            return str(words.decode(tokens, skip_special_tokens=True))

        said = [(asked(row), one.text) for row, one in zip(rows, samples, strict=True)]
        once = list(dict.fromkeys(said))  # small policies say the same many times
        marks = dict(zip(once, await gather(*(self._scores(*one) for one in once)), strict=True))
        found = []
        for one, good, tokens in zip(samples, map(marks.__getitem__, said), ids, strict=True):
            steps = split_steps(split_think(one.text)[0], self.form.cut) if good else ()
            margins = tuple(2 * value - 1 for value in good) if good else None
            ends = step_ends(decode, tokens, steps) if good else (len(tokens),)
            found.append(replace(one, steps=margins, ends=ends, score=one.score if not good else min(good)))
        return found

    async def _scores(self, question: str, text: str) -> list[float] | None:
        """P(good), step by step; None: the reply has no step, or is longer than the model reads."""
        reply = split_think(text)[0]
        steps = split_steps(reply, self.form.cut)
        if not steps:
            return None
        messages = (Message("user", question), Message("assistant", reply))
        try:
            said = (await self.backend.complete(Request(messages, _ONE))).scores or {}
        except Refused:
            return None
        return [said[f"step {number}"] for number in range(1, len(steps) + 1)]


def folder_of(name: str) -> str:
    """Without what a folder's name may begin with."""
    return str(Path(name.removeprefix("local/")).expanduser())


def check_folder(name: str) -> str:
    """The folder of a process reward model; UsageError where it is none, or its tokenizer is another model's."""
    folder = folder_of(name)
    if not Path(folder).is_dir():
        raise UsageError(f"prm {name!r} is no folder", hint="name one that pluribus train prm made")
    load_form(Source(folder, 1, head=PRM))
    config = load_config(folder, None)
    made = next((one for one in config.architectures or () if not one.endswith("ForTokenClassification")), None)
    if made is not None:
        raise UsageError(
            f"prm {folder!r} is a {made}: it marks no steps", hint="name a folder that pluribus train prm made"
        )
    rows = int(config.get_text_config().vocab_size)
    most = max(load_words(folder, None).tokenizer.get_vocab().values()) + 1
    if most > rows:
        raise UsageError(
            f"prm {folder!r} has a tokenizer of {most:,} tokens, and its weights know {rows:,}: it is another model's",
            hint="give the folder as pluribus train prm wrote it",
        )
    return folder
