"""What is said of rewards against keys: what nobody can say is left out, and few questions tell little."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from pluribus.cli._reward_facts import auroc, facts, rights
from pluribus.config import make_config
from pluribus.judge_config import make_judges
from pluribus.judging import Rewarded, reward_run
from pluribus.run import execute, prepare
from pluribus.store import Store

JUDGES = make_judges({"judges": [{"model": "scripted/number"}, {"model": "scripted/keyed"}], "max_rounds": 0})


def judged(store: Store, data: Path, lines: Sequence[dict[str, str]], texts: Sequence[str]) -> Rewarded:
    """Every text as an answer to every question."""
    data.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    models = [{"model": "scripted/constant", "text": text} for text in texts]
    config = make_config({"task": "jsonl", "data": str(data), "models": models, "num_agents": len(models)})
    run = asyncio.run(execute(prepare(config), store)).id
    return asyncio.run(reward_run(store, run, JUDGES))


def test_free_text_in_other_words_than_the_keys_is_not_wrong(tmp_path: Path) -> None:
    lines = [{"id": "t", "question": "Who wrote it?", "answer": "Lord Byron"}]
    texts = ["{final answer: Lord Byron}", "{final answer: the poet Byron}"]
    with Store.open() as store:
        found = judged(store, tmp_path / "texts.jsonl", lines, texts)
        known = rights(store, found)
    assert list(known.values()) == [True, None]
    keyed = facts(found, known).keyed
    assert keyed is not None and (keyed.right, keyed.wrong, keyed.auroc, keyed.pairs) == (1, 0, None, 0)


def test_one_question_is_no_proof_however_many_answers_it_has(tmp_path: Path) -> None:
    lines = [{"id": "n", "question": "1 + 1? [key: 2]", "answer": "2"}]
    texts = [f"{{final answer: {2 + i % 2}}} {i}" for i in range(8)]
    with Store.open() as store:
        found = judged(store, tmp_path / "numbers.jsonl", lines, texts)
        keyed = facts(found, rights(store, found)).keyed
    assert keyed is not None and keyed.pairs == 16
    for one in (keyed.auroc, keyed.accuracy):
        assert one is not None and one.high - one.low > 0.5


@pytest.mark.parametrize(("questions", "low"), [(1, 1 / (1 + 1.959964**2)), (9, 0.7800), (100, 0.9804)])
def test_a_perfect_order_on_few_questions_has_a_wide_interval(questions: int, low: float) -> None:
    """With one of each Newcombe's interval is Wilson's of one in one."""
    found = auroc([1.0, 0.0] * questions, [True, False] * questions, [i // 2 for i in range(2 * questions)])
    assert found is not None and found.value == found.high == 1.0
    assert found.low == pytest.approx(low, abs=1e-4)


def test_one_true_among_many_is_an_anecdote() -> None:
    values = [i / 30 for i in range(31)]
    found = auroc(values, [i == 29 for i in range(31)], list(range(31)))
    assert found is not None and found.low < 0.5 < found.value < found.high
