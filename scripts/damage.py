"""How spoiled calls come back: every tool's calls and, where its files are, a leaderboard's, damaged in every known way
and judged without running; with the time of hostile payloads and of calls that are right as they came. Exit 1 when a
bound is broken."""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from codewhale.catalog.registry import Catalog
from codewhale.catalog.schema import check, right_already
from codewhale.cli.offline.check import Checker
from codewhale.repair.judge import judge
from support.damaged import Good, Row, Tally, own_calls, run_rows, spoiled_rows
from support.suites import suites

ROOT = Path(__file__).resolve().parent.parent
LARGE = 1 << 20
HOSTILE_MS = 50.0
STRICT_US = 50.0
WAYS = 24


# ---------------------------------------------------------------------- the leaderboard's calls


def leaderboard(folder: Path) -> tuple[list[dict[str, Any]], list[Good]]:
    """Its functions, one of each name, and the accepted calls of them."""
    functions: dict[str, dict[str, Any]] = {}
    accepted: list[tuple[str, dict[str, Any]]] = []
    for file in sorted(folder.glob("BFCL_*.json")):
        answers = {row["id"]: row["ground_truth"] for row in _lines(folder / "possible_answer" / file.name)}
        for question in _lines(file):
            for function in question["function"]:
                functions.setdefault(function["name"], function)
            for call in answers[question["id"]]:
                accepted += [(name, _first(arguments)) for name, arguments in call.items()]
    catalog = Checker(json.dumps(list(functions.values())).encode()).catalog
    goods = [
        Good(name, arguments, catalog.rows[name].parameters, False)
        for name, arguments in accepted
        if name in catalog.rows and not check(arguments, catalog.rows[name].parameters)
    ]
    return list(functions.values()), goods


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    return (json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip())


def _first(options: dict[str, Any]) -> dict[str, Any]:
    """Arguments from lists of accepted values; "" says that one may be left out."""
    return {key: _value(values[0]) for key, values in options.items() if values and values[0] != ""}


def _value(value: Any) -> Any:
    if isinstance(value, dict) and all(isinstance(item, list) for item in value.values()):
        return _first(value)
    return [_value(item) for item in value] if isinstance(value, list) else value


def through_the_door(rows: list[Row], functions: list[dict[str, Any]], catalog: Catalog) -> Tally:
    """The rows through `codewhale tools check --schemas`."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "functions.json")
        file.write_text(json.dumps(functions))
        lines = [json.dumps({"id": 0, "name": row.good.tool, "arguments": row.damaged.raw}) for row in rows]
        done = subprocess.run(
            [sys.executable, "-m", "codewhale", "tools", "check", "--schemas", str(file)],
            input="\n".join(lines).encode() + b"\n",
            stdout=subprocess.PIPE,
            check=True,
            env={**os.environ, "CODEWHALE_HOME": folder},
        )
    for row, line in zip(rows, done.stdout.decode().splitlines(), strict=True):
        tally.add(row, json.loads(line), catalog)
    return tally


# ---------------------------------------------------------------------- time


def hostile() -> Iterator[tuple[str, str]]:
    """A mebibyte of each kind of trouble."""
    chance = random.Random(5)
    bits = ["{", "}", "[", "]", '"', "'", "\\", ",", ":", "//", "/*", "```", "“", "a", "1", "\n", " ", "\\u00", "true"]
    yield "random tokens", "".join(chance.choice(bits) for _ in range(LARGE))[:LARGE]
    yield "random bytes", bytes(chance.randrange(256) for _ in range(LARGE)).decode("latin-1")
    for unit in (
        "{",
        "[",
        '"',
        '{"a":',
        "'",
        "/*",
        "//\n",
        " ",
        "\\",
        '{"a":"',
        "{}",
        '",',
        "```",
        "“",
        '"}',
        '{"a" "',
    ):
        yield f"all {unit!r}", (unit * LARGE)[:LARGE]
        yield f"an object of {unit!r}", '{"path": ' + (unit * LARGE)[: LARGE - 9]
    yield "a string of quotes", '{"content": "' + 'say "it" ' * (LARGE // 10) + '"}'
    yield "a string of bad escapes", '{"content": "' + "\\d" * (LARGE // 2 - 10) + '"}'
    yield "text", "x" * LARGE
    yield "members", _filled("{", '"k%d":%d,', '"k":1}')
    yield "members and a comma", _filled("{", '"k%d":%d,', "}")
    yield "bare members", _filled("{", "k%d:%d,", "}")
    yield "members in single quotes", _filled("{", "'k%d':%d,", "'k':1}")
    yield "a list of numbers", _filled('{"path":[', "%d,", "1]}")
    yield "a list of objects", _filled('{"path":[', '{"a":%d},', "1]}")
    yield "the same object over and over", _filled("[", '{"path":"a"},', '{"path":"a"}]')
    yield "the same member over and over", _filled("{", '"path":"a",', '"path":"a"}')


def _filled(begin: str, member: str, end: str) -> str:
    """As many members as fit between a beginning and an end, numbered where they hold places for it."""
    size, members = LARGE - len(begin) - len(end), list[str]()
    while size > 0:
        members.append(member % ((len(members),) * member.count("%d")))
        size -= len(members[-1])
    return begin + "".join(members[:-1]) + end


def slowest() -> tuple[float, str]:
    """Milliseconds that judging the slowest kind takes, and which it is."""
    worst, catalog = (0.0, ""), Catalog.load()
    for name, text in hostile():
        assert len(text) <= LARGE, name
        best = min(_milliseconds(text, catalog) for _ in range(2))
        worst = max(worst, (best, name))
    return worst


def _milliseconds(text: str, catalog: Catalog) -> float:
    begun = time.thread_time()
    judge("edit_file", text, catalog)
    return (time.thread_time() - begun) * 1000


def strict_microseconds(calls: list[Good]) -> tuple[float, float]:
    """Median and 99th percentile of judging a call that is right as it came, without the time of other programs."""
    catalog = Catalog.load()
    taken = []
    for _ in range(200):
        for good in calls:
            raw, spec = json.dumps(good.arguments), catalog.rows[good.tool]
            begun = time.thread_time_ns()
            right_already(raw, spec)
            taken.append((time.thread_time_ns() - begun) / 1000)
    cuts = statistics.quantiles(taken, n=100)
    return cuts[49], cuts[98]


# ---------------------------------------------------------------------- the account


def _show(title: str, tally: Tally, detail: int) -> bool:
    print(title)
    for line in tally.lines():
        print("  " + line)
    for line in tally.worst[:detail]:
        print("    " + line[:600])
    return tally.good_enough()


def main() -> int:
    """Print the account; 1 when a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--show", type=int, default=0, help="print this many of the worst rows")
    options = parser.parse_args()
    catalog, calls = Catalog.load(), own_calls()
    held = [_show("our tools", run_rows(spoiled_rows(calls, options.seed), Checker(), catalog), options.show)]
    folder = suites() / "bfcl"
    if folder.is_dir():
        functions, goods = leaderboard(folder)
        others = Checker(json.dumps(functions).encode()).catalog
        rows = list(spoiled_rows(goods, options.seed, WAYS))
        held.append(_show("the leaderboard's functions", through_the_door(rows, functions, others), options.show))
    else:
        print(f"the leaderboard's functions are not at {folder}; set CODEWHALE_SUITES")
    took, kind = slowest()
    middle, high = strict_microseconds(calls)
    print(f"a mebibyte of trouble    at most {took:.1f} ms ({kind}), bound {HOSTILE_MS:.0f}")
    print(f"a call that is right     median {middle:.1f} us, p99 {high:.1f} us, bound {STRICT_US:.0f}")
    held += [took <= HOSTILE_MS, high <= STRICT_US]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
