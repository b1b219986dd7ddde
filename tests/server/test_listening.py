"""The door of a service: what it is called by, and what is said of one that can not be opened."""

from __future__ import annotations

import socket

import pytest

from pluribus.errors import ConfigError
from pluribus.server.listening import address, listen


def test_a_free_port_is_named() -> None:
    with listen("127.0.0.1", 0) as door:
        assert address("127.0.0.1", door) == f"http://127.0.0.1:{door.getsockname()[1]}"
        assert address("::1", door).startswith("http://[::1]:")
        assert socket.gethostname() in address("0.0.0.0", door)


def test_a_port_in_use_is_said_in_one_line() -> None:
    with listen("127.0.0.1", 0) as door:
        port = door.getsockname()[1]
        with pytest.raises(ConfigError) as caught:
            listen("127.0.0.1", port)
    said = f"nothing can be served at 127.0.0.1, port {port}: address already in use; take another with --port"
    assert str(caught.value) == said


@pytest.mark.parametrize("host", ["a..b", "x" * 300, "not an address", "256.0.0.1.0"])
def test_a_host_that_is_none_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match=r"--host .*: no such address"):
        listen(host, 0)
