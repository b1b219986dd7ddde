"""The door of a run: config → seating, tasks and store → transcripts, decisions and scores.

`prepare` reads, checks and forecasts without asking anybody; `execute` asks what is not yet answered and writes each
record as it comes. Running the same thing again costs nothing; failed attempts are asked again.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pluribus.agents import Agent, SeatPlan, approximate_tokens, plan, seats
from pluribus.answers import canonical
from pluribus.backends import Backend, ModelSpec, connect, parse, services
from pluribus.backends._prices import Price, price_of, read_prices
from pluribus.calibrate import calibrated, no_confidence, weighed
from pluribus.codec import content_id, plain
from pluribus.config import (
    PRESETS,
    BudgetConfig,
    CalibrationConfig,
    RunConfig,
    SeatConfig,
    make_config,
    read_calibration,
)
from pluribus.decide import RULES, decide, rule_name
from pluribus.engines.asyncio import block, each
from pluribus.errors import CodeNotAllowed, ConfigError, DataError, MissingDependency, UnknownName
from pluribus.evaluate import (
    Row,
    Stopped,
    Sureness,
    pass_at,
    row,
    score,
    seat_score,
    stopped_short,
    stopping,
    sureness,
)
from pluribus.label import PROGRAM, checker, label
from pluribus.load import load
from pluribus.methods._waves import unpriced
from pluribus.panel import Panel, panel_of, short_name
from pluribus.personas import Persona, in_roles, personas
from pluribus.prompts import dialect, own_fields, render
from pluribus.sandbox import Sandbox, allowing, sandbox
from pluribus.solve import make_attempt, make_settings, solve_attempt
from pluribus.store import Store
from pluribus.tasks import LoadedTask, load_task
from pluribus.traffic import Budget, Flights, Limiter, Tally, unwrap, wrap
from pluribus.types import Attempt, Decision, Key, Label, Question, Score, Seat, Transcript

if TYPE_CHECKING:
    import pandas as pd

BUDGET_STOPS = "budget_exceeded"


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run will take if nothing is stored yet."""

    questions: int
    least_calls: int
    most_calls: int
    prompt_tokens: int
    """About: the first prompts' length times the calls; later rounds carry more."""
    most_completion_tokens: int
    """An upper bound: every call to its max_tokens."""


@dataclass(frozen=True, slots=True)
class Table:
    """Who sits where: seats with their models, before any backend is opened."""

    method: str
    settings: Any
    seats: tuple[Seat, ...]
    specs: tuple[ModelSpec, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that is checked and ready; nothing was asked yet."""

    config: RunConfig
    id: str
    name: str
    table: Table
    task: LoadedTask
    attempts: tuple[Attempt, ...]
    """One for each pair of the task, in order."""
    forecast: Forecast


def seat_table(config: RunConfig, family: str = "general") -> Table:
    """Seats and settings of a config; `family` is the persona set when personas are asked for without a name."""
    config = with_calibration(config)
    method = load("methods", config.method)
    settings = make_settings(config.method, config.settings)
    plans = _plans(config, method.AGENTS, _persona_set(config, family))
    control = "baseline_a" if config.baseline_a else "baseline_b" if config.baseline_b else None
    seated = seats(
        plans,
        control=control,  # type: ignore[arg-type]  # mypy widens a conditional of literals to str
        sampling=config.sampling.values(),
        preset=PRESETS[config.preset] if config.preset else None,
        prompts=config.prompts,
        count_tokens=_count_tokens,
    )
    _check_prompts(method, seated)
    if isinstance(config.calibration, CalibrationConfig):
        seated = weighed(seated, config.calibration)
    return Table(config.method, settings, seated, tuple(p.model for p in plans))


def with_calibration(config: RunConfig) -> RunConfig:
    """The config with its calibration read, and with the rule that it asks for: what is stored needs no file later."""
    if config.calibration is None:
        return config
    found = config.calibration
    known = found if isinstance(found, CalibrationConfig) else read_calibration(Path(found))
    if known.rule == "weighted" and config.rule != "weighted" and "rule" in config.model_fields_set:
        raise ConfigError(
            f"rule is {config.rule}, but the calibration gives the seats different weights",
            hint="drop the rule or the calibration",
        )
    rule = "weighted" if known.rule == "weighted" else config.rule
    return config.model_copy(update={"calibration": known, "rule": rule})


def _settings(table: Table) -> Mapping[str, Any]:
    """As plain values, as an attempt keeps them."""
    if isinstance(table.settings, Mapping):
        return table.settings
    values: Mapping[str, Any] = plain(dataclasses.asdict(table.settings))
    return values


def why_unsure(config: RunConfig, table: Table) -> str | None:
    """Why decisions have no confidence though there is a calibration; None: they have, or there is none."""
    known = config.calibration
    if not isinstance(known, CalibrationConfig):
        return None
    return no_confidence(known, table.method, _settings(table))


def decided(config: RunConfig, table: Table, question: Question, transcript: Transcript) -> Decision:
    """The decision as the config wants it: rule, ties, seed, confidence."""
    sure = calibrated(config, table.method, _settings(table))
    return decide(question, transcript, rule=config.rule, tie=config.tie, seed=config.seed, calibrated=sure)


def _persona_set(config: RunConfig, family: str) -> tuple[Persona, ...]:
    if config.roles:
        return in_roles(config.roles, config.personas or family)
    if config.multi_persona or config.baseline_a or config.baseline_b:
        return personas(config.personas or family)
    return personas(config.personas) if config.personas else ()


def _plans(config: RunConfig, default_agents: int, people: tuple[Persona, ...]) -> tuple[SeatPlan, ...]:
    if config.seats:
        cycle = config.seats if config.num_agents is None else _cycled(config.seats, config.num_agents)
        return tuple(_seat_plan(seat, people, i) for i, seat in enumerate(cycle))
    models = [parse(model) for model in config.models]
    n = config.num_agents or (len(models) if len(models) > 1 else default_agents)
    return plan(models, n, people)


def _cycled(items: Sequence[SeatConfig], n: int) -> list[SeatConfig]:
    return [items[i % len(items)] for i in range(n)]


def _seat_plan(seat: SeatConfig, people: tuple[Persona, ...], index: int) -> SeatPlan:
    persona = people[index % len(people)] if people else None
    if seat.persona is not None:
        by_name = {p.name: p for p in people}
        if seat.persona not in by_name:
            raise UnknownName("persona (name the set with `personas:`)", seat.persona, by_name)
        persona = by_name[seat.persona]
    return SeatPlan(parse(seat.model), seat.name, persona, seat.values(), seat.weight, seat.prompts)


def _check_prompts(method: Any, seated: Sequence[Seat]) -> None:
    """Every prompt the method may use is there before the first call."""
    for name in {seat.dialect for seat in seated}:
        for prompt in method.PROMPTS:
            if prompt not in dialect(name).texts:
                raise UnknownName(f"prompt of dialect {name}", prompt, dialect(name).texts)


def _count_tokens(spec: ModelSpec, text: str) -> int:
    """By the model's own tokenizer where its backend has one at hand."""
    counter: Callable[[str], int] | None = getattr(connect(spec), "count_tokens", None)
    return counter(text) if counter else approximate_tokens(text)


def prepare(config: RunConfig, task: LoadedTask | None = None) -> Prepared:
    """Loads the questions, seats the council, names every attempt and forecasts; asks nobody.

    Args:
        task: what `questions` gave for this config or one with the same questions; None: they are loaded now.
    """
    if config.rule not in RULES:
        raise UnknownName("rule", config.rule, RULES)
    config = with_calibration(config)
    task = task or questions(config)
    table = seat_table(config, task.family)
    if any(question.kind == PROGRAM for question, _ in task.pairs):
        check_allowed(config, f"task {task.task}")
    check_method(config, table)
    attempts = tuple(
        make_attempt(question, table.method, table.settings, table.seats, config.seed) for question, _ in task.pairs
    )
    identity = _identity(config, attempts)
    name = f"{table.method}-{task.task.replace(':', '-')}-{identity[:6]}"
    return Prepared(config, identity, name, table, task, attempts, forecast(table, task))


def _identity(config: RunConfig, attempts: Sequence[Attempt]) -> str:
    content: dict[str, Any] = {"attempts": [a.id for a in attempts], "rule": config.rule, "tie": config.tie}
    if config.calibration is not None:
        said = config.model_dump(mode="json", include={"calibration", "abstain_below"})
        content["calibration"] = said
    return content_id(content)[:12]


def questions(config: RunConfig) -> LoadedTask:
    """The questions a config asks, their keys checked."""
    if config.task is None:
        raise ConfigError("no task is named", hint="say --task NAME (see `pluribus list tasks`)")
    task = load_task(
        config.task, config.split, data=Path(config.data) if config.data else None,
        limit=config.limit, skip_bad=config.skip_bad,
    )  # fmt: skip
    _check_keys(task)
    return task


def check_allowed(config: RunConfig, who: str) -> None:
    """Raises CodeNotAllowed unless programs that models write may run."""
    if not config.allow_code_execution:
        raise CodeNotAllowed(f"{who} runs programs that models write")


def check_method(config: RunConfig, table: Table) -> None:
    """A method that runs programs under these settings is allowed to, and what is allowed works on this machine."""
    runs: Callable[[Any], bool] = getattr(load("methods", table.method), "runs_programs", lambda settings: False)
    if runs(table.settings):
        check_allowed(config, f"method {table.method}")
    _check_votes(config, table)
    _check_order(config, table)
    jail(config)


def _check_votes(config: RunConfig, table: Table) -> None:
    """What stops a vote, and what withholds a decision, counts the votes as the decision does."""
    weights = {seat.weight for seat in table.seats}
    if _settings(table).get("stop", "none") != "none" and config.rule == "plurality" and len(weights) > 1:
        raise ConfigError(
            "stopping counts the seats' weights, and the rule plurality does not", hint="say --rule weighted"
        )
    reason = why_unsure(config, table)
    if config.abstain_below is not None and reason:
        raise ConfigError(f"abstain_below is {config.abstain_below:g}, but there is no confidence: {reason}")


def _check_order(config: RunConfig, table: Table) -> None:
    """Seats that are asked by cost have a price: found out before the first call."""
    if _settings(table).get("stop_order", "seats") != "cost":
        return
    prices = read_prices(Path(config.prices)) if config.prices else None
    for seat, spec in zip(table.seats, table.specs, strict=True):
        if price_of(spec, prices) is None:
            raise unpriced(seat)


def jail(config: RunConfig) -> Sandbox | None:
    """The sandbox that a config allows; None: programs may not run. Raises MissingSandbox where it does not work."""
    return sandbox(config.allow_code_execution) if config.allow_code_execution else None


def _check_keys(task: LoadedTask) -> None:
    """Every key is an answer of its question's kind: found out before the first call, not after the last."""
    for question, key in task.pairs:
        if key is not None and key.answer is not None and canonical(question, key.answer) is None:
            raise DataError(
                f"key of question {question.id}",
                f"{key.answer!r} is no answer of kind {question.kind}",
                hint="correct the key, or the question's kind",
            )


def forecast(table: Table, task: LoadedTask) -> Forecast:
    """Calls and tokens, from the method's own bounds and the length of the first prompts."""
    least, most = load("methods", table.method).calls(table.settings, len(table.seats))
    n = len(task.pairs)
    longest = max(seat.sampling.max_tokens for seat in table.seats)
    probe = [question for question, _ in task.pairs[:50]]
    first = sum(_first_prompt_tokens(table, question) for question in probe) / max(len(probe), 1)
    return Forecast(n, n * least, n * most, round(n * most * first), n * most * longest)


def _first_prompt_tokens(table: Table, question: Question) -> float:
    prompt = load("methods", table.method).PROMPTS[0]
    return sum(_prompt_tokens(seat, prompt, question) for seat in table.seats) / len(table.seats)


def _prompt_tokens(seat: Seat, prompt: str, question: Question) -> int:
    words = dialect(seat.dialect)
    unknown_yet: dict[str, Any] = dict.fromkeys(own_fields(words, prompt), "")
    messages = render(words, prompt, question, system=seat.system, own=None, peers=(), **unknown_yet)
    return sum(approximate_tokens(message.content) for message in messages)


@dataclass(slots=True)
class Live:
    """What is open while a council works: agents, and the counters their traffic shares."""

    agents: tuple[Agent, ...]
    tally: Tally
    budget: Budget | None


class Pool:
    """What the runs of one process share: a backend per model, so weights are loaded once; a limiter per endpoint; the
    calls under way, so two runs that ask the same at the same time send one call; and the budget of them all."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget = budget
        self.flights: Flights = {}
        self._limiters: dict[str, Limiter] = {}
        self._backends: dict[str, Backend] = {}

    def backend(self, spec: ModelSpec) -> Backend:
        """The model's backend without traffic; connected at the first time."""
        key = repr(spec)
        if key not in self._backends:
            self._backends[key] = connect(spec)
        return self._backends[key]

    def limiter(self, spec: ModelSpec, concurrency: int) -> Limiter | None:
        """One per remote endpoint; what runs in this process schedules itself."""
        service = services()[spec.service]
        if not service.get("remote", "base_url" in service or spec.service == "azure"):
            return None
        endpoint = f"{spec.service} {spec.base_url or ''}"
        return self._limiters.setdefault(endpoint, Limiter(concurrency))

    async def keep(self, specs: Iterable[ModelSpec]) -> None:
        """Closes the backends of all other models, which frees their weights."""
        kept = {repr(spec) for spec in specs}
        for key in [key for key in self._backends if key not in kept]:
            await self._backends.pop(key).close()

    async def close(self) -> None:
        await self.keep(())


def make_budget(config: BudgetConfig) -> Budget | None:
    limits = config.model_dump(exclude_none=True)
    return Budget(**limits) if limits else None


class Traffic(Protocol):
    """What a config says about the calls themselves; the run's and the judges' configs both do."""

    @property
    def seed(self) -> int: ...
    @property
    def budget(self) -> BudgetConfig: ...
    @property
    def prices(self) -> str | None: ...
    @property
    def concurrency(self) -> int: ...
    @property
    def retries(self) -> int: ...


@asynccontextmanager
async def opened(
    table: Table, config: RunConfig, store: Store | None, tally: Tally | None = None, pool: Pool | None = None
) -> AsyncIterator[Live]:
    """A backend per model with all its traffic, and the live agents of a run's table.

    Args:
        pool: whose backends and budget serve; it stays open. None: one of its own, closed after.
    """
    own = pool or Pool(make_budget(config.budget))
    try:
        for seat, spec in zip(table.seats, table.specs, strict=True):
            _ensure_recorded(own.backend(spec), table, seat)
        async with live_agents(table.seats, table.specs, config, store, tally, own) as live:
            yield live
    finally:
        if pool is None:
            await own.close()


@asynccontextmanager
async def live_agents(
    seats: Sequence[Seat],
    specs: Sequence[ModelSpec],
    traffic: Traffic,
    store: Store | None,
    tally: Tally | None = None,
    pool: Pool | None = None,
) -> AsyncIterator[Live]:
    """The same for any seats, each with its model's spec."""
    own = pool or Pool(make_budget(traffic.budget))
    try:
        yield agents_in(own, seats, specs, traffic, store, tally)
    finally:
        if pool is None:
            await own.close()


def agents_in(
    pool: Pool,
    seats: Sequence[Seat],
    specs: Sequence[ModelSpec],
    traffic: Traffic,
    store: Store | None,
    tally: Tally | None = None,
) -> Live:
    """The same in a pool that its owner closes."""
    tally = tally or Tally()
    prices = read_prices(Path(traffic.prices)) if traffic.prices else None
    backends = {repr(spec): _wrapped(spec, traffic, store, tally, pool, prices) for spec in specs}
    agents = tuple(
        _agent(seat, backends[repr(spec)], price_of(spec, prices)) for seat, spec in zip(seats, specs, strict=True)
    )
    return Live(agents, tally, pool.budget)


def _wrapped(
    spec: ModelSpec,
    traffic: Traffic,
    store: Store | None,
    tally: Tally,
    pool: Pool,
    prices: Mapping[str, Price] | None,
) -> Backend:
    """A model's backend in this traffic."""
    return wrap(
        pool.backend(spec),
        calls=store.calls if store else None,
        flights=pool.flights,
        limiter=pool.limiter(spec, traffic.concurrency),
        budget=pool.budget,
        price=price_of(spec, prices),
        tally=tally,
        seed=traffic.seed,
        attempts=traffic.retries,
    )


def _agent(seat: Seat, backend: Backend, price: Price | None) -> Agent:
    """The seat with its model behind it, and what is known of the model's window and price."""
    raw = unwrap(backend)
    window: int | None = getattr(raw, "context_length", None)
    count = getattr(raw, "count_tokens", None)
    per_million = price.output if price else None
    return Agent(seat, backend, dialect(seat.dialect), window=window, count=count, price=per_million)


def _ensure_recorded(backend: Backend, table: Table, seat: Seat) -> None:
    """Recorded outputs must hold the samples and rounds the method will ask for."""
    ensure = getattr(backend, "ensure", None)
    if ensure is None:
        return
    asks: Callable[[Any], tuple[int, int]] = getattr(load("methods", table.method), "asks", lambda _: (1, 1))
    samples, rounds = asks(table.settings)
    twins = [s.sample for s in table.seats if s.model == seat.model]
    for number in range(rounds):
        ensure(max(twins) + samples - 1, number)


@dataclass(frozen=True, slots=True)
class RunResult:
    """A run as it stands: one row per question, in the task's order; unasked questions have no row."""

    id: str
    name: str
    task: str
    table: Table
    rows: tuple[Row, ...]
    asked: int
    """Questions of the run; more than rows when the budget stopped it."""
    stopped: str | None
    """Why it ended early, or None."""
    tally: Tally
    abstain_below: float | None = None
    """Least confidence of an answer; None: any is enough, or there is none."""

    @property
    def score(self) -> Score:
        return score(_council_name(self.table), self.task, self.rows)

    def seat_scores(self) -> dict[int, Score]:
        """Seat → its first answers alone, for the seats that were asked for one; empty for a method with one seat, and
        for a vote that stopped before every seat was asked (`stopped_short`): there seats do not compare."""
        if len(self.table.seats) < 2 or self.stopped_short():
            return {}
        asked = {index for row in self.rows for index, mark in enumerate(row.seats) if mark is not None}
        seats = [seat for seat in self.table.seats if seat.index in asked]
        return {seat.index: seat_score(_seat_name(seat), self.task, self.rows, seat.index) for seat in seats}

    def stopped_short(self) -> int:
        """Questions on which the vote stopped before every seat was asked."""
        return sum(map(stopped_short, self.rows))

    def stopping(self) -> Stopped | None:
        """What stopping early saved; None where nothing could stop."""
        return stopping(self.rows)

    def sureness(self) -> Sureness | None:
        """The confidences against the keys; None without either."""
        return sureness(self.rows)

    def pass_at(self) -> Mapping[int, float]:
        """k → pass@k, for programs with several final answers; else empty."""
        return pass_at(self.rows)

    def failures(self) -> Counter[str]:
        """Reasons of failed attempts, most frequent first."""
        return Counter(r.reason or "unknown" for r in self.rows if r.status == "failed")

    def frame(self) -> pd.DataFrame:
        """One line per question: answer, key, credit, share, margin, confidence, status, calls, tokens, cost, votes
        asked for where the vote could stop, seat answers."""
        try:
            import pandas as pd
        except ModuleNotFoundError:
            raise MissingDependency("pandas", "report") from None
        return pd.DataFrame(list(map(_flat, self.rows)))


def _council_name(table: Table) -> str:
    models = Counter(short_name(seat.model) for seat in table.seats)
    who = " + ".join(f"{n} × {model}" if n > 1 else model for model, n in models.items())
    return f"{table.method} of {who}" if len(table.seats) > 1 else f"{table.method} {who}"


def _seat_name(seat: Seat) -> str:
    return f"{seat.index + 1}. {short_name(seat.model)}" + (f" as {seat.persona}" if seat.persona else "")


def _flat(r: Row) -> dict[str, Any]:
    known = {f.name: getattr(r, f.name) for f in dataclasses.fields(r) if f.name not in _NESTED}
    used = {"calls": r.usage.calls, "tokens": r.usage.tokens, "cost_usd": r.usage.cost_usd}
    stop = {"asked": r.stopping.asked if r.stopping else None}
    return known | used | stop | {f"seat_{i + 1}": mark.answer if mark else None for i, mark in enumerate(r.seats)}


_NESTED = ("seats", "rounds", "usage", "stopping")
"""Fields of a row that hold more than one value."""


Progress = Callable[[Row, Tally], None]


async def execute(
    prepared: Prepared,
    store: Store,
    *,
    progress: Progress | None = None,
    tally: Tally | None = None,
    pool: Pool | None = None,
) -> RunResult:
    """Asks what is not answered yet and returns the scored run.

    Args:
        progress: is called after each attempt with its row and the live counters; finished ones of an earlier run
            come first.
        tally: counters to use, for who wants to watch them between two questions.
        pool: what this run shares with others of the process, its budget in the place of the config's; None: nothing.
    """
    worker = _Worker(prepared, store, progress or (lambda row, tally: None), tally or Tally())
    with allowing(jail(prepared.config)):
        todo = await worker.restore()
        if not todo:  # nothing is asked, so no model needs to be reachable
            _begin(prepared, store)
            return worker.finish()
        async with opened(prepared.table, prepared.config, store, worker.tally, pool) as live:
            _begin(prepared, store)
            worker.live = live
            try:
                await each(todo, worker.work, _width(prepared))
            finally:
                result = worker.finish()
        return result


def run(prepared: Prepared, store: Store, *, progress: Progress | None = None, tally: Tally | None = None) -> RunResult:
    """`execute` from synchronous code."""
    return block(execute(prepared, store, progress=progress, tally=tally))


def _width(prepared: Prepared) -> int:
    """Questions under way: enough that the endpoints always see their full concurrency."""
    return min(len(prepared.attempts), max(prepared.config.concurrency, 64)) or 1


def _begin(prepared: Prepared, store: Store) -> None:
    store.put_questions(prepared.task.pairs)
    store.begin_run(
        prepared.id,
        prepared.name,
        prepared.config.model_dump(mode="json", exclude_defaults=True),
        [(a.id, a.question_id, position) for position, a in enumerate(prepared.attempts)],
    )


def _status(result: RunResult) -> str:
    return "stopped" if result.stopped or len(result.rows) < result.asked else "finished"


def _totals(result: RunResult) -> dict[str, Any]:
    return {**dataclasses.asdict(result.score), "stopped": result.stopped, "asked": result.asked}


@dataclass(slots=True)
class _Worker:
    """Holds the rows of a run while it goes on."""

    prepared: Prepared
    store: Store
    progress: Progress
    tally: Tally
    live: Live | None = None
    stopped: str | None = None
    rows: dict[str, Row] = dataclasses.field(default_factory=dict)

    async def restore(self) -> list[int]:
        """Takes over finished attempts from the store; returns the positions still to be asked."""
        ids = [attempt.id for attempt in self.prepared.attempts]
        done = [id for id, status in self.store.statuses(ids).items() if status != "failed"]
        decisions = _stored_decisions(self.store, done, self.prepared.config, self.prepared.table)
        places = {attempt.id: position for position, attempt in enumerate(self.prepared.attempts)}
        known = stored_labels(self.store, dict(zip(ids, self.prepared.task.pairs, strict=True)))
        for transcript in self.store.transcripts(done):
            id = transcript.attempt.id
            labels = known.get(id) or await self._label(places[id], transcript)
            self._take(places[id], transcript, decisions.get(id), labels)
        return [place for place, id in enumerate(ids) if id not in self.rows]

    async def work(self, place: int) -> bool:
        assert self.live is not None
        question, _ = self.prepared.task.pairs[place]
        attempt = self.prepared.attempts[place]
        transcript = await solve_attempt(question, self.live.agents, attempt, self.prepared.table.settings)
        if transcript.failure is not None and transcript.failure.kind == BUDGET_STOPS:
            self.stopped = transcript.failure.message
            return False
        self.store.put_transcript(transcript)
        self._take(place, transcript, None, await self._label(place, transcript))
        return True

    async def _label(self, place: int, transcript: Transcript) -> Sequence[Label]:
        """Runs the tests of a key; the other kinds of answer are compared with theirs at no cost whenever needed."""
        question, key = self.prepared.task.pairs[place]
        if question.kind != PROGRAM or key is None or transcript.status == "failed":
            return ()
        labels = await label(question, key, transcript)
        self.store.put_records("label", [(transcript.attempt.id, each) for each in labels])
        return labels

    def _take(self, place: int, transcript: Transcript, decision: Decision | None, labels: Sequence[Label]) -> None:
        question, key = self.prepared.task.pairs[place]
        if decision is None and transcript.status != "failed":
            decision = self._decide(question, transcript)
        scored = row(question, key, transcript, decision, labels)
        self.rows[transcript.attempt.id] = scored
        self.progress(scored, self.tally)

    def _decide(self, question: Question, transcript: Transcript) -> Decision:
        config = self.prepared.config
        decision = decided(config, self.prepared.table, question, transcript)
        self.store.put_decision(decision, config.tie)
        return decision

    def finish(self) -> RunResult:
        """The run as it stands now, its end written down."""
        result = self.result()
        self.store.finish_run(self.prepared.id, _status(result), _totals(result))
        return result

    def result(self) -> RunResult:
        prepared = self.prepared
        rows = tuple(self.rows[a.id] for a in prepared.attempts if a.id in self.rows)
        return RunResult(
            prepared.id, prepared.name, prepared.task.task, prepared.table, rows, len(prepared.attempts),
            self.stopped, self.tally, prepared.config.abstain_below,
        )  # fmt: skip


def _stored_decisions(store: Store, ids: Sequence[str], config: RunConfig, table: Table) -> Mapping[str, Decision]:
    """Attempt id → the decision made before, by this very rule, tie rule and confidence."""
    name = rule_name(config.rule, calibrated(config, table.method, _settings(table)))
    return store.decisions(ids, name, config.tie)


def stored_labels(store: Store, pairs: Mapping[str, tuple[Question, Key | None]]) -> Mapping[str, list[Label]]:
    """Attempt id → what the tests of its question's key, as they are now, said about its programs."""
    checkers = {id: checker(question, key) for id, (question, key) in pairs.items() if key and question.kind == PROGRAM}
    found = store.records("label", Label, checkers) if checkers else {}
    return {id: [each for each in labels if each.checker == checkers[id]] for id, labels in found.items()}


def reload(store: Store, name: str) -> RunResult:
    """A stored run as it stands, scored from its records: no task file is read and no call is made.

    Raises:
        UnknownName: no run of that name or id.
    """
    return _reread(store, name, lambda *one: None)


def panel(store: Store, name: str) -> Panel:
    """A stored run as a table to measure; no call is made.

    Raises:
        UnknownName: no run of that name or id.
    """
    read: list[Reread] = []
    result = _reread(store, name, lambda *one: read.append(one))
    found = panel_of(result.name, f"run {result.id}", result.task, read)
    unasked = result.asked - len(result.rows)
    if not unasked:
        return found
    return dataclasses.replace(found, omitted={**found.omitted, "questions not asked": unasked})


Reread = tuple[Question, Key | None, Transcript, Row, Sequence[Label]]


def _reread(
    store: Store, name: str, take: Callable[[Question, Key | None, Transcript, Row, Sequence[Label]], None]
) -> RunResult:
    """Goes through a stored run once; `take` sees every attempt as it was scored."""
    stored = store.run(name)
    config = make_config(stored.config, f"run {stored.name}")
    pairs = store.run_questions(stored.id)
    attempts = store.run_attempts(stored.id)
    ids = [attempt_id for attempt_id, _ in attempts]
    labels = stored_labels(store, {id: pairs[question_id] for id, question_id in attempts})
    table: Table | None = None
    decisions: Mapping[str, Decision] = {}
    rows = []
    for transcript in store.transcripts(ids):
        if table is None:
            table = stored_table(transcript.attempt)
            decisions = _stored_decisions(store, ids, config, table)
        question, key = pairs[transcript.attempt.question_id]
        decision = decisions.get(transcript.attempt.id)
        if decision is None and transcript.status != "failed":
            decision = decided(config, table, question, transcript)
        known = labels.get(transcript.attempt.id, ())
        rows.append(row(question, key, transcript, decision, known))
        take(question, key, transcript, rows[-1], known)
    stopped = stored.totals.get("stopped")
    task = stored.totals.get("task") or config.task or "unknown"
    return RunResult(
        stored.id, stored.name, task, table or seat_table(config), tuple(rows), len(attempts), stopped, Tally(),
        config.abstain_below,
    )  # fmt: skip


def stored_table(attempt: Attempt) -> Table:
    """Who sat there, as a stored attempt has it."""
    named = [seat.model.partition("/") for seat in attempt.agents]
    specs = tuple(ModelSpec(service, name) for service, _, name in named)
    return Table(attempt.method, attempt.settings, attempt.agents, specs)
