"""The fake server on real HTTP: what it answers, what it breaks, what it counts, and that it ends."""

import asyncio
import base64
import http.client
import json
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pluribus.errors import ConfigError, UnknownName
from pluribus.fake_server import FAULTS, Behaviour, FakeServer, check


def post(url: str, **fields: Any) -> tuple[int, dict[str, str], bytes]:
    """Status, headers in lower case and body of one chat request."""
    body = {"model": "m", "messages": [{"role": "user", "content": "how many are 2 and 2?"}], **fields}
    connection = http.client.HTTPConnection(url.split("/")[2], timeout=60)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        response = connection.getresponse()
        return response.status, {k.lower(): v for k, v in response.getheaders()}, response.read()
    finally:
        connection.close()


def embedded(url: str, texts: Any, **fields: Any) -> tuple[int, Any]:
    """Status and body of one embeddings request."""
    connection = http.client.HTTPConnection(url.split("/")[2], timeout=60)
    try:
        connection.request("POST", "/v1/embeddings", json.dumps({"model": "m", "input": texts, **fields}))
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def said(url: str, **fields: Any) -> str:
    text: str = json.loads(post(url, **fields)[2])["choices"][0]["message"]["content"]
    return text


async def burst(url: str, bodies: list[bytes]) -> list[int]:
    """Statuses of requests sent at once, each on its own connection; 0 for a cut one."""
    host, port = url.split("/")[2].split(":")

    async def one(body: bytes) -> int:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        line = await reader.readline()
        writer.close()
        await writer.wait_closed()
        return int(line.split()[1]) if line else 0

    return list(await asyncio.gather(*map(one, bodies)))


def numbered(count: int) -> list[bytes]:
    return [
        json.dumps({"model": "m", "messages": [{"role": "user", "content": f"number {i}"}]}).encode()
        for i in range(count)
    ]


def test_the_same_request_gets_the_same_answer_and_another_another() -> None:
    with FakeServer() as server:
        first = said(server.url, seed=1)
        assert said(server.url, seed=1) == first
        assert len({said(server.url, seed=seed) for seed in range(5)}) > 1
    with FakeServer() as again:
        assert said(again.url, seed=1) == first
    with FakeServer(seed=7) as other:
        assert said(other.url, seed=1) != first


def test_keyed_answers_are_right_at_the_asked_rate() -> None:
    with FakeServer(answers="keyed", accuracy=0.7) as server:
        messages = [{"role": "user", "content": "What is it? [key: 57,500]"}]
        right = sum("{final answer: 57,500}" in said(server.url, messages=messages, seed=i) for i in range(300))
    assert 180 < right < 240


def test_echo_and_constant_and_token_counts() -> None:
    with FakeServer(answers="echo") as server:
        reply = json.loads(post(server.url, max_tokens=3)[2])
    assert reply["choices"][0] == {
        "index": 0,
        "message": {"role": "assistant", "content": "how many are"},
        "finish_reason": "length",
    }
    assert reply["usage"]["prompt_tokens"] == 6 and reply["usage"]["completion_tokens"] == 3
    with FakeServer(answers="constant", text="yes") as server:
        assert said(server.url) == "yes"


def test_log_probabilities_have_the_shape_of_openai_and_vllm() -> None:
    said = {"role": "assistant", "content": "perhaps so"}
    asked = {"messages": [{"role": "user", "content": "is it?"}, said], "prompt_logprobs": 1, "max_tokens": 1}
    with FakeServer(answers="constant", text="Yes indeed") as server:
        choice = json.loads(post(server.url, logprobs=True, top_logprobs=2)[2])["choices"][0]
        given = json.loads(post(server.url, continue_final_message=True, add_generation_prompt=False, **asked)[2])
        closed = json.loads(post(server.url, **asked)[2])
    first, second = choice["logprobs"]["content"]
    assert (first["token"], second["token"], len(first["top_logprobs"])) == ("Yes", "indeed", 2)
    assert first["top_logprobs"][0] == {"token": "Yes", "logprob": -0.375, "bytes": [89, 101, 115]}
    start, *places = given["prompt_logprobs"]
    own = [max(place.values(), key=lambda one: one["rank"]) for place in places]
    assert start is None and [one["decoded_token"] for one in own[-3:]] == ["<|assistant|>", "perhaps", " so"]
    assert own[-2]["logprob"] == -0.875 and {one["rank"] for one in places[-2].values()} == {1, 7}
    assert closed["prompt_logprobs"][-1].keys() and len(closed["prompt_logprobs"]) == len(given["prompt_logprobs"]) + 1


def test_a_server_that_gives_no_log_probabilities() -> None:
    with FakeServer(logprobs=False) as server:
        reply = json.loads(post(server.url, logprobs=True, top_logprobs=2, prompt_logprobs=1)[2])
    assert "logprobs" not in reply["choices"][0] and reply["prompt_logprobs"] is None


def test_embeddings_depend_on_the_text_alone_and_come_in_both_encodings() -> None:
    with FakeServer() as server:
        status, reply = embedded(server.url, ["two pears", "one apple"])
        rows = {row["index"]: row["embedding"] for row in reply["data"]}
        assert status == 200 and reply["model"] == "m" and reply["usage"] == {"prompt_tokens": 4, "total_tokens": 4}
        alone = embedded(server.url, "one apple")[1]["data"][0]["embedding"]
        assert alone == rows[1] != rows[0] and abs(sum(x * x for x in alone) - 1) < 1e-9
        packed = embedded(server.url, "one apple", encoding_format="base64")[1]["data"][0]["embedding"]
        unpacked = struct.unpack(f"<{len(alone)}f", base64.b64decode(packed))
        assert max(abs(x - y) for x, y in zip(unpacked, alone, strict=True)) < 1e-6
        assert len(embedded(server.url, "one apple", dimensions=7)[1]["data"][0]["embedding"]) == 7
        assert server.stats()["kinds"] == {"ok": 4} and server.stats()["paths"] == {"/v1/embeddings": 4}


def test_embeddings_it_refuses() -> None:
    with FakeServer(models=("m",)) as server:
        for texts in ([], [""], ["x"] * 2049, [[1, 2]], "word " * 8192, None):
            assert embedded(server.url, texts)[0] == 400
        assert embedded(server.url, "x", model="other")[0] == 404
        assert server.stats()["kinds"] == {"400": 6, "404": 1}
    with FakeServer(api_key="k") as server:
        assert embedded(server.url, "x")[0] == 401


def test_every_fault_at_rate_one_and_its_count() -> None:
    statuses = {"429": 429, "500": 500}
    for fault in FAULTS:
        with FakeServer(faults={fault: 1.0}, slow_s=0.1, retry_after_s=0.5) as server:
            if fault == "cut":
                with pytest.raises((http.client.HTTPException, ConnectionError)):
                    post(server.url)
            else:
                status, headers, _ = post(server.url)
                assert status == statuses.get(fault, 200)
                assert headers.get("retry-after") == ("0.5" if fault == "429" else None)
            assert server.stats()["kinds"] == {fault: 1}


async def test_faults_come_at_their_rate_and_do_not_depend_on_the_order() -> None:
    seen = []
    for bodies in (numbered(300), numbered(300)[::-1]):
        with FakeServer(faults={"429": 0.2, "500": 0.1}) as server:
            statuses = await burst(server.url, bodies)
            seen.append(statuses if bodies == numbered(300) else statuses[::-1])
    assert seen[0] == seen[1]
    assert 40 < seen[0].count(429) < 80 and 15 < seen[0].count(500) < 45


def test_a_request_that_failed_may_succeed_when_it_comes_again() -> None:
    with FakeServer(faults={"500": 0.5}) as server:
        assert {post(server.url)[0] for _ in range(20)} == {200, 500}
        assert server.stats()["distinct"] == 1


async def test_capacity_turns_away_what_is_too_much() -> None:
    with FakeServer(latency_s=2.0, capacity=10) as server:
        statuses = await burst(server.url, numbered(30))
        stats = server.stats()
    assert statuses.count(200) == 10 and statuses.count(429) == 20
    assert stats["kinds"] == {"ok": 10, "capacity": 20} and stats["peak"] == 10


def test_latency_by_model() -> None:
    with FakeServer(latencies={"slow": 2}) as server:
        times = {}
        for model in ("slow", "m"):
            started = time.perf_counter()
            post(server.url, model=model)
            times[model] = time.perf_counter() - started
    assert times["slow"] >= 2 > times["m"]


def test_what_it_refuses() -> None:
    with FakeServer(models=("m",), rejecting=("m",), api_key="k") as server:
        assert post(server.url)[0] == 401
    with FakeServer(models=("m",), rejecting=("m",)) as server:
        assert post(server.url, model="other")[0] == 404
        status, _, body = post(server.url, max_tokens=5)
        assert status == 400 and b"max_completion_tokens" in body
        assert post(server.url, temperature=0.5)[0] == 400
        assert post(server.url, max_completion_tokens=5)[0] == 200
        assert post(server.url, messages=[])[0] == 400
        assert server.stats()["requests"] == 5


def test_two_requests_on_one_connection_and_a_body_in_pieces() -> None:
    with FakeServer() as server:
        connection = http.client.HTTPConnection(server.url.split("/")[2], timeout=60)
        body = numbered(1)[0]
        for _ in range(2):
            connection.putrequest("POST", "/v1/chat/completions")
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders()
            connection.send(body[:10])
            connection.send(body[10:])
            assert connection.getresponse().read().startswith(b'{"id"')
        connection.close()


def test_it_stops_with_the_block_and_its_port_is_closed() -> None:
    with FakeServer(latency_s=30) as server:
        host = server.url.split("/")[2]
    server.stop()
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection(host, timeout=60).request("GET", "/stats")


def test_it_ends_when_the_process_that_started_it_is_killed() -> None:
    program = (
        "from pluribus.fake_server import FakeServer; import time\n"
        "with FakeServer() as s:\n print(s.url, s._process.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    pid = int(parent.stdout.readline().split()[1])
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and _alive(pid):
        time.sleep(0.05)
    assert not _alive(pid)


def _alive(pid: int) -> bool:
    """Running: a zombie that nobody has reaped has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_command_line() -> None:
    command = [
        sys.executable,
        "-m",
        "pluribus.fake_server",
        "--port",
        "0",
        "--fault",
        "500=1",
        "--latency-of",
        "m=0.01",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    url = process.stdout.readline().strip()
    assert post(url)[0] == 500
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(60) == 0
    process.stdout.close()


def test_settings_that_can_not_be() -> None:
    with pytest.raises(UnknownName, match="unknown fault '503'"):
        FakeServer(faults={"503": 0.1})
    with pytest.raises(ConfigError, match="at most 1"):
        check(Behaviour(faults={"429": 0.6, "500": 0.6}))
    with pytest.raises(UnknownName, match="setting of the fake server 'latency'"):
        FakeServer(latency=1)
    with pytest.raises(UnknownName, match="kind of answer"):
        FakeServer(answers="right")
