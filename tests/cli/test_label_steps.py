"""`pluribus label --steps`: who marks steps, what is kept, and how it stands to the task's own checker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pluribus.fake_server import FakeServer
from pluribus.step_labels import StepShare
from pluribus.store import Store
from pluribus.types import Label

Run = Callable[..., Any]
GOOD = "30 + 5 = 35. 35 + 41 = 76. {final answer: 76}"
"""What solves question 0 of the test split, and no other."""
LUCKY = "30 + 6 = 36. Well. {final answer: 76}"


@pytest.fixture
def sums(pluribus: Run, council: Run) -> str:
    """A run of two seats on three questions of sums."""
    models = [{"model": "scripted/constant", "text": text} for text in (GOOD, LUCKY)]
    entries = {"data": None, "task": "sums", "limit": 3, "models": models, "num_agents": 2, "method": "vote"}
    return str(pluribus("run", council(**entries), "--json").object["run"])


@pytest.fixture(scope="module")
def goer() -> Iterator[FakeServer]:
    """A model that ends every reply in the answer of question 0."""
    with FakeServer(answers="constant", text=" {final answer: 76}") as server:
        yield server


def stored(name: str, cls: type[Any] = Label, kind: str = "label") -> list[Any]:
    with Store.open() as store:
        ids = [id for id, _ in store.run_attempts(store.run(name).id)]
        found = store.records(kind, cls, ids)
        return [one for id in ids for one in found.get(id, ()) if one.step is not None]


def marks(labels: list[Label]) -> list[bool | None]:
    return [one.correct for one in sorted(labels, key=lambda one: (one.turn, one.step))]


def first_question(labels: list[Any]) -> list[Any]:
    return [one for one in labels if one.attempt_id == labels[0].attempt_id]


# --- the checker -----------------------------------------------------------------------------------------------------


def test_the_tasks_checker_marks_steps_beside_the_labels_of_turns(pluribus: Run, sums: str) -> None:
    before = pluribus("label", sums, "--json").object
    said = pluribus("label", sums, "--steps", "checker", "--json")
    assert (said.code, said.object["by"], said.object["answers"], said.object["calls"]) == (0, "steps", 6, 0)
    labels = stored(sums)
    assert marks(first_question(labels)) == [True, True, True, False, False, False]
    assert said.object["marks"] == {"all": 18, "good": 3, "bad": 15, "undecided": 0}
    assert {one.checker for one in labels} == {"steps"}
    assert pluribus("label", sums, "--json").object == before
    pluribus("label", sums, "--steps", "checker")
    assert stored(sums) == labels, "the same said twice is one"


def test_another_cut_is_kept_apart(pluribus: Run, sums: str) -> None:
    pluribus("label", sums, "--steps", "checker")
    said = pluribus("label", sums, "--steps", "checker", "--cut", "paragraphs", "--json").object
    assert (said["by"], said["marks"]["all"]) == ("steps paragraphs", 6)
    assert Counter(one.checker for one in stored(sums)) == {"steps": 18, "steps paragraphs": 6}


def test_marks_of_another_cut_are_not_taken_for_marks_of_these_steps(
    pluribus: Run, sums: str, goer: FakeServer, tmp_path: Path
) -> None:
    rollouts = ("--steps", "rollouts", "--rollouts", 1, "--rollout-model", f"vllm/G@{goer.url}", "--cut", "paragraphs")
    assert pluribus("label", sums, *rollouts).code == 0
    judge = ("--steps", "judge", "--judge", "scripted/number", "--cut", "paragraphs")
    pluribus("label", sums, *judge)
    assert {(one.checker or one.judge).rpartition(" ")[2] for one in stored(sums)} == {"paragraphs"}
    rows = ("distil", sums, "--view", "steps", "--check-against", "logic@dev", "--out", tmp_path / "steps.jsonl")
    assert "replies without labels of their steps: 6" in pluribus(*rows).err
    assert pluribus(*rows, "--cut", "paragraphs", "--step-labels", "rollouts", "--json").object["rows"] == 6


def test_a_drawn_number_of_answers(pluribus: Run, sums: str) -> None:
    found = []
    for seed in (0, 0, 1):
        said = pluribus("label", sums, "--steps", "checker", "--max-turns", 3, "--seed", seed, "--json").object
        assert (said["answers"], said["left_out"]) == (3, {"answers beyond --max-turns": 3})
        found.append(len(stored(sums)))
    assert found[0] == found[1] == 9 < found[2]


# --- completions -----------------------------------------------------------------------------------------------------


def test_completions_from_each_step_over_http(pluribus: Run, sums: str, goer: FakeServer) -> None:
    asked = goer.stats()["requests"]
    flags = ("--steps", "rollouts", "--rollouts", 2, "--rollout-model", f"vllm/G@{goer.url}", "--json")
    said = pluribus("label", sums, *flags)
    assert said.code == 0
    labels = stored(sums)
    assert marks(first_question(labels)) == [True] * 6, "the right answer always comes of it here"
    assert {one.checker.rpartition(" ")[0] for one in labels} == {"rollouts 2 vllm/G"}
    # two beginnings of each of two answers to a question; ends are not asked about
    assert said.object["calls"] == goer.stats()["requests"] - asked == 3 * 4 * 2
    assert said.object["completions"] == {"drawn": 24, "right": 8, "failed": 0}
    shares = stored(sums, StepShare, "step_share")
    assert Counter((one.drawn, one.right) for one in shares) == {(2, 2): 4, (2, 0): 8}
    against = said.object["against_checker"]
    assert against["agreement"]["value"] == pytest.approx(15 / 18)
    assert (against["good_of_good"]["value"], against["good_of_bad"]["value"]) == (1.0, pytest.approx(3 / 15))
    assert against["auroc_of_share"]["value"] == pytest.approx((2 * 8 + 2 * 2 * 0.5) / 20)
    again = pluribus("label", sums, *flags)
    assert (again.object["calls"], again.object["cached"]) == (0, 24)
    assert stored(sums) == labels


def test_halving_asks_less_and_leaves_right_answers_alone(pluribus: Run, sums: str, goer: FakeServer) -> None:
    flags = ("--steps", "rollouts", "--rollouts", 2, "--rollout-model", f"vllm/G@{goer.url}", "--search", "binary")
    said = pluribus("label", sums, *flags, "--json").object
    assert said["calls"] == 2 * 2 * 2 * 2, "two wrong answers to each of two questions, two places in each"
    assert marks(first_question(stored(sums))) == [True] * 6
    assert said["against_checker"]["auroc_of_share"] is None


def test_a_service_that_goes_on_with_nothing_says_so(
    pluribus: Run, sums: str, goer: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "made-up-key")
    said = pluribus("label", sums, "--steps", "rollouts", "--rollout-model", f"openai/G@{goer.url}")
    assert said.code == 1
    assert "does not go on with a reply that was begun; ask the model on a vLLM server" in " ".join(said.out.split())
    assert all(one.step == 2 for one in stored(sums)), "the ends alone are known: they are the answers"


def test_the_budget_stops_and_what_was_asked_costs_nothing_again(pluribus: Run, sums: str, goer: FakeServer) -> None:
    flags = ("--steps", "rollouts", "--rollouts", 2, "--rollout-model", f"vllm/G@{goer.url}", "--json")
    said = pluribus("label", sums, *flags, "--budget-calls", 9)
    assert said.code == 3 and "9 of 9 calls are made" in said.object["stopped"]
    whole = pluribus("label", sums, *flags)
    assert whole.code == 0 and (whole.object["calls"], whole.object["cached"]) == (15, 9)


# --- a judge ---------------------------------------------------------------------------------------------------------


def test_a_judge_names_the_first_wrong_step(pluribus: Run, sums: str) -> None:
    with FakeServer(answers="constant", text='{"reason": "so", "first_error": "1"}', guided="ignores") as server:
        said = pluribus("label", sums, "--steps", "judge", "--judge", f"vllm/J@{server.url}", "--json")
    assert said.code == 0
    labels = stored(sums)
    assert set(marks(labels)) == {False} and {one.checker for one in labels} == {None}
    assert {one.judge.partition(" ")[0] for one in labels} == {"vllm/J"}
    first = said.object["against_checker"]["first_error"]
    assert (first["erroneous"]["value"], first["correct"]["value"], first["f1"]) == (1.0, 0.0, 0.0)


def test_what_a_judge_says_unreadably_marks_nothing(pluribus: Run, sums: str) -> None:
    with FakeServer(answers="constant", text="They all look fine to me.", guided="ignores") as server:
        said = pluribus("label", sums, "--steps", "judge", "--judge", f"vllm/J@{server.url}", "--json")
    assert (said.code, said.object["without_verdict"]) == (0, {"the reply names no step": 6})
    assert said.object["against_checker"]["first_error"]["silent"] == 6
    assert stored(sums) == []


def test_the_screen_says_the_same(pluribus: Run, sums: str, goer: FakeServer) -> None:
    shown = pluribus("label", sums, "--steps", "rollouts", "--rollouts", 1, "--rollout-model", f"vllm/G@{goer.url}").out
    for words in ("the steps of 6 answers to 3 questions, by rollouts 1 vllm/G", "steps marked alike",
                  "F1 of both", "AUROC of the completions' share", "12 completions, 4 of them right"):  # fmt: skip
        assert words in shown


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--steps", "rollouts"], "--steps rollouts names no model; say who goes on: --rollout-model MODEL"),
        (["--steps", "judge"], "--steps judge names no judge; say who judges: --judge MODEL"),
        (["--steps", "judge", "--judge", "none"], "--steps judge names no judge"),
        (["--steps", "checker", "--judge", "zoo/qwen"], "--judge zoo/qwen does nothing without --steps judge"),
        (["--steps", "judge", "--judge", "zoo/qwen", "--rollouts", 4], "--rollouts 4 does nothing without --steps rol"),
        (["--steps", "rollouts", "--rollout-model", "scripted/echo", "--rollouts", 0], "--rollouts is 0; expected 1"),
        (["--steps", "checker", "--max-turns", 0], "--max-turns is 0; expected 1 or more"),
        (["--steps", "checker", "--temperature", 1], "--temperature 1.0 does nothing with --steps checker"),
        (["--steps", "checker", "--by", "consensus"], "--by consensus does nothing with --steps"),
        (["--steps", "checker", "--audit", 5], "--audit 5 does nothing with --steps"),
        (["--steps", "rollouts", "--rollout-model", "nobody/x"], "unknown model service 'nobody'"),
        (["--cut", "lines"], "--cut lines does nothing without --steps NAME"),
        (["--rollouts", 3], "--rollouts 3 does nothing without --steps NAME"),
    ],
)  # fmt: skip
def test_flags_that_do_not_go_together(pluribus: Run, flags: list[Any], words: str) -> None:
    """Before anything is read: there is no such run."""
    assert words in pluribus("label", "no-such-run", *flags).complaint()


def test_an_unknown_cut_lists_what_there_is(pluribus: Run) -> None:
    said = pluribus("label", "no-such-run", "--steps", "checker", "--cut", "words")
    assert said.code == 2 and "words" in said.err and "sentences" in said.err


def test_a_task_without_a_checker_of_steps(pluribus: Run, council: Run) -> None:
    name = pluribus("run", council(), "--json").object["run"]
    complaint = pluribus("label", name, "--steps", "checker").complaint()
    assert f"task jsonl of {name} has no checker of steps; there is one for" in complaint and "sums" in complaint


def test_questions_without_a_key(pluribus: Run, council: Run, lines: Run, goer: FakeServer) -> None:
    rows = [{"question": f"What is {i}? [key: 7]", "kind": "number"} for i in range(3)]
    name = pluribus("run", council(data=str(lines(rows))), "--json").object["run"]
    flags = ("--steps", "rollouts", "--rollout-model", f"vllm/G@{goer.url}")
    assert (
        "no answer's question has a key, and --steps rollouts needs one" in pluribus("label", name, *flags).complaint()
    )
    some = [*rows[:2], {**rows[2], "answer": "7"}]
    name = pluribus("run", council(data=str(lines(some, "some.jsonl"))), "--json").object["run"]
    said = pluribus("label", name, *flags, "--rollouts", 1, "--json").object
    assert said["questions"] == 1 and said["left_out"]["answers without a key"] == 2 * said["answers"]


def test_an_exported_run_has_no_place_for_labels_of_steps(pluribus: Run, sums: str, tmp_path: Path) -> None:
    out = tmp_path / "run.jsonl"
    pluribus("export", sums, "--out", out)
    complaint = pluribus("label", out, "--steps", "checker").complaint()
    assert "is a file, and labels of steps are kept with a run; pluribus import" in complaint
