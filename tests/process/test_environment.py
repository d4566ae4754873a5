"""What a child's environment holds and what it never holds."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codewhale.process.command import child_env
from codewhale.process.launch import Launch, run
from support.patience import HANG

SECRETS = [
    "DEEPSEEK_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "NPM_TOKEN",
    "MY_PASSWORD", "GOOGLE_APPLICATION_CREDENTIALS", "SSH_AUTH_SOCK", "CODEWHALE_HOME", "DATABASE_URL", "GIT_DIR",
    "LC_SECRET_TOKEN", "BASH_ENV", "ENV", "LD_PRELOAD", "PYTHONSTARTUP", "DEEPSEEK_BASE_URL", "EDITOR", "LESSOPEN",
]  # fmt: skip


def test_f1_only_listed_names_pass() -> None:
    source = dict.fromkeys(SECRETS, "canary") | {"HOME": "/home/a", "GOPATH": "/go", "LC_TIME": "C", "USER": "a"}
    env = child_env(source=source)
    assert "canary" not in env.values()
    assert (env["HOME"], env["GOPATH"], env["LC_TIME"], env["USER"]) == ("/home/a", "/go", "C", "a")


def test_f1_an_address_with_a_password_does_not_pass() -> None:
    source = {"HTTPS_PROXY": "http://me:canary@proxy:80", "HTTP_PROXY": "http://proxy:80", "GOPROXY": "https://t@host"}
    env = child_env(source=source)
    assert "HTTPS_PROXY" not in env and "GOPROXY" not in env and env["HTTP_PROXY"] == "http://proxy:80"


def test_f1_a_real_child_sees_none_of_it(tmp_path: Path) -> None:
    script = (
        "import asyncio; from codewhale.process.launch import Launch, run\n"
        "argv = ('/bin/sh', '-c', 'env; cat /proc/$PPID/environ')\n"
        f"print(asyncio.run(run(Launch(argv, {str(tmp_path)!r}, 'none'))).stdout)"
    )
    env = {**os.environ, **{name: "canary" for name in SECRETS if name not in ("LD_PRELOAD",)}}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
    assert "PATH=" in done.stdout and "canary" not in done.stdout


async def test_what_a_launch_adds_is_there(tmp_path: Path) -> None:
    done = await run(Launch(("/bin/sh", "-c", "echo $ADDED"), str(tmp_path), "none", env={"ADDED": "here"}))
    assert done.stdout == b"here\n"


@pytest.mark.parametrize(
    "given", [{}, {"LANG": "C"}, {"LC_ALL": "POSIX"}, {"LC_CTYPE": "en_US.ISO-8859-1", "LANG": "x.UTF-8"}]
)
def test_utf8_is_made_sure_of(given: dict[str, str]) -> None:
    env = child_env(source=given)
    assert "utf" in (env.get("LC_ALL") or env.get("LC_CTYPE") or env["LANG"]).lower()
    assert env["PYTHONIOENCODING"] == "utf-8"


def test_utf8_of_ones_own_is_left_alone() -> None:
    assert child_env(source={"LANG": "de_DE.UTF-8"})["LANG"] == "de_DE.UTF-8"
    assert child_env(source={"LC_ALL": "ja_JP.utf8", "LANG": "C"})["LC_ALL"] == "ja_JP.utf8"


def test_there_is_always_a_path_and_never_a_pager() -> None:
    env = child_env(source={"PAGER": "less", "GIT_PAGER": "less"})
    assert env["PATH"] and env["PAGER"] == env["GIT_PAGER"] == "cat" and env["GIT_TERMINAL_PROMPT"] == "0"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_f1_a_child_cannot_read_the_environment_this_program_was_started_with() -> None:
    program = (
        "import asyncio, ctypes, os, subprocess\nfrom codewhale.process.launch import Launch, run\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as a program of that user begins\n"
        "place = f'/proc/{os.getpid()}/environ'\n"
        "seen = subprocess.run(['cat', place], capture_output=True).stdout\n"
        "done = asyncio.run(run(Launch(('cat', place), '/', 'none', supervised=False)))\n"
        "own = bool(os.listdir('/proc/self/fd'))\n"
        "print(b'canary' in seen, b'canary' in done.stdout, b'ermission' in done.stderr, own)\n"
    )
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), "OTHER_KEY": "canary"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, cwd="/", capture_output=True, text=True, timeout=HANG
    )
    assert done.stdout.split() == ["True", "False", "True", "True"], (done.stdout, done.stderr)
