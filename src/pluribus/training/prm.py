"""Process reward model: how good is each step of a reply (Lightman et al. 2023, arXiv 2305.20050).

Token classification with two labels, 0 bad and 1 good: the conversation, then each step and behind it the separator, on
whose last token the step's label sits (with an empty separator, on the step's own last token). The loss of a batch is

    L = 1/|M| Σ_{m ∈ M} −ln P(label m)  +  c · 1/|A| Σ_{i ∈ A} L_i

over the marked places M, and over the anchors A of the contrast L_i between the good steps of right replies and the bad
steps of wrong replies to the same question (`_prm_model.contrast`; c = `prm.contrast`). |M| and |A| are counts of the
whole optimiser step, over all processes and accumulated batches, so that how it was divided changes nothing but
rounding. A batch without an anchor has no contrast.

`fix_llm` is stage 1: the head and the projection learn, the language model stays as it is. Stage 2 is a second training
whose model is the folder of the first, without `fix_llm`; head and projection go on from there.

Differences from AgentArk (Luo et al. 2026, arXiv 2602.03955): a row is one solution with its steps, theirs is all
solutions of one question in one sequence; the contrast is kept within a question, theirs is over the batch; the
projection is linear, learns, and is saved; nothing is dropped out before the head.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import torch
from transformers import Trainer, TrainerCallback

from pluribus.backends import layout_of
from pluribus.backends._loading import STEP_FORM, StepForm, Words, load_config, read_form
from pluribus.errors import UsageError
from pluribus.rows import Row
from pluribus.training._models import dialect_of
from pluribus.training._prm_model import IGNORED, StepModel, anchors, collate
from pluribus.training._prm_rows import Counts, Marked, QuestionOrder, mark_rows, measures, read_steps
from pluribus.training._run import Job, arguments
from pluribus.training._watch import watched

LABELS = {0: "bad", 1: "good"}


def read(path: Path) -> list[Row]:
    """The file's rows, checked."""
    return read_steps(path)


def trainer(job: Job) -> Any:
    """The trainer with model and data, ready to go."""
    from transformers import TrainingArguments, set_seed

    config, wishes = job.config, job.config.prm
    form = _form(job)
    words = Words(job.tokenizer)
    rows, counts = mark_rows(job.rows, words, form, config.data)
    eval_rows = mark_rows(job.eval_rows, words, form, str(config.eval_data))[0] if job.eval_rows is not None else None
    # before the model: DeepSpeed spreads weights while they are read only once it was told so
    args = TrainingArguments(**arguments(config), remove_unused_columns=False, label_names=["labels"])
    set_seed(config.seed)  # a new head and a new projection are drawn
    return watched(StepTrainer)(
        form=form,
        counts=counts,
        contrast=wishes.contrast,
        model=_model(job),
        args=args,
        train_dataset=rows,
        eval_dataset=eval_rows,
        processing_class=job.tokenizer,
    )


def _form(job: Job) -> StepForm:
    """How replies are read: as is wished, else as the student was taught to, else as models of its dialect write, else
    line by line.

    It matters: where a step begins as the student has never seen one begin, it is blind. By its own likelihood zoo/qwen
    tells good steps from bad ones with an AUROC of 0.95 behind a space, and 0.67 behind a line's end; see
    `benchmarks/step_layout.py`.
    """
    wishes, taught = job.config.prm, Path(job.path) / STEP_FORM
    if taught.is_file():
        known = read_form(taught)
    else:
        known = replace(StepForm(), **dict[str, Any](layout_of(dialect_of(job.config.model))))
    separator = known.separator if wishes.separator is None else wishes.separator
    return StepForm(separator, wishes.cut, job.max_length, known.join if wishes.join is None else wishes.join)


def finish(trainer: Any, job: Job, folder: Path) -> None:
    """An adapter that is to be merged is merged here, as it is for the other kinds; the rest is written already."""
    from peft import PeftModel

    model = trainer.accelerator.unwrap_model(trainer.model).model
    merge = job.config.lora is not None and job.config.lora.merge and not job.config.quantization
    if not (merge and isinstance(model, PeftModel)) or not trainer.is_world_process_zero():
        return
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        (folder / "adapter").mkdir(exist_ok=True)
        (folder / name).replace(folder / "adapter" / name)
    merged: Any = model.merge_and_unload()
    merged.save_pretrained(folder)


def _model(job: Job) -> StepModel:
    from transformers import MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING, AutoModelForTokenClassification

    config, wishes = job.config, job.config.prm
    wanted = load_config(job.path, None)
    if type(wanted) not in MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING:
        raise UsageError(
            f"model {config.model!r} is a {wanted.model_type}, and transformers has no token classification for it",
            hint="take a model of the Qwen, Llama, Mistral, Phi, Gemma 2 or GPT-NeoX families",
        )
    labels = {"id2label": LABELS, "label2id": {name: number for number, name in LABELS.items()}}
    with _quiet():
        model = job.student(AutoModelForTokenClassification, num_labels=len(LABELS), **labels)
    _without_dropout(model)
    adapter = job.adapter("TOKEN_CLS")
    if adapter is not None:
        from peft import get_peft_model

        adapter.exclude_modules = ["score", "classifier"]  # the head learns whole
        model = get_peft_model(model, adapter)
    found = StepModel(model, wishes.projection if wishes.contrast else None, wishes.contrast_temperature)
    found.read_projection(Path(job.path))
    if wishes.fix_llm:
        found.fix_trunk()
    return found


@contextmanager
def _quiet() -> Iterator[None]:
    """Without transformers' report that the new head is new."""
    log = logging.getLogger("transformers")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def _without_dropout(model: Any) -> None:
    """Before the head: what is learned shall not depend on how a step was divided."""
    if isinstance(getattr(model, "dropout", None), torch.nn.Dropout):
        model.dropout.p = 0.0
        model.config.classifier_dropout = 0.0


class StepTrainer(Trainer):
    """transformers' Trainer with the loss above, and with batches that hold questions whole.

    Args:
        form: how replies are read; written beside the weights.
        counts: what became of the rows; logged when it begins.
        contrast: weight of the contrast.
    """

    loss_is_scaled_for_ga = True

    def __init__(self, *, form: StepForm, counts: Counts, contrast: float, **rest: Any) -> None:
        super().__init__(**rest, data_collator=collate, compute_metrics=self._measures, callbacks=[_Begins(self)])
        self.form, self.counts, self.contrast = form, counts, contrast
        self._anchors: torch.Tensor | None = None
        self._order: QuestionOrder | None = None

    # --- batches ---

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        rows = cast("Sequence[Marked]", self.train_dataset if train_dataset is None else train_dataset)
        batch = self.args.per_device_train_batch_size
        self._order = QuestionOrder([row.question for row in rows], batch, self.args.seed)
        return self._order

    def _run_epoch(self, model: Any, epoch: int, *rest: Any, **named: Any) -> Any:
        """Tells the order its epoch: accelerate does not, where a training of several processes goes on."""
        if self._order is not None:
            self._order.set_epoch(epoch)
        return super()._run_epoch(model, epoch, *rest, **named)  # type: ignore[no-untyped-call]  # its own is untyped

    def get_batch_samples(self, epoch_iterator: Any, num_batches: int, device: torch.device) -> Any:
        """The batches of one optimiser step, and how many marked places they hold; the anchors are counted beside."""
        batches, marks = super().get_batch_samples(epoch_iterator, num_batches, device)
        found = torch.stack([anchors(batch).to(device) for batch in batches]).sum() if batches else None
        if found is not None and self.args.world_size > 1:
            found = self.accelerator.gather(found).sum()
        self._anchors = found
        return batches, marks

    # --- the loss ---

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        found = model(**inputs)
        learning = model.training and num_items_in_batch is not None
        marks = num_items_in_batch if learning else (inputs["labels"] != IGNORED).sum()
        count = self._anchors if learning and self._anchors is not None else anchors(inputs)
        loss = found["marks"] / marks
        if "contrast" in found:
            loss = loss + self.contrast * found["contrast"] / count.clamp(min=1)
        if learning:
            loss = loss * self.accelerator.num_processes  # gradients of several processes are averaged
        return (loss, {"margin_B_W": found["margin_B_W"]}) if return_outputs else loss

    # --- what is measured ---

    def _measures(self, found: Any) -> dict[str, float]:
        rows = cast("Sequence[Marked]", self.eval_dataset)
        good_N_S = [
            torch.from_numpy(margin_W[list(row.places)]).double().sigmoid().tolist()
            for margin_W, row in zip(found.predictions, rows, strict=True)
        ]
        return measures(rows, good_N_S)

    # --- files ---

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        if not self.args.should_save:
            return
        folder = Path(output_dir or str(self.args.output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        model: StepModel = self.accelerator.unwrap_model(self.model)
        model.write(folder, state_dict)
        write_form(self.form, folder)
        cast("Any", self.processing_class).save_pretrained(folder)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        if self.is_fsdp_enabled:
            super()._load_from_checkpoint(resume_from_checkpoint, model)
        else:
            self.accelerator.unwrap_model(self.model).read(Path(resume_from_checkpoint))


class _Begins(TrainerCallback):
    """Logs once what is learned from."""

    def __init__(self, trainer: StepTrainer) -> None:
        self._trainer = trainer

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        counts = self._trainer.counts
        facts: Mapping[str, Any] = {**asdict(counts), "share_good": counts.share_good}
        self._trainer.log(dict(facts))


def write_form(form: StepForm, folder: Path) -> None:
    """`prm.json` beside the weights."""
    (folder / STEP_FORM).write_text(json.dumps(asdict(form), ensure_ascii=False) + "\n", "utf-8")
