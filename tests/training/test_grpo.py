"""One step of GRPO is the gradient that was worked out by hand, whatever the objective and however the batch is cut.

Students are untrained and compute in float64; what they say is given, so that every advantage is known beforehand. What
is said of drawing samples, of alarms and of held-out questions is said of a member of the zoo.
"""

from __future__ import annotations

import asyncio
import json
import math
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("trl")

from tests.training.files import furthest, one_thread, weights  # noqa: E402  # after the skip
from tests.training.grpo_files import (  # noqa: E402  # likewise
    LENGTH,
    answer,
    apart,
    by_hand,
    logprobs_of,
    plain,
    prompt,
    prompts,
    said,
    step_model,
    stepped,
    student,
    tell,
    wishes,
    write,
)

from pluribus import sandbox  # noqa: E402  # likewise
from pluribus import zoo as members  # noqa: E402  # likewise
from pluribus.backends import Request, connect, parse  # noqa: E402  # likewise
from pluribus.errors import TrainingStopped  # noqa: E402  # likewise
from pluribus.objectives import Group, advantages  # noqa: E402  # likewise
from pluribus.rows import Row  # noqa: E402  # likewise
from pluribus.steps import split_steps  # noqa: E402  # likewise
from pluribus.tasks import load_task  # noqa: E402  # likewise
from pluribus.training import Trained, grpo, make_training  # noqa: E402  # likewise
from pluribus.training._run import arguments, prepare, run  # noqa: E402  # likewise
from pluribus.types import Message, Sampling  # noqa: E402  # likewise

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*activation_checkpointing.*:FutureWarning"),  # peft asks for an older name
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning"),  # likewise
]

walls = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
Make = Callable[..., Any]


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    with one_thread():
        yield


@pytest.fixture(scope="module")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> str:
    return student(tmp_path_factory.mktemp("untrained"))


# --- two groups in which every objective has something to say --------------------------------------------------------

OFF: tuple[tuple[int | None, ...], ...] = ((1, 0, 1, 2, None, 3), (0, 0, 0, 1, 1, None))
"""How far from right each sample is; None: it has no answer."""
SCORES = ((0.45, 0.9, 0.4, 0.7, 0.1, 0.5), (0.3, 0.8, 0.6, 0.95, 0.2, 0.4))
BEGINS = ("So.", "Well then.", "Look:", "Now,", "Thus", "Hm.")
REPLIES = tuple(tuple(said(i, off, begin) for off, begin in zip(OFF[i], BEGINS, strict=True)) for i in range(2))
SCORE = {text: score for i in range(2) for text, score in zip(REPLIES[i], SCORES[i], strict=True)}


async def score(_: Any, completions: Any) -> list[float | None]:
    """Judges, as a trainer asks them."""
    return [SCORE[one[-1]["content"]] for one in completions]


def group(i: int, *, graded: bool = False) -> Group:
    """Graded: each reply's reward is its score."""
    return Group(
        SCORES[i] if graded else [float(off == 0) for off in OFF[i]],
        answers=[None if off is None else str(answer(i) + off) for off in OFF[i]], scores=SCORES[i], weights=SCORES[i],
    )  # fmt: skip


@pytest.fixture
def trainer(untrained: str, tmp_path: Path) -> Make:
    """A trainer that says what it is told, on as many prompts as it is told of."""

    def make(
        wanted: Mapping[str, Any], replies: Sequence[Sequence[str]] = REPLIES, rows: Any = None, name: str = "out",
        **more: Any,
    ) -> Any:  # fmt: skip
        data = write(tmp_path, prompts(len(replies)) if rows is None else rows, name)
        config = make_training(wishes(data, tmp_path / name, wanted, model=untrained, **more))
        judged = {"score": score} if "judges" in wanted else {}
        return tell(grpo.trainer(prepare(config, {}, **judged)), replies)

    return make


@pytest.fixture(scope="module")
def alone(untrained: str) -> list[list[dict[str, Any]]]:
    """Gradient of each reply's log π, of which every advantage makes its sum."""
    words = transformers.AutoTokenizer.from_pretrained(untrained)
    model = transformers.AutoModelForCausalLM.from_pretrained(untrained).double().eval()
    found: list[list[dict[str, Any]]] = []
    for i in range(2):
        found.append([])
        for text in REPLIES[i]:
            model.zero_grad()
            logprobs_of(model, words, i, text).sum().backward()
            found[i].append({name: value.grad.clone() for name, value in model.named_parameters()})
    return found


def summed(alone: Any, values: Sequence[Any]) -> dict[str, Any]:
    """−1 / L · mean over prompts of Σ_i A_i ∇ log π(y_i)."""
    return {
        name: -sum(
            float(values[i][j]) * alone[i][j][name] for i in range(len(values)) for j in range(len(values[i]))
        ) / LENGTH / len(values)
        for name in alone[0][0]
    }  # fmt: skip


# --- exactness -------------------------------------------------------------------------------------------------------

GROUPED = {"objective": "max", "k": 3, "estimator": "loo1", "reward_mode": "ORM", "judges": "judges.yaml"}
OBJECTIVES: dict[str, dict[str, Any]] = {
    "pass": {}, "majority": {}, "max": {"reward_mode": "ORM", "judges": "judges.yaml"},
    "best_of": {"judges": "judges.yaml"}, "weighted_majority": {"judges": "judges.yaml"},
}  # fmt: skip
CASES = [
    ("mean", "urloo", None), ("mean", "rloo", None),
    *((objective, *one) for objective in OBJECTIVES for one in (("urloo", 3), ("loo1", 3), ("loo", 6), ("naive", 6))),
]  # fmt: skip


def values_of(objective: str, estimator: str, k: int | None) -> list[Any]:
    return [
        advantages(group(i, graded=objective == "max"), objective, k or 1, {"rloo": "urloo"}.get(estimator, estimator))
        for i in range(2)
    ]


def wanted(objective: str, estimator: str, k: int | None) -> dict[str, Any]:
    return {"objective": objective, "estimator": estimator, "k": k, **OBJECTIVES.get(objective, {})}


@pytest.mark.parametrize(("objective", "estimator", "k"), CASES)
def test_a_step_is_the_gradient_by_hand(
    trainer: Make, alone: Any, objective: str, estimator: str, k: int | None
) -> None:
    values = values_of(objective, estimator, k)
    assert np.abs(values).max() > 0.1
    assert apart(stepped(trainer(wanted(objective, estimator, k))), summed(alone, values)) < 1e-6


def test_a_step_at_another_temperature_is_the_gradient_of_the_policy_there(trainer: Make) -> None:
    made = trainer({**wanted("majority", "loo1", 3), "temperature": 0.5})
    hand = by_hand(plain(made), made.processing_class, REPLIES, values_of("majority", "loo1", 3), 0.5)
    assert apart(stepped(made), hand) < 1e-6


# --- what TRL would do: the group's mean is subtracted ---------------------------------------------------------------


def trl(untrained: str, folder: Path, values: Sequence[Any]) -> Any:
    """TRL's own trainer with our settings: it is given n A_i for a reward, and makes advantages of them itself."""
    from trl.trainer.grpo_trainer import GRPOTrainer

    config = make_training(wishes(write(folder, prompts()), folder / "trl", {}, model=untrained))
    job = prepare(config, {})
    known = {text: 6 * float(value) for i in range(2) for text, value in zip(REPLIES[i], values[i], strict=True)}

    def reward(completions: Any, **_: Any) -> list[float]:
        return [known[one[-1]["content"]] for one in completions]

    from trl.trainer.grpo_config import GRPOConfig

    return tell(
        GRPOTrainer(
            model=job.student(transformers.AutoModelForCausalLM), reward_funcs=[reward],
            args=GRPOConfig(**arguments(config) | grpo._arguments(job)), train_dataset=grpo._dataset(job.rows),
            processing_class=job.tokenizer,
        ),
        REPLIES,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("objective", "estimator", "k", "same"),
    [("pass", "urloo", 3, True), ("pass", "loo1", 3, False), ("majority", "loo", 6, False)],
)
def test_the_groups_mean_is_not_subtracted(
    untrained: str, tmp_path: Path, alone: Any, objective: str, estimator: str, k: int, same: bool
) -> None:
    """Only urloo, centred already, survives TRL; of the others it makes what is here shown to be another gradient."""
    values = values_of(objective, estimator, k)
    hand, centred = summed(alone, values), summed(alone, [one - one.mean() for one in values])
    theirs = stepped(trl(untrained, tmp_path, values))
    assert apart(theirs, centred) < 1e-6
    assert (apart(theirs, hand) < 1e-6) is same
    assert same or apart(theirs, hand) > 0.05


# --- how the batch is cut --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("batch", "accumulation"), [(6, 2), (4, 3), (3, 4), (1, 12)])
def test_the_size_of_a_microbatch_changes_nothing(trainer: Make, alone: Any, batch: int, accumulation: int) -> None:
    made = trainer(wanted("majority", "loo1", 3), batch_size=batch, accumulation=accumulation)
    assert apart(stepped(made), summed(alone, values_of("majority", "loo1", 3))) < 1e-6
    (log,) = (entry for entry in made.state.log_history if "loss" in entry)
    mean = np.mean([float(v) * logprob for v, logprob in lengths(made)])
    assert log["loss"] == pytest.approx(-mean * 6 / LENGTH, rel=1e-5)


def lengths(made: Any) -> list[tuple[float, int]]:
    """n A_i and its tokens, of each sample: at ratio 1 the loss is their product."""
    words = made.processing_class
    values = values_of("majority", "loo1", 3)
    return [
        (float(value), len(words.encode(text)) + 1)
        for i in range(2)
        for text, value in zip(REPLIES[i], values[i], strict=True)
    ]


FOUR = [*REPLIES, [said(2, off) for off in (0, 1, 1, 2, 0, None)], [said(3, off) for off in (0, 0, 0, 1, 1, 2)]]


def test_several_steps_may_be_taken_of_one_drawing(trainer: Make) -> None:
    """At so low a rate both steps are taken at the same weights: together they are twice the mean of all prompts."""
    made = trainer({"objective": "majority", "k": 3, "prompts": 4}, FOUR, max_steps=2, learning_rate=1e-6)
    values = [
        advantages(Group([float(one == "0") for one in said_], answers=said_), "majority", 3, "urloo")
        for said_ in (
            [None if off is None else str(off) for off in each]
            for each in (*OFF, (0, 1, 1, 2, 0, None), (0, 0, 0, 1, 1, 2))
        )
    ]
    hand = by_hand(plain(made), made.processing_class, FOUR, [2 * one for one in values])
    assert apart(stepped(made), hand) < 1e-4
    assert (made.drawings, made.state.global_step) == (1, 2)


def test_a_drawing_may_be_learned_from_more_than_once(trainer: Make, alone: Any) -> None:
    made = trainer({**wanted("majority", "loo1", 3), "iterations": 3}, max_steps=3, learning_rate=1e-6)
    values = [3 * one for one in values_of("majority", "loo1", 3)]
    assert apart(stepped(made), summed(alone, values)) < 1e-4
    assert (made.drawings, made.state.global_step) == (1, 3)


def test_each_step_draws_anew_where_nothing_else_is_said(trainer: Make) -> None:
    made = trainer(wanted("majority", "loo1", 3), max_steps=2, learning_rate=1e-6)
    stepped(made)
    assert (made.drawings, made.state.global_step) == (2, 2)


# --- samples that teach nothing --------------------------------------------------------------------------------------


def read_rows(model: Any) -> list[int]:
    """Rows of each forward pass from now on."""
    seen: list[int] = []
    model.model.register_forward_hook(
        lambda _, args, kwargs, __: seen.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    return seen


def drawn(made: Any, rows: int = 2) -> dict[str, Any]:
    """A batch of samples with their advantages."""
    made.model.train()
    batch = [
        {"prompt": [{"role": "user", "content": prompt(i)}], "place": i}
        for i in range(rows)
        for _ in range(made.wishes.samples)
    ]
    found: dict[str, Any] = made._generate_and_score_completions(batch)
    return found


def gradient(made: Any, loss: Any) -> dict[str, Any]:
    made.model.zero_grad()
    loss.backward()
    return {name: value.grad.clone() for name, value in made.model.named_parameters()}


@pytest.mark.parametrize("tokens", [False, True])
def test_samples_that_teach_nothing_are_not_read(trainer: Make, tokens: bool) -> None:
    """loo of a known winner: of the first group two teach, of the second six."""
    from trl.trainer.grpo_trainer import GRPOTrainer

    made = trainer(wanted("pass", "loo1", 6))
    made.current_gradient_accumulation_steps = 1
    batch = drawn(made)
    assert batch["advantages"].ne(0).sum() == 1  # the only right one of the first group
    if tokens:
        spread = torch.zeros(batch["completion_ids"].shape)
        spread[1, 2:5], spread[7, :3] = 0.5, -1.0
        batch["advantages"] = spread
        batch["old_per_token_logps"] = made._get_per_token_logps_and_entropies(
            made.model, torch.cat([batch["prompt_ids"], batch["completion_ids"]], 1),
            torch.cat([batch["prompt_mask"], batch["completion_mask"]], 1), batch["completion_ids"].size(1),
        )[0].detach() - 0.01  # fmt: skip
    seen = read_rows(made.model)
    ours = made._compute_loss(made.model, dict(batch))
    theirs = GRPOTrainer._compute_loss(made, made.model, dict(batch))
    assert seen == [1 + tokens, 12]
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-9) and ours.item() != 0
    assert apart(gradient(made, ours), gradient(made, theirs)) < 1e-7


def test_where_nothing_teaches_the_gradient_is_zero_and_there(trainer: Make) -> None:
    """One row is read all the same: every process has a gradient of every weight."""
    same = [[said(i, 0, begin) for begin in BEGINS] for i in range(2)]
    made = trainer(wanted("pass", "urloo", 3), same)
    seen = read_rows(made.model)
    found = stepped(made)
    assert seen == [1] and all(not value.any() for value in found.values())
    (log,) = (entry for entry in made.state.log_history if "loss" in entry)
    assert log["zero_advantages"] == 1.0 and log["loss"] == 0.0


# --- KL --------------------------------------------------------------------------------------------------------------


def divergence(moved: Any, reference: Any, words: Any, replies: Any) -> dict[str, Any]:
    """1 / L · mean over samples of Σ_t −d_t ∇ log π, d = log π_ref − log π: the divergence's, as π wrote the samples.

    TRL multiplies its estimate e^d − d − 1 with the ratio to the policy that wrote, whose gradient is there at ratio 1.
    """
    moved.zero_grad()
    n = sum(map(len, replies))
    for i, texts in enumerate(replies):
        for text in texts:
            with torch.no_grad():
                before = logprobs_of(reference, words, i, text)
            now = logprobs_of(moved, words, i, text)
            ((now.detach() - before) @ now / LENGTH / n).backward()
    return {name: value.grad.clone() for name, value in moved.named_parameters()}


def move(model: Any) -> None:
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for value in model.parameters():
            value += 0.05 * torch.randn(value.shape, generator=generator, dtype=value.dtype)


@pytest.mark.parametrize("kl", [0.25, 2.0])
def test_the_divergence_has_a_gradient_where_nothing_else_has(trainer: Make, kl: float) -> None:
    same = [[said(i, 0, begin) for begin in BEGINS] for i in range(2)]
    made = trainer({**wanted("pass", "urloo", 3), "kl": kl}, same)
    reference = plain(made)
    move(made.model)
    hand = divergence(plain(made), reference, made.processing_class, same)
    seen = read_rows(made.model)
    assert apart(stepped(made), {name: kl * value for name, value in hand.items()}) < 1e-6
    assert max(seen) == 12  # nothing is left out


def test_the_divergence_stands_beside_the_objective(trainer: Make) -> None:
    made = trainer({**wanted("majority", "loo1", 3), "kl": 0.5})
    reference = plain(made)
    move(made.model)
    moved = plain(made)
    kept = divergence(moved, reference, made.processing_class, REPLIES)
    hand = by_hand(moved, made.processing_class, REPLIES, values_of("majority", "loo1", 3))
    assert apart(stepped(made), {name: hand[name] + 0.5 * kept[name] for name in hand}) < 1e-6
    (log,) = (entry for entry in made.state.log_history if "loss" in entry)
    assert log["kl"] > 0


# --- process rewards -------------------------------------------------------------------------------------------------

STEPPED = [
    [
        said(0, 0, "3 + 4 = 7."), said(0, 1, "3 is 3.", "4 is 5.", "So 8."), said(0, 0), "", said(0, None, "Hm."),
        said(0, 2, "3 + 4 = 9.", "Yes."),
    ],
    [said(1, 0, "4 + 6 = 10."), said(1, 1), "", said(1, 0, "4 is 4.", "6 is 6."), said(1, 1, "No."), said(1, None)],
]  # fmt: skip
RIGHT = ((1, 0, 1, 0, 0, 0), (1, 0, 0, 1, 0, 0))


@pytest.fixture(scope="module")
def prm(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Its tokens are bytes; the students' are words."""
    return step_model(tmp_path_factory.mktemp("prm"))


@pytest.fixture(scope="module")
def margins(prm: str) -> list[list[list[float] | None]]:
    """P(good) − P(bad) of each step of `STEPPED`, as a judge's backend says it."""

    async def ask(i: int, text: str) -> list[float] | None:
        if not text:
            return None
        request = Request((Message("user", prompt(i)), Message("assistant", text)), Sampling(max_tokens=1))
        scores = (await backend.complete(request)).scores or {}
        return [2 * scores[f"step {t + 1}"] - 1 for t in range(len(split_steps(text, "sentences")))]

    async def every() -> list[list[list[float] | None]]:
        found = [list(await asyncio.gather(*(ask(i, text) for text in STEPPED[i]))) for i in range(2)]
        await backend.close()
        return found

    backend = connect(parse({"model": f"local/{prm}", "head": "prm"}))
    return asyncio.run(every())


def ends(words: Any, text: str) -> list[int]:
    """For each step the first token by which all of its text is there; the last goes to the end token."""
    ids, found = [*words.encode(text), words.eos_token_id], []
    at = 0
    for step in split_steps(text, "sentences"):
        at = text.index(step, at) + len(step)
        found.append(next(n for n in range(len(ids) + 1) if len(words.decode(ids[:n])) >= at))
    return [*found[:-1], len(ids)]


def by_formula(
    margins: Sequence[list[float] | None], tokens: Sequence[list[int]], baseline: str
) -> list[list[float] | None]:
    """A_t of each sample's steps, as the specification writes it."""
    credits = []
    for said_ in margins:
        powers = None if said_ is None else [math.exp(-p / 0.1) for p in said_]
        credits.append(
            None
            if said_ is None or powers is None
            else [w / sum(powers) * p for w, p in zip(powers, said_, strict=True)]
        )
    found: list[list[float] | None] = []
    for i, own in enumerate(credits):
        if own is None:
            found.append(None)
            continue
        others = [(sum(one), len(one), sum(tokens[j])) for j, one in enumerate(credits) if one is not None and j != i]
        per_step = sum(total / steps for total, steps, _ in others) / len(others)
        per_token = sum(total for total, _, _ in others) / sum(spent for _, _, spent in others)
        less = [per_step if baseline == "step" else per_token * spent for spent in tokens[i]]
        left = [r - b for r, b in zip(own, less, strict=True)]
        found.append([sum(left[t:]) for t in range(len(left))])
    return found


@pytest.mark.parametrize("baseline", ["step", "token"])
@pytest.mark.parametrize(("mode", "coefficient"), [("PRM", 1.0), ("PRMVR", 1.0), ("PRMVR", 0.25)])
def test_each_token_has_its_steps_advantage(
    trainer: Make, prm: str, margins: Any, mode: str, baseline: str, coefficient: float
) -> None:
    made = trainer(
        {"reward_mode": mode, "prm": prm, "reward_baseline": baseline, "verifiable_reward_coef": coefficient}, STEPPED
    )
    found = drawn(made)["advantages"]
    words = made.processing_class
    for i in range(2):
        ended = [ends(words, text) if text else [1] for text in STEPPED[i]]
        tokens = [np.diff([0, *one]).tolist() for one in ended]
        values = by_formula(margins[i], tokens, baseline)
        for j, (steps, until) in enumerate(zip(values, ended, strict=True)):
            others = [one for place, one in enumerate(RIGHT[i]) if place != j]
            solved = coefficient * (RIGHT[i][j] - sum(others) / 5) if mode == "PRMVR" else 0.0
            known = [solved if steps is None else step + solved for step in steps or [0.0]]
            row = found[6 * i + j]
            for value, start, end in zip(known, [0, *until], until, strict=False):
                assert row[start:end].tolist() == pytest.approx([value] * (end - start), abs=1e-6)
    assert found.abs().max() > 0.05


def test_the_tokens_of_the_policy_are_not_those_of_the_model_that_marks_steps(prm: str, untrained: str) -> None:
    theirs, ours = (transformers.AutoTokenizer.from_pretrained(one) for one in (prm, untrained))
    assert len(theirs.encode(STEPPED[0][0])) > 1.5 * len(ours.encode(STEPPED[0][0]))


def test_a_step_by_process_rewards_is_the_gradient_by_hand(trainer: Make, prm: str, margins: Any) -> None:
    made = trainer({"reward_mode": "PRM", "prm": prm, "reward_baseline": "token"}, STEPPED)
    spread: list[list[Any]] = []
    for i in range(2):
        ended = [ends(made.processing_class, text) if text else [1] for text in STEPPED[i]]
        tokens = [np.diff([0, *one]).tolist() for one in ended]
        values = by_formula(margins[i], tokens, "token")
        spread.append([np.repeat(one or [0.0], spent) / 6 for one, spent in zip(values, tokens, strict=True)])
    hand = by_hand(plain(made), made.processing_class, STEPPED, spread)
    assert apart(stepped(made), hand) < 1e-5  # the scores come in float32


def test_an_outcome_model_rewards_with_the_worst_step(trainer: Make, prm: str, margins: Any) -> None:
    """A reply without a step has no reward, which is not 0: it is left out of its group."""
    made = trainer({"reward_mode": "ORM", "prm": prm}, STEPPED)
    found = drawn(made)["advantages"]
    for i in range(2):
        rewards = {j: (min(one) + 1) / 2 for j, one in enumerate(margins[i]) if one is not None}
        for j in range(6):
            others = [value for place, value in rewards.items() if place != j]
            known = rewards[j] - sum(others) / len(others) if j in rewards else 0.0
            assert float(found[6 * i + j]) == pytest.approx(known, abs=1e-6)
    assert made._metrics["train"]["unscored"] == [pytest.approx(2 / 12)]


@pytest.mark.parametrize("mode", ["PRM", "PRMVR"])
def test_without_any_step_there_is_nothing_to_learn(trainer: Make, prm: str, mode: str) -> None:
    made = trainer({"reward_mode": mode, "prm": prm}, [[""] * 6, [""] * 6])
    with pytest.raises(TrainingStopped, match=rf"of 12 samples at step 1 none has a reward \({mode}, steps\)"):
        drawn(made)


# --- rewards that nobody knows ---------------------------------------------------------------------------------------


def test_samples_that_no_judge_knows_are_left_out(untrained: str, tmp_path: Path, alone: Any) -> None:
    silent = {REPLIES[0][0], REPLIES[1][3], REPLIES[1][5]}

    async def some(_: Any, completions: Any) -> list[float | None]:
        texts = [one[-1]["content"] for one in completions]
        return [None if text in silent else SCORE[text] for text in texts]

    config = make_training(wishes(write(tmp_path, prompts()), tmp_path / "out", GROUPED, model=untrained))
    made = tell(grpo.trainer(prepare(config, {}, some)), REPLIES)
    values = []
    for i in range(2):
        known = [j for j in range(6) if REPLIES[i][j] not in silent]
        values.append(np.zeros(6))
        found = advantages(Group([SCORES[i][j] for j in known]), "max", 3, "loo1")
        values[i][known] = len(known) / 6 * found  # a group weighs as much as it is known
    assert apart(stepped(made), summed(alone, values)) < 1e-6


def test_where_nobody_knows_a_reward_the_training_stops(untrained: str, tmp_path: Path) -> None:
    async def none(_: Any, completions: Any) -> list[float | None]:
        return [None] * len(completions)

    config = make_training(wishes(write(tmp_path, prompts()), tmp_path / "out", GROUPED, model=untrained))
    with pytest.raises(TrainingStopped) as problem:
        run(config, {}, score=none)
    words = str(problem.value)
    assert "of 12 samples at step 1 none has a reward (ORM), so there is nothing to learn" in words
    assert "look at the replies" in words and "\n" not in words
    assert not (tmp_path / "out" / "model.safetensors").exists()


# --- labels of its own -----------------------------------------------------------------------------------------------


def test_own_labels_are_the_groups_majority_and_no_key_is_read(trainer: Make, alone: Any) -> None:
    """The first group's majority is wrong; without keys there is no telling."""
    rows = [{name: value for name, value in row.items() if name != "answer"} for row in prompts()]
    made = trainer({"self_labelled": True}, rows=rows)
    rewards = [[1, 0, 1, 0, 0, 0], [1, 1, 1, 0, 0, 0]]
    values = [advantages(Group(one), "mean", 1, "urloo") for one in rewards]
    assert apart(stepped(made), summed(alone, values)) < 1e-6


def test_a_shared_lead_is_shared(trainer: Make) -> None:
    made = trainer({"self_labelled": True}, [[said(i, off) for off in (0, 0, 1, 1, 2, None)] for i in range(2)])
    found = drawn(made)["advantages"][:6].tolist()
    assert found == pytest.approx([0.5 - 0.3, 0.5 - 0.3, 0.5 - 0.3, 0.5 - 0.3, -0.4, -0.4], abs=1e-6)


def test_without_an_answer_nobody_has_a_label(trainer: Make) -> None:
    made = trainer({"self_labelled": True}, [["no idea"] * 6] * 2)
    with pytest.raises(TrainingStopped, match=r"none has a reward \(own label\)"):
        drawn(made)


# --- the schedule ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "last", "known"), [(1, 5, [1, 2, 3, 4, 5]), (4, 2, [4, 4, 3, 3, 2]), (3, None, [3, 3, 3, 3, 3])]
)
def test_k_goes_where_it_is_wished(trainer: Make, first: int, last: int | None, known: list[int]) -> None:
    made = trainer({"objective": "pass", "k": first, "k_end": last}, max_steps=5, learning_rate=1e-9)
    assert found_k(made) == known
    logged = [entry["k"] for entry in made.state.log_history if "k" in entry]
    assert logged == (known if last is not None else [])


def found_k(made: Any) -> list[int]:
    """k at each drawing, read off its advantages: of the first group, with one right of six, urloo of a right one."""
    seen: list[int] = []
    values = {round(6 * float(advantages(group(0), "pass", k, "urloo")[1]), 5): k for k in range(1, 6)}
    made.noted = lambda batch: seen.append(values[round(float(batch), 5)])
    made.__class__ = type("Seen", (Seen, type(made)), {})
    made.train()
    return seen


class Seen:
    """Over a trainer: notes the greatest advantage of the first prompt at each drawing."""

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        output = super()._generate_and_score_completions(inputs)  # type: ignore[misc]  # a trainer's
        rows = [place for place, one in enumerate(inputs) if one["place"] == 0]
        self.noted(output["advantages"][rows].max())  # type: ignore[attr-defined]  # put there above
        return output


# --- samples are drawn -----------------------------------------------------------------------------------------------


def sums(first: int, last: int) -> list[Row]:
    """Questions that a member of the zoo knows to answer, more or less."""
    return [
        {"prompt": [{"role": "user", "content": question.text}], "kind": question.kind, "answer": str(key.answer)}
        for question, key in load_task("sums", "train", limit=last).pairs[first:]
    ]


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A trainer of a member of the zoo, which writes for itself."""
    folder = tmp_path_factory.mktemp("writer")
    wanted = {"objective": "majority", "k": 2, "samples": 4, "max_new_tokens": 24, "temperature": 1.5}
    return _writer(folder, wanted)


def _writer(folder: Path, wanted: Mapping[str, Any], **more: Any) -> Any:
    data, held = write(folder, sums(0, 3)), write(folder, sums(3, 6), "held")
    config = make_training(wishes(data, folder / "out", wanted, eval_data=str(held), learning_rate=1e-4, **more))
    return grpo.trainer(prepare(config, {}))


def sampled(made: Any, step: int) -> list[list[int]]:
    """Tokens of four samples of each of three prompts."""
    made.state.global_step = step
    made.model.train()
    batch = made._generate_and_score_completions(
        [{"prompt": row["prompt"], "place": place} for place, row in enumerate(made.job.rows) for _ in range(4)]
    )
    rows = zip(batch["completion_ids"], batch["completion_mask"].bool(), strict=True)
    return [ids[mask].tolist() for ids, mask in rows]


def test_samples_are_those_of_their_step(writer: Any) -> None:
    first, second, again = sampled(writer, 0), sampled(writer, 1), sampled(writer, 0)
    assert first == again
    assert first != second
    assert len({tuple(one) for one in first}) > 3  # three prompts
    assert all(one[-1] == writer.processing_class.eos_token_id or len(one) == 24 for one in first)
    assert writer.model.training


def test_an_adapter_that_learned_nothing_draws_what_its_model_draws(writer: Any, tmp_path: Path) -> None:
    """Prompts so many and so unequal that they are read in several passes: each token has to be told its place."""
    asked = [[5 + (7 * i + j) % 90 for j in range(4 + i % 120)] for i in range(160)]
    adapted = _writer(tmp_path, writer.wishes.model_dump(exclude_unset=True), lora={"r": 2})
    both = []
    for made in (writer, adapted):
        made.state.global_step = 0
        made.model.train()
        both.append([row.tokens for row in made._written(asked)])
    assert both[0] == both[1]


def test_a_look_at_held_out_questions_takes_no_random_numbers(writer: Any) -> None:
    before, state = sampled(writer, 0), torch.get_rng_state()
    first, second = writer.evaluate(), writer.evaluate()
    assert torch.equal(torch.get_rng_state(), state)
    assert sampled(writer, 0) == before
    assert first["eval_completions/mean_length"] == second["eval_completions/mean_length"]
    assert second["eval_change"] == 0.0


def test_samples_are_drawn_from_the_policy(untrained: str, tmp_path: Path) -> None:
    """The likeliest first token comes as often as the policy says, at the wished temperature."""
    grpo_ = {"max_new_tokens": 1, "temperature": 0.3}
    made = grpo.trainer(
        prepare(make_training(wishes(write(tmp_path, prompts()), tmp_path / "out", grpo_, model=untrained)), {})
    )
    asked = made.processing_class.apply_chat_template(
        [{"role": "user", "content": prompt(0)}], add_generation_prompt=True, return_dict=True
    )["input_ids"]
    made.model.train()
    found = [row.tokens[0] for row in made._written([asked] * 600)]
    with torch.no_grad():
        model = transformers.AutoModelForCausalLM.from_pretrained(untrained).eval()
        logits = model(input_ids=torch.tensor([asked])).logits[0, -1]
    chances, warm = (logits / 0.3).softmax(-1), logits.softmax(-1)
    top = int(chances.argmax())
    share, p, wide = found.count(top) / 600, float(chances[top]), 4 * math.sqrt(0.25 / 600)
    assert abs(share - p) < wide < abs(share - float(warm[top]))


# --- held-out questions and alarms -----------------------------------------------------------------------------------


def zoo(folder: Path, name: str, grpo_: Mapping[str, Any], held_out: bool = True, **more: Any) -> Trained:
    data = write(folder, sums(0, 8))
    given = {"samples": 4, "max_new_tokens": 48, **grpo_}
    if held_out:
        more["eval_data"] = str(write(folder, sums(8, 12), "held"))
    sizes = {"batch_size": 8, "eval_batch_size": 16, "max_grad_norm": 1.0}
    return run(make_training(wishes(data, folder / name, given, **{**sizes, **more})), {})


@pytest.fixture(scope="module")
def looked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Trained, Trained]:
    """The same training with and without held-out questions."""
    folder = tmp_path_factory.mktemp("looked")
    more: dict[str, Any] = {"max_steps": 3, "learning_rate": 1e-4}
    seen = zoo(folder, "seen", {"eval_steps": 2, "eval_samples": 3}, eval_batch_size=3, **more)
    return folder, seen, zoo(folder, "unseen", {}, held_out=False, **more)


def test_a_look_changes_no_weight(looked: tuple[Path, Trained, Trained]) -> None:
    folder, *_ = looked
    assert furthest(weights(folder / "seen"), weights(folder / "unseen")) == 0.0
    assert furthest(weights(folder / "seen"), weights(members.folder("qwen"))) > 1e-5


def test_looks_are_kept_and_compared_with_the_first(looked: tuple[Path, Trained, Trained]) -> None:
    folder, seen, unseen = looked
    entries = [json.loads(line) for line in (folder / "seen" / "held_out.jsonl").read_text("utf-8").splitlines()]
    assert [entry["step"] for entry in entries] == [0, 2, 3]
    assert all(entry["right"].keys() == {"0", "1", "2", "3"} for entry in entries)
    assert {3 * value for entry in entries for value in entry["right"].values()} <= {0.0, 1.0, 2.0, 3.0}
    means = [np.mean(list(entry["right"].values())) for entry in entries]
    changes = [entry["eval_change"] for entry in seen.log if "eval_change" in entry]
    assert changes == pytest.approx([means[1] - means[0], means[2] - means[0]], abs=1e-9)
    accuracy = [entry["eval_accuracy"] for entry in seen.log if "eval_accuracy" in entry]
    assert accuracy[:3] == pytest.approx(means, abs=1e-9)
    assert seen.evaluation["eval_change"] == pytest.approx(changes[-1])
    assert not (folder / "unseen" / "held_out.jsonl").exists() and not unseen.evaluation


def test_batches_of_unequal_size_count_by_their_size(tmp_path: Path) -> None:
    """Three questions, of which a batch holds two: with a divergence held-out batches are as small as wished."""
    made = _writer(tmp_path, {"samples": 4, "max_new_tokens": 48, "kl": 0.01}, eval_batch_size=8)
    assert made.args.per_device_eval_batch_size == 8
    found = made.evaluate()
    right = json.loads((tmp_path / "out" / "held_out.jsonl").read_text("utf-8"))["right"]
    assert found["eval_accuracy"] == pytest.approx(np.mean(list(right.values())), abs=1e-12)
    assert len(set(right.values())) > 1  # else any weights would do


@pytest.fixture(scope="module")
def spoiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Trained]:
    """At such a rate it learns to say nothing that is right; it would go on for six steps."""
    folder = tmp_path_factory.mktemp("spoiled")
    wanted = {"eval_steps": 1, "eval_samples": 4, "stop_on_alarm": True, "samples": 8}
    return folder, zoo(folder, "out", wanted, max_steps=6, learning_rate=0.01, batch_size=16)


def test_a_fall_on_held_out_questions_stops_the_training(spoiled: tuple[Path, Trained]) -> None:
    _, done = spoiled
    given = [entry for entry in done.log if "alarm/held_out" in entry]
    assert len(given) == 1 and given[0]["eval_change_high"] < 0
    assert 0 < done.steps < 6


@pytest.mark.parametrize(
    ("name", "values", "alarm"),
    [
        ("kstar", (4.0, 4.0, 4.0, 1.1, 1.1, 1.1, 1.1), "alarm/collapse"),
        ("completions/mean_length", (90.0, 90.0, 90.0, 30.0, 30.0, 30.0, 30.0), "alarm/shorter"),
        ("eval_change_high", (0.1, -0.1, 0.1, -0.1, -0.2, -0.3), "alarm/held_out"),
    ],
)
@pytest.mark.parametrize("stops", [False, True])
def test_alarms_are_logged_once_and_may_stop(
    trainer: Make, name: str, values: tuple[float, ...], alarm: str, stops: bool
) -> None:
    made = trainer({"stop_on_alarm": stops})
    for value in values:
        made.log({name: value})
        made.state.global_step += 1
    given = [entry for entry in made.state.log_history if alarm in entry]
    assert len(given) == 1 and given[0][name] == values[4 if name == "eval_change_high" else 5]
    assert bool(made.control.should_training_stop) is stops


# --- numbers that are none -------------------------------------------------------------------------------------------


def test_a_loss_that_is_no_number_stops_and_the_last_checkpoint_stays(trainer: Make, tmp_path: Path) -> None:
    made = trainer(
        wanted("majority", "loo1", 3),
        max_steps=4,
        save_steps=1,
        learning_rate=1e300,
        warmup_ratio=0.5,
        scheduler="linear",
    )
    made.args.optim = "sgd"
    with pytest.raises(TrainingStopped, match="the loss is nan at step 3; the last good checkpoint is kept"):
        made.train()
    kept = sorted((tmp_path / "out" / "checkpoints").glob("checkpoint-*"))
    assert [folder.name for folder in kept] == ["checkpoint-1", "checkpoint-2"]
    assert all(bool(value.isfinite().all()) for value in weights(kept[-1]).values())


def test_a_policy_that_can_not_write_any_more_stops(tmp_path: Path) -> None:
    with pytest.raises(TrainingStopped, match="training stopped: ") as problem:
        zoo(tmp_path, "out", {"samples": 8}, held_out=False, max_steps=4, learning_rate=1e38, batch_size=16)
    assert "\n" not in str(problem.value)
    assert not (tmp_path / "out" / "model.safetensors").exists()


# --- thoughts --------------------------------------------------------------------------------------------------------


def test_a_thought_that_never_ends_is_no_answer(untrained: str, tmp_path: Path) -> None:
    """Templates of models that reason open the thought themselves, so that replies begin within it."""
    thinker = shutil.copytree(untrained, tmp_path / "thinker")
    words = transformers.AutoTokenizer.from_pretrained(thinker)
    words.chat_template += "{% if add_generation_prompt %}<think>{% endif %}"
    words.save_pretrained(thinker)
    told = [[f"so {said(i, 0)}", f"hm</think>{said(i, 0)}", "no</think>", said(i, 1)] for i in range(2)]
    grpo_ = {"samples": 4, "max_new_tokens": 64}
    config = make_training(
        wishes(write(tmp_path, prompts()), tmp_path / "out", grpo_, model=str(thinker), batch_size=8)
    )
    made = tell(grpo.trainer(prepare(config, {})), told)
    drawn(made)
    assert [one.right for one in made._samples] == [False, True, False, False] * 2
    assert [one.answer is None for one in made._samples] == [True, False, True, True] * 2


# --- programs --------------------------------------------------------------------------------------------------------


@walls
@pytest.mark.parametrize("allowed", [True, False])
def test_programs_are_rewarded_for_passing_their_tests(trainer: Make, allowed: bool) -> None:
    code = "```python\ndef add(x):\n    return {}\n```"
    told = [[code.format(body) for body in ("x + 1", "1 + x", "x", "x * 2", "0", "1 +")]] * 2
    rows = [
        {"prompt": [{"role": "user", "content": prompt(i)}], "kind": "program", "tests": ["assert add(2) == 3"]}
        for i in range(2)
    ]
    with sandbox.allowing(sandbox.sandbox(True)):
        made = trainer({"objective": "pass", "k": 2, "max_new_tokens": 64}, told, rows)
    with sandbox.allowing(sandbox.sandbox(True)) if allowed else nullcontext():
        if not allowed:
            with pytest.raises(TrainingStopped, match="whether judges and sandbox work"):
                drawn(made)
            return
        found = drawn(made)["advantages"][:6]
    known = 6 * advantages(Group([1, 1, 0, 0, 0, 0]), "pass", 2, "urloo")
    assert found.tolist() == pytest.approx(known.tolist(), abs=1e-6)
