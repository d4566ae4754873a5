"""Calls to be spoiled, and the count of what became of them: recovered, refused, or run as something else."""

import json
import math
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field

from codewhale.catalog.registry import Catalog
from codewhale.catalog.schema import check
from codewhale.cli.offline.check import Checker
from support.mutator import Damaged, damage

CALLS = Path(__file__).resolve().parent.parent / "repair" / "calls.json"


class Good(NamedTuple):
    """A call before it is spoiled: what it is called, what it must come back as, and its tool."""

    tool: str
    arguments: dict[str, Any]
    schema: dict[str, Any]
    reads: bool


class Row(NamedTuple):
    """A spoiled call and the call it was."""

    good: Good
    damaged: Damaged


def own_calls() -> list[Good]:
    """Three calls of every registered tool."""
    told = json.loads(CALLS.read_text("utf-8"))
    return [
        Good(name, arguments, spec.parameters, [effect.value for effect in spec.effects] == ["reads"])
        for name, spec in Catalog.load().rows.items()
        for arguments in told[name]
    ]


def spoiled_rows(calls: list[Good], seed: str, most: int = 0) -> Iterator[Row]:
    """Every call spoiled in every way; of each call at most `most` ways, chosen by the seed, when that is not 0."""
    for number, good in enumerate(calls):
        ways = list(damage(good.arguments, good.schema, f"{seed}:{good.tool}:{number}"))
        if most and len(ways) > most:
            ways = random.Random(f"{seed}:{number}").sample(ways, most)
        yield from (Row(good, way) for way in ways)


class Tally(Struct):
    """What became of spoiled calls. `by` counts (operator, outcome)."""

    rows: int = 0
    exact_rows: int = 0
    recovered: int = 0
    reading_rows: int = 0
    wrong_reads: int = 0
    wrong_others: int = 0
    cut_and_run: int = 0
    bad_fixes: int = 0
    by: Counter[tuple[str, str]] = field(default_factory=Counter)
    worst: list[str] = []

    def add(self, row: Row, told: dict[str, Any], catalog: Catalog) -> None:
        """Count one answer of `tools check`."""
        good, damaged = row
        ran = told["outcome"] == "run"
        right = ran and told["name"] == good.tool and same(told["arguments"], damaged.meant)
        wrong = ran and (not right or damaged.label == "refuse")
        self.rows += 1
        self.reading_rows += good.reads
        self.exact_rows += damaged.label == "exact"
        self.recovered += damaged.label == "exact" and right
        self.wrong_reads += wrong and good.reads
        self.wrong_others += wrong and not good.reads
        self.cut_and_run += ran and damaged.operator.endswith("P13")
        bad_fix = not ran and not _valid_fix(told["error"], catalog)
        self.bad_fixes += bad_fix
        outcome = "wrong" if wrong else "recovered" if right else "refused"
        self.by[damaged.operator, outcome] += 1
        if wrong or bad_fix or (damaged.label == "exact" and not right):
            said = told["arguments"] if ran else told["error"]
            self.worst.append(f"{outcome} {damaged.label} {damaged.operator} {good.tool}: {damaged.raw} -> {said}")

    def lines(self) -> Iterator[str]:
        """The figures, a line each."""
        others = self.rows - self.reading_rows
        yield f"rows                     {self.rows}"
        yield f"recovered exactly        {share(self.recovered, self.exact_rows)}"
        yield f"wrong, tools that change {share(self.wrong_others, others)}"
        yield f"wrong, tools that read   {share(self.wrong_reads, self.reading_rows)}"
        yield f"cut off and run          {self.cut_and_run}"
        yield f"fixes that do not fit    {self.bad_fixes}"

    def good_enough(self) -> bool:
        """Whether every bound holds."""
        return (
            self.recovered >= 0.97 * self.exact_rows
            and self.wrong_others == 0
            and self.wrong_reads <= 0.005 * self.reading_rows
            and self.cut_and_run == 0
            and self.bad_fixes == 0
        )


def run_rows(rows: Iterator[Row], checker: Checker, catalog: Catalog) -> Tally:
    """Each row judged without running it."""
    tally = Tally()
    for row in rows:
        line = json.dumps({"id": 1, "name": row.good.tool, "arguments": row.damaged.raw}).encode()
        tally.add(row, checker.line(line), catalog)
    return tally


def same(one: Any, two: Any) -> bool:
    """Whether two values are one in JSON: 5 and 5.0 are, 1 and true are not."""
    return _kept(one) == _kept(two)


def _kept(value: Any) -> Any:
    if isinstance(value, bool):
        return ("truth", value)
    if isinstance(value, dict):
        return {key: _kept(item) for key, item in value.items()}
    return [_kept(item) for item in value] if isinstance(value, list) else value


def _valid_fix(error: dict[str, Any], catalog: Catalog) -> bool:
    fix = error["fix"]
    if fix is None:
        return True
    return fix["name"] in catalog.rows and not check(fix["arguments"], catalog.rows[fix["name"]].parameters)


def share(part: int, whole: int) -> str:
    """`part/whole = per cent [interval]`, the interval Wilson's at 95 %."""
    low, high = wilson(part, whole)
    percent = 100 * part / whole if whole else 0.0
    return f"{part}/{whole} = {percent:.2f} % [{100 * low:.2f}, {100 * high:.2f}]"


def wilson(part: int, whole: int, z: float = 1.96) -> tuple[float, float]:
    """The interval for a share (Wilson 1927)."""
    if whole == 0:
        return 0.0, 1.0
    share = part / whole
    middle = share + z * z / (2 * whole)
    spread = z * math.sqrt(share * (1 - share) / whole + z * z / (4 * whole * whole))
    scale = 1 + z * z / whole
    return max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale)
