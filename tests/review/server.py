"""`pluribus review` as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.review.desk import NAME

_MAIN = "import sys; from pluribus.cli import main; sys.exit(main(sys.argv[1:]))"


@dataclass
class Server:
    process: subprocess.Popen[str]
    address: str
    said: str
    complaints: str = ""
    """On stderr, once it has ended."""

    def kill(self) -> None:
        """As the power goes: nothing can be tidied up."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(30)


@contextmanager
def serving(home: Path, *flags: str) -> Iterator[Server]:
    """The page of the planted run, ready; it is stopped as Ctrl-C stops it."""
    command = [sys.executable, "-c", _MAIN, "review", NAME, "--home", str(home), *flags]
    if "--port" not in flags:
        command += ["--port", "0"]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "error"},
    )
    try:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if line.startswith("every verdict"):
                break
        found = re.search(r"open (http://\S+)", said)
        assert found, (said, process.stderr.read() if process.stderr and process.poll() is not None else "")
        server = Server(process, found[1], said)
        yield server
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        server.complaints = process.communicate(timeout=60)[1]
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=60)
