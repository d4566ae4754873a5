"""`make real`: break real open-source packages and let a scripted repairer repair them through the front door.

Each package is fetched by pip or npm at a pinned version with its own tests. A seed draws a fault that those tests
catch; `codewhale exec --yolo` then works against a policy that sees tool results only. Bound: 8 of 10 repaired per
package; with edit_file switched off to the policy, none.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from mutations import OPERATORS, Site, apply, faults, language_of
from policy_server import PolicyServer
from repairer import Limits, Repairer, compiles, is_test

ROOT = Path(__file__).resolve().parent.parent
SCRATCH = ROOT / ".scratch" / "real"
BIN = Path(sys.executable).parent
PROMPT = "Some tests of this package fail. find the fault in the source, fix it, and do not touch the tests."
WANTED = 0.8

# Seconds that one repair may take.
PATIENCE = 420
# Seconds after which a package's tests hang rather than fail; its guard ends them a little later.
HANGING = 20.0
# Ends a test run that a fault made endless, and keeps bytecode from outliving a repair made in the same second.
GUARD = """import faulthandler
import sys

sys.dont_write_bytecode = True
faulthandler.dump_traceback_later(25, exit=True)
"""


class Package(NamedTuple):
    """A pinned package; `source` are the files that may be broken, `drop` the ones its tests do without."""

    name: str
    version: str
    source: tuple[str, ...]
    npm: bool = False


PACKAGES = (
    Package("toolz", "1.0.0", ("toolz/itertoolz.py", "toolz/dicttoolz.py", "toolz/functoolz.py", "toolz/recipes.py")),
    Package("parse", "1.20.2", ("parse.py",)),
    Package("inflection", "0.5.1", ("inflection/__init__.py",)),
    Package("color-convert", "0.5.3", ("conversions.js", "index.js"), npm=True),
)


class Outcome(NamedTuple):
    """One seed's end: what was broken, whether it was repaired, how many repairs were tried."""

    package: str
    seed: int
    fault: str
    repaired: bool
    attempts: int
    requests: int
    seconds: float


def fetch(package: Package) -> Path:
    """The unpacked package, downloaded once by its registry's own client."""
    home = SCRATCH / "packages" / f"{package.name}-{package.version}"
    if (home / "unpacked").exists():
        return home / "unpacked"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    if package.npm:
        command = ["npm", "pack", "--silent", f"{package.name}@{package.version}"]
    else:
        wanted = f"{package.name}=={package.version}"
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", wanted]
    subprocess.run(command, cwd=home, check=True, stdout=subprocess.DEVNULL)
    archive = next(path for path in home.iterdir() if path.name.endswith((".tar.gz", ".tgz")))
    with tarfile.open(archive) as packed:
        packed.extractall(home / "new", **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    next((home / "new").iterdir()).rename(home / "unpacked")
    return home / "unpacked"


def lay_out(package: Package, unpacked: Path, tree: Path) -> None:
    """A fresh copy of the package, its test command bounded in time."""
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(unpacked, tree)
    if package.npm:
        manifest = json.loads((tree / "package.json").read_text())
        manifest["scripts"] = {"test": f"timeout 25 {manifest['scripts']['test']}"}
        (tree / "package.json").write_text(json.dumps(manifest, indent=2) + "\n")
        return
    (tree / "conftest.py").write_text(GUARD)
    for name in ("tox.ini", "setup.cfg", "pytest.ini", "pyproject.toml"):
        (tree / name).unlink(missing_ok=True)
    (tree / "pyproject.toml").write_text(f'[project]\nname = "{package.name}"\nversion = "{package.version}"\n')
    (tree / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")


def environment() -> dict[str, str]:
    """This process's environment with our own Python first."""
    return {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}


def tests_pass(package: Package, tree: Path) -> bool | None:
    """Whether the package's own tests pass, asked from outside; None when they ran out of time."""
    command = ["npm", "test", "--silent"] if package.npm else [sys.executable, "-m", "pytest", "-x", "-q"]
    begun = time.monotonic()
    try:
        done = subprocess.run(command, cwd=tree, env=environment(), capture_output=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        return None
    return None if time.monotonic() - begun > HANGING else done.returncode == 0


def draw(package: Package, unpacked: Path, tree: Path, seed: int) -> tuple[str, Site]:
    """A fault that the tests catch, put into the tree: the operator is drawn first, then its place."""
    chance = random.Random(f"{package.name}:{seed}")
    texts = {name: (unpacked / name).read_text() for name in package.source}
    found = [(name, site) for name, text in texts.items() for site in faults(text, language_of(name))]
    operators = [
        name for name in OPERATORS[language_of(package.source[0])] if any(s.operator == name for _, s in found)
    ]
    while True:
        operator = chance.choice(operators)
        name, site = chance.choice([row for row in found if row[1].operator == operator])
        broken = apply(texts[name], site)
        if language_of(name) == "python" and not compiles(broken):
            continue
        lay_out(package, unpacked, tree)
        (tree / name).write_text(broken)
        if tests_pass(package, tree) is False:
            return name, site


def commit(tree: Path) -> None:
    """The broken tree as a repository's only commit, so that its history tells nothing."""
    identity = ("-c", "user.name=Real", "-c", "user.email=real@example.invalid", "-c", "core.excludesFile=/dev/null")
    for arguments in (("init", "-q"), ("add", "-A", "-f"), (*identity, "commit", "-q", "-m", "As found")):
        subprocess.run(["git", *arguments], cwd=tree, check=True, stdout=subprocess.DEVNULL)


def changed(tree: Path) -> list[str]:
    """Files that differ from the commit."""
    done = subprocess.run(["git", "status", "--porcelain"], cwd=tree, capture_output=True, text=True, check=True)
    return [line[3:] for line in done.stdout.splitlines() if "__pycache__" not in line]


def repair(package: Package, tree: Path, home: Path, limits: Limits) -> tuple[Repairer, int]:
    """Drive the front door against the repairer; returns it with the number of model requests."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    repairer = Repairer(not package.npm, limits)
    switched_off = "" if limits.edits else '[tools]\ndisabled = ["edit_file"]\n'
    with PolicyServer(repairer.play) as server:
        (home / "config.toml").write_text(
            f'provider = "policy"\nmodel = "policy"\n\n[providers.policy]\ndialect = "openai-chat"\n'
            f'base_url = "{server.base_url}"\napi_key_env = "POLICY_KEY"\ncontext_window = 1000000\n{switched_off}'
        )
        own = {**environment(), "CODEWHALE_HOME": str(home), "POLICY_KEY": "none"}
        command = [str(BIN / "codewhale"), "exec", "-w", str(tree), "--yolo", "--max-turns", "2000"]
        with (
            (home / "stdout").open("wb") as out,
            (home / "stderr").open("wb") as err,
            contextlib.suppress(subprocess.TimeoutExpired),  # it is judged by what it has done by then
        ):
            subprocess.run(
                [*command, PROMPT],
                env=own,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                timeout=PATIENCE,
                check=False,
            )
        return repairer, server.requests


def one(package: Package, unpacked: Path, seed: int, limits: Limits) -> Outcome:
    """Break, repair and judge from outside: the tests pass, and only source files have changed."""
    folder = SCRATCH / "runs" / package.name / (f"{seed}" if limits.edits else f"{seed}-no-edits")
    tree = folder / "tree"
    name, site = draw(package, unpacked, tree, seed)
    line = (unpacked / name).read_text().count("\n", 0, site.start) + 1
    commit(tree)
    begun = time.monotonic()
    repairer, requests = repair(package, tree, folder / "home", limits)
    seconds = time.monotonic() - begun
    repaired = bool(tests_pass(package, tree)) and not any(is_test(path) for path in changed(tree))
    return Outcome(
        package.name, seed, f"{site.operator} {name}:{line}", repaired, repairer.attempts, requests, round(seconds, 1)
    )


def show(outcome: Outcome, note: str = "") -> None:
    """One line about an outcome."""
    word = "repaired" if outcome.repaired else "not repaired"
    print(
        f"  {outcome.package:14} seed {outcome.seed:<6} {word:10} after {outcome.attempts:3} repairs, "
        f"{outcome.requests:4} requests, {outcome.seconds:6.1f} s   {outcome.fault}{note}",
        flush=True,
    )


def judge(package: Package, first: int, seeds: int, limits: Limits) -> dict[str, Any]:
    """All seeds of one package, and one with edit_file switched off."""
    unpacked = fetch(package)
    lay_out(package, unpacked, SCRATCH / "sound" / package.name)
    if not tests_pass(package, SCRATCH / "sound" / package.name):
        raise SystemExit(f"{package.name} {package.version}: its own tests do not pass here")
    outcomes = []
    for seed in range(first, first + seeds):
        outcomes.append(one(package, unpacked, seed, limits))
        show(outcomes[-1])
    bound = one(package, unpacked, first, limits._replace(edits=False, attempts=10))
    show(bound, "   (edit_file switched off)")
    repaired = sum(outcome.repaired for outcome in outcomes)
    return {
        "package": f"{package.name} {package.version}",
        "repaired": repaired,
        "seeds": seeds,
        "repaired_without_edits": bound.repaired,
        "seconds": round(sum(outcome.seconds for outcome in outcomes), 1),
        "ok": repaired >= WANTED * seeds and not bound.repaired,
    }


def main() -> int:
    """0 when every package reaches its bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", action="append", choices=[package.name for package in PACKAGES])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=None, help="the first seed; drawn when absent")
    parser.add_argument("--attempts", type=int, default=450)
    parser.add_argument("--json", action="store_true", help="print the figures as one JSON line at the end")
    asked = parser.parse_args()
    first = asked.first if asked.first is not None else random.SystemRandom().randrange(100_000)
    print(f"seeds {first}..{first + asked.seeds - 1} (again with --first {first})", flush=True)
    rows = [
        judge(package, first, asked.seeds, Limits(asked.attempts))
        for package in PACKAGES
        if not asked.package or package.name in asked.package
    ]
    for row in rows:
        state = "ok" if row["ok"] else "BELOW ITS BOUND"
        print(f"{row['package']:22} {row['repaired']}/{row['seeds']} repaired, {row['seconds']} s: {state}")
    if asked.json:
        print(json.dumps({"first": first, "packages": rows}))
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
