"""The session line by line: what is typed, what is printed, what is asked."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from codewhale.display.words import Words
from codewhale.headless.plain import Plain, PlainOptions
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import OpenSession
from codewhale.testing import harness
from support.machine import MAKES_FILES
from support.patience import HANG


class Typed:
    """A person at a terminal, or a pipe: lines that come when they are given."""

    def __init__(self, is_terminal: bool) -> None:
        self.is_terminal = is_terminal
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()

    def type(self, *lines: str | None) -> None:
        """Give lines; None is the end."""
        for line in lines:
            self._lines.put_nowait(line)

    async def line(self) -> str | None:
        """The next one."""
        return await self._lines.get()

    def remember(self, lines: Sequence[str]) -> None:
        """Nothing is offered."""

    def complete(self, offer: Callable[[str], Sequence[str]]) -> None:
        """Nothing is completed."""


class Paper:
    """What was printed."""

    is_terminal = False

    def __init__(self) -> None:
        self.text = ""

    async def write(self, text: str) -> None:
        """Keep it."""
        self.text += text

    async def has(self, text: str, seconds: float = HANG) -> str:
        """Wait until it is there; all of what was printed."""
        deadline = time.monotonic() + seconds
        while text not in self.text:
            assert time.monotonic() < deadline, f"{text!r} never came:\n{self.text}"
            await asyncio.sleep(0.005)
        return self.text


class Sitting:
    """One run of the plain interface."""

    def __init__(self, plain: Plain, typed: Typed, paper: Paper, task: "asyncio.Task[int]") -> None:
        self.plain = plain
        self.typed = typed
        self.paper = paper
        self.task = task


@asynccontextmanager
async def sitting(
    tmp_path: Path,
    script: Sequence[Any],
    terminal: bool = True,
    mode: Mode = Mode.AGENT,
    early: float = 0.0,
    **fields: Any,
) -> AsyncIterator[Sitting]:
    """A session of a scripted model with a person."""
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    home = tmp_path / "home"
    async with harness(home, work, script) as agent:
        opening = OpenSession(str(work), mode=mode, authority=Authority.PERSON, **fields)
        typed, paper = Typed(terminal), Paper()
        plain = Plain(agent.client, PlainOptions(opening, str(home), early), Words("en"), typed, paper)
        task = asyncio.create_task(plain.run())
        try:
            yield Sitting(plain, typed, paper, task)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """A scripted turn with one call."""
    return {"calls": [{"name": name, "arguments": arguments}]}


async def test_a_turn_is_printed_and_the_end_of_input_ends(tmp_path: Path) -> None:
    async with sitting(tmp_path, [{"text": "One line.\nAnd \x1b[31manother\x07."}]) as here:
        await here.paper.has("> ")
        here.typed.type("hello")
        text = await here.paper.has("k tokens")
        assert "codewhale:\nOne line.\nAnd \\x1b[31manother\\x07.\n" in text
        here.typed.type(None)
        assert await here.task == 0
        assert re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", here.paper.text) is None


async def test_a_pipe_is_read_line_by_line_as_turns_end(tmp_path: Path) -> None:
    async with sitting(tmp_path, [{"text": "first"}, {"text": "second"}], terminal=False) as here:
        here.typed.type("one", "two \\", "lines", "/status", None)
        assert await here.task == 0
        text = here.paper.text
        assert text.index("first") < text.index("second") < text.index("state         idle")
        assert "\n> " not in text


@MAKES_FILES
async def test_a_command_is_allowed_by_a_typed_word(tmp_path: Path) -> None:
    script = [call("exec_shell", command="touch made"), {"text": "made it"}]
    async with sitting(tmp_path, script) as here:
        here.typed.type("go")
        await here.paper.has("$ touch made")
        here.typed.type("what?", "y")
        await here.paper.has("made it")
        assert (tmp_path / "work/made").exists()
        assert "done: Ran touch made" in here.paper.text


async def test_what_was_typed_before_a_question_does_not_answer_it(tmp_path: Path) -> None:
    script = [call("exec_shell", command="touch made"), {"text": "never"}]
    async with sitting(tmp_path, script, early=1_000.0) as here:
        here.typed.type("go", "y", "yes")
        await here.paper.has("$ touch made")
        here.typed.type("y")
        await here.paper.has("does not count as the answer")
        here.plain.interrupt()
        await here.paper.has("you stopped it")
        assert not (tmp_path / "work/made").exists()


async def test_a_refusal_tells_the_model_why(tmp_path: Path) -> None:
    seen: list[str] = []

    def after(request: Any) -> dict[str, Any]:
        seen.append(str(request))
        return {"text": "understood"}

    async with sitting(tmp_path, [call("exec_shell", command="touch made"), after], terminal=False) as here:
        here.typed.type("go", "n not here", None)
        assert await here.task == 0
        assert "understood" in here.paper.text and not (tmp_path / "work/made").exists()
        assert "not here" in seen[0]


async def test_questions_are_answered_by_numbers_and_words(tmp_path: Path) -> None:
    questions = [
        {
            "id": "colour",
            "header": "Colour",
            "question": "Which?",
            "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
        },
        {
            "id": "size",
            "header": "Size",
            "question": "How big?",
            "options": [{"label": "S", "description": "small"}, {"label": "L", "description": "large"}],
        },
    ]
    seen: list[str] = []

    def after(request: Any) -> dict[str, Any]:
        seen.append(str(request))
        return {"text": "painted"}

    async with sitting(tmp_path, [call("request_user_input", questions=questions), after], terminal=False) as here:
        here.typed.type("go", "2", "enormous", None)
        assert await here.task == 0
        assert "2. Blue: cold" in here.paper.text and "painted" in here.paper.text
        assert "Blue" in seen[0] and "enormous" in seen[0]


async def test_the_end_of_input_answers_for_nobody(tmp_path: Path) -> None:
    script = [call("exec_shell", command="touch made"), {"text": "so be it"}]
    async with sitting(tmp_path, script, terminal=False) as here:
        here.typed.type("go", None)
        assert await here.task == 0
        assert "so be it" in here.paper.text and not (tmp_path / "work/made").exists()


async def test_lines_during_a_turn_wait_or_join_and_an_interrupt_stops_it(tmp_path: Path) -> None:
    script = [call("exec_shell", command="sleep 30"), {"text": "later"}]
    async with sitting(tmp_path, script, mode=Mode.YOLO) as here:
        here.typed.type("go")
        await here.paper.has("Running sleep 30")
        here.typed.type("afterwards")
        await here.paper.has("1 message waiting")
        here.plain.interrupt()
        await here.paper.has("an empty line sends it")
        here.typed.type("")
        await here.paper.has("later")
        here.plain.interrupt()
        await here.paper.has("Nothing is running")
        here.typed.type("/quit")
        assert await here.task == 0


async def test_a_shell_line_is_run_for_the_person(tmp_path: Path) -> None:
    async with sitting(tmp_path, [], terminal=False) as here:
        here.typed.type("!echo it $((6*7))", None)
        assert await here.task == 0
        assert "it 42" in here.paper.text


async def test_what_went_wrong_is_said_and_the_session_goes_on(tmp_path: Path) -> None:
    async with sitting(tmp_path, [{"text": "fine"}], terminal=False) as here:
        here.typed.type("/nosuch", "/usr/bin is a folder?", None)
        assert await here.task == 0
        assert "failed: Unknown command" in here.paper.text and "fine" in here.paper.text


async def test_a_resumed_session_says_what_came_before(tmp_path: Path) -> None:
    async with sitting(tmp_path, [{"text": "the first answer"}], terminal=False) as here:
        here.typed.type("the first question", None)
        assert await here.task == 0
        session = here.plain.session
    async with sitting(tmp_path, [], terminal=False, resume=session) as here:
        here.typed.type(None)
        assert await here.task == 0
        assert "you: the first question" in here.paper.text and "codewhale: the first answer" in here.paper.text


@MAKES_FILES
async def test_leaving_says_what_the_session_came_to_and_how_to_go_on(home: Path, git_workspace: Path) -> None:
    write = {"calls": [{"name": "write_file", "arguments": {"path": "a.txt", "content": "one\ntwo\n"}}]}
    async with harness(home, git_workspace, [write, {"text": "Done."}]) as stage:
        typed, paper = Typed(False), Paper()
        opening = OpenSession(str(git_workspace), Mode.YOLO, Authority.PERSON)
        plain = Plain(stage.client, PlainOptions(opening), Words("en"), typed, paper)
        typed.type("Write the file", None)
        assert await plain.run() == 0
        last = paper.text.rstrip().splitlines()[-3:]
        assert last[0].endswith("Write the file") and last[1].endswith("1 turn · 1 file +2 -0")
        assert last[2].endswith(f"codewhale --resume {plain.session}")
    async with harness(home, git_workspace, []) as stage:
        typed, paper = Typed(False), Paper()
        typed.type(None)
        plain = Plain(stage.client, PlainOptions(opening), Words("en"), typed, paper)
        assert await plain.run() == 0 and "--resume" not in paper.text
