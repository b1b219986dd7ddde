"""Process reward models, trained: they learn, in two stages or by an adapter, and go on where they were."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("trl")

from pluribus.backends import Request, connect, parse  # noqa: E402  # after the skip
from pluribus.backends._reading import good  # noqa: E402  # likewise
from pluribus.errors import TrainingStopped, UsageError  # noqa: E402  # likewise
from pluribus.steps import split_steps  # noqa: E402  # likewise
from pluribus.tasks import sums  # noqa: E402  # likewise
from pluribus.training import Trained, make_training, train  # noqa: E402  # likewise
from pluribus.training import prm as kind  # noqa: E402  # likewise
from pluribus.training._models import path_of, tokenizer_of  # noqa: E402  # likewise
from pluribus.training._prm_model import PROJECTION, collate  # noqa: E402  # likewise
from pluribus.training._run import Job  # noqa: E402  # likewise
from pluribus.types import Completion, Key, Message, Question, Sampling  # noqa: E402  # likewise
from pluribus.zoo.cases import take  # noqa: E402  # likewise

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*activation_checkpointing.*:FutureWarning"),  # peft asks for an older name
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning"),  # likewise
]


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # several threads wait for each other on a busy machine
    yield
    torch.set_num_threads(before)


def replies(first: int, questions: int) -> list[dict[str, Any]]:
    """Two right and two wrong replies to each sum, their steps marked by the task's own checker."""
    return [row for index in range(first, first + questions) for row in _replies(index)]


def _replies(index: int) -> Iterator[dict[str, Any]]:
    case, draws = take("sums", "train", index), random.Random(index)
    problem = sums.problem("train", index)
    question = Question(str(index), "sums", case.question, "number")
    key = Key(str(index), str(problem.answer), solution=case.working)
    for number in range(4):
        right = number % 2 == 0
        said = case.right("plain", draws) if right else case.mistake("plain", draws, {})
        steps = split_steps(said.text)
        marks = sums.check_steps(question, key, steps)
        yield {
            "prompt": case.question, "completions": list(steps), "labels": marks, "question_id": str(index),
            "correct": said.answer == case.answer,
        }  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    folder = tmp_path_factory.mktemp("steps")
    files = {"some": replies(0, 4), "few": replies(2000, 4)}
    for name, rows in files.items():
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {name: folder / name for name in files}


def wishes(data: Path, out: Path, **more: Any) -> dict[str, Any]:
    return {
        "kind": "prm", "model": "zoo/qwen", "data": str(data), "out": str(out), "learning_rate": 1e-3, "max_steps": 2,
        "batch_size": 8, "logging_steps": 1, **more,
    }  # fmt: skip


def job(**values: Any) -> Job:
    """A training that can be looked into."""
    config = make_training(values)
    path = path_of(config.model)
    return Job(config, path, tokenizer_of(path), kind.read(Path(config.data)), None, 2048)


def same(one: Any, other: Any, but: str = "-") -> bool:
    one, other = one.state_dict(), other.state_dict()
    return all(torch.equal(one[name], other[name]) for name in one if not name.startswith(but))


# --- it learns -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def learned(data: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Trained:
    out = tmp_path_factory.mktemp("learned") / "prm"
    more = {"max_steps": 24, "learning_rate": 3e-3, "weight_decay": 0.1, "scheduler": "cosine"}
    return train(make_training(wishes(data["some"], out, **more, eval_data=str(data["some"]))))


def test_it_learns_which_steps_are_good_and_picks_the_right_replies(learned: Trained) -> None:
    said = learned.evaluation
    assert said["eval_auroc"] > 0.9 and said["eval_accuracy"] > said["eval_share_good"]
    assert said["eval_best_of_n"] > 0.75 > said["eval_mean_of_n"] == 0.5 and said["eval_oracle_of_n"] == 1.0
    losses = [entry["loss"] for entry in learned.log if "loss" in entry]
    assert len(losses) == 24 and sum(losses[-4:]) < 0.7 * sum(losses[:4])


def test_it_says_what_it_learned_from(learned: Trained) -> None:
    begun = learned.log[0]
    assert begun["rows"] == 16 and begun["good"] / begun["steps"] == begun["share_good"] < 1
    assert json.loads((Path(learned.folder) / "prm.json").read_text()) == {
        "separator": "", "join": " ", "cut": "auto", "max_length": 2048,
    }  # fmt: skip
    weights, notes = (Path(learned.folder) / name for name in ("model.safetensors", "training.json"))
    assert weights.stat().st_mode == notes.stat().st_mode, "who may read the folder may read the weights"
    config = transformers.AutoConfig.from_pretrained(learned.folder)
    assert config.id2label == {0: "bad", 1: "good"} and config.architectures == ["Qwen3ForTokenClassification"]


async def ask(model: str | dict[str, Any], rows: list[dict[str, Any]]) -> list[Completion]:
    backend = connect(parse(model))
    messages = [(Message("user", row["prompt"]), Message("assistant", " ".join(row["completions"]))) for row in rows]
    try:
        return list(await asyncio.gather(*(backend.complete(Request(one, Sampling())) for one in messages)))
    finally:
        await backend.close()


def margins(trainer: Any, rows: Any) -> list[list[float]]:
    """P(good) of each step by the trainer's own model."""
    trainer.model.eval()
    with torch.inference_mode():
        logits = trainer.model.model(**{name: collate(rows)[name] for name in ("input_ids", "attention_mask")}).logits
    return [good(one[list(row.places)]).tolist() for one, row in zip(logits, rows, strict=True)]


async def test_asked_as_a_backend_it_says_what_it_said_to_its_trainer(
    learned: Trained, data: Mapping[str, Path], tmp_path: Path
) -> None:
    rows = kind.read(data["few"])
    trainer = kind.trainer(job(**wishes(data["few"], tmp_path, model=learned.folder)))
    own = margins(trainer, trainer.train_dataset)
    told = await ask({"model": f"local/{learned.folder}", "head": "prm"}, rows)
    for completion, wanted in zip(told, own, strict=True):
        scores = dict(completion.scores or {})
        assert [scores[f"step {at}"] for at in range(1, len(wanted) + 1)] == pytest.approx(wanted, abs=1e-5)
        assert scores["min"] == min(scores[f"step {at}"] for at in range(1, len(wanted) + 1))


# --- stages ----------------------------------------------------------------------------------------------------------


def test_stage_one_leaves_the_language_model_and_stage_two_goes_on_from_it(
    data: Mapping[str, Path], tmp_path: Path
) -> None:
    first = kind.trainer(
        job(
            **wishes(
                data["few"], tmp_path / "one", prm={"fix_llm": True, "separator": "\n"}, gradient_checkpointing=True
            )
        )
    )
    before = {name: value.clone() for name, value in first.model.state_dict().items()}
    first.train()
    after = first.model.state_dict()
    moved = {name for name, value in after.items() if not torch.equal(value, before[name])}
    assert moved == {"model.score.weight", "model.score.bias", "projection.weight"}
    first.save_model(str(tmp_path / "one"))
    second = kind.trainer(job(**wishes(data["few"], tmp_path / "two", model=str(tmp_path / "one"))))
    assert same(first.model, second.model), "head and projection come along, bit for bit"
    assert (second.form.separator, second.form.join) == ("\n", " "), "and how replies are read"
    second.train()
    assert not same(second.model.model.model, first.model.model.model)


def test_without_contrast_there_is_no_projection(data: Mapping[str, Path], tmp_path: Path) -> None:
    done = train(make_training(wishes(data["few"], tmp_path / "prm", prm={"contrast": 0})))
    assert done.loss is not None and not (tmp_path / "prm" / PROJECTION).exists()


# --- how a step is divided, and a kill -------------------------------------------------------------------------------


class Gradients(transformers.TrainerCallback):  # type: ignore[misc]  # transformers leaves it untyped
    """Keeps the gradients of the first step."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        if not self.found:
            self.found = {name: weight.grad.clone() for name, weight in model.named_parameters()}


def test_accumulated_batches_are_one_large_batch(data: Mapping[str, Path], tmp_path: Path) -> None:
    whole = kind.trainer(job(**wishes(data["few"], tmp_path / "a", batch_size=8)))
    parts = kind.trainer(job(**wishes(data["few"], tmp_path / "b", batch_size=4, accumulation=2)))
    seen = Gradients(), Gradients()
    for trainer, callback in zip((whole, parts), seen, strict=True):
        trainer.add_callback(callback)
        trainer.train()
    assert all(
        torch.allclose(seen[1].found[name], value, rtol=1e-3, atol=1e-6) for name, value in seen[0].found.items()
    )
    logged = [[entry["loss"] for entry in one.state.log_history if "loss" in entry] for one in (whole, parts)]
    assert logged[0] == pytest.approx(logged[1], rel=1e-4)


def test_going_on_from_a_checkpoint_of_the_second_epoch_ends_at_the_same_weights(
    data: Mapping[str, Path], tmp_path: Path
) -> None:
    values = wishes(data["few"], tmp_path / "prm", max_steps=4, save_steps=3)  # two steps are an epoch
    through, resumed = kind.trainer(job(**values)), kind.trainer(job(**values))
    through.train()
    resumed.train(resume_from_checkpoint=str(tmp_path / "prm" / "checkpoints" / "checkpoint-3"))
    assert resumed.state.global_step == 4 and same(through.model, resumed.model)


# --- adapters --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("merge", [True, False])
async def test_an_adapter_is_served_merged_or_over_its_base(
    merge: bool, data: Mapping[str, Path], tmp_path: Path
) -> None:
    lora = {"r": 4, "alpha": 8, "merge": merge}
    out, rows = tmp_path / "prm", kind.read(data["few"])
    done = train(make_training(wishes(data["few"], out, lora=lora, save_steps=1)))
    assert done.steps == 2 and (out / PROJECTION).is_file()
    again = kind.trainer(job(**wishes(data["few"], tmp_path / "unused", lora=lora)))
    fresh = margins(again, again.train_dataset)
    again._load_from_checkpoint(str(out / "checkpoints" / "checkpoint-2"))
    own = margins(again, again.train_dataset)
    assert own[0] != pytest.approx(fresh[0], abs=1e-3), "it has learned"
    model = {"model": f"local/{out}"} if merge else {"model": "zoo/qwen", "adapter": str(out)}
    for completion, wanted in zip(await ask({**model, "head": "prm"}, rows), own, strict=True):
        assert (completion.scores or {})["last"] == pytest.approx(wanted[-1], abs=1e-4)
    assert (out / "adapter_config.json").exists() != merge and (out / "config.json").exists() == merge


# --- what does not go ------------------------------------------------------------------------------------------------


def test_a_family_without_token_classification_is_named(data: Mapping[str, Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"'zoo/gemma' is a gemma3_text, and transformers has no token classification"):
        train(make_training(wishes(data["few"], tmp_path / "prm", model="zoo/gemma")))


def test_a_loss_that_is_no_number_stops_and_the_last_good_checkpoint_stays(
    data: Mapping[str, Path], tmp_path: Path
) -> None:
    more = {"learning_rate": 1e30, "max_steps": 5, "save_steps": 1, "max_grad_norm": 1e30}
    with pytest.raises(TrainingStopped, match="the last good checkpoint is kept"):
        train(make_training(wishes(data["few"], tmp_path / "prm", **more)))
    for file in (tmp_path / "prm").rglob("*.safetensors"):
        from safetensors.torch import load_file

        assert all(value.isfinite().all() for value in load_file(file).values())
