"""The fork server: a program of nothing of ours that has a warm interpreter, and forks a launcher from it on demand.

Run by path (`python -I -S`) with its socket and the launcher's file. It ends when the other end of the socket does;
the launchers it has forked do not: each of them has its own tie to the harness.
"""

# A request: descriptors (a file with the marshalled folder, environment and launcher arguments; stdin, stdout, stderr;
# what else the launcher inherits, in the order in which its first arguments name them), and a byte of no meaning.
# Answers: `ready` at the beginning, `forked PID TICKS` to each request in turn (PID 0: could not), `gone PID STATUS` as
# launchers end.
# ruff: noqa: SIM105  (as in the launcher: no contextlib, no `signal`, no `socket`, which import enum and more)
import _signal as signal  # type: ignore[import-not-found]
import _socket
import gc
import marshal
import os
import select
import sys

MOST_FDS = 16
STDIO = 3
PYC_HEADER = 16


def load(path: str) -> "dict[str, object]":
    """What the launcher's file defines, from its source or as compiled."""
    with open(path, "rb") as file:
        data = file.read()
    code = marshal.loads(data[PYC_HEADER:]) if path.endswith(".pyc") else compile(data, path, "exec")
    names: dict[str, object] = {"__name__": "launcher", "__file__": path}
    exec(code, names)
    return names


def preload() -> None:
    """What launchers import when they need it, imported once for all of them; what is there stays where it is."""
    for name in ("ctypes", "fcntl", "resource", "termios"):
        try:
            __import__(name)
        except ImportError:
            pass
    gc.collect()
    gc.freeze()


def receive(channel: _socket.socket) -> "list[int] | None":
    """The descriptors of the next request, not passed on to any program; None when nobody will ask any more."""
    flags = getattr(_socket, "MSG_CMSG_CLOEXEC", 0)
    try:
        data, messages, _, _ = channel.recvmsg(16, _socket.CMSG_SPACE(MOST_FDS * 4), flags)
    except OSError:
        return None
    if not data:
        return None
    found: list[int] = []
    for level, kind, block in messages:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            found += memoryview(block[: len(block) // 4 * 4]).cast("i").tolist()
    return found


def answer(channel: _socket.socket, text: str) -> None:
    """Say it; the harness may be gone."""
    try:
        channel.send(text.encode())
    except OSError:
        pass


def become(names: "dict[str, object]", fds: "list[int]") -> None:
    """In the child: the standard streams, folder and environment of the request, then the launcher itself."""
    payload, *rest = fds
    stdio, inherited = rest[:STDIO], rest[STDIO:]
    with open(payload, "rb") as file:
        folder, environment, arguments = marshal.loads(file.read())
    os.setsid()
    for number, fd in enumerate(stdio):
        os.dup2(fd, number)
    for fd in set(stdio):
        os.close(fd)
    os.environ.clear()
    os.environ.update((os.fsdecode(name), os.fsdecode(value)) for name, value in environment)
    words = [os.fsdecode(word) for word in arguments]
    words[: len(inherited)] = [str(fd) for fd in inherited]
    try:
        os.chdir(folder)
    except OSError as error:
        _, status, began = inherited
        os.write(status, f"forked {os.getpid()} 0\n".encode())
        os.write(began, str(error.errno).encode())
        return
    names["main"](words)  # type: ignore[operator]


class ForkServer:
    """One socket and the launchers forked for it."""

    def __init__(self, channel: _socket.socket, names: "dict[str, object]", wake: "tuple[int, int]") -> None:
        self.channel = channel
        self.names = names
        self.wake = wake

    def serve(self) -> None:
        """Until the harness is gone."""
        poll = select.poll()
        poll.register(self.channel.fileno(), select.POLLIN)
        poll.register(self.wake[0], select.POLLIN)
        answer(self.channel, "ready")
        while True:
            ready = dict(poll.poll())
            if self.wake[0] in ready:
                os.read(self.wake[0], 512)
                self.reap()
            if self.channel.fileno() in ready:
                fds = receive(self.channel)
                if fds is None:
                    return
                self.fork(fds)

    def fork(self, fds: "list[int]") -> None:
        """Fork a launcher, and say which it is."""
        try:
            pid = os.fork()
        except OSError:
            pid = -1
        if pid == 0:
            code = 1
            try:
                signal.set_wakeup_fd(-1)
                self.channel.close()
                for fd in self.wake:
                    os.close(fd)
                become(self.names, fds)
                code = 0
            finally:
                os._exit(code)
        for fd in fds:
            os.close(fd)
        state = self.names["stat"](pid) if pid > 0 else None  # type: ignore[operator]
        answer(self.channel, f"forked {max(pid, 0)} {state[0] if state else 0}")

    def reap(self) -> None:
        """Collect what has ended, and say so."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            answer(self.channel, f"gone {pid} {os.waitstatus_to_exitcode(status)}")


def main(args: "list[str]") -> None:
    """Serve the socket of a descriptor with the launcher of a file."""
    channel = _socket.socket(fileno=int(args[0]))
    names = load(args[1])
    preload()
    wake, waker = os.pipe()
    for fd in (wake, waker):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(waker)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    ForkServer(channel, names, (wake, waker)).serve()


if __name__ == "__main__":
    os.set_inheritable(int(sys.argv[1]), False)
    main(sys.argv[1:])
    os._exit(0)
