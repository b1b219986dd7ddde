"""Continuous batching of token sequences over one causal language model of `transformers`.

Rows join and leave between decoding steps. All rows end in the same column of one key-value cache, so a row's padding
is on its left and any decoder-only attention model runs unchanged. A row's randomness is its own: which rows share its
batch changes its logits by rounding only.

Shapes: _B rows in the batch, _W columns in view, _V vocabulary.
"""

from __future__ import annotations

import inspect
import math
import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedConfig
from transformers.cache_utils import Cache, CacheLayerMixin, get_layer_types_and_kwargs

from pluribus.errors import BackendError, PluribusError, UsageError

PREFILL_TOKENS = 4096
"""Most padded prompt tokens in one forward pass; prompts are sorted by length first, so little of it is padding."""
_LONGEST_WAIT = 8
"""Steps after which waiting rows join, however few they are."""
_COPIED_ROWS = 16
"""Rows moved at once within the cache: what is copied on the way stays in the processor's own memory."""
_MOST_PASSES = 16
"""Joins after which the row that waits longest joins, whatever its length."""
_JOINING_SHARE = 16
"""Waiting rows join at once when they are at least one in so many of the running ones."""
_SLACK = 96
"""Free columns on each side of the rows in a cache that is laid out anew: steps until the next time, and how much
longer a prompt may be that joins until then."""
_SMALL_MODEL = 20_000_000
"""On a CPU, a model of fewer parameters reads prompts on all threads and generates on one: a token's operations are so
short that threads which wait for each other at every one of them lose far more than they gain."""
THREADS = torch.get_num_threads()
_TOP_P_FIRST = 64
"""How many of the likeliest tokens are looked at before the whole vocabulary is sorted for top-p."""


@dataclass(slots=True, eq=False)
class Row:
    """One sequence being generated."""

    prompt: tuple[int, ...]
    budget: int
    """Most tokens to generate."""
    temperature: float
    top_p: float
    draws: random.Random
    """The row's own source of uniform numbers: one per token."""
    stopped: Callable[[list[int]], bool]
    """Whether the tokens so far contain a stop string."""
    unwanted: Callable[[], bool]
    """Whether nobody waits for this row any more."""
    owner: Any = None
    logprobs: list[float] | None = None
    """Where each token's log-probability goes, in nats, before temperature and top-p; None: nowhere."""
    top: int = 0
    """How many of the likeliest tokens at each place are noted in `alternatives`."""
    alternatives: list[list[tuple[int, float]]] = field(default_factory=list)
    """For each token the likeliest tokens at its place, with their log-probabilities as above, likeliest first."""
    tokens: list[int] = field(default_factory=list)
    ended: str | PluribusError | None = None
    """The finish reason, or why there is none."""

    @property
    def size(self) -> int:
        return len(self.prompt) + len(self.tokens)

    @property
    def context(self) -> tuple[int, ...]:
        return (*self.prompt, *self.tokens) if self.tokens else self.prompt


class Batcher:
    """The decoding loop's state: rows that run, rows that wait, and the cache they share.

    Args:
        model: a causal language model in evaluation mode.
        ends: token ids that end a sequence.
        max_batch: most rows run at once; halved whenever the memory does not suffice.
    """

    def __init__(self, model: Any, ends: frozenset[int], max_batch: int) -> None:
        self.max_batch = max_batch
        self.running: list[Row] = []
        self.waiting: deque[Row] = deque()
        self._model = model
        self._layers = _layer_count(model.config.get_text_config())
        self._ends = ends
        self._accepts = frozenset(inspect.signature(model.forward).parameters)
        self._cache = _Slab(self._layers, self.max_batch)
        self._begins: list[int] = []
        """The cache column of each running row's first token."""
        self._patience = 0
        self._passes = 0
        """Joins since the oldest waiting row was sure to be among them."""
        self._done: list[Row] = []
        self._tried: list[Row] = []
        """The rows of the last forward pass, and those that ran beside it."""
        small = sum(weight.numel() for weight in model.parameters()) < _SMALL_MODEL
        self._threads = 1 if small else THREADS

    @property
    def busy(self) -> bool:
        return bool(self.running or self.waiting)

    def advance(self) -> list[Row]:
        """Lets waiting rows join, generates one token for every running row, and returns the rows that ended."""
        for row in self.running:
            if row.unwanted():
                row.ended = "cancelled"
        with torch.inference_mode():
            try:
                self._leave()
                torch.set_num_threads(THREADS)  # holds for the calling thread
                self._join()
                torch.set_num_threads(self._threads)
                self._leave()
                self._step()
            except (MemoryError, RuntimeError) as error:
                if not out_of_memory(error):
                    raise
                self._retreat(error)
            self._leave()
        done, self._done = self._done, []
        return done

    def fail(self, error: PluribusError) -> list[Row]:
        """Ends every row with an error; returns them and those that had ended before."""
        rows = [*self.running, *self.waiting]
        for row in rows:
            row.ended = error
        rows, self._done = self._done + rows, []
        self.waiting.clear()
        self.release()
        return rows

    def release(self) -> None:
        """Gives the cache's memory back; running rows are forgotten."""
        self.running, self._begins, self._tried = [], [], []
        self._cache = _Slab(self._layers, self.max_batch)

    def _join(self) -> None:
        """Waiting rows join when they are worth a forward pass of their own or have waited long enough."""
        self._patience += 1
        room = min(self.max_batch - len(self.running), len(self.waiting))
        if room <= 0 or (room * _JOINING_SHARE < len(self.running) and self._patience < _LONGEST_WAIT):
            return
        self._patience = 0
        wanted = [row for row in self._choose_joining(room) if not row.unwanted()]
        chunks = deque(_chunks(wanted))
        self._tried = [*self.running, *wanted]
        try:
            self._reserve(len(self._tried), max((row.size for row in wanted), default=0))
            while chunks:
                self._prefill(chunks[0])
                chunks.popleft()
        finally:  # after an error, those that did not get in wait on
            self.waiting.extendleft(row for chunk in reversed(chunks) for row in reversed(chunk))

    def _choose_joining(self, room: int) -> list[Row]:
        """Takes out of the line the rows nearest in length to those that run, as every row is as wide as the longest.

        The oldest row sets the length when nothing runs, or when it has been passed over for too long.
        """
        if room == len(self.waiting):
            rows, self.waiting = list(self.waiting), deque()
            return rows
        self._passes += 1
        lengths = sorted(row.size for row in self.running)
        if not lengths or self._passes > _MOST_PASSES:
            self._passes = 0
            lengths = [self.waiting[0].size]
        middle = lengths[len(lengths) // 2]
        order = sorted(range(len(self.waiting)), key=lambda i: abs(self.waiting[i].size - middle))
        taken = set(order[:room])
        rows = [row for i, row in enumerate(self.waiting) if i in taken]
        self.waiting = deque(row for i, row in enumerate(self.waiting) if i not in taken)
        return rows

    def _prefill(self, rows: list[Row]) -> None:
        """Runs the prompts of new rows; equal contexts are run once and copied."""
        self._tried = [*self.running, *rows]
        places: dict[tuple[int, ...], int] = {}
        origin = [places.setdefault(row.context, len(places)) for row in rows]
        contexts = list(places)
        width, first = max(map(len, contexts)), len(self.running)
        cache, device = self._cache, self._model.device
        self._reserve(first + len(rows), width)
        cache.aim(slice(first, first + len(contexts)), cache.edge - width, cache.edge - width, cache.edge)
        ids = torch.tensor([[0] * (width - len(c)) + list(c) for c in contexts], device=device)
        padding = torch.tensor([width - len(c) for c in contexts], device=device)[:, None]
        positions = torch.arange(width, device=device)[None] - padding
        logits = self._forward(ids, positions >= 0, positions.clamp(min=0))
        cache.move([first + i for i in origin], list(range(first, first + len(rows))), cache.edge - width)
        self._emit(rows, logits[torch.tensor(origin, device=device)])
        self.running += rows
        self._begins += [cache.edge - len(contexts[i]) for i in origin]

    def _step(self) -> None:
        """Writes every running row's newest token into the cache and draws the next."""
        rows, cache, device = self.running, self._cache, self._model.device
        if not rows:
            return
        self._tried = rows
        self._reserve(len(rows), 0)
        low = min(self._begins)
        cache.aim(slice(0, len(rows)), low, cache.edge, cache.edge + 1)
        begins = torch.tensor(self._begins, device=device)[:, None]
        ids = torch.tensor([row.tokens[-1] for row in rows], device=device)[:, None]
        mask = torch.arange(low, cache.edge + 1, device=device)[None] >= begins
        logits = self._forward(ids, mask, cache.edge - begins)
        cache.edge += 1
        self._emit(rows, logits)

    def _reserve(self, rows: int, width: int) -> None:
        low = min(self._begins, default=self._cache.edge)
        shift = self._cache.reserve(len(self.running), low, rows, width)
        if shift:
            self._begins = [begin + shift for begin in self._begins]

    def _forward(self, ids: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Logits after the last column, float32, _B × _V."""
        inputs = {"input_ids": ids, "attention_mask": mask, "position_ids": positions, "logits_to_keep": 1}
        known = {name: value for name, value in inputs.items() if name in self._accepts}
        output = self._model(**known, past_key_values=self._cache, use_cache=True)
        logits: torch.Tensor = output.logits[:, -1].float()
        return logits

    def _emit(self, rows: Sequence[Row], logits: torch.Tensor) -> None:
        """Draws one token for each row."""
        asked = [(row.temperature, row.top_p, row.draws.random()) for row in rows]
        temperature, top_p, draws = torch.tensor(asked, device=logits.device, dtype=torch.float32).unbind(1)
        tokens = choose(logits, temperature, top_p, draws)
        if any(row.logprobs is not None for row in rows):
            _note_logprobs(rows, logits, tokens)
        if any(row.top for row in rows):
            _note_alternatives(rows, logits)
        for row, token in zip(rows, tokens.tolist(), strict=True):
            _append(row, token, self._ends)

    def _leave(self) -> None:
        """Takes out the rows that ended; the last rows move into the holes."""
        rows, begins = self.running, self._begins
        ended = [row for row in rows if row.ended is not None]
        if not ended:
            return
        stay = len(rows) - len(ended)
        broken = [i for i, row in enumerate(rows) if isinstance(row.ended, PluribusError)]
        holes = [i for i in range(stay) if rows[i].ended is not None]
        movers = [i for i in range(stay, len(rows)) if rows[i].ended is None]
        if broken:
            self._cache.clear(broken)
        self._cache.move(movers, holes, min(begins))
        for hole, mover in zip(holes, movers, strict=True):
            rows[hole], begins[hole] = rows[mover], begins[mover]
        self.running, self._begins = rows[:stay], begins[:stay]
        self._done += ended

    def _retreat(self, error: Exception) -> None:
        """Out of memory: all rows wait again and half as many may run; a row that ran alone ends with an error."""
        tried, lost = self._tried, self.running
        self.max_batch = max(1, len(tried) // 2)
        self.waiting.extendleft(reversed(lost))
        self.release()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if len(tried) > 1:
            return
        row = self.waiting.popleft()
        row.ended = BackendError(
            f"out of memory on {self._model.device} with one sequence of {row.size} tokens: "
            f"{str(error).splitlines()[0]}",
            hint="choose a smaller model or max_tokens, or quantization: 4bit",
        )
        self._done.append(row)


def own_stream(device: torch.device) -> torch.cuda.Stream | None:
    """A GPU's queue of its own, so that several models run beside each other; it starts when the weights are there.
    None on a CPU, where threads run beside each other anyway."""
    if device.type != "cuda":
        return None
    torch.cuda.synchronize(device)
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # torch leaves it untyped


def _note_logprobs(rows: Sequence[Row], logits: torch.Tensor, tokens: torch.Tensor) -> None:
    taken = logits.gather(-1, tokens.clamp(min=0)[:, None])[:, 0] - logits.logsumexp(-1)
    for row, logprob in zip(rows, taken.tolist(), strict=True):
        if row.logprobs is not None:
            row.logprobs.append(logprob)


def _note_alternatives(rows: Sequence[Row], logits: torch.Tensor) -> None:
    places = [i for i, row in enumerate(rows) if row.top]
    asked = logits[torch.tensor(places, device=logits.device)]
    likeliest, tokens = asked.topk(min(max(rows[i].top for i in places), asked.shape[-1]), -1)
    logprobs = (likeliest - asked.logsumexp(-1, keepdim=True)).tolist()
    for i, ids, values in zip(places, tokens.tolist(), logprobs, strict=True):
        pairs = zip(ids, values, strict=True)
        rows[i].alternatives.append([pair for pair in pairs if math.isfinite(pair[1])][: rows[i].top])


def _append(row: Row, token: int, ends: frozenset[int]) -> None:
    if token < 0:
        row.ended = BackendError(
            "the model's logits are not finite", hint="try the option dtype: float32, or bfloat16 on a GPU"
        )
        return
    row.tokens.append(token)
    if token in ends or row.stopped(row.tokens):
        row.ended = "stop"
    elif len(row.tokens) >= row.budget:
        row.ended = "length"


def choose(logits: torch.Tensor, temperature: torch.Tensor, top_p: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
    """One token per row by inverse transform sampling: the first whose cumulative probability exceeds the draw.

    Args:
        logits: float32, _B × _V.
        temperature: _B, at least 0; 0 takes the likeliest token.
        top_p: _B, in (0, 1]; the smallest set of likeliest tokens with at least this probability is kept.
        draws: _B, uniform in [0, 1).

    Returns:
        Token ids, _B; -1 where the logits are not finite.

    >>> both = torch.log(torch.tensor([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]]))
    >>> choose(both, torch.ones(2), torch.tensor([1.0, 0.7]), torch.tensor([0.9, 0.9])).tolist()
    [2, 1]
    """
    greedy = temperature <= 0
    likeliest, tokens = logits.max(-1)
    if not greedy.all():
        weights = torch.softmax(logits / temperature.masked_fill(greedy, 1.0)[:, None], -1)
        weights = weights * (weights >= _least_kept(weights, top_p)[:, None])
        heaps = weights.cumsum(-1)
        # A draw that rounds to 1 would point behind the last token.
        target = draws.clamp(max=1 - 2**-22) * heaps[:, -1]
        drawn = torch.searchsorted(heaps, target[:, None], right=True)[:, 0].clamp(max=logits.shape[-1] - 1)
        tokens = torch.where(greedy, tokens, drawn)
        likeliest = likeliest + heaps[:, -1]
    return torch.where(likeliest.isfinite(), tokens, -1)


def _least_kept(weights: torch.Tensor, top_p: torch.Tensor) -> torch.Tensor:
    """The probability of the least likely token that top-p keeps, _B; 0 where everything is kept."""
    if bool((top_p >= 1).all()):
        return torch.zeros_like(top_p)
    ordered = weights.topk(min(_TOP_P_FIRST, weights.shape[-1])).values
    if bool(((ordered.sum(-1) < top_p) & (top_p < 1)).any()):
        ordered = weights.sort(-1, descending=True).values
    before = ordered.cumsum(-1) - ordered
    kept = (before < top_p[:, None]).sum(-1).clamp(min=1)
    least = ordered.gather(-1, kept[:, None] - 1)[:, 0]
    return least.masked_fill(top_p >= 1, 0.0)


def _chunks(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Rows by length, cut so that a chunk's padded tokens stay within the limit."""
    chunk: list[Row] = []
    for row in sorted(rows, key=lambda row: row.size):
        if chunk and (len(chunk) + 1) * row.size > PREFILL_TOKENS:
            yield chunk
            chunk = []
        chunk.append(row)
    if chunk:
        yield chunk


def out_of_memory(error: Exception) -> bool:
    """The allocator of the CPU raises a bare RuntimeError."""
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error)


_PLAIN_LAYERS = frozenset({"full_attention", "sliding_attention", "chunked_attention"})


def _layer_count(config: PreTrainedConfig) -> int:
    """How many attention layers; left padding and rows that move need every layer to have keys and values only."""
    kinds, _ = get_layer_types_and_kwargs(config)
    if getattr(config, "is_encoder_decoder", False) or not _PLAIN_LAYERS.issuperset(kinds):
        raise UsageError(
            f"model type {config.model_type!r} is not a decoder-only attention model",
            hint="serve it with vLLM and name it vllm/MODEL",
        )
    return len(kinds)


class _Slab(Cache):
    """Keys and values of all rows, allocated ahead.

    The window that the model reads and writes is set by `aim`. What it reads outside a row's own columns is masked,
    and finite, because the memory starts as zeros.
    """

    def __init__(self, layers: int, most_rows: int) -> None:
        self._most_rows = most_rows
        self.planes = [_Plane(self) for _ in range(layers)]
        super().__init__(layers=list(self.planes))
        self.rows = 0
        self.columns = 0
        self.edge = 0
        """The column that the next token is written to."""
        self.seen = self.read = self.write = slice(0, 0)

    def aim(self, rows: slice, low: int, start: int, stop: int) -> None:
        """The rows in view; they read the columns from `low` and write those from `start`, both up to `stop`."""
        self.seen, self.read, self.write = rows, slice(low, stop), slice(start, stop)

    def reserve(self, live: int, low: int, rows: int, width: int) -> int:
        """Makes room for `rows` rows, `width` columns left of the edge and one right of it; returns the edge's shift.

        Args:
            live: how many rows hold something, from column `low` to the edge, that is kept.
            low: the first column in use.
            rows: rows needed.
            width: columns needed left of the edge.
        """
        if rows <= self.rows and width <= self.edge < self.columns:
            return 0
        used = max(self.edge - low, width)
        if rows > self.rows or used + _SLACK > self.columns:
            self.columns = max(self.columns, used + 2 * _SLACK)
            self.rows = max(rows, min(self._most_rows, 1 << rows.bit_length()))
        edge = used + (self.columns - used) // 2
        for plane in self.planes:
            plane.relay(live, slice(low, self.edge), edge)
        shift, self.edge = edge - self.edge, edge
        return shift

    def move(self, sources: Sequence[int], targets: Sequence[int], low: int) -> None:
        """Copies rows, from column `low` to the edge."""
        if sources and sources != targets:
            for plane in self.planes:
                plane.move(sources, targets, slice(low, self.edge))

    def clear(self, rows: Sequence[int]) -> None:
        """Zeroes rows: what is not finite would reach later rows through the mask, as zero times not-a-number."""
        for plane in self.planes:
            plane.stored_keys[rows] = 0
            plane.stored_values[rows] = 0


class _Plane(CacheLayerMixin):  # type: ignore[no-untyped-call]  # transformers leaves it untyped
    """One layer of the slab: rows × heads × columns × head size, for keys and for values."""

    is_sliding = False  # whole columns are kept: the model's own mask narrows them to its window

    def __init__(self, slab: _Slab) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # transformers leaves it untyped
        self._slab = slab
        self.stored_keys = self.stored_values = torch.empty(0)

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.stored_keys, self.stored_values = self._blank(key_states), self._blank(value_states)
        self.is_initialized = True

    def _blank(self, like: torch.Tensor) -> torch.Tensor:
        shape = (self._slab.rows, like.shape[1], self._slab.columns, like.shape[3])
        if like.device.type != "cpu":
            return like.new_zeros(shape)
        # numpy's zeros are the system's: memory that is never used is never touched.
        zeros = np.zeros(math.prod(shape) * like.element_size(), dtype=np.uint8)
        return torch.from_numpy(zeros).view(like.dtype).view(shape)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        slab = self._slab
        self.stored_keys[slab.seen, :, slab.write] = key_states
        self.stored_values[slab.seen, :, slab.write] = value_states
        return self.stored_keys[slab.seen, :, slab.read], self.stored_values[slab.seen, :, slab.read]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.get_seq_length() + query_length, 0

    def get_seq_length(self) -> int:
        return self._slab.write.start - self._slab.read.start

    def get_max_length(self) -> int:
        return -1

    def relay(self, live: int, used: slice, edge: int) -> None:
        """Lays the used columns of the live rows out anew so that they end at `edge`, in the slab's present size."""
        if self.is_initialized:
            self.stored_keys = self._relaid(self.stored_keys, live, used, edge)
            self.stored_values = self._relaid(self.stored_values, live, used, edge)

    def _relaid(self, old: torch.Tensor, live: int, used: slice, edge: int) -> torch.Tensor:
        new = old
        if (old.shape[0], old.shape[2]) != (self._slab.rows, self._slab.columns):
            new = self._blank(old)
        kept, place = old[:live, :, used], new[:live, :, edge - (used.stop - used.start) : edge]
        for source, target in zip(torch.split(kept, _COPIED_ROWS), torch.split(place, _COPIED_ROWS), strict=True):
            target.copy_(source.clone() if new is old else source)
        return new

    def move(self, sources: Sequence[int], targets: Sequence[int], used: slice) -> None:
        self.stored_keys[targets, :, used] = self.stored_keys[sources, :, used]
        self.stored_values[targets, :, used] = self.stored_values[sources, :, used]
