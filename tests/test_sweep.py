"""Sweeps: what a file means, what cells share, what is asked, and what is left after a failure."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from pluribus.config import CALIBRATION, BudgetConfig, make_config
from pluribus.errors import ConfigError, PluribusError, UnknownName
from pluribus.run import execute, prepare
from pluribus.store import Store
from pluribus.sweep import Outcome, Plan, make_plan, make_sweep, read_sweep, stored
from pluribus.sweep.engine import check, run_here
from pluribus.sweep.plan import limited, rivals
from pluribus.sweep.workers import gpus

RECIPES = Path(__file__).parents[1] / "recipes"
GOOD, BAD = {"model": "scripted/keyed", "accuracy": 0.9}, {"model": "scripted/keyed", "accuracy": 0.5}
BROKEN = "scripted/broken"


class Quiet:
    """Nobody looks on; what ended is remembered."""

    def __init__(self) -> None:
        self.ended: list[int] = []

    def begin(self, cell: int) -> None:
        pass

    def advance(self, cell: int, done: int, sent: int) -> None:
        pass

    def end(self, outcome: Outcome) -> None:
        self.ended.append(outcome.cell)

    def say(self, words: str) -> None:
        pass


@pytest.fixture
def plan(tmp_path: Path) -> Callable[..., Plan]:
    """A plan over twelve questions whose keys the scripted models can read."""
    data = tmp_path / "questions.jsonl"
    rows = [{"id": f"q{i}", "question": f"{i} + 1? [key: {i + 1}]", "answer": str(i + 1)} for i in range(12)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")

    def make(budget: dict[str, Any] | None = None, base: dict[str, Any] | None = None, **entries: Any) -> Plan:
        whole = {"task": "jsonl", "data": str(data), "retries": 1, **(base or {})}
        file = make_sweep({"name": "try", "base": whole, **entries})
        return make_plan(file, budget=BudgetConfig(**budget) if budget else None)

    return make


async def go(plan: Plan, jobs: int = 1) -> list[Outcome]:
    with Store.open() as store:
        return await run_here(plan, store, Quiet(), jobs)


def labels(plan: Plan) -> list[str]:
    return [cell.label for cell in plan.cells]


MIXED = {"mixed": [GOOD, BAD]}

# --- what a file means -----------------------------------------------------------------------------------------------


def test_the_product_of_the_axes_and_controls_of_mixed_sets(plan: Callable[..., Plan]) -> None:
    made = plan(grid={"models": MIXED, "num_agents": [2, 4], "persona": ["none", "multi"]})
    own = [cell.coordinates for cell in made.cells if not cell.control]
    assert {(c["num_agents"], c["persona"]) for c in own} == {(2, "none"), (4, "none"), (2, "multi"), (4, "multi")}
    assert all(c["models"] == "mixed" and c["method"] == "vote" and c["task"] == "jsonl" for c in own)
    controls = [cell for cell in made.cells if cell.control]
    assert [(c.coordinates["num_agents"], c.coordinates["persona"]) for c in controls] == [(4, "none")] * 2
    assert {len({repr(spec) for spec in cell.specs}) for cell in controls} == {1}
    assert len(set(labels(made))) == 6


def test_a_cell_is_the_run_that_the_same_council_file_makes(plan: Callable[..., Plan]) -> None:
    made = plan(grid={"models": MIXED, "num_agents": [4], "persona": ["baseline_b"], "temperature": [0.5]})
    (cell,) = [cell for cell in made.cells if not cell.control]
    council = {
        "task": "jsonl",
        "data": cell.prepared.config.data,
        "models": [GOOD, BAD],
        "num_agents": 4,
        "baseline_b": True,
    }
    assert cell.prepared.id == prepare(make_config({**council, "sampling": {"temperature": 0.5}})).id


def test_points_that_are_the_same_run_are_one_cell(plan: Callable[..., Plan]) -> None:
    blocks = [{"models": MIXED, "num_agents": [2, 4]}, {"models": [[GOOD, BAD]], "num_agents": [4, 2, 3]}]
    made = plan(grids=blocks, controls=False)
    assert made.forecast.merged == 2
    assert sorted(cell.coordinates["num_agents"] for cell in made.cells) == [2, 3, 4]
    assert {cell.coordinates["models"] for cell in made.cells} == {"mixed"}


def test_a_setting_is_left_out_for_methods_that_do_not_have_it(plan: Callable[..., Plan]) -> None:
    grid = {"models": MIXED, "method": ["vote", "debate"], "debate_rounds": [1, 2], "topology": ["sparse"]}
    made = plan(grid={**grid, "num_agents": [3]}, controls=False)
    assert [cell.coordinates["method"] for cell in made.cells].count("vote") == 1
    debates = [cell for cell in made.cells if cell.coordinates["method"] == "debate"]
    assert sorted(cell.coordinates["debate_rounds"] for cell in debates) == [1, 2]
    assert all(cell.prepared.table.settings.topology == "sparse" for cell in debates)
    assert "debate_rounds" not in next(c for c in made.cells if c.coordinates["method"] == "vote").coordinates


def test_a_block_has_a_base_of_its_own_and_the_personas_of_the_base_end_where_there_are_none(
    plan: Callable[..., Plan],
) -> None:
    blocks = [{"persona": ["none", "multi"]}, {"base": {"max_tokens": 99}, "persona": ["multi"]}]
    made = plan(base={"models": [GOOD], "personas": "mathematics", "num_agents": 2}, grids=blocks)
    personas = {cell.coordinates["persona"]: [s.persona for s in cell.prepared.table.seats] for cell in made.cells}
    assert personas["none"] == [None, None]
    assert None not in personas["multi"]
    assert sorted(cell.prepared.table.seats[0].sampling.max_tokens for cell in made.cells) == [99, 4096, 4096]


def test_controls_have_as_many_draws_as_the_largest_council_has_calls(plan: Callable[..., Plan]) -> None:
    grid = {"models": MIXED, "num_agents": [2, 4], "method": ["debate"], "debate_rounds": [2], "seed": [0, 1]}
    made = plan(grid=grid)
    controls = [cell.coordinates for cell in made.cells if cell.control]
    assert [(c["num_agents"], c["method"]) for c in controls] == [(12, "vote")] * 4
    assert sorted(c["seed"] for c in controls) == [0, 0, 1, 1]
    capped = plan(grid=grid, control_draws=5)
    assert {cell.coordinates["num_agents"] for cell in capped.cells if cell.control} == {5}
    assert not any(cell.control for cell in plan(grid=grid, controls=False).cells)


def test_a_calibration_belongs_to_its_council_and_not_to_the_controls(
    plan: Callable[..., Plan], tmp_path: Path
) -> None:
    seats = [
        {"model": f"scripted/keyed[accuracy={right}]", "accuracy": right, "weight": weight, "answered": 50}
        for right, weight in ((0.9, 2.0), (0.5, 1.0))
    ]
    known = {"format": CALIBRATION, "version": 1, "task": "jsonl", "runs": ["v (run 1)"], "method": "vote",
             "settings": {}, "seats": seats, "labels": True, "options": 2.0, "rule": "weighted", "n": 50}  # fmt: skip
    file = tmp_path / "council.json"
    file.write_text(json.dumps(known), "utf-8")
    made = plan(base={"calibration": str(file)}, grid={"models": MIXED, "num_agents": [2]})
    assert [cell.prepared.config.calibration is None for cell in made.cells if not cell.control] == [False]
    alone = [cell.prepared.config for cell in made.cells if cell.control]
    assert alone and all(config.calibration is None for config in alone)


def test_a_control_that_a_grid_names_is_not_there_twice(plan: Callable[..., Plan]) -> None:
    made = plan(grid={"models": {"mixed": [GOOD, BAD], "good": [GOOD], "bad": [BAD]}, "num_agents": [2, 4]})
    assert (made.forecast.cells, made.forecast.controls) == (6, 0)


def test_flags_win_in_every_cell_and_another_task_leaves_the_files_behind() -> None:
    file = make_sweep({"name": "s", "base": {"task": "gsm8k", "data": "no.jsonl"}, "grid": {"models": [[GOOD]]}})
    made = make_plan(file, over={"task": "sums", "limit": 3})
    assert [(cell.prepared.task.task, len(cell.prepared.attempts)) for cell in made.cells] == [("sums", 3)]


@pytest.mark.parametrize(
    ("entries", "complaint"),
    [
        ({"grid": {"num_agent": [2]}}, "unknown entry 'num_agent'; did you mean 'num_agents'?"),
        ({"grid": {"num_agents": 2}}, "axis num_agents is 2; expected a list of values, such as [2]"),
        ({"grid": {"num_agents": []}}, "axis num_agents is []"),
        ({"grid": {"num_agents": [0]}}, "num_agents is 0"),
        ({"grid": {"persona": ["many"]}}, "persona is 'many'; expected one of: none, multi, baseline_a, baseline_b"),
        ({"grid": {"persona": [None]}}, "persona is None"),
        ({"grid": {"models": [["local/a/student"], ["local/b/student"]]}}, "two sets that read local/student"),
        ({"grid": {"models": ["zoo/qwen"]}}, "expected a mapping of names to lists of models, or a list of lists"),
        ({"grid": {"models": {"mixed": []}}}, "expected a mapping of names"),
        (
            {"grid": {"method": ["vote"], "debate_rounds": [2]}},
            "debate_rounds is a setting of none of its methods: vote",
        ),
        ({"grid": {"method": ["vot"]}}, "did you mean 'vote'?"),
        ({"grid": {"budget": [{}]}}, "the budget bounds the whole sweep"),
        ({"grid": {"temperature": [9]}}, "sampling.temperature is 9"),
        ({"grid": {"settings.debate_round": [2], "method": ["debate"]}}, "debate_round"),
        ({"grids": [{"base": 3}]}, "base is 3"),
        ({"grids": [{"base": {"sedd": 1}}]}, "grids[0].base: unknown entry 'sedd'; did you mean 'seed'?"),
        ({"base": {"sampling": {"temprature": 1}}, "grid": {"seed": [0]}}, "temprature"),
        ({"grid": {}, "grids": [{}]}, "either 'grid', a mapping of axes, or 'grids'"),
        ({}, "either 'grid', a mapping of axes, or 'grids'"),
        ({"grid": {"seed": [0]}, "gird": {}}, "unknown key 'gird'; did you mean 'grid'?"),
        ({"grid": {"seed": [0]}, "budget": {"call": 3}}, "unknown key 'budget.call'; did you mean 'calls'?"),
        ({"grid": {"seed": [0]}, "name": "a b"}, "name is 'a b'"),
        ({"grid": {"task": [{"name": "sums"}]}}, "unknown entry of a task 'name'"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_in_one_line(entries: dict[str, Any], complaint: str) -> None:
    base = {"task": "sums", "limit": 2, "models": [GOOD]}
    with pytest.raises(PluribusError) as caught:
        make_plan(make_sweep({"name": "s", "base": base, **entries}))
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


# --- forecast, order, and what is asked ------------------------------------------------------------------------------


async def test_the_forecast_is_what_is_sent_where_it_can_be_known(plan: Callable[..., Plan]) -> None:
    made = plan(grid={"models": MIXED, "num_agents": [2, 4, 6], "persona": ["none", "multi", "baseline_b"]})
    told = made.forecast
    assert told.most_calls == 12 * (3 * (2 + 4 + 6) + 2 * 6)
    outcomes = await go(made)
    assert sum(outcome.sent for outcome in outcomes) == told.shared_calls
    assert told.shared_calls < told.most_calls
    with Store.open() as store:
        assert store.count_calls() == told.shared_calls


def test_cells_that_share_calls_stand_together_the_largest_first(plan: Callable[..., Plan]) -> None:
    made = plan(grid={"models": MIXED, "num_agents": [2, 4, 6], "seed": [0, 1]}, controls=False)
    assert [(c.coordinates["seed"], c.coordinates["num_agents"]) for c in made.cells] == [
        (0, 6), (0, 4), (0, 2), (1, 6), (1, 4), (1, 2),
    ]  # fmt: skip


def test_another_rule_on_the_same_attempts_is_forecast_to_cost_nothing(plan: Callable[..., Plan]) -> None:
    made = plan(grid={"models": MIXED, "num_agents": [3], "tie": ["first", "abstain"]}, controls=False)
    assert (made.forecast.most_calls, made.forecast.shared_calls) == (72, 36)


async def test_a_sweep_asks_nothing_twice_whatever_the_number_of_jobs(plan: Callable[..., Plan]) -> None:
    grid = {"models": MIXED, "num_agents": [2, 4], "method": ["vote", "debate"], "debate_rounds": [1, 2]}
    made = plan(grid=grid)
    outcomes = await go(made, jobs=4)
    with Store.open() as store:
        calls = store.count_calls()
    assert sum(outcome.sent for outcome in outcomes) == calls
    again = await go(made)
    assert [(outcome.sent, outcome.score) for outcome in again] == [
        (0, outcome.score) for outcome in sorted(outcomes, key=lambda outcome: outcome.cell)
    ]


async def test_a_cell_gives_what_the_same_run_alone_gives(plan: Callable[..., Plan], tmp_path: Path) -> None:
    made = plan(grid={"models": MIXED, "num_agents": [3], "method": ["debate"], "debate_rounds": [1]})
    outcomes = {outcome.cell: outcome for outcome in await go(made, jobs=3)}
    for place, cell in enumerate(made.cells):
        with Store.open(tmp_path / "alone") as store:
            alone = await execute(cell.prepared, store)
        assert alone.score == outcomes[place].score


async def test_an_unreachable_model_fails_its_cells_and_the_others_go_on(plan: Callable[..., Plan]) -> None:
    made = plan(grid={"models": {"broken": [BROKEN], "good": [GOOD], "both": [GOOD, BROKEN]}, "num_agents": [2]})
    outcomes = {made.cells[o.cell].coordinates["models"]: o for o in await go(made)}
    assert {name: o.status for name, o in outcomes.items()} == {
        "broken": "failed", "good": "finished", "both": "finished",
    }  # fmt: skip
    assert "no question was answered" in (outcomes["broken"].reason or "")
    assert outcomes["both"].degraded == 12
    with Store.open() as store:
        cells = {cell.coordinates["models"]: cell for cell in stored(store, "try").cells}
    assert {name: cell.status for name, cell in cells.items()} == {n: o.status for n, o in outcomes.items()}
    assert cells["broken"].reason == outcomes["broken"].reason


async def test_the_budget_bounds_the_whole_sweep_and_a_larger_one_goes_on(plan: Callable[..., Plan]) -> None:
    grid = {"models": MIXED, "num_agents": [2, 4]}
    outcomes = await go(plan(grid=grid, budget={"calls": 60}))
    assert sum(outcome.sent for outcome in outcomes) <= 60
    assert outcomes[-1].status == "stopped"
    with Store.open() as store:
        statuses = {cell.status for cell in stored(store, "try").cells}
    assert statuses == {"finished", "stopped", "planned"}
    whole = plan(grid=grid)
    more = await go(whole)
    assert sum(o.sent for o in (*outcomes, *more)) == whole.forecast.shared_calls


def test_a_share_of_a_budget(plan: Callable[..., Plan]) -> None:
    whole = BudgetConfig(calls=11, tokens=100, usd=1.0, seconds=60)
    assert limited(whole, 2) == BudgetConfig(calls=5, tokens=50, usd=0.5, seconds=60)


async def test_what_can_not_work_is_found_before_anything_is_asked(plan: Callable[..., Plan]) -> None:
    priceless = plan(grid={"models": {"good": [GOOD], "far": ["vllm/m@http://127.0.0.1:9/v1"]}}, budget={"usd": 1.0})
    keyless = plan(grid={"models": {"good": [GOOD], "far": ["openai/gpt-4o"]}})
    assert keyless.forecast.most_cost_usd > 0
    for made, words in ((priceless, "no known price"), (keyless, "OPENAI_API_KEY")):
        with Store.open() as store:
            with pytest.raises(PluribusError, match=words):
                await check(made, store)
            assert store.count_calls() == 0


# --- several processes -----------------------------------------------------------------------------------------------


def test_rivals_are_the_cells_that_may_ask_the_same(plan: Callable[..., Plan]) -> None:
    """Against the truth: the calls that two cells really made, in workspaces of their own."""
    grid = {"models": MIXED, "num_agents": [2, 3], "method": ["vote", "debate", "mad", "self_consistency"]}
    made = plan(grid={**grid, "debate_rounds": [1, 2], "topology": ["decentralized", "sparse", "centralized"]})
    asked = [_asked(cell.prepared) for cell in made.cells]
    firsts = [call for cell in made.cells for call in cell.firsts]
    shared = 0
    for a, b in combinations(range(len(made.cells)), 2):
        if asked[a] & asked[b]:
            shared += 1
            assert rivals(made.cells[a], made.cells[b]), (made.cells[a].label, made.cells[b].label)
    assert shared > 20
    votes = [cell for cell in made.cells if cell.coordinates["method"] == "vote" and not cell.control]
    assert rivals(votes[0], votes[1]) and not rivals(votes[0], votes[1], set(firsts))


def _asked(prepared: Any) -> set[str]:
    """The keys of all calls that a run makes."""
    with Store.open(Path(prepared.config.data).parent / prepared.id) as store:
        asyncio.run(execute(prepared, store))
        return {key for (key,) in store._rows("SELECT key FROM calls")}


@pytest.mark.parametrize("words", ["", "a", "0,,1", "0,0", "-1"])
def test_devices_that_are_none(words: str) -> None:
    with pytest.raises(ConfigError, match="--gpus is"):
        gpus(words)


def test_devices_by_number_and_by_name() -> None:
    assert gpus("0, 1") == ["0", "1"]
    assert gpus("cpu") == ["cpu"]
    assert gpus("GPU-8f2a-11,MIG-7c0d") == ["GPU-8f2a-11", "MIG-7c0d"]


# --- what is stored --------------------------------------------------------------------------------------------------


async def test_a_sweep_reads_back_with_its_cells(plan: Callable[..., Plan]) -> None:
    made = plan(grid={"models": MIXED, "num_agents": [2, 4]})
    await go(made)
    with Store.open() as store:
        found = stored(store, made.id[:6])
        assert found == stored(store, "try")
        runs = {run.id for run in store.runs()}
        with pytest.raises(UnknownName, match="unknown sweep"):
            stored(store, "nothing")
    assert (found.id, found.name) == (made.id, "try")
    assert [(c.label, c.coordinates, c.run, c.control) for c in found.cells] == [
        (c.label, c.coordinates, c.prepared.id, c.control) for c in made.cells
    ]
    assert {cell.status for cell in found.cells} == {"finished"}
    assert {cell.run for cell in found.cells} == runs


# --- recipes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["add", "add_nopersona", "ablation", "zoo_sweep"])
def test_a_recipe_can_be_planned_without_server_or_hub(name: str) -> None:
    made = make_plan(read_sweep(RECIPES / f"{name}.yaml"), over={"task": "sums", "limit": 2})
    counts = {cell.coordinates["num_agents"] for cell in made.cells if not cell.control}
    assert {2, 4, 8, 12, 16} <= counts
    assert {"vote", "debate"} <= {cell.coordinates["method"] for cell in made.cells}
    assert len({cell.label for cell in made.cells}) == len(made.cells)


def test_the_recipes_are_the_seeds_of_their_comparisons() -> None:
    def personas(name: str) -> set[str]:
        made = make_plan(read_sweep(RECIPES / f"{name}.yaml"), over={"task": "sums", "limit": 1})
        return {cell.coordinates["persona"] for cell in made.cells if not cell.control}

    assert personas("add") == {"multi"}
    assert personas("add_nopersona") == {"none"}
    assert {"none", "multi"} <= personas("ablation")
    assert personas("zoo_sweep") == {"none", "multi", "baseline_a", "baseline_b"}
