"""Trainings → how they went: a sentence, the settings, a figure of each measure by step, and a table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from pluribus.reports import trainings, words
from pluribus.reports.grids import SOURCE, Column, Grid, Row, grid, number, word
from pluribus.reports.page import Facts, Items, Lead, Part
from pluribus.reports.plots import Axis, Curve, Plot, Point, Rule, Series, Style, room
from pluribus.reports.trainings import Training, Value
from pluribus.training._grpo_watch import COLLAPSE, HELD_OUT, LOOKED_AT, SHORTER, WORDS

_LINES = 8
"""Trainings one can tell apart in one figure."""
_RAW = 40
"""Values of a line that are joined as they are; of more there are dots, and a line through their means."""
_DOTS = 500
"""Values of a line that are drawn at most; the means are over all."""
_TITLES = {
    "sft": "Training on demonstrations", "dpo": "Training on preferences", "prm": "Training of a process reward model",
    "grpo": "Reinforcement learning",
}  # fmt: skip
_STEP = Axis("optimiser step", "steps")
_RIGHT = Axis("right, %", percent=True)


@dataclass(frozen=True, slots=True)
class View:
    """A figure by step."""

    name: str
    title: str
    y: Axis
    measures: Mapping[str, str]
    """Name in the log → in the legend. There is no figure where the first was not logged."""
    about: str
    alarm: str = ""
    """The one that is about it; its step is marked."""
    exact: bool = False
    """A mean of neighbouring values would say nothing."""


_CHANGE = View(
    "change", "Held-out questions: change", Axis("change since the first look, points", percent=True),
    {"eval_change": "change"},
    "Accuracy minus that of the first look, paired by question; bars are 95 % intervals (normal).", HELD_OUT, exact=True,
)  # fmt: skip
_REWARD = View(
    "reward", "Reward", Axis("reward of a sample, mean"), {"reward": "reward"}, "Of the samples that were learned from."
)
GRPO = (
    View(
        "held-out", "Held-out questions", _RIGHT,
        {"eval_accuracy": "one sample", "eval_pass@": "pass@k", "eval_maj@": "maj@k"},
        "Drawn with the same random numbers at each look. pass@k: one of k samples is right; maj@k: their vote is.",
        exact=True,
    ),
    _CHANGE,
    View(
        "accuracy", "The samples that were learned from", _RIGHT,
        {"accuracy": "one sample", "pass@": "pass@k", "maj@": "maj@k"},
        "By the task's checker; other prompts at each step, so it is not smooth.",
    ),
    _REWARD,
    View(
        "own-label", "The group's own label", Axis("share, %", percent=True),
        {"own_label_right": "label is right", "agreement": "samples that agree with it"},
        "Agreement that rises while fewer labels are right reinforces the wrong mode.",
    ),
    View(
        "diversity", "Different samples of a prompt", Axis("effective number of samples"),
        {"kstar": "K* of the texts", "answers": "answers"},
        "Between 1, all alike, and the number of samples of a prompt.", COLLAPSE,
    ),
    View(
        "entropy", "Entropy of the samples", Axis("−log π of drawn tokens, nats per token"),
        {"sample_entropy": "entropy"},
        "At the temperature they are drawn with. Near 0 the model always writes the same.",
    ),
    View(
        "length", "Length of replies", Axis("tokens of a reply, mean"), {"completions/mean_length": "tokens"},
        "Replies that are cut at max_new_tokens count with what they have.", SHORTER,
    ),
    View("steps", "Steps of replies", Axis("steps of a reply, mean"), {"steps_per_reply": "steps"},
         "As the process reward model cuts them."),
    View("step-score", "Scores of steps", Axis("P(good) − P(bad) of a step, −1 to 1"), {"step_score": "score"},
         "By the process reward model, mean over the steps of a reply, then over replies."),
    View(
        "idle", "Samples that teach nothing", Axis("share of the samples, %", percent=True),
        {"zero_advantages": "advantage is 0", "unanswered": "no answer", "completions/clipped_ratio": "cut short"},
        "An advantage is 0 where all samples of a prompt are worth the same. Cut short: at max_new_tokens.",
    ),
    View("kl", "Distance from the start", Axis("KL, nats per token"), {"kl": "KL"},
         "From the model the training began with, on the samples."),
    View("k", "k of the objective", Axis("k, samples"), {"k": "k"}, "As the schedule has it.", exact=True),
)  # fmt: skip
_LOSS = {"loss": "training rows", "eval_loss": "held-out rows"}
VIEWS: Mapping[str, tuple[View, ...]] = {
    "grpo": GRPO,
    "sft": (
        View("loss", "Loss", Axis("loss, nats per token"), _LOSS, "Of the replies' tokens."),
        View("tokens", "Tokens predicted", Axis("most likely token is right, %", percent=True),
             {"mean_token_accuracy": "training rows", "eval_mean_token_accuracy": "held-out rows"},
             "Of the replies' tokens, each after the right ones before it."),
    ),
    "dpo": (
        View("loss", "Loss", Axis("loss, mean over pairs"), _LOSS, "0.693 (log 2) is no preference at all."),
        View("preferred", "Pairs in the right order", Axis("chosen reply gains more, % of pairs", percent=True),
             {"rewards/accuracies": "training pairs", "eval_rewards/accuracies": "held-out pairs"},
             "The student's probability has grown more for the chosen reply than for the rejected one."),
        View("margin", "Margin of the chosen reply", Axis("implicit reward, chosen − rejected"),
             {"rewards/margins": "training pairs", "eval_rewards/margins": "held-out pairs"},
             "beta times the difference of the two replies' log probability ratios to the start."),
    ),
    "prm": (View("loss", "Loss", Axis("loss, mean over steps"), _LOSS, "With the contrast, where there is one."),),
}  # fmt: skip
"""Kind → its figures, in their order."""
_BOOKKEEPING = ("_runtime", "_per_second", "_num_tokens")


def by_kind(found: Sequence[Training]) -> Iterator[tuple[str, str, tuple[Training, ...]]]:
    """Anchor, title and trainings of each section."""
    for kind, title in _TITLES.items():
        if those := tuple(one for one in found if one.kind == kind):
            yield f"training-{kind}", title, those


# --- in words --------------------------------------------------------------------------------------------------------


def head(found: Sequence[Training]) -> list[Part]:
    """How each went, what is the same in all, and, in a table, in what they differ."""
    rows = [_row(one) for one in found]
    same = [c for c in _COLUMNS if len({tuple(map(str, (row.get(key) for key in c.keys))) for row in rows}) == 1]
    pairs = tuple((_upper(c.head), _shown(c, rows[0])) for c in same if rows[0].get(c.keys[0]) not in (None, ""))
    told: Part = Items(tuple(f"{one.name}: {said(one)}" for one in found))
    parts: list[Part] = [Lead(_upper(said(found[0])), _tone(found[0])) if len(found) == 1 else told, Facts(pairs)]
    if len(found) == 1:
        return parts
    differ = [_NAME, *(c for c in _COLUMNS if c not in same)]
    table = grid(f"trainings-{found[0].kind}", "In what they differ", differ, rows)
    return [*parts, *([table] if table else [])]


def said(training: Training) -> str:
    """
    >>> config = trainings.make_training({"kind": "sft", "model": "m", "data": "d", "out": "o"})
    >>> said(Training("o", "o", config, True, 3))
    'finished after 3 steps; nothing was logged on the way: logging_steps is 10.'
    """
    alarms = "".join(f" Alarm at step {step:,}: {WORDS[name]}." for step, name in training.alarms)
    return f"{_progress(training)}{_outcome(training)}.{alarms}"


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
    if training.kind == "grpo" and change:
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


# --- settings --------------------------------------------------------------------------------------------------------


def _short(value: float | None) -> str:
    """
    >>> _short(5e-07), _short(None)
    ('5e-07', '–')
    """
    return words.NOTHING if value is None else f"{value:.4g}".replace("-", "−") if abs(value) > 1e-3 else f"{value:g}"


_NAME = word("training", "run")
_COLUMNS: tuple[Column, ...] = (
    word("kind", "kind"), word("state", "state"), word("student", "student"), word("data", "data"),
    number("rows", "rows"), number("rows learned from", "learned", about="A row without room for its reply is left out"),
    word("held-out data", "eval_data"), number("steps", "steps"), number("planned steps", "planned"),
    word("objective", "objective"), word("estimator", "estimator"), number("samples of a prompt", "samples"),
    word("reward", "reward"), word("process reward model", "prm"), word("baseline of steps", "baseline"),
    number("weight of the outcome", "outcome", _short), number("weight of the KL", "kl", _short),
    number("temperature", "temperature", _short), number("beta", "beta", _short), word("adapter", "adapter"),
    number("learning rate", "rate", _short), number("rows per step and device", "batch"), number("seed", "seed"),
    number("first look, % right", "first", words.percent, "Held-out questions, one sample"),
    number("last look, % right", "last", words.percent, "Held-out questions, one sample"),
    number("change, points", "change low high", words.points, "Held-out; 95 % interval, paired by question (normal)"),
    word("alarms", "alarms"), SOURCE,
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
    return {
        "objective": wishes.objective if wishes.k is None else f"{wishes.objective}, k = {_span(wishes.k, wishes.k_end)}",
        "estimator": wishes.estimator, "samples": wishes.samples,
        "reward": wishes.reward_mode + (", the group's own label" if wishes.self_labelled else ""),
        "prm": _file(wishes.prm), "baseline": wishes.reward_baseline if by_steps else None,
        "outcome": wishes.verifiable_reward_coef if wishes.reward_mode == "PRMVR" else None,
        "kl": wishes.kl, "temperature": wishes.temperature,
        "first": looks[0].value if looks else None, "last": looks[-1].value if looks else None,
        **({"change": change[-1].value, "low": change[-1].low, "high": change[-1].high} if change else {}),
        "alarms": "; ".join(f"step {step:,}: {WORDS[name]}" for step, name in training.alarms) or "none",
    }  # fmt: skip


def _span(first: int, last: int | None) -> str:
    return str(first) if last in (None, first) else f"{first} to {last}"


# --- figures ---------------------------------------------------------------------------------------------------------


def figures(found: Sequence[Training]) -> list[Plot]:
    """The figures of trainings of one kind, in which something was logged at two steps at least."""
    return [plot for view in _views(found) for plot in _plots(view, found)]


def _views(found: Sequence[Training]) -> list[View]:
    views = VIEWS[found[0].kind]
    return [view for view in views if view is not _REWARD or not _reward_is_accuracy(found)]


def _reward_is_accuracy(found: Sequence[Training]) -> bool:
    """Whether the reward has nothing to say that the accuracy does not."""
    return all(
        [(v.step, v.value) for v in trainings.values(one, "reward")]
        == [(v.step, v.value) for v in trainings.values(one, "accuracy")]
        for one in found
    )


def _plots(view: View, found: Sequence[Training]) -> list[Plot]:
    if not any(trainings.values(one, next(iter(view.measures))) for one in found):
        return []
    if len(found) == 1:
        lines = [_Line(found[0], key, label, place) for place, (key, label) in enumerate(view.measures.items())]
        return _heaps(view, [line for line in lines if line.values])
    plots = []
    for place, (key, label) in enumerate(view.measures.items()):
        lines = [_Line(one, key, one.name, at) for at, one in enumerate(found)]
        about = f"{view.title}: {label}" if len(view.measures) > 1 else view.title
        own = replace(view, name=f"{view.name}-{place + 1}" if place else view.name, title=about)
        plots += _heaps(own, [line for line in lines if line.values])
    return plots


class _Line:
    """One measure of one training."""

    def __init__(self, training: Training, key: str, label: str, place: int) -> None:
        self.training, self.key = training, key
        self.values = trainings.values(training, key)
        self.style = Style(place, place)
        ks = sorted({trainings.k_of(value.name) for value in self.values} - {0})
        k = f"{ks[0]}" if len(ks) == 1 else f"{ks[0]} to {ks[-1]}" if ks else ""
        alone = label.endswith("@k")
        self.label = label if not k else label.replace("@k", f"@{k}") if alone else f"{label} (k = {k})"

    def series(self, smooth: bool) -> Series:
        every = math.ceil(len(self.values) / _DOTS)
        kept = self.values[::every]
        name, source = self.training.name, self.training.source
        points = tuple(Point(v.step, v.value, v.low, v.high, name, source) for v in kept)
        if not smooth:
            return Series(self.label, points, self.style)
        width = _width(len(self.values))
        label = f"{self.label}, mean of {width} values" if width > 1 else self.label
        label += f"; one value in {every} drawn" if every > 1 else ""
        means = _means([v.value for v in self.values], width)
        return Series(label, points, self.style, Curve(tuple(float(v.step) for v in self.values), means))


def _heaps(view: View, lines: Sequence[_Line]) -> list[Plot]:
    """One figure, or several on the same axis where there are too many lines."""
    if all(len({value.step for value in line.values}) < 2 for line in lines):
        return []
    kind = lines[0].training.kind
    plots = []
    heaps = list(itertools.batched(lines, _LINES))
    for i, heap in enumerate(heaps, 1):
        smooth = not view.exact and max(len(line.values) for line in heap) > _RAW
        series = tuple(line.series(smooth) for line in heap)
        rules = tuple(_rules(view, heap))
        about = view.about + (_SMOOTHED if smooth else "") + _unreal(heap)
        plots.append(
            Plot(
                f"{kind}-{view.name}" + (f"-part-{i}" if len(heaps) > 1 else ""),
                view.title + (f" ({i} of {len(heaps)})" if len(heaps) > 1 else ""),
                _STEP,
                view.y,
                series,
                f"logged-{kind}",
                about,
                joined=True,
                rules=rules,
                cloud=smooth,
                zero="y" if view is _CHANGE or view.name == _CHANGE.name else None,
            )  # fmt: skip
        )
    every = Series("", tuple(point for plot in plots for one in plot.series for point in one.points))
    y = room(replace(plots[0], series=(every,)))[1]
    return [replace(plot, y=y) for plot in plots]


_SMOOTHED = (
    " Dots are the values as they were logged; lines are means of neighbouring values, as many as the legend says, "
    "fewer at both ends."
)


def _rules(view: View, lines: Sequence[_Line]) -> Iterator[Rule]:
    for one in dict.fromkeys(line.training.source for line in lines):
        training = next(line.training for line in lines if line.training.source == one)
        whose = f"{training.name}, " if len(lines) > 1 else ""
        yield from (
            Rule("x", step, f"{whose}alarm at step {step:,}") for step, name in training.alarms if name == view.alarm
        )


def _unreal(lines: Sequence[_Line]) -> str:
    number = sum(trainings.broken(line.training, line.key) for line in lines)
    return f" Not drawn, being no number: {words.plural(number, 'value')}." if number else ""


def _width(n: int) -> int:
    """Values that a mean is over: odd, so that it lies in their middle.

    >>> _width(41), _width(100), _width(1000), _width(12)
    (3, 5, 51, 1)
    """
    return 2 * (n // _RAW) + 1


def _means(values: Sequence[float], width: int) -> tuple[float, ...]:
    """Of each value and its neighbours; as many on both sides, so fewer at the ends.

    >>> _means([0.0, 3.0, 6.0, 0.0], 3)
    (0.0, 3.0, 3.0, 0.0)
    """
    found = []
    for i in range(len(values)):
        aside = min(width // 2, i, len(values) - 1 - i)
        found.append(fmean(values[i - aside : i + aside + 1]))
    return tuple(found)


# --- table -----------------------------------------------------------------------------------------------------------


def table(found: Sequence[Training]) -> Grid | None:
    """What was logged, by measure: first, last, lowest and highest."""
    columns = (
        _NAME, word("measure", "measure"), word("in the log", "key"), number("values", "n"),
        number("first", "first", _short), number("last", "last", _short), number("lowest", "lowest", _short),
        number("highest", "highest", _short), number("at step", "at", about="Of the first"),
        number("to step", "to", about="Of the last"), SOURCE,
    )  # fmt: skip
    rows = [row for one in found for key, label in _measures(one).items() if (row := _logged(one, key, label))]
    about = "As it was logged: shares are between 0 and 1."
    return grid(f"logged-{found[0].kind}", "What was logged", columns, rows, about)


def _measures(training: Training) -> dict[str, str]:
    """Those of the figures; of kinds whose measures are their own, everything about held-out rows."""
    named = {
        key: f"{view.title}: {label}" if len(view.measures) > 1 else view.title
        for view in VIEWS[training.kind]
        for key, label in view.measures.items()
    }
    if training.kind == "grpo":
        return named
    more = dict.fromkeys(name for entry in training.log for name in entry if name.startswith("eval_"))
    own = {
        name: f"Held out: {name.removeprefix('eval_').replace('_', ' ')}"
        for name in more
        if not name.endswith(_BOOKKEEPING)
    }
    return {**own, **named}


def _logged(training: Training, key: str, label: str) -> Row | None:
    found = trainings.values(training, key)
    if not found:
        return None
    numbers = [value.value for value in found]
    return {
        "run": training.name, "source": training.source, "measure": label, "key": key + ("k" if key.endswith("@") else ""),
        "n": len(found), "first": numbers[0], "last": numbers[-1], "lowest": min(numbers), "highest": max(numbers),
        "at": found[0].step, "to": found[-1].step,
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
