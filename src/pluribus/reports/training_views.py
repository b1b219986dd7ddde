"""What is drawn of a training, by kind: which measures of the log share a figure, its axis, how to read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pluribus.reports.plots import Axis
from pluribus.training._grpo_watch import COLLAPSE, HELD_OUT, SHORTER

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
    zero: bool = False
    """0 is "no change" and gets a rule."""


_CHANGE = View(
    "change", "Change on held-out questions", Axis("change, percentage points", percent=True),
    {"eval_change": "change"},
    "Accuracy minus that of the first look, paired by question; bars are 95 % intervals (normal).", HELD_OUT,
    exact=True, zero=True,
)  # fmt: skip
REWARD = View(
    "reward", "Reward", Axis("reward of a sample, mean"), {"reward": "reward"}, "Of the samples that were learned from."
)
GRPO = (
    View(
        "held-out", "Held-out questions", _RIGHT,
        {"eval_accuracy": "one sample", "eval_pass@": "pass@k", "eval_maj@": "maj@k"},
        "With the same random numbers at each look. pass@k: one of k samples is right; maj@k: their vote is. Not "
        "known where k is above eval_samples.",
        exact=True,
    ),
    _CHANGE,
    View(
        "accuracy", "The samples that were learned from", _RIGHT,
        {"accuracy": "one sample", "pass@": "pass@k", "maj@": "maj@k"},
        "By the task's checker; other prompts at each step, so it is not smooth.",
    ),
    REWARD,
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
        "entropy", "Entropy of the samples", Axis("entropy, nats per token"),
        {"sample_entropy": "entropy"},
        "Mean −log π(token) of the tokens that were drawn, π at temperature 1. Near 0 it always writes the same.",
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
    View("k", "k of the objective", Axis("k, samples", "rounds"), {"k": "k"}, "As the schedule has it.", exact=True),
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
        View("preferred", "Pairs in the right order", Axis("chosen gains more, % of pairs", percent=True),
             {"rewards/accuracies": "training pairs", "eval_rewards/accuracies": "held-out pairs"},
             "The student's probability has grown more for the chosen reply than for the rejected one."),
        View("margin", "Margin of the chosen reply", Axis("implicit reward, difference"),
             {"rewards/margins": "training pairs", "eval_rewards/margins": "held-out pairs"},
             "beta times the difference of the two replies' log probability ratios to the start."),
    ),
    "prm": (View("loss", "Loss", Axis("loss, mean over steps"), _LOSS, "With the contrast, where there is one."),),
}  # fmt: skip
"""Kind → its figures, in their order."""
