"""Reinforcement learning whose objective is the decision that is deployed: pass@k, majority@k, best of k, the mean.

TRL's GRPOTrainer writes the samples and takes the step; the advantages are those of `pluribus.objectives`. With n
samples of a prompt, A_i of the wished objective and estimator, and L = `max_new_tokens`, one step follows

    g = 1 / L · mean over prompts of Σ_i A_i ∇ log π(y_i)

that is n A_i in TRL's `dr_grpo`, which divides by samples and by L and not by lengths or deviations. TRL subtracts each
group's mean, which would be another objective for every estimator but `urloo`: here its advantages are replaced whole,
after rewards and answers were gathered from all processes, so that a group may straddle them.

Under PRM and PRMVR each token of step t has what the process reward model's scores give it (see
`pluribus.objectives.process`), plus, under PRMVR, `verifiable_reward_coef` times the outcome's n A_i. For the mean
that is solved minus the mean of the others' solved.

Where TRL would call `generate`, samples are written by the batching of `pluribus.backends`, which reads each prompt
once for all its samples and lets no row wait for the longest; each sample has random numbers of its own, so that a
training that goes on after a kill, or on two processes, draws what it would have drawn. Samples whose advantage is 0
are taken out before the forward pass, unless there is a KL: they would add exact zeros. (vLLM, FSDP and ZeRO-3 draw as
TRL does.)

Source: Tang et al. 2025, arXiv 2503.19595; Walder and Karkhanis 2025, arXiv 2505.15201; Liu et al. 2025, arXiv
2503.20783 (dr_grpo); Luo et al. 2026, arXiv 2602.03955 (PRMVR). KL is TRL's, inside the loss: Schulman's estimator that
is never negative, weighted so that its gradient is the reverse KL's.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch

from pluribus import sandbox
from pluribus.backends._batching import Batcher
from pluribus.backends._batching import Row as BatchRow
from pluribus.backends._think import OPEN, split_think
from pluribus.embedders import open_embedder
from pluribus.errors import CodeNotAllowed, ConfigError, DataError, PluribusError, TrainingStopped
from pluribus.rows import Row
from pluribus.training import _grpo_watch as watch
from pluribus.training._grpo_rows import check_held_out, check_keys, check_rows, read_prompts
from pluribus.training._grpo_samples import (
    Sample,
    graded,
    outcome_advantages,
    rewarded,
    step_advantages,
)
from pluribus.training._run import Job, arguments
from pluribus.training._watch import watched
from pluribus.training.config import GrpoConfig, TrainConfig

if TYPE_CHECKING:
    from trl.trainer.grpo_trainer import GRPOTrainer as _Grpo
else:
    _Grpo = object  # TRL takes ten seconds to import: it is put under the class when the first one is made

HELD_OUT = "held_out.jsonl"
MOST_ROWS = 1024
"""Samples that are written at once; halved where the memory does not suffice."""
HELD_OUT_ROWS = 256
"""Held-out samples that are written at once on each device where nothing is computed of them afterwards."""
USUAL_LOOK = 4
"""Samples of each held-out question."""
FEW = 4
"""Samples of a prompt below which the others are a poor baseline."""


def read(path: Path) -> list[Row]:
    """The file's rows, checked."""
    return read_prompts(path)


def check(job: Job) -> Job:
    """Everything about the wishes that can be known before weights are read; the job without prompts that leave no room
    for a reply."""
    from pluribus.training._grpo_steps import check_folder

    config, wishes = job.config, job.config.grpo
    check_rows(wishes, job.rows, config.data)
    if job.eval_rows is not None:
        check_keys(job.eval_rows, str(config.eval_data), "eval_data")
        check_held_out(job.rows, job.eval_rows, str(config.eval_data))
    if wishes.prm is not None:
        check_folder(wishes.prm)
    if wishes.judges is not None and job.score is None:
        raise ConfigError("grpo.judges is there, and nobody opened it", hint="give train() the judges as score")
    checked = [*(job.rows if wishes.reward_mode != "ORM" else ()), *(job.eval_rows or ())]
    if any(row["kind"] == "program" for row in checked) and sandbox.allowed() is None:
        raise CodeNotAllowed("the rows are checked by running programs that models write")
    if job.max_length is not None and wishes.max_new_tokens >= job.max_length:
        raise ConfigError(
            f"grpo.max_new_tokens is {wishes.max_new_tokens}, and prompt and reply have {job.max_length:,} tokens",
            hint="say fewer, so that the prompt has room",
        )
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    at_once = per_generation(config, processes) * config.batch_size * processes // wishes.samples
    rows, held_out = _with_room(job, job.rows), None if job.eval_rows is None else _with_room(job, job.eval_rows)
    out = len(job.rows) - len(rows)
    if len(rows) < at_once:
        short = f" that leave room for a reply of {wishes.max_new_tokens:,} tokens" if out else ""
        raise DataError(
            config.data, f"{len(rows):,} questions are in it{short}, and {at_once:,} are drawn from at once",
            hint=f"give more questions{', fewer max_new_tokens' if out else ''}, a smaller batch_size or grpo.prompts",
        )  # fmt: skip
    if held_out == []:
        raise DataError(
            str(config.eval_data), "no question in it leaves room for a reply", hint="say fewer max_new_tokens"
        )
    return replace(job, rows=rows, eval_rows=held_out, left_out=out)


def _with_room(job: Job, rows: Sequence[Row]) -> list[Row]:
    """Those whose prompt and reply the model can hold."""
    if job.max_length is None:
        return list(rows)
    room = job.max_length - job.config.grpo.max_new_tokens
    return [row for row in rows if _surely_short(row, room) or _length(job, row) <= room]


def _surely_short(row: Row, room: int) -> bool:
    """No letter is more than four tokens, and no template longer than a thousand."""
    return 4 * sum(len(message["content"]) for message in row["prompt"]) + 1000 < room


def _length(job: Job, row: Row) -> int:
    return len(
        job.tokenizer.apply_chat_template(row["prompt"], add_generation_prompt=True, return_dict=True)["input_ids"]
    )


# --- sizes -----------------------------------------------------------------------------------------------------------


def per_generation(config: TrainConfig, processes: int) -> int:
    """Batches of each device that one drawing of samples makes; ConfigError where the sizes do not fit each other."""
    wishes, step = config.grpo, config.batch_size * config.accumulation * processes
    drawn = step if wishes.prompts is None else wishes.prompts * wishes.samples
    said = f"batch_size {config.batch_size} x accumulation {config.accumulation} x {processes} process" + (
        "es" if processes > 1 else ""
    )
    if drawn % wishes.samples:
        raise ConfigError(
            f"{said} is {step} samples a step, and grpo.samples is {wishes.samples} of each prompt",
            hint=f"choose sizes whose product is a multiple of {wishes.samples}",
        )
    if drawn % step:
        raise ConfigError(
            f"grpo.prompts {wishes.prompts} x samples {wishes.samples} is {drawn} samples at once, and {said} is "
            f"{step} a step",
            hint="choose sizes so that the samples drawn at once make whole steps",
        )
    return drawn // (config.batch_size * processes)


def notes(job: Job, processes: int) -> list[str]:
    """What is said before the start: how many samples are drawn, and what is unwise."""
    config, wishes = job.config, job.config.grpo
    drawn = per_generation(config, processes) * config.batch_size * processes
    steps = drawn // (config.batch_size * config.accumulation * processes)
    rounds = steps_of(config, len(job.rows), processes) / (steps * wishes.iterations)
    said = [
        f"{drawn // wishes.samples:,} prompts x {wishes.samples} samples = {drawn:,} samples at once, "
        f"for {steps * wishes.iterations} optimiser step{'s' if steps * wishes.iterations > 1 else ''}; "
        f"{round(rounds * drawn):,} samples in all"
    ]
    if job.left_out:
        said.append(
            f"{job.left_out:,} of {job.left_out + len(job.rows):,} prompts leave no room for a reply of "
            f"{wishes.max_new_tokens:,} tokens, and are left out"
        )
    if wishes.samples < FEW:
        said.append(f"grpo.samples is {wishes.samples}: below {FEW} the other samples are a poor baseline")
    if wishes.top_p < 1:
        said.append(f"grpo.top_p is {wishes.top_p}: what is learned from is then not what the policy gives; 1 is exact")
    whole = steps * wishes.iterations
    if config.save_steps is not None and config.save_steps % whole:
        said.append(
            f"save_steps {config.save_steps} is no multiple of {whole}: a training that goes on from there draws new "
            "samples"
        )
    optimised, needed = steps_of(config, len(job.rows), processes), 2 * watch.WINDOW
    entries = optimised // config.logging_steps
    if entries < needed <= optimised:
        said.append(
            f"logging_steps {config.logging_steps} gives {entries} lines, and the alarms about diversity and length "
            f"compare {needed}: say fewer steps a line"
        )
    if wishes.self_labelled and job.eval_rows is None:
        said.append(
            "self_labelled without eval_data: nobody will see when wrong answers are reinforced; name some labelled "
            "questions with eval_data"
        )
    return said


def steps_of(config: TrainConfig, rows: int, processes: int) -> int:
    """Optimiser steps of the whole training, with `rows` prompts."""
    if config.max_steps is not None:
        return config.max_steps
    wishes = config.grpo
    drawn = per_generation(config, processes) * config.batch_size * processes
    steps = drawn // (config.batch_size * config.accumulation * processes) * wishes.iterations
    return max(1, round(config.epochs * (rows // (drawn // wishes.samples)) * steps))


# --- the trainer -----------------------------------------------------------------------------------------------------


def trainer(job: Job) -> Any:
    """TRL's trainer with the objective's advantages, ready to go."""
    from transformers import AutoModelForCausalLM
    from trl.trainer.grpo_config import GRPOConfig

    wishes = job.config.grpo
    args = GRPOConfig(**arguments(job.config) | _arguments(job))
    made = council_trainer()(
        model=job.student(AutoModelForCausalLM),
        reward_funcs=[_placeholder(wishes)],
        args=args,
        train_dataset=_dataset(job.rows),
        eval_dataset=None if job.eval_rows is None else _dataset(job.eval_rows),
        processing_class=job.tokenizer,
        peft_config=job.adapter(),
    )
    made.begin(job)
    return made


def _arguments(job: Job) -> dict[str, Any]:
    """Those of TRL's GRPO."""
    from accelerate import PartialState  # type: ignore[import-untyped]  # it has no stubs

    config, wishes = job.config, job.config.grpo
    processes = PartialState(cpu=not torch.cuda.is_available()).num_processes
    found: dict[str, Any] = {
        "num_generations": wishes.samples,
        "steps_per_generation": per_generation(config, processes),
        "num_iterations": wishes.iterations,
        "max_completion_length": wishes.max_new_tokens,
        "temperature": wishes.temperature,
        "top_p": wishes.top_p,
        "beta": wishes.kl,
        "epsilon": wishes.clip,
        "loss_type": "dr_grpo",
        "scale_rewards": "none",
        "disable_dropout": True,
    }
    if job.eval_rows is not None:
        found |= _looks(config, len(job.eval_rows), processes)
    if wishes.vllm is not None:
        found |= {
            "use_vllm": True, "vllm_mode": wishes.vllm.mode, "vllm_gpu_memory_utilization": wishes.vllm.memory,
            "vllm_server_base_url": wishes.vllm.url if wishes.vllm.mode == "server" else None,
            "vllm_max_model_length": job.max_length,
        }  # fmt: skip
    return found


def _looks(config: TrainConfig, questions: int, processes: int) -> dict[str, Any]:
    """When held-out questions are looked at, and how many at once: batches are of about the same size."""
    wishes = config.grpo
    each = wishes.eval_samples or max(USUAL_LOOK, wishes.k or 1, wishes.k_end or 1)
    steps = per_generation(config, processes) * wishes.iterations // config.accumulation
    read_again = wishes.kl or wishes.vllm is not None or steps > 1  # TRL then computes each sample's probabilities
    rows = config.eval_batch_size if read_again else max(config.eval_batch_size, HELD_OUT_ROWS)
    groups = max(1, rows * processes // each)
    groups = -(-questions // -(-questions // groups))
    at_once = groups * each
    while at_once % processes:
        at_once += each
    found: dict[str, Any] = {
        "num_generations_eval": each, "per_device_eval_batch_size": at_once // processes, "eval_on_start": True,
    }  # fmt: skip
    every = wishes.eval_steps or (max(1, (config.max_steps or 100) // 10) if wishes.self_labelled else None)
    if every is not None:
        found |= {"eval_strategy": "steps", "eval_steps": every}
    return found


def _placeholder(wishes: GrpoConfig) -> Any:
    def reward(**_: Any) -> list[float]:
        raise NotImplementedError("the trainer rewards whole groups")

    reward.__name__ = "own_label" if wishes.self_labelled else wishes.reward_mode
    return reward


def _dataset(rows: Sequence[Row]) -> Any:
    """Prompts with their place among the rows."""
    from datasets import Dataset  # type: ignore[import-untyped]  # it has no stubs

    return Dataset.from_dict({"prompt": [row["prompt"] for row in rows], "place": list(range(len(rows)))})


def some_of(inputs: Mapping[str, Any], kept: torch.Tensor) -> dict[str, Any]:
    """The kept rows of a batch, without columns in which only the others had tokens."""
    rows = {
        name: value[kept] if isinstance(value, torch.Tensor) and value.dim() and len(value) == len(kept) else value
        for name, value in inputs.items()
    }
    asked, said = rows["prompt_mask"].any(0), rows["completion_mask"].any(0)
    for name, value in rows.items():
        if isinstance(value, torch.Tensor) and value.dim() == 2:
            if name.startswith("prompt_"):
                rows[name] = value[:, asked]
            elif value.size(1) == len(said):
                rows[name] = value[:, said]
    return rows


def _opened(job: Job) -> str:
    asked = job.tokenizer.apply_chat_template(job.rows[0]["prompt"], add_generation_prompt=True, tokenize=False)
    return OPEN if str(asked).rstrip().endswith(OPEN) else ""


def _trl(trainer: Any) -> Any:
    """TRL leaves its methods untyped."""
    return trainer


def _spread_by_deepspeed() -> bool:
    from transformers.integrations.deepspeed import is_deepspeed_zero3_enabled

    return bool(cast("Any", is_deepspeed_zero3_enabled)())


def _gathered(local: list[Any]) -> list[Any]:
    """Those of all processes, in their order."""
    from accelerate.utils import gather_object  # type: ignore[import-untyped]  # it has no stubs

    return list(gather_object(local))


@cache
def council_trainer() -> Any:
    """The trainer's class."""
    from trl.trainer.grpo_trainer import GRPOTrainer

    return watched(type("CouncilTrainer", (Groups, GRPOTrainer), {}))


class Groups(_Grpo):
    """Over TRL's GRPO: advantages of whole groups, after everything was gathered."""

    def begin(self, job: Job) -> None:
        """Takes what it is to learn from; once, after it was made."""
        from pluribus.training._grpo_steps import StepScorer

        self.job, self.wishes = job, job.config.grpo
        self._runner = asyncio.Runner()
        weakref.finalize(self, self._runner.close)
        self._drawn = 0
        """Held-out samples of this look so far."""
        self._batches: list[int] = []
        """Held-out samples of each batch that no line was written of yet."""
        self._opened = _opened(job)
        """What a template has already written of a reply: the mark that it is thinking."""
        self._surprise: float | None = None
        """Mean −log π of the tokens that were drawn, nats; None: not known."""
        self._scorer = StepScorer(self.wishes.prm) if self.wishes.prm is not None else None
        self._embed = open_embedder("hashing") if self.accelerator.is_main_process else None
        self._samples: list[Sample] = []
        self._held: dict[int, list[float]] = {}
        self._at_first: dict[int, float] | None = None
        self.seconds = {"rewards": 0.0, "advantages": 0.0, "watch": 0.0}
        """Spent beside what TRL does, so far."""

    # --- samples ---

    def _generate_single_turn(self, prompt_ids: Any, *args: Any, **kwargs: Any) -> Any:
        if self.use_vllm or self.is_fsdp_enabled or _spread_by_deepspeed():
            ids, logprobs = _trl(super())._generate_single_turn(prompt_ids, *args, **kwargs)
            self._note_surprise(value for row in logprobs or () for value in row if value is not None)
            return ids, logprobs
        rows = self._written(prompt_ids)
        broken = next((row.ended for row in rows if isinstance(row.ended, PluribusError)), None)
        if broken is not None:
            raise TrainingStopped(f"training stopped: {broken}", hint="the last good checkpoint is kept") from broken
        self._note_surprise(value for row in rows for value in row.logprobs or ())
        return [row.tokens for row in rows], None

    def _note_surprise(self, logprobs: Iterable[float]) -> None:
        """Of all processes."""
        local = list(logprobs)
        sums = _gathered([(sum(local), len(local))])
        count = sum(each for _, each in sums)
        self._surprise = -sum(total for total, _ in sums) / count if count else None

    def _written(self, prompts: Sequence[Sequence[int]]) -> list[Any]:
        """One row per prompt, written to its end."""
        from trl.models.utils import unwrap_model_for_generation

        learns, checkpointing = self._learns, cast("Any", self.args.gradient_checkpointing_kwargs)
        first = self.accelerator.process_index * len(prompts)
        rows = [self._row(prompt, first + place) for place, prompt in enumerate(prompts)]
        with (
            unwrap_model_for_generation(
                self.model_wrapped, self.accelerator, gradient_checkpointing_kwargs=checkpointing
            ) as model,
            self.accelerator.autocast(),
        ):
            model.eval()
            # an adapter's own `forward` hides which arguments the model takes; its layers are in the model's places
            bare = model.get_base_model() if hasattr(model, "get_base_model") else model
            batcher = Batcher(bare, frozenset(self.eos_token_ids), MOST_ROWS)
            batcher.waiting.extend(rows)
            while batcher.busy:
                batcher.advance()
            batcher.release()
            model.train(learns)
        return rows

    def _row(self, prompt: Sequence[int], place: int) -> Any:
        """A sample to be written, with random numbers that depend on the step and its place alone."""
        step = self.state.global_step if self._learns else "held out"
        return BatchRow(
            tuple(prompt), self.wishes.max_new_tokens, self.wishes.temperature, self.wishes.top_p,
            random.Random(f"{self.job.config.seed} {step} {place if self._learns else place + self._drawn}"),
            stopped=lambda _: False, unwanted=lambda: False, logprobs=[],
        )  # fmt: skip

    # --- rewards ---

    def _calculate_rewards(self, inputs: Any, prompts: Any, completions: Any, completion_ids_list: Any) -> torch.Tensor:
        """Rewards of all processes' samples, in TRL's form: samples × 1; what else is known of them is kept beside."""
        began = time.perf_counter()
        rows = [self._rows[one["place"]] for one in inputs]
        local = self._runner.run(self._known(rows, prompts, completion_ids_list))
        everyone: list[Sample] = _gathered(local)
        groups = [
            rewarded(
                self.wishes, everyone[start : start + self._n], own_labels=self.wishes.self_labelled and self._learns
            )
            for start in range(0, len(everyone), self._n)
        ]
        self._samples = [one for group in groups for one in group]
        self._check_rewards()
        if not self._learns:
            self._hold(_gathered([one["place"] for one in inputs]))
        self.seconds["rewards"] += time.perf_counter() - began
        values = [torch.nan if one.reward is None else one.reward for one in self._samples]
        return torch.tensor(values, dtype=torch.float32, device=self.accelerator.device)[:, None]

    @property
    def _learns(self) -> bool:
        return bool(cast("Any", self.model).training)

    @property
    def _rows(self) -> Sequence[Row]:
        return self.job.rows if self._learns else self.job.eval_rows or ()

    @property
    def _n(self) -> int:
        return cast("int", self.num_generations if self._learns else self.num_generations_eval)

    async def _known(self, rows: Any, prompts: Any, ids: Any) -> list[Sample]:
        """This process's samples, graded and scored."""
        words: Any = self.processing_class
        texts = [self._opened + text for text in words.batch_decode(ids, skip_special_tokens=True)]
        found = await graded(rows, texts)
        if self._scorer is not None:
            found = await self._scorer.scored(rows, found, ids, words)
        if self.job.score is not None:
            replies = [[{"role": "assistant", "content": split_think(text)[0]}] for text in texts]
            said = await self.job.score(prompts, replies)
            found = [replace(one, score=value) for one, value in zip(found, said, strict=True)]
        return found

    def _check_rewards(self) -> None:
        """TrainingStopped where nobody can say of any sample what it is worth: there is nothing to learn."""
        mode = self.wishes.reward_mode
        outcomes = mode != "PRM" and all(one.reward is None for one in self._samples)
        steps = mode in ("PRM", "PRMVR") and all(one.steps is None for one in self._samples)
        if self._learns and (outcomes or steps):
            who = "own label" if self.wishes.self_labelled and outcomes else mode + ", steps" * (not outcomes)
            raise TrainingStopped(
                f"training stopped: of {len(self._samples):,} samples at step {self.state.global_step + 1} none has a "
                f"reward ({who}), so there is nothing to learn; the last good checkpoint is kept",
                hint="look at the replies (max_new_tokens), the keys, and whether judges and sandbox work",
            )

    # --- advantages ---

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        output = super()._generate_and_score_completions(inputs)
        began = time.perf_counter()
        groups = [self._samples[start : start + self._n] for start in range(0, len(self._samples), self._n)]
        k = self.k
        rows = [row for group in groups for row in self._advantages(group, k)]
        mine = rows[self.accelerator.process_index * len(inputs) :][: len(inputs)]
        output["advantages"] = self._spread(mine, output["completion_ids"])
        self.seconds["advantages"] += time.perf_counter() - began
        self._note(groups, rows, k)
        return output

    @property
    def k(self) -> int:
        """Samples that the deployed procedure sees, at this step of the schedule."""
        first, last = self.wishes.k or 1, self.wishes.k_end or self.wishes.k or 1
        if first == last:
            return first
        share = self.state.global_step / max(self.state.max_steps - 1, 1)
        return int(first + (last - first) * min(share, 1.0) + 0.5)

    def _advantages(self, group: Sequence[Sample], k: int) -> list[Any]:
        """Of each sample of a group: a number, or one per step."""
        if not self._learns:
            return [0.0] * len(group)
        if self.wishes.reward_mode == "PRM":
            outcome = np.zeros(len(group))
        else:
            outcome = self.wishes.verifiable_reward_coef * outcome_advantages(
                self.wishes, group, k, seed=self.job.config.seed + self.state.global_step
            )
        if self.wishes.reward_mode not in ("PRM", "PRMVR"):
            return outcome.tolist()
        return [
            value if steps is None else steps + value
            for value, steps in zip(outcome.tolist(), step_advantages(self.wishes, group), strict=True)
        ]

    def _spread(self, rows: Sequence[Any], ids: torch.Tensor) -> torch.Tensor:
        """This process's advantages: one of each sample, or one of each token, where steps have their own."""
        if self.wishes.reward_mode not in ("PRM", "PRMVR"):
            return torch.tensor(rows, dtype=torch.float32, device=ids.device)
        found = torch.zeros(ids.shape, dtype=torch.float32)
        first = self.accelerator.process_index * len(rows)
        for place, (row, one) in enumerate(zip(rows, self._samples[first:], strict=False)):
            if isinstance(row, float) or one.steps is None:
                found[place] = float(row)
                continue
            start = 0
            for value, end in zip(row.tolist(), one.ends, strict=True):
                found[place, start:end] = value
                start = end
        return found.to(ids.device)

    # --- the loss ---

    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        """TRL's loss, without what is exactly 0 in it: samples that teach nothing, where no KL holds them. Held-out
        samples have no loss."""
        if not self._learns:
            return torch.zeros((), device=inputs["advantages"].device)
        teaches = inputs["advantages"].reshape(len(inputs["advantages"]), -1).ne(0).any(1)
        if self.beta:
            return _trl(super())._compute_loss(model, inputs)
        # at least one: there is a gradient of each weight; as many in each process: TRL gathers one number of each row
        most = max(1, *_gathered([int(teaches.sum())]))
        teaches[(~teaches).nonzero()[: most - int(teaches.sum()), 0]] = True
        if most == len(teaches):
            return _trl(super())._compute_loss(model, inputs)
        return most / len(teaches) * _trl(super())._compute_loss(model, some_of(inputs, teaches))

    # --- watching ---

    def _note(self, groups: Sequence[Sequence[Sample]], rows: Sequence[Any], k: int) -> None:
        began = time.perf_counter()
        found = watch.metrics(self.wishes, groups, k, self._embed)
        if self.wishes.k_end is None or not self._learns:
            del found["k"]
        if self._surprise is not None:
            found["sample_entropy"] = self._surprise
        if self._learns:
            found["zero_advantages"] = float(np.mean([not np.any(row) for row in rows]))
        for name, value in found.items():
            self._metrics["train" if self._learns else "eval"][name].append(value)
        self.seconds["watch"] += time.perf_counter() - began

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        if not self._learns:
            self._weigh_batches()
        super().log(logs, start_time)
        found = watch.alarms(self.wishes, self.state.log_history)
        if found and self.accelerator.is_main_process:
            given = dict.fromkeys(found, 1.0)
            self.state.log_history[-1] |= given
            logs |= given
            self.callback_handler.on_log(self.args, self.state, self.control, given)
        if self.wishes.stop_on_alarm and any(_gathered([bool(found)])):
            self.control.should_training_stop = True

    # --- held-out questions ---

    def _weigh_batches(self) -> None:
        """TRL takes the mean over batches, of which the last one may be smaller."""
        for values in self._metrics["eval"].values():
            if len(values) == len(self._batches) and self._batches:
                values[:] = [float(np.average(values, weights=self._batches))]
        self._batches = []

    def _hold(self, places: Sequence[int]) -> None:
        self._drawn += len(places)
        self._batches.append(len(places))
        for place, one in zip(places, self._samples, strict=True):
            if one.right is not None:
                self._held.setdefault(place, []).append(float(one.right))

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Held-out questions, with the same random numbers each time and none of the training's own."""
        self._held, self._drawn, self._batches = {}, 0, []
        devices = [self.accelerator.device] if self.accelerator.device.type == "cuda" else []
        with torch.random.fork_rng(devices):
            torch.manual_seed(self.job.config.seed + 1_000_003 * (1 + self.accelerator.process_index))
            found: dict[str, float] = super().evaluate(*args, **kwargs)
        now = {place: float(np.mean(values)) for place, values in self._held.items()}
        found |= self._change(now)
        return found

    def _change(self, now: Mapping[int, float]) -> dict[str, float]:
        """Against the first look, paired by question; kept in a file, so that a training that goes on knows it."""
        file = Path(self.job.config.out) / HELD_OUT
        if self._at_first is None and self.state.global_step and file.is_file():
            first = json.loads(file.read_text("utf-8").splitlines()[0])
            self._at_first = {int(place): value for place, value in first["right"].items()}
        if self._at_first is None:
            self._at_first = dict(now)
        if self.accelerator.is_main_process:
            with file.open("a" if self.state.global_step else "w", encoding="utf-8") as lines:
                lines.write(json.dumps({"step": self.state.global_step, "right": now}) + "\n")
        found = watch.change(self._at_first, now)
        if found is None:
            return {}
        said = dict(zip(("eval_change", "eval_change_low", "eval_change_high"), found, strict=True))
        if self.state.global_step:
            self.log(dict(said))
        return said
