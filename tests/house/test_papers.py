"""What the papers claim: the README's program runs, its length holds, links and targets lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.house import ROOT

PAPERS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
README = (ROOT / "README.md").read_text()


def test_the_readme_is_short() -> None:
    assert README.count("\n") <= 150


def test_the_program_of_the_readme_runs(tmp_path: Path) -> None:
    program = re.search(r"^```python\n(.*?)^```", README, re.S | re.M)
    assert program and len([line for line in program[1].splitlines() if line.strip()]) <= 12
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program[1]], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "TurnFinished" and "CallFinished" in done.stdout


@pytest.mark.parametrize("paper", PAPERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(paper: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", paper.read_text())
    assert [link for link in links if not (paper.parent / link).exists()] == []


def test_each_file_named_in_the_architecture_exists() -> None:
    named = re.findall(r"`([a-z]+(?:/[a-z_0-9]+)+\.py)`", (ROOT / "ARCHITECTURE.md").read_text())
    assert (
        named
        and [name for name in named if not (ROOT / "src" / "codewhale" / name).exists() and not (ROOT / name).exists()]
        == []
    )


def test_each_make_target_named_in_the_papers_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    said = {word for paper in PAPERS for word in re.findall(r"`make ([a-z-]+)", paper.read_text())}
    assert said <= targets and {"demo", "test", "check", "bench", "real", "crash", "smoke", "shows"} <= targets


def test_each_rule_names_a_test_that_exists() -> None:
    named = re.findall(r"`(?:tests/house/)?(test_\w+\.py)`", (ROOT / "AGENTS.md").read_text())
    assert named and [name for name in named if not (ROOT / "tests" / "house" / name).exists()] == []


def test_decisions_are_numbered_and_listed() -> None:
    listed = (ROOT / "docs" / "decisions" / "README.md").read_text()
    records = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    assert [int(path.name[:4]) for path in records] == list(range(1, len(records) + 1))
    assert [path.name for path in records if f"]({path.name})" not in listed] == []


def test_the_glossary_is_short_and_its_files_exist() -> None:
    rows = re.findall(
        r"^\| ([a-z][^|]*) \| ([^|]+) \| `([^`]+)` \|$", (ROOT / "docs" / "glossary.md").read_text(), re.M
    )
    assert 40 < len(rows) <= 60 and len({term for term, _, _ in rows}) == len(rows)
    assert [file for _, _, file in rows if not (ROOT / "src" / "codewhale" / file).exists()] == []
    assert [term for term, _, _ in rows] == sorted(term for term, _, _ in rows)


def test_each_demand_that_is_met_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "demands.md").read_text()
    rows = re.findall(r"^\| (\d+) \| [^|]+ \| (yes|partly|later) \| ([^|]*)\|$", page, re.M)
    assert [int(number) for number, _, _ in rows] == list(range(1, 31))
    missing = []
    for number, met, shown in rows:
        named = re.findall(r"`([^`]+)`", shown)
        missing += [number] if met != "later" and not named else []
        for name in named:
            path, _, test = name.partition("::")
            place = ROOT / "tests" / path
            if not place.exists() or (test and f"def {test}(" not in place.read_text()):
                missing.append(name)
    assert missing == []
