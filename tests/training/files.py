"""Small files of training rows for each kind, and the trainings of the tests that need a process of their own.

`start` runs this file: trainings in several processes, and trainings that are killed.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

KINDS = ("sft", "dpo", "prm")
NAMES = ("Ann", "Tom", "Sue", "Ben", "Kim", "Joe", "Amy", "Max")


def rows(kind: str, n: int = 8, short: bool = False) -> list[dict[str, Any]]:
    """Rows of unequal length. Steps come two to a question; a question's replies are both right, or right and wrong."""
    return [_row(kind, i, short) for i in range(n)]


def _row(kind: str, i: int, short: bool) -> dict[str, Any]:
    number = i // 2 if kind == "prm" else i
    text = f"{NAMES[number % 8]} has {3 + number} apples and buys {4 + 2 * number} more. How many are there?"
    if short:
        text = f"{3 + number} + {4 + 2 * number}"
    total = 7 + 3 * number
    steps = [f"{3 + number} + {4 + 2 * number} = {total}."] * (1 if short else 1 + i % 3)
    if kind == "prm":
        wrong = i % 4 == 3
        return {
            "prompt": text, "completions": [*steps, f"{{final answer: {total + wrong}}}"],
            "labels": [*[True] * len(steps), not wrong], "question_id": f"q{number}", "correct": not wrong,
        }  # fmt: skip
    asked = [{"role": "user", "content": text}]
    right = [{"role": "assistant", "content": f"{' '.join(steps)} {{final answer: {total}}}"}]
    if kind == "sft":
        return {"prompt": asked, "completion": right, "question_id": f"q{number}"}
    false = [{"role": "assistant", "content": f"{{final answer: {total + 1}}}"}]
    return {"prompt": asked, "chosen": right, "rejected": false, "question_id": f"q{number}"}


def write(folder: Path, kind: str, found: Sequence[Mapping[str, Any]] | None = None) -> Path:
    """The rows as a file of JSON lines."""
    file = folder / f"{kind}.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in (rows(kind) if found is None else found)), "utf-8")
    return file


def wishes(kind: str, data: Path, out: Path, **more: Any) -> dict[str, Any]:
    """A training of two steps on the CPU, with a rate at which the weights move."""
    return {
        "kind": kind, "model": "zoo/qwen", "data": str(data), "out": str(out), "learning_rate": 1e-3, "max_steps": 2,
        "batch_size": 4, "logging_steps": 1, **more,
    }  # fmt: skip


def weights(folder: Path) -> dict[str, Any]:
    """Every saved tensor, by file and name."""
    from safetensors.torch import load_file

    files = sorted(folder.glob("*.safetensors"))
    return {f"{file.stem}/{name}": value for file in files for name, value in load_file(file).items()}


def furthest(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """The greatest difference of any two weights of the same name."""
    assert one.keys() == other.keys()
    return max(float((one[name].float() - other[name].float()).abs().max()) for name in one)


@contextmanager
def one_thread() -> Iterator[None]:
    """So small a model is slower on several threads, above all where several tests run; and each training collects
    garbage twice, for which what the imports left behind need not be looked through each time."""
    import torch
    import trl.trainer.dpo_trainer
    import trl.trainer.sft_trainer  # noqa: F401

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    gc.freeze()
    yield
    torch.set_num_threads(threads)


# --- as processes of their own ---------------------------------------------------------------------------------------


def start(folder: Path, jobs: Sequence[Mapping[str, Any]], timeout: float = 600) -> None:
    """Does each job in a process of its own, forked from one that has imported the trainers.

    Args:
        jobs: `wishes`; `processes` (at once, by gloo), or `die` (the step at which SIGKILL comes).
    """
    file = folder / "jobs.json"
    file.write_text(json.dumps(jobs), "utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.training.files", str(file)], cwd=Path(__file__).parents[2],
        env=os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
        timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-12000:]


def checkpoint(folder: Path, step: int = 1) -> Path:
    return folder / "checkpoints" / f"checkpoint-{step}"


def moments(folder: Path) -> dict[str, Any]:
    """AdamW's first moment of each weight in a checkpoint: after one step a tenth of its gradient."""
    import torch

    state = torch.load(folder / "optimizer.pt", weights_only=True)["state"]
    return {str(number): one["exp_avg"] for number, one in state.items()}


def first_log(folder: Path) -> dict[str, Any]:
    """What the trainer said of the first step."""
    log = json.loads((folder / "trainer_state.json").read_text("utf-8"))["log_history"]
    return next(entry for entry in log if "loss" in entry)


def main(file: str) -> None:
    import datasets  # noqa: F401  # what is imported here is not imported by every child
    import peft  # noqa: F401
    import trl.trainer.dpo_trainer
    import trl.trainer.grpo_trainer
    import trl.trainer.sft_trainer  # noqa: F401

    from pluribus.training import dpo, grpo, prm, sft  # noqa: F401

    gc.freeze()  # no child has to look through all that again
    for job in json.loads(Path(file).read_text("utf-8")):
        processes, die = job.get("processes", 1), job.get("die")
        places = _places(processes) if processes > 1 else [{}]
        children = [_fork(job["wishes"], place, die) for place in places]
        for child in children:
            assert os.waitpid(child, 0)[1] == (signal.SIGKILL if die else 0), job


def _places(processes: int) -> list[dict[str, str]]:
    """What `torchrun` tells each process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        meet = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    size = {"WORLD_SIZE": str(processes), "LOCAL_WORLD_SIZE": str(processes)}
    return [{"RANK": str(rank), "LOCAL_RANK": str(rank), **size, **meet} for rank in range(processes)]


def _fork(values: Mapping[str, Any], place: Mapping[str, str], die: int | None) -> int:
    child = os.fork()
    if child == 0:
        os.environ.update(place)
        try:
            _train(values, die)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


def _train(values: Mapping[str, Any], die: int | None) -> None:
    from pluribus.training import make_training
    from pluribus.training._run import run

    def progress(step: int, of: int, logs: Mapping[str, Any]) -> None:
        if step == die and "loss" in logs:
            os.kill(os.getpid(), signal.SIGKILL)

    run(make_training(values), {}, progress)


if __name__ == "__main__":
    main(sys.argv[1])
