"""`make tui`: what the terminal interface costs, on a real pseudo-terminal: first paint beside an empty Textual app, a
streamed answer, a key until it is seen, scrolling a very long session, memory.

The last line printed is JSON: one object a figure, with its bound.
"""

import argparse
import contextlib
import json
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from codewhale.lib.clock import SystemClock  # noqa: E402
from codewhale.protocol.events import Event, MessageAdded, SessionOpened, TurnFinished, TurnStarted  # noqa: E402
from codewhale.protocol.messages import Message, Text  # noqa: E402
from codewhale.protocol.modes import Mode  # noqa: E402
from codewhale.session.store import SessionStore  # noqa: E402
from support.terminal import FRAME_END, Terminal, environment  # noqa: E402

CODEWHALE = str(Path(sys.executable).parent / "codewhale")
EMPTY = "from textual.app import App\nApp().run()"
FIRST_PAINT, STREAM_CPU, ECHO_MS, SCROLL_MS, MEMORY_MB = 1.3, 7.0, 50.0, 50.0, 400.0
FLOOD_MS = 100.0
CHUNKS, RATE = 3000, 100
# Keys that stand in nothing the model says, so that the one that comes back is the one that was typed.
KEYS = "αβγδεζηθικλμνξοπρστυφχψω"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
PIECE = 12
# What the model says again and again, a page of it.
PAGE = """## A heading

The function reads the *configuration*, then walks the tree; `walk()` yields each path **once**. Nothing else is
touched, and the tests still pass. What follows is an ordinary paragraph that wraps at the edge of the screen.

- first point, with `code`
- second point

```python
for path in walk(root):
    print(path, len(path))  # a remark
```

| column | other |
|---|---:|
| one | 1 |

"""
ENDS = (b"Firstend", b"Secondend", b"Thirdend")


def figure(name: str, bound: float, measured: float) -> dict[str, Any]:
    """One line against its bound, printed as it is found."""
    told = {"id": name, "bound": bound, "measured": round(measured, 3), "ok": measured <= bound}
    told["ratio"] = round(measured / bound, 3) if bound else None
    print(f"  {name:<58} {measured:>9.3f}  (at most {bound:g}){'' if told['ok'] else '  MISSED'}", flush=True)
    return told


def percentile(values: list[float], share: float) -> float:
    """The value below which a share of them lies."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def cpu_seconds(pid: int) -> float:
    """CPU time that a process has taken, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    """The most memory that a process has had, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


# ---------------------------------------------------------------------- a model


class Model:
    """A chat endpoint on this machine that answers every request with pieces at a rate."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}/v1"
        self.pieces, self.rate, self.ends = CHUNKS, RATE, iter(ENDS)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._server.accept()
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(BrokenPipeError):
            got = b""
            while b"\r\n\r\n" not in got:
                got += connection.recv(65536)
            head, _, body = got.partition(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0] or 0)
            while len(body) < length:
                body += connection.recv(65536)
            if not got.startswith(b"POST"):
                connection.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                return
            connection.sendall(HEAD)
            begun = time.monotonic()
            for number in range(self.pieces):
                time.sleep(max(0.0, begun + number / self.rate - time.monotonic()))
                at = number * PIECE % len(PAGE)
                self._say(connection, {"content": (PAGE + PAGE)[at : at + PIECE]}, None)
            self._say(connection, {"content": f"\n```\n\n{next(self.ends).decode()}\n"}, None)
            self._say(connection, {}, "stop")
            connection.sendall(b"data: [DONE]\n\n")

    @staticmethod
    def _say(connection: socket.socket, delta: dict[str, Any], finish: str | None) -> None:
        chunk = {"id": "1", "object": "chat.completion.chunk", "model": "m"}
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        connection.sendall(b"data: " + json.dumps({**chunk, "choices": [choice]}).encode() + b"\n\n")


class World:
    """A home whose provider is the model, and a workspace."""

    def __init__(self, folder: Path) -> None:
        self.home, self.work, self.model = folder / "home", folder / "work", Model()
        self.home.mkdir(mode=0o700)
        self.work.mkdir()
        (self.home / "config.toml").write_text(
            f'provider = "here"\nmodel = "m"\n\n[providers.here]\nbase_url = "{self.model.url}"\n'
            "context_window = 100000000\n"
        )

    def open(self, *words: str, **how: Any) -> Terminal:
        """The interface on a terminal."""
        return Terminal([CODEWHALE, *words], environment(self.home), cwd=self.work, emulate=False, **how)

    def long_session(self, messages: int) -> str:
        """A session of so many messages, written as the program writes them."""
        opened = SessionOpened(1, str(self.work), Mode.AGENT, "here", "m")
        log = SessionStore(str(self.home), SystemClock()).create(opened)
        for turn in range(1, messages // 2 + 1):
            asked = MessageAdded(Message("user", (Text(f"Question {turn}: what does this line do?"),)))
            text = f"Answer {turn}: it is **read** once.\n\n- `one` of {turn}\n- two\n\nAnd then it ends."
            said = MessageAdded(Message("assistant", (Text(text, "model"),)), "stop")
            told: list[Event] = [TurnStarted(turn), asked, said, TurnFinished(turn, "done")]
            log.append(told)
        log.close()
        return log.session


@contextlib.contextmanager
def world() -> Iterator[World]:
    """A world in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="codewhale-tui-", ignore_cleanup_errors=True) as folder:
        yield World(Path(folder).resolve())


# ---------------------------------------------------------------------- figures


def painted(here: World, command: list[str], wanted: bytes) -> float:
    """Seconds until a program has painted what is wanted."""
    with Terminal(command, environment(here.home), cwd=here.work, emulate=False) as term:
        return term.until_raw(wanted) - term.started


def first_paint(rounds: int) -> list[dict[str, Any]]:
    """Seconds from the start of the process to the last row of its first frame, ours beside the empty app's."""
    ours, empty = [], []
    with world() as here:
        for _ in range(rounds + 1):
            ours.append(painted(here, [CODEWHALE], "›".encode()))
            empty.append(painted(here, [sys.executable, "-c", EMPTY], b"\x1b[40;1H"))
    del ours[0], empty[0]  # the first round finds nothing in the machine's caches
    print(f"  first paint: {statistics.median(ours):.3f} s; empty app: {statistics.median(empty):.3f} s")
    return [figure("first paint, times an empty app", FIRST_PAINT, statistics.median(ours) / statistics.median(empty))]


def ready(term: Terminal) -> None:
    """Wait until the composer stands and the session is open: its model is named."""
    term.until_raw("›".encode())
    term.until_raw(b"here/m")


def send(term: Terminal, text: str) -> int:
    """Send a message; where in the bytes it was."""
    at = len(term.raw)
    term.type(text)
    term.until_raw(text[-3:].encode(), at)
    at = len(term.raw)
    term.type("\r")
    return at


def echoes(term: Terminal, count: int, pause: float) -> list[float]:
    """Milliseconds from each key to the bytes that show it."""
    took = []
    for number in range(count):
        key = KEYS[number % len(KEYS)]
        at, begun = len(term.raw), time.monotonic()
        term.type(key)
        took.append((term.until_raw(key.encode(), at) - begun) * 1000)
        time.sleep(pause)  # a person's pace, which the stream goes on beside
    return took


def streaming(pieces: int) -> list[dict[str, Any]]:
    """CPU of an answer in pieces at 100 a second, alone; then keys typed during another."""
    with world() as here, here.open() as term:
        ready(term)
        here.model.pieces = 200
        at = send(term, "Warm up")
        term.until_raw(ENDS[0], at)
        here.model.pieces = pieces
        at, before = send(term, "Tell me"), cpu_seconds(term.child.pid)
        term.until_raw(ENDS[1], at, seconds=pieces / RATE + 60)
        spent = (cpu_seconds(term.child.pid) - before) * CHUNKS / pieces
        here.model.pieces = 1500
        at = send(term, "Once more")
        term.until_raw(b"configuration", at)
        took = echoes(term, 80, 0.12)
        print(f"  keys while streaming: median {statistics.median(took):.1f} ms, worst {max(took):.1f} ms")
        return [
            figure(f"{CHUNKS} chunks at {RATE} a second, CPU s", STREAM_CPU, spent),
            figure("key to echo while streaming, p95 ms", ECHO_MS, percentile(took, 0.95)),
        ]


def frames(term: Terminal, keys: list[bytes]) -> list[float]:
    """Milliseconds from each key to the end of the frame that it makes."""
    took = []
    for key in keys:
        at, begun = len(term.raw), time.monotonic()
        term.type(key)
        took.append((term.until_raw(FRAME_END, at) - begun) * 1000)
        time.sleep(0.05)
    return took


def long_session(messages: int) -> list[dict[str, Any]]:
    """A session of so many messages: opening it, keys, scrolling, memory."""
    with world() as here:
        session = here.long_session(messages)
        with here.open("--resume", session) as term:
            term.until_raw(f"Answer {messages // 2}:".encode(), seconds=180)
            opened = time.monotonic() - term.started
            term.until_quiet(1.0, seconds=60)
            took = echoes(term, 60, 0.05)
            term.type("\x15")
            up, down, home, end = b"\x1b[5~", b"\x1b[6~", b"\x1b[1;5H", b"\x1b[1;5F"
            scrolled = frames(term, [up] * 60 + [down] * 20 + [up] * 60)
            jumped = frames(term, [home, down, end, up] * 3)
            name = f"{messages:,} messages"
            print(f"  {name}: shown after {opened:.1f} s; a jump to an end takes {max(jumped):.0f} ms at worst")
            return [
                figure(f"{name}: key to echo, p95 ms", ECHO_MS, percentile(took, 0.95)),
                figure(f"{name}: a scrolled frame, p95 ms", SCROLL_MS, percentile(scrolled, 0.95)),
                figure(f"{name}: memory at most, MB", MEMORY_MB, memory_mb(term.child.pid)),
            ]


def flood(lines: int) -> list[dict[str, Any]]:
    """Keys typed while a command prints a line of a million characters and then as many lines as it can."""
    with world() as here, here.open() as term:
        ready(term)
        text = "e" + "\u0301" * 20 + "\u4f60" * 20
        program = f"print('x' * 1_000_000); [print(n, {text!a}) for n in range({lines})]; print('Last' + 'line')"
        (here.work / "flood.py").write_text(program)
        at = len(term.raw)
        term.type("!python3 flood.py\r")
        took = echoes(term, 40, 0.02)
        term.until_raw(b"Lastline", at, seconds=120)
        took += echoes(term, 10, 0.02)
        return [figure("key to echo in a flood of output, p95 ms", FLOOD_MS, percentile(took, 0.95))]


def long_output(lines: int) -> list[dict[str, Any]]:
    """All of a command's output: shown by a key, searched letter by letter, paged."""
    with world() as here, here.open() as term:
        ready(term)
        (here.work / "print.py").write_text(
            f"[print(f'row {{n}} of the output', 'x' * 60) for n in range({lines})]; print('Last' + 'row')"
        )
        at = len(term.raw)
        term.type("!python3 print.py\r")
        term.until_raw(b"Lastrow", at, seconds=60)
        term.until_quiet(1.0, seconds=30)
        at, begun = len(term.raw), time.monotonic()
        opened = frames(term, [b"\x0f"])
        whole = (term.until_raw(f"{lines + 1:,} lines".encode(), at) - begun) * 1000
        term.until_quiet(0.3, seconds=30)
        sought = frames(term, [b"/", *(letter.encode() for letter in f"row {lines // 2} ")])
        term.type("\r\x1b")
        term.until_quiet(0.3, seconds=30)
        paged = frames(term, [b"\x1b[6~"] * 40 + [b"\x1b[5~"] * 20 + [b"G", b"g"] * 5)
        print(f"  output of {lines:,} lines: first frame {opened[0]:.0f} ms, all of it after {whole:.0f} ms")
        name = f"output of {lines:,} lines"
        return [
            figure(f"{name}: opened, all of it there, ms", ECHO_MS, whole),
            figure(f"{name}: a letter of a search, p95 ms", ECHO_MS, percentile(sought, 0.95)),
            figure(f"{name}: a page, p95 ms", ECHO_MS, percentile(paged, 0.95)),
        ]


def main() -> int:
    """0 when every figure is within its bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", choices=[[], "paint", "stream", "flood", "long", "output"], help="(all)")
    parser.add_argument("--rounds", type=int, default=7, help="first paints of each app")
    parser.add_argument("--pieces", type=int, default=CHUNKS, help="pieces of the streamed answer")
    parser.add_argument("--messages", type=int, default=100_000, help="of the long session")
    options = parser.parse_args()
    parts = {
        "paint": lambda: first_paint(options.rounds),
        "stream": lambda: streaming(options.pieces),
        "flood": lambda: flood(100_000),
        "output": lambda: long_output(10_000),
        "long": lambda: long_session(options.messages),
    }
    found = [row for name, part in parts.items() if not options.only or name in options.only for row in part()]
    print(json.dumps(found))
    return 0 if all(row["ok"] for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
