"""panel → calibration: weights and confidence from stored votes, reported on questions that were held out."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pluribus.calibrate import bare, calibrate, calibrated, map_of, no_confidence, weighed
from pluribus.config import CalibrationConfig, make_calibration, make_config, read_calibration
from pluribus.consensus.confidence import confidence
from pluribus.decide import decide
from pluribus.errors import ConfigError, DataError, PluribusError, UnknownName, UsageError
from pluribus.panel import Ballot, Item, Panel
from pluribus.run import panel, prepare, run
from pluribus.store import Store
from pluribus.types import Seat

ACCURACIES = (0.9, 0.7, 0.5)


def seats(n: int, weight: float = 1.0) -> tuple[Seat, ...]:
    return tuple(Seat(i, f"agent {i + 1}", f"vllm/m{i}@http://127.0.0.1:8000/v1", weight=weight) for i in range(n))


def item(name: str, answers: Sequence[str | None], key: str | None) -> Item:
    votes = (Ballot(i, said, None if key is None else float(said == key)) for i, said in enumerate(answers))
    return Item(name, key, (), None, None, ballots=tuple(votes))


def planted(n: int, accuracies: Sequence[float] = ACCURACIES, seed: int = 0, key: str | None = "A") -> list[Item]:
    """Independent voters of known accuracy on questions with four answers, `A` the right one."""
    rng = random.Random(seed)
    rows = [["A" if rng.random() < p else rng.choice("BCD") for p in accuracies] for _ in range(n)]
    return [item(f"q{i}", row, key) for i, row in enumerate(rows)]


def again(one: Item, key: str | None) -> Item:
    """The same votes under another key."""
    return item(one.question_id, [ballot.answer for ballot in one.ballots], key)


def council(items: Sequence[Item], name: str = "run", n: int = len(ACCURACIES), **about: Any) -> Panel:
    settings, method = about.pop("settings", {"quorum": None}), about.pop("method", "vote")
    return Panel(name, f"run {name}", "jsonl", method, (), tuple(items), settings, seats=seats(n), **about)


def held_out(items: Sequence[Item], share: float, seed: int) -> set[str]:
    ids = sorted((i.question_id for i in items), key=lambda id: hashlib.sha256(f"{seed} {id}".encode()).digest())
    return set(ids[len(ids) - round(share * len(ids)) :])


# --- learning --------------------------------------------------------------------------------------------------------


def test_weights_are_learned_on_one_half_and_reported_on_the_other() -> None:
    found = calibrate([council(planted(600))])
    known, report = found.calibration, found.report
    weights = [seat.weight for seat in known.seats]
    assert weights == sorted(weights, reverse=True) and weights[0] > 2 * weights[2] > 0
    assert (known.rule, known.labels, known.n, found.fit) == ("weighted", True, 300, 300)
    assert [seat.answered for seat in known.seats] == [300] * 3
    assert [seat.model for seat in known.seats] == ["vllm/m0", "vllm/m1", "vllm/m2"]
    assert all(abs((seat.accuracy or 0) - p) < 0.08 for seat, p in zip(known.seats, ACCURACIES, strict=True))
    assert report is not None and (report.n, report.best) == (300, 0)
    assert report.calibrated_error < report.raw_error
    assert report.gain.low <= report.weighted - report.plain <= report.gain.high
    assert report.over_best.value == pytest.approx(report.weighted - report.best_accuracy)


def test_what_is_held_out_is_not_learned_from() -> None:
    """Other keys on the held-out questions change the report and nothing that was learned."""
    items = planted(200)
    held = held_out(items, 0.4, 1)
    before = calibrate([council(items)], check=0.4, seed=1)
    after = calibrate([council([again(i, "D") if i.question_id in held else i for i in items])], check=0.4, seed=1)
    assert after.calibration == before.calibration
    assert before.report is not None and after.report is not None
    assert before.report.n == len(held) == 80
    assert after.report.weighted < before.report.weighted - 0.3


def test_the_report_is_of_the_calibration_that_is_returned() -> None:
    """Its accuracy is that of `decide`'s own counting by the returned weights on the held-out questions."""
    items = planted(200)
    found = calibrate([council(items)], target=0.9)
    assert found.report is not None and found.calibration.confidence is not None
    weights = [seat.weight for seat in found.calibration.seats]
    held = [i for i in items if i.question_id in held_out(items, 0.5, 0)]
    marks = [_leader(one, weights) == "A" for one in held]
    assert found.report.weighted == pytest.approx(sum(marks) / len(marks))
    whole = found.report.coverage[0]
    assert (whole.coverage, whole.n, whole.accuracy) == (1.0, len(held), found.report.weighted)
    chances = {y for _, y in map_of(found.calibration.confidence).points}
    assert all(min(chances) <= kept.threshold <= max(chances) for kept in found.report.coverage)


def _leader(one: Item, weights: Sequence[float]) -> str:
    votes: dict[str, float] = {}
    for ballot in one.ballots:
        assert ballot.answer is not None
        votes[ballot.answer] = votes.get(ballot.answer, 0.0) + weights[ballot.seat]
    return max(votes, key=lambda answer: votes[answer])


def test_the_target_gives_the_threshold_that_is_found_on_the_half_learned_from() -> None:
    found = calibrate([council(planted(800))], target=0.95)
    threshold = found.calibration.threshold
    assert threshold is not None and threshold == round(threshold, 4)
    assert found.report is not None and found.report.target is not None
    assert found.report.target.threshold == threshold and found.report.target.coverage < 1
    assert found.report.target.accuracy > found.report.weighted
    weak = calibrate([council(planted(100, (0.4, 0.4, 0.4)))], target=0.95)
    assert weak.calibration.threshold is None
    assert any("no confidence is shown to reach" in note for note in weak.notes)


def test_a_shape_from_few_questions_is_called_rough() -> None:
    few, more = (calibrate([council(planted(n))], check=0.5).notes for n in (190, 210))
    assert any("isotonic from 95 questions is rough: --confidence platt needs fewer" in note for note in few)
    assert not any("rough" in note for note in (*more, *calibrate([council(planted(190))], kind="platt").notes))


def test_without_labels_the_weights_need_no_key() -> None:
    items = planted(300)
    blind = calibrate([council([again(one, None) for one in items])], labels=False)
    assert blind.calibration.confidence is None and blind.report is None
    weights = [seat.weight for seat in blind.calibration.seats]
    assert weights == sorted(weights, reverse=True) and weights[0] > weights[2]
    assert any("0 questions with a key are too few for a confidence" in note for note in blind.notes)
    few = calibrate([council([one if i < 19 else again(one, None) for i, one in enumerate(items)])], labels=False)
    assert few.calibration.confidence is None and few.report is None
    keyed = calibrate([council(items)], labels=False)
    assert keyed.report is not None and not keyed.calibration.labels
    wrong = calibrate([council([again(one, "B") for one in items])], labels=False)
    assert [s.weight for s in wrong.calibration.seats] == [s.weight for s in keyed.calibration.seats]


def test_a_key_with_aliases_has_one_right_answer_and_agreement_does_not_look_at_it() -> None:
    """`A` and `B` are both right; who says either is right, but they do not agree."""
    items = [replace(one, ballots=tuple(_either(ballot) for ballot in one.ballots)) for one in planted(200)]
    plain, aliased = (calibrate([council(i)], check=0.0).calibration for i in (planted(200), items))
    assert all((a.accuracy or 0) > (p.accuracy or 0) for p, a in zip(plain.seats, aliased.seats, strict=True))
    plain, aliased = (calibrate([council(i)], check=0.0, labels=False).calibration for i in (planted(200), items))
    assert plain.seats == aliased.seats


def _either(ballot: Ballot) -> Ballot:
    return replace(ballot, correct=float(ballot.answer in ("A", "B")))


def test_seats_that_are_alike_keep_the_plain_vote() -> None:
    found = calibrate([council(planted(60, (0.2, 0.2, 0.2)))])
    assert found.calibration.rule == "plurality"
    assert {seat.weight for seat in found.calibration.seats} == {1.0}
    assert any("count alike" in note for note in found.notes)


def test_several_votes_of_one_seat_are_one_seat() -> None:
    """Self-consistency: the draws are all the first seat's, and their accuracy is pooled."""
    rng = random.Random(0)
    rows = [["A" if rng.random() < 0.7 else "B" for _ in range(5)] for _ in range(100)]
    items = [
        Item(f"q{i}", "A", (), None, None, ballots=tuple(Ballot(0, said, float(said == "A")) for said in row))
        for i, row in enumerate(rows)
    ]
    found = calibrate([council(items, n=1, method="self_consistency", settings={"parallel_num": 5})], check=0.0)
    (seat,) = found.calibration.seats
    assert (seat.weight, seat.answered, found.calibration.rule) == (1.0, 500, "plurality")
    assert seat.accuracy == pytest.approx(sum(row.count("A") for row in rows) / 500, abs=0.01)


def test_abstentions_and_failures_are_no_votes() -> None:
    """The third seat is silent on every other question: its estimate rests on the others."""
    items = [replace(one, ballots=(*one.ballots[:2], Ballot(2, None, 0.0))) for one in planted(80)]
    mixed = [one if i % 2 else other for i, (one, other) in enumerate(zip(planted(80), items, strict=True))]
    found = calibrate([council(mixed)], check=0.0)
    assert [seat.answered for seat in found.calibration.seats] == [80, 80, 40]


def test_a_seat_without_any_vote_has_no_accuracy() -> None:
    items = [replace(one, ballots=one.ballots[:2]) for one in planted(300)]
    last = calibrate([council(items)]).calibration.seats[2]
    assert (last.accuracy, last.answered, last.weight) == (None, 0, 0.0)


def test_equal_input_gives_equal_bytes_in_whatever_order() -> None:
    first, second = council(planted(100), "a"), council(planted(100, seed=1), "b")
    one, two = calibrate([first, second]), calibrate([second, first, second])
    assert one.calibration.model_dump_json() == two.calibration.model_dump_json()
    assert one.calibration.runs == ["a (run a)", "b (run b)"]


def test_a_question_that_two_runs_asked_is_on_one_side_of_the_split() -> None:
    items = planted(100)
    found = calibrate([council(items, "a"), council(items, "b")])
    assert found.report is not None and (found.fit, found.report.n) == (100, 100)
    single = calibrate([council(items, "a")])
    assert single.report is not None
    assert found.report.weighted == pytest.approx(single.report.weighted, abs=0.1)


def test_platt_is_smooth_where_isotonic_has_steps() -> None:
    found = calibrate([council(planted(200))], kind="platt").calibration.confidence
    assert found is not None and found.kind == "platt" and found.slope is not None and found.slope > 0


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("panels", "options", "error", "words"),
    [
        ([], {}, UsageError, "no run is named"),
        ([council(planted(19))], {}, DataError, "questions with a key and a vote: 19; expected at least 20"),
        ([council(planted(30, key=None))], {}, DataError, "--without-labels"),
        ([council(planted(19, key=None))], {"labels": False}, DataError, "questions with a vote: 19"),
        ([council(planted(30))], {"check": 1.0}, UsageError, "give at least 0 and less than 1"),
        ([council(planted(30))], {"check": float("nan")}, UsageError, "the share to check on is nan"),
        ([council(planted(30))], {"check": 0.9}, UsageError, "3 of 30 labelled questions are left to learn from"),
        ([council(planted(30))], {"target": 1.0}, UsageError, "the target accuracy is 1"),
        ([council(planted(30))], {"kind": "beta"}, UnknownName, "isotonic, platt"),
        ([council(planted(30)), council(planted(30), "b", n=4)], {}, UsageError, "other seats"),
        ([council(planted(30)), council(planted(30), "b", method="debate")], {}, UsageError, "method debate there"),
        (
            [council(planted(30), name, settings={"debate_rounds": n}) for name, n in (("a", 1), ("b", 2))],
            {},
            UsageError,
            "debate_rounds 1 there, 2 here",
        ),
        ([council(planted(30), settings={"stop": "beta", "stop_shadow": False})], {}, DataError, "stop_shadow=true"),
        ([replace(council(planted(30)), seats=())], {}, DataError, "no votes are recorded"),
    ],
)  # fmt: skip
def test_what_can_not_be_learned_from(
    panels: list[Panel], options: dict[str, Any], error: type[PluribusError], words: str
) -> None:
    with pytest.raises(error) as caught:
        calibrate(panels, **options)
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_a_shadow_run_asked_everybody_and_serves() -> None:
    shadow = council(planted(60), settings={"stop": "beta", "stop_eps": 0.1, "stop_shadow": True})
    assert calibrate([shadow, council(planted(60), "plain")]).fit == 60


# --- the file --------------------------------------------------------------------------------------------------------


def content(**changes: Any) -> dict[str, Any]:
    known: dict[str, Any] = calibrate([council(planted(60))]).calibration.model_dump(mode="json", exclude_none=True)
    return {**known, **changes}


def test_a_file_reads_back_as_it_was(tmp_path: Path) -> None:
    known = calibrate([council(planted(60))]).calibration
    path = tmp_path / "c.json"
    path.write_text(json.dumps(known.model_dump(mode="json", exclude_none=True)))
    assert read_calibration(path) == known


SEAT = {"model": "vllm/m0", "weight": 1.0, "answered": 3}
BAD = [
    ({"format": "something"}, "not a calibration"),
    ({"version": 2}, "version 2 of a calibration; this pluribus reads 1"),
    ({"seats": []}, "seats is []"),
    ({"seats": [{**SEAT, "weight": float("nan")}]}, "seats.0.weight is nan"),
    ({"seats": [{**SEAT, "weight": -1}]}, "seats.0.weight is -1"),
    ({"seats": [{**SEAT, "wieght": 1.0}]}, "did you mean 'weight'"),
    ({"seats": [{"model": "vllm/m0", "answered": 3}]}, "seats.0.weight is missing"),
    ({"seats": [{**SEAT, "weight": 0.0}]}, "all weights of the seats are 0"),
    ({"seats": [SEAT, {**SEAT, "weight": 2.0}], "rule": "plurality"}, "the rule is 'plurality'"),
    ({"rule": "borda"}, "rule is 'borda'"),
    ({"n": 0}, "n is 0"),
    ({"threshold": 1.5}, "threshold is 1.5"),
    ({"confidence": {"kind": "isotonic", "n": 3}}, "an isotonic map needs points"),
    ({"confidence": {"kind": "platt", "slope": 1.0, "n": 3}}, "needs slope and intercept"),
    ({"confidence": {"kind": "isotonic", "points": [[0.5, 0.9], [0.6, 0.2]], "n": 3}}, "do not ascend"),
    ({"confidence": {"kind": "isotonic", "points": [[0.5, 2.0]], "n": 3}}, "confidence.points.0.1 is 2.0"),
]


@pytest.mark.parametrize(("changes", "words"), BAD)
def test_what_is_no_calibration_is_said_in_one_line(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_calibration(content(**changes), "c.json")
    said = str(caught.value)
    assert words in said and said.startswith("c.json: ") and "\n" not in said


@pytest.mark.parametrize("text", ["", "{oops", "[1]", '"calibration"', '{"accuracy": 1}', "\udcff"])
def test_a_foreign_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigError, match=r"not JSON|not a calibration"):
        read_calibration(path)
    with pytest.raises(ConfigError, match="No such file"):
        read_calibration(tmp_path / "nothing.json")


# --- in use ----------------------------------------------------------------------------------------------------------


def test_the_seats_take_the_weights_wherever_they_are_served() -> None:
    known = CalibrationConfig(**content())
    moved = tuple(replace(seat, model=f"{bare(seat.model)}@http://elsewhere/v1") for seat in seats(3))
    assert [seat.weight for seat in weighed(moved, known)] == [seat.weight for seat in known.seats]


@pytest.mark.parametrize(
    ("council_of", "words"),
    [
        (seats(4), "the calibration is of 3 seats, the council has 4"),
        (seats(3)[::-1], "seat 1 of the calibration is vllm/m0, of the council vllm/m2"),
        ((*seats(2), replace(seats(3)[2], persona="sceptic")), "of the council vllm/m2 as sceptic"),
        (seats(3, weight=2.0), "seat 1 has a weight of its own, 2"),
    ],
)
def test_another_council_is_refused(council_of: tuple[Seat, ...], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        weighed(council_of, CalibrationConfig(**content()))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("method", "settings", "words"),
    [
        ("vote", {"quorum": 2, "deadline_s": 1.0}, None),
        ("vote", {"stop": "none", "stop_eps": 0.05}, None),
        ("vote", {"stop": "beta", "stop_shadow": True}, None),
        ("vote", {"stop": "beta", "stop_shadow": False}, "the vote stops asking (stop=beta)"),
        ("debate", {}, "method vote there, debate here"),
    ],
)
def test_a_confidence_serves_the_protocol_it_was_learned_from(
    method: str, settings: dict[str, Any], words: str | None
) -> None:
    said = no_confidence(CalibrationConfig(**content()), method, settings)
    assert said is None if words is None else words in (said or "")


def test_the_mark_tells_calibrations_and_thresholds_apart() -> None:
    def mark(known: dict[str, Any], below: float | None) -> str:
        config = make_config({"calibration": known, "abstain_below": below})
        found = calibrated(config, "vote", {})
        assert found is not None
        return found.mark

    other = calibrate([council(planted(60, seed=5))]).calibration.model_dump(mode="json", exclude_none=True)
    marks = [mark(content(), None), mark(content(), 0.5), mark(content(), 0.6), mark(other, None)]
    assert len(set(marks)) == 4 and mark(content(), 0.5) == marks[1]


# --- through a real store --------------------------------------------------------------------------------------------


@pytest.fixture
def data(tmp_path: Path) -> str:
    path = tmp_path / "questions.jsonl"
    rows = [
        {"id": f"q{i}", "question": f"How much is {i} + 1? [key: {i + 1}]", "answer": str(i + 1)} for i in range(60)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.mark.parametrize("method", ["vote", "debate", "self_consistency"])
def test_a_stored_run_is_counted_as_it_was_decided(data: str, tmp_path: Path, method: str) -> None:
    """With its own weights, each stored vote has the winner and the votes of the stored decision."""
    models = [
        {"model": "scripted/keyed", "accuracy": p} for p in (ACCURACIES if method != "self_consistency" else [0.7])
    ]
    settings = {"debate_rounds": 1} if method == "debate" else {}
    config = make_config({"task": "jsonl", "data": data, "models": models, "method": method, "settings": settings})
    with Store.open(tmp_path / "ws") as store:
        name = run(prepare(config), store).name
        found = panel(store, name)
        ids = [attempt for attempt, _ in store.run_attempts(store.run(name).id)]
        decisions = [
            decide(store.run_questions(store.run(name).id)[t.attempt.question_id][0], t)
            for t in store.transcripts(ids)
        ]  # fmt: skip
    for one, decision in zip(found.items, decisions, strict=True):
        counts: dict[str, float] = {}
        for vote in one.ballots:
            assert vote.answer is not None
            counts[vote.answer] = counts.get(vote.answer, 0.0) + 1
        assert counts == decision.votes
        assert any(v.correct == 1 for v in one.ballots if v.answer == decision.answer) == (one.credit == 1)
    known = calibrate([found]).calibration
    assert [seat.model for seat in known.seats] == [seat.model for seat in found.seats]
    assert known.confidence is not None and 0 < confidence(map_of(known.confidence), 1.0) < 1
