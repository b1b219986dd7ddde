"""The console script as a process: start, help, signals, pipes, bugs."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pluribus as package
from pluribus.cli import BROKEN_PIPE, BUG, INTERRUPTED

Run = Callable[..., Any]
COMMAND = [sys.executable, "-c", "import sys; from pluribus.cli import main; sys.exit(main())"]


def test_version_and_help(pluribus: Run) -> None:
    assert pluribus("version").out == pluribus("--version").out == f"pluribus {package.__version__}\n"
    for arguments in ([], ["--help"]):
        said = pluribus(*arguments)
        assert said.code == 0
        assert "doctor" in said.out
    assert "--agent-models" in pluribus("run", "--help").out


def test_help_loads_nothing_heavy() -> None:
    heavy = "{'torch', 'transformers', 'openai', 'pandas', 'pyarrow', 'numpy'}"
    code = f"import sys; from pluribus.cli import main; main(['run', '--help']); print(*{heavy} & {{*sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].strip() == ""


def test_a_broken_pipe_is_quiet() -> None:
    process = subprocess.Popen([*COMMAND, "list", "methods"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout and process.stderr
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) == BROKEN_PIPE
    process.stderr.close()


def test_on_a_terminal_there_is_a_bar_that_is_gone_in_the_end(council: Run) -> None:
    file = council(models=[{"model": "scripted/number", "latency_s": 0.2}])
    screen = on_a_terminal([*COMMAND, "run", str(file)], columns=80)
    assert "━" in screen
    assert "/12 questions" in screen
    assert "0:0" in screen
    assert screen.rindex("━") < screen.index("95 % interval")
    assert max(map(len, re.split(r"[\r\n]+", _ESCAPES.sub("", screen)))) <= 80


_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_a_terminal(command: list[str], columns: int) -> str:
    """What a process writes to a terminal of so many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    written = b""
    try:
        while part := os.read(ours, 65536):
            written += part
    except OSError:  # how Linux says that the other end was closed
        pass
    finally:
        os.close(ours)
    assert process.wait(60) == 0
    return written.decode()


def test_an_interrupted_run_says_how_to_go_on_and_keeps_what_it_has(pluribus: Run, council: Run) -> None:
    slow = {"model": "scripted/number", "latency_s": 0.5, "latency_sigma": 2.5}
    file = council(models=[slow], method="single")
    process = subprocess.Popen(
        [*COMMAND, "run", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a shell that starts these tests in the background lets them ignore SIGINT, and children inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    _wait_for_answers(Path(os.environ["PLURIBUS_HOME"]) / "store.db")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == INTERRUPTED
    last = err.splitlines()[-1]
    assert last.startswith("pluribus: interrupted; ")
    name = last.rpartition(" ")[2]
    assert last.endswith(f"go on with: pluribus run --resume {name}")
    stored = int(last.split()[2])
    assert 0 < stored < 12
    assert pluribus("list", "runs", "--json").object[0]["status"] == "stopped"


def _wait_for_answers(database: Path) -> None:
    import sqlite3

    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if database.is_file():
            with sqlite3.connect(database) as db:
                try:
                    if db.execute("SELECT count(*) FROM transcripts").fetchone()[0]:
                        return
                except sqlite3.OperationalError:
                    pass  # the tables are being made
        time.sleep(0.05)
    raise AssertionError("no answer was stored in a minute")


def test_a_bug_is_one_line_unless_the_traceback_is_wanted(tmp_path: Path) -> None:
    # a plugin that breaks on import stands for any error nobody foresaw
    folder = tmp_path / "broken_plugin-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-plugin\nVersion: 1\n", "utf-8")
    (folder / "entry_points.txt").write_text("[pluribus.methods]\nbroken = broken_plugin\n", "utf-8")
    (tmp_path / "broken_plugin.py").write_text("raise ZeroDivisionError('on import')\n", "utf-8")
    command = [*COMMAND, "show", "prompt", "broken"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    quiet = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert quiet.returncode == BUG
    assert quiet.stderr.startswith("pluribus: ZeroDivisionError: on import; this is a bug")
    assert len(quiet.stderr.splitlines()) == 1
    loud = subprocess.run(
        command, capture_output=True, text=True, env={**environment, "PLURIBUS_DEBUG": "1"}, check=False
    )
    assert "Traceback" in loud.stderr
