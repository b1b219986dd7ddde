"""The reward recipes: who judges, with what weight, where, and that it fits the device."""

from __future__ import annotations

from pathlib import Path

import pytest

from pluribus.errors import ConfigError
from pluribus.judge_config import JudgesConfig, read_judges, total_gb, weights_gb
from pluribus.judging import bench

RECIPES = Path(__file__).parents[1] / "recipes"


@pytest.fixture
def council() -> JudgesConfig:
    return read_judges(RECIPES / "council_reward.yaml")


def test_three_judges_with_the_weights_of_their_roles(council: JudgesConfig) -> None:
    assert bench(council).weights == {"teacher": 0.5, "critic": 0.3, "diversity": 0.2}
    assert [one.role for one in council.judges] == ["teacher", "critic", "diversity"]
    models = [spec.name for spec in bench(council).specs if spec is not None]
    assert [word in name for word, name in zip(("DeepSeek-R1", "Qwen2.5", "Llama-3.1"), models, strict=True)] == [
        True
    ] * 3


def test_a_teacher_in_half_precision_and_workers_in_eight_bits(council: JudgesConfig) -> None:
    assert [one.precision for one in council.judges] == ["fp16", "int8", "int8"]


def test_each_is_served_at_an_address_of_its_own(council: JudgesConfig) -> None:
    specs = [spec for spec in bench(council).specs if spec is not None]
    assert [spec.service for spec in specs] == ["vllm"] * 3
    assert [spec.base_url for spec in specs] == [f"http://127.0.0.1:{port}/v1" for port in (8001, 8002, 8003)]


def test_they_fit_the_device_with_room_for_their_caches(council: JudgesConfig) -> None:
    held = [weights_gb(one) for one in council.judges]
    assert held == [pytest.approx(16.06), pytest.approx(7.62), pytest.approx(8.03)]
    assert council.device_gb == 48 and total_gb(council) == pytest.approx(31.71)
    assert total_gb(council) == pytest.approx(sum(gb for gb in held if gb is not None))


def test_a_model_that_does_not_fit_is_an_error_that_names_the_sum(council: JudgesConfig) -> None:
    large = council.judges[0].model_copy(update={"parameters_b": 32.8})
    with pytest.raises(ConfigError, match=r"81\.\d GB.*device_gb is 48"):
        bench(council.model_copy(update={"judges": [large, *council.judges[1:]]}))


def test_its_comments_name_the_ports_and_models_it_asks(council: JudgesConfig) -> None:
    text = (RECIPES / "council_reward.yaml").read_text("utf-8")
    started = [line for line in text.splitlines() if line.startswith("#") and "vllm serve" in line]
    for spec in bench(council).specs:
        assert spec is not None and spec.base_url is not None
        port = spec.base_url.rpartition(":")[2].removesuffix("/v1")
        assert any(f"vllm serve {spec.name} --port {port}" in line for line in started), spec


def test_the_embedded_models_in_the_same_chairs(council: JudgesConfig) -> None:
    zoo = bench(read_judges(RECIPES / "zoo_reward.yaml"))
    assert zoo.weights == bench(council).weights
    assert all(spec is not None and spec.service == "zoo" for spec in zoo.specs)
