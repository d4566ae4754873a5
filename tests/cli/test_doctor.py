"""`codewhale doctor` as people and programs read it."""

import json
from pathlib import Path

from support.modelserver import ModelServer, closed_port, running
from support.program import codewhale_program, configure


def test_json_is_one_object_without_any_secret(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "doctor", "--json", "--offline", env={"DEEPSEEK_API_KEY": "sk-very-secret"})
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


def test_the_provider_is_asked_unless_that_is_not_wanted(tmp_path: Path) -> None:
    for port, ready in ((closed_port(), False), (0, True)):
        with running(ModelServer()) as server:
            url = f"http://127.0.0.1:{port}/v1" if port else server.url
            configure(tmp_path, f'provider = "box"\nmodel = "alpha"\n[providers.box]\nbase_url = "{url}"\n')
            done = codewhale_program(tmp_path, "doctor")
            away = codewhale_program(tmp_path, "doctor", "--offline", "--json")
            assert len(server.asked) == (1 if ready else 0)
        assert done.returncode == (0 if ready else 1) and away.returncode == 0
        assert not [check for check in json.loads(away.stdout)["checks"] if check["name"] == "answer"]
        if ready:
            assert "ok    answer      box answers; 2 models listed, " in done.stdout
        else:
            assert f"box does not answer: cannot connect to 127.0.0.1:{port}" in done.stdout
            assert "-> check that the server runs and its address is right: codewhale provider test box" in done.stdout


def test_a_rejected_key_is_told_and_never_shown(tmp_path: Path) -> None:
    with running(ModelServer(key="sk-right", mode="public")) as server:
        table = f'[providers.box]\nbase_url = "{server.url}"\napi_key_env = "BOX_KEY"\n'
        configure(tmp_path, f'provider = "box"\nmodel = "alpha"\n{table}')
        done = codewhale_program(tmp_path, "doctor", env={"BOX_KEY": "sk-quite-wrong"})
    assert done.returncode == 1 and "box rejected the key (401)" in done.stdout
    assert "-> codewhale login box" in done.stdout and "sk-quite-wrong" not in done.stdout
