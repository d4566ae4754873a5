"""The session picker."""

from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import ListSessions
from codewhale.protocol.views import PreviewSession, SessionPreview
from codewhale.tui.screens.context import Resume
from support.tuiscreens import HOSTILE, SESSION, opened, preview, session

ROWS = (
    session(1, workspace="/elsewhere", title="Far away"),
    session(2, state="open"),
    session(3, state="damaged", title="Broken one"),
    session(4, id=SESSION, title="This one", parent="s-0002"),
    session(5, title=""),
)
ANSWERS = {
    ListSessions: ROWS,
    PreviewSession: lambda query: preview(next(row for row in ROWS if row.id == query.id)),
}


async def test_those_of_this_folder_come_first_and_tell_how_they_stand() -> None:
    async with opened("sessions", ANSWERS) as stage:
        text = await stage.shown(
            "This folder", "● Mend the harbour crane 2", "! Broken one", "› This one", "(no title)"
        )
        assert text.index("This one") < text.index("Other folders") < text.index("Far away")
        assert "2 turns · 2026-03-03 10:30 · grey-1" in text


async def test_a_copy_is_gone_on_with() -> None:
    async with opened("sessions", ANSWERS) as stage:
        await stage.press("alt+f")
        assert await stage.done() == Resume("s-0002", fork=True)


async def test_a_damaged_one_is_not_opened() -> None:
    async with opened("sessions", ANSWERS) as stage:
        await stage.press("down", "enter")
        await stage.shown("The log is damaged")
        await stage.press("alt+f", "down", "enter")
        assert await stage.done() is None


async def test_the_preview_tells_where_it_comes_from() -> None:
    async with opened("sessions", ANSWERS) as stage:
        await stage.shown("Open in another process")
        await stage.press("down", "down")
        await stage.shown("forked from s-0002", "you  Please", "model  It is")


async def test_a_preview_that_cannot_be_had_is_said() -> None:
    async with opened("sessions", ANSWERS | {PreviewSession: CodeWhaleError("it cannot be read")}) as stage:
        await stage.shown("it cannot be read", "s-0002")
        await stage.press("enter")
        assert await stage.done() == Resume("s-0002")


async def test_an_empty_session_says_so() -> None:
    answers = ANSWERS | {PreviewSession: SessionPreview(ROWS[1], ())}
    async with opened("sessions", answers) as stage:
        await stage.shown("No messages yet.")


async def test_hostile_titles_are_only_text() -> None:
    row = session(1, title=HOSTILE, model=HOSTILE, workspace="/\u202e", id=f"s-{HOSTILE}")
    shown = SessionPreview(row, (("user", HOSTILE), (HOSTILE, HOSTILE)))
    async with opened("sessions", {ListSessions: (row,), PreviewSession: shown}) as stage:
        await stage.shown("[bold]x[/][@click=app.quit]y[/]", "\\x1b]0;t")
        stage.clean()


async def test_it_fits_and_speaks_chinese() -> None:
    row = session(1, title="修理" * 60)
    async with opened("sessions", {ListSessions: (row,), PreviewSession: preview(row)}, language="zh-Hans") as stage:
        text = await stage.shown("会话", "此目录", "标题、ID 或目录")
        assert "…" in text and "回车" not in text
        stage.clean()
