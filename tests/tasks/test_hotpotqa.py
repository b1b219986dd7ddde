from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pluribus.tasks import load_task
from pluribus.tasks.hotpotqa import HUB as PINNED

PARAGRAPHS: list[tuple[str, list[str]]] = [
    (f"Title {n}", [f"First of {n}.", f" Second of {n}.", ""]) for n in range(10)
]
OWN: dict[str, Any] = {
    "_id": "5a",
    "question": "Who?",
    "answer": "Byron",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": [["Title 7", 0]],
    "context": [[title, sentences] for title, sentences in PARAGRAPHS],
}
HUB: dict[str, Any] = {
    "id": "5a",
    "question": "Who?",
    "answer": "Byron",
    "type": "bridge",
    "level": "hard",
    "supporting_facts": {"title": ["Title 7"], "sent_id": [0]},
    "context": {"title": [p[0] for p in PARAGRAPHS], "sentences": [p[1] for p in PARAGRAPHS]},
}
LONGBENCH = {
    "input": "Who?",
    "context": "Passage 1:\nTitle\nText.",
    "answers": ["Byron", "Lord Byron", "Byron"],
    "dataset": "hotpotqa",
    "_id": "5a",
}


@pytest.mark.parametrize("row", [OWN, HUB])
def test_all_paragraphs_are_shown_in_order_with_their_titles(one: Any, row: dict[str, Any]) -> None:
    question, key = one("hotpotqa", row)
    assert (question.id, question.kind, question.text, key.answer) == ("5a", "text", "Who?", "Byron")
    assert question.context.split("\n\n") == [f"Title {n}\nFirst of {n}. Second of {n}." for n in range(10)]
    assert question.metadata == {"type": "bridge", "level": "hard", "paragraphs": 10}


def test_parquet_of_the_hub(one: Any, parquet: Any) -> None:
    assert one("hotpotqa", parquet(HUB))[0] == one("hotpotqa", OWN)[0]


def test_the_train_split_is_two_files_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parquet: Any) -> None:
    pytest.importorskip("huggingface_hub")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    folder = tmp_path / f"datasets--{PINNED.repository.replace('/', '--')}" / "snapshots" / PINNED.revision
    (folder / "distractor").mkdir(parents=True)
    for n in (0, 1):
        parquet({**HUB, "id": f"train-{n}"}).rename(folder / f"distractor/train-0000{n}-of-00002.parquet")
    assert [question.id for question, _ in load_task("hotpotqa", "train").pairs] == ["train-0", "train-1"]


def test_a_row_without_paragraphs_is_asked_without_context(one: Any) -> None:
    question, _ = one("hotpotqa", {**OWN, "context": []})
    assert (question.context, question.metadata["paragraphs"]) == (None, 0)


def test_longbench_has_its_own_context_and_several_answers(one: Any) -> None:
    question, key = one("hotpotqa", LONGBENCH)
    assert (question.context, key.answer, key.aliases) == (LONGBENCH["context"], "Byron", ("Lord Byron",))


def test_another_set_of_longbench_is_refused(refused: Any) -> None:
    bad = {**LONGBENCH, "_id": "5b", "dataset": "qasper"}
    assert "'dataset' must be 'hotpotqa', found \"qasper\"" in refused("hotpotqa", LONGBENCH, bad)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"context": "text"}, 'must be a list of [title, [sentence, …]], found "text"'),
        ({"context": [["Title"]]}, "must be a list of [title, [sentence, …]]"),
        ({"context": [["Title", "sentence"]]}, "must be a title and its sentences"),
        ({"answer": ""}, "'answer' is empty"),
        ({"question": None}, "'question' must be text, found null"),
    ],
)
def test_a_broken_row_is_named(refused: Any, change: dict[str, Any], why: str) -> None:
    assert why in refused("hotpotqa", OWN, {**OWN, "_id": "5b", **change})


@pytest.mark.parametrize("context", [{"title": ["x"], "sentences": []}, {"title": ["x"]}, []])
def test_a_broken_context_of_the_hub_is_named(refused: Any, context: Any) -> None:
    assert "'context' must" in refused("hotpotqa", HUB, {**HUB, "id": "5b", "context": context})


def test_the_real_file_loads_whole(shared_data: Path) -> None:
    path = shared_data / "benchmarks/hotpotqa/hotpot_dev_distractor_sample.jsonl.gz"
    pairs = load_task("HotpotQA", data=path).pairs
    assert len(pairs) == 957
    assert all(key and key.answer for _, key in pairs)
    counts = [question.metadata["paragraphs"] for question, _ in pairs]
    assert (counts.count(10), counts.count(0)) == (950, 2)
    assert all(
        (question.context or "").count("\n\n") == max(0, n - 1) for (question, _), n in zip(pairs, counts, strict=True)
    )
