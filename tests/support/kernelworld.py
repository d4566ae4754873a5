"""Attacks of a recursive session's code on what is around it, tried as one user under one mechanism: a program that
prints what came of each. Run with the mechanism, a user's number (0: stay who one is), a folder that is not below /tmp,
and names of attacks (none: all)."""

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import resource  # noqa: F401  (what is imported late cannot be read as another user)

from codewhale.process import launcher
from codewhale.process.confinement import CHOICE, sandbox
from codewhale.rlm.model import Answered, KernelAsk
from codewhale.rlm.process import KERNEL, Answer, KernelLost, KernelProcess
from support.escapeworld import CANARY, World, as_ordinary
from support.patience import HANG

SECONDS = 2.0
# Before each: where things are, and what makes an error of a system call's number and a success a finding.
BEGIN = """
import json, os, sys
at = json.loads({at!r})
def reach(what):
    print("ESCAPED", what)
def call(*args):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(*[ctypes.c_long(one) if isinstance(one, int) else one for one in args])
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    if result == 0 and args[0] in FORKS:
        os._exit(0)
    reach(args)
FORKS = (56, 57, 58, 435) if os.uname().machine == "x86_64" else (220, 435)
N = {{name: pair[os.uname().machine != "x86_64"] for name, pair in {numbers!r}.items()}}
"""
NUMBERS = {
    "clone": (56, 220), "clone3": (435, 435), "execve": (59, 221), "execveat": (322, 281), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "memfd_create": (319, 279), "socket": (41, 198), "socketpair": (53, 199),
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "chroot": (161, 51), "keyctl": (250, 219),
    "bpf": (321, 280), "io_uring_setup": (425, 425), "pidfd_getfd": (438, 438), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "shmget": (29, 194), "open_by_handle_at": (304, 265), "sethostname": (170, 161),
}  # fmt: skip
READS = {
    "the person's ssh key": "{home}/.ssh/id_rsa", "the keys that are kept": "{home}/state/secrets/keys.json",
    "another session's log": "{home}/state/sessions/other.jsonl", "the workspace": "{workspace}/src/secret.py",
    "a file beside the source": "{sources}/other.txt", "a file in /tmp": "{tmp}", "the users": "/etc/passwd",
    "the environment of the harness": "/proc/{parent}/environ", "its memory map": "/proc/{parent}/maps",
    "the environment of another program": "/proc/{victim}/environ", "the first process": "/proc/1/environ",
    "the mounts": "/proc/1/mountinfo", "the kernel's own way up": "/proc/self/root/etc/passwd",
}  # fmt: skip
WRITES = {
    "in /tmp": "/tmp/{mark}", "in /var/tmp": "/var/tmp/{mark}", "in /dev/shm": "/dev/shm/{mark}",
    "in /dev": "/dev/{mark}", "at the top": "/{mark}", "in the home": "{home}/{mark}",
    "in the workspace": "{workspace}/src/{mark}", "beside the workspace": "{out}/file", "in the source": "{source}",
    "in the kernel's program": "{program}/__main__.py", "in the interpreter's library": "{library}/{mark}.py",
}  # fmt: skip
ATTACKS = {
    "an endless loop": "while True: pass",
    "an endless loop that swallows all": "while True:\n try:\n  while True: pass\n except BaseException: pass",
    "a memory bomb": "kept = []\nwhile True: kept.append(bytearray(1 << 24))",
    "a memory bomb of one block": "kept = bytearray(1 << 40)",
    "a memory bomb of shared pages": (
        "import mmap\nkept = []\nwhile True:\n kept.append(mmap.mmap(-1, 1 << 26))\n"
        " kept[-1].write(b'x' * (1 << 26))"
    ),
    "a memory bomb of memory files": (
        "kept = []\nwhile True:\n fd = os.memfd_create('x')\n kept.append(fd)\n"
        " [os.write(fd, b'x' * (1 << 24)) for _ in range(64)]"
    ),
    "a fork bomb": "while True: os.fork()",
    "a thread bomb": (
        "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(2,), daemon=True).start()"
    ),
    "a gigabyte printed": "for _ in range(1 << 10): print('x' * (1 << 20))\nraise ValueError('printed')",
    "a gigabyte written to what prints": (
        "for _ in range(1 << 10): os.write(1, b'x' * (1 << 20)); os.write(2, b'x' * (1 << 10))\nraise ValueError"
    ),
    "a frame printed": (
        "frame = json.dumps({'done': 1, 'error': None}).encode()\n"
        "for fd in (1, 2): os.write(fd, len(frame).to_bytes(4, 'big') + frame)\nraise ValueError('printed')"
    ),
    "frames on every descriptor": (
        "for fd in range(3, 64):\n try: os.write(fd, b'\\0\\0\\0\\2{}')\n except OSError: pass\nraise ValueError"
    ),
    "every descriptor opened": "kept = []\nwhile True: kept.append(os.open('/dev/null', os.O_RDONLY))",
    "every descriptor closed": "os.closerange(0, 1 << 16)\nraise ValueError",
    "every pipe filled": (
        "kept = []\nwhile True:\n kept.append(os.pipe())\n os.set_blocking(kept[-1][1], False)\n"
        " os.write(kept[-1][1], b'x' * 65536)"
    ),
    "its limits raised": (
        "import resource\nfor name in ('DATA', 'AS', 'NOFILE', 'FSIZE'):\n"
        " try: resource.setrlimit(getattr(resource, f'RLIMIT_{name}'), (1 << 62, 1 << 62)); reach(name)\n"
        " except (ValueError, OSError): pass\nraise PermissionError"
    ),
    "a connection to this machine": (
        "import socket\nsocket.create_connection(('127.0.0.1', at['tcp']), 5).send(b'x'); reach('tcp')"
    ),
    "a packet": (
        "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', at['udp'])); "
        "reach('udp')"
    ),
    "a service by name": "import socket\nsocket.socket(socket.AF_UNIX).connect(at['socket']); reach('socket')",
    "a service by abstract name": (
        "import socket\nsocket.socket(socket.AF_UNIX).connect('\\0' + at['abstract']); reach('abstract')"
    ),
    "a pair of sockets": "import socket\nsocket.socketpair(); reach('pair')",
    "the home listed": "reach(os.listdir(at['home']))",
    "the machine's processes listed": "reach(os.listdir('/proc'))",
    "another program ended": "os.kill(at['victim'], 9)",
    "the harness ended": "os.kill(at['parent'], 9)",
    "its parent ended": "os.kill(os.getppid(), 9)\nraise ValueError('no effect')",
    "another program traced": "call(N['ptrace'], 16, at['victim'], 0, 0)",
    "another program's memory": "call(N['process_vm_readv'], at['victim'], 0, 0, 0, 0, 0)",
    "another program's descriptor": "call(N['pidfd_getfd'], os.pidfd_open(at['victim']), 0, 0)",
    "a shell in its place": "os.execv('/bin/sh', ['sh', '-c', 'echo ESCAPED'])",
    "its interpreter in its place": "os.execv(at['python'], [at['python'], '-c', 'print(\"ESCAPED\")'])",
    "the loader in its place": (
        "import glob\nloaders = glob.glob('/lib*/ld-*') or ['/lib/ld']\n"
        "os.execv(loaders[0], [loaders[0], at['python'], '-c', 'print(\"ESCAPED\")'])"
    ),
    "a program from memory": (
        "fd = os.memfd_create('x', 0)\nos.write(fd, b'#!/bin/sh\\necho ESCAPED\\n')\nos.execve(fd, ['x'], {})"
    ),
    "a program started": "import subprocess\nsubprocess.run(['/bin/echo', 'ESCAPED'])",
    "a program spawned": "os.posix_spawn('/bin/echo', ['echo', 'ESCAPED'], {}); reach('spawn')",
    "a shell line": "os.system('echo ESCAPED') and 1 / 0",
    "a process by vfork": "import _posixsubprocess\ncall(N['clone'], 0x4111, 0, 0, 0, 0)",
    "a process by clone": "call(N['clone'], 17, 0, 0, 0, 0)",
    "a process by clone3": (
        "import ctypes\nwanted = ctypes.create_string_buffer(64)\ncall(N['clone3'], wanted, 64)"
    ),
    "another program by number": "import ctypes\ncall(N['execve'], ctypes.c_char_p(b'/bin/true'), 0, 0)",
    "a socket by number": "call(N['socket'], 1, 1, 0)",
    "new namespaces": "call(N['unshare'], 0x10000000)",
    "another's namespaces": "call(N['setns'], 0, 0)",
    "another root": "import ctypes\ncall(N['chroot'], ctypes.c_char_p(b'/lib'))",
    "a mount": (
        "from ctypes import c_char_p\ncall(N['mount'], c_char_p(b'x'), c_char_p(b'/lib'), c_char_p(b'tmpfs'), 0, 0)"
    ),
    "the kernel's keys": "call(N['keyctl'], 0, -3, 1)",
    "a program of the kernel": "call(N['bpf'], 0, 0, 0)",
    "calls that no filter sees": "call(N['io_uring_setup'], 1, 0)",
    "shared memory by number": "call(N['shmget'], at['key'], 16, 0)",
    "another user": "os.setgroups([0]); reach('groups')",
    "a device": "os.mknod('/tmp/disk', 0o060600, os.makedev(8, 0)); reach('device')",
    "a terminal": "os.open(at['terminal'], os.O_RDWR); reach('terminal')",
    "a pipe left for others": "os.mkfifo(at['workspace'] + '/src/pipe'); reach('pipe')",
    "a mode": "os.chmod(at['source'], 0o777); reach('mode')",
    "a link": "os.link(at['source'], at['out'] + '/link'); reach('link')",
    "a removal": "os.unlink(at['source']); reach('removal')",
    **{f"read {what}": f"reach(open({path!r}.format(**at), 'rb').read(200))" for what, path in READS.items()},
    **{f"write {what}": f"open({path!r}.format(**at), 'ab').write(b'x')\nreach('it')" for what, path in WRITES.items()},
}  # fmt: skip


async def nobody(ask: KernelAsk, answer: Answer) -> None:
    for slot in range(len(ask.spans)):
        await answer(slot, Answered("[nobody]", "failed"))


class Attacked:
    """A world with a source in it, and a kernel over that which is started again whenever it was lost."""

    def __init__(self, world: World) -> None:
        self.world = world
        sources = world.base / "sources"
        sources.mkdir()
        self.source = sources / "the source.txt"
        self.source.write_text("plain text\n")
        texts = {sources / "other.txt": CANARY, world.home / "state/sessions/other.jsonl": CANARY,
                 world.workspace / "src/secret.py": CANARY}  # fmt: skip
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.at = {
            **world.at(), "source": str(self.source), "sources": str(sources), "program": KERNEL,
            "python": os.path.realpath(sys.executable), "library": os.path.dirname(os.__file__),
        }  # fmt: skip
        self.kernel: KernelProcess | None = None

    async def run(self, code: str, seconds: float = SECONDS) -> dict[str, Any]:
        """One round: its error's kind, all that it said, whether the kernel was lost."""
        if self.kernel is None or not self.kernel.alive:
            self.kernel = await KernelProcess.start(str(self.source), 11, memory=256 << 20)
        begun = time.monotonic()
        try:
            result = await self.kernel.run(code, seconds, nobody)
        except KernelLost as lost:
            await self.kernel.close()
            return {"kind": lost.error.kind, "text": lost.message, "lost": True, "seconds": time.monotonic() - begun}
        if result.threads:  # as a session does: what goes on must not meet the next round
            await self.kernel.close()
        error = f"{result.error.kind}: {result.error.message}" if result.error is not None else ""
        text = result.stdout.text + result.stderr.text + error
        kind = result.error.kind if result.error is not None else ""
        return {"kind": kind, "text": text, "lost": False, "seconds": time.monotonic() - begun}

    async def attack(self, code: str) -> dict[str, Any]:
        """One attack, and the round after it."""
        before = self.world.fingerprint()
        begin = BEGIN.format(at=json.dumps(self.at), numbers=NUMBERS)
        told = await self.run(f"{begin}\n{code}")
        after = self.world.fingerprint()
        found = [key for key in {*before, *after} if before.get(key) != after.get(key)]
        found += [*self.world.heard(), *self.world.planted()]
        found += [word for word in ("ESCAPED", CANARY) if word in told["text"]]
        if self.source.read_text() != "plain text\n" or self.source.stat().st_mode & 0o111:
            found.append("the source")
        again = await self.run("print(6 * 7)", HANG)
        if self.kernel is not None:
            await self.kernel.close()  # the next attack meets nothing of this one
            pid, started = self.kernel._process
            found += (
                ["it outlived its session"] if (launcher.stat(pid) or (0, 0, 0, False))[::3] == (started, True) else []
            )
        whole = again["text"].strip() == "42"
        return {**told, "size": len(told["text"]), "text": told["text"][-300:], "found": found, "again": whole or again}


async def tried(base: Path, names: list[str]) -> dict[str, Any]:
    with World(base) as world:
        environ = {"HOME": str(world.home), "CODEWHALE_HOME": str(world.home / "state"), "DEEPSEEK_API_KEY": CANARY}
        os.environ.update(environ)
        attacked = Attacked(world)
        return {name: await attacked.attack(code) for name, code in ATTACKS.items() if not names or name in names}


def main(mechanism: str, uid: int, base: str, *names: str) -> None:
    asyncio.run(asyncio.to_thread(str))
    os.environ[CHOICE] = mechanism
    if uid:
        assert launcher.__spec__ is not None
        launcher.__spec__.cached = None  # compiled by another Python, perhaps
        as_ordinary(uid)
    os.chdir("/")
    if sandbox().mechanism != mechanism:
        print(json.dumps({"skipped": "; ".join(one.detail for one in sandbox().tried)}))
        return
    print(json.dumps(asyncio.run(tried(Path(base) / "world", list(names)))))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
