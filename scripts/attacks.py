"""The attack checklist (tests/attacks/checklist.toml): which rows are held by tests and which still wait for a part of
the program. `--list` prints every row, `--json` the counts alone."""

import argparse
import functools
import json
import re
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "codewhale"
_TEST = re.compile(r"def (test_((?:[a-h]\d+_)+)\w+)")


@functools.cache
def _checklist() -> dict[str, Any]:
    return tomllib.loads((ROOT / "tests" / "attacks" / "checklist.toml").read_text())


def rows() -> dict[str, dict[str, str]]:
    """Every row by its id."""
    return {id: row for id, row in _checklist().items() if id != "subsystems"}


def subsystems() -> dict[str, list[str]]:
    """Parts of the program that rows wait for, each with the facts that tell it is there."""
    found: dict[str, list[str]] = _checklist()["subsystems"]
    return found


def registered(part: str, facts: dict[str, list[str]] | None = None) -> bool:
    """Whether a part of the program is there."""
    tools = {row["name"] for row in json.loads((SOURCE / "catalog" / "specs.json").read_bytes())}
    for fact in (facts or subsystems())[part]:
        kind, _, value = fact.partition(":")
        if value in tools if kind == "tool" else any(path.suffix != ".pyc" for path in SOURCE.glob(value)):
            return True
    return False


@functools.cache
def _tests() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name, ids in _TEST.findall(path.read_text()):
            for id in ids.strip("_").split("_"):
                found.setdefault(id.upper(), []).append(f"{path.relative_to(ROOT)}::{name}")
    return found


def held_by(id: str) -> list[str]:
    """The tests named after a row."""
    return _tests().get(id, [])


def main() -> int:
    """0 when every row is held or waits for something that is not there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="every row")
    parser.add_argument("--json", action="store_true", help="the counts as one JSON object")
    asked = parser.parse_args()
    waits = Counter(row["pending"] for row in rows().values() if "pending" in row)
    wrong = [id for id, row in rows().items() if not held_by(id) and "pending" not in row]
    wrong += [id for id, row in rows().items() if registered_for(row)]
    if asked.list:
        for id, row in rows().items():
            print(f"{id:<4}{row.get('pending') or f'{len(held_by(id))} tests':<15}{row['says']}")
    counts = {"rows": len(rows()), "held": len(rows()) - waits.total(), "pending": dict(waits), "wrong": wrong}
    if asked.json:
        print(json.dumps(counts))
    else:
        parts = ", ".join(f"{count} {part}" for part, count in waits.most_common())
        print(f"attacks: {counts['held']} of {len(rows())} rows held, {waits.total()} pending ({parts})")
        if wrong:
            print(f"neither held nor rightly pending: {', '.join(wrong)}")
    return 1 if wrong else 0


def registered_for(row: dict[str, str]) -> bool:
    """Whether the part that a row waits for is there."""
    part = row.get("pending") or row.get("grows")
    return part is not None and registered(part)


if __name__ == "__main__":
    sys.exit(main())
