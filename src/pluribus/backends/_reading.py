"""Sequences that a model of `transformers` reads without generating: one forward pass over a padded batch.

`continuations` gives the log-probabilities of given tokens under a causal language model, `rewards` the score of a
sequence-classification head with one output, `steps` what a token-classification head says of each step. Which rows
share a batch changes their numbers by rounding only.

Shapes: _B rows in the batch, _W columns, _K columns kept, _V vocabulary.
"""

from __future__ import annotations

import inspect
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from pluribus.backends._batching import PREFILL_TOKENS, THREADS, out_of_memory
from pluribus.errors import BackendError, PluribusError

LEAST_LOGPROB = -9999.0
"""What stands for the logarithm of 0, as vLLM and OpenAI write it."""


@dataclass(slots=True, eq=False)
class Reading:
    """One sequence to be read."""

    tokens: tuple[int, ...]
    unwanted: Callable[[], bool]
    """Whether nobody waits for it any more."""
    owner: Any = None
    last: int = 0
    """The log-probabilities of so many of its last tokens are wanted."""
    places: tuple[int, ...] = ()
    """Where its steps end, for a head that marks steps."""
    values: list[float] = field(default_factory=list)
    """The log-probabilities, nats; of a reward head the one score; of one that marks steps P(good) of each."""
    ended: str | PluribusError | None = None
    """`read`, or why it was not."""

    @property
    def size(self) -> int:
        return len(self.tokens)


Read = Callable[[Any, Sequence[Reading]], list[list[float]]]
"""(model, rows) → the values of each row."""


class Reader:
    """Rows that wait to be read, and those that were.

    Args:
        model: in evaluation mode.
        read: `continuations`, `rewards` or `steps`.
        max_batch: most rows in one forward pass; halved whenever the memory does not suffice.
    """

    def __init__(self, model: Any, read: Read, max_batch: int) -> None:
        self.max_batch = max_batch
        self.waiting: deque[Reading] = deque()
        self._model = model
        self._read = read
        self._done: list[Reading] = []

    @property
    def busy(self) -> bool:
        return bool(self.waiting)

    def advance(self) -> None:
        """One forward pass over rows of about one length, the oldest among them."""
        self._drop_unwanted()
        rows = self._next()
        if not rows:
            return
        torch.set_num_threads(THREADS)  # holds for the calling thread
        try:
            with torch.inference_mode():
                values = self._read(self._model, rows)
        except (MemoryError, RuntimeError) as error:
            if not out_of_memory(error):
                raise
            self._retreat(rows, error)
            return
        for row, found in zip(rows, values, strict=True):
            row.values, row.ended = found, "read" if all(map(math.isfinite, found)) else _not_finite()
        self._finish(rows)

    def take(self) -> list[Reading]:
        """The rows that ended since the last time."""
        done, self._done = self._done, []
        return done

    def fail(self, error: PluribusError) -> list[Reading]:
        """Ends every row with an error; returns them and those that had ended before."""
        for row in self.waiting:
            row.ended = error
        self._finish(list(self.waiting))
        return self.take()

    def _drop_unwanted(self) -> None:
        gone = [row for row in self.waiting if row.unwanted()]
        for row in gone:
            row.ended = BackendError("cancelled")
        self._finish(gone)

    def _next(self) -> list[Reading]:
        """The rows of the next pass; they stay in line until they are read, so that an error loses none."""
        rows: list[Reading] = []
        width = 0
        for row in sorted(self.waiting, key=lambda row: abs(row.size - self.waiting[0].size)):
            width = max(width, row.size)
            if rows and (len(rows) == self.max_batch or (len(rows) + 1) * width > PREFILL_TOKENS):
                break
            rows.append(row)
        return rows

    def _finish(self, rows: Sequence[Reading]) -> None:
        gone = set(map(id, rows))
        self.waiting = deque(row for row in self.waiting if id(row) not in gone)
        self._done += rows

    def _retreat(self, rows: Sequence[Reading], error: Exception) -> None:
        """Out of memory: half as many are read at once; a row that was alone ends with an error."""
        self.max_batch = max(1, len(rows) // 2)
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if len(rows) > 1:
            return
        rows[0].ended = BackendError(
            f"out of memory on {self._model.device} with one sequence of {rows[0].size} tokens: "
            f"{str(error).splitlines()[0]}",
            hint="choose a smaller model, or quantization: 4bit",
        )
        self._finish(rows)


def _not_finite() -> BackendError:
    return BackendError("the model's output is not finite", hint="try the option dtype: float32, or bfloat16 on a GPU")


def continuations(model: Any, rows: Sequence[Reading]) -> list[list[float]]:
    """Log-probability of each of the `last` tokens of each row given those before it, nats, by the model's own
    distribution: log-softmax of the logits at temperature 1."""
    kept = max(row.last for row in rows) + 1
    ids, mask, positions = _left_padded(model, rows)
    logits_B_K_V = _forward(
        model, input_ids=ids, attention_mask=mask, position_ids=positions, logits_to_keep=kept, use_cache=False
    )
    return [_logprobs(logits, row) for logits, row in zip(logits_B_K_V, rows, strict=True)]


def _logprobs(logits_K_V: torch.Tensor, row: Reading) -> list[float]:
    before = logits_K_V[-row.last - 1 : -1].float()
    tokens = torch.tensor(row.tokens[-row.last :], device=before.device)
    logprobs = before.gather(-1, tokens[:, None])[:, 0] - before.logsumexp(-1)
    found: list[float] = logprobs.clamp(min=LEAST_LOGPROB).tolist()  # not-a-number stays what it is
    return found


def rewards(model: Any, rows: Sequence[Reading]) -> list[list[float]]:
    """The one score of each row.

    The model finds a row's last token as the last that is not its padding token. Where it has none, rows are padded
    on the left and every token counts.
    """
    config = model.config.get_text_config()
    padding = config.pad_token_id
    if padding is not None and padding >= 0:
        ids, mask = _right_padded(model, rows, padding)
        scores_B_1 = _forward(model, input_ids=ids, attention_mask=mask, use_cache=False)
    else:
        ids, mask, positions = _left_padded(model, rows)
        config.pad_token_id = -1
        scores_B_1 = _forward(model, input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=False)
    found: list[list[float]] = scores_B_1.float().tolist()
    return found


def steps(model: Any, rows: Sequence[Reading]) -> list[list[float]]:
    """P(good) at each of a row's `places`: softmax over the head's two outputs, the second of which says good."""
    ids, mask = _right_padded(model, rows, 0)
    logits_B_W_2 = _forward(model, input_ids=ids, attention_mask=mask, use_cache=False)
    return [good(logits_W_2[list(row.places)]).tolist() for logits_W_2, row in zip(logits_B_W_2, rows, strict=True)]


def good(logits_P_2: torch.Tensor) -> torch.Tensor:
    """P(good), _P, in [0, 1]."""
    return logits_P_2.float().softmax(-1)[..., 1]


def _left_padded(model: Any, rows: Sequence[Reading]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Token ids, mask and positions, _B × _W."""
    width = max(row.size for row in rows)
    ids = torch.tensor([[0] * (width - row.size) + list(row.tokens) for row in rows], device=model.device)
    padding = torch.tensor([width - row.size for row in rows], device=model.device)[:, None]
    positions = torch.arange(width, device=model.device)[None] - padding
    return ids, positions >= 0, positions.clamp(min=0)


def _right_padded(model: Any, rows: Sequence[Reading], padding: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and mask, _B × _W."""
    width = max(row.size for row in rows)
    ids = torch.tensor([list(row.tokens) + [padding] * (width - row.size) for row in rows], device=model.device)
    lengths = torch.tensor([row.size for row in rows], device=model.device)[:, None]
    return ids, torch.arange(width, device=model.device)[None] < lengths


def _forward(model: Any, **inputs: Any) -> torch.Tensor:
    accepted = inspect.signature(model.forward).parameters
    output = model(**{name: value for name, value in inputs.items() if name in accepted})
    logits: torch.Tensor = output.logits
    return logits
