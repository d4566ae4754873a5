"""Connecting a model: a server on this machine, a provider with a key, any address, or the scripted demonstration. What
is chosen is asked at once and its models are listed. Every step leads on or back, and what was typed stays."""

import asyncio
import re
from collections.abc import Sequence
from typing import ClassVar

from textual.widgets import Input

from codewhale.display.text import flat
from codewhale.protocol.ops import ConnectProvider
from codewhale.protocol.views import CheckEndpoint, EndpointView, FindLocal, ListProviders, ProviderRow
from codewhale.tui.rows import Item, unranked
from codewhale.tui.screens.context import Connected, ScreenContext, ShowLine
from codewhale.tui.screens.frame import Chooser
from codewhale.tui.screens.pickers import model_item

_OWN, _DEMO, _LOOK, _TYPED, _MORE, _EXPOSED = "custom", "demo", "look", "typed", "more", "exposed"
_FIRST = "deepseek"
# The steps in which something is typed that is no search.
_FIELDS = ("address", "key", "name")
# What can be nothing but an address, however the rows are called.
_ADDRESS = re.compile(
    r"\s*(?:\w+://.*|:?\d{2,5}|(?:localhost|\d+(?:\.\d+){3}|\[[0-9a-f:]+\])(?::.*|/.*)?|[\w.-]+:\d+.*)"
)


class FirstRun(Chooser):
    """The ways to a model. `argument` is a provider to connect at once, or an address."""

    PANEL = "firstrun"
    DEFAULT_CSS = """
    FirstRun.asking #parts, FirstRun.asking #detail { display: none; }
    """
    USES: ClassVar[bool] = True  # what was connected is asked from then on

    def __init__(self, context: ScreenContext, argument: str = "") -> None:
        super().__init__(context, argument)
        self._texts = context.typed
        self._steps = ["ways"]
        self._ways: Sequence[Item] = ()
        self._keyed: Sequence[Item] = ()  # providers that lack a key, behind a row of their own until they are sought
        self._row: ProviderRow | None = None
        self._view: EndpointView | None = None
        self._called = self._key = self._exposed = ""  # the last is the address that may be asked unencrypted
        self._cursors: dict[str, str] = {}

    def on_unmount(self) -> None:
        self._texts.pop("key", None)

    def hints(self) -> tuple[tuple[str, str], ...]:
        back = ("chooser.close", "firstrun.back" if len(self._steps) > 1 else "frame.close")
        if self._step in _FIELDS:
            return (("chooser.choose", "frame.done"), back)
        if self._step == "models":
            return (("chooser.choose", "firstrun.connect"), ("chooser.other", "firstrun.rename"), back)
        again = (("chooser.reload", "firstrun.again"),) if self._step == "ways" else ()
        return (("chooser.choose", "frame.choose"), *again, back)

    # -------------------------------------------------------------- the ways

    async def rows(self) -> Sequence[Item] | None:
        session = self.context.session
        asked = (self.context.query(ListProviders(session)), self.context.query(FindLocal(session)))
        answers = await self.ask(asyncio.gather(*asked, return_exceptions=True), "providers.looking") or ((), ())
        rows, local = ((() if isinstance(answer, BaseException) else answer) for answer in answers)
        self._wrong = next((str(answer) for answer in answers if isinstance(answer, Exception)), self.said)
        self._ways = self._grouped(rows, local)
        return self._ways if self._step == "ways" else self._all

    def _grouped(self, rows: Sequence[ProviderRow], local: Sequence[ProviderRow]) -> list[Item]:
        words = self.words
        names = {row.name for row in local}
        here = [self._provider(row, words("firstrun.local")) for row in local]
        rest = [row for row in _in_order(rows) if row.name not in names and row.base_url]
        ready = [self._provider(row, words("firstrun.ready")) for row in rest if row.ready]
        self._keyed = [self._provider(row, words("firstrun.hosted")) for row in rest if not row.ready]
        named = ", ".join(flat(item.label, 30) for item in self._keyed[:3])
        more = Item(_MORE, words("firstrun.more"), f"{named} …", words("firstrun.other"), "+", "accent")
        own = Item(_OWN, words("firstrun.own"), words("firstrun.own_more"), words("firstrun.other"), "+", "accent")
        demo = Item(_DEMO, words("firstrun.demo"), words("firstrun.demo_more"), words("firstrun.other"), "▷", "accent")
        nothing = words("firstrun.no_local"), words("firstrun.no_local_more"), words("firstrun.local")
        self.start = next((item.key for item in (*here, *ready)), _DEMO)
        return [*(here or [Item(_LOOK, *nothing, "·", "muted")]), *ready, own, *([more] if self._keyed else []), demo]

    def _provider(self, row: ProviderRow, group: str) -> Item:
        mark, tone = ("✓", "success") if row.ready else ("", "muted")
        said = ", ".join(row.models[:3]) or row.base_url if row.local else _said_of(row)
        return Item(row.name, row.name, said, group, mark, tone, row.base_url, row)

    async def load(self) -> None:
        """Get the ways again; go on at once with what was asked for."""
        self._wrong = ""
        await super().load()
        if self._wrong:
            self.say(self._wrong, "error")
        left = self._texts.get("ways", "") if self._step == "ways" and not self.sought else ""
        wanted, self.argument = self.argument or (left if _ADDRESS.fullmatch(left) else ""), ""
        item = next((item for item in (*self._ways, *self._keyed) if item.key == wanted), None)
        if item is not None:
            self.chosen(item)
        elif wanted:
            self._texts["ways"] = wanted
            self._show("ways")
            if not _ADDRESS.fullmatch(wanted):
                self.say(self.words("firstrun.unknown", name=flat(wanted, 60)), "warning")

    def behind(self) -> Sequence[Item]:
        """What is typed as an address, or as the id of a model."""
        text = self.sought.strip()
        if self._step == "models":
            listed = any(item.label == text for item in self._all)
            group = self.words("models.group_typed")
            return [] if listed or not text else [Item(_TYPED, text, "", group, "+", "accent", value=text)]
        if not text or not ({*text} & {*".:/"} or _ADDRESS.fullmatch(text)) or " " in text:
            return []
        more = self.words("firstrun.own_more")
        return [Item(_OWN, self.words("firstrun.ask_at", address=text), more, "", "+", "accent", value=text)]

    def filter(self, stay: bool = False) -> None:
        if self._step == "ways" and _ADDRESS.fullmatch(self.sought):
            self.list.show(unranked(self.behind()))
        else:
            if self._step == "ways":
                self._all = [*self._ways, *self._keyed] if self.sought.strip() else self._ways
            super().filter(stay)

    def chosen(self, item: Item) -> None:
        if self._step == "models":
            self.work(lambda: self._connect(item.label), "connect")
        elif self._step == _EXPOSED and self._view is not None:
            self.action_close()
            if item.key == _EXPOSED:
                self._check(self._row, self._view.base_url)
        elif item.key == _DEMO:
            self.dismiss(Connected("", demo=True))
        elif item.key == _LOOK:
            self.action_reload()
        elif item.key == _MORE:
            self._go("providers")
        elif item.key == _OWN and item.value is None:
            self._go("address")
        elif item.key == _OWN:
            self._texts["address"] = str(item.value)
            self._check(None)
        elif item.value.ready and self.USES:
            self._check(item.value)
        else:
            if self._row is not item.value:
                self._texts.pop("key", None)
            self._row, self._view = item.value, None
            self._go("key")

    def typed(self, text: str) -> None:
        """An address that no row offers: it is asked, to be told what is wrong with it."""
        if self._step == "ways" and {*text} & {*".:/"}:
            self._texts["address"] = text
            self._check(None)

    # -------------------------------------------------------------- steps

    @property
    def _step(self) -> str:
        return self._steps[-1]

    def _go(self, step: str) -> None:
        self._leave()
        self._steps.append(step)
        self._show(step)

    def _leave(self) -> None:
        self._texts[self._step] = self.sought
        self._cursors[self._step] = self.list.current.key if self.list.current is not None else ""

    def _show(self, step: str) -> None:
        """The step with what was typed in it."""
        asking, field = step in _FIELDS, self.query_one("#sought", Input)
        self.set_class(asking, "asking")
        self.list.display = not asking
        rows = {"providers": self._keyed, "models": self._models(), _EXPOSED: self._whether()}
        self._all = rows.get(step, self._ways)
        place = "" if self._view is None else self._view.base_url
        who = flat(self._row.name, 60) if self._row is not None else self._called
        self.retitle("" if step in ("ways", "providers") else " · ".join(filter(None, (who, flat(place, 60)))))
        field.password = step == "key"
        sought = f"{self.PANEL}.search" if step in ("ways", "providers") else f"firstrun.field_{step}"
        field.placeholder = self.words(sought)
        with self.prevent(Input.Changed):
            field.value = self._texts.get(step, "")
        field.cursor_position = len(field.value)
        field.focus()
        self.start = self._cursors.get(step) or self.start
        self.list.show(())
        self.filter()
        env = self._row.key_env if self._row is not None else ""
        named = self.words(f"firstrun.ask_key{'_env' if env else ''}", who=who, env=flat(env, 60))
        self.say(named if step == "key" else self.words(f"firstrun.ask_{step}") if asking else self._listed(step))
        self.lay_out()

    def _whether(self) -> list[Item]:
        """Whether to ask a place that cannot be asked encrypted."""
        no = Item("back", self.words("firstrun.exposed_no"), self.words("firstrun.exposed_https"))
        return [no, Item(_EXPOSED, self.words("firstrun.exposed_yes"), mark="!", tone="warning")]

    def _models(self) -> list[Item]:
        return [] if self._view is None else [model_item(row, self) for row in self._view.models]

    def _listed(self, step: str) -> str:
        if step != "models":
            return self.words("firstrun.exposed") if step == _EXPOSED else ""
        return self.words("firstrun.listed" if self._all else "firstrun.no_list", n=len(self._all))

    def action_choose(self) -> None:
        """Take the row, or what was typed in a step without rows."""
        step, value = self._step, self.sought.strip()
        if step not in _FIELDS:
            super().action_choose()
        elif not value:
            self.say(self.words(f"firstrun.needs_{step}"), "warning")
        elif step == "name":
            self._called = value
            self.action_close()
        else:
            self._texts[step] = value
            if step == "key" and not self.USES:
                self.work(lambda: self._connect(""), "connect")
            else:
                self._check(*((self._row, self._exposed) if step == "key" else (None,)))

    def _check(self, row: ProviderRow | None, exposed: str = "") -> None:
        self._row, self._exposed = row, exposed
        self.work(self._checked, "connect")

    async def _checked(self) -> None:
        """Ask what was chosen, and go on to its models, or to its key."""
        row, key = self._row, self._texts.get("key", "") if self._step == "key" else ""
        address = "" if row is not None else self._texts.get("address", "")
        name, place = ("", self._exposed) if row is None else (row.name, "")
        query = CheckEndpoint(self.context.session, place or address, name, key, bool(self._exposed))
        view = await self.ask(self.context.query(query), "firstrun.asking")
        if view is None:
            return
        self._view, self._called, self._key = view, view.name, key
        if view.exposed:
            self._texts.pop(_EXPOSED, None)
            self._cursors[_EXPOSED] = "back"
            self._go(_EXPOSED)
        elif view.wants_key:
            if self._step != "key":
                self._texts.pop("key", None)
                self._go("key")
            self.say(view.why, "error" if key else "warning")
        elif view.why:
            self.say(view.why, "error")
        else:
            self._texts.pop("models", None)
            self._cursors["models"] = f"{view.name}/{view.model}"
            self._go("models")

    async def _connect(self, model: str) -> None:
        view, row = self._view, self._row
        name = row.name if row is not None else self._called
        base_url = view.base_url if view is not None and row is None else ""
        key = self._key if self.USES else self._texts["key"]
        op = ConnectProvider(self.context.session, name, key, base_url, model, self.USES, bool(self._exposed))

        async def connect() -> tuple[str]:
            return (str(await self.context.submit(op) or ""),)

        wrong = await self.ask(connect(), "firstrun.connecting")
        if wrong is not None and wrong[0]:
            self.say(wrong[0], "error")
        elif wrong is not None:
            self._texts.clear()
            stored = ShowLine(self.words("firstrun.logged_in", who=flat(name, 60)))
            self.dismiss(Connected(name, model) if self.USES else stored)

    # -------------------------------------------------------------- keys

    def action_previous(self) -> None:
        if self._step not in _FIELDS:
            super().action_previous()

    def action_next(self) -> None:
        if self._step not in _FIELDS:
            super().action_next()

    def action_reload(self) -> None:
        if self._step == "ways":
            super().action_reload()

    def action_other(self) -> None:
        """Another name for what is at an address of one's own."""
        if self._step == "models" and self._row is None:
            self._texts["name"] = self._called
            self._go("name")

    def action_close(self) -> None:
        """A step back, with what was typed kept; from the first one out, to come back by command."""
        self.workers.cancel_group(self, "connect")
        self._leave()
        if len(self._steps) > 1:
            self._steps.pop()
            self._show(self._step)
        else:
            self.dismiss(None)


class Login(FirstRun):
    """A key for a provider: it is checked and kept, the model stays. `argument` is the provider."""

    PANEL = "login"
    USES = False

    def _grouped(self, rows: Sequence[ProviderRow], local: Sequence[ProviderRow]) -> list[Item]:
        known = [row for row in rows if row.key_env or row.current or row.name == self.argument]
        self.start = next((row.name for row in known if row.current), "")
        return [self._provider(row, self.words("firstrun.hosted")) for row in known]


SCREENS: dict[str, type[FirstRun]] = {"firstrun": FirstRun, "login": Login}


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
