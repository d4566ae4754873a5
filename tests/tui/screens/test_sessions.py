"""The session picker."""

import time
from datetime import UTC, datetime

from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import ListSessions
from codewhale.protocol.views import PreviewSession, SessionPreview
from codewhale.tui.screens.context import Resume
from support.tuiscreens import HOSTILE, SESSION, opened, preview, session

ROWS = (
    session(1, workspace="/elsewhere", title="Far away"),
    session(2, state="open", files=3),
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
        text = await stage.shown("This folder", "● Fix the harbour crane 2", "! Broken one", "* This one", "(no title)")
        assert text.index("This one") < text.index("Other folders") < text.index("Far away")
        assert "Fix the harbour crane 2  2026-03-03  2 turns  3 files  open elsewhere" in text


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
        await stage.shown("forked from s-0002", "┃ Please look at s-recorded", "  It is **done**.")


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


async def test_times_are_told_from_now_and_a_long_answer_keeps_its_indent() -> None:
    def at(seconds: float) -> str:
        return datetime.fromtimestamp(time.time() - seconds, UTC).isoformat().replace("+00:00", "Z")

    ages = {"just now": 5, "2 minutes ago": 130, "2 hours ago": 7300, "yesterday": 90_000, "3 days ago": 260_000}
    rows = tuple(session(n, title=name, updated=at(age)) for n, (name, age) in enumerate(ages.items()))
    said = SessionPreview(rows[0], (("user", "why " * 40), ("assistant", "because " * 40)))
    async with opened("sessions", {ListSessions: rows, PreviewSession: said}, size=(140, 30)) as stage:
        text = await stage.shown("┃ why", "because")
        for name in ages:
            assert text.count(name) >= 2, name
        (wrapped,) = {line.partition("│ ")[2].rpartition("│ ")[2][:2] for line in text.splitlines() if "why" in line}
        assert wrapped == "┃ "
    async with opened("sessions", {ListSessions: rows, PreviewSession: said}, language="zh-Hans") as stage:
        await stage.shown("刚刚", "2 小时前", "昨天")
