"""Sub-agents on a real terminal: a line each, their transcripts, their questions, and the key that stops them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codewhale.lib.clock import SystemClock
from codewhale.protocol.events import ChildClosed, Event
from codewhale.session.store import SessionStore
from support.taskserver import TaskServer, call, serving
from support.terminal import WARM, Terminal, environment

ESCAPE, ENTER = "\x1b", "\r"


def opening(*names: str, role: str = "explore") -> dict[str, Any]:
    calls = [("agent_open", {"prompt": f"Look-{name} at a.txt", "role": role, "name": name}) for name in names]
    return {"calls": calls}


LOOK = [call("read_file", path="a.txt"), {"text": "SUMMARY: it says one\n\nCHANGES: none", "hold": "end"}]


class Desk:
    """The program on a terminal, its model on loopback."""

    def __init__(self, folder: Path, model: TaskServer, term: Terminal) -> None:
        self.folder, self.model, self.term = folder, model, term

    def events(self) -> list[Event]:
        store = SessionStore(str(self.folder / "home"), SystemClock())
        return [envelope.event for envelope in store.read(store.resolve("latest"))]

    def recorded(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events() if isinstance(event, kind)]

    def until_recorded(self, kind: type[Event], count: int = 1) -> list[Any]:
        self.term.until(lambda text: len(self.recorded(kind)) >= count)
        return self.recorded(kind)


Opener = Callable[..., Any]


@pytest.fixture
def on_terminal(tmp_path: Path) -> Iterator[Opener]:
    @contextmanager
    def opened(
        tasks: dict[str, Any], more: str = "", size: tuple[int, int] = (100, 36), **environ: str
    ) -> Iterator[Desk]:
        (tmp_path / "work").mkdir()
        (tmp_path / "work" / "a.txt").write_text("one\n")
        with serving(tasks) as model:
            model.configure(tmp_path / "home", more)
            env = {**environment(tmp_path / "home"), **environ}
            with Terminal(WARM, env, cwd=tmp_path / "work", size=size) as term:
                term.sees("tasks/m")
                yield Desk(tmp_path, model, term)

    yield opened


def test_a_line_for_each_that_settles_with_its_summary(on_terminal: Opener) -> None:
    tasks = {"Start": [opening("scout", "guide"), {"text": "Opened both."}, {"text": "Read."}]}
    with on_terminal({**tasks, "Look-scout": LOOK, "Look-guide": LOOK}) as desk:
        term = desk.term
        term.type(f"Start{ENTER}")
        term.sees("Opened both.", "2 agents run", "esc to stop")
        term.sees("agent scout (explore)", "Reading a.txt", "agent guide (explore)")
        desk.model.go_on("end")
        term.sees("✓ agent scout (explore) it says one · completed", "✓ agent guide (explore) it says one · completed")
        term.until(lambda text: "agents run" not in text and "scout reported to the model" in text)
        assert "subagent_done" not in term.text
        term.type("/rewind" + ENTER)
        term.sees("Go back to a message", "› Start", "1 message and its")
        assert "reported" not in "".join(line for line in term.text.splitlines() if "›" in line)


def test_escape_stops_the_turn_and_then_the_agents(on_terminal: Opener) -> None:
    start = [opening("scout", "guide"), {"text": "Too late.", "hold": "turn"}]
    with on_terminal({"Start": start, "Look-scout": LOOK, "Look-guide": LOOK}) as desk:
        term = desk.term
        term.type(f"Start{ENTER}")
        term.sees("agent scout (explore)", "Reading a.txt", "agent guide (explore)")
        term.type(ESCAPE)
        term.sees("you stopped it", "2 agents run", "esc to stop")
        assert desk.recorded(ChildClosed) == []
        # With words in the composer the key puts them aside.
        term.type("half a thought")
        term.type(ESCAPE)
        term.sees("draft stashed", "2 agents run")
        term.type(ESCAPE)
        ends = desk.until_recorded(ChildClosed, 2)
        assert {one.status for one in ends} == {"cancelled"}
        term.until(lambda text: "agents run" not in text)
        term.sees("■ agent scout (explore)", "· stopped")
        term.type(ESCAPE)
        term.sees("Esc again: go back to an earlier message")


def test_their_questions_stand_where_the_person_is_one_after_another(on_terminal: Opener) -> None:
    def asks(name: str) -> list[Any]:
        return [call("exec_shell", command=f"curl http://{name}.example/"), {"text": "SUMMARY: asked"}]

    tasks = {"Start": [opening("one", "two", role="general"), {"text": "Opened both."}]}
    with on_terminal({**tasks, "Look-one": asks("one"), "Look-two": asks("two")}) as desk:
        term = desk.term
        term.type(f"Start{ENTER}")
        term.sees("Open this sub-agent?", "name: one", "may: read files, change files, run commands, use the network")
        term.sees("each of its calls is checked like one of this session", "at most: 200 steps, 30 min", "› Yes, once")
        term.sees("enter answer")
        term.type(ENTER)
        term.until(lambda text: "enter answer" in text and ("name: two" in text or "general one asks" in text))
        early = "name: two" not in term.text  # the first agent asks before the second one is opened
        if not early:
            term.type(ENTER)
            term.sees("Opened both.")
        term.sees("general one asks: Run this command?", "1 of 2", "no, and stop this agent")
        term.sees("Waiting for your approval", "enter answer")
        # One that is stopped asks no more, and the next question stands in its place.
        term.type("\x1bg")
        term.sees("Agents · 1 running" if early else "Agents · 2 running")
        term.type("xx")
        term.sees("one was stopped.")
        term.type(ESCAPE)
        if early:
            term.sees("name: two", "enter answer")
            term.type(ENTER)
        term.until(lambda text: "general two asks: Run this command?" in text and "1 of 2" not in text)
        term.sees("enter answer")
        term.type(ENTER)
        desk.until_recorded(ChildClosed, 2)
        assert {one.status for one in desk.recorded(ChildClosed)} == {"cancelled", "completed"}
        term.until(lambda text: "Waiting for your approval" not in text and "agent runs" not in text)


@pytest.mark.parametrize(
    ("columns", "language", "running", "over"),
    [
        (40, "en", ["◐ agent scout Reading a.txt"], ["✓ agent scout it says one · completed"]),
        (
            80,
            "en",
            ["◐ agent scout (explore) Reading a.txt", "1 step", "tokens"],
            ["it says one · completed", "2 steps"],
        ),
        (
            120,
            "zh_CN",
            ["◐ 子代理 scout (explore) Look-scout at a.txt — 正在读取 a.txt"],
            ["it says one · 已完成", "2 步"],
        ),
    ],
)
def test_the_line_of_an_agent_at_each_width(
    on_terminal: Opener, columns: int, language: str, running: list[str], over: list[str]
) -> None:
    tasks = {"Start": [opening("scout"), {"text": "Opened."}], "Look-scout": LOOK}
    lang = {"LANG": f"{language}.UTF-8", "LC_ALL": f"{language}.UTF-8", "NO_COLOR": "1"}
    with on_terminal(tasks, size=(columns, 30), **lang) as desk:
        desk.term.type(f"Start{ENTER}")
        desk.term.sees("Opened.", *running)
        desk.model.go_on("end")
        desk.term.sees(*over)


def test_a_transcript_grows_while_it_is_read(on_terminal: Opener) -> None:
    look = [LOOK[0], {**call("list_dir", path="."), "hold": "more"}, *LOOK[1:]]
    tasks = {"Start": [opening("scout"), {"text": "Opened."}], "Look-scout": look}
    with on_terminal(tasks, size=(100, 40)) as desk:
        term = desk.term
        term.type(f"Start{ENTER}")
        term.sees("Opened.", "Reading a.txt")
        term.type(f"/agents{ENTER}")
        term.sees("Agents · 1 running", "┃ Look-scout at a.txt", "Read a.txt")
        term.type(ENTER)
        term.sees("Agents · scout · running")
        desk.model.go_on("more")
        term.sees("listed . (1 entry)")
        desk.model.go_on("end")
        term.sees("Agents · scout · completed", "SUMMARY: it says one")
        term.type(ESCAPE)
        term.until(lambda text: "scout · completed" not in text)
        term.type("i")
        term.sees("enter send a message")
        term.type(f"Once more{ENTER}")
        term.sees("Sent to scout.")
        desk.until_recorded(ChildClosed, 2)
