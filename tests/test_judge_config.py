"""The judges file: what it may say, what it is worth in memory, and one line for whatever is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from pluribus.errors import ConfigError
from pluribus.judge_config import (
    BITS,
    THRESHOLDS,
    JudgeConfig,
    judge_names,
    judge_weights,
    make_judges,
    read_judges,
    total_gb,
    weights_gb,
)

MODEL = "scripted/number"


def one(**entries: Any) -> dict[str, Any]:
    return {"judges": [{"model": MODEL, **entries}]}


def test_defaults_are_those_of_the_definition() -> None:
    found = make_judges(one())
    assert (found.normalise, found.threshold, found.max_rounds) == ("zscore", THRESHOLDS["zscore"], 1)
    assert found.judges[0].kind == "score" and found.device_gb is None


def test_a_judge_is_named_by_name_role_or_place() -> None:
    found = make_judges({"judges": [{"name": "Ada", "role": "critic"}, {"role": "teacher"}, {}]})
    assert judge_names(found) == ["Ada", "teacher", "judge 3"]


def test_the_roles_weigh_half_three_and_two_tenths() -> None:
    roles = ("teacher", "critic", "diversity", "gardener")
    found = make_judges({"judges": [{"role": role} for role in roles]})
    assert judge_weights(found) == [0.5, 0.3, 0.2, 1.0]
    assert judge_weights(make_judges({"judges": [{"role": "teacher", "weight": 0.0}, {}]})) == [0.0, 1.0]


@pytest.mark.parametrize(("precision", "gb"), [("fp32", 32.0), ("bf16", 16.0), ("fp16", 16.0), ("fp8", 8.0),
                                               ("int8", 8.0), ("int4", 4.0)])  # fmt: skip
def test_memory_of_a_model_by_its_precision(precision: Any, gb: float) -> None:
    assert weights_gb(JudgeConfig(parameters_b=8, precision=precision)) == gb
    assert precision in BITS


def test_memory_is_not_known_without_both() -> None:
    assert weights_gb(JudgeConfig(parameters_b=8)) is None and weights_gb(JudgeConfig(precision="fp16")) is None
    assert total_gb(make_judges(one())) is None


def test_judges_of_one_model_hold_it_once() -> None:
    held = {"model": "vllm/m@http://127.0.0.1:8001/v1", "parameters_b": 7.5, "precision": "int8"}
    other = {**held, "model": "vllm/m@http://127.0.0.1:8002/v1"}
    assert total_gb(make_judges({"judges": [held, {**held, "kind": "verdict"}, other]})) == 15.0


def test_a_file_and_the_same_values_are_the_same(tmp_path: Path) -> None:
    values = {"judges": [{"role": "critic", "model": MODEL, "settings": {"samples": 2}}], "threshold": 0.1}
    (tmp_path / "j.yaml").write_text(yaml.safe_dump(values), "utf-8")
    assert read_judges(tmp_path / "j.yaml") == make_judges(values)


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        ({}, ("judges is missing",)),
        ({"judges": []}, ("judges is []", "at least 1")),
        ({"judges": MODEL}, ("judges is 'scripted/number'", "list")),
        (one(wieght=1), ("judges.0.wieght", "did you mean 'weight'", "parameters_b")),
        (one() | {"judge": []}, ("unknown key 'judge'", "did you mean 'judges'", "max_rounds")),
        (one(weight=-1), ("judges.0.weight is -1", "greater than or equal to 0")),
        (one(weight=float("nan")), ("judges.0.weight is nan",)),
        (one(weight=float("inf")), ("judges.0.weight is inf",)),
        (one(weight="0.5"), ("judges.0.weight is '0.5'", "number")),
        (one(weight=0), ("all weights are 0", "above 0")),
        ({"judges": [{"role": "critic"}, {"role": "critic"}]}, ("two judges are named 'critic'",)),
        (one() | {"threshold": 1.5}, ("threshold is 1.5",)),
        (one() | {"threshold": float("nan")}, ("threshold is nan",)),
        (one() | {"max_rounds": 11}, ("max_rounds is 11",)),
        (one() | {"normalise": "softmax"}, ("normalise is 'softmax'", "'zscore'", "'rank'")),
        (one() | {"device_gb": 0}, ("device_gb is 0",)),
        (one(precision="fp12"), ("judges.0.precision is 'fp12'", "'int8'")),
        (one(parameters_b=-8), ("judges.0.parameters_b is -8",)),
        (one(temperature=9), ("judges.0.temperature is 9",)),
        (one() | {"budget": {"call": 3}}, ("budget.call", "calls")),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line_that_names_it(values: dict[str, Any], parts: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as problem:
        make_judges(values, "j.yaml")
    said = str(problem.value)
    assert said.startswith("j.yaml: ") and "\n" not in said
    assert all(part in said for part in parts), said


@pytest.mark.parametrize("content", ["", "- a\n- b\n", "judges: [", "\x00"])
def test_a_file_that_is_no_mapping(tmp_path: Path, content: str) -> None:
    path = tmp_path / "j.yaml"
    path.write_text(content, "utf-8")
    with pytest.raises(ConfigError) as problem:
        read_judges(path)
    assert str(path) in str(problem.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.yaml"):
        read_judges(tmp_path / "none.yaml")


def test_the_threshold_goes_with_the_scale_unless_it_is_said() -> None:
    judges = [{"model": "zoo/phi"}]
    for how, threshold in THRESHOLDS.items():
        assert make_judges({"judges": judges, "normalise": how}).threshold == threshold
        assert make_judges({"judges": judges, "normalise": how, "threshold": 0.5}).threshold == 0.5
    with pytest.raises(ConfigError, match="normalise is 'zscores'"):
        make_judges({"judges": judges, "normalise": "zscores"})
