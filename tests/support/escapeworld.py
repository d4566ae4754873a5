"""What escape probes are let loose in: a workspace, things beside it that must stay as they are, and who listens."""

import atexit
import ctypes
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from codewhale.process.launch import Launch, run
from support.escapes import Probe, program
from support.plantings import lay_repositories, line, person_looks

CANARY = "sk-CANARY-7f3a9b"
PYTHON = "/usr/bin/python3"
# What the harness would run from, were it installed in the workspace.
ITSELF = ("tools/env/site-packages/mod.py", ".venv/pyvenv.cfg", ".venv/bin/python")


class World:
    """Everything around one probe. `base` lies not below /tmp: what the sandbox's own /tmp covers proves nothing."""

    def __init__(self, base: Path, repositories: bool = False) -> None:
        self.base = base
        self.repositories = repositories
        self.workspace, self.out, self.home = base / "workspace", base / "out", base / "home"
        self.mark = f"codewhale-escape-{os.getpid()}-{id(self):x}"
        self.tmp = Path("/tmp") / f"{self.mark}.secret"
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> "World":
        self._lay_out()
        self._keyboard, self._screen = os.openpty()
        os.write(self._keyboard, f"{CANARY}\n".encode())
        environ = {"KEY": CANARY, "PATH": os.defpath}
        self.victim = subprocess.Popen(
            ["sleep", "600"], start_new_session=True, cwd=self.out, env=environ, stdin=self._screen
        )
        self.tcp = self._listen(socket.AF_INET, ("127.0.0.1", 0))
        self.udp = self._listen(socket.AF_INET, ("127.0.0.1", 0), socket.SOCK_DGRAM)
        self._listen(socket.AF_UNIX, str(self.out / "socket"))
        os.utime(self.out / "socket", (1_700_000_000, 1_700_000_000))
        self._listen(socket.AF_UNIX, f"\0{self.mark}")
        self._listen(socket.AF_UNIX, f"\0{self.mark}.d", socket.SOCK_DGRAM)
        self.key = 0x5A000000 | os.getpid() & 0xFFFFFF
        libc = ctypes.CDLL(None)
        self._segment = libc.shmget(self.key, 16, 0o1600)
        self.before = self.fingerprint()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.victim.kill()
        self.victim.wait()
        for one in self._sockets:
            one.close()
        for fd in (self._keyboard, self._screen):
            os.close(fd)
        ctypes.CDLL(None).shmctl(self._segment, 0, None)
        for path in (self.tmp, *(Path(place) / self.mark for place in ("/tmp", "/var/tmp", "/dev/shm"))):
            path.unlink(missing_ok=True)
        for path in (self.workspace, self.home, *self.out.iterdir()):
            # A command that another test begins just now may be about to cover the socket: it goes with this process.
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != "socket":
                path.unlink(missing_ok=True)
        atexit.register(shutil.rmtree, self.base, ignore_errors=True)

    def _lay_out(self) -> None:
        if self.repositories:
            lay_repositories(self.workspace)
        else:
            self._lay_workspace()
        (self.out / "empty").mkdir(parents=True)
        (self.out / "file").write_text("as it was\n")
        os.utime(self.out / "file", (1_700_000_000, 1_700_000_000))
        for name in (".ssh/id_rsa", "state/secrets/keys.json"):
            path = self.home / name
            path.parent.mkdir(parents=True)
            path.write_text(CANARY)
        self.tmp.write_text(CANARY)

    def _lay_workspace(self) -> None:
        for folder in ("src", ".git/hooks", ".git/objects", ".git/refs", ".git/modules/sub"):
            (self.workspace / folder).mkdir(parents=True)
        files = {".git/HEAD": "ref: refs/heads/main\n", ".git/config": "", ".git/modules/sub/config": ""}
        for name, text in {**files, ".bashrc": "", "AGENTS.md": "", ".Envrc": "", "src/a.py": ""}.items():
            (self.workspace / name).write_text(text)
        for name in ITSELF:
            (self.workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (self.workspace / name).write_text("here\n")

    def _listen(self, family: int, address: Any, kind: int = socket.SOCK_STREAM) -> int:
        one = socket.socket(family, kind)
        if family == socket.AF_UNIX and not address.startswith("\0"):
            Path(address).unlink(missing_ok=True)
        one.bind(address)
        one.setblocking(False)
        self._sockets.append(one)
        if kind == socket.SOCK_STREAM:
            one.listen()
        return int(one.getsockname()[1]) if family == socket.AF_INET else 0

    def at(self) -> dict[str, Any]:
        """What a probe is told."""
        return {
            "workspace": str(self.workspace), "out": str(self.out), "victim": self.victim.pid, "parent": os.getpid(),
            "mark": self.mark, "tcp": self.tcp, "udp": self.udp, "socket": str(self.out / "socket"),
            "abstract": self.mark, "key": self.key, "state": str(self.home / "state"), "home": str(self.home),
            "tmp": str(self.tmp), "terminal": os.ttyname(self._screen),
        }  # fmt: skip

    def fingerprint(self) -> dict[str, Any]:
        """Everything that must stay as it is."""
        found: dict[str, Any] = {}
        for path in sorted(self.out.rglob("*")):
            about = path.lstat()
            found[str(path)] = (about.st_mode, about.st_uid, about.st_gid, about.st_mtime_ns, about.st_nlink)
            if path.is_file() and not path.is_symlink():
                found[str(path)] += (path.read_bytes(), tuple(os.listxattr(path)))
        for name in ("/tmp", "/var/tmp", "/dev/shm"):
            found[name] = (Path(name) / self.mark).exists()
        ended = self.victim.poll()
        found["victim"] = ended if ended is not None else os.getpriority(os.PRIO_PROCESS, self.victim.pid)
        found["terminal"] = termios.tcgetattr(self._screen)
        found["base"] = sorted(os.listdir(self.base))
        return found

    def heard(self) -> list[str]:
        """Whoever was reached."""
        reached = []
        for one in self._sockets:
            try:
                if one.type == socket.SOCK_STREAM:
                    one.accept()
                else:
                    one.recv(10)
                reached.append(str(one.getsockname()))
            except OSError:
                continue
        return reached

    def _text(self, name: str) -> str:
        file = self.workspace / name
        return file.read_text() if file.is_file() else ""

    def planted(self) -> list[str]:
        """What lies in the workspace and may not: in a protected place, or as a special file."""
        found = []
        if not self.workspace.is_dir():
            return ["the workspace is gone"]
        for path in self.workspace.rglob("*"):
            mode = path.lstat().st_mode
            inside = path.relative_to(self.workspace)
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)) or mode & 0o6000:
                found.append(f"{inside} mode {mode:o}")
            guarded = inside.parts[0].startswith(".") or inside.parts[0] in ("AGENTS.md", "tools")
            if guarded and stat.S_ISREG(mode) and "PWNED" in path.read_text():
                found.append(str(inside))
        links = [path for path in self.workspace.iterdir() if path.is_symlink() and path.name.startswith(".")]
        found += [name for name in ITSELF if (self.workspace / name).is_symlink() or self._text(name) != "here\n"]
        gone = [name for name in (".git/config", ".git/hooks", ".git/modules/sub/config", "AGENTS.md", ".bashrc")
                if not (self.workspace / name).exists()]  # fmt: skip
        held = [name for name in os.listdir(self.workspace) if name in (".vscode", ".mcp.json", ".idea", ".zshrc")]
        return [*found, *map(str, links), *gone, *held]


@contextmanager
def running_from(workspace: Path) -> Iterator[None]:
    """As if the harness were installed in the workspace: its environment, and a folder of its packages."""
    before = sys.prefix, list(sys.path)
    sys.prefix = str(workspace / ".venv")
    sys.path.append(str(workspace / "tools" / "env" / "site-packages"))
    try:
        yield
    finally:
        sys.prefix, sys.path[:] = before


async def try_probe(base: Path, probe: Probe, profile: str) -> list[str]:
    """Let one probe loose; what it reached, nothing when it was held."""
    with World(base, probe.planting) as world, running_from(world.workspace):
        own = "." if profile == "read-only" else str(world.workspace / "src")
        text = "" if probe.planting else program(probe).replace("{own}", own)
        python = (PYTHON, "-I", "-S", "-c", text, json.dumps(world.at()))
        mark = world.out / "PWNED"
        shell = ("/bin/bash", "-c", line(probe.code, world.workspace, mark)) if probe.planting else ()
        environ = {"HOME": str(world.home), "CODEWHALE_HOME": str(world.home / "state"), "DEEPSEEK_API_KEY": CANARY}
        os.environ.update(environ)
        done = await run(
            Launch(
                shell or python,
                str(world.workspace),
                profile=profile,
                workspace=str(world.workspace),
                allowances=("network",) if probe.network and profile != "none" else (),
                seconds=20.0,
            )
        )
        said = (done.stdout + done.stderr).decode("utf-8", "replace")
        reached = [said.strip()[:300]] if "ESCAPED" in said or CANARY in said or "SyntaxError" in said else []
        if "Traceback" in said:
            reached.append(f"the probe failed: {said[-300:]}")
        after = world.fingerprint()
        if probe.planting:
            looked = person_looks(world.workspace, mark)
            return [looked] if looked else []
        reached += [f"{key}: {world.before.get(key)} -> {after.get(key)}" for key in {*world.before, *after}
                    if world.before.get(key) != after.get(key)]  # fmt: skip
        reached += [f"heard by {name}" for name in world.heard()] + [f"planted {name}" for name in world.planted()]
        return reached + _beats(world.workspace / "src" / "beat")


def _beats(file: Path) -> list[str]:
    """A process that still writes the time is alive."""
    if not file.exists():
        return []
    first = file.read_text()
    time.sleep(0.1)
    return ["a process outlived the command"] if file.read_text() != first else []


def plain_python() -> bool:
    """Whether there is a Python that every user of this machine may run."""
    return os.access(PYTHON, os.X_OK) and not os.path.realpath(PYTHON).startswith(("/root", "/home"))


def as_ordinary(uid: int) -> None:
    """Become another user for good, with a Python of the system's to start programs by."""
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    sys.executable = os.path.realpath(PYTHON)
