"""Rewards over real HTTP: the same numbers as in Python, and only for those who may ask."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
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


BODY = {"prompts": ["How much is 1 + 1?"], "completions": ["2"]}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"prompts": [NaN], "completions": [1e999]}', 422),
        (b'{"\\ud800": [1], "completions": ["a"]}', 422),
        (b"[" * 100_000, 400),
        (b'{"prompts": [' + b"9" * 5000 + b'], "completions": ["a"]}', 400),
        (b'{"prompts": ["\xff"], "completions": ["a"]}', 400),
        (b'{"prompts": ["\\ud800"], "completions": ["\\udfff\\u0000"]}', 200),
    ],
)
def test_what_is_hardly_json_has_an_answer(served: Start, body: bytes, status: int) -> None:
    json = {"Content-Type": "application/json"}
    reply = httpx.post(f"{served()}/reward", content=body, headers=json, timeout=60)
    assert reply.status_code == status and reply.json()


def test_what_was_wrong_is_not_sent_back(served: Start) -> None:
    reply = httpx.post(f"{served()}/reward", json={"prompts": ["private words"], "completions": []})
    assert reply.status_code == 422 and "private" not in reply.text


def test_a_body_longer_than_any_batch_is_refused(served: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pluribus.server.reward.MOST_BYTES", 1000)
    url = served()
    assert httpx.post(f"{url}/reward", json=BODY, timeout=60).status_code == 200
    long = {"prompts": ["x" * 1000], "completions": ["y"]}
    reply = httpx.post(f"{url}/reward", json=long)
    assert reply.status_code == 413 and "at most 1,000 bytes" in reply.text


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://["}])
def test_a_page_of_another_site_spends_nothing(served: Start, headers: dict[str, str]) -> None:
    assert httpx.post(f"{served()}/reward", json=BODY, headers=headers).status_code == 403


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded"])
def test_what_a_form_can_send_is_no_batch(served: Start, kind: str) -> None:
    body = b'{"prompts": ["a"], "completions": ["b"]}'
    assert httpx.post(f"{served()}/reward", content=body, headers={"Content-Type": kind}).status_code == 422


def serving(rewarder: Path, port: int = 0) -> subprocess.Popen[str]:
    main = "import sys; from pluribus.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", main, "reward", "--serve", str(rewarder), "--port", str(port)]
    home = {"PLURIBUS_HOME": str(rewarder.parent / "home"), "PYTHONWARNINGS": "error"}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **home}
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_without_a_word_and_a_second_one_says_that_the_port_is_taken(
    tmp_path: Path, number: signal.Signals
) -> None:
    CouncilReward(CONFIG).save(tmp_path / "rewarder.json")
    process = serving(tmp_path / "rewarder.json")
    try:
        assert process.stdout is not None
        url = process.stdout.readline().removeprefix("rewards at ").strip()
        assert httpx.post(url, json=BODY, timeout=60).json()["rewards"] == [0.5625]
        second = serving(tmp_path / "rewarder.json", httpx.URL(url).port or 0)
        assert "address already in use; take another with --port" in second.communicate(timeout=60)[1]
        assert second.returncode == 2
        process.send_signal(number)
        assert (process.communicate(timeout=60)[1], process.returncode) == ("", 0)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def test_an_open_address_needs_a_token(tmp_path: Path) -> None:
    assert "127.0.0.1" in LOOPBACK
    with pytest.raises(ConfigError, match=r"--host is 0\.0\.0\.0, which others can reach, and there is no token"):
        serve(tmp_path / "rewarder.json", host="0.0.0.0")
    with pytest.raises(ConfigError, match="No such file"):
        serve(tmp_path / "rewarder.json")
