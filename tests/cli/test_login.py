"""`codewhale login` and `logout`: the key from stdin, kept out of sight."""

import stat
from pathlib import Path

import pytest

from support.program import codewhale_program, configure


def test_a_key_from_stdin_is_kept_and_forgotten(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "login", "deepseek", stdin=b"sk-from-stdin\n")
    path = tmp_path / "state" / "secrets" / "keys.json"
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"The key of deepseek is kept in {path}, for api.deepseek.com alone.\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for arguments in (["provider", "list", "--json"], ["doctor", "--json"], ["config", "list"]):
        shown = codewhale_program(tmp_path, *arguments)
        assert shown.returncode == 0 and "sk-from-stdin" not in shown.stdout + shown.stderr
    assert f'"source":"{path}"' in codewhale_program(tmp_path, "doctor", "--json").stdout
    env = {"DEEPSEEK_API_KEY": "sk-env"}
    gone = codewhale_program(tmp_path, "logout", "deepseek", env=env)
    assert (gone.returncode, gone.stdout) == (0, "The key of deepseek is forgotten.\n")
    assert "still asked with the key from environment DEEPSEEK_API_KEY" in gone.stderr
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
    assert done.stderr == f"codewhale: {path} comes before it and is used instead\n"


def test_an_unknown_provider_or_a_keyring_that_is_not_there(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "login", "deepsek", stdin=b"sk-1")
    assert done.returncode == 2 and "did you mean deepseek?" in done.stderr
    done = codewhale_program(tmp_path, "login", "deepseek", "--keyring", stdin=b"sk-secret")
    assert done.returncode == 2 and "codewhale[keyring]" in done.stderr and "sk-secret" not in done.stderr
