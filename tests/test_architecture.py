"""Who may import whom: rows of the house, lower ones never import higher ones; imports inside functions count."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "pluribus"

ARITHMETIC = {"stats", "answers", "consensus", "diversity", "objectives", "metrics"}
MAY_IMPORT: dict[str, set[str]] = {
    "types": set(),
    "errors": {"types"},
    "codec": {"types", "errors"},
    "load": {"errors"},
    "stats": {"errors"},
    "rows": {"types", "errors"},
    "steps": {"types", "errors"},
    "contamination": {"types", "errors", "stats"},
    "answers": {"types", "errors", "load"},
    "consensus": {"types", "errors", "stats"},
    "diversity": {"types", "errors", "stats"},
    "objectives": {"types", "errors"},
    "metrics": {"types", "errors", "answers", "objectives", "stats"},
    "config": {"types", "errors"},
    "tasks": {"types", "errors", "answers", "load", "codec", "steps"},
    "store": {"types", "errors", "codec"},
    "prompts": {"types", "errors"},
    "personas": {"types", "errors"},
    "zoo": {"types", "errors", "codec", "answers", "tasks", "prompts", "personas", "stats", "consensus"},
    "backends": {"types", "errors", "load", "steps", "zoo"},
    "embedders": {"types", "errors", "load", "backends"},
    "traffic": {"types", "errors", "codec", "backends"},
    "quorum": {"types", "errors"},
    "fake_server": {"types", "errors", "backends"},
    "agents": {"types", "errors", "backends", "prompts", "personas"},
    "replies": {"types", "errors", "backends", "prompts", "personas", "agents"},
    "sandbox": {"types", "errors", "backends"},
    "judges": {"types", "errors", "agents", "replies", "answers", "prompts", "steps"},
    "methods": {"types", "errors", "agents", "replies", "judges", "consensus", "answers", "sandbox", "prompts"}
    | {"quorum"},
    "solve": {"types", "errors", "codec", "agents", "load", "prompts"},
    "method_config": {"types", "errors", "config", "load", "solve"},
    "decide": {"types", "errors", "answers", "consensus"},
    "label": {"types", "errors", "answers", "consensus", "judges", "sandbox", "steps", "agents", "replies"},
    "step_labels": {"types", "errors", "answers", "label", "judges", "agents", "replies", "steps"},
    "judge_config": {"types", "errors", "config", "consensus"},
    "verdicts": {"types", "errors"},
    "reward": {"types", "errors", "codec", "load", "agents", "consensus", "judges"},
    "prefer": {"types", "errors", "rows", "codec", "stats", "prompts", "consensus", "reward", "verdicts"},
    "distil": {"types", "errors", "rows", "load", "codec", "answers", "steps", "contamination", "consensus"}
    | {"diversity", "stats", "prompts", "label", "reward", "prefer", "verdicts"},
    "training": {"types", "errors", "load", "codec", "config", "steps", "contamination", "stats", "answers", "metrics"}
    | {"objectives", "diversity", "embedders", "distil", "backends", "zoo", "rows", "prefer", "label", "sandbox"},
    "evaluate": {"types", "errors", "answers", "solve", "decide", "label", "stats", "metrics", "diversity"},
    "panel": {"types", "errors", "answers", "decide", "evaluate"},
    "logs": {"types", "errors", "answers", "load", "panel", "evaluate", "consensus"},
    "analyze": {"types", "errors", "stats", "consensus", "diversity", "panel"},
    "compare": {"types", "errors", "stats", "consensus", "diversity", "panel"},
    "calibrate": {"types", "errors", "codec", "config", "stats", "consensus", "metrics", "decide", "panel"},
    "scaling": {"types", "errors", "stats", "panel", "compare"},
    "tables": {"errors", "store"},
    "engines": {"types", "errors"},
}  # fmt: skip
DOORS = {
    "__main__",
    "evaluating",
    "run",
    "judging",
    "distilling",
    "prompt_rows",
    "council",
    "controls",
    "sweep",
    "recommend",
    "reports",
    "review",
    "server",
    "cli",
    "toolkit",
}
HEAVY = {"torch", "transformers", "openai", "pandas", "pyarrow", "peft", "bitsandbytes", "datasets", "trl", "aiohttp"}
TORCH_AREAS = {"backends", "embedders", "training", "zoo"}
MEMBER_AREAS = ("answers", "backends", "distil", "embedders", "judges", "logs", "methods", "tasks")


def _files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def _area(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return parts[0] if parts != ("__init__",) else "pluribus"


def _imports(path: Path) -> set[str]:
    """Full names of all modules a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module == "pluribus":
                found |= {f"pluribus.{alias.name}" for alias in node.names}
    return found


def _areas_imported(path: Path) -> set[str]:
    own = {name.split(".")[1] for name in _imports(path) if name.startswith("pluribus.")}
    return own - {_area(path)}


@pytest.mark.parametrize("path", _files(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_an_area_imports_only_rows_below_it(path: Path) -> None:
    area = _area(path)
    if area == "pluribus" or area in DOORS:
        return
    assert area in MAY_IMPORT, f"new area {area!r}: give it a row"
    assert _areas_imported(path) <= MAY_IMPORT[area]


def test_doors_do_not_import_cli_or_server() -> None:
    for path in _files():
        if _area(path) not in {"cli", "server", "__main__"}:
            assert not _areas_imported(path) & {"cli", "server"}, path


@pytest.mark.parametrize("area", MEMBER_AREAS)
def test_members_of_a_folder_do_not_import_each_other(area: str) -> None:
    members = {p.stem for p in (SOURCE / area).glob("[a-z]*.py")}
    for path in (SOURCE / area).glob("[a-z]*.py"):
        neighbours = {name.split(".")[2] for name in _imports(path) if name.startswith(f"pluribus.{area}.")}
        assert not neighbours & members, path


def test_heavy_packages_are_imported_where_they_belong() -> None:
    for path in _files():
        roots = {name.split(".")[0] for name in _imports(path)}
        if roots & {"torch", "transformers", "peft", "bitsandbytes"}:
            assert _area(path) in TORCH_AREAS, path


def test_no_branch_on_the_zoo_or_on_sums_outside_their_places() -> None:
    """The zoo adapts to the product, never the other way round."""
    for path in _files():
        if _area(path) in {"zoo", "tasks", "prompts", "cli"}:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Compare):
                constants = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant)]
                assert not {"zoo", "sums"} & {c for c in constants if isinstance(c, str)}, f"{path}:{node.lineno}"


def test_import_pluribus_loads_nothing_heavy() -> None:
    code = "import sys, pluribus; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    assert not loaded & (HEAVY | {"numpy"})


def test_each_record_is_frozen() -> None:
    from dataclasses import fields, is_dataclass

    import pluribus.types as types

    records = [value for value in vars(types).values() if isinstance(value, type) and is_dataclass(value)]
    assert len(records) > 12
    for record in records:
        assert record.__dataclass_params__.frozen, record  # type: ignore[attr-defined]
        assert fields(record)
