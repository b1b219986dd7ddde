"""Which runs of a workspace may stand as controls of a council: self-consistency on the same questions.

What a run is, is read from its config first; transcripts are loaded of those only that may serve.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from pluribus.compare import draws, is_self_consistency, wanted
from pluribus.panel import Panel
from pluribus.run import panel as panel_of_run
from pluribus.store import RunRow, Store

LEAST_SHARED = 0.95
"""Share of the council's questions that a control must have asked."""
_VOTES = ("vote", "self_consistency")
"""Methods of independent answers: their first round is draws, and there is no other."""
_PERSONAS = ("personas", "roles", "multi_persona", "baseline_a", "baseline_b")


def controls_of(store: Store, panel: Panel) -> list[Panel]:
    """The workspace's runs of one model's draws, on the task and the questions of a panel; the latest first.

    Runs that hold at least 95 % of the panel's questions serve, whatever their prompts and sampling are. Draws inside
    the council itself need no run: `compare` finds them.

    Args:
        panel: of a run of this store, or of anything else with the same task and question ids.
    """
    wanted = {item.question_id for item in panel.items}
    likely = [run for run in store.runs() if _likely(run, panel) and _shares(store, run, wanted)]
    models = {member.model for member in panel.members}
    found = [panel_of_run(store, run.id) for run in likely]
    serving = [control for control in found if is_self_consistency(control) and _answered(control, wanted)]
    return [c for c in serving if set(draws(c)) <= models] or serving


def command(store: Store, panel: Panel, *, seed: int = 0) -> str | None:
    """The `pluribus run` that records the control at equal calls: the same questions, sampling and seed, one model.

    Returns: None where the panel is no run of this store.
    """
    run = next((run for run in store.runs() if panel.source == f"run {run.id}"), None)
    if run is None or not panel.members:
        return None
    model, k = wanted(panel, seed=seed)
    said = {**run.config, **run.config.get("sampling", {})}
    flags = [word for name in _FLAGS if name in said for word in (f"--{name.replace('_', '-')}", str(said[name]))]
    allowed = ["--allow-code-execution"] if run.config.get("allow_code_execution") is True else []
    method = ["--method", "self_consistency", "--agent-models", model, "--set", f"parallel_num={k}"]
    return shlex.join(["pluribus", "run", *flags, *allowed, *method])


_FLAGS = (
    "task", "data", "split", "limit", "prompts", "preset", "temperature", "top_p", "max_tokens", "seed", "rule", "tie",
)  # fmt: skip
"""Entries of a run's config that its control takes over, by the names of their flags."""


def _likely(run: RunRow, panel: Panel) -> bool:
    """By its config alone: the task, a method of independent answers, one model, nobody in a role."""
    config = run.config
    task = run.totals.get("task") or config.get("task")
    return (
        panel.source != f"run {run.id}"
        and task == panel.task
        and config.get("method", "vote") in _VOTES
        and not any(config.get(name) for name in _PERSONAS)
        and _single_model(config)
    )


def _single_model(config: Mapping[str, Any]) -> bool:
    seats: Sequence[Mapping[str, Any]] = config.get("seats") or []
    models = [seat.get("model") for seat in seats] or config.get("models") or []
    return len({repr(model) for model in models}) == 1 and not any(seat.get("persona") for seat in seats)


def _shares(store: Store, run: RunRow, wanted: set[str]) -> bool:
    return _enough({question_id for _, question_id in store.run_attempts(run.id)}, wanted)


def _answered(control: Panel, wanted: set[str]) -> bool:
    return _enough({item.question_id for item in control.items if not item.failed}, wanted)


def _enough(there: set[str], wanted: set[str]) -> bool:
    return bool(wanted) and len(there & wanted) >= LEAST_SHARED * len(wanted)
