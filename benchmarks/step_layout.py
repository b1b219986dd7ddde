"""How much it matters to a model how the steps of its replies are laid out.

    python benchmarks/step_layout.py [--model zoo/qwen] [--questions 75] [--draws 4]

The model answers `sums` questions of the dev split; the task's checker marks the steps; then the model reads its
replies again, laid out in different ways, and the least log-probability of a token so far is the score of a step.
Printed: AUROC of good against bad steps. A process reward model begins where this stands.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import torch

from _distil_measure import WORDS, Asked, Pair, questions, several
from pluribus.backends._loading import Source, StepForm, Words, load_model, load_words
from pluribus.metrics.first_error import auroc
from pluribus.prompts import render
from pluribus.steps import split_steps
from pluribus.tasks.sums import check_steps
from pluribus.zoo import folder

LAYOUTS = (("", " "), ("\n", " "), ("\n", ""), (" ", ""))
"""Separator behind each step, and what each but the first begins with."""


def least(model: torch.nn.Module, words: Words, pair: Pair, steps: Sequence[str], form: StepForm) -> list[float]:
    """For each step the least log-probability of a token up to its end; separators do not count, nor what a step begins
    with, which is the layout's."""
    tokens, places = words.marked(tuple(render(WORDS, "answer", pair[0])), steps, form)
    with torch.inference_mode():
        said = model(torch.tensor([tokens])).logits[0].log_softmax(-1)
    behind = len(words.bare(form.separator)) if form.separator else 0
    found, start = list[float](), len(words.prompt(tuple(render(WORDS, "answer", pair[0])))[1])
    for place in places:
        of_step = [said[at - 1, tokens[at]].item() for at in range(start + 2, place + 1 - behind)]
        found.append(min([*found[-1:], *of_step], default=0.0))
        start = place + 1
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="zoo/qwen")
    parser.add_argument("--questions", type=int, default=75)
    parser.add_argument("--draws", type=int, default=4)
    given = parser.parse_args()
    pairs = questions("sums", "dev", given.questions)
    draws: list[Asked] = several(given.model, pairs, given.draws)
    path = str(folder(given.model.removeprefix("zoo/")))
    model, words = load_model(Source(path, 1)), load_words(path, None)
    print("| behind a step | a step begins with | AUROC | steps |\n| --- | --- | --- | --- |")
    for separator, join in LAYOUTS:
        scores, good = list[float](), list[bool]()
        for draw in draws:
            for pair, text in zip(pairs, draw.texts, strict=True):
                steps = split_steps(text)
                marks = check_steps(*pair, steps)
                told = least(model, words, pair, steps, StepForm(separator, join=join))
                known = [(value, mark) for value, mark in zip(told, marks, strict=True) if mark is not None]
                scores += [value for value, _ in known]
                good += [mark for _, mark in known]
        print(f"| `{separator!r}` | `{join!r}` | {auroc(scores, good):.3f} | {len(good):,} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
