"""Secrets: a key in the environment reaches no child and no file of the state directory, whatever its way, and other
users of the machine see nothing of that directory."""

import json
import os
import stat
from pathlib import Path

import pytest

from codewhale.protocol.events import MessageAdded
from codewhale.protocol.messages import Message, Opaque, Text
from codewhale.session.redaction import Redactor
from codewhale.testing import harness
from support.jail import call, played
from support.keys import KEYS, PEM
from support.machine import MAKES_FILES
from support.program import codewhale_program, scripted
from support.scenes import results

SECRET = 'sk-9f8e7d6c"5b4a\\39281706'
ENVIRON = {"SOME_API_KEY": SECRET, "DEEPSEEK_API_KEY": "sk-aaaabbbbccccdddd", "PATH": os.environ["PATH"]}
PIECE = 8


def pieces(secret: str) -> set[bytes]:
    """Parts of a secret, each long enough to know it by, plain and as JSON writes them."""
    forms = {secret, json.dumps(secret)[1:-1], json.dumps(json.dumps(secret))[1:-1]}
    return {form[at : at + PIECE].encode() for form in forms for at in range(len(form) - PIECE + 1)}


def leaks(folder: Path, secret: str = SECRET) -> list[str]:
    """Files below a folder that hold a part of the secret."""
    wanted = pieces(secret)
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if any(piece in path.read_bytes() for piece in wanted)]


def hidden(workspace: Path) -> None:
    """Files that hold the secret: plain, escaped, at every place around where a result is cut."""
    (workspace / "plain.txt").write_text(f"key = {SECRET}\n")
    (workspace / "data.json").write_text(json.dumps({"key": SECRET, "deep": json.dumps({"key": SECRET})}))
    for shift in range(0, len(SECRET), 3):
        (workspace / f"long{shift}.txt").write_text("\n" * shift + f"{SECRET}\n" * 190)
    (workspace / f"{SECRET[:10]}.d").mkdir()


@pytest.mark.parametrize("way", ["files", "environment", "failures"])
async def test_f2_no_key_of_any_shape_stays_anywhere(way: str, home: Path, workspace: Path) -> None:
    keys = [*KEYS.values(), PEM.split("\n")[3]]
    lines = "\n".join([f"{name.upper().replace(' ', '_')}_VALUE={key}" for name, key in KEYS.items()] + [PEM])
    environ: dict[str, str] = {}
    if way == "files":
        (workspace / "settings.txt").write_text(lines)
        (workspace / "data.json").write_text(json.dumps({"all": lines, "deep": json.dumps([lines])}))
        (workspace / "many.txt").write_text("\n".join([lines] * 40))
        calls = [call("read_file", path="settings.txt"), call("read_file", path="data.json")]
        calls += [call("exec_shell", command="cat many.txt"), call("grep_files", pattern=".*")]
    elif way == "environment":
        environ = {f"THING_{number}": key for number, key in enumerate(KEYS.values())}
        (workspace / "settings.txt").write_text("|".join(KEYS.values()))
        calls = [call("read_file", path="settings.txt")]
    else:
        loud = "".join(f"echo 'GET https://x.example.com/?q={key} X-Key: {key} {key!r}' >&2\n" for key in KEYS.values())
        (workspace / "loud.sh").write_text(f"{loud}exit 3\n")
        (workspace / "raises.py").write_text(f"raise ValueError({lines!r})\n")
        (workspace / "bad.json").write_text("{" + lines)
        calls = [call("exec_shell", command="sh loud.sh"), call("exec_shell", command="python3 raises.py")]
        calls += [call("validate_data", path="bad.json"), call("exec_shell", command="cat loud.sh", background=True)]
    async with harness(home, workspace, [{"calls": calls}, {"text": "done"}], environ) as stage:
        found = results(await stage.turn("look"))
        bodies = b"".join(stage.provider.requests)
    assert len(found) == len(calls) and "[redacted " in found[0].content
    stored = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert [key for key in keys if key.encode() in bodies or key.encode() in stored] == []


async def test_f3_a_secret_is_taken_out_wherever_it_stands_or_is_cut(home: Path, workspace: Path) -> None:
    hidden(workspace)
    reads = [call("read_file", path=path.name) for path in sorted(workspace.glob("*.*")) if path.is_file()]
    calls = [*reads, call("grep_files", pattern="key"), call("exec_shell", command="cat long[3-9].txt data.json")]
    calls += [
        call("validate_data", content=SECRET),
        call("read_file", path=SECRET),
        call("no_such_tool", key=SECRET),
        call("note", content="x " + SECRET),
    ]
    answer = {"text": f"The key is {SECRET}.", "reasoning": f"So {json.dumps(SECRET)}."}
    async with harness(home, workspace, [{"calls": calls}, answer], ENVIRON) as stage:
        found = results(await stage.turn(f"Use {SECRET} here."))
        bodies = stage.provider.requests
    assert len(found) == len(calls) and "[redacted SOME_API_KEY]" in found[0].content
    assert [number for number, body in enumerate(bodies) if any(piece in body for piece in pieces(SECRET))] == []
    assert leaks(home) == []


async def test_f3_a_tools_own_cut_leaves_no_part_of_a_secret(home: Path, workspace: Path) -> None:
    for shift in range(0, len(SECRET), 4):
        (workspace / f"dense{shift:02}.txt").write_text("a" * shift + SECRET * 9000)
        (workspace / f"line{shift:02}.txt").write_text("b" * (shift + 240) + SECRET * 40 + "\n")
    names = sorted(path.name for path in workspace.glob("*.txt"))
    calls = [call("read_file", path=name) for name in names]
    calls += [call("exec_shell", command=f"cat {name}") for name in names]
    calls += [call("grep_files", pattern=f"^{char}*.") for char in "ab"]
    calls += [call("grep_files", pattern="706$"), call("exec_shell", command="cat dense04.txt >&2; exit 3")]
    async with harness(home, workspace, [{"calls": calls}, {"text": "done"}], ENVIRON) as stage:
        found = results(await stage.turn("look"))
        bodies = stage.provider.requests
    assert sum("[redacted SOME_API_KEY]" in result.content for result in found) > len(calls) // 2
    assert [number for number, body in enumerate(bodies) if any(piece in body for piece in pieces(SECRET))] == []
    assert leaks(home) == []


async def test_f3_the_same_bytes_come_out_every_time(home: Path, workspace: Path) -> None:
    hidden(workspace)
    calls = (call("read_file", path="plain.txt"), call("read_file", path="data.json"))
    first = await played(home, workspace, *calls, environ=ENVIRON)
    second = await played(home, workspace, *calls, environ=dict(reversed(ENVIRON.items())))
    assert [result.content for result in first] == [result.content for result in second]
    assert json.loads(json.loads(first[1].content)["deep"]) == {"key": "[redacted SOME_API_KEY]"}


def test_f3_what_a_provider_signed_stays_as_it_is() -> None:
    part = Opaque("sample", json.dumps({"signature": "c2lnbmF0dXJl" * 40, "at": 1.0}))
    said = MessageAdded(Message("assistant", (part, Text(SECRET, source="model"))))
    clean = Redactor(ENVIRON).event(said)
    assert isinstance(clean, MessageAdded)
    assert clean.message.parts == (part, Text("[redacted SOME_API_KEY]", source="model"))


def test_f4_the_state_directory_is_private_whatever_the_umask(tmp_path: Path) -> None:
    scripted(tmp_path, '{"calls":[{"name":"exec_shell","arguments":{"command":"seq 9999"}}]}', '{"text":"done"}')
    state = tmp_path / "state"
    (state / "config.toml").chmod(0o600)
    before = os.umask(0)
    try:
        done = codewhale_program(tmp_path, "exec", "--auto", "hi")
        assert codewhale_program(tmp_path, "config", "set", "model", "m").returncode == 0
        assert codewhale_program(tmp_path, "sessions", "list").returncode == 0
    finally:
        os.umask(before)
    assert done.returncode == 0, done.stderr
    wide = {
        str(path): oct(stat.S_IMODE(path.stat().st_mode))
        for path in (state, *state.rglob("*"))
        if stat.S_IMODE(path.stat().st_mode) not in ((0o700,) if path.is_dir() else (0o600, 0o400))
    }
    assert wide == {} and list(state.rglob("*.jsonl")) + list((state / "artifacts").rglob("*")) != []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_f4_a_planted_state_directory_is_not_used(tmp_path: Path) -> None:
    scripted(tmp_path, '{"text":"planted"}')
    os.chown(tmp_path / "state", 12345, 12345)
    for command in (["exec", "hi"], ["sessions", "list"], ["config", "list"], ["config", "set", "model", "x"]):
        done = codewhale_program(tmp_path, *command)
        assert (done.returncode, done.stdout) == (2, "") and "belongs to user 12345" in done.stderr


@MAKES_FILES
async def test_f1_no_tool_hands_a_key_to_what_it_runs(
    home: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SOME_API_KEY", "DEEPSEEK_API_KEY", "GITHUB_TOKEN", "MY_SECRET", "PGPASSWORD", "AWS_ACCESS_KEY_ID"):
        monkeypatch.setenv(name, "hunter2hunter2")
    (workspace / "Makefile").write_text("test:\n\t@env > made.txt\n")
    check = {"name": "t", "program": "sh", "args": ["-c", "env > checked.txt"]}
    calls = [call("exec_shell", command="env > shell.txt"), call("run_tests"), call("run_verifiers", commands=[check])]
    await played(home, workspace, *calls, environ=dict(os.environ))
    seen = "".join((workspace / name).read_text() for name in ("shell.txt", "made.txt", "checked.txt"))
    assert "PATH=" in seen and "hunter2" not in seen and "API_KEY" not in seen


async def test_f3_what_stands_for_a_secret_is_never_written_over_it(home: Path, workspace: Path) -> None:
    key = KEYS["github"]
    text = f"name: x\ntoken: {key}\nold: {SECRET}\n"
    (workspace / "settings.txt").write_text(text)
    seen = "name: y\ntoken: [redacted GitHub token]\nold: [redacted SOME_API_KEY]\n"
    calls = [
        call("read_file", path="settings.txt"),
        call("write_file", path="settings.txt", content=seen),
        call("write_file", path="sample.txt", content=seen),
        call("edit_file", path="settings.txt", search="name: x", replace="name: z"),
    ]
    found = await played(home, workspace, *calls, environ=ENVIRON)
    assert [result.ok for result in found] == [True, False, True, True]
    assert "the secret would be lost" in found[1].content
    assert (workspace / "settings.txt").read_text() == text.replace("name: x", "name: z")
    again = await played(
        home, workspace, call("write_file", path="sample.txt", content=seen + "more\n"), environ=ENVIRON
    )
    assert again[0].ok
