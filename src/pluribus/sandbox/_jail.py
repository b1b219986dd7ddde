"""The command lines of the jails."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pluribus.errors import MissingSandbox

Kind = Literal["bubblewrap", "rlimit"]
Allow = bool | Literal["rlimit"]

NOBODY = "65534"
_MEBI = 1 << 20
_STAGE = "/mnt"
"""Where an interpreter that only root can reach is bound, in a mount namespace of the run's own."""
_PACKAGES = ("site-packages", "dist-packages")
_PROGRAM = "/program.py"
_BIND = f'mount --bind "$1" {_STAGE} && shift && exec "$@"'


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use."""

    wall_s: float = 20.0
    """Seconds from start to end; twice the processor's, so that a busy machine does not decide what is right."""
    cpu_s: int = 10
    """Seconds of processor time, for each of its processes."""
    memory_mb: int = 1024
    """MiB of address space for each process, and of memory for all of them together."""
    processes: int = 64
    """Processes and threads at a time."""
    output_kb: int = 64
    """KiB of standard output, and as many of standard error."""
    files_mb: int = 64
    """MiB that it may hold in /tmp, and as many in shared memory."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A jail that works on this machine."""

    kind: Kind
    limits: Limits = field(default_factory=Limits)
    prefix: tuple[str, ...] = ()
    """What comes before the jail's own command line: as root, the way to nobody."""
    python: str = "/usr/bin/python3"
    """The interpreter, as the jail sees it."""
    binds: tuple[tuple[str, str], ...] = ()
    """Folders → where the jail sees them, read-only."""
    hidden: tuple[str, ...] = ()
    """Folders the jail sees empty: packages that happen to be installed are no part of what a program may count on."""


def candidates(kind: Kind) -> Iterator[Sandbox]:
    """Jails that may work here: with the Python that runs this, without its packages; else with the system's.

    Raises MissingSandbox where a program is missing.
    """
    if sys.platform != "linux":
        raise MissingSandbox("model-written programs run on Linux only", hint="use a Linux machine or container")
    needed = {"bubblewrap": ("bwrap",), "rlimit": ()}[kind]
    for name in (*needed, "prlimit", *(("setpriv",) if os.geteuid() == 0 else ())):
        _path(name)
    yield _own_python(kind)
    if (python := shutil.which("python3", path="/usr/bin")) is not None:
        yield Sandbox(kind, prefix=_as_nobody(), python=python, hidden=_packages(Path("/usr")))


def _own_python(kind: Kind) -> Sandbox:
    home = Path(sys.base_prefix).resolve()
    python = str(home / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}")
    hidden = _packages(home)
    if kind == "rlimit" or home.is_relative_to("/usr"):
        return Sandbox(kind, prefix=_as_nobody(), python=python, hidden=hidden)
    if os.geteuid() != 0 or all(folder.stat().st_mode & 0o001 for folder in (home, *home.parents)):
        return Sandbox(kind, prefix=_as_nobody(), python=python, binds=((str(home), str(home)),), hidden=hidden)
    staged = (_path("unshare"), "--mount", "/bin/sh", "-c", _BIND, "sh", str(home))
    return Sandbox(kind, prefix=(*staged, *_as_nobody()), python=python, binds=((_STAGE, str(home)),), hidden=hidden)


def _packages(home: Path) -> tuple[str, ...]:
    """Where an interpreter keeps packages that are not its own."""
    found = (home.glob(f"{place}/python3*/{name}") for place in ("lib", "local/lib") for name in _PACKAGES)
    return tuple(sorted(str(folder) for folders in found for folder in folders))


def _as_nobody() -> tuple[str, ...]:
    """As root, privileges are dropped before anything else: no limit on processes holds for root."""
    if os.geteuid() != 0:
        return ()
    return (_path("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--")


def _path(program: str) -> str:
    if (found := shutil.which(program)) is not None:
        return found
    package = "bubblewrap" if program == "bwrap" else "util-linux"
    weaker = ", or allow the weaker sandbox, limits without walls, with --allow-code-execution=rlimit"
    raise MissingSandbox(
        f"model-written programs need {package}, and {program} is not installed",
        hint=f"install it (apt install {package}){weaker if program == 'bwrap' else ''}",
    )


def command(box: Sandbox, limits: Limits, program: int, info: int) -> list[str]:
    """The whole command line.

    Args:
        program: the handle that the source is read from.
        info: the handle that bubblewrap writes its namespace's first process to, as JSON.
    """
    walls = _walls(box, limits, program, info) if box.kind == "bubblewrap" else []
    source = _PROGRAM if box.kind == "bubblewrap" else f"/dev/fd/{program}"
    return [*box.prefix, *walls, *_limited(limits), box.python, "-s", "-P", source]


def _walls(box: Sandbox, limits: Limits, program: int, info: int) -> list[str]:
    size = str(limits.files_mb * _MEBI)
    system = [part for folder in ("/bin", "/lib", "/lib64") for part in _system(folder)]
    return [
        _path("bwrap"), "--unshare-all", "--unshare-user", "--disable-userns", "--new-session", "--die-with-parent",
        "--ro-bind", "/usr", "/usr", *system,
        *(part for bind in box.binds for part in ("--ro-bind", *bind)),
        *(part for folder in box.hidden for part in ("--tmpfs", folder, "--remount-ro", folder)),
        "--dev", "/dev", "--size", size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev",  # noqa: S108  # the jail's own
        "--size", size, "--tmpfs", "/tmp", "--chdir", "/tmp",  # noqa: S108  # the jail's own
        "--file", str(program), _PROGRAM, "--remount-ro", "/", "--info-fd", str(info), "--",
    ]  # fmt: skip


def _system(folder: str) -> tuple[str, ...]:
    """A system folder as it is here: a link into /usr on newer systems."""
    path = Path(folder)
    if path.is_symlink():
        return ("--symlink", str(path.readlink()), folder)
    return ("--ro-bind", folder, folder) if path.exists() else ()


def _limited(limits: Limits) -> list[str]:
    """Set inside the walls, so that the processes counted are those of this jail."""
    return [
        _path("prlimit"),
        f"--as={limits.memory_mb * _MEBI}",
        f"--cpu={limits.cpu_s}:{limits.cpu_s + 1}",
        f"--nproc={limits.processes}",
        f"--fsize={limits.files_mb * _MEBI}",
        "--nofile=256",
        "--core=0",
        "--",
    ]
