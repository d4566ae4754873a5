"""What reaches a terminal: sequences in names, paths, answers, errors, titles and listings are shown as text, none is
obeyed. Each command runs as a person would start it, on a terminal of its own."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from support.patience import HANG
from support.program import codewhale_program, environment

SEQUENCES = {
    "clipboard": "\x1b]52;c;cHduZWQ=\x07",
    "title": "\x1b]0;owned\x07",
    "link": "\x1b]8;;http://x\x1b\\here\x1b]8;;\x1b\\",
    "device": "\x1bP1$r0m\x1b\\",
    "application": "\x1b_x\x1b\\",
    "screen": "\x1b[2J\x1b[6n\x1b[1;1H",
    "reset": "\x1bc",
    "c1": "\x9b2J\x9d0;owned\x9c\x90x\x9c\x85",
    "controls": "a\x08b\rc\x00d\x7fe\x0b\x0c",
    "order": "\u202eevil\u2066\u200b\U000e0041\ufeff",
    "unended": "\x1b]0;never",
}
HOSTILE = "".join(SEQUENCES.values())
PATH = HOSTILE.replace("\x00", "").replace("/", "")
# Whatever a terminal might obey, or a person not see.
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]")


def in_terminal(home: Path, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None) -> str:
    """What `codewhale ARGUMENTS...` shows on a terminal of its own, line ends as the program wrote them."""
    master, slave = pty.openpty()
    source, sink = os.pipe()
    os.write(sink, stdin)
    os.close(sink)
    command = [sys.executable, "-m", "codewhale", *arguments]
    with subprocess.Popen(
        command, cwd=home, env=environment(home, env), stdin=source if stdin else subprocess.DEVNULL, stdout=slave,
        stderr=slave,
    ) as process:  # fmt: skip
        os.close(slave)
        os.close(source)
        shown = b""
        try:
            while piece := os.read(master, 1 << 16):
                shown += piece
        except OSError:
            pass
        process.wait(HANG)
    os.close(master)
    return shown.decode().replace("\r\n", "\n")


def harmless(shown: str, *said: str) -> None:
    """Nothing in it is obeyed, the sequences are there to be seen, and so is each of `said`."""
    found = OBEYED.search(shown)
    assert found is None, shown[max(0, found.start() - 80) : found.end() + 20]
    assert [part for part in said if part not in shown] == [], shown


def state(home: Path, *turns: object, model: str = HOSTILE.replace("\x00", "")) -> None:
    """A provider that plays these turns, under names full of sequences."""
    script = home / "script.jsonl"
    script.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    folder = home / "state"
    folder.mkdir(mode=0o700, exist_ok=True)
    name, odd = quoted(model), quoted(PATH)
    (folder / "config.toml").write_text(
        f'provider = "played"\nmodel = {name}\n{odd} = 1\n[providers.played]\ndialect = "scripted"\n'
        f'script = "{script}"\n[providers.played.headers]\nX-Odd = {odd}\n'
    )


def quoted(text: str) -> str:
    """A TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


@pytest.fixture
def played(tmp_path: Path) -> Path:
    """A home after a run in which everything had a sequence in it; the run's own output was harmless."""
    calls = [
        {"name": "x" + HOSTILE, "arguments": {}},
        {"name": "read_file", "arguments": {"path": HOSTILE}},
        {"name": "read_file", "arguments": "{" + HOSTILE},
        {"name": "write_file", "arguments": {"path": PATH[-200:], "content": HOSTILE}},
        {"name": "exec_shell", "arguments": {"command": f"printf %s '{PATH}' >&2; exit 3"}},
        {"name": "exec_shell", "arguments": {"command": f": '{PATH}'", "background": True}},
        {"name": "checklist_write", "arguments": {"todos": [{"content": HOSTILE}]}},
    ]
    state(tmp_path, {"calls": calls, "text": HOSTILE}, {"text": HOSTILE, "reasoning": HOSTILE})
    harmless(in_terminal(tmp_path, "exec", "--yolo", PATH), "> exec_shell", "\\x1b]52;c;", "failed", "\\x9d0;owned")
    return tmp_path


def test_e1_listings_of_a_hostile_session(played: Path) -> None:
    harmless(in_terminal(played, "sessions", "list"), "\\x1b]52;c;")
    harmless(in_terminal(played, "sessions", "list", "--all"), "\\x1b]52;c;")
    harmless(in_terminal(played, "sessions", "list", "--json"), "\\u001b]52;c;")
    harmless(in_terminal(played, "sessions", "show", "latest"), "\\x1b]52;c;", "\\x9b2J")
    harmless(in_terminal(played, "sessions", "show", "latest", "--events"), "\\u001b]52;c;", "\\u009b2J")
    harmless(in_terminal(played, "sessions", "show", "latest", "--messages"), "\\u001b]52;c;", "\\u202e")
    harmless(in_terminal(played, "exec", "--continue", "/status"), "\\x1b]52;c;")
    harmless(in_terminal(played, "exec", "/sessions"), "\\x1b]52;c;")


def test_e1_settings_and_state_with_sequences(tmp_path: Path) -> None:
    state(tmp_path, {"text": "fine"})
    odd = tmp_path / "\x1b]0;owned\x07"
    odd.mkdir(0o700)
    (tmp_path / "state" / "config.toml").rename(odd / "config.toml")
    env = {"CODEWHALE_HOME": str(odd)}
    harmless(in_terminal(tmp_path, "config", "list", env=env), "\\x1b]0;owned", "is not a known key")
    harmless(in_terminal(tmp_path, "config", "get", "model", env=env), "\\x1b]0;owned")
    harmless(in_terminal(tmp_path, "config", "get", "providers.played.headers", env=env), "\\x1b]0;owned")
    harmless(in_terminal(tmp_path, "config", "path", env=env), "\\x1b]0;owned")
    harmless(in_terminal(tmp_path, "doctor", env=env), "\\x1b]0;owned")
    harmless(in_terminal(tmp_path, "doctor", "--json", env=env), "\\u001b]0;owned")
    harmless(in_terminal(tmp_path, "tools", "list", env=env), "exec_shell")


@pytest.mark.parametrize(
    "arguments",
    [
        (PATH,),
        ("exec", "-w", PATH, "x"),
        ("exec", "--provider", PATH, "x"),
        ("exec", "--mode", PATH, "x"),
        ("exec", "--resume", PATH, "x"),
        ("exec", "--max-turns", PATH, "x"),
        ("exec", "/" + PATH),
        ("sessions", "show", PATH),
        ("config", "get", PATH),
        ("config", "set", "providers.x.context_window", PATH),
        ("tools", "head", "--dialect", PATH),
    ],
    ids=lambda arguments: " ".join(arguments[:2]).encode("ascii", "ignore").decode()[:12].strip("\x1b"),
)
def test_e1_words_of_the_command_line(arguments: tuple[str, ...], tmp_path: Path) -> None:
    state(tmp_path, {"text": "fine"}, model="m")
    harmless(in_terminal(tmp_path, *arguments), "codewhale")


def test_e1_errors_of_models_scripts_and_patches(tmp_path: Path) -> None:
    state(tmp_path, {"text": "a", "error": {"message": HOSTILE, "kind": "server", "retryable": False}}, model="m")
    harmless(in_terminal(tmp_path, "exec", "x"), "\\x1b]52;c;")
    (tmp_path / "script.jsonl").write_text(json.dumps({"text": [HOSTILE]}) + "\n" + HOSTILE)
    harmless(in_terminal(tmp_path, "exec", "x"), "line 1")
    patch = f"--- a/{PATH}\n+++ b/{PATH}\n@@ -1 +1 @@\n-{HOSTILE}\n+x\n"
    harmless(in_terminal(tmp_path, "apply", stdin=patch.encode()), "refused")
    harmless(
        in_terminal(tmp_path, "apply", stdin=f"*** Begin Patch\n*** Add File: ../{PATH}\n+x\n".encode()), "refused"
    )
    fresh = "*** Begin Patch\n*** Add File: a\x1b]0;owned\x07.txt\n+x\n*** End Patch\n"
    harmless(in_terminal(tmp_path, "apply", stdin=fresh.encode()), "a\\x1b]0;owned\\x07.txt")


def test_e1_a_sequence_cut_in_two_between_pieces_of_an_answer(tmp_path: Path) -> None:
    state(tmp_path, {"text": "a\x1b]0;x\x07"}, {"text": "é\x9b2Jé\u202e"}, model="m")
    harmless(in_terminal(tmp_path, "exec", "x"), "a\\x1b]0;x\\x07")
    lines = in_terminal(tmp_path, "exec", "--output-format", "stream-json", "--deltas", "x")
    harmless(lines, '"text":"a\\u001b"', '"text":"]0"')


def test_e1_a_pipe_gets_the_answer_whole(tmp_path: Path) -> None:
    state(tmp_path, {"text": HOSTILE}, model="m")
    done = codewhale_program(tmp_path, "exec", "x")
    assert (done.returncode, done.stdout, done.stderr.count("\x1b")) == (0, HOSTILE + "\n", 0)
