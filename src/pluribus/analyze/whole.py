"""One run in one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pluribus.analyze.numbers import above_diagonal, average, kappa, mean, pearson, share, total
from pluribus.analyze.rows import AgentRow, FileRow, Mode, QuestionRow, RoundRow
from pluribus.analyze.texts import Measured
from pluribus.panel import Panel, credits


def file_row(
    m: Measured,
    rounds: Sequence[RoundRow],
    questions: Sequence[QuestionRow],
    agents: Sequence[AgentRow],
    *,
    mode: Mode,
    embedder: str,
    seed: int,
) -> FileRow:
    given = m.given
    accuracy, low, high = share(credits(m.panel))
    last, first = ([getattr(row, name) for row in agents] for name in ("accuracy", "accuracy_first"))
    return FileRow(
        file=given.name,
        source=given.source,
        task=given.task,
        method=given.method,
        mode=mode,
        embedder=embedder,
        n_agents=len(given.members),
        n_rounds=given.rounds,
        n_questions=len(m.q_idx),
        H=rounds[-1].H if rounds else None,
        Nstar=rounds[-1].Nstar if rounds else None,
        Nstar_first=rounds[0].Nstar if rounds else None,
        Nstar_question=average(row.Nstar for row in questions),
        accuracy=accuracy,
        accuracy_low=low,
        accuracy_high=high,
        mean_member=average(last),
        best_member=max((value for value in last if value is not None), default=None),
        kappa=kappa(m.answers),
        mean_member_first=average(first),
        best_member_first=max((value for value in first if value is not None), default=None),
        n_texts=int((m.rounds_Q_R_A >= 0).sum()),
        **_errors(m, seed),
        **_correlations(questions),
        **_spend(given),
    )


def _errors(m: Measured, seed: int) -> dict[str, Any]:
    """How the members err together: columns of the file table."""
    from pluribus.diversity.mistakes import double_fault, error_correlation, mean_error_correlation, oracle

    lost, lost_first = oracle(m.alone_Q_A), oracle(m.alone_first_Q_A)
    together = mean_error_correlation(m.alone_Q_A, seed=seed)
    return {
        "oracle": lost and lost.oracle,
        "beta": lost and lost.beta,
        "beta_low": lost and lost.low,
        "beta_high": lost and lost.high,
        "oracle_first": lost_first and lost_first.oracle,
        "error_correlation": together and together.value,
        "error_correlation_low": together and together.low,
        "error_correlation_high": together and together.high,
        "error_correlation_first": mean(above_diagonal(error_correlation(m.alone_first_Q_A))),
        "double_fault": mean(above_diagonal(double_fault(m.alone_Q_A))),
    }


def _correlations(questions: Sequence[QuestionRow]) -> dict[str, Any]:
    """N* of a question against what its answers did: columns of the file table."""
    spread = [(row.Nstar, row.gini) for row in questions if row.gini is not None]
    alike = [(row.Nstar, row.consensus) for row in questions if row.consensus is not None]
    judged = [(row.Nstar, row.acc01) for row in questions if row.acc01 is not None]
    return {
        "rho_disagreement": pearson(*_unzipped(spread)),
        "rho_consensus": pearson(*_unzipped(alike)),
        "rho_accuracy": pearson(*_unzipped(judged)),
        "rho_n": len(spread),
        "rho_accuracy_n": len(judged),
    }


def _unzipped(pairs: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [first for first, _ in pairs], [second for _, second in pairs]


def _spend(panel: Panel) -> dict[str, Any]:
    """Of all attempts, failed ones too; None: the source does not say it of every one."""
    used = [item.usage for item in panel.items if item.usage is not None]
    whole = bool(used) and len(used) == len(panel.items)
    return {
        "calls": sum(usage.calls for usage in used) if whole else None,
        "tokens": total([usage.tokens for usage in used]) if whole else None,
        "cost_usd": total([usage.cost_usd for usage in used]) if whole else None,
    }
