"""`make text-calls`: 300 answers that hold a call as text, in eight formats, twelve languages and six ways to mean or
not to mean it, at a model with a native channel for calls and at one without. The judge of what a server would have
taken is SGLang's own parsers (PyPI `llm-router-utils`), in an environment of their own below .scratch.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from codewhale.catalog.registry import Catalog
from support.house import ROOT
from support.textcases import CALLS, LOOK, Outcome, TextCase, play, texts
from support.textscore import Judged, score

PARSERS = ROOT / ".scratch" / "parsers"
JUDGED = ROOT / "tests" / "weakmodel" / "served.json"
# The parsers' package asks for a whole machine-learning stack that they themselves do not import.
PACKAGES = (("--no-deps", "llm-router-utils==0.8.1"), ("openai==2.6.1", "orjson", "partial-json-parser", "json_repair"))


def parsers() -> Path | None:
    """The interpreter that has the public parsers, None where they cannot be had."""
    python = PARSERS / "bin" / "python"
    if (PARSERS / "ready").exists():
        return python
    subprocess.run([sys.executable, "-m", "venv", str(PARSERS)], check=True)
    for packages in PACKAGES:
        if subprocess.run(
            [str(python), "-m", "pip", "install", "-q", "--no-warn-conflicts", *packages], check=False
        ).returncode:
            return None
    (PARSERS / "ready").touch()
    return python


def judge(cases: list[TextCase]) -> Judged:
    """What the public parser of each text's format takes of it; as recorded where there is none here."""
    python = parsers()
    if python is None:
        print("the public parsers cannot be installed: judged as recorded in tests/weakmodel/served.json")
        return read_judged()
    rows, names = Catalog.load().rows, sorted({str(LOOK["name"]), *(name for name, _ in CALLS)})
    tools = [{"name": name, "description": "", "parameters": rows[name].parameters} for name in names]
    lines = [{"id": case.id, "parser": case.parser, "text": case.text, "tools": tools} for case in cases]
    said = "".join(json.dumps(line) + "\n" for line in lines)
    command = [str(python), str(ROOT / "scripts" / "served_calls.py")]
    done = subprocess.run(command, input=said, capture_output=True, encoding="utf-8", timeout=300, check=True)
    return _calls({line["id"]: line["calls"] for line in map(json.loads, done.stdout.splitlines())})


def read_judged() -> Judged:
    """What was judged when it was last recorded."""
    return _calls(json.loads(JUDGED.read_text(encoding="utf-8")))


def _calls(rows: dict[str, list[tuple[str, dict[str, str]]]]) -> Judged:
    return {name: [(tool, arguments) for tool, arguments in calls] for name, calls in rows.items()}


async def play_all(cases: list[TextCase], *, native: bool) -> list[tuple[TextCase, Outcome]]:
    """Every text, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return [(case, await play(case, Path(folder) / str(n), native=native)) for n, case in enumerate(cases)]


def main() -> int:
    """Judge, play, print; exit 1 where a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the judgement to tests/weakmodel/served.json")
    options = parser.parse_args()
    cases = list(texts())
    judged = judge(cases)
    if options.record:
        rows = [f" {json.dumps(name)}: {json.dumps(calls)}" for name, calls in judged.items()]
        JUDGED.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
    good = True
    for native in (True, False):
        total = score(asyncio.run(play_all(cases, native=native)), judged, native=native)
        print(f"{'native channel' if native else 'text is the channel'}: {total.texts} texts, {total.meant} meant")
        print(f"  meant and done within one more answer: {total.done:.1f} %")
        for name in ("unmeant", "silent", "judged", "failed", "unseen"):
            broken = getattr(total, name)
            good = good and not broken
            print(f"  {name}: {len(broken)} {' '.join(broken[:5])}")
        good = good and total.done >= 90
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
