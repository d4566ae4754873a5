"""`make escapes`: every probe of tests/support/escapes.py against the sandbox, as root and as an ordinary user, under
each profile and each mechanism. Prints a table and each escape; the last line is one JSON object. Ends with 1 after an
escape, and under CI also when a mechanism or a user could not be tried.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from codewhale.process import launcher
from codewhale.process.confinement import BUBBLEWRAP, CHOICE, LANDLOCK, sandbox
from support.escapes import NEVER_LOOSE, PROBES, Probe
from support.escapeworld import as_ordinary, plain_python, try_probe

ROOT = Path(__file__).resolve().parent.parent
ORDINARY = 1001
NOTHING = "none"
PROFILES = ("read-only", "workspace-write")


def loose(probe: Probe) -> bool:
    """Whether it may be tried where nothing holds it."""
    return probe.name not in NEVER_LOOSE


def wanted(probe: Probe, profile: str, mechanism: str) -> bool:
    """Whether a probe says anything there."""
    return not (probe.writes and profile == "read-only") and not (probe.reads and mechanism == LANDLOCK)


async def tried(base: Path, mechanism: str, probes: list[Probe]) -> dict[str, Any]:
    """The probes under both profiles: how many ran, and what got out."""
    if mechanism == NOTHING:
        pairs = [(probe, NOTHING) for probe in probes if loose(probe)]
    else:
        pairs = [(probe, profile) for probe in probes for profile in PROFILES if wanted(probe, profile, mechanism)]
    escapes = []
    for number, (probe, profile) in enumerate(pairs):
        reached = await try_probe(base / str(number), probe, profile)
        if reached:
            escapes.append({"probe": probe.name, "profile": profile, "reached": reached})
    return {"ran": len(pairs), "escapes": escapes}


def explore(pipe: Connection, base: str, mechanism: str, uid: int, names: list[str]) -> None:
    """In a process of its own: become the user, try, send what came of it."""
    import ctypes  # noqa: F401  (what is imported late cannot be read as another user)
    import fcntl  # noqa: F401
    import shutil  # noqa: F401
    import subprocess  # noqa: F401

    asyncio.run(asyncio.to_thread(str))
    os.environ[CHOICE] = mechanism
    if uid:
        assert launcher.__spec__ is not None
        launcher.__spec__.cached = None  # compiled by another Python, perhaps
        as_ordinary(uid)
    os.environ["HOME"] = base
    os.chdir(base)
    found = sandbox()
    if mechanism == NOTHING:
        pass
    elif found.mechanism != mechanism:
        pipe.send({"skipped": "; ".join(one.detail for one in found.tried)})
        return
    probes = [probe for probe in PROBES if not names or probe.name in names]
    pipe.send(asyncio.run(tried(Path(base), mechanism, probes)))


def run_as(mechanism: str, uid: int, names: list[str]) -> dict[str, Any]:
    """One mechanism as one user."""
    if uid and (os.geteuid() != 0 or not plain_python()):
        return {"skipped": "becoming an ordinary user needs root, and a Python that all users may run"}
    (ROOT / ".scratch").mkdir(exist_ok=True)
    base = tempfile.mkdtemp(prefix="escapes-", dir=ROOT / ".scratch")
    os.chown(base, uid or os.geteuid(), -1)
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=explore, args=(there, base, mechanism, uid, names))
    process.start()
    there.close()
    try:
        return dict(here.recv())
    except EOFError:
        return {"ran": 0, "escapes": [{"probe": "the explorer itself", "reached": ["it died"], "profile": ""}]}
    finally:
        process.join()
        shutil.rmtree(base, ignore_errors=True)


def control(names: list[str]) -> int:
    """The same where nothing holds them: a probe that does not get out shows nothing."""
    told = run_as(NOTHING, ORDINARY, names)
    out = {row["probe"] for row in told.get("escapes", ())}
    kept = [
        probe.name for probe in PROBES if loose(probe) and probe.name not in out and (not names or probe.name in names)
    ]
    print(f"{told.get('ran', 0)} tries, {len(out)} got out; not: {', '.join(kept) or 'none'}")
    return int(len(kept) > len(out))


def main() -> int:
    """Try all, tell what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="NAME", action="append", default=[], help="this probe alone")
    parser.add_argument("--mechanism", choices=(BUBBLEWRAP, LANDLOCK), help="this mechanism alone")
    parser.add_argument(
        "--control", action="store_true", help="with no sandbox, as an ordinary user: most must get out"
    )
    args = parser.parse_args()
    if args.control:
        return control(args.only)
    began = time.monotonic()
    total: dict[str, Any] = {"probes": len(PROBES), "ran": 0, "escapes": 0, "skipped": 0}
    for mechanism in [args.mechanism] if args.mechanism else [BUBBLEWRAP, LANDLOCK]:
        for user, uid in (("root" if os.geteuid() == 0 else "this user", 0), ("ordinary", ORDINARY)):
            told = run_as(mechanism, uid, args.only)
            if "skipped" in told:
                total["skipped"] += 1
                print(f"{mechanism:<11} {user:<10} SKIPPED: {told['skipped']}")
                continue
            print(f"{mechanism:<11} {user:<10} {told['ran']:>4} tries, {len(told['escapes'])} escapes", flush=True)
            for row in told["escapes"]:
                print(f"  ESCAPE {row['profile']}: {row['probe']}: {row['reached']}")
            total["ran"] += told["ran"]
            total["escapes"] += len(told["escapes"])
    total["seconds"] = round(time.monotonic() - began, 1)
    print(json.dumps(total))
    return int(bool(total["escapes"] or (total["skipped"] and os.environ.get("CI"))))


if __name__ == "__main__":
    sys.exit(main())
