"""What `pluribus evaluate` is given: which word names a model, a council, a run or a file, and what each is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pluribus.backends import parse, services
from pluribus.cli import _layers
from pluribus.cli._evaluated_files import sheets_of
from pluribus.cli._flags import CouncilFlags, LimitFlags, SamplingFlags, TaskFlags
from pluribus.cli._stores import is_export, reading
from pluribus.config import RunConfig, make_config
from pluribus.errors import ConfigError, DataError, UnknownName, UsageError
from pluribus.evaluating import Kind, Sheet, of_run
from pluribus.load import load
from pluribus.run import Prepared, prepare
from pluribus.run import questions as load_questions
from pluribus.store import Store
from pluribus.tasks import ALIASES, LoadedTask

Template = Literal["auto", "on", "off"]
_PLAIN = (
    r"{% for message in messages %}{{ message['content'] }}{% if not loop.last %}{{ '\n\n' }}{% endif %}{% endfor %}"
)
"""The form that a model without a template gets in this process."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """How subjects are asked, and about what."""

    task: TaskFlags
    sampling: SamplingFlags
    limits: LimitFlags
    samples: int = 1
    prompts: str | None = None
    template: Template = "auto"
    home: Path | None = None

    @property
    def tasks(self) -> list[str]:
        """The tasks that are named."""
        return list(dict.fromkeys(name.strip() for name in (self.task.task or "").split(",") if name.strip()))


@dataclass(frozen=True, slots=True)
class Named:
    """A subject as the user wrote it, and what it is."""

    name: str
    kind: Kind


Part = Sheet | Prepared
"""What is known of a subject on one task: its answers, or what has to be asked."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One subject on one task."""

    named: Named
    part: Part

    @property
    def task(self) -> str:
        return self.part.task if isinstance(self.part, Sheet) else self.part.task.task

    @property
    def ids(self) -> frozenset[str]:
        """Of its questions."""
        if isinstance(self.part, Sheet):
            return self.part.ids
        return frozenset(question.id for question, _ in self.part.task.pairs)


def identified(names: Sequence[str], home: Path | None) -> list[Named]:
    """What each name is: an existing path wins, then a run of the workspace, then a model.

    Raises:
        UsageError: it is none of them, a folder without a model, or stands twice.
    """
    found = [Named(name, _kind(name, home)) for name in names]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise UsageError(f"{name} is named twice", hint="name each subject once")
    return found


def _kind(name: str, home: Path | None) -> Kind:
    path = Path(name)
    if not name.strip():
        raise UsageError("the name of a subject is empty", hint="name a model, a council file, a run or a file")
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise UsageError(f"{name} is a folder that holds no model", hint="name a model's folder, or one file")
        return "model"
    if path.is_file():
        return "council" if path.suffix in (".yaml", ".yml") else "run" if is_export(path) else "file"
    if _is_run(name, home):
        return "run"
    try:
        parse(name)
    except UsageError as error:
        if "/" not in name or isinstance(error, UnknownName):
            raise UsageError(
                f"{name!r} is no file, no run and no model", hint="a model is written service/name; see `pluribus list`"
            ) from None
        raise
    return "model"


def _is_run(name: str, home: Path | None) -> bool:
    if not Store.file(home).exists():
        return False
    try:
        with Store.open(home) as store:
            store.run(name)
    except UnknownName:
        return False
    return True


# --- subjects on tasks -----------------------------------------------------------------------------------------------


def entries(found: Sequence[Named], wishes: Wishes) -> list[Entry]:
    """Every subject on every task it belongs to, in the order given; nobody is asked yet."""
    tasks = _loaded(found, wishes)
    return [entry for named in found for entry in _entries(named, wishes, tasks)]


def _loaded(found: Sequence[Named], wishes: Wishes) -> list[LoadedTask]:
    """The named tasks; where stored runs alone are measured on all their questions, none is needed."""
    chosen = any((wishes.task.split, wishes.task.limit, wishes.task.data))
    if chosen and not wishes.tasks and not any(named.kind == "council" for named in found):
        raise ConfigError("--split, --limit and --data say nothing without a task", hint="say --task NAME")
    if not wishes.tasks or (all(named.kind == "run" for named in found) and not chosen):
        return []
    if wishes.task.data and len(wishes.tasks) > 1:
        raise ConfigError(f"--data is one file, and --task names {len(wishes.tasks)}", hint="evaluate one at a time")
    return [load_questions(_layers.make(None, task=replace(wishes.task, task=name))) for name in wishes.tasks]


def _entries(named: Named, wishes: Wishes, tasks: Sequence[LoadedTask]) -> Iterator[Entry]:
    if named.kind == "run":
        yield Entry(named, _run(named, wishes, tasks))
    elif named.kind == "file":
        for sheet in sheets_of(Path(named.name), tasks):
            yield Entry(named, sheet)
    elif named.kind == "model":
        if not tasks:
            raise ConfigError(f"no task to ask {named.name} about", hint="say --task NAME (see `pluribus list tasks`)")
        for task in tasks:
            yield Entry(named, prepare(_model(named.name, task, wishes), task))
    else:
        for config, known in _councils(Path(named.name), wishes, tasks):
            yield Entry(named, prepare(config, known))


def _run(named: Named, wishes: Wishes, tasks: Sequence[LoadedTask]) -> Sheet:
    """The run; of its questions those of the named task, where its questions are known."""
    with reading(named.name, wishes.home) as (store, name):
        sheet = of_run(store, name)
    if not sheet.rows:
        raise DataError(f"run {sheet.subject}", "no question was answered", hint="go on with `pluribus run --resume`")
    wanted = {task.task: task for task in tasks}
    known = [*wanted] or [_full_name(name) for name in wishes.tasks]
    if known and sheet.task not in known:
        raise DataError(
            f"run {sheet.subject}", f"it is of task {sheet.task}, not of {' or '.join(known)}",
            hint=f"name a run of that task, or say --task {sheet.task}",
        )  # fmt: skip
    return _within(sheet, wanted[sheet.task]) if sheet.task in wanted else sheet


def _full_name(task: str) -> str:
    """As a run writes it: aliases resolved.

    >>> _full_name("pro_medicine"), _full_name("MMLU-Pro")
    ('mmlu:professional_medicine', 'mmlu_pro')
    """
    name, colon, subset = ALIASES.get(task, task).partition(":")
    return f"{name.lower().replace('-', '_')}{colon}{subset}"


def _within(sheet: Sheet, task: LoadedTask) -> Sheet:
    asked = {question.id for question, _ in task.pairs}
    rows = tuple(row for row in sheet.rows if row.question.id in asked)
    if not rows:
        raise DataError(
            f"run {sheet.subject}", f"none of its questions is in task {task.task}, split {task.split}",
            hint="name another --split, --limit or --data",
        )  # fmt: skip
    left, missing = len(sheet.rows) - len(rows), len(asked) - len(rows)
    remarks = [f"questions outside of the task's {len(asked):,}: {left:,}, left out"] if left else []
    remarks += [f"questions of the task that it was not asked: {missing:,}"] if missing else []
    return replace(sheet, rows=rows, remarks=(*sheet.remarks, *remarks))


# --- what is asked ---------------------------------------------------------------------------------------------------


def _model(name: str, task: LoadedTask, wishes: Wishes) -> RunConfig:
    """One model: asked once, or K times as seats that differ in nothing but their sample and vote."""
    spelled = f"local/{name}" if Path(name).is_dir() else name
    method = "single" if wishes.samples == 1 else "vote"
    number = None if wishes.samples == 1 else wishes.samples
    seats = CouncilFlags(method=method, agent_models=[spelled], num_agents=number, prompts=wishes.prompts)
    config = _layers.make(
        None, task=replace(wishes.task, task=task.task), seats=seats, sampling=wishes.sampling, limits=wishes.limits
    )
    return _in_template(config, spelled, wishes.template)


def _councils(path: Path, wishes: Wishes, tasks: Sequence[LoadedTask]) -> Iterator[tuple[RunConfig, LoadedTask]]:
    """As `pluribus run FILE` would, on its own task or on those that are named."""
    named: list[LoadedTask | None] = [*tasks] or [None]
    for known in named:
        flags = replace(wishes.task, task=known.task if known else None)
        config = _layers.make(path, task=flags, sampling=wishes.sampling, limits=wishes.limits)
        yield config, known or load_questions(config)


def _in_template(config: RunConfig, model: str, template: Template) -> RunConfig:
    """The config with its model told whether to write messages in a chat template."""
    if template == "auto":
        return config
    spec = parse(model)
    if "chat_template" in load("backends", services()[spec.service]["backend"]).OPTIONS:
        option: dict[str, Any] = {"chat_template": template}
    elif spec.service == "vllm":
        option = {"extra_body": {"chat_template": _PLAIN, "add_generation_prompt": False}} if template == "off" else {}
    else:
        raise ConfigError(
            f"--chat-template {template}: {spec.service}/ takes no word on templates", hint="drop it for this model"
        )
    values = config.model_dump(mode="json", exclude_defaults=True)
    return make_config({**values, "models": [{"model": model, **option}]})
