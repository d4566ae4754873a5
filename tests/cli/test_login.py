"""`codewhale login` and `logout`: the key from stdin or a terminal, kept out of sight."""

import os
import select
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from support.patience import HANG
from support.program import codewhale_program, configure, environment


def test_a_key_from_stdin_is_kept_and_forgotten(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "login", "deepseek", stdin=b"sk-from-stdin\n")
    path = tmp_path / "state" / "secrets" / "keys.json"
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"The key of deepseek is stored in {path}, for api.deepseek.com only.\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for arguments in (["provider", "list", "--json"], ["doctor", "--json", "--offline"], ["config", "list"]):
        shown = codewhale_program(tmp_path, *arguments)
        assert shown.returncode == 0 and "sk-from-stdin" not in shown.stdout + shown.stderr
    assert f'"source":"{path}"' in codewhale_program(tmp_path, "doctor", "--json", "--offline").stdout
    env = {"DEEPSEEK_API_KEY": "sk-env"}
    gone = codewhale_program(tmp_path, "logout", "deepseek", env=env)
    assert (gone.returncode, gone.stdout) == (0, "The key of deepseek is deleted.\n")
    assert "still uses the key from environment DEEPSEEK_API_KEY" in gone.stderr
    again = codewhale_program(tmp_path, "logout", "deepseek")
    assert (again.returncode, again.stdout) == (1, "")


@pytest.mark.parametrize("key", [b"", b" \n", b"two words", b"two\nlines", b"sk-\xff", "sk-ü".encode(), b"sk-\x1b[m"])
def test_what_is_no_key_is_refused(tmp_path: Path, key: bytes) -> None:
    done = codewhale_program(tmp_path, "login", "deepseek", stdin=key)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "state" / "secrets").exists()


def test_what_comes_before_a_kept_key_is_told(tmp_path: Path) -> None:
    path = configure(tmp_path, '[providers.deepseek]\napi_key = "sk-table"\n')
    done = codewhale_program(tmp_path, "login", "deepseek", stdin=b"sk-1")
    assert done.stderr == f"codewhale: {path} takes precedence and is used instead\n"


def test_an_unknown_provider_or_a_keyring_that_is_not_there(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "login", "deepsek", stdin=b"sk-1")
    assert done.returncode == 2 and "did you mean deepseek?" in done.stderr
    done = codewhale_program(tmp_path, "login", "deepseek", "--keyring", stdin=b"sk-secret")
    assert done.returncode == 2 and "codewhale[keyring]" in done.stderr and "sk-secret" not in done.stderr


def test_a_key_that_is_typed_is_not_shown(tmp_path: Path) -> None:
    terminal, theirs = os.openpty()
    program = [sys.executable, "-m", "codewhale", "login", "deepseek"]
    with subprocess.Popen(
        program,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
        start_new_session=True,
    ) as child:
        os.close(theirs)
        assert child.stderr is not None
        prompt = b""
        while not prompt.endswith(b"(not shown): "):
            prompt += os.read(child.stderr.fileno(), 100) or pytest.fail(f"it ended with {prompt!r}")
        os.write(terminal, b"sk-typed-key\n")
        out, error = child.communicate(timeout=HANG)
        shown = _rest(terminal)
    os.close(terminal)
    assert prompt.startswith(b"Key of deepseek, for api.deepseek.com")
    assert child.returncode == 0 and b"is stored in" in out
    assert b"sk-typed" not in shown + out + error
    assert "sk-typed-key" in (tmp_path / "state" / "secrets" / "keys.json").read_text()


def _rest(terminal: int) -> bytes:
    """What stands on a terminal whose other end is closed."""
    try:
        return os.read(terminal, 1000) if select.select([terminal], [], [], 0)[0] else b""
    except OSError:
        return b""
