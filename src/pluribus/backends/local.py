"""Models of `transformers` run in this process: `local/ORG/NAME`, `local/FOLDER`, and the members of a library.

One worker thread per loaded model batches all requests that are there at the same time; on a GPU every worker has a
queue of its own. torch is imported by the worker, at the first request.

With `head: reward` the model is one for sequence classification with one output: nothing is generated, the score of a
conversation that ends with the assistant's reply comes back in `Completion.scores["reward"]`. With `head: prm` it is
one for token classification that marks the steps of the reply: `Completion.scores` holds P(good) of each, `step 1`,
`step 2`, …, and what they come to: `min`, `mean`, `last`, `product`.
"""

from __future__ import annotations

import asyncio
import importlib
import random
import re
import sys
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pluribus.backends import ModelSpec, Request, add_up, check_wishes, services
from pluribus.backends._loading import (
    OUTPUTS,
    PRM,
    Source,
    StepForm,
    Words,
    check_writes,
    context_length,
    ends,
    load_config,
    load_form,
    load_model,
    load_words,
    summaries,
)
from pluribus.backends._think import OPEN, split_think
from pluribus.errors import BackendError, ConfigError, MissingDependency, PluribusError, Refused, UsageError
from pluribus.steps import split_steps
from pluribus.types import Completion, Sampling

if TYPE_CHECKING:
    from pluribus.backends._batching import Batcher, Row
    from pluribus.backends._reading import Reader, Reading

OPTIONS = ("adapter", "chat_template", "device", "dtype", "head", "logprobs", "max_batch", "quantization", "revision")
HEADS = tuple(OUTPUTS)
QUANTIZATIONS = ("8bit", "4bit")
TEMPLATES = ("on", "off")
DTYPES = ("float32", "bfloat16", "float16")
MAX_BATCH = 256

_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?\Z")
_GATHER_S = 0.002
"""How long an idle worker waits for more after the first request: a council's seats ask within one tick."""
_IDLE_S = 10.0
"""After so long without a request the worker gives the key-value cache's memory back."""
_PARTING_S = 5.0
"""How long closing waits for the worker to finish its step."""
_STOP_STRIDE = 8
"""Stop strings are looked for after every so many tokens; what was generated past one is dropped."""


def connect(spec: ModelSpec) -> LocalBackend:
    """The backend of a model that runs here; cheap, as the weights are read at the first request.

    Raises:
        MissingDependency: a package of the extra `local` is not installed.
        UsageError: an option has no such value, or the folder is not there.
    """
    logprobs = spec.options.get("logprobs") or False
    if logprobs not in (True, False):
        raise ConfigError(f"logprobs is {logprobs!r}", hint="write true or false")
    source = _source(spec)
    for package in _packages(source):
        if find_spec(package) is None:
            raise MissingDependency(package, "local")
    return LocalBackend(spec.model, source, logprobs=logprobs)


class LocalBackend:
    """One model in this process. Backends of the same source share the loaded weights; the last one frees them."""

    def __init__(self, model: str, source: Source, *, logprobs: bool = False) -> None:
        self._model = model
        self._source = source
        self._logprobs = logprobs
        self._lease: _Lease | None = _hire(source)

    @property
    def model(self) -> str:
        return self._model

    @property
    def context_length(self) -> int | None:
        """Most tokens of prompt and completion together; None when the model does not say. Reads its configuration."""
        config = load_config(self._source.path, self._source.revision)
        if self._source.head is None:
            check_writes(self._source.path, config)
        return context_length(config)

    def count_tokens(self, text: str) -> int:
        """How many tokens of this model a text is. Reads its tokenizer only."""
        return len(_words(self._source).encode(text))

    async def complete(self, request: Request) -> Completion:
        began = time.perf_counter()
        lease = self._open()  # held until the reply is there, so closing in between loses nothing
        loop = asyncio.get_running_loop()
        call = _Call(request, loop, loop.create_future(), self._logprobs)
        lease.worker.submit(call)
        completion = await call.future
        return replace(completion, model=self._model, latency_s=time.perf_counter() - began)

    async def close(self) -> None:
        lease, self._lease = [self._lease], None
        await asyncio.to_thread(lease.clear)

    def _open(self) -> _Lease:
        if self._lease is None:
            raise BackendError(f"{self._model} is closed", hint="connect again")
        return self._lease


def _words(source: Source) -> Words:
    return load_words(source.path, source.revision, source.chat_template, source.weights)


# --- what the user asked for -------------------------------------------------------------------------------------


def _source(spec: ModelSpec) -> Source:
    if spec.base_url is not None:
        raise ConfigError(
            f"{spec.service}/{spec.name} runs in this process and has no address, found {spec.base_url!r}",
            hint="a served model is vllm/NAME@ADDRESS",
        )
    said = {key: value for key, value in spec.options.items() if value is not None and key != "logprobs"}
    options = {"max_batch": MAX_BATCH, **said}
    _one_of("quantization", options.get("quantization"), QUANTIZATIONS)
    _one_of("dtype", options.get("dtype"), DTYPES)
    _one_of("chat_template", options.get("chat_template"), TEMPLATES)
    _one_of("head", options.get("head"), HEADS)
    if type(options["max_batch"]) is not int or options["max_batch"] < 1:
        raise ConfigError(f"max_batch is {options['max_batch']!r}", hint="write a whole number from 1")
    if "adapter" in options:
        options["adapter"] = _folder(str(options["adapter"]), "adapter", "adapter_config.json")
    return Source(_path(spec), weights=spec.weights, **options)


def _one_of(option: str, value: Any, known: Sequence[str]) -> None:
    if value is not None and value not in known:
        raise ConfigError(f"{option} is {value!r}", hint=f"there are: {', '.join(known)}")


def _path(spec: ModelSpec) -> str:
    """The folder or hub id behind a name; a service with a `library` looks its names up there."""
    library = services()[spec.service].get("library")
    if library is not None:
        return str(importlib.import_module(library).folder(spec.name))
    return _folder(spec.name, "model", "config.json")


def _folder(name: str, what: str, needed: str) -> str:
    """A folder as absolute path, or a hub id as it stands."""
    path = Path(name).expanduser()
    if path.is_dir():
        if not (path / needed).is_file():
            raise UsageError(f"{what} folder {name!r} has no {needed}", hint="give the folder that holds the weights")
        return str(path.resolve())
    if path.exists() or not _HUB_ID.match(name):
        raise UsageError(
            f"{what} {name!r} is neither a folder here nor a hub id", hint="give an existing folder, or ORG/NAME"
        )
    return name


def _packages(source: Source) -> list[str]:
    extra = {"peft": source.adapter, "bitsandbytes": source.quantization, "accelerate": source.quantization}
    return ["torch", "transformers", *(name for name, needed in extra.items() if needed is not None)]


# --- requests to rows and back -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """One request on its way, and where its result goes."""

    request: Request
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Completion]
    logprobs: bool
    """Whether the tokens' log-probabilities are wanted."""


_Result = tuple[_Call, Completion | PluribusError]


class _Runner:
    """A loaded model between requests and rows of tokens. One with a head that scores has no batcher: it only reads."""

    def __init__(self, source: Source) -> None:
        from pluribus.backends._batching import Batcher, own_stream
        from pluribus.backends._reading import Reader, continuations, rewards, steps

        self.form: StepForm | None = load_form(source) if source.head == PRM else None
        model = load_model(source)
        self.words = _words(source)
        self.context_length = context_length(model.config)
        self.head = source.head
        self.batcher: Batcher | None = None
        if self.head is None:
            self.batcher = Batcher(model, ends(model, self.words.tokenizer), source.max_batch)
        read = continuations if self.head is None else steps if self.head == PRM else rewards
        self.reader: Reader = Reader(model, read, source.max_batch)
        self._stream = own_stream(model.device)

    @property
    def busy(self) -> bool:
        return self.reader.busy or (self.batcher is not None and self.batcher.busy)

    def turn(self, calls: Sequence[_Call]) -> list[_Result]:
        """Takes new requests in, reads a batch, generates one token for all, and returns what is finished."""
        import torch

        refused = [(call, error) for call in calls if (error := self._begin(call)) is not None]
        with torch.cuda.stream(self._stream):  # None, as on a CPU, changes nothing
            self.reader.advance()
            rows = [] if self.batcher is None else self.batcher.advance()
        return [*refused, *self._results([*self.reader.take(), *rows])]

    def fail(self, error: PluribusError) -> list[_Result]:
        """Ends all that was asked with an error, or with what it had come to."""
        rows = [] if self.batcher is None else self.batcher.fail(error)
        return self._results([*self.reader.fail(error), *rows])

    def release(self) -> None:
        if self.batcher is not None:
            self.batcher.release()

    def _results(self, rows: Sequence[Row | Reading]) -> list[_Result]:
        return [(row.owner, self._result(row)) for row in rows]

    def _begin(self, call: _Call) -> PluribusError | None:
        """Puts a request in line, or says why it can not be run."""
        try:
            check_wishes(call.request)
            if self.batcher is None:
                self.reader.waiting.append(self._conversation(call))
            elif call.request.continuation is not None:
                self.reader.waiting.append(self._continuation(call, call.request.continuation))
            else:
                self.batcher.waiting.append(self._row(call))
        except PluribusError as error:
            return error
        except (ValueError, TypeError) as error:  # a tokenizer's way to reject text, such as half a surrogate pair
            return Refused(f"the prompt is not text: {error}")
        return None

    def _row(self, call: _Call) -> Row:
        from pluribus.backends._batching import Row

        sampling = call.request.sampling
        _check(sampling)
        said, prompt = self.words.prompt(call.request.messages)
        prompt += self._begun(call.request, said)
        stops = tuple(filter(None, sampling.stop))
        return Row(
            prompt=prompt,
            budget=min(sampling.max_tokens, self._room(len(prompt))),
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            draws=_draws(call.request),
            stopped=lambda tokens: bool(stops) and len(tokens) % _STOP_STRIDE == 0 and self._at_stop(tokens, stops),
            unwanted=call.future.cancelled,
            owner=call,
            logprobs=[] if call.logprobs or call.request.top_logprobs else None,
            top=call.request.top_logprobs,
        )

    def _begun(self, request: Request, prompt: str) -> tuple[int, ...]:
        """The tokens with which the reply is to begin, made on their own as those of a continuation are."""
        if request.prefill is None:
            return ()
        if prompt.rstrip().endswith(OPEN):
            raise Refused(
                "the model's chat template has it think first: what follows the prompt is no part of its reply",
                hint="take a model that answers at once",
            )
        return self.words.bare(request.prefill)

    def _continuation(self, call: _Call, text: str) -> Reading:
        """The prompt and the text after it. The text is made into tokens on its own: what a prompt ends with is never
        part of what a model generates."""
        from pluribus.backends._reading import Reading

        said, prompt = self.words.prompt(call.request.messages)
        if said.rstrip().endswith(OPEN):
            raise Refused(
                "the model's chat template has it think first: what follows the prompt is no part of its reply",
                hint="take a model that answers at once",
            )
        tokens = self.words.bare(text)
        if not tokens:
            raise Refused("the continuation is empty")
        if len(tokens) > self._room(len(prompt)):
            raise Refused(
                f"the prompt of {len(prompt)} tokens and the continuation of {len(tokens)} do not fit in the context "
                f"of {self.context_length}",
                hint="shorten them, or take a model with a longer context",
            )
        return Reading((*prompt, *tokens), call.future.cancelled, call, last=len(tokens))

    def _conversation(self, call: _Call) -> Reading:
        """The messages as a model with a head that scores reads them."""
        from pluribus.backends._reading import Reading

        request = call.request
        if request.prefill is not None:
            raise Refused("a reward model scores replies and goes on with none", hint=f"ask without head: {self.head}")
        if request.continuation is not None or request.top_logprobs:
            raise Refused(
                "a reward model gives a score and no log-probabilities", hint=f"ask without head: {self.head}"
            )
        if not request.messages or request.messages[-1].role != "assistant":
            raise Refused("a reward model scores a reply, and the messages do not end with one of the assistant's")
        tokens, places = self._marked(request) if self.form else (self.words.conversation(request.messages), ())
        if not tokens:
            raise Refused("the conversation is empty")
        if self.context_length is not None and len(tokens) > self.context_length:
            raise Refused(
                f"the conversation of {len(tokens)} tokens does not fit in the context of {self.context_length}",
                hint="take a model with a longer context",
            )
        return Reading(tokens, call.future.cancelled, call, places=places)

    def _marked(self, request: Request) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Tokens of the conversation, and where the steps of its last message end."""
        assert self.form is not None
        *asked, reply = request.messages
        steps = split_steps(reply.content, self.form.cut)
        if not asked or not steps:
            raise Refused(
                "a process reward model marks the steps of a reply to a question, and there is no "
                + ("question" if not asked else "step in the reply")
            )
        return self.words.marked(tuple(asked), steps, self.form)

    def _room(self, used: int) -> int:
        """How many tokens may follow a prompt."""
        if used == 0:
            raise Refused("the prompt is empty")
        if self.context_length is None:
            return 2**31
        if used >= self.context_length:
            raise Refused(
                f"the prompt of {used} tokens leaves no room in the context of {self.context_length}",
                hint="shorten the question, take fewer agents or rounds, or a model with a longer context",
            )
        return self.context_length - used

    def _at_stop(self, tokens: Sequence[int], stops: Sequence[str]) -> bool:
        """Whether the newest tokens hold a stop string; a token is at least one character, or part of one."""
        newest = self.words.decode(tokens[-(_STOP_STRIDE + 4 * max(map(len, stops))) :])
        return any(stop in newest for stop in stops)

    def _result(self, row: Row | Reading) -> Completion | PluribusError:
        """What a row that ended says."""
        from pluribus.backends._reading import Reading

        if isinstance(row.ended, PluribusError):
            return row.ended
        return self._read(row) if isinstance(row, Reading) else self._generated(row)

    def _read(self, row: Reading) -> Completion:
        asked: str | None = row.owner.request.continuation
        found: dict[str, Any] = {"logprobs": tuple(row.values)} if asked is not None else {"scores": self._scores(row)}
        return Completion(asked or "", "", prompt_tokens=row.size, completion_tokens=0, cost_usd=0.0, **found)

    def _scores(self, row: Reading) -> dict[str, float]:
        """By name, what the head says."""
        if self.head != PRM:
            return {"reward": row.values[0]}
        return {f"step {number}": value for number, value in enumerate(row.values, 1)} | summaries(row.values)

    def _generated(self, row: Row) -> Completion:
        request: Request = row.owner.request
        tokens, text, reason = self._cut(row, tuple(filter(None, request.sampling.stop)))
        opened = self.words.prompt(request.messages)[0].rstrip().endswith(OPEN)
        said, reasoning = split_think(OPEN + text if opened else text)
        return Completion(
            text=said,
            model="",  # the backend's name is put in by the backend: several may share this runner
            finish_reason=reason,
            reasoning=reasoning,
            prompt_tokens=len(row.prompt),
            completion_tokens=tokens,
            logprobs=None if row.logprobs is None else tuple(row.logprobs[:tokens]),
            top_logprobs=tuple(map(self._by_text, row.alternatives[:tokens])) if row.top else None,
            reasoning_tokens=None if reasoning is None else len(self.words.encode(reasoning)),
            cost_usd=0.0,
        )

    def _by_text(self, alternatives: Sequence[tuple[int, float]]) -> Mapping[str, float]:
        """Tokens as texts; what tokens of one text have is added up: it is the probability of reading that text."""
        return add_up((self.words.piece(token), logprob) for token, logprob in alternatives)

    def _behind(self, row: Row) -> str:
        """The text that was generated. Behind a beginning it is read together with that: alone, some tokenizers take
        the space off its first word."""
        prefill = row.owner.request.prefill
        if prefill is None:
            return self.words.decode(row.tokens)
        begun = self.words.bare(prefill)
        head, whole = self.words.decode(begun), self.words.decode((*begun, *row.tokens))
        return whole[len(head) :] if whole.startswith(head) else self.words.decode(row.tokens)

    def _cut(self, row: Row, stops: Sequence[str]) -> tuple[int, str, str]:
        """Tokens, text and finish reason, up to the first stop string."""
        text = self._behind(row)
        found = [at for stop in stops if (at := text.find(stop)) >= 0]
        if not found:
            return len(row.tokens), text, str(row.ended)
        used = range(max(1, len(row.tokens) - 2 * _STOP_STRIDE), len(row.tokens))
        short = (n for n in used if any(stop in self.words.decode(row.tokens[:n]) for stop in stops))
        return next(short, len(row.tokens)), text[: min(found)], "stop"


def _check(sampling: Sampling) -> None:
    if not (sampling.temperature >= 0 and 0 < sampling.top_p <= 1 and sampling.max_tokens >= 1):
        raise Refused(
            f"temperature {sampling.temperature}, top_p {sampling.top_p}, max_tokens {sampling.max_tokens}",
            hint="temperature is at least 0, top_p in (0, 1], max_tokens at least 1",
        )


def _draws(request: Request) -> random.Random:
    """The request's own uniform numbers; without a seed they are new every time."""
    seed = request.sampling.seed
    return random.Random() if seed is None else random.Random(f"{seed}/{request.sample}")


def _placed(source: Source) -> Source:
    """On the GPU that the calling thread uses: which one that is a thread of its own would not know."""
    torch = sys.modules.get("torch")  # who has chosen a GPU has imported it
    if source.device is None and torch is not None and torch.cuda.is_available():
        return replace(source, device=f"cuda:{torch.cuda.current_device()}")
    return source


# --- the worker --------------------------------------------------------------------------------------------------


class _Worker:
    """A thread that loads one model and runs all requests for it together."""

    def __init__(self, source: Source) -> None:
        self._source = _placed(source)
        self._inbox: list[_Call] = []
        self._changed = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None
        self._runner: _Runner | None = None

    def submit(self, call: _Call) -> None:
        with self._changed:
            self._inbox.append(call)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"local {self._source.path}", daemon=True)
                self._thread.start()
            self._changed.notify()

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_PARTING_S)

    def _run(self) -> None:
        while (calls := self._arrivals()) is not None:
            _deliver(self._advance(calls))
        _deliver(self._fail(self._inbox, BackendError(f"model {self._source.path!r} was closed")))
        self._runner = None

    def _arrivals(self) -> list[_Call] | None:
        """New requests; waits for some when nothing runs. None: the worker is told to stop."""
        if self._runner is None or not self._runner.busy:
            self._rest()
        with self._changed:
            if self._stopping:
                return None
            calls, self._inbox = self._inbox, []
            return calls

    def _rest(self) -> None:
        with self._changed:
            if not self._changed.wait_for(self._called, _IDLE_S):
                if self._runner is not None:
                    self._runner.release()
                self._changed.wait_for(self._called)
        time.sleep(_GATHER_S)

    def _called(self) -> bool:
        return self._stopping or bool(self._inbox)

    def _advance(self, calls: list[_Call]) -> list[_Result]:
        try:
            self._runner = self._runner or _Runner(self._source)
            return self._runner.turn(calls)
        except PluribusError as error:  # the model could not be loaded
            return self._fail(calls, error)
        except Exception as error:  # whatever a foreign library raises, the callers must hear of it and the thread live
            reason = str(error).strip().splitlines() or [""]
            return self._fail(calls, BackendError(f"{self._source.path}: {type(error).__name__}: {reason[0]}"))

    def _fail(self, calls: Sequence[_Call], error: PluribusError) -> list[_Result]:
        """Everything asked so far ends with an error, or with what it had come to."""
        results: list[_Result] = [(call, error) for call in calls]
        if self._runner is not None:
            results += self._runner.fail(error)
        return results


def _deliver(results: Sequence[_Result]) -> None:
    """Hands results to the event loops that wait for them, in one go per loop."""
    for loop in {call.loop for call, _ in results}:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, [(call, result) for call, result in results if call.loop is loop])


def _settle(results: Sequence[_Result]) -> None:
    for call, result in results:
        if call.future.done():
            continue
        if isinstance(result, Completion):
            call.future.set_result(result)
        else:
            call.future.set_exception(result)


class _Lease:
    """The right to use a worker. When the last holder lets go of it, the worker stops."""

    __slots__ = ("__weakref__", "worker")

    def __init__(self, source: Source) -> None:
        self.worker = _Worker(source)
        weakref.finalize(self, self.worker.stop)


_LEASES: weakref.WeakValueDictionary[Source, _Lease] = weakref.WeakValueDictionary()
_HIRING = threading.Lock()


def _hire(source: Source) -> _Lease:
    """The lease of a source's worker; equal sources share one."""
    with _HIRING:
        lease = _LEASES.get(source)
        if lease is None:
            lease = _LEASES[source] = _Lease(source)
        return lease
