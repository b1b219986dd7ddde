"""Worker processes: what hangs, dies or waits is ended, replaced and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import pluribus.answers
from pluribus.answers._pool import Pool
from pluribus.errors import UsageError

FORMULAS = Path(pluribus.answers.__file__).with_name("_formula_worker.py")
PROGRAM = """
import json, os, sys, time
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    job = json.loads(line)
    time.sleep(job.get("sleep_s", 0))
    if job.get("die"):
        os._exit(3)
    print(json.dumps({"double": 2 * job.get("number", 0), "pid": os.getpid()}), flush=True)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "worker.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def pool(program: Path) -> Iterator[Pool]:
    found = Pool(program, size=2, wall_s=30)
    yield found
    found.close()


def _runs(pid: int) -> bool:
    """Whether there is such a process, a zombie included."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_workers_are_started_when_there_is_work_and_are_kept(pool: Pool) -> None:
    assert pool.processes() == []
    first, second = pool.ask({"number": 1}).value, pool.ask({"number": 2}).value
    assert first is not None and second is not None
    assert (first["double"], second["double"]) == (2, 4)
    assert pool.processes() == [first["pid"]] == [second["pid"]], "one job after the other needs one worker"


def test_threads_share_the_workers_and_replies_keep_their_order(pool: Pool) -> None:
    jobs = [{"number": n, "sleep_s": 0.01 * (n % 3)} for n in range(20)]
    with ThreadPoolExecutor(4) as threads:
        values = [reply.value or {} for reply in threads.map(pool.ask, jobs)]
    assert [value["double"] for value in values] == [2 * n for n in range(20)]
    assert len({value["pid"] for value in values}) == 2


async def test_inside_a_running_event_loop(pool: Pool) -> None:
    direct = pool.ask({"number": 1})
    in_threads = await asyncio.gather(*(asyncio.to_thread(pool.ask, {"number": n}) for n in range(4)))
    assert [(reply.value or {})["double"] for reply in (direct, *in_threads)] == [2, 0, 2, 4, 6]


def test_a_worker_that_passes_the_wall_clock_limit_is_killed_and_replaced(program: Path) -> None:
    pool = Pool(program, size=1, wall_s=0.3)
    before = (pool.ask({}).value or {})["pid"]
    assert pool.ask({"sleep_s": 60}).failure == "timeout"
    assert not _runs(before), "killed and waited for: not even a zombie is left"
    assert (pool.ask({"number": 4}).value or {})["double"] == 8
    pool.close()


def test_a_job_that_kills_its_worker_is_a_failure_and_the_next_one_works(pool: Pool) -> None:
    reply = pool.ask({"die": True})
    assert (reply.value, reply.failure) == (None, "died")
    assert (pool.ask({"number": 4}).value or {})["double"] == 8


def test_a_worker_ended_from_outside_while_it_waits_costs_no_job(pool: Pool) -> None:
    pid = (pool.ask({}).value or {})["pid"]
    os.kill(pid, signal.SIGKILL)
    assert (pool.ask({"number": 4}).value or {})["double"] == 8


def test_close_ends_all_workers_and_a_late_reply_does_not_keep_one(program: Path) -> None:
    pool = Pool(program, size=2, wall_s=30)
    with ThreadPoolExecutor(1) as thread:
        late = thread.submit(pool.ask, {"sleep_s": 0.3})
        idle = (pool.ask({}).value or {})["pid"]
        pool.close()
        busy = (late.result().value or {})["pid"]
    assert not _runs(idle)
    assert not _runs(busy)


def test_a_program_that_does_not_start_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_package")
    with pytest.raises(UsageError, match=r"broken\.py did not start"):
        Pool(tmp_path / "broken.py").ask({})


def test_processor_time_ends_a_formula_whose_evaluation_takes_too_long() -> None:
    pool = Pool(FORMULAS, size=1, cpu_s=0.5)
    assert pool.ask({"expression": r"\sum_{k=1}^{10000000} \frac{1}{k^2+k+1}"}).failure == "timeout"
    assert pool.ask({"expression": "1+1"}).value == {"number": "2/1"}
    pool.close()


AFTER_A_FORK = r"""
import os
from pluribus.answers import canonical, latex
from pluribus.types import Question
q = Question("q", "t", "Solve.", "latex")
canonical(q, r"1+\sqrt{2}")
child = os.fork()
if child == 0:
    ok = canonical(q, r"\sqrt{8}") == r"2 \sqrt{2}"
    latex.close()
    os._exit(0 if ok else 1)
assert os.waitpid(child, 0)[1] == 0
assert canonical(q, r"\sqrt{12}") == r"2 \sqrt{3}"
"""


def test_a_forked_child_starts_workers_of_its_own() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", AFTER_A_FORK], check=True, timeout=120)


KILLED = r"""
import os, signal, sys
from pluribus.answers import canonical, latex
from pluribus.types import Question
canonical(Question("q", "t", "Solve.", "latex"), r"\pi/6")
print(*latex._pool().processes(), flush=True)
if sys.argv[1] == "True":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("kill", [False, True])
def test_no_worker_outlives_its_parent(kill: bool) -> None:
    """Also not when the parent is killed and can clean up nothing; a program without a `__main__` guard works."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", KILLED, str(kill)], capture_output=True, text=True, timeout=120
    )
    assert run.stderr == ""
    (pid,) = map(int, run.stdout.split())
    for _ in range(200):
        if not _alive(pid):
            return
        time.sleep(0.05)
    raise AssertionError("the worker still runs")


def _alive(pid: int) -> bool:
    """Whether the process runs; one that nobody waits for may stay as a zombie where no init reaps it."""
    state = Path(f"/proc/{pid}/stat")
    return _runs(pid) and not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")
