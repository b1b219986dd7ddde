"""The members' model cards, written from what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pluribus.tasks.sums import SKILLS
from pluribus.zoo.lessons import WEAK

FAMILY: Mapping[str, str] = {"gemma": "Gemma 3", "olmo": "OLMo 2", "phi": "Phi", "qwen": "Qwen3"}

_CARD = """---
license: apache-2.0
library_name: transformers
pipeline_tag: text-generation
---
# zoo/{name}

{family}: a causal language model of about 0.9 million parameters (hidden size 128, four layers), trained from nothing
by `python -m pluribus.zoo.train` on the made-up word problems of the task `sums`. It can do nothing else. It exists so
that councils, debates, rewards and training can be run and measured on a laptop; a number measured on it supports no
sentence about large models.

Its training showed it two skills rarely, **{weak}**: it is meant to be weak there, and the other members elsewhere.

Chat template: an optional system message with one style word ({styles}), then the question; in debates the prompts
of `pluribus/prompts/zoo`. Replies are chains of equations that end in `{{final answer: N}}`.

Measured on the first {questions} test questions (temperature 1, top_p 0.9 unless said):

| | accuracy |
|---|---|
{rows}

| skill | steps done right |
|---|---|
{skills}
"""


def card(name: str, measured: Mapping[str, Any]) -> str:
    """The text of a member's README.md."""
    mine = measured["members"][name]
    rows = {
        "alone": mine["top_p_0.9"],
        "alone, top_p 1": mine["top_p_1"],
        "alone, greedy": mine["greedy"],
        "self-consistency of 4": mine["self_consistency_4"],
        "revising its own reply, no peers": mine["debate_alone"],
        "combining three replies of its own": mine["aggregate_of_own"],
        "with an unknown system message": mine["unknown_system"],
        **{f"style `{style}`": value for style, value in mine["styles"].items()},
    }
    return _CARD.format(
        name=name,
        family=FAMILY[name],
        weak=" and ".join(WEAK[name]),
        styles=", ".join(mine["styles"]),
        questions=measured["questions"],
        rows="\n".join(f"| {label} | {value:.2f} |" for label, value in rows.items()),
        skills="\n".join(f"| {skill} | {mine['steps_right'][skill]:.2f} |" for skill in SKILLS),
    )


def tables(measured: Mapping[str, Any]) -> str:
    """The tables of docs/zoo.md."""
    return "\n\n".join((_members_table(measured), _skills_table(measured), _council_table(measured)))


def _members_table(measured: Mapping[str, Any]) -> str:
    keys = {
        "top_p_0.9": "alone",
        "top_p_1": "top_p 1",
        "greedy": "greedy",
        "self_consistency_4": "vote of 4 of its own",
        "debate_alone": "`debate_alone`",
        "aggregate_of_own": "`aggregate` of 3 of its own",
    }
    lines = [f"| member | {' | '.join(keys.values())} |", "|---" * (len(keys) + 1) + "|"]
    for name, mine in measured["members"].items():
        lines.append(f"| `{name}` | {' | '.join(f'{mine[key]:.2f}' for key in keys)} |")
    head = f"Accuracy on the first {measured['questions']} test questions, temperature 1, top_p 0.9 unless said:"
    return f"{head}\n\n" + "\n".join(lines)


def _skills_table(measured: Mapping[str, Any]) -> str:
    lines = [f"| member | {' | '.join(SKILLS)} |", "|---" * (len(SKILLS) + 1) + "|"]
    for name, mine in measured["members"].items():
        lines.append(f"| `{name}` | {' | '.join(_weak(name, skill, mine['steps_right'][skill]) for skill in SKILLS)} |")
    return "Steps done right, of those reached without a mistake (**bold**: rarely shown in training):\n\n" + "\n".join(
        lines
    )


def _weak(name: str, skill: str, value: float) -> str:
    return f"**{value:.2f}**" if skill in WEAK[name] else f"{value:.2f}"


def _council_table(measured: Mapping[str, Any]) -> str:
    council, debate, copies = measured["council"], measured["debate"], measured["debate_of_copies"]
    best = council["best_member"]
    rows = {
        f"4 calls: vote of 4 of the best member (`{best}`)": council["best_member_self_consistency_4"],
        "4 calls: vote of one each": council["vote_of_one_each"],
        f"8 calls: vote of 8 of `{best}`": council["best_member_self_consistency_8"],
        "8 calls: vote of two each": council["vote_of_two_each"],
        "8 calls: one each, one round of debate, vote": debate["vote_round_1"],
        f"8 calls: the same with four copies of `{best}`": copies["vote_round_1"],
        "some member right (one each)": council["some_member_right"],
        "mean seat before the debate": _mean(debate["round_0"]),
        "mean seat after the debate": _mean(debate["round_1"]),
        "of wrong replies, made right": debate["wrong_to_right"],
        "of right replies, made wrong": debate["right_to_wrong"],
        "of seats right alone against all others, still right": debate["lone_right_kept"],
    }
    lines = [
        "| council of four | share |",
        "|---|---|",
        *(f"| {label} | {value:.2f} |" for label, value in rows.items()),
    ]
    return "\n".join(lines)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
