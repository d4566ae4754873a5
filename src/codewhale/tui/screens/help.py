"""Help: what can be typed, which keys matter most, and every slash command."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from rich.cells import cell_len, set_cell_size

from codewhale.display.tones import Line, flat
from codewhale.protocol.views import ListCommands
from codewhale.tui.keys import first_key
from codewhale.tui.screens.report import Report

# What a person needs first, in this order.
FIRST: tuple[str, ...] = (
    "composer.send", "composer.newline", "composer.steer", "composer.escape", "app.interrupt", "app.palette",
    "composer.complete_or_mode", "composer.effort", "app.sessions", "app.models", "app.jobs", "app.focus_transcript",
    "app.search", "app.fold_all", "app.copy_answer", "app.keys",
)  # fmt: skip
_TYPED: tuple[tuple[str, str], ...] = (("/", "slash"), ("@", "file"), ("!", "shell"))
_KEY = 14
_COMMAND = 30


class HelpScreen(Report):
    """Help; `argument` is a command to tell of alone."""

    PANEL = "help"
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = Report.HINTS

    async def report(self) -> Sequence[Line] | None:
        """All of it; without the commands where those cannot be had."""
        rows: Sequence[Any] = await self.ask(self.desk.query(ListCommands(self.desk.session)), "frame.loading") or ()
        if self.argument:
            name = f"/{self.argument.lstrip('/')}"
            alone = [row for row in rows if row.name == name]
            if alone:
                return list(self._commands(alone))
        return [*self._intro(), *self._commands(rows)]

    def _intro(self) -> Iterable[Line]:
        words = self.words
        yield ((words("help.intro"), "text"),)
        yield ()
        yield ((words("help.typing"), "bold accent"),)
        for sign, name in _TYPED:
            yield ((set_cell_size(f"  {sign}", _KEY), "bold text"), (words(f"help.{name}"), "text"))
        yield ()
        yield ((words("help.keys"), "bold accent"),)
        for action in FIRST:
            key = first_key(action, self.desk.keys)
            yield ((set_cell_size(f"  {key}", _KEY), "bold text"), (words(f"keys.{action}"), "text"))
        yield ()

    def _commands(self, rows: Sequence[Any]) -> Iterable[Line]:
        if rows:
            yield ((self.words("help.commands"), "bold accent"),)
        for row in rows:
            name = f"  {flat(f'{row.name} {row.usage}'.strip(), 100)}"
            wide = max(_COMMAND, cell_len(name) + 2)
            yield ((set_cell_size(name, wide), "bold text"), (flat(row.summary, 300), "text"))
