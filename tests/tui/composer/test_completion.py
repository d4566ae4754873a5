"""What can be completed where, what is offered, and that late answers are dropped."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from textual import events

from codewhale.protocol.errors import SessionError
from codewhale.protocol.ops import NoteFile
from codewhale.protocol.views import Choice, CommandRow, CompleteCommand, FileMatch, FindFiles, ListCommands
from codewhale.tui.composer.completion import MOST_ROWS, CompletionRows, CompletionSearch, wanted
from support.composing import desk
from support.patience import HANG
from support.tuirecord import screen_text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("/", ("commands", "", 0)),
        ("/mo", ("commands", "mo", 0)),
        ("/mode pl", ("commands", "pl", 6)),
        ("/mode ", ("commands", "", 6)),
        ("/usr/bin", None),
        ("say /mo", None),
        ("/mode\nmore", None),
        ("@", ("files", "", 0)),
        ("see @src/ap", ("files", "src/ap", 4)),
        ("see (@a", ("files", "a", 5)),
        ("mail me@home", None),
        ("@done then", None),
        ('@"my fi', ("files", "my fi", 0)),
        ("line\n@x", ("files", "x", 5)),
        ("use $dep", ("skills", "dep", 4)),
        ("#rem", None),
        ("see #12", None),
        ("!git", None),
        ("", None),
    ],
)
def test_where_something_can_be_completed(text: str, found: tuple[str, str, int] | None) -> None:
    at = wanted(text, len(text))
    assert (None if at is None else (at.trigger.source, at.word, at.start)) == found
    assert at is None or at.end == len(text)


def test_what_follows_the_cursor_is_no_matter() -> None:
    at = wanted("see @sr and more", 7)
    assert at is not None and (at.word, at.start, at.end) == ("sr", 4, 7)
    long = "word " * 10_000 + "@x"
    at = wanted(long, len(long))
    assert at is not None and at.start == len(long) - 2


class Asked:
    """Who knows, and what was shown."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.shown: list[CompletionRows | None] = []
        self.asked: list[Any] = []
        self.completer = CompletionSearch(self._ask, self._show)
        self._grown = asyncio.Event()
        self.completer.session = "s"

    async def _ask(self, query: Any) -> Any:
        self.asked.append(query)
        answer = self.answers[type(query).__name__]
        return await answer(query) if callable(answer) else answer

    async def rows(self, text: str) -> list[str]:
        """What is offered for a text."""
        self._grown.clear()
        self.completer.look(text, len(text))
        async with asyncio.timeout(HANG):
            await self._grown.wait()
        found = self.shown[-1]
        return [row.insert for row in found.rows] if found else []

    def _show(self, found: CompletionRows | None) -> None:
        self.shown.append(found)
        self._grown.set()


COMMANDS = (
    CommandRow("/mode", "MODE", "change the mode"),
    CommandRow("/model", "NAME", "change the model"),
    CommandRow("/status", "", "how it stands"),
    CommandRow("/skills", "[json | NAME]", "list the skills"),
)


async def test_commands_and_what_they_take() -> None:
    async def complete(query: CompleteCommand) -> Any:
        return (
            (Choice("plan", "changes nothing"),)
            if query.line == "/mode p"
            else (Choice("json"), Choice("deploy", "ships it"))
        )

    here = Asked(ListCommands=COMMANDS, CompleteCommand=complete)
    assert await here.rows("/mo") == ["/mode ", "/model "]
    assert await here.rows("/odel") == ["/model "]
    assert await here.rows("/mode p") == ["plan "]
    assert here.shown[-1] is not None and here.shown[-1].header == "/mode MODE  change the mode"
    assert await here.rows("/nosuch x") == []
    assert await here.rows("use $d") == ["$deploy "]
    assert await here.rows("#d") == []
    assert sum(isinstance(query, ListCommands) for query in here.asked) == 1


async def test_files_with_blanks_and_folders() -> None:
    found = (FileMatch("src/app.py", 2), FileMatch("my file.py", 1), FileMatch("src/", 1), FileMatch("my dir/", 1))
    here = Asked(FindFiles=found)
    assert await here.rows("see @a") == ["@src/app.py ", '@"my file.py" ', "@src/", '@"my dir/']
    assert (await here.rows("!cat @a"))[:2] == ["src/app.py ", '"my file.py" ']
    here.answers["FindFiles"] = tuple(FileMatch(f"{number}", 0) for number in range(500))
    assert len(await here.rows("see @b")) == MOST_ROWS


async def test_an_answer_that_is_late_is_dropped() -> None:
    async def slow(query: FindFiles) -> Any:
        if query.text == "a":
            await asyncio.sleep(3600)
        return (FileMatch(query.text, 1),)

    here = Asked(FindFiles=slow)
    here.completer.look("@a", 2)
    await asyncio.sleep(0)
    assert await here.rows("@ab") == ["@ab "]
    assert [query.text for query in here.asked] == ["ab"]
    here.completer.look("", 0)
    assert here.shown[-1] is None


async def test_who_cannot_answer_offers_nothing() -> None:
    async def broken(query: Any) -> Any:
        raise SessionError("closed")

    here = Asked(FindFiles=broken)
    assert await here.rows("@a") == []
    here.completer.session = ""
    here.completer.look("@ab", 3)
    here.completer.refuse("@abc")
    assert here.shown[-1] is None


async def test_tab_before_the_answer_is_no_other_mode(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        here.host.post_message(events.Key("at", "@"))
        here.host.post_message(events.Key("a", "a"))
        here.host.post_message(events.Key("tab", None))
        await here.until(lambda: here.text == "@src/app.py ")
        assert here.said(here.composer.ModeCycled) == []


async def test_enter_waits_for_what_a_command_may_be(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        for key, letter in (("slash", "/"), ("s", "s"), ("t", "t"), ("enter", None)):
            here.host.post_message(events.Key(key, letter))
        [command] = await here.until(lambda: here.said(here.composer.Command))
        assert command.line == "/status"


async def test_a_file_is_mentioned_by_tab(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.type("see @ap")
        await here.until(lambda: "src/app.py" in screen_text(here.host))
        await here.pilot.press("tab")
        await here.until(lambda: here.text == "see @src/app.py ")
        await here.until(lambda: any(isinstance(op, NoteFile) and op.path == "src/app.py" for op in here.client.ops))
        await here.pilot.press("@")
        await here.until(lambda: "› src/app.py" in screen_text(here.host))
        await here.pilot.press("down", "enter")
        await here.until(lambda: here.text == "see @src/app.py @src/")
        await here.until(lambda: "› src/app.py" in screen_text(here.host))


async def test_enter_takes_a_command_and_runs_what_needs_nothing_more(tmp_path: Path) -> None:
    async with desk(tmp_path) as here:
        await here.type("/sta")
        await here.until(lambda: "how the session stands" in screen_text(here.host))
        await here.pilot.press("enter")
        [command] = await here.until(lambda: here.said(here.composer.Command))
        assert command.line == "/status"
        await here.type("/mod")
        await here.until(lambda: "change the model" in screen_text(here.host))
        await here.pilot.press("enter")
        assert here.text == "/mode "
        await here.until(
            lambda: "plan|agent|yolo" in screen_text(here.host) and "changes nothing" in screen_text(here.host)
        )
        await here.pilot.press("p", "tab", "enter")
        commands = await here.until(
            lambda: len(here.said(here.composer.Command)) == 2 and here.said(here.composer.Command)
        )
        assert commands[1].line == "/mode plan"


async def test_a_dollar_offers_no_name_that_it_cannot_call() -> None:
    async def ask(question: Any) -> Any:
        if isinstance(question, ListCommands):
            return (CommandRow("/skills", "[json | SKILL]", "list the skills"),)
        assert question == CompleteCommand("s", "/skills de")
        return (Choice("deploy", "Deploys."), Choice("Deploy-all", "Deploys all."), Choice("gh:dev", "Develops."))

    shown: asyncio.Queue[CompletionRows | None] = asyncio.Queue()
    search = CompletionSearch(ask, shown.put_nowait)
    search.session = "s"
    search.look("use $de", 7)
    rows = await asyncio.wait_for(shown.get(), HANG)
    assert rows is not None and [row.insert for row in rows.rows] == ["$deploy ", "$gh:dev "]
