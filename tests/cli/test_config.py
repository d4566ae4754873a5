"""`codewhale config` as people and scripts use it."""

import stat
from pathlib import Path

import pytest

from support.program import codewhale_program, configure


def test_path_is_printed_whether_or_not_it_exists(tmp_path: Path) -> None:
    assert codewhale_program(tmp_path, "config", "path").stdout == f"{tmp_path}/state/config.toml\n"
    home = {"CODEWHALE_HOME": ""}
    assert (
        codewhale_program(tmp_path, "config", "path", env=home).stdout == f"{tmp_path}/person/.codewhale/config.toml\n"
    )


def test_set_then_get(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "config", "set", "providers.mine.base_url", "http://127.0.0.1:9/v1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    got = codewhale_program(tmp_path, "config", "get", "providers.mine.base_url")
    assert got.stdout == "http://127.0.0.1:9/v1\n"
    with_origin = codewhale_program(tmp_path, "config", "get", "providers.mine.base_url", "--show-origin")
    assert with_origin.stdout == f"http://127.0.0.1:9/v1  # {tmp_path}/state/config.toml\n"
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "state" / "config.toml").stat().st_mode) == 0o600


def test_list_shows_every_value_with_its_origin(tmp_path: Path) -> None:
    configure(tmp_path, 'model = "m"\n[providers.x.headers]\nAuthorization = "Bearer sk-123"\n')
    done = codewhale_program(tmp_path, "config", "list", env={"CODEWHALE_PROVIDER": "x"})
    lines = done.stdout.splitlines()
    assert 'provider = "x"  # environment CODEWHALE_PROVIDER' in lines
    assert f'model = "m"  # {tmp_path}/state/config.toml' in lines
    assert 'providers.x.path = ""  # default' in lines
    assert not [line for line in lines if line.startswith("providers.") and not line.startswith("providers.x.")]
    assert f'providers.x.headers.Authorization = "********"  # {tmp_path}/state/config.toml' in lines
    assert "sk-123" not in done.stdout
    masked = codewhale_program(tmp_path, "config", "get", "providers.x.headers.Authorization")
    assert masked.stdout == '"********"\n'


def test_a_key_is_never_shown(tmp_path: Path) -> None:
    configure(tmp_path, "")
    assert codewhale_program(tmp_path, "config", "set", "providers.x.api_key", "sk-abcdef").returncode == 0
    for arguments in (["list"], ["get", "providers.x"], ["get", "providers.x.api_key"]):
        done = codewhale_program(tmp_path, "config", *arguments)
        assert '"********"' in done.stdout and "sk-abcdef" not in done.stdout + done.stderr


def test_a_table_can_be_got(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "config", "get", "providers.deepseek")
    assert 'providers.deepseek.api_key_env = "DEEPSEEK_API_KEY"' in done.stdout.splitlines()
    nothing = codewhale_program(tmp_path, "config", "get", "providers.unheard")
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert nothing.stderr == "codewhale: providers.unheard is not set\n"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("modle", "x", "modle is not a known key; did you mean model?"),
        ("providers.x.context_window", "lots", "must be a whole number, not text; it is 'lots'; nothing was changed"),
        ("providers.x.api_keys", "sk-1", "did you mean providers.x.api_key?"),
        ("providers", "x", "is a table"),
    ],
)
def test_a_bad_set_changes_nothing(tmp_path: Path, key: str, value: str, said: str) -> None:
    done = codewhale_program(tmp_path, "config", "set", key, value)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "state").exists()


def test_what_a_key_variable_hides_is_said(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "config", "set", "model", "x", env={"CODEWHALE_MODEL": "y"})
    assert "CODEWHALE_MODEL is set in the environment and wins" in done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("provider = ", "is not valid TOML"),
        ("provider = 3", "provider: must be text, not a whole number; it is 3"),
        ('[providers.x]\ncontext_window = "a"', "providers.x.context_window: must be a whole number, not text"),
    ],
)
def test_a_bad_file_is_one_line_and_exit_2(tmp_path: Path, text: str, said: str) -> None:
    path = configure(tmp_path, text)
    done = codewhale_program(tmp_path, "exec", "hi")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"codewhale: {path}: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_unknown_keys_and_untrusted_projects_are_notices(tmp_path: Path) -> None:
    configure(tmp_path, "tehme = 1\n")
    work = tmp_path / "work"
    (work / ".codewhale").mkdir(parents=True)
    (work / ".codewhale" / "config.toml").write_text('provider = "evil"\n')
    (work / ".env").write_text("CODEWHALE_MODEL=evil\n")
    done = codewhale_program(tmp_path, "config", "list", cwd=work)
    assert done.returncode == 0
    assert "evil" not in done.stdout
    assert f"project configuration ignored: {work}/.codewhale/config.toml is not trusted" in done.stderr
    assert "tehme is not a known key and does nothing" in done.stderr
    assert done.stderr.count("\n") == 2
