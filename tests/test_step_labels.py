"""Labels of single steps: what decides them, what is asked for it, and what nobody can say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from pluribus.agents import Agent
from pluribus.backends import Request
from pluribus.backends.scripted import Scripted
from pluribus.errors import BackendError, BudgetExceeded, ServerError
from pluribus.judges import Juror, first_error
from pluribus.prompts import dialect
from pluribus.step_labels import Marked, beginnings, by, checked, cuttings, first_bad, located, roll, rolled
from pluribus.tasks.sums import check_steps
from pluribus.types import Attempt, Completion, Key, Question, Seat, Transcript, Turn

ASK = Question("q", "sums", "12 + 7 - 5 + 1?", "number")
KEY = Key("q", "15", solution="12 + 7 = 19. 19 - 5 = 14. 14 + 1 = 15.")
RIGHT = "12 + 7 = 19. 19 - 5 = 14. 14 + 1 = 15. {final answer: 15}"
SLIP = "12 + 7 = 19. 19 - 5 = 13. 13 + 1 = 14. {final answer: 14}"
Reply = Callable[[Request], str | BackendError]


def transcript(*texts: str, reason: str = "stop") -> Transcript:
    seats = tuple(Seat(i, f"agent {i + 1}", "m") for i in range(len(texts)))
    turns = tuple(Turn(0, i, "answer", (), Completion(text, "m", finish_reason=reason)) for i, text in enumerate(texts))
    return Transcript(Attempt("a", "q", "vote", {}, seats, 0), turns, tuple(range(len(texts))), "complete")


def agent(reply: Reply, question: Question = ASK) -> tuple[Agent, Scripted]:
    backend = Scripted(reply)
    return Agent(Seat(0, "goer", backend.model), backend, dialect("standard")).at(question, 0), backend


def faithful(request: Request) -> str:
    """Computes on from the last result it was given, as one who trusts it would."""
    said = request.prefill or ""
    value, steps = int(said.rpartition("= ")[2].rstrip(".")), said.count("=")
    return f" {{final answer: {value + sum((7, -5, 1)[steps:])}}}"


def marks(found: Marked) -> list[bool | None]:
    return [one.correct for one in found.labels]


# --- where steps end -------------------------------------------------------------------------------------------------


def test_beginnings_are_the_text_as_it_was_written() -> None:
    text = "  One.\n\n\n One.  Two\n\nOne. "
    steps = cuttings(ASK, transcript(text))[0]
    assert steps == ("One.", "One.  Two", "One.")
    assert beginnings(text, steps) == ("  One.", "  One.\n\n\n One.  Two", "  One.\n\n\n One.  Two\n\nOne.")


def test_only_answers_that_have_a_step_are_cut() -> None:
    one = transcript(RIGHT, "", SLIP)
    critic = replace(one.turns[2], role="critique")
    assert set(cuttings(ASK, replace(one, turns=(*one.turns[:2], critic), finals=(0, 1)))) == {0}


def test_another_cut_is_another_marker() -> None:
    assert (by("steps", "auto"), by("steps", "sentences")) == ("steps", "steps sentences")


# --- the checker -----------------------------------------------------------------------------------------------------


def test_the_tasks_checker_marks_every_step_of_every_answer() -> None:
    one = transcript(RIGHT, SLIP)
    found = checked(check_steps, ASK, KEY, one, cuttings(ASK, one))
    assert marks(found) == [True] * 4 + [True, False, False, False]
    assert [(label.turn, label.step) for label in found.labels] == [(t, s) for t in (0, 1) for s in range(4)]
    assert {(label.attempt_id, label.checker, label.judge) for label in found.labels} == {("a", "steps", None)}


# --- completions -----------------------------------------------------------------------------------------------------


async def test_a_step_is_good_when_the_right_answer_still_comes_of_it() -> None:
    one = transcript(RIGHT, SLIP)
    goer, backend = agent(faithful)
    found = await rolled(goer, KEY, one, cuttings(ASK, one), 3, name="rollouts 3 m")
    assert marks(found) == [True] * 4 + [True, False, False, False]
    assert {label.checker for label in found.labels} == {"rollouts 3 m"}
    begun = [request.prefill for request in backend.seen]
    assert len(set(begun)) == 5 and len(begun) == 15, "the beginning that both share is asked about once"
    assert RIGHT not in begun and SLIP not in begun, "a whole reply's own answer counts"
    assert {(share.turn, share.step): (share.right, share.drawn) for share in found.shares} == {
        (0, 0): (3, 3), (0, 1): (3, 3), (0, 2): (3, 3), (1, 0): (3, 3), (1, 1): (0, 3), (1, 2): (0, 3),
    }  # fmt: skip


async def test_the_draws_differ_and_any_right_one_is_enough() -> None:
    goer, backend = agent(lambda request: f" {{final answer: {15 if request.sample == 2 else 0}}}")
    found = await roll(goer, KEY, "12 + 7 = 19.", 4)
    assert (found.good, found.share, found.drawn) == (True, 0.25, 4)
    assert len({request.sampling.seed for request in backend.seen}) == 4
    assert (await roll(goer, KEY, "12 + 7 = 19.", 2)).good is False


async def test_a_reply_that_was_cut_off_is_gone_on_with_at_its_end() -> None:
    one = transcript("12 + 7 = 19. 19 - 5 = 14.", reason="length")
    goer, backend = agent(faithful)
    found = await rolled(goer, KEY, one, cuttings(ASK, one), 1)
    assert marks(found) == [True, True]
    assert [request.prefill for request in backend.seen][-1] == "12 + 7 = 19. 19 - 5 = 14."
    ended = transcript("12 + 7 = 19. 19 - 5 = 14.")
    assert marks(await rolled(goer, KEY, ended, cuttings(ASK, ended), 1)) == [True, False]


async def test_after_failed_calls_only_a_right_answer_says_something() -> None:
    def shaky(request: Request) -> str | BackendError:
        return ServerError("500") if request.sample else faithful(request)

    goer, _ = agent(shaky)
    good, unknown = await roll(goer, KEY, "12 + 7 = 19.", 3), await roll(goer, KEY, "12 + 7 = 18.", 3)
    assert (good.good, good.failed, unknown.good, unknown.share) == (True, 2, None, 0.0)
    broken, _ = agent(lambda request: ServerError("500"))
    one = transcript(SLIP)
    for halve in (False, True):
        found = await rolled(broken, KEY, one, cuttings(ASK, one), 2, halve=halve)
        assert marks(found) == [None, None, None, False]
        assert all(share.drawn == 0 and share.failed == 2 for share in found.shares)


async def test_free_text_that_is_not_the_keys_is_left_open() -> None:
    question, key = Question("q", "t", "Who?", "text"), Key("q", "Lord Byron")
    goer, _ = agent(lambda request: " {final answer: the poet}", question)
    assert (await roll(goer, key, "He wrote it.", 2)).good is None
    sure, _ = agent(lambda request: " {final answer: lord byron}", question)
    assert (await roll(sure, key, "He wrote it.", 2)).good is True


async def test_a_spent_budget_ends_the_work() -> None:
    def spent(request: Request) -> str:
        raise BudgetExceeded("the budget of 0 calls is spent")

    goer, _ = agent(spent)
    one = transcript(SLIP)
    with pytest.raises(BudgetExceeded):
        await rolled(goer, KEY, one, cuttings(ASK, one), 2)


async def test_halving_finds_the_first_wrong_step_with_fewer_calls() -> None:
    one = transcript(SLIP, RIGHT)
    goer, backend = agent(faithful)
    found = await rolled(goer, KEY, one, cuttings(ASK, one), 3, halve=True)
    assert marks(found) == [True, False, False, False] + [True] * 4
    assert len(backend.seen) == 2 * 3, "two questions for four steps, none for a reply that is right"


@pytest.mark.parametrize("count", [1, 2, 5, 16])
async def test_halving_by_definition(count: int) -> None:
    for first in range(count):
        asked: list[int] = []

        async def good(step: int, first: int = first, asked: list[int] = asked) -> bool:
            asked.append(step)
            return step < first

        assert await first_bad(count, good) == first
        assert len(asked) <= count.bit_length() and len(set(asked)) == len(asked)


# --- a judge ---------------------------------------------------------------------------------------------------------


async def test_a_judge_marks_all_before_the_step_it_names() -> None:
    one = transcript(RIGHT, SLIP, "12 + 7 = 19. Well.")
    said = {"[3] 14 + 1": "none", "[3] 13 + 1": "2", "Well": "perhaps"}
    sits, _ = agent(
        lambda request: next(f"{{first_error: {n}}}" for part, n in said.items() if part in request.messages[0].content)
    )
    juror = Juror("J 5b3c", ASK, first_error.Settings(), sits)
    found = await located(juror, one, cuttings(ASK, one))
    assert marks(found) == [True] * 4 + [True, False, False, False] + [None, None]
    assert {label.judge for label in found.labels} == {"J 5b3c"}
    assert dict(found.silent) == {"the reply names no step": 1}


async def test_a_judge_that_fails_marks_nothing() -> None:
    one = transcript(SLIP)
    sits, _ = agent(lambda request: ServerError("500: out of order"))
    found = await located(Juror("J", ASK, first_error.Settings(), sits), one, cuttings(ASK, one))
    assert marks(found) == [None] * 4
    assert list(found.silent) == ["500: out of order"]
