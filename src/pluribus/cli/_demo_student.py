"""The second half of `pluribus demo`: a council's debates become one model, measured before and after."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.text import Text

from pluribus import stats
from pluribus.codec import content_id
from pluribus.distilling import Wishes, distil, formatted, source, write
from pluribus.run import RunResult
from pluribus.store import Store
from pluribus.training import make_training, train
from pluribus.zoo import members

STUDENT = "qwen"
QUESTIONS = 300
"""That the others debate, of the training split, at most."""
EPOCHS = 3.0
BATCH = 16
RATE = 1e-3
Ask = Callable[[str, str, int, dict[str, object]], RunResult]
"""(title, split, questions, options of the run) → its result."""


def go(store: Store, folder: Path, console: Console, ask: Ask, before: RunResult, questions: int, seed: int) -> Text:
    """The others debate training questions, the student learns their right replies and answers the test again.

    Args:
        folder: for rows and weights.
        before: the student's run on the test questions.
        questions: how many of them.
    """
    teachers = [f"zoo/{name}" for name in members() if name != STUDENT]
    taught = min(QUESTIONS, 2 * questions)
    debate = ask("the others debate", "train", taught, {
        "method": "debate", "models": teachers, "settings": {"debate_rounds": 1}, "num_agents": len(teachers),
    })  # fmt: skip
    made = distil([source(store, debate.id)], Wishes("rsft", {}, seed=seed))
    lines = formatted(made, "trl")
    folder /= content_id([lines, EPOCHS, BATCH, RATE, seed])[:12]
    rows, student = folder / "rsft.jsonl", folder / "student"
    write(lines, rows, "trl")
    began = time.perf_counter()
    with console.status("training"):
        done = train(
            make_training({
                "kind": "sft", "model": f"zoo/{STUDENT}", "data": str(rows), "out": str(student), "epochs": EPOCHS,
                "batch_size": BATCH, "learning_rate": RATE, "scheduler": "cosine", "warmup_ratio": 0.1, "seed": seed,
            })
        )  # fmt: skip
    console.print(
        f"[dim]{STUDENT} learns {done.rows} right replies of theirs: {done.steps} steps, "
        f"{time.perf_counter() - began:.1f} s[/]"
    )
    after = ask(f"{STUDENT} afterwards", "test", questions, {"method": "single", "models": [f"local/{student}"]})
    return reading(before, after, taught)


def reading(before: RunResult, after: RunResult, taught: int) -> Text:
    """What it gained, at one call a question, in words."""
    others = {row.question_id: row.credit for row in before.rows}
    pairs = [(row.credit, others.get(row.question_id)) for row in after.rows]
    both = [(x, y) for x, y in pairs if x is not None and y is not None]
    gain = stats.paired_bootstrap([x for x, _ in both], [y for _, y in both], seed=0)
    points = f"{100 * gain.value:+.1f} points [{100 * gain.low:+.1f}, {100 * gain.high:+.1f}]"
    return Text(
        f"\nMany into one: {STUDENT} alone, at one call a question, was right on {before.score.value or 0:.3f} of the "
        f"test questions; after learning from the others' debates on {taught} training questions, on "
        f"{after.score.value or 0:.3f}: {points}. What that is worth against one teacher alone: "
        "docs/findings-distil.md.\n"
    )
