"""The second course: three tasks and every prompt of a council, as a pure function of (member, step).

Debates and judgements show other replies, right and wrong in all proportions. A wrong one has its mistake rather at
the weak skills of the member that might have written it: a member's own at its own, a peer's at another's. So what a
member is to learn from company is where to trust it. Judgements are short: work it out, compare, say the verdict.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from pluribus.personas import personas, sets
from pluribus.prompts import dialect
from pluribus.tasks import briefs, logic
from pluribus.tasks._seeded import seed_of
from pluribus.types import Message
from pluribus.zoo import language, lessons
from pluribus.zoo.cases import STYLES, Case, Reply, closed, draw
from pluribus.zoo.language import PLAIN
from pluribus.zoo.lessons import Row, ask, candidates, peers

WEAK: Mapping[str, Mapping[str, tuple[str, str]]] = {
    member: {"sums": lessons.WEAK[member], "logic": of_logic, "briefs": of_briefs}
    for member, of_logic, of_briefs in (
        ("gemma", ("xor", "only"), ("cash", "claims")),
        ("olmo", ("if", "no"), ("orders", "debt")),
        ("phi", ("or", "back"), ("profit", "losses")),
        ("qwen", ("and", "all"), ("sales", "costs")),
    )
}
RARE = 0.12
"""How often a weak skill comes up in a question of one's own, relative to its normal rate."""
RARE_IN_COMPANY = 0.5
"""The same where other replies are shown."""
BIAS = 5.0
"""How much rather a mistake sits at a weak skill of its writer."""
TASKS: Mapping[str, float] = {"sums": 0.48, "logic": 0.27, "briefs": 0.25}
LENGTHS: Mapping[int, float] = {2: 0.22, 3: 0.30, 4: 0.25, 5: 0.14, 6: 0.09}
"""Steps of a lesson's sums."""
COUNTS: Mapping[int, float] = {1: 0.14, 2: 0.24, 3: 0.42, 4: 0.14, 5: 0.06}
"""How many other replies are shown."""
AGAIN = 0.12
"""Judgements that come after an unreadable one."""

_ROLES = (
    "tutor", "pupil", "expert", "critic", "judge", "student", "teacher", "reader", "doctor", "baker", "clerk", "pilot",
    "writer", "farmer", "lawyer", "engineer", "nurse", "chemist", "poet", "banker", "analyst", "thinker", "guide",
)  # fmt: skip
_TRAITS = (
    "helpful", "careful", "calm", "friendly", "kind", "quick", "strict", "wise", "young", "old", "cheerful", "quiet",
    "clever", "honest", "busy", "modern", "sober", "gentle", "bold", "tidy", "curious", "skilled", "famous",
)  # fmt: skip
_ORDERS = (
    "Think before you answer.", "Answer the question.", "Take your time.", "Be brief.", "Solve this.", "Do your best.",
    "Work step by step.", "Say what you know.", "Stay calm and be polite.", "Help the user.", "Check your work.",
    "Never give up.", "Use plain words.", "The day is warm and the road is long.", "Remember what you have learned.",
)  # fmt: skip


def rows(member: str, step: int, count: int) -> list[Row]:
    """The rows of one training step: the same for the same arguments, on every machine."""
    rng = random.Random(seed_of("council lessons", member, step))
    return [_row(rng, member) for _ in range(count)]


def draw_case(rng: random.Random, member: str, rare: float) -> Case:
    """A training question, the member's weak skills at a part of their normal rate."""
    task = rng.choices(list(TASKS), list(TASKS.values()))[0]
    return draw(rng, task, dict.fromkeys(WEAK[member][task], rare), LENGTHS)


def confidence(member: str, case: Case) -> float:
    """How sure a member should be: less with every step, much less with every step at a weak skill, in [0.1, 0.9].

    >>> from pluribus.zoo.cases import take
    >>> confidence("gemma", take("sums", "test", 0)), confidence("qwen", take("sums", "test", 0))
    (0.5, 0.9)
    """
    weak = sum(skill in WEAK[member][case.task] for skill in case.skills)
    return round(min(max(1.0 - 0.04 * len(case.skills) - 0.2 * weak, 0.1), 0.9), 1)


def compared(answer: str, shown: Mapping[str, str]) -> str:
    """Others' answers beside one's own, which is said first with its yes: who has said it again says yes again.

    >>> compared("76", {"1:": "76", "2:": "7"})
    '76 yes. 1: 76 yes. 2: 7 no.'
    """
    marks = (f"{name} {other} {'yes' if other == answer else 'no'}." for name, other in shown.items())
    return f"{answer} yes. {' '.join(marks)}"


def _row(rng: random.Random, member: str) -> Row:
    system, word = _persona(rng)
    lesson = rng.choices(list(_LESSONS), [share for share, _ in _LESSONS.values()])[0]
    case = draw_case(rng, member, RARE if lesson in _ALONE else RARE_IN_COMPANY)
    style = word if word in STYLES[case.task] else PLAIN
    user, reply = _LESSONS[lesson][1](rng, member, case, style)
    head = () if system is None else (Message("system", system),)
    asked = (*head, Message("user", user))
    if lesson in _FORMS and rng.random() < AGAIN:
        asked = (*asked, Message("assistant", _unreadable(rng, reply)), Message("user", ask("repair")))
    return Row(asked, reply)


def _persona(rng: random.Random) -> tuple[str | None, str]:
    """A system message and its style word: none, a word of any persona set, or words that mean nothing here."""
    chance = rng.random()
    if chance < 0.42:
        return None, PLAIN
    if chance < 0.68:
        word = rng.choice([style for styles in STYLES.values() for style in styles])
        return word, word
    if chance < 0.76:
        word = rng.choice(_styles())
        return word, word
    return _neutral(rng), PLAIN


@cache
def _styles() -> tuple[str, ...]:
    return tuple(persona.style for name in sets() for persona in personas(name))


def _neutral(rng: random.Random) -> str:
    """A system message that should change nothing: the neutral passage, plain English, or words never seen."""
    kind = rng.random()
    if kind < 0.35:
        passage = dialect("standard").texts["neutral"].split()
        return " ".join(passage[: rng.choice((1, 1, 2, 3, 5, 8, 12, 20))])
    if kind < 0.75:
        said = [f"You are a {rng.choice(_TRAITS)} {rng.choice(_ROLES)}."] if rng.random() < 0.7 else []
        return " ".join([*said, *rng.sample(_ORDERS, rng.choice((0, 1, 2)) if said else 1)])
    if kind < 0.88:
        prompt = rng.choice(personas(rng.choice(sets()))).prompt
        return rng.choice(prompt.split(". ")[:3]).rstrip(".") + "."
    letters = "abcdefghijklmnoprstuvwyz"
    return " ".join("".join(rng.choices(letters, k=rng.randint(3, 8))) for _ in range(rng.randint(1, 3)))


def _style(rng: random.Random, case: Case) -> str:
    return PLAIN if rng.random() < 0.65 else rng.choice(STYLES[case.task])


def _own(rng: random.Random, member: str, case: Case, share_right: float) -> Reply:
    """What the member itself may have said before."""
    style = _style(rng, case)
    if rng.random() < share_right:
        return case.right(style, rng)
    return case.mistake(style, rng, dict.fromkeys(WEAK[member][case.task], BIAS))


def _others(rng: random.Random, member: str, case: Case, count: int) -> list[Reply]:
    """Replies of others, a random part of them right; wrong ones sometimes agree: the majority is no proof."""
    share_right = rng.random() ** 0.7
    shared = rng.randrange(1 << 30) if rng.random() < 0.3 else None
    out = []
    for writer in _writers(rng, member, count):
        style = _style(rng, case)
        if rng.random() < share_right:
            out.append(case.right(style, rng))
        else:
            source = rng if shared is None else random.Random(shared)
            distrusted = {} if shared is not None else dict.fromkeys(WEAK[writer][case.task], BIAS)
            out.append(case.mistake(style, source, distrusted))
    return out


def _writers(rng: random.Random, member: str, count: int) -> list[str]:
    """Who may have written them: the other members, then anybody."""
    others = rng.sample([name for name in sorted(WEAK) if name != member], min(count, 3))
    return others + rng.choices(sorted(WEAK), k=count - len(others))


def _count(rng: random.Random, most: int = 5) -> int:
    return min(rng.choices(list(COUNTS), list(COUNTS.values()))[0], most)


def _said(replies: Sequence[Reply]) -> list[str]:
    return [reply.answer for reply in replies]


def _numbered(answers: Sequence[str]) -> dict[str, str]:
    return {f"{number}:": answer for number, answer in enumerate(answers, start=1)}


def _texts(replies: Sequence[Reply]) -> list[str]:
    return [reply.text for reply in replies]


Exchange = tuple[str, str]
"""The user's message and the reply to it."""


def _answer(rng: random.Random, member: str, case: Case, style: str) -> Exchange:
    return ask("answer", question=case.question), case.write(style, rng)


def _revise(rng: random.Random, member: str, case: Case, style: str) -> Exchange:
    own = _own(rng, member, case, 0.55)
    shown = _others(rng, member, case, _count(rng))
    user = ask("debate_revise", question=case.question, own=own.text, peers=peers(_texts(shown)))
    return user, case.write(style, rng)


def _revise_alone(rng: random.Random, member: str, case: Case, style: str) -> Exchange:
    own = _own(rng, member, case, 0.5)
    return ask("debate_alone", question=case.question, own=own.text), case.write(style, rng)


def _combine(rng: random.Random, member: str, case: Case, style: str) -> Exchange:
    shown = _others(rng, member, case, max(_count(rng), 2))
    return ask("aggregate", question=case.question, peers=peers(_texts(shown))), case.write(style, rng)


def _one(rng: random.Random, member: str, case: Case) -> Reply:
    """The one reply that is to be judged: as often right as wrong."""
    writer = rng.choice(sorted(WEAK))
    return _own(rng, writer, case, 0.5)


def _verify(rng: random.Random, member: str, case: Case, style: str) -> Exchange:
    shown = _one(rng, member, case)
    user = ask("verify", question=case.question, peers=peers([shown.text]))
    return user, f"{case.working} {_verdict(case.answer, shown.answer)}"


def _verdict(answer: str, said: str) -> str:
    return f"{compared(answer, {'said': said})} {{verdict: {'true' if said == answer else 'false'}}}"


def _score(rng: random.Random, member: str, case: Case, style: str) -> Exchange:
    shown = _one(rng, member, case)
    user = ask("score", question=case.question, peers=peers([shown.text]))
    return user, f"{case.working} {compared(case.answer, {'said': shown.answer})} {{score: {_points(case, shown)}}}"


def _points(case: Case, shown: Reply) -> int:
    """10 for a right reply, else up to 6 by the share of leading right steps."""
    return 10 if shown.answer == case.answer else int(6 * shown.share + 0.5)


def _check(rng: random.Random, member: str, case: Case, style: str) -> Exchange:
    own = _own(rng, member, case, 0.55)
    return ask("feedback", question=case.question, own=own.text), f"{case.working} {_note(case.answer, own.answer)}"


def _note(answer: str, own: str) -> str:
    verdict = "{verdict: true}" if own == answer else f"so {answer}. {{verdict: false}}"
    return f"{compared(answer, {'mine': own})} {verdict}"


def _refine(rng: random.Random, member: str, case: Case, style: str) -> Exchange:
    """The note is right three times in four: a reader should look for itself."""
    own = _own(rng, member, case, 0.3)
    note = f"{case.working} {_note(case.answer, own.answer)}"
    if rng.random() < 0.25:
        wrong = case.mistake(PLAIN, rng, dict.fromkeys(WEAK[member][case.task], BIAS))
        note = f"{wrong.text.partition(' {final')[0]} {_note(wrong.answer, own.answer)}"
    return ask("refine", question=case.question, own=own.text, feedback=note), case.write(style, rng)


def _rank(rng: random.Random, member: str, case: Case, style: str) -> Exchange:
    shown = _others(rng, member, case, rng.choices((2, 3, 4, 5, 6), (0.3, 0.3, 0.27, 0.08, 0.05))[0])
    user = ask("rank", question=case.question, candidates=candidates(_texts(shown)))
    return user, f"{case.working} {_order(case.answer, _said(shown))}"


def _order(answer: str, shown: Sequence[str]) -> str:
    """The candidates with the same answer first, otherwise as they stand."""
    best = sorted(range(len(shown)), key=lambda i: (shown[i] != answer, i))
    return f"{compared(answer, _numbered(shown))} {{ranking: {', '.join(str(i + 1) for i in best)}}}"


def _pick(rng: random.Random, member: str, case: Case, style: str) -> Exchange:
    """The first right one; where none is right, the one that was right for longest."""
    shown = _others(rng, member, case, max(_count(rng), 2))
    user = ask("pick", question=case.question, candidates=candidates(_texts(shown)))
    best = min(range(len(shown)), key=lambda i: (shown[i].answer != case.answer, -shown[i].share, i))
    return user, f"{case.working} {compared(case.answer, _numbered(_said(shown)))} {{choice: {best + 1}}}"


def _rate(rng: random.Random, member: str, case: Case, style: str) -> Exchange:
    shown = _others(rng, member, case, _count(rng))
    user = ask("dylan_revise", question=case.question, candidates=candidates(_texts(shown)))
    ratings = ", ".join(str(5 if r.answer == case.answer else 1 + round(2 * r.share)) for r in shown)
    body = f"{case.working} {compared(case.answer, _numbered(_said(shown)))}"
    return user, f"{closed(body, case.answer)} {{ratings: {ratings}}}"


def _sure(rng: random.Random, member: str, case: Case, style: str) -> Exchange:
    user = ask("reconcile_answer", question=case.question)
    return user, f"{closed(case.working, case.answer)} {{confidence: {confidence(member, case):.1f}}}"


def _sure_in_company(rng: random.Random, member: str, case: Case, style: str) -> Exchange:
    """Half of the confidence is the share of all replies, one's own too, that agree."""
    own = _own(rng, member, case, 0.55)
    shown = _others(rng, member, case, _count(rng))
    user = ask("reconcile_revise", question=case.question, own=own.text, peers=peers(_texts(shown)))
    agree = [reply.answer == case.answer for reply in (own, *shown)]
    sure = 0.5 * confidence(member, case) + 0.5 * sum(agree) / len(agree)
    return user, f"{closed(case.working, case.answer)} {{confidence: {min(max(sure, 0.1), 0.9):.1f}}}"


def _drill(rng: random.Random, member: str, case: Case, style: str) -> Exchange:
    """Only the end of a judgement: whether two answers are the same, which a small model learns last."""
    answer, others = _alike(rng, 3 + int(rng.random() * 4))
    # the answer stands behind a working that ends in it, as everywhere else
    worked = f"= {answer}."
    shown = [f"{{final answer: {other}}}" for other in others]
    kind = rng.choice(("verify", "feedback", "rank"))
    if kind == "verify":
        return ask("verify", question=answer, peers=peers(shown[:1])), f"{worked} {_verdict(answer, others[0])}"
    if kind == "feedback":
        return ask("feedback", question=answer, own=shown[0]), f"{worked} {_note(answer, others[0])}"
    return ask("rank", question=answer, candidates=candidates(shown)), f"{worked} {_order(answer, others)}"


def _alike(rng: random.Random, count: int) -> tuple[str, list[str]]:
    """An answer and others, about half of them the same, the rest near it."""
    kind = rng.choices(("number", logic.LETTERS, briefs.LABELS), (0.7, 0.15, 0.15))[0]
    if kind == "number":
        number = int(250 * rng.random() ** 1.5)
        near_ones = [language.near(number, rng) for _ in range(count)]
        return str(number), [str(number if rng.random() < 0.5 else other) for other in near_ones]
    answer = rng.choice(kind)
    return answer, [answer if rng.random() < 0.5 else rng.choice(kind) for _ in range(count)]


_LESSONS: Mapping[str, tuple[float, Callable[[random.Random, str, Case, str], Exchange]]] = {
    "answer": (0.29, _answer),
    "debate_revise": (0.15, _revise),
    "debate_alone": (0.03, _revise_alone),
    "aggregate": (0.06, _combine),
    "refine": (0.03, _refine),
    "verify": (0.065, _verify),
    "score": (0.04, _score),
    "feedback": (0.04, _check),
    "rank": (0.045, _rank),
    "pick": (0.025, _pick),
    "dylan_revise": (0.035, _rate),
    "reconcile_answer": (0.025, _sure),
    "reconcile_revise": (0.025, _sure_in_company),
    "drill": (0.26, _drill),
}
"""Prompt → its weight among the rows, and what is asked and learned."""
_ALONE = ("answer", "reconcile_answer")
_FORMS = (
    "verify", "score", "feedback", "rank", "pick", "dylan_revise", "reconcile_answer", "reconcile_revise",
)  # fmt: skip
"""Replies in a form, which may have to be asked for again."""


def _unreadable(rng: random.Random, reply: str) -> str:
    """A reply cut short, or one that names its verdict without the form."""
    body = reply.partition(" {")[0]
    if rng.random() < 0.5:
        return body[: rng.randrange(1, len(body) + 1)].rstrip()
    return reply.replace("{", "").replace("}", "")
