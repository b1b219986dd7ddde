"""`pluribus analyze`: runs in, tables out, and what is wrong said in one line."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
ROUNDS = ["file", "round", "kind", "n_texts", "n_agents", "n_questions", "H", "Nstar", "delta"]
QUESTIONS = ["file", "q_idx", "n_agents", "H", "Nstar", "gini", "consensus", "acc01", "valid_answers"]


@pytest.fixture
def name(pluribus: Run, council: Run) -> str:
    file = council(method="debate", num_agents=3, settings={"debate_rounds": 1})
    return str(pluribus("run", file, "--json").object["run"])


@pytest.fixture
def other(pluribus: Run, council: Run) -> str:
    return str(pluribus("run", council(method="vote", num_agents=2), "--json").object["run"])


def table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_tables_have_the_columns_of_the_format_first(pluribus: Run, name: str, tmp_path: Path) -> None:
    out = tmp_path / "tables"
    said = pluribus("analyze", name, "--embedder", "hashing", "--output-dir", out)
    assert (said.code, said.err) == (0, "")
    whole = ["agent_table", "file_summary", "move_table", "question_table", "round_table"]
    assert sorted(path.name for path in out.iterdir()) == sorted(
        f"{n}.{kind}" for n in whole for kind in ("csv", "parquet")
    )
    rounds, questions = table(out / "round_table.csv"), table(out / "question_table.csv")
    assert list(rounds[0])[:9] == ROUNDS
    assert list(questions[0])[:9] == QUESTIONS
    assert [(row["file"], row["round"], row["kind"]) for row in rounds] == [
        (name, "0", "round_agent_avg"),
        (name, "1", "round_agent_avg"),
    ]
    assert len(questions) == 12
    assert all(float(row["Nstar"]) == pytest.approx(2 ** float(row["H"])) for row in rounds + questions)
    assert rounds[0]["delta"] == ""
    file = table(out / "file_summary.csv")[0]
    assert (file["file"], file["n_agents"], file["n_rounds"], file["embedder"]) == (name, "3", "2", "hashing")
    assert file["source"].startswith("run ")
    assert "round_agent_avg" in said.out
    assert str(out) in said.out


def test_parquet_holds_what_csv_holds(pluribus: Run, name: str, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    pluribus("analyze", name, "--embedder", "hashing", "--output-dir", tmp_path)
    rows = parquet.read_table(tmp_path / "question_table.parquet").to_pylist()
    assert [float(row["Nstar"]) for row in table(tmp_path / "question_table.csv")] == [row["Nstar"] for row in rows]


def test_without_a_folder_the_tables_are_in_the_workspace(pluribus: Run, name: str, tmp_path: Path) -> None:
    found = pluribus("analyze", name, "--embedder", "hashing", "--json").object
    folder = tmp_path / "workspace" / "analysis" / name
    assert {Path(path).parent for path in found["tables"]} == {folder}
    assert all(Path(path).is_file() for path in found["tables"])


def test_json_says_what_the_tables_say(pluribus: Run, name: str, tmp_path: Path) -> None:
    found = pluribus("analyze", name, "--embedder", "hashing", "--json", "--output-dir", tmp_path).object
    (run,) = found["runs"]
    assert run["Nstar"] == float(table(tmp_path / "file_summary.csv")[0]["Nstar"]) == run["rounds"][-1]["Nstar"]
    deltas = [float(row["delta_Nstar"]) for row in table(tmp_path / "agent_table.csv")]
    assert [row["delta_Nstar"] for row in run["agents"]] == deltas
    assert (run["n_questions"], run["n_texts"], found["robustness"]) == (12, 72, [])
    assert run["accuracy"] == pluribus("list", "runs", "--json").object[0]["accuracy"]


@pytest.mark.parametrize(
    ("said", "kind"),
    [("round_cum_text", "round_cumulative"), ("per_question_agent", "per_question"), ("per_question", "per_question")],
)
def test_the_published_names_of_the_modes(pluribus: Run, name: str, said: str, kind: str) -> None:
    run = pluribus("analyze", name, "--embedder", "hashing", "--mode", said, "--json").object["runs"][0]
    assert {run["mode"], *(row["kind"] for row in run["rounds"])} == {kind}


def test_the_last_text_alone(pluribus: Run, name: str) -> None:
    both = [
        pluribus("analyze", name, "--embedder", "hashing", "--text", text, "--json").object["runs"][0]
        for text in ("concat", "last")
    ]
    assert both[0]["Nstar_question"] != both[1]["Nstar_question"]
    assert both[0]["Nstar"] == both[1]["Nstar"]


def test_several_runs_are_lines_of_the_same_tables(pluribus: Run, name: str, other: str, tmp_path: Path) -> None:
    said = pluribus("analyze", name, other, name, "--embedder", "hashing", "--output-dir", tmp_path)
    assert [row["file"] for row in table(tmp_path / "file_summary.csv")] == [name, other]
    assert len(table(tmp_path / "question_table.csv")) == 24
    assert {row["file"] for row in table(tmp_path / "move_table.csv")} == {name}
    assert name in said.out
    assert other in said.out


def test_a_vote_has_no_table_of_moves(pluribus: Run, other: str, tmp_path: Path) -> None:
    pluribus("analyze", other, "--embedder", "hashing", "--output-dir", tmp_path)
    assert not (tmp_path / "move_table.csv").exists()


def test_several_embedders_are_compared(pluribus: Run, name: str, other: str, tmp_path: Path) -> None:
    names = "hashing,hashing[dimensions=64]"
    command = ("analyze", name, other, "--embedder", names, "--embedder", "hashing[dimensions=16]")
    out = tmp_path / "tables"
    found = pluribus(*command, "--output-dir", out, "--json").object
    rows = {(row["first"], row["second"], row["measure"]): row for row in found["robustness"]}
    assert len(rows) == 9
    assert rows["hashing", "hashing[dimensions=64]", "questions"]["rho"] > 0
    assert rows["hashing", "hashing[dimensions=64]", "questions"]["n"] == 24
    assert rows["hashing", "hashing[dimensions=64]", "Nstar"]["rho"] is None, "two runs are no ranking"
    assert len(table(out / "robustness.csv")) == 9
    assert len(table(out / "hashing" / "file_summary.csv")) == 2
    folders = {path.name for path in out.iterdir() if path.is_dir()}
    assert folders == {"hashing", "hashing-dimensions=64", "hashing-dimensions=16"}
    said = pluribus(*command)
    assert (said.code, "rank correlation" in said.out) == (0, True)


def test_an_exported_run_measures_the_same(pluribus: Run, name: str, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl.gz"
    assert pluribus("export", name, "--out", file).code == 0
    there, here = (
        pluribus("analyze", run, "--embedder", "hashing", "--json").object["runs"][0] for run in (file, name)
    )
    assert there["agents"] == here["agents"]
    assert there["rounds"] == here["rounds"]


def test_vectors_are_kept(pluribus: Run, name: str, tmp_path: Path) -> None:
    from pluribus.embedders import open_embedder
    from pluribus.store import Store

    pluribus("analyze", name, "--embedder", "hashing")
    with Store.open(tmp_path / "workspace") as store:
        text = next(t for a, _ in store.run_attempts(store.run(name).id) for t in store.transcripts([a])).turns[0].text
        embed = open_embedder("hashing", cache=store.vectors)
        embed([text])
        assert (embed.cached, embed.embedded) == (1, 0)


def test_omissions_are_said(pluribus: Run, council: Run, lines: Run) -> None:
    unkeyed = lines([{"id": f"q{i}", "question": f"{i} + 1?", "kind": "number"} for i in range(3)])
    file = council(method="vote", num_agents=2, data=str(unkeyed), models=["scripted/number"])
    name = pluribus("run", file, "--json").object["run"]
    said = pluribus("analyze", name, "--embedder", "hashing")
    assert said.code == 0
    assert "questions without a key: 3" in said.out


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--mode", "round_avg"), "unknown mode 'round_avg'"),
        (("--embedder", "minlm"), "unknown embedder 'minlm'"),
        (("--text", "first"), "first"),
    ],
)
def test_wrong_flags(pluribus: Run, name: str, flags: tuple[str, ...], words: str) -> None:
    assert words in pluribus("analyze", name, *flags).complaint()


def test_a_run_that_is_not_there(pluribus: Run, name: str) -> None:
    assert "no-such-run" in pluribus("analyze", "no-such-run", "--embedder", "hashing").complaint()
    assert "RUN" in pluribus("analyze").complaint()


def test_a_folder_that_can_not_be_written(pluribus: Run, name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = pluribus("analyze", name, "--embedder", "hashing", "--output-dir", tmp_path / "file")
    assert (said.code, "can not be made: File exists" in said.err) == (2, True)


def history_round(*said: str | None) -> dict[str, Any]:
    """One round of a history in the Agent-Scaling form; None: the agent is not there."""
    answers = [text[-1] if text else "" for text in said]
    agents = {f"gsm8k_3__m__None__Agent{i}": text for i, text in enumerate(said) if text is not None}
    return {
        "responses": agents, "final_answers": answers, "final_answer_iscorr": [answer == "4" for answer in answers],
        "debate_answer": "4", "debate_answer_iscorr": True, "answer": "4", "persona_configs": [],
    }  # fmt: skip


def test_a_history_with_holes_is_measured_and_its_holes_are_counted(pluribus: Run, lines: Run, tmp_path: Path) -> None:
    whole = {"0": history_round("two and two: 4", "five: 5", "it is 4"), "1": history_round("4", "now 4", "")}
    absent = {"0": history_round("so 4", None, "or 7"), "1": history_round("so 4", "also 4", "or 7")}
    short = {"0": history_round("a 4", "b 4", "c 4")}
    lines([whole, absent, short, '{"0": {"responses": {"a'], "gsm8k_vote_3__m_N=3_R=1.jsonl")
    said = pluribus("analyze", tmp_path / "gsm8k_vote_3__m_N=3_R=1.jsonl", "--embedder", "hashing", "--json")
    (run,) = said.object["runs"]
    assert (said.code, run["n_agents"], run["n_rounds"], run["n_questions"]) == (0, 3, 2, 3)
    assert [(row["round"], row["n_questions"]) for row in run["rounds"]] == [(0, 2), (1, 1)]
    assert run["omitted"]["answers missing from a round"] == 1
    assert run["omitted"]["empty texts"] == 1
    assert run["omitted"]["questions of a round that not all agents answered"] == 2
    assert sum("cut off" in reason for reason in run["omitted"]) == 1
