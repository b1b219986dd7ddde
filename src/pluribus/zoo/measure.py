"""Measure the zoo and write its cards: `python -m pluribus.zoo.measure [--questions N] [--jobs N]`.

Replies are drawn at temperature 1 and top_p 0.9 unless a key says otherwise. Debates and judgements are about replies
that the members themselves gave to the same questions. Everything lands in `measured.json`; the cards and the tables
in docs/zoo.md are written from it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

from pluribus.tasks import sums
from pluribus.types import Message, Sampling
from pluribus.zoo import CHECKPOINTS, folder, members
from pluribus.zoo.cards import card, tables
from pluribus.zoo.cases import STYLES, TASKS, Case, take
from pluribus.zoo.figures import accuracy, any_right, auc, balanced, per_skill, rights, share, unread, vote
from pluribus.zoo.lessons import ask, candidates, peers
from pluribus.zoo.play import Conversation, Member, asked, open_member, reply, tag

DRAWS = 4
DOCS = Path("docs/zoo.md")
"""From the repository's root; not there in an installed package."""
UNKNOWN = "You are a patient physicist who likes clear words."
"""A system message that was never trained on."""
MARKS: Mapping[str, str] = {
    "verify": "check:",
    "explore": "in short:",
    "formal": "given",
    "estimate": "about",
    "decompose": "1)",
}
"""What shows that a reply to a sum is in its style."""

Column = list[str]
"""One reply to each question."""
Draws = Mapping[str, Mapping[str, list[Column]]]
"""task → member → its draws."""


@dataclass(frozen=True, slots=True)
class Shown:
    """Replies that somebody has to judge, and whether they are right."""

    cases: list[Case]
    texts: Column
    right: list[bool]


def measure(amounts: Mapping[str, int], jobs: int) -> dict[str, Any]:
    """All that the cards and docs/zoo.md say about the zoo.

    Args:
        amounts: task → how many of its first test questions.
        jobs: members measured at a time, each on one thread.
    """
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        alone = dict(zip(members(), pool.map(partial(_alone, amounts=amounts), members()), strict=True))
        draws = {task: {name: alone[name][task].pop("draws") for name in alone} for task in amounts}
        company = dict(zip(members(), pool.map(partial(_in_company, draws=draws), members()), strict=True))
        best = {task: _best({name: alone[name][task]["vote_of_4"] for name in alone}) for task in amounts}
        more = dict(zip(amounts, pool.map(_more, best.values(), amounts.keys(), amounts.values()), strict=True))
    revised = {task: {name: company[name][task].pop("revised") for name in company} for task in amounts}
    return {
        "questions": dict(amounts),
        "members": {
            name: {**alone[name], **{task: _joined(alone[name][task], company[name][task]) for task in amounts}}
            for name in alone
        },
        "council": {task: _council(task, draws[task], revised[task], best[task], more[task]) for task in amounts},
    }


def _joined(alone: Mapping[str, Any], company: Mapping[str, Any]) -> dict[str, Any]:
    return {**alone, **company, "unread": {**alone["unread"], **company["unread"]}}


def _best(values: Mapping[str, float]) -> str:
    return max(values, key=lambda name: values[name])


def first_cases(task: str, amount: int) -> list[Case]:
    """A task's first test questions."""
    return [take(task, "test", index) for index in range(amount)]


def _open(name: str) -> Member:
    torch.set_num_threads(1)
    return open_member(name)


def _alone(name: str, amounts: Mapping[str, int]) -> dict[str, Any]:
    """What a member does without others; its draws go with it."""
    member = _open(name)
    out: dict[str, Any] = {task: _task_alone(member, first_cases(task, amount)) for task, amount in amounts.items()}
    if "sums" in amounts:
        cases = first_cases("sums", amounts["sums"])
        problems = [sums.problem("test", index) for index in range(len(cases))]
        texts = [text for column in out["sums"]["draws"] for text in column]
        out["steps_right"] = per_skill(texts, cases * DRAWS, problems * DRAWS)
        styled = {style: _answers(member, cases, Sampling(seed=100), style) for style in STYLES["sums"]}
        out["styles"] = {style: accuracy(column, cases) for style, column in styled.items()}
        out["style_kept"] = {s: sum(MARKS[s] in text for text in column) / len(cases) for s, column in styled.items()}
    return out


def _task_alone(member: Member, cases: list[Case]) -> dict[str, Any]:
    draws = [_answers(member, cases, Sampling(seed=seed)) for seed in range(DRAWS)]
    return {
        "alone": sum(accuracy(column, cases) for column in draws) / DRAWS,
        "top_p_1": accuracy(_answers(member, cases, Sampling(top_p=1.0, seed=50)), cases),
        "greedy": accuracy(_answers(member, cases, Sampling(temperature=0.0)), cases),
        "vote_of_4": vote(draws, cases),
        "unknown_system": accuracy(_answers(member, cases, Sampling(seed=101), UNKNOWN), cases),
        "unread": {"answer": unread([text for column in draws for text in column], "final answer")},
        "draws": draws,
    }


def _answers(member: Member, cases: list[Case], sampling: Sampling, system: str | None = None) -> Column:
    return reply(member, [asked(ask("answer", question=case.question), system) for case in cases], sampling)


def _more(name: str, task: str, amount: int) -> list[Column]:
    """As many draws again."""
    member, cases = _open(name), first_cases(task, amount)
    return [_answers(member, cases, Sampling(seed=DRAWS + k)) for k in range(DRAWS)]


def _in_company(name: str, draws: Draws) -> dict[str, Any]:
    """What a member does with replies in sight, its own and others'."""
    member = _open(name)
    out = {}
    for task, columns in draws.items():
        cases = first_cases(task, len(columns[name][0]))
        first = {each: column[0] for each, column in columns.items()}
        solved = _solving(member, cases, first)
        judged = _judging(member, cases, columns)
        out[task] = {**solved, **judged, "unread": {**solved["unread"], **judged["unread"]}}
    return out


def solving_prompts(name: str, cases: Sequence[Case], first: Mapping[str, Column]) -> dict[str, list[str]]:
    """The user messages of every prompt that ends in a final answer, by prompt.

    Args:
        name: who reads them.
        cases: the questions.
        first: member → its first reply to each question.
    """
    own = first[name]
    everybody = [list(row) for row in zip(*first.values(), strict=True)]
    others = [list(row) for row in zip(*(column for each, column in first.items() if each != name), strict=True)]
    shown = list(zip(cases, own, others, everybody, strict=True))
    return {
        "debate_revise": [ask("debate_revise", question=c.question, own=o, peers=peers(p)) for c, o, p, _ in shown],
        "debate_alone": [ask("debate_alone", question=c.question, own=o) for c, o, _, _ in shown],
        "aggregate": [ask("aggregate", question=c.question, peers=peers(e)) for c, _, _, e in shown],
        "dylan_revise": [ask("dylan_revise", question=c.question, candidates=candidates(p)) for c, _, p, _ in shown],
        "reconcile_answer": [ask("reconcile_answer", question=c.question) for c in cases],
        "reconcile_revise": [
            ask("reconcile_revise", question=c.question, own=o, peers=peers(p)) for c, o, p, _ in shown
        ],
    }


def _solving(member: Member, cases: list[Case], first: Mapping[str, Column]) -> dict[str, Any]:
    prompts = solving_prompts(member.name, cases, first)
    texts = {
        prompt: reply(member, [asked(user) for user in users], Sampling(seed=60 + index))
        for index, (prompt, users) in enumerate(prompts.items())
    }
    notes = reply(
        member,
        [asked(ask("feedback", question=c.question, own=o)) for c, o in zip(cases, first[member.name], strict=True)],
        Sampling(seed=80),
    )
    shown = zip(cases, first[member.name], notes, strict=True)
    refine = [asked(ask("refine", question=c.question, own=o, feedback=n)) for c, o, n in shown]
    texts["refine"] = reply(member, refine, Sampling(seed=81))
    sure = [_number(tag(text, "confidence")) for text in texts["reconcile_answer"]]
    others = [column for name, column in first.items() if name != member.name]
    second = {"dylan_revise": "ratings", "reconcile_answer": "confidence", "reconcile_revise": "confidence"}
    return {
        **{prompt: accuracy(column, cases) for prompt, column in texts.items()},
        "refine_before": accuracy(first[member.name], cases),
        "confidence_auc": auc(sure, rights(texts["reconcile_answer"], cases)),
        "ratings_auc": _ratings(texts["dylan_revise"], others, cases),
        "feedback": balanced([_verdict(text) for text in notes], rights(first[member.name], cases)),
        "unread": {
            **{prompt: unread(column, second.get(prompt, "final answer")) for prompt, column in texts.items()},
            "feedback": unread(notes, "verdict"),
        },
        "revised": texts["debate_revise"],
    }


def _ratings(texts: Column, others: list[Column], cases: list[Case]) -> float | None:
    """How well the ratings of all candidates tell right from wrong."""
    values: list[float | None] = []
    for text in texts:
        said = [_number(part) for part in (tag(text, "ratings") or "").split(",")]
        values += said if len(said) == len(others) else [None] * len(others)
    marks = zip(*(rights(column, cases) for column in others), strict=True)
    return auc(values, [mark for row in marks for mark in row])


def half_right(cases: Sequence[Case], columns: Sequence[Column]) -> Shown:
    """One reply to each question out of the columns: a right one and a wrong one by turns, where there are both."""
    found: list[tuple[Case, str, bool]] = []
    for index, (case, row) in enumerate(zip(cases, zip(*columns, strict=True), strict=True)):
        marks = rights(row, [case] * len(row))
        wanted = index % 2 == 0
        place = marks.index(wanted) if wanted in marks else 0
        found.append((case, row[place], marks[place]))
    return Shown([case for case, _, _ in found], [text for _, text, _ in found], [mark for _, _, mark in found])


def _judging(member: Member, cases: list[Case], columns: Mapping[str, list[Column]]) -> dict[str, Any]:
    shown = half_right(cases, [column for draws in columns.values() for column in draws])
    sent = {
        prompt: [
            asked(ask(prompt, question=c.question, peers=peers([t])))
            for c, t in zip(shown.cases, shown.texts, strict=True)
        ]
        for prompt in ("verify", "score")
    }
    verdicts = reply(member, sent["verify"], Sampling(seed=82))
    scores = reply(member, sent["score"], Sampling(seed=83))
    again = reply(member, [repair(p, t) for p, t in zip(sent["verify"], verdicts, strict=True)], Sampling(seed=84))
    mixed, rows = _mixed(cases, [draws[0] for draws in columns.values()])
    listed = [(c.question, candidates([text for text, _ in row])) for c, row in zip(mixed, rows, strict=True)]
    ranked = reply(member, [asked(ask("rank", question=q, candidates=c)) for q, c in listed], Sampling(seed=85))
    picked = reply(member, [asked(ask("pick", question=q, candidates=c)) for q, c in listed], Sampling(seed=86))
    return {
        "verify": balanced([_verdict(text) for text in verdicts], shown.right),
        "score_auc": auc([_number(tag(text, "score")) for text in scores], shown.right),
        "rank": share([_first_is_right(tag(text, "ranking"), row) for text, row in zip(ranked, rows, strict=True)]),
        "pick": share([_first_is_right(tag(text, "choice"), row) for text, row in zip(picked, rows, strict=True)]),
        "chance": share([mark for row in rows for _, mark in row]),
        "repair": balanced([_verdict(text) for text in again], shown.right),
        "unread": {
            "verify": unread(verdicts, "verdict"),
            "score": unread(scores, "score"),
            "rank": unread(ranked, "ranking") if ranked else None,
            "pick": unread(picked, "choice") if picked else None,
            "repair": unread(again, "verdict"),
        },
    }


def repair(prompt: Conversation, text: str) -> Conversation:
    """The conversation after a reply that broke off half-way."""
    return (*prompt, Message("assistant", text[: len(text) // 2].rstrip()), Message("user", ask("repair")))


def _mixed(cases: list[Case], columns: list[Column]) -> tuple[list[Case], list[list[tuple[str, bool]]]]:
    """The questions that some got right and some wrong, with their replies."""
    found = []
    for case, row in zip(cases, zip(*columns, strict=True), strict=True):
        marks = rights(row, [case] * len(row))
        if any(marks) and not all(marks):
            found.append((case, list(zip(row, marks, strict=True))))
    return [case for case, _ in found], [row for _, row in found]


def _first_is_right(said: str | None, row: list[tuple[str, bool]]) -> bool:
    number = _number((said or "").split(",")[0])
    return number is not None and 1 <= number <= len(row) and row[int(number) - 1][1]


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _verdict(text: str) -> bool | None:
    return {"true": True, "false": False}.get(tag(text, "verdict") or "")


def _council(
    task: str, draws: Mapping[str, list[Column]], revised: Mapping[str, Column], best: str, more: list[Column]
) -> dict[str, Any]:
    """Votes and one round of debate: each seat has seen its own reply and everybody else's."""
    first = [columns[0] for columns in draws.values()]
    cases = first_cases(task, len(first[0]))
    before = [rights(column, cases) for column in first]
    after = [rights(revised[name], cases) for name in draws]
    pairs = [pair for b, a in zip(before, after, strict=True) for pair in zip(b, a, strict=True)]
    return {
        "best_member": best,
        "best_member_vote_of_4": vote(draws[best], cases),
        "best_member_vote_of_8": vote([*draws[best], *more], cases),
        "vote_of_one_each": vote(first, cases),
        "vote_of_two_each": vote([column for columns in draws.values() for column in columns[:2]], cases),
        "some_member_right": any_right(first, cases),
        "debate_seats_before": sum(b for b, _ in pairs) / len(pairs),
        "debate_seats_after": sum(a for _, a in pairs) / len(pairs),
        "debate_vote": vote([revised[name] for name in draws], cases),
        "wrong_to_right": share([a for b, a in pairs if not b]),
        "right_to_wrong": share([not a for b, a in pairs if b]),
        "lone_right_kept": _lone_kept(before, after),
    }


def _lone_kept(before: Sequence[Sequence[bool]], after: Sequence[Sequence[bool]]) -> float | None:
    """Of the seats that alone were right, how many still are: no follower of majorities keeps any."""
    kept = []
    for b, a in zip(zip(*before, strict=True), zip(*after, strict=True), strict=True):
        if sum(b) == 1:
            kept.append(a[b.index(True)])
    return share(kept)


def filled(page: str, text: str) -> str:
    """The page with new tables between its marks.

    >>> filled("a <!-- measured -->old<!-- /measured --> b", "new")
    'a <!-- measured -->\\n\\nnew\\n\\n<!-- /measured --> b'
    """
    head, _, rest = page.partition("<!-- measured -->")
    return f"{head}<!-- measured -->\n\n{text}\n\n<!-- /measured -->{rest.partition('<!-- /measured -->')[2]}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m pluribus.zoo.measure", description="Measure the zoo, write cards.")
    parser.add_argument("--questions", type=int, default=200, help="test questions of each task")
    parser.add_argument("--jobs", type=int, default=2, help="members measured at a time")
    given = parser.parse_args()
    measured = measure(dict.fromkeys(TASKS, given.questions), given.jobs)
    (CHECKPOINTS / "measured.json").write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    if DOCS.exists():
        DOCS.write_text(filled(DOCS.read_text(encoding="utf-8"), tables(measured)), encoding="utf-8")
    for name in members():
        (folder(name) / "README.md").write_text(card(name, measured), encoding="utf-8")
    print(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
