"""Prices: the table, what is laid over it, and that unknown is not zero."""

import tomllib
from datetime import date
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pluribus.backends import parse, services
from pluribus.backends._prices import FREE, Price, cost, price_of, read_prices, worst_case
from pluribus.errors import ConfigError, DataError
from pluribus.types import Completion


def used(prompt: int | None, completion: int | None, cached: int | None = None) -> Completion:
    return Completion("", "m", prompt_tokens=prompt, completion_tokens=completion, cached_tokens=cached)


def test_the_table_is_dated_and_names_services_that_exist() -> None:
    table = tomllib.loads((files("pluribus.backends") / "_prices.toml").read_text("utf-8"))
    for service, prices in table.items():
        assert service in services()
        assert date.fromisoformat(prices["as_of"]) > date(2025, 1, 1)
        for name, price in prices["models"].items():
            assert price_of(parse(f"{service}/{name}")) == Price(**price)
            assert 0 < price.get("cached_input", price["input"]) <= price["input"] <= price["output"]


def test_a_dated_name_has_the_price_of_its_family_unless_it_has_its_own() -> None:
    assert price_of(parse("openai/gpt-4o-mini-2024-07-18")) == price_of(parse("openai/gpt-4o-mini"))
    assert price_of(parse("openai/gpt-4o-2024-05-13")) == Price(5.0, 15.0)
    assert price_of(parse("openai/gpt-4-0125-preview")) is None


def test_what_runs_here_is_free_and_what_is_unknown_is_not() -> None:
    assert price_of(parse("scripted/echo")) == FREE
    assert cost(FREE, used(None, None)) == 0.0
    assert price_of(parse("openai/gpt-9")) is None
    assert price_of(parse("vllm/Qwen/Qwen3-8B")) is None
    assert price_of(parse("azure/my-gpt-4o")) is None


def test_the_same_name_behind_another_address_is_unpriced(monkeypatch: pytest.MonkeyPatch) -> None:
    assert price_of(parse("openai/gpt-4o@http://127.0.0.1:8000/v1")) is None
    assert price_of(parse("openai/gpt-4o@https://api.openai.com/v1/")) == price_of(parse("openai/gpt-4o"))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1")
    assert price_of(parse("openai/gpt-4o")) is None


def test_the_users_prices_come_first(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('["openai/gpt-4o"]\ninput = 1\noutput = 2\n["vllm/*"]\ninput = 0.1\noutput = 0.2\n')
    mine = read_prices(file)
    assert price_of(parse("openai/gpt-4o"), mine) == Price(1.0, 2.0)
    assert price_of(parse("vllm/Qwen/Qwen3-8B@http://127.0.0.1:1/v1"), mine) == Price(0.1, 0.2)
    spec = parse({"model": "openai/gpt-4o", "price": {"input": 3, "output": 4, "cached_input": 1}})
    assert price_of(spec, mine) == Price(3.0, 4.0, 1.0)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('["gpt-4o"]\ninput = 1\noutput = 1', "'gpt-4o' is not a model"),
        ('["nobody/x"]\ninput = 1\noutput = 1', "'nobody/x' is not a model"),
        ('["openai/x"]\ninput = 1', "has no 'output'"),
        ('["openai/x"]\ninput = -1\noutput = 1', "0 or more"),
        ('["openai/x"]\ninput = "free"\noutput = 1', "'free'"),
        ('["openai/x"]\ninput = 1\noutput = 1\ncached = 1', "unknown entry 'cached'"),
        ("input: 1", "not TOML"),
    ],
)
def test_a_price_file_that_is_wrong_says_where(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(DataError, match=r"prices\.toml") as caught:
        read_prices(file)
    assert complaint in str(caught.value)


def test_a_missing_price_file_and_a_wrong_option(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.toml"):
        read_prices(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="option 'price' of openai/x is 3"):
        price_of(parse({"model": "openai/x", "price": 3}))


def test_cached_tokens_have_their_own_price() -> None:
    price = Price(10.0, 40.0, 1.0)
    assert cost(price, used(1_000_000, 0, cached=500_000)) == pytest.approx(5.5)
    assert cost(Price(10.0, 40.0), used(1_000_000, 0, cached=500_000)) == pytest.approx(10.0)
    assert cost(price, used(0, 1_000_000)) == pytest.approx(40.0)
    assert cost(price, used(None, 5)) is None and cost(price, used(5, None)) is None


amounts = st.floats(0, 1000)
counts = st.integers(0, 10**6)


@given(amounts, amounts, st.none() | amounts, counts, counts, st.none() | counts, counts)
def test_no_call_costs_more_than_its_worst_case(
    paid_in: float, paid_out: float, cached_in: float | None, prompt: int, limit: int, cached: int | None, spare: int
) -> None:
    price = Price(paid_in, paid_out, cached_in)
    spent = cost(price, used(prompt, max(0, limit - spare), cached))
    assert spent is not None and spent <= worst_case(price, prompt, limit) * (1 + 1e-9)
