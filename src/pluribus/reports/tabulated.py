"""material → the tables of a report; each row carries the run its numbers come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict

from pluribus.compare import Comparison
from pluribus.reports import material as of
from pluribus.reports import words
from pluribus.reports.grids import RUN, SOURCE, Column, Grid, Row, grid, number, word
from pluribus.reports.material import Council, Material

_ACCURACY = number("accuracy, %", "accuracy accuracy_low accuracy_high", words.percent_between, "95 % Wilson interval")
_BETA = number(
    "all wrong, %", "beta beta_low beta_high", words.percent_between,
    "Questions on which no member is right; 95 % Clopper–Pearson interval",
)  # fmt: skip
_COUNCIL = word("council", "council", "Model set, personas, method and number of agents")
_AGENTS = number("agents", "n_agents")
_QUESTIONS = number("questions", "n_questions")


def runs(councils: Sequence[Council]) -> Grid | None:
    """What was run."""
    columns = (
        RUN, SOURCE, word("task", "task"), word("method", "method"), word("models", "models"),
        word("personas", "personas"), _AGENTS, number("rounds", "n_rounds"), _QUESTIONS,
        word("begun, UTC", "begun"),
    )  # fmt: skip
    rows = [
        {**_row(c), "method": of.method(c.panel), "models": of.models(c.panel), "personas": of.personas(c.panel)}
        for c in councils
    ]
    return grid("runs", "Runs", columns, rows)


def keys(councils: Sequence[Council]) -> Grid | None:
    """The few numbers one decides from."""
    columns = (
        _COUNCIL, _AGENTS, _ACCURACY,
        number("difference, points", "difference low high", words.points, "95 % paired bootstrap interval"),
        word("against", "control"),
        number("p, Holm", "p_adjusted", words.probability,
               "McNemar's exact test, adjusted over all comparisons here at the same kind of spend"),
        number("K* per question", "Nstar_question", words.decimal, "Effective number of different texts, mean"),
        _BETA,
        number("tokens per question", "tokens_per_question"),
        RUN,
    )  # fmt: skip
    return grid("keys", "Councils in brief", columns, [{**_decisive(c), **_row(c)} for c in councils])


def cells(councils: Sequence[Council]) -> Grid | None:
    """Everything that is measured of a council as a whole."""
    columns = (
        *who(councils), RUN, SOURCE, _AGENTS, number("rounds", "n_rounds"), _QUESTIONS, _ACCURACY,
        number("mean member, %", "mean_member", words.percent, "Mean accuracy of the members alone"),
        number("best member, %", "best_member", words.percent, "Chosen on the same questions, so too high"),
        number("mean member at first, %", "first_mean", words.percent, "Before anybody heard anybody"),
        number("any right, %", "oracle", words.percent, "Oracle: questions on which at least one member is right"),
        _BETA,
        number("K* of averages", "Nstar", words.decimal, "Of the agents' mean texts, last round"),
        number("K* of averages, first round", "Nstar_first", words.decimal),
        number("K* per question", "Nstar_question", words.decimal, "Mean over questions"),
        number("H, bits", "H", words.decimal, "Entropy of the spectrum, last round"),
        number("error correlation", "error_correlation error_correlation_low error_correlation_high", words.decimal,
               "Mean over pairs of members; 95 % bootstrap interval"),
        number("double fault, %", "double_fault", words.percent, "Both of a pair wrong, mean over pairs"),
        number("Fleiss' κ", "kappa", words.decimal, "Agreement of the answers that stand at the end"),
        number("ρ(K*, disagreement)", "rho_disagreement", words.decimal, "Over questions"),
        number("ρ(K*, consensus)", "rho_consensus", words.decimal, "Over questions"),
        number("ρ(K*, accuracy)", "rho_accuracy", words.decimal, "Over questions"),
        number("calls per question", "calls_per_question"),
        number("tokens per question", "tokens_per_question"),
        number("cost, US$", "cost_usd", words.dollars),
    )  # fmt: skip
    return grid("cells", "Councils", columns, [_row(c) for c in councils])


def comparisons(councils: Sequence[Council]) -> Grid | None:
    """Every comparison, with its p-value and Holm's."""
    columns = (
        *who(councils), word("control", "control"), word("spend", "spend"), number("questions", "n"),
        number("council, %", "council_accuracy", words.percent),
        number("control, %", "control_accuracy", words.percent),
        number("difference, points", "difference low high", words.points, "95 % paired bootstrap interval"),
        number("only council right", "only_council"), number("only control right", "only_control"),
        number("p, McNemar", "p", words.probability, "Exact, two-sided"),
        number("p, Holm", "p_adjusted", words.probability, "Adjusted over the rows at the same kind of spend"),
        number("p, bootstrap", "p_bootstrap", words.probability),
        number("calls, council", "council_calls", about="Per question"),
        number("calls, control", "control_calls", about="Per question"),
        number("tokens, council", "council_tokens", about="Per question"),
        number("tokens, control", "control_tokens", about="Per question"),
        word("note", "note"), RUN, word("made of", "sources"),
    )  # fmt: skip
    rows = [
        {**comparison_row(one), "council": label(c), "run": c.name} for c in councils for one in c.comparisons
    ]  # fmt: skip
    return grid("comparisons", "All comparisons", columns, rows)


def comparison_row(one: Comparison) -> Row:
    plain = {name: value for name, value in asdict(one).items() if not isinstance(value, dict | tuple)}
    return {
        **plain, "control": one.control + ("" if one.equal else " (spend not equal)"),
        "difference": one.difference.value, "low": one.difference.low, "high": one.difference.high,
        "p_bootstrap": one.difference.p, "p": one.test.p,
        "only_council": one.test.only_first, "only_control": one.test.only_second,
        "sources": ", ".join(one.sources),
    }  # fmt: skip


def _decisive(council: Council) -> Row:
    """The comparison the verdict rests on, with Holm's p-value."""
    one = decisive(council)
    return comparison_row(one) if one else {}


def who(councils: Sequence[Council]) -> tuple[Column, ...]:
    """The column that names the council; none where there is one council only."""
    return (_COUNCIL,) if len(councils) > 1 else ()


def decisive(council: Council) -> Comparison | None:
    told = council.verdict.comparison
    if told is None:
        return None
    same = (c for c in council.comparisons if (c.control, c.spend) == (told.control, told.spend))
    return next(same, told)


def rounds(councils: Sequence[Council]) -> Grid | None:
    """K*, agreement and accuracy by round; None where nobody spoke twice."""
    columns = (
        *who(councils), number("round", "round"),
        number("members' accuracy, %", "acc", words.percent, "Mean over members, of the answers that stand"),
        number("Fleiss' κ", "agreement", words.decimal, "Agreement of the answers that stand after the round"),
        number("K*", "Nstar", words.decimal), number("change of K*", "delta", words.signed),
        number("K*, centred", "Nstar_centred", words.decimal), number("H, bits", "H", words.decimal),
        number("settled here", "settled", about="Questions whose leading answer no longer changed after this round"),
        number("texts", "n_texts"), _AGENTS, _QUESTIONS, RUN, SOURCE,
    )  # fmt: skip
    rows = [
        {"council": label(c), "run": c.name, "source": c.panel.source, **asdict(one), "round": one.round + 1}
        for c in debates(councils)
        for one in c.analysis.rounds
    ]
    return grid("rounds", "By round", columns, rows, "The first answers are round 1.")


def debates(councils: Iterable[Council]) -> list[Council]:
    """Those in which the members spoke more than once."""
    return [council for council in councils if council.panel.rounds > 1]


def seats(councils: Sequence[Council]) -> Grid | None:
    """Each seat's part."""
    columns = (
        *who(councils), number("seat", "seat"), word("agent", "agent"), word("model", "model", show=short),
        word("persona", "persona"),
        number("ΔK*", "delta_Nstar low high", words.signed, "Mean of K*(all) − K*(without it); 95 % bootstrap"),
        number("accuracy, %", "accuracy accuracy_low accuracy_high", words.percent_between, "95 % Wilson interval"),
        number("calls", "calls"), number("tokens", "tokens"), number("cost, US$", "cost_usd", words.dollars),
        RUN, SOURCE,
    )  # fmt: skip
    rows = [
        {"council": label(c), "run": c.name, "source": c.panel.source, "seat": i + 1, **asdict(one)}
        for c in councils
        for i, one in enumerate(c.analysis.agents)
    ]
    return grid("seats", "Seats", columns, rows)


def short(model: str | None) -> str:
    return words.text(words.short_model(model) if model else None)


def omissions(material: Material) -> Grid | None:
    """What the numbers do not hold; none where everything was measured."""
    columns = (word("run", "run"), word("left out", "reason"), number("how many", "count"), SOURCE)
    return grid("omissions", "Left out", columns, list(_omissions(material)))


def _omissions(material: Material) -> Iterator[Row]:
    for reason, n in material.omitted.items():
        yield {"run": material.source or "the sources", "reason": reason, "count": n, "source": material.source}
    for council in material.councils:
        for reason, n in council.analysis.omitted.items():
            yield {"run": council.name, "reason": reason, "count": n, "source": council.panel.source}


def label(council: Council) -> str:
    """A council as the figures and tables call it."""
    return f"{council.condition}, {words.plural(council.analysis.file.n_agents, 'agent')}"


def _row(council: Council) -> Row:
    """What a table may say about a council as a whole."""
    file = council.analysis.file
    each = max(1, file.n_questions)
    return {
        "council": label(council), "run": council.name, **asdict(file),
        "first_mean": file.mean_member_first if file.n_rounds > 1 else None,
        "begun": None if council.begun is None else words.date(council.begun),
        "calls_per_question": None if file.calls is None else file.calls / each,
        "tokens_per_question": None if file.tokens is None else file.tokens / each,
    }  # fmt: skip


def per_question(council: Council, total: float | None) -> float | None:
    return None if total is None else total / max(1, council.analysis.file.n_questions)
