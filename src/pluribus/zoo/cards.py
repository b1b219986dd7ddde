"""The members' model cards and the tables of docs/zoo.md, written from what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pluribus.tasks.sums import SKILLS
from pluribus.zoo.council_lessons import WEAK

FAMILY: Mapping[str, str] = {"gemma": "Gemma 3", "olmo": "OLMo 2", "phi": "Phi", "qwen": "Qwen3"}

_SINGLE: Mapping[str, str] = {
    "alone": "alone",
    "top_p_1": "top_p 1",
    "greedy": "greedy",
    "vote_of_4": "vote of 4 of its own",
    "unknown_system": "unknown system message",
}
_SOLVING: Mapping[str, str] = {
    "debate_alone": "`debate_alone`",
    "debate_revise": "`debate_revise`",
    "aggregate": "`aggregate`",
    "refine": "`refine`",
    "dylan_revise": "`dylan_revise`",
    "reconcile_answer": "`reconcile_answer`",
    "reconcile_revise": "`reconcile_revise`",
}
_JUDGING: Mapping[str, str] = {
    "verify": "`verify`, balanced",
    "feedback": "`feedback`, balanced",
    "repair": "`repair`, balanced",
    "score_auc": "`score`, AUC",
    "rank": "`rank`, first is right",
    "pick": "`pick`, right",
    "chance": "(a blind pick)",
    "ratings_auc": "`dylan_revise` ratings, AUC",
    "confidence_auc": "`reconcile_answer` confidence, AUC",
}
_COUNCIL: Mapping[str, str] = {
    "best_member_vote_of_4": "4 calls: vote of 4 of the best member",
    "vote_of_one_each": "4 calls: vote of one each",
    "best_member_vote_of_8": "8 calls: vote of 8 of the best member",
    "vote_of_two_each": "8 calls: vote of two each",
    "debate_vote": "8 calls: one each, one round of debate, vote",
    "some_member_right": "some member right (one each)",
    "debate_seats_before": "mean seat before the debate",
    "debate_seats_after": "mean seat after the debate",
    "wrong_to_right": "of wrong replies, made right",
    "right_to_wrong": "of right replies, made wrong",
    "lone_right_kept": "of seats right alone against all others, still right",
}

_CARD = """---
license: apache-2.0
library_name: transformers
pipeline_tag: text-generation
---
# zoo/{name}

{family}: a causal language model of about 0.9 million parameters (hidden size 128, four layers), trained from nothing
by `python -m pluribus.zoo.train` on three made-up tasks, `sums`, `logic` and `briefs`, and on a council's prompts about
them. It can do nothing else. It exists so that councils, debates, judges, rewards and training can be run and measured
on a laptop; a number measured on it supports no sentence about large models.

Its training showed it two skills of each task rarely; it is meant to be weak there, and the other members elsewhere:
{weak}.

Chat template: an optional system message with one style word ({styles}, for sums), then a prompt of
`pluribus/prompts/zoo`. Replies are short workings that end in `{{final answer: …}}` or the form the prompt asks for.

Measured on the first {questions} test questions, temperature 1, top_p 0.9 unless said; shares of right replies, or what
is said:

{table}

Steps of sums done right, of those reached without a mistake: {skills}.
"""


def card(name: str, measured: Mapping[str, Any]) -> str:
    """The text of a member's README.md."""
    mine = measured["members"][name]
    tasks = list(measured["questions"])
    rows = {label: [mine[task][key] for task in tasks] for key, label in {**_SINGLE, **_SOLVING, **_JUDGING}.items()}
    unread = {f"unreadable: `{prompt}`": [mine[task]["unread"][prompt] for task in tasks] for prompt in _prompts(mine)}
    return _CARD.format(
        name=name,
        family=FAMILY[name],
        weak="; ".join(f"{task}: {' and '.join(skills)}" for task, skills in WEAK[name].items()),
        styles=", ".join(mine["styles"]),
        questions=_amounts(measured),
        table=_table(["", *tasks], {**rows, **unread}),
        skills=", ".join(f"{skill} {mine['steps_right'][skill]:.2f}" for skill in SKILLS),
    )


def tables(measured: Mapping[str, Any]) -> str:
    """The tables of docs/zoo.md."""
    head = f"Measured on the first {_amounts(measured)} test questions; temperature 1, top_p 0.9 unless said."
    parts = [head, _skills(measured)]
    for task in measured["questions"]:
        mine = {name: each[task] for name, each in measured["members"].items()}
        parts += [f"**{task}**: share of right final answers", _across(mine, {**_SINGLE, **_SOLVING})]
        parts += [f"**{task}**: judgements of the members' own replies", _across(mine, _JUDGING)]
    council = {label: [each[key] for each in measured["council"].values()] for key, label in _COUNCIL.items()}
    best = ", ".join(f"`{each['best_member']}` ({task})" for task, each in measured["council"].items())
    parts += [f"A council of the four; the best member is {best}.", _table(["", *measured["council"]], council)]
    parts += ["Unreadable replies, mean over the tasks", _unread(measured)]
    return "\n\n".join(parts)


def _skills(measured: Mapping[str, Any]) -> str:
    rows = {
        f"`{name}`": [_weak(name, skill, mine["steps_right"][skill]) for skill in SKILLS]
        for name, mine in measured["members"].items()
    }
    head = "Steps of sums done right, of those reached without a mistake (**bold**: rarely shown in training):"
    return f"{head}\n\n{_table(['member', *SKILLS], rows)}"


def _weak(name: str, skill: str, value: float) -> str:
    return f"**{value:.2f}**" if skill in WEAK[name]["sums"] else f"{value:.2f}"


def _across(mine: Mapping[str, Mapping[str, Any]], labels: Mapping[str, str]) -> str:
    rows = {label: [each[key] for each in mine.values()] for key, label in labels.items()}
    return _table(["", *(f"`{name}`" for name in mine)], rows)


def _unread(measured: Mapping[str, Any]) -> str:
    team = measured["members"]
    rows = {}
    for prompt in _prompts(next(iter(team.values()))):
        parts = {n: [each[task]["unread"][prompt] for task in measured["questions"]] for n, each in team.items()}
        rows[f"`{prompt}`"] = [_mean(values) for values in parts.values()]
    return _table(["", *(f"`{name}`" for name in team)], rows)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _prompts(mine: Mapping[str, Any]) -> list[str]:
    return list(mine["sums"]["unread"])


def _amounts(measured: Mapping[str, Any]) -> str:
    return ", ".join(f"{amount} ({task})" for task, amount in measured["questions"].items())


def _table(head: Sequence[str], rows: Mapping[str, Sequence[float | str | None]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for label, values in rows.items():
        lines.append(f"| {label} | {' | '.join(_shown(value) for value in values)} |")
    return "\n".join(lines)


def _shown(value: float | str | None) -> str:
    return value if isinstance(value, str) else "–" if value is None else f"{value:.2f}"
