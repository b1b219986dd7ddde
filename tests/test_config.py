from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pluribus.config import make_config, read_config
from pluribus.errors import ConfigError


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"debat_rounds": 3}, "unknown key 'debat_rounds'"),
        ({"metod": "vote"}, "did you mean 'method'"),
        ({"sampling": {"temprature": 1.0}}, "did you mean 'temperature'"),
        ({"seats": [{"model": "a/b", "wieght": 2.0}]}, "did you mean 'weight'"),
        ({"num_agents": 0}, "num_agents is 0"),
        ({"num_agents": "five"}, "num_agents is 'five'"),
        ({"sampling": {"temperature": -1.0}}, "temperature is -1.0"),
        ({"multi_persona": True, "baseline_a": True}, "multi_persona and baseline_a exclude each other"),
        ({"baseline_a": True, "baseline_b": True}, "exclude each other"),
        ({"preset": "agentarc"}, "there are: agent-scaling, agentark"),
        ({"tie": "coin"}, "tie is 'coin'"),
        ({"seats": [{"model": "a/b"}], "models": ["c/d"]}, "models and seats are both given"),
        ({"budget": {"calls": -1}}, "calls is -1"),
        ({"seats": [{"model": "a/b", "weight": float("inf")}]}, "seats.0.weight is inf"),
        ({"seats": [{"model": "a/b", "weight": float("nan")}]}, "seats.0.weight is nan"),
        ({"seats": [{"model": "a/b", "weight": 1e308}]}, "seats.0.weight is 1e+308"),
    ],
)
def test_a_wrong_entry_is_one_line_that_names_it(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_config(values, "council.yaml")
    assert words in str(caught.value)
    assert str(caught.value).startswith("council.yaml: ")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_absent_or_no_mapping(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_config(tmp_path / "absent.yaml")
    (tmp_path / "list.yaml").write_text("- vote\n")
    with pytest.raises(ConfigError, match="expected a mapping"):
        read_config(tmp_path / "list.yaml")
    (tmp_path / "broken.yaml").write_text("a: [1,\n")
    with pytest.raises(ConfigError, match="not YAML"):
        read_config(tmp_path / "broken.yaml")


def test_sampling_keeps_only_what_was_said() -> None:
    config = make_config({"sampling": {"temperature": 0.5, "stop": ["\n\n"]}})
    assert config.sampling.values() == {"temperature": 0.5, "stop": ("\n\n",)}


def test_a_method_goes_by_the_name_of_other_codes_too() -> None:
    assert make_config({"method": "vanilla"}).method == "single"


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "council.yaml"
    path.write_bytes(b"\xff\xfe\x00binary")
    with pytest.raises(ConfigError, match="not a text in UTF-8"):
        read_config(path)
