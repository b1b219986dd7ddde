"""History files of Agent-Scaling: one question a line, `{"0": ROUND, "1": ROUND, …}`, read and written.

ROUND = `responses` (agent → text, or an object with output_text, text, content, output or response),
`final_answers` and `final_answer_iscorr` in the agents' order, `debate_answer`, `debate_answer_iscorr`, `answer`,
`persona_configs`. An agent is `<data>_<size>__<model>__<persona>__Agent<i>`; the file's name says how it was made:
`<data>_<solver>_<size>__<model or MIXEDn>_N=<agents>_R=<rounds>…`. The form carries no questions; files written here
put `question_id`, `question`, `kind` and `choices` into round 0, where its own readers pass over them.

Source: Yang et al. 2026, arXiv 2602.03794.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from pluribus.consensus.votes import plurality
from pluribus.errors import DataError
from pluribus.logs._files import writing
from pluribus.logs._kinds import answer_of, key_of, kind_of, letters, said
from pluribus.logs._records import Output, Recording
from pluribus.logs._rows import head, rows
from pluribus.panel import Item, Member, Panel, standing
from pluribus.types import KINDS, Key, Kind, Question

TITLE = "Agent-Scaling history (JSONL)"

MISSING_ROUNDS = "rounds missing"
MISMATCHED = "rounds whose answers do not match their agents"
MISJUDGED = "rounds whose verdicts do not match their answers"
NO_NUMBER = "rounds whose number can not be read"
NOT_TEXT = "responses that are no text"
TWICE = "questions whose id stands twice: the line's number was put behind it"
NO_ROUND = "questions without any round"

_FIRST = re.compile(r'\{\s*"\d+"\s*:\s*\{')
_NAME = re.compile(
    r"(?P<data>.+?)_(?P<solver>vote|debate)_(?P<size>\d+)__(?P<model>.+)_N=(?P<agents>\d+)_R=(?P<rounds>\d+)(?P<rest>.*)"
)
_AGENT = re.compile(r"(?P<data>.+?)__(?P<model>.+)__(?P<persona>.*)__Agent(?P<number>\d+)")
_TEXTS = ("output_text", "text", "content", "output", "response")
_DIGITS = 4
"""Of a round's number at most."""
_NOBODY = {"", "None", "LenMatch"}
"""Persona names that say there is none."""
_FLAGS: Mapping[str, tuple[str, object]] = {
    "SPARSE": ("topology", "sparse"),
    "CENTRAL": ("topology", "centralized"),
    "HETERO_ENHANCED": ("multi_persona", True),
    "BASEA": ("baseline_a", True),
    "BASEB": ("baseline_b", True),
}
"""Words of a file's name → what they say."""
_SHORT = {"mmlu:formal_logic": "formal_logic", "mmlu:professional_medicine": "pro_medicine"}
"""Tasks that have another name there."""


def recognise(path: Path) -> bool:
    return ".jsonl" in path.suffixes and _FIRST.match(head(path)) is not None


@dataclass(slots=True)
class _File:
    """What is gathered while a file is read."""

    path: Path
    made: Mapping[str, str]
    """The parts of its name; empty where it does not fit."""
    agents: dict[str, None] = field(default_factory=dict)
    omitted: Counter[str] = field(default_factory=Counter)


Rounds = dict[int, dict[str, Any]]


def read(path: Path) -> list[Recording]:
    """The file's council. DataError: a line that is malformed, or no question at all."""
    found = _NAME.fullmatch(path.name.removesuffix(".gz").removesuffix(".jsonl"))
    file = _File(path, found.groupdict() if found else {})
    lines = [_rounds(place, row, file) for place, row in rows(path, file.omitted)]
    if not lines:
        raise DataError(str(path), "no question can be read", hint="one question a line is expected")
    most = 1 + max((number for rounds in lines for number in rounds), default=0)
    pairs = _questions(lines, file)
    outputs = [
        output
        for (question, _), rounds in zip(pairs, lines, strict=True)
        for output in _outputs(question, rounds, most, file)
    ]
    return [_recording(file, pairs, lines, outputs)]


def _rounds(place: str, row: Mapping[str, Any], file: _File) -> Rounds:
    """Round number → round; notes the agents on the way."""
    rounds: Rounds = {}
    for name, value in row.items():
        if not name.isdecimal() or len(name) > _DIGITS:
            file.omitted[NO_NUMBER] += isinstance(value, dict) and bool(_responses(value))
            continue
        if not isinstance(value, dict):
            raise DataError(place, f"round {name!r} is {type(value).__name__}, not an object")
        rounds[int(name)] = value
        file.agents |= dict.fromkeys(_responses(value))
    return dict(sorted(rounds.items()))


def _responses(round: Mapping[str, Any]) -> Mapping[str, Any]:
    """Agent → response; some versions keep them by agent under another name."""
    for name in ("agent_responses", "responses"):
        if isinstance(round.get(name), dict):
            return cast(Mapping[str, Any], round[name])
    return {}


def _text(response: Any) -> str | None:
    if isinstance(response, dict):
        texts = [response[name] for name in _TEXTS if isinstance(response.get(name), str)]
        return next((text for text in texts if text.strip()), texts[0] if texts else None)
    return response if isinstance(response, str) else None


# --- questions -------------------------------------------------------------------------------------------------------


def _questions(lines: Sequence[Rounds], file: _File) -> list[tuple[Question, Key | None]]:
    """One pair per line; the kind of all is found from the keys, or else from the answers."""
    keys = [_last(rounds, "answer") for rounds in lines]
    given = [answer for rounds in lines for round in rounds.values() for answer in _answers(round)]
    kind = kind_of(keys if any(keys) else given)
    options = letters(keys + given) if kind == "choice" else ()
    pairs: dict[str, tuple[Question, Key | None]] = {}
    for number, rounds in enumerate(lines):
        question, key = _pair(file, number, rounds, keys[number], kind, options)
        if question.id in pairs:
            file.omitted[TWICE] += 1
            question = replace(question, id=f"{question.id}-{number}")
            key = key and replace(key, question_id=question.id)
        pairs[question.id] = (question, key)
    return list(pairs.values())


def _pair(
    file: _File, number: int, rounds: Rounds, recorded: str | None, kind: Kind, options: tuple[str, ...]
) -> tuple[Question, Key | None]:
    told = rounds.get(0, {})
    told_kind = told.get("kind")
    if told_kind in KINDS:
        choices, labels = told.get("choices"), told.get("labels")
        kind = told_kind
        options = tuple(map(str, choices)) if isinstance(choices, list) else options if kind == "choice" else ()
        names = tuple(map(str, labels)) if isinstance(labels, list) else ()
    else:
        names = ()
    stem = f"{file.made['data']}-{file.made['size']}" if file.made else file.path.name.partition(".jsonl")[0]
    id = str(told.get("question_id") or f"{stem}-{number}")
    text = str(told.get("question") or f"(question {number + 1} of {file.path.name}; its text is not in the file)")
    question = Question(id, _task(file), text, kind, options, names)
    return question, key_of(question, recorded)


def _task(file: _File) -> str:
    if file.made:
        return file.made["data"]
    named = (found["data"].rpartition("_")[0] for agent in file.agents if (found := _AGENT.fullmatch(agent)))
    return next(named, None) or file.path.name.partition(".jsonl")[0]


def _last(rounds: Rounds, name: str) -> str | None:
    """The last recorded value that says something."""
    return next((value for round in reversed(rounds.values()) if (value := said(round.get(name)))), None)


def _answers(round: Mapping[str, Any]) -> list[str | None]:
    by_agent = round.get("final_answers_by_agent")
    if isinstance(by_agent, dict):
        return [said(by_agent.get(agent)) for agent in _responses(round)]
    recorded = round.get("final_answers")
    return [said(answer) for answer in recorded] if isinstance(recorded, list) else []


# --- outputs ---------------------------------------------------------------------------------------------------------


def _outputs(question: Question, rounds: Rounds, most: int, file: _File) -> list[Output]:
    """What was said on one question, round by round; counts what is missing."""
    if not rounds:
        file.omitted[NO_ROUND] += 1
        return []
    file.omitted[MISSING_ROUNDS] += most - len(rounds)
    found: list[Output] = []
    for number, round in rounds.items():
        responses = _responses(round)
        recorded = _recorded(round, len(responses), file)
        for agent, response, (answer, correct, looked) in zip(responses, responses.values(), recorded, strict=True):
            text = _text(response)
            if text is None:
                file.omitted[NOT_TEXT] += 1
                continue
            here = answer_of(question, answer)
            found.append(Output(question.id, agent, text, number, 0, here, correct, unanswered=looked and not answer))
    return found


def _recorded(round: Mapping[str, Any], agents: int, file: _File) -> list[tuple[str | None, bool | None, bool]]:
    """(answer, verdict, whether the source looked for one) per agent. A centralised round records its hub's alone."""
    answers, verdicts = _answers(round), round.get("final_answer_iscorr")
    nothing: list[tuple[str | None, bool | None, bool]] = [(None, None, False)] * agents
    if not answers:
        file.omitted[MISMATCHED] += round.get("final_answers") not in (None, [], {})
        return nothing
    right = [_verdict(v) for v in verdicts] if isinstance(verdicts, list) else []
    if len(answers) not in (1, agents) or not agents:
        file.omitted[MISMATCHED] += 1
        return nothing
    file.omitted[MISJUDGED] += verdicts is not None and len(right) != len(answers)
    right = right if len(right) == len(answers) else [None] * len(answers)
    known = [(answer, verdict, True) for answer, verdict in zip(answers, right, strict=True)]
    return known + nothing[len(known) :]


def _verdict(value: Any) -> bool | None:
    return bool(value) if isinstance(value, bool | int | float) else None


def _recording(
    file: _File, pairs: Sequence[tuple[Question, Key | None]], lines: Sequence[Rounds], outputs: Sequence[Output]
) -> Recording:
    parts = {agent: _AGENT.fullmatch(agent) for agent in file.agents}
    decided, right = _decisions(pairs, lines)
    return Recording(
        name=file.path.name.partition(".jsonl")[0],
        source=str(file.path),
        task=pairs[0][0].task,
        pairs=tuple(pairs),
        agents=tuple(file.agents),
        outputs=tuple(outputs),
        decided=decided,
        decided_correct=right,
        personas={agent: p["persona"] for agent, p in parts.items() if p and p["persona"] not in _NOBODY},
        omitted={reason: number for reason, number in file.omitted.items() if number},
        models={agent: p["model"] for agent, p in parts.items() if p},
        settings=_settings(file.made),
    )


def _decisions(
    pairs: Sequence[tuple[Question, Key | None]], lines: Sequence[Rounds]
) -> tuple[dict[str, str | None], dict[str, bool | None]]:
    """The council's answer of the last round, and the source's verdict on it."""
    decided: dict[str, str | None] = {}
    right: dict[str, bool | None] = {}
    for (question, _), rounds in zip(pairs, lines, strict=True):
        last = rounds[max(rounds)] if rounds else {}
        if "debate_answer" in last:
            decided[question.id] = answer_of(question, said(last["debate_answer"]))
            right[question.id] = _verdict(last.get("debate_answer_iscorr"))
    return decided, right


def _settings(made: Mapping[str, str]) -> dict[str, object]:
    """What the file's name says."""
    if not made:
        return {}
    rest, rounds = made["rest"], int(made["rounds"])
    found: dict[str, object] = {name: value for word, (name, value) in _FLAGS.items() if f"_{word}" in rest}
    method = "debate" if rounds else "vote"
    return {"method": method, "solver": made["solver"], "debate_rounds": rounds, "size": int(made["size"]), **found}


# --- writing ---------------------------------------------------------------------------------------------------------


def file_name(panel: Panel) -> str:
    """The name its own code would give the file."""
    models = list(dict.fromkeys(_word_of(member.model) for member in panel.members))
    model = models[0] if len(models) == 1 else f"MIXED{len(models)}"
    rounds = max(0, panel.rounds - 1)
    solver = "debate" if rounds else "vote"
    start = f"{_data(panel)}_{solver}_{len(panel.items)}__{model}_N={len(panel.members)}_R={rounds}"
    return start + _suffixes(panel) + ".jsonl"


def _suffixes(panel: Panel) -> str:
    topology = {"sparse": "_SPARSE", "centralized": "_CENTRAL"}.get(str(panel.settings.get("topology")), "")
    if panel.settings.get("baseline_a"):
        return f"{topology}_BASEA_LENMATCH"
    if panel.settings.get("baseline_b"):
        return f"{topology}_BASEB_SINGLEP"
    return topology + ("_HETERO_ENHANCED" if any(member.persona for member in panel.members) else "")


def _data(panel: Panel) -> str:
    return _word_of(_SHORT.get(panel.task, panel.task))


def _word_of(name: str) -> str:
    """A name without what the form itself uses: slashes and double underscores."""
    short = name.rpartition("#")[2] if "#" in name else name.partition("@http")[0].rstrip("/").rpartition("/")[2]
    return re.sub(r"_{2,}", "_", re.sub(r"[^\w.+=-]+", "-", short)).strip("_-") or "model"


def agent_names(panel: Panel) -> list[str]:
    """`<data>_<size>__<model>__<persona>__Agent<i>` of each member."""
    start = f"{_data(panel)}_{len(panel.items)}"
    lenmatch = "LenMatch" if panel.settings.get("baseline_a") else "None"
    return [
        f"{start}__{_word_of(member.model)}__{_word_of(member.persona) if member.persona else lenmatch}__Agent{i}"
        for i, member in enumerate(panel.members, 1)
    ]


def write(panel: Panel, questions: Mapping[str, tuple[Question, Key | None]], path: Path) -> list[str]:
    """Writes the panel; a folder gets a file of the form's own name. Returns the path.

    Args:
        questions: id → question and key, of all items.
    """
    target = path / file_name(panel) if path.is_dir() or not path.suffix else path
    names = agent_names(panel)
    with writing(target) as file:
        for item in panel.items:
            line = _line(item, questions[item.question_id][0], names, panel.members)
            file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
    return [str(target)]


def _line(item: Item, question: Question, names: Sequence[str], members: Sequence[Member]) -> dict[str, Any]:
    rounds = {str(number): _round(item, question, number, names, members) for number in range(max(1, len(item.words)))}
    about: dict[str, Any] = {"question_id": question.id, "question": question.text, "kind": question.kind}
    about |= {"choices": list(question.choices)} if question.choices else {}
    about |= {"labels": list(question.labels)} if question.labels else {}
    return {name: round | (about if name == "0" else {}) for name, round in rounds.items()}


def _round(
    item: Item, question: Question, number: int, names: Sequence[str], members: Sequence[Member]
) -> dict[str, Any]:
    words = item.words[number] if item.words and not item.failed else (None,) * len(names)
    spoke = [(name, word, member) for name, word, member in zip(names, words, members, strict=True) if word]
    answer, correct = _standing_decision(item, number)
    return {
        "responses": {name: word.text for name, word, _ in spoke},
        "final_answers": [_there(question, word.answer) for _, word, _ in spoke],
        "final_answer_iscorr": [_bool(word.correct) for _, word, _ in spoke],
        "debate_answer": _there(question, answer),
        "debate_answer_iscorr": _bool(correct),
        "answer": _there(question, item.key) if item.key is not None else None,
        "persona_configs": [str(member.persona) for _, _, member in spoke],
    }


def _standing_decision(item: Item, number: int) -> tuple[str | None, float | None]:
    """The decision after a round: the council's own after the last, the plurality of what stands before."""
    if number >= len(item.words) - 1:
        return item.decided, item.credit
    words = [word for word in standing(item, number) if word]
    winner = plurality([word.answer for word in words], tie="first").winner
    return winner, next((word.correct for word in words if word.answer == winner), None)


def _bool(correct: float | None) -> bool | None:
    """None where nobody can say; half a credit is not right."""
    return None if correct is None else correct == 1


def _there(question: Question, answer: str | None) -> Any:
    """An answer as the form writes it: a number, `(A)`, or text; empty for none."""
    if answer is None:
        return ""
    if question.kind == "choice":
        return f"({answer})"
    if question.kind == "number" and re.fullmatch(r"-?\d+(\.\d+)?", answer):
        number = int(answer) if answer.lstrip("-").isdecimal() else float(answer)
        return number if str(number) == answer else answer
    return answer
