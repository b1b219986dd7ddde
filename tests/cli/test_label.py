"""`pluribus label`: whose word counts, how far a judge can be believed, and labels without keys."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pluribus.cli._panels import panels
from pluribus.fake_server import FakeServer
from pluribus.label import settle
from pluribus.panel import right_Q_A
from pluribus.store import Store
from pluribus.types import Label

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def approving() -> Iterator[str]:
    """A judge to whom everything is right."""
    with FakeServer(answers="constant", text='{"reason": "so", "verdict": true}', guided="ignores") as server:
        yield f"vllm/J@{server.url}"


@pytest.fixture
def asked(pluribus: Run, council: Run, lines: Run) -> Run:
    """Runs a debate of two rounds on these questions and returns its name."""

    def run(rows: list[Any], **entries: Any) -> str:
        data = lines(rows, "asked.jsonl")
        entries = {"data": str(data), "method": "debate", "settings": {"debate_rounds": 1}, **entries}
        return str(pluribus("run", council(**entries), "--json").object["run"])

    return run


def numbers(n: int, keys: bool = True) -> list[dict[str, Any]]:
    key = {"answer": "7"} if keys else {}
    return [{"id": f"n{i}", "question": f"What is {i} of it? [key: 7]", "kind": "number", **key} for i in range(n)]


def words(n: int) -> list[dict[str, Any]]:
    return [
        {"id": f"w{i}", "question": f"Who wrote page {i}? [key: Lord Byron]", "kind": "text", "answer": "Lord Byron"}
        for i in range(n)
    ]


def stored(name: str) -> dict[str, list[Label]]:
    with Store.open() as store:
        return store.records("label", Label, [id for id, _ in store.run_attempts(store.run(name).id)])


def row_of(said: Any, by: str) -> dict[str, Any]:
    return next(one for one in said.object["labels"] if one["by"] == by)


# --- the checker -----------------------------------------------------------------------------------------------------


def test_where_the_checker_knows_nobody_is_asked(pluribus: Run, asked: Run, tmp_path: Path) -> None:
    name = asked(numbers(6))
    out = tmp_path / "out" / "labeled.jsonl"
    said = pluribus("label", name, "--out", out, "--json")
    assert said.code == 0
    assert (said.object["turns"], said.object["undecided"], said.object["judge"], said.object["audit"]) == (
        6 * 3 * 2, 0, None, None,
    )  # fmt: skip
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    marks = [mark for row in rows for mark in row["labels"]]
    assert (marks.count(True), marks.count(False)) == (said.object["right"], said.object["wrong"])
    (run,), (log,) = panels([name], None), panels([str(out)], None)
    for round in range(2):
        assert right_Q_A(log, round).tolist() == right_Q_A(run, round).tolist()
    assert {one.checker for several in stored(name).values() for one in several} == {"key"}


def test_what_nobody_can_decide_names_the_judge_to_be_named(pluribus: Run, asked: Run) -> None:
    name = asked([*numbers(2), *numbers(5, keys=False)[2:], *words(1)])
    found = re.fullmatch(
        rf"pluribus: (\d+) of 36 turns of {name} can not be decided by the checker \(no key: 18; free text that is not "
        r"the key's: (\d)\); name a judge with --judge MODEL, or leave them out with --judge none",
        pluribus("label", name).complaint(),
    )
    assert found and int(found[1]) == 18 + int(found[2])
    assert stored(name) == {}
    said = pluribus("label", name, "--judge", "none", "--json")
    assert said.code == 0
    assert said.object["right"] + said.object["wrong"] + said.object["undecided"] == 36
    assert said.object["undecided"] == int(found[1])
    assert {one.correct for several in stored(name).values() for one in several} <= {True, False}


def test_a_run_that_nobody_answered_has_nothing_to_label(pluribus: Run, asked: Run) -> None:
    name = asked(numbers(2), models=["scripted/broken"], retries=1)
    assert "no question was answered; there is nothing to label" in pluribus("label", name).complaint()


# --- the judge -------------------------------------------------------------------------------------------------------


def test_a_judge_decides_what_is_left_and_is_checked_on_the_rest(pluribus: Run, asked: Run, approving: str) -> None:
    name = asked([*numbers(6), *numbers(9, keys=False)[6:]])
    alone = pluribus("label", name, "--judge", "none", "--json").object
    said = pluribus("label", name, "--judge", approving, "--json")
    assert said.code == 0
    assert row_of(said, "checker") == row_of(said, "checker") | {"turns": 54, "undecided": 18, "right": alone["right"]}
    assert row_of(said, "judge alone") == {"by": "judge alone", "turns": 18, "right": 18, "wrong": 0, "undecided": 0}
    assert (said.object["right"], said.object["wrong"]) == (alone["right"] + 18, alone["wrong"])
    audit = said.object["audit"]
    assert (audit["turns"], audit["silent"]) == (36, 0)
    assert audit["says_right_of_right"]["value"] == audit["says_right_of_wrong"]["value"] == 1.0
    assert audit["kappa"] == 0.0
    assert audit["agreement"]["value"] == alone["right"] / 36
    low, high = audit["agreement"]["interval"]
    assert 0 < low < alone["right"] / 36 < high < 1
    by_judge = [one for several in stored(name).values() for one in several if one.judge]
    assert len(by_judge) == 54
    assert {one.judge for one in by_judge} == {said.object["judge"]["name"]}
    settled = [right for several in stored(name).values() for right in settle(several).values()]
    assert (settled.count(True), settled.count(False)) == (said.object["right"], said.object["wrong"])


def test_the_audit_is_drawn_by_the_seed_and_may_be_left_out(pluribus: Run, asked: Run) -> None:
    name = asked(numbers(6))
    judge = ("label", name, "--judge", "scripted/number", "--json")

    def audited(*flags: str) -> Any:
        found = pluribus(*judge, *flags).object
        return found["audit"], found["judge"]["asked"]

    some, asked_for = audited("--audit", "10")
    assert (some["turns"], asked_for) == (10, 10)
    assert audited("--audit", "10") == (some, 10)
    assert pluribus(*judge, "--audit", "10").object["judge"]["calls"] == 0, "what was judged costs nothing again"
    judged = {one.turn for several in stored(name).values() for one in several if one.judge}
    assert audited("--audit", "10", "--seed", "5")[0]["turns"] == 10
    assert len({one.turn for several in stored(name).values() for one in several if one.judge}) >= len(judged)
    assert audited("--audit", "0")[1] == 0


def test_unreadable_verdicts_are_undecided_and_counted(pluribus: Run, asked: Run, tmp_path: Path) -> None:
    name = asked(numbers(3, keys=False))
    said = pluribus("label", name, "--judge", "scripted/constant", "--out", tmp_path / "l.jsonl")
    assert said.code == 0
    assert "18 verdicts could not be read: undecided" in said.out
    assert "left out: 18 undecided answers, 3 questions without a label" in said.out
    assert stored(name) == {}
    found = pluribus("label", name, "--judge", "scripted/constant", "--json").object
    assert (found["wrong"], found["undecided"], found["judge"]["unreadable"]) == (0, 18, 18)


def test_failing_calls_are_undecided_and_end_with_1(pluribus: Run, asked: Run) -> None:
    name = asked(numbers(2, keys=False))
    said = pluribus("label", name, "--judge", "scripted/broken", "--retries", "1", "--json")
    assert said.code == 1
    assert (said.object["wrong"], said.object["undecided"]) == (0, 12)
    assert said.object["judge"]["failed"] == {"scripted/broken: 500: it never answers": 12}
    assert said.object["judge"]["unreadable"] == 0
    assert stored(name) == {}


def test_the_budget_stops_it_and_what_was_judged_stays(pluribus: Run, asked: Run) -> None:
    name = asked(numbers(4, keys=False))
    judging = ("label", name, "--judge", "scripted/number", "--concurrency", "1", "--json")
    said = pluribus(*judging, "--budget-calls", "9")
    assert said.code == 3
    assert said.object["judge"]["stopped"]
    assert said.object["undecided"] == 24 - said.object["judge"]["judged"] > 0
    again = pluribus(*judging)
    assert again.code == 0
    assert again.object["undecided"] == 0
    assert again.object["judge"]["cached"] >= 9


def test_free_text_is_the_judges_where_it_is_not_the_keys(
    pluribus: Run, lines: Run, tmp_path: Path, approving: str
) -> None:
    data = lines(words(3), "asked.jsonl")
    texts = ["Answer: Lord Byron", "Answer: George Gordon Byron", "Answer: nobody knows"]
    outputs = lines([{"question_id": f"w{i}", "model": "m", "text": text} for i, text in enumerate(texts)], "o.jsonl")
    asking = ("--task", "jsonl", "--data", data, "--agent-models", f"replay/{outputs}#m", "--num-agents", "1")
    name = pluribus("run", *asking, "--json").object["run"]
    said = pluribus("label", name, "--judge", approving, "--out", tmp_path / "l.jsonl", "--json")
    assert row_of(said, "checker") == {"by": "checker", "turns": 3, "right": 1, "wrong": 0, "undecided": 2}
    assert said.object["right"] == 3
    by = [json.loads(line)["solutions"][0]["by"] for line in (tmp_path / "l.jsonl").read_text("utf-8").splitlines()]
    assert by == ["key", said.object["judge"]["name"], said.object["judge"]["name"]]
    assert said.object["audit"]["says_right_of_wrong"] == {"value": None, "interval": None, "n": 0}
    assert pluribus("show", name, "--json").object["council"]["value"] == pytest.approx(1 / 3), "a run's score stays"


def test_the_table_says_how_little_few_answers_tell(pluribus: Run, asked: Run) -> None:
    said = pluribus("label", asked(numbers(1)), "--judge", "scripted/number")
    assert said.code == 0
    assert "the judge against the checker, on 6 turns that the checker decided" in said.out
    assert "next to nothing is known" in said.out


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_programs_are_tried_where_they_may_run_and_judged_where_not(
    pluribus: Run, lines: Run, tmp_path: Path, approving: str
) -> None:
    data = lines([{"id": "p", "question": "Write inc.", "tests": ["assert inc(1) == 2"],
                   "metadata": {"entry_point": "inc"}}], "programs.jsonl")  # fmt: skip
    outputs = lines(
        [{"question_id": "p", "model": "m", "sample": i, "text": f"```python\ndef inc(x):\n    return {body}\n```"}
         for i, body in enumerate(("x + 1", "x"))],
        "programs-said.jsonl",
    )  # fmt: skip
    asking = ("--task", "jsonl", "--data", data, "--agent-models", f"replay/{outputs}#m", "--num-agents", "2")
    name = pluribus("run", *asking, "--allow-code-execution", "--json").object["run"]
    found = pluribus("label", name, "--json").object  # the run tried them
    assert (found["right"], found["wrong"]) == (1, 1)
    with Store.open() as store, Store.open(tmp_path / "other") as other:  # transcripts without labels
        row, pairs = store.run(name), store.run_questions(store.run(name).id)
        other.put_questions(pairs.values())
        for transcript in store.transcripts([id for id, _ in store.run_attempts(row.id)]):
            other.put_transcript(transcript)
        other.put_run(row, [(*pair, at) for at, pair in enumerate(store.run_attempts(row.id))])
    elsewhere = ("label", name, "--home", tmp_path / "other")
    assert "(programs that may not run here, see --allow-code-execution: 2)" in pluribus(*elsewhere).complaint()
    judged = pluribus(*elsewhere, "--judge", approving, "--json").object
    assert (judged["right"], judged["wrong"], judged["audit"]["turns"]) == (2, 0, 0)
    tried = pluribus(*elsewhere, "--allow-code-execution", "--json").object
    assert (tried["right"], tried["wrong"]) == (1, 1)


# --- files -----------------------------------------------------------------------------------------------------------


def test_an_exported_run_is_labelled_into_a_file(pluribus: Run, asked: Run, tmp_path: Path) -> None:
    name = asked(numbers(3))
    pluribus("export", name, "--out", tmp_path / "run.jsonl.gz")
    refused = pluribus("label", tmp_path / "run.jsonl.gz").complaint()
    assert refused.endswith("is a file, and its labels are kept nowhere; say --out labeled.jsonl")
    pluribus("label", name, "--out", tmp_path / "a.jsonl")
    assert pluribus("label", tmp_path / "run.jsonl.gz", "--out", tmp_path / "b.jsonl").code == 0
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def ark(number: int, *answers: str) -> dict[str, Any]:
    texts = [*(f"It is {answer}." for answer in answers), f"Final Answer: {answers[0]}"]
    blocks = "".join(f"===== Solution {i} =====\n{text}\n" for i, text in enumerate(texts, 1))
    return {"query": f"What is {number} and 1, all in all?", "gt": str(number + 1), "response": blocks}


def test_inference_records_of_another_code_are_labelled(pluribus: Run, lines: Run, tmp_path: Path) -> None:
    log = lines([ark(n, str(n + 1), str(n + 2)) for n in range(3)], "toy_infer.jsonl")
    said = pluribus("label", log, "--out", tmp_path / "l.jsonl", "--judge", "scripted/number", "--json")
    assert (said.object["right"], said.object["wrong"], said.object["audit"]["turns"]) == (3, 3, 6)
    rows = [json.loads(line) for line in (tmp_path / "l.jsonl").read_text("utf-8").splitlines()]
    assert [row["labels"] for row in rows] == [[True, False]] * 3
    assert [row["gt"] for row in rows] == ["1", "2", "3"]
    again = pluribus("label", tmp_path / "l.jsonl", "--out", tmp_path / "again.jsonl")
    assert again.code == 0
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "l.jsonl").read_bytes()


def test_a_task_gives_a_log_its_keys(pluribus: Run, lines: Run, tmp_path: Path) -> None:
    texts = [f"What is {n} and 1, all in all?" for n in range(2)]
    data = lines([{"question": text, "answer": "9"} for text in texts], "task.jsonl")
    log = lines([ark(n, "9", str(n + 1)) for n in range(3)], "infer.jsonl")
    labelling = ("label", log, "--task", "jsonl", "--out", tmp_path / "l.jsonl", "--json")
    said = pluribus(*labelling, "--data", data)
    assert "questions that are not in task jsonl: 1" in said.err
    rows = [json.loads(line) for line in (tmp_path / "l.jsonl").read_text("utf-8").splitlines()]
    assert [row["labels"] for row in rows] == [[True, False], [True, False], [False, True]]
    other = lines([{"question": "Something else?", "answer": "9"}], "other.jsonl")
    assert "none of its 3 questions is in task jsonl" in pluribus(*labelling, "--data", other).complaint()


# --- without keys ----------------------------------------------------------------------------------------------------


@pytest.fixture
def voted(pluribus: Run, lines: Run, tmp_path: Path) -> Run:
    """A vote of three on recorded answers, one row of answers a question; the key of each question is 7."""

    def run(rows: list[tuple[int, int, int]], file: str, keys: bool = True) -> str:
        asked = [{**row, "question": f"{file}: {row['question']}"} for row in numbers(len(rows), keys)]
        data = lines(asked, f"{file}-questions.jsonl")
        outputs = lines(
            [{"question_id": f"n{i}", "model": "m", "sample": sample, "text": f"The answer is {answer}."}
             for i, row in enumerate(rows) for sample, answer in enumerate(row)],
            f"{file}.jsonl",
        )  # fmt: skip
        asking = ("--task", "jsonl", "--data", data, "--agent-models", f"replay/{outputs}#m", "--num-agents", "3")
        return str(pluribus("run", *asking, "--json").object["run"])

    return run


def test_agreement_labels_and_is_no_key(pluribus: Run, voted: Run, tmp_path: Path) -> None:
    name = voted([(7, 7, 7), (8, 8, 7), (7, 8, 9)], "v", keys=False)
    said = pluribus("label", name, "--by", "consensus", "--out", tmp_path / "l.jsonl", "--json")
    assert said.code == 0
    assert (said.object["right"], said.object["wrong"], said.object["undecided"]) == (5, 1, 3)
    assert said.object["audit"] is None
    labels = [one for several in stored(name).values() for one in several]
    assert {one.checker for one in labels} == {"consensus"} and len(labels) == 6
    strict = pluribus("label", name, "--by", "consensus", "--min-share", "0.9", "--json").object
    assert (strict["right"], strict["wrong"], strict["undecided"], strict["min_share"]) == (3, 0, 6, 0.9)
    row = json.loads((tmp_path / "l.jsonl").read_text("utf-8").splitlines()[1])
    assert (row["gt"], row["labels"], row["solutions"][0]["by"]) == (None, [True, True, False], "consensus")


def test_pseudo_labels_are_held_against_the_keys_there_are(pluribus: Run, voted: Run) -> None:
    name = voted([(7, 7, 7), (8, 8, 7), (8, 8, 8)], "v")
    audit = pluribus("label", name, "--by", "consensus", "--json").object["audit"]
    assert audit["says_right_of_right"] | {"interval": 0} == {"value": 3 / 4, "interval": 0, "n": 4}
    assert audit["says_right_of_wrong"]["value"] == 1.0
    held_out = pluribus("label", voted([(7, 7, 8)], "w", keys=False), "--by", "consensus", "--held-out", name, "--json")
    assert held_out.object["held_out"] == {"run": name, **audit}
    assert held_out.object["audit"] is None


def test_a_key_outranks_the_consensus_in_the_store(pluribus: Run, voted: Run, tmp_path: Path) -> None:
    name = voted([(8, 8, 7)] * 2, "v")
    pluribus("label", name, "--by", "consensus")
    pluribus("export", name, "--format", "agentark-labeled", "--out", tmp_path / "e.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "e.jsonl").read_text("utf-8").splitlines()]
    assert [row["labels"] for row in rows] == [[False, False, True]] * 2


def test_the_alarm_goes_off_when_agreement_rose_and_accuracy_fell(pluribus: Run, voted: Run) -> None:
    before, after = voted([(7, 8, 9)] * 30, "a", keys=False), voted([(8, 8, 8)] * 30, "b", keys=False)
    good, bad = voted([(7, 7, 8)] * 30, "c"), voted([(8, 8, 8)] * 30, "d")
    flags = ("--by", "consensus", "--before", before, "--held-out-before")
    said = pluribus("label", after, *flags, good, "--held-out", bad, "--json")
    assert said.code == 1
    assert said.object["drift"]["alarm"] is True
    assert said.object["drift"]["agreement"]["value"] == 1.0
    assert said.object["drift"]["accuracy"]["value"] == -1.0
    calm = pluribus("label", after, *flags, good, "--held-out", good)
    assert calm.code == 0
    assert "no alarm: agreement +1.0000" in calm.out
    assert "ALARM: the council agrees more and is right less" in (
        pluribus("label", after, *flags, good, "--held-out", bad).out
    )


# --- wrong input -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--audit", "-1"), "--audit is -1; expected 0 (no audit) or more turns"),
        (("--by", "consensus", "--min-share", "1.5"), "--min-share is 1.5; expected a share from 0 to 1"),
        (("--by", "consensus", "--min-share", "nan"), "--min-share is nan"),
        (("--min-share", "0.5"), "--min-share 0.5 does nothing without --by consensus"),
        (("--held-out", "x"), "--held-out x does nothing without --by consensus"),
        (("--by", "consensus", "--judge", "scripted/number"), "asks nobody, found --judge scripted/number"),
        (("--by", "consensus", "--before", "x"), "the alarm needs --held-out and --held-out-before as well"),
        (("--judge", "none", "--temperature", "1"), "--temperature 1.0 does nothing without --judge MODEL"),
        (("--data", "x.jsonl"), "--data x.jsonl does nothing without --task NAME"),
        (("--task", "sums"), "--task is for logs of other codes"),
        (("--judge", "nonsense"), "model 'nonsense' is neither"),
        (("--judge", "scripted/nobody"), "nobody"),
        (("--judge", "scripted/number", "--temperature", "9"), "temperature"),
        (("--by", "keys"), "'keys'"),
        (("--by", "consensus", "--held-out", "nowhere-1"), "unknown run 'nowhere-1'"),
    ],
)  # fmt: skip
def test_wrong_flags_get_one_line(pluribus: Run, asked: Run, flags: tuple[str, ...], message: str) -> None:
    name = asked(numbers(1))
    assert message in pluribus("label", name, *flags).complaint()
    assert stored(name) == {}


def test_wrong_names_and_places_get_one_line(pluribus: Run, asked: Run, lines: Run, tmp_path: Path) -> None:
    assert "unknown run 'nowhere'" in pluribus("label", "nowhere").complaint()
    name = asked(numbers(1))
    assert "unknown run 'nowhere'" in pluribus("label", "nowhere").complaint()
    assert "is a folder" in pluribus("label", tmp_path).complaint()
    (tmp_path / "folder.jsonl").mkdir()
    assert "is a folder; choose another file" in pluribus("label", name, "--out", tmp_path / "folder.jsonl").complaint()
    mine = lines([{"mine": 1}], "mine.jsonl")
    assert "is there already and holds something else" in pluribus("label", name, "--out", mine).complaint()
    assert mine.read_text("utf-8") == '{"mine": 1}\n'
    assert stored(name) == {}
    log = lines([{"query": "1 + 1?", "gt": "2", "solutions": [{"text": "2"}]}], "log.jsonl")
    assert "holds something else" in pluribus("label", log, "--out", log).complaint()


def test_older_labels_are_written_over(pluribus: Run, asked: Run, tmp_path: Path) -> None:
    name, out = asked(numbers(2)), tmp_path / "l.jsonl"
    assert pluribus("label", name, "--out", out).code == 0
    first = out.read_bytes()
    assert pluribus("label", name, "--out", out).code == 0
    assert out.read_bytes() == first
