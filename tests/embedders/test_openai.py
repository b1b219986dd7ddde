"""The `openai` embedder against real HTTP on loopback: batches, order, retries, every fault, no key in any of it."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pluribus.embedders import open_embedder
from pluribus.errors import (
    BackendError,
    BadReply,
    CallTimeout,
    ConfigError,
    ConnectionLost,
    RateLimited,
    Refused,
    ServerError,
    WrongModel,
)
from pluribus.fake_server import FakeServer
from pluribus.store import Store

KEY = "made-up-key-0123456789"
TEXTS = [f"{i} apples and {i * 3} pears" for i in range(40)]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    with FakeServer() as running:
        yield running


def test_batches_of_any_size_and_both_encodings_give_the_same_vectors(server: FakeServer) -> None:
    whole = open_embedder(f"openai/m@{server.url}")(TEXTS)
    for options in ("batch=7", "encoding=float", "batch=1,concurrency=3"):
        assert np.abs(open_embedder(f"openai/m@{server.url}[{options}]")(TEXTS) - whole).max() < 1e-6
    assert open_embedder(f"openai/m@{server.url}[dimensions=16]")(TEXTS).shape == (40, 16)


def test_so_many_requests_at_once_and_no_more() -> None:
    with FakeServer(latency_s=0.3) as server:
        open_embedder(f"openai/m@{server.url}[batch=5,concurrency=3]")(TEXTS)
        stats = server.stats()
    assert stats["paths"] == {"/v1/embeddings": 8} and stats["peak"] == 3  # 15, 15 and 10 texts, 5 a request


def test_a_request_holds_only_so_many_tokens(server: FakeServer) -> None:
    before = server.stats()["requests"]
    texts = [f"{i} " + "many words of a long text " * 700 for i in range(50)]  # 18 kB each, 0.9 MB in all
    open_embedder(f"openai/m@{server.url}")(texts)
    assert server.stats()["requests"] - before == 2


def test_a_text_beyond_the_window_is_sent_in_pieces(server: FakeServer) -> None:
    embed = open_embedder(f"openai/m@{server.url}")
    long = " ".join(f"word{i}" for i in range(9000))  # more than the server takes at once
    assert abs(np.linalg.norm(embed([long])) - 1) < 1e-9 and embed.windowed == 1
    with pytest.raises(Refused, match="maximum context length is 8192"):
        open_embedder(f"openai/m@{server.url}[window=100000]")([long])


def test_faults_that_pass_are_asked_again(server: FakeServer) -> None:
    expected = open_embedder(f"openai/m@{server.url}")(TEXTS)
    with FakeServer(faults={"429": 0.2, "500": 0.1, "cut": 0.1}, retry_after_s=0.01) as shaky:
        got = open_embedder(f"openai/m@{shaky.url}[batch=4,attempts=9]")(TEXTS)
        kinds = shaky.stats()["kinds"]
    assert np.abs(got - expected).max() < 1e-6
    assert kinds["ok"] == 10 and sum(kinds.values()) > 10


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("429", RateLimited),
        ("500", ServerError),
        ("slow", CallTimeout),
        ("cut", ConnectionLost),
        ("garbage", BadReply),
        ("empty_choices", BadReply),
        ("no_text", BadReply),
        ("wrong_model", WrongModel),
    ],
)
def test_a_fault_that_stays_is_an_error_without_the_key(fault: str, error: type[BackendError]) -> None:
    with FakeServer(faults={fault: 1.0}, slow_s=5, retry_after_s=0.01) as server:
        tries = 1 if fault == "slow" else 2
        timeout_s = 0.3 if fault == "slow" else 60
        with pytest.raises(error) as caught:
            open_embedder(f"openai/m@{server.url}[attempts={tries},timeout_s={timeout_s}]")(["a"])
    message = str(caught.value)
    assert message.startswith(f"openai/m at {server.url}")
    assert ("gave up after 2 tries" in message) == (error.retryable and fault != "slow")
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_a_wrong_key_and_a_server_that_is_not_there() -> None:
    with FakeServer(api_key="another") as server:
        url = server.url
        with pytest.raises(Refused, match="check the key in OPENAI_API_KEY") as caught:
            open_embedder(f"openai/m@{url}")(["a"])
    assert KEY not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(ConnectionLost, match="connection lost"):
        open_embedder(f"openai/m@{url}[attempts=1]")(["a"])


def test_address_and_key_come_from_the_environment(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.delenv("OPENAI_API_KEY")
    embed = open_embedder("openai/m")
    assert embed(["a"]).any()  # a server on this machine may do without a key
    with FakeServer(api_key="secret") as locked:
        monkeypatch.setenv("OPENAI_BASE_URL", locked.url)
        monkeypatch.setenv("MY_KEY", "secret")
        assert open_embedder("openai/m[api_key_env=MY_KEY]")(["a"]).any()
    monkeypatch.delenv("OPENAI_BASE_URL")
    with pytest.raises(ConfigError, match=r"the environment variable OPENAI_API_KEY is not set"):
        embed(["b"])


def test_what_the_cache_holds_needs_neither_server_nor_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(tmp_path) as store:
        with FakeServer() as server:
            before = open_embedder(f"openai/m@{server.url}", cache=store.vectors)(TEXTS)
        monkeypatch.delenv("OPENAI_API_KEY")
        assert (open_embedder("openai/m", cache=store.vectors)(TEXTS) == before).all()


async def test_inside_a_running_loop(server: FakeServer) -> None:
    assert open_embedder(f"openai/m@{server.url}")(TEXTS).shape[0] == 40
