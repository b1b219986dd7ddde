"""What is done stays done: one JSON file a cell, written when it is finished. Private to `distil.py`."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Cell = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Cells:
    """A folder of finished cells; a kill loses at most the one that was being made."""

    folder: Path

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def make(self, name: str, maker: Callable[[], Cell]) -> Cell:
        """The stored cell; made first where there is none."""
        found = self.get(name)
        if found is not None:
            return found
        began = time.monotonic()
        cell = {**maker(), "seconds": round(time.monotonic() - began, 1), "made": now(), "machine": machine()}
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.path(name).with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(cell, ensure_ascii=False, indent=1) + "\n", "utf-8")
        part.replace(self.path(name))
        print(f"{now()} {name}: {cell['seconds']} s", flush=True)
        return cell

    def get(self, name: str) -> Cell | None:
        """None: not finished."""
        if not self.path(name).exists():
            return None
        cell: Cell = json.loads(self.path(name).read_text("utf-8"))
        return cell

    def names(self, start: str) -> list[str]:
        return sorted(path.stem for path in self.folder.glob(f"{start}*.json"))


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def machine() -> str:
    """Processor and cores, without the host's name."""
    return f"{processor()}, {os.cpu_count()} cores"


def processor() -> str:
    info = Path("/proc/cpuinfo")
    for line in info.read_text("utf-8").splitlines() if info.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
