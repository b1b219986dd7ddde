"""panel → how diverse it is: K* per round, per question and per agent, beside the answers' own spread and errors.

Nothing here embeds: vectors come from the function the door hands in.
"""

from __future__ import annotations

from typing import Literal

from pluribus.analyze.agents import agent_rows, extended, question_rows
from pluribus.analyze.debates import move_rows
from pluribus.analyze.omitted import omissions
from pluribus.analyze.robust import robustness
from pluribus.analyze.rounds import round_rows
from pluribus.analyze.rows import (
    MODES,
    AgentRow,
    Analysis,
    Embed,
    FileRow,
    Mode,
    MoveRow,
    QuestionRow,
    RobustnessRow,
    RoundRow,
    mode_of,
)
from pluribus.analyze.texts import TEXTS, measured
from pluribus.analyze.whole import file_row
from pluribus.errors import UnknownName, UsageError
from pluribus.panel import Panel

__all__ = [
    "MODES",
    "AgentRow",
    "Analysis",
    "Embed",
    "FileRow",
    "Mode",
    "MoveRow",
    "QuestionRow",
    "RobustnessRow",
    "RoundRow",
    "analyze",
    "mode_of",
    "robustness",
]


def analyze(
    panel: Panel,
    embed: Embed,
    *,
    embedder: str,
    mode: str = "round_agent_avg",
    text: Literal["concat", "last"] = "concat",
    union: bool = False,
    sample: int | None = None,
    seed: int = 0,
) -> Analysis:
    """Measures one panel. Each distinct text is embedded once, in one call.

    N* = 2^H, H the entropy (bits) of the spectrum of the texts' embeddings. The mode says which texts the round table
    is about; every other table is the same in every mode. Failed attempts are in no measure but the spend.

    >>> import numpy as np
    >>> from pluribus.panel import Item, Member, Word
    >>> item = Item("q", "4", ((Word("2 + 2 = 4", "4", 1.0), Word("four", "4", 1.0)),), "4", 1.0)
    >>> pair = Panel("run", "run 1", "sums", "vote", (Member("a", "m"), Member("b", "m")), (item,))
    >>> found = analyze(pair, lambda texts: np.eye(len(texts)), embedder="orthogonal")
    >>> round(found.questions[0].Nstar, 9), [round(row.delta_Nstar, 9) for row in found.agents]
    (2.0, [1.0, 1.0])

    Args:
        embed: texts → (texts, dimensions).
        embedder: its name, for the tables.
        mode: a name in MODES.
        text: one agent's text on a question: its rounds joined, or its last.
        union: `round_agent_avg` takes the questions that any agent answered, not only those that all did.
        sample: embed the texts of so many questions only, chosen by a hash of their ids, the same ones in every run;
            what needs no vectors is measured on all. None: embed all.
        seed: of the bootstrap intervals and of the sample.

    Raises:
        UnknownName: no such mode, or no such text.
        UsageError: a sample of no question.
        DataError: a vector is not finite; it names the text.
        ValueError: the embedder did not give one vector per text.

    Source: Yang et al. 2026, arXiv 2602.03794.
    """
    kind = mode_of(mode)
    if text not in TEXTS:
        raise UnknownName("text", text, TEXTS)
    if sample is not None and sample < 1:
        raise UsageError(f"a sample of {sample} questions", hint="give at least 1, or leave it out to embed all")
    m = measured(panel, embed, embedder, text, sample, seed)
    found = extended(m)
    rounds, questions, agents = round_rows(m, kind, union), question_rows(m, found), agent_rows(m, found, seed)
    return Analysis(
        panel=panel,
        file=file_row(m, rounds, questions, agents, mode=kind, embedder=embedder, seed=seed),
        rounds=rounds,
        questions=questions,
        agents=agents,
        omitted=omissions(m, kind, union, len(rounds)),
        moves=move_rows(m.panel),
    )
