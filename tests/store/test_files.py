"""Files that take their name when they are whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pluribus.errors import StoreError
from pluribus.store.files import whole


def write(path: Path) -> None:
    with whole(path) as part:
        part.write_text("new", "utf-8")


def test_a_file_is_replaced_at_once(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("old", "utf-8")
    write(tmp_path / "a.json")
    assert (tmp_path / "a.json").read_text("utf-8") == "new" and list(tmp_path.iterdir()) == [tmp_path / "a.json"]


def test_what_is_no_file_stays_what_it_is(tmp_path: Path) -> None:
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    os.mkfifo(pipe)
    folder.mkdir()
    for path, what in ((pipe, "no plain file"), (folder, "a folder"), (Path(), "a folder")):
        with pytest.raises(StoreError, match=f"can not be written: it is {what}"):
            write(path)
    assert pipe.is_fifo() and folder.is_dir()


def test_processes_that_write_the_same_at_once_do_not_meet(tmp_path: Path) -> None:
    """As those of a training that each write the prompts of a task."""
    file = tmp_path / "prompts.jsonl"
    code = (
        "import sys; from pathlib import Path; from pluribus.store.files import whole\n"
        "for _ in range(300):\n"
        "    with whole(Path(sys.argv[1])) as part: part.write_text('one\\ntwo\\n')\n"
        "    assert Path(sys.argv[1]).read_text() == 'one\\ntwo\\n'\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(file)]) for _ in range(3)]
    assert [one.wait(60) for one in running] == [0, 0, 0]
    assert [*tmp_path.iterdir()] == [file]
