"""transcript and key → labels of single steps: a step is good if the right answer can still come of it.

Three can say so. The task's own checker (`checked`), where it has one. Completions that a model draws from each
beginning of the reply (`rolled`): good if any of them reaches the right answer. A judge who names the first wrong step
(`located`). After a wrong step no later one is good to a checker and a judge; completions may find back.

Source: completions as labels: Wang et al. 2024, Math-Shepherd, arXiv 2312.08935; by halving: Luo et al. 2024,
OmegaPRM, arXiv 2406.06592.
"""

from __future__ import annotations

from asyncio import gather
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pluribus.agents import Agent
from pluribus.answers import read
from pluribus.judges import Juror, first_error
from pluribus.label import TEXT, read_turns, verdicts_on
from pluribus.replies import Reply
from pluribus.steps import Cut, split_steps
from pluribus.types import Key, Label, Question, Transcript

CHECKER, ROLLOUTS = "steps", "rollouts"
"""First words of the labels' `checker`."""
PROMPT = "answer"
"""What the model that goes on with a reply is asked."""
UNREAD = "the reply names no step"

Check = Callable[[Question, Key, Sequence[str]], Sequence[bool | None]]
"""A task's `check_steps`."""
Cuttings = Mapping[int, tuple[str, ...]]
"""Index of a turn → its steps."""


@dataclass(frozen=True, slots=True)
class Rolled:
    """What came of the completions from one beginning."""

    drawn: int
    """Completions that came back; 0: the reply is at its end there, and its own answer counts."""
    right: int
    """Of these, the ones that reach the right answer."""
    failed: int = 0
    """Calls that gave none."""
    cut_off: int = 0
    """Completions that ran out of tokens."""
    good: bool | None = None
    """None: nobody can say, as after calls that failed and none that was right."""

    @property
    def share(self) -> float | None:
        """How likely the right answer still is, in [0, 1]."""
        return self.right / self.drawn if self.drawn else None


@dataclass(frozen=True, slots=True)
class StepShare:
    """The same as it is kept with a run, beside the label."""

    attempt_id: str
    turn: int
    step: int
    drawn: int
    right: int
    failed: int
    checker: str


@dataclass(frozen=True, slots=True)
class Marked:
    """The steps of one transcript's replies, marked."""

    labels: tuple[Label, ...]
    """One for each step; `correct` is None where nobody can say."""
    shares: tuple[StepShare, ...] = ()
    silent: Counter[str] = field(default_factory=Counter)
    """Of a judge: why turns have no verdict, counted."""


def cuttings(question: Question, transcript: Transcript, cut: Cut = "auto") -> dict[int, tuple[str, ...]]:
    """Each turn that stands as an answer, cut into its steps; those without a step are left out."""
    turns = read_turns(question, transcript)
    return {turn: steps for turn in turns if (steps := split_steps(transcript.turns[turn].text, cut))}


def beginnings(text: str, steps: Sequence[str]) -> tuple[str, ...]:
    """The text up to the end of each step, as it was written.

    >>> beginnings(" 1 + 1 = 2.  2 + 1 = 3.", ("1 + 1 = 2.", "2 + 1 = 3."))
    (' 1 + 1 = 2.', ' 1 + 1 = 2.  2 + 1 = 3.')
    """
    found, end = [], 0
    for step in steps:
        end = text.index(step, end) + len(step)
        found.append(text[:end])
    return tuple(found)


def by(name: str, cut: Cut) -> str:
    """A marker's name with the cut, where that is not the usual one: other steps are other labels.

    >>> by("steps", "auto"), by("steps", "lines")
    ('steps', 'steps lines')
    """
    return name if cut == "auto" else f"{name} {cut}"


# --- by the task's checker -------------------------------------------------------------------------------------------


def checked(
    check: Check, question: Question, key: Key, transcript: Transcript, steps: Cuttings, name: str = CHECKER
) -> Marked:
    """What the task's own checker says of each step."""
    return _marked(transcript, {turn: check(question, key, cut) for turn, cut in steps.items()}, checker=name)


def _marked(transcript: Transcript, marks: Mapping[int, Sequence[bool | None]], **by: str) -> Marked:
    id = transcript.attempt.id
    return Marked(
        tuple(Label(id, turn, good, step, **by) for turn, said in marks.items() for step, good in enumerate(said))
    )


# --- by completions --------------------------------------------------------------------------------------------------


async def rolled(
    agent: Agent,
    key: Key,
    transcript: Transcript,
    steps: Cuttings,
    n: int,
    *,
    halve: bool = False,
    name: str = ROLLOUTS,
) -> Marked:
    """What `n` completions from the end of each step come to; equal beginnings are asked about once.

    The last step of a reply that was not cut off is as good as its answer, and costs nothing.

    Args:
        agent: sits at the transcript's question; goes on with the replies, whoever wrote them.
        n: completions from each beginning, at least 1.
        halve: look for the first wrong step of a wrong reply by halving, with n log₂(steps) calls instead of n a step,
            and mark all before it good and all from it on not; every step of a right reply is then good at no call.

    Raises:
        BudgetExceeded: not all can be drawn; no call is lost, since calls are kept.
    """
    if agent.question is None:
        raise ValueError(f"agent {agent.name!r} sits at no question; bind it with at(question, seed)")
    replies = {turn: _begun(transcript, turn, cut) for turn, cut in steps.items()}
    found = await (_halved if halve else _everywhere)(agent, key, replies, n)
    id = transcript.attempt.id
    labels = [Label(id, t, one.good, s, checker=name) for t, said in found.items() for s, one in enumerate(said)]
    shares = [
        StepShare(id, turn, step, one.drawn, one.right, one.failed, name)
        for turn, said in found.items()
        for step, one in enumerate(said)
        if one.drawn + one.failed
    ]
    return Marked(tuple(labels), tuple(shares))


@dataclass(frozen=True, slots=True)
class _Begun:
    """A reply and its beginnings."""

    text: str
    begins: tuple[str, ...]
    """The whole up to the end of each step."""
    ended: bool
    """It did not run out of tokens."""


def _begun(transcript: Transcript, turn: int, steps: Sequence[str]) -> _Begun:
    completion = transcript.turns[turn].completion
    assert completion is not None
    return _Begun(completion.text, beginnings(completion.text, steps), completion.finish_reason != "length")


async def _everywhere(agent: Agent, key: Key, replies: Mapping[int, _Begun], n: int) -> dict[int, list[Rolled]]:
    asked = {begin for one in replies.values() for begin in (one.begins[:-1] if one.ended else one.begins)}
    ordered = sorted(asked)
    drawn = dict(zip(ordered, await gather(*(roll(agent, key, begin, n) for begin in ordered)), strict=True))
    ends = {turn: await _end(agent, key, one) for turn, one in replies.items() if one.ended}
    return {
        turn: [*(drawn[begin] for begin in one.begins[:-1]), ends[turn] if one.ended else drawn[one.begins[-1]]]
        for turn, one in replies.items()
    }


async def _halved(agent: Agent, key: Key, replies: Mapping[int, _Begun], n: int) -> dict[int, list[Rolled]]:
    found = await gather(*(_search(agent, key, one, n) for one in replies.values()))
    return dict(zip(replies, found, strict=True))


async def _search(agent: Agent, key: Key, reply: _Begun, n: int) -> list[Rolled]:
    """Every step's mark, from the place of the first wrong one."""
    count = len(reply.begins)
    end = await _end(agent, key, reply) if reply.ended else await roll(agent, key, reply.begins[-1], n)
    asked: dict[int, Rolled] = {count - 1: end}

    async def good(step: int) -> bool | None:
        asked[step] = await roll(agent, key, reply.begins[step], n)
        return asked[step].good

    first = count if end.good else None if end.good is None else await first_bad(count, good)
    drawn = [asked.get(step, Rolled(0, 0)) for step in range(count)]
    if first is None:
        return [replace(one, good=end.good if step == count - 1 else None) for step, one in enumerate(drawn)]
    return [replace(one, good=step < first) for step, one in enumerate(drawn)]


async def first_bad(count: int, good: Callable[[int], Awaitable[bool | None]]) -> int | None:
    """The first of `count` steps that is not good, the last of which is known not to be; None: nobody can say.

    By halving: log₂ `count` questions, for goodness that never comes back once it is lost.
    """
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        said = await good(middle)
        if said is None:
            return None
        low, high = (middle + 1, high) if said else (low, middle)
    return low


async def roll(agent: Agent, key: Key, begin: str, n: int) -> Rolled:
    """Draws `n` completions of a reply that begins so, and counts the ones whose answer is right."""
    assert agent.question is not None
    turns = await gather(
        *(agent.speak(PROMPT, role="rollout", sample=draw, prefill=begin) for draw in range(n))
    )  # fmt: skip
    said = [turn.completion for turn in turns if turn.completion is not None]
    right = await _right(agent.question, key, [begin + one.text for one in said])
    good = True if True in right else None if None in right or len(said) < n else False
    cut_off = sum(one.finish_reason == "length" for one in said)
    return Rolled(len(said), right.count(True), n - len(said), cut_off, good)


async def _end(agent: Agent, key: Key, reply: _Begun) -> Rolled:
    assert agent.question is not None
    (right,) = await _right(agent.question, key, [reply.text])
    return Rolled(0, 0, good=right)


async def _right(question: Question, key: Key, texts: Sequence[str]) -> list[bool | None]:
    """Whether each reply is right; None: its programs may not run here, or other words may say the same."""
    answers = [read(question, text) for text in texts]
    known = await verdicts_on(question, key, set(answers))
    open_ = question.kind == TEXT
    return [known[one] or (None if open_ and one is not None else known[one]) for one in answers]


# --- by a judge ------------------------------------------------------------------------------------------------------


async def located(juror: Juror, transcript: Transcript, steps: Cuttings) -> Marked:
    """What a judge says, who reads the numbered steps of each reply and names the first wrong one.

    A call that failed, or a reply that names no step, marks nothing: `correct` is None, and `silent` counts why.

    Args:
        juror: sits at the transcript's question, with an agent; its name is the labels' `judge`.

    Raises:
        BudgetExceeded: not all can be judged; no call is lost, since calls are kept.
    """
    agent = juror.agent
    if agent is None:
        raise ValueError(f"judge {juror.name!r} has no agent to ask")
    replies = await gather(*(first_error.locate(agent, cut) for cut in steps.values()))
    marks: dict[int, Sequence[bool | None]] = {
        turn: _said(reply, len(cut)) for (turn, cut), reply in zip(steps.items(), replies, strict=True)
    }
    silent = Counter(why(reply) for reply in replies if reply.value is None)
    return Marked(_marked(transcript, marks, judge=juror.name).labels, silent=silent)


def _said(reply: Reply[str], count: int) -> list[bool | None]:
    return [None] * count if reply.value is None else list(first_error.marks(reply.value, count))


def why(reply: Reply[str]) -> str:
    """Why there is no verdict."""
    failure = reply.turn.failure
    return UNREAD if failure is None else failure.message
