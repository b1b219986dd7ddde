"""Model specs: what a user may write, and what is said when it can not be."""

import subprocess
import sys
from pathlib import Path

import pytest

from pluribus.backends import ModelSpec, aliases, parse, services
from pluribus.backends.scripted import SCRIPTS
from pluribus.errors import ConfigError, UnknownName
from pluribus.fake_server import FAULTS
from pluribus.load import load, names


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("openai/gpt-4o", ModelSpec("openai", "gpt-4o")),
        ("vllm/Qwen/Qwen3-8B@http://h:1/v1", ModelSpec("vllm", "Qwen/Qwen3-8B", "http://h:1/v1")),
        ("vllm//models/a b/@https://h/v1", ModelSpec("vllm", "/models/a b/", "https://h/v1")),
        ("vllm/org/name@main@http://h/v1", ModelSpec("vllm", "org/name@main", "http://h/v1")),
        ("vllm/org/name@main", ModelSpec("vllm", "org/name@main")),
        (" azure/my deployment ", ModelSpec("azure", "my deployment")),
        ("qwen3-8b", ModelSpec("local", "Qwen/Qwen3-8B")),
        ("qwen3-8b@http://h/v1", ModelSpec("vllm", "Qwen/Qwen3-8B", "http://h/v1")),
        ("gpt-4o@http://h/v1", ModelSpec("openai", "gpt-4o", "http://h/v1")),
    ],
)
def test_what_a_spec_means(text: str, spec: ModelSpec) -> None:
    assert parse(text) == spec


def test_a_mapping_has_options_and_its_address_wins() -> None:
    spec = parse({"model": "vllm/m@http://a/v1", "base_url": "http://b/v1", "timeout_s": 5})
    assert spec == ModelSpec("vllm", "m", "http://b/v1", {"timeout_s": 5})


def test_identity_leaves_out_address_and_key_but_not_what_changes_the_answers() -> None:
    plain = parse({"model": "vllm/m@http://a/v1", "api_key_env": "X", "timeout_s": 5})
    assert plain.model == parse("vllm/m").model == "vllm/m"
    assert parse({"model": "vllm/m", "extra_body": {"top_k": 5}}).model != "vllm/m"


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        ("gpt-9", "neither 'service/model' nor a known short name"),
        ("openai/", "neither"),
        ("opnai/gpt-4o", "did you mean 'openai'"),
        ({"model": "openai/x", "timeout": 5}, "unknown option of openai 'timeout'; did you mean 'timeout_s'"),
        ({"name": "openai/x"}, "no 'model' entry"),
        ("scripted/echo@http://h/v1", "scripted/ runs in this process"),
    ],
)
def test_what_no_spec_is(model: object, complaint: str) -> None:
    with pytest.raises((ConfigError, UnknownName)) as caught:
        parse(model)  # type: ignore[arg-type] # the cases are strings and mappings
    assert complaint in str(caught.value)


def test_every_service_has_a_backend_and_every_alias_a_service() -> None:
    for service in services().values():
        assert service["backend"] in names("backends")
    for short, full in aliases().items():
        assert "/" not in short
        assert parse(short) == parse(full)


def test_parsing_loads_no_sdk_and_no_torch() -> None:
    program = (
        "import sys; from pluribus.backends import parse, connect\n"
        "connect(parse('vllm/m')); parse('local/m'); parse('azure/m')\n"
        "print([name for name in ('openai', 'torch', 'aiohttp', 'httpx2') if name in sys.modules])"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "[]"


def test_the_docs_page_names_every_service_option_fault_and_script() -> None:
    page = (Path(__file__).parents[1] / "docs" / "backends.md").read_text("utf-8")
    options = {option for name in ("openai", "azure", "scripted") for option in load("backends", name).OPTIONS}
    for name in {*services(), *options, *FAULTS, *SCRIPTS}:
        assert f"`{name}`" in page, name
