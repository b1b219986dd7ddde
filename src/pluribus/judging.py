"""The door of judging: a judges' config and a stored run → judgements and rewards; and rewards for trainers.

`bench` reads and checks without asking anybody; `reward_run` asks what is not yet judged and writes each judgement as
it comes, so running the same thing again costs nothing. Rewards are not stored: they are arithmetic on judgements.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pluribus.agents import SeatPlan, seats
from pluribus.answers import read
from pluribus.backends import ModelSpec, parse, services
from pluribus.codec import build, content_id, plain
from pluribus.consensus.rewards import Scale
from pluribus.engines.asyncio import block, each
from pluribus.errors import BudgetExceeded, ConfigError, UnknownName
from pluribus.judge_config import JudgeConfig, JudgesConfig, judge_names, judge_weights, make_judges, total_gb
from pluribus.judges import Candidate, Check
from pluribus.label import TEXT, read_turns, verdicts_on
from pluribus.load import fill, load
from pluribus.prompts import dialect, fingerprint
from pluribus.replies import REPAIR
from pluribus.reward import Item, Judge, Reckoned, hearing, identities, judge, reckon, rereads
from pluribus.run import Pool, agents_in, make_budget
from pluribus.store import RunRow, Store
from pluribus.store.files import whole
from pluribus.traffic import Tally
from pluribus.types import Judgement, Key, Question, Reward, Seat, Transcript, Verdict
from pluribus.verdicts import sides, standing

JUDGEMENT, REWARDING, VERDICT = "judgement", "rewarding", "verdict"
"""Kinds of records in the store; the last two are kept under the run's id."""
_QUANTIZATIONS: Mapping[str, str] = {"int8": "8bit", "int4": "4bit"}
_DTYPES: Mapping[str, str] = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


# --- who judges ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Bench:
    """A council of judges that is checked and ready; nothing was asked yet."""

    config: JudgesConfig
    judges: tuple[Judge, ...]
    """Without agents."""
    seats: tuple[Seat | None, ...]
    """Each judge's; None for a kind that asks no model."""
    specs: tuple[ModelSpec | None, ...]

    @property
    def weights(self) -> dict[str, float]:
        """Judge → weight, in the judges' order."""
        return {one.name: one.weight for one in self.judges}


def bench(config: JudgesConfig) -> Bench:
    """Checks kinds, settings, models, prompts and memory; asks nobody.

    >>> bench(JudgesConfig(judges=[JudgeConfig(role="teacher", model="zoo/qwen")])).weights
    {'teacher': 0.5}
    """
    needed = total_gb(config)
    if needed is not None and config.device_gb is not None and needed > config.device_gb:
        raise ConfigError(
            f"the judges' weights take {needed:.1f} GB, and device_gb is {config.device_gb:g}",
            hint="take smaller models or precisions, or a larger device",
        )
    names, weights = judge_names(config), judge_weights(config)
    specs = tuple(_spec(one, name) for one, name in zip(config.judges, names, strict=True))
    settings = [_settings(one, config.criteria, name) for one, name in zip(config.judges, names, strict=True)]
    places = _seats(config, names, weights, specs)
    judges = tuple(
        Judge(name, one.kind, settings[i], _asked(one.kind, settings[i], places[i], config.seed), weights[i], one.role)
        for i, (one, name) in enumerate(zip(config.judges, names, strict=True))
    )
    _check_apart(judges)
    return Bench(config, judges, places, specs)


def _check_apart(judges: Sequence[Judge]) -> None:
    """Judges that ask a model draw different samples; two that ask nobody the same would be one judge twice."""
    seen: dict[str, str] = {}
    for one in judges:
        if one.asked in seen:
            raise ConfigError(
                f"{seen[one.asked]} and {one.name} are the same: kind {one.kind} with the same settings",
                hint="drop one of them, or give the other its weight too",
            )
        seen[one.asked] = one.name


def _spec(one: JudgeConfig, name: str) -> ModelSpec | None:
    """The judge's model, its precision among the options of one that is loaded here."""
    module = load("judges", one.kind)
    if module.MODEL == "none":
        if one.model is not None:
            raise ConfigError(f"{name}: a judge of kind {one.kind} asks no model", hint="drop `model`")
        return None
    if one.model is None:
        raise ConfigError(f"{name}: a judge of kind {one.kind} has no model", hint="write model: service/name")
    spec = parse(one.model)
    loaded_here = services()[spec.service]["backend"] == "local"
    if module.MODEL == "scorer":
        if not loaded_here:
            raise ConfigError(
                f"{name}: {spec.service}/ gives no rewards of a classification head",
                hint=f"a judge of kind {one.kind} runs in this process: model: local/FOLDER or local/ORG/NAME",
            )
        spec = replace(spec, options={**spec.options, "head": getattr(module, "HEAD", "reward")})
    return _held(spec, one.precision, name) if loaded_here else spec


def _held(spec: ModelSpec, precision: str | None, name: str) -> ModelSpec:
    if precision is None:
        return spec
    if precision == "fp8":
        raise ConfigError(f"{name}: precision fp8 is for served models", hint="a local model takes int8 or fp16")
    option, value = (
        ("quantization", _QUANTIZATIONS[precision]) if precision in _QUANTIZATIONS else ("dtype", _DTYPES[precision])
    )
    if spec.options.get(option, value) != value:
        raise ConfigError(f"{name}: precision is {precision}, but the model's {option} is {spec.options[option]}")
    return replace(spec, options={**spec.options, option: value})


def _settings(one: JudgeConfig, criteria: str | None, name: str) -> Any:
    """The kind's settings, with the council's criteria where it has such a setting and the judge names none."""
    cls = load("judges", one.kind).Settings
    known = {f.name for f in dataclasses.fields(cls)}
    shared = {"criteria": criteria} if criteria is not None and "criteria" in known else {}
    missing = sorted(
        f.name
        for f in dataclasses.fields(cls)
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING and f.name not in one.settings
    )
    if missing:
        raise ConfigError(f"{name}: a judge of kind {one.kind} needs the setting {missing[0]!r}")
    try:
        return fill(cls, f"judge {one.kind}", shared | one.settings)
    except ValueError as problem:
        raise ConfigError(f"{name}: {problem}") from None


def _seats(
    config: JudgesConfig, names: Sequence[str], weights: Sequence[float], specs: Sequence[ModelSpec | None]
) -> tuple[Seat | None, ...]:
    """Judges that are the same in all but the name draw different samples, as seats of a council do."""
    plans = [
        SeatPlan(spec, name, sampling=one.values(), weight=weight, prompts=one.prompts)
        for one, name, weight, spec in zip(config.judges, names, weights, specs, strict=True)
        if spec is not None
    ]
    seated = iter(seats(plans))
    found = tuple(None if spec is None else next(seated) for spec in specs)
    for one, name, seat in zip(config.judges, names, found, strict=True):
        if seat is not None:
            _check_prompts(one.kind, name, seat)
    return found


def prompts_of(kind: str) -> tuple[str, ...]:
    """All words a kind of judge may send: of its first round, of later ones, and of asking once more."""
    module = load("judges", kind)
    return (*module.PROMPTS, *getattr(module, "AGAIN", ()), REPAIR) if module.PROMPTS else ()


def _check_prompts(kind: str, name: str, seat: Seat) -> None:
    texts = dialect(seat.dialect).texts
    for prompt in prompts_of(kind):
        if prompt not in texts:
            raise UnknownName(f"prompt of dialect {seat.dialect} ({name})", prompt, texts)


def _asked(kind: str, settings: Any, seat: Seat | None, seed: int) -> str:
    """Everything the judge's scores depend on; not its name, its weight or its address."""
    said: dict[str, Any] = {"kind": kind, "settings": plain(settings)}
    if seat is not None:
        words = fingerprint(dialect(seat.dialect), prompts_of(kind))
        said |= {"model": seat.model, "sampling": plain(seat.sampling), "prompts": words, "sample": seat.sample}
        said |= {"seed": seed} if seed else {}
    return content_id(said)


@asynccontextmanager
async def sitting(
    bench: Bench, store: Store | None, tally: Tally | None = None, pool: Pool | None = None
) -> AsyncIterator[tuple[Judge, ...]]:
    """The judges with their models open."""
    own = pool or Pool(make_budget(bench.config.budget))
    try:
        yield seated(bench, own, store, tally)
    finally:
        if pool is None:
            await own.close()


def seated(bench: Bench, pool: Pool, store: Store | None, tally: Tally | None = None) -> tuple[Judge, ...]:
    """The same in a pool that its owner closes."""
    chairs = [(seat, spec) for seat, spec in zip(bench.seats, bench.specs, strict=True) if seat and spec]
    places, specs = [seat for seat, _ in chairs], [spec for _, spec in chairs]
    agents = iter(agents_in(pool, places, specs, bench.config, store, tally).agents)
    return tuple(
        one if seat is None else replace(one, agent=next(agents))
        for one, seat in zip(bench.judges, bench.seats, strict=True)
    )


# --- what is judged --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """The candidates of one question, which are judged together."""

    question: Question
    key: Key | None
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Asked(Part):
    """One question of a run with its candidates."""

    transcript: Transcript


def candidates_of(store: Store, run: str, *, every: bool = False) -> list[Asked]:
    """The replies of a run to be judged, in its order.

    Args:
        every: each answer of each round; else the replies that stand as answers at the end.

    Raises UnknownName: no such run.
    """
    stored = store.run(run)
    pairs = store.run_questions(stored.id)
    found = []
    for transcript in store.transcripts(attempt for attempt, _ in store.run_attempts(stored.id)):
        question, key = pairs[transcript.attempt.question_id]
        found.append(Asked(question, key, _candidates(question, transcript, every), transcript))
    return found


def _candidates(question: Question, transcript: Transcript, every: bool) -> tuple[Candidate, ...]:
    if transcript.status == "failed":
        return ()
    final = set(transcript.finals)
    return tuple(
        Candidate(transcript.attempt.id, at, transcript.turns[at].text, answer, _recorded(transcript, at))
        for at, answer in read_turns(question, transcript).items()
        if every or at in final
    )


def _recorded(transcript: Transcript, at: int) -> Mapping[str, float]:
    completion = transcript.turns[at].completion
    return (completion.scores or {}) if completion else {}


def checker(key: Key | None) -> Check | None:
    """The task's own checker with its key inside, for the kind `verifier`; None: there is no key."""
    if key is None:
        return None

    async def check(question: Question, reply: str) -> bool | None:
        answer = read(question, reply)
        right = (await verdicts_on(question, key, {answer}))[answer]
        return right or None if question.kind == TEXT else right  # other words may say the same

    return check


# --- judging a run ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Rewarding:
    """What rewards were made with: kept under the run's id, so that they can be made again without a call."""

    config: Mapping[str, Any]
    weights: Mapping[str, float]
    scales: Mapping[str, Scale]
    every: bool
    at: float
    """Unix time, s."""


@dataclass(frozen=True, slots=True)
class Rewarded:
    """A run with its rewards."""

    run: str
    """Its id."""
    name: str
    config: JudgesConfig
    weights: Mapping[str, float]
    scales: Mapping[str, Scale]
    asked: tuple[Asked, ...]
    rewards: tuple[Reward, ...]
    """One per candidate, in the order of `asked`."""
    judgements: tuple[Judgement, ...]
    every: bool = False
    at: float = 0.0
    stopped: str | None = None
    """Why judging ended early; None: it did not."""
    tally: Tally = field(default_factory=Tally)

    @property
    def items(self) -> list[Item]:
        return _items(self.asked)


Progress = Callable[[int, int, Tally], None]
"""Questions judged, of how many, and the live counters."""


async def reward_run(
    store: Store,
    run: str,
    config: JudgesConfig,
    *,
    every: bool = False,
    weights: Mapping[str, float] | None = None,
    progress: Progress | None = None,
    tally: Tally | None = None,
    pool: Pool | None = None,
) -> Rewarded:
    """Judges what is not judged yet, judges disputed candidates again, and reckons.

    Args:
        every: see `candidates_of`.
        weights: in the place of the config's.
        progress: is called after each question.

    Raises:
        UnknownName: no such run.
        ConfigError: the run has no reply to judge.
    """
    stored, asked = store.run(run), candidates_of(store, run, every=every)
    if not any(one.candidates for one in asked):
        raise ConfigError(f"run {stored.name} has no reply to judge", hint="take a run with answers")
    sat = bench(config)
    work = _Work(
        store, sat, asked, progress or (lambda done, of, tally: None), tally or Tally(),
        adjudicated=_decided(store, stored.id),
    )  # fmt: skip
    work.restore(store)
    async with sitting(sat, store, work.tally, pool) as judges:
        await work.go(judges)
    weighing = dict(sat.weights if weights is None else weights)
    found, now = work.reckon(weighing), time.time()
    kept = Rewarding(config.model_dump(mode="json", exclude_none=True), weighing, found.scales, every, now)
    store.put_records(REWARDING, [(stored.id, kept)])
    store.flush()
    return _rewarded(stored, asked, work, found, kept, config)


def _rewarded(
    stored: RunRow, asked: Sequence[Asked], work: _Work, found: Reckoned, kept: Rewarding, config: JudgesConfig
) -> Rewarded:
    return Rewarded(
        stored.id, stored.name, config, kept.weights, found.scales, tuple(asked), found.rewards,
        tuple(work.judgements.values()), kept.every, kept.at, work.stopped, work.tally,
    )  # fmt: skip


def stored_rewards(store: Store, run: str, *, weights: Mapping[str, float] | None = None) -> Rewarded:
    """What `reward_run` made last, from its judgements; no call is made.

    Args:
        weights: judge → weight, in the place of those it was made with.

    Raises:
        UnknownName: no such run.
        ConfigError: the run has no rewards.
    """
    stored = store.run(run)
    found = store.records(REWARDING, Rewarding, [stored.id]).get(stored.id)
    if not found:
        raise ConfigError(
            f"run {stored.name} has no rewards", hint=f"make them with: pluribus reward {stored.name} --judges FILE"
        )
    last = max(found, key=lambda one: one.at)
    config = make_judges(last.config, f"rewards of {stored.name}")
    asked = candidates_of(store, stored.id, every=last.every)
    kept = last if weights is None else replace(last, weights=dict(weights))
    decided = _decided(store, stored.id)
    work = _Work(None, bench(config), asked, scales=kept.scales, adjudicated=decided)
    work.restore(store)
    work.recall()
    return _rewarded(stored, asked, work, work.reckon(kept.weights), kept, config)


def _items(parts: Sequence[Part]) -> list[Item]:
    return [(one.attempt_id, one.turn) for part in parts for one in part.candidates]


def _decided(store: Store, run_id: str) -> frozenset[Item]:
    """Candidates of pairs a person has decided."""
    found = standing(verdicts(store, run_id)).values()
    said = [one for one in found if one.choice in ("first", "second", "tie")]
    return frozenset(side for one in said for side in sides(one))


_Place = tuple[str, int, str, int]
"""Attempt, turn, what was asked, round."""


@dataclass(frozen=True, slots=True)
class _Round:
    number: int
    about: set[Item] | None = None
    """The candidates it is about; None: all."""
    before: Mapping[Item, Sequence[Judgement]] = field(default_factory=dict)
    """What the rounds before it said of each."""
    scales: Mapping[str, Scale] | None = None

    def said_of(self, part: Part) -> list[Judgement]:
        return [said for c in part.candidates for said in self.before.get((c.attempt_id, c.turn), ())]

    def places(self, one: Judge, part: Part, judges: Sequence[Judge]) -> list[_Place]:
        """Where each of the part's judgements by this judge belongs."""
        heard = hearing(one, part.candidates, judges, self.number, self.said_of(part), self.scales)
        names = identities(one, part.candidates, self.number, heard)
        return [(c.attempt_id, c.turn, name, self.number) for c, name in zip(part.candidates, names, strict=True)]


@dataclass(slots=True)
class _Work:
    """Holds the judgements while they come."""

    store: Store | None
    """Where they are kept; None: nowhere."""
    bench: Bench
    parts: Sequence[Part]
    progress: Progress = lambda done, of, tally: None
    tally: Tally = field(default_factory=Tally)
    scales: Mapping[str, Scale] | None = None
    """Fitted elsewhere; None: on these judgements."""
    adjudicated: frozenset[Item] = frozenset()
    judgements: dict[_Place, Judgement] = field(default_factory=dict)
    """What counts."""
    stored: dict[_Place, Judgement] = field(default_factory=dict)
    """What earlier sittings left; it counts where these rounds would have asked for it."""
    stopped: str | None = None

    async def go(self, judges: Sequence[Judge]) -> None:
        """All rounds: everybody alone, then the disputed candidates again."""
        turn: _Round | None = _Round(0)
        while turn is not None:
            self._recall(turn)
            if not self.stopped:
                await self._round(turn, judges)
            turn = self._next(turn.number)

    def recall(self) -> None:
        """The same with what is stored alone; nobody is asked."""
        turn: _Round | None = _Round(0)
        while turn is not None:
            self._recall(turn)
            turn = self._next(turn.number)

    def _next(self, number: int) -> _Round | None:
        """The round after this one; None: there is none.

        A candidate that a person has decided since keeps what was said of it, so it is in it; it is not asked about.
        """
        several = len(self.bench.judges) > 1 and any(rereads(one.kind) for one in self.bench.judges)
        if not several or number >= self.bench.config.max_rounds:
            return None
        found, most = self.reckon(self.bench.weights), self.bench.config.threshold
        again = {(r.attempt_id, r.turn) for r in found.rewards if r.disagreement is not None and r.disagreement > most}
        return _Round(number + 1, again, self._by_item(), found.scales) if again else None

    def _recall(self, turn: _Round) -> None:
        """What is stored of a round becomes what counts. A round that is gone on with reads the rounds before it
        only, and another threshold, scale or weight asks about other candidates: so each is found by what it read."""
        for part in (_only(part, turn.about) for part in self.parts):
            for one in self.bench.judges:
                if part.candidates and (not turn.number or rereads(one.kind)):
                    held = ((place, self.stored.get(place)) for place in turn.places(one, part, self.bench.judges))
                    self.judgements |= {place: replace(said, judge=one.name) for place, said in held if said}

    def restore(self, store: Store) -> None:
        """Finds what earlier sittings of these judges said; failures are asked again."""
        attempts = dict.fromkeys(one.attempt_id for part in self.parts for one in part.candidates)
        for found in store.records(JUDGEMENT, Judgement, attempts).values():
            for said in found:
                if said.score is not None or _place(said) not in self.stored:
                    self.stored[_place(said)] = said

    async def _round(self, turn: _Round, judges: Sequence[Judge]) -> None:
        about = None if turn.about is None else turn.about - self.adjudicated
        todo = [part for part in (_only(part, about) for part in self.parts) if part.candidates]
        done = 0

        async def work(part: Part) -> bool:
            nonlocal done
            try:
                await self._judge(part, turn, judges)
            except BudgetExceeded as error:
                self.stopped = str(error)
                return False
            done += 1
            self.progress(done, len(todo), self.tally)
            return True

        await each(todo, work, min(len(todo), max(self.bench.config.concurrency, 64)) or 1)

    async def _judge(self, part: Part, turn: _Round, judges: Sequence[Judge]) -> None:
        if not any(self._is_open(one, part, turn, judges) for one in judges):
            return
        said = await judge(
            part.question, part.candidates, judges, round=turn.number, check=checker(part.key), scales=turn.scales,
            before=turn.said_of(part), seed=self.bench.config.seed,
        )  # fmt: skip
        for one in said:
            held = self.judgements.get(_place(one))
            if one.score is not None or held is None or held.score is None:  # a failure takes no score away
                self.judgements[_place(one)] = one
        if self.store is not None:
            self.store.put_records(JUDGEMENT, [(one.attempt_id, one) for one in said])

    def _by_item(self) -> Mapping[Item, Sequence[Judgement]]:
        found: dict[Item, list[Judgement]] = {}
        for said in self.judgements.values():
            found.setdefault((said.attempt_id, said.turn), []).append(said)
        return found

    def _is_open(self, one: Judge, part: Part, turn: _Round, judges: Sequence[Judge]) -> bool:
        """Whether some of these candidates have no score of this judge in this round yet."""
        if turn.number and not rereads(one.kind):
            return False
        held = map(self.judgements.get, turn.places(one, part, judges))
        return any(said is None or said.score is None for said in held)

    def reckon(self, weights: Mapping[str, float]) -> Reckoned:
        """ConfigError where `none` is to take scores it can not."""
        config = self.bench.config
        if config.normalise == "none":
            _check_range(self.judgements.values())
        return reckon(
            _items(self.parts), list(self.judgements.values()), weights, normalise=config.normalise,
            threshold=config.threshold, scales=self.scales, adjudicated=self.adjudicated,
        )  # fmt: skip


def _check_range(judgements: Iterable[Judgement]) -> None:
    out = next((said for said in judgements if said.score is not None and not 0 <= said.score <= 1), None)
    if out is not None:
        raise ConfigError(
            f"{out.judge} gave {out.score:g}, and normalise none takes scores in [0, 1] only",
            hint="say normalise: zscore, minmax or rank",
        )


def _place(said: Judgement) -> _Place:
    return said.attempt_id, said.turn, said.asked, said.round


def _only(part: Part, items: set[Item] | None) -> Part:
    if items is None:
        return part
    return replace(part, candidates=tuple(c for c in part.candidates if (c.attempt_id, c.turn) in items))


# --- people ----------------------------------------------------------------------------------------------------------


def verdicts(store: Store, run: str) -> list[Verdict]:
    """What people said of a run's pairs, events in the order they came."""
    run_id = store.run(run).id
    return store.records(VERDICT, Verdict, [run_id]).get(run_id, [])


def put_verdict(store: Store, run: str, verdict: Verdict) -> None:
    """Keeps a verdict; it is on disk when this returns."""
    store.put_records(VERDICT, [(store.run(run).id, verdict)])
    store.flush()


# --- where trainers want it ------------------------------------------------------------------------------------------

REWARDER = "pluribus-rewarder"
"""What the file of `CouncilReward.save` calls itself."""
Said = str | Sequence[Mapping[str, Any]]
"""A prompt or a completion as trainers pass it: text, or messages with `role` and `content`."""


class CouncilReward:
    """A council of judges as a reward function: the same reply gets the same number in TRL, over HTTP and in a table.

    It is one of TRL's asynchronous reward functions: `GRPOTrainer(reward_funcs=[CouncilReward.load(FILE)], …)`. The
    judges' scales are those of the run they were fitted on, so a number does not depend on what else is in the batch
    (but for a kind that compares candidates with each other, such as `pairwise`).

    Args:
        config: the judges.
        scales: how each judge's scores are put on the common scale, as `Rewarded.scales` has them; None: only with
            `normalise: none`, which needs none.
        weights: judge → weight; None: the config's.
        home: workspace that keeps the calls, so that none is made twice; None: nothing is kept.
        drop_disputed: no reward where the judges disagree by more than the threshold.

    >>> from pluribus.judge_config import make_judges
    >>> model = {"model": "scripted/constant", "text": '{"reason": "it is right", "score": 8}'}
    >>> council = CouncilReward(make_judges({"judges": [{"model": model}], "normalise": "none"}))
    >>> council.score("How much is 1 + 1?", "2").value
    0.8
    """

    def __init__(
        self,
        config: JudgesConfig,
        scales: Mapping[str, Scale] | None = None,
        weights: Mapping[str, float] | None = None,
        *,
        home: Path | str | None = None,
        drop_disputed: bool = False,
    ) -> None:
        self.bench = bench(config)
        self.scales = _complete(scales, self.bench)
        self.weights = dict(self.bench.weights if weights is None else weights)
        self.drop_disputed = drop_disputed
        self.__name__ = "council_reward"
        self._home = home
        self._open: dict[asyncio.AbstractEventLoop, tuple[Pool, tuple[Judge, ...], Store | None]] = {}

    @classmethod
    def of(cls, rewarded: Rewarded, **options: Any) -> CouncilReward:
        """The reward that a run was given, for replies of anybody."""
        return cls(rewarded.config, rewarded.scales, rewarded.weights, **options)

    @classmethod
    def load(cls, path: Path | str, **options: Any) -> CouncilReward:
        """What `save` wrote; ConfigError with one line for anything else."""
        return cls(*_read_rewarder(Path(path)), **options)

    def save(self, path: Path | str) -> None:
        """Judges, weights and scales as one JSON file."""
        content = {
            "format": REWARDER,
            "version": 1,
            "judges": self.bench.config.model_dump(mode="json", exclude_none=True),
            "weights": self.weights,
            "scales": plain(self.scales),
        }
        with whole(Path(path)) as part:
            part.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", "utf-8")

    async def __call__(
        self, prompts: Sequence[Said], completions: Sequence[Said], **columns: Any
    ) -> list[float | None]:
        """The rewards of a batch, as TRL asks for them; None: no verdict (or disputed, where those are dropped)."""
        return [self.usable(one) for one in await self.rewards(prompts, completions)]

    def usable(self, reward: Reward) -> float | None:
        """What a trainer gets of it; None: no verdict, or disputed where those are dropped."""
        return None if self.drop_disputed and reward.status == "disputed" else reward.value

    async def rewards(self, prompts: Sequence[Said], completions: Sequence[Said]) -> list[Reward]:
        """The same with scores, disagreement and status; completions of equal prompts are judged together."""
        if len(prompts) != len(completions):
            raise ConfigError(f"{len(prompts)} prompts and {len(completions)} completions", hint="give one for one")
        judges, store = self._judges()
        parts, places = _parts(prompts, completions)
        work = _Work(store, self.bench, parts, scales=self.scales)
        if store is not None:
            work.restore(store)
        await work.go(judges)
        if work.stopped:
            raise BudgetExceeded(work.stopped)
        by_item = dict(zip(_items(parts), work.reckon(self.weights).rewards, strict=True))
        return [by_item[place] for place in places]

    def score(self, prompt: Said, completion: Said) -> Reward:
        """One reply, from synchronous code."""
        return block(self._once(prompt, completion))

    async def _once(self, prompt: Said, completion: Said) -> Reward:
        try:
            return (await self.rewards([prompt], [completion]))[0]
        finally:
            await self.aclose()

    def _judges(self) -> tuple[tuple[Judge, ...], Store | None]:
        """The judges in this event loop; they stay open until `aclose`. Nothing is awaited here, so that batches which
        come at once open them once."""
        loop = asyncio.get_running_loop()
        if loop not in self._open:
            pool = Pool(make_budget(self.bench.config.budget))
            with ExitStack() as opening:
                store = opening.enter_context(Store.open(self._home)) if self._home is not None else None
                self._open[loop] = (pool, seated(self.bench, pool, store), store)
                opening.pop_all()
        _, judges, store = self._open[loop]
        return judges, store

    async def aclose(self) -> None:
        """Closes the judges of this event loop; the next reward opens them again."""
        pool, _, store = self._open.pop(asyncio.get_running_loop(), (None, (), None))
        try:
            if pool is not None:
                await pool.close()
        finally:
            if store is not None:
                store.close()

    async def __aenter__(self) -> CouncilReward:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def _complete(scales: Mapping[str, Scale] | None, sat: Bench) -> dict[str, Scale]:
    if sat.config.normalise == "none":
        return {one.name: Scale("none", 0) for one in sat.judges}
    missing = [one.name for one in sat.judges if one.name not in (scales or {})]
    if missing:
        raise ConfigError(
            f"normalise is {sat.config.normalise}, and {missing[0]} has no scale",
            hint="fit one on a run: pluribus reward RUN --judges FILE --save FILE; or say normalise: none",
        )
    return dict(scales or {})


def _read_rewarder(path: Path) -> tuple[JudgesConfig, Mapping[str, Scale], Mapping[str, float]]:
    hint = "give a file that `pluribus reward RUN --save FILE` wrote"
    try:
        value = json.loads(path.read_text("utf-8"))
    except OSError as problem:
        raise ConfigError(f"{path}: {problem.strerror}", hint=hint) from None
    except (ValueError, RecursionError):  # no JSON, no UTF-8, nested without end
        raise ConfigError(f"{path}: not JSON", hint=hint) from None
    if not isinstance(value, dict) or value.get("format") != REWARDER:
        raise ConfigError(f"{path}: not a rewarder", hint=hint)
    if value.get("version") != 1:
        raise ConfigError(f"{path}: version {value.get('version')!r} of a rewarder; this pluribus reads 1")
    _check_object(path, value, "judges", hint)
    config = make_judges(value["judges"], str(path))
    for key in ("weights", "scales"):
        _check_object(path, value, key, hint)
    try:
        scales: Any = Mapping[str, Scale]
        weights: Any = Mapping[str, float]
        found = config, build(scales, value["scales"]), build(weights, value["weights"])
    except (KeyError, TypeError, ValueError) as problem:
        raise ConfigError(f"{path}: {problem}", hint=hint) from None
    if wrong := _unfit(*found):
        raise ConfigError(f"{path}: {wrong}", hint=hint)
    return found


def _check_object(path: Path, value: Mapping[str, Any], key: str, hint: str) -> None:
    if not isinstance(value.get(key), dict):
        raise ConfigError(f"{path}: {key} is {value.get(key)!r:.60}; expected an object", hint=hint)


def _unfit(config: JudgesConfig, scales: Mapping[str, Scale], weights: Mapping[str, float]) -> str | None:
    """What an edited rewarder would be reckoned wrongly with."""
    names = judge_names(config)
    if set(weights) != set(names):
        return f"weights are of {', '.join(weights) or 'nobody'}; the judges are {', '.join(names)}"
    for name, weight in weights.items():
        if not _is_number(weight) or weight < 0:
            return f"weights.{name} is {weight!r:.60}; expected a finite number of at least 0"
    if not any(weights.values()):
        return "all weights are 0; at least one judge needs a weight above 0"
    for name, scale in scales.items():
        for part, number in plain(scale).items():
            several = number if isinstance(number, list | tuple) else [number]
            if part != "how" and not all(map(_is_number, several)):
                return f"scales.{name}.{part} is {number!r:.60}; expected a finite number"
        if scale.spread < 0:
            return f"scales.{name}.spread is {scale.spread!r}; expected at least 0"
        if scale.how != config.normalise:
            return f"scales.{name}.how is {scale.how!r:.60}; normalise is {config.normalise}"
    return None


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _parts(prompts: Sequence[Said], completions: Sequence[Said]) -> tuple[list[Part], list[Item]]:
    """One part per prompt, its different completions in it; and the place of each completion."""
    texts: dict[str, dict[str, None]] = {}
    said = [(_text(prompt), _text(reply)) for prompt, reply in zip(prompts, completions, strict=True)]
    for prompt, reply in said:
        texts.setdefault(prompt, {})[reply] = None
    parts = [Part(_question(prompt), None, _replies(prompt, list(replies))) for prompt, replies in texts.items()]
    places = {(part.question.text, c.text): (c.attempt_id, c.turn) for part in parts for c in part.candidates}
    return parts, [places[one] for one in said]


def _question(prompt: str) -> Question:
    return Question(content_id(prompt)[:16], "reward", prompt, "text")


def _replies(prompt: str, replies: Sequence[str]) -> tuple[Candidate, ...]:
    return tuple(Candidate(content_id([prompt, reply]), 0, reply) for reply in replies)


def _text(said: Said) -> str:
    """A text; of messages the one content, or all of them with their roles."""
    if isinstance(said, str):
        return said
    try:
        parts = [(str(one["role"]), str(one["content"])) for one in said]
    except (KeyError, TypeError):
        raise ConfigError(f"{said!r:.80} is no text and no list of messages with role and content") from None
    return parts[0][1] if len(parts) == 1 else "\n\n".join(f"{role}: {content}" for role, content in parts)
