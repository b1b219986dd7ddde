"""`pluribus train`: one model out of the council's traces, preferences or step labels, or of its own samples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Option

from pluribus.cli._flags import SWITCH, Jail, Json

Kind = Literal["sft", "dpo", "prm", "grpo"]
Objective = Literal["mean", "pass", "max", "best_of", "majority", "weighted_majority"]
RewardMode = Literal["VR", "PRM", "PRMVR", "ORM"]
Baseline = Literal["step", "token"]
Precision = Literal["auto", "fp32", "bf16"]
Scheduler = Literal["linear", "cosine", "constant", "constant_with_warmup"]
Tracker = Literal["none", "trackio", "wandb", "tensorboard"]


def _teaching(help: str, metavar: str, *names: str) -> Any:
    return Option(*names, help=help, metavar=metavar, rich_help_panel="Teaching", show_default=False)


def _fitting(help: str, metavar: str, *names: str) -> Any:
    return Option(*names, help=help, metavar=metavar, rich_help_panel="Memory", show_default=False)


def _watching(help: str, metavar: str, *names: str) -> Any:
    return Option(*names, help=help, metavar=metavar, rich_help_panel="Watching", show_default=False)


def _asking(help: str, metavar: str, *names: str) -> Any:
    return Option(*names, help=help, metavar=metavar, rich_help_panel="grpo: questions", show_default=False)


def _rewarding(help: str, metavar: str, *names: str) -> Any:
    return Option(*names, help=help, metavar=metavar, rich_help_panel="grpo: objective and reward", show_default=False)


def _sampling(help: str, metavar: str, *names: str) -> Any:
    return Option(*names, help=help, metavar=metavar, rich_help_panel="grpo: samples", show_default=False)


@dataclass(frozen=True, slots=True)
class GrpoFlags:
    """Reinforcement learning; each is an entry of `grpo` in a training file, but for the questions."""

    limit: Annotated[int | None, _asking("The first N questions of the task.", "N")] = None
    eval_limit: Annotated[int | None, _asking("Held-out questions. [dim](200)[/dim]", "N")] = None
    persona: Annotated[
        list[str] | None, _asking("Asked as this persona or role; of several each in turn; may be repeated.", "NAME")
    ] = None
    prompt: Annotated[str | None, _asking("Prompt of the student's dialect. [dim](answer)[/dim]", "NAME")] = None
    objective: Annotated[
        Objective | None,
        _rewarding(
            "What is made better: mean (one sample), pass, max, best_of, majority or weighted_majority of k. "
            "[dim](mean)[/dim]",
            "NAME",
        ),
    ] = None
    k: Annotated[int | None, _rewarding("Samples that the deployed procedure sees.", "K")] = None
    k_end: Annotated[int | None, _rewarding("k goes there over the training.", "K")] = None
    estimator: Annotated[
        str | None, _rewarding("urloo, loo1, loo, naive; rloo: urloo at k = 1. [dim](urloo)[/dim]", "NAME")
    ] = None
    reward_mode: Annotated[
        RewardMode | None,
        _rewarding(
            "VR: the task's checker. PRM: the steps, by --prm. PRMVR: both. ORM: judges, or --prm. [dim](VR)[/dim]",
            "NAME",
        ),
    ] = None
    prm: Annotated[str | None, _rewarding("A process reward model of `pluribus train prm`.", "DIR")] = None
    judges: Annotated[
        str | None, _rewarding("Judges (YAML, or what `pluribus reward --save` wrote) whose consensus scores.", "FILE")
    ] = None
    reward_baseline: Annotated[
        Baseline | None, _rewarding("Of the steps' rewards: step or token. [dim](step)[/dim]", "NAME")
    ] = None
    verifiable_reward_coef: Annotated[
        float | None, _rewarding("Weight of the outcome beside the steps. [dim](1)[/dim]", "W")
    ] = None
    self_labelled: Annotated[
        bool | None,
        _rewarding("Right is what most samples say; no key is read for the reward.", SWITCH, "--self-labelled"),
    ] = None
    kl: Annotated[float | None, _rewarding("Weight of the divergence from the start. [dim](0)[/dim]", "W")] = None
    samples: Annotated[int | None, _sampling("Of each prompt. [dim](8)[/dim]", "N")] = None
    prompts: Annotated[
        int | None, _sampling("Prompts drawn from at once. [dim](as many as one step takes)[/dim]", "N")
    ] = None
    temperature: Annotated[float | None, _sampling("Of the samples. [dim](1)[/dim]", "T")] = None
    max_new_tokens: Annotated[int | None, _sampling("Of each sample. [dim](256)[/dim]", "N")] = None
    eval_steps: Annotated[int | None, _sampling("Steps between two looks at held-out questions.", "N")] = None
    allow_code_execution: Annotated[
        Jail | None,
        _sampling("Run the programs that the student writes, in a sandbox; =rlimit: without walls.", "[=rlimit]"),
    ] = None


def train(
    kind: Annotated[
        Kind,
        Argument(
            help="sft: demonstrations. dpo: preferences. prm: step labels. grpo: the student's own samples, rewarded.",
            metavar="sft|dpo|prm|grpo",
        ),
    ],
    rl: GrpoFlags,
    config: Annotated[
        Path | None, Option(help="A training file (YAML); flags win over it.", metavar="FILE", show_default=False)
    ] = None,
    model: Annotated[
        str | None, Option(help="The student: a folder, a hub id, or zoo/NAME.", metavar="MODEL", show_default=False)
    ] = None,
    data: Annotated[
        str | None,
        Option(
            help="Rows that `pluribus distil` or `prefer` wrote; for grpo TASK[:SUBSET][@SPLIT] or a file of prompts.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        str | None,
        Option(help="Folder for the trained model: local/DIR from then on.", metavar="DIR", show_default=False),
    ] = None,
    eval_data: Annotated[
        str | None,
        Option(help="Rows to measure on; for grpo held-out questions.", metavar="FILE", show_default=False),
    ] = None,
    check_against: Annotated[
        list[str] | None,
        Option(
            help="Evaluation set that no row may hold a question of: TASK[:SUBSET][@SPLIT] or a file; may be repeated. "
            "[dim](the test split of the rows' own tasks, where it is at hand)[/dim]",
            metavar="SET",
            show_default=False,
        ),
    ] = None,
    epochs: Annotated[float | None, _teaching("Times each row is seen. [dim](1)[/dim]", "N")] = None,
    max_steps: Annotated[int | None, _teaching("Optimiser steps; wins over --epochs.", "N")] = None,
    batch_size: Annotated[int | None, _teaching("Rows on each device at once. [dim](8)[/dim]", "N")] = None,
    accumulation: Annotated[int | None, _teaching("Batches that make one step. [dim](1)[/dim]", "N")] = None,
    learning_rate: Annotated[
        float | None,
        _teaching("[dim](sft 2e-5, dpo 1e-6, prm 1e-5, grpo 1e-6; ten times that for --lora, --fix-llm)[/dim]", "RATE"),
    ] = None,
    weight_decay: Annotated[float | None, _teaching("[dim](0)[/dim]", "W")] = None,
    warmup_ratio: Annotated[float | None, _teaching("Share of the steps to warm up. [dim](0)[/dim]", "P")] = None,
    scheduler: Annotated[
        Scheduler | None, _teaching("linear, cosine, constant, constant_with_warmup. [dim](linear)[/dim]", "NAME")
    ] = None,
    beta: Annotated[float | None, _teaching("dpo: how close it stays to where it began. [dim](0.1)[/dim]", "B")] = None,
    fix_llm: Annotated[
        bool, _teaching("prm: the head learns alone, the language model stays as it is.", SWITCH, "--fix-llm")
    ] = False,
    seed: Annotated[int | None, _teaching("Order of the rows, new weights. [dim](0)[/dim]", "N")] = None,
    set: Annotated[
        list[str] | None,
        _teaching("Any entry of the training file, such as prm.contrast=0; may be repeated.", "KEY=VALUE"),
    ] = None,
    lora: Annotated[bool, _fitting("Trains low-rank adapters instead of all weights.", SWITCH, "--lora")] = False,
    lora_r: Annotated[int | None, _fitting("Their rank; says --lora. [dim](16)[/dim]", "N")] = None,
    load_in_4bit: Annotated[
        bool, _fitting("Over a model in 4 bits (QLoRA); says --lora.", SWITCH, "--load-in-4bit")
    ] = False,
    load_in_8bit: Annotated[bool, _fitting("Over a model in 8 bits; says --lora.", SWITCH, "--load-in-8bit")] = False,
    max_length: Annotated[
        int | None, _fitting("Most tokens of a row; longer ones are cut. [dim](the model's own)[/dim]", "N")
    ] = None,
    gradient_checkpointing: Annotated[
        bool, _fitting("Computes activations again instead of keeping them.", SWITCH, "--gradient-checkpointing")
    ] = False,
    precision: Annotated[
        Precision | None, _fitting("bf16, fp32 or auto: bf16 on a GPU. [dim](auto)[/dim]", "NAME")
    ] = None,
    plan: Annotated[
        bool, _fitting("Says what would be trained and the memory it takes, and stops.", SWITCH, "--plan")
    ] = False,
    logging_steps: Annotated[int | None, _watching("Steps between two lines. [dim](10)[/dim]", "N")] = None,
    save_steps: Annotated[int | None, _watching("Steps between two checkpoints. [dim](none)[/dim]", "N")] = None,
    save_total_limit: Annotated[int | None, _watching("Checkpoints that are kept. [dim](3)[/dim]", "N")] = None,
    no_resume: Annotated[
        bool, _watching("Begins anew instead of at the last checkpoint.", SWITCH, "--no-resume")
    ] = False,
    report_to: Annotated[
        Tracker | None, _watching("trackio, wandb, tensorboard or none. [dim](none)[/dim]", "NAME")
    ] = None,
    json: Json = False,
) -> int:
    """Train a model: on demonstrations, on preferences, as a process reward model, or on its own rewarded samples.

    The trained model is at once a model like any other: local/DIR. Stopped in the middle, the same command goes on from
    the last checkpoint; finished, it says so. On several devices: accelerate launch -m pluribus train ….
    """
    from pluribus.cli import _trainer
    from pluribus.cli._flags import said as said_of

    said = {
        "model": model, "data": data, "out": out, "eval_data": eval_data, "check_against": check_against or None,
        "epochs": epochs, "max_steps": max_steps, "batch_size": batch_size, "accumulation": accumulation,
        "learning_rate": learning_rate, "weight_decay": weight_decay, "warmup_ratio": warmup_ratio,
        "scheduler": scheduler, "seed": seed, "max_length": max_length, "precision": precision,
        "gradient_checkpointing": gradient_checkpointing or None, "logging_steps": logging_steps,
        "save_steps": save_steps, "save_total_limit": save_total_limit, "report_to": report_to,
        "resume": False if no_resume else None,
    }  # fmt: skip
    wishes = _trainer.Wishes(
        {name: value for name, value in said.items() if value is not None},
        beta=beta, fix_llm=fix_llm, lora=lora, lora_r=lora_r, bits=_trainer.bits(load_in_4bit, load_in_8bit),
        settings=tuple(set or ()), rl=said_of(rl),
    )  # fmt: skip
    return _trainer.go(kind, config, wishes, plan=plan, json=json)
