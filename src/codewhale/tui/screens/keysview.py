"""Every key: what it does, where it holds, and how to give it another."""

from collections.abc import Sequence
from typing import ClassVar

from codewhale.tui.keys import ACTIONS, key_shown, keys_of
from codewhale.tui.screens.chooser import Chooser
from codewhale.tui.screens.rowlist import Item


class KeysScreen(Chooser):
    """All rows of keys.py with the keys that they have now."""

    PANEL = "keysview"
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("chooser.next", "frame.move"),
        ("chooser.choose", "keysview.how"),
        ("chooser.close", "frame.close"),
    )

    async def rows(self) -> Sequence[Item] | None:
        """Each row under its panel."""
        words, changed = self.words, self.desk.keys
        rows = []
        for row in ACTIONS:
            keys = ", ".join(key_shown(key) for key in keys_of(row, changed))
            mark = "*" if row.id in changed else ""
            group = words(f"keysview.panel_{row.panel}")
            rows.append(Item(row.id, words(f"keys.{row.id}"), keys, group, mark, "accent", row.id, row))
        return rows

    def chosen(self, item: Item) -> None:
        """Say how it is changed."""
        self.say(self.words("keysview.change", action=item.key, press="ctrl+y"), "accent")
