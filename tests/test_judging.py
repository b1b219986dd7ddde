"""The door of judging: benches, resumed runs, re-evaluation, rewards that cost no call, and rewards for trainers."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pluribus.config import make_config
from pluribus.errors import ConfigError, PluribusError, StoreError, UnknownName
from pluribus.judge_config import make_judges
from pluribus.judging import (
    CouncilReward,
    Rewarded,
    bench,
    candidates_of,
    put_verdict,
    reward_run,
    stored_rewards,
    verdicts,
)
from pluribus.reward import pair_id
from pluribus.run import execute, prepare
from pluribus.store import Store
from pluribus.traffic import Tally
from pluribus.types import Verdict

LINES = [{"id": f"q{i}", "question": f"How much is {i} + 1? [key: {i + 1}]", "answer": str(i + 1)} for i in range(12)]
NUMBER, KEYED = {"kind": "score", "model": "scripted/number"}, {"kind": "score", "model": "scripted/keyed"}
ZOO = {
    "judges": [
        {"role": "teacher", "model": "zoo/phi"},
        {"role": "critic", "kind": "verdict", "model": "zoo/olmo"},
        {"role": "diversity", "model": "zoo/qwen"},
    ]
}


def judges(*entries: dict[str, Any], **options: Any) -> Any:
    return make_judges({"judges": list(entries), **options})


@pytest.fixture
def asked(tmp_path: Path) -> str:
    """A run of twelve questions with three answers each, in the test's workspace."""
    path = tmp_path / "questions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in LINES), "utf-8")
    config = make_config(
        {"task": "jsonl", "data": str(path), "models": ["scripted/keyed", "scripted/number"], "num_agents": 3}
    )
    with Store.open() as store:
        return asyncio.run(execute(prepare(config), store)).id


def go(run: str, config: Any, **options: Any) -> Rewarded:
    with Store.open() as store:
        return asyncio.run(reward_run(store, run, config, **options))


def test_a_run_is_judged_once_and_never_again(asked: str) -> None:
    config = judges(NUMBER, KEYED)
    first = go(asked, config, tally=Tally())
    assert first.tally.calls >= 2 * 36 and len(first.rewards) == 36
    assert all(r.value is not None and set(r.scores) == {"judge 1", "judge 2"} for r in first.rewards)
    second = go(asked, config, tally=Tally())
    assert (second.tally.calls, second.tally.hits) == (0, 0)
    assert second.rewards == first.rewards


def test_stored_rewards_are_those_that_were_made_and_follow_other_weights(asked: str) -> None:
    made = go(asked, judges(NUMBER, KEYED, max_rounds=0))
    with Store.open() as store:
        found = stored_rewards(store, asked)
        other = stored_rewards(store, asked, weights={"judge 1": 1.0, "judge 2": 0.0})
    assert (found.rewards, found.scales, found.config) == (made.rewards, made.scales, made.config)
    assert found.items == [(c.attempt_id, c.turn) for part in found.asked for c in part.candidates]
    assert [r.value for r in other.rewards] == [r.normalised["judge 1"] for r in made.rewards]
    assert {r.disagreement for r in other.rewards} == {None}


def test_disputed_candidates_are_judged_again_and_only_they(asked: str) -> None:
    made = go(asked, judges(NUMBER, KEYED, threshold=0.03, max_rounds=2))
    alone = go(asked, judges(NUMBER, KEYED, threshold=0.03, max_rounds=0))
    disputed = {(r.attempt_id, r.turn) for r in alone.rewards if r.status == "disputed"}
    assert 0 < len(disputed) < 36
    assert {(r.attempt_id, r.turn) for r in made.rewards if r.rounds} == disputed
    assert {j.round for j in made.judgements} == {0, 1, 2}
    before = {(r.attempt_id, r.turn): r for r in alone.rewards}
    for reward in made.rewards:
        if not reward.rounds:
            assert reward == before[reward.attempt_id, reward.turn]


def test_a_judge_that_never_answers_is_counted_and_asked_again_next_time(asked: str) -> None:
    made = go(asked, judges(NUMBER, {"kind": "score", "model": "scripted/broken"}, retries=1))
    assert {r.status for r in made.rewards} == {"alone"}
    assert sum(j.failure is not None for j in made.judgements) == 36
    again = go(asked, judges(NUMBER, {"kind": "score", "model": "scripted/broken"}, retries=1), tally=Tally())
    assert again.tally.errors["server_error"] == 36


def test_a_budget_stops_judging_and_nothing_is_lost(asked: str) -> None:
    config = judges(NUMBER, KEYED, max_rounds=0)
    small = go(asked, config.model_copy(update={"budget": make_config({"budget": {"calls": 20}}).budget}))
    assert small.stopped and "20" in small.stopped
    assert {r.status for r in small.rewards} >= {"unscored"}
    whole = go(asked, config, tally=Tally())
    assert whole.tally.calls <= 72 - 15
    assert all(r.value is not None for r in whole.rewards)


def test_what_a_person_decided_is_not_judged_again(asked: str) -> None:
    alone = go(asked, judges(NUMBER, KEYED, threshold=0.0, max_rounds=0))
    one, other = alone.items[:2]
    verdict = Verdict(pair_id(one, other), "q0", one, other, "first", "ada", 1.0)
    with Store.open() as store:
        put_verdict(store, asked, verdict)
        assert verdicts(store, asked) == [verdict]
    made = go(asked, judges(NUMBER, KEYED, threshold=0.0, max_rounds=1))
    assert [(r.status, r.rounds) for r in made.rewards[:3]] == [("adjudicated", 0), ("adjudicated", 0), ("disputed", 1)]
    with Store.open() as store:
        put_verdict(store, asked, Verdict(pair_id(one, other), "q0", one, other, "undo", "ada", 2.0))
        assert stored_rewards(store, asked).rewards[0].status == "disputed"


def test_what_was_judged_before_under_other_rules_changes_nothing(asked: str, tmp_path: Path) -> None:
    rules = judges(NUMBER, KEYED, NUMBER, threshold=0.06)
    shutil.copytree(tmp_path / "workspace", tmp_path / "fresh")  # nothing is judged there
    for other in ({"threshold": 0.02}, {"normalise": "rank"}, {"seed": 7}, {"judges": rules.judges[:2]}):
        go(asked, rules.model_copy(update=other))
    after = go(asked, rules)
    with Store.open(tmp_path / "fresh") as fresh:
        alone = asyncio.run(reward_run(fresh, asked, rules))
    assert after.rewards == alone.rewards
    assert 0 < sum(r.rounds for r in alone.rewards) < 36
    with Store.open() as store:
        assert stored_rewards(store, asked).rewards == alone.rewards


def test_a_budget_that_ends_within_a_later_round_changes_no_number(asked: str, tmp_path: Path) -> None:
    rules = judges(NUMBER, KEYED, NUMBER, threshold=0.02, max_rounds=2)
    shutil.copytree(tmp_path / "workspace", tmp_path / "fresh")
    with Store.open(tmp_path / "fresh") as fresh:
        whole = asyncio.run(reward_run(fresh, asked, rules, tally=(spent := Tally())))
    at_once = go(asked, rules.model_copy(update={"max_rounds": 0}), tally=(first := Tally()))
    assert spent.calls > first.calls + 6 and not at_once.stopped
    left = (spent.calls - first.calls) // 2
    small = go(asked, rules.model_copy(update={"budget": make_config({"budget": {"calls": left}}).budget}))
    assert small.stopped and {j.round for j in small.judgements} >= {0, 1}
    with Store.open() as store:
        assert stored_rewards(store, asked).rewards == small.rewards
    assert go(asked, rules).rewards == whole.rewards


def test_another_seed_draws_other_scores(asked: str) -> None:
    first, other = (go(asked, judges(NUMBER, KEYED, max_rounds=0, seed=seed)) for seed in (0, 7))
    assert [r.scores for r in first.rewards] != [r.scores for r in other.rewards]
    assert go(asked, judges(NUMBER, KEYED, max_rounds=0), tally=(spent := Tally())).rewards == first.rewards
    assert spent.calls == 0


def test_a_verdict_after_a_second_round_keeps_its_number(asked: str) -> None:
    config = judges(NUMBER, KEYED, NUMBER, threshold=0.0, max_rounds=1)
    before = go(asked, config).rewards
    (one, other) = ((r.attempt_id, r.turn) for r in before[:2])
    with Store.open() as store:
        put_verdict(store, asked, Verdict(pair_id(one, other), "q0", one, other, "tie", "ada", 1.0))
        kept = stored_rewards(store, asked).rewards
    for now in (kept, go(asked, config).rewards):
        assert [(r.value, r.rounds) for r in now] == [(r.value, r.rounds) for r in before]
        assert [r.status for r in now[:2]] == ["adjudicated", "adjudicated"]


def test_the_embedded_council_judges_sums(tmp_path: Path) -> None:
    config = make_config({"task": "sums", "limit": 12, "models": ["zoo/qwen", "zoo/gemma"], "num_agents": 4})
    with Store.open() as store:
        run = asyncio.run(execute(prepare(config), store))
        made = asyncio.run(reward_run(store, run.id, make_judges({**ZOO, "max_rounds": 0})))
        asked = candidates_of(store, run.id)
    right = [c.answer == part.key.answer for part in asked for c in part.candidates if part.key]
    value = {good: [r.value for r, ok in zip(made.rewards, right, strict=True) if ok == good] for good in (True, False)}
    means = {good: sum(v for v in found if v is not None) / len(found) for good, found in value.items() if found}
    assert means[True] > means.get(False, 0.0)
    assert sum(r.status == "unscored" for r in made.rewards) == 0


# --- benches ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"kind": "scores", "model": "zoo/phi"}, "unknown judge 'scores'; did you mean 'score'"),
        ({"kind": "score"}, "judge 1: a judge of kind score has no model"),
        ({"kind": "verifier", "model": "zoo/phi"}, "asks no model"),
        ({"kind": "reward_model", "model": "vllm/x@http://127.0.0.1:1/v1"}, "local/FOLDER"),
        ({"kind": "recorded"}, "needs the setting 'score'"),
        ({"kind": "score", "model": "zoo/phi", "settings": {"sample": 2}}, "unknown setting of judge score 'sample'"),
        ({"kind": "score", "model": "zoo/phi", "settings": {"samples": 0}}, "judge 1: "),
        ({"kind": "score", "model": "zoo/phi", "precision": "fp8"}, "fp8 is for served models"),
        ({"kind": "score", "model": "zoo/phi", "prompts": "nowhere"}, "no prompts at 'nowhere'"),
        ({"kind": "score", "model": "nowhere/phi"}, "unknown model service 'nowhere'"),
    ],
)
def test_a_bench_that_can_not_sit_says_why(entry: dict[str, Any], words: str) -> None:
    with pytest.raises(PluribusError) as problem:
        bench(judges(entry))
    assert words in str(problem.value) and "\n" not in str(problem.value)


def test_precision_becomes_the_local_model_s_own_option() -> None:
    entry = {"model": "zoo/phi", "precision": "int8"}
    (spec,) = bench(judges(entry)).specs
    assert spec is not None and spec.options["quantization"] == "8bit"
    with pytest.raises(ConfigError, match="quantization is 4bit"):
        bench(judges({"model": {"model": "zoo/phi", "quantization": "4bit"}, "precision": "int8"}))


def test_models_that_do_not_fit_the_device_are_refused() -> None:
    entry = {"model": "zoo/phi", "precision": "fp16", "parameters_b": 30.0}
    with pytest.raises(ConfigError, match=r"60\.0 GB, and device_gb is 48"):
        bench(judges(entry, device_gb=48))


def test_two_judges_alike_draw_different_samples_and_criteria_are_shared() -> None:
    sat = bench(judges(NUMBER, NUMBER, criteria="brevity"))
    assert [seat.sample for seat in sat.seats if seat] == [0, 1]
    assert len({one.asked for one in sat.judges}) == 2
    assert {one.settings.criteria for one in sat.judges} == {"brevity"}


def test_a_run_without_rewards_says_what_makes_them(asked: str) -> None:
    with Store.open() as store:
        with pytest.raises(ConfigError, match="pluribus reward "):
            stored_rewards(store, asked)
        with pytest.raises(UnknownName):
            stored_rewards(store, "nothing")


# --- where trainers want it ------------------------------------------------------------------------------------------


def test_the_same_reply_gets_the_same_number_in_the_run_and_anywhere(asked: str, tmp_path: Path) -> None:
    made = go(asked, judges(NUMBER, KEYED, threshold=0.03))
    path = tmp_path / "rewarder.json"
    CouncilReward.of(made).save(path)
    prompts = [part.question.text for part in made.asked for _ in part.candidates]
    replies = [c.text for part in made.asked for c in part.candidates]
    found = asyncio.run(CouncilReward.load(path).rewards(prompts, replies))
    assert [r.value for r in found] == [r.value for r in made.rewards]
    assert [(r.disagreement, r.status, r.rounds) for r in found] == [
        (r.disagreement, r.status, r.rounds) for r in made.rewards
    ]
    messages = [[{"role": "user", "content": text}] for text in prompts]
    answers = [[{"role": "assistant", "content": text}] for text in replies]
    council = CouncilReward.load(path, home=tmp_path / "kept")
    assert asyncio.run(council(messages, answers, task=["sums"] * 36)) == [r.value for r in made.rewards]
    assert council.score(prompts[5], replies[5]).value == made.rewards[5].value


def test_a_number_does_not_depend_on_the_batch_also_after_a_second_round(asked: str) -> None:
    made = go(asked, judges(NUMBER, KEYED, NUMBER, threshold=0.0, max_rounds=1))
    assert {r.rounds for r in made.rewards} == {1}
    council = CouncilReward.of(made)
    said = [(part.question.text, c.text) for part in made.asked for c in part.candidates]
    backwards = asyncio.run(council.rewards(*zip(*reversed(said), strict=True)))
    assert [r.value for r in reversed(backwards)] == [r.value for r in made.rewards]
    assert [council.score(*one).value for one in said[:6]] == [r.value for r in made.rewards[:6]]


def test_disputed_rewards_can_be_withheld_and_no_verdict_is_none() -> None:
    broken = judges({"kind": "score", "model": "scripted/broken"}, normalise="none", retries=1)
    assert asyncio.run(CouncilReward(broken)(["1 + 1?"], ["2"])) == [None]
    high, low = ({"kind": "score", "model": {"model": "scripted/constant", "text": f"{{score: {n}}}"}} for n in (10, 0))
    torn = judges(high, low, normalise="none", max_rounds=0)
    assert asyncio.run(CouncilReward(torn)(["1 + 1?"], ["2"])) == [0.5]
    assert asyncio.run(CouncilReward(torn, drop_disputed=True)(["1 + 1?"], ["2"])) == [None]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "not JSON"),
        ("[]", "not a rewarder"),
        ('{"format": "pluribus-rewarder", "version": 9}', "version 9"),
        ('{"format": "pluribus-rewarder", "version": 1}', "judges"),
        ('{"format": "pluribus-rewarder", "version": 1, "judges": {"judges": []}}', "judges"),
        (
            '{"format": "pluribus-rewarder", "version": 1, "judges": {"judges": [{"model": "zoo/phi"}]}, "scales": {}, '
            '"weights": {"judge 1": 1.0}}',
            "judge 1 has no scale",
        ),
    ],
)
def test_what_is_no_rewarder_is_refused_in_one_line(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "rewarder.json"
    path.write_text(content, "utf-8")
    with pytest.raises(ConfigError) as problem:
        CouncilReward.load(path)
    assert words in str(problem.value) and "\n" not in str(problem.value)
    with pytest.raises(ConfigError, match="No such file"):
        CouncilReward.load(tmp_path / "none.json")


def test_prompts_and_completions_go_one_for_one() -> None:
    council = CouncilReward(judges(NUMBER, normalise="none"))
    with pytest.raises(ConfigError, match="2 prompts and 1 completions"):
        asyncio.run(council(["a", "b"], ["c"]))
    with pytest.raises(ConfigError, match="role and content"):
        asyncio.run(council([[{"text": "a"}]], ["c"]))


def test_batches_that_come_at_once_share_the_judges_and_closing_frees_the_store(tmp_path: Path) -> None:
    council = CouncilReward(judges(NUMBER, normalise="none"), home=tmp_path)

    async def at_once() -> list[list[float | None]]:
        async with council:
            found = await asyncio.gather(*(council([f"{i} + 1?"], ["2"]) for i in range(5)))
            assert len(council._open) == 1
            _, _, store = council._open[asyncio.get_running_loop()]
        assert store is not None and not council._open
        with pytest.raises(StoreError, match="closed"):
            store.put_questions([])
        return found

    assert all(value is not None for (value,) in asyncio.run(at_once()))
