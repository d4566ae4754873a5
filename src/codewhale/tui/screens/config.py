"""Every value of the configuration with where it comes from; a value is changed in its place."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual import on
from textual.widget import Widget
from textual.widgets import Input

from codewhale.display.text import Spans, flat, safe_lines
from codewhale.protocol.ops import ChangeSetting
from codewhale.protocol.views import GetSettings, SettingRow
from codewhale.tui.rows import Item
from codewhale.tui.screens.frame import Chooser
from codewhale.tui.widgets import Field

UNSET = ("", '""')
# It stands here before there is anything that reads it.
MCP = SettingRow("mcp_config_path", "", "", fixed=True)


class ConfigScreen(Chooser):
    """The values. Enter opens a line in which the one at the cursor is changed."""

    PANEL = "config"
    PREVIEW = True
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("chooser.next", "frame.move"),
        ("chooser.choose", "config.change"),
        ("chooser.reload", "frame.reload"),
        ("chooser.close", "frame.close"),
    )

    DEFAULT_CSS = """
    ConfigScreen #value { display: none; background: $cw-code-background; }
    ConfigScreen.editing #value { display: block; }
    """

    async def rows(self) -> Sequence[Item] | None:
        rows: Sequence[SettingRow] | None = await self.ask(
            self.context.query(GetSettings(self.context.session)), "frame.loading"
        )
        if rows is None:
            return None
        if all(row.key != MCP.key for row in rows):
            rows = sorted((*rows, MCP), key=lambda row: row.key)
        return [self._item(row) for row in rows]

    def _item(self, row: SettingRow) -> Item:
        shown = row.shown if row.shown not in UNSET else self.words("config.not_set")
        origin = row.origin or self.words("config.nowhere")
        mark = "" if row.origin in ("", "default") else "*"
        return Item(row.key, row.key, shown, "", mark, "accent", value=row, side=(origin,))

    def body(self) -> Iterable[Widget]:
        yield from super().body()
        yield Field(id="value", max_length=4000)

    async def preview(self, item: Item) -> Sequence[Spans]:
        """The whole value, where it comes from and what else it may be."""
        row: SettingRow = item.value
        words = self.words
        lines: list[Spans] = [((flat(row.key), "bold text"),), *self._value(row)]
        lines.append(((words("config.from", origin=flat(row.origin or words("config.nowhere"))), "muted"),))
        if row.choices:
            lines.append(
                (
                    (
                        words(
                            "config.choices", choices=flat(", ".join(choice or '""' for choice in row.choices), 1000)
                        ),
                        "text",
                    ),
                )
            )
        if row.key == MCP.key and row.shown in UNSET:
            lines.append(((words("config.mcp"), "muted"),))
        elif row.fixed:
            lines.append(((words("config.fixed"), "warning"),))
        return lines

    def _value(self, row: SettingRow) -> Sequence[Spans]:
        return safe_lines(row.shown if row.shown not in UNSET else self.words("config.not_set"))

    def hints(self) -> tuple[tuple[str, str], ...]:
        if self.editing:
            return (("chooser.choose", "config.keep"), ("chooser.close", "config.leave"))
        return self.HINTS

    # -------------------------------------------------------------- changing one

    @property
    def _line(self) -> Input:
        return self.query_one("#value", Input)

    @property
    def editing(self) -> bool:
        """Whether a value is being changed."""
        return self.has_class("editing")

    def chosen(self, item: Item) -> None:
        row: SettingRow = item.value
        if row.fixed:
            self.say(self.words("config.mcp" if row.key == MCP.key else "config.fixed"), "warning")
            return
        self.set_class(True, "editing")
        self._line.value = row.shown
        self._line.placeholder = flat(", ".join(row.choices), 200)
        self._line.focus()
        self._show_hints()
        self.say(self.words("config.editing", setting=flat(row.key, 100)))

    @on(Input.Submitted, "#value")
    def _changed(self, event: Input.Submitted) -> None:
        event.stop()
        item, value = self.list.current, event.value
        if item is not None:
            self.work(lambda: self._change(item.key, value), "change")

    async def _change(self, key: str, value: str) -> None:
        async def change() -> tuple[str]:
            return (str(await self.context.submit(ChangeSetting(self.context.session, key, value)) or ""),)

        done = await self.ask(change())
        if done is None:
            # Why it was refused is said; the line stays as it was typed.
            return
        self._stop_editing()
        await self.load()
        self.say(done[0] or self.words("config.done", setting=flat(key, 100)), "success")

    def _stop_editing(self) -> None:
        self.set_class(False, "editing")
        self._show_hints()
        self.query_one("#sought", Input).focus()

    def filter(self, stay: bool = False) -> None:
        """The cursor stays on its row when the values are read again."""
        super().filter(stay or not self.query_one("#sought", Input).has_focus)

    def action_previous(self) -> None:
        if not self.editing:
            super().action_previous()

    def action_next(self) -> None:
        if not self.editing:
            super().action_next()

    def action_close(self) -> None:
        """Leave the value as it is, or close the screen."""
        if self.editing:
            self._stop_editing()
            self.say("")
        else:
            self.dismiss(None)
