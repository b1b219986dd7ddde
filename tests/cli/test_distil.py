"""`pluribus distil`: rows of stored runs in a file, what is said about them, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pluribus.engines.asyncio import block
from pluribus.judge_config import make_judges
from pluribus.judging import candidates_of, reward_run
from pluribus.label import checked
from pluribus.steps import split_steps
from pluribus.store import Store
from pluribus.types import Label

Run = Callable[..., Any]
MODELS = [{"model": "scripted/keyed", "accuracy": p} for p in (0.8, 0.5, 0.3)]


@pytest.fixture
def name(pluribus: Run, council: Run) -> str:
    config = council(models=MODELS, method="debate", settings={"debate_rounds": 1})
    found: str = pluribus("run", config, "--json").object["run"]
    return found


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "rows.jsonl"


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def mark_steps(run: str) -> None:
    """What `pluribus label --steps` leaves: each reply's one step is as good as the reply."""
    with Store.open() as store:
        for part in candidates_of(store, run, every=True):
            for one in block(checked(part.question, part.key, part.transcript)):
                n = len(split_steps(part.transcript.turns[one.turn].text))
                labels = [Label(one.attempt_id, one.turn, one.correct, step, checker="steps") for step in range(n)]
                store.put_records("label", [(one.attempt_id, label) for label in labels])


# --- the views -------------------------------------------------------------------------------------------------------


def test_one_right_reply_a_question(pluribus: Run, name: str, out: Path) -> None:
    said = pluribus("distil", name, "--view", "rsft", "--out", out)
    assert said.code == 0, said
    found = read(out)
    assert f"{name}: view rsft: {len(found)} rows on {len(found)} of 12 questions" in said.out
    for part in (f"written: {out}: {len(found)} rows", "corrective (wrong the round before): 0.", "chosen, words",
                 "is held against no test set: task jsonl has no split to test on", "scripted/keyed"):  # fmt: skip
        assert part in said.out, part
    assert len({row["question_id"] for row in found}) == len(found) > 6
    for row in found:
        right = int(row["question_id"][1:]) + 1
        assert f"{{final answer: {right}}}" in row["completion"][0]["content"]
        assert row["prompt"][0]["content"].startswith(f"{right - 1} + 1?")
        assert (row["view"], row["task"]) == ("rsft", "jsonl") and row["model"].startswith("scripted/keyed")


def test_an_object_says_the_same(pluribus: Run, name: str, out: Path) -> None:
    said = pluribus("distil", name, "--view", "da", "--per-question", "2", "--out", out, "--json").object
    found = read(out)
    assert said["rows"] == len(found) and said["runs"] == [name] and said["view"] == "da"
    assert said["questions"] == {"asked": 12, "covered": len({row["question_id"] for row in found})}
    assert said["corrective"] == sum(row["corrective"] for row in found) / len(found)
    assert sum(said["models"].values()) == len(found) and said["tokens"] is None
    assert said["length"]["words"]["chosen"]["mean"] > 0 and said["length"]["tokens"] == {}
    assert said["left_out"] and said["checked"] == [] and len(said["notes"]) == 1


def test_a_corrective_reply_counts_more_often(pluribus: Run, name: str, out: Path) -> None:
    pluribus("distil", name, "--view", "rsft", "--out", out)
    once = read(out)
    pluribus("distil", name, "--view", "rsft", "--corrective-weight", "3", "--out", out)
    assert read(out) == [row for row in once for _ in range(3 if row["corrective"] else 1)]
    assert any(row["corrective"] for row in once)


def test_answers_alone(pluribus: Run, name: str, out: Path) -> None:
    assert pluribus("distil", name, "--view", "answers", "--out", out).code == 0
    for row in read(out):
        assert row["completion"] == [
            {"role": "assistant", "content": f"{{final answer: {int(row['question_id'][1:]) + 1}}}"}
        ]


def test_marked_steps(pluribus: Run, name: str, out: Path) -> None:
    mark_steps(name)
    said = pluribus("distil", name, "--view", "steps", "--out", out)
    assert said.code == 0 and "steps: " in said.out and "replies with a bad step: 0." in said.out
    for row in read(out):
        assert set(row["labels"]) == {row["correct"]} and len(row["labels"]) == len(row["completions"])
        assert isinstance(row["prompt"], str)


def test_pairs_are_those_of_prefer(pluribus: Run, name: str, out: Path, tmp_path: Path) -> None:
    other = tmp_path / "pairs.jsonl"
    assert pluribus("prefer", name, "--out", other).code == 0
    assert pluribus("distil", name, "--view", "preferences", "--out", out).code == 0
    assert out.read_bytes() == other.read_bytes()


def test_pairs_keep_to_the_councils_limit_of_disagreement(pluribus: Run, name: str, out: Path, tmp_path: Path) -> None:
    judges = [{"role": "teacher", "kind": "score", "model": "scripted/keyed"},
              {"role": "critic", "kind": "score", "model": "scripted/number"}]  # fmt: skip
    with Store.open() as store:
        block(reward_run(store, name, make_judges({"judges": judges, "threshold": 0.02, "max_rounds": 0}, "test")))
    other = tmp_path / "pairs.jsonl"
    first = pluribus("prefer", name, "--out", other)
    second = pluribus("distil", name, "--view", "preferences", "--out", out)
    assert (first.code, second.code) == (0, 0), (first, second)
    assert out.read_bytes() == other.read_bytes() and "pairs with too much disagreement" in second.out


def test_several_runs_pool_their_replies(pluribus: Run, council: Run, name: str, out: Path) -> None:
    other = pluribus("run", council(models=MODELS[:1], seed=7), "--json").object["run"]
    said = pluribus("distil", name, other, name, "--view", "rsft", "--out", out, "--json").object
    assert said["runs"] == [name, other] and said["questions"]["asked"] == 12
    alone = pluribus("distil", other, "--view", "rsft", "--out", out, "--json").object
    assert said["questions"]["covered"] >= alone["questions"]["covered"]


def test_an_exported_run_is_a_run(pluribus: Run, name: str, out: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    assert pluribus("export", name, "--out", path).code == 0
    assert pluribus("distil", name, "--view", "rsft", "--out", out).code == 0
    before = out.read_bytes()
    assert pluribus("distil", path, "--view", "rsft", "--out", out).code == 0
    assert out.read_bytes() == before


# --- what is held against it -----------------------------------------------------------------------------------------


def test_a_question_of_an_evaluation_set_is_left_out(pluribus: Run, name: str, out: Path, lines: Run) -> None:
    known = lines([{"question": "3 + 1? [KEY:  4]"}, {"question": "Something else?"}], "known.jsonl")
    said = pluribus("distil", name, "--view", "rsft", "--check-against", known, "--out", out)
    assert f"held against {known} (2 questions): 1 equal left out; 13-word runs in common" in said.out
    assert "note:" not in said.out
    assert "q3" not in {row["question_id"] for row in read(out)}


def test_a_generated_tasks_own_test_split_is_looked_at(pluribus: Run, out: Path) -> None:
    run = pluribus(
        "run", "--task", "sums", "--split", "train", "--limit", "3", "--agent-models", "scripted/number", "--json"
    ).object["run"]
    said = pluribus("distil", run, "--view", "gold", "--out", out, "--json").object
    (found,) = said["checked"]
    assert (found["name"], found["questions"], found["equal"]) == ("sums@test", 5000, 0)
    assert said["rows"] == 3 and said["notes"] == []
    assert all(row["split"] == "train" for row in read(out))


def test_a_run_on_test_questions_is_refused(pluribus: Run, out: Path, lines: Run) -> None:
    run = pluribus("run", "--task", "sums", "--limit", "3", "--agent-models", "scripted/number", "--json").object["run"]
    complaint = pluribus("distil", run, "--view", "gold", "--out", out).complaint()
    assert f"run {run} was made on sums@test: a test question is never trained on; run the council on" in complaint
    assert not out.exists()
    other = lines([{"question": "Something else?"}], "mine.jsonl")
    assert pluribus("distil", run, "--view", "gold", "--check-against", other, "--out", out).code == 0


# --- how much, and for whom ------------------------------------------------------------------------------------------


def test_equal_tokens(pluribus: Run, name: str, out: Path) -> None:
    count = ("--tokenizer", "zoo/qwen")
    whole = pluribus("distil", name, "--view", "rsft", *count, "--out", out, "--json").object
    limit = whole["tokens"] // 2
    part = pluribus("distil", name, "--view", "rsft", *count, "--max-tokens", str(limit), "--out", out, "--json").object
    assert 0 < part["tokens"] <= limit and part["rows"] + part["beyond"] == whole["rows"]
    assert part["length"]["tokens"]["chosen"]["mean"] * part["rows"] == pytest.approx(part["tokens"])


def test_datasets_reads_every_view_without_a_null(pluribus: Run, name: str, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    mark_steps(name)
    for view in ("rsft", "da", "answers", "steps", "preferences"):
        out = tmp_path / f"{view}.jsonl"
        assert pluribus("distil", name, "--view", view, "--out", out).code == 0
        found = datasets.load_dataset("json", data_files=str(out), split="train", cache_dir=str(tmp_path / "cache"))
        assert found.num_rows == len(read(out))
        for column in found.column_names:
            assert None not in found[column], (view, column)


def test_other_trainers_formats(pluribus: Run, name: str, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    for _ in range(2):  # the second time over its own
        said = pluribus("distil", name, "--view", "da", "--format", "verl", "--out", path, "--json")
        assert said.code == 0, said
    rows = parquet.read_table(path).to_pylist()
    assert len(rows) == said.object["rows"]
    assert rows[0]["reward_model"] == {
        "style": "rule",
        "ground_truth": str(int(rows[0]["extra_info"]["question_id"][1:]) + 1),
    }
    out = tmp_path / "rows.jsonl"
    for format in ("prime-rl", "verifiers", "trl"):
        assert pluribus("distil", name, "--view", "rsft", "--format", format, "--out", out).code == 0
        assert {"prime-rl": "info", "verifiers": "answer", "trl": "view"}[format] in read(out)[0]


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--view", "rft"), "unknown view 'rft'; did you mean 'rsft'? there are: answers, da, gold, preferences, rsft"),
        ((), "--view is missing; say what to take: answers, da, gold"),
        (("--view", "da", "--per-question", "0"), "view da: per_question is 0; expected 1, 2 or 3"),
        (("--view", "da", "--per-question", "4"), "view da: per_question is 4; expected 1, 2 or 3"),
        (("--view", "rsft", "--per-question", "2"), "--per-question 2 does nothing with --view rsft; it is for da,"),
        (("--view", "gold", "--corrective-weight", "2"), "--corrective-weight 2 does nothing with --view gold"),
        (("--view", "rsft", "--corrective-weight", "0"), "view rsft: corrective_weight is 0; expected 1 or more"),
        (("--view", "da", "--near-duplicates", "1.5"), "view da: near_duplicates is 1.5; expected a share above 0"),
        (("--view", "rsft", "--step-labels", "judge"), "--step-labels judge does nothing with --view rsft"),
        (("--view", "rsft", "--max-tokens", "100"), "--max-tokens 100 counts tokens; say whose: --tokenizer MODEL"),
        (("--view", "rsft", "--max-examples", "0"), "--max-examples is 0; expected 1 or more"),
        (("--view", "rsft", "--max-overlap", "2"), "--max-overlap is 2; expected a share from 0 to 1"),
        (("--view", "rsft", "--tokenizer", "scripted/number"), "--tokenizer scripted/number: this service counts no"),
        (("--view", "steps", "--format", "verifiers"), "--format verifiers holds demonstrations, and --view steps"),
        (("--view", "rsft", "--format", "verl"), "it writes Parquet: name the file .parquet"),
        (("--view", "rsft", "--check-against", "none.jsonl"), "none.jsonl: there is no such file"),
        (("--view", "rsft", "--check-against", "summs"), "unknown task 'summs'; did you mean 'sums'?"),
        (("--view", "steps"), "replies without labels of their steps: 72); label the steps of its replies with: pluri"),
        (("--view", "gold"), "questions without a worked solution: 12); take a task that publishes worked solutions"),
    ],
)
def test_bad_input_gets_one_line(pluribus: Run, name: str, out: Path, flags: tuple[str, ...], complaint: str) -> None:
    assert complaint in pluribus("distil", name, *flags, "--out", out).complaint()
    assert not out.exists()


def test_a_run_is_named_and_there(pluribus: Run, out: Path, name: str) -> None:
    assert "no run is named" in pluribus("distil", "--view", "rsft", "--out", out).complaint()
    assert "unknown run 'nobody'" in pluribus("distil", "nobody", "--view", "rsft", "--out", out).complaint()
    assert "--out is missing" in pluribus("distil", name, "--view", "rsft").complaint()


def test_without_keys_and_labels_nothing_is_right(pluribus: Run, lines: Run, out: Path) -> None:
    data = lines([{"question": f"{i} + 1?"} for i in range(3)], "open.jsonl")
    run = pluribus(
        "run", "--task", "jsonl", "--data", data, "--agent-models", "scripted/number", "--num-agents", "2", "--json"
    ).object["run"]
    for view in ("rsft", "da", "answers"):
        complaint = pluribus("distil", run, "--view", view, "--out", out).complaint()
        assert f"view {view} takes nothing of {run}" in complaint and f"pluribus label {run} --judge MODEL" in complaint
    complaint = pluribus("distil", run, "--view", "preferences", "--out", out).complaint()
    assert "replies without reward, label and verdict: 6" in complaint and f"pluribus reward {run}" in complaint


def test_runs_of_different_tasks_are_refused(pluribus: Run, name: str, out: Path) -> None:
    other = pluribus(
        "run", "--task", "logic", "--split", "train", "--limit", "2", "--agent-models", "scripted/number", "--json"
    ).object["run"]
    complaint = pluribus("distil", name, other, "--view", "rsft", "--out", out).complaint()
    assert f"the runs are of different tasks: {name} asked jsonl, {other} asked logic" in complaint


def test_nothing_but_older_rows_is_written_over(pluribus: Run, name: str, tmp_path: Path) -> None:
    for file, text in (("notes.jsonl", '{"note": 1}\n'), ("words.jsonl", "words")):
        path = tmp_path / file
        path.write_text(text)
        complaint = pluribus("distil", name, "--view", "rsft", "--out", path).complaint()
        assert f"--out {path} is there already and is no file of training rows" in complaint
        assert path.read_text() == text
    complaint = pluribus("distil", name, "--view", "rsft", "--out", tmp_path).complaint()
    assert "name the file .jsonl" in complaint or "is a folder" in complaint
