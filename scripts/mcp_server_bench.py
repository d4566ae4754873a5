"""`codewhale mcp serve` in figures: the time to its first answer, a warm call, what a result of 100 MB becomes, and
kill -9 in the middle of calls (--kills): no process is left, and a written file is whole."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

STARTS, CALLS = 5, 50
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Server:
    """One server over stdio, in a home below `folder`."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.work = folder / "work"
        self.work.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "codewhale", "mcp", "serve", "-w", str(self.work), *arguments]
        env = {**os.environ, "CODEWHALE_HOME": str(folder / "state"), "HOME": str(folder / "person")}
        self.begun = time.perf_counter()
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
        self.ids = 0

    def send(self, method: str, params: dict[str, Any]) -> int:
        self.ids += 1
        assert self.child.stdin is not None
        frame = {"jsonrpc": "2.0", "id": self.ids, "method": method, "params": params}
        self.child.stdin.write(json.dumps(frame).encode() + b"\n")
        self.child.stdin.flush()
        return self.ids

    def ask(self, method: str, params: dict[str, Any]) -> tuple[dict[str, Any], int]:
        """The answer and its size."""
        number = self.send(method, params)
        assert self.child.stdout is not None
        for line in self.child.stdout:
            frame = json.loads(line)
            if frame.get("id") == number:
                return frame, len(line)
        raise SystemExit("the server ended early")

    def hello(self) -> float:
        """Seconds from its start to its first answer."""
        self.ask("initialize", HELLO)
        return time.perf_counter() - self.begun

    def call(self, name: str, **arguments: Any) -> tuple[dict[str, Any], int]:
        return self.ask("tools/call", {"name": name, "arguments": arguments})

    def end(self) -> None:
        assert self.child.stdin is not None
        self.child.stdin.close()
        self.child.wait(60)


def inside(work: Path) -> list[str]:
    """The processes whose working folder is there."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if os.path.realpath(entry / "cwd") == str(work.resolve()):
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


def speed(folder: Path) -> None:
    starts, calls = [], []
    for _ in range(STARTS):
        server = Server(folder)
        starts.append(server.hello())
        server.end()
    server = Server(folder)
    server.hello()
    (server.work / "a.txt").write_text("hello\n")
    for _ in range(CALLS):
        begun = time.perf_counter()
        server.call("read_file", path="a.txt")
        calls.append(time.perf_counter() - begun)
    server.end()
    print(f"first answer: {statistics.median(starts):.2f} s (median of {STARTS}, {min(starts):.2f} at best)")
    print(f"read_file, warm: {statistics.median(calls) * 1000:.1f} ms (median of {CALLS})")


def large(folder: Path) -> bool:
    """Whether what 100 MB of output becomes is bounded."""
    server = Server(folder, "--offer", "exec_shell", "--mode", "yolo")
    server.hello()
    begun = time.perf_counter()
    answer, size = server.call("exec_shell", command="head -c 100000000 /dev/zero | tr '\\0' 'x'", timeout_ms=120_000)
    seconds = time.perf_counter() - begun
    peak = next(
        line for line in Path(f"/proc/{server.child.pid}/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    server.end()
    print(f"100 MB of output: a frame of {size:,} bytes after {seconds:.1f} s; peak memory {peak.split()[1]} kB")
    return size < 200_000 and "result" in answer


def kills(folder: Path, count: int) -> bool:
    """Kill the server in the middle of calls that write and run; whether nothing is torn or left."""
    torn = left = 0
    for number in range(count):
        server = Server(folder, "--offer", "exec_shell", "--offer", "write_file", "--mode", "yolo")
        server.hello()
        server.send("tools/call", {"name": "exec_shell", "arguments": {"command": "sleep 300"}})
        body = f"{number:04} " * 20_000
        server.send("tools/call", {"name": "write_file", "arguments": {"path": "big.txt", "content": body}})
        time.sleep(0.02 * (number % 20))
        server.child.kill()
        server.child.wait(60)
        path = server.work / "big.txt"
        if path.exists():
            text = path.read_text()
            torn += text != text[:5] * 20_000
        for _ in range(300):
            if not inside(server.work):
                break
            time.sleep(0.1)
        left += len(inside(server.work))
    server = Server(folder)
    server.hello()
    answer, _ = server.call("list_dir", path=".")
    server.end()
    print(f"{count} kills: {torn} torn files, {left} processes left; the next server answers: {'result' in answer}")
    return not torn and not left and "result" in answer


def main() -> int:
    """All of it; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=40)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        speed(Path(folder))
        good = large(Path(folder))
        good = kills(Path(folder), args.kills) and good
    return int(not good)


if __name__ == "__main__":
    sys.exit(main())
