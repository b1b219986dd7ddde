"""The table of sweeps: one row a sweep, replaced as it goes on, found by name, id or beginning."""

from __future__ import annotations

from pathlib import Path

import pytest

from pluribus.errors import UnknownName
from pluribus.store import Store

CELLS = [{"label": "a", "run": "1", "status": "planned"}]


def test_a_sweep_comes_back_as_it_was_put_after_closing(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.sweeps.put("s1", "scaling", {"grid": {"num_agents": [2, 4]}}, CELLS)
    with Store.open(tmp_path) as store:
        row = store.sweeps.get("s1")
    assert (row.id, row.name, row.config) == ("s1", "scaling", {"grid": {"num_agents": [2, 4]}})
    assert list(row.cells) == CELLS


def test_putting_it_again_replaces_the_cells_and_keeps_its_time(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.sweeps.put("s1", "scaling", {}, CELLS)
        first = store.sweeps.get("s1")
        store.sweeps.put("s1", "scaling", {}, [{**CELLS[0], "status": "finished"}])
        again = store.sweeps.get("s1")
        assert len(store.sweeps.all()) == 1
    assert again.created == first.created
    assert again.cells[0]["status"] == "finished"


def test_it_is_found_by_name_id_or_beginning_and_the_latest_of_a_name_wins(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        store.sweeps.put("aa1", "scaling", {}, CELLS)
        store.sweeps.put("bb2", "scaling", {}, CELLS)
        store.sweeps.put("cc3", "seeds", {}, CELLS)
        assert store.sweeps.get("scaling").id == "bb2"
        assert store.sweeps.get("aa1").id == "aa1"
        assert store.sweeps.get("aa").id == "aa1"
        assert store.sweeps.get("see").id == "cc3"
        assert store.sweeps.get("sca").id == "bb2"
        with pytest.raises(UnknownName, match="unknown sweep 's'"):
            store.sweeps.get("s")
        with pytest.raises(UnknownName, match="did you mean 'scaling'"):
            store.sweeps.get("scalign")
        with pytest.raises(UnknownName):
            store.sweeps.get("")
