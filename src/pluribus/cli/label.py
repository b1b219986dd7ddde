"""`pluribus label`: whether each answer of a stored run is right, and who says so."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from pluribus.cli._flags import Home, Json, LimitFlags

By = Literal["checker", "consensus"]
Steps = Literal["checker", "rollouts", "judge"]
Search = Literal["all", "binary"]
Cut = Literal["auto", "paragraphs", "lines", "sentences"]
_AUDIT = 100


def _judging(help: str, *names: str, metavar: str) -> Any:
    return Option(*names, help=help, metavar=metavar, rich_help_panel="Judge", show_default=False)


def _without_keys(help: str, metavar: str) -> Any:
    return Option(help=help, metavar=metavar, rich_help_panel="Without keys", show_default=False)


def _of_steps(help: str, metavar: str) -> Any:
    return Option(help=help, metavar=metavar, rich_help_panel="Steps", show_default=False)


def _of_a_log(help: str, metavar: str) -> Any:
    return Option(help=help, metavar=metavar, rich_help_panel="Logs of other codes", show_default=False)


def label(
    limits: LimitFlags,
    run: Annotated[str, Argument(help="A run's name or id, an exported run, or a log of another code.", metavar="RUN")],
    judge: Annotated[
        str | None,
        _judging("Model that decides where the checker can not; none: leave that undecided.", metavar="MODEL"),
    ] = None,
    audit: Annotated[
        int | None,
        _judging("The judge is also asked about N turns that the checker decided. [dim](100)[/dim]", metavar="N"),
    ] = None,
    temperature: Annotated[
        float | None, _judging("Of the judge, 0 to 5. [dim](0; of rollouts 1)[/dim]", metavar="T")
    ] = None,
    max_tokens: Annotated[int | None, _judging("Its longest reply. [dim](4096)[/dim]", metavar="N")] = None,
    seed: Annotated[int, _judging("Draws the turns of the audit, and rollouts. [dim](0)[/dim]", metavar="N")] = 0,
    steps: Annotated[
        Steps | None, _of_steps("Label single steps: by the task's checker, by completions, or by --judge.", "NAME")
    ] = None,
    rollouts: Annotated[
        int | None, _of_steps("Completions drawn from the end of each step. [dim](8)[/dim]", "N")
    ] = None,
    rollout_model: Annotated[str | None, _of_steps("Model that draws them.", "MODEL")] = None,
    search: Annotated[
        Search | None,
        _of_steps("binary: find the first wrong step of a wrong answer by halving. [dim](all)[/dim]", "NAME"),
    ] = None,
    cut: Annotated[
        Cut | None,
        _of_steps("Where a step ends: auto, paragraphs, lines or sentences. [dim](auto)[/dim]", "NAME"),
    ] = None,
    max_turns: Annotated[int | None, _of_steps("At most N answers, drawn by --seed.", "N")] = None,
    by: Annotated[
        By,
        _without_keys(
            "consensus: an answer counts as right when it is the council's decision. [dim](checker)[/dim]", "NAME"
        ),
    ] = "checker",
    min_share: Annotated[
        float | None,
        _without_keys("Least share of the votes, or confidence, of a decision that labels, 0 to 1.", "S"),
    ] = None,
    held_out: Annotated[
        str | None, _without_keys("The same council on questions with keys: what its labels are worth.", "RUN")
    ] = None,
    before: Annotated[
        str | None, _without_keys("The council on the same questions as RUN, before it was trained.", "RUN")
    ] = None,
    held_out_before: Annotated[
        str | None,
        _without_keys("The same on the held-out questions: alarm if agreement rose and accuracy fell.", "RUN"),
    ] = None,
    task: Annotated[str | None, _of_a_log("Task whose questions and keys these are.", "NAME")] = None,
    data: Annotated[str | None, _of_a_log("A local file of that task instead of the hub's.", "FILE")] = None,
    split: Annotated[str | None, _of_a_log("Its split; else the task's usual one.", "NAME")] = None,
    out: Annotated[
        Path | None, Option(help="Write the labelled answers (JSONL, AgentArk's form).", metavar="FILE")
    ] = None,
    json: Json = False,
    home: Home = None,
) -> int:
    """Label every answer of every round of a run: right, not right, or undecided.

    The task's checker decides first, a judge only where it can not; a judge is checked against the checker. Labels are
    kept with the run. Ends with 1 when calls failed or the alarm went off, 3 when the budget stopped it.

    With --steps every step of an answer is labelled instead: good if the right answer can still come of it.
    """
    from pluribus.cli import _labeler

    if steps is not None:
        from pluribus.cli import _step_labels

        _step_labels.refuse({
            "--by": None if by == "checker" else by, "--audit": audit, "--min-share": min_share, "--held-out": held_out,
            "--before": before, "--held-out-before": held_out_before, "--task": task, "--data": data, "--split": split,
            "--out": out,
        })  # fmt: skip
        chosen = _step_labels.Wishes(
            steps=steps, rollouts=rollouts, rollout_model=rollout_model, search=search, judge=judge,
            temperature=temperature, max_tokens=max_tokens, cut=cut or "auto", max_turns=max_turns, seed=seed,
            limits=limits,
        )  # fmt: skip
        return _step_labels.go(run, chosen, home=home, json=json)
    _labeler.only_with("--steps NAME", {
        "--rollouts": rollouts, "--rollout-model": rollout_model, "--search": search, "--cut": cut,
        "--max-turns": max_turns,
    })  # fmt: skip
    wishes = _labeler.Wishes(
        judge=judge, audit=_AUDIT if audit is None else audit, temperature=temperature, max_tokens=max_tokens,
        seed=seed, by=by, min_share=min_share, held_out=held_out, before=before, held_out_before=held_out_before,
        task=task, data=data, split=split, out=out, limits=limits,
    )  # fmt: skip
    return _labeler.go(run, wishes, home=home, json=json)
