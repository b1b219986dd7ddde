"""Two processes draw and learn what one does, wherever groups are cut; a kill in the middle changes no bit.

One process has all samples of a step, each of two has half of them: a part of the one group there is, or one group of
six and half of another. Samples that teach nothing are left out; here the two processes have unlike numbers of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.training.files import checkpoint, first_log, furthest, moments, start, weights
from tests.training.grpo_files import step_model, wishes, write

from pluribus import zoo
from pluribus.tasks import load_task

STEPS = 3
RATE = 1e-4
TOGETHER: dict[str, tuple[int, dict[str, Any]]] = {
    "straddling": (8, {"objective": "majority", "k": 3, "estimator": "loo1", "samples": 8}),
    "cut": (18, {"objective": "pass", "k": 2, "samples": 6, "temperature": 1.5}),
    "steps": (8, {"reward_mode": "PRMVR", "reward_baseline": "token", "samples": 8, "kl": 0.05}),
}
"""Name → samples of each step, wishes."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Each of `TOGETHER` for one step, in `one` process and in `two`; `whole` and `killed` go on for three."""
    folder = tmp_path_factory.mktemp("trained")
    rows = [
        {"prompt": [{"role": "user", "content": question.text}], "kind": question.kind, "answer": str(key.answer)}
        for question, key in load_task("sums", "train", limit=10).pairs
    ]
    data, held = write(folder, rows[:6]), write(folder, rows[6:], "held")
    prm = step_model(folder / "prm")

    def values(name: str, grpo: dict[str, Any], **more: Any) -> dict[str, Any]:
        if "PRM" in grpo.get("reward_mode", ""):
            grpo = {**grpo, "prm": prm}
        given = {"learning_rate": RATE, "save_steps": 1, "max_steps": 1, "max_grad_norm": 1.0, **more}
        return wishes(data, folder / name, {"max_new_tokens": 40, **grpo}, **given)

    jobs: list[dict[str, Any]] = []
    for name, (samples, grpo) in TOGETHER.items():
        jobs.append({"wishes": values(f"{name}-one", grpo, batch_size=samples)})
        jobs.append({"wishes": values(f"{name}-two", grpo, batch_size=samples // 2), "processes": 2})
    more = {"max_steps": STEPS, "save_total_limit": STEPS, "batch_size": 8, "eval_data": str(held)}
    wanted = {**TOGETHER["cut"][1], "samples": 4, "eval_steps": 2, "eval_samples": 2}
    killed = values("killed", wanted, **more)
    jobs += [{"wishes": values("whole", wanted, **more)}, {"wishes": killed, "die": 2}, {"wishes": killed}]
    start(folder, jobs)
    return folder


@pytest.mark.parametrize("name", TOGETHER)
def test_two_processes_are_one_with_twice_the_batch(trained: Path, name: str) -> None:
    one, two = checkpoint(trained / f"{name}-one"), checkpoint(trained / f"{name}-two")
    gradients = moments(one)
    assert max(float(value.abs().max()) for value in gradients.values()) > 1e-4
    assert (
        furthest(gradients, moments(two)) < 1e-7 * max(float(value.abs().max()) for value in gradients.values()) + 1e-8
    )
    assert first_log(one)["loss"] == pytest.approx(first_log(two)["loss"], abs=1e-6)


SEEN = (
    "reward", "accuracy", "pass@", "maj@", "unanswered", "agreement", "answers", "zero_advantages", "kstar",
    "steps_per_reply", "step_score", "completions/m", "num_tokens",
)  # fmt: skip


@pytest.mark.parametrize("name", TOGETHER)
def test_two_processes_draw_the_samples_of_one(trained: Path, name: str) -> None:
    one, two = (
        {key: value for key, value in first_log(checkpoint(trained / f"{name}-{n}")).items() if key.startswith(SEEN)}
        for n in ("one", "two")
    )
    assert one["zero_advantages"] < 1 and one["reward"] not in (0.0, 1.0) and one.keys() == two.keys()
    assert one == pytest.approx(two, abs=1e-5)


def test_a_killed_training_that_goes_on_ends_at_the_same_bits(trained: Path) -> None:
    whole, killed = trained / "whole", trained / "killed"
    results = [json.loads((folder / "training.json").read_text("utf-8"))["result"] for folder in (whole, killed)]
    assert [result["resumed_from"] for result in results] == [0, 1]
    assert [result["steps"] for result in results] == [STEPS, STEPS]
    assert furthest(weights(whole), weights(killed)) == 0.0
    assert furthest(weights(zoo.folder("qwen")), weights(whole)) > RATE / 10
    assert furthest(weights(checkpoint(whole, 1)), weights(whole)) > RATE / 10  # it learned after the kill as well


def test_a_killed_training_is_held_against_its_first_look(trained: Path) -> None:
    """The first look is read from the file. It looks once more where it goes on, and sees the same later on."""
    looks = {}
    for name in ("whole", "killed"):
        lines = (trained / name / "held_out.jsonl").read_text("utf-8").splitlines()
        looks[name] = {entry["step"]: entry["right"] for entry in map(json.loads, lines)}
    assert set(looks["whole"]) == {0, 2, 3}
    assert looks["killed"] == looks["whole"] | {1: looks["killed"][1]}
    changes = [
        json.loads((trained / name / "training.json").read_text("utf-8"))["result"]["evaluation"]["eval_change"]
        for name in ("whole", "killed")
    ]
    assert changes[0] == pytest.approx(changes[1], abs=1e-12)
