"""`pluribus prefer`: pairs of a stored run in a file, what is said about them, and one pair traced to its calls."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Kept

from pluribus.engines.asyncio import block
from pluribus.judge_config import read_judges
from pluribus.judging import JUDGEMENT, Rewarded, put_verdict, reward_run, stored_rewards
from pluribus.prefer import read_rows
from pluribus.reward import pair_id
from pluribus.store import Store
from pluribus.types import Choice, Judgement, Label, Verdict

Run = Callable[..., Any]

MODELS = [{"model": "scripted/keyed", "accuracy": p} for p in (0.8, 0.5, 0.3)]
JUDGES = """
judges:
- {role: teacher, kind: score, model: scripted/keyed}
- {role: critic, kind: score, model: scripted/number}
- {role: diversity, kind: verifier}
threshold: 0.04
max_rounds: 0
"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    return Kept.make(tmp_path_factory.mktemp("kept"), MODELS, 40)


@pytest.fixture
def many(kept: Kept) -> Path:
    return kept.data


@pytest.fixture
def name(kept: Kept) -> str:
    return kept.lay_out()


@pytest.fixture
def judges(tmp_path: Path) -> Path:
    path = tmp_path / "judges.yaml"
    path.write_text(JUDGES)
    return path


@pytest.fixture
def judged(name: str, judges: Path) -> str:
    judge(name, judges)
    return name


def judge(run: str, judges: Path) -> None:
    """What `pluribus reward RUN --judges FILE` does before it draws."""
    with Store.open() as store:
        block(reward_run(store, run, read_judges(judges)))


def rewards(run: str) -> Rewarded:
    with Store.open() as store:
        return stored_rewards(store, run)


def decide(run: str, question: str, choice: Choice, who: str = "ada") -> Verdict:
    """A person's verdict on the first two replies to a question."""
    with Store.open() as store:
        id = store.run(run).id
        attempt = next(attempt for attempt, asked in store.run_attempts(id) if asked == question)
        first, second = (attempt, 0), (attempt, 1)
        verdict = Verdict(pair_id(first, second), question, first, second, choice, who, 1.0, note="because")
        put_verdict(store, id, verdict)
    return verdict


# --- the file --------------------------------------------------------------------------------------------------------


def test_by_label_where_the_run_has_keys_alone(pluribus: Run, name: str, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    said = pluribus("prefer", name, "--out", out)
    assert said.code == 0, said
    found = read_rows(out)
    assert f"{name}: pairs by label" in said.out and f"written: {out}: {len(found)} pairs" in said.out
    assert "labels: 120 by a key or tests" in said.out and "note:" not in said.out
    assert found and all(row["chosen_correct"] and not row["rejected_correct"] for row in found)
    assert {row["by"] for row in found} == {"label"} and "margin" not in found[0]
    assert len({row["question_id"] for row in found}) == len(found)


def test_by_reward_where_the_run_has_rewards(pluribus: Run, judged: str, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    said = pluribus("prefer", judged, "--out", out)
    assert said.code == 0, said
    for part in (
        "pairs by the council's reward; --by label is there too",
        "filter: margin at least 0, disagreement at most 0.04",
        "pairs with too much disagreement",
        "against the keys",
        "before the filter",
        "kept",
        "the chosen reply is the longer one in 0.",
        f"pluribus prefer --trace {out}:1",
    ):
        assert part in said.out, part
    found, given = read_rows(out), {(r.attempt_id, r.turn): r for r in rewards(judged).rewards}
    for row in found:
        chosen, rejected = (given[row[f"{side}_attempt"], row[f"{side}_turn"]] for side in ("chosen", "rejected"))
        assert (row["chosen_reward"], row["rejected_reward"]) == (chosen.value, rejected.value)
        assert row["margin"] == chosen.value - rejected.value > 0
        assert row["disagreement"] == pytest.approx((chosen.disagreement + rejected.disagreement) / 2)
        assert row["disagreement"] <= 0.04
        assert {one["judge"]: one["score"] for one in row["chosen_scores"]} == dict(chosen.scores)
        assert (row["task"], row["by"]) == ("jsonl", "reward")


def test_the_table_against_the_keys_fits_80_columns(
    pluribus: Run, judged: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = pluribus("prefer", judged, "--out", tmp_path / "pairs.jsonl")
    table = said.out.partition("against the keys")[2].partition("written")[0]
    assert "95 % interval" in table and "…" not in table
    assert all(part in table for part in ("before the filter", "only chosen right", "only rejected right", "same"))


def test_a_seed_below_0_is_one_line(pluribus: Run, judged: str, tmp_path: Path) -> None:
    assert "--seed" in pluribus("prefer", judged, "--out", tmp_path / "pairs.jsonl", "--seed", "-1").complaint()


def test_json_says_the_same(pluribus: Run, judged: str, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    said = pluribus("prefer", judged, "--out", out, "--json").object
    found = read_rows(out)
    assert (said["by"], said["pairs"], said["questions"]) == ("reward", len(found), 40)
    assert said["files"] == {"all": {"file": str(out), "pairs": len(found)}}
    assert said["filter"] == {"margin": 0.0, "max_disagreement": 0.04, "per_question": 1}
    assert said["margin"][0] == pytest.approx(min(row["margin"] for row in found))
    kept = said["accuracy"]["kept"]
    apart = sum(row["chosen_correct"] and not row["rejected_correct"] for row in found)
    assert kept["n"] == len(found) and kept["right"][0] == pytest.approx(apart / len(found))
    assert said["accuracy"]["before the filter"]["n"] > kept["n"]
    assert sum(count for why, count in said["dropped"].items() if why.startswith("pairs")) > 0
    assert said["weights"] == {"teacher": 0.5, "critic": 0.3, "diversity": 0.2}


def test_the_same_again_is_the_same_file_and_calls_nobody(pluribus: Run, judged: str, tmp_path: Path) -> None:
    first, second = tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"
    with Store.open() as store:
        calls = store.count_calls()
    for out in (first, second, first):
        assert pluribus("prefer", judged, "--out", out, "--pairs-per-question", "0", "--reuse").code == 0
    assert read_rows(first) == read_rows(second) and len(read_rows(first)) > 40
    with Store.open() as store:
        assert store.count_calls() == calls


def test_margin_and_disagreement_filter(pluribus: Run, judged: str, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    assert pluribus("prefer", judged, "--out", out, "--margin", "0.2", "--max-disagreement", "0.02").code == 0
    assert all(row["margin"] >= 0.2 and row["disagreement"] <= 0.02 for row in read_rows(out))
    whole = pluribus("prefer", judged, "--out", out, "--max-disagreement", "1", "--json").object
    assert whole["pairs"] == 40 and list(whole["accuracy"]) == ["kept"]


def test_both_is_labels_that_the_rewards_confirm(pluribus: Run, judged: str, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    said = pluribus("prefer", judged, "--by", "both", "--out", out, "--max-disagreement", "1", "--json").object
    assert "pairs in which the wrong candidate has the higher reward" in said["dropped"]
    assert all(row["chosen_correct"] and not row["rejected_correct"] and row["margin"] > 0 for row in read_rows(out))


def test_labels_of_a_judge_count_where_there_is_no_key(pluribus: Run, council: Run, lines: Run, tmp_path: Path) -> None:
    data = lines([{"id": f"q{i}", "question": f"{i}? [key: {i}]", "kind": "number"} for i in range(8)], "free.jsonl")
    run = pluribus("run", council(data=str(data), models=MODELS), "--json").object["run"]
    out = tmp_path / "pairs.jsonl"
    line = pluribus("prefer", run, "--out", out).complaint()
    assert "has neither rewards, labels nor verdicts of people" in line and f"pluribus reward {run}" in line
    with Store.open() as store:
        for attempt, _ in store.run_attempts(store.run(run).id):
            labels = [Label(attempt, turn, turn == 1, judge="J") for turn in range(3)]
            store.put_records("label", [(attempt, one) for one in labels])
    said = pluribus("prefer", run, "--out", out)
    assert said.code == 0 and "labels: 24 by a judge" in said.out
    assert {row["chosen_turn"] for row in read_rows(out)} == {1}


def test_a_stored_label_of_an_older_key_does_not_count(pluribus: Run, name: str, tmp_path: Path) -> None:
    with Store.open() as store:
        for attempt, _ in store.run_attempts(store.run(name).id):
            store.put_records("label", [(attempt, Label(attempt, turn, False, checker="key")) for turn in range(3)])
    assert pluribus("prefer", name, "--out", tmp_path / "pairs.jsonl").code == 0


# --- people ----------------------------------------------------------------------------------------------------------


def test_people_win_over_rewards(pluribus: Run, judged: str, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    decide(judged, "q3", "second")
    decide(judged, "q4", "tie")
    decide(judged, "q5", "skip")
    said = pluribus("prefer", judged, "--out", out, "--json").object
    assert said["sources"]["human"] == 1
    assert said["dropped"]["pairs that people called a tie"] == said["dropped"]["pairs that people skipped"] == 1
    by_question = {row["question_id"]: row for row in read_rows(out)}
    assert (by_question["q3"]["chosen_turn"], by_question["q3"]["by"]) == (1, "human")
    for question in ("q4", "q5"):
        row = by_question.get(question)
        assert row is None or {row["chosen_turn"], row["rejected_turn"]} != {0, 1}
    alone = pluribus("prefer", judged, "--by", "human", "--out", out)
    assert alone.code == 0 and "pairs by people's verdicts alone" in alone.out and len(read_rows(out)) == 1


def test_people_alone_are_enough(pluribus: Run, council: Run, lines: Run, tmp_path: Path) -> None:
    data = lines([{"id": f"q{i}", "question": f"{i}?", "kind": "number"} for i in range(8)], "free.jsonl")
    run = pluribus("run", council(data=str(data)), "--json").object["run"]
    decide(run, "q2", "first")
    out = tmp_path / "pairs.jsonl"
    assert pluribus("prefer", run, "--out", out).code == 0
    (row,) = read_rows(out)
    assert (row["question_id"], row["chosen_turn"]) == ("q2", 0) and "chosen_correct" not in row


# --- weights ---------------------------------------------------------------------------------------------------------


def test_weights_are_other_numbers_of_the_same_judgements(pluribus: Run, judged: str, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    made: dict[str, Any] = {}
    for how in ("uniform", "config", "labels", "agreement"):
        made[how] = pluribus(
            "prefer", judged, "--out", out, "--weights", how, "--max-disagreement", "1", "--json"
        ).object
        with Store.open() as store:
            values = stored_rewards(store, judged, weights=made[how]["weights"]).rewards
        known = {(one.attempt_id, one.turn): one.value for one in values}
        for row in read_rows(out):
            assert row["chosen_reward"] == known[row["chosen_attempt"], row["chosen_turn"]]
    assert made["uniform"]["weights"] == {"teacher": 1.0, "critic": 1.0, "diversity": 1.0}
    assert made["config"]["weights"] == {"teacher": 0.5, "critic": 0.3, "diversity": 0.2}
    learned = made["labels"]["weights"]
    assert learned["diversity"] > 2 * max(learned["teacher"], learned["critic"])
    assert made["labels"]["accuracy"]["kept"]["right"][0] > made["uniform"]["accuracy"]["kept"]["right"][0]
    assert any("flatters" in note for note in made["labels"]["notes"])
    assert rewards(judged).weights == {"teacher": 0.5, "critic": 0.3, "diversity": 0.2}


def test_weights_from_people(pluribus: Run, judged: str, tmp_path: Path) -> None:
    for i in range(12):
        decide(judged, f"q{i}", "first")
    said = pluribus("prefer", judged, "--out", tmp_path / "pairs.jsonl", "--weights", "human")
    assert said.code == 0 and "weights (human, learned from 12 pairs): teacher" in said.out


def test_held_out_questions_teach_no_weights(pluribus: Run, judged: str, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    flags = ["--weights", "labels", "--pairs-per-question", "0", "--reuse", "--max-disagreement", "1", "--json"]
    whole = pluribus("prefer", judged, "--out", out, *flags).object
    parted = pluribus("prefer", judged, "--out", out, *flags, "--split", "0.5").object
    assert parted["learned"]["pairs"] < whole["learned"]["pairs"]
    assert not any("flatters" in note for note in parted["notes"])
    assert parted["accuracy"]["kept, held out"]["n"] == parted["files"]["test"]["pairs"]


# --- a part held out -------------------------------------------------------------------------------------------------


def test_no_question_is_in_both_parts(pluribus: Run, judged: str, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    flags = ["--split", "0.25", "--max-disagreement", "1", "--pairs-per-question", "0", "--reuse"]
    said = pluribus("prefer", judged, "--out", out, *flags)
    train, test = (read_rows(tmp_path / f"pairs.{part}.jsonl") for part in ("train", "test"))
    assert said.code == 0 and not out.exists()
    assert f"written: {tmp_path / 'pairs.train.jsonl'}: {len(train)} pairs" in said.out
    assert len({row["question_id"] for row in test}) == 10
    assert not {row["question_id"] for row in train} & {row["question_id"] for row in test}
    assert train[0].keys() == test[0].keys()
    before = {row["question_id"] for row in test}
    pluribus("prefer", judged, "--out", out, *flags, "--seed", "5")
    assert {row["question_id"] for row in read_rows(tmp_path / "pairs.test.jsonl")} != before


# --- tracing ---------------------------------------------------------------------------------------------------------


def test_a_line_is_traced_to_every_call(pluribus: Run, judged: str, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    pluribus("prefer", judged, "--out", out)
    row = read_rows(out)[2]
    said = pluribus("prefer", "--trace", f"{out}:3")
    assert said.code == 0, said
    with Store.open() as store:
        question, _ = store.run_questions(row["run"])[row["question_id"]]
        assert question.text in said.out
        for side in ("chosen", "rejected"):
            attempt, turn = row[f"{side}_attempt"], row[f"{side}_turn"]
            transcript = store.get_transcript(attempt)
            assert transcript is not None and transcript.turns[turn].text in said.out
            seat = transcript.attempt.agents[transcript.turns[turn].seat]
            assert f"seat {seat.index + 1}, {seat.model}, round 0; attempt {attempt}, turn {turn}" in said.out
            judgements = [one for one in store.records(JUDGEMENT, Judgement, [attempt])[attempt] if one.turn == turn]
            assert len(judgements) == 3 and sum(len(one.turns) for one in judgements) == 2
            for judgement in judgements:
                assert f"{judgement.judge}, round 0: score {judgement.score:g}" in said.out
                for call in judgement.turns:
                    assert all(message.content in said.out for message in call.messages)
                    assert call.text in said.out
    assert f"margin {row['margin']:.4f}" in said.out


def test_a_trace_as_json_holds_the_records(pluribus: Run, judged: str, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    verdict = decide(judged, "q0", "second", "bob")
    pluribus("prefer", judged, "--by", "human", "--out", out)
    found = pluribus("prefer", "--trace", f"{out}:1", "--json").object
    assert found["row"] == read_rows(out)[0] and found["question"]["id"] == "q0"
    assert [one["reviewer"] for one in found["verdicts"]] == ["bob"]
    chosen, rejected = found["sides"]
    assert (chosen["attempt_id"], chosen["turn"]) == tuple(verdict.second)
    assert [one["judge"] for one in chosen["judgements"]] == ["teacher", "critic", "diversity"]
    assert rejected["judgements"][0]["turns"][0]["messages"][-1]["content"]
    assert "bob said: chosen: because" in pluribus("prefer", "--trace", f"{out}:1").out


def test_what_another_council_said_since_is_shown_too(pluribus: Run, judged: str, judges: Path, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    pluribus("prefer", judged, "--out", out)
    judges.write_text("judges:\n- {name: other, kind: score, model: scripted/number, temperature: 0.5}\n")
    judge(judged, judges)
    said = pluribus("prefer", "--trace", f"{out}:1")
    assert said.code == 0 and "teacher, round 0" in said.out and "other, round 0" in said.out


def test_one_judge_alone_is_filtered_by_no_disagreement(pluribus: Run, name: str, judges: Path, tmp_path: Path) -> None:
    judges.write_text("judges:\n- {name: one, kind: score, model: scripted/number}\n")
    judge(name, judges)
    said = pluribus("prefer", name, "--out", tmp_path / "pairs.jsonl")
    assert said.code == 0 and "one judge's: there is no disagreement to filter by" in said.out
    assert "disagreement" not in read_rows(tmp_path / "pairs.jsonl")[0]


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("pairs.jsonl", "--trace is"),
        ("pairs.jsonl:x", "expected FILE:LINE, such as preferences.jsonl:1"),
        ("pairs.jsonl:0", "pairs.jsonl:0: there is no pair on this line"),
        ("pairs.jsonl:999", "pairs.jsonl:999: there is no pair on this line; lines count from 1"),
        ("nope.jsonl:1", "nope.jsonl: can not be read"),
    ],
)
def test_places_that_are_not_there(pluribus: Run, name: str, tmp_path: Path, place: str, expected: str) -> None:
    pluribus("prefer", name, "--out", tmp_path / "pairs.jsonl")
    assert expected in pluribus("prefer", "--trace", tmp_path / place).complaint()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"chosen": [{"role": "assistant", "content": "forged"}]}, "chosen is not the reply that is stored at"),
        ({"rejected_attempt": "gone"}, "rejected_attempt is gone, turn"),
        ({"rejected_turn": 99}, "turn 99; the workspace holds no such reply"),
        ({"question_id": "gone"}, "question_id is 'gone'; run"),
        ({"run": "gone"}, "unknown run 'gone'"),
        ({"run": ...}, "run is missing: the row can not be traced"),
    ],
)
def test_a_row_that_the_workspace_does_not_hold(
    pluribus: Run, name: str, tmp_path: Path, change: dict[str, Any], expected: str
) -> None:
    out = tmp_path / "pairs.jsonl"
    pluribus("prefer", name, "--out", out)
    row = {**read_rows(out)[0], **change}
    out.write_text(json.dumps({key: value for key, value in row.items() if value is not ...}) + "\n")
    assert expected in pluribus("prefer", "--trace", f"{out}:1").complaint()


# --- wrong input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], "no run is named; say: pluribus prefer RUN --out FILE"),
        (["RUN"], "--out is missing; say where the pairs go"),
        (["nope", "--out", "x.jsonl"], "unknown run 'nope'"),
        (["RUN", "--by", "dice"], "--by"),
        (["RUN", "--by", "reward"], "--by reward: run vote-jsonl-"),
        (["RUN", "--by", "both"], "has no rewards; make them with: pluribus reward vote-jsonl-"),
        (["RUN", "--by", "human"], "--by human: nobody has judged a pair of run"),
        (["RUN", "--weights", "uniform"], "--weights uniform: run vote-jsonl-"),
        (["RUN", "--margin", "-0.1"], "--margin is -0.1; expected a number from 0 to 1"),
        (["RUN", "--margin", "nan"], "--margin is nan"),
        (["RUN", "--margin", "0.3"], "pairs whose margin is not known: 66); loosen --margin"),
        (["RUN", "--max-disagreement", "2"], "--max-disagreement is 2; expected a number from 0 to 1"),
        (["RUN", "--pairs-per-question", "-1"], "--pairs-per-question is -1; expected at least 1, or 0 for all"),
        (["RUN", "--near-duplicates", "0"], "--near-duplicates is 0; expected a share above 0, at most 1"),
        (["RUN", "--split", "1"], "--split is 1; expected a share between 0 and 1"),
        (["RUN", "--split", "0.001"], "--split 0.001 of 40 questions leaves one part empty"),
    ],
)  # fmt: skip
def test_wrong_flags(pluribus: Run, name: str, tmp_path: Path, flags: list[str], expected: str) -> None:
    out = tmp_path / "pairs.jsonl"
    given = [name if flag == "RUN" else flag for flag in flags]
    if len(given) > 1 and "--out" not in given:
        given += ["--out", str(out)]
    assert expected in pluribus("prefer", *given).complaint()
    assert not out.exists()


def test_nothing_but_older_pairs_is_written_over(pluribus: Run, name: str, many: Path, tmp_path: Path) -> None:
    before = many.read_bytes()
    line = pluribus("prefer", name, "--out", many).complaint()
    assert f"{many.name} is there already and is no preference file; choose another file" in line
    assert many.read_bytes() == before
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert "is no file; choose another" in pluribus("prefer", name, "--out", pipe).complaint()
    assert "is a folder; choose another" in pluribus("prefer", name, "--out", tmp_path).complaint()
    (tmp_path / "empty.jsonl").touch()
    for out in ("empty.jsonl", "empty.jsonl"):
        assert pluribus("prefer", name, "--out", tmp_path / out).code == 0


def test_an_exported_run_gives_pairs_by_label(pluribus: Run, name: str, tmp_path: Path) -> None:
    exported, out = tmp_path / "run.jsonl", tmp_path / "pairs.jsonl"
    pluribus("export", name, "--out", exported)
    assert pluribus("prefer", exported, "--out", out).code == 0
    assert pluribus("prefer", name, "--out", tmp_path / "same.jsonl").code == 0
    assert out.read_bytes() == (tmp_path / "same.jsonl").read_bytes()
    assert "no judge has judged it" in pluribus("prefer", exported, "--trace", f"{out}:1").out


def test_longer_replies_that_win_are_warned_of(pluribus: Run, lines: Run, tmp_path: Path) -> None:
    rows = [
        {"question_id": f"q{i}", "model": model, "sample": 0, "text": f"{words} {{final answer: {answer}}}"}
        for i in range(12)
        for model, words, answer in (("long", "word " * 20, i + 1), ("short", "no", 999))
    ]
    recorded = lines(rows, "outputs.jsonl")
    data = lines([{"id": f"q{i}", "question": f"{i} + 1?", "answer": str(i + 1)} for i in range(12)], "few.jsonl")
    models = f"replay/{recorded}#long,replay/{recorded}#short"
    run = pluribus("run", "--task", "jsonl", "--data", data, "--agent-models", models, "--json").object["run"]
    said = pluribus("prefer", run, "--out", tmp_path / "pairs.jsonl")
    assert "the chosen reply is the longer one in 1.0000 (95 %: 0.758 – 1.000), by +19.0 words" in said.out
    assert "note: the chosen reply is the longer one in 100% of the pairs, clearly more than half" in said.out
