"""Running the real program in a process of its own, with a home of its own."""

import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import codewhale
from support.patience import HANG

SOURCES = str(Path(codewhale.__file__).parent.parent)
SECONDS = HANG
# What Python itself heeds as it starts.
STARTING = ("PYTHON", "LANG", "LC_", "LD_", "MALLOC")


def environment(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """What the program sees: PATH, a home below `home`, nothing of the person's own. HOME is a folder that does not
    exist, for a workspace that holds the home folder is warned about."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home / "person"),
        "CODEWHALE_HOME": str(home / "state"),
        "PYTHONPATH": SOURCES,
        "PYTHONWARNINGS": "error",
        **(extra or {}),
    }


def codewhale_program(
    home: Path,
    *arguments: str,
    stdin: bytes | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """Run `codewhale ARGUMENTS...` to its end; stdin is /dev/null when None, else a pipe with these bytes. It is
    forked from a process that has loaded its modules: what is loaded when, tests of the start-up show."""
    order = json.dumps({"arguments": arguments, "cwd": str(cwd or home), "env": environment(home, env)})
    if len(order) > 100_000 or any(name.startswith(STARTING) for name in env or ()):
        return cold_program(home, *arguments, stdin=stdin, cwd=cwd, env=env)
    warm = _idle.pop() if _idle else _Warm()
    code, out, err = warm.run(order.encode(), stdin)
    _idle.append(warm)
    return subprocess.CompletedProcess(["codewhale", *arguments], code, out.decode(), err.decode())


def terminal_program(arguments: Sequence[str], environ: Mapping[str, str], cwd: str, terminal: int) -> "Forked":
    """Start `codewhale ARGUMENTS...` in a session of its own on a terminal, forked like `codewhale_program`."""
    order = json.dumps({"arguments": list(arguments), "cwd": cwd, "env": dict(environ)})
    warm = _idle.pop() if _idle else _Warm()
    started = Forked(warm, order.encode(), terminal)
    _idle.append(warm)
    return started


def cold_program(
    home: Path,
    *arguments: str,
    stdin: bytes | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """The same with an interpreter of its own from the first instruction on."""
    done = subprocess.run(
        [sys.executable, "-m", "codewhale", *arguments],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        cwd=cwd or home,
        env=environment(home, env),
        timeout=SECONDS,
        check=False,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


class _Warm:
    """One process that forks the program, one start after another."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        subprocess.run(
            [sys.executable, str(Path(__file__).with_name("warm.py")), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd="/",
            env=environment(Path("/nowhere")),
            check=True,
        )
        theirs.close()

    def order(self, order: bytes, fds: list[int]) -> None:
        """Have the program forked with these streams."""
        socket.send_fds(self._channel, [order], fds)

    def run(self, order: bytes, stdin: bytes | None) -> tuple[int, bytes, bytes]:
        """The exit code as subprocess tells it, and what was written to stdout and stderr."""
        streams = [os.open(os.devnull, os.O_RDONLY), -1] if stdin is None else list(os.pipe())
        out, out_end = os.pipe()
        err, err_end = os.pipe()
        self.order(order, [streams[0], out_end, err_end])
        for fd in (streams[0], out_end, err_end):
            os.close(fd)
        pid = int(self._channel.recv(100))
        try:
            said = _exchange({out: b"", err: b""}, streams[1], stdin or b"")
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise
        finally:
            os.close(out)
            os.close(err)
        return os.waitstatus_to_exitcode(int(self._channel.recv(100))), said[out], said[err]


class Forked:
    """A program that was forked onto a terminal, with what of `subprocess.Popen` a test asks."""

    def __init__(self, warm: _Warm, order: bytes, terminal: int) -> None:
        self._report, theirs = os.pipe()
        warm.order(order, [terminal, terminal, terminal, theirs])
        os.close(theirs)
        self._read = b""
        self.returncode: int | None = None
        while b"\n" not in self._read:
            self._more(SECONDS)
        self.pid = int(self._read.split(b"\n")[0])

    def poll(self) -> int | None:
        """The exit code, None while it runs."""
        return self._ended(0)

    def wait(self, timeout: float = SECONDS) -> int:
        """The exit code. Raises subprocess.TimeoutExpired."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired("codewhale", timeout)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def _ended(self, seconds: float) -> int | None:
        deadline = time.monotonic() + seconds
        while self.returncode is None and self._read.count(b"\n") < 2:
            if not self._more(max(0.0, deadline - time.monotonic())):
                return None
        if self.returncode is None:
            os.close(self._report)
            self.returncode = os.waitstatus_to_exitcode(int(self._read.split(b"\n")[1]))
        return self.returncode

    def _more(self, seconds: float) -> bool:
        """Read on within so many seconds; whether there was something. Raises EOFError."""
        if not select.select([self._report], [], [], seconds)[0]:
            return False
        piece = os.read(self._report, 100)
        if not piece:
            raise EOFError("whoever forks the program has ended")
        self._read += piece
        return True


_idle: list[_Warm] = []


def _exchange(said: dict[int, bytes], sink: int, stdin: bytes) -> dict[int, bytes]:
    """Write `stdin` to `sink` (none when negative) and read the others to their ends. Raises TimeoutError."""
    deadline = time.monotonic() + SECONDS
    with selectors.DefaultSelector() as selector:
        for fd in said:
            selector.register(fd, selectors.EVENT_READ)
        if sink >= 0:
            os.set_blocking(sink, False)
            selector.register(sink, selectors.EVENT_WRITE)
        while selector.get_map():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the program did not end within {SECONDS} s; so far: {said}")
            ready = {key.fd for key, _ in selector.select(1.0)}
            for fd in ready & said.keys():
                piece = os.read(fd, 1 << 16)
                said[fd] += piece
                if not piece:
                    selector.unregister(fd)
            if sink in ready:
                stdin = _fed(sink, stdin)
                if not stdin:
                    selector.unregister(sink)
                    os.close(sink)
    return said


def _fed(sink: int, stdin: bytes) -> bytes:
    """What is left to write; nothing once the reader has gone."""
    try:
        return stdin[os.write(sink, stdin[: 1 << 16]) :]
    except BrokenPipeError:
        return b""


def configure(home: Path, text: str) -> Path:
    """Write config.toml below `home`; returns its path."""
    path = home / "state" / "config.toml"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def scripted(home: Path, *turns: str) -> Path:
    """Configure a provider that plays these turns, each a JSON object; returns the script."""
    script = home / "script.jsonl"
    script.write_text("".join(turn + "\n" for turn in turns), encoding="utf-8")
    configure(
        home, f'provider = "played"\nmodel = "m"\n[providers.played]\ndialect = "scripted"\nscript = "{script}"\n'
    )
    return script
