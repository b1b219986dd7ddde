"""Two processes learn what one does from batches twice as large; a kill in the middle changes no bit.

Two equal one where the same rows make each step. A batch of 2 on each of two processes is the batch of 4 of one: the
sampler deals the same permutation out in turns. The prm's order keeps questions whole in a device's batch, so there
each question has two rows. The losses of SFT and the prm are divided by counts over all processes (tokens; marks and
anchors), DPO's is a mean over pairs, of which each process has as many.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.training.files import KINDS, checkpoint, first_log, furthest, moments, start, weights, wishes, write

STEPS = 4
RATE = 1e-4


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each kind: `one` process, `two` processes with half the batch for the first step, `killed` in the third step."""
    folder = tmp_path_factory.mktemp("trained")
    start(folder, [job for kind in KINDS for job in jobs(folder, kind, write(folder, kind))])
    return folder


def jobs(folder: Path, kind: str, data: Path) -> list[dict[str, Any]]:
    def values(name: str, **more: Any) -> dict[str, Any]:
        wanted = {"learning_rate": RATE, "save_steps": 1, "save_total_limit": STEPS, "max_steps": STEPS, **more}
        return wishes(kind, data, folder / f"{kind}-{name}", **wanted)

    killed = values("killed")
    return [
        {"wishes": values("one")},
        {"wishes": values("two", max_steps=1, batch_size=2), "processes": 2},
        {"wishes": killed, "die": 3},
        {"wishes": killed},
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_two_processes_are_one_with_twice_the_batch(trained: Path, kind: str) -> None:
    one, two = checkpoint(trained / f"{kind}-one", 1), checkpoint(trained / f"{kind}-two", 1)
    gradients = moments(one)
    assert max(float(value.abs().max()) for value in gradients.values()) > 1e-3
    assert furthest(gradients, moments(two)) < 1e-8
    assert furthest(weights(one), weights(two)) < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_both_processes_had_rows_of_their_own(trained: Path, kind: str) -> None:
    one, two = (first_log(checkpoint(trained / f"{kind}-{name}", 1)) for name in ("one", "two"))
    assert one["epoch"] == two["epoch"] == 0.5
    assert one["loss"] == pytest.approx(two["loss"], abs=1e-6)
    assert one["grad_norm"] == pytest.approx(two["grad_norm"], abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_training_that_goes_on_ends_at_the_same_bits(trained: Path, kind: str) -> None:
    one, killed = trained / f"{kind}-one", trained / f"{kind}-killed"
    results = [json.loads((folder / "training.json").read_text("utf-8"))["result"] for folder in (one, killed)]
    assert [result["resumed_from"] for result in results] == [0, 2]
    assert [result["steps"] for result in results] == [STEPS, STEPS]
    assert furthest(weights(one), weights(killed)) == 0.0
    assert furthest(weights(checkpoint(one, 1)), weights(killed)) > RATE  # it learned on the way
