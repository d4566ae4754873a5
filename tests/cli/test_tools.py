"""`codewhale tools` as programs read it."""

import json
from pathlib import Path

from support.program import codewhale_program

FIELDS = [
    "name",
    "canonical",
    "state",
    "in_head",
    "effects",
    "parallel",
    "approval",
    "gate",
    "since",
    "removal",
    "bytes",
    "schema",
]


def test_list_is_every_name_with_every_field(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "tools", "list", "--json")
    rows = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(set(row) >= set(FIELDS) for row in rows)
    assert [row["name"] for row in rows] == sorted(row["name"] for row in rows)
    people = codewhale_program(tmp_path, "tools", "list", "--mode", "plan")
    assert people.stdout.count("\n") == len(rows)


def test_head_is_the_bytes_of_the_tools_value(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "tools", "head")
    tools = json.loads(done.stdout)
    assert not done.stdout.endswith("\n")
    listed = json.loads(codewhale_program(tmp_path, "tools", "list", "--json").stdout)
    assert [tool["function"]["name"] for tool in tools] == [row["name"] for row in listed if row["in_head"]]
    assert codewhale_program(tmp_path, "tools", "head", "--dialect", "openai-chat").stdout == done.stdout


def test_system_is_the_system_text(tmp_path: Path) -> None:
    done = codewhale_program(tmp_path, "tools", "head", "--system")
    assert done.returncode == 0
    assert len(done.stdout) > 100
    assert not (tmp_path / "state").exists()


def test_what_there_is_not_is_said(tmp_path: Path) -> None:
    for arguments, said in (
        (["head", "--dialect", "morse"], "--dialect morse"),
        (
            ["list", "--profile", "tiny"],
            "there is no tool profile 'tiny'; it is one of default, arcee, compact, intent",
        ),
        (["head", "--profile", "tiny"], "there is no tool profile 'tiny'"),
        (["list", "--provider", "nobody"], "there is no provider 'nobody'"),
        (["list", "--mode", "zen"], "invalid choice"),
    ):
        done = codewhale_program(tmp_path, "tools", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr


def test_a_profile_is_asked_for_by_name_or_by_its_provider(tmp_path: Path) -> None:
    def names(*arguments: str) -> list[str]:
        done = codewhale_program(tmp_path, "tools", "head", *arguments)
        return [tool.get("function", tool)["name"] for tool in json.loads(done.stdout)]

    arcee = names("--profile", "arcee")
    assert len(arcee) == 10 and "exec_shell" not in arcee
    assert names("--provider", "arcee") == arcee == names("--dialect", "anthropic", "--profile", "arcee")
    assert names("--profile", "compact") != names() == names("--provider", "deepseek")
    listed = json.loads(codewhale_program(tmp_path, "tools", "list", "--json", "--provider", "arcee").stdout)
    assert [row["name"] for row in listed if row["in_head"]] == arcee


def test_a_gate_is_open_where_the_provider_has_what_it_needs(tmp_path: Path) -> None:
    for provider, opens in (("deepseek", True), ("arcee", False), ("", False)):
        arguments = ["--provider", provider] if provider else []
        rows = json.loads(codewhale_program(tmp_path, "tools", "list", "--json", *arguments).stdout)
        row = next(row for row in rows if row["name"] == "fim_edit")
        assert (row["gate"], row["open"], row["in_head"]) == ("fim", opens, False)
