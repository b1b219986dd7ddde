"""Trainings in words: how each went, with what settings, and how its numbers were made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pluribus.reports import trainings, words
from pluribus.reports.grids import SOURCE, Column, Row, grid, number, word
from pluribus.reports.page import Facts, Items, Lead, Part
from pluribus.reports.trainings import Training, Value
from pluribus.training._grpo_watch import LOOKED_AT, WORDS

_TITLES = {
    "sft": "Training on demonstrations", "dpo": "Training on preferences", "prm": "Training of a process reward model",
    "grpo": "Reinforcement learning",
}  # fmt: skip


def by_kind(found: Sequence[Training]) -> Iterator[tuple[str, str, tuple[Training, ...]]]:
    """Anchor, title and trainings of each section."""
    for kind, title in _TITLES.items():
        if those := tuple(one for one in found if one.kind == kind):
            yield f"training-{kind}", title, those


def head(found: Sequence[Training]) -> list[Part]:
    """How each went, what is the same in all, and, in a table, in what they differ."""
    rows = [_row(one) for one in found]
    same = [c for c in _COLUMNS if len({tuple(map(str, (row.get(key) for key in c.keys))) for row in rows}) == 1]
    pairs = tuple((_upper(c.head), _shown(c, rows[0])) for c in same if rows[0].get(c.keys[0]) not in (None, ""))
    if len(found) == 1:
        alarms: list[Part] = [Items(tuple(_alarms(found[0])))] if found[0].alarms else []
        return [Lead(_upper(_went(found[0])), _tone(found[0])), *alarms, Facts(pairs)]
    told = Items(tuple(f"{one.name}: {said(one)}" for one in found))
    differ = [_NAME, *(c for c in _COLUMNS if c not in same)]
    table = grid(f"trainings-{found[0].kind}", "In what they differ", differ, rows)
    return [told, Facts(pairs), *([table] if table else [])]


def said(training: Training) -> str:
    """How it went, with the words of its alarms.

    >>> config = trainings.make_training({"kind": "sft", "model": "m", "data": "d", "out": "o"})
    >>> said(Training("o", "o", config, True, 3))
    'finished after 3 steps; nothing was logged on the way: logging_steps is 10.'
    """
    return " ".join([_went(training), *_alarms(training)])


def _went(training: Training) -> str:
    return f"{_progress(training)}{_outcome(training)}."


def _alarms(training: Training) -> list[str]:
    return [f"Alarm at step {step:,}: {WORDS[name]}." for step, name in training.alarms]


def _progress(training: Training) -> str:
    if training.done:
        return f"finished after {words.plural(training.steps or 0, 'step')}"
    if training.steps is None:
        return "not finished"
    of = f" of {training.planned:,}" if training.planned else ""
    return f"not finished; its last checkpoint is at step {training.steps:,}{of}"


def _outcome(training: Training) -> str:
    """What became better or worse; where that is not known, why."""
    held_out, change = trainings.values(training, "eval_accuracy"), trainings.values(training, "eval_change")
    if training.kind == "grpo" and held_out and change:
        ends = words.points(change[-1].value, change[-1].low, change[-1].high)
        return f"; held-out accuracy {_from_to(held_out)}, a change of {ends} points"
    if training.kind == "grpo" and (samples := trainings.values(training, "accuracy")):
        return f"; {_from_to(samples)} of its own samples are right, and no held-out question was looked at twice"
    if losses := trainings.values(training, "loss"):
        return f"; loss {words.decimal(losses[0].value)} at first, {words.decimal(losses[-1].value)} at the end"
    return _why_nothing(training)


def _from_to(found: Sequence[Value]) -> str:
    return f"{words.percent(found[0].value)} % at first, {words.percent(found[-1].value)} % at the end"


def _why_nothing(training: Training) -> str:
    if training.done:
        return f"; nothing was logged on the way: logging_steps is {training.config.logging_steps}"
    if training.steps is None:
        return "; its log is read from its checkpoints, and there is none yet (--save-steps makes some)"
    return f"; nothing was logged so far: logging_steps is {training.config.logging_steps}"


def _tone(training: Training) -> str:
    change = trainings.values(training, "eval_change")
    if training.alarms or (change and (change[-1].high or 0.0) < 0):
        return "loses"
    return "pays" if change and (change[-1].low or 0.0) > 0 else "open"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def facts(training: Training) -> dict[str, object]:
    """Settings and outcome as plain values, for JSON; what is not known is null."""
    row = _row(training)
    keys = ("run", *dict.fromkeys(key for column in _COLUMNS for key in column.keys))
    return {**{key: row.get(key) for key in keys}, "said": said(training)}


# --- settings ---------------------------------------------------------------------------------------------------------


_NAME = word("training", "run")
_COLUMNS: tuple[Column, ...] = (
    word("kind", "kind"), word("state", "state"), number("steps", "steps"), number("planned steps", "planned"),
    number("first look, % right", "first", words.percent, "Held-out questions, one sample"),
    number("last look, % right", "last", words.percent, "Held-out questions, one sample"),
    number("change, points", "change low high", words.points, "Held-out; 95 % interval, paired by question (normal)"),
    word("alarms", "alarms"), word("objective", "objective"), word("estimator", "estimator"),
    number("samples of a prompt", "samples"), word("reward", "reward"), word("process reward model", "prm"),
    word("baseline of steps", "baseline"), number("weight of the outcome", "outcome", words.general),
    number("weight of the KL", "kl", words.general), number("temperature", "temperature", words.general),
    number("beta", "beta", words.general), word("student", "student"), word("adapter", "adapter"),
    number("learning rate", "rate", words.general), number("rows per step and device", "batch"), word("data", "data"),
    number("rows", "rows"), number("rows learned from", "learned", about="One without room for its reply is left out"),
    word("held-out data", "eval_data"), number("seed", "seed"), SOURCE,
)  # fmt: skip


def _shown(column: Column, row: Row) -> str:
    return column.show(*(row.get(key) for key in column.keys))


def _row(training: Training) -> Row:
    config, data = training.config, training.facts.get("data", {})
    return {
        "run": training.name, "source": training.source, "kind": training.kind,
        "state": "finished" if training.done else "not finished", "student": training.facts.get("base", config.model),
        "data": _file(config.data), "rows": data.get("rows"),
        "learned": data.get("learned") if data.get("learned") != data.get("rows") else None,
        "eval_data": _file(config.eval_data), "steps": training.steps,
        "planned": None if training.done else training.planned, "rate": config.rate,
        "batch": config.batch_size * config.accumulation, "seed": config.seed,
        "beta": config.dpo.beta if training.kind == "dpo" else None,
        "adapter": f"LoRA, rank {config.lora.r}" if config.lora else None,
        **(_of_grpo(training) if training.kind == "grpo" else {}),
    }  # fmt: skip


def _file(path: str | None) -> str | None:
    """A file's name; folders on the way to it stay out of the page."""
    return None if path is None else path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def _of_grpo(training: Training) -> Row:
    wishes, looks = training.config.grpo, trainings.values(training, "eval_accuracy")
    change = trainings.values(training, "eval_change")
    by_steps = wishes.reward_mode in ("PRM", "PRMVR")
    k = "" if wishes.k is None else f", k = {words.span(wishes.k, wishes.k_end or wishes.k)}"
    return {
        "objective": wishes.objective + k,
        "estimator": wishes.estimator, "samples": wishes.samples,
        "reward": wishes.reward_mode + (", the group's own label" if wishes.self_labelled else ""),
        "prm": _file(wishes.prm), "baseline": wishes.reward_baseline if by_steps else None,
        "outcome": wishes.verifiable_reward_coef if wishes.reward_mode == "PRMVR" else None,
        "kl": wishes.kl, "temperature": wishes.temperature,
        "first": looks[0].value if looks else None, "last": looks[-1].value if looks else None,
        **({"change": change[-1].value, "low": change[-1].low, "high": change[-1].high} if change else {}),
        "alarms": "; ".join(f"{_file(name)} at step {step:,}" for step, name in training.alarms) or "none",
    }  # fmt: skip


METHODS = (
    (
        "pass@k, maj@k",
        "unbiased estimate from all samples of a prompt that k of them, drawn without return, hold a right answer, or "
        "vote for one; a shared lead counts by its share",
    ),
    (
        "K* of samples",
        f"of the texts of a prompt's samples, embedder hashing; mean over up to {LOOKED_AT} prompts of each batch",
    ),
    ("Effective answers", "exp of the entropy of a prompt's answers; mean over prompts"),
    (
        "Held-out change",
        "accuracy of each held-out question minus that at the first look; mean, and its normal 95 % interval over "
        "questions",
    ),
    ("Alarms", "given once each, by the last logged values against the first; thresholds are settings of the training"),
)
"""How the numbers of reinforcement learning are made."""
