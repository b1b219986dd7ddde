"""Rewards over real HTTP: the same numbers as in Python, and only for those who may ask."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from pluribus.errors import ConfigError
from pluribus.judge_config import make_judges
from pluribus.judging import CouncilReward
from pluribus.server.reward import LOOPBACK, app, serve

CONFIG = make_judges(
    {
        "judges": [
            {"role": "teacher", "model": "scripted/number"},
            {"role": "critic", "model": "scripted/keyed"},
            {"role": "diversity", "model": "scripted/broken"},
        ],
        "normalise": "none",
        "retries": 1,
        "max_rounds": 0,
    }
)
PROMPTS = ["How much is 1 + 1?", "How much is 2 + 2?", [{"role": "user", "content": "How much is 3 + 3?"}]]
REPLIES = ["2", "5", [{"role": "assistant", "content": "6"}]]
Start = Callable[..., str]


@pytest.fixture
def served() -> Iterator[Start]:
    running: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start(**options: Any) -> str:
        server = uvicorn.Server(uvicorn.Config(app(CouncilReward(CONFIG), **options), port=0, log_level="error"))
        thread = threading.Thread(target=server.run)
        thread.start()
        running.append((server, thread))
        while not server.started:
            time.sleep(0.01)
        return f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"

    yield start
    for server, thread in running:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


def test_the_numbers_are_those_of_python(served: Start) -> None:
    url = served()
    reply = httpx.post(f"{url}/reward", json={"prompts": PROMPTS, "completions": REPLIES}, timeout=60).json()
    rewards = asyncio.run(CouncilReward(CONFIG).rewards(PROMPTS, REPLIES))  # type: ignore[arg-type]
    assert reply["rewards"] == [one.value for one in rewards]
    assert [one["disagreement"] for one in reply["details"]] == [one.disagreement for one in rewards]
    assert reply["details"][0]["scores"]["diversity"] is None
    again = httpx.post(f"{url}/reward", json={"prompts": PROMPTS, "completions": REPLIES}, timeout=60).json()
    assert again == reply
    judges = httpx.get(f"{url}/health").json()["judges"]
    assert judges == ["teacher", "critic", "diversity"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"prompts": ["a", "b"], "completions": ["c"]}, "2 prompts and 1 completions"),
        ({"prompts": ["a"]}, "Field required"),
        ({"prompts": ["a"], "completions": [7]}, "valid string"),
        ({"prompts": ["a"], "completions": ["b"], "tempreature": 1}, "Extra inputs"),
    ],
)
def test_a_body_that_is_none_is_refused_by_name(served: Start, body: dict[str, Any], words: str) -> None:
    reply = httpx.post(f"{served()}/reward", json=body)
    assert reply.status_code == 422 and words in reply.text


def test_nobody_without_the_token_and_no_foreign_name(served: Start) -> None:
    url, body = served(token="open sesame"), {"prompts": ["a"], "completions": ["b"]}
    assert httpx.post(f"{url}/reward", json=body).status_code == 401
    wrong = httpx.post(f"{url}/reward", json=body, headers={"Authorization": "Bearer open"})
    assert wrong.status_code == 401 and "sesame" not in wrong.text
    right = httpx.post(f"{url}/reward", json=body, headers={"Authorization": "Bearer open sesame"}, timeout=60)
    assert right.status_code == 200
    assert httpx.get(f"{url}/health", headers={"Host": "evil.example"}).status_code == 400


def test_an_open_address_needs_a_token(tmp_path: Path) -> None:
    assert "127.0.0.1" in LOOPBACK
    with pytest.raises(ConfigError, match=r"--host is 0\.0\.0\.0, which others can reach, and there is no token"):
        serve(tmp_path / "rewarder.json", host="0.0.0.0")
    with pytest.raises(ConfigError, match="No such file"):
        serve(tmp_path / "rewarder.json")
