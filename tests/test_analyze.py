"""panel → tables: identities and small councils worked out by hand, then everything that can be missing."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from numpy.typing import NDArray

from pluribus.analyze import (
    MODES,
    AgentRow,
    Analysis,
    Embed,
    FileRow,
    MoveRow,
    QuestionRow,
    RobustnessRow,
    RoundRow,
    analyze,
    robustness,
)
from pluribus.diversity.kstar import kstar
from pluribus.errors import DataError, UnknownName, UsageError
from pluribus.evaluate import Usage
from pluribus.panel import Item, Member, Panel, Word

E1, E2, E3 = np.eye(3)
VECTORS = {"one": E1, "two": E2, "three": E3}
RowKind = FileRow | RoundRow | QuestionRow | AgentRow
JOIN = "\n\n[R-SEP]\n\n"
Say = tuple[str, str | None, float | None]


def by_table(texts: Sequence[str]) -> NDArray[np.float64]:
    """Vectors of known texts; of joined ones, their normalised sum."""
    rows = [sum((VECTORS[part] for part in text.split(JOIN)), np.zeros(3)) for text in texts]
    return np.array([row / np.linalg.norm(row) for row in rows])


def at_random(texts: Sequence[str]) -> NDArray[np.float64]:
    """A direction of its own for each text, the same in every call."""
    rows = [np.random.default_rng(crc32(text.encode())).standard_normal(8) for text in texts]
    return np.array([row / np.linalg.norm(row) for row in rows])


def item(name: str, *rounds: Sequence[Say | None], credit: float | None = 1.0, failed: bool = False) -> Item:
    words = tuple(tuple(None if said is None else Word(*said, 10, 5, 0.5) for said in row) for row in rounds)
    return Item(name, "4", words, "4", credit, Usage(3, 30, 15, 1.5), failed)


def panel(*items: Item, members: int = 3) -> Panel:
    names = tuple(Member(f"agent {i + 1}", f"m{i}", seat=i) for i in range(members))
    return Panel("run", "run 1", "task", "debate", names, items)


def measured(given: Panel, embed: Embed = by_table, mode: str = "round_agent_avg", **rest: object) -> Analysis:
    return analyze(given, embed, embedder="test", mode=mode, **rest)  # type: ignore[arg-type]


def near(value: Any) -> Any:
    return pytest.approx(value)


def entropy(*shares: float) -> float:
    return -sum(share * math.log2(share) for share in shares)


RIGHT, WRONG = ("4", 1.0), ("5", 0.0)
THREE = item("q0", [("one", *RIGHT), ("one", *WRONG), ("two", *RIGHT)])
"""Two say the same, the third something orthogonal; the second is wrong."""


# --- worked out by hand ----------------------------------------------------------------------------------------------


def test_three_agents_by_hand() -> None:
    found = measured(panel(THREE))
    H = entropy(2 / 3, 1 / 3)
    row, question = found.rounds[0], found.questions[0]
    assert (row.H, row.Nstar, row.delta) == (near(H), near(2**H), None)
    assert (row.n_texts, row.n_agents, row.n_questions, row.kind) == (3, 3, 1, "round_agent_avg")
    assert (question.H, question.Nstar, question.n_agents) == (near(H), near(2**H), 3)
    assert (question.Nstar_correct, question.Nstar_wrong) == (near(2), near(1))
    assert question.Nstar_effective == near(1.5)
    assert question.Nstar_weighted == near(2 ** entropy(1.09 / 2.09, 1 / 2.09))
    assert [row.delta_Nstar for row in found.agents] == near([2**H - 2, 2**H - 2, 2**H - 1])
    assert (question.gini, question.consensus) == (near(4 / 9), near(5 / 9))
    assert question.answer_entropy == near(entropy(2 / 3, 1 / 3))
    assert (question.acc01, question.valid_answers) == (1.0, 3)
    file = found.file
    assert (file.oracle, file.beta, file.double_fault) == (1.0, 0.0, 0.0)
    assert (file.mean_member, file.best_member, file.accuracy) == (near(2 / 3), 1.0, 1.0)


def test_the_average_over_questions_is_not_scaled_back() -> None:
    """Agent 1 says e1 and e2, so its mean is half as strong a direction as agent 2's."""
    first = item("q0", [("one", *RIGHT), ("three", *RIGHT)])
    second = item("q1", [("two", *RIGHT), ("three", *RIGHT)])
    found = measured(panel(first, second, members=2))
    assert found.rounds[0].Nstar == near(kstar([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]))
    assert found.rounds[0].Nstar == near(2 ** entropy(1 / 3, 2 / 3))


def test_questions_that_not_all_answered_are_out_of_the_average_and_counted() -> None:
    both = item("q0", [("one", *RIGHT), ("two", *RIGHT)])
    alone = item("q1", [("two", *RIGHT), None])
    found = measured(panel(both, alone, members=2))
    assert (found.rounds[0].Nstar, found.rounds[0].n_questions, found.rounds[0].n_texts) == (near(2), 1, 2)
    assert found.omitted["questions of a round that not all agents answered"] == 1
    assert found.omitted["answers missing from a round"] == 1
    every = measured(panel(both, alone, members=2), union=True)
    assert every.rounds[0].Nstar == near(kstar([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]))
    assert (every.rounds[0].n_questions, every.rounds[0].n_texts) == (2, 3)
    assert "questions of a round that not all agents answered" not in every.omitted


def test_cumulative_pools_all_texts_up_to_the_round() -> None:
    first = item("q0", [("one", *RIGHT), ("one", *RIGHT)], [("two", *RIGHT), ("one", *RIGHT)])
    second = item("q1", [("three", *RIGHT), ("one", *RIGHT)], [("three", *RIGHT), ("three", *RIGHT)])
    found = measured(panel(first, second, members=2), mode="round_cumulative")
    assert found.rounds[0].Nstar == near(kstar([E1, E1, E3, E1]))
    assert found.rounds[1].Nstar == near(kstar([E1, E1, E3, E1, E2, E1, E3, E3]))
    assert found.rounds[1].Nstar_centred == near(kstar([E1, E1, E3, E1, E2, E1, E3, E3], centred=True))
    assert [row.n_texts for row in found.rounds] == [4, 8]
    assert found.rounds[1].delta == near(found.rounds[1].Nstar - found.rounds[0].Nstar)


def test_one_text_said_by_all_has_no_spread_around_its_mean() -> None:
    rng = np.random.default_rng(0).standard_normal(50)
    found = measured(
        panel(THREE), lambda texts: np.tile(rng / np.linalg.norm(rng), (len(texts), 1)), "round_cumulative"
    )
    assert (found.rounds[0].Nstar, found.rounds[0].Nstar_centred) == (near(1), near(1))


def test_a_tied_majority_is_the_answer_that_comes_first() -> None:
    first, second = ("one", *RIGHT), ("two", *WRONG)
    found = measured(panel(item("q0", [first, second]), item("q1", [second, first]), members=2))
    assert [row.acc01 for row in found.questions] == [1.0, 0.0]


def test_per_question_rounds_have_the_mean_entropy() -> None:
    first = item("q0", [("one", *RIGHT), ("two", *RIGHT)])
    second = item("q1", [("one", *RIGHT), ("one", *RIGHT)])
    found = measured(panel(first, second, members=2), mode="per_question")
    assert (found.rounds[0].H, found.rounds[0].Nstar) == (near(0.5), near(math.sqrt(2)))
    assert found.file.Nstar_question == near(1.5)


def test_one_text_per_agent_is_all_its_rounds_or_the_last() -> None:
    given = panel(item("q0", [("one", *RIGHT), ("one", *RIGHT)], [("two", *RIGHT), ("one", *RIGHT)]), members=2)
    joined, last = measured(given).questions[0], measured(given, text="last").questions[0]
    assert joined.Nstar == near(kstar([(E1 + E2) / math.sqrt(2), E1]))
    assert last.Nstar == near(2)


def test_extended_measures_take_the_mean_over_rounds() -> None:
    given = panel(item("q0", [("one", *RIGHT), ("one", *WRONG)], [("two", *RIGHT), ("one", *RIGHT)]), members=2)
    whole = kstar([(E1 + E2) / 2, E1])
    assert measured(given).questions[0].Nstar_correct == near(whole)
    assert [row.delta_Nstar for row in measured(given).agents] == near([whole - 1, whole - 1])


def test_a_debate_settles_and_somebody_moved_somebody() -> None:
    first = item(
        "q0", [("one", *RIGHT), ("two", *WRONG), ("two", *WRONG)], [("one", *RIGHT), ("one", *RIGHT), ("one", *RIGHT)]
    )
    still = item(
        "q1", [("one", *RIGHT), ("one", *RIGHT), ("one", *WRONG)], [("one", *RIGHT), ("one", *RIGHT), ("one", *WRONG)]
    )
    found = measured(panel(first, still))
    assert [row.settled for row in found.rounds] == [1, 1]
    assert MoveRow("run", "agent 2", "agent 1", 1.0, 1.0, 0.0, 0.0) in found.moves
    assert MoveRow("run", "agent 3", "agent 1", 1.0, 1.0, 0.0, 0.5) in found.moves
    assert [row.acc for row in found.rounds] == [near((1 + 0.5 + 0) / 3), near((1 + 1 + 0.5) / 3)]
    assert found.file.mean_member_first == near(0.5)
    assert [(row.accuracy_first, row.accuracy) for row in found.agents] == [(1.0, 1.0), (0.5, 1.0), (0.0, 0.5)]


def test_who_moves_to_what_nobody_said_moved_alone() -> None:
    given = panel(item("q0", [("one", "4", 1.0), ("two", "5", 0.0)], [("one", "6", 0.0), ("two", "5", 0.0)]), members=2)
    rows = measured(given).moves
    assert MoveRow("run", "agent 1", None, 1.0, None, None, None) in rows


@pytest.mark.parametrize(("topology", "speakers"), [("decentralized", {1, 2}), ("centralized", {1})])
def test_only_who_is_read_moves_somebody(topology: str, speakers: set[int]) -> None:
    """Agent 3 takes over what agents 1 and 2 hold; under `centralized` it has read the first alone."""
    one = item(
        "q0", [("one", *RIGHT), ("one", *RIGHT), ("two", *WRONG)], [("one", *RIGHT), ("one", *RIGHT), ("one", *RIGHT)]
    )
    given = dataclasses.replace(panel(one), method="debate", settings={"topology": topology})
    moved = {row.speaker: row.moved for row in measured(given).moves if row.listener == "agent 3" and row.moved}
    assert moved == {f"agent {n}": 1 / len(speakers) for n in speakers}


def test_members_of_a_vote_that_stopped_early_are_not_measured_alone() -> None:
    """They answered different questions: what they did together on those stays, what each is worth is not known."""
    whole = council(20, 4, 1)
    full, early = measured(whole, at_random), measured(replace(whole, unasked=3), at_random)
    assert full.file.mean_member is not None and full.file.beta is not None
    assert full.file.error_correlation is not None and full.rounds[0].acc is not None
    told = early.file
    blank = (told.mean_member, told.best_member, told.oracle, told.beta, told.error_correlation, told.double_fault)
    assert set(blank) == {None} and early.rounds[0].acc is None
    assert all(row.accuracy is None and row.accuracy_first is None for row in early.agents)
    assert [row.acc01 for row in early.questions] == [row.acc01 for row in full.questions]
    assert (told.accuracy, told.kappa, told.Nstar) == (full.file.accuracy, full.file.kappa, full.file.Nstar)


def test_a_sample_embeds_some_questions_and_measures_all() -> None:
    given = council(40, 4, 1)
    asked: list[str] = []

    def embed(texts: Sequence[str]) -> Any:
        asked.extend(texts)
        return np.eye(len(texts))

    found = analyze(given, embed, embedder="orthogonal", sample=10)
    again = analyze(given, lambda texts: np.eye(len(texts)), embedder="orthogonal", sample=10)
    whole = analyze(given, lambda texts: np.eye(len(texts)), embedder="orthogonal")
    assert [row.q_idx for row in found.questions] == [row.q_idx for row in again.questions]
    assert len(found.questions) == 10 < len(whole.questions)
    assert len(asked) == len(set(asked)) < len({w.text for i in given.items for r in i.words for w in r if w})
    assert (found.file.accuracy, found.file.beta) == (whole.file.accuracy, whole.file.beta)
    assert found.omitted["questions whose texts are not in the sample"] == 30
    assert found.omitted.get("empty texts", 0) == whole.omitted.get("empty texts", 0)
    with pytest.raises(UsageError, match="a sample of 0 questions"):
        analyze(given, embed, embedder="orthogonal", sample=0)


# --- identities ------------------------------------------------------------------------------------------------------


def council(n_questions: int, n_agents: int, n_rounds: int, accuracy: float = 0.6) -> Panel:
    rng = random.Random(1)

    def said(q: int, a: int, r: int) -> Say:
        answer = "4" if rng.random() < accuracy else rng.choice("567")
        return f"{q} {a} {r} {answer}", answer, float(answer == "4")

    items = [
        item(f"q{q}", *[[said(q, a, r) for a in range(n_agents)] for r in range(n_rounds)], credit=q % 2)
        for q in range(n_questions)
    ]
    return panel(*items, members=n_agents)


@pytest.mark.parametrize("mode", sorted(MODES))
def test_in_every_mode_nstar_is_two_to_the_entropy(mode: str) -> None:
    found = measured(council(9, 4, 2), at_random, mode)
    rows: list[RoundRow | QuestionRow] = [*found.rounds, *found.questions]
    for row in rows:
        assert row.Nstar == near(2**row.H)
        assert 1 <= row.Nstar <= 8 + 1e-9
    assert {row.kind for row in found.rounds} == {MODES[mode]}
    assert (found.file.Nstar, found.file.Nstar_first) == (found.rounds[-1].Nstar, found.rounds[0].Nstar)


def test_questions_and_agents_are_the_same_in_every_mode() -> None:
    given = council(9, 4, 2)
    tables = [measured(given, at_random, mode) for mode in sorted(MODES)]
    assert all((one.questions, one.agents, one.moves) == (tables[0].questions, tables[0].agents, tables[0].moves)
               for one in tables)  # fmt: skip


def test_copies_count_once_and_err_together() -> None:
    items = [item(f"q{q}", [("one", *(RIGHT if q % 3 else WRONG))] * 3, credit=None) for q in range(9)]
    found = measured(panel(*items))
    assert found.rounds[0].Nstar == near(1)
    assert [row.Nstar for row in found.questions] == near([1.0] * 9)
    assert [row.delta_Nstar for row in found.agents] == near([0.0] * 3)
    assert (found.file.error_correlation, found.file.beta) == (near(1), near(1 / 3))
    assert found.file.beta_low is not None
    assert found.file.beta_high is not None
    assert found.file.beta_low < 1 / 3 < found.file.beta_high
    assert found.file.rho_disagreement is None


def test_correlations_are_pearsons_over_questions() -> None:
    found = measured(council(40, 4, 1), at_random)
    nstar = np.array([row.Nstar for row in found.questions])
    for name, value in (("gini", found.file.rho_disagreement), ("consensus", found.file.rho_consensus)):
        assert value == near(np.corrcoef(nstar, [getattr(row, name) for row in found.questions])[0, 1])
    assert found.file.rho_accuracy == near(np.corrcoef(nstar, [row.acc01 for row in found.questions])[0, 1])
    assert (found.file.rho_n, found.file.rho_accuracy_n) == (40, 40)


def test_many_small_batches_give_what_one_batch_gives() -> None:
    """Vectors so wide that the questions are gathered in several parts."""

    def wide(texts: Sequence[str]) -> NDArray[np.float64]:
        return np.hstack([at_random(texts), np.zeros((len(texts), 2**16 - 8))])

    given = council(40, 2, 1)
    narrow, padded = measured(given, at_random), measured(given, wide)
    assert [row.Nstar for row in padded.questions] == near([row.Nstar for row in narrow.questions])
    assert [row.delta_Nstar for row in padded.agents] == near([row.delta_Nstar for row in narrow.agents])


def test_intervals_hold_the_mean_and_come_from_the_seed() -> None:
    given = council(30, 3, 1)
    one, again, other = (measured(given, at_random, seed=seed).agents for seed in (0, 0, 1))
    assert one == again != other
    for row in one:
        assert row.low is not None
        assert row.high is not None
        assert row.delta_Nstar is not None
        assert row.low < row.delta_Nstar < row.high
        assert row.accuracy_low is not None
        assert row.accuracy_high is not None
        assert row.accuracy is not None
        assert row.accuracy_low < row.accuracy < row.accuracy_high


def test_each_distinct_text_is_embedded_once() -> None:
    asked: list[str] = []

    def embed(texts: Sequence[str]) -> NDArray[np.float64]:
        asked.extend(texts)
        return by_table(texts)

    measured(panel(THREE, replace(THREE, question_id="q1")), embed)
    assert sorted(asked) == ["one", "two"]


def test_spend() -> None:
    found = measured(panel(THREE, item("q1", failed=True)))
    assert [(row.calls, row.tokens, row.cost_usd) for row in found.agents] == [(1, 15, 0.5)] * 3
    assert (found.file.calls, found.file.tokens, found.file.cost_usd) == (6, 90, 3.0)
    unknown = measured(panel(THREE, replace(THREE, usage=None)))
    assert (unknown.file.calls, unknown.file.tokens, unknown.file.cost_usd) == (None, None, None)


# --- what is missing -------------------------------------------------------------------------------------------------


def test_one_agent_alone() -> None:
    items = [item(f"q{q}", [(text, *RIGHT)]) for q, text in enumerate(("one", "two", "three"))]
    found = measured(panel(*items, members=1))
    assert (found.file.Nstar, found.file.Nstar_question) == (near(1), near(1))
    file = found.file
    assert [file.rho_disagreement, file.rho_accuracy, file.error_correlation, file.double_fault, file.kappa] == [
        None
    ] * 5
    assert found.agents[0].delta_Nstar == near(0)
    assert found.moves == ()


def test_an_agent_that_says_nothing_at_all() -> None:
    found = measured(panel(item("q0", [("one", *RIGHT), ("two", *RIGHT), None])))
    assert (found.rounds[0].Nstar, found.rounds[0].n_agents) == (near(2), 2)
    assert found.omitted["agents without a text"] == 1
    silent = found.agents[2]
    assert (silent.delta_Nstar, silent.low, silent.accuracy, silent.tokens) == (None, None, None, None)
    assert (silent.n_questions, silent.calls) == (0, 0)


def test_a_round_that_is_missing() -> None:
    short = item("q0", [("one", *RIGHT), ("two", *RIGHT)])
    long = item("q1", [("one", *RIGHT), ("one", *RIGHT)], [None, None], [("one", *RIGHT), ("three", *RIGHT)])
    found = measured(panel(short, long, members=2))
    assert [(row.round, row.n_questions) for row in found.rounds] == [(0, 2), (2, 1)]
    assert found.rounds[1].delta == near(2 - found.rounds[0].Nstar)
    assert found.omitted["rounds without a question that all agents answered"] == 1
    assert "answers missing from a round" not in found.omitted, "no agent spoke where the others did not"


def test_empty_texts_are_no_texts() -> None:
    found = measured(panel(item("q0", [("one", *RIGHT), (" \n", None, 0.0), ("two", *RIGHT)])))
    assert (found.rounds[0].n_texts, found.rounds[0].Nstar) == (2, near(2))
    assert found.questions[0].n_agents == 2
    assert (found.omitted["empty texts"], found.omitted["last answers that could not be read"]) == (1, 1)
    assert "answers missing from a round" not in found.omitted


def test_texts_the_embedder_has_no_vector_for() -> None:
    def embed(texts: Sequence[str]) -> NDArray[np.float64]:
        return np.array([E1 * (text != "two") for text in texts])

    found = measured(panel(THREE), embed)
    assert (found.rounds[0].n_texts, found.questions[0].n_agents) == (2, 2)
    assert found.omitted["texts without a vector"] == 1


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_vector_that_is_not_finite(value: float) -> None:
    def embed(texts: Sequence[str]) -> NDArray[np.float64]:
        return np.array([[1.0, value if text == "two" else 0.0] for text in texts])

    with pytest.raises(DataError, match=r"run 1: embedder 'test' .* 1 of 2 texts; the first: 'two' \(agent 3, .* q0\)"):
        measured(panel(THREE), embed)


def test_an_embedder_that_loses_texts() -> None:
    with pytest.raises(ValueError, match=r"shape \(1, 3\) for 2 texts"):
        measured(panel(THREE), lambda texts: by_table(texts)[:1])


def test_without_a_key_there_is_diversity_and_no_accuracy() -> None:
    items = [item(f"q{q}", [("one", "4", None), ("two", "5", None)], credit=None) for q in range(4)]
    found = measured(panel(*items, members=2))
    file = found.file
    assert (file.Nstar, file.kappa) == (near(2), near(-1))
    unknown = (file.accuracy, file.oracle, file.beta, file.error_correlation, file.double_fault, file.mean_member)
    assert unknown == (None,) * 6
    assert {row.acc01 for row in found.questions} == {None}
    assert {row.Nstar_correct for row in found.questions} == {None}
    assert found.omitted == {"questions without a key": 4}


@pytest.mark.parametrize("given", [panel(), panel(members=0), panel(item("q0", failed=True)), panel(item("q0"))])
@pytest.mark.parametrize("mode", ["round_agent_avg", "per_question", "round_cumulative"])
def test_nothing_to_measure(given: Panel, mode: str) -> None:
    found = measured(given, mode=mode)
    assert (found.rounds, found.questions, found.moves) == ((), (), ())
    assert [row.delta_Nstar for row in found.agents] == [None] * len(given.members)
    assert (found.file.Nstar, found.file.Nstar_question, found.file.beta) == (None, None, None)


def test_failed_attempts_are_left_out_and_counted_and_the_places_stay() -> None:
    lost = item("q0", [("three", *WRONG)] * 3, credit=None, failed=True)
    found = measured(panel(lost, replace(THREE, question_id="q1")))
    assert [(row.q_idx, row.question_id) for row in found.questions] == [(1, "q1")]
    assert (found.file.n_questions, found.file.beta, found.file.accuracy) == (1, 0.0, 1.0)
    assert found.omitted["failed attempts"] == 1
    assert measured(panel(THREE)).rounds == found.rounds


def test_omissions_of_the_source_are_kept() -> None:
    found = measured(replace(panel(THREE), omitted={"lines that are cut off": 2}))
    assert found.omitted["lines that are cut off"] == 2


def test_no_number_is_nan() -> None:
    given = panel(item("q0", [("one", *RIGHT), None, (" ", None, None)]), item("q1"), members=3)
    found = measured(given)
    rows: list[RowKind] = [found.file, *found.rounds, *found.questions, *found.agents]
    values = [value for row in rows for value in asdict(row).values()]
    assert not any(isinstance(value, float) and math.isnan(value) for value in values)


def test_names_that_are_not_there() -> None:
    with pytest.raises(UnknownName, match="unknown mode 'round_avg'"):
        measured(panel(THREE), mode="round_avg")
    with pytest.raises(UnknownName, match="unknown text 'first'"):
        measured(panel(THREE), text="first")


# --- robustness ------------------------------------------------------------------------------------------------------


def runs(embed: Callable[[Panel], Embed], n: int = 5) -> list[Analysis]:
    given = [replace(panel(THREE), name=f"run {i}", source=f"run {i}") for i in range(n)]
    return [measured(one, embed(one)) for one in given]


def leaning(one: Panel) -> Embed:
    """The later the run, the further apart its texts."""
    angle = math.pi / 2 * (1 + int(one.name.split()[1])) / 6
    return lambda texts: np.array([[1.0, 0.0] if t == "one" else [math.cos(angle), math.sin(angle)] for t in texts])


def closing(one: Panel) -> Embed:
    return leaning(replace(one, name=f"run {4 - int(one.name.split()[1])}"))


def test_embedders_that_rank_the_runs_alike_or_the_other_way_round() -> None:
    rows = robustness({"a": runs(leaning), "b": runs(leaning), "c": runs(closing)})
    assert {(row.first, row.second): (row.rho, row.n) for row in rows if row.measure == "Nstar"} == {
        ("a", "b"): (near(1), 5), ("a", "c"): (near(-1), 5), ("b", "c"): (near(-1), 5),
    }  # fmt: skip
    assert {row.measure for row in rows} == {"Nstar", "Nstar_question", "questions"}


def test_under_three_runs_there_is_no_rank_correlation() -> None:
    rows = robustness({"a": runs(leaning, 2), "b": runs(leaning, 5)})
    assert {(row.rho, row.n) for row in rows} == {(None, 2)}
    assert robustness({"a": runs(leaning)}) == ()


# --- the page --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [FileRow, RoundRow, QuestionRow, AgentRow, MoveRow, RobustnessRow])
def test_every_column_is_described(kind: type) -> None:
    page = (Path(__file__).parents[1] / "docs" / "analyze.md").read_text("utf-8")
    tables = page.split("\n## Tables\n")[1].split("\n## ")[0]
    assert [name for name in kind.__dataclass_fields__ if f"`{name}`" not in tables] == []  # type: ignore[attr-defined]
