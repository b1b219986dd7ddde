"""A trainer that stops where its numbers stop being numbers, and never saves weights that are none."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from pluribus.errors import TrainingStopped


@cache
def watched(cls: Any) -> Any:
    """The trainer's class with the watch; nothing else is changed, and every number stays the same."""

    class Watched(cls):  # type: ignore[misc]  # the class is known at run time only
        watch = True

        def training_step(self, *args: Any, **kwargs: Any) -> Any:
            loss = super().training_step(*args, **kwargs)
            if self.watch and not torch.isfinite(loss).all():
                raise not_finite(f"the loss is {float(loss)} at step {self.state.global_step + 1}")
            return loss

        def _save_checkpoint(self, *args: Any, **kwargs: Any) -> None:
            if self.watch:
                check_weights(self.model, self.state.global_step)
            super()._save_checkpoint(*args, **kwargs)

    Watched.__name__ = Watched.__qualname__ = cls.__name__
    return Watched


def check_weights(model: Any, step: int) -> None:
    """TrainingStopped at the first learned weight that is no number."""
    for name, value in model.named_parameters():
        if value.requires_grad and not bool(torch.isfinite(value).all()):
            raise not_finite(f"{name} is no longer a number after step {step}")


def not_finite(what: str) -> TrainingStopped:
    return TrainingStopped(
        f"training stopped: {what}; the last good checkpoint is kept",
        hint="lower the learning rate, or max_grad_norm; in bf16 try fp32; look for a broken row in the data",
    )
