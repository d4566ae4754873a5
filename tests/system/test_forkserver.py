"""The fork server as a program: what it is sent, what it answers, and when it ends."""

import marshal
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from codewhale.system import forkserver, launcher
from support.running import running


class Server:
    """The program with the test as its harness."""

    def __init__(self) -> None:
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.settimeout(10)
        argv = (sys.executable, "-I", "-S", forkserver.__file__, str(theirs.fileno()), launcher.__file__)
        self.process = subprocess.Popen(argv, pass_fds=(theirs.fileno(),))
        theirs.close()

    def heard(self) -> list[str]:
        return self.channel.recv(4096).decode().split()

    def ask(self, folder: str, environment: dict[str, str], *command: str) -> "Launched":
        pairs = [(name.encode(), value.encode()) for name, value in environment.items()]
        words = [b"0", b"0", b"0", b"0", b"0", b"0", b"0", b"0", *(word.encode() for word in command)]
        return Launched(self.channel, marshal.dumps((folder.encode(), pairs, words)))


class Launched:
    """One request with the test's ends of its pipes."""

    def __init__(self, channel: socket.socket, data: bytes) -> None:
        payload = os.memfd_create("test")
        os.write(payload, data)
        os.lseek(payload, 0, os.SEEK_SET)
        null = os.open(os.devnull, os.O_RDWR)
        self.out, out = os.pipe()
        control, self.control = os.pipe()
        self.status, status = os.pipe()
        self.began, began = os.pipe()
        socket.send_fds(channel, [b"f"], [payload, null, out, out, control, status, began])
        for fd in (payload, null, out, control, status, began):
            os.close(fd)

    def close(self) -> None:
        for fd in (self.out, self.control, self.status, self.began):
            os.close(fd)


def everything(fd: int) -> str:
    """What comes until the other side closes."""
    found = b""
    while block := os.read(fd, 4096):
        found += block
    return found.decode()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    assert made.heard() == ["ready"]
    yield made
    made.channel.close()
    assert made.process.wait(10) == 0


def test_a_launcher_gets_its_folder_environment_and_streams(server: Server, tmp_path: Path) -> None:
    launched = server.ask(str(tmp_path), {"PATH": os.defpath, "WHALE": "blue"}, "sh", "-c", "pwd; echo $WHALE; exit 3")
    word, pid, since = server.heard()
    assert word == "forked" and int(pid) > 0 and int(since) > 0
    assert everything(launched.began) == ""
    assert everything(launched.out) == f"{tmp_path}\nblue\n"
    forked, ended = everything(launched.status).splitlines()
    assert forked.startswith("forked ") and ended == "exit 3 0"
    assert server.heard() == ["gone", pid, "0"]
    launched.close()


def test_a_folder_that_is_not_there_is_the_error_of_starting(server: Server) -> None:
    launched = server.ask("/no/such/folder", {}, "true")
    server.heard()
    assert everything(launched.began) == "2" and everything(launched.status).startswith("forked ")
    assert server.heard()[0] == "gone"
    launched.close()


def test_many_at_once_are_answered_in_turn(server: Server, tmp_path: Path) -> None:
    environment = {"PATH": os.defpath}
    launched = [server.ask(str(tmp_path), environment, "sh", "-c", f"echo {number}") for number in range(20)]
    assert [everything(one.out) for one in launched] == [f"{number}\n" for number in range(20)]
    said = [server.heard() for _ in range(40)]
    forked, gone = ([row[1] for row in said if row[0] == word] for word in ("forked", "gone"))
    assert len(set(forked)) == 20 and sorted(forked) == sorted(gone)
    for one in launched:
        one.close()


def test_it_outlives_signals_and_holds_no_end_of_a_pipe(server: Server, tmp_path: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        server.process.send_signal(number)
    launched = server.ask(str(tmp_path), {"PATH": os.defpath}, "sleep", "600")
    pid = int(server.heard()[1])
    os.close(launched.control)
    assert "exit" in everything(launched.status)
    assert server.heard() == ["gone", str(pid), "0"] and not running(pid)
    for fd in (launched.out, launched.status, launched.began):
        os.close(fd)


def test_it_ends_with_its_harness_and_what_it_forked_does_not_hang_on_it(tmp_path: Path) -> None:
    server = Server()
    server.heard()
    launched = server.ask(str(tmp_path), {"PATH": os.defpath}, "sleep", "600")
    pid = int(server.heard()[1])
    server.channel.close()
    assert server.process.wait(10) == 0 and running(pid)
    os.close(launched.control)
    assert "exit" in everything(launched.status)
    for fd in (launched.out, launched.status, launched.began):
        os.close(fd)
