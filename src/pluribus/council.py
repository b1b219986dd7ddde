"""The Python door: a council with a method answers a question, or a task.

council = Council(["zoo/qwen", "zoo/olmo", "zoo/gemma"], method="debate", settings={"debate_rounds": 2})
decision = council.ask("Ann has 12 apples. Ann buys 8 more. Half of them break. How many apples are left?").decision
result = council.run("sums", limit=100)
print(result.score, result.frame())
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pluribus.codec import content_id
from pluribus.config import RunConfig, make_config
from pluribus.engines.asyncio import block
from pluribus.errors import ConfigError
from pluribus.run import (
    RunResult,
    Table,
    check_method,
    decided,
    execute,
    jail,
    opened,
    prepare,
    seat_table,
    with_calibration,
)
from pluribus.sandbox import allowing
from pluribus.solve import solve
from pluribus.store import Store
from pluribus.types import Decision, Kind, Question, Transcript


@dataclass(frozen=True, slots=True)
class Answer:
    """What a council said to one question."""

    question: Question
    transcript: Transcript
    decision: Decision | None
    """None: the attempt failed; `transcript.failure` says why."""

    def __str__(self) -> str:
        if self.decision is None:
            return f"failed: {self.transcript.failure.message if self.transcript.failure else 'unknown'}"
        return str(self.decision.answer)


class Council:
    """Agents around a table, a method, and a rule that decides.

    Args:
        models: `service/model` strings or mappings with options; seats cycle over them.
        method: how they work together; see `pluribus list methods`.
        home: folder of the workspace; None: `.pluribus` here, or PLURIBUS_HOME.
        options: any other entry of the council file, e.g. `num_agents`, `settings`, `personas`, `tie`, `seed`.

    >>> council = Council([{"model": "scripted/constant", "text": "{final answer: 4}"}], num_agents=3)
    >>> str(council.ask("How much is 2 + 2?", kind="number", remember=False))
    '4'
    """

    def __init__(
        self,
        models: Sequence[str | Mapping[str, Any]],
        method: str = "vote",
        *,
        home: Path | str | None = None,
        **options: Any,
    ) -> None:
        self.home = home
        entries = [model if isinstance(model, str) else dict(model) for model in models]
        self.config = make_config({"models": entries, "method": method, **options}, "Council")

    @classmethod
    def from_config(cls, config: RunConfig, home: Path | str | None = None) -> Council:
        """A council as a council file or flags describe it."""
        council = cls.__new__(cls)
        council.home, council.config = home, config
        return council

    def ask(self, question: str | Question, **about: Any) -> Answer:
        """Asks one question and waits; takes what `aask` takes, and works inside a notebook too."""
        return block(self.aask(question, **about))

    async def aask(
        self,
        question: str | Question,
        *,
        kind: Kind | None = None,
        choices: Sequence[str] = (),
        labels: Sequence[str] = (),
        family: str = "general",
        remember: bool = True,
    ) -> Answer:
        """Asks one question.

        Args:
            kind: of the answer; None: choice with choices, label with labels, else text.
            family: persona set when the council has personas without a name.
            remember: keep the calls in the workspace, so that asking again costs nothing.
        """
        asked = question if isinstance(question, Question) else make_question(question, kind, choices, labels)
        config = with_calibration(self.config)
        table = seat_table(config, family)
        check_method(config, table)
        store = Store.open(self.home) if remember else None
        try:
            async with opened(table, config, store) as live:
                with allowing(jail(config)):
                    transcript = await solve(asked, live.agents, table.method, table.settings, seed=config.seed)
        finally:
            if store is not None:
                store.close()
        return Answer(asked, transcript, _decided(config, table, asked, transcript))

    def run(self, task: str, **about: Any) -> RunResult:
        """Runs a task and waits; takes what `arun` takes."""
        return block(self.arun(task, **about))

    async def arun(
        self, task: str, *, split: str | None = None, limit: int | None = None, data: Path | str | None = None
    ) -> RunResult:
        """Runs the council over a task's questions; what the workspace holds already costs no call."""
        said = {"task": task, "split": split, "limit": limit, "data": str(data) if data else None}
        config = self.config.model_copy(update=said)
        with Store.open(self.home) as store:
            return await execute(prepare(config), store)


def _decided(config: RunConfig, table: Table, question: Question, transcript: Transcript) -> Decision | None:
    return None if transcript.status == "failed" else decided(config, table, question, transcript)


def make_question(
    text: str, kind: Kind | None = None, choices: Sequence[str] = (), labels: Sequence[str] = ()
) -> Question:
    """A question of one's own; the kind follows from what is given.

    >>> make_question("Which?", choices=["red", "blue"]).kind
    'choice'
    """
    if not text.strip():
        raise ConfigError("the question is empty", hint="say what is asked")
    settled: Kind = kind or ("choice" if choices else "label" if labels else "text")
    id = content_id([text, settled, list(choices), list(labels)])[:16]
    return Question(id, "ask", text, settled, tuple(choices), tuple(labels))
