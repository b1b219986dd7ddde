"""Whether embedders rank the same runs alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

from pluribus.analyze.numbers import spearman
from pluribus.analyze.rows import Analysis, RobustnessRow


def robustness(by_embedder: Mapping[str, Sequence[Analysis]]) -> tuple[RobustnessRow, ...]:
    """Whether two embedders rank the same runs alike, for every two embedders.

    Spearman's rank correlation of N* (last round), of N*_question over runs, and of N* over all questions of all runs.

    Args:
        by_embedder: embedder → the analyses of the runs; runs are matched by name and source, and one that an embedder
            did not measure is not in `n`.
    """
    return tuple(
        _alike(first, second, measure, by_embedder)
        for first, second in combinations(by_embedder, 2)
        for measure in _VALUES
    )


def _alike(first: str, second: str, measure: str, by_embedder: Mapping[str, Sequence[Analysis]]) -> RobustnessRow:
    mine, theirs = ({k: v for a in by_embedder[name] for k, v in _VALUES[measure](a)} for name in (first, second))
    both = [(value, other) for key, value in mine.items() if (other := theirs.get(key)) is not None]
    pairs = [(value, other) for value, other in both if value is not None]
    return RobustnessRow(first, second, measure, spearman([p[0] for p in pairs], [p[1] for p in pairs]), len(pairs))


_Value = tuple[tuple[object, ...], float | None]


def _of_file(name: str) -> Callable[[Analysis], list[_Value]]:
    return lambda found: [((found.file.file, found.file.source), getattr(found.file, name))]


def _of_questions(found: Analysis) -> list[_Value]:
    return [((found.file.file, found.file.source, row.q_idx), row.Nstar) for row in found.questions]


_VALUES: Mapping[str, Callable[[Analysis], list[_Value]]] = {
    "Nstar": _of_file("Nstar"),
    "Nstar_question": _of_file("Nstar_question"),
    "questions": _of_questions,
}
