"""What a file of pairs holds, and how much of its gradient points one way. Private to `distil.py`."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import logsigmoid
from transformers import AutoModelForCausalLM

from pluribus.zoo.tokenizer import open_tokenizer

Row = dict[str, Any]
BETA = 0.1
BATCH = 16


def read_pairs(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def write_pairs(path: Path, rows: Sequence[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


def facts(rows: Sequence[Row], model: Path) -> dict[str, Any]:
    """Pair accuracy is the share of the pairs with one right and one wrong reply in which the right one is chosen."""
    decidable = [row for row in rows if row.get("chosen_correct") != row.get("rejected_correct")]
    better = sum(bool(row["chosen_correct"]) for row in decidable)
    margins = [row["margin"] for row in rows if row.get("margin") is not None]
    return {
        "pairs": len(rows),
        "told": len(decidable),
        "accuracy": better / len(decidable) if decidable else float("nan"),
        "margin": sum(margins) / len(margins) if margins else float("nan"),
        "snr": signal_to_noise(rows, model),
    }


def signal_to_noise(rows: Sequence[Row], folder: Path, seed: int = 0) -> float:
    """Of the gradient of the DPO loss at its start, over minibatches of 16 pairs drawn without replacement.

    (‖ḡ‖² − tr S / M) / tr S: the squared length of the mean gradient, without what noise adds to it, over the trace of
    the covariance S of the M minibatches' gradients, all weights. M minibatches together see a signal M times this.
    """
    drawn = random.Random(seed).sample(list(rows), len(rows))
    batches = [drawn[at : at + BATCH] for at in range(0, len(drawn) - BATCH + 1, BATCH)][:16]
    if len(batches) < 2:
        return float("nan")
    auto: Any = AutoModelForCausalLM
    model, tokenizer = auto.from_pretrained(folder, dtype=torch.float32), open_tokenizer(folder)
    gradients_M_P = torch.stack([_gradient(model, tokenizer, batch) for batch in batches])
    mean_P = gradients_M_P.mean(dim=0)
    noise = float((gradients_M_P - mean_P).square().sum()) / (len(batches) - 1)
    return (float(mean_P.square().sum()) - noise / len(batches)) / noise


def _gradient(model: Any, tokenizer: Any, batch: Sequence[Row]) -> torch.Tensor:
    """Of the mean DPO loss; policy and reference are the same, so the margin is 0 and only its gradient counts."""
    model.zero_grad(set_to_none=True)
    gap_B = _logprob(model, tokenizer, batch, "chosen") - _logprob(model, tokenizer, batch, "rejected")
    (-logsigmoid(BETA * (gap_B - gap_B.detach())).mean()).backward()
    return torch.cat([p.grad.reshape(-1) for p in model.parameters() if p.grad is not None])


def _logprob(model: Any, tokenizer: Any, batch: Sequence[Row], side: str) -> torch.Tensor:
    """Summed log-probability of each reply, nats."""
    heads = [tokenizer.apply_chat_template(r["prompt"], add_generation_prompt=True, return_dict=False) for r in batch]
    wholes = [tokenizer.apply_chat_template(r["prompt"] + r[side], return_dict=False) for r in batch]
    longest = max(map(len, wholes))
    ids_B_T = torch.tensor([ids + [0] * (longest - len(ids)) for ids in wholes])
    said_B_T = torch.tensor([
        [len(head) <= t < len(ids) for t in range(longest)] for head, ids in zip(heads, wholes, strict=True)
    ])  # fmt: skip
    logprobs_B_T = model(input_ids=ids_B_T[:, :-1]).logits.log_softmax(dim=-1)
    told_B_T = logprobs_B_T.gather(2, ids_B_T[:, 1:, None]).squeeze(2)
    return (told_B_T * said_B_T[:, 1:]).sum(dim=1)
