"""Rounds: a model's code run as a cell, with what it prints, its variables, and its end kept within bounds."""

import ast
import builtins
import io
import linecache
import os
import signal
import sys
import threading
import time
import types

from codewhale.rlm.kernel.channel import Channel, HostGone, Interrupts, RoundEnded
from codewhale.rlm.kernel.limits import confine
from codewhale.rlm.kernel.names import KernelNames
from codewhale.rlm.kernel.source import MappedSource

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any

_KEPT = 1 << 16  # characters of head, and of tail, of what is printed
_VARIABLES = 200
_AGAIN = 0.5  # seconds until code that caught its end is ended again
_TICK, _LEAVE = 0.01, 0.5  # seconds between looks at threads that go on; what they have once their round is over
_OWN = os.path.dirname(os.path.abspath(__file__))
_POOLS = ("concurrent/futures/thread.py", "multiprocessing/pool.py")


class Printing(io.TextIOBase):
    """Keeps the beginning and the end of what is written."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self._head: list[str] = []
        self._tail: list[str] = []
        self._chars = self._held = self._ended = self.bytes = 0

    def writable(self) -> "Any":
        return True

    def write(self, text: "Any") -> "Any":
        text = text if type(text) is str else str(text)
        self.bytes += len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        room = _KEPT - self._chars
        if room > 0:
            self._head.append(text[:room])
            self._chars += min(room, len(text))
        rest = text[room:] if room > 0 else text
        if rest:
            self._tail.append(rest[-_KEPT:])
            self._held += min(len(rest), _KEPT)
            self._ended += len(rest)
            if self._held > 4 * _KEPT:
                kept = "".join(self._tail)[-_KEPT:]
                self._tail, self._held = [kept], len(kept)
        return len(text)

    def kept(self) -> "Any":
        tail = "".join(self._tail)[-_KEPT:]
        left = self._ended - len(tail)
        middle = f"\n[... {left:,} characters left out ...]\n" if left else ""
        text = "".join(self._head) + middle + tail
        return {"text": text.encode("utf-8", "replace").decode(), "bytes": self.bytes}


class KernelLoop:
    def __init__(self, path: str) -> None:
        self._interrupts = Interrupts()
        self._channel = Channel(self._interrupts)
        self._source = MappedSource(path)
        self._helpers = KernelNames(self._source, self._channel)
        self._out, self._err = Printing(), Printing()
        self._space = self._helpers.namespace
        self._space |= {"__name__": "__main__", "__builtins__": _builtins()}
        self._number = 0

    def serve(self, seal: str) -> None:
        """Rounds until the host is gone."""
        for number in (signal.SIGALRM, signal.SIGINT):
            signal.signal(number, self._end)
        sys.stdout, sys.stderr, sys.stdin = self._out, self._err, io.StringIO()
        plain = len(self._helpers.bound) if isinstance(self._helpers.bound, str) else None
        confine(seal)
        self._channel.send({"ready": {"bytes": self._source.bytes, "text": plain is not None}})
        while True:
            order = self._channel.next_order()
            done = self._round(order)
            try:
                self._channel.send(done)
            except ValueError as error:
                self._channel.send(done | {"finals": [], "error": _unsent(done["error"], error)})

    def _end(self, number: int, frame: "Any") -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        if number == signal.SIGALRM:
            self._interrupts.take(RoundEnded("timeout", f"the round reached its {self._seconds:g} seconds"))
        else:
            signal.setitimer(signal.ITIMER_REAL, _AGAIN, _AGAIN)
            self._interrupts.take(RoundEnded("cancelled", "the round was cancelled"))

    def _round(self, order: "Any") -> "Any":
        helpers, space = self._helpers, self._space
        self._number, self._seconds = order["run"], float(order["seconds"])
        self._channel.over = False
        self._out.begin()
        self._err.begin()
        helpers.finals = []
        space.update(helpers.names())
        before = {name: id(value) for name, value in space.items()}
        error = None
        try:
            signal.setitimer(signal.ITIMER_REAL, self._seconds, _AGAIN)
            self._interrupts.armed = True
            try:
                self._run(order["code"])
                while _threads(daemons=False):  # as a program ends with its threads
                    time.sleep(_TICK)
            finally:
                self._interrupts.armed = False
                signal.setitimer(signal.ITIMER_REAL, 0)
        except HostGone:
            raise
        except BaseException as raised:
            self._interrupts.armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            error = self._told(raised)
        self._interrupts.error = None
        left = self._end_threads()
        names = helpers.names()
        changed = [name for name, value in space.items() if before.get(name) != id(value) and name not in names]
        fresh = [name for name in changed if name != "_" and not name.startswith("__")][:_VARIABLES]
        done = {
            "done": self._number,
            "error": _left(error, left) if left else error,
            "threads": left,
            "stdout": self._out.kept(),
            "stderr": self._err.kept(),
            "new_vars": [
                _variable(name, space[name]) for name in fresh if not isinstance(space[name], types.ModuleType)
            ],
            "finals": helpers.finals[-50:],
        }
        return done | _memory()

    def _end_threads(self) -> int:
        """How many threads go on though the round is over."""
        if not (left := _threads()):
            return left
        self._channel.end()
        until = time.monotonic() + _LEAVE
        while (left := _threads()) and time.monotonic() < until:
            time.sleep(_TICK)
        self._channel.ended()
        return left

    def _run(self, code: str) -> None:
        name = f"<cell {self._number}>"
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        tree = ast.parse(code, name)
        last = tree.body[-1] if tree.body else None
        if isinstance(last, ast.Expr):
            tree.body.pop()
        exec(compile(tree, name, "exec"), self._space)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), self._space)
            if value is not None:
                self._space["_"] = value
                text = repr(value)
                shown = text if len(text) <= 4000 else f"{text[:4000]}... ({len(text):,} characters)"
                self._out.write(f"{shown}\n")

    def _told(self, raised: "Any") -> "Any":
        """An error as the host reads it, with the lines of the cell alone."""
        if isinstance(raised, RoundEnded):
            return {"kind": raised.kind, "message": str(raised), "traceback": ""}
        if isinstance(raised, SystemExit):
            return {"kind": "SystemExit", "message": "the code called exit; the session goes on", "traceback": ""}
        kind = type(raised).__name__
        try:
            message = str(raised)[:2000]
        except Exception:
            message = "(its text cannot be made)"
        if isinstance(raised, MemoryError):
            message = "the code took more memory than the session may; its variables stand"
        elif "expected string or bytes-like object" in message:
            message += "; SOURCE is large: use search(pattern), SOURCE.findall(pattern), or re over str(part)"
        lines = []
        if isinstance(raised, SyntaxError) and raised.filename and raised.filename.startswith("<cell"):
            lines.append(f"line {raised.lineno}: {(raised.text or '').rstrip()}")
        at = raised.__traceback__
        while at is not None:
            code = at.tb_frame.f_code
            if code.co_filename.startswith("<cell"):
                text = linecache.getline(code.co_filename, at.tb_lineno).rstrip()
                lines.append(f"line {at.tb_lineno}, in {code.co_name}: {text[:200]}")
            at = at.tb_next
        if len(lines) > 12:
            lines = [*lines[:6], f"... {len(lines) - 12} more ...", *lines[-6:]]
        return {"kind": kind, "message": message, "traceback": "\n".join(lines)}


def _threads(daemons: bool = True) -> int:
    """How many threads run something of a round, or may; those of a pool that wait for work do not."""
    main, known, count = threading.main_thread().ident, {one.ident: one for one in threading.enumerate()}, 0
    frames = sys._current_frames()
    for ident, frame in frames.items():
        files: list[str] = []
        at: Any = frame
        while ident != main and at is not None:
            files.append(at.f_code.co_filename)
            at = at.f_back
        idle = any(one.endswith(_POOLS) for one in files) and not any(map(_of_round, files))
        counts = daemons or (ident in known and not known[ident].daemon)
        count += ident != main and not idle and counts
    return count


def _of_round(file: str) -> bool:
    return file.startswith("<cell") or os.path.dirname(file) == _OWN


def _left(error: "Any", count: int) -> "Any":
    """The error of a round whose threads did not end with it."""
    message = f"{count} threads of this round went on after its end; join threads in the round that begins them"
    return _beside(error, "ThreadsLeft", message)


def _unsent(error: "Any", why: "Any") -> "Any":
    """The error of a round whose answers cannot be sent."""
    return _beside(error, "ValueError", f"what the round gave finalize was dropped, its variables stand: {why}")


def _beside(error: "Any", kind: str, message: str) -> "Any":
    """An error, or what else there is to say beside it."""
    if error is None:
        return {"kind": kind, "message": message, "traceback": ""}
    return {**error, "message": f"{error['message']}; {message}"}


def _builtins() -> "Any":
    """Python's own, but for what would wait for a person."""

    def no_input(*prompt: "Any") -> None:
        raise EOFError("there is no input here; the text is SOURCE")

    def leave(code: "str | None" = None) -> None:
        raise SystemExit(code)

    return {**vars(builtins), "input": no_input, "breakpoint": no_input, "exit": leave, "quit": leave}


def _variable(name: str, value: "Any") -> "Any":
    try:
        size = len(value)
    except Exception:
        size = 1
    kind = "str" if isinstance(value, str) else type(value).__name__[:200]
    return {"name": name[:200], "type": kind, "size": int(size)}


def _memory() -> "Any":
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    most = resource.getrlimit(resource.RLIMIT_DATA)[0]
    return {"memory": used, "memory_max": max(0, most)}


def main(path: str, seal: str) -> None:
    try:
        KernelLoop(path).serve(seal)
    except HostGone:
        return
