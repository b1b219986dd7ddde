"""A council of judges inside a real trainer: one GRPO step of TRL on a real tiny model."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pluribus import zoo
from pluribus.judge_config import make_judges
from pluribus.judging import CouncilReward

QUESTIONS = (
    "Ann has 12 apples. Ann buys 8 more. How many apples are left?",
    "Tom has 3 coins. Tom finds 4 more. How many?",
)


@pytest.mark.filterwarnings("ignore:.*activation_checkpointing.*:FutureWarning")  # TRL still says the older word
def test_a_grpo_step_gets_the_council_s_own_numbers(tmp_path: Path) -> None:
    datasets, trl = pytest.importorskip("datasets"), pytest.importorskip("trl")
    council = CouncilReward(
        make_judges(
            {
                "judges": [{"role": "teacher", "model": "zoo/phi"}, {"role": "critic", "model": "scripted/number"}],
                "normalise": "none",
                "max_rounds": 0,
            }
        )
    )
    rows = [{"prompt": [{"role": "user", "content": text}]} for text in QUESTIONS]
    trainer = trl.GRPOTrainer(
        model=str(zoo.folder("qwen")),
        reward_funcs=[council],
        train_dataset=datasets.Dataset.from_list(rows),
        args=trl.GRPOConfig(
            output_dir=str(tmp_path), max_steps=1, num_generations=4, per_device_train_batch_size=8, temperature=1.5,
            max_completion_length=40, report_to="none", use_cpu=True, bf16=False, save_strategy="no", logging_steps=1,
        ),
    )  # fmt: skip
    seen: list[tuple[Any, Any, list[float | None]]] = []
    asked = council.rewards

    async def rewards(prompts: Any, completions: Any) -> Any:
        found = await asked(prompts, completions)
        seen.append((prompts, completions, [one.value for one in found]))
        return found

    council.rewards = rewards  # type: ignore[method-assign]  # listens, changes nothing
    trainer.train()
    ((prompts, completions, given),) = seen
    assert len(given) == 8 and {text for (text,) in ([m["content"] for m in p] for p in prompts)} <= set(QUESTIONS)
    assert None not in given and len(set(given)) > 1
    again = CouncilReward(council.bench.config)
    assert asyncio.run(again(prompts, completions)) == given
    mean = trainer.state.log_history[0]["rewards/council_reward/mean"]
    assert mean == pytest.approx(sum(v for v in given if v is not None) / 8, abs=1e-6)
