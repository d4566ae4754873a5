"""What servers of other programs cost: a warm call over the server's own time, what a huge, a broken and an endless
result come to, and what ten configured servers add to the first request, to its processor time and to memory. The
last line is JSON."""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from mcp_crash import SERVER, Silent

from codewhale.mcp.servers import McpServers
from codewhale.mcp.terms import ServerFailed, ServerSpec
from tui import figure

WARM, LATER, MEMORY, CANCEL, PROCESSOR = 6.0, 5.0, 3.0, 1.0, 0.20  # ms, ms, MB, s, s
CALLS, RUNS, CONFIGURED = 300, 15, 10
WORDS = {"a": 1, "b": 2}


def direct() -> float:
    """Milliseconds of a call over a pipe, with nothing between."""
    program = subprocess.Popen([sys.executable, "-S", str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert program.stdin is not None and program.stdout is not None
    took = []
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "add", "arguments": WORDS}}
    for _ in range(CALLS):
        began = time.perf_counter()
        program.stdin.write(json.dumps(call).encode() + b"\n")
        program.stdin.flush()
        program.stdout.readline()
        took.append((time.perf_counter() - began) * 1000)
    program.stdin.close()
    program.wait(60)
    program.stdout.close()
    return statistics.median(took)


def spec(**fields: Any) -> ServerSpec:
    """The server of the tests that does what no server should."""
    argv = (sys.executable, "-S", str(SERVER))
    return ServerSpec("rude", argv, folder=str(SERVER.parent), connect_seconds=120.0, **fields)


async def warm(servers: McpServers) -> float:
    """Milliseconds of a call through the broker."""
    took = []
    for _ in range(CALLS):
        began = time.perf_counter()
        await servers.call("rude", "add", WORDS, Silent())
        took.append((time.perf_counter() - began) * 1000)
    return statistics.median(took[20:])


async def sizes(servers: McpServers) -> list[dict[str, Any]]:
    """Results of any size, and how soon one is given up."""
    kept, given_up = 0, list[float]()
    for tool, arguments in (("huge", {"size": 100_000_000}), ("many", {"count": 1_000_000}), ("broken", {})):
        began = time.perf_counter()
        found = await servers.call("rude", tool, arguments, Silent())
        size = sum(piece.size for piece in found.pieces)
        print(f"{tool}: {size:,} bytes in {len(found.pieces)} pieces, {time.perf_counter() - began:.1f} s")
        inline = sum(len(piece.text) for piece in found.pieces)
        kept += inline <= 2 << 20 and len(found.pieces) <= 300
    for tool, arguments in (("huge", {"size": 100_000_000}), ("endless", {})):
        call = asyncio.create_task(servers.call("rude", tool, arguments, Silent()))
        await asyncio.sleep(0.3)
        began = time.perf_counter()
        call.cancel()
        await asyncio.wait((call,))
        given_up.append(time.perf_counter() - began)
    await servers.open(spec())
    lost = 0
    try:
        await servers.call("rude", "endless", {}, Silent())
    except ServerFailed as error:
        print(f"endless: {error}")
        lost += error.kind in ("lost", "timeout")
    return [
        figure("results too large that were not cut to size", 0, 3 - kept),
        figure("a call that is cancelled is given up after, s", CANCEL, max(given_up)),
        figure("endless answers that did not end the call", 0, 1 - lost),
    ]


async def calls() -> list[dict[str, Any]]:
    """All that is asked of servers that run."""
    servers = McpServers()
    try:
        began = time.perf_counter()
        await servers.open(spec())
        print(f"broker and server started: {time.perf_counter() - began:.1f} s")
        bare, ours = direct(), await warm(servers)
        print(f"warm call: {ours:.2f} ms, {bare:.2f} ms without us")
        return [figure("a warm call over the server's own time, ms", WARM, ours - bare), *await sizes(servers)]
    finally:
        await servers.shut()


class Answering(BaseHTTPRequestHandler):
    """Notes when each request comes, how large the process is that sent it and how much processor time it and what it
    started took; answers with a sentence."""

    seen: list[tuple[float, float, float]]
    process: list[int]

    def do_POST(self) -> None:
        """One sentence and the end."""
        arrived = time.perf_counter()
        self.rfile.read(int(self.headers["Content-Length"]))
        status = Path(f"/proc/{self.process[-1]}/status").read_text()
        resident = next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))
        times = Path(f"/proc/{self.process[-1]}/stat").read_text().rpartition(")")[2].split()[11:15]
        self.seen.append((arrived, resident, sum(map(int, times)) / os.sysconf("SC_CLK_TCK")))
        chunk = {"choices": [{"index": 0, "delta": {"content": "Done."}, "finish_reason": "stop"}]}
        sent = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def configured(home: Path) -> None:
    """Ten servers, of which one takes 30 s to start and one never answers."""
    argv = ["-S", str(SERVER)]
    rows = {f"s{number}": {"command": sys.executable, "args": argv} for number in range(CONFIGURED - 2)}
    rows["slow"] = {"command": sys.executable, "args": [*argv, "30"]}
    rows["silent"] = {"command": "sleep", "args": ["600"]}
    (home / "mcp.json").write_text(json.dumps({"servers": rows}))


def first_request(home: Path) -> tuple[float, float, float]:
    """Milliseconds from the start of a process to its first request; its megabytes and seconds of processor then."""
    work = home / "work"
    work.mkdir(exist_ok=True)
    Answering.seen.clear()
    compiled = {"PYTHONDONTWRITEBYTECODE": ""}  # by the first run, for those after it
    env = {**os.environ, "CODEWHALE_HOME": str(home), "FAKE_KEY": "x", **compiled}
    words = [sys.executable, "-m", "codewhale", "exec", "-w", str(work), "--yolo", "Say done."]
    began = time.perf_counter()
    program = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    Answering.process.append(program.pid)
    program.wait(120)
    arrived, resident, processor = Answering.seen[0]
    return (arrived - began) * 1000, resident, processor


def start() -> list[dict[str, Any]]:
    """The first request of a session, with and without configured servers, in turn."""
    Answering.seen, Answering.process = [], []
    with tempfile.TemporaryDirectory() as top, ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        homes = [Path(top) / "without", Path(top) / "with"]
        for home in homes:
            home.mkdir()
            (home / "config.toml").write_text(
                'provider = "p"\nmodel = "m"\n[providers.p]\ndialect = "openai-chat"\napi_key_env = "FAKE_KEY"\n'
                f'base_url = "http://127.0.0.1:{server.server_address[1]}/v1"\n'
            )
        configured(homes[1])
        for name in [*(f"s{number}" for number in range(CONFIGURED - 2)), "slow", "silent"]:
            words = [sys.executable, "-m", "codewhale", "mcp", "approve", name, "--yes"]
            env = {**os.environ, "CODEWHALE_HOME": str(homes[1])}
            subprocess.run(words, env=env, cwd=homes[1], capture_output=True, check=True, timeout=120)
        took: list[list[tuple[float, float, float]]] = [[], []]
        for _ in range(RUNS):
            for index, home in enumerate(homes):
                took[index].append(first_request(home))
        server.shutdown()
        thread.join()
    times = [min(row[0] for row in rows) for rows in took]
    sizes = [statistics.median(row[1] for row in rows) for rows in took]
    processor = [statistics.median(row[2] for row in rows) for rows in took]
    print(f"first request: {times[0]:.1f} ms and {processor[0]:.2f} s of CPU without servers (best of {RUNS})")
    with_them = f"first request with {CONFIGURED} servers"
    return [
        figure(f"{with_them}: later by, ms", LATER, times[1] - times[0]),
        figure(f"{with_them}: larger by, MB", MEMORY, sizes[1] - sizes[0]),
        figure(f"{with_them}: CPU s", PROCESSOR, processor[1]),
    ]


def main() -> int:
    """0 when every figure is within its bound."""
    found = [*asyncio.run(calls()), *start()]
    print(json.dumps(found))
    return 0 if all(row["ok"] for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
