"""Rows of demonstrations in the forms that other trainers read.

- `trl`: the rows as they are, JSON lines; conversational `prompt` and `completion` (TRL, "Dataset formats").
- `verl`: Parquet. `data_source`, `prompt` (chat), `ability`, `reward_model` {style, ground_truth}, `extra_info` as in
  verl's "Prepare Data for Post-Training" (docs/preparation/prepare_data.rst), for its RL trainers; and `messages`, the
  prompt with the reply, which its SFT reads (verl/utils/dataset/multiturn_sft_dataset.py, `messages_key`).
- `prime-rl`: JSON lines. Message lists `prompt` and `completion` (src/prime_rl/trainer/sft/data.py, SFTDataset), and
  `info`, the provenance as JSON text.
- `verifiers`: JSON lines. One row a question: `question`, `prompt` (chat), `answer`, `info` (JSON text), `task`, as an
  environment's dataset has them (verifiers, docs/environments.md, "Datasets").
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from pluribus.distil import Case
from pluribus.distil._rows import Row

Truths = Mapping[str, str]
"""Question id → the right answer."""
_NOT_INFO = ("prompt", "completion")


def truths(cases: Sequence[Case]) -> dict[str, str]:
    """The key's answer of each question; without a key the answer of a right reply. A question without either, such as
    one of a program, is left out."""
    found = {}
    for case in cases:
        said = next((one.answer for one in case.traces if one.correct and one.answer is not None), None)
        answer = case.key.answer if case.key and case.key.answer is not None else said
        if answer is not None:
            found[case.question.id] = answer
    return found


def verl(rows: Sequence[Row], answers: Truths, kinds: Mapping[str, str]) -> list[Row]:
    """
    Args:
        kinds: question id → its kind, the `ability`.
    """
    return [
        {
            "data_source": row["task"],
            "prompt": row["prompt"],
            "ability": kinds[row["question_id"]],
            "reward_model": {"style": "rule", "ground_truth": answers[row["question_id"]]},
            "extra_info": {"index": at, **_info(row)},
            "messages": [*row["prompt"], *row["completion"]],
        }
        for at, row in enumerate(rows)
    ]


def prime_rl(rows: Sequence[Row], answers: Truths, kinds: Mapping[str, str]) -> list[Row]:
    return [{"prompt": row["prompt"], "completion": row["completion"], "info": _text(_info(row))} for row in rows]


def verifiers(rows: Sequence[Row], answers: Truths, kinds: Mapping[str, str]) -> list[Row]:
    """Replies play no part: an environment asks, and its rubric compares with the answer."""
    first: dict[str, Row] = {}
    for row in rows:
        first.setdefault(row["question_id"], row)
    return [
        {
            "question": row["prompt"][-1]["content"],
            "prompt": row["prompt"],
            "answer": answers[id],
            "info": _text({"kind": kinds[id], **_info(row)}),
            "task": row["task"],
        }
        for id, row in first.items()
    ]


def _info(row: Row) -> Row:
    return {name: value for name, value in row.items() if name not in _NOT_INFO}


def _text(info: Row) -> str:
    return json.dumps(info, ensure_ascii=False)


Writer = Callable[[Sequence[Row], Truths, Mapping[str, str]], list[Row]]
FORMATS: Mapping[str, Writer] = {"verl": verl, "prime-rl": prime_rl, "verifiers": verifiers}
NEED_ANSWERS = ("verl", "verifiers")
