"""Feature hashing: the same numbers everywhere, and what its parts do."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from pluribus.embedders import open_embedder
from pluribus.embedders.hashing import DIMENSIONS, Hashing

PROGRAM = """
import hashlib
from pluribus.embedders.hashing import Hashing
print(hashlib.sha256(Hashing(64).embed(["Tom has 12 apples, ½ of them green.", "数学 is fun"]).tobytes()).hexdigest())
"""


def test_vectors_are_the_same_in_every_process_and_have_not_changed() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout.strip()
        for seed in ("1", "2")
    }
    here = hashlib.sha256(Hashing(64).embed(["Tom has 12 apples, ½ of them green.", "数学 is fun"]).tobytes())
    assert said == {here.hexdigest()}
    # whoever changes the vectors raises _VERSION, so that old caches do not mix with new vectors
    assert Hashing().name == f"hashing@1[dimensions={DIMENSIONS}]"
    assert here.hexdigest()[:16] == "bae6fef0c5966c02"


def test_words_pairs_and_runs_by_hand() -> None:
    """`ab cd` has two words, one pair, and runs of 3 and 5 bytes: every feature is one signed bucket."""
    vector = Hashing(1 << 20).embed(["ab cd"])[0]
    weights = np.sort(vector[vector != 0].astype(np.float64) ** 2)
    assert np.allclose(weights, [0.2] * 4 + [0.7] + [1.0] * 2)  # ab␣ b␣c ␣cd, ab␣cd; ab+cd; ab, cd


def test_case_and_space_do_not_count_and_order_and_signs_do() -> None:
    embed = open_embedder("hashing")
    one, same, other, sign = embed(["Two  plus\nfour", "two plus FOUR", "four plus two", "two + four"])
    assert (one == same).all()
    assert 0.4 < one @ other < 0.99 and one @ sign < 0.99


def test_nothing_reaches_from_one_text_into_the_next() -> None:
    texts = [f"{i} apples and {i * 7} pears in {i} baskets" for i in range(1300)] + ["a", "b", "c d"]
    embed = Hashing(128)
    assert (embed.embed(texts) == np.concatenate([embed.embed([text]) for text in texts])).all()


def test_unrelated_texts_are_nearly_orthogonal() -> None:
    rng = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz "))
    vectors = open_embedder("hashing")(["".join(rng.choice(letters, 300)) for _ in range(40)])
    off = (vectors @ vectors.T)[~np.eye(40, dtype=bool)]
    assert abs(off.mean()) < 0.1 and off.std() < 3 / np.sqrt(DIMENSIONS)


@pytest.mark.parametrize("dimensions", [1, 7, 1024])
def test_any_dimension(dimensions: int) -> None:
    assert open_embedder(f"hashing[dimensions={dimensions}]")(["a b c"]).shape == (1, dimensions)
