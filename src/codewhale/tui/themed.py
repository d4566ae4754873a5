"""Colours that are chosen while the interface runs."""

from typing import Any

from codewhale.display.palette import Palette, load_palette, theme_names
from codewhale.display.words import Words
from codewhale.lib.text import one_line
from codewhale.protocol.errors import CodeWhaleError, ConfigError
from codewhale.protocol.ops import ChangeSetting


class Themed:
    """Of an app that has a palette and panels which can be drawn in another."""

    words: Words
    palette: Palette
    desk: Any
    link: Any
    run_worker: Any
    register_theme: Any
    screen_stack: Any
    theme: Any
    _setup: Any

    def say(self, text: str, tone: str = "text") -> None:
        raise NotImplementedError

    def choose_theme(self, name: str) -> None:
        """Use other colours from now on; "" names those there are."""
        if not name:
            self.say(self.words("app.themes", names=", ".join(theme_names(self._setup.home))))
        elif self._use_theme(name):
            self.run_worker(self._keep_theme(name))

    async def _keep_theme(self, name: str) -> None:
        try:
            await self.link.submit(ChangeSetting(self.link.session, "tui.theme", name))
        except (CodeWhaleError, OSError) as error:
            self.say(str(error), "error")

    def _use_theme(self, name: str) -> bool:
        try:
            self.palette = self.desk.palette = load_palette(name, self._setup.home)
        except ConfigError as error:
            self.say(str(error), "error")
            return False
        self._colour()
        panels: list[Any] = [*self.screen_stack[0].children, *self.screen_stack[1:]]
        for panel in panels:
            if (repaint := getattr(panel, "repaint", None)) is not None:
                repaint(self.palette)
        return True

    def _colour(self) -> None:
        theme = self.palette.theme()
        self.register_theme(theme)
        self.theme = theme.name

    def action_theme(self) -> None:
        names = theme_names(self._setup.home)
        now = self.palette.name
        name = names[(names.index(now) + 1) % len(names)] if now in names else names[0]
        if self._use_theme(name):
            self.say(self.words("app.theme", name=one_line(name)))
