"""material → the page: what was run, the verdict, key numbers, figures, tables, trainings, and where each number comes
from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from pluribus import __version__
from pluribus.compare import Comparison, is_self_consistency
from pluribus.reports import figured, fits, material, moved, rewards, tabulated, training_facts, words
from pluribus.reports.drawing import draw
from pluribus.reports.fits import Fitted
from pluribus.reports.grids import Grid
from pluribus.reports.material import Council, Material, Scores
from pluribus.reports.page import Code, Facts, Items, Lead, Page, Part, Section
from pluribus.reports.plots import Plot
from pluribus.reports.training_facts import by_kind, head
from pluribus.reports.training_figures import figures, table
from pluribus.reports.trainings import Training

_SPOKEN = 5
"""Verdicts that are read one by one; more are in the table."""


def page(found: Material, folder: str = "", *, seed: int = 0) -> Page:
    """The page of a report; sections without data are left out.

    Args:
        folder: relative to the page, where its figures and tables lie; it ends with a slash, or is empty.
        seed: of the intervals of fitted curves.
    """
    parts = (
        *(_of_councils(found, seed) if found.councils else ()),
        *((name, title, _training(those)) for name, title, those in by_kind(found.trainings)),
        *(_to_look_up(found.councils) if found.councils else ()),
        ("left-out", "What is left out", _omitted(found)),
        ("provenance", "Where the numbers come from", _provenance(found, folder)),
    )
    sections = tuple(Section(name, title, tuple(inside)) for name, title, inside in parts if inside)
    return Page(found.title, _subtitle(found), sections, f"pluribus {__version__}", folder)


_Sections = tuple[tuple[str, str, list[Part]], ...]


def _of_councils(found: Material, seed: int) -> _Sections:
    curves = fits.fitted(found.councils, seed=seed)
    return (
        ("run", "What was run", _run(found)),
        ("verdict", "Does it pay?", _verdict(found.councils)),
        ("numbers", "Key numbers", _numbers(found)),
        ("scaling", "More agents, more tokens", _scaling(found.councils, curves, seed)),
        ("diversity", "Diversity", _diversity(found, curves, seed)),
        ("debate", "Round by round", _rounds(found.councils)),
        ("rewards", "Rewards and disagreement", _rewards(found.scores)),
    )


def _to_look_up(councils: Sequence[Council]) -> _Sections:
    """What stands behind everything one reads from top to bottom."""
    return (
        ("compared", "All comparisons", _compared(councils)),
        ("ceiling", "What no vote can reach", _ceiling(councils)),
        ("seat-by-seat", "Seat by seat", _some(tabulated.seats(councils))),
        ("council-by-council", "Council by council", _some(tabulated.cells(councils))),
    )


def _drawn(plots: Sequence[Plot]) -> list[Part]:
    return [draw(plot) for plot in plots]


def _some(*grids: Grid | None) -> list[Part]:
    return [one for one in grids if one is not None]


# --- head ------------------------------------------------------------------------------------------------------------


def _subtitle(found: Material) -> str:
    councils = f"{words.plural(len(found.councils), 'council')} on {words.listed(_tasks(found.councils))}"
    parts = [councils] if found.councils else []
    return "; ".join([*parts, words.plural(len(found.trainings), "training")] if found.trainings else parts)


def _tasks(councils: Sequence[Council]) -> list[str]:
    return list(dict.fromkeys(words.text(c.panel.task) for c in councils))


def _run(found: Material) -> list[Part]:
    councils = found.councils
    models = dict.fromkeys(words.text(member.model) for c in councils for member in c.panel.members)
    methods = dict.fromkeys(material.method(c.panel) for c in councils)
    personas = dict.fromkeys(material.personas(c.panel) for c in councils)
    questions = sorted({len(c.panel.items) for c in councils})
    begun = sorted(c.begun for c in councils if c.begun is not None)
    pairs = [
        ("Task", words.listed(_tasks(councils))),
        ("Models", words.listed(list(models), 12)),
        ("Personas", words.listed([_persona_words(name, councils) for name in personas])),
        ("Method", "; ".join(methods)),
        ("Questions", _from_to([words.count(n) for n in questions], " per council")),
        ("Begun", _from_to([words.date(when) for when in begun], " UTC")),
        ("Sweep", found.source),
        ("Source", councils[0].panel.source if len(councils) == 1 else ""),
    ]  # fmt: skip
    return [Facts(tuple((name, value) for name, value in pairs if value))]


def _from_to(values: Sequence[str], unit: str) -> str:
    """
    >>> _from_to(["12", "40", "60"], " per council"), _from_to(["12"], ""), _from_to([], "")
    ('12 to 60 per council', '12', '')
    """
    return " to ".join(dict.fromkeys((values[0], values[-1]))) + unit if values else ""


def _persona_words(name: str, councils: Sequence[Council]) -> str:
    """With the personas' own names, where they are few."""
    if name != "personas":
        return name
    seated = dict.fromkeys(
        words.text(m.persona)
        for c in councils
        if material.personas(c.panel) == name
        for m in c.panel.members
        if m.persona
    )
    return f"one for each seat ({words.listed(list(seated), 8)})"


# --- verdict ---------------------------------------------------------------------------------------------------------


def summary(councils: Sequence[Council]) -> str:
    """The verdict in words: of one council its own, of several how many pay."""
    if len(councils) == 1:
        return f"{_upper(_said(councils[0]))}."
    judged = [council for council in councils if not is_self_consistency(council.panel)]
    if not judged:
        return (
            f"All {len(councils)} are one model's self-consistency, which is the control itself: the figures say what "
            "more draws bring."
        )
    if len(judged) == 1 and not judged[0].verdict.pays:
        return f"{_upper(_said(judged[0]))}.{_controls(len(councils) - 1)}"
    spends = {one.spend for council in judged if (one := tabulated.decisive(council)) is not None}
    tests = sum(one.spend in spends for council in councils for one in council.comparisons)
    return _counted(judged, len(councils) - len(judged), tests)


def _said(council: Council) -> str:
    """The verdict's words without the command that would settle it, which is shown apart."""
    remedy = _remedy(council)
    return council.verdict.words.replace(f"; for equal spend: {remedy}", "") if remedy else council.verdict.words


def _remedy(council: Council) -> str | None:
    """How to record the missing control; None: it is there."""
    told = council.verdict.comparison
    return told.remedy if told else None


def _counted(judged: Sequence[Council], controls: int, tests: int) -> str:
    """How many pay at equal spend, after Holm's correction over so many tests and before."""
    pays = [council for council in judged if council.verdict.pays]
    firm = sum(_firm(council) for council in pays)
    against = sum(council.verdict.pays is False for council in judged)
    unknown = len(judged) - len(pays) - against
    after = f" after Holm's correction over {words.plural(tests, 'comparison')}" if pays else ""
    parts = [
        f"{firm or 'None'} of {words.plural(len(judged), 'council')} pay{'s' * (firm < 2)} at equal spend{after}",
        f"{len(pays) - firm} {'more ' * bool(firm)}only before it" if len(pays) > firm else "",
        f"{against} do{'es' * (against == 1)} not" if against else "",
        f"of {unknown} it is not known" if unknown else "",
    ]
    return f"{parts[0]}{': ' if any(parts[1:]) else ''}{', '.join(filter(None, parts[1:]))}.{_controls(controls)}"


def _controls(number: int) -> str:
    """The sentence about the councils that are not judged, being what the others are compared with."""
    if not number:
        return ""
    return f" {words.plural(number, 'more is', 'more are')} one model's self-consistency, the control."


def _firm(council: Council) -> bool:
    one = tabulated.decisive(council)
    return one is not None and one.p_adjusted is not None and one.p_adjusted < 0.05


def _verdict(councils: Sequence[Council]) -> list[Part]:
    lead = Lead(summary(councils), _tone(councils))
    if len(councils) == 1:
        remedy = _remedy(councils[0])
        return [lead, "For equal spend, record the control:", Code(remedy)] if remedy else [lead]
    judged = _best_first([council for council in councils if not is_self_consistency(council.panel)])
    spoken = Items(tuple(f"{tabulated.label(c)} ({c.name}): {_said(c)}." for c in judged[:_SPOKEN]))
    more = [
        f"These are {_SPOKEN}: first what pays after the correction, then by difference; all are in the tables below."
    ]
    shown: list[Part] = [lead, *([spoken] if judged else []), *(more if len(judged) > _SPOKEN else [])]
    return [*shown, *_missing(judged), *_fewer(councils)]


def _missing(judged: Sequence[Council]) -> list[Part]:
    """What would settle those of which it is not known."""
    remedies = dict.fromkeys(remedy for c in judged if c.verdict.pays is None and (remedy := _remedy(c)))
    if not remedies:
        return []
    return ["Controls that are missing, at equal spend:", Code("\n".join(remedies))]


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _tone(councils: Sequence[Council]) -> str:
    """pays: one of them surely does; loses: none does; else open."""
    judged = [council for council in councils if not is_self_consistency(council.panel)] or councils
    if any(c.verdict.pays and (len(councils) == 1 or _firm(c)) for c in judged):
        return "pays"
    return "loses" if all(council.verdict.pays is False for council in judged) else "open"


def _best_first(councils: Sequence[Council]) -> list[Council]:
    """Those that pay after Holm's correction, those that pay before it, the others; by the difference."""

    def gain(council: Council) -> float:
        told = council.verdict.comparison
        return told.difference.value if told else -2.0

    return sorted(councils, key=lambda c: (not (c.verdict.pays and _firm(c)), c.verdict.pays is not True, -gain(c)))


def _fewer(councils: Sequence[Council]) -> list[Part]:
    """Whether a few diverse agents match many equal ones, where both were run."""
    found = fits.few_against_many(councils)
    if not found:
        return []
    sizes = {c.name: len(c.panel.members) for c in councils}
    fewest = min(sizes[one.small] for one in found)
    told = Counter(one.matches for one in found if sizes[one.small] == fewest)
    enough = Counter(sizes[one.small] for one in found if one.matches and sizes[one.small] > fewest)
    many = words.plural(sizes[found[0].large], "equal one")
    head = (
        f"{words.plural(fewest, 'diverse agent')} against {many}: of {words.plural(told.total(), 'pair')}, "
        f"{told[True]} match within {100 * found[0].margin:g} point, {told[False]} do not, {told[None]} are not "
        "settled by these questions."
    )
    more = [f"{n} do in {words.plural(times, 'pair')}" for n, times in sorted(enough.items())]
    if more:
        head += f" Of more diverse agents, {words.listed(more)}."
    return [head, *_some(fits.match_table(found, councils))]


def _of(kstar: float | None, agents: int) -> str:
    return "" if kstar is None else f"{words.decimal(kstar)} of {agents}"


# --- numbers and figures ---------------------------------------------------------------------------------------------


def _numbers(found: Material) -> list[Part]:
    if len(found.councils) > 1:
        return _some(tabulated.keys(found.councils))
    council = found.councils[0]
    file, told = council.analysis.file, tabulated.decisive(council)
    pairs = [
        ("Accuracy, %", words.percent_between(file.accuracy, file.accuracy_low, file.accuracy_high)),
        *([_against(told)] if told else []),
        ("Mean member, %", words.percent(file.mean_member)),
        ("Best member, %", words.percent(file.best_member)),
        ("K* per question", _of(file.Nstar_question, file.n_agents)),
        ("K* of the agents’ averages", _of(file.Nstar, file.n_agents)),
        ("Any member right, %", words.percent(file.oracle)),
        ("All wrong (β), %", words.percent_between(file.beta, file.beta_low, file.beta_high)),
        ("Error correlation", words.decimal(file.error_correlation)),
        ("Agreement, Fleiss’ κ", words.decimal(file.kappa)),
        ("Calls per question", words.count(tabulated.per_question(council, file.calls))),
        ("Tokens per question", words.count(tabulated.per_question(council, file.tokens))),
        ("Cost, US$", words.dollars(file.cost_usd)),
    ]  # fmt: skip
    shown = tuple((name, value) for name, value in pairs if value not in ("", words.NOTHING))
    ends = ["Brackets hold 95 % intervals."]
    if file.best_member is not None:
        ends.append("The best member is chosen on these same questions, so its number is too high.")
    return [Facts(shown, large=True), " ".join(ends)]


def _against(told: Comparison) -> tuple[str, str]:
    what = "best member alone" if told.spend == "one call" else "self-consistency"
    uneven = "" if told.equal else ", not at equal spend"
    ends = told.difference
    return f"Minus {what}{uneven}, points", words.points(ends.value, ends.low, ends.high)


_Curves = Mapping[str, Sequence[Fitted]]


def _scaling(councils: Sequence[Council], curves: _Curves, seed: int) -> list[Part]:
    plots = [
        *figured.accuracy_by_agents(councils, fits.curves(curves["agents"])),
        *figured.accuracy_by_tokens(councils, fits.curves(curves["tokens"])),
    ]
    return [*_drawn(plots), *_some(fits.fit_table(curves))] if plots else []


def _diversity(found: Material, curves: _Curves, seed: int) -> list[Part]:
    parts: list[Part] = []
    drawn = _drawn(figured.accuracy_by_kstar(found.councils, curves["K*"][0].curve if curves["K*"] else None))
    rank = fits.diversity_rank(found.councils, seed=seed) if drawn else None
    if rank is not None:
        ends = words.decimal(rank.value, rank.low, rank.high)
        over = words.plural(len(found.councils), "council")
        parts.append(f"Over {over}, Spearman's rank correlation of K* per question with accuracy is {ends}.")
    parts += [*drawn, *_drawn(figured.seat_deltas(found.councils))]
    return [f"Texts are compared by the embedder {found.embedder}.", *parts] if parts else []


def _rounds(councils: Sequence[Council]) -> list[Part]:
    if not tabulated.debates(councils):
        return []
    debates = moved.counted(councils)
    drawn = _drawn(figured.by_round(councils))
    said = Items(tuple(moved.sentences(debates)))
    return [*drawn, *_some(tabulated.rounds(councils)), said, *_some(moved.table(debates))]


def _rewards(scores: Sequence[Scores]) -> list[Part]:
    return [*_drawn(rewards.figures(scores)), *_some(rewards.table(scores), rewards.judges(scores))]


def _training(those: Sequence[Training]) -> list[Part]:
    return [*head(those), *_drawn(figures(those)), *_some(table(those))]


def _compared(councils: Sequence[Council]) -> list[Part]:
    table = tabulated.comparisons(councils)
    return [*_drawn(figured.differences(councils)), table] if table else []


def _ceiling(councils: Sequence[Council]) -> list[Part]:
    known = [c for c in councils if c.analysis.file.beta is not None]
    if not known:
        return []
    worst = max(known, key=lambda c: c.analysis.file.beta or 0.0)
    best = min(known, key=lambda c: c.analysis.file.beta or 0.0)
    ends = [_ceiling_words(best)] if best is worst else [_ceiling_words(best), _ceiling_words(worst)]
    told = (
        "A rule that picks one of the members' answers is wrong wherever all of them are: its accuracy is at most "
        "1 − β, β the share of such questions."
    )
    return [told, Items(tuple(ends)), *_drawn(figured.all_wrong_by_agents(councils))]


def _ceiling_words(council: Council) -> str:
    file = council.analysis.file
    return (
        f"{tabulated.label(council)} ({council.name}): all wrong on "
        f"{words.percent_between(file.beta, file.beta_low, file.beta_high)} % of "
        f"{words.plural(file.n_questions, 'question')} (Clopper–Pearson 95 %); no such rule exceeds "
        f"{words.percent(1 - (file.beta or 0.0))} % on these questions, nor, "
        f"at 95 % confidence, {words.percent(1 - (file.beta_low or 0.0))} % on questions like them."
    )


# --- foot ------------------------------------------------------------------------------------------------------------


def _omitted(found: Material) -> list[Part]:
    table = tabulated.omissions(found)
    if table or not found.councils:
        return _some(table)
    return ["Nothing: every question and every answer of the sources is in the numbers above."]


def _provenance(found: Material, folder: str) -> list[Part]:
    runs = any(c.panel.source.startswith("run ") for c in found.councils)
    show = " A run is shown whole, question by question, by pluribus show and its name." if runs else ""
    what = ["the run or the file"] * bool(found.councils) + ["the training"] * bool(found.trainings)
    where = (
        f"in {folder}figures and {folder}tables beside this file"
        if folder
        else "in figures and tables beside this file"
    )
    taught = training_facts.METHODS if any(one.kind == "grpo" for one in found.trainings) else ()
    methods = (*(_METHODS if found.councils else ()), *taught)
    made: list[Part] = ["How each number is made:", Facts(methods)] if methods else []
    return [
        f"Each row of a table and each point of a figure names {' or '.join(what)} that it was computed from."
        f"{show} Figures lie as PNG, tables and the points of figures as CSV with all digits {where}.",
        *_some(tabulated.runs(found.councils)),
        *made,
    ]


_METHODS = (
    ("Accuracy", "share of questions answered rightly, of those that did not fail; 95 % Wilson interval"),
    (
        "Differences",
        "on the same questions; paired bootstrap over questions, 95 % percentile interval, no narrower "
        "than exact bounds where fewer than 10 questions differ; exact McNemar test; Holm’s "
        "correction over all comparisons of this page at the same kind of spend",
    ),
    ("Controls", "chosen on one half of the questions and measured on the other, both ways round"),
    (
        "K*",
        "exp of the spectral entropy of the uncentred second-moment matrix of the texts’ unit vectors, between 1 and "
        "the number of texts; per question, or (averages) of each agent’s mean vector over the questions "
        "(Yang et al. 2026, arXiv 2602.03794; Friedman and Dieng 2022, arXiv 2210.02410)",
    ),
    ("ΔK*", "K* of all seats minus K* without the seat, mean over questions; 95 % bootstrap interval over questions"),
    ("All wrong (β)", "share of questions on which no member is right; exact Clopper–Pearson 95 % interval"),
    ("Agreement", "Fleiss’ κ over questions, of the answers that stand"),
    (
        "Curves",
        "least squares through the councils of a line; bands by resampling questions, one draw for all councils",
    ),
)
"""How each number is made."""
