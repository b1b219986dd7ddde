"""Recorded outputs instead of calls: `replay/FILE#MODEL`, the file a JSONL or JSONL.GZ.

One output a line: `question_id`, `model`, `text`, optional `sample` (0), `round` (0), `usage`, `finish_reason`,
`scores`; other fields are not read. A request is answered by its question, sample and round, whatever its messages
say. Several seats of one model take its samples 0, 1, …
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, ClassVar, cast

from pluribus.backends import ModelSpec, Request
from pluribus.backends._think import split_think
from pluribus.errors import ConfigError, DataError, NotRecorded, Refused, UnknownName, UsageError
from pluribus.types import Completion

OPTIONS: frozenset[str] = frozenset()

_COUNTS = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")


@dataclass(frozen=True, slots=True)
class _Output:
    text: str
    extras: Mapping[str, Any] | None
    """Counts, finish reason and scores, by the names they have in Completion; None when there are none."""


_Outputs = dict[tuple[str, int, int], _Output]
"""(question id, sample, round) → output, of one model."""


@dataclass(frozen=True, slots=True)
class Replay:
    """One recorded model."""

    recorded: ClassVar[bool] = True
    """Answers go by the question's id: a cache by content would mix up questions that read the same."""
    model: str
    name: str
    path: str
    outputs: _Outputs

    def ensure(self, sample: int, round: int) -> None:
        """Raises UsageError when no question at all has an output of this sample in this round."""
        recorded = {(s, r) for _, s, r in self.outputs}
        if (sample, round) in recorded:
            return
        samples = sum(r == round for _, r in recorded)
        if samples:
            found = f"{samples} sample{'s' * (samples > 1)} of round {round}"
            hint = "take fewer seats or samples of this model"
        else:
            found, hint = f"rounds {sorted({r for _, r in recorded})}", "take a method with fewer rounds"
        raise UsageError(
            f"{self.path} records {found} of {self.name!r}; the run would ask for sample {sample} of round {round}",
            hint=hint,
        )

    async def complete(self, request: Request) -> Completion:
        if request.continuation is not None:
            raise Refused(f"{self.path} records texts, not what another text's log-probability would have been")
        if request.prefill is not None:
            raise Refused(
                f"{self.path} records whole texts, not how one that was begun would go on",
                hint="name a model that is asked: vllm/NAME, local/NAME",
            )
        asked = (request.question_id or "", request.sample, request.round)
        output = self.outputs.get(asked)
        if output is None:
            raise NotRecorded(
                f"{self.name!r} has no output for question {request.question_id!r}, sample {request.sample}, "
                f"round {request.round} in {self.path}"
            )
        said, thought = split_think(output.text)
        return Completion(said, self.model, reasoning=thought, cost_usd=0.0, **(output.extras or {}))

    async def close(self) -> None:
        """Nothing is open."""


def connect(spec: ModelSpec) -> Replay:
    """The recorded model that a spec names.

    Raises:
        UsageError: no such file, or a file without outputs.
        DataError: a malformed line.
        UnknownName: a model recorded nowhere in the file; lists those that are.
    """
    path, mark, name = spec.name.rpartition("#")
    if not mark:
        path = spec.name
    recorded = _recorded(path)
    if not mark and len(recorded) == 1:
        name = next(iter(recorded))
    elif not mark:
        raise ConfigError(
            f"{path} records {len(recorded)} models", hint=f"name one: replay/{path}#MODEL with {_list(recorded)}"
        )
    if name not in recorded:
        raise UnknownName(f"model in {path}", name, recorded)
    return Replay(spec.model, name, path, recorded[name])


def models(path: str | Path) -> list[str]:
    """The models a file records, sorted."""
    return sorted(_recorded(str(path)))


def _list(recorded: Mapping[str, _Outputs]) -> str:
    return ", ".join(sorted(recorded))


def _recorded(path: str) -> Mapping[str, _Outputs]:
    try:
        stat = Path(path).stat()
    except OSError as error:
        raise UsageError(
            f"no recorded outputs at {path!r}: {error.strerror}", hint="write replay/FILE#MODEL with an existing file"
        ) from error
    return _load(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=8)
def _load(path: str, mtime_ns: int, size: int) -> Mapping[str, _Outputs]:
    """Model → its outputs. Read once per process for all seats; a changed file is read again."""
    recorded: dict[str, _Outputs] = {}
    for number, line in _lines(path):
        _add(recorded, line, f"{path}:{number}")
    if not recorded:
        raise UsageError(f"{path} holds no outputs", hint="give one JSON object a line")
    return recorded


def _lines(path: str) -> Iterator[tuple[int, bytes]]:
    """Numbered lines that are not blank. Lines end at a newline byte only: texts may hold U+2028."""
    try:
        with _open(path) as file:
            for number, line in enumerate(file, 1):
                if not line.isspace():
                    yield number, line
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(path, f"can not be read to its end: {error}") from error


def _open(path: str) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.endswith(".gz") else Path(path).open("rb")


def _add(recorded: dict[str, _Outputs], line: bytes, place: str) -> None:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise DataError(place, f"not JSON: {error}") from error
    if not isinstance(row, dict):
        raise DataError(place, f"not a JSON object but {type(row).__name__}")
    question_id, model, text = (_string(row, name, place) for name in ("question_id", "model", "text"))
    asked = (question_id, _index(row, "sample", place), _index(row, "round", place))
    outputs = recorded.setdefault(model, {})
    if asked in outputs:
        raise DataError(
            place, f"a second output of {model!r} for question {question_id!r}, sample {asked[1]}, round {asked[2]}",
            hint="number repeated outputs by `sample`",
        )  # fmt: skip
    outputs[asked] = _Output(text, _extras(row, place))


def _string(row: Mapping[str, Any], name: str, place: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or (not value and name != "text"):
        raise DataError(place, f"{name!r} is {value!r}", hint="it must be a string")
    return value


def _index(row: Mapping[str, Any], name: str, place: str) -> int:
    value = row.get(name, 0)
    if type(value) is not int or value < 0:
        raise DataError(place, f"{name!r} is {value!r}", hint="it must be an integer of at least 0")
    return value


def _extras(row: Mapping[str, Any], place: str) -> Mapping[str, Any] | None:
    usage, scores, reason = row.get("usage"), row.get("scores"), row.get("finish_reason")
    extras: dict[str, Any] = {}
    if usage is not None:
        extras |= _usage(usage, place)
    if scores is not None:
        extras["scores"] = _scores(scores, place)
    if reason is not None:
        extras["finish_reason"] = _string(row, "finish_reason", place)
    return extras or None


def _usage(usage: Any, place: str) -> dict[str, int]:
    hint = f"usage is an object of counts: {', '.join(_COUNTS)}"
    if not isinstance(usage, dict):
        raise DataError(place, f"'usage' is {usage!r}", hint=hint)
    counts = {name: usage[name] for name in _COUNTS if usage.get(name) is not None}
    for name, value in counts.items():
        if type(value) is not int or value < 0:
            raise DataError(place, f"{name!r} is {value!r}", hint=hint)
    return counts


def _scores(scores: Any, place: str) -> dict[str, float]:
    good = isinstance(scores, dict) and all(
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        for value in scores.values()
    )
    if not good:
        raise DataError(place, f"'scores' is {scores!r}", hint="it must be an object of finite numbers by name")
    return {str(name): float(value) for name, value in scores.items()}
