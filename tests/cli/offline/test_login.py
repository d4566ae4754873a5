"""A key kept for the host its provider has, and forgotten again."""

from pathlib import Path

import pytest

from codewhale.app.routes import open_routes
from codewhale.app.settings import open_config
from codewhale.cli.offline.login import log_in, log_out, login_host
from codewhale.protocol.errors import ConfigError

X = '[providers.x]\nbase_url = "https://x.example:8443/v1"\n'


def used(home: Path) -> str:
    return open_routes(str(home), open_config(str(home), str(home), {}, {}), {}).key("x").value


def test_a_kept_key_is_used_until_it_is_forgotten(home: Path) -> None:
    (home / "config.toml").write_text(X)
    assert login_host(str(home), {}, "x") == "x.example:8443"
    kept = log_in(str(home), {}, "x", "sk-1")
    assert (kept.place, kept.host, kept.wins) == (f"{home}/secrets/keys.json", "x.example:8443", "")
    assert used(home) == "sk-1"
    log_in(str(home), {}, "x", "sk-2")
    assert used(home) == "sk-2"
    assert log_out(str(home), {}, "x") == (True, "")
    assert used(home) == ""
    assert log_out(str(home), {}, "x") == (False, "")


def test_a_key_that_comes_before_it_is_told(home: Path) -> None:
    (home / "config.toml").write_text(X + 'api_key_env = "X_KEY"\n')
    assert log_in(str(home), {"X_KEY": "sk-variable"}, "x", "sk-1").wins == "environment X_KEY"
    assert log_out(str(home), {"X_KEY": "sk-variable"}, "x") == (True, "environment X_KEY")


def test_a_key_follows_its_provider_only_by_a_new_login(home: Path) -> None:
    (home / "config.toml").write_text(X)
    log_in(str(home), {}, "x", "sk-1")
    (home / "config.toml").write_text(X.replace("x.example", "y.example"))
    assert used(home) == ""
    log_in(str(home), {}, "x", "sk-1")
    assert used(home) == "sk-1"


def test_a_provider_that_is_gone_can_still_be_forgotten(home: Path) -> None:
    (home / "config.toml").write_text(X)
    log_in(str(home), {}, "x", "sk-1")
    (home / "config.toml").write_text("")
    assert log_out(str(home), {}, "x") == (True, "")
    with pytest.raises(ConfigError, match="there is no provider 'x'"):
        log_out(str(home), {}, "x")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("nobody", "", "there is no provider 'nobody'"),
        ("scripted", "", "has no base_url"),
        ("x", '[providers.x]\nbase_url = "http://x.example/v1"\n', "not encrypted"),
    ],
)
def test_where_no_key_could_be_sent_none_is_kept(home: Path, name: str, text: str, said: str) -> None:
    (home / "config.toml").write_text(text)
    for refused in (lambda: login_host(str(home), {}, name), lambda: log_in(str(home), {}, name, "sk-1")):
        with pytest.raises(ConfigError, match=said):
            refused()
    assert not (home / "secrets").exists()
