"""`codewhale doctor` as people and programs read it."""

import json
from pathlib import Path

from support.program import codewhale_program, configure


def test_json_is_one_object_without_any_secret(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "doctor", "--json", env={"DEEPSEEK_API_KEY": "sk-very-secret"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("\n") == 1
    found = json.loads(done.stdout)
    assert found["schema_version"] == 1
    assert found["workspace"] == str(tmp_path)
    assert found["config_path"] == f"{tmp_path}/state/config.toml"
    assert found["config_present"] is False
    assert found["api_key"] == {"source": "environment DEEPSEEK_API_KEY", "refused": []}
    assert all(set(check) == {"name", "status", "detail", "fix"} for check in found["checks"])
    assert "sk-very-secret" not in done.stdout
    assert not (tmp_path / "state").exists()


def test_a_failed_check_is_exit_1(tmp_path: Path) -> None:
    configure(tmp_path, "provider = ")
    done = codewhale_program(tmp_path, "doctor", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["ok"] is False
    people = codewhale_program(tmp_path, "doctor")
    assert people.returncode == 1
    assert people.stdout.splitlines()[-1] == "not ready: see FAIL above"


def test_people_read_rows(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "doctor", env={"PATH": "/nowhere"})
    assert done.returncode == 0
    assert "warn  git         not found" in done.stdout
    assert done.stdout.splitlines()[-1] == "usable; see warn above"
