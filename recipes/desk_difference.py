"""What changed between desks that read the same briefs: accuracy and the winner's share of the votes, paired by brief.

    python recipes/desk_difference.py BEFORE AFTER [AFTER …]

Each is a folder that recipes/market_desk.py wrote. A brief with a failed call at one of two desks is left out of both.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from pluribus.stats import Estimate, mcnemar, paired_bootstrap, paired_difference
from pluribus.tasks import load_task


def decisions(folder: Path) -> dict[str, dict[str, object]]:
    """By brief, those that every analyst answered."""
    lines = (folder / "decisions.jsonl").read_text("utf-8").splitlines()
    return {one["question_id"]: one for one in map(json.loads, lines) if not one["failures"]}


def shown(found: Estimate) -> str:
    return f"{found.value:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path, nargs="+")
    given = parser.parse_args()
    for folder in (given.before, *given.after):
        if not (folder / "decisions.jsonl").is_file():
            parser.error(f"{folder} holds no decisions.jsonl; name a folder that recipes/market_desk.py wrote")
    before = decisions(given.before)
    keys = {q.id: key.answer for q, key in load_task("briefs", "test").pairs if q.id in before and key is not None}
    for folder in given.after:
        after = decisions(folder)
        both = [one for one in before if one in after]
        first, then = ([float(said[one]["decision"] == keys[one]) for one in both] for said in (before, after))
        change, test = paired_difference(then, first), mcnemar(then, first)
        share = paired_bootstrap(*([float(str(said[one]["share"])) for one in both] for said in (after, before)))
        print(f"{folder.name} against {given.before.name}, {len(both)} briefs")
        print(f"  accuracy {sum(then) / len(both):.3f} against {sum(first) / len(both):.3f}: {shown(change)}")
        print(f"  only one of them right: {test.only_first} and {test.only_second}, McNemar p = {test.p:.2g}")
        print(f"  winner's share of the votes: {shown(share)}")


if __name__ == "__main__":
    main()
