"""Names, caches, progress and what is refused: all that every embedder has from `Embedder`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pluribus.embedders import Embedder, open_embedder, parse
from pluribus.errors import ConfigError, DataError, UnknownName
from pluribus.store import Store


class Letters:
    """How often each of the first `width` letters stands in a text; remembers what it was asked."""

    name = "letters"
    chunk = 3
    windowed = 0
    dimension = None

    def __init__(self, width: int = 26) -> None:
        self.width = width
        self.asked: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked.append(list(texts))
        return np.array([[text.count(chr(97 + i)) for i in range(self.width)] for text in texts], np.float32)


class Broken(Letters):
    name = "broken"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        vectors = super().embed(texts)
        vectors[["poison" in text for text in texts], 0] = np.inf
        return vectors


def test_texts_go_to_the_model_once_long_ones_first_in_chunks_with_progress() -> None:
    raw, heard = Letters(), list[tuple[int, int]]()
    embed = Embedder("letters", raw, progress=lambda done, total: heard.append((done, total)))
    embed(["a", "bb", "a", "", "ccc", "dddd"])
    assert raw.asked == [["dddd", "ccc", "bb"], ["a"]]
    assert heard == [(0, 4), (3, 4), (4, 4)]
    assert (embed.embedded, embed.cached, embed.empty) == (4, 0, 1)


def test_what_the_cache_holds_is_not_embedded(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        first = Embedder("letters", Letters(), store.vectors)
        before = first(["a", "bc"])
        heard = list[tuple[int, int]]()
        raw = Letters()
        second = Embedder("letters", raw, store.vectors, lambda done, total: heard.append((done, total)))
        after = second(["bc", "d", "a", "a"])
        assert raw.asked == [["d"]] and (second.cached, second.embedded) == (2, 1)
        assert (after[[2, 0]] == before).all() and (after[3] == after[2]).all()
        assert heard == [(2, 3), (3, 3)]
        other = Letters()
        other.name = "letters@2"
        assert Embedder("letters", other, store.vectors)(["a"]).any() and other.asked == [["a"]]


def test_another_process_embeds_nothing_again(tmp_path: Path) -> None:
    program = """
import sys
from pluribus.embedders import open_embedder
from pluribus.store import Store
with Store.open(sys.argv[1]) as store:
    embed = open_embedder("hashing", cache=store.vectors)
    vectors = embed([f"text {i % 700} ½" for i in range(1500)] + [""])
    print(embed.embedded, embed.cached, repr(float(vectors[699] @ vectors[0])))
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    said = [subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() for _ in range(2)]
    assert [words[:2] for words in said] == [["700", "0"], ["0", "700"]]
    assert said[0][2] == said[1][2]


def test_a_vector_that_is_not_finite_is_named_and_not_kept(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        embed = Embedder("broken", Broken(), store.vectors)
        with pytest.raises(DataError, match=r"broken: the vector of the text 'poison' is not finite"):
            embed(["a", "poison"])
        with pytest.raises(DataError, match=r"'poison x+…' is not finite"):
            embed([f"poison {'x' * 500}"])
        store.flush()
        assert store.vectors.count() == 0


def test_a_model_that_changed_under_its_name_is_found_out(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        Embedder("letters", Letters(26), store.vectors)(["a"])
        with pytest.raises(DataError, match=r"letters: vectors have 3 and 26 dimensions; the text 'b' has 3; another"):
            Embedder("letters", Letters(3), store.vectors)(["a", "b"])


def test_a_vector_of_zeros_stays_one() -> None:
    assert not Embedder("letters", Letters())(["123"]).any()


def test_the_width_before_any_vector_came() -> None:
    embed = Embedder("letters", Letters())
    assert embed([]).shape == (0, 1) and embed(["", " "]).shape == (2, 1)


def test_names_with_address_and_options() -> None:
    spec = parse("openai/qwen/embed:8b@http://[::1]:8000/v1[dimensions=256,timeout_s=2.5]")
    assert (spec.member, spec.rest) == ("openai", "qwen/embed:8b")
    assert spec.options == {"dimensions": "256", "timeout_s": "2.5", "base_url": "http://[::1]:8000/v1"}
    assert spec.name == "openai/qwen/embed:8b[dimensions=256]"
    assert parse("openai/m@http://[::1]:8000/v1").options == {"base_url": "http://[::1]:8000/v1"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("minilmm", "unknown embedder 'minilmm'; did you mean 'minilm'\\? there are: hashing, minilm, openai/MODEL"),
        ("", "unknown embedder ''"),
        ("../store", "unknown embedder '..'"),
        ("minilm[dimension=3]", "unknown option of minilm 'dimension'; .*there are: batch, device"),
        ("minilm@http://127.0.0.1:1", "'minilm' has an address, but it runs in this process"),
        ("minilm/other", "write minilm, or sentence_transformers/MODEL"),
        ("hashing/x", "write hashing"),
        ("hashing[dimensions=0]", "dimensions is 0; expected 1 or more"),
        ("hashing[dimensions=many]", "dimensions is 'many'; expected a whole number"),
        ("hashing[dimensions=true]", "dimensions is 'true'; expected a whole number"),
        ("hashing[dimensions=3,x]", "option 'x' has no value; write \\[NAME=VALUE"),
        ("openai", "write openai/text-embedding-3-small"),
        ("openai/m[encoding=hex]", "expected base64 or float"),
        ("openai/m[timeout_s=0]", "expected seconds above 0"),
        ("openai/m[timeout_s=nan]", "timeout_s is 'nan'; expected a number"),
        ("openai/m@http://", "is 'http://', which is no address"),
        ("sentence_transformers", "names no model"),
        ("sentence_transformers/a/b[dtype=int4]", "expected one of float32, float16, bfloat16"),
        ("sentence_transformers/a/b[trust_remote_code=yes]", "trust_remote_code is 'yes'; expected true or false"),
        ("sentence_transformers/not a name", "can not be loaded"),
    ],
)
def test_names_that_are_refused(name: str, message: str) -> None:
    with pytest.raises((UnknownName, ConfigError), match=message):
        open_embedder(name)


def test_opening_costs_nothing_heavy() -> None:
    code = (
        "import sys; from pluribus.embedders import open_embedder; from pluribus.store import Store\n"
        "for name in ('hashing', 'minilm', 'openai/m'): open_embedder(name)\n"
        "print(*{m.split('.')[0] for m in sys.modules})"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "pluribus" in loaded
    assert not set(loaded) & {"numpy", "torch", "transformers", "sentence_transformers", "openai"}
