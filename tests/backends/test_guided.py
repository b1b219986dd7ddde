"""A JSON schema for the reply: sent to services that take one, dropped where it is refused, never sent elsewhere."""

from __future__ import annotations

import json

import pytest

from pluribus import replies
from pluribus.agents import Agent
from pluribus.backends import Request, call_seed, connect, parse
from pluribus.backends.scripted import Scripted
from pluribus.errors import ConfigError, UnknownName
from pluribus.fake_server import FakeServer
from pluribus.prompts import Peer, dialect
from pluribus.traffic import call_key
from pluribus.types import Message, Question, Sampling, Seat

FORMS = {
    "rating": replies.rating(),
    "verdict": replies.verdict(),
    "ranking": replies.ranking(["1", "2", "3"]),
    "choice": replies.choice(["1", "2"]),
}


def asking(form: replies.Form[object] | None) -> Request:
    return Request((Message("user", "which?"),), Sampling(max_tokens=50), schema=form.schema if form else None)


@pytest.mark.parametrize("name", FORMS)
async def test_a_service_that_takes_a_schema_keeps_to_it(name: str) -> None:
    with FakeServer() as server:
        backend = connect(parse(f"vllm/m@{server.url}"))
        said = await backend.complete(asking(FORMS[name]))
        await backend.close()
    assert FORMS[name].problem(said.text) is None
    assert isinstance(json.loads(said.text), dict)


@pytest.mark.parametrize(("option", "guided"), [({"guided": False}, "follows"), ({}, "ignores"), ({}, "refuses")])
async def test_without_guidance_the_reply_is_free_text(option: dict[str, bool], guided: str) -> None:
    with FakeServer(guided=guided) as server:
        backend = connect(parse({"model": f"vllm/m@{server.url}", **option}))
        said = [await backend.complete(asking(FORMS["rating"])) for _ in range(2)]
        await backend.close()
        sent = server.stats()["kinds"]
    assert all("final answer" in completion.text for completion in said)
    assert sent == ({"400": 1, "ok": 2} if guided == "refuses" else {"ok": 2})  # refused once, then left out


async def test_an_agent_asks_in_a_form_over_http(question: Question) -> None:
    with FakeServer() as server:
        backend = connect(parse(f"vllm/m@{server.url}"))
        agent = Agent(Seat(0, "judge", "vllm/m"), backend, dialect("standard")).at(question, 0)
        peers = [Peer(name, f"it is {name}") for name in ("1", "2", "3")]
        reply = await replies.ask(agent, "rank", FORMS["ranking"], role="ranking", peers=peers)
        await backend.close()
    assert reply.value is not None and sorted(reply.value) == ["1", "2", "3"]
    assert (reply.turn.form, reply.turn.unread, len(reply.turns)) == ("ranking", None, 1)


def test_the_schema_is_part_of_a_calls_content() -> None:
    free, formed, other = asking(None), asking(FORMS["rating"]), asking(FORMS["verdict"])
    assert len({call_key("m", request) for request in (free, formed, other)}) == 3
    assert len({call_seed(0, "m", request) for request in (free, formed, other)}) == 3


def test_wrong_settings_are_named() -> None:
    with pytest.raises(ConfigError, match="option guided of vllm/m is 'yes'; expected a bool"):
        connect(parse({"model": "vllm/m@http://127.0.0.1:1/v1", "guided": "yes"}))
    with pytest.raises(UnknownName, match="unknown kind of guided decoding 'maybe'"):
        FakeServer(guided="maybe")


async def test_a_scripted_model_keeps_to_a_schema_too() -> None:
    backend = connect(parse("scripted/number"))
    assert isinstance(backend, Scripted)
    for name, form in FORMS.items():
        assert form.problem((await backend.complete(asking(form))).text) is None, name
