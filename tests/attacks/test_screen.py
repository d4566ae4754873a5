"""Hostile text through every way to the screen of the terminal interface, judged by the bytes that reach a real
pseudo-terminal."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.hostile import HIDDEN, MARKUP, NAME, PAYLOAD, foreign
from support.machine import MAKES_FILES
from support.terminal import WARM, Terminal, environment

TABLE = f"| a | {PAYLOAD.replace('|', '')} |\n|---|---|\n| 1 | 2 |\n"
# A corner of a frame that is not the composer's.
DIALOG = re.compile("╭(?!─ agent ─)")
FAR = "echo " + " ".join(f"word{number}" for number in range(700)) + " ; touch PWNED-AT-THE-END"


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A call of the model."""
    return {"name": name, "arguments": arguments}


def question() -> dict[str, Any]:
    """A question whose every text is hostile."""
    options = [{"label": f"{label}\x1b[2J", "description": PAYLOAD[:400]} for label in ("first", "second")]
    return call(
        "request_user_input", questions=[{"header": "h\x1b[6n", "id": "q", "question": PAYLOAD, "options": options}]
    )


def lay_out(folder: Path, turns: list[dict[str, Any]]) -> tuple[Path, Path]:
    """A home whose model says these turns, and a workspace whose name and files are hostile."""
    home, work = folder / "home", folder / "wo\x1b]0;EVILTITLE\x07rk"
    home.mkdir(mode=0o700)
    work.mkdir()
    (work / NAME).write_text(f"{PAYLOAD}\n")
    script = home / "script.jsonl"
    script.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    (home / "config.toml").write_text(
        'provider = "scripted"\nmodel = "m"\n[tui]\nnotify = "off"\n[providers.scripted]\ndialect = "scripted"\n'
        f"script = {json.dumps(str(script))}\n"
    )
    identity = ("-c", "user.name=T", "-c", "user.email=t@example.invalid")
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run(["git", *identity, *words], cwd=work, check=True, capture_output=True)
    return home, work


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Any]:
    """Opens the interface with a model that says these turns."""
    opened: list[Terminal] = []

    def begin(*turns: dict[str, Any], size: tuple[int, int] = (100, 40), options: tuple[str, ...] = ()) -> Terminal:
        home, work = lay_out(tmp_path, list(turns))
        term = Terminal([*WARM, *options], environment(home), cwd=work, size=size)
        opened.append(term)
        term.sees("scripted/m")
        return term

    yield begin
    for term in opened:
        term.__exit__()


def say(term: Terminal, text: str, until: str) -> str:
    """Send a message and wait for a word of what comes of it."""
    term.type(text)
    term.sees(text)
    term.type("\r")
    return term.sees(until)


def allow(term: Terminal, key: str = "\r") -> None:
    """Answer an approval as soon as it takes answers."""
    term.until(lambda text: "Yes, once" in text and "enter answer" in text and "stop typing first" not in text)
    term.type(key)


def refuse(term: Terminal) -> None:
    """Answer an approval with a no, and no reason."""
    allow(term, "\x1b[A\r")
    term.sees("enter denies")
    term.type("\r")


def escape(term: Terminal) -> None:
    """Close the dialog that is open."""
    term.type("\x1b")
    term.until(lambda text: not DIALOG.search(text))


def test_e1_what_a_model_and_its_tools_say_is_shown_and_never_obeyed(stage: Any) -> None:
    hostile = {"content": PAYLOAD, "status": "in_progress"}
    term = stage(
        {
            "reasoning": PAYLOAD,
            "text": f"Begun {PAYLOAD}\n\n```python\n{PAYLOAD}\n```\n\n{TABLE}",
            "calls": [
                call(f"read\x1b[2J{PAYLOAD[:80]}", path="a"),
                call("read_file", path=NAME),
                call("read_file", path=PAYLOAD),
                call("checklist_write", todos=[hostile]),
                call("write_file", path="new.txt", content=PAYLOAD),
                call("exec_shell", command=f"printf '%s' '{PAYLOAD[:200]}'; cat na*"),
            ],
        },
        {"text": "Asked.", "calls": [question()]},
        {"text": "Failing.", "error": {"message": f"broken {PAYLOAD}", "kind": "auth"}},
        options=("--approval", "auto"),
    )
    say(term, "go", "first\\x1b[2J")
    term.until(lambda text: "enter answer" in text and re.search(r"your answer +([2-9]|\d\d) s", text))
    term.type("\r")
    term.sees("broken")
    term.type("\x0f")
    term.type("\x1b[5~" * 4)
    term.until_quiet()
    assert foreign(bytes(term.raw)) == []
    assert b"EVIL" in term.raw  # it was shown


def test_e1_listings_titles_jobs_and_what_a_person_types_are_made_harmless(stage: Any) -> None:
    job = call("exec_shell", command=f"printf '%s\\n' '{PAYLOAD[:150]}'; sleep 60", background=True)
    term = stage({"text": PAYLOAD, "calls": [job]}, {"text": "It runs."}, options=("--approval", "auto"))
    term.paste(f"first {PAYLOAD}")
    term.sees("EVILBOLD")
    term.type("\r")
    term.sees("It runs.")
    for keys, seen in (
        ("\x1bj", "printf"),
        ("\x1bs", "first"),
        ("\x0b", "/"),
        ("/diff\r", "EVIL"),
        ("/config\r", "provider  .*scripted"),
    ):
        term.type(keys)
        term.until(lambda text, seen=seen: DIALOG.search(text) and re.search(rf"^ .*│.*{seen}", text, re.M))
        escape(term)
    term.type("/no\x1b[Csuch\r")
    term.sees("Unknown command")
    term.type("@na")
    term.sees("\\x1b[2J")
    term.type("\x1b")
    term.type("\x15")
    term.type("!cat na*\r")
    term.until_quiet(0.6)
    assert foreign(bytes(term.raw)) == []


def test_e1_a_sequence_cut_in_two_stays_harmless(stage: Any) -> None:
    halves = "x" * 9 + "\x1b" + "]0;EVILTITLE\x07" + "y" * 17  # the script says it in four pieces, cut behind the ESC
    assert halves[:10].endswith("\x1b") and len(halves) == 40
    term = stage({"text": halves, "reasoning": halves})
    say(term, "go", "y" * 17)
    term.until_quiet()
    assert foreign(bytes(term.raw)) == []
    assert "\\x1b]0;EVILTITLE\\x07" in term.text


def test_e2_an_approval_shows_what_would_run(stage: Any) -> None:
    hidden = f"rm -r build # {HIDDEN} overwritten"
    term = stage({"calls": [call("exec_shell", command=hidden)]}, {"text": "Over."})
    say(term, "go", "rm -r build")
    escapes = ("\\u202e", "\\u200b", "\\x08", "\\x0d", "\\U000e0041", "overwritten")
    term.until(lambda text: all(shown in re.sub(r"[\s│]", "", text) for shown in escapes))
    refuse(term)
    term.sees("Over.")
    assert foreign(bytes(term.raw)) == []


def test_e2_the_end_of_a_long_command_is_seen_or_counted(stage: Any) -> None:
    term = stage({"calls": [call("exec_shell", command=FAR)]}, {"text": "Over."}, size=(80, 24))
    say(term, "go", "word0")
    term.until(lambda text: "PWNED-AT-THE-END" in text or "more lines" in text)
    assert foreign(bytes(term.raw)) == []


def test_e3_a_flood_and_a_line_without_end_leave_the_screen_alive(stage: Any) -> None:
    flood = "python3 -c \"print('x' * 1_000_000); [print(n, 'e\\u0301' * 20, '\\u4f60' * 20) for n in range(100_000)]\""
    term = stage({"text": "y" * 1_000_000}, {"calls": [call("exec_shell", command=flood)]}, {"text": "Over."},
                 options=("--approval", "auto"))  # fmt: skip
    say(term, "go", "✓")
    term.type("again\r")
    term.type("typed meanwhile")
    term.sees("typed meanwhile", "Over.")
    assert foreign(bytes(term.raw)) == []
    assert len(term.raw) < 8_000_000


def test_e4_markup_and_links_are_text(stage: Any) -> None:
    term = stage({"text": MARKUP + "\n\nThe end.", "calls": [call(MARKUP[:60], path=MARKUP)]}, {"text": "Over."})
    text = say(term, "go", "Over.")
    for shown in ("[bold red]EVILBOLD[/]", "[@click=app.leave]EVILCLICK[/]", "file:///etc/passwd"):
        assert shown in text, text
    assert b"\x1b]8;" not in term.raw and foreign(bytes(term.raw)) == []


@MAKES_FILES
def test_h3_a_key_too_many_answers_nothing_else(stage: Any, tmp_path: Path) -> None:
    calls = [call("exec_shell", command=f"rm -r {name}; touch {name}") for name in ("FIRST", "PWNED")]
    term = stage({"calls": calls}, {"text": "Over."})
    say(term, "go", "touch FIRST")
    allow(term, "\r\r\r\r")
    term.sees("touch PWNED", "stop typing first")
    term.until(lambda text: "enter answer" in text and "stop typing first" not in text)
    assert "Over." not in term.text
    (folder,) = tmp_path.glob("wo*rk")
    term.until(lambda _: (folder / "FIRST").exists())
    assert not (folder / "PWNED").exists()
    refuse(term)
    term.sees("Over.")
    assert not (folder / "PWNED").exists()
