"""A token-classification model beside the projection of its contrast, and both of their losses.

Shapes: _B rows, _W columns, _P marked places in the batch, _A anchors among them, _D the projection's width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from pluribus.training._prm_rows import Marked

IGNORED = -100
PROJECTION = "projection.safetensors"
UNKNOWN, WRONG, RIGHT = -1, 0, 1
Batch = dict[str, torch.Tensor]


def collate(rows: Sequence[Marked]) -> Batch:
    """Rows padded on the right: `input_ids`, `attention_mask` and `labels`, _B × _W, with the label of each step at its
    last separator token and IGNORED elsewhere; `question` and `right`, _B, who is set against whom."""
    width = max(len(row.tokens) for row in rows)
    known = {question: number for number, question in enumerate(dict.fromkeys(row.question for row in rows))}
    labels = torch.full((len(rows), width), IGNORED)
    for at, row in enumerate(rows):
        for place, mark in zip(row.places, row.marks, strict=True):
            if mark is not None:
                labels[at, place] = int(mark)
    lengths = torch.tensor([len(row.tokens) for row in rows])[:, None]
    return {
        "input_ids": torch.tensor([[*row.tokens, *[0] * (width - len(row.tokens))] for row in rows]),
        "attention_mask": (torch.arange(width)[None] < lengths).long(),
        "labels": labels,
        "question": torch.tensor([known[row.question] for row in rows]),
        "right": torch.tensor([UNKNOWN if row.right is None else int(row.right) for row in rows]),
    }


# --- the contrast ----------------------------------------------------------------------------------------------------


def opposed(
    labels_B_W: torch.Tensor, question_B: torch.Tensor, right_B: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Which marked places attract and which repel each other, in the order of `labels_B_W[labels_B_W != IGNORED]`.

    An anchor is a good step of a right reply that has at least one of each: positives are the good steps of *other*
    right replies to its question, negatives the bad steps of wrong replies to it.

    Returns: positives and negatives, _P × _P; the rows of places that are no anchor are empty in both.
    """
    row_P, _ = (labels_B_W != IGNORED).nonzero(as_tuple=True)
    good_P = labels_B_W[labels_B_W != IGNORED] == 1
    firm_P, failed_P = good_P & (right_B[row_P] == RIGHT), ~good_P & (right_B[row_P] == WRONG)
    same_P_P = question_B[row_P][:, None] == question_B[row_P]
    positive_P_P = firm_P[:, None] & firm_P & same_P_P & (row_P[:, None] != row_P)
    negative_P_P = firm_P[:, None] & failed_P & same_P_P
    anchor_P = positive_P_P.any(1) & negative_P_P.any(1)
    return positive_P_P & anchor_P[:, None], negative_P_P & anchor_P[:, None]


def anchors(batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """How many anchors a batch holds."""
    positive_P_P, _ = opposed(batch["labels"], batch["question"], batch["right"])
    return positive_P_P.any(1).sum()


def contrast(
    z_P_D: torch.Tensor, positive_P_P: torch.Tensor, negative_P_P: torch.Tensor, temperature: float
) -> torch.Tensor:
    """Supervised contrast of steps, summed over the anchors; 0 where there is none.

    L = Σ_i −1/|P(i)| Σ_{p ∈ P(i)} ln( exp(z_i·z_p / τ) / Σ_{a ∈ P(i) ∪ N(i)} exp(z_i·z_a / τ) )

    Args:
        z_P_D: rows of unit length.
        positive_P_P: P(i), row i's; an anchor is a row that has any.
        negative_P_P: N(i), row i's.
        temperature: τ > 0.

    >>> z = torch.eye(2)[[0, 0, 1]]
    >>> attract, repel = torch.tensor([[0, 1, 0]] * 3).bool(), torch.tensor([[0, 0, 1]] * 3).bool()
    >>> round(contrast(z, attract[:1].new_zeros(3, 3), repel, 1.0).item(), 3)
    0.0
    >>> attract[1:], repel[1:] = False, False
    >>> round(contrast(z, attract, repel, 1.0).item(), 3)  # ln(1 + 1/e)
    0.313

    Source: Khosla et al. 2020, arXiv 2004.11362, eq. 2 (L_out), with the candidates of an anchor limited to the replies
        to its question.
    """
    anchor_P = positive_P_P.any(1)
    positive_A_P, others_A_P = positive_P_P[anchor_P], (positive_P_P | negative_P_P)[anchor_P]
    scores_A_P = z_P_D[anchor_P] @ z_P_D.T / temperature
    total_A = scores_A_P.masked_fill(~others_A_P, -torch.inf).logsumexp(1)
    return ((total_A[:, None] - scores_A_P) * positive_A_P).sum(1).div(positive_A_P.sum(1)).sum()


# --- the model -------------------------------------------------------------------------------------------------------


class StepModel(torch.nn.Module):
    """A token-classification model (or one with an adapter) and, where there is a contrast, its projection.

    What it does not know itself it asks the model: a trainer finds there what it looks for.

    Args:
        model: with 2 outputs; the second says good.
        width: _D; None: no contrast.
        temperature: of the contrast.
    """

    accepts_loss_kwargs = True

    def __init__(self, model: Any, width: int | None, temperature: float) -> None:
        super().__init__()
        self.model = model
        self.temperature = temperature
        self.projection: torch.nn.Linear | None = None
        if width is not None:
            hidden = model.config.get_text_config().hidden_size
            device = next(model.parameters()).device
            self.projection = torch.nn.Linear(hidden, width, bias=False, device=device)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "model":
                raise
            return getattr(self.model, name)

    @property
    def trunk(self) -> torch.nn.Module:
        """The language model under the head."""
        whole: Any = self.model.get_base_model() if hasattr(self.model, "get_base_model") else self.model
        found: torch.nn.Module = whole.base_model
        return found

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        labels: torch.Tensor,
        question: torch.Tensor,
        right: torch.Tensor,
    ) -> dict[str, torch.Tensor]:
        """Sums over the batch, to be divided by the counts of the whole step: `marks`, the cross-entropy at the marked
        places, nats; `contrast`. And `margin_B_W`, the logit of good minus that of bad."""
        logits_B_W_2, hidden_B_W_H = self._read(input_ids, attention_mask)
        marked_B_W = labels != IGNORED
        with torch.autocast(input_ids.device.type, enabled=False):
            logits_P_2 = logits_B_W_2[marked_B_W].float()
            found = {"marks": F.cross_entropy(logits_P_2, labels[marked_B_W], reduction="sum")}
            found["margin_B_W"] = (logits_B_W_2[..., 1] - logits_B_W_2[..., 0]).float()
            if self.projection is not None and hidden_B_W_H is not None:
                z_P_D = F.normalize(self.projection(hidden_B_W_H[marked_B_W].float()), dim=-1)
                found["contrast"] = contrast(z_P_D, *opposed(labels, question, right), self.temperature)
                found["contrast"] = found["contrast"] + 0.0 * z_P_D.sum()  # each process has a gradient of each weight
        return found

    def _read(self, input_ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """The head's outputs, and what it was given, before any dropout."""
        kept: list[torch.Tensor] = []
        hook = self.trunk.register_forward_hook(lambda module, given, output: kept.append(output[0]))
        try:
            logits = self.model(input_ids=input_ids, attention_mask=mask).logits
        finally:
            hook.remove()
        return logits, kept[0] if self.projection is not None else None

    def fix_trunk(self) -> None:
        """From now on the head and the projection learn alone."""
        self.trunk.requires_grad_(False)

    def write(self, folder: Path, state: Mapping[str, torch.Tensor] | None = None) -> None:
        """The model as a folder of its own kind, and the projection beside it.

        Args:
            state: weights that were gathered from several processes; None: those that are here.
        """
        from safetensors.torch import save_file

        state = self.state_dict() if state is None else state
        inside = {name.removeprefix("model."): value for name, value in state.items() if name.startswith("model.")}
        self.model.save_pretrained(folder, state_dict=inside)
        if self.projection is not None:
            save_file({"weight": state["projection.weight"].contiguous()}, folder / PROJECTION)

    def read(self, folder: Path) -> None:
        """Takes the weights that `write` wrote; they are bit for bit the same."""
        from peft import PeftModel, load_peft_weights, set_peft_model_state_dict

        if isinstance(self.model, PeftModel):
            set_peft_model_state_dict(self.model, load_peft_weights(str(folder), device="cpu"))
        else:
            there = type(self.model).from_pretrained(folder, dtype=next(self.model.parameters()).dtype)
            self.model.load_state_dict(there.state_dict())
        self.read_projection(folder)

    def read_projection(self, folder: Path) -> bool:
        """Takes the folder's projection, where it has one of this shape; whether it did."""
        from safetensors.torch import load_file

        if self.projection is None or not (folder / PROJECTION).is_file():
            return False
        weight = load_file(folder / PROJECTION)["weight"]
        if weight.shape != self.projection.weight.shape:
            return False
        with torch.no_grad():
            self.projection.weight.copy_(weight)
        return True
