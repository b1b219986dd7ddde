"""Logs of Inspect AI: `.eval` (a zip of JSON files) and `.json`.

A sample is a question, its epochs are the samples of one model. The verdict is that of the first scorer whose value
says right or wrong: C and I, 1 and 0, true and false; a partial score (P, or a number between) is none.

Newer `.eval` files are compressed with Zstandard, which Python reads from 3.14 on; before that pyarrow does it.
"""

from __future__ import annotations

import json
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pluribus.answers import canonical
from pluribus.errors import DataError, MissingDependency
from pluribus.logs._kinds import answer_of, key_of, kind_of, said
from pluribus.logs._records import Output, Recording
from pluribus.logs._rows import head
from pluribus.types import Key, Kind, Question

TITLE = "Inspect AI log (.eval, .json)"

ERRORS = "samples that ended in an error"
DUPLICATES = "samples that stand twice: the first is taken"
PARTIAL = "scores that are neither right nor wrong"
UNFINISHED = "logs that were not finished"
NO_OUTPUT = "samples without an output"

_ZSTANDARD = 93
_LARGEST = 2_000_000_000
"""Bytes of one sample."""
_HEAD = re.compile(r'\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:')
_ATTACHED = "attachment://"

Sample = Mapping[str, Any]


def recognise(path: Path) -> bool:
    if path.suffix == ".eval":
        return head(path).startswith("PK")
    return path.suffix == ".json" and _HEAD.match(text := head(path)) is not None and '"eval"' in text


def read(path: Path) -> list[Recording]:
    """The log's model on its task. DataError: a broken file, or one without samples."""
    omitted: Counter[str] = Counter()
    header, samples = _archived(path, omitted) if path.suffix == ".eval" else _plain(path)
    told = header.get("eval")
    if not isinstance(told, dict):
        raise DataError(str(path), "the log has no header", hint="write it again with: inspect log convert")
    if header.get("status") not in (None, "success"):
        omitted[UNFINISHED] += 1
    task, model = str(told.get("task") or path.stem).rpartition("/")[2], str(told.get("model") or "model")
    good = _in_order(_epochs(samples, omitted), told)
    if not good:
        raise DataError(str(path), "the log has no sample with an output", hint="run the evaluation again")
    pairs = _questions(task, good)
    outputs = [
        _output(pairs[str(sample["id"])][0], model, number, sample, omitted)
        for sample, number in _numbered(good)
    ]  # fmt: skip
    return [
        Recording(
            f"{task}, {model}", str(path), task, tuple(pairs.values()), (model,), tuple(outputs),
            omitted={reason: number for reason, number in omitted.items() if number},
        )
    ]  # fmt: skip


# --- files -----------------------------------------------------------------------------------------------------------


def _plain(path: Path) -> tuple[Mapping[str, Any], list[Sample]]:
    try:
        log = json.loads(path.read_bytes())
    except OSError as error:
        raise DataError(str(path), f"can not be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(str(path), f"not JSON: {error}", hint="the file is cut off or damaged") from error
    samples = log.get("samples")
    return log, [s for s in samples if isinstance(s, dict)] if isinstance(samples, list) else []


def _archived(path: Path, omitted: Counter[str]) -> tuple[Mapping[str, Any], list[Sample]]:
    """Header and samples of a zip; of a run that was stopped the start is all the header there is."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename: info for info in archive.infolist()}
            start = next((name for name in ("header.json", "_journal/start.json") if name in members), None)
            if start is None:
                raise DataError(str(path), "a zip without a log in it", hint="expected header.json")
            if start != "header.json":
                omitted[UNFINISHED] += 1
            header = _object(path, archive, members[start])
            files = [info for name, info in members.items() if name.startswith("samples/") and name.endswith(".json")]
            return header, [_object(path, archive, info) for info in files]
    except (OSError, zipfile.BadZipFile, zlib.error, struct.error) as error:
        raise DataError(str(path), f"the archive can not be read: {error}", hint="it is cut off or damaged") from error


def _object(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> dict[str, Any]:
    try:
        value = json.loads(_bytes(path, archive, info))
    except (ValueError, RecursionError, EOFError) as error:
        raise DataError(f"{path}:{info.filename}", f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise DataError(f"{path}:{info.filename}", f"not an object but {type(value).__name__}")
    return value


def _bytes(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    try:
        if info.file_size > _LARGEST:
            raise DataError(f"{path}:{info.filename}", f"{info.file_size:,} bytes; at most {_LARGEST:,} are read")
        return archive.read(info)
    except NotImplementedError:  # a compression this Python does not know
        if info.compress_type != _ZSTANDARD:
            raise DataError(f"{path}:{info.filename}", f"compression {info.compress_type} is not known") from None
        return _unpacked(path, info)
    except RuntimeError as error:  # it is encrypted
        raise DataError(f"{path}:{info.filename}", str(error)) from error


def _unpacked(path: Path, info: zipfile.ZipInfo) -> bytes:
    """A Zstandard member: the local header's 30 bytes end with the lengths of name and extra field."""
    try:
        import pyarrow as pa  # type: ignore[import-untyped]  # it has no stubs
    except ModuleNotFoundError:
        raise MissingDependency("pyarrow", "report") from None
    with path.open("rb") as file:
        file.seek(info.header_offset)
        lengths = struct.unpack("<HH", file.read(30)[26:])
        file.seek(sum(lengths), 1)
        packed = file.read(info.compress_size)
    found: bytes = pa.decompress(packed, decompressed_size=info.file_size, codec="zstd", asbytes=True)
    if zlib.crc32(found) != info.CRC:
        raise zipfile.BadZipFile(f"bad checksum of {info.filename!r}")
    return found


# --- samples ---------------------------------------------------------------------------------------------------------


def _epochs(samples: Sequence[Sample], omitted: Counter[str]) -> list[Sample]:
    """Samples with an output, one per id and epoch, by epoch in the log's order."""
    found: dict[tuple[str, int], Sample] = {}
    for sample in samples:
        if sample.get("error"):
            omitted[ERRORS] += 1
        elif _completion(sample) is None or "id" not in sample:
            omitted[NO_OUTPUT] += 1
        elif (place := (str(sample["id"]), _epoch(sample))) in found:
            omitted[DUPLICATES] += 1
        else:
            found[place] = sample
    return list(found.values())


def _in_order(samples: Sequence[Sample], told: Mapping[str, Any]) -> list[Sample]:
    """By the data set's order, where the header has it: an archive has the order in which they ended."""
    dataset = told.get("dataset")
    ids = dataset.get("sample_ids") if isinstance(dataset, dict) else None
    place = {str(id): number for number, id in enumerate(ids)} if isinstance(ids, list) else {}
    return sorted(samples, key=lambda sample: (place.get(str(sample["id"]), len(place)), _epoch(sample)))


def _epoch(sample: Sample) -> int:
    epoch = sample.get("epoch", 1)
    return epoch if isinstance(epoch, int) else 1


def _numbered(samples: Sequence[Sample]) -> Iterator[tuple[Sample, int]]:
    first = min(_epoch(sample) for sample in samples)
    for sample in samples:
        yield sample, _epoch(sample) - first


def _completion(sample: Sample) -> str | None:
    """What was said: the message of the output; older logs have it as `completion`."""
    output = sample.get("output")
    if not isinstance(output, dict):
        return None
    choices = output.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        message = choices[0].get("message")
        if isinstance(message, dict):
            return _text(message.get("content"), sample)
    completion = output.get("completion")
    return _text(completion, sample) if isinstance(completion, str) and completion else None


def _text(content: Any, sample: Sample) -> str:
    """Text, or the text parts of a message; long ones are kept once, as attachments."""
    if isinstance(content, str):
        return _attached(content, sample)
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    return "\n".join(_attached(text, sample) for text in texts if isinstance(text, str))


def _attached(text: str, sample: Sample) -> str:
    attachments = sample.get("attachments")
    if not text.startswith(_ATTACHED) or not isinstance(attachments, dict):
        return text
    return str(attachments.get(text.removeprefix(_ATTACHED), text))


def _questions(task: str, samples: Sequence[Sample]) -> dict[str, tuple[Question, Key | None]]:
    """Sample id → question and key."""
    free = [target for sample in samples if not _choices(sample) for target in _targets(sample)]
    kind = kind_of(free)
    first: dict[str, Sample] = {}
    for sample in samples:
        first.setdefault(str(sample["id"]), sample)
    return {id: _pair(task, sample, kind) for id, sample in first.items()}


def _pair(task: str, sample: Sample, kind: Kind) -> tuple[Question, Key | None]:
    choices, targets = _choices(sample), _targets(sample)
    own: Kind = "choice" if choices else kind
    question = Question(str(sample["id"]), task, _asked(sample), own, choices)
    usable = not (choices and len(targets) > 1)  # several right letters at once are no answer here
    return question, key_of(question, targets[0], targets[1:]) if targets and usable else None


def _choices(sample: Sample) -> tuple[str, ...]:
    told = sample.get("choices")
    options = tuple(str(option) for option in told) if isinstance(told, list) else ()
    return options if len(set(options)) >= 2 and len(options) <= 26 else ()


def _targets(sample: Sample) -> list[str]:
    told = sample.get("target")
    given = told if isinstance(told, list) else [told]
    return [target for one in given if (target := said(one)) is not None]


def _asked(sample: Sample) -> str:
    """The input; of a conversation the last thing the user said."""
    given = sample.get("input")
    if isinstance(given, str):
        return _attached(given, sample)
    messages = [m for m in given if isinstance(m, dict)] if isinstance(given, list) else []
    asked = [_text(m.get("content"), sample) for m in messages if m.get("role") == "user"]
    return asked[-1] if asked and asked[-1].strip() else f"(sample {sample.get('id')}; its text is not in the log)"


# --- verdicts --------------------------------------------------------------------------------------------------------


def _output(question: Question, model: str, number: int, sample: Sample, omitted: Counter[str]) -> Output:
    answer, correct, looked = _score(question, sample, omitted)
    asked, generated = _usage(model, sample)
    return Output(
        question.id, model, _completion(sample) or "", 0, number, answer, correct, asked, generated,
        unanswered=looked and answer is None,
    )  # fmt: skip


def _score(question: Question, sample: Sample, omitted: Counter[str]) -> tuple[str | None, bool | None, bool]:
    """(answer, verdict, whether the scorer says that there is no answer)."""
    scores = sample.get("scores")
    given = [s for s in scores.values() if isinstance(s, dict)] if isinstance(scores, dict) else []
    decided = [(score, verdict) for score in given if (verdict := _verdict(score.get("value"))) is not None]
    omitted[PARTIAL] += bool(given) and not decided
    score, correct = decided[0] if decided else (given[0] if given else {}, None)
    answer = said(score.get("answer"))
    return _canonical(question, answer, sample), correct, score.get("value") == "N"


def _canonical(question: Question, answer: str | None, sample: Sample) -> str | None:
    """The scorer's answer; where that is the whole text again, only if it is an answer as it stands."""
    if answer is None or answer != (_completion(sample) or "").strip():
        return answer_of(question, answer)
    return None if question.kind == "text" else canonical(question, answer)


def _verdict(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return value == 1 if value in (0, 1) else None
    return {"C": True, "I": False, "N": False}.get(value) if isinstance(value, str) else None


def _usage(model: str, sample: Sample) -> tuple[int | None, int | None]:
    """Prompt and completion tokens of all the model's calls for the sample; of the last call in logs without sums."""
    sums, output = sample.get("model_usage"), sample.get("output")
    used = sums.get(model) if isinstance(sums, dict) else None
    if not isinstance(used, dict):
        used = output.get("usage") if isinstance(output, dict) else None
    if not isinstance(used, dict):
        return None, None
    asked = [used.get(n) for n in ("input_tokens", "input_tokens_cache_read", "input_tokens_cache_write")]
    prompt = sum(n for n in asked if isinstance(n, int)) if isinstance(asked[0], int) else None
    generated = used.get("output_tokens")
    return prompt, generated if isinstance(generated, int) else None
