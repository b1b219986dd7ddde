"""`pluribus reward`: a run's replies, a file's rows, the demo, and everything one can get wrong."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.conftest import MODELS, Kept

from pluribus.cli import _reward_demo, main
from pluribus.cli._reward_facts import auroc
from pluribus.engines.asyncio import block
from pluribus.judge_config import ROLE_WEIGHTS, make_judges
from pluribus.judging import JUDGEMENT, CouncilReward, stored_rewards
from pluribus.prefer import read_rows
from pluribus.store import Store
from pluribus.types import Judgement

Run = Callable[..., Any]
NUMBER = "scripted/number"
SECRET = "sk-secret-0123456789"
ALL_ALIKE = {"model": "scripted/constant", "text": '{"reason": "fine", "score": 7}'}
SILENT = {"model": "scripted/constant", "text": "I would rather not say."}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """Twelve questions, three replies each."""
    return Kept.make(tmp_path_factory.mktemp("kept"), MODELS, 12)


@pytest.fixture
def name(kept: Kept) -> str:
    return kept.lay_out()


@pytest.fixture
def judges(tmp_path: Path) -> Callable[..., Path]:
    """Writes a judges file; a judge that is text is a model."""

    def write(*entries: Any, **others: Any) -> Path:
        path = tmp_path / "judges.yaml"
        said = [{"model": one} if isinstance(one, str) else one for one in entries]
        path.write_text(yaml.safe_dump({"judges": said, **others}), "utf-8")
        return path

    return write


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def three(*more: str) -> list[str]:
    return [*(part for _ in range(3) for part in ("--judge", NUMBER)), *more]


# --- a run -----------------------------------------------------------------------------------------------------------


def test_each_reply_of_a_run_gets_a_line(pluribus: Run, name: str, tmp_path: Path) -> None:
    said = pluribus("reward", name, *three("--out", str(tmp_path / "out")))
    assert said.code == 0, said
    rows = lines_of(tmp_path / "out" / "rewards.jsonl")
    assert len(rows) == 36 and len({(row["attempt"], row["turn"]) for row in rows}) == 36
    first = rows[0]
    assert first["question_id"] == "q0" and first["seat"] == 0 and first["model"] == "scripted/keyed[accuracy=0.9]"
    for row in rows:
        weights = {"teacher": 0.5, "critic": 0.3, "diversity": 0.2}
        assert list(row["normalised"]) == list(weights)
        mean = sum(weights[judge] * row["normalised"][judge] for judge in weights)
        spread = sum(weights[judge] * (row["normalised"][judge] - mean) ** 2 for judge in weights)
        assert row["value"] == pytest.approx(mean) and row["disagreement"] == pytest.approx(spread)
        assert row["status"] == ("agreed" if row["disagreement"] <= 0.02 else "disputed")
        assert set(row["reasons"]) == set(row["judgements"]) == set(weights)
    for chart in ("reward_distribution", "consensus_variance"):
        assert (tmp_path / "out" / f"{chart}.png").read_bytes().startswith(b"\x89PNG")


def test_a_score_is_traced_to_its_judgement(pluribus: Run, name: str, tmp_path: Path) -> None:
    pluribus("reward", name, *three("--out", str(tmp_path)))
    row = lines_of(tmp_path / "rewards.jsonl")[5]
    with Store.open() as store:
        said = store.records(JUDGEMENT, Judgement, [row["attempt"]])[row["attempt"]]
    of_teacher = row["judgements"]["teacher"]
    (mine,) = [j for j in said if (j.asked, j.turn, j.round) == (of_teacher["asked"], row["turn"], of_teacher["round"])]
    assert mine.score == row["scores"]["teacher"] and of_teacher["failure"] is None


def test_the_screen_says_who_judges_and_what_came_of_it(pluribus: Run, name: str, tmp_path: Path) -> None:
    said = pluribus("reward", name, *three("--out", str(tmp_path)))
    for part in (
        "36 replies to 12 questions",
        "weights by role, in the order given: teacher 0.5, critic 0.3, diversity 0.2",
        "about 108 calls",
        "the same scores dealt to the candidates at random: 0.",
        "Krippendorff's α ",
        "against the keys, ",
        "AUROC 0.",
        "has the higher reward in 0.",
        "of 12 questions with several replies, the one with the highest reward is right on ",
        "], the majority on ",
        "which is its slowest judge; one judge after the other",
        f"written: {tmp_path / 'rewards.jsonl'}",
    ):
        assert part in said.out, part


def test_the_tables_fit_80_columns(pluribus: Run, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = pluribus("reward", name, *three("--out", str(tmp_path)))
    tables = said.out.partition("\n\njudge  ")[2].partition("consensus variance")[0].partition("\n\njudge  ")[2]
    assert "…" not in tables and "rank r" in tables and all(f"\n{role} " in tables for role in ROLE_WEIGHTS)
    assert said.out.count("of all its judgements, stored ones too") == 1


def test_the_screen_says_what_comes_next(pluribus: Run, name: str, tmp_path: Path) -> None:
    said = pluribus("reward", name, *three("--out", str(tmp_path), "--threshold", "0"))
    assert f"let people decide with: pluribus review {name}" in said.out
    assert f"pluribus prefer {name} --out preferences.jsonl" in said.out


def test_the_screen_says_why_a_judge_gave_no_score(
    pluribus: Run, name: str, judges: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    dead = {"model": "openai/m@http://127.0.0.1:9/v1"}
    flags = ("--judges", judges(dead, NUMBER), "--out", tmp_path, "--retries", "1")
    said = pluribus("reward", name, *flags)
    (line,) = [line for line in said.out.splitlines() if line.startswith("judge 1: ")]
    assert "candidates without a score: openai/m at http://127.0.0.1:9/v1: " in line and said.code == 1
    found = pluribus("reward", name, *flags, "--json")
    assert list(json.loads(found.out)["failures"]) == ["judge 1"]
    assert SECRET not in said.out + said.err + found.out + (tmp_path / "rewards.jsonl").read_text("utf-8")


def test_what_is_judged_costs_no_second_call(pluribus: Run, name: str, tmp_path: Path) -> None:
    first = pluribus("reward", name, *three("--out", str(tmp_path), "--json")).object
    again = pluribus("reward", name, *three("--out", str(tmp_path), "--json")).object
    assert first["sent"]["calls"] > 0 and again["sent"]["calls"] == 0
    assert again["variance"] == first["variance"] and again["statuses"] == first["statuses"]


def test_json_holds_what_the_screen_says(pluribus: Run, name: str, tmp_path: Path) -> None:
    found = pluribus("reward", name, *three("--out", str(tmp_path), "--json")).object
    assert found["run"] == name and found["candidates"] == 36 and found["questions"] == 12
    assert sum(found["statuses"].values()) == 36 and found["statuses"]["unscored"] == 0
    rows = lines_of(tmp_path / "rewards.jsonl")
    assert found["variance_after"] == pytest.approx(sum(row["disagreement"] for row in rows) / 36)
    assert found["variance"] > found["variance_after"]  # what was high was judged again
    alone = pluribus("reward", name, *three("--max-rounds", "0", "--out", str(tmp_path), "--json")).object
    assert (alone["variance"], alone["variance_after"]) == (pytest.approx(found["variance"]), None)
    assert found["null"]["low"] <= found["null"]["mean"] <= found["null"]["high"] and found["alpha"] is not None
    teacher = found["judges"][0]
    assert (teacher["judge"], teacher["verdicts"], teacher["weight"]) == ("teacher", 36, 0.5)
    assert teacher["calls"] >= 36 and teacher["completion_tokens"] > 0 and teacher["correlation"] is not None
    assert found["keyed"]["right"] + found["keyed"]["wrong"] == 36
    assert found["latency_s"] <= found["summed_s"]


def test_two_judges_weigh_the_same_which_is_said(pluribus: Run, name: str, tmp_path: Path) -> None:
    said = pluribus("reward", name, "--judge", NUMBER, "--judge", "scripted/keyed", "--out", tmp_path)
    assert "all judges weigh the same" in said.out and "weights by role" not in said.out


def test_every_answer_of_every_round(pluribus: Run, council: Run, tmp_path: Path) -> None:
    debate = pluribus("run", council(method="debate", settings={"debate_rounds": 1}), "--json").object["run"]
    finals = pluribus("reward", debate, "--judge", NUMBER, "--out", tmp_path, "--json").object
    every = pluribus("reward", debate, "--judge", NUMBER, "--every", "--out", tmp_path, "--json").object
    assert finals["candidates"] == 36 and every["candidates"] == 72 and every["every"]
    assert {row["round"] for row in lines_of(tmp_path / "rewards.jsonl")} == {0, 1}


def test_a_single_judge_has_no_disagreement(pluribus: Run, name: str, tmp_path: Path) -> None:
    (tmp_path / "consensus_variance.png").write_bytes(b"of another council")
    said = pluribus("reward", name, "--judge", NUMBER, "--out", tmp_path)
    assert said.code == 0 and "consensus variance: none" in said.out
    assert all(row["disagreement"] is None for row in lines_of(tmp_path / "rewards.jsonl"))
    assert not (tmp_path / "consensus_variance.png").exists() and (tmp_path / "reward_distribution.png").exists()


def test_flags_lie_over_the_file(pluribus: Run, name: str, judges: Run, tmp_path: Path) -> None:
    file = judges(NUMBER, "scripted/keyed", threshold=0.01, normalise="rank", max_rounds=2)
    flags = ("--threshold", "0.2", "--max-rounds", "0", "--out", tmp_path, "--json")
    found = pluribus("reward", name, "--judges", file, *flags).object
    assert (found["threshold"], found["normalise"], found["max_rounds"]) == (0.2, "rank", 0)
    assert all(row["rounds"] == 0 for row in lines_of(tmp_path / "rewards.jsonl"))


def test_a_kind_that_asks_no_model_needs_none(pluribus: Run, name: str, tmp_path: Path) -> None:
    found = pluribus("reward", name, "--kind", "verifier", "--normalise", "none", "--out", tmp_path, "--json").object
    assert found["sent"]["calls"] == 0 and found["keyed"]["auroc"]["value"] == 1.0
    assert all(row["value"] == float(row["correct"]) for row in lines_of(tmp_path / "rewards.jsonl"))


def test_pairwise_tells_its_position_bias(pluribus: Run, name: str, tmp_path: Path) -> None:
    first = '{"model": "scripted/constant", "text": "{choice: 1}"}'
    path = tmp_path / "judges.yaml"
    path.write_text(yaml.safe_dump({"judges": [{"kind": "pairwise", "model": json.loads(first)}]}), "utf-8")
    said = pluribus("reward", name, "--judges", path, "--out", tmp_path)
    assert "first wins" in said.out
    found = pluribus("reward", name, "--judges", path, "--out", tmp_path, "--json").object["judges"][0]
    assert found["compared"] > 0 and found["first_share"] == 1.0 and found["flipped_share"] == 1.0


# --- weights ---------------------------------------------------------------------------------------------------------


def test_weights_alike(pluribus: Run, name: str, tmp_path: Path) -> None:
    found = pluribus("reward", name, *three("--weights", "uniform", "--out", str(tmp_path), "--json")).object
    assert found["weights"] == {"teacher": 1.0, "critic": 1.0, "diversity": 1.0}


@pytest.fixture
def recorded(pluribus: Run, council: Run, lines: Run) -> str:
    """A run whose replies came with scores: `sharp` and `keen` know right from wrong, `dull` does not."""
    rows = [
        {
            "question_id": f"q{i}", "model": "m", "sample": draw, "text": f"{{final answer: {i + 1 + draw % 2}}}",
            "scores": {"sharp": 9 - 5 * (draw % 2), "keen": 0.8 - 0.3 * (draw % 2), "dull": (i + draw) * 7 % 11},
        }
        for i in range(12)
        for draw in range(4)
    ]  # fmt: skip
    models = [f"replay/{lines(rows, 'outputs.jsonl')}#m"]
    found: str = pluribus("run", council(models=models, num_agents=4), "--json").object["run"]
    return found


@pytest.mark.parametrize("how", ["labels", "agreement"])
def test_weights_that_are_learned(pluribus: Run, recorded: str, judges: Run, tmp_path: Path, how: str) -> None:
    names = ("sharp", "keen", "dull")
    file = judges(*({"kind": "recorded", "name": one, "settings": {"score": one}} for one in names))
    said = pluribus("reward", recorded, "--judges", file, "--weights", how, "--out", tmp_path, "--json")
    weights = said.object["weights"]
    assert tuple(weights) == names and min(weights["sharp"], weights["keen"]) > 3 * weights["dull"]
    with Store.open() as store:
        assert dict(stored_rewards(store, recorded).weights) == weights


def test_numbers_that_flatter_and_judges_that_stay_behind_are_said(
    pluribus: Run, recorded: str, judges: Run, tmp_path: Path
) -> None:
    file = judges(*({"kind": "recorded", "name": one, "settings": {"score": one}} for one in ("sharp", "dull")))
    flags = ("reward", recorded, "--judges", file, "--out", tmp_path / "out", "--json")
    learned = pluribus(*flags, "--weights", "labels").object["warnings"]
    assert len(learned) == 1 and "learned from the keys of this run" in learned[0]
    assert pluribus(*flags, "--weights", "agreement").object["warnings"] == []
    saved = pluribus(*flags, "--save", tmp_path / "rewarder.json").object["warnings"]
    assert len(saved) == 1 and saved[0].startswith("sharp, dull can say nothing of prompts and completions")


def test_scores_beyond_the_common_scale_are_one_line(pluribus: Run, recorded: str, judges: Run, tmp_path: Path) -> None:
    file = judges({"kind": "recorded", "name": "sharp", "settings": {"score": "sharp"}})
    said = pluribus("reward", recorded, "--judges", file, "--normalise", "none", "--out", tmp_path)
    line = [one for one in said.err.splitlines() if one.startswith("pluribus: ")]
    assert said.code == 2 and len(line) == 1
    assert "sharp gave 9" in line[0] and "[0, 1]" in line[0] and "zscore" in line[0]


def test_nothing_to_learn_from_is_one_line(pluribus: Run, council: Run, lines: Run, tmp_path: Path) -> None:
    data = lines([{"id": f"q{i}", "question": f"{i} + 1?"} for i in range(3)], "open.jsonl")
    name = pluribus("run", council(data=str(data)), "--json").object["run"]
    said = pluribus("reward", name, *three("--weights", "labels", "--out", str(tmp_path)))
    line = [one for one in said.err.splitlines() if one.startswith("pluribus: ")]
    assert said.code == 2 and len(line) == 1 and "--weights labels" in line[0] and "uniform" in line[0]


# --- judges that tell nothing ----------------------------------------------------------------------------------------


def test_a_judge_without_spread_is_warned_of(pluribus: Run, name: str, judges: Run, tmp_path: Path) -> None:
    file = judges({"model": ALL_ALIKE, "name": "flat"}, {"model": NUMBER, "name": "other"})
    said = pluribus("reward", name, "--judges", file, "--out", tmp_path)
    assert said.code == 0 and "WARNING: flat has no spread: all its 36 scores are 0.7" in said.out
    assert all(row["normalised"]["flat"] == 0.5 for row in lines_of(tmp_path / "rewards.jsonl"))


def test_a_judge_that_never_answers_counts_for_nothing(pluribus: Run, name: str, judges: Run, tmp_path: Path) -> None:
    file = judges({"model": SILENT, "name": "silent"}, {"model": "scripted/broken", "name": "gone"}, NUMBER)
    said = pluribus("reward", name, "--judges", file, "--retries", "1", "--out", tmp_path)
    assert said.code == 1
    assert "WARNING: silent gave no verdict on any of 36 candidates (0 failed, 36 not read" in said.out
    assert "WARNING: gone gave no verdict on any of 36 candidates (36 failed, 0 not read" in said.out
    for row in lines_of(tmp_path / "rewards.jsonl"):
        assert row["scores"]["silent"] is None and row["normalised"]["gone"] is None
        assert row["status"] == "alone" and row["value"] == row["normalised"]["judge 3"] and row["disagreement"] is None
        assert row["judgements"]["gone"]["failure"]["kind"] == "server_error"


def test_no_verdict_at_all_is_no_reward(pluribus: Run, name: str, judges: Run, tmp_path: Path) -> None:
    found = pluribus("reward", name, "--judges", judges({"model": SILENT}), "--out", tmp_path, "--json")
    assert found.code == 1 and found.object["statuses"]["unscored"] == 36 and found.object["mean"] is None
    assert [row["value"] for row in lines_of(tmp_path / "rewards.jsonl")] == [None] * 36
    assert not list(tmp_path.glob("*.png"))


# --- limits ----------------------------------------------------------------------------------------------------------


def test_the_budget_stops_and_nothing_is_lost(pluribus: Run, name: str, tmp_path: Path) -> None:
    stopped = pluribus("reward", name, "--judge", NUMBER, "--budget-calls", "20", "--out", tmp_path, "--json")
    assert stopped.code == 3 and "budget" in stopped.object["stopped"]
    assert stopped.object["statuses"]["unscored"] > 0
    rest = pluribus("reward", name, "--judge", NUMBER, "--out", tmp_path, "--json").object
    assert rest["statuses"]["unscored"] == 0 and rest["sent"]["calls"] <= 36 - 20 + 1


def test_a_rehearsal_asks_nobody(pluribus: Run, name: str, judges: Run, tmp_path: Path) -> None:
    gone = {"model": "vllm/none@http://127.0.0.1:9/v1", "precision": "int8", "parameters_b": 14.0}
    file = judges({**gone, "role": "teacher"}, {"model": "scripted/broken", "role": "critic"}, device_gb=48)
    said = pluribus("reward", name, "--judges", file, "--out", tmp_path / "out", "--dry-run")
    assert said.code == 0, said
    for part in ("teacher", "http://127.0.0.1:9/v1", "int8", "weights take 14.0 GB of 48 GB", "about 72 calls"):
        assert part in said.out
    assert not (tmp_path / "out").exists()
    found = pluribus("reward", name, "--judges", file, "--dry-run", "--json").object
    assert found["memory_gb"] == 14.0 and found["forecast"]["candidates"] == 36 and found["judges"][0]["weight"] == 0.5
    with Store.open() as store:
        ids = [attempt for attempt, _ in store.run_attempts(store.run(name).id)]
        assert not store.records(JUDGEMENT, Judgement, ids)


# --- rows of a file --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fitted(kept: Kept, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `--save` writes of the run's rewards."""
    folder = tmp_path_factory.mktemp("fitted")
    home, path = folder / "home", folder / "rewarder.json"
    shutil.copytree(kept.home, home)
    flags = three("--home", str(home), "--out", str(folder / "out"), "--save", str(path))
    assert main(["reward", kept.run, *flags]) == 0
    return path.read_text("utf-8")


@pytest.fixture
def rewarder(fitted: str, tmp_path: Path) -> Path:
    path = tmp_path / "rewarder.json"
    path.write_text(fitted, "utf-8")
    return path


@pytest.fixture
def unfitted(tmp_path: Path) -> Path:
    """A rewarder that needs no run: it has no scale."""
    path = tmp_path / "unfitted.json"
    CouncilReward(make_judges({"judges": [{"model": NUMBER, "role": "critic"}], "normalise": "none"})).save(path)
    return path


ROWS = [["1 + 1?", "2"], ["1 + 1?", ""], ["2 + 2?", 'It is "4",\nof course'], ["3 + 3?", "7"]]


def given(rewarder: Path) -> list[float | None]:
    """What the reward function gives the same rows."""
    council = CouncilReward.load(rewarder)

    async def once() -> list[float | None]:
        try:
            full = [row for row in ROWS if row[1]]
            return await council([prompt for prompt, _ in full], [reply for _, reply in full])
        finally:
            await council.aclose()

    first, *rest = block(once())
    return [first, None, *rest]


def test_a_csv_file_gets_columns(pluribus: Run, rewarder: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    with source.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(
            [["id", "question", "reply", "note"]] + [[i, *row, "ü"] for i, row in enumerate(ROWS)]
        )
    columns = ("--prompt-column", "question", "--completion-column", "reply")
    said = pluribus("reward", source, "--rewarder", rewarder, *columns, "--out", out)
    assert said.code == 0 and "1 without a completion" in said.out
    with out.open(encoding="utf-8", newline="") as file:
        head, *rows = list(csv.reader(file))
    assert head == [
        "id",
        "question",
        "reply",
        "note",
        "reward",
        "disagreement",
        "status",
        "teacher",
        "critic",
        "diversity",
    ]
    assert [row[:4] for row in rows] == [[str(i), *row, "ü"] for i, row in enumerate(ROWS)]
    assert rows[1][4:] == ["", "", "unscored", "", "", ""]
    assert [float(row[4]) if row[4] else None for row in rows] == given(rewarder)


def test_jsonl_rows_of_text_and_of_messages(pluribus: Run, rewarder: Path, lines: Run, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"prompt": prompt, "completion": reply, "id": i} for i, (prompt, reply) in enumerate(ROWS)
    ]
    rows[2]["prompt"] = [{"role": "user", "content": rows[2]["prompt"]}]
    rows[3]["completion"] = [{"role": "assistant", "content": rows[3]["completion"]}]
    rows[1]["completion"] = None
    out = tmp_path / "out.jsonl"
    said = pluribus("reward", lines(rows), "--rewarder", rewarder, "--out", out, "--json")
    assert said.object["rows"] == 4 and said.object["statuses"]["unscored"] == 1
    found = lines_of(out)
    assert [{name: row[name] for name in ("prompt", "completion", "id")} for row in found] == [
        {name: row[name] for name in ("prompt", "completion", "id")} for row in rows
    ]
    assert [row["reward"] for row in found] == given(rewarder)


def test_a_file_of_no_rows_stays_one(pluribus: Run, unfitted: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("prompt,completion\n")
    assert pluribus("reward", source, "--rewarder", unfitted, "--out", out).code == 0
    assert out.read_bytes() == b"prompt,completion,reward,disagreement,status,critic\r\n"
    source.write_text("prompt,reply\n")
    assert "no column 'completion'" in pluribus("reward", source, "--rewarder", unfitted, "--out", out).complaint()


@pytest.mark.parametrize(
    ("file_name", "text", "parts"),
    [
        ("a.csv", "prompt,answer\nx,y\n", ("no column 'completion'", "prompt, answer", "--completion-column")),
        ("a.csv", "prompt,completion\nx\n", ("a.csv:2", "1 cells")),
        ("a.csv", "", ("a.csv", "empty")),
        ("a.csv", "prompt,completion,prompt\nx,y,z\n", ("two columns", "'prompt'")),
        ("a.csv", "prompt,completion,critic\nx,y,z\n", ("a column 'critic' already",)),
        ("a.csv", b"prompt,completion\nx,\xff\n", ("not UTF-8",)),
        ("a.jsonl", '{"prompt": "x", "text": "y"}\n', ("no column 'completion'", "prompt, text")),
        ("a.jsonl", '{"prompt": "x", "completion": "y"}\n{"prompt": 3, "completion": "y"}\n', ("a.jsonl:2", "is 3")),
        ("a.jsonl", '{"prompt": "x", "completion": [{"role": "user"}]}\n', ("a.jsonl:1", "role and content")),
        ("a.jsonl", "[1]\n", ("a.jsonl:1", "no JSON object")),
        ("a.jsonl", "{\n", ("a.jsonl:1", "not JSON")),
        ("a.txt", "x", (".csv or .jsonl",)),
    ],
)  # fmt: skip
def test_rows_that_are_none(
    pluribus: Run, unfitted: Path, tmp_path: Path, file_name: str, text: str | bytes, parts: tuple[str, ...]
) -> None:
    source = tmp_path / file_name
    source.write_bytes(text if isinstance(text, bytes) else text.encode())
    out = tmp_path / f"out{source.suffix}"
    line = pluribus("reward", source, "--rewarder", unfitted, "--out", out).complaint()
    assert all(part in line for part in parts), line
    assert not out.exists()


def test_where_the_rows_may_go(pluribus: Run, unfitted: Path, tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("prompt,completion\nx,y\n")
    go = ("reward", source, "--rewarder", unfitted)
    assert "say --out FILE.csv" in pluribus(*go).complaint()
    assert "the file that is read" in pluribus(*go, "--out", source).complaint()
    assert "same form" in pluribus(*go, "--out", tmp_path / "out.jsonl").complaint()
    assert "is a folder" in pluribus(*go, "--out", tmp_path).complaint()
    assert source.read_text() == "prompt,completion\nx,y\n"


def test_only_older_rewards_are_written_over(pluribus: Run, unfitted: Path, tmp_path: Path) -> None:
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("prompt,completion\nx,y\n")
    go = ("reward", source, "--rewarder", unfitted, "--out", out)
    out.write_text("precious,data\n1,2\n")
    assert "is no file of rewarded rows" in pluribus(*go).complaint() and "precious" in out.read_text()
    out.unlink()
    for _ in range(2):
        assert pluribus(*go).code == 0


def test_only_an_older_rewarder_is_written_over(pluribus: Run, name: str, rewarder: Path, tmp_path: Path) -> None:
    notes = tmp_path / "notes.json"
    notes.write_text('{"mine": 1}')
    said = pluribus("reward", name, *three("--out", str(tmp_path / "o"), "--save", str(notes)))
    assert said.code == 2 and f"--save {notes} is there already and is no rewarder" in said.err
    assert notes.read_text() == '{"mine": 1}'
    again = pluribus("reward", name, *three("--out", str(tmp_path / "o"), "--save", str(rewarder)))
    assert again.code == 0 and f"--rewarder {rewarder}" in again.out


def test_columns_that_two_would_have(pluribus: Run, tmp_path: Path) -> None:
    source, rewarder = tmp_path / "in.csv", tmp_path / "r.json"
    source.write_text("prompt,completion\nx,y\n")
    CouncilReward(make_judges({"judges": [{"model": NUMBER, "role": "reward"}], "normalise": "none"})).save(rewarder)
    line = pluribus("reward", source, "--rewarder", rewarder, "--out", tmp_path / "out.csv").complaint()
    assert "a judge is named 'reward'" in line


@pytest.mark.parametrize(
    ("flags", "part"),
    [
        (("--prompt-column", ""), "there is no column ''"),
        (("--budget-calls", "-1"), "budget.calls is -1"),
        (("--retries", "0"), "retries is 0"),
    ],
)
def test_flags_of_the_rows_that_are_wrong(
    pluribus: Run, unfitted: Path, tmp_path: Path, flags: tuple[str, ...], part: str
) -> None:
    source = tmp_path / "in.csv"
    source.write_text("prompt,completion\nx,y\n")
    assert part in pluribus("reward", source, "--rewarder", unfitted, "--out", tmp_path / "o.csv", *flags).complaint()


def test_half_a_surrogate_pair_is_no_text(pluribus: Run, unfitted: Path, tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"prompt": "x", "completion": "\\ud800"}\n')
    line = pluribus("reward", source, "--rewarder", unfitted, "--out", tmp_path / "o.jsonl").complaint()
    assert f"{source}:1" in line and "surrogate" in line


@pytest.mark.parametrize(
    ("path", "value", "part"),
    [
        (("weights", "teacher"), -1, "weights.teacher is -1"),
        (("weights", "teacher"), float("nan"), "weights.teacher is nan"),
        (("weights", "teacher"), "a", "weights.teacher is 'a'"),
        (("weights", "bob"), 1, "bob"),
        (("weights",), [1], "weights is [1]"),
        (("scales",), [], "scales is []"),
        (("scales", "critic", "spread"), "a", "scales.critic.spread is 'a'"),
        (("scales", "critic", "spread"), -1, "scales.critic.spread is -1"),
        (("scales", "critic", "how"), "rank", "scales.critic.how is 'rank'"),
        (("judges",), None, "judges is None"),
    ],
)
def test_an_edited_rewarder(
    pluribus: Run, rewarder: Path, tmp_path: Path, path: tuple[str, ...], value: Any, part: str
) -> None:
    source, content = tmp_path / "in.csv", json.loads(rewarder.read_text("utf-8"))
    source.write_text("prompt,completion\nx,y\n")
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    rewarder.write_text(json.dumps(content), "utf-8")
    line = pluribus("reward", source, "--rewarder", rewarder, "--out", tmp_path / "out.csv").complaint()
    assert part in line and str(rewarder) in line


def test_a_rewarder_that_is_none(pluribus: Run, tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("prompt,completion\nx,y\n")
    go = ("reward", source, "--out", tmp_path / "out.csv", "--rewarder")
    assert "--save FILE" in pluribus(*go, source).complaint()
    assert "none.json" in pluribus(*go, tmp_path / "none.json").complaint()


def test_a_service_that_can_not_be(pluribus: Run, unfitted: Path, tmp_path: Path) -> None:
    assert "none.json" in pluribus("reward", "--serve", tmp_path / "none.json").complaint()
    open_to_all = pluribus("reward", "--serve", unfitted, "--host", "0.0.0.0", "--port", "1").complaint()
    assert "--token" in open_to_all and "0.0.0.0" in open_to_all
    assert "65535" in pluribus("reward", "--serve", unfitted, "--port", "99999").complaint()


# --- what one can get wrong ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        ((), ("no judges are named", "--judges", "--judge")),
        (("--judge", NUMBER, "--kind", "scor"), ("unknown judge 'scor'", "did you mean 'score'", "verdict")),
        (("--kind", "score"), ("judge 1", "kind score has no model", "service/name")),
        (("--kind", "recorded"), ("needs the setting 'score'",)),
        (("--judge", NUMBER, "--threshold", "2"), ("threshold is 2",)),
        (("--judge", NUMBER, "--threshold", "-0.1"), ("threshold is -0.1",)),
        (("--judge", NUMBER, "--max-rounds", "-1"), ("max_rounds is -1",)),
        (("--judge", NUMBER, "--samples", "0"), ("samples is 0",)),
        (("--kind", "verifier", "--samples", "2"), ("unknown setting of judge verifier 'samples'",)),
        (("--kind", "verifier", "--judge", NUMBER), ("asks no model",)),
        (("--kind", "verifier", "--criteria", "kind"), ("--criteria", "read no criteria")),
        (("--judge", "nowhere/x"), ("nowhere",)),
        (("--judge", NUMBER, "--normalise", "z"), ("normalise", "zscore")),
        (("--judge", NUMBER, "--weights", "some"), ("weights", "uniform")),
        (("--judge", NUMBER, "--host", "0.0.0.0"), ("--host", "--serve")),
        (("--judge", NUMBER, "--prompt-column", "p"), ("--prompt-column", "--rewarder")),
    ],
)  # fmt: skip
def test_flags_that_are_wrong(pluribus: Run, name: str, flags: tuple[str, ...], parts: tuple[str, ...]) -> None:
    line = pluribus("reward", name, *flags).complaint()
    assert all(part in line for part in parts), line


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ({"judges": [{"model": NUMBER, "wieght": 1}]}, ("judges.0.wieght", "did you mean 'weight'", "precision")),
        ({"judges": [{"model": NUMBER}], "treshold": 1}, ("treshold", "threshold", "device_gb")),
        ({"judges": [{"model": NUMBER, "weight": 0}]}, ("all weights are 0", "above 0")),
        ({"judges": [{"model": NUMBER, "weight": -1}]}, ("judges.0.weight is -1",)),
        ({"judges": [{"model": NUMBER, "kind": "x"}]}, ("unknown judge 'x'", "pairwise")),
        ({"judges": [{"kind": "pairwise"}]}, ("judge 1", "has no model")),
        ({"judges": [{"model": NUMBER, "settings": {"sample": 2}}]}, ("setting of judge score 'sample'", "samples")),
        ({"judges": [{"model": NUMBER, "settings": {"samples": "2"}}]}, ("samples", "'2'")),
        ({"judges": [{"model": NUMBER, "role": "critic"}] * 2}, ("two judges are named 'critic'",)),
        ({"judges": []}, ("judges is []",)),
        ({"judges": [{"model": NUMBER, "parameters_b": 30, "precision": "fp16"}], "device_gb": 48},
         ("60.0 GB", "device_gb is 48")),
    ],
)  # fmt: skip
def test_files_that_are_wrong(
    pluribus: Run, name: str, tmp_path: Path, content: dict[str, Any], parts: tuple[str, ...]
) -> None:
    path = tmp_path / "judges.yaml"
    path.write_text(yaml.safe_dump(content), "utf-8")
    line = pluribus("reward", name, "--judges", path, "--out", tmp_path / "out").complaint()
    assert all(part in line for part in parts), line
    assert not (tmp_path / "out").exists()


def test_places_that_are_wrong(pluribus: Run, name: str, judges: Run, tmp_path: Path) -> None:
    file = judges(NUMBER)
    line = pluribus("reward", name, "--judges", file, "--out", file)
    assert f"--out {file} is a file" in line.err and line.code == 2
    save = pluribus("reward", name, "--judges", file, "--out", tmp_path / "o", "--save", tmp_path)
    assert save.code == 2 and "is a folder" in save.err
    assert "no such" in pluribus("reward", name, "--judges", tmp_path / "none.yaml").complaint().lower()
    assert "write it into the file" in pluribus("reward", name, "--judges", file, "--judge", NUMBER).complaint()
    assert "needs a run" in pluribus("reward", "--judges", file).complaint()
    assert "needs a file of rows" in pluribus("reward", "--rewarder", file, "--out", tmp_path / "o.csv").complaint()
    assert "unknown run" in pluribus("reward", "nothing", "--judges", file).complaint()
    rows = tmp_path / "rows.csv"
    rows.write_text("prompt,completion\n")
    assert "--rewarder" in pluribus("reward", rows, "--judges", file).complaint()
    assert "takes no run" in pluribus("reward", name, "--demo").complaint()
    assert "do not go together" in pluribus("reward", "--demo", "--serve", rows).complaint()
    assert "has its own judges" in pluribus("reward", "--demo", "--judges", file).complaint()
    assert "does nothing with --demo" in pluribus("reward", "--demo", "--budget-calls", "3").complaint()
    assert "does nothing with --serve" in pluribus("reward", "--serve", rows, "--out", tmp_path / "o").complaint()
    assert "seed is -5" in pluribus("reward", name, "--judges", judges(NUMBER, seed=-5)).complaint()


def test_a_run_without_replies(pluribus: Run, council: Run, tmp_path: Path) -> None:
    broken = pluribus("run", council(models=["scripted/broken"]), "--retries", "1", "--json").object["run"]
    line = pluribus("reward", broken, "--judge", NUMBER, "--out", tmp_path / "out").complaint()
    assert "has no reply to judge" in line and not (tmp_path / "out").exists()


def test_an_exported_run_is_judged_from_its_file(pluribus: Run, name: str, tmp_path: Path) -> None:
    pluribus("export", name, "--out", tmp_path / "run.jsonl")
    go = ("--judge", NUMBER, "--json", "--out")
    mine = pluribus("reward", tmp_path / "run.jsonl", *go, tmp_path / "a").object
    theirs = pluribus("reward", name, *go, tmp_path / "b").object
    assert mine["mean"] == theirs["mean"] and mine["candidates"] == 36


# --- elsewhere -------------------------------------------------------------------------------------------------------


def test_the_report_shows_the_rewards_of_a_run(pluribus: Run, name: str, tmp_path: Path) -> None:
    before = pluribus("report", name, "--embedder", "hashing", "--out", tmp_path / "before")
    assert before.code == 0 and not (tmp_path / "before" / "tables" / "scores.csv").exists()
    pluribus("reward", name, *three("--out", str(tmp_path / "r")))
    after = pluribus("report", name, "--embedder", "hashing", "--out", tmp_path / "after")
    assert after.code == 0, after
    page = (tmp_path / "after" / "report.html").read_text("utf-8")
    assert "Rewards and disagreement" in page and "consensus point: mean reward" in page
    with (tmp_path / "after" / "tables" / "scores.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["n"] == "36" and row["unscored"] == "0" and float(row["null"]) > 0


def test_the_demo_is_real(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The walk of `--demo` on a few questions; the models are the embedded ones."""
    code = _reward_demo.go(tmp_path / "out", tmp_path / "home", json=True, questions=6)
    out, _ = capsys.readouterr()
    found = json.loads(out)
    assert code == 0 and [judge["model"] for judge in found["judges"]] == list(_reward_demo.JUDGES.values())
    data = tmp_path / "out" / "data"
    assert len(lines_of(data / "rewards.jsonl")) == found["candidates"] == 48
    assert len(lines_of(data / "judgements.jsonl")) >= 3 * 48
    pairs = read_rows(data / "preferences.jsonl")
    assert len(pairs) == found["pairs"]["after_filter"]["n"] <= found["pairs"]["before_filter"]["n"]
    assert all(row["disagreement"] <= 0.02 and row["margin"] > 0 for row in pairs)
    assert {path.name for path in (tmp_path / "out").glob("*.png")} == {
        "reward_distribution.png",
        "consensus_variance.png",
    }
    assert "no sentence about large models" in found["remark"]


def test_auroc_is_the_share_of_pairs_in_order() -> None:
    values, true = [0.1, 0.4, 0.4, 0.9, 0.2, 0.7], [False, True, False, True, False, True]
    good = [v for v, t in zip(values, true, strict=True) if t]
    bad = [v for v, t in zip(values, true, strict=True) if not t]
    by_hand = sum((a > b) + (a == b) / 2 for a in good for b in bad) / (len(good) * len(bad))
    found = auroc(values, true, range(6))
    assert found is not None and found.value == pytest.approx(by_hand) and found.low <= found.value <= found.high
    assert auroc([0.1, 0.2], [True, True], [0, 1]) is None
