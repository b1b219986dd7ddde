"""What is planted is found: the all-wrong rate, the errors' correlation, K*, and whether the council pays."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from tests.planted import Process, panels, right_Q_M_S, store

from pluribus.analyze import analyze
from pluribus.compare import compare, verdict
from pluribus.controls import controls_of
from pluribus.diversity.mistakes import mean_error_correlation, oracle
from pluribus.embedders import open_embedder
from pluribus.panel import Panel, right_Q_A
from pluribus.run import panel
from pluribus.store import Store


def walked(tmp_path: Path, process: Process) -> tuple[Panel, list[Panel]]:
    """The council's panel and its controls, as a command finds them."""
    names = store(tmp_path / "home", process, tmp_path / "files")
    with Store.open(tmp_path / "home") as workspace:
        council = panel(workspace, names.council)
        found = controls_of(workspace, council)
        assert sorted(control.name for control in found) == sorted(names.controls)
        return council, found


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.7])
@pytest.mark.parametrize("wrong", ["spread", "shared"])
def test_beta_and_the_errors_correlation_are_recovered(
    tmp_path: Path, rho: float, wrong: Literal["spread", "shared"]
) -> None:
    process = Process((0.5, 0.6, 0.7, 0.55), rho=rho, questions=400, wrong=wrong, seed=4)
    council, _ = walked(tmp_path, process)
    right = right_Q_A(council)
    assert right.mean(axis=0) == pytest.approx(process.accuracies, abs=0.06)
    lost, together = oracle(right), mean_error_correlation(right)
    assert lost is not None
    assert together is not None
    assert lost.low <= process.beta <= lost.high
    assert together.low <= process.phi <= together.high
    assert (together.low > 0) == (rho > 0)


def test_the_true_rates_are_those_of_many_questions() -> None:
    process = Process((0.5, 0.6, 0.75), rho=0.4, tau=0.2, questions=200_000)
    wrong = ~right_Q_M_S(process)[:, :, 0]
    assert wrong.all(axis=1).mean() == pytest.approx(process.beta, abs=0.005)
    phis = np.corrcoef(wrong.T)[np.triu_indices(3, 1)]
    assert phis.mean() == pytest.approx(process.phi, abs=0.01)


@pytest.mark.parametrize("copies", [False, True])
def test_the_short_way_gives_the_same_answers_as_the_walk(tmp_path: Path, copies: bool) -> None:
    process = Process((0.6, 0.5, 0.7), samples=3, tau=0.5, questions=25, copies=copies)
    council, controls = walked(tmp_path, process)
    short, drawn = panels(process)

    def table(found: Panel) -> list[Any]:
        words = [[(w.answer, w.correct, w.tokens) if w else None for w in item.words[0]] for item in found.items]
        return [words, [(item.question_id, item.decided, item.credit, item.usage) for item in found.items]]

    assert table(council) == table(short)
    assert sorted(map(table, controls)) == sorted(map(table, drawn))
    assert [c.difference for c in compare(council, controls)] == [c.difference for c in compare(short, drawn)]


@pytest.fixture
def kstar(tmp_path: Path) -> Any:
    embed = open_embedder("hashing")
    return lambda council: analyze(council, embed, embedder="hashing").file


def test_copies_do_not_pay_and_are_one_voice(tmp_path: Path, kstar: Any) -> None:
    council, controls = walked(tmp_path, Process((0.6,) * 4, copies=True, samples=4, tau=1.0, questions=100))
    said = verdict(compare(council, controls))
    assert said.pays is False
    assert said.words.startswith("the council does not pay here: +0.0 points [−3.6, 3.6] over the best member's self-")
    assert "at the same calls (4; m" in said.words
    found = kstar(council)
    assert found.Nstar == pytest.approx(1.0, abs=1e-6)
    assert found.Nstar_question == pytest.approx(1.0, abs=1e-6)
    assert found.error_correlation == pytest.approx(1.0)


def test_copies_of_one_draw_lose_to_as_many_draws(tmp_path: Path) -> None:
    process = Process((0.7,) * 5, copies=True, samples=5, tau=0.2, questions=120)
    said = verdict(compare(*walked(tmp_path, process)))
    assert said.pays is False
    assert said.words.startswith("the council loses here: −")


def test_independent_diverse_members_pay(tmp_path: Path, kstar: Any) -> None:
    council, controls = walked(tmp_path, Process((0.6,) * 4, samples=4, tau=0.9, questions=120))
    said = verdict(compare(council, controls))
    assert said.pays is True
    assert said.words.startswith("the council pays here: +")
    assert kstar(council).Nstar_question > 2.5


def test_members_that_share_their_errors_do_not_pay(tmp_path: Path) -> None:
    process = Process((0.6,) * 4, rho=0.9, tau=0.05, samples=4, questions=120, wrong="shared")
    said = verdict(compare(*walked(tmp_path, process)))
    assert said.pays is False


def test_one_output_per_model_leaves_the_question_open(tmp_path: Path) -> None:
    council, controls = walked(tmp_path, Process((0.6,) * 5, questions=60))
    assert controls == []
    said = verdict(compare(council, controls))
    assert said.pays is None
    assert "self-consistency is not recorded" in said.words
