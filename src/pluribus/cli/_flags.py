"""The flags that commands share, in groups: a group is a frozen dataclass, and a command takes it as one value.

A flag's field has the name of the council file's entry where there is one. None: nothing was said.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from typer import Option

Tie = Literal["first", "random", "abstain", "fractional"]
Jail = Literal["bubblewrap", "rlimit"]
Topology = Literal["decentralized", "sparse", "centralized"]


SWITCH = " "
"""A switch takes no value: nothing stands where the others name theirs."""


def _flag(help: str, *names: str, panel: str, metavar: str | None = None) -> Any:
    return Option(*names, help=help, metavar=metavar, rich_help_panel=panel, show_default=False)


def _asking(help: str, *names: str, metavar: str | None = None) -> Any:
    return _flag(help, *names, panel="Questions", metavar=metavar)


def _seating(help: str, *names: str, metavar: str | None = None) -> Any:
    return _flag(help, *names, panel="Council", metavar=metavar)


def _speaking(help: str, *names: str, metavar: str | None = None) -> Any:
    return _flag(help, *names, panel="Sampling", metavar=metavar)


def _deciding(help: str, *names: str, metavar: str | None = None) -> Any:
    return _flag(help, *names, panel="Decision", metavar=metavar)


def _limiting(help: str, *names: str, metavar: str | None = None) -> Any:
    return _flag(help, *names, panel="Limits", metavar=metavar)


@dataclass(frozen=True, slots=True)
class TaskFlags:
    """Which questions."""

    task: Annotated[str | None, _asking("Name of a task: see `pluribus list tasks`.", metavar="NAME")] = None
    data: Annotated[str | None, _asking("A local file instead of the hub's.", metavar="FILE")] = None
    split: Annotated[str | None, _asking("Split; else the task's usual one.", metavar="NAME")] = None
    limit: Annotated[int | None, _asking("Ask the first N questions only.", metavar="N")] = None
    skip_bad: Annotated[bool | None, _asking("Go on without unreadable lines.", "--skip-bad", metavar=SWITCH)] = None


@dataclass(frozen=True, slots=True)
class CouncilFlags:
    """Who sits at the table and how they work together."""

    method: Annotated[
        str | None, _seating("Protocol: see `pluribus list methods`. [dim](vote)[/dim]", metavar="NAME")
    ] = None
    agent_models: Annotated[
        list[str] | None,
        _seating(
            "Models, with commas between: service/model, service/model@URL or a short name; seats cycle over them.",
            metavar="MODELS",
        ),
    ] = None
    num_agents: Annotated[
        int | None, _seating("Seats; else one per model, or the method's own number.", metavar="N")
    ] = None
    personas: Annotated[str | None, _seating("Persona set, or a YAML file.", metavar="SET")] = None
    multi_persona: Annotated[
        bool | None,
        _seating("Another persona on each seat, of the set that suits the task.", "--multi-persona", metavar=SWITCH),
    ] = None
    baseline_a: Annotated[
        bool | None, _seating("Control: neutral text as long as each persona.", "--baseline-a", metavar=SWITCH)
    ] = None
    baseline_b: Annotated[bool | None, _seating("Control: one persona for all.", "--baseline-b", metavar=SWITCH)] = None
    debate_rounds: Annotated[int | None, _seating("Debate: rounds after the first answers.", metavar="N")] = None
    topology: Annotated[
        Topology | None, _seating("Debate: who reads whom: decentralized, sparse or centralized.", metavar="SHAPE")
    ] = None
    method_config: Annotated[
        Path | None, _seating("Settings from a method's own YAML file; --set wins over it.", metavar="FILE")
    ] = None
    set: Annotated[list[str] | None, _seating("Any setting of the method; may be repeated.", metavar="KEY=VALUE")] = (
        None
    )
    prompts: Annotated[
        str | None, _seating("Prompts: an embedded dialect, or a folder of your own.", metavar="DIR")
    ] = None
    load_in_4bit: Annotated[
        bool | None, _seating("Load models that run here in 4 bits.", "--load-in-4bit", metavar=SWITCH)
    ] = None
    load_in_8bit: Annotated[
        bool | None, _seating("Load models that run here in 8 bits.", "--load-in-8bit", metavar=SWITCH)
    ] = None


@dataclass(frozen=True, slots=True)
class SamplingFlags:
    """How completions are drawn; each wins over seat, persona and preset."""

    temperature: Annotated[float | None, _speaking("0 to 5. [dim](1.0)[/dim]", metavar="T")] = None
    top_p: Annotated[float | None, _speaking("Above 0, at most 1. [dim](0.9)[/dim]", metavar="P")] = None
    max_tokens: Annotated[int | None, _speaking("Longest reply. [dim](4096)[/dim]", metavar="N")] = None
    preset: Annotated[
        str | None, _speaking("Defaults of a published code: see `pluribus list presets`.", metavar="NAME")
    ] = None
    seed: Annotated[
        int | None, _speaking("Of sampling, persona controls and random ties. [dim](0)[/dim]", metavar="N")
    ] = None


@dataclass(frozen=True, slots=True)
class DecisionFlags:
    """How the answers become one."""

    rule: Annotated[
        str | None, _deciding("How votes are counted: plurality or weighted. [dim](plurality)[/dim]", metavar="NAME")
    ] = None
    tie: Annotated[
        Tie | None,
        _deciding("What a shared lead gives: first, random, abstain or fractional. [dim](first)[/dim]", metavar="NAME"),
    ] = None
    calibration: Annotated[
        str | None, _deciding("Weights and confidence learned by `pluribus calibrate`.", metavar="FILE")
    ] = None
    abstain_below: Annotated[
        float | None, _deciding("No answer where the confidence is less, 0 to 1.", metavar="P")
    ] = None


@dataclass(frozen=True, slots=True)
class LimitFlags:
    """What must not be exceeded."""

    budget_calls: Annotated[int | None, _limiting("At most N calls sent.", metavar="N")] = None
    budget_tokens: Annotated[int | None, _limiting("At most N tokens.", metavar="N")] = None
    budget_usd: Annotated[float | None, _limiting("At most this many US dollars.", metavar="USD")] = None
    budget_seconds: Annotated[float | None, _limiting("At most this many seconds.", metavar="S")] = None
    concurrency: Annotated[int | None, _limiting("Calls in flight per endpoint. [dim](256)[/dim]", metavar="N")] = None
    retries: Annotated[int | None, _limiting("Tries per call. [dim](5)[/dim]", metavar="N")] = None
    prices: Annotated[str | None, _limiting("Your own prices (TOML).", metavar="FILE")] = None
    allow_code_execution: Annotated[
        Jail | None,
        _limiting(
            "Run the programs that models write, in a sandbox of bubblewrap; =rlimit: with limits, without walls.",
            metavar="[=rlimit]",
        ),
    ] = None


Council = Annotated[Path | None, Option("--council", help="A council file (YAML); flags win over it.", metavar="FILE")]
Json = Annotated[bool, Option("--json", metavar=SWITCH, help="One JSON object on stdout, nothing else there.")]
Home = Annotated[Path | None, Option(help="Workspace folder. [dim](.pluribus, or PLURIBUS_HOME)[/dim]", metavar="DIR")]


def said(group: Any) -> dict[str, Any]:
    """The flags of a group that were given.

    >>> said(TaskFlags(task="sums", limit=3))
    {'task': 'sums', 'limit': 3}
    """
    values = {field.name: getattr(group, field.name) for field in fields(group)}
    return {name: value for name, value in values.items() if value is not None and value != []}


def flat(body: Callable[..., int]) -> Callable[..., int]:
    """The command as the terminal sees it: a parameter that is a group of flags becomes the flags of the group."""
    hints = get_type_hints(body, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    def command(**values: Any) -> int:
        whole = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})  # type: ignore[operator]  # a dataclass type is callable
            for name, group in groups.items()
        }
        return body(**values, **whole)

    command.__doc__ = _unwrapped(body.__doc__ or "")
    vars(command)["__signature__"] = inspect.Signature(_parameters(body, hints))
    return command


def _unwrapped(doc: str) -> str:
    """Each paragraph on a line of its own: the terminal breaks lines where it needs to.

    >>> _unwrapped("Do it.\\n\\n    And then\\n    stop.")
    'Do it.\\n\\nAnd then stop.'
    """
    return "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(doc).split("\n\n"))


def _parameters(body: Callable[..., int], hints: dict[str, Any]) -> list[inspect.Parameter]:
    flags: list[inspect.Parameter] = []
    for parameter in inspect.signature(body).parameters.values():
        hint = hints[parameter.name]
        if is_dataclass(hint):
            kinds = get_type_hints(hint, include_extras=True)
            flags += [_keyword(field.name, kinds[field.name], field.default) for field in fields(hint)]
        else:
            flags.append(_keyword(parameter.name, hint, parameter.default))
    return flags


def _keyword(name: str, hint: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
