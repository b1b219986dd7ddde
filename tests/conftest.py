"""What all tests share: no test reaches beyond loopback, none sees the user's keys or workspace."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import hypothesis  # noqa: F401  # it looks who refers to what, and finds nobody among what is frozen below
import pytest

from pluribus import sandbox
from pluribus.agents import Agent
from pluribus.backends import Request
from pluribus.backends.scripted import Scripted
from pluribus.errors import BackendError
from pluribus.prompts import dialect
from pluribus.types import Question, Seat

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


LONGEST = ("test_walk.py", "test_members.py", "zoo/test_train.py", "processes.py", "cli/test_reward.py")
"""Files that take longest, begun first: none of several workers is left alone with one in the end."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests and all that they import stay to the end: nobody looks for garbage among them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.path.as_posix().endswith(LONGEST))


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_BASE_URL", "_BASE_URLS")) or name.startswith("AZURE_OPENAI"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PLURIBUS_HOME", str(tmp_path / "workspace"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    yield


@pytest.fixture
def shared_data() -> Path:
    """Recorded real outputs and benchmark questions, where a checkout has them beside it."""
    if not SHARED_DATA.is_dir():
        pytest.skip("no ../shared/data beside this checkout")
    return SHARED_DATA


@pytest.fixture
def question() -> Question:
    return Question("q1", "test", "Ann has 12 apples and buys 7 more. How many has she?", "number")


Reply = Callable[[Request], str | BackendError]


@pytest.fixture
def council() -> Callable[..., list[Agent]]:
    """A council of scripted agents: one reply function per seat; each agent's backend remembers what it was asked."""

    def make(*replies: Reply, words: str = "standard") -> list[Agent]:
        return [
            Agent(
                Seat(i, f"agent {i + 1}", f"scripted/seat{i}", dialect=words),
                Scripted(reply, model=f"scripted/seat{i}"),
                dialect(words),
            )
            for i, reply in enumerate(replies)
        ]

    return make


@pytest.fixture
def allowed() -> Iterator[None]:
    """Model-written programs may run, behind walls."""
    with sandbox.allowing(sandbox.sandbox(True)):
        yield
