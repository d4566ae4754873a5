"""`make undo`: what keeping changes undoable costs in a repository of 10,000 files.

Prints milliseconds: the first look at everything, a look before or after a command (twice per executing call), what an
edit waits for, and taking back a change of 200 files. Reading calls are not watched at all.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from codewhale.lib.clock import SystemClock
from codewhale.protocol.decisions import CallView
from codewhale.protocol.modes import Mode
from codewhale.protocol.tools import CommandSubject, Effect, PathSubject
from codewhale.workspace.undo import Undo

FILES = 10_000
BOUNDS = {"first look": 15_000.0, "look": 500.0, "edit": 25.0, "undo of 200 files": 4_000.0}


def repository(root: Path) -> None:
    """Ten thousand committed files of about 3 kB in a hundred folders."""
    for number in range(FILES):
        folder = root / f"d{number % 100}"
        folder.mkdir(parents=True, exist_ok=True)
        text = "".join(f"def function_{number}_{line}(x):\n    return x + {number * line}\n" for line in range(50))
        (folder / f"file{number}.py").write_text(text)
    for args in (("init", "-q"), ("add", "-A"), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")):
        subprocess.run(["git", *args], cwd=root, check=True)


def call(root: Path, number: int, subject: CommandSubject | PathSubject) -> CallView:
    """A call that runs a command or writes a file."""
    effect = Effect.EXECUTES if isinstance(subject, CommandSubject) else Effect.WRITES
    return CallView("s", f"c{number}", "tool", {}, (effect,), (subject,), str(root), Mode.AGENT)


async def took(work: Callable[[], Awaitable[object]]) -> float:
    """Milliseconds."""
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) * 1000


async def measure(root: Path, home: Path) -> dict[str, float]:
    """Every figure."""
    undo = Undo(str(home), SystemClock(), lambda session: 1, lambda session, event: print(event, file=sys.stderr))
    shell = [call(root, number, CommandSubject("true")) for number in range(12)]
    first = await took(lambda: undo.before(shell[0]))
    looks = [await took(lambda: undo.after(shell[0], None))]
    for view in shell[1:]:
        looks.append(await took(lambda view=view: undo.before(view)))  # type: ignore[misc]
        looks.append(await took(lambda view=view: undo.after(view, None)))  # type: ignore[misc]
    edits = []
    for number in range(100, 130):
        path = f"d{number % 100}/file{number}.py"
        view = call(root, number, PathSubject(path, write=True))
        waited = await took(lambda view=view: undo.before(view))  # type: ignore[misc]
        (root / path).write_text(f"edited {number}\n")
        edits.append(waited + await took(lambda view=view: undo.after(view, None)))  # type: ignore[misc]
        await asyncio.sleep(0.1)  # a model takes its time before the next call
    view = call(root, 999, CommandSubject("..."))
    await undo.before(view)
    for number in range(200):
        (root / f"d{number % 100}" / f"file{number}.py").write_text("changed\n")
    await undo.after(view, None)
    (turn,) = await undo.turns("s", str(root))

    async def take_back() -> None:
        done = await undo.carry_out(await undo.plan("s", str(root), turn.since))
        assert len(done.changes) == 200 and not done.refused

    back = await took(take_back)
    await undo.aclose()
    figures = (first, statistics.median(looks), statistics.median(edits), back)
    return dict(zip(BOUNDS, (round(figure, 1) for figure in figures), strict=True))


def main() -> int:
    """The figures; exit 1 when one is above its bound."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "work")
        repository(root)
        figures = asyncio.run(measure(root, Path(folder, "home")))
        status = subprocess.run(["git", "status", "--short"], cwd=root, capture_output=True, check=True).stdout
        assert not status, status[:500]
    rows = [{"id": name, "bound": BOUNDS[name], "measured": figure} for name, figure in figures.items()]
    print(json.dumps(rows))
    return int(any(row["measured"] > row["bound"] for row in rows))  # type: ignore[operator]


if __name__ == "__main__":
    raise SystemExit(main())
