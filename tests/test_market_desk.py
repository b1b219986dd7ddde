"""The recipe of the market desk, in a small form, on the zoo's real models."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pluribus.stats import mcnemar
from pluribus.tasks import load_task

pytest.importorskip("torch", reason="the zoo runs on torch: pip install 'pluribus[local]'")


@pytest.fixture(scope="module")
def recipe() -> ModuleType:
    path = Path(__file__).parents[1] / "recipes" / "market_desk.py"
    spec = importlib.util.spec_from_file_location("market_desk", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["market_desk"] = module  # where its records look their types up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("desk")


@pytest.fixture(scope="module")
def ran(recipe: ModuleType, folder: Path) -> tuple[list[Any], str]:
    """The table's lines and what was printed, of one small run."""
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        table = recipe.main(["--questions", "20", "--k", "1", "3", "--out", str(folder)])
    return table, shown.getvalue()


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_the_desk_prints_its_table_and_says_what_it_is_not(ran: tuple[list[Any], str]) -> None:
    table, shown = ran
    assert shown.startswith("Research text about made-up firms; nothing here is trading advice.")
    assert "180 calls" in shown and "expected calibration error" in shown
    assert [(line.who, line.k, line.calls) for line in table[-2:]] == [("desk", 1, 3), ("desk", 3, 9)]
    assert {line.who for line in table} == {"market", "strategy", "risk", "desk"}
    assert all(len(line.right) == 20 for line in table)
    assert table[-1].accuracy > 0.5, "better than one label for everything"


def test_the_log_holds_every_decision_and_the_texts_it_rests_on(ran: tuple[list[Any], str], folder: Path) -> None:
    log, texts = read(folder / "decisions.jsonl"), read(folder / "evidence.jsonl")
    assert [entry["question_id"] for entry in log] == [f"briefs/test/{i}" for i in range(20)]
    assert {"decision", "confidence", "dissent", "votes", "evidence"} <= set(log[0])
    assert [entry["by_k"]["3"] for entry in log] == [entry["decision"] for entry in log]
    assert [id for entry in log for id in entry["evidence"]] == [text["id"] for text in texts]
    assert len(texts) == 180


def test_maj_at_1_is_the_share_of_right_draws(ran: tuple[list[Any], str], folder: Path) -> None:
    """The exact column against plain counting, from the log alone."""
    keys = {question.id: key.answer for question, key in load_task("briefs", limit=20).pairs if key}
    market = [text for text in read(folder / "evidence.jsonl") if text["analyst"] == "market"]
    right = sum(text["answer"] == keys[text["id"].rpartition("/market/")[0]] for text in market)
    assert (ran[0][0].who, ran[0][0].k) == ("market", 1)
    assert ran[0][0].exact == pytest.approx(right / 60)


def test_the_table_compares_with_the_smallest_k_and_adjusts_for_looking_often(recipe: ModuleType) -> None:
    worse, better = (0.0,) * 10 + (1.0,) * 10, (1.0,) * 20
    table = [
        recipe.Line("desk", 1, worse, 3, None),
        recipe.Line("desk", 3, better, 9, None),
        recipe.Line("desk", 5, worse, 15, None),
    ]
    head, base, gained, same = recipe.show(table)
    assert "+0.500" in gained and "+0.000" in same and "+" not in base
    p = mcnemar(better, worse).p
    assert gained.endswith(f"{2 * p:.4f}") and same.endswith("1.0000") and head.endswith("p")


def test_the_screen_explains_its_columns_and_keeps_them_apart(ran: tuple[list[Any], str], folder: Path) -> None:
    _, shown = ran
    assert "maj@k: the mean over every choice of k draws" in shown and "McNemar" in shown
    assert "calibrated on the first 10  mean 0." in shown
    assert shown.rstrip().endswith(f"texts: {folder / 'evidence.jsonl'}")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--k", "0"], "--k 0: an analyst is asked at least once"),
        (["--k", "-1", "3"], "--k -1: an analyst is asked at least once"),
        (["--questions", "0"], "limit must be at least 1, found 0"),
        (["--temperature", "0", "--questions", "2"], "is asked 9 times at temperature 0"),
        (["--task", "nope"], "unknown task 'nope'"),
        (["--out", __file__], "the folder"),
    ],
)
def test_wrong_input_is_one_line_and_no_call(arguments: list[str], expected: str) -> None:
    path = Path(__file__).parents[1] / "recipes" / "market_desk.py"
    ran = subprocess.run([sys.executable, path, *arguments], capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert expected in ran.stderr.splitlines()[-1] and "Traceback" not in ran.stderr


def difference(*folders: Path) -> subprocess.CompletedProcess[str]:
    path = Path(__file__).parents[1] / "recipes" / "desk_difference.py"
    return subprocess.run([sys.executable, path, *folders], capture_output=True, text=True, timeout=120)


@pytest.mark.usefixtures("ran")
def test_two_desks_are_compared_brief_by_brief(folder: Path, tmp_path: Path) -> None:
    """The other one always knows the label, but for a brief at which a call failed."""
    key = {
        question.id: pair.answer for question, pair in load_task("briefs", "test", limit=20).pairs if pair is not None
    }
    before = read(folder / "decisions.jsonl")
    after = [one | {"decision": key[one["question_id"]], "share": 1.0} for one in before]
    after[3]["failures"] = ["timeout"]
    (tmp_path / "decisions.jsonl").write_text("".join(json.dumps(one) + "\n" for one in after), "utf-8")
    right = [one["decision"] == key[one["question_id"]] for place, one in enumerate(before) if place != 3]
    said = difference(folder, tmp_path).stdout
    assert "19 briefs" in said and f"accuracy 1.000 against {sum(right) / 19:.3f}" in said
    assert f"only one of them right: {19 - sum(right)} and 0" in said
    assert "+0.000 [" in difference(folder, folder).stdout


def test_a_folder_without_decisions_is_named(tmp_path: Path) -> None:
    found = difference(tmp_path, tmp_path)
    assert found.returncode == 2
    assert found.stderr.splitlines()[-1].endswith("name a folder that recipes/market_desk.py wrote")
