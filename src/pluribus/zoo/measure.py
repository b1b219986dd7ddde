"""Measure the zoo and write its cards: `python -m pluribus.zoo.measure [--questions N] [--threads N]`.

Replies are drawn at temperature 1 and top_p 0.9 unless a key says otherwise. An answer is the whole number in
`{final answer: …}`; a reply without one counts as not right. Everything lands in `measured.json`; the cards and the
table in docs/zoo.md are written from it.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pluribus.tasks.sums import SKILLS, Problem, equations, problem
from pluribus.types import Sampling
from pluribus.zoo import CHECKPOINTS, folder, members
from pluribus.zoo.cards import card, tables
from pluribus.zoo.language import STYLES
from pluribus.zoo.lessons import ask, peers
from pluribus.zoo.models import open_model
from pluribus.zoo.tokenizer import ASSISTANT, SYSTEM, USER, open_tokenizer

LONGEST = 200
"""Tokens a reply may take."""
DRAWS = 4
DOCS = Path("docs/zoo.md")
"""From the repository's root; not there in an installed package."""
BATCH = 200
MARKS: Mapping[str, str] = {
    "verify": "check:",
    "explore": "in short:",
    "formal": "given",
    "estimate": "about",
    "decompose": "1)",
}
"""What shows that a reply is in its style."""

Texts = Sequence[str]


@dataclass(frozen=True, slots=True)
class Member:
    """A trained model, ready to answer."""

    name: str
    model: Any
    tokenizer: Any


@dataclass(frozen=True, slots=True)
class Prompt:
    user: str
    system: str | None = None


def open_member(name: str, path: Path | None = None) -> Member:
    where = path or folder(name)
    return Member(name, open_model(where), open_tokenizer(where))


def reply(member: Member, prompts: Sequence[Prompt], sampling: Sampling) -> list[str]:
    """One reply to each prompt; greedy at temperature 0."""
    torch.manual_seed(sampling.seed or 0)
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i].user))
    out = [""] * len(prompts)
    for first in range(0, len(order), BATCH):
        part = order[first : first + BATCH]
        texts = _generate(member, [prompts[i] for i in part], sampling)
        for index, text in zip(part, texts, strict=True):
            out[index] = text
    return out


def answer(text: str) -> int | None:
    """
    >>> answer("1 + 1 = 2. {final answer: 2}"), answer("1 + 1")
    (2, None)
    """
    found = re.findall(r"\{final answer: (\d{1,9})\}", text)
    return int(found[-1]) if found else None


def rights(texts: Texts, problems: Sequence[Problem]) -> list[bool]:
    """Whose answer is right."""
    return [answer(text) == p.answer for text, p in zip(texts, problems, strict=True)]


def accuracy(texts: Texts, problems: Sequence[Problem]) -> float:
    """Share of replies whose answer is right, in [0, 1]."""
    return sum(rights(texts, problems)) / len(problems)


def vote(columns: Sequence[Texts], problems: Sequence[Problem]) -> float:
    """Accuracy of the plurality over one reply of each column; a shared lead gives 1/t credit when the key is in it."""
    rows = zip(*columns, strict=True)
    return sum(_credit(row, p.answer) for row, p in zip(rows, problems, strict=True)) / len(problems)


def per_skill(texts: Texts, problems: Sequence[Problem]) -> dict[str, float]:
    """Share of steps of each skill done right, over the steps that were reached without a mistake, in [0, 1]."""
    asked: Counter[str] = Counter()
    good: Counter[str] = Counter()
    for text, found in zip(texts, problems, strict=True):
        for skill, is_right in _marks(text, found):
            asked[skill] += 1
            good[skill] += is_right
    return {skill: good[skill] / asked[skill] for skill in SKILLS if asked[skill]}


def measure(team: Sequence[Member], problems: Sequence[Problem]) -> dict[str, Any]:
    """All that the cards and docs/zoo.md say about the zoo."""
    draws = {each.name: _draws(each, problems) for each in team}
    singles = {each.name: _alone(each, problems, draws[each.name]) for each in team}
    best = max(singles, key=lambda name: float(singles[name]["self_consistency_4"]))
    first = [draws[each.name][0] for each in team]
    both = [draw for each in team for draw in draws[each.name][:2]]
    return {
        "questions": len(problems),
        "members": singles,
        "council": {
            "best_member": best,
            "vote_of_one_each": vote(first, problems),
            "vote_of_two_each": vote(both, problems),
            "best_member_self_consistency_4": singles[best]["self_consistency_4"],
            "best_member_self_consistency_8": vote(_more(team, best, problems, draws), problems),
            "some_member_right": _any_right(first, problems),
        },
        "debate": _debate(team, problems, first),
        "debate_of_copies": _debate([_named(team, best)] * 4, problems, draws[best]),
    }


def _draws(member: Member, problems: Sequence[Problem]) -> list[list[str]]:
    prompts = [Prompt(ask("answer", question=p.text)) for p in problems]
    return [reply(member, prompts, Sampling(seed=seed)) for seed in range(DRAWS)]


def _more(team: Sequence[Member], name: str, problems: Sequence[Problem], draws: Mapping[str, Any]) -> list[Texts]:
    prompts = [Prompt(ask("answer", question=p.text)) for p in problems]
    return [*draws[name], *(reply(_named(team, name), prompts, Sampling(seed=DRAWS + k)) for k in range(4))]


def _named(team: Sequence[Member], name: str) -> Member:
    return next(each for each in team if each.name == name)


def _alone(member: Member, problems: Sequence[Problem], draws: list[list[str]]) -> dict[str, Any]:
    prompts = [Prompt(ask("answer", question=p.text)) for p in problems]
    own = [Prompt(ask("debate_alone", question=p.text, own=t)) for p, t in zip(problems, draws[0], strict=True)]
    shown = zip(problems, *draws[:3], strict=True)
    combine = [Prompt(ask("aggregate", question=p.text, peers=peers(list(texts)))) for p, *texts in shown]
    styled = {s: reply(member, [Prompt(p.user, s) for p in prompts], Sampling(seed=100)) for s in STYLES}
    odd = reply(member, [Prompt(p.user, "You are a patient physicist.") for p in prompts], Sampling(seed=101))
    return {
        "greedy": accuracy(reply(member, prompts, Sampling(temperature=0.0)), problems),
        "top_p_0.9": sum(accuracy(each, problems) for each in draws) / DRAWS,
        "top_p_1": accuracy(reply(member, prompts, Sampling(top_p=1.0, seed=50)), problems),
        "self_consistency_4": vote(draws, problems),
        "steps_right": per_skill([t for each in draws for t in each], list(problems) * DRAWS),
        "styles": {s: accuracy(texts, problems) for s, texts in styled.items()},
        "style_kept": {s: sum(MARKS[s] in t for t in texts) / len(texts) for s, texts in styled.items()},
        "unknown_system": accuracy(odd, problems),
        "debate_alone": accuracy(reply(member, own, Sampling(seed=60)), problems),
        "aggregate_of_own": accuracy(reply(member, combine, Sampling(seed=61)), problems),
    }


def _debate(seats: Sequence[Member], problems: Sequence[Problem], first: Sequence[Texts]) -> dict[str, Any]:
    """One round: each seat sees its own reply and everybody else's."""
    second = [_revised(seat, k, problems, first) for k, seat in enumerate(seats)]
    before = [rights(texts, problems) for texts in first]
    after = [rights(texts, problems) for texts in second]
    pairs = [pair for b, a in zip(before, after, strict=True) for pair in zip(b, a, strict=True)]
    return {
        "seats": [seat.name for seat in seats],
        "round_0": [sum(b) / len(b) for b in before],
        "round_1": [sum(a) / len(a) for a in after],
        "vote_round_0": vote(first, problems),
        "vote_round_1": vote(second, problems),
        "wrong_to_right": _share([a for b, a in pairs if not b]),
        "right_to_wrong": _share([not a for b, a in pairs if b]),
        "lone_right_kept": _lone_kept(before, after),
    }


def _revised(seat: Member, index: int, problems: Sequence[Problem], first: Sequence[Texts]) -> list[str]:
    prompts = []
    for row, found in zip(zip(*first, strict=True), problems, strict=True):
        others = [text for k, text in enumerate(row) if k != index]
        prompts.append(Prompt(ask("debate_revise", question=found.text, own=row[index], peers=peers(others))))
    return reply(seat, prompts, Sampling(seed=70 + index))


def _lone_kept(before: Sequence[Sequence[bool]], after: Sequence[Sequence[bool]]) -> float | None:
    """Of the seats that alone were right, how many still are: no follower of majorities keeps any."""
    kept = []
    for b, a in zip(zip(*before, strict=True), zip(*after, strict=True), strict=True):
        if sum(b) == 1:
            kept.append(a[b.index(True)])
    return _share(kept)


def _share(marks: Sequence[bool]) -> float | None:
    return sum(marks) / len(marks) if marks else None


def _any_right(columns: Sequence[Texts], problems: Sequence[Problem]) -> float:
    right = zip(*(rights(texts, problems) for texts in columns), strict=True)
    return sum(any(row) for row in right) / len(problems)


def _credit(row: Texts, key: int) -> float:
    votes = Counter(found for text in row if (found := answer(text)) is not None)
    lead = [each for each, count in votes.items() if count == max(votes.values())]
    return (key in lead) / len(lead) if lead else 0.0


def _marks(text: str, found: Problem) -> list[tuple[str, bool]]:
    """(skill, is its closing equation there) for each step, up to and with the first that is not."""
    closing = {e.step: str(e) for e in equations(found.start, found.steps)}
    marks = []
    for index, line in closing.items():
        marks.append((found.steps[index].skill, f" {line}." in f" {text}"))
        if not marks[-1][1]:
            break
    return marks


def _generate(member: Member, prompts: Sequence[Prompt], sampling: Sampling) -> list[str]:
    texts = [(f"{SYSTEM}{p.system}" if p.system else "") + f"{USER}{p.user}{ASSISTANT}" for p in prompts]
    sent = member.tokenizer(texts, return_tensors="pt", padding=True, padding_side="left", return_token_type_ids=False)
    drawn: dict[str, Any] = {"do_sample": False}
    if sampling.temperature:
        drawn = {"do_sample": True, "temperature": sampling.temperature, "top_p": sampling.top_p, "top_k": 0}
    with torch.inference_mode():
        made = member.model.generate(**sent, max_new_tokens=min(sampling.max_tokens, LONGEST), **drawn)
    return list(member.tokenizer.batch_decode(made[:, sent["input_ids"].shape[1] :], skip_special_tokens=True))


def _filled(page: str, text: str) -> str:
    """The page with new tables between its marks.

    >>> _filled("a <!-- measured -->old<!-- /measured --> b", "new")
    'a <!-- measured -->\\n\\nnew\\n\\n<!-- /measured --> b'
    """
    head, _, rest = page.partition("<!-- measured -->")
    return f"{head}<!-- measured -->\n\n{text}\n\n<!-- /measured -->{rest.partition('<!-- /measured -->')[2]}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m pluribus.zoo.measure", description="Measure the zoo, write cards.")
    parser.add_argument("--questions", type=int, default=400, help="test questions")
    parser.add_argument("--threads", type=int, default=2, help="torch threads")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    problems = [problem("test", index) for index in range(given.questions)]
    measured = measure([open_member(name) for name in members()], problems)
    (CHECKPOINTS / "measured.json").write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    if DOCS.exists():
        DOCS.write_text(_filled(DOCS.read_text(encoding="utf-8"), tables(measured)), encoding="utf-8")
    for name in members():
        (folder(name) / "README.md").write_text(card(name, measured), encoding="utf-8")
    print(json.dumps(measured, indent=1))


if __name__ == "__main__":
    main()
