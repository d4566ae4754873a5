"""A process that has loaded the program once and forks it for each start. Run as a script, with a socket's number."""

import gc
import importlib
import json
import os
import pkgutil
import runpy
import socket
import sys


def load() -> None:
    """Import what the program may need, but for the screen and the page."""
    import codewhale

    for module in pkgutil.walk_packages(codewhale.__path__, "codewhale."):
        if not module.name.startswith("codewhale.headless.") and not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def serve(channel: socket.socket) -> list[str] | None:
    """Fork for each order and answer with its wait status. In the child: what the program is called with."""
    while True:
        data, fds, _, _ = socket.recv_fds(channel, 1 << 20, 3)
        if not data:
            return None
        pid = os.fork()
        if pid == 0:
            return become(json.loads(data), fds)
        for fd in fds:
            os.close(fd)
        channel.send(str(pid).encode())
        channel.send(str(os.waitpid(pid, 0)[1]).encode())


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
        runpy.run_module("codewhale", run_name="__main__", alter_sys=True)
