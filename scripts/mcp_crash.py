"""Kill the broker and servers in the middle of calls, again and again: each call has one end, no side effect is asked
for twice, and no process is left. `mcp_crash.py --kills 200`."""

import argparse
import asyncio
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from codewhale.mcp.servers import McpServers
from codewhale.mcp.terms import ServerFailed, ServerSpec
from codewhale.process.launcher import children, descendants

SERVER = Path(__file__).parent.parent / "tests" / "mcp" / "rude_server.py"
PATIENCE = 120.0
AT_ONCE = 4


class Silent:
    """A caller that nobody asks."""

    async def elicit(self, server: str, message: str, schema: dict[str, Any], url: str) -> dict[str, Any]:
        """No."""
        return {"action": "decline"}

    async def sample(self, server: str, request: dict[str, Any]) -> dict[str, Any]:
        """No."""
        raise ServerFailed("refused", "no")

    def progress(self, server: str, done: float, total: float | None, text: str) -> None:
        """Nothing."""

    def log(self, server: str, level: str, text: str) -> None:
        """Nothing."""


def spec(name: str) -> ServerSpec:
    """A server that writes a line for each call."""
    return ServerSpec(name, (sys.executable, "-S", str(SERVER)), folder=str(SERVER.parent), connect_seconds=PATIENCE)


async def until(true: Any) -> bool:
    """Whether something became true in time."""
    end = time.monotonic() + PATIENCE
    while not true() and time.monotonic() < end:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    return bool(true())


def servers_of(broker: int) -> list[int]:
    """The servers themselves: what runs below the launchers below the broker."""
    return [below for launcher in children(broker) for below in children(launcher)]


async def one(servers: McpServers, number: int, folder: Path, rng: random.Random) -> dict[str, int]:
    """Calls at once, and a kill among them; what they came to."""
    counts = dict.fromkeys(("answered", "lost", "unsent", "twice", "none"), 0)
    notes = [folder / f"{number}-{index}" for index in range(AT_ONCE)]

    async def call(index: int) -> str:
        tool = "wait" if index == 0 else "note"
        arguments = {"path": str(notes[index]), "text": f"{number}-{index}", "seconds": 0.3}
        try:
            await servers.call(f"s{index % 2}", tool, arguments, Silent())
        except ServerFailed as error:
            return "lost" if error.sent else "unsent"
        return "answered"

    for name in ("s0", "s1"):
        await servers.open(spec(name))
    calls = [asyncio.create_task(call(index)) for index in range(AT_ONCE)]
    await until(notes[0].exists)
    await asyncio.sleep(rng.random() * 0.02)
    below = servers_of(servers.broker)
    victim = servers.broker if number % 2 == 0 or not below else rng.choice(below)
    os.kill(victim, signal.SIGKILL)
    done = await asyncio.wait_for(asyncio.gather(*calls), PATIENCE)
    for kind in done:
        counts[kind] += 1
    for note, kind in zip(notes, done, strict=True):
        lines = note.read_text().splitlines() if note.exists() else []
        counts["twice"] += len(lines) > 1
        counts["none"] += kind == "answered" and not lines
    return counts


async def crash(kills: int, seed: int) -> int:
    """Kill so often; returns the number of faults."""
    rng = random.Random(seed)
    total: dict[str, int] = {}
    others = set(descendants(os.getpid()))
    servers = McpServers()
    with tempfile.TemporaryDirectory() as folder:
        try:
            for number in range(kills):
                for kind, count in (await one(servers, number, Path(folder), rng)).items():
                    total[kind] = total.get(kind, 0) + count
        finally:
            await servers.shut()
    gone = await until(lambda: not set(descendants(os.getpid())) - others)
    calls = kills * AT_ONCE
    ends = sum(total.get(kind, 0) for kind in ("answered", "lost", "unsent"))
    print(f"{kills} kills (seed {seed}), {calls} calls, {ends} ends: {total}")
    print(f"processes left: {'none' if gone else sorted(set(descendants(os.getpid())) - others)}")
    return (calls - ends) + total.get("twice", 0) + total.get("none", 0) + (not gone)


def main() -> int:
    """Read the command line and run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    return int(asyncio.run(crash(args.kills, args.seed)) > 0)


if __name__ == "__main__":
    sys.exit(main())
