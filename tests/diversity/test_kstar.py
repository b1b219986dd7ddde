from __future__ import annotations

import math
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluribus.diversity._spectra import MEMORY_BYTES, batches, rows
from pluribus.diversity.kstar import (
    conditioned,
    conditioned_batch,
    delta,
    delta_batch,
    entropy,
    entropy_batch,
    kstar,
    kstar_batch,
    mean_rows,
    weighted,
    weighted_batch,
)

THREE = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
"""a, b, c with c = a and b orthogonal. MMᵀ = [[1,0,1],[0,1,0],[1,0,1]] has eigenvalues 2, 1, 0, so λ = 2/3, 1/3 and
H = −(2/3) ln(2/3) − (1/3) ln(1/3) = ln 3 − (2/3) ln 2: N* = 3 / 2^(2/3)."""
N_THREE = 3 / 2 ** (2 / 3)

SHAPES = [(1, 5), (2, 3), (5, 3), (7, 7), (16, 384), (40, 20)]
SEEDS = st.integers(0, 10_000)
SIZES = st.integers(1, 12)


def unit(*shape: int, seed: int = 0) -> np.ndarray:
    M = np.random.default_rng(seed).standard_normal(shape)
    return M / np.linalg.norm(M, axis=-1, keepdims=True)


def rotation(d: int, seed: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]


def direct(M_N_D: np.ndarray) -> float:
    """By the definition: the d × d matrix, its eigenvalues, the entropy, in a loop."""
    mu = [max(0.0, value) for value in np.linalg.eigvalsh(M_N_D.T @ M_N_D)]
    return math.exp(-sum(m / sum(mu) * math.log(m / sum(mu)) for m in mu if m > 0))


# --- identities ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 5, 16])
def test_orthogonal_rows_count_in_full_and_copies_as_one(n: int) -> None:
    assert kstar(rotation(16, n)[:n]) == pytest.approx(n, abs=1e-9)
    assert kstar(np.repeat(unit(1, 16), n, axis=0)) == pytest.approx(1, abs=1e-9)


@given(SIZES, SIZES, SEEDS)
def test_order_and_rotation_do_not_matter_and_the_range_holds(n: int, d: int, seed: int) -> None:
    M = unit(n, d, seed=seed)
    value = kstar(M)
    assert 1 - 1e-9 <= value <= min(n, d) + 1e-9
    assert kstar(np.random.default_rng(seed).permutation(M)) == pytest.approx(value, abs=1e-9)
    assert kstar(M @ rotation(d, seed)) == pytest.approx(value, abs=1e-9)
    assert kstar(M @ rotation(d, seed), centred=True) == pytest.approx(kstar(M, centred=True), abs=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("centred", [False, True])
def test_both_routes_agree(shape: tuple[int, int], centred: bool) -> None:
    """Padding with zero dimensions or zero rows turns one route into the other; the gram route can be asked for too."""
    M = unit(*shape)
    n, d = shape
    assert kstar(M) == pytest.approx(direct(M), abs=1e-9)
    wide = np.pad(M, ((0, 0), (0, n)))
    assert kstar(wide, centred=centred) == pytest.approx(kstar(M, centred=centred), abs=1e-9)
    tall = np.pad(M, ((0, d), (0, 0)))[None]
    mask = np.arange(n + d)[None] < n
    assert kstar_batch(tall, mask, centred=centred)[0] == pytest.approx(kstar(M, centred=centred), abs=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_the_vendi_score_with_a_linear_kernel(shape: tuple[int, int]) -> None:
    pytest.importorskip("vendi_score")
    from vendi_score import vendi

    M = unit(*shape)
    assert kstar(M) == pytest.approx(vendi.score_dual(M, normalize=False), abs=1e-9)
    with warnings.catch_warnings():  # it names a place in SciPy that is deprecated
        warnings.simplefilter("ignore", DeprecationWarning)
        assert kstar(M) == pytest.approx(vendi.score_X(M, normalize=False), abs=1e-9)


def test_entropy_is_the_logarithm() -> None:
    M = unit(5, 8)
    assert entropy(M) == pytest.approx(math.log(kstar(M)), abs=1e-12)
    assert entropy_batch(M[None]).tolist() == [entropy(M)]


# --- by hand ---------------------------------------------------------------------------------------------------------


def test_three_agents_by_hand() -> None:
    assert kstar(THREE) == pytest.approx(N_THREE, abs=1e-12)
    # 60° between two rows: MMᵀ = [[1, ½], [½, 1]], eigenvalues 3/2 and 1/2, λ = 3/4, 1/4: N* = 4 / 3^(3/4).
    assert kstar([[1, 0], [0.5, math.sqrt(3) / 2]]) == pytest.approx(4 / 3**0.75, abs=1e-12)


def test_three_agents_by_hand_centred() -> None:
    # The mean is (2/3, 1/3); what is left are multiples of (1, −1): one direction.
    assert kstar(THREE, centred=True) == pytest.approx(1, abs=1e-12)
    # Of the unit vectors in three dimensions the centred Gram matrix is I − 11ᵀ/3: eigenvalues 1, 1, 0.
    assert kstar(np.eye(3), centred=True) == pytest.approx(2, abs=1e-12)


def test_three_agents_by_hand_conditioned() -> None:
    # a, b right (orthogonal: 2), c wrong (alone: 1): 2 − ½ · 1.
    got = conditioned(THREE, [1, 1, 0])
    assert (got.correct, got.wrong, got.effective) == pytest.approx((2, 1, 1.5), abs=1e-12)
    # a, c right (copies: 1), b unknown, nobody wrong: nothing is taken off.
    got = conditioned(THREE, [1, math.nan, 1])
    assert (got.correct, got.wrong) == (pytest.approx(1, abs=1e-12), None)
    assert got.effective == got.correct
    # Nobody right: only the wrong group has a number.
    got = conditioned(THREE, [0, 0, 0])
    assert (got.correct, got.wrong, got.effective) == (None, pytest.approx(N_THREE, abs=1e-12), None)


def test_three_agents_by_hand_weighted() -> None:
    # Rows a, 0.3 b, 0.5 c: a and c span one direction with 1² + 0.5² = 1.25, b has 0.3² = 0.09; both over 1.34.
    p, q = 1.25 / 1.34, 0.09 / 1.34
    expected = math.exp(-p * math.log(p) - q * math.log(q))
    assert weighted(THREE, [1, 0, math.nan]) == pytest.approx(expected, abs=1e-12)
    # Equal weights cancel, whatever they are.
    assert weighted(THREE, [0, 0, 0]) == pytest.approx(N_THREE, abs=1e-12)


def test_three_agents_by_hand_delta() -> None:
    # Without a: b, c orthogonal, 2. Without b: a, c copies, 1. Without c: a, b orthogonal, 2.
    assert delta(THREE) == pytest.approx([N_THREE - 2, N_THREE - 1, N_THREE - 2], abs=1e-12)


# --- batches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "d"), [(6, 4), (4, 6)])
def test_a_batch_equals_single_questions_and_masks_equal_slices(n: int, d: int) -> None:
    rng = np.random.default_rng(n)
    M = unit(9, n, d)
    mask = rng.random((9, n)) < 0.6
    mask[0], mask[1] = False, True
    M[~mask] = np.nan
    correct = rng.choice([0.0, 1.0, np.nan], (9, n))
    kept = [(M[q, mask[q]], correct[q, mask[q]]) for q in range(9)]
    for centred in (False, True):
        got = kstar_batch(M, mask, centred=centred)
        assert got == pytest.approx([kstar(part, centred=centred) for part, _ in kept], abs=1e-9)
    assert weighted_batch(M, correct, mask) == pytest.approx([weighted(*part) for part in kept], abs=1e-9)
    split = conditioned_batch(M, correct, mask)
    for name in ("correct", "wrong", "effective"):
        expected = [getattr(conditioned(*part), name) for part in kept]
        assert getattr(split, f"{name}_Q") == pytest.approx(np.array(expected, dtype=float), abs=1e-9, nan_ok=True)
    deltas = delta_batch(M, mask)
    assert np.isnan(deltas[~mask]).all()
    assert deltas[mask] == pytest.approx(np.concatenate([delta(part) for part, _ in kept]), abs=1e-9)


@pytest.mark.parametrize("memory", [1, 500, 3_000, 100_000])
@pytest.mark.parametrize(("gram", "shape"), [(True, (7, 3, 11)), (True, (7, 11, 3)), (False, (7, 11, 3))])
@pytest.mark.parametrize("centred", [False, True])
def test_however_little_memory_there_is_the_matrices_are_the_same(
    memory: int, gram: bool, shape: tuple[int, int, int], centred: bool
) -> None:
    M = unit(*shape)
    mask = np.random.default_rng(0).random(shape[:2]) < 0.7
    parts = list(batches(rows(M, mask), centred=centred, gram=gram, memory=memory))
    assert [q for part in parts for q in range(7)[part.at]] == list(range(7))
    mean = (
        np.stack([row[keep].mean(axis=0) for row, keep in zip(M, mask, strict=True)]) if centred else np.zeros((7, 1))
    )
    kept = np.where(mask[..., None], M - mean[:, None], 0)
    expected = kept @ kept.swapaxes(1, 2) if gram else kept.swapaxes(1, 2) @ kept
    assert np.concatenate([part.matrix_B_S_S for part in parts]) == pytest.approx(expected, abs=1e-12)


@settings(max_examples=30)
@given(st.integers(2, 7), SIZES, SEEDS)
def test_delta_is_what_is_lost_without_a_row(n: int, d: int, seed: int) -> None:
    M = unit(n, d, seed=seed)
    lost = [kstar(M) - kstar(np.delete(M, i, axis=0)) for i in range(n)]
    assert delta(M) == pytest.approx(lost, abs=1e-9)


def test_single_precision_is_worked_on_in_double() -> None:
    M = unit(20, 16, 64).astype(np.float32)
    assert kstar_batch(M) == pytest.approx(kstar_batch(M.astype(np.float64)), abs=1e-12)


def test_copies_up_to_rounding_have_no_spread_and_near_copies_have() -> None:
    copies = np.repeat(unit(1, 384), 5, axis=0) + 1e-9 * unit(5, 384)
    assert kstar(copies, centred=True) == 1
    assert kstar(np.array([1, 0, 0, 0]) + 1e-4 * np.eye(4)[1:], centred=True) == pytest.approx(2, abs=1e-6)


@pytest.mark.parametrize("shape", [(2_000, 16, 96), (1, 30_000, 96), (1, 16, 200_000)])
@pytest.mark.parametrize("centred", [False, True])
def test_memory_is_bounded_by_the_batch_not_by_the_input(shape: tuple[int, int, int], centred: bool) -> None:
    M = np.ones(shape, dtype=np.float32)
    assert M.nbytes > MEMORY_BYTES
    tracemalloc.start()
    try:
        kstar_batch(M, centred=centred)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.25 * MEMORY_BYTES


# --- edges -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("M", [[], np.zeros((0, 8)), np.zeros((3, 8)), np.zeros((3, 0)), [[0.6, 0.8]]])
@pytest.mark.parametrize("centred", [False, True])
def test_no_rows_no_length_and_one_row_count_as_one(M: np.ndarray, centred: bool) -> None:
    assert kstar(M, centred=centred) == pytest.approx(1, abs=1e-12)
    assert entropy(M, centred=centred) == pytest.approx(0, abs=1e-12)
    assert delta(M) == pytest.approx(np.zeros(len(M)))


def test_an_empty_text_adds_nothing() -> None:
    assert kstar(np.vstack([THREE, [0, 0]])) == pytest.approx(N_THREE, abs=1e-12)
    assert delta(np.vstack([THREE, [0, 0]]))[3] == pytest.approx(0, abs=1e-12)


def test_no_questions_give_no_numbers() -> None:
    nothing = np.zeros((0, 4, 8))
    assert kstar_batch(nothing).shape == entropy_batch(nothing).shape == (0,)
    assert delta_batch(nothing).shape == (0, 4)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("centred", [False, True])
def test_a_row_that_is_not_finite_is_named(bad: float, centred: bool) -> None:
    M = unit(4, 3, 5)
    M[2, 1, 4] = bad
    with pytest.raises(ValueError, match=rf"row 1 of question 2 holds {bad} in dimension 4"):
        kstar_batch(M, centred=centred)
    with pytest.raises(ValueError, match=r"^embedding row 1 holds"):
        delta(M[2])
    with pytest.raises(ValueError, match="row 1 of question 2 "):
        weighted_batch(M, np.ones((4, 3)))


def test_the_question_is_counted_over_all_batches() -> None:
    M = np.ones((40, 16, 4096), dtype=np.float32)
    assert len(list(batches(rows(M)))) > 2
    M[38, 2, 0] = np.nan
    with pytest.raises(ValueError, match="row 2 of question 38 holds nan"):
        kstar_batch(M)


def test_rows_too_long_to_square_are_refused() -> None:
    with pytest.raises(ValueError, match="unit length"):
        kstar([[1e200, 0.0], [0.0, 1.0]])


def test_wrong_shapes_and_codes_are_named() -> None:
    with pytest.raises(ValueError, match=r"shape \(3,\); expected \(rows, dims\)"):
        kstar([1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="expected real numbers"):
        kstar([["a", "b"]])
    with pytest.raises(ValueError, match=r"mask is of shape \(2, 2\); expected \(1, 3\)"):
        kstar_batch(THREE[None], np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"correct is of shape \(1, 2\); expected \(1, 3\)"):
        weighted(THREE, [1, 0])
    with pytest.raises(ValueError, match=r"correct holds 0\.5; expected 1"):
        conditioned(THREE, [1, 0.5, 0])


def test_mean_rows_leaves_out_what_is_not_there() -> None:
    M = unit(4, 3, 5)
    assert mean_rows(M) == pytest.approx(M.mean(axis=0))
    mask = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 0], [1, 0, 0]], dtype=bool)
    M[0, 1] = np.nan
    expected = np.stack([M[[0, 1, 3], 0].mean(axis=0), M[[1, 2], 1].mean(axis=0), np.zeros(5)])
    assert mean_rows(M, mask) == pytest.approx(expected)
