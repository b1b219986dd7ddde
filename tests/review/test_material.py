"""Which pairs there are to decide, and what is known of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.review.desk import APART, SAME, Planted, plain, plant, rewarded, varied, verdict

from pluribus.review.material import every_pair, gather
from pluribus.reward import pair_id


def test_pairs_with_a_disputed_reply_come_with_most_disagreement_first(tmp_path: Path) -> None:
    plant(tmp_path, [plain(0, SAME), *varied(4)])
    found = gather(rewarded(tmp_path))
    assert [pair.question.id for pair in found.pairs] == ["q1", "q2", "q3", "q4"]
    known = [pair.disagreement for pair in found.pairs]
    assert known == sorted(known, key=lambda d: -(d or 0)) and all(known)
    assert (found.run, found.name, found.judges) == ("r1", "planted", ("teacher", "critic", "diversity"))


def test_all_adds_a_pair_of_each_question_that_is_agreed_on(tmp_path: Path) -> None:
    plant(tmp_path, [plain(0, SAME), plain(1)])
    assert [pair.question.id for pair in gather(rewarded(tmp_path)).pairs] == ["q1"]
    assert [pair.question.id for pair in gather(rewarded(tmp_path), every=True).pairs] == ["q1", "q0"]


def test_limit_takes_those_with_most_disagreement(tmp_path: Path) -> None:
    plant(tmp_path, varied(5))
    found = rewarded(tmp_path)
    assert gather(found, limit=2).pairs == gather(found).pairs[:2]


def test_each_disputed_reply_is_in_one_pair_and_no_more_pairs_are_made_than_that_takes(tmp_path: Path) -> None:
    replies = [
        (f"it is {n}", scores)
        for n, scores in enumerate(
            [(0.9, 0.1, 0.5), (0.8, 0.1, 0.5), (0.7, 0.1, 0.5), (0.6, 0.1, 0.5), (0.5, 0.5, 0.5), (1.0, 0.1, 0.6)]
        )
    ]
    plant(tmp_path, [Planted("How much?", replies)])
    found = gather(rewarded(tmp_path))
    items = [reply.turn for pair in found.pairs for reply in pair.replies]
    assert sorted({0, 1, 2, 3, 5} - set(items)) == []
    assert len(found.pairs) == 3, "five disputed replies"
    assert sorted(reply.turn for reply in found.pairs[0].replies) == [0, 5], "the two most disputed"


def test_replies_with_the_same_text_make_no_pair_and_are_counted(tmp_path: Path) -> None:
    plant(tmp_path, [Planted("How much?", [("it is 2", APART[0]), (" it is 2\n", APART[1])]), plain(1)])
    found = gather(rewarded(tmp_path), every=True)
    assert [pair.question.id for pair in found.pairs] == ["q1"] and found.alone == 2


def test_a_pair_that_somebody_decided_stays_whatever_the_rewards_say(tmp_path: Path) -> None:
    plant(tmp_path, [plain(0, SAME), *varied(3)])
    found = rewarded(tmp_path)
    calm = next(pair for pair in gather(found, every=True).pairs if pair.question.id == "q0")
    before = gather(found).pairs
    after = gather(found, [verdict(calm, "first"), verdict(before[1], "tie")]).pairs
    assert {pair.id for pair in after} == {pair.id for pair in before} | {calm.id}
    gone = replace(verdict(calm, "first"), first=("no such attempt", 0))
    assert gather(found, [gone]).pairs == before


def test_a_decided_pair_covers_its_replies_and_the_others_keep_theirs(tmp_path: Path) -> None:
    replies = [(f"it is {n}", (0.9 - n / 20, 0.1, 0.5)) for n in range(4)]
    plant(tmp_path, [Planted("How much?", replies)])
    found = rewarded(tmp_path)
    first, second = gather(found).pairs
    assert {pair.id for pair in gather(found, [verdict(second, "first")]).pairs} == {first.id, second.id}


def test_a_reply_knows_who_wrote_it_and_what_each_judge_said(tmp_path: Path) -> None:
    scores: tuple[tuple[float | None, float | None, float | None], ...] = ((0.9, None, 0.1), (0.3, 0.8, 0.4))
    plant(tmp_path, [plain(0, scores)], reason="a slip in the last line")  # type: ignore[arg-type]
    pair = gather(rewarded(tmp_path)).pairs[0]
    one = next(reply for reply in pair.replies if reply.turn == 0)
    assert (one.model, one.persona, one.item) == ("scripted/model-p", "sceptic", ("a0", 0))
    assert [(v.judge, v.score, v.said) for v in one.voices[:1]] == [("teacher", 0.9, "a slip in the last line")]
    silent = one.voices[1]
    assert silent.score is None and silent.normalised is None and "no score 'critic'" in (silent.said or "")
    assert pair.id == pair_id(pair.replies[1].item, pair.replies[0].item)


def test_an_import_may_speak_of_any_pair_of_a_question(tmp_path: Path) -> None:
    replies = [(f"it is {n}", (0.5, 0.5, 0.5)) for n in range(4)]
    plant(tmp_path, [Planted("How much?", replies), plain(1)])
    found = every_pair(rewarded(tmp_path))
    assert len(found) == 6 + 1
    assert all(pair.id == key for key, pair in found.items())


@pytest.mark.parametrize("scores", [((None, None, None), (0.3, 0.8, 0.4)), ((None, None, None), (None, None, None))])
def test_what_no_judge_scored_is_last_and_is_not_zero(tmp_path: Path, scores: tuple[tuple[None, ...], ...]) -> None:
    plant(tmp_path, [plain(0, scores), plain(1, SAME)])  # type: ignore[arg-type]
    found = gather(rewarded(tmp_path), every=True).pairs
    blank = next(pair for pair in found if pair.question.id == "q0")
    known = [reply.reward.disagreement for reply in blank.replies]
    assert blank.disagreement == next((d for d in known if d is not None), None)
    if blank.disagreement is None:
        assert found[-1] is blank
