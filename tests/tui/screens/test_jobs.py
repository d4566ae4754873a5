"""The jobs centre: what runs, its output as it comes, writing to it, ending it."""

from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.events import JobOutput
from codewhale.protocol.ops import RunCommand
from codewhale.protocol.views import ListJobs
from support.tuirecord import envelopes, until
from support.tuiscreens import HOSTILE, SESSION, job, opened, said

ROWS = (
    job(1),
    job(2, status="Failed", exit_code=2, tail="", bytes=0),
    job(3, status="Completed", exit_code=0, cwd="web", bytes=5_000_000),
)


async def test_they_are_listed_with_the_end_of_their_output() -> None:
    async with opened("jobs", {ListJobs: ROWS}) as stage:
        text = await stage.shown(
            "● make watch-1", "running · 12 s · shell_1", "✗ make watch-2", "failed 2", "✓ make watch-3"
        )
        assert "Jobs · 1 running" in text and "watching 1" in text
        await stage.press("down")
        await stage.shown("(no output yet)")
        await stage.press("j")
        await stage.shown("(web)", "earlier bytes", "watching 3")
        await stage.press("k", "up", "escape")
        assert await stage.done() is None


async def test_output_comes_as_it_is_printed() -> None:
    tails = ["first\n"]
    async with opened("jobs", {ListJobs: lambda query: (job(1, tail="".join(tails)),)}) as stage:
        await stage.shown("first")
        tails.append("second\n")
        for envelope in envelopes([JobOutput("shell_1", "second\n")]):
            stage.screen.take(envelope)
        await stage.shown("first", "second")


async def test_what_is_read_stays_where_it_is_while_more_comes() -> None:
    tails = ["\n".join(f"line {number}" for number in range(200)) + "\n"]
    async with opened("jobs", {ListJobs: lambda query: (job(1, tail="".join(tails)),)}) as stage:
        await stage.shown("line 199")
        await stage.press("enter", "pageup", "pageup")
        await until(stage.pilot, lambda: "line 199" not in stage.text)
        at = stage.screen.page.scroll_offset.y
        tails.append("later\n")
        await until(stage.pilot, lambda: len(stage.screen.page.lines) == 202)
        assert stage.screen.page.scroll_offset.y == at
        await stage.press("up", "down", "G")
        await stage.shown("later")
        await stage.press("escape")
        await stage.shown("● make watch-1")


async def test_one_is_ended_on_the_second_press() -> None:
    async with opened("jobs", {ListJobs: ROWS, RunCommand: said("shell_1 was ended: killed.")}) as stage:
        await stage.press("x")
        await stage.shown("Press x again to kill shell_1.")
        assert stage.client.ops == []
        await stage.press("x")
        await stage.shown("shell_1 was ended")
        assert stage.client.ops == [RunCommand(SESSION, "/jobs cancel shell_1")]
        await stage.press("down", "x")
        await stage.shown("This job has already ended.")


async def test_its_input_is_written_and_ended() -> None:
    async with opened("jobs", {ListJobs: ROWS, RunCommand: said("[shell_1: running, 3 s]")}) as stage:
        await stage.press("i", *"x y")
        await stage.shown("│ x y ")
        await stage.press("enter")
        await stage.shown("[shell_1: running, 3 s]")
        await stage.press("alt+d")
        await until(stage.pilot, lambda: len(stage.client.ops) == 2)
        assert stage.client.ops == [
            RunCommand(SESSION, "/jobs stdin shell_1 x y"),
            RunCommand(SESSION, "/jobs stdin shell_1 --eof"),
        ]
        await stage.press("down", "i")
        await stage.shown("it takes no input")


async def test_writing_can_be_left() -> None:
    async with opened("jobs", {ListJobs: ROWS}) as stage:
        await stage.press("i", "q", "escape")
        assert stage.outcome is not None and not stage.screen.has_class("writing")
        await stage.press("q")
        assert await stage.done() is None


async def test_no_jobs_is_said() -> None:
    async with opened("jobs", {ListJobs: ()}) as stage:
        text = await stage.shown("No background jobs.", "esc close")
        assert "enter" not in text
        await stage.press("x", "i", "enter", "down", "pageup", "alt+d", "q")
        assert await stage.done() is None


async def test_a_failure_is_said_until_it_works_again() -> None:
    broken = [CodeWhaleError("the session is closed")]

    def rows(query: ListJobs) -> object:
        if broken:
            raise broken[0]
        return ROWS

    async with opened("jobs", {ListJobs: rows}) as stage:
        await stage.shown("the session is closed")
        broken.clear()
        await stage.shown("make watch-1")


async def test_a_command_that_is_refused_is_said() -> None:
    async with opened("jobs", {ListJobs: ROWS, RunCommand: said("it takes no input\x1b[2J", ok=False)}) as stage:
        await stage.press("i", "a", "enter")
        await stage.shown("it takes no input\\x1b[2J")


async def test_hostile_output_is_only_text() -> None:
    rows = (job(1, command=HOSTILE, cwd=HOSTILE, tail=(HOSTILE + "\n") * 50 + "字" * 5000, status=HOSTILE),)
    async with opened("jobs", {ListJobs: rows}) as stage:
        await stage.shown("[bold]x[/]", "字字字")
        stage.clean()
        await stage.press("enter")
        stage.clean()
