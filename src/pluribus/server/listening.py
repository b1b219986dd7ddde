"""The door of a service: an address that is taken before anything is said of it, and an end without a complaint."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pluribus.errors import ConfigError, MissingDependency

if TYPE_CHECKING:
    from fastapi import FastAPI

PATIENCE_S = 5
"""How long requests that are under way when the service is stopped may take."""


def listen(host: str, port: int) -> socket.socket:
    """The address, taken: whoever calls it from now on waits for `serve`.

    Args:
        port: 0: any that is free.

    Raises ConfigError: there is no such address here, or it is in use.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:  # a name with an empty or an overlong part is no Unicode either
        reason = getattr(error, "strerror", None) or "not a name"
        raise ConfigError(f"--host {host}: no such address: {reason}", hint="try 127.0.0.1") from None
    try:
        return socket.create_server(address[:2], family=family, backlog=128)
    except PermissionError:
        raise ConfigError(f"port {port} may not be used by this user", hint="take one above 1023 with --port") from None
    except OSError as error:
        reason = (
            os.strerror(error.errno) if error.errno else str(error)
        ).lower()  # Python's words name the address too
        raise ConfigError(
            f"nothing can be served at {host}, port {port}: {reason}", hint="take another with --port"
        ) from None


def address(host: str, listening: socket.socket) -> str:
    """What others call it by; a service on every address of this machine goes by the machine's name."""
    name = socket.gethostname() if host in ("0.0.0.0", "::", "") else host  # noqa: S104 (compared, not bound)
    shown = f"[{name}]" if ":" in name else name
    return f"http://{shown}:{listening.getsockname()[1]}"


def serve(app: FastAPI, listening: socket.socket) -> None:
    """Answers on a socket until Ctrl-C or SIGTERM; what was asked before is answered first, for a few seconds."""
    try:
        import uvicorn
    except ModuleNotFoundError as missing:
        raise MissingDependency(missing.name or "uvicorn", "serve") from None
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, proxy_headers=False,
        timeout_graceful_shutdown=PATIENCE_S,
    )  # fmt: skip
    with contextlib.suppress(KeyboardInterrupt), _stopped_by_sigterm():
        uvicorn.Server(config).run(sockets=[listening])


@contextlib.contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """uvicorn ends in good order and then raises the signal again, which would end this process before its store."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
