"""What holds commands on this machine, found out without our own code: what works here has to be found and used."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.program import codewhale_program

PROGRAMS = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin"
NAMESPACES = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--cap-drop", "ALL",
    "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc",
)  # fmt: skip
# Prints whether Landlock of version 6 keeps this process from writing a file, and whether a seccomp filter may ask.
KERNEL = """
import ctypes, os, platform, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
call = lambda number, *args: libc.syscall(ctypes.c_long(number), *args)
held = asks = False
seccomp = {"x86_64": 317, "aarch64": 277}.get(platform.machine())
libc.prctl(38, 1, 0, 0, 0)
if seccomp and call(444, None, ctypes.c_size_t(0), 1) >= 6:
    wanted = ctypes.create_string_buffer(struct.pack("<QQQ", 1 << 1, 0, 3), 24)
    rules = call(444, wanted, ctypes.c_size_t(24), 0)
    if rules >= 0 and call(446, rules, 0) == 0:
        try:
            open(sys.argv[1], "a")
        except PermissionError:
            held = True
    allow = ctypes.create_string_buffer(struct.pack("<HBBI", 0x06, 0, 0, 0x7FFF0000), 8)
    program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", 1, ctypes.addressof(allow)), 16)
    asks = held and call(seccomp, 1, ctypes.c_ulong(1 << 3 | 1 << 5), program) >= 0
print(held, asks)
"""


def bubblewrap_works() -> bool:
    program = shutil.which("bwrap", path=PROGRAMS)
    if program is None:
        return False
    return subprocess.run([program, *NAMESPACES, "--", "/bin/true"], capture_output=True, check=False).returncode == 0


def landlock_works(folder: Path) -> tuple[bool, bool]:
    """Whether it holds, and whether what it holds can ask for new names."""
    file = folder / "file"
    file.write_text("")
    done = subprocess.run([sys.executable, "-I", "-S", "-c", KERNEL, file], capture_output=True, text=True, check=True)
    held, asks = done.stdout.split()
    return held == "True", asks == "True"


def of_the_product(home: Path, choice: str) -> dict[str, object]:
    """What `codewhale sandbox check` finds and tries."""
    found = json.loads(codewhale_program(home, "sandbox", "check", "--json", env={"CODEWHALE_SANDBOX": choice}).stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="these are the kernel's of Linux")
def test_what_an_independent_probe_finds_working_is_found_and_holds(tmp_path: Path) -> None:
    working = {"bubblewrap": bubblewrap_works(), "landlock": landlock_works(tmp_path)[0]}
    for name in (name for name, works in working.items() if works):
        found = of_the_product(tmp_path, name)
        assert (found["mechanism"], found["ok"]) == (name, True), found
    found = of_the_product(tmp_path, "")
    assert found["mechanism"] == next((name for name, works in working.items() if works), ""), found


@pytest.mark.skipif(sys.platform != "linux", reason="these are the kernel's of Linux")
def test_where_a_filter_may_ask_a_command_that_landlock_holds_makes_new_files(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    asks = landlock_works(tmp_path)[1]
    line = ("sh", "-c", "echo made > new; echo made > .envrc")
    env = {"CODEWHALE_SANDBOX": "landlock"}
    codewhale_program(tmp_path, "sandbox", "run", "-w", str(workspace), "--", *line, env=env)
    assert os.listdir(workspace) == (["new"] if asks else [])
