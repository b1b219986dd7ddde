"""The toolkit for applications, from top to bottom: vote, ask an analyst k times, let several decide, offer tools.

Read it as a tour: each test says one thing that holds, in the words an application would use. The models are functions
in this process (`Scripted`), a fake OpenAI server on real HTTP where calls fail, and the zoo's real small models.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pluribus import ConsensusToolkit, Manager, StrategyAgent, majority_vote
from pluribus.backends import Request
from pluribus.backends.scripted import Scripted
from pluribus.consensus.confidence import Calibration, fit
from pluribus.consensus.stopping import Stopping
from pluribus.council import make_question
from pluribus.errors import BackendError, ConfigError, ServerError, UsageError
from pluribus.fake_server import FakeServer
from pluribus.personas import Persona
from pluribus.toolkit import ManagerDecision, asample, sample
from pluribus.toolkit.analysts import repeats

LABELS = ("BULLISH", "BEARISH", "NEUTRAL")
BRIEF = "Sales rose by 4. Debt fell by 2. Above 3 is BULLISH, below -3 is BEARISH, else NEUTRAL. Which is it?"


def says(*texts: str, model: str = "scripted/function") -> Scripted:
    """A model that says the n-th text in its n-th draw, and goes on from the first."""
    return Scripted(lambda request: texts[request.sample % len(texts)], model=model)


def votes(*labels: str, model: str = "scripted/function") -> Scripted:
    """A model whose n-th draw is an analysis that ends with the n-th label."""
    return says(
        *(f"Draw {i} weighs {i} points. {{final answer: {label}}}" for i, label in enumerate(labels)), model=model
    )


# --- 1. majority_vote: many answers, one winner ----------------------------------------------------------------------


def test_the_answer_given_most_often_wins() -> None:
    vote = majority_vote(["BULLISH", "BEARISH", "BULLISH", "BULLISH"])
    assert vote.winner == "BULLISH"
    assert vote.counts == {"BULLISH": 3.0, "BEARISH": 1.0}
    assert (vote.share, vote.margin, vote.tie, vote.reason) == (0.75, 0.5, (), None)


def test_none_abstains_share_leaves_it_out_and_support_counts_it() -> None:
    vote = majority_vote(["BULLISH", "BULLISH", "BEARISH", None])
    assert (vote.abstained, vote.share, vote.support) == (1, 2 / 3, 0.5)


def test_weights_let_one_voter_outvote_two() -> None:
    assert majority_vote(["BEARISH", "BULLISH", "BULLISH"], weights=[3.0, 1.0, 1.0]).winner == "BEARISH"
    assert majority_vote(["BEARISH", "BULLISH"], weights=[0.0, 1.0]).support == 1.0


def test_min_agreement_is_a_share_of_all_voters_and_below_it_nobody_wins() -> None:
    answers = ["BULLISH", "BULLISH", "BEARISH", None]
    assert majority_vote(answers, min_agreement=0.5).winner == "BULLISH"
    vote = majority_vote(answers, min_agreement=0.6)
    assert (vote.winner, vote.share) == (None, None)
    assert vote.reason == "'BULLISH' has 0.5 of all votes, less than the 0.6 that min_agreement asks for"
    assert vote.counts == {"BULLISH": 2.0, "BEARISH": 1.0}, "the votes are still there to be seen"


@pytest.mark.parametrize(("tie", "winner"), [("first", "BEARISH"), ("fractional", "BEARISH"), ("abstain", None)])
def test_a_shared_lead_is_settled_by_the_tie_rule_and_always_said(tie: str, winner: str | None) -> None:
    vote = majority_vote(["BEARISH", "BULLISH", "BULLISH", "BEARISH"], tie=tie)
    assert (vote.winner, vote.tie, vote.margin) == (winner, ("BEARISH", "BULLISH"), 0.0)
    assert (vote.reason is None) == (winner is not None)


def test_a_random_tie_follows_the_seed_and_not_the_order() -> None:
    drawn = [majority_vote(["a", "b"], tie="random", seed=seed).winner for seed in range(40)]
    assert set(drawn) == {"a", "b"}
    assert drawn == [majority_vote(["b", "a"], tie="random", seed=seed).winner for seed in range(40)]


def test_when_nobody_answers_there_is_no_winner_and_no_confidence() -> None:
    vote = majority_vote([None, None])
    assert (vote.winner, vote.share, vote.margin, vote.confidence, vote.confidence_kind) == (None,) * 5
    assert (vote.abstained, vote.support, vote.reason) == (2, 0.0, "nobody answered")


def test_voters_without_weight_decide_nothing() -> None:
    vote = majority_vote(["a", None], weights=[0.0, 1.0])
    assert (vote.winner, vote.confidence, vote.reason) == (None, None, "nobody who answered has a weight above 0")


@settings(deadline=None, max_examples=25)
@given(st.permutations(["a", "a", "a", "b", "b", "c", None]))
def test_the_order_of_the_voters_changes_nothing(answers: list[str | None]) -> None:
    vote, straight = majority_vote(answers), majority_vote(["a", "a", "a", "b", "b", "c", None])
    assert vote.counts == straight.counts
    for field in ("winner", "share", "margin", "support", "confidence", "abstained", "reason"):
        assert getattr(vote, field) == getattr(straight, field), field


def test_confidence_is_the_chance_that_the_leader_is_what_these_voters_say_most_often() -> None:
    sure = [majority_vote(["a"] * n).confidence for n in (1, 3, 9)]
    assert sure == sorted(sure) and sure[-1] > 0.99, "more voters who agree"
    split = [majority_vote(["a"] * 5 + ["b"] * n).confidence for n in (0, 2, 4, 5)]
    assert split == sorted(split, reverse=True), "more voters who do not"
    assert majority_vote(["a"]).confidence_kind == "posterior"
    assert split[-1] is not None and split[-1] < 0.51, "two that lead together"


def test_confidence_does_not_depend_on_the_unit_of_the_weights_but_on_how_even_they_are() -> None:
    answers = ["a", "a", "b", "a"]
    plain = majority_vote(answers).confidence
    assert plain is not None
    for unit in (10.0, 1e-200, 1e199):
        assert majority_vote(answers, [unit] * 4).confidence == pytest.approx(plain, abs=1e-9)
    lone = majority_vote(answers, [100.0, 1.0, 1.0, 1.0]).confidence
    one = majority_vote(["a"]).confidence
    assert lone is not None and one is not None
    assert lone == pytest.approx(one, abs=0.05), "one voter with nearly all the weight says as much as one voter"


def test_a_calibration_turns_the_confidence_into_the_chance_of_being_right() -> None:
    support, right = [0.4, 0.4, 0.6, 0.6, 1.0, 1.0], [0, 0, 0, 1, 1, 1]  # of questions with known answers
    vote = majority_vote(["a", "a", "a", "b", "b"], calibration=fit(support, right))
    assert vote.confidence_kind == "calibrated"
    assert vote.confidence == pytest.approx(0.5, abs=0.2)
    always_half = Calibration("platt", slope=0.0, intercept=0.0)
    assert majority_vote(["a"] * 9, calibration=always_half).confidence == 0.5


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (lambda: majority_vote([]), "there are no voters; give at least one answer"),
        (lambda: majority_vote("BULLISH"), "answers is of type str; give a list"),
        (lambda: majority_vote({"a", "b"}), "answers is of type set; give a list"),  # type: ignore[arg-type]
        (lambda: majority_vote(["4", 4]), "answer 1 is 4, of type int; answers are strings or None"),  # type: ignore[list-item]
        (lambda: majority_vote([["4"]]), "answer 0 is ['4'], of type list"),  # type: ignore[list-item]
        (lambda: majority_vote(["a", " "]), "answer 1 is an empty text; None is an abstention"),
        (lambda: majority_vote(["a"], [1.0, 2.0]), "2 weights for 1 voters"),
        (lambda: majority_vote(["a"], [-1.0]), "weight -1.0 of voter 0 is not a number of at least 0"),
        (lambda: majority_vote(["a"], [math.nan]), "weight nan of voter 0"),
        (lambda: majority_vote(["a"], ["1"]), "weight '1' of voter 0"),  # type: ignore[list-item]
        (lambda: majority_vote(["a", "b"], [1, 10**400]), "of voter 1 is above 1e200; divide all by one number"),
        (lambda: majority_vote(["a", "b"], [0.0, 0.0]), "all weights are 0"),
        (lambda: majority_vote(["a"], tie="frist"), "unknown tie rule 'frist'; did you mean 'first'?"),
        (lambda: majority_vote(["a"], min_agreement=0.0), "min_agreement is 0.0; it is a share above 0"),
        (lambda: majority_vote(["a"], min_agreement=1.5), "min_agreement is 1.5"),
        (lambda: majority_vote(["a"], min_agreement="0.5"), "min_agreement is '0.5'"),  # type: ignore[arg-type]
        (lambda: majority_vote(["a"], tie=None), "unknown tie rule None; there are: abstain"),  # type: ignore[arg-type]
        (lambda: majority_vote(["a"], seed=None), "seed is None; give a whole number"),  # type: ignore[arg-type]
    ],
)
def test_what_can_not_be_counted_is_refused_in_one_line(said: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        said()


# --- 2. StrategyAgent and sample: one analyst, k analyses ------------------------------------------------------------


def test_an_analyst_is_asked_k_times_and_each_draw_is_another() -> None:
    model = votes("BULLISH", "BEARISH", "BULLISH")
    found = sample(StrategyAgent(model, k=3, name="market"), BRIEF, labels=LABELS)
    assert found.answers == ("BULLISH", "BEARISH", "BULLISH")
    assert found.analyses[0].text == "Draw 0 weighs 0 points. {final answer: BULLISH}"
    assert (found.distinct, found.calls, found.failures) == (3, 3, ())
    assert [request.sample for request in model.seen] == [0, 1, 2]
    assert len({request.sampling.seed for request in model.seen}) == 3, "each draw has a seed of its own"


def test_the_same_seed_asks_for_the_same_draws_and_another_for_others() -> None:
    def seeds(seed: int) -> list[int | None]:
        model = votes("BULLISH")
        sample(StrategyAgent(model, k=3), BRIEF, labels=LABELS, seed=seed)
        return [request.sampling.seed for request in model.seen]

    assert seeds(1) == seeds(1)
    assert not set(seeds(1)) & set(seeds(2))


def test_several_personas_are_taken_in_turn() -> None:
    model = votes("BULLISH")
    bold = Persona("bold", "Decide at once.", "bold", temperature=1.3)
    found = sample(StrategyAgent(model, k=5, personas=["risk manager", bold]), BRIEF, labels=LABELS)
    assert [one.persona for one in found.analyses] == ["risk manager", "bold"] * 2 + ["risk manager"]
    assert [request.sample for request in model.seen] == [0, 0, 1, 1, 2], "each persona counts its own draws"
    assert model.seen[1].messages[0].content == "Decide at once."
    assert [request.sampling.temperature for request in model.seen][:2] == [0.3, 1.3], "as the personas say"


def test_the_analysts_own_temperature_wins_over_its_personas() -> None:
    model = votes("BULLISH")
    sample(StrategyAgent(model, personas="risk manager", temperature=0.9, max_tokens=50), BRIEF, labels=LABELS)
    assert (model.seen[0].sampling.temperature, model.seen[0].sampling.max_tokens) == (0.9, 50)


def test_near_duplicates_are_counted_and_kept() -> None:
    model = says(
        "Sales rose. {final answer: BULLISH}", "sales  ROSE. {final answer: BULLISH}", "Debt! {final answer: BEARISH}"
    )
    found = sample(StrategyAgent(model, k=3, name="market"), BRIEF, labels=LABELS)
    first, second, third = found.analyses
    assert (second.repeats, third.repeats) == (first.id, None)
    assert (len(found.analyses), found.distinct) == (3, 2)
    assert found.answers.count("BULLISH") == 2, "a near-duplicate still votes"


def test_near_is_nine_tenths_of_the_words_in_threes() -> None:
    words = [f"word{i}" for i in range(40)]
    changed = [*words[:-1], "other"]
    assert repeats([" ".join(words), " ".join(changed)]) == [None, 0], "37 of 39 triples are shared"
    assert repeats([" ".join(words), " ".join(changed)], alike=0.99) == [None, None]
    assert repeats([" ".join(words), " ".join(words[::-1])]) == [None, None]
    assert repeats(["4", "4", "", "5"]) == [None, 0, None, None]


@pytest.mark.parametrize(
    ("about", "text", "answer"),
    [
        ({"labels": LABELS}, "The signals add up. {final answer: Bearish}", "BEARISH"),
        ({"choices": ["buy", "sell"]}, "So I would buy. {final answer: A}", "A"),
        ({"kind": "number"}, "It is worth {final answer: $1,250.00}", "1250"),
        ({"kind": "boolean"}, "The debt is covered. {final answer: yes}", "true"),
        ({}, "{final answer: The cash flow}", "cash flow"),
        ({"labels": LABELS}, "I can not say.", None),
    ],
)
def test_an_answer_is_read_out_of_each_text_by_the_kind_of_question(
    about: dict[str, Any], text: str, answer: str | None
) -> None:
    found = sample(StrategyAgent(says(text)), BRIEF, **about)
    assert found.answers == (answer,)
    assert found.analyses[0].text == text, "the text stays as it came"


def test_temperature_0_and_several_draws_are_refused_because_equal_answers_are_one() -> None:
    with pytest.raises(ConfigError, match="'cold' is asked 3 times at temperature 0; equal answers are one"):
        StrategyAgent(votes("BULLISH"), k=3, name="cold", temperature=0.0)
    with pytest.raises(ConfigError, match="asked 2 times at temperature 0"):
        sample(StrategyAgent(votes("BULLISH"), temperature=0.0), BRIEF, 2, labels=LABELS)
    two = StrategyAgent(votes("BULLISH"), k=2, personas=["risk manager", "trend follower"], temperature=0.0)
    assert len(sample(two, BRIEF, labels=LABELS).analyses) == 2, "two personas are two questions"


def test_a_failed_call_is_a_record_and_no_answer() -> None:
    def reply(request: Request) -> str | BackendError:
        return ServerError("500: out of order") if request.sample == 1 else "{final answer: BULLISH}"

    found = sample(StrategyAgent(Scripted(reply), k=3, name="market"), BRIEF, labels=LABELS, retries=1)
    assert found.answers == ("BULLISH", None, "BULLISH")
    (failed,) = found.failures
    assert (failed.analyst, failed.draw, failed.failure.kind) == ("market", 1, "server_error")
    assert [analysis.draw for analysis in found.analyses] == [0, 2]


def test_the_first_draws_of_a_sample_are_what_fewer_draws_would_have_been() -> None:
    analyst = StrategyAgent(votes("BULLISH", "BEARISH", "NEUTRAL"), k=3, name="market")
    many, few = sample(analyst, BRIEF, labels=LABELS), sample(analyst, BRIEF, 2, labels=LABELS)
    assert many.first(2).analyses == few.analyses
    assert [turn.messages for turn in many.first(2).turns] == [turn.messages for turn in few.turns]


def test_stopping_early_asks_no_more_than_it_takes() -> None:
    agreed = votes("BULLISH")
    found = sample(StrategyAgent(agreed, k=15), BRIEF, labels=LABELS, stop="unassailable")
    assert len(agreed.seen) == len(found.turns) == 8, "8 of 15 can not be caught up with"
    torn = votes("BULLISH", "BEARISH")
    assert sample(StrategyAgent(torn, k=15), BRIEF, labels=LABELS, stop="unassailable").calls == 15


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: StrategyAgent("zoo/qwen", k=0), "k is 0; an analyst is asked a whole number of times"),
        (lambda: StrategyAgent("zoo/qwen", k=2.5), "k is 2.5"),  # type: ignore[arg-type]
        (lambda: StrategyAgent("zoo/qwen", weight=-1.0), "weight is -1.0"),
        (lambda: StrategyAgent("zoo/qwen", temperature=9.0), "temperature is 9.0"),
        (lambda: StrategyAgent("qwen9"), "model 'qwen9' is neither 'service/model' nor a known short name"),
        (lambda: StrategyAgent(None), "model None is no model"),  # type: ignore[arg-type]
        (lambda: sample(StrategyAgent("zoo/qwen"), ""), "the question is empty"),
        (
            lambda: sample(StrategyAgent("zoo/qwen"), BRIEF, kind="label"),
            "kind label has no labels; give at least two different labels",
        ),
        (lambda: sample(StrategyAgent("zoo/qwen"), BRIEF, labels=["UP"]), "kind label has labels ['UP']"),
        (lambda: sample(StrategyAgent("zoo/qwen"), BRIEF, labels="UP"), "labels is 'UP'; give a list of texts"),
        (lambda: sample(StrategyAgent("zoo/qwen"), BRIEF, labels=["A", "B"], choices=["a", "b"]), "give one of them"),
        (lambda: sample(StrategyAgent("zoo/qwen"), None), "prompt is None; give a text or a Question"),  # type: ignore[arg-type]
        (lambda: sample(StrategyAgent("zoo/qwen"), make_question("Up?"), kind="text"), "says itself what an answer is"),
        (lambda: sample(StrategyAgent("zoo/qwen"), BRIEF, kind="colour"), "unknown kind 'colour'"),
    ],
)
def test_what_can_not_be_asked_is_refused_before_any_call(made: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        made()


async def test_inside_a_running_loop_both_ways_work() -> None:
    analyst = StrategyAgent(votes("BULLISH", "BEARISH"), k=2, name="market")
    here = await asample(analyst, BRIEF, labels=LABELS)
    there = sample(analyst, BRIEF, labels=LABELS)  # as in a notebook
    assert here.analyses == there.analyses


# --- 3. Manager: several analysts, one decision ----------------------------------------------------------------------


def desk(*models: Scripted, k: int = 3, weights: Sequence[float] = (1.0, 1.0, 1.0), **about: Any) -> Manager:
    names = ("market", "strategy", "risk")
    for model, name in zip(models, names, strict=False):
        model.model = f"scripted/{name}"  # models of one name are one model, whose draws analysts share out
    analysts = [
        StrategyAgent(model, k, name=name, weight=weight)
        for model, name, weight in zip(models, names, weights, strict=False)
    ]
    return Manager(analysts, retries=1, **about)


BULL, BEAR = ("BULLISH",) * 3, ("BEARISH",) * 3
MIXED = ("BEARISH", "BULLISH", "BULLISH")


def test_each_analyst_votes_on_its_own_draws_and_then_the_analysts_vote() -> None:
    found = desk(votes(*MIXED), votes(*MIXED), votes(*BEAR)).decide(BRIEF, labels=LABELS)
    assert [opinion.vote.winner for opinion in found.opinions] == ["BULLISH", "BULLISH", "BEARISH"]
    assert found.decision == "BULLISH", "two analysts to one, though 5 of the 9 draws say BEARISH"
    assert (found.vote.counts, found.vote.share) == ({"BULLISH": 2.0, "BEARISH": 1.0}, 2 / 3)
    assert found.calls == 9


def test_analysts_vote_by_weight() -> None:
    found = desk(votes(*BULL), votes(*BULL), votes(*BEAR), weights=(1.0, 1.0, 3.0)).decide(BRIEF, labels=LABELS)
    assert (found.decision, found.vote.share) == ("BEARISH", 0.6)


def test_support_is_the_part_of_all_draws_behind_the_decision() -> None:
    found = desk(votes(*BULL), votes(*MIXED), votes(*BEAR)).decide(BRIEF, labels=LABELS)
    assert found.support == pytest.approx((1 + 2 / 3 + 0) / 3)
    heavy = desk(votes(*BULL), votes(*BEAR), weights=(3.0, 1.0)).decide(BRIEF, labels=LABELS)
    assert heavy.support == 0.75, "an analyst's draws weigh together as much as the analyst"


def test_confidence_counts_all_draws_so_it_grows_with_k() -> None:
    thrice, once = (desk(votes(*BULL), votes(*BULL), k=k).decide(BRIEF, labels=LABELS) for k in (3, 1))
    assert thrice.confidence is not None and once.confidence is not None
    assert once.confidence < thrice.confidence < 1.0
    assert once.confidence == once.vote.confidence, "with one draw each, draws and analysts are the same"
    torn = desk(votes(*MIXED), votes(*MIXED), votes(*BEAR)).decide(BRIEF, labels=LABELS)
    assert torn.confidence is not None and torn.confidence < 0.5, "most draws say otherwise"


def test_dissent_says_who_said_otherwise_and_how_strongly() -> None:
    found = desk(votes(*BULL), votes(*MIXED), votes(*BEAR)).decide(BRIEF, labels=LABELS)
    assert [(one.analyst, one.answer, one.draws, one.voted) for one in found.dissent] == [
        ("risk", "BEARISH", 3, True),
        ("strategy", "BEARISH", 1, False),
    ]
    assert [one.strength for one in found.dissent] == [1.0, 1 / 3]


def test_the_evidence_is_every_text_with_who_said_it_and_what_it_says() -> None:
    found = desk(votes(*BULL), votes(*MIXED)).decide(BRIEF, labels=LABELS)
    assert len(found.evidence) == 6
    one = found.evidence[3]
    assert (one.analyst, one.draw, one.answer) == ("strategy", 0, "BEARISH")
    assert one.text == "Draw 0 weighs 0 points. {final answer: BEARISH}"
    assert one.id == f"{found.question.id}/strategy/0"


def test_an_analyst_that_fails_abstains_and_the_others_decide() -> None:
    broken = Scripted(lambda request: ServerError("500: out of order"))
    found = desk(votes(*BULL), broken).decide(BRIEF, labels=LABELS)
    assert (found.decision, found.vote.abstained, found.support) == ("BULLISH", 1, 0.5)
    assert [(failed.analyst, failed.draw) for failed in found.failures] == [("strategy", draw) for draw in range(3)]
    assert desk(votes(*BULL), broken, min_agreement=0.6).decide(BRIEF, labels=LABELS).decision is None


def test_when_every_call_fails_there_is_no_decision_and_the_reason_is_said() -> None:
    broken = Scripted(lambda request: ServerError("500: out of order"))
    found = desk(broken, broken).decide(BRIEF, labels=LABELS)
    assert (found.decision, found.confidence, found.support, found.evidence) == (None, None, 0.0, ())
    assert found.reason == "every call failed; the first said: 500: out of order"


def test_texts_without_an_answer_are_abstentions_not_failures() -> None:
    found = desk(says("Who knows?"), says("Not I.")).decide(BRIEF, labels=LABELS)
    assert (found.decision, found.reason, found.failures) == (None, "nobody answered", ())
    assert len(found.evidence) == 6


def test_a_manager_may_abstain_where_it_is_not_sure() -> None:
    torn = (votes(*BULL), votes(*BEAR), votes(*MIXED))
    found = desk(*torn, abstain_below=0.9).decide(BRIEF, labels=LABELS)
    assert found.decision is None and found.confidence is not None and found.confidence < 0.9
    assert found.reason == f"the confidence in 'BULLISH' is {found.confidence:.3g}, below the 0.9 of abstain_below"
    assert [one.analyst for one in found.dissent] == ["strategy", "risk"], "dissent from the leader, then"
    assert desk(*[votes(*BULL)] * 3, abstain_below=0.9).decide(BRIEF, labels=LABELS).decision == "BULLISH"


def test_a_calibration_is_fitted_on_the_support_of_earlier_decisions() -> None:
    learned = fit([0.4, 0.5, 0.9, 1.0] * 5, [0, 0, 1, 1] * 5, "platt")
    found = desk(votes(*BULL), votes(*BULL), calibration=learned).decide(BRIEF, labels=LABELS)
    assert found.confidence_kind == "calibrated"
    assert found.confidence is not None and found.confidence > 0.7


def test_a_manager_may_stop_asking_an_analyst_whose_vote_is_settled() -> None:
    models = votes("BULLISH"), votes("BEARISH", "BULLISH", "BULLISH"), votes("BULLISH", "BEARISH")
    found = desk(*models, k=9, stop=Stopping("predictive", eps=0.1)).decide(BRIEF, labels=LABELS)
    asked = [len(opinion.sample.turns) for opinion in found.opinions]
    assert asked == [len(model.seen) for model in models]
    assert asked[0] < asked[1] <= asked[2] == 9, "the more its draws agree, the fewer"
    assert found.decision == desk(*models, k=9).decide(BRIEF, labels=LABELS).decision == "BULLISH"


def test_two_analysts_on_one_model_do_not_share_draws() -> None:
    model = votes("BULLISH")
    Manager([StrategyAgent(model, 3, name="a"), StrategyAgent(model, 3, name="b")]).decide(BRIEF, labels=LABELS)
    assert sorted(request.sample for request in model.seen) == [0, 1, 2, 3, 4, 5]


def test_earlier_draws_can_be_voted_on_again_without_a_call() -> None:
    models = votes(*MIXED), votes(*BEAR)
    manager = desk(*models)
    found = manager.decide(BRIEF, labels=LABELS)
    once = manager.vote(found.question, [opinion.sample.first(1) for opinion in found.opinions])
    assert [opinion.vote.winner for opinion in once.opinions] == ["BEARISH", "BEARISH"]
    assert (once.calls, sum(len(model.seen) for model in models)) == (2, 6)
    with pytest.raises(UsageError, match="1 samples for 2 analysts"):
        manager.vote(found.question, [found.opinions[0].sample])


def test_numbers_and_choices_are_decided_as_labels_are() -> None:
    worth = desk(says("{final answer: 1,200}", "{final answer: 1200.0}", "{final answer: 900}"))
    assert worth.decide("What is it worth?", kind="number").decision == "1200"
    pick = desk(says("{final answer: B}", "{final answer: sell}", "{final answer: A}"))
    assert pick.decide("What now?", choices=["buy", "sell"]).decision == "B"


def test_many_questions_are_asked_at_once_and_come_back_in_order() -> None:
    model = Scripted(lambda request: f"{{final answer: {request.messages[-1].content.split()[0]}}}")
    found = desk(model, k=2).decide_all([f"{n} plus nothing?" for n in range(20)], kind="number")
    assert [decision.decision for decision in found] == [str(n) for n in range(20)]
    assert desk(model).decide_all([]) == []


def test_a_budget_ends_in_failed_calls_and_what_was_heard_still_counts() -> None:
    found = desk(votes(*BULL), votes(*BULL), budget={"calls": 4}).decide(BRIEF, labels=LABELS)
    assert found.decision == "BULLISH"
    assert (found.calls, {failed.failure.kind for failed in found.failures}) == (4, {"budget_exceeded"})


async def test_the_async_twins_do_the_same_and_a_manager_can_be_kept_open() -> None:
    manager = desk(votes(*MIXED), votes(*BULL))
    async with manager as open_desk:
        first, again = await asyncio.gather(*(open_desk.adecide(BRIEF, labels=LABELS) for _ in range(2)))
        (third,) = await open_desk.adecide_all([BRIEF], labels=LABELS)
        with pytest.raises(ConfigError, match="this manager is open already"):
            await manager.__aenter__()
    assert first.plain() == again.plain() == third.plain() == manager.decide(BRIEF, labels=LABELS).plain()


def test_a_decision_is_ready_for_a_log() -> None:
    found = desk(votes(*BULL), votes(*BEAR)).decide(BRIEF, labels=LABELS)
    logged = json.loads(json.dumps(found.plain()))
    assert logged["decision"] == "BULLISH" and logged["votes"] == {"BULLISH": 1.0, "BEARISH": 1.0}
    assert logged["tie"] == ["BULLISH", "BEARISH"]
    assert logged["evidence"][0]["text"].endswith("{final answer: BULLISH}")
    assert found.plain(texts=False)["evidence"] == [one.id for one in found.evidence]


def test_tokens_and_cost_are_summed_and_none_where_one_is_not_known() -> None:
    priced = Manager([StrategyAgent({"model": "scripted/constant", "text": "{final answer: 4}"}, 3)])
    found = priced.decide("2 + 2?", kind="number")
    assert (found.tokens, found.cost_usd) == (sum(one.sample.tokens or 0 for one in found.opinions), 0.0)
    assert found.tokens and desk(votes(*BULL)).decide(BRIEF, labels=LABELS).cost_usd is None


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Manager([]), "there are no analysts"),
        (lambda: Manager(["zoo/qwen"]), "analyst 'zoo/qwen' is no StrategyAgent"),  # type: ignore[list-item]
        (lambda: Manager([StrategyAgent("zoo/qwen")] * 2), "two analysts are named 'zoo/qwen'; give each a name="),
        (lambda: Manager([StrategyAgent("zoo/qwen", weight=0.0)]), "no analyst has a weight above 0"),
        (lambda: Manager([StrategyAgent("zoo/qwen")], tie="frist"), "unknown tie rule 'frist'"),
        (lambda: Manager([StrategyAgent("zoo/qwen")], abstain_below=2.0), "abstain_below is 2.0"),
        (lambda: Manager([StrategyAgent("zoo/qwen")], calibration="c.json"), "calibration is 'c.json'; give what"),  # type: ignore[arg-type]
        (lambda: Manager([StrategyAgent("zoo/qwen")], stop="predictiv"), "unknown stopping rule 'predictiv'"),
        (
            lambda: Manager([StrategyAgent("zoo/qwen")], budget={"call": 3}),
            "unknown key 'budget.call'; did you mean 'calls'?",
        ),
    ],
)
def test_a_desk_that_can_not_be_is_refused(made: Callable[[], object], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        made()


@pytest.fixture(scope="module")
def shaky() -> Iterator[FakeServer]:
    """A server that knows the answer with probability 0.8 and breaks every fourth call."""
    with FakeServer(answers="keyed", accuracy=0.8, faults={"500": 0.25}) as server:
        yield server


def test_over_http_some_calls_fail_and_the_desk_still_decides(shaky: FakeServer) -> None:
    analysts = [StrategyAgent(f"vllm/{name}@{shaky.url}", 7, name=name) for name in ("market", "strategy", "risk")]
    found = Manager(analysts, retries=1).decide("What is it worth? [key: 57]", kind="number")
    assert found.decision == "57"
    assert 0 < len(found.failures) < 21 and {one.failure.kind for one in found.failures} == {"server_error"}
    assert len(found.evidence) + len(found.failures) == found.calls == 21
    assert found.tokens is not None and found.cost_usd is None, "a server of one's own has no price"


# --- 4. ConsensusToolkit: the same as tools that a model may call ----------------------------------------------------


@pytest.fixture
def toolkit() -> ConsensusToolkit:
    return ConsensusToolkit(desk(votes(*BULL), votes(*MIXED)))


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object schema inside a schema."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for part in schema.values():
            yield from objects(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from objects(part)


def test_the_definitions_are_what_strict_function_calling_takes(toolkit: ConsensusToolkit) -> None:
    tools = toolkit.tools()
    assert [tool["function"]["name"] for tool in tools] == ["majority_vote", "council_decide"]
    for tool in tools:
        assert tool["type"] == "function" and tool["function"]["strict"] is True
        schemas = list(objects(tool["function"]["parameters"]))
        assert schemas
        for schema in schemas:
            assert schema["additionalProperties"] is False
            assert schema["required"] == list(schema["properties"])
            assert all("description" in field and "default" not in field for field in schema["properties"].values())
    assert json.loads(json.dumps(tools)) == tools


def test_openais_own_types_accept_them(toolkit: ConsensusToolkit) -> None:
    from openai.types.chat import ChatCompletionToolParam
    from pydantic import TypeAdapter

    assert TypeAdapter(list[ChatCompletionToolParam]).validate_python(toolkit.tools()) == toolkit.tools()


def test_without_a_manager_only_votes_are_counted() -> None:
    assert [tool["function"]["name"] for tool in ConsensusToolkit().tools()] == ["majority_vote"]
    error = ConsensusToolkit().call("council_decide", {"question": BRIEF})["error"]
    assert error["message"] == "unknown tool 'council_decide'; there are: majority_vote"


def test_majority_vote_is_called_with_the_json_that_a_model_writes(toolkit: ConsensusToolkit) -> None:
    arguments = {"answers": ["A", "B", None, "A"], "weights": None, "tie": None, "min_agreement": 0.5}
    found = toolkit.call("majority_vote", json.dumps(arguments))
    assert (
        found
        == toolkit.call("majority_vote", arguments)
        == toolkit.call("majority_vote", {**arguments, "tie": "first"})
    )
    assert (found["winner"], found["counts"], found["support"]) == ("A", {"A": 2.0, "B": 1.0}, 0.5)
    assert json.loads(json.dumps(found))["confidence_kind"] == "posterior"


def test_council_decide_asks_the_manager_and_returns_no_agents_words(toolkit: ConsensusToolkit) -> None:
    kept: list[ManagerDecision] = []
    toolkit.observe = kept.append
    found = toolkit.call("council_decide", {"question": BRIEF, "labels": list(LABELS), "choices": None, "kind": None})
    assert (found["decision"], found["calls"]) == ("BULLISH", 6)
    assert found["dissent"] == [
        {"analyst": "strategy", "answer": "BEARISH", "draws": 1, "strength": 1 / 3, "voted": False}
    ]
    assert "points" not in json.dumps(found), "untrusted text stays with the application"
    assert found["evidence"] == [one.id for one in kept[0].evidence] and "points" in kept[0].evidence[0].text


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("majority_votes", {}, "unknown tool 'majority_votes'; did you mean 'majority_vote'?"),
        ("majority_vote", "{answers: [A]", "majority_vote: the arguments are no JSON object"),
        (None, "{}", "unknown tool None; there are: council_decide, majority_vote"),
        ("majority_vote", None, "majority_vote: the arguments: expected a JSON object"),
        ("majority_vote", b"\xff", "majority_vote: the arguments: expected a JSON object"),
        ("majority_vote", "[1, 2]", "majority_vote: the arguments: expected a JSON object"),
        ("majority_vote", {"answers": ["A"], "weight": [1]}, "majority_vote: weight: extra inputs are not permitted"),
        ("majority_vote", {"answers": [4]}, "majority_vote: answers.0: input should be a valid string"),
        ("majority_vote", {"answers": []}, "there are no voters"),
        ("majority_vote", {"answers": ["A"], "weights": [-1]}, "weight -1.0 of voter 0"),
        ("majority_vote", {"answers": ["A", "B"], "weights": [1e308, 1e308]}, "weight 1e+308 of voter 0 is above"),
        ("council_decide", {"question": " "}, "the question is empty"),
        ("council_decide", {"question": "Up?", "kind": "label"}, "a question of kind label has no labels"),
        ("council_decide", {"labels": ["a", "b"]}, "council_decide: question: field required"),
    ],
)
def test_what_the_model_got_wrong_comes_back_as_an_error_it_can_read(
    toolkit: ConsensusToolkit, name: str, arguments: Any, message: str
) -> None:
    error = toolkit.call(name, arguments)["error"]
    assert message in error["message"]
    assert set(error) == {"kind", "message", "retryable"} and json.dumps(error)


class CallingService(BaseHTTPRequestHandler):
    """A chat service whose model asks the council and then says what it heard: function calling from the other side."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        message = self.heard(body) if body["messages"][-1]["role"] == "tool" else self.call(body)
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
        reply = {"id": "1", "object": "chat.completion", "created": 0, "model": body["model"], "choices": [choice]}
        said = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def call(self, body: dict[str, Any]) -> dict[str, Any]:
        """Calls the tool whose definition was sent, its arguments named as the definition says."""
        (tool,) = [tool["function"] for tool in body["tools"] if tool["function"]["name"] == "council_decide"]
        known = {"question": BRIEF, "labels": list(LABELS)}
        arguments = json.dumps({name: known.get(name) for name in tool["parameters"]["required"]})
        called = {"id": "call_1", "type": "function", "function": {"name": tool["name"], "arguments": arguments}}
        return {"content": None, "tool_calls": [called]}

    def heard(self, body: dict[str, Any]) -> dict[str, Any]:
        assert body["messages"][-2]["tool_calls"][0]["id"] == body["messages"][-1]["tool_call_id"]
        found = json.loads(body["messages"][-1]["content"])
        return {"content": f"The council says {found['decision']}, {found['support']:.2f} of its draws."}

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""


@pytest.fixture
def calling() -> Iterator[str]:
    """The address of a service whose model calls functions."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), CallingService)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def printed() -> list[str]:
    """The Python blocks of the toolkit's page, in order."""
    page = (Path(__file__).parents[1] / "docs" / "toolkit.md").read_text("utf-8")
    return re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)


def test_openais_client_calls_the_council_as_the_page_shows(toolkit: ConsensusToolkit, calling: str) -> None:
    from openai import OpenAI

    (block,) = [block for block in printed() if "def answer(" in block]
    names: dict[str, Any] = {"desk": toolkit.manager}
    exec(block, names)
    with OpenAI(base_url=calling, api_key="none", max_retries=0) as client:
        said = names["answer"](client, "any", [{"role": "user", "content": "Ask the council."}])
    assert said == "The council says BULLISH, 0.83 of its draws."


async def test_tools_can_be_called_inside_a_running_loop(toolkit: ConsensusToolkit) -> None:
    arguments = {"question": BRIEF, "labels": list(LABELS)}
    assert await toolkit.acall("council_decide", arguments) == toolkit.call("council_decide", arguments)
    assert (await toolkit.acall("majority_vote", {"answers": ["A"]}))["winner"] == "A"
    assert "error" in await toolkit.acall("nothing", {})


# --- 5. The page itself ----------------------------------------------------------------------------------------------


def test_the_page_runs_as_it_is_printed() -> None:
    pytest.importorskip("torch", reason="the zoo runs on torch: pip install 'pluribus[local]'")
    names: dict[str, Any] = {}
    for block in printed():
        exec(block, names)
    found = names["found"]
    assert (found.decision, found.calls, found.failures, found.cost_usd) == ("BULLISH", 15, (), 0.0)
    assert [opinion.analyst for opinion in found.opinions] == ["market", "strategy", "risk"]
    assert names["vote"].winner == "BULLISH"
    assert len(names["drawn"].answers) == 6
    assert asyncio.run(names["serve"]([names["BRIEF"]])) == ["BULLISH"]
    assert names["sure"].decide(names["BRIEF"], labels=LABELS).confidence_kind == "calibrated"
