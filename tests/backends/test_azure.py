"""Azure: the deployment's path, the API version, the key's header, and the variables."""

import pytest

from pluribus.backends import Request, connect, parse
from pluribus.backends._chat import ChatBackend
from pluribus.errors import ConfigError, Refused
from pluribus.fake_server import FakeServer
from pluribus.types import Message, Sampling

KEY = "made-up-azure-key"
HELLO = Request((Message("user", "hello"),), Sampling(max_tokens=50))


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_OPENAI_API_KEY_ENV", raising=False)
    monkeypatch.delenv("AZURE_OPENAI_AD_TOKEN", raising=False)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")


async def test_a_deployment_is_asked_with_key_and_version(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeServer(api_key=KEY, faults={"wrong_model": 1.0}) as server:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.url.removesuffix("v1"))
        backend = connect(parse("azure/my-gpt"))
        completion = await backend.complete(HELLO)
        await backend.close()
        path = "/openai/deployments/my-gpt/chat/completions?api-version=2024-10-21"
        assert server.stats()["paths"] == {path: 1}
    assert completion.text and completion.model == "azure/another-model", "the deployment's name is no model's"


async def test_the_address_in_the_spec_and_a_wrong_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "wrong-azure-key")
    with FakeServer(api_key=KEY) as server:
        backend = connect(parse({"model": f"azure/d@{server.url.removesuffix('/v1')}", "api_key_env": "MINE"}))
        with pytest.raises(Refused, match="check the key in MINE") as caught:
            await backend.complete(HELLO)
        await backend.close()
    assert "wrong-azure-key" not in str(caught.value)


def test_the_variable_that_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY_ENV", "TEAM_KEY")
    monkeypatch.setenv("TEAM_KEY", "made-up-team-key")
    backend = connect(parse("azure/d"))
    assert isinstance(backend, ChatBackend) and backend.endpoint.key == "made-up-team-key"


@pytest.mark.parametrize("key", ["abcdef0123456789abcdef0123456789", "sk-with-dashes-0123"])
def test_a_key_in_the_place_of_its_variables_name_is_not_printed(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY_ENV", key)
    with pytest.raises(ConfigError, match="AZURE_OPENAI_API_KEY_ENV") as caught:
        connect(parse("azure/d"))
    assert key not in str(caught.value)


@pytest.mark.parametrize("name", ["AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION"])
def test_every_missing_variable_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delenv(name)
    with pytest.raises(ConfigError, match=f"{name} is not set"):
        connect(parse("azure/d"))
