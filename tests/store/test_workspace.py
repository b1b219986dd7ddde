"""What is put is what is read, at once, by everybody, whatever came before."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pluribus.errors import StoreError, UnknownName
from pluribus.store import Store
from pluribus.types import Completion, Decision, Key, Label, Question, Transcript

MakeTranscript = Callable[..., Transcript]


def reopened(store: Store) -> Store:
    store.close()
    return Store.open(store.path.parent)


# calls


def test_a_call_is_there_before_and_after_the_commit(store: Store) -> None:
    completion = Completion("seven", "m", logprobs=(-0.5,), cost_usd=None, latency_s=0.0)
    assert store.calls.get("k") is None
    store.calls.put("k", {"model": "m"}, completion)
    assert store.calls.get("k") is completion
    store.flush()
    assert store.calls.get("k") == completion
    assert store.calls.get("k") is not completion, "read from the file, not kept in memory for ever"
    with reopened(store) as again:
        assert again.calls.get("k") == completion
        assert again.count_calls() == 1


def test_the_first_answer_to_a_call_stays(store: Store, tmp_path: Path) -> None:
    store.calls.put("k", None, Completion("first", "m"))
    store.calls.put("k", None, Completion("second", "m"))
    assert store.calls.get("k") == Completion("first", "m")
    store.flush()
    with Store.open(store.path.parent) as neighbour:
        neighbour.calls.put("k", None, Completion("third", "m"))
    assert store.calls.get("k") == Completion("first", "m")
    assert store.count_calls() == 1


def test_a_long_call_comes_back_whole(store: Store) -> None:
    completion = Completion("½ is a half; " * 5000, "m")
    store.calls.put("k", None, completion)
    store.flush()
    assert store.calls.get("k") == completion
    store.close()
    assert store.path.stat().st_size < len(completion.text) * 1.2, "compressed: an empty file takes 56 kB of it"


def test_puts_are_committed_without_a_flush(store: Store) -> None:
    with Store.open(store.path.parent) as neighbour:
        store.calls.put("k", None, Completion("x", "m"))
        deadline = time.monotonic() + 10
        while neighbour.calls.get("k") is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_threads_put_and_read_at_once(store: Store) -> None:
    missed: list[str] = []

    def work(name: str) -> None:
        for i in range(200):
            key = f"{name}-{i}"
            store.calls.put(key, None, Completion(key, "m"))
            if (found := store.calls.get(key)) is None or found.text != key:
                missed.append(key)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert missed == []
    assert store.count_calls() == 800


# transcripts


@pytest.mark.parametrize("repeats", [1, 500], ids=["short", "compressed"])
def test_a_transcript_is_complete_on_its_own(store: Store, transcript: MakeTranscript, repeats: int) -> None:
    said = transcript("a", "degraded", "Half ½ cut \ud83d" * repeats)
    store.put_transcript(said)
    assert store.get_transcript("attempt-a") == said
    with reopened(store) as again:
        assert again.get_transcript("attempt-a") == said
        assert again.get_transcript("attempt-b") is None


def test_transcripts_come_in_the_order_asked(store: Store, transcript: MakeTranscript) -> None:
    names = [f"{i:04d}" for i in range(1200)]
    for name in names:
        store.put_transcript(transcript(name, rounds=1))
    wanted = [f"attempt-{name}" for name in [*reversed(names), "unknown"]]
    assert [t.attempt.id for t in store.transcripts(wanted)] == wanted[:-1]
    assert store.statuses(wanted) == dict.fromkeys(wanted[:-1], "complete")


def test_a_failed_attempt_asked_again_is_replaced(store: Store, transcript: MakeTranscript) -> None:
    store.put_transcript(transcript("a", "failed"))
    assert store.statuses(["attempt-a", "attempt-b"]) == {"attempt-a": "failed"}
    store.put_transcript(transcript("a", "complete"))
    assert store.statuses(["attempt-a"]) == {"attempt-a": "complete"}
    assert store.get_transcript("attempt-a") == transcript("a", "complete")


@pytest.mark.parametrize("status", ["complete", "degraded"])
def test_a_failure_never_replaces_answers(store: Store, transcript: MakeTranscript, status: str) -> None:
    store.put_transcript(transcript("a", status))
    store.put_transcript(transcript("a", "failed"))
    assert store.get_transcript("attempt-a") == transcript("a", status)


# questions


def test_questions_keep_their_keys(store: Store) -> None:
    open_question = Question("q1", "t", "Why?", "text", context="c", metadata={"a": {"b": [1.5]}})
    keyed = Question("q2", "t", "Which?", "choice", choices=("x", "y"))
    store.put_questions([(open_question, None), (keyed, Key("q2", "B", ("b",), ("assert 1",)))])
    found = store.questions(["q2", "q1", "q3"])
    assert found == {"q1": (open_question, None), "q2": (keyed, Key("q2", "B", ("b",), ("assert 1",)))}
    store.put_questions([(keyed, None)])
    assert store.questions(["q2"])["q2"][1] == Key("q2", "B", ("b",), ("assert 1",)), "no key is no news"
    store.put_questions([(keyed, Key("q2", "A"))])
    assert store.questions(["q2"])["q2"][1] == Key("q2", "A"), "a corrected key counts"


def test_a_run_keeps_the_questions_it_asked(store: Store) -> None:
    first, second = (Question("q", "t", text, "number") for text in ("2 + 2?", "2 + 3?"))
    store.put_questions([(first, Key("q", "4"))])
    store.begin_run("r1", "one", {}, [("a1", "q", 0)])
    store.put_questions([(second, Key("q", "5"))])
    store.begin_run("r2", "two", {}, [("a2", "q", 0)])
    assert store.questions(["q"]) == {"q": (second, Key("q", "5"))}
    assert store.run_questions("r1") == {"q": (first, Key("q", "4"))}
    assert store.run_questions("r2") == {"q": (second, Key("q", "5"))}
    store.put_questions([(first, Key("q", "4"))])
    assert store.questions(["q"])["q"][0] == first, "the version put last"


def test_a_run_finds_questions_put_after_it_began(store: Store) -> None:
    question = Question("q", "t", "2 + 2?", "number")
    store.begin_run("r", "late", {}, [("a", "q", 0)])
    assert store.run_questions("r") == {}
    store.put_questions([(question, None)])
    assert store.run_questions("r") == {"q": (question, None)}


# decisions and records


def test_decisions_are_told_apart_by_rule_and_tie(store: Store) -> None:
    def decided(answer: str | None, rule: str) -> Decision:
        return Decision(
            "a", rule, answer, {"4": 1.0, "5": 1.0}, 0.5, 0.0, tie=("4", "5"), answers=(("4", None), ("5", "4"))
        )

    store.put_decision(decided("4", "plurality"), "first")
    store.put_decision(decided(None, "plurality"), "abstain")
    store.put_decision(decided("5", "weighted"), "first")
    assert store.decisions(["a", "b"], "plurality", "first") == {"a": decided("4", "plurality")}
    assert store.decisions(["a"], "plurality", "abstain") == {"a": decided(None, "plurality")}
    assert store.decisions(["a"], "borda", "first") == {}
    store.put_decision(decided("5", "plurality"), "first")
    assert store.decisions(["a"], "plurality", "first") == {"a": decided("5", "plurality")}, "decided anew"
    assert [(tie, d.rule) for tie, d in store.all_decisions("a")] == [
        ("abstain", "plurality"), ("first", "plurality"), ("first", "weighted"),
    ]  # fmt: skip


def test_votes_keep_the_order_first_seen(store: Store) -> None:
    store.put_decision(Decision("a", "plurality", "z", {"z": 1.0, "a": 1.0}, 0.5, 0.0), "first")
    assert list(store.decisions(["a"], "plurality", "first")["a"].votes) == ["z", "a"]


def test_records_of_later_steps(store: Store) -> None:
    labels = [Label("a", 0, True, checker="key"), Label("a", 1, None, judge="m"), Label("b", 0, False)]
    store.put_records("label", [(label.attempt_id, label) for label in labels])
    store.put_records("label", [("a", labels[0])])
    assert store.records("label", Label, ["b", "a", "c"]) == {"a": labels[:2], "b": labels[2:]}
    assert store.records("reward", Label, ["a"]) == {}


# runs


def test_a_run_from_begin_to_end(store: Store) -> None:
    rows = [("a2", "q2", 0), ("a1", "q1", 1), ("a1", "q1", 2)]
    before = time.time()
    store.begin_run("run-1", "council", {"seed": 3, "agents": ["x"]}, rows)
    begun = store.run("run-1")
    assert (begun.status, begun.finished, begun.totals) == ("running", None, {})
    assert before <= begun.created <= time.time()
    assert store.run_attempts("run-1") == [("a2", "q2"), ("a1", "q1"), ("a1", "q1")]
    store.finish_run("run-1", "finished", {"cost_usd": None, "calls": 3})
    ended = store.run("run-1")
    assert ended.finished is not None
    assert ended.finished >= begun.created
    assert replace(ended, finished=None) == replace(begun, status="finished", totals={"cost_usd": None, "calls": 3})


def test_a_resumed_run_keeps_its_place_and_its_beginning(store: Store) -> None:
    store.begin_run("run-1", "council", {"limit": 2}, [("a", "q", 0), ("b", "q", 1)])
    first = store.run("run-1")
    store.finish_run("run-1", "stopped", {"calls": 1})
    store.begin_run("run-1", "council", {"limit": 1}, [("a", "q", 0)])
    assert store.run("run-1") == replace(first, config={"limit": 1}, totals={"calls": 1})
    assert store.run_attempts("run-1") == [("a", "q")]
    assert len(store.runs()) == 1


def test_runs_are_found_by_id_name_and_beginning(store: Store) -> None:
    for run_id, name in (("1a2b", "vote"), ("1a3c", "debate"), ("77", "vote")):
        store.begin_run(run_id, name, {}, [])
    assert [run.id for run in store.runs()] == ["77", "1a3c", "1a2b"]
    assert store.run("1a2b").id == "1a2b"
    assert store.run("vote").id == "77", "the latest of that name"
    assert store.run("deb").id == "1a3c"
    assert store.run("1a3").id == "1a3c"
    with pytest.raises(UnknownName, match=r"unknown run '1a'.*there are: debate, vote"):
        store.run("1a")
    with pytest.raises(UnknownName, match="unknown run ''"):
        store.run("")
    with pytest.raises(UnknownName, match="did you mean 'debate'"):
        store.run("dabate")
    with pytest.raises(UnknownName, match="unknown run 'x'"):
        store.finish_run("x", "finished", {})


# the folder


def test_the_folder_is_the_argument_else_the_environment_else_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PLURIBUS_HOME", raising=False)
    with Store.open() as store:
        assert store.path.resolve() == tmp_path / ".pluribus" / "store.db"
    monkeypatch.setenv("PLURIBUS_HOME", str(tmp_path / "env"))
    with Store.open() as store:
        assert store.path == tmp_path / "env" / "store.db"
    with Store.open(str(tmp_path / "deep" / "er")) as store:
        assert store.path == tmp_path / "deep" / "er" / "store.db"


def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for home in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StoreError, match=r"workspace folder .*file.* can not be made: .*PLURIBUS_HOME"):
            Store.open(home)


def test_a_folder_that_can_not_be_written_is_refused() -> None:
    home = Path("/proc/self/fdinfo")  # nobody may write there, not even root
    if not home.is_dir():
        pytest.skip("needs /proc")
    with pytest.raises(StoreError, match=r"/proc/self/fdinfo/store\.db can not be opened: .* is the folder writable"):
        Store.open(home)


def test_a_closed_store_says_so(store: Store) -> None:
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.calls.put("k", None, Completion("x", "m"))
    with pytest.raises(StoreError, match="closed"):
        store.count_calls()


# records that can not be stored


def test_one_bad_record_costs_no_other(store: Store) -> None:
    store.calls.put("good", None, Completion("x", "m"))
    store.calls.put("nan", None, Completion("x", "m", cost_usd=float("nan")))
    store.put_records("label", [("a", {"value": object()})])
    store.put_records("label", [(7, Label("a", 0, True)), (("tuple",), Label("b", 0, True))])  # type: ignore[list-item]  # on purpose: SQLite can not bind it
    store.calls.put("also good", None, Completion("y", "m"))
    with pytest.raises(StoreError, match=r"3 record\(s\) could not be stored"):
        store.flush()
    assert store.calls.get("good") == Completion("x", "m")
    assert store.calls.get("also good") == Completion("y", "m")
    assert store.count_calls() == 2


def test_closing_reports_what_could_not_be_stored(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    store.calls.put("nan", None, Completion("x", "m", cost_usd=float("nan")))
    with pytest.raises(StoreError, match="not JSON compliant"):
        store.close()
    with Store.open(tmp_path) as again:
        assert again.count_calls() == 0
