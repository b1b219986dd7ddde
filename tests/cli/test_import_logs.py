"""`pluribus import` of other codes' logs, and the panels that commands get from files, folders and names."""

from __future__ import annotations

import gzip
import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pluribus.cli._panels import panels
from pluribus.errors import DataError, UnknownName
from pluribus.panel import answers, credits, right_Q_A

Run = Callable[..., Any]
DATA = Path(__file__).parents[1] / "logs" / "data"


@pytest.fixture
def history(lines: Run) -> Path:
    """Two agents, two rounds, three questions; the first agent says nothing to the third in round 0."""
    agents = [f"gsm8k_3__qwen2.5-7b__{name}__Agent{i}" for i, name in enumerate(("Logic", "None"), 1)]

    def spoken(*said: int | None) -> dict[str, Any]:
        there = {agent: number for agent, number in zip(agents, said, strict=True) if number is not None}
        first = next(iter(there.values()))
        return {
            "responses": {agent: f"{{final answer: {number}}}" for agent, number in there.items()},
            "final_answers": [float(number) for number in there.values()], "answer": 18.0,
            "final_answer_iscorr": [number == 18 for number in there.values()],
            "debate_answer": float(first), "debate_answer_iscorr": first == 18,
        }  # fmt: skip

    rows = [
        {"0": spoken(18, 17), "1": spoken(18, 18)},
        {"0": spoken(16, 18), "1": spoken(16, 16)},
        {"0": spoken(None, 18), "1": spoken(18, 18)},
    ]
    return Path(lines(rows, "gsm8k_debate_3__qwen2.5-7b_N=2_R=1.jsonl"))


def names(out: str) -> list[str]:
    return [line.split()[1].removesuffix(":") for line in out.splitlines() if line.startswith("imported ")]


def test_models_samples_become_one_council_that_every_command_knows(pluribus: Run, tmp_path: Path) -> None:
    said = pluribus("import", DATA / "lm_eval", "--out", tmp_path / "out")
    assert said.code == 0
    assert len(names(said.out)) == 3
    assert sorted(p.relative_to(tmp_path / "out").as_posix() for p in (tmp_path / "out").rglob("*.gz")) == [
        f"{task}-2-models/{file}.jsonl.gz" for task in ("tiny_choice", "tiny_sums", "tiny_sums_once")
        for file in ("outputs", "questions")
    ]  # fmt: skip
    for name in names(said.out):
        shown = pluribus("show", name, "--json").object
        assert shown["council"]["failed"] == 0
    assert said.err == ""


@pytest.mark.parametrize("path", ["lm_eval", "inspect_ai"])
def test_the_run_has_the_log_s_answers_verdicts_and_decisions(pluribus: Run, path: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    run_names = names(pluribus("import", DATA / path, "--home", home).out)
    direct = panels([str(DATA / path)], home)
    stored = panels(run_names, home)
    assert len(direct) == len(stored) > 0
    for log, run in zip(direct, stored, strict=True):
        assert [item.question_id for item in run.items] == [item.question_id for item in log.items]
        assert answers(run) == answers(log)
        assert right_Q_A(run).tolist() == right_Q_A(log).tolist()
        assert credits(run).tolist() == credits(log).tolist()
        assert [[w and w.text for w in i.words[0]] for i in run.items] == [
            [w and w.text for w in i.words[0]] for i in log.items
        ]


def test_the_printed_line_runs_it_again_at_no_call(pluribus: Run) -> None:
    said = pluribus(
        "import", DATA / "inspect_ai" / "small-sums_alpha.eval", DATA / "inspect_ai" / "small-sums_beta.eval"
    )
    again = next(line for line in said.out.splitlines() if "again: " in line).partition("pluribus ")[2]
    assert pluribus(*shlex.split(again), "--json").object["run"] == names(said.out)[0]


def test_a_changed_log_is_another_run_and_the_same_log_the_same(pluribus: Run, lines: Run, tmp_path: Path) -> None:
    rows = [{"query": f"{n} + 1?", "gt": str(n + 1), "response": f"It is {n + 1}."} for n in range(2)]
    path = lines(rows, "x_infer.jsonl")
    (first,) = names(pluribus("import", path).out)
    assert names(pluribus("import", path).out) == [first]
    path.write_text(path.read_text().replace("It is 2.", "It is 7."))
    said = pluribus("import", path)
    assert names(said.out) != [first]
    assert "imports/x-2/outputs.jsonl.gz" in said.out
    (panel,) = panels(names(said.out), None)
    assert answers(panel) == [["1"], ["7"]]
    assert pluribus("import", path, "--out", tmp_path / "out").code == 0
    path.write_text(path.read_text().replace("It is 7.", "It is 8."))
    assert "out holds other questions or outputs" in pluribus("import", path, "--out", tmp_path / "out").complaint()


def test_a_history_becomes_a_debate_with_its_rounds(pluribus: Run, history: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    said = pluribus("import", history, "--home", home)
    (name,) = names(said.out)
    assert name.startswith("debate-")
    assert said.err == f"{history.stem}: answers missing: an agent without a text in a round of a question: 1\n"
    (run,) = panels([name], home)
    (log,) = panels([str(history)], home)
    assert (run.rounds, log.rounds) == (2, 2)
    assert answers(run) == answers(log) == [["18", "18"], ["16", "16"], ["18", "18"]]
    assert answers(run, 0) == [["18", "17"], ["16", "18"], [None, "18"]]
    questions = gzip.decompress((home / "imports" / history.stem / "questions.jsonl.gz").read_bytes()).decode()
    assert json.loads(questions.splitlines()[0])["question"] == (
        f"(question 1 of {history.name}; its text is not in the file)"
    )


def test_agents_of_one_model_are_its_samples_and_personas_are_models_of_their_own(pluribus: Run, history: Path) -> None:
    said = pluribus("import", history)
    models = [model.rpartition("#")[2] for model in said.out.split("--agent-models ")[1].split(",")]
    assert [model.strip("'\n") for model in models] == ["qwen2.5-7b~Logic", "qwen2.5-7b"]


def test_answers_read_differently_are_counted(pluribus: Run, lines: Run) -> None:
    rows = [{"doc_id": n, "doc": {"question": f"{n}?"}, "target": "4", "resps": [["The answer is 4."]],
             "filtered_resps": ["5"], "filter": "odd", "doc_hash": f"d{n}"} for n in range(2)]  # fmt: skip
    said = pluribus("import", lines(rows, "samples_x.jsonl"))
    assert "2 of 2 answers are read differently here than the log recorded" in said.err
    assert "2 of 2 questions are decided differently here than the log recorded" in said.err


def test_questions_that_nobody_answered_are_said(pluribus: Run, lines: Run) -> None:
    rows = [{"query": "1 + 1?", "gt": "2", "response": "It is 2."}, {"query": "1 + 2?", "gt": "3", "error": "boom"}]
    said = pluribus("import", lines(rows, "x_infer.jsonl"))
    assert said.code == 0
    assert "questions that ended in an error: 1" in said.err
    assert "1 of 2 questions failed: " in said.err


def test_choice_questions_without_their_options_get_letters(pluribus: Run, lines: Run) -> None:
    round = {"responses": {"a": "{final answer: (B)}", "b": "{final answer: (E)}"}, "final_answers": ["(B)", "(E)"],
             "final_answer_iscorr": [True, False], "answer": "(B)"}  # fmt: skip
    said = pluribus("import", lines([{"0": round}], "arc.jsonl"))
    assert pluribus("show", names(said.out)[0], "--json").object["council"]["value"] == 1


def test_exports_and_logs_together(pluribus: Run, council: Run, history: Path, tmp_path: Path) -> None:
    name = pluribus("run", council(), "--json").object["run"]
    pluribus("export", name, "--out", tmp_path / "mixed" / "run.jsonl.gz")
    (tmp_path / "mixed" / history.name).write_bytes(history.read_bytes())
    (tmp_path / "mixed" / "notes.txt").write_text("hello")
    (tmp_path / "mixed" / ".hidden").write_text("hello")
    said = pluribus("import", tmp_path / "mixed", "--home", tmp_path / "other")
    assert names(said.out)[0] == name
    assert len(names(said.out)) == 2
    assert said.err.startswith("passed over 1 file that nobody here can read: notes.txt")
    found = panels([str(tmp_path / "mixed")], tmp_path / "other")
    assert sorted(panel.name for panel in found) == sorted([name, history.stem])


def test_a_file_that_is_named_twice_counts_once(pluribus: Run, tmp_path: Path) -> None:
    sources = [str(DATA / "lm_eval"), str(DATA / "lm_eval" / "jar__alpha"), *map(str, DATA.glob("*/*/samples_*.jsonl"))]
    once, twice = panels(sources[:1], tmp_path), panels(sources, tmp_path)
    assert [len(panel.members) for panel in twice] == [len(panel.members) for panel in once] == [2, 4, 2]
    assert len(names(pluribus("import", *sources).out)) == 3


# --- what is wrong gets one line -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "name", "message"),
    [(['{"0": {"responses": {}}}\n', "{\n", "{}\n"], "h.jsonl", "h.jsonl:2: not JSON"),
     (['{"0": {"responses": {}}}\n'], "h.jsonl", "no text of any agent is recorded"),
     (['{"query": "?", "error": "boom"}\n'], "x_infer.jsonl", "no response can be read"),
     (['{"doc": {}, "resps": []}\n'], "samples_x.jsonl", "no answer can be read"),
     (["nothing at all\n"], "notes.txt", "not a run of any format known here"),
     (["PK\x03\x04 cut off"], "log.eval", "the archive can not be read"),
     (['{"version": 2, "status": "success", "eval": '], "log.json", "not JSON"),
     (['{"hello": 1}\n'], "other.jsonl", "not a line of an exported run")],
)  # fmt: skip
def test_bad_files_get_one_clear_line(pluribus: Run, lines: Run, rows: list[str], name: str, message: str) -> None:
    assert message in pluribus("import", lines(rows, name)).complaint()


def test_paths_that_hold_nothing_get_one_clear_line(pluribus: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "the folder holds no run" in pluribus("import", tmp_path / "empty").complaint()
    assert "no such file" in pluribus("import", tmp_path / "nowhere.jsonl").complaint()


def test_programs_are_not_imported_without_their_tests(pluribus: Run, lines: Run) -> None:
    row = {"query": "Add.", "gt": "x", "kind": "program", "response": "```python\ndef f(): pass\n```"}
    assert "their tests are not in it" in pluribus("import", lines([row], "p_infer.jsonl")).complaint()


def test_a_log_is_no_run_to_show(pluribus: Run, history: Path) -> None:
    line = pluribus("show", history).complaint()
    assert "this is a log (Agent-Scaling history (JSONL)), not an exported run" in line
    assert f"pluribus import {history}" in line


def test_sources_that_are_nothing(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="unknown run 'vote-x'"):
        panels(["vote-x"], tmp_path / "home")
    with pytest.raises(DataError, match="no such file or folder, and no run has this name"):
        panels(["logs/nowhere.jsonl"], tmp_path / "home")
    (tmp_path / "a.jsonl").write_text('{"x": 1}\n')
    with pytest.raises(DataError, match=r"a\.jsonl: not a run of any format known here; known: exported runs; Agent"):
        panels([str(tmp_path / "a.jsonl")], tmp_path / "home")
    with pytest.raises(DataError, match="the folder holds no run of any format known here"):
        panels([str(tmp_path)], tmp_path / "home")


def test_an_existing_path_wins_over_a_name(
    pluribus: Run, council: Run, history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    name = pluribus("run", council(), "--home", home, "--json").object["run"]
    assert [panel.method for panel in panels([name], home)] == ["vote"]
    (tmp_path / name).mkdir()
    (tmp_path / name / history.name).write_bytes(history.read_bytes())
    monkeypatch.chdir(tmp_path)
    assert [panel.name for panel in panels([name], home)] == [history.stem]
