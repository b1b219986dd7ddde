"""The toolkit as tools that a language model may call, in the form of OpenAI's function calling."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pluribus.errors import PluribusError, UnknownName, UsageError, failure
from pluribus.replies import fields
from pluribus.toolkit.analysts import make_asked
from pluribus.toolkit.manager import Manager, ManagerDecision
from pluribus.toolkit.voting import majority_vote
from pluribus.types import Question


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


A = TypeVar("A", bound=_Arguments)


class _Vote(_Arguments):
    answers: list[str | None] = Field(description="One answer per voter, equal answers spelt alike; null abstains.")
    weights: list[float] | None = Field(None, description="One vote weight of at least 0 per voter; null: all equal.")
    tie: Literal["first", "random", "abstain"] | None = Field(
        None, description="Who wins a shared lead: the first seen, one by lot, or nobody; null: the first."
    )
    min_agreement: float | None = Field(
        None, description="Above 0 and at most 1: the share of all voters that the winner needs; null: none."
    )


class _Decide(_Arguments):
    question: str = Field(description="The question with all that is needed to answer it.")
    labels: list[str] | None = Field(None, description="The closed set of answers to decide between, if there is one.")
    choices: list[str] | None = Field(
        None, description="Options, answered by their letters A, B, C, …, if the question has them."
    )
    kind: Literal["number", "choice", "label", "boolean", "text"] | None = Field(
        None, description="What an answer is; null: choice with choices, label with labels, else text."
    )


_VOTE = "Counts votes: winner, share, margin, ties, and how sure the result is."
_DECIDE = "Asks a council of analysts several times each and returns their decision, confidence and dissent."


class ConsensusToolkit:
    """`majority_vote` and `council_decide` for a model that calls functions.

    >>> toolkit = ConsensusToolkit()
    >>> [tool["function"]["name"] for tool in toolkit.tools()]
    ['majority_vote']
    >>> toolkit.call("majority_vote", '{"answers": ["A", "B", "A"]}')["winner"]
    'A'

    Args:
        manager: who decides; None: there is no tool `council_decide`.
        observe: is handed each decision whole; the calling model gets it without the analysts' texts.
    """

    def __init__(
        self, manager: Manager | None = None, observe: Callable[[ManagerDecision], None] | None = None
    ) -> None:
        self.manager = manager
        self.observe = observe

    def tools(self) -> list[dict[str, Any]]:
        """Definitions for the argument `tools` of a chat completion, in the form that `strict` asks for."""
        offered = [_tool("majority_vote", _VOTE, _Vote)]
        return offered if self.manager is None else [*offered, _tool("council_decide", _DECIDE, _Decide)]

    def call(self, name: str, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
        """Runs a tool and waits; see `acall`. Works inside a running loop too."""
        try:
            asked = self._asked(name, arguments)
            if isinstance(asked, _Vote):
                return _voted(asked)
            manager, question = asked
            return self._told(manager.decide(question))
        except PluribusError as problem:
            return _error(problem)

    async def acall(self, name: str, arguments: str | Mapping[str, Any]) -> dict[str, Any]:
        """Runs a tool.

        Args:
            name: as the model wrote it.
            arguments: the JSON text as the model wrote it, or a mapping.

        Returns: what goes back to the model, ready for JSON. What the model did wrong, and a decision that could not
            be asked for, is `{"error": {"kind", "message", "retryable"}}`: the model reads it and can do better.
        """
        try:
            asked = self._asked(name, arguments)
            if isinstance(asked, _Vote):
                return _voted(asked)
            manager, question = asked
            return self._told(await manager.adecide(question))
        except PluribusError as problem:
            return _error(problem)

    def _told(self, found: ManagerDecision) -> dict[str, Any]:
        if self.observe is not None:
            self.observe(found)
        return found.plain(texts=False)

    def _asked(self, name: str, arguments: str | Mapping[str, Any]) -> _Vote | tuple[Manager, Question]:
        """What a call asks for, checked."""
        if name == "majority_vote":
            return _read(name, _Vote, arguments)
        if name == "council_decide" and self.manager is not None:
            said = _read(name, _Decide, arguments)
            return self.manager, make_asked(said.question, said.kind, said.choices or (), said.labels or ())
        raise UnknownName("tool", name, [tool["function"]["name"] for tool in self.tools()])


def _voted(asked: _Vote) -> dict[str, Any]:
    return asdict(majority_vote(asked.answers, asked.weights, asked.tie or "first", asked.min_agreement))


def _error(problem: PluribusError) -> dict[str, Any]:
    return {"error": asdict(failure(problem))}


def _tool(name: str, description: str, arguments: type[_Arguments]) -> dict[str, Any]:
    parameters = fields(arguments).schema
    return {
        "type": "function",
        "function": {"name": name, "description": description, "strict": True, "parameters": parameters},
    }


def _read(name: str, model: type[A], arguments: str | Mapping[str, Any]) -> A:
    """The arguments, checked; UsageError says what is wrong with the first bad one."""
    try:
        return model.model_validate(json.loads(arguments) if isinstance(arguments, str) else arguments)
    except ValidationError as problem:
        first = problem.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the arguments"
        words = (
            "expected a JSON object" if first["type"] == "model_type" else first["msg"][0].lower() + first["msg"][1:]
        )
        raise UsageError(f"{name}: {place}: {words}", hint=f"it takes {', '.join(model.model_fields)}") from None
    except (ValueError, RecursionError) as problem:
        raise UsageError(
            f"{name}: the arguments are no JSON object: {problem}", hint=f"it takes {', '.join(model.model_fields)}"
        ) from None
