"""Screens to choose from: models, providers, sessions, keys."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from codewhale.display.text import Spans, flat
from codewhale.display.when import ago
from codewhale.protocol.ops import ListSessions, SetModel
from codewhale.protocol.views import (
    FindLocal,
    ListModels,
    ListProviders,
    ModelRow,
    PreviewSession,
    ProviderRow,
    SessionSummary,
)
from codewhale.tui.keys import ACTIONS, key_shown, keys_of
from codewhale.tui.paint import CURRENT
from codewhale.tui.rows import Item
from codewhale.tui.screens.context import OpenScreen, Resume, ScreenContext, ShowLine
from codewhale.tui.screens.frame import Chooser, Frame
from codewhale.tui.widgets import BAR, INDENT

READY, LACKS, USED = ("✓", "success"), ("·", "warning"), (CURRENT, "accent")
MOST_SESSIONS = 1000
PREVIEWED = 12
_SHOWN_CHARS = 4000
_MARKS = {"open": ("●", "success"), "damaged": ("!", "error")}


class ModelPicker(Chooser):
    """Models by provider. `argument` is a provider to look at."""

    PANEL = "models"
    PREVIEW = True
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        Chooser.HINTS[1],
        ("chooser.other", "models.providers"),
        ("chooser.reload", "frame.reload"),
        *Chooser.HINTS[2:],
    )

    def __init__(self, context: ScreenContext, argument: str = "") -> None:
        super().__init__(context, argument)
        self._fresh = False

    async def load(self) -> None:
        """What is known, then what the server itself lists beside it; that alone where it is asked again."""
        if not self._fresh:
            await super().load()
        query = ListModels(self.context.session, dial=True, provider=self.argument, fresh=self._fresh)
        rows: Sequence[ModelRow] | None = await self.ask(self.context.query(query), "models.asking")
        if rows is None:
            return
        self._all = self._items(rows)
        self.filter(stay=self.list.current is not None)
        if why := next((row.why for row in rows if row.current and row.ready and row.why), ""):
            self.say(self.words("models.not_listed", why=flat(why, 300)), "warning")

    def action_reload(self) -> None:
        self._fresh = True
        super().action_reload()

    async def rows(self) -> Sequence[Item] | None:
        rows: Sequence[ModelRow] | None = await self.ask(
            self.context.query(ListModels(self.context.session)), "frame.loading"
        )
        return None if rows is None else self._items(rows)

    def _items(self, rows: Sequence[ModelRow]) -> list[Item]:
        if self.argument:
            rows = [row for row in rows if row.provider == self.argument]
        return [model_item(row, self) for row in rows]

    def behind(self) -> Sequence[Item]:
        """What is typed can be taken as it is. It stands last, so that it is never taken by mistake."""
        text = " ".join(self.sought.split())
        words = self.words
        said = words("models.typed_at", provider=self.argument) if self.argument else words("models.typed")
        own = Item(f"typed:{text}", text, said, words("models.group_typed"), "+", "accent", value=text)
        return [own] if text else []

    async def preview(self, item: Item) -> Sequence[Spans]:
        row = item.value
        if not isinstance(row, ModelRow):
            return [((self.words("models.typed_more"), "muted"),)]
        words = self.words
        lines: list[Spans] = [((flat(row.model), "bold text"),), ((flat(row.provider), "muted"),), (("", "text"),)]
        if row.current:
            lines.append(((words("models.current"), "accent"),))
        lines.append(((words("models.ready"), "success"),) if row.ready else ((flat(row.why), "warning"),))
        window = f"{row.window:,}" if row.window else words("models.unknown")
        lines.append(((words("models.window", tokens=window), "text"),))
        lines.append(((_price(row.price, words), "text"),))
        lines.append(((words("models.images" if row.images else "models.no_images"), "text"),))
        return lines

    def chosen(self, item: Item) -> None:
        if not isinstance(item.value, ModelRow):
            provider, model = _split(str(item.value), self.argument)
            self.work(lambda: self._use(provider, model), "choose")
        elif item.value.ready:
            row = item.value
            self.work(lambda: self._use(row.provider, row.model), "choose")
        else:
            self.dismiss(OpenScreen("firstrun", item.value.provider))

    async def _use(self, provider: str, model: str) -> None:
        async def change() -> bool:
            await self.context.submit(SetModel(self.context.session, model, provider))
            return True

        if await self.ask(change()):
            at = f"{flat(provider, 60)}" if provider else self.words("models.same_provider")
            self.dismiss(ShowLine(self.words("models.set", model=flat(model, 100), provider=at)))

    def action_other(self) -> None:
        self.dismiss(OpenScreen("providers"))


class ProviderPicker(Chooser):
    """Providers: those that are ready lead to their models, the others to what they lack."""

    PANEL = "providers"
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        Chooser.HINTS[1],
        ("chooser.other", "providers.connect"),
        ("chooser.reload", "frame.reload"),
        *Chooser.HINTS[2:],
    )

    async def rows(self) -> Sequence[Item] | None:
        session = self.context.session
        rows: Sequence[ProviderRow] | None = await self.ask(self.context.query(ListProviders(session)), "frame.loading")
        if rows is None:
            return None
        local: Sequence[ProviderRow] = await self.ask(self.context.query(FindLocal(session)), "providers.looking") or ()
        known = {row.name for row in rows}
        found = [row for row in local if row.name not in known]
        return [self._item(row, "providers.found") for row in found] + [self._item(row, _group(row)) for row in rows]

    def _item(self, row: ProviderRow, group: str) -> Item:
        mark, tone = USED if row.current else READY if row.ready else LACKS
        said = row.base_url if row.ready else row.why
        return Item(row.name, row.name, said, self.words(group), mark, tone, f"{row.base_url} {row.dialect}", row)

    def chosen(self, item: Item) -> None:
        row: ProviderRow = item.value
        self.dismiss(OpenScreen("models" if row.ready else "firstrun", row.name))

    def action_other(self) -> None:
        item = self.list.current
        if item is not None:
            self.dismiss(OpenScreen("firstrun", item.key))


def _group(row: ProviderRow) -> str:
    return "providers.ready" if row.ready else "providers.lacking"


def model_item(row: ModelRow, picker: Chooser) -> Item:
    """A model as a row."""
    mark, tone = USED if row.current else READY if row.ready else LACKS
    said = [f"{row.window // 1000}k"] if row.window else []
    said.append(_price(row.price, picker.words) if row.ready else row.why)
    label = row.model
    return Item(f"{row.provider}/{row.model}", label, " · ".join(said), row.provider, mark, tone, row.provider, row)


def _price(price: dict[str, Any] | None, words: Any) -> str:
    try:
        if price is None:
            return str(words("models.no_price"))
        currency = flat(str(price.get("currency", "USD")), 8)
        return str(words("models.price", miss=f"{price['miss']:g}", out=f"{price['output']:g}", currency=currency))
    except (KeyError, TypeError, ValueError):
        return str(words("models.no_price"))


def _split(text: str, provider: str) -> tuple[str, str]:
    """(provider or "", model) of what was typed: "MODEL" or "PROVIDER MODEL"."""
    first, _, rest = text.partition(" ")
    return (first, rest.strip()) if rest else (provider, first)


class SessionPicker(Chooser):
    """Sessions of this folder first, then the others."""

    PANEL = "sessions"
    PREVIEW = True
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("chooser.choose", "sessions.resume"),
        ("chooser.other", "sessions.fork"),
        ("chooser.preview_down", "sessions.preview"),
        ("chooser.close", "frame.close"),
    )

    async def rows(self) -> Sequence[Item] | None:
        rows: Sequence[SessionSummary] | None = await self.ask(self.context.query(ListSessions("")), "frame.loading")
        if rows is None:
            return None
        here = self.context.workspace
        near = [row for row in rows if row.workspace == here][:MOST_SESSIONS]
        far = [row for row in rows if row.workspace != here][: MOST_SESSIONS - len(near)]
        return [self._item(row, "sessions.here") for row in near] + [
            self._item(row, "sessions.elsewhere") for row in far
        ]

    def _item(self, row: SessionSummary, group: str) -> Item:
        words = self.words
        here = row.id == self.context.session
        mark, tone = USED if here else _MARKS.get(row.state, ("", "muted"))
        state = "this" if here else row.state if row.state in _MARKS else ""
        side = (
            ago(words, row.updated, self.context.now()),
            words("sessions.turns", n=row.turns),
            words("sessions.files", n=row.files) if row.files else "",
            words(f"sessions.state_{state}") if state else "",
        )
        title = row.title or words("sessions.untitled")
        more = f"{row.id} {row.workspace} {row.model}"
        return Item(row.id, title, "", words(group), mark, tone, more, row, side)

    async def preview(self, item: Item) -> Sequence[Spans]:
        row: SessionSummary = item.value
        words = self.words
        lines: list[Spans] = [
            ((flat(row.title) or words("sessions.untitled"), "bold text"),),
            ((f"{flat(row.id)} · {flat(row.workspace)} · {flat(row.model, 60)}", "muted"),),
        ]
        if row.parent:
            lines.append(((words("sessions.forked", parent=flat(row.parent)), "muted"),))
        if row.id == self.context.session:
            lines.append(((words("sessions.this"), "accent"),))
        elif row.state in _MARKS:
            lines.append(((words(f"sessions.{row.state}"), _MARKS[row.state][1]),))
        view = await self.ask(self.context.query(PreviewSession(row.id, PREVIEWED)))
        if view is None:
            return lines
        lines += self._turns(view.lines)
        return lines if view.lines else [*lines, (), ((words("sessions.empty"), "muted"),)]

    def _turns(self, said: Iterable[tuple[str, str]]) -> Iterable[Spans]:
        """Each turn: what was asked behind a bar, then how it was answered."""
        for role, text in said:
            if role == "user":
                yield ()
            edge, tone = (BAR, "user") if role == "user" else (INDENT, "text" if role == "assistant" else "muted")
            yield ((edge, tone), (flat(text, _SHOWN_CHARS), tone))

    def chosen(self, item: Item) -> None:
        if item.value.state == "damaged":
            self.say(self.words("sessions.damaged"), "error")
        elif item.key == self.context.session:
            self.dismiss(None)
        else:
            self.dismiss(Resume(item.key))

    def action_other(self) -> None:
        item = self.list.current
        if item is not None and item.value.state != "damaged":
            self.dismiss(Resume(item.key, fork=True))


class KeysScreen(Chooser):
    """All rows of keys.py with the keys that they have now."""

    PANEL = "keysview"
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("chooser.next", "frame.move"),
        ("chooser.choose", "keysview.how"),
        ("chooser.close", "frame.close"),
    )

    async def rows(self) -> Sequence[Item] | None:
        words, changed = self.words, self.context.keys
        rows = []
        for row in ACTIONS:
            keys = ", ".join(key_shown(key) for key in keys_of(row, changed))
            mark = "*" if row.id in changed else ""
            group = words(f"keysview.panel_{row.panel}")
            rows.append(Item(row.id, words(f"keys.{row.id}"), "", group, mark, "accent", row.id, row, (keys,)))
        return rows

    def chosen(self, item: Item) -> None:
        self.say(self.words("keysview.change", action=item.key, press="ctrl+y"), "accent")


SCREENS: dict[str, type[Frame]] = {
    "sessions": SessionPicker,
    "models": ModelPicker,
    "providers": ProviderPicker,
    "keys": KeysScreen,
}
