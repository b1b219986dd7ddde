"""`pluribus run`: what it prints, what it stores, how it ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pluribus.fake_server import FakeServer
from pluribus.store import Store

Run = Callable[..., Any]


def test_a_run_prints_seating_forecast_scores_comparison_and_where_to_look(pluribus: Run, council: Run) -> None:
    said = pluribus("run", council())
    assert said.code == 0
    for part in (
        "jsonl (all): 12 questions",
        "36 calls, about",
        "scripted/keyed[accuracy=0.9]",
        "95 % interval",
        ", the best alone:",
        "McNemar p =",
        "36 calls sent ($0)",
        "pluribus show vote-jsonl-",
    ):
        assert part in said.out
    assert "12/12 questions" in said.err, "progress goes to stderr, in plain lines where there is no terminal"
    assert max(map(len, said.out.splitlines())) <= 120


def test_a_narrow_screen_gets_two_tables_and_no_line_is_too_long(
    pluribus: Run, council: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = pluribus("run", council(method="debate", settings={"debate_rounds": 1}))
    assert max(map(len, said.out.splitlines())) <= 80
    assert said.out.count("council ") >= 2


def test_the_second_time_costs_no_call(pluribus: Run, council: Run) -> None:
    first, again = (pluribus("run", council(), "--json").object for _ in range(2))
    assert first["sent"]["calls"] == 36
    assert again["sent"]["calls"] == 0
    assert again["council"] == first["council"]


def test_json_is_one_object_with_every_number_of_the_tables(pluribus: Run, council: Run) -> None:
    found = pluribus("run", council(), "--json").object
    assert [len(found["alone"]), len(found["seats"]), found["forecast"]["most_calls"]] == [3, 3, 36]
    score = found["council"]
    assert score["n"] == score["answered"] + score["abstained"] + score["failed"] == 12
    assert found["alone"][2]["value"] < found["alone"][0]["value"]
    assert found["comparison"]["n"] == 12
    assert {"run", "id", "config", "failures", "stopped", "skipped"} <= set(found)


def test_a_dry_run_asks_nobody_and_leaves_no_workspace(pluribus: Run, council: Run, tmp_path: Path) -> None:
    said = pluribus("run", council(models=["openai/gpt-4o"]), "--dry-run", "--json")
    assert said.code == 0
    assert said.object["dry_run"] is True
    assert said.object["forecast"]["questions"] == 12
    assert "openai/gpt-4o" in said.err
    assert not (tmp_path / "workspace").exists()


def test_flags_win_over_the_file(pluribus: Run, council: Run) -> None:
    file = council(method="debate", settings={"debate_rounds": 3}, seed=1, sampling={"temperature": 0.1, "top_p": 0.5})
    flags = [
        "--method",
        "vote",
        "--agent-models",
        "scripted/number",
        "--num-agents",
        "2",
        "--limit",
        "4",
        "--seed",
        "2",
    ]
    found = pluribus("run", file, *flags, "--temperature", "0.7", "--tie", "abstain", "--dry-run", "--json").object
    assert found["run"].startswith("vote-")
    assert [seat["model"] for seat in found["seats"]] == ["scripted/number"] * 2
    assert found["seats"][0]["sampling"]["temperature"] == 0.7
    assert found["seats"][0]["sampling"]["top_p"] == 0.5, "what no flag names stays as the file says"
    config = found["config"]
    assert (config["seed"], config["limit"], config["tie"]) == (2, 4, "abstain")


def test_settings_of_the_method(pluribus: Run, data: Path) -> None:
    base = ["run", "--task", "jsonl", "--data", data, "--agent-models", "scripted/number", "--dry-run", "--json"]
    debate = pluribus(*base, "--method", "debate", "--debate-rounds", "2", "--topology", "sparse")
    assert debate.object["config"]["settings"] == {"debate_rounds": 2, "topology": "sparse"}
    other = pluribus(*base, "--method", "self_consistency", "--set", "parallel_num=7", "--set", "aggregator=llm")
    assert other.object["forecast"]["most_calls"] == 12 * 8
    assert pluribus(*base, "--method", "vanilla").object["run"].startswith("single-")


def test_personas_controls_and_presets_show_in_the_seating(pluribus: Run, data: Path) -> None:
    base = [
        "run",
        "--task",
        "jsonl",
        "--data",
        data,
        "--agent-models",
        "scripted/number",
        "--num-agents",
        "2",
        "--dry-run",
    ]
    personas = pluribus(*base, "--personas", "mathematics").out
    assert "conservative verifier" in personas
    assert "neutral" in pluribus(*base, "--personas", "mathematics", "--baseline-a").out
    assert pluribus(*base, "--personas", "mathematics", "--baseline-b").out.count("conservative verifier") == 2
    assert " 512 " in pluribus(*base, "--preset", "agent-scaling").out


def test_models_that_run_here_are_loaded_in_fewer_bits(pluribus: Run, data: Path) -> None:
    base = ["run", "--task", "jsonl", "--data", data, "--dry-run", "--json"]
    found = pluribus(*base, "--agent-models", "local/org/name,scripted/number", "--load-in-4bit").object
    assert [seat["model"] for seat in found["seats"]] == ["local/org/name[quantization=4bit]", "scripted/number"]


def test_failed_questions_are_told_by_reason_and_are_no_wrong_answers(pluribus: Run, council: Run) -> None:
    said = pluribus("run", council(models=["scripted/broken"], method="single", retries=1), "--json")
    assert said.code == 1
    assert said.object["council"]["failed"] == 12
    assert said.object["council"]["value"] is None
    shown = pluribus("show", said.object["run"])
    assert "12 questions failed:" in shown.out
    assert "it never answers" in shown.out


def test_a_seat_that_fails_leaves_a_degraded_run_that_ends_well(pluribus: Run, council: Run) -> None:
    said = pluribus("run", council(models=["scripted/number", "scripted/broken"], retries=1), "--json")
    assert (said.code, said.object["degraded"], said.object["council"]["failed"]) == (0, 12, 0)


def test_the_budget_stops_the_run_and_resume_goes_on(pluribus: Run, council: Run) -> None:
    with FakeServer() as server:
        file = council(models=[f"openai/m@{server.url}"], num_agents=2)
        stopped = pluribus("run", file, "--budget-calls", "10", "--concurrency", "4")
        assert stopped.code == 3
        assert "not asked yet; go on with: pluribus run --resume vote-jsonl-" in stopped.out
        name = stopped.out.split("--resume ")[1].split()[0]
        more = pluribus("run", "--resume", name, "--budget-calls", "100", "--json")
    assert more.code == 0
    assert more.object["asked"] == 12
    assert more.object["run"] == name
    assert more.object["sent"]["calls"] + 10 >= 24 >= more.object["sent"]["calls"] + more.object["sent"]["hits"]


def test_resume_takes_everything_else_from_the_stored_run(pluribus: Run, council: Run) -> None:
    name = pluribus("run", council(), "--limit", "2", "--json").object["run"]
    assert (
        "--method can not be given with --resume" in pluribus("run", "--resume", name, "--method", "debate").complaint()
    )
    assert "takes the stored council" in pluribus("run", council(), "--resume", name).complaint()
    assert "unknown run 'nope'" in pluribus("run", "--resume", "nope").complaint()
    assert pluribus("run", "--resume", name, "--concurrency", "2", "--json").object["sent"]["calls"] == 0


def test_recorded_outputs_call_no_model(pluribus: Run, lines: Run, data: Path) -> None:
    rows = [
        {"question_id": f"q{i}", "model": m, "text": f"A: {i + d}"} for i in range(12) for m, d in (("a", 1), ("b", 2))
    ]
    file = lines(rows, "outputs.jsonl")
    said = pluribus("run", "--task", "jsonl", "--data", data, "--agent-models", f"replay/{file}#a,#b")
    assert said.code == 0
    assert "24 recorded outputs read, no model called" in said.out
    assert "replay/…#b" in said.out


def test_questions_that_read_the_same_get_each_its_own_recorded_output(pluribus: Run, lines: Run) -> None:
    data = lines([{"id": name, "question": "How many?", "answer": name} for name in "12"], "same.jsonl")
    file = lines([{"question_id": name, "model": "a", "text": f"A: {name}"} for name in "12"], "outputs.jsonl")
    arguments = [
        "--task",
        "jsonl",
        "--data",
        data,
        "--method",
        "single",
        "--agent-models",
        f"replay/{file}#a",
        "--json",
    ]
    assert pluribus("run", *arguments).object["council"]["value"] == 1.0


def test_the_workspace_is_where_home_says(pluribus: Run, council: Run, tmp_path: Path) -> None:
    home = tmp_path / "elsewhere"
    name = pluribus("run", council(), "--home", home, "--json").object["run"]
    with Store.open(home) as store:
        assert store.run(name).status == "finished"
    assert not (tmp_path / "workspace").exists()


def test_bad_lines_are_skipped_when_asked_and_named(pluribus: Run, lines: Run) -> None:
    file = lines([{"question": "1 + 1?", "answer": "2"}, "{oops\n", {"question": "2 + 2?", "answer": "4"}])
    said = pluribus("run", "--task", "jsonl", "--data", file, "--agent-models", "scripted/number", "--skip-bad")
    assert said.code == 0
    assert "2 questions" in said.out
    assert f"skipped {file}:2" in said.out


def test_a_file_s_sampling_yields_to_its_seats_and_a_flag_to_nobody(pluribus: Run, council: Run) -> None:
    seats = [{"model": "scripted/number", "temperature": 0.3}, {"model": "scripted/number"}]
    file = council(models=[], seats=seats, sampling={"temperature": 0.8})
    drawn = [seat["sampling"] for seat in pluribus("run", file, "--dry-run", "--json").object["seats"]]
    assert [one["temperature"] for one in drawn] == [0.3, 0.8]
    drawn = [s["sampling"] for s in pluribus("run", file, "--dry-run", "--json", "--temperature", "0").object["seats"]]
    assert [one["temperature"] for one in drawn] == [0.0, 0.0]


def test_the_recorded_verdicts_of_four_real_models(pluribus: Run, shared_data: Path) -> None:
    folder = shared_data / "recorded" / "gsm8k_4models"
    models = ",".join(["#6b_finetuning", "#6b_verification", "#175b_finetuning", "#175b_verification"])
    arguments = ["--task", "jsonl", "--data", folder / "questions.jsonl.gz", "--method", "vote"]
    found = pluribus(
        "run", *arguments, "--agent-models", f"replay/{folder / 'outputs.jsonl.gz'}{models}", "--json"
    ).object
    assert [round(score["value"], 4) for score in found["alone"]] == [0.2168, 0.3904, 0.3472, 0.5625]
    assert found["council"]["n"] == 1319
