"""Going back to a former message: which one, and then what goes with it, looked at before it is done."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from codewhale.display.text import Spans, flat
from codewhale.protocol.ops import SessionStatus
from codewhale.protocol.views import FormerMessage, ListFormer, PreviewRewind, RewindView
from codewhale.tui.rows import Item
from codewhale.tui.screens.context import OpenScreen, RunLine
from codewhale.tui.screens.frame import Chooser, Frame
from codewhale.tui.screens.undo import BACK, planned_lines

PARTS = ("both", "conversation", "files")


class RewindScreen(Chooser):
    """The person's former messages, the latest first. The other key forks before one."""

    PANEL = "rewind"
    PREVIEW = True
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("chooser.choose", "rewind.choose"),
        ("chooser.other", "rewind.fork"),
        ("chooser.close", "frame.close"),
    )

    async def rows(self) -> Sequence[Item] | None:
        asked = self.context.query(ListFormer(self.context.session))
        rows: Sequence[FormerMessage] | None = await self.ask(asked, "frame.loading")
        status = await self.ask(self.context.query(SessionStatus(self.context.session)))
        if rows is None or status is None:
            return None
        items = [Item(str(row.turn), flat(row.text, 200), value=row) for row in reversed(rows)]
        return [*items, Item(BACK, self.words("rewind.back"))] if status.rewinds else items

    async def preview(self, item: Item) -> Sequence[Spans]:
        if item.key == BACK:
            return [((self.words("rewind.back_more"), "muted"),)]
        return await seen(self, int(item.key), "both")

    def chosen(self, item: Item) -> None:
        self.dismiss(RunLine("/rewind back") if item.key == BACK else OpenScreen("rewind_parts", item.key))

    def action_other(self) -> None:
        item = self.list.current
        if item is not None and item.key != BACK:
            self.dismiss(RunLine(f"/fork {item.key}"))


class RewindParts(Chooser):
    """What goes back to before the message of turn `argument`: the conversation, the files, or both."""

    PANEL = "rewind_parts"
    PREVIEW = True

    async def rows(self) -> Sequence[Item] | None:
        return [Item(part, self.words(f"rewind_parts.{part}")) for part in PARTS]

    async def preview(self, item: Item) -> Sequence[Spans]:
        turn = int(self.argument) if self.argument.isdecimal() else 0
        return await seen(self, turn, item.key)

    def chosen(self, item: Item) -> None:
        self.dismiss(RunLine(f"/rewind {self.argument} {item.key} yes"))


async def seen(screen: Chooser, turn: int, part: str) -> Sequence[Spans]:
    """What going back to before a turn would do."""
    asked = screen.context.query(PreviewRewind(screen.context.session, turn))
    view: RewindView | None = await screen.ask(asked, "undo.looking")
    return () if view is None else list(_lines(screen, view, part))


def _lines(screen: Chooser, view: RewindView, part: str) -> Iterable[Spans]:
    words = screen.words
    if part != "files":
        yield ((words("rewind.messages", n=len(view.messages)), "bold text"),)
        yield from (((f"  {flat(text, 200)}", "text"),) for text in view.messages)
    if part == "conversation":
        yield ((words("rewind.files_stay"), "muted"),)
    elif view.why:
        yield ((flat(view.why, 1000), "warning"),)
    elif not view.files and not view.refused:
        yield ((words("rewind.no_files"), "muted"),)
    else:
        yield from planned_lines(words, view)


SCREENS: dict[str, type[Frame]] = {"rewind": RewindScreen, "rewind_parts": RewindParts}
