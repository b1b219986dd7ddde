"""Programs that try to get out, or to take more than they may: each ends in a record, and the host is as it was."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from pluribus.errors import CodeNotAllowed, MissingSandbox
from pluribus.sandbox import Limits, Run, Sandbox, allowed, allowing, cores, current, run_program, sandbox

CALM = Limits(wall_s=60, cpu_s=10)
"""Time enough on a busy machine, for programs that end by themselves."""
REPOSITORY = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's")
walls = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")


@pytest.fixture
def jail() -> Sandbox:
    return sandbox(True)


@pytest.fixture
def weak() -> Sandbox:
    return sandbox("rlimit")


@pytest.fixture
def mark() -> Iterator[str]:
    """Seconds to sleep that nobody else sleeps: a process's command line tells whose it is."""
    seconds = f"{uuid.uuid4().int % 10**6 + 10**6}.5"
    yield seconds
    assert not _alive(seconds)


def _alive(mark: str) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in words and b"sleep" in words:
            found.append(int(folder.name))
    return found


def _sleep(mark: str) -> str:
    return f"os.execv('/usr/bin/sleep', ['sleep', '{mark}'])"


async def _failing(box: Sandbox, code: str, error: str, limits: Limits = CALM) -> Run:
    run = await run_program(box, code, limits=limits)
    assert run.exit_code == 1 and run.stopped is None, run
    assert error in run.stderr.rstrip().rpartition("\n")[2], run.stderr
    return run


# --- what it is for --------------------------------------------------------------------------------------------------


@walls
async def test_a_program_reads_its_input_and_says_what_it_says(jail: Sandbox) -> None:
    run = await run_program(
        jail, "import sys\nprint(input()[::-1], 'é')\nsys.exit('no ' + input())", "abc\ndef\n", CALM
    )
    assert (run.exit_code, run.stdout, run.stderr, run.stopped, run.ok) == (1, "cba é\n", "no def\n", None, False)
    assert run.seconds > 0
    assert (await run_program(jail, "print(6 * 7)", limits=CALM)).ok


@walls
async def test_where_it_failed_stands_in_the_record(jail: Sandbox) -> None:
    run = await _failing(jail, "x = 1\n\ndef f():\n    return x / 0\n\nf()", "ZeroDivisionError: division by zero")
    assert 'File "/program.py", line 4, in f' in run.stderr
    assert "SyntaxError" in (await run_program(jail, "def f(:", limits=CALM)).stderr
    assert (await run_program(jail, "import os; os.abort()", limits=CALM)).exit_code == 128 + 6


@walls
async def test_output_that_is_no_text_is_kept_as_far_as_it_is(jail: Sandbox) -> None:
    run = await run_program(jail, "import os; os.write(1, b'a\\xffb')", limits=CALM)
    assert run.ok and run.stdout == "a\ufffdb"


@walls
async def test_a_program_says_the_same_each_time_and_sees_no_packages(jail: Sandbox) -> None:
    code = "print({'a', 'b', 'c', 'd'}, hash('x'))"
    assert (await run_program(jail, code, limits=CALM)).stdout == (await run_program(jail, code, limits=CALM)).stdout
    await _failing(jail, "import pytest", "ModuleNotFoundError")
    await _failing(jail, "import pluribus", "ModuleNotFoundError")
    assert (await run_program(jail, "import math, multiprocessing, sqlite3; exit(0)", limits=CALM)).ok


# --- getting out -----------------------------------------------------------------------------------------------------


@walls
async def test_no_network_not_even_this_machine_s_own(jail: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        name = f"\0pluribus-{uuid.uuid4()}"
        abstract.bind(name)
        abstract.listen()
        for listener in (server, abstract):
            listener.setblocking(False)
        port = server.getsockname()[1]
        await _failing(jail, f"import socket; socket.create_connection(('127.0.0.1', {port}))", "refused")
        await _failing(jail, f"import socket; socket.socket(socket.AF_UNIX).connect({name!r})", "refused")
        await _failing(jail, "import socket; socket.create_connection(('192.0.2.1', 80))", "unreachable")
        await _failing(jail, "import socket; socket.getaddrinfo('example.org', 80)", "resolution")
        for listener in (server, abstract):
            with pytest.raises(BlockingIOError):
                listener.accept()


@walls
async def test_nothing_outside_can_be_written(jail: Sandbox, tmp_path: Path) -> None:
    places = ["/", "/usr", "/usr/bin", "/dev", "/etc", "/root", "/home", "/var/tmp", str(Path.home()), str(REPOSITORY)]
    name = f"pluribus-{uuid.uuid4()}"
    code = f"""
import os
for place in {[*places, str(tmp_path), sys.base_prefix]!r}:
    try:
        os.makedirs(place, exist_ok=True)
        with open(os.path.join(place, {name!r}), "w") as file:
            file.write("x")
    except OSError:
        continue
    print(place)
with open("/tmp/{name}", "w") as file:
    file.write("here it may")
"""
    run = await run_program(jail, code, limits=CALM)
    assert run.ok
    # Below the jail's own /tmp it may make folders of any name; they are not the host's.
    assert [place for place in run.stdout.split() if not place.startswith("/tmp")] == []
    assert not any(Path(place, name).exists() for place in (*places, tmp_path, "/tmp"))  # noqa: ASYNC240  # local


@walls
async def test_nothing_of_the_host_can_be_read(jail: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("open sesame")
    secret.chmod(0o644)
    paths = [
        secret,
        "/etc/passwd",
        "/etc/shadow",
        "/etc/hostname",
        REPOSITORY / "pyproject.toml",
        Path.home() / ".bashrc",
    ]
    code = f"""
import os
for path in {[str(path) for path in paths]!r}:
    for trick in (path, "/tmp/.." + path, "/usr/../" + path):
        try:
            print(open(trick).read())
        except OSError as error:
            assert error.errno in (2, 13, 20), error
    os.symlink(path, "/tmp/link")
    try:
        print(open("/tmp/link").read())
    except OSError:
        pass
    os.remove("/tmp/link")
print(sorted(os.listdir("/tmp")), os.path.exists("/proc"), os.path.exists("/sys"))
"""
    run = await run_program(jail, code, limits=CALM)
    assert run.ok, run.stderr
    assert run.stdout == "[] False False\n"


@walls
async def test_no_key_stands_in_any_environment(jail: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLURIBUS_TEST_API_KEY", "sk-very-secret")
    code = """
import glob, os, subprocess
print(dict(os.environ))
print(subprocess.run(["env"], capture_output=True, text=True).stdout)
for path in glob.glob("/proc/*/environ"):
    print(open(path, "rb").read())
"""
    run = await run_program(jail, code, limits=CALM)
    assert run.ok and "PATH" in run.stdout
    assert "secret" not in run.stdout and "PLURIBUS" not in run.stdout


@walls
async def test_nobody_outside_can_be_killed(jail: Sandbox) -> None:
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    with subprocess.Popen([*nobody, "sleep", "100"]) as victim:  # noqa: ASYNC220  # its start is waited for anyhow
        code = f"""
import os, signal
for pid in ({victim.pid}, {os.getpid()}, {os.getppid()}, -{victim.pid}, -1, 1, os.getppid(), *range(2, 3000)):
    if pid in (os.getpid(), 0):
        continue
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
print("done")
"""
        run = await run_program(jail, code, limits=CALM)
        assert run.stdout == "done\n" or run.exit_code == 128 + 9
        assert victim.poll() is None
        victim.kill()


@walls
async def test_no_privilege_can_be_gained(jail: Sandbox) -> None:
    code = """
import os, subprocess
print(os.getuid(), os.geteuid(), os.getgroups() in ([], [65534]))
for get in (lambda: os.setuid(0), lambda: os.chroot("/tmp"), lambda: os.open("/dev/tty", os.O_RDWR)):
    try:
        get()
        print("got")
    except OSError:
        pass
print(subprocess.run(["unshare", "--user", "--map-root-user", "true"], capture_output=True).returncode)
print(subprocess.run(["mount", "-t", "tmpfs", "none", "/usr"], capture_output=True).returncode)
"""
    run = await run_program(jail, code, limits=CALM)
    assert run.ok, run.stderr
    who, namespace, mount = run.stdout.splitlines()
    uid = 65534 if os.geteuid() == 0 else os.geteuid()
    assert who.startswith(f"{uid} {uid}")
    assert namespace != "0" and mount != "0"


# --- taking too much -------------------------------------------------------------------------------------------------


@walls
async def test_an_endless_loop_ends_with_its_processor_time(jail: Sandbox) -> None:
    run = await run_program(jail, "while True: pass", limits=Limits(wall_s=120, cpu_s=1))
    assert (run.exit_code, run.stopped) == (None, "CPU time")


@walls
async def test_a_loop_that_will_not_hear_ends_too(jail: Sandbox) -> None:
    code = "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass"
    run = await run_program(jail, code, limits=Limits(wall_s=120, cpu_s=1))
    assert run.exit_code == 128 + 9 and not run.ok


@walls
@pytest.mark.parametrize("before", ["", "os.close(1)\nos.close(2)\n", "signal.alarm(0)\nos.setpgid(0, 0)\n"])
async def test_a_sleep_for_ever_ends_with_its_time(jail: Sandbox, mark: str, before: str) -> None:
    code = f"import os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{before}{_sleep(mark)}"
    run = await run_program(jail, code, limits=Limits(wall_s=1))
    assert (run.exit_code, run.stopped) == (None, "wall time")


@walls
@pytest.mark.parametrize("stream", ["stdout", "stderr"])
async def test_endless_output_is_cut_and_ended(jail: Sandbox, stream: str) -> None:
    run = await run_program(jail, f"import sys\nwhile True: sys.{stream}.write('x' * 1000)", limits=CALM)
    assert (run.exit_code, run.stopped) == (None, "output")
    assert getattr(run, stream) == "x" * 64 * 1024


@walls
async def test_much_output_and_then_an_end_is_too_much_as_well(jail: Sandbox) -> None:
    code = "import sys\nsys.stdout.write('x' * {})"
    assert (await run_program(jail, code.format(64 * 1024), limits=CALM)).ok
    assert (await run_program(jail, code.format(64 * 1024 + 1), limits=CALM)).stopped == "output"


@walls
async def test_a_memory_bomb_ends(jail: Sandbox) -> None:
    limits = Limits(wall_s=60, cpu_s=30, memory_mb=256)
    run = await run_program(jail, "x = []\nwhile True: x.append(bytearray(10**7))", limits=limits)
    assert (run.exit_code, run.stopped) == (None, "memory")
    assert "MemoryError" in run.stderr


@walls
async def test_memory_counts_over_all_processes(jail: Sandbox) -> None:
    code = "import os, time\nfor _ in range(9):\n    if os.fork() == 0: break\nx = bytearray(10**8)\ntime.sleep(1000)"
    run = await run_program(jail, code, limits=Limits(wall_s=60, memory_mb=256))
    assert (run.exit_code, run.stopped) == (None, "memory")


@walls
async def test_a_fork_bomb_does_not_get_far(jail: Sandbox, mark: str) -> None:
    code = f"""
import os
children = 0
while True:
    try:
        if os.fork() == 0:
            {_sleep(mark)}
        children += 1
    except BlockingIOError:
        break
print(children)
"""
    run = await run_program(jail, code, limits=CALM)
    assert run.ok, run.stderr
    assert 40 <= int(run.stdout) < 64


@walls
async def test_a_fork_bomb_that_does_not_care_ends_with_its_time(jail: Sandbox) -> None:
    code = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    assert (await run_program(jail, code, limits=Limits(wall_s=2))).stopped == "wall time"


@walls
async def test_one_jail_s_processes_do_not_count_against_another_s(jail: Sandbox, mark: str) -> None:
    full = f"import os\nfor _ in range(40):\n    if os.fork() == 0:\n        {_sleep(mark)}\n"
    runs = await asyncio.gather(
        *(run_program(jail, f"{full}\nimport time; time.sleep(1); print('all')", limits=CALM) for _ in range(2))
    )
    assert [run.stdout for run in runs] == ["all\n"] * 2


@walls
@pytest.mark.parametrize("folder", ["/tmp", "/dev/shm"])
async def test_files_have_a_limit(jail: Sandbox, folder: str) -> None:
    limits = Limits(wall_s=60, files_mb=4)
    await _failing(jail, f"open('{folder}/one', 'wb').write(bytes(5 << 20))", "File too large", limits)
    many = f"for i in range(9): open(f'{folder}/{{i}}', 'wb').write(bytes(1 << 20))"
    await _failing(jail, many, "No space left", limits)
    assert (await run_program(jail, f"open('{folder}/one', 'wb').write(bytes(3 << 20))", limits=limits)).ok


@walls
async def test_a_grandchild_that_went_its_own_way_is_gone(jail: Sandbox, mark: str) -> None:
    code = f"""
import os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        {_sleep(mark)}
    os._exit(0)
os.wait()
print("gone")
"""
    run = await run_program(jail, code, limits=CALM)
    assert run.ok and run.stdout == "gone\n"


@walls
async def test_a_run_that_is_cancelled_leaves_nothing(jail: Sandbox, mark: str) -> None:
    task = asyncio.create_task(run_program(jail, f"import os\n{_sleep(mark)}", limits=CALM))
    while not _alive(mark):  # noqa: ASYNC110  # another process is waited for, which sets no event
        await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@walls
async def test_as_many_run_at_a_time_as_there_are_cores(jail: Sandbox, mark: str) -> None:
    moment = f"0.0{mark.removesuffix('.5')}"
    code = f"import os\nos.execv('/usr/bin/sleep', ['sleep', '0.3', '{moment}'])"
    tasks = [asyncio.create_task(run_program(jail, code, limits=CALM)) for _ in range(3 * cores())]
    most = 0
    while not all(task.done() for task in tasks):
        most = max(most, len(_alive(moment)))
        await asyncio.sleep(0.02)
    assert 1 <= most <= cores()
    assert all(task.result().ok for task in tasks)


# --- without walls ---------------------------------------------------------------------------------------------------


async def test_the_weaker_sandbox_has_the_limits(weak: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLURIBUS_TEST_API_KEY", "sk-very-secret")
    run = await run_program(weak, "import os\nprint(os.getcwd() == os.environ['HOME'], dict(os.environ))", limits=CALM)
    assert run.ok and run.stdout.startswith("True") and "secret" not in run.stdout
    small = Limits(wall_s=120, cpu_s=1, memory_mb=256, output_kb=4)
    assert (await run_program(weak, "while True: pass", limits=small)).stopped == "CPU time"
    assert (await run_program(weak, "while True: print('x' * 100)", limits=small)).stopped == "output"
    assert (await run_program(weak, "x = bytearray(10**9)", limits=small)).stopped == "memory"
    assert (await run_program(weak, "import time; time.sleep(1000)", limits=Limits(wall_s=1))).stopped == "wall time"


async def test_the_weaker_sandbox_does_not_wait_for_what_is_left_behind(weak: Sandbox) -> None:
    code = "import os, time\nopen('left', 'w').close()\nif os.fork() == 0: time.sleep(1000)\nprint(os.getcwd())"
    run = await run_program(weak, code, limits=CALM)
    assert run.ok and run.seconds < CALM.wall_s
    assert not Path(run.stdout.strip()).exists()  # noqa: ASYNC240  # a local folder


# --- permission ------------------------------------------------------------------------------------------------------


def test_nothing_runs_unless_it_is_allowed() -> None:
    with pytest.raises(CodeNotAllowed, match="allow it with --allow-code-execution"):
        sandbox(False)
    assert allowed() is None
    with pytest.raises(CodeNotAllowed):
        current()


async def test_what_a_door_allows_holds_for_what_it_starts_and_no_longer() -> None:
    box = Sandbox("bubblewrap")

    async def method() -> Sandbox:
        await asyncio.sleep(0)
        return current()

    with allowing(box):
        assert await asyncio.gather(method(), method()) == [box, box]
        assert await asyncio.to_thread(allowed) is box
        with allowing(None):
            assert allowed() is None
    assert allowed() is None
    elsewhere: list[Sandbox | None] = []
    with allowing(box):
        thread = threading.Thread(target=lambda: elsewhere.append(allowed()))
        thread.start()
        thread.join()
    assert elsewhere == [None]


def test_without_bubblewrap_it_is_refused_with_what_to_do(tmp_path: Path) -> None:
    code = "from pluribus.sandbox import sandbox\nfrom pluribus.errors import MissingSandbox\n"
    code += "try: sandbox(True)\nexcept MissingSandbox as error: print(error)"
    run = subprocess.run([sys.executable, "-c", code], env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert run.stdout.strip() == (
        "model-written programs need bubblewrap, and bwrap is not installed; install it (apt install bubblewrap), or "
        "allow the weaker sandbox, limits without walls, with --allow-code-execution=rlimit"
    ), run.stderr


def test_a_bubblewrap_that_does_not_work_is_refused_with_its_own_words(tmp_path: Path) -> None:
    for name in ("setpriv", "prlimit", "unshare"):
        (tmp_path / name).symlink_to(shutil.which(name) or pytest.skip(f"{name} is not installed"))
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents[:-1]):
        folder.chmod(folder.stat().st_mode | 0o011) if os.geteuid() == 0 and folder.owner() != "nobody" else None
    code = "from pluribus.sandbox import sandbox\nfrom pluribus.errors import MissingSandbox\n"
    code += "try: sandbox(True)\nexcept MissingSandbox as error: print(error)"
    run = subprocess.run([sys.executable, "-c", code], env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert "the bubblewrap sandbox does not work here (bwrap: No permissions" in run.stdout, run
    assert run.stdout.strip().endswith("--allow-code-execution=rlimit")
    assert issubclass(MissingSandbox, Exception)
