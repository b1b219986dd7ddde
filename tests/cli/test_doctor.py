"""`pluribus doctor`: one real completion per model, whatever a server's list of models says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pluribus.fake_server import FakeServer

Run = Callable[..., Any]


def test_each_model_is_asked_once_and_its_price_is_known_or_not(pluribus: Run, tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('["vllm/small"]\ninput = 1\noutput = 2\n', "utf-8")
    with FakeServer(models=("small", "large")) as server:
        models = f"vllm/small@{server.url},vllm/large@{server.url}"
        said = pluribus("doctor", "--agent-models", models, "--num-agents", "4", "--prices", prices, "--json")
        assert server.stats()["models"] == {"small": 1, "large": 1}
    assert said.code == 0
    small, large = said.object
    assert (small["seats"], small["price"], small["answered_by"]) == ([1, 3], "$1 in, $2 out", "vllm/small")
    assert (large["price"], large["cost_usd"]) == (None, None), "unknown is unpriced, not free"
    assert small["cost_usd"] > 0
    assert small["latency_s"] > 0


def test_a_seat_that_can_not_be_used_is_named_with_its_reason(pluribus: Run) -> None:
    with FakeServer(models=("there",)) as server:
        models = f"vllm/there@{server.url},vllm/elsewhere@{server.url},openai/gpt-4o"
        said = pluribus("doctor", "--agent-models", models)
    assert said.code == 1
    assert "seat 2: " in said.out
    assert "seat 3: the environment variable OPENAI_API_KEY is not set" in said.out
    assert "unpriced" in said.out


def test_recorded_outputs_are_read_not_called(pluribus: Run, lines: Run) -> None:
    file = lines([{"question_id": "q0", "model": "a", "text": "A: 1"}])
    said = pluribus("doctor", "--agent-models", f"replay/{file}#a")
    assert said.code == 0
    assert "recorded: no call" in said.out


def test_it_takes_the_council_of_a_file(pluribus: Run, council: Run) -> None:
    found = pluribus("doctor", council(), "--json").object
    assert [one["seats"] for one in found] == [[1], [2], [3]]
