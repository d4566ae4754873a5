"""`make jobs`: many background jobs at once and one job that prints without end, in figures and bounds.

A thousand jobs in the workspace-write profile (none where this machine holds no command): how long they take to start,
to be listed and to die, and what they leave behind. Then 10 GB of output, and the end of a flood.

usage: jobs.py [--jobs N] [--bytes N] [--profile P] [--json]
"""

import argparse
import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from codewhale.lib.clock import SystemClock
from codewhale.protocol.errors import ToolError
from codewhale.services.jobs import JobInput, JobSpec, ShellJobs
from codewhale.services.jobs.log import MOST

START_SECONDS, LIST_SECONDS, DIE_SECONDS, CANCEL_SECONDS = 40.0, 0.2, 2.0, 1.0
FILES = 3
GROWTH_BYTES = 50_000_000
AT_ONCE = 8


class Figure(NamedTuple):
    """A measured value and the bound it must not pass."""

    name: str
    value: float
    bound: float
    unit: str

    @property
    def good(self) -> bool:
        """Whether it keeps to its bound."""
        return self.value <= self.bound

    def line(self) -> str:
        """As it is printed."""
        verdict = "ok" if self.good else "TOO MUCH"
        return f"{self.name:<44} {self.value:>14,.3f} {self.unit:<6} bound {self.bound:>14,.3f}  {verdict}"


def opened(folder: Path) -> ShellJobs:
    """Jobs whose output is kept in the folder."""
    return ShellJobs(lambda session, event: None, SystemClock(), str(folder))


def spec(command: str, folder: Path, profile: str) -> JobSpec:
    """A background job."""
    place = str(folder)
    return JobSpec(command, ("/bin/bash", "-c", command), place, background=True, profile=profile, workspace=place)


def open_files() -> int:
    """Descriptors of this process."""
    return len(os.listdir("/proc/self/fd"))


def zombies() -> int:
    """Children of this process that nobody has collected."""
    found = 0
    for name in os.listdir("/proc"):
        try:
            fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split() if name.isdigit() else []
        except OSError:
            continue
        found += bool(fields) and fields[0] == b"Z" and int(fields[1]) == os.getpid()
    return found


def resident() -> int:
    """Bytes of memory this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


async def held(folder: Path, wanted: str) -> str:
    """The profile, or none where this machine holds no command."""
    jobs = opened(folder)
    try:
        await jobs.wait("one", (await jobs.start("one", spec("true", folder, wanted))).id, 10)
        return wanted
    except ToolError as error:
        print(f"without a sandbox: {error.message}")
        return "none"
    finally:
        await jobs.aclose()


async def crowd(folder: Path, count: int, profile: str) -> list[Figure]:
    """Many jobs from their start to their end."""
    before = open_files()
    jobs = opened(folder)
    gate = asyncio.Semaphore(AT_ONCE)

    async def one() -> str:
        async with gate:
            return (await jobs.start("one", spec("echo here; sleep 600", folder, profile))).id

    began = time.monotonic()
    ids = await asyncio.gather(*(one() for _ in range(count)))
    started = time.monotonic() - began
    await asyncio.gather(*(jobs.interact("one", job, JobInput(seconds=10)) for job in ids))
    began = time.monotonic()
    listed = jobs.jobs("one")
    listing = time.monotonic() - began
    running = sum(job.status == "Running" for job in listed)
    began = time.monotonic()
    await jobs.cancel_all("one")
    dying = time.monotonic() - began
    left = sum(os.path.exists(f"/proc/{job.pid}") for job in listed)
    await jobs.aclose()
    return [
        Figure(f"{count} jobs start ({profile})", started, START_SECONDS, "s"),
        Figure("of them not running when listed", count - running, 0, ""),
        Figure("listing them", listing, LIST_SECONDS, "s"),
        Figure("ending them", dying, DIE_SECONDS, "s"),
        Figure("of them still there", left, 0, ""),
        Figure("zombies", zombies(), 0, ""),
        Figure("descriptors left open", abs(open_files() - before), FILES, ""),
    ]


async def flood(folder: Path, size: int, profile: str) -> list[Figure]:
    """One job that prints `size` bytes, and one that is ended while it prints."""
    jobs = opened(folder)
    before = most = resident()
    job = (await jobs.start("one", spec(f"head -c {size} /dev/zero", folder, profile))).id
    began = time.monotonic()
    while jobs.view("one", job).status == "Running":
        await jobs.wait("one", job, 0.05)
        most = max(most, resident())
    took = time.monotonic() - began
    printed, kept = jobs.view("one", job).stdout_total, jobs.log("one", job).kept
    print(f"{printed:,} bytes in {took:.1f} s, {printed / took / 1e6:,.0f} MB/s; {kept:,} of them kept")
    endless = (await jobs.start("one", spec("cat /dev/zero", folder, profile))).id
    while jobs.view("one", endless).stdout_total < MOST:
        await jobs.wait("one", endless, 0.05)
    began = time.monotonic()
    await jobs.cancel("one", endless)
    ending = time.monotonic() - began
    most = max(most, resident())
    await jobs.aclose()
    return [
        Figure("bytes of the output not counted", size - printed, 0, ""),
        Figure("bytes of it kept", kept, MOST, ""),
        Figure("memory it took", most - before, GROWTH_BYTES, "bytes"),
        Figure("ending a flood", ending, CANCEL_SECONDS, "s"),
    ]


async def measured(count: int, size: int, profile: str) -> list[Figure]:
    """All figures, in a folder of their own."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "work"
        folder.mkdir()
        profile = await held(folder, profile)
        return [*await crowd(folder, count, profile), *await flood(folder, size, profile)]


def main() -> int:
    """0 when every figure keeps to its bound."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--bytes", type=int, default=10_000_000_000)
    parser.add_argument("--profile", default="workspace-write")
    parser.add_argument("--json", action="store_true", help="the figures once more, as the last line")
    given = parser.parse_args()
    figures = asyncio.run(measured(given.jobs, given.bytes, given.profile))
    for figure in figures:
        print(figure.line())
    if given.json:
        print(json.dumps([figure._asdict() for figure in figures]))
    return 0 if all(figure.good for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
