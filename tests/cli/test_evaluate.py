"""`pluribus evaluate`: every kind of subject, the same questions, intervals, paired comparisons, files, bad input."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pluribus import stats, zoo
from pluribus.evaluating import of_run
from pluribus.fake_server import FakeServer
from pluribus.store import Store

Run = Callable[..., Any]
WORDS = [
    {"id": f"w{i}", "question": f"Who wrote page {i} of the book?", "kind": "text", "answer": name}
    for i, name in enumerate(["Lord Byron", "Mary Shelley", "The Brontë sisters", "John Keats"])
]


SUMS = ("--task", "sums", "--limit", "3")


def scores(said: Any) -> dict[tuple[str, str], dict[str, Any]]:
    return {(one["task"], one["subject"]): one for one in said.object["scores"]}


def values(said: Any, subject: str, task: str = "jsonl") -> dict[str, float]:
    return {name: one["value"] for name, one in scores(said)[task, subject]["values"].items()}


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def on(data: Path) -> tuple[str | Path, ...]:
    return ("--task", "jsonl", "--data", data)


# --- models, councils, runs ------------------------------------------------------------------------------------------


def test_a_model_is_asked_once_and_then_never_again(pluribus: Run, on: tuple[str, ...]) -> None:
    first = pluribus("evaluate", "scripted/keyed", "scripted/number", *on, "--json")
    assert first.code == 0 and list(values(first, "scripted/keyed")) == ["accuracy"]
    with Store.open() as store:
        calls = store.count_calls()
    again = pluribus("evaluate", "scripted/keyed", "scripted/number", *on, "--json")
    with Store.open() as store:
        assert calls == store.count_calls() == 24
    assert again.object == first.object
    (one,) = first.object["comparisons"]
    assert (one["subject"], one["baseline"], one["n"], one["test"]) == (
        "scripted/number", "scripted/keyed", 12, "McNemar",
    )  # fmt: skip
    keyed, number = (values(first, f"scripted/{name}")["accuracy"] for name in ("keyed", "number"))
    assert one["difference"] == pytest.approx(number - keyed) and one["p"] == one["p_adjusted"] > 0


def test_samples_of_a_model_are_those_of_a_single_call_and_more(pluribus: Run, on: tuple[str, ...]) -> None:
    single = pluribus("evaluate", "scripted/keyed", *on, "--json")
    several = pluribus("evaluate", "scripted/keyed", *on, "--samples", "4", "--json")
    with Store.open() as store:
        assert store.count_calls() == 12 * 4, "the first sample was known"
    found = scores(several)["jsonl", "scripted/keyed"]
    assert (found["samples"], found["calls"]) == (4, 48)
    assert list(found["values"]) == ["accuracy", "pass@1", "pass@4", "maj@4", "ece", "brier"]
    told = values(several, "scripted/keyed")
    assert told["pass@1"] < told["pass@4"] and 0 <= told["ece"] <= 1
    assert found["values"]["accuracy"]["interval"] == "wilson" and found["values"]["pass@4"]["interval"] == "bootstrap"
    right = round(12 * values(single, "scripted/keyed")["accuracy"])
    alone = scores(single)["jsonl", "scripted/keyed"]["values"]["accuracy"]
    assert (alone["low"], alone["high"]) == stats.wilson(right, 12)
    chosen = pluribus("evaluate", "scripted/keyed", *on, "--samples", "4", "--metrics", "pass@2,maj@k", "--k", "1,3")
    assert [name in chosen.out for name in ("pass@2", "maj@1", "maj@3", "maj@4")] == [True, True, True, False]


def test_a_council_a_run_and_an_export_say_the_same(
    pluribus: Run, council: Callable[..., Path], data: Path, tmp_path: Path
) -> None:
    file = council(method="debate", settings={"debate_rounds": 1})
    name = pluribus("run", file, "--json").object["run"]
    exported = tmp_path / "run.jsonl"
    assert pluribus("export", name, "--format", "jsonl", "--out", exported).code == 0
    said = pluribus("evaluate", file, name, exported, "scripted/keyed", "--task", "jsonl", "--data", data, "--json")
    assert said.code == 0
    found = said.object["scores"]
    assert [one["kind"] for one in found] == ["council", "run", "run", "model"]
    assert found[0]["values"] == found[1]["values"] == found[2]["values"]
    assert found[0]["values"]["accuracy"]["value"] == pluribus("show", name, "--json").object["council"]["value"]
    assert all(one["difference"] == 0 for one in said.object["comparisons"] if one["subject"] != "scripted/keyed")
    with Store.open() as store:
        sheet = of_run(store, name)
    assert sheet.samples == 3 and sheet.rows[0].confidence == max(
        sheet.rows[0].samples.count(answer) / 3 for answer in sheet.rows[0].samples
    )


def test_a_run_alone_needs_no_task_and_a_part_of_it_is_measured_where_one_is_named(
    pluribus: Run, council: Callable[..., Path], data: Path
) -> None:
    name = pluribus("run", council(), "--json").object["run"]
    whole = pluribus("evaluate", name, "--json")
    assert scores(whole)["jsonl", name]["n"] == 12 and whole.object["comparisons"] == []
    part = pluribus("evaluate", name, "--task", "jsonl", "--data", data, "--limit", "5", "--json")
    assert scores(part)["jsonl", name]["n"] == 5
    assert any("outside of the task's 5: 7" in remark for remark in part.object["remarks"])


def test_two_models_on_two_tasks_stand_in_one_table(pluribus: Run, tmp_path: Path) -> None:
    said = pluribus(
        "evaluate", "scripted/number", "scripted/constant", "--task", "sums,logic", "--limit", "6",
        "--out", tmp_path / "o", "--json",
    )  # fmt: skip
    assert list(scores(said)) == [
        (task, f"scripted/{name}") for task in ("sums", "logic") for name in ("number", "constant")
    ]
    assert len({one["p_adjusted"] for one in said.object["comparisons"]}) >= 1
    assert {one["task"] for one in said.object["comparisons"]} == {"sums", "logic"}
    rows = read_csv(tmp_path / "o" / "table.csv")
    assert [(row["task"], row["subject"], row["metric"]) for row in rows] == [
        (*pair, "accuracy") for pair in scores(said)
    ]  # fmt: skip
    questions = read_csv(tmp_path / "o" / "questions.csv")
    assert len(questions) == 24 and {row["status"] for row in questions} <= {"answered", "unanswered"}
    mean = sum(float(row["accuracy"]) for row in questions[:6]) / 6
    assert mean == pytest.approx(float(rows[0]["value"]))
    assert json.loads((tmp_path / "o" / "results.json").read_text("utf-8")) == said.object


def test_on_a_narrow_screen_scores_and_comparisons_stand_under_each_other(
    pluribus: Run, on: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = pluribus("evaluate", "scripted/keyed", "scripted/number", *on)
    assert said.out.splitlines()[0].split()[:3] == ["task", "subject", "metric"] and "Holm" in said.out.splitlines()[0]
    monkeypatch.setenv("COLUMNS", "80")
    narrow = pluribus("evaluate", "scripted/keyed", "scripted/number", *on)
    heads = [line.split() for line in narrow.out.splitlines() if line.startswith("task")]
    assert [head[-1] for head in heads] == ["n", "Holm", "cost"]
    assert "…" not in narrow.out and "scripted/number  accuracy" in narrow.out
    assert all(len(line) <= 80 for line in narrow.out.splitlines() if not line.startswith("− baseline:"))


def test_who_fails_is_counted_and_not_scored(pluribus: Run, on: tuple[str, ...]) -> None:
    said = pluribus("evaluate", "scripted/number", "scripted/broken", *on, "--retries", "1", "--json")
    assert said.code == 1
    found = scores(said)["jsonl", "scripted/broken"]
    assert (found["n"], found["answered"], found["failed"], found["values"]) == (12, 0, 12, {})
    assert any(one.startswith("scripted/broken: 12 failed, the first: ") for one in said.object["remarks"])
    assert said.object["comparisons"] == []


def test_the_budget_is_that_of_all_subjects_together(pluribus: Run, on: tuple[str, ...]) -> None:
    said = pluribus("evaluate", "scripted/keyed", "scripted/number", *on, "--budget-calls", "20", "--json")
    assert said.code == 3 and "budget" in said.object["stopped"]
    with Store.open() as store:
        assert store.count_calls() == 20
    assert scores(said)["jsonl", "scripted/keyed"]["n"] == 12
    more = pluribus("evaluate", "scripted/keyed", "scripted/number", *on, "--json")
    assert more.code == 0 and scores(more)["jsonl", "scripted/number"]["n"] == 12


def test_a_template_can_be_left_out_on_a_server(pluribus: Run, on: tuple[str, ...]) -> None:
    with FakeServer(answers="constant", text="{final answer: 1}") as server:
        said = pluribus("evaluate", f"vllm/m@{server.url}", *on, "--limit", "2", "--chat-template", "off")
    assert said.code == 0
    with Store.open() as store:
        (run,) = store.runs()
        (sent,) = {t.attempt.agents[0].model for t in store.transcripts(id for id, _ in store.run_attempts(run.id))}
    assert "{{ message['content'] }}" in sent and "'add_generation_prompt': False" in sent


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def words(lines: Run) -> Path:
    return lines(WORDS, "words.jsonl")


def test_predictions_cost_no_call_and_free_text_has_its_own_measures(pluribus: Run, lines: Run, words: Path) -> None:
    first = lines([{"id": row["id"], "prediction": row["answer"].upper() + "!"} for row in WORDS], "first.jsonl")
    second = lines(
        [{"question": row["question"].lower(), "response": f"{{final answer: {row['answer'].split()[-1]}}}"}
         for row in WORDS[:3]],
        "second.jsonl",
    )  # fmt: skip
    said = pluribus("evaluate", first, second, "--task", "jsonl", "--data", words, "--json")
    assert said.code == 0 and not Store.file().exists()
    assert list(values(said, "first")) == ["exact_match", "token_f1", "rouge1", "rouge2", "rougeL", "bertscore"]
    assert values(said, "first")["exact_match"] == values(said, "first")["token_f1"] == 1
    found = scores(said)["jsonl", "second"]
    assert (found["n"], found["failed"], found["values"]["token_f1"]["n"]) == (4, 1, 3)
    assert found["values"]["token_f1"]["value"] == pytest.approx(2 / 3)
    assert values(said, "second")["bertscore"] < values(said, "first")["bertscore"] <= 1 + 1e-9
    assert {one["metric"]: one["test"] for one in said.object["comparisons"]} == {
        "exact_match": "McNemar", **dict.fromkeys(["token_f1", "rouge1", "rouge2", "rougeL", "bertscore"], "bootstrap"),
    }  # fmt: skip
    assert said.object["embedder"] == "minilm"


def test_several_samples_in_a_file_vote(pluribus: Run, lines: Run, data: Path) -> None:
    drawn = [
        {"question_id": f"q{i}", "model": "m", "sample": s, "text": f"{{final answer: {i + 1 if s < 2 else 99}}}"}
        for i in range(12)
        for s in range(3)
    ]
    other = [{**row, "model": "n", "text": "99"} for row in drawn if row["sample"] == 0]
    said = pluribus(
        "evaluate", lines([*drawn, *other], "drawn.jsonl"), "--task", "jsonl", "--data", data, "--k", "1,3", "--json"
    )
    assert values(said, "m") == {
        "accuracy": 1, "pass@1": pytest.approx(2 / 3), "pass@3": 1, "maj@1": pytest.approx(2 / 3), "maj@3": 1,
        "ece": pytest.approx(1 / 3), "brier": pytest.approx(1 / 9),
    }  # fmt: skip
    assert values(said, "n") == {"accuracy": 0, "pass@1": 0, "maj@1": 0}, "one sample has no pass@3"


def test_a_log_has_keys_of_its_own_or_the_tasks(pluribus: Run, lines: Run, data: Path) -> None:
    debate = "===== Solution 1 =====\nIt is {0}.\n===== Solution 2 =====\nIt is 99.\n===== Solution 3 =====\nFinal: {0}"
    rows = [
        {"query": f"{i} + 1? [key: {i + 1}]", "gt": "99", "response": debate.format(i + 1),
         "token_stats": {"m": {"num_llm_calls": 3, "prompt_tokens": 10, "completion_tokens": 5}}}
        for i in range(12)
    ]  # fmt: skip
    log = lines(rows, "debate_infer.jsonl")
    own = pluribus("evaluate", log, "--metrics", "accuracy,pass@2", "--json")
    (found,) = own.object["scores"]
    assert (found["samples"], found["calls"], found["tokens_per_question"]) == (2, 36, 15)
    assert {name: one["value"] for name, one in found["values"].items()} == {"accuracy": 0, "pass@2": 1}
    keyed = pluribus("evaluate", log, "--task", "jsonl", "--data", data, "--metrics", "accuracy,pass@2", "--json")
    (found,) = keyed.object["scores"]
    assert {name: one["value"] for name, one in found["values"].items()} == {"accuracy": 1, "pass@2": 1}


def test_real_recorded_outputs(pluribus: Run, shared_data: Path) -> None:
    outputs = shared_data / "recorded" / "gsm8k_4models" / "outputs.jsonl.gz"
    said = pluribus("evaluate", outputs, "--json")
    assert {subject: round(one["values"]["accuracy"]["value"], 4) for (_, subject), one in scores(said).items()} == {
        "6b_finetuning": 0.2168, "6b_verification": 0.3904, "175b_finetuning": 0.3472, "175b_verification": 0.5625,
    }  # fmt: skip
    assert all(one["p_adjusted"] < 0.001 for one in said.object["comparisons"])


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["scripted/number"], "no task to ask scripted/number about; say --task NAME"),
        (["scripted/number", "--task", "sumz"], "unknown task 'sumz'; did you mean 'sums'?"),
        (["scripted/number", *SUMS, "--metrics", "rough1"], "unknown metric 'rough1'; did you mean 'rouge1'?"),
        (["scripted/number", *SUMS, "--metrics", ","], "--metrics names none"),
        (["scripted/number", *SUMS, "--metrics", "pass@0"], "unknown metric 'pass@0'"),
        (["scripted/number", *SUMS, "--k", "0"], "--k holds '0'"),
        (["scripted/number", *SUMS, "--k", "2"], "--k 2 is larger than the samples: scripted/number has 1 per"),
        (["scripted/number", *SUMS, "--metrics", "maj@3"], "--k 3 is larger than the samples"),
        (["scripted/number", *SUMS, "--samples", "0"], "--samples is 0"),
        (["scripted/number", *SUMS, "--baseline", "x"], "unknown baseline 'x'; there are: none, scripted/number"),
        (["scripted/number", "scripted/number", *SUMS], "scripted/number is named twice"),
        (["nonsense", *SUMS], "'nonsense' is no file, no run and no model"),
        (["out/student", *SUMS], "'out/student' is no file, no run and no model"),
        (["", *SUMS], "the name of a subject is empty"),
        (["local/./nowhere", *SUMS], "model './nowhere' could not be loaded"),
        (["local//nowhere/at/all", *SUMS], "model '/nowhere/at/all' is neither a folder here nor a hub id"),
        (["scripted/number", "--task", "sums,logic", "--data", "f"], "--data is one file, and --task names 2"),
        (["scripted/number", "--limit", "3"], "say nothing without a task"),
        (["scripted/number", *SUMS, "--chat-template", "off"], "scripted/ takes no word on templates"),
    ],
)  # fmt: skip
def test_bad_words(pluribus: Run, arguments: list[str], words: str) -> None:
    assert words in pluribus("evaluate", *arguments).complaint()


def test_bad_files(pluribus: Run, lines: Run, words: Path, data: Path, tmp_path: Path) -> None:
    task = ("--task", "jsonl", "--data", words)
    empty = tmp_path / "empty.jsonl"
    empty.touch()
    assert "empty.jsonl: the file is empty" in pluribus("evaluate", empty, *task).complaint()
    said = lines([{"id": "w0", "prediction": "Byron"}], "said.jsonl")
    assert (
        "holds predictions and no keys; say whose questions they answer: --task"
        in pluribus("evaluate", said).complaint()
    )
    strange = lines([{"id": "zzz", "prediction": "Byron"}], "strange.jsonl")
    assert "none of its questions is in task jsonl, split" in pluribus("evaluate", strange, *task).complaint()
    neither = lines([{"colour": "red"}], "neither.jsonl")
    assert "neither predictions nor a log of any format known here" in pluribus("evaluate", neither, *task).complaint()
    nobody = lines([{"id": "w0", "prediction": "Byron"}, {"prediction": "Keats"}], "nobody.jsonl")
    assert "nobody.jsonl:2: whose prediction this is it does not say" in pluribus("evaluate", nobody, *task).complaint()
    twins = lines([{**row, "question": "Who wrote it?"} for row in WORDS], "twins.jsonl")
    asked = lines([{"question": "who wrote it?", "prediction": "Byron"}], "asked.jsonl")
    said = pluribus("evaluate", asked, "--task", "jsonl", "--data", twins).complaint()
    assert "asked.jsonl:1: 4 questions of the task have these words: w0, w1, …; name the question by its 'id'" in said
    (tmp_path / "nothing").mkdir()
    assert "nothing is a folder that holds no model" in pluribus("evaluate", tmp_path / "nothing", *task).complaint()


def test_subjects_that_have_nothing_in_common(
    pluribus: Run, council: Callable[..., Path], lines: Run, data: Path
) -> None:
    name = pluribus("run", council(), "--json").object["run"]
    other = lines([{"id": f"r{i}", "question": f"{i} + 2?", "answer": str(i + 2)} for i in range(4)], "other.jsonl")
    second = pluribus("run", council(data=str(other)), "--json").object["run"]
    said = pluribus("evaluate", name, second).complaint()
    assert f"{second} and {name}: they have no question of jsonl in common" in said
    assert pluribus("evaluate", name, second, "--baseline", "none").code == 0
    said = pluribus("evaluate", name, "--task", "sums").complaint()
    assert f"run {name}: it is of task jsonl, not of sums; name a run of that task, or say --task jsonl" in said
    said = pluribus("evaluate", name, "--task", "jsonl", "--data", other).complaint()
    assert "none of its questions is in task jsonl" in said
    with Store.open() as store:
        calls = store.count_calls()
    said = pluribus("evaluate", "scripted/keyed", second, "--task", "jsonl", "--data", data).complaint()
    assert "none of its questions" in said
    with Store.open() as store:
        assert store.count_calls() == calls, "nobody is asked before that is known"


def test_a_prediction_that_stands_twice_is_said(pluribus: Run, lines: Run, data: Path) -> None:
    rows = [{"id": "q0", "prediction": text, "sample": 0} for text in ("{final answer: 1}", "{final answer: 2}")]
    said = pluribus("evaluate", lines(rows, "twice.jsonl"), "--task", "jsonl", "--data", data, "--json")
    assert said.object["remarks"] == ["twice: predictions given twice, of which the last counts: 1"]
    once = pluribus("evaluate", lines(rows[:1], "once.jsonl"), "--task", "jsonl", "--data", data, "--json")
    assert once.object["remarks"] == []


def test_two_folders_of_one_name_are_told_apart(pluribus: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    trained = [f"local/{place}/out/student" for place in ("one", "two")]
    for name in trained:
        shutil.copytree(zoo.folder("qwen"), name.removeprefix("local/"))
    said = pluribus("evaluate", *trained, "--task", "sums", "--limit", 1, "--max-tokens", 4)
    assert said.code == 0 and "…/student" not in said.out
    assert all(name in said.out for name in trained)
