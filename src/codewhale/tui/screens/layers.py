"""The layers of a context: how each stands, and what can be done about it."""

import re
from collections.abc import Iterable, Sequence

from codewhale.display.text import flat
from codewhale.display.words import Words
from codewhale.protocol.memory import LayerRow
from codewhale.protocol.views import ContextView, GetContext
from codewhale.tui.rows import Item
from codewhale.tui.screens.context import OfferText, RunLine, ScreenContext, ShowLine
from codewhale.tui.screens.frame import Chooser

LAYERS = (
    "user-memory", "repo-constitution", "repo-rules", "codemap-wiki", "trace-store", "rlm-memo", "cached-overlay",
    "aleph-external",
)  # fmt: skip
PLACES = ("head", "tail", "not sent")
ACTIONS = (
    "show", "add", "edit", "clear", "doctor", "view", "trust", "rebuild", "find", "open", "attach", "detach",
    "sources", "export",
)  # fmt: skip
# What the engine notes of a layer, with # for each number, by the name of our words for it; any other note is shown as
# it is.
NOTES = {
    "# of # facts are sent": "sent",
    "# wait for you: /memory waiting": "wait",
    "# symbols in # files": "symbols",
    "not indexed yet": "no_index",
    "the first search builds the index": "index",
    "# answers": "answers",
    "no answer is kept yet": "no_answers",
    "this version promotes no lessons": "no_lessons",
    "read where they are": "external",
    "rlm_open opens one by its name": "opening",
}
_NUMBER = re.compile(r"\d[\d,]*")


class LayersScreen(Chooser):
    """What can be done about each layer of a context; `argument` is the one to begin with."""

    PANEL = "layers"

    def __init__(self, context: ScreenContext, argument: str = "") -> None:
        super().__init__(context, argument)
        self.start = f"{argument} show"

    async def rows(self) -> Sequence[Item] | None:
        asked = self.context.query(GetContext(self.context.session))
        view: ContextView | None = await self.ask(asked, "frame.loading")
        return None if view is None else [item for row in view.rows for item in self._of(row)]

    def _of(self, row: LayerRow) -> Iterable[Item]:
        group = layer_title(self.words, row)
        for name, line in (("show", f"/context {row.name}"), *row.actions):
            label = self.words(f"layers.{name}") if name in ACTIONS else flat(name, 40)
            yield Item(f"{row.name} {name}", label, line, group, value=line)

    def chosen(self, item: Item) -> None:
        """Run its line; one that lacks words is written in the composer, and a shell's is shown."""
        line = str(item.value)
        before = [word for word in line.split() if not word.isupper()]
        if not line.startswith("/"):
            self.dismiss(ShowLine(self.words("layers.shell", line=flat(line, 200))))
        elif len(before) < len(line.split()):
            self.dismiss(OfferText(f"{' '.join(before)} "))
        else:
            self.dismiss(RunLine(line))


def layer_title(words: Words, row: LayerRow) -> str:
    return words(f"context.memory_{row.name}") if row.name in LAYERS else flat(row.title, 40)


def layer_facts(words: Words, row: LayerRow) -> list[str]:
    """What a layer holds, where it stands and what can be done about it."""
    place = words(f"context.place_{row.place}") if row.place in PLACES else ""
    holds = words("context.items", n=row.items, bytes=f"{row.bytes:,}") if row.items else ""
    faults = words("context.faults", n=row.faults) if row.faults else ""
    notes = (_note(words, part) for part in row.note.split("; "))
    facts = (place, holds, row.changed[:10], *(line for _, line in row.actions), faults, *notes)
    return [flat(fact, 300) for fact in facts if fact]


def _note(words: Words, note: str) -> str:
    name = NOTES.get(_NUMBER.sub("#", note))
    numbers = dict(zip("ab", _NUMBER.findall(note), strict=False))
    return words(f"layers.note_{name}", **numbers) if name else note
