"""Connecting a model: a provider with a key, one on this machine, any endpoint, or the scripted demonstration. Every
step leads on or back."""

from collections.abc import Iterable, Sequence
from typing import ClassVar

from textual import on
from textual.widget import Widget
from textual.widgets import Input

from codewhale.display.text import flat
from codewhale.protocol.ops import ConnectProvider
from codewhale.protocol.views import FindLocal, ListProviders, ProviderRow
from codewhale.tui.rows import Item
from codewhale.tui.screens.context import Connected, ScreenContext
from codewhale.tui.screens.frame import Chooser
from codewhale.tui.widgets import Field

OWN = "custom"
_DEMO = "demo"
_FIRST = "deepseek"


class FirstRun(Chooser):
    """The ways to a model. `argument` is a provider to connect at once."""

    PANEL = "firstrun"
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("chooser.next", "frame.move"),
        ("chooser.choose", "frame.choose"),
        ("chooser.reload", "firstrun.again"),
        ("chooser.close", "firstrun.back"),
    )

    DEFAULT_CSS = """
    FirstRun #field { display: none; background: $cw-code-background; }
    FirstRun.asking #field { display: block; }
    FirstRun.asking #parts, FirstRun.asking #sought { display: none; }
    """

    def __init__(self, context: ScreenContext, argument: str = "") -> None:
        super().__init__(context, argument)
        self._row: ProviderRow | None = None
        self._given: dict[str, str] = {}
        self._wanted: list[str] = []

    def body(self) -> Iterable[Widget]:
        yield from super().body()
        yield Field(id="field", max_length=4000)

    def hints(self) -> tuple[tuple[str, str], ...]:
        if self.has_class("asking"):
            return (("chooser.choose", "frame.done"), ("chooser.close", "firstrun.back"))
        return self.HINTS

    # -------------------------------------------------------------- the ways

    async def rows(self) -> Sequence[Item] | None:
        session, words = self.context.session, self.words
        rows: Sequence[ProviderRow] = await self.ask(self.context.query(ListProviders(session)), "frame.loading") or ()
        wrong = self.said
        local: Sequence[ProviderRow] = await self.ask(self.context.query(FindLocal(session)), "providers.looking") or ()
        self._wrong = wrong or self.said
        found = [self._provider(row, words("firstrun.local")) for row in local]
        names = {row.name for row in local}
        known = [self._provider(row, words("firstrun.hosted")) for row in _in_order(rows) if row.name not in names]
        own = Item(OWN, words("firstrun.own"), words("firstrun.own_more"), words("firstrun.other"), "+", "accent")
        demo = Item(_DEMO, words("firstrun.demo"), words("firstrun.demo_more"), words("firstrun.other"), "▷", "accent")
        if not local:
            self.start = _DEMO
            nothing = words("firstrun.no_local")
            found = [Item("look", nothing, words("firstrun.no_local_more"), words("firstrun.local"), "·", "muted")]
        return [*found, demo, own, *known] if not local else [*found, *known, own, demo]

    def _provider(self, row: ProviderRow, group: str) -> Item:
        mark, tone = ("✓", "success") if row.ready else ("", "muted")
        said = ", ".join(row.models[:3]) or row.base_url if row.local else _said_of(row)
        return Item(row.name, row.name, said, group, mark, tone, row.base_url, row)

    async def load(self) -> None:
        """Get the ways again; go on at once with the provider that was asked for."""
        self._wrong = ""
        await super().load()
        if self._wrong:
            self.say(self._wrong, "error")
        wanted = next((item for item in self.list.items if item.key == self.argument), None)
        self.argument = ""
        if wanted is not None:
            self.chosen(wanted)

    def chosen(self, item: Item) -> None:
        if item.key == _DEMO:
            self.dismiss(Connected("", demo=True))
        elif item.key == "look":
            self.action_reload()
        elif item.key == OWN and item.value is None:
            self._begin(None, ["name", "base_url", "key", "model"])
        elif item.value.local or not item.value.key_env:
            self._begin(item.value, [])
        else:
            self._begin(item.value, ["key"])

    # -------------------------------------------------------------- what is needed

    @property
    def _field(self) -> Input:
        return self.query_one("#field", Input)

    def _begin(self, row: ProviderRow | None, wanted: list[str]) -> None:
        self._row, self._wanted, self._given = row, wanted, {}
        if wanted:
            self._ask_for()
        else:
            self.work(self._connect, "connect")

    def _ask_for(self) -> None:
        name = self._wanted[len(self._given)]
        who = flat(self._row.name, 60) if self._row is not None else self._given.get("name", "")
        self.set_class(True, "asking")
        self.retitle(who)
        self._show_hints()
        field = self._field
        field.value = ""
        field.password = name == "key"
        field.placeholder = self.words(f"firstrun.field_{name}")
        field.focus()
        env = self._row.key_env if self._row is not None else ""
        self.say(self.words(f"firstrun.ask_{name}", who=who, env=flat(env, 60)))

    @on(Input.Submitted, "#field")
    def _answered(self, event: Input.Submitted) -> None:
        event.stop()
        name, value = self._wanted[len(self._given)], event.value.strip()
        if not value and (name in ("name", "base_url") or (name == "key" and self._row is not None)):
            self.say(self.words(f"firstrun.needs_{name}"), "warning")
            return
        self._given[name] = value
        if len(self._given) < len(self._wanted):
            self._ask_for()
        else:
            self.work(self._connect, "connect")

    async def _connect(self) -> None:
        row, given = self._row, self._given
        name = row.name if row is not None else given["name"]
        base_url = given.get("base_url", "") or (row.base_url if row is not None and row.local else "")
        model = given.get("model", "") or (row.models[0] if row is not None and row.models else "")
        op = ConnectProvider(self.context.session, name, given.get("key", ""), base_url, model)

        async def connect() -> tuple[str]:
            return (str(await self.context.submit(op) or ""),)

        wrong = await self.ask(connect(), "firstrun.connecting")
        if wrong is not None and not wrong[0]:
            self.dismiss(Connected(name, model))
            return
        if wrong is not None:
            self.say(wrong[0], "error")
        # Nothing is lost: the last field can be given again, or another way be taken.
        if self._wanted:
            said = self.said
            self._given.popitem()
            self._ask_for()
            self.say(said, "error")

    def action_previous(self) -> None:
        if not self.has_class("asking"):
            super().action_previous()

    def action_next(self) -> None:
        if not self.has_class("asking"):
            super().action_next()

    def action_close(self) -> None:
        """A step back; from the first one out, to come back by command."""
        if self.has_class("asking"):
            self.set_class(False, "asking")
            self.retitle()
            self._show_hints()
            self.say("")
            self.query_one("#sought", Input).focus()
        else:
            self.dismiss(None)


def _in_order(rows: Sequence[ProviderRow]) -> list[ProviderRow]:
    """The house's own first, then by name; a second address or dialect of one stands behind all others. Servers of this
    machine that do not answer are left out."""
    names = {row.name for row in rows}

    def place(row: ProviderRow) -> tuple[bool, bool, bool, str]:
        first, _, more = row.name.partition("-")
        return not row.ready, row.name != _FIRST, bool(more) and first in names, row.name

    return sorted((row for row in rows if row.ready or not row.local), key=place)


def _said_of(row: ProviderRow) -> str:
    """Where a provider is, and the variable that its key may stand in; what is wrong where it is not just the key."""
    if not row.ready and (not row.key_env or row.key_env not in row.why):
        return row.why
    host = row.base_url.partition("://")[2].partition("/")[0]
    return " · ".join(part for part in (host, "" if row.ready else row.key_env) if part)
