"""The page as a process that is killed after every verdict, and what it refuses from outside."""

from __future__ import annotations

import re
import signal
import socket
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from tests.review.desk import plant, said, varied
from tests.review.server import Server, serving

pytest.importorskip("fastapi")


def ask(server: Server, path: str, data: dict[str, str] | None = None, **headers: str) -> tuple[int, str, str]:
    """Status, address after redirects, and text."""
    base = server.address.partition("?")[0].rstrip("/")
    body = None if data is None else urllib.parse.urlencode(data).encode()
    request = urllib.request.Request(base + path, body, {"Origin": base, **headers})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.url, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.url, error.read().decode()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def test_no_verdict_is_lost_when_the_server_is_killed_after_each(tmp_path: Path) -> None:
    plant(tmp_path, varied(3))
    port, given = free_port(), []
    for choice in ("first", "tie", "second"):
        with serving(tmp_path, "--reviewer", "Ada", "--port", str(port)) as server:
            _, at, _ = ask(server, "/")
            pair = at.rpartition("/")[2]
            status, _, text = ask(server, f"/pair/{pair}", {"choice": choice})
            server.kill()
        assert status == 200 and "You said" in text
        given.append((pair, choice))
        assert [(v.pair, v.choice) for v in said(tmp_path)] == given
    assert len({pair for pair, _ in given}) == 3, "what is decided never comes again"
    with serving(tmp_path, "--reviewer", "Ada") as server:
        assert "3 pairs to review, 0 open" in server.said
        assert "All done" in ask(server, "/")[2]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_without_a_word_when_it_is_told_to(tmp_path: Path, number: signal.Signals) -> None:
    plant(tmp_path, varied(1))
    with serving(tmp_path, "--reviewer", "Ada") as server:
        assert ask(server, "/")[0] == 200
        server.process.send_signal(number)
        server.process.wait(60)
    assert (server.process.returncode, server.complaints) == (0, "")


def test_beyond_this_machine_a_token_is_made_and_asked_for(tmp_path: Path) -> None:
    plant(tmp_path, varied(1))
    with serving(tmp_path, "--reviewer", "Ada", "--host", "0.0.0.0") as server:
        found = re.search(r":(\d+)/\?token=(\S{20,})", server.said)
        assert found
        here = Server(server.process, f"http://127.0.0.1:{found[1]}/", "")
        assert ask(here, "/")[0] == 401
        assert ask(here, "/?token=wrong")[0] == 401
        assert ask(here, "/stats", Cookie="pluribus-review-pass=0")[0] == 401
        assert ask(here, f"/?token={found[2]}")[0] == 200


def test_a_token_with_signs_of_an_address_is_written_so_that_the_link_works(tmp_path: Path) -> None:
    plant(tmp_path, varied(1))
    with serving(tmp_path, "--reviewer", "Ada", "--token", "a b&c#d+é") as server:
        query = server.address.partition("?")[2]
        assert ask(server, "/")[0] == 401
        assert ask(server, f"/?{query}")[0] == 200


def test_a_visitor_who_goes_away_in_the_middle_of_a_form_leaves_no_trace(tmp_path: Path) -> None:
    plant(tmp_path, varied(1))
    with serving(tmp_path, "--reviewer", "Ada") as server:
        at = urllib.parse.urlsplit(ask(server, "/")[1])
        with socket.create_connection((at.hostname or "", at.port or 0)) as visitor:
            head = f"POST {at.path} HTTP/1.1\r\nHost: {at.netloc}\r\nOrigin: http://{at.netloc}\r\n"
            visitor.sendall(f"{head}Content-Length: 100\r\n\r\nchoice=first".encode())
        assert ask(server, "/stats")[0] == 200
    assert (server.process.returncode, server.complaints, said(tmp_path)) == (0, "", [])


def test_strangers_are_refused_on_this_machine_too(tmp_path: Path) -> None:
    plant(tmp_path, varied(1))
    with serving(tmp_path, "--reviewer", "Ada") as server:
        pair = ask(server, "/")[1].rpartition("/")[2]
        assert ask(server, "/", Host="evil.example")[0] == 400
        assert ask(server, f"/pair/{pair}", {"choice": "first"}, Origin="http://evil.example")[0] == 403
    assert said(tmp_path) == []
