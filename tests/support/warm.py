"""A process that has loaded the program once and forks it for each start. Run as a script, with a socket's number."""

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import socket
import sys
import termios
import threading


def load() -> None:
    """Import what the program may need, but for the screen and the page."""
    import codewhale

    for module in pkgutil.walk_packages(codewhale.__path__, "codewhale."):
        if not module.name.startswith("codewhale.headless.") and not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def serve(channel: socket.socket) -> list[str] | None:
    """Fork for each order and answer with its wait status; an order with a fourth descriptor has it written there, and
    the next one is taken at once. In the child: what the program is called with."""
    while True:
        data, fds, _, _ = socket.recv_fds(channel, 1 << 20, 4)
        if not data:
            return None
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        pid = os.fork()
        if pid == 0:
            order = json.loads(data)
            return on_terminal(channel, order, fds) if len(fds) == 4 else become(order, fds)
        for fd in fds:
            os.close(fd)
        if len(fds) < 4:
            channel.send(str(pid).encode())
            channel.send(str(os.waitpid(pid, 0)[1]).encode())


def on_terminal(channel: socket.socket, order: dict[str, object], fds: list[int]) -> list[str]:
    """Fork once more: a process that reports the number and the wait status of the other, and the other, in a session
    of its own whose terminal is its standard input; its arguments."""
    report = fds.pop()
    pid = os.fork()
    if pid:
        channel.close()
        for fd in fds:
            os.close(fd)
        os.write(report, b"%d\n" % pid)
        os.write(report, b"%d\n" % os.waitpid(pid, 0)[1])
        os._exit(0)
    os.close(report)
    os.setsid()
    fcntl.ioctl(fds[0], termios.TIOCSCTTY, 0)
    os.environ.pop("LC_CTYPE", None)  # a terminal's environment says it itself
    arguments = become(order, fds)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    return arguments


def become(order: dict[str, object], fds: list[int]) -> list[str]:
    """Take on the folder, the environment and the streams of an order; its arguments."""
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(str(order["cwd"]))
    kept = os.environ.get("LC_CTYPE")  # Python's own choice for a bare environment
    os.environ.clear()
    os.environ.update(order["env"])  # type: ignore[call-overload]
    if kept:
        os.environ["LC_CTYPE"] = kept
    sys.path[0] = os.getcwd()
    return list(order["arguments"])  # type: ignore[call-overload]


def leave(end: SystemExit) -> None:
    """End as Python does, but without taking apart what was loaded before the fork. Returns where it cannot."""
    if not isinstance(end.code, int | None):
        return
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        return
    os._exit((end.code or 0) & 0xFF)


if __name__ == "__main__":
    if os.fork():
        os._exit(0)  # whoever ends or counts the children of a test's process shall not meet this one
    load()
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as channel:
        arguments = serve(channel)
    if arguments is not None:
        sys.argv[1:] = arguments
        try:
            runpy.run_module("codewhale", run_name="__main__", alter_sys=True)
        except SystemExit as end:
            leave(end)
            raise
