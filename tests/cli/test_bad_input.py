"""Wrong input is one line that names the thing, says what there is or what to do, and ends with exit code 2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_an_unknown_key_of_the_council_file(pluribus: Run, council: Run) -> None:
    line = pluribus("run", council(metod="vote")).complaint()
    assert "council.yaml: unknown key 'metod'; did you mean 'method'?" in line


def test_a_council_file_that_is_no_yaml_or_is_not_there(pluribus: Run, tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("models: [a", "utf-8")
    assert "broken.yaml: not YAML" in pluribus("run", broken).complaint()
    assert "missing.yaml: No such file" in pluribus("run", tmp_path / "missing.yaml").complaint()


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--method", "vot"], ["unknown method 'vot'", "did you mean 'vote'", "self_consistency"]),
        (["--agent-models", "opnai/gpt-4o"], ["unknown model service 'opnai'", "did you mean 'openai'", "vllm"]),
        (["--agent-models", "gpt-9"], ["model 'gpt-9'", "pluribus list backends"]),
        (["--agent-models", "scripted/number,,scripted/echo"], ["empty model"]),
        (["--agent-models", "openai/gpt-4o"], ["OPENAI_API_KEY is not set", "export OPENAI_API_KEY=…"]),
        (["--task", "gsm9k"], ["unknown task 'gsm9k'", "did you mean 'gsm8k'", "winogrande"]),
        (["--split", "tests"], ["unknown split of jsonl 'tests'"]),
        (["--num-agents", "0"], ["num_agents is 0", "at least 1"]),
        (["--num-agents", "two"], ["--num-agents", "integer"]),
        (["--limit", "0"], ["limit is 0"]),
        (["--baseline-a", "--multi-persona"], ["multi_persona and baseline_a exclude each other"]),
        (["--baseline-a", "--baseline-b"], ["baseline_a and baseline_b exclude each other"]),
        (["--personas", "nobody"], ["unknown persona set 'nobody'", "mathematics"]),
        (["--debate-rounds", "2"], ["--debate-rounds is no setting of the method vote", "--method debate"]),
        (["--method", "debate", "--debate-rounds", "-1"], ["debate_rounds is -1"]),
        (["--method", "debate", "--topology", "ring"], ["'ring'", "sparse"]),
        (["--method", "debate", "--set", "rounds=2"], ["unknown setting of debate 'rounds'", "debate_rounds"]),
        (["--set", "rounds"], ["--set 'rounds' is not KEY=VALUE"]),
        (["--temperature", "9"], ["temperature is 9.0", "less than or equal to 5"]),
        (["--top-p", "0"], ["top_p is 0.0"]),
        (["--rule", "borda9"], ["unknown rule 'borda9'", "plurality"]),
        (["--tie", "maybe"], ["'maybe'", "fractional"]),
        (["--preset", "mine"], ["unknown preset 'mine'", "agentark"]),
        (["--prompts", "nowhere"], ["no prompts at 'nowhere'"]),
        (["--prices", "nowhere.toml"], ["nowhere.toml"]),
        (["--load-in-4bit"], ["no model of this council runs here"]),
        (["--load-in-4bit", "--load-in-8bit"], ["exclude each other"]),
        (["--budget-usd", "-1"], ["budget.usd is -1.0"]),
        (["--nope"], ["no such option", "--nope", "pluribus run --help"]),
    ],
)
def test_a_wrong_flag(pluribus: Run, data: Path, flags: list[str], expected: list[str]) -> None:
    base = ["--task", "jsonl", "--data", data, "--agent-models", "scripted/number"]
    given = [flag for flag in flags if flag.startswith("--")]
    kept = [
        part for name, value in zip(base[::2], base[1::2], strict=True) if name not in given for part in (name, value)
    ]
    line = pluribus("run", *kept, *flags).complaint()
    assert [part for part in expected if part not in line] == [], line


def test_no_model_and_no_task(pluribus: Run, data: Path) -> None:
    assert "no model is named; say --agent-models" in pluribus("run", "--task", "jsonl", "--data", data).complaint()
    assert "no task is named; say --task" in pluribus("run", "--agent-models", "scripted/number").complaint()


def test_a_malformed_line_and_empty_data(pluribus: Run, lines: Run) -> None:
    base = ["run", "--task", "jsonl", "--agent-models", "scripted/number", "--data"]
    bad = lines([{"question": "1 + 1?", "answer": "2"}, "{oops\n"])
    assert f"{bad}:2: " in pluribus(*base, bad).complaint()
    assert "--skip-bad" in pluribus(*base, bad).complaint()
    empty = lines([], "empty.jsonl")
    assert "holds no" in pluribus(*base, empty).complaint()
    only_bad = lines(["{oops\n"], "only_bad.jsonl")
    assert "only_bad.jsonl:1" in pluribus(*base, only_bad, "--skip-bad").complaint()


def test_recorded_outputs_that_lack_the_sample_the_model_or_the_file(pluribus: Run, lines: Run, data: Path) -> None:
    file = lines([{"question_id": f"q{i}", "model": "a", "text": "A: 1"} for i in range(12)], "outputs.jsonl")
    base = ["run", "--task", "jsonl", "--data", data, "--agent-models"]
    assert "sample 1 of round 0" in pluribus(*base, f"replay/{file}#a", "--num-agents", "2").complaint()
    assert "'b'" in pluribus(*base, f"replay/{file}#b").complaint()
    assert "no recorded outputs at" in pluribus(*base, "replay/nowhere.jsonl#a").complaint()


def test_nothing_is_lost_or_left_behind_by_a_wrong_run(pluribus: Run, council: Run) -> None:
    name = pluribus("run", council(), "--json").object["run"]
    pluribus("run", council(models=["openai/gpt-4o"])).complaint()
    assert [run["run"] for run in pluribus("list", "runs", "--json").object] == [name]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["show", "nope"], "unknown run 'nope'"),
        (["show", "prompt"], "needs a method"),
        (["show", "prompt", "nope"], "unknown method 'nope'"),
        (["show", "prompt", "vote", "--persona", "nobody"], "unknown persona 'nobody'"),
        (["show", "nope", "--persona", "x"], "--persona goes with"),
        (["list", "nothing"], "'nothing'"),
        (["export", "nope", "--out", "x.jsonl"], "unknown run 'nope'"),
        (["export", "nope"], "--out"),
        (["import", "nowhere.jsonl"], "nowhere.jsonl: no such file"),
        (["ask", " ", "--agent-models", "scripted/number"], "the question is empty"),
        (["ask", "x", "--agent-models", "scripted/number", "--choices", "a"], "--choices 'a' is no list"),
        (
            ["ask", "x", "--agent-models", "scripted/number", "--choices", "a,b", "--labels", "c,d"],
            "exclude each other",
        ),
        (["ask", "x"], "no model is named"),
        (["doctor"], "no model is named"),
        (["ask"], "missing argument"),
        (["rnu"], "unknown command 'rnu'; did you mean 'run'?"),
    ],
)
def test_wrong_input_of_the_other_commands(pluribus: Run, arguments: list[str], expected: str) -> None:
    assert expected in pluribus(*arguments).complaint()
