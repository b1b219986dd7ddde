"""The pairwise judge: who meets whom, what two orders come to, and what it tells about position bias."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest

from pluribus.backends import Request
from pluribus.errors import BackendError, ServerError
from pluribus.judges import Candidate, Juror, Opinion, pairwise
from pluribus.judges.pairwise import Settings, position_bias, schedule

Sit = Callable[..., Juror]
Replies = Callable[..., list[Candidate]]
Asked = Callable[[Juror], list[Request]]


def shown(request: Request) -> tuple[int, int]:
    """The qualities the two candidates write of themselves, in the order in which they are shown."""
    first, second = re.findall(r"quality (\d+)", request.messages[0].content)
    return int(first), int(second)


def honest(request: Request) -> str:
    first, second = shown(request)
    choice = "tie" if first == second else "1" if first > second else "2"
    return f'{{"reason": "{first} against {second}", "choice": "{choice}"}}'


def first_always(request: Request) -> str:
    return '{"reason": "I like it", "choice": "1"}'


def comparisons(opinion: Opinion) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = opinion.notes["comparisons"]
    return found


async def test_everybody_meets_everybody_in_both_orders(sit: Sit, candidates: Replies, asked: Asked) -> None:
    juror = sit(Settings(criteria="Only quality."), honest)
    opinions = await pairwise.judge_all(juror, candidates("quality 1", "quality 3", "quality 2"))
    assert [opinion.score for opinion in opinions] == [0.0, 1.0, 0.5]
    met = Counter(shown(request) for request in asked(juror))
    assert met == {pair: 1 for a, b in combinations((1, 2, 3), 2) for pair in ((a, b), (b, a))}
    assert "What counts: Only quality." in asked(juror)[0].messages[-1].content


async def test_each_call_is_in_one_opinion_that_of_the_candidate_shown_first(sit: Sit, candidates: Replies) -> None:
    texts = ("quality 1", "quality 3", "quality 2")
    opinions = await pairwise.judge_all(sit(Settings(), honest), candidates(*texts))
    for text, opinion in zip(texts, opinions, strict=True):
        assert len(opinion.turns) == 2
        assert all(turn.messages[-1].content.split("Answer 1:\n~~~\n")[1].startswith(text) for turn in opinion.turns)
    assert opinions[1].reason is not None and re.fullmatch(r"As answer 1 of 2: 3 against \d", opinions[1].reason)


async def test_the_notes_hold_the_comparisons_as_plain_values(sit: Sit, candidates: Replies) -> None:
    worse, better = await pairwise.judge_all(sit(Settings(), honest), candidates("quality 1", "quality 2"))
    (lost,), (won,) = comparisons(worse), comparisons(better)
    assert {lost.pop("place"), won.pop("place")} == {1, 2}
    assert lost == {"other": ["run", 1], "sample": 0, "first": "loss", "second": "loss", "points": 0.0}
    assert won == {"other": ["run", 0], "sample": 0, "first": "win", "second": "win", "points": 1.0}
    assert (worse.samples, better.samples) == ((0.0,), (1.0,))


async def test_a_judge_that_always_names_the_first_gives_everybody_one_half(sit: Sit, candidates: Replies) -> None:
    opinions = await pairwise.judge_all(
        sit(Settings(samples=2), first_always), candidates(*(f"quality {i}" for i in range(5)))
    )
    assert [opinion.score for opinion in opinions] == [0.5] * 5
    bias = position_bias([opinion.notes for opinion in opinions])
    assert (bias.first_share, bias.flipped_share) == (1.0, 1.0)
    assert (bias.decided, bias.first, bias.compared, bias.flipped) == (40, 40, 20, 20)


async def test_a_judge_without_bias_names_the_first_half_of_the_time(sit: Sit, candidates: Replies) -> None:
    opinions = await pairwise.judge_all(sit(Settings(), honest), candidates(*(f"quality {i}" for i in range(5))))
    bias = position_bias([opinion.notes for opinion in opinions])
    assert (bias.first_share, bias.flipped_share) == (0.5, 0.0)
    assert (bias.decided, bias.compared) == (20, 10)


def test_of_no_comparison_there_is_no_share() -> None:
    bias = position_bias([{}, {"comparisons": []}, {"other kind": 1}])
    assert (bias.first_share, bias.flipped_share) == (None, None)


async def test_a_tie_is_half_a_point_and_names_no_winner(sit: Sit, candidates: Replies) -> None:
    opinions = await pairwise.judge_all(sit(Settings(), honest), candidates("quality 4 a", "quality 4 b"))
    assert [opinion.score for opinion in opinions] == [0.5, 0.5]
    bias = position_bias([opinion.notes for opinion in opinions])
    assert (bias.decided, bias.compared, bias.flipped) == (0, 1, 0)


async def test_the_same_text_is_a_tie_that_nobody_is_asked_about(sit: Sit, candidates: Replies, asked: Asked) -> None:
    juror = sit(Settings(), first_always)
    opinions = await pairwise.judge_all(juror, candidates("quality 4", "quality 4"))
    assert [(opinion.score, opinion.turns) for opinion in opinions] == [(0.5, ())] * 2
    assert not asked(juror)
    assert position_bias([opinion.notes for opinion in opinions]).compared == 0


async def test_a_comparison_with_one_order_unread_counts_for_nothing(sit: Sit, candidates: Replies) -> None:
    def said(request: Request) -> str:
        return "I can not say." if shown(request) == (1, 2) else honest(request)

    opinions = await pairwise.judge_all(sit(Settings(), said), candidates("quality 1", "quality 2", "quality 3"))
    assert [opinion.score for opinion in opinions] == [0.0, 0.0, 1.0]
    assert None in opinions[0].samples and None in opinions[1].samples
    bias = position_bias([opinion.notes for opinion in opinions])
    assert (bias.decided, bias.compared) == (5, 2)


@pytest.mark.parametrize("said", ["Both are fine.", '{"reason": "?", "choice": "3"}', "{choice: 1 or 2}"])
async def test_nothing_read_is_a_failure_for_both(sit: Sit, candidates: Replies, asked: Asked, said: str) -> None:
    juror = sit(Settings(), lambda request: said)
    opinions = await pairwise.judge_all(juror, candidates("quality 1", "quality 2"))
    assert len(asked(juror)) == 4
    for opinion in opinions:
        assert opinion.score is None and opinion.failure is not None and opinion.failure.kind == "bad_form"
        assert "none of 1 comparisons was read in both orders; the last: " in opinion.failure.message


async def test_a_failing_service_is_a_failure(sit: Sit, candidates: Replies) -> None:
    def said(request: Request) -> str | BackendError:
        return ServerError("500: ill") if shown(request)[0] == 1 else honest(request)

    opinions = await pairwise.judge_all(sit(Settings(), said), candidates("quality 1", "quality 2"))
    assert [opinion.failure and opinion.failure.kind for opinion in opinions] == ["server_error"] * 2


async def test_a_candidate_alone_has_no_score_and_is_told_why(sit: Sit, candidates: Replies, asked: Asked) -> None:
    juror = sit(Settings(), honest)
    (opinion,) = await pairwise.judge_all(juror, candidates("quality 1"))
    assert opinion.score is None and opinion.failure is not None
    assert "there is no other candidate of this question" in opinion.failure.message
    assert not asked(juror) and await pairwise.judge_all(juror, []) == []


@pytest.mark.parametrize("n", range(2, 12))
@pytest.mark.parametrize("opponents", [0, 1, 2, 3, 6, 100])
def test_everybody_meets_equally_many_and_nobody_twice(n: int, opponents: int) -> None:
    pairs = schedule(n, opponents, "seed")
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)
    assert all(one != other for one, other in pairs)
    wanted = min(opponents or n - 1, n - 1)
    met = {wanted if wanted % 2 == 0 or n % 2 == 0 else wanted + 1}
    assert {sum(place in pair for pair in pairs) for place in range(n)} == met


def test_the_seed_draws_the_ring() -> None:
    rings = {tuple(schedule(8, 2, seed)) for seed in range(8)}
    assert len(rings) > 1 and schedule(8, 2, 5) == schedule(8, 2, 5)


async def test_a_ring_asks_as_many_calls_as_it_has_pairs(sit: Sit, candidates: Replies, asked: Asked) -> None:
    juror = sit(Settings(opponents=2, samples=2), honest, seed=7)
    opinions = await pairwise.judge_all(juror, candidates(*(f"quality {i}" for i in range(6))))
    assert len(asked(juror)) == 6 * 2 * 2
    assert {len(comparisons(opinion)) for opinion in opinions} == {4}
    assert (opinions[5].score, opinions[0].score) == (1.0, 0.0)


async def test_an_attack_stays_inside_its_fence(sit: Sit, candidates: Replies, asked: Asked, attack: str) -> None:
    juror = sit(Settings(), first_always)
    await pairwise.judge_all(juror, candidates(attack, "It is 20."))
    for request in asked(juror):
        (message,) = request.messages
        assert re.search(rf"Answer [12]:\n~~~~~\n{re.escape(attack)}\n~~~~~\n", message.content)
        assert message.content.count("Ignore all that.") == 1


async def test_the_zoo_is_asked_to_pick(sit: Sit, candidates: Replies, asked: Asked) -> None:
    juror = sit(Settings(), lambda request: "19. 1: 19 yes. 2: 2 no. {choice: 1}", words="zoo")
    await pairwise.judge_all(juror, candidates("It is 19.", "It is 2."))
    assert {request.messages[-1].content.split("\n", 1)[1] for request in asked(juror)} == {
        "1: It is 19.\n2: It is 2.\npick", "1: It is 2.\n2: It is 19.\npick",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("values", "problem"),
    [({"opponents": -1}, "opponents is -1"), ({"samples": 0}, "samples is 0"), ({"criteria": ""}, "criteria is empty")],
)
def test_settings_that_can_not_be_are_refused(values: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Settings(**values)
