"""`codewhale mcp` as it is typed: faults that name file, key and remedy; files that keep the rest; approval."""

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from support.mcpworld import SERVERS
from support.program import codewhale_program

NOTES = {"command": sys.executable, "args": [str(SERVERS / "notes.py")], "connect_timeout": 120}
# An entry, the key that is named, and words of the remedy.
FAULTY: dict[str, tuple[Any, str, str]] = {
    "list": ([1], "", "Write an object"),
    "nothing": ({}, "command", "url for an address"),
    "both": ({"command": "true", "url": "https://example.com/mcp"}, "command", "Keep command and args"),
    "line": ({"command": "npx -y some-server"}, "command", 'Write "command": "npx"'),
    "words": ({"command": "true", "args": "-y some-server"}, "args", "Write a list of texts"),
    "typo": ({"comand": "npx"}, "comand", "Write command"),
    "number": ({"command": "true", "env": {"PORT": 8080}}, "env.PORT", "Write its value in quotes"),
    "variable": ({"command": "true", "env": {"A=B": "1"}}, "env.A=B", "Use letters, digits and _"),
    "unset": ({"command": "true", "env": {"TOKEN": "${NO_SUCH_TOKEN}"}}, "env.TOKEN", "Set NO_SUCH_TOKEN"),
    "address": ({"url": "ftp://example.com"}, "url", "Write an address such as"),
    "password": ({"url": "https://me:secret@example.com/mcp"}, "url", "Put them into headers"),
    "sse": ({"url": "https://example.com/sse", "type": "sse"}, "type", "Write the streamable address"),
    "transport": ({"command": "true", "transport": "http"}, "transport", "Write stdio, or leave it out"),
    "header": ({"url": "https://example.com/mcp", "headers": {"X-Key": 7}}, "headers.X-Key", "on one line"),
    "patience": ({"command": "true", "connect_timeout": 0}, "connect_timeout", "Write seconds above 0"),
    "half": ({"command": "true", "disabled": True, "enabled": True}, "enabled", "Keep one of the two"),
    "tools": ({"command": "true", "enabled_tools": ["a"], "disabled_tools": ["a"]}, "enabled_tools", "Take it out"),
    "missing": ({"command": "no-such-program-here"}, "command", "Install it, or write its whole path"),
    "folder": ({"command": "true", "cwd": "no/such/folder"}, "cwd", "Name a folder that there is"),
    "notes ": ({"command": "true"}, "", "letters, digits"),
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir(mode=0o700)
    return tmp_path


def named(home: Path, servers: dict[str, Any], **more: Any) -> Path:
    path = home / "state" / "mcp.json"
    path.write_text(json.dumps({"servers": servers, **more}))
    return path


def test_faulty_entries_name_file_key_and_remedy_and_the_others_work(home: Path) -> None:
    path = named(home, {**{name: row for name, (row, _, _) in FAULTY.items()}, "notes": NOTES})
    (home / ".mcp.json").write_text('{"servers": {"late": {"command": "true"},}}')
    approved = codewhale_program(home, "mcp", "approve", "notes", "-y")
    assert approved.returncode == 0 and f"command line: {sys.executable}" in approved.stderr
    found = codewhale_program(home, "mcp", "validate", "--start", "--json")
    assert found.returncode == 1
    told = json.loads(found.stdout)
    for name, (_, key, remedy) in FAULTY.items():
        place = ".".join(filter(None, (f"{path}: servers", name.strip(), key)))
        lines = [line for line in told["faults"] if f"{place}: " in line]
        assert len(lines) == 1 and remedy in lines[0], (name, told["faults"])
    assert any(f"{home}/.mcp.json: file: is no JSON" in line for line in told["faults"])
    assert told["answered"] == ["notes: offers 5 tools, 1 prompts, 2 resources"]


@pytest.mark.parametrize(
    ("text", "key"),
    [("[]", "file"), ('{"servrs": {}}', "servrs"), ('{"servers": []}', "servers"),
     ('{"timeouts": {"conect": 1}}', "timeouts.conect"),
     ('{"servers": {"a": {"command": "true"}}, "mcpServers": {"a": {"command": "true"}}}', "servers.a")],
)  # fmt: skip
def test_a_file_that_is_wrong_as_a_whole(home: Path, text: str, key: str) -> None:
    (home / "state" / "mcp.json").write_text(text)
    found = codewhale_program(home, "mcp", "list")
    assert found.returncode == 1 and f"{home}/state/mcp.json: {key}: " in found.stdout


def test_two_files_with_one_name(home: Path) -> None:
    named(home, {"a b": {"command": "true"}})
    (home / ".mcp.json").write_text(json.dumps({"mcpServers": {"a_b": {"command": "false"}, "c": {"command": "true"}}}))
    found = json.loads(codewhale_program(home, "mcp", "list", "--json").stdout)
    assert [(one["name"], one["source"]) for one in found["servers"]] == [("a b", "user"), ("c", "project")]
    assert "servers.a_b: has the name of a b" in found["faults"][0]


def test_a_file_is_changed_where_it_is_meant_and_nowhere_else(home: Path) -> None:
    path = home / "state" / "mcp.json"
    path.write_text('{\n    "$schema": "x",  "mcpServers": {\n\t"one": {"command":"true",  "args": [ ]}\n  }\n}\n')
    added = codewhale_program(home, "mcp", "add", "two", "-y", "--env", "A=1", "--", "npx", "-y", "some-server")
    assert added.returncode in (0, 2), "where there is no such program it is written all the same, and not approved"
    text = path.read_text()
    assert '"$schema": "x",  "mcpServers"' in text and '"one": {"command":"true",  "args": [ ]}' in text
    assert json.loads(text)["mcpServers"]["two"] == {"command": "npx", "args": ["-y", "some-server"], "env": {"A": "1"}}
    assert codewhale_program(home, "mcp", "disable", "one").returncode == 0
    rows = json.loads(codewhale_program(home, "mcp", "list", "--json").stdout)["servers"]
    assert rows[0]["state"] == "off" and json.loads(path.read_text())["mcpServers"]["one"]["disabled"] is True
    assert codewhale_program(home, "mcp", "enable", "one").returncode == 0
    assert codewhale_program(home, "mcp", "remove", "two").returncode == 0
    assert json.loads(path.read_text()) == {"$schema": "x", "mcpServers": {"one": {"command": "true", "args": []}}}
    assert codewhale_program(home, "mcp", "remove", "two").returncode == 2
    assert codewhale_program(home, "mcp", "add", "one", "true").returncode == 2, "there is one already"


def test_a_launcher_says_what_it_fetches(home: Path) -> None:
    folder = home / "bin"
    folder.mkdir()
    for name in ("npx", "uvx", "docker"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    env = {"PATH": f"{folder}:/usr/bin:/bin"}
    lines = {
        "open": ("npx", "-y", "@scope/server", "/data"), "pinned": ("npx", "-y", "@scope/server@1.2.3"),
        "python": ("uvx", "--from", "pkg", "tool"), "image": ("docker", "run", "-i", "-e", "A", "mcp/time"),
    }  # fmt: skip
    work = home / "work"
    work.mkdir()
    for name, line in lines.items():
        shown = codewhale_program(home, "mcp", "add", name, "-y", "--", *line, env=env, cwd=work)
        fetched = next(one for one in shown.stderr.splitlines() if one.startswith("fetches: "))
        assert ("nobody has pinned" in fetched) == (name != "pinned"), fetched
        assert name != "open" or "@scope/server from registry.npmjs.org" in fetched


def test_a_token_is_kept_for_its_origin(home: Path) -> None:
    named(home, {"far": {"url": "https://example.com/mcp"}, "near": NOTES})
    kept = codewhale_program(home, "mcp", "login", "far", stdin=b"tok-123\n")
    assert kept.returncode == 0 and "tok-123" not in kept.stdout + kept.stderr
    path = home / "state" / "secrets" / "mcp.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and '"origin": "https://example.com:443"' in path.read_text()
    assert codewhale_program(home, "mcp", "login", "near", stdin=b"tok\n").returncode == 2
    assert codewhale_program(home, "mcp", "login", "far", "--remove").returncode == 0
    assert "tok-123" not in path.read_text()
