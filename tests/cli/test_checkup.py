"""`codewhale doctor` on healthy and on broken homes."""

import json
from pathlib import Path
from typing import Any

from support.program import codewhale_program, configure, scripted


def doctor(home: Path, **env: str) -> tuple[int, dict[str, Any]]:
    done = codewhale_program(home, "doctor", "--json", env=env)
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1
    return done.returncode, json.loads(done.stdout)


def row(found: dict[str, Any], name: str) -> dict[str, str]:
    return next(check for check in found["checks"] if check["name"] == name)


def test_a_fresh_home_is_usable(tmp_path: Path) -> None:
    code, found = doctor(tmp_path)
    assert code == 0
    assert found["schema_version"] == 1
    assert found["config_path"] == f"{tmp_path}/state/config.toml"
    assert found["config_present"] is False
    assert found["workspace"] == str(tmp_path)
    assert (found["provider"], found["model"]) == ("deepseek", "deepseek-v4-pro")
    assert found["api_key"] == {"source": "missing"}
    assert row(found, "sandbox")["status"] == "warn"
    assert row(found, "api_key")["fix"] == "export DEEPSEEK_API_KEY=..."
    for check in found["checks"]:
        assert set(check) == {"name", "status", "detail", "fix"}
        assert check["status"] in ("ok", "warn", "fail")
        assert check["status"] != "fail"
    assert not (tmp_path / "state").exists()


def test_a_key_is_found_and_never_shown(tmp_path: Path) -> None:
    _, found = doctor(tmp_path, DEEPSEEK_API_KEY="sk-very-secret")
    assert found["api_key"] == {"source": "environment DEEPSEEK_API_KEY"}
    assert "sk-very-secret" not in json.dumps(found)
    assert (
        "sk-very-secret" not in codewhale_program(tmp_path, "doctor", env={"DEEPSEEK_API_KEY": "sk-very-secret"}).stdout
    )


def test_a_provider_without_a_key_needs_none(tmp_path: Path) -> None:
    scripted(tmp_path, '{"text":"x"}')
    _, found = doctor(tmp_path)
    assert found["api_key"] == {"source": "not needed"}
    assert row(found, "provider")["status"] == "ok"


def test_what_cannot_work_fails(tmp_path: Path) -> None:
    path = configure(tmp_path, "provider = ")
    code, found = doctor(tmp_path)
    assert code == 1
    assert row(found, "config")["status"] == "fail"
    assert row(found, "config")["fix"] == f"edit {path}"
    configure(tmp_path, 'provider = "nobody"')
    code, found = doctor(tmp_path)
    assert (code, row(found, "provider")["status"]) == (1, "fail")
    configure(tmp_path, '[providers.deepseek]\nbase_url = "http://example.com"\n')
    code, found = doctor(tmp_path)
    assert (code, row(found, "provider")["status"]) == (1, "fail")


def test_a_home_that_is_open_to_others_or_no_folder(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o755)
    _, found = doctor(tmp_path)
    assert row(found, "home")["status"] == "warn"
    assert row(found, "home")["fix"] == f"chmod 700 {tmp_path}/state"
    (tmp_path / "file").write_text("")
    code, found = doctor(tmp_path, CODEWHALE_HOME=str(tmp_path / "file"))
    assert code == 1
    assert row(found, "home")["status"] == "fail"


def test_people_read_rows(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "doctor", env={"PATH": "/nowhere"})
    assert done.returncode == 0
    assert "warn  git         not found" in done.stdout
    assert done.stdout.splitlines()[-1] == "usable; see warn above"
