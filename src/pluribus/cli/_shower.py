"""What `pluribus show` does."""

from __future__ import annotations

import json as jsonlib
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from string import Template
from typing import Any

from rich.console import Console
from rich.rule import Rule
from rich.table import Table

from pluribus import cli
from pluribus.agents import SeatPlan, seats
from pluribus.backends import parse
from pluribus.cli import _runner, _screen, _tables, _transcripts
from pluribus.cli._asker import shown, stopped, sure
from pluribus.cli._stores import reading
from pluribus.codec import plain
from pluribus.config import METHOD_ALIASES, make_config
from pluribus.errors import ConfigError, UnknownName, UsageError
from pluribus.load import load
from pluribus.personas import Persona, sets
from pluribus.personas import personas as persona_set
from pluribus.prompts import Dialect, Peer, dialect, render
from pluribus.run import RunResult, decided, reload, stored_table
from pluribus.store import RunRow
from pluribus.types import Decision, Message, Question, Transcript

# --- a run ---------------------------------------------------------------------------------------------------------


def whole(name: str, *, home: Path | None, json: bool) -> int:
    """Seating, scores and troubles of a stored run."""
    with reading(name, home) as (store, found):
        stored, result = store.run(found), reload(store, found)
    if json:
        about = {"status": stored.status, "created": stored.created, "config": dict(stored.config)}
        print(jsonlib.dumps({**_runner.as_object(result), **about}, ensure_ascii=False, indent=2))
        return cli.OK
    console = _screen.out()
    console.print(_facts(stored, result))
    console.print()
    console.print(_tables.seating(result.table))
    _runner.after(console, result)
    _point_at_one(console, result)
    return cli.OK


def _facts(stored: RunRow, result: RunResult) -> Table:
    config = make_config(stored.config, f"run {stored.name}")
    facts = _screen.grid()
    facts.add_row("run", _screen.text(f"{stored.name} ({stored.id})", style="bold"))
    facts.add_row("begun", f"{when(stored.created)}, {stored.status}")
    facts.add_row("task", _screen.text(f"{result.task}: {_screen.plural(result.asked, 'question')}"))
    facts.add_row("method", _screen.text(_tables.method_words(result.table)))
    facts.add_row("decision", _screen.text(_tables.decision_words(config, result.table)))
    return facts


def when(unix_s: float) -> str:
    """Local date and time to the minute."""
    return datetime.fromtimestamp(unix_s).astimezone().strftime("%Y-%m-%d %H:%M")


def _point_at_one(console: Console, result: RunResult) -> None:
    """Names a question worth reading: a wrong one, else the first."""
    wrong = [row for row in result.rows if row.credit == 0]
    for row in [*wrong, *result.rows][:1]:
        command = f"pluribus show {result.name} --question {row.question_id}"
        console.print(f"{'a wrong one' if wrong else 'one'} in full: {command}", markup=False, soft_wrap=True)


# --- one question --------------------------------------------------------------------------------------------------


def one(name: str, wanted: str, *, home: Path | None, json: bool) -> int:
    """A question's transcript with its decision."""
    with reading(name, home) as (store, found):
        stored = store.run(found)
        config = make_config(stored.config, f"run {stored.name}")
        attempt_id, question_id = _find(store.run_attempts(stored.id), wanted, stored.name)
        question, key = store.run_questions(stored.id)[question_id]
        transcript = store.get_transcript(attempt_id)
    if transcript is None:
        raise UsageError(f"question {question_id} of run {stored.name} was not asked yet")
    decision = None
    if transcript.status != "failed":
        decision = decided(config, stored_table(transcript.attempt), question, transcript)
    if json:
        parts = {"question": plain(question), "key": plain(key), "transcript": plain(transcript)}
        print(
            jsonlib.dumps({**parts, "decision": asdict(decision) if decision else None}, ensure_ascii=False, indent=2)
        )
        return cli.OK
    console = _screen.out()
    _transcripts.show(console, question, transcript, key)
    console.print()
    _conclude(console, question, transcript, decision, config.abstain_below)
    return cli.OK


def _find(attempts: list[tuple[str, str]], wanted: str, run: str) -> tuple[str, str]:
    """(attempt id, question id) by the question's id, how it begins, or its place."""
    near = [pair for pair in attempts if pair[1] == wanted] or [pair for pair in attempts if pair[1].startswith(wanted)]
    if len(near) == 1 or (near and near[0][1] == wanted):
        return near[0]
    if wanted.isdecimal() and 1 <= int(wanted) <= len(attempts):
        return attempts[int(wanted) - 1]
    raise UsageError(
        f"run {run} has no question {wanted!r}",
        hint=f"give an id, e.g. {attempts[0][1]}, or a place from 1 to {len(attempts)}" if attempts else "it has none",
    )


def _conclude(
    console: Console,
    question: Question,
    transcript: Transcript,
    decision: Decision | None,
    abstain_below: float | None,
) -> None:
    if transcript.failure is not None:
        console.print(_screen.line(f"{transcript.status}: {transcript.failure.message}", "yellow"))
    if decision is not None:
        votes = ", ".join(f"{answer}: {number:g}" for answer, number in decision.votes.items())
        console.print(
            _screen.text(f"decision: {shown(question, decision.answer)}  ({votes or 'no vote'})", style="bold")
        )
    for words in (stopped(transcript), sure(decision, abstain_below) if decision else None):
        if words is not None:
            console.print(_screen.text(words))


# --- prompts -------------------------------------------------------------------------------------------------------

SAMPLE = Question(
    "sample",
    "sample",
    "A shelf holds 12 books. 7 more are put on it, then 4 are lent out. How many are left?",
    "number",
)
"""What the prompts are shown with."""
_OWN = "12 + 7 = 19, and 19 - 4 = 15. {final answer: 15}"
_PEERS = (Peer("agent 2", "12 + 7 = 19. {final answer: 19}"), Peer("agent 3", "19 - 4 = 15. {final answer: 15}"))


def refuse_prompt_flags(**given: str | None) -> None:
    for name, value in given.items():
        if value is not None:
            what = f"METHOD {value!r}" if name == "method" else f"--{name}"
            raise ConfigError(f"{what} goes with `pluribus show prompt METHOD` only")


def prompt(method: str | None, *, prompts: str | None, personas: str | None, persona: str | None, json: bool) -> int:
    """Every prompt of a method, filled with a sample question."""
    if method is None:
        raise ConfigError("show prompt needs a method", hint="see `pluribus list methods`")
    module = load("methods", METHOD_ALIASES.get(method, method))
    words = dialect(prompts or "standard")
    system = _system(prompts, _persona(personas, persona))
    sent = {name: _filled(words, name, system) for name in module.PROMPTS}
    if json:
        print(jsonlib.dumps({name: plain(messages) for name, messages in sent.items()}, ensure_ascii=False, indent=2))
        return cli.OK
    console = _screen.out()
    for name, messages in sent.items():
        console.print(Rule(_screen.text(f"{name} ({words.name})", style="bold"), align="left", style="dim"))
        for message in messages:
            console.print(_screen.text(f"[{message.role}]", style="dim"))
            console.print(_screen.text(message.content))
        console.print()
    return cli.OK


def _persona(set_name: str | None, name: str | None) -> Persona | None:
    """The named persona, of the set that is named or of the one that has it; the set's first when only a set is."""
    if set_name is None and name is None:
        return None
    people = [person for one in ([set_name] if set_name else sets()) for person in persona_set(one)]
    if name is None:
        return people[0]
    found = next((person for person in people if person.name == name), None)
    if found is None:
        raise UnknownName("persona", name, {person.name for person in people})
    return found


def _system(prompts: str | None, persona: Persona | None) -> str | None:
    """The persona's words as a seat of this dialect would hear them."""
    plans = [SeatPlan(parse("scripted/echo"), persona=persona, prompts=prompts or "standard")]
    return seats(plans)[0].system


def _filled(words: Dialect, name: str, system: str | None) -> tuple[Message, ...]:
    """The prompt rendered; a field that only the method can fill stands as ‹field›."""
    if name not in words.texts:
        raise UnknownName(f"prompt of dialect {words.name}", name, words.texts)
    own_fields: dict[str, Any] = {
        field: f"‹{field}›"
        for field in Template(words.texts[name]).get_identifiers()
        if field not in ("question", "format", "own", "peers")
    }
    return render(words, name, SAMPLE, system=system, own=_OWN, peers=_PEERS, **own_fields)
