"""Reads a verdict off the model's log-probabilities: no rating is written, so none has to be parsed.

`p_true`: the model is asked for one word, true or false, and the score is P(true) / (P(true) + P(false)) over the
alternatives of that word's first token, in [0, 1]; a word that is not among them counts as probability 0. It is a
failure when neither is among them, when both together have less than 5 % (then the model begins with something else,
and their proportion is noise), or when the service gives none. Source: P(True) of Kadavath et al. 2022, arXiv
2207.05221; here the reply is a word, not the letter of an option.

`likelihood`: nothing is asked; the candidate is put behind the question as this model's own answer, and the score is
the exponential of its mean log-likelihood per token, which is the geometric mean of its tokens' probabilities, in
(0, 1] (the inverse of its perplexity; the mean itself, in nats, is in `notes`). Source: GPTScore of Fu et al. 2023,
arXiv 2302.04166. It measures how expected a text is, not how right: a judge beside others, not instead of them.

The kind can not read reasons: in later rounds its opinion stands. The zoo's models were never asked for one word
alone, so `p_true` fails on them by name; `likelihood` works.
"""

from __future__ import annotations

import math
from asyncio import gather
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pluribus.agents import Agent
from pluribus.judges import Candidate, Juror, Opinion
from pluribus.judges._asking import seated, why
from pluribus.prompts import Peer
from pluribus.types import Completion, Failure, Turn

PROMPTS = ("p_true", "answer")
MODEL = "chat"
RANGE = (0.0, 1.0)
REREADS = False
MODES: tuple[Literal["p_true", "likelihood"], ...] = ("p_true", "likelihood")
TRUE, FALSE = frozenset({"true", "yes"}), frozenset({"false", "no"})
ALTERNATIVES = 20
"""Alternatives wanted per token: the most that common services give."""
LEAST_MASS = 0.05
"""Least probability that true and false have together; the zoo's models, who never say either, give them less."""
_ONE_WORD = 8
"""Tokens generated at most: the word, and line breaks before it."""
_AROUND = " \t\r\n\"'`*_.▁Ġ"
"""What tokens carry around a word."""


@dataclass(frozen=True, slots=True)
class Settings:
    mode: Literal["p_true", "likelihood"] = "p_true"
    """What is read; see above."""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode is {self.mode!r}; expected one of {', '.join(MODES)}")


async def judge_all(juror: Juror, candidates: Sequence[Candidate]) -> list[Opinion]:
    """An opinion on each candidate; `notes` holds the two masses of `p_true`, or the mean and count of `likelihood`."""
    one = _p_true if juror.settings.mode == "p_true" else _likelihood
    return list(await gather(*(one(juror, candidate.text) for candidate in candidates)))


# --- P(True) ---------------------------------------------------------------------------------------------------------


async def _p_true(juror: Juror, text: str) -> Opinion:
    turn = await _brief(seated(juror)).speak(
        "p_true", role="verdict", round=juror.round, peers=[Peer("answer", text)], top_logprobs=ALTERNATIVES
    )
    if turn.completion is None:
        return _none(turn, why(turn))
    if turn.completion.reasoning:
        return _no_logprobs(turn, "the model thinks before its first word; turn its reasoning off, or ask a verdict")
    true, false = true_and_false(turn.completion.top_logprobs or ())
    if true + false < LEAST_MASS:
        return _no_logprobs(turn, _missing(turn.completion, true + false))
    return Opinion(true / (true + false), turns=(turn,), notes={"p_true": true, "p_false": false})


def _brief(agent: Agent) -> Agent:
    """The agent, generating no more than one word."""
    sampling = agent.seat.sampling
    sampling = replace(sampling, max_tokens=min(sampling.max_tokens, _ONE_WORD))
    return replace(agent, seat=replace(agent.seat, sampling=sampling))


def true_and_false(alternatives_T: Sequence[Mapping[str, float]]) -> tuple[float, float]:
    """Probability of true and of false as the first word of a reply, each in [0, 1].

    Args:
        alternatives_T: for each generated token its alternatives, text → log-probability in nats. Tokens that are most
            likely blank are passed over.

    >>> first, second = {"\\n": -0.1, "no": -3.0}, {"True": math.log(0.6), " yes": math.log(0.2), "No": math.log(0.1)}
    >>> [round(mass, 2) for mass in true_and_false([first, second])]
    [0.8, 0.1]
    >>> true_and_false([{"The": -0.1, "It": -2.0}])
    (0.0, 0.0)
    """
    first = next((found for found in alternatives_T if found and max(found, key=found.__getitem__).strip()), {})
    return _mass(first, TRUE), _mass(first, FALSE)


def _mass(alternatives: Mapping[str, float], words: frozenset[str]) -> float:
    return math.fsum(math.exp(logprob) for token, logprob in alternatives.items() if _bare(token) in words)


def _bare(token: str) -> str:
    return token.strip(_AROUND).lower()


def _missing(completion: Completion, mass: float) -> str:
    if not completion.top_logprobs:
        return "the service gives no log-probabilities of alternatives; take a model of one that does"
    said = " ".join(completion.text.split())[:40]
    if mass > 0:
        return f"true and false have {mass:.1%} of the first word of {said!r}; expected {LEAST_MASS:.0%} or more"
    return f"neither true nor false is among the alternatives of the first word of {said!r}"


# --- likelihood ------------------------------------------------------------------------------------------------------


async def _likelihood(juror: Juror, text: str) -> Opinion:
    if not text:
        return Opinion(None, failure=Failure("no_logprobs", "the reply is empty, and nothing has no likelihood"))
    turn = await seated(juror).speak("answer", role="likelihood", round=juror.round, continuation=text)
    if turn.completion is None:
        return _none(turn, why(turn))
    logprobs = turn.completion.logprobs
    if not logprobs:
        return _no_logprobs(turn, "the service gives no log-probabilities of a given text; local/ models do")
    mean = math.fsum(logprobs) / len(logprobs)
    if not math.isfinite(mean):
        return _no_logprobs(turn, f"the mean log-probability of the reply is {mean}")
    notes = {"mean_logprob": mean, "tokens": len(logprobs)}
    return Opinion(min(math.exp(mean), 1.0), turns=(turn,), notes=notes)


def _no_logprobs(turn: Turn, message: str) -> Opinion:
    return _none(turn, Failure("no_logprobs", message))


def _none(turn: Turn, failure: Failure) -> Opinion:
    return Opinion(None, turns=(turn,), failure=failure)
