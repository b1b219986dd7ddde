"""The process reward model as a judge: what its head reads, what its steps come to, and what it says without one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from pluribus.agents import Agent
from pluribus.backends import Request, connect, parse
from pluribus.errors import ConfigError, ServerError, UnknownName
from pluribus.judge_config import make_judges
from pluribus.judges import Candidate, Juror, prm
from pluribus.judging import bench
from pluribus.load import fill
from pluribus.prompts import dialect, render
from pluribus.types import Completion, Message, Question, Seat

Sit = Callable[..., Juror]
Replies = Callable[..., list[Candidate]]
Asked = Callable[[Juror], list[Request]]


def marks(request: Request) -> Completion:
    """A head that trusts short replies."""
    first = 1 / len(request.messages[-1].content)
    scores = {"step 1": first, "step 2": 0.25, "min": 0.1, "mean": 0.2, "last": 0.25, "product": 0.05}
    return Completion("", "local/prm", scores=scores)


@pytest.mark.parametrize("words", ["standard", "zoo"])
async def test_the_head_reads_question_and_reply_and_the_steps_are_kept(
    sit: Sit, candidates: Replies, asked: Asked, question: Question, attack: str, words: str
) -> None:
    juror = sit(prm.Settings(), marks, words=words)
    opinions = await prm.judge_all(juror, candidates("19", attack))
    assert [opinion.score for opinion in opinions] == [0.1, 0.1]
    assert [opinion.notes for opinion in opinions] == [{"steps": [0.5, 0.25]}, {"steps": [1 / len(attack), 0.25]}]
    answer = render(dialect(words), "answer", question)  # what is asked when the reply is generated, and in its rows
    assert asked(juror)[0].messages == (*answer, Message("assistant", "19"))
    assert asked(juror)[1].messages == (*answer, Message("assistant", attack))


@pytest.mark.parametrize(("aggregate", "score"), [("min", 0.1), ("mean", 0.2), ("last", 0.25), ("product", 0.05)])
async def test_the_steps_come_to_what_is_asked(sit: Sit, candidates: Replies, aggregate: str, score: float) -> None:
    (opinion,) = await prm.judge_all(
        sit(fill(prm.Settings, "judge prm", {"aggregate": aggregate}), marks), candidates("19")
    )
    assert opinion.score == score
    with pytest.raises(ConfigError, match="one of min, mean, last, product"):
        fill(prm.Settings, "judge prm", {"aggregate": "median"})


@pytest.mark.parametrize("scores", [None, {}, {"reward": 1.0}, {"min": 0.5}])
async def test_a_model_that_marks_no_steps_is_a_failure_that_says_what_to_take(
    sit: Sit, candidates: Replies, scores: dict[str, float] | None
) -> None:
    juror = sit(prm.Settings(), lambda request: Completion("Well.", "local/chat", scores=scores))
    (opinion,) = await prm.judge_all(juror, candidates("19"))
    assert opinion.score is None and opinion.failure is not None
    assert "local/chat marks no steps; take a model of pluribus train prm" in opinion.failure.message


@pytest.mark.parametrize("value", [math.nan, 1.5, -0.1])
async def test_a_mark_that_is_no_probability_is_a_failure(sit: Sit, candidates: Replies, value: float) -> None:
    scores = {"step 1": value, "min": value}
    juror = sit(prm.Settings(), lambda request: Completion("", "local/prm", scores=scores))
    (opinion,) = await prm.judge_all(juror, candidates("19"))
    assert opinion.score is None and opinion.failure is not None and "not in [0, 1]" in opinion.failure.message


async def test_a_failing_call_is_the_failure(sit: Sit, candidates: Replies) -> None:
    (opinion,) = await prm.judge_all(sit(prm.Settings(), lambda request: ServerError("500: ill")), candidates("19"))
    assert opinion.failure is not None and opinion.failure.kind == "server_error" and len(opinion.turns) == 1


# --- at its bench ----------------------------------------------------------------------------------------------------


def test_the_bench_gives_the_model_its_head_and_refuses_a_served_one() -> None:
    def judges(model: str, **settings: str) -> object:
        return bench(
            make_judges({"judges": [{"role": "teacher", "kind": "prm", "model": model, "settings": settings}]})
        )

    (spec,) = judges("zoo/qwen").specs  # type: ignore[attr-defined]
    assert spec.options["head"] == "prm"
    with pytest.raises(ConfigError, match="a judge of kind prm runs in this process"):
        judges("vllm/prm@http://127.0.0.1:1/v1")
    with pytest.raises(UnknownName, match="unknown setting of judge prm 'cut'"):
        judges("zoo/qwen", cut="lines")


async def test_a_model_in_this_process_judges_step_by_step(
    tmp_path: Path, candidates: Replies, question: Question
) -> None:
    transformers = pytest.importorskip("transformers")
    from pluribus.zoo import folder

    config = transformers.Qwen3Config(
        vocab_size=896, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, num_labels=2,
    )  # fmt: skip
    transformers.AutoModelForTokenClassification.from_config(config).save_pretrained(tmp_path)
    transformers.AutoTokenizer.from_pretrained(folder("qwen")).save_pretrained(tmp_path)
    (tmp_path / "prm.json").write_text(json.dumps({"separator": "\n"}))
    backend = connect(parse({"model": f"local/{tmp_path}", "head": "prm"}))
    agent = Agent(Seat(0, "teacher", backend.model), backend, dialect("standard")).at(question, 0)
    juror = Juror("teacher", question, prm.Settings("product"), agent)
    right, empty = await prm.judge_all(juror, candidates("12 + 7 = 19. {final answer: 19}", " "))
    await backend.close()
    assert right.score == pytest.approx(math.prod(right.notes["steps"])) and len(right.notes["steps"]) == 2
    assert empty.score is None and empty.failure is not None and "no step in the reply" in empty.failure.message
