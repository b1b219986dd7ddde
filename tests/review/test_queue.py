"""Who sees which pair when."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.review.desk import plant, rewarded, varied, verdict

from pluribus.review.material import Pair, gather
from pluribus.review.queue import LEASE_S, Queue, shown
from pluribus.types import Choice
from pluribus.verdicts import Standing, standing


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Pair, ...]:
    home = tmp_path_factory.mktemp("queue")
    plant(home, varied(3))
    return gather(rewarded(home)).pairs


def said(*events: tuple[Pair, Choice, str]) -> Standing:
    return standing([verdict(pair, choice, who, float(at)) for at, (pair, choice, who) in enumerate(events)])


def test_one_person_gets_all_pairs_in_their_order_and_each_once(pairs: tuple[Pair, ...]) -> None:
    queue = Queue(pairs, clock=Clock())
    events: list[tuple[Pair, Choice, str]] = []
    for expected in pairs:
        assert queue.next(said(*events), "ada") is expected
        assert queue.next(said(*events), "ada") is expected, "a reload shows the same pair"
        events.append((expected, "first", "ada"))
    assert queue.next(said(*events), "ada") is None


def test_two_people_never_look_at_the_same_pair_where_one_verdict_is_enough(pairs: tuple[Pair, ...]) -> None:
    queue = Queue(pairs, clock=Clock())
    assert [queue.next({}, who) for who in ("ada", "bob", "cyd")] == list(pairs)
    assert queue.next({}, "dan") is None
    assert queue.progress({}, "dan").left == 3
    queue.release(pairs[1].id, "bob")
    assert queue.next({}, "dan") is pairs[1]


def test_a_pair_comes_back_when_whoever_holds_it_does_not_decide(pairs: tuple[Pair, ...]) -> None:
    clock = Clock()
    queue = Queue(pairs[:1], clock=clock)
    queue.next({}, "ada")
    clock.now += LEASE_S - 1
    assert queue.next({}, "bob") is None
    clock.now += 1
    assert queue.next({}, "bob") is pairs[0]


def test_who_reloads_keeps_the_pair_and_the_time_it_was_first_seen(pairs: tuple[Pair, ...]) -> None:
    clock = Clock()
    queue = Queue(pairs, clock=clock)
    since = queue.hold(pairs[0].id, "ada")
    clock.now += LEASE_S - 1
    assert queue.hold(pairs[0].id, "ada") == since
    clock.now += LEASE_S - 1
    assert queue.next({}, "bob") is pairs[1], "the reload has prolonged the lease"


def test_with_two_votes_each_pair_goes_to_two_people_and_undecided_ones_come_first(pairs: tuple[Pair, ...]) -> None:
    queue = Queue(pairs, votes=2, clock=Clock())
    assert queue.next({}, "ada") is queue.next({}, "bob") is pairs[0]
    assert queue.next({}, "cyd") is pairs[1]
    stands = said((pairs[0], "first", "ada"), (pairs[1], "tie", "ada"))
    assert Queue(pairs, votes=2).next(stands, "bob") is pairs[2], "nobody has decided it"
    both = said(*((pair, "first", who) for pair in pairs for who in ("ada", "bob")))
    assert Queue(pairs, votes=2).next(both, "cyd") is None
    assert Queue(pairs, votes=3).next(both, "cyd") is pairs[0]


def test_a_skip_keeps_the_pair_from_who_skipped_it_only(pairs: tuple[Pair, ...]) -> None:
    stands = said((pairs[0], "skip", "ada"))
    assert Queue(pairs).next(stands, "ada") is pairs[1]
    assert Queue(pairs).next(stands, "bob") is pairs[0]
    assert Queue(pairs).next(stands, "ada", skipped=True) is pairs[0]
    assert Queue(pairs).next(said((pairs[0], "skip", "ada"), (pairs[0], "tie", "bob")), "ada", skipped=True) is None


def test_progress_counts(pairs: tuple[Pair, ...]) -> None:
    stands = said((pairs[0], "tie", "ada"), (pairs[1], "skip", "ada"))
    mine, other = Queue(pairs).progress(stands, "ada"), Queue(pairs).progress(stands, "bob")
    assert (mine.total, mine.decided, mine.left, mine.skipped) == (3, 1, 1, 1)
    assert (other.total, other.decided, other.left, other.skipped) == (3, 1, 2, 0)


def test_the_order_of_the_replies_is_random_and_the_same_every_time(pairs: tuple[Pair, ...]) -> None:
    names = [f"reviewer {i}" for i in range(200)]
    flips = [shown(pairs[0], name)[0] is pairs[0].replies[1] for name in names]
    assert 60 < sum(flips) < 140
    assert flips == [shown(pairs[0], name)[0] is pairs[0].replies[1] for name in names]
    assert {shown(pairs[0], "ada")[i].item for i in (0, 1)} == {reply.item for reply in pairs[0].replies}
