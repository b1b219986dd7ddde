"""The door of distillation: stored runs → cases, cases → rows of a training file, none of them a test question.

`known` reads what is known of one run, for `pluribus prefer` too; `source` makes cases of it; `distil` pools the cases
of several runs, leaves out what an evaluation set asks, and makes the rows of one view. No model is called.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from pluribus.codec import content_id, to_json
from pluribus.config import RunConfig, make_config
from pluribus.consensus.pairs import near_duplicates
from pluribus.contamination import Overlap, asked_in, normalised, overlap
from pluribus.distil import Case, Embed, Found, Material, Trace
from pluribus.distil._formats import FORMATS, NEED_ANSWERS, truths
from pluribus.distil._rows import Row, replies, rows
from pluribus.engines.asyncio import block
from pluribus.errors import ConfigError, DataError, UnknownName, UsageError
from pluribus.judging import REWARDING, Asked, Rewarded, Rewarding, candidates_of, stored_rewards, verdicts
from pluribus.label import CONSENSUS, PROGRAM, checked, checker, deciding
from pluribus.load import fill, load, names
from pluribus.logs._rows import first_row
from pluribus.logs._rows import rows as lines_of
from pluribus.prefer import Item
from pluribus.run import decided, stored_table
from pluribus.steps import CUTS, Cut
from pluribus.store import Store
from pluribus.store.files import whole, write_line, writing
from pluribus.store.parquet import _pyarrow as pyarrow
from pluribus.tasks import ALIASES, load_task
from pluribus.types import Decision, Label, Question, Seat, Transcript, Verdict

if TYPE_CHECKING:
    from types import ModuleType

KEY, JUDGE, VOTE = "a key or tests", "a judge", "the council's own vote"
"""Who says of a reply that it is right."""
Steps = Literal["checker", "rollouts", "judge"]
STEPS: tuple[Steps, ...] = get_args(Steps)
"""Who marks steps, whom one believes first first."""
TRL, VERL = "trl", "verl"
SIMILAR = 0.9
"""Share of common word 5-grams from which two replies count as nearly the same, where it is only reported."""


# --- what is known of a run ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Known:
    """Everything of a run that examples are made from."""

    run: str
    """Its id."""
    name: str
    asked: tuple[Asked, ...]
    rewarded: Rewarded | None
    labels: tuple[Label, ...]
    """The one that counts of each reply that has any."""
    right: Mapping[Item, bool | None]
    """Reply → what its question's key or tests say."""
    verdicts: tuple[Verdict, ...]
    steps: tuple[Label, ...] = ()
    """Every stored label of a step."""

    @property
    def questions(self) -> dict[str, Question]:
        return {part.question.id: part.question for part in self.asked}


def known(store: Store, run: str, *, every: bool = False) -> Known:
    """
    Args:
        every: each answer of each round; else the replies that were rewarded, or stand as answers at the end.
    """
    stored = store.run(run)
    rewarded = rewarded_of(store, stored.id)
    asked = rewarded.asked if rewarded and not every else tuple(candidates_of(store, stored.id, every=every))
    kept = store.records("label", Label, [part.transcript.attempt.id for part in asked])
    labels, right = _labels(kept, asked)
    steps = tuple(one for several in kept.values() for one in several if one.step is not None)
    return Known(stored.id, stored.name, asked, rewarded, labels, right, tuple(verdicts(store, stored.id)), steps)


def rewarded_of(store: Store, run: str) -> Rewarded | None:
    """None: `pluribus reward` left nothing."""
    return stored_rewards(store, run) if store.records(REWARDING, Rewarding, [run]) else None


def _labels(
    kept: Mapping[str, Sequence[Label]], asked: Sequence[Asked]
) -> tuple[tuple[Label, ...], dict[Item, bool | None]]:
    """The label that counts of each reply; and what keys and tests alone say."""
    checks = block(_checked(asked))
    counting = [
        one
        for part, by_key in zip(asked, checks, strict=True)
        for one in deciding([*by_key, *_standing(kept.get(part.transcript.attempt.id, ()), part)]).values()
    ]
    return tuple(counting), {(one.attempt_id, one.turn): one.correct for one in counting if label_source(one) == KEY}


async def _checked(asked: Sequence[Asked]) -> list[list[Label]]:
    """By the keys as they are now; programs are not run here, their labels are stored."""
    return [
        [] if part.question.kind == PROGRAM else await checked(part.question, part.key, part.transcript)
        for part in asked
    ]


def _standing(labels: Sequence[Label], part: Asked) -> list[Label]:
    """Stored labels that a check of today does not replace."""
    current = checker(part.question, part.key) if part.key and part.question.kind == PROGRAM else None
    return [one for one in labels if label_source(one) != KEY or one.checker == current]


def label_source(label: Label) -> str:
    """KEY, JUDGE or VOTE."""
    if label.checker is None:
        return JUDGE
    return VOTE if label.checker.partition(" ")[0] == CONSENSUS else KEY


def seat_of(transcript: Transcript, turn: int) -> Seat:
    """Who said it."""
    index = transcript.turns[turn].seat
    return next(seat for seat in transcript.attempt.agents if seat.index == index)


def threshold_of(rewarded: Rewarded | None) -> float | None:
    """The council's own limit of disagreement; None: no rewards, or one judge's, who disagrees with nobody."""
    if rewarded is None or sum(weight > 0 for weight in rewarded.weights.values()) < 2:
        return None
    return rewarded.config.threshold


# --- cases -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Origin:
    """Which questions a run asked."""

    task: str | None
    """`name` or `name:subset`; None: not known."""
    split: str | None
    """None: not known, such as the questions of a file."""
    data: str | None
    test: bool
    """They are the ones that models are compared on."""

    def __str__(self) -> str:
        return f"{self.task}@{self.split}" if self.split else str(self.task)


@dataclass(frozen=True, slots=True)
class Source:
    """One run, ready to be learned from."""

    known: Known
    origin: Origin
    cases: tuple[Case, ...]


def source(store: Store, run: str, *, steps: Steps | None = None, cut: Cut = "auto") -> Source:
    """Every reply of every round of a run.

    Args:
        steps: whose labels of steps count; None: of each step the first of `STEPS` who says something.
        cut: how the replies were cut for them.
    """
    row = store.run(run)
    found = known(store, run, every=True)
    config = make_config(row.config, f"run {row.name}")
    origin = _origin(config)
    return Source(
        found, origin, tuple(_cases(found, _decisions(config, found), origin, step_marks(found.steps, steps, cut)))
    )


def _decisions(config: RunConfig, found: Known) -> dict[str, Decision]:
    """Attempt → what its council decided."""
    return {
        part.transcript.attempt.id: decided(
            config, stored_table(part.transcript.attempt), part.question, part.transcript
        )
        for part in found.asked
        if part.transcript.status != "failed"
    }


def _cases(
    found: Known, decisions: Mapping[str, Decision], origin: Origin, marks: Mapping[Item, Mapping[int, bool]]
) -> Iterator[Case]:
    right = {(one.attempt_id, one.turn): one.correct for one in found.labels}
    rewards = {(one.attempt_id, one.turn): one for one in found.rewarded.rewards} if found.rewarded else {}
    for part in found.asked:
        attempt = part.transcript.attempt
        decision = decisions.get(attempt.id)
        corrected = _corrected(part, right)
        traces = tuple(
            _trace(found, part, at, decision, right.get((attempt.id, at.turn)), at.turn in corrected,
                   rewards.get((attempt.id, at.turn)), marks.get((attempt.id, at.turn), {}))
            for at in part.candidates
        )  # fmt: skip
        yield Case(part.question, part.key, traces, found.run, attempt.agents[0].dialect, origin.split)


def _trace(
    found: Known, part: Asked, said: Any, decision: Decision | None, correct: bool | None, corrective: bool,
    reward: Any, marks: Mapping[int, bool],
) -> Trace:  # fmt: skip
    transcript = part.transcript
    turn, seat = transcript.turns[said.turn], seat_of(transcript, said.turn)
    final = said.turn in transcript.finals
    return Trace(
        run=found.run, attempt_id=said.attempt_id, turn=said.turn, text=said.text, seat=turn.seat, round=turn.round,
        model=seat.model, dialect=seat.dialect, answer=said.answer, correct=correct, corrective=corrective,
        final=final, decided=final and decision is not None and said.answer is not None
        and said.answer == decision.answer, cut_off=turn.completion is not None
        and turn.completion.finish_reason == "length",
        candidate=final or (found.rewarded is not None and found.rewarded.every), reward=reward, marks=marks,
    )  # fmt: skip


def _corrected(part: Asked, right: Mapping[Item, bool | None]) -> set[int]:
    """Turns that are right and whose seat said something wrong the time before, in an earlier round."""
    turns, last, found = part.transcript.turns, dict[int, list[int]](), set()
    for one in part.candidates:
        turn = turns[one.turn]
        before = [at for at in last.get(turn.seat, ()) if turns[at].round < turn.round]
        if before and right.get((one.attempt_id, one.turn)) and right.get((one.attempt_id, before[-1])) is False:
            found.add(one.turn)
        last.setdefault(turn.seat, []).append(one.turn)
    return found


def step_marks(labels: Iterable[Label], source: Steps | None = None, cut: Cut = "auto") -> dict[Item, dict[int, bool]]:
    """Reply → step → whether it is good: the task's own checker's word, else the rollouts', else the judges'.

    Of several of one rank the majority; as many yes as no is no mark. Labels of steps that were cut otherwise, which
    their names say, are left aside.

    >>> said = [Label("a", 0, False, step=0, judge="J"), Label("a", 0, True, step=0, checker="rollouts 8 zoo/qwen")]
    >>> step_marks(said), step_marks(said, "judge")
    ({('a', 0): {0: True}}, {('a', 0): {0: False}})
    """
    said: dict[tuple[Item, int], dict[int, list[bool]]] = {}
    for one in labels:
        rank = _step_rank(one)
        if one.step is None or one.correct is None or _cut_of(one) != cut:
            continue
        if source in (None, STEPS[rank]):
            ranks = said.setdefault(((one.attempt_id, one.turn), one.step), {})
            ranks.setdefault(rank, []).append(one.correct)
    found: dict[Item, dict[int, bool]] = {}
    for (item, step), ranks in said.items():
        yes = Counter(ranks[min(ranks)])
        if yes[True] != yes[False]:
            found.setdefault(item, {})[step] = yes[True] > yes[False]
    return found


def _cut_of(label: Label) -> str:
    """As `pluribus.step_labels.by` names it."""
    last = (label.checker or label.judge or "").rpartition(" ")[2]
    return last if last in CUTS[1:] else CUTS[0]


def _step_rank(label: Label) -> int:
    if label.checker is None:
        return STEPS.index("judge")
    return STEPS.index("rollouts" if label.checker.startswith("rollouts") else "checker")


def pooled(sources: Sequence[Source]) -> tuple[Case, ...]:
    """The cases of all runs, equal questions as one; a reply that several runs hold stands once.

    Raises ConfigError for runs of different tasks, and for two questions of one id.
    """
    tasks = {one.origin.task.partition(":")[0] if one.origin.task else "": one.known.name for one in sources}
    if len(tasks) > 1:
        said = ", ".join(f"{name} asked {task or 'a task that is not known'}" for task, name in tasks.items())
        raise ConfigError(f"the runs are of different tasks: {said}", hint="distil each task on its own")
    together: dict[str, Case] = {}
    names: dict[str, tuple[str, str]] = {}
    for run, case in ((one.known.name, case) for one in sources for case in one.cases):
        words = content_id(normalised(question_text(case.question)))
        before = together.get(words)
        together[words] = case if before is None else _joined(before, case)
        id = together[words].question.id
        known, first = names.setdefault(id, (words, run))
        if known != words:
            raise ConfigError(
                f"runs {first} and {run} have different questions under the one id {id!r}",
                hint="distil each on its own, or give the questions of their files ids that tell them apart",
            )
    return tuple(together.values())


def _joined(before: Case, case: Case) -> Case:
    held = {(one.attempt_id, one.turn) for one in before.traces}
    new = tuple(one for one in case.traces if (one.attempt_id, one.turn) not in held)
    return replace(before, traces=before.traces + new, key=before.key or case.key)


def question_text(question: Question) -> str:
    """What is asked, without any prompt around it."""
    return "\n".join(part for part in (question.context, question.text, *question.choices) if part)


# --- which questions -------------------------------------------------------------------------------------------------


def _task(name: str) -> tuple[str, str, ModuleType]:
    """A task's full name, its name without the subset, and its module."""
    full = ALIASES.get(name, name)
    task, colon, subset = full.partition(":")
    task = task.lower().replace("-", "_")
    return f"{task}{colon}{subset}", task, load("tasks", task)


def _origin(config: RunConfig) -> Origin:
    try:
        full, _, module = _task(config.task or "")
    except UnknownName:
        return Origin(config.task, config.split, config.data, config.split == "test")
    of_file = config.data is not None and not Path(config.data).is_dir()
    split = config.split or (None if of_file else module.DEFAULT_SPLIT)
    test = split == "test" or (split == module.DEFAULT_SPLIT and len(module.SPLITS) > 1)
    return Origin(full, split, config.data, test)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Questions that must not be trained on."""

    name: str
    texts: tuple[str, ...]
    prompts: tuple[str, ...] = ()
    """Those of the texts that are prompts, in which more may stand than the question."""


def evaluation_set(said: str) -> Evaluation:
    """The questions of `TASK[:SUBSET][@SPLIT]` (else the split it is tested on), or of a file of JSON lines.

    A line of a file is a question (`question`, and where wanted `context`, `choices`) or a row of a training file
    (`prompt`).

    >>> evaluation_set("sums@dev").name
    'sums@dev'

    Raises DataError for a file that can not be read, UnknownName for a task or split.
    """
    path = Path(said)
    if path.is_file() or {".jsonl", ".json", ".gz"} & set(path.suffixes):
        texts = tuple(_file_texts(path))
        return Evaluation(said, tuple(text for text, _ in texts), tuple(text for text, prompt in texts if prompt))
    name, _, split = said.partition("@")
    loaded = load_task(name, split or None)
    return _evaluation(loaded.task, loaded.split, (question for question, _ in loaded.pairs))


def _evaluation(task: str, split: str, questions: Iterable[Question]) -> Evaluation:
    return Evaluation(f"{task}@{split}", tuple(question_text(question) for question in questions))


def _file_texts(path: Path) -> Iterator[tuple[str, bool]]:
    """Each with whether it is a prompt."""
    if not path.is_file():
        raise DataError(str(path), "there is no such file", hint="--check-against takes TASK@SPLIT or a JSONL file")
    number = 0
    for place, row in lines_of(path, Counter()):
        number += 1
        yield _asked_text(row, place), not isinstance(row.get("question"), str)
    if not number:
        raise DataError(str(path), "no question is in it", hint="one JSON object a line, with a question or a prompt")


def _asked_text(row: Row, place: str) -> str:
    if isinstance(row.get("question"), str):
        choices = row.get("choices")
        parts = [row.get("context"), row["question"], *(choices if isinstance(choices, list) else ())]
        return "\n".join(part for part in parts if isinstance(part, str) and part)
    prompt = row.get("prompt")
    if isinstance(prompt, str):
        return prompt
    if isinstance(prompt, list):
        said = [one["content"] for one in prompt if isinstance(one, dict) and _is_users(one)]
        if said:
            return "\n".join(said)
    raise DataError(place, "neither question nor prompt", hint="expected a question's text or a training row's prompt")


def evaluations(sources: Sequence[Source], named: Sequence[str]) -> tuple[list[Evaluation], list[str]]:
    """What the runs are held against: the named sets, and the split their own task is tested on, where it is at hand.

    Returns: the sets, and what could not be looked at, in words.

    Raises UsageError where a run asked the very questions that its task is tested on, and no other set is named.
    """
    sets = {one.name: one for one in map(evaluation_set, dict.fromkeys(named))}
    origins = [(f"{one.known.name} is", one.origin) for one in sources if not one.origin.test]
    for one in sources:
        if one.origin.test and not set(sets) - {str(one.origin)}:
            raise UsageError(
                f"run {one.known.name} was made on {one.origin}: a test question is never trained on",
                hint="run the council on another split, such as --split train; or, if you test on something else, "
                "name it: --check-against TASK@SPLIT or FILE",
            )
    return _with_own(sets, origins)


def sets_of(tasks: Iterable[str], named: Sequence[str]) -> tuple[list[Evaluation], list[str]]:
    """The same for rows of which only the tasks are known, such as those of a training file.

    >>> [one.name for one in sets_of(["sums:unmixed"], ["logic@dev"])[0]]
    ['logic@dev', 'sums@test']
    """
    sets = {one.name: one for one in map(evaluation_set, dict.fromkeys(named))}
    return _with_own(sets, [(f"rows of {task} are", Origin(task, None, None, False)) for task in dict.fromkeys(tasks)])


def _with_own(
    sets: Mapping[str, Evaluation], origins: Iterable[tuple[str, Origin]]
) -> tuple[list[Evaluation], list[str]]:
    """The named sets and the own ones of what has these origins; what is held against none is said by its name."""
    found, notes = dict(sets), []
    for who, origin in origins:
        own, why = _own(origin)
        if own is not None:
            found.setdefault(own.name, own)
        elif not sets:
            notes.append(f"{who} held against no test set: {why}; name one with --check-against")
    return list(found.values()), notes


def _own(origin: Origin) -> tuple[Evaluation | None, str]:
    """The test split of a run's own task, or why it is not at hand."""
    try:
        full, task, module = _task(origin.task or "")
    except UnknownName:
        return None, "its task is not known"
    split = module.DEFAULT_SPLIT
    if len(module.SPLITS) < 2:
        return None, f"task {task} has no split to test on"
    if not hasattr(module, "FORMS"):
        return _evaluation(task, split, (question for question, _ in load_task(task, split).pairs)), ""
    if origin.data is None:
        return None, f"the {split} questions of {task} may have to be downloaded"
    if not Path(origin.data).is_dir():
        return None, f"its questions are of the file {origin.data}"
    return _evaluation(full, split, (question for question, _ in load_task(full, split, data=origin.data).pairs)), ""


def _is_users(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "user" and isinstance(message.get("content"), str)


# --- one view --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found of one evaluation set."""

    name: str
    questions: int
    equal: int
    """Questions left out because the set asks them too."""
    above: int
    """Questions left out because too many of their runs of words stand in the set."""
    touched: float
    """Share of the rows whose question has a run of 13 words in common with the set, in [0, 1]."""
    shared: float
    """Share of all these runs that is in common, in [0, 1]."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """How rows are made of cases."""

    view: str
    settings: Mapping[str, Any]
    """Of the view; what is not said is its own default."""
    check_against: tuple[str, ...] = ()
    max_overlap: float | None = None
    """Most runs of words a question may share with a set, in [0, 1]; None: any."""
    max_examples: int | None = None
    max_tokens: int | None = None
    """Tokens of all replies together, at most."""
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Made:
    """The rows of a view with what is said about them."""

    view: str
    kind: str
    rows: tuple[Row, ...]
    cases: tuple[Case, ...]
    """That the view read."""
    asked: int
    """Questions of the runs."""
    found: Found
    checked: tuple[Checked, ...]
    notes: tuple[str, ...]
    tokens: int | None
    """Of all replies in the rows; None: not counted."""
    beyond: int
    """Rows beyond --max-examples or --max-tokens."""


def distil(
    sources: Sequence[Source],
    wishes: Wishes,
    *,
    embed: Embed | None = None,
    count_tokens: Callable[[str], int] | None = None,
) -> Made:
    """The rows of one view of some runs.

    Raises UnknownName for a view, ConfigError for what can not be, UsageError where nothing is found.
    """
    module, settings = _view(wishes.view), view_settings(wishes)
    everything = pooled(sources)
    sets, notes = evaluations(sources, wishes.check_against)
    overlaps = [(one, _overlap(everything, one)) for one in sets]
    keep, dropped = _clean(everything, overlaps, wishes.max_overlap)
    cases = tuple(case for case, good in zip(everything, keep, strict=True) if good)
    given = tuple(one for source in sources for one in source.known.verdicts)
    found = module.examples(Material(cases, embed, given, wishes.seed), settings)
    made = rows(module.KIND, found.examples, cases, view=wishes.view)
    taken, tokens = _limited(made, wishes, count_tokens)
    if not taken:
        raise _nothing(sources, wishes, module, found, len(everything) - len(cases), len(made))
    places = {case.question.id: at for at, case in enumerate(everything)}
    at_R = [places[row["question_id"]] for row in taken]
    said = tuple(_facts(one, over, *dropped[one.name], at_R) for one, over in overlaps)
    return Made(
        wishes.view, module.KIND, tuple(taken), cases, len(everything), found, said, tuple(notes), tokens,
        len(made) - len(taken),
    )  # fmt: skip


def _view(name: str) -> ModuleType:
    if name not in names("distil"):
        raise UnknownName("view", name, names("distil"))
    return load("distil", name)


def view_settings(wishes: Wishes) -> Any:
    """A view's settings; ConfigError for one it has not, or a value that can not be."""
    try:
        return fill(_view(wishes.view).Settings, f"view {wishes.view}", wishes.settings)
    except ValueError as problem:
        raise ConfigError(f"view {wishes.view}: {problem}") from None


def _overlap(cases: Sequence[Case], known: Evaluation) -> Overlap:
    """A question that stands in a prompt is the prompt's question, whatever the prompt says around it."""
    texts = [question_text(case.question) for case in cases]
    found = overlap(texts, known.texts)
    found.equal_N[asked_in([text.splitlines() for text in texts], known.prompts)] = True
    return found


def _clean(
    cases: Sequence[Case], overlaps: Sequence[tuple[Evaluation, Overlap]], most: float | None
) -> tuple[list[bool], dict[str, tuple[int, int]]]:
    """Which cases may be learned from; and for each set how many were the same question, or shared too much."""
    import numpy as np

    keep_N, dropped = np.ones(len(cases), bool), {}
    for one, found in overlaps:
        above_N = np.zeros(len(cases), bool) if most is None else (found.share_N > most) & ~found.equal_N
        dropped[one.name] = int(found.equal_N.sum()), int(above_N.sum())
        keep_N &= ~(found.equal_N | above_N)
    return keep_N.tolist(), dropped


def _facts(one: Evaluation, found: Overlap, equal: int, above: int, at_R: Sequence[int]) -> Checked:
    rows_R = Overlap(found.equal_N[at_R], found.runs_N[at_R], found.shared_N[at_R])
    return Checked(one.name, len(one.texts), equal, above, rows_R.touched, rows_R.shared)


def _limited(
    made: Sequence[Row], wishes: Wishes, count_tokens: Callable[[str], int] | None
) -> tuple[list[Row], int | None]:
    """The rows of questions drawn by the seed, up to the limits, in their old order: a smaller limit takes a part of
    what a larger one takes, and other views of the same runs draw the same questions first."""
    costs = [sum(map(count_tokens, replies(row))) for row in made] if count_tokens else None
    if wishes.max_examples is None and wishes.max_tokens is None:
        return list(made), sum(costs) if costs is not None else None
    order = sorted(range(len(made)), key=lambda at: (content_id([wishes.seed, made[at]["question_id"]]), at))
    order = order[: wishes.max_examples]
    if wishes.max_tokens is not None:
        if costs is None:
            raise ConfigError(f"--max-tokens {wishes.max_tokens} counts tokens", hint="say whose: --tokenizer MODEL")
        order = order[: _fitting([costs[at] for at in order], wishes.max_tokens)]
    taken = sorted(order)
    return [made[at] for at in taken], sum(costs[at] for at in taken) if costs is not None else None


def _fitting(costs: Sequence[int], most: int) -> int:
    """How many of the first fit."""
    total = 0
    for at, cost in enumerate(costs):
        total += cost
        if total > most:
            return at
    return len(costs)


def _nothing(
    sources: Sequence[Source], wishes: Wishes, module: ModuleType, found: Found, dropped: int, made: int
) -> UsageError:
    names = ", ".join(one.known.name for one in sources)
    if made:
        return UsageError(f"--max-tokens {wishes.max_tokens} holds not even the first reply", hint="give more tokens")
    why = [f"{reason}: {count:,}" for reason, count in found.left_out.items()]
    why += [f"questions of an evaluation set: {dropped:,}"] if dropped else []
    return UsageError(
        f"view {wishes.view} takes nothing of {names} ({'; '.join(why) or 'no question was answered'})",
        hint=str(module.HINT).replace("RUN", sources[0].known.name),
    )


# --- what they are like ----------------------------------------------------------------------------------------------


def near_copies(made: Sequence[Row], threshold: float = SIMILAR) -> float:
    """Share of the rows whose reply says nearly what an earlier one to the same question says, in [0, 1]; rows that
    are repeated on purpose count."""
    marks = near_duplicates(
        [replies(row)[0] for row in made], [row["question_id"] for row in made], threshold=threshold
    )
    return float(marks.mean())


# --- the file --------------------------------------------------------------------------------------------------------


def check_format(view: str, format: str) -> None:
    """UnknownName for a format, ConfigError for one that has no place for the rows of a view."""
    if format not in (TRL, *FORMATS):
        raise UnknownName("format", format, (TRL, *FORMATS))
    kind = _view(view).KIND
    if format != TRL and kind != "demonstrations":
        raise ConfigError(
            f"--format {format} holds demonstrations, and --view {view} gives {kind}", hint=f"take --format {TRL}"
        )


def formatted(made: Made, format: str) -> list[Row]:
    """The rows in another trainer's form."""
    check_format(made.view, format)
    if format == TRL:
        return list(made.rows)
    answers = truths(made.cases)
    kinds = {case.question.id: case.question.kind for case in made.cases}
    open_ = next((row["question_id"] for row in made.rows if row["question_id"] not in answers), None)
    if open_ is not None and format in NEED_ANSWERS:
        raise ConfigError(
            f"--format {format} needs the answer to every question, and {open_} has none", hint=f"take --format {TRL}"
        )
    return FORMATS[format](made.rows, answers, kinds)


def write(lines: Sequence[Row], path: Path, format: str) -> None:
    """JSON lines, or Parquet for verl. StoreError if it can not be written; then nothing is left of it."""
    if format == VERL:
        _write_parquet(lines, path)
        return
    with writing(path) as file:
        for line in lines:
            write_line(file, line)


def _write_parquet(lines: Sequence[Row], path: Path) -> None:
    arrow, parquet = pyarrow("pyarrow"), pyarrow("pyarrow.parquet")
    # no Arrow text can hold half a surrogate pair
    readable = json.loads(to_json(list(lines)).encode("utf-8", "replace"))
    with whole(path) as part:
        parquet.write_table(arrow.Table.from_pylist(readable), part)


def is_ours(path: Path) -> bool:
    """Whether a file is one that `write` made."""
    with path.open("rb") as file:
        head = file.read(4)
    if head == b"PAR1":
        return _columns(path) >= {"data_source", "prompt", "messages"}
    row = first_row(path)
    return row is not None and "prompt" in row and bool({"completion", "completions", "chosen", "info"} & set(row))


def _columns(path: Path) -> set[str]:
    try:
        return set(pyarrow("pyarrow.parquet").read_schema(path).names)
    except (OSError, ValueError):  # Arrow's own errors are ValueErrors
        return set()
