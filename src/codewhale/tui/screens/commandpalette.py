"""Help, and the palette: commands, sessions, files, models, tools and what keys do, in one list; what was chosen last
comes first."""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from typing import Any, ClassVar, TypeVar

from msgspec.structs import replace
from textual.widget import Widget

from codewhale.display.when import ago
from codewhale.lib.text import one_line
from codewhale.protocol.ops import ListSessions, SetModel
from codewhale.protocol.views import (
    CommandRow,
    FindFiles,
    GetTools,
    ListCommands,
    ListModels,
    ListServers,
    ModelRow,
    ServerRow,
    SessionSummary,
)
from codewhale.tui.commands import GROUPS, group_of, key_of, screen_of
from codewhale.tui.keys import ACTIONS, first_key, key_shown, keys_of
from codewhale.tui.paint import CURRENT
from codewhale.tui.rows import Item
from codewhale.tui.screens.context import (
    InsertText,
    OpenPath,
    OpenScreen,
    Outcome,
    Resume,
    RunAction,
    RunLine,
    ScreenContext,
    ShowLine,
)
from codewhale.tui.screens.frame import Chooser
from codewhale.tui.widgets import TagLine

MOST_SESSIONS = 50
MOST_FILES = 30
MOST_OFFERED = 200
_SETTLE_SECONDS = 0.05
_T = TypeVar("_T")


# What a person needs first, in this order.
FIRST: tuple[str, ...] = (
    "composer.send", "composer.newline", "composer.steer", "composer.escape", "app.interrupt", "app.palette",
    "composer.mode", "composer.complete", "composer.effort", "app.sessions", "app.models", "app.jobs", "app.agents",
    "app.tasks", "app.focus_transcript", "app.search", "app.pager", "app.copy_answer", "app.keys",
)  # fmt: skip
_TYPED: tuple[tuple[str, str], ...] = (("/", "slash"), ("@", "file"), ("!", "shell"))


class CommandList(Chooser):
    """Commands in groups, each with what it does and its key. Enter runs one, or puts it into the composer where it
    needs more words."""

    def commands(self, rows: Iterable[CommandRow]) -> list[Item]:
        order = list(GROUPS)
        return [self._command(row) for row in sorted(rows, key=lambda row: (order.index(group_of(row.name)), row.name))]

    def _command(self, row: CommandRow) -> Item:
        screen = screen_of(row.name)
        needs = bool(row.usage) and not row.usage.startswith("[") and screen is None
        opened = OpenScreen(*screen) if screen is not None else RunLine(row.name)
        outcome: Outcome = InsertText(f"{row.name} ") if needs else opened
        group = self.words(f"palette.commands_{group_of(row.name)}")
        key = key_of(row.name, self.context.keys)
        return Item(f"command:{row.name}", row.name, row.summary, group, more=row.usage, value=outcome, side=(key,))

    def beneath(self, item: Item) -> str:
        """How a command is written, and its sentence where the row cuts it."""
        usage = f"{item.label} {item.more}" if item.key.partition(":")[0] in ("command", "recent") and item.more else ""
        return " · ".join(part for part in (usage, super().beneath(item)) if part)

    def chosen(self, item: Item) -> None:
        self.dismiss(item.value)


class HelpScreen(CommandList):
    """What is typed first, the keys that a person needs first, and the commands; `argument` is one to tell of alone."""

    PANEL = "help"

    def body(self) -> Iterable[Widget]:
        yield self._intro
        yield from super().body()

    def on_mount(self) -> None:
        self._intro.show([((self.words("help.intro"), "text"),), ()])

    def __init__(self, context: ScreenContext, argument: str = "") -> None:
        super().__init__(context, argument)
        self._intro = TagLine(context.palette, id="intro")

    async def rows(self) -> Sequence[Item] | None:
        rows = await self.ask(self.context.query(ListCommands(self.context.session)), "frame.loading") or ()
        name = f"/{self.argument.lstrip('/')}"
        if alone := [row for row in rows if row.name == name]:
            return self.commands(alone)
        words, changed = self.words, self.context.keys
        typed = [Item(f"typed:{sign}", sign, words(f"help.{id}"), words("help.typing")) for sign, id in _TYPED]
        keys = [
            Item(f"action:{id}", first_key(id, changed), words(f"keys.{id}"), words("help.keys"), value=RunAction(id))
            for id in FIRST
        ]
        return [*typed, *keys, *self.commands(rows)]


class CommandPalette(CommandList):
    """Everything there is to choose. Enter runs, opens or inserts it; the other key inserts a command, opens a file or
    forks a session."""

    PANEL = "palette"
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        *Chooser.HINTS[:2],
        ("chooser.other", "palette.other"),
        *Chooser.HINTS[2:],
    )

    def __init__(self, context: ScreenContext, argument: str = "") -> None:
        super().__init__(context, argument)
        self._files: tuple[str, Sequence[Item]] = ("", ())  # what was sought, and the files that were found for it

    async def rows(self) -> Sequence[Item] | None:
        session = self.context.session
        query = self.context.query
        commands, models, tools, sessions, servers = await asyncio.gather(
            self._had(query(ListCommands(session))),
            self._had(query(ListModels(session))),
            self._had(query(GetTools(session))),
            self._had(query(ListSessions(self.context.workspace))),
            self._had(query(ListServers(session))),
        )
        words = self.words
        rows = self.commands(commands or ())
        rows += [_action(row, self) for row in ACTIONS if row.panel == "app"]
        rows += [self._session(row) for row in (sessions or ())[:MOST_SESSIONS]]
        rows += [self._model(row) for row in models or ()]
        group = words("palette.group_tools")
        for name, size in tools.tools if tools is not None else ():
            said = words("palette.tool", bytes=f"{size:,}")
            rows.append(Item(f"tool:{name}", name, "", group, value=OpenScreen("tools", name), side=(said,)))
        rows += [item for server in servers or () for item in self._server(server)]
        return [*self._recent(rows), *rows]

    def _server(self, row: ServerRow) -> Iterable[Item]:
        """A server with its state, also one that is off or has failed, then what it offers."""
        words, group = self.words, self.words("palette.group_server", name=one_line(row.name, 60))
        said = (
            words("palette.server_error", state=row.state, error=one_line(row.error, 160)) if row.error else row.state
        )
        shown = RunLine(f"/mcp show {row.name}")
        yield Item(f"server:{row.name}", f"/mcp show {row.name}", said, group, value=shown, side=(row.transport,))
        for wire, _, about in row.tools[:MOST_OFFERED]:
            yield Item(f"served:{wire}", wire, one_line(about, 160), group, value=shown)
        others = [("prompt", *one) for one in row.prompts] + [("resource", *one) for one in row.resources]
        for kind, name, about in others[:MOST_OFFERED]:
            key, side = f"{kind}:{row.name}/{name}", (words(f"palette.{kind}"),)
            yield Item(key, one_line(name, 80), one_line(about, 160), group, value=shown, side=side)

    async def _had(self, asked: Awaitable[_T]) -> _T | None:
        return await self.ask(asked)

    def _session(self, row: SessionSummary) -> Item:
        here = row.id == self.context.session
        when = ago(self.words, row.updated, self.context.now())
        group = self.words("palette.group_sessions")
        title = row.title or self.words("sessions.untitled")
        mark = CURRENT if here else ""
        return Item(f"session:{row.id}", title, "", group, mark, more=row.id, value=Resume(row.id), side=(when,))

    def _model(self, row: ModelRow) -> Item:
        mark = CURRENT if row.current else "" if row.ready else "·"
        group = self.words("palette.group_models")
        key = f"model:{row.provider}/{row.model}"
        return Item(key, row.model, "", group, mark, more=row.why, value=row, side=(row.provider,))

    def _recent(self, rows: Sequence[Item]) -> list[Item]:
        by_key = {row.key: row for row in rows}
        group = self.words("palette.group_recent")
        keys = [key for key in self.context.recent if key in by_key]
        found = [replace(by_key[key], key=f"recent:{key}", group=group) for key in keys]
        files = [key.removeprefix("file:") for key in self.context.recent if key.startswith("file:")]
        return [*found, *(_file(path, group, "recent:") for path in files)]

    # -------------------------------------------------------------- files come as they are typed

    def sought_changed(self) -> None:
        """Files are asked for; all else is here."""
        self.filter()
        if self.sought.strip():
            self.work(self._find_files, "files")

    def behind(self) -> Sequence[Item]:
        """The files, whenever they and all else have come."""
        sought, files = self._files
        return files if sought == self.sought.strip() else ()

    async def _find_files(self) -> None:
        top = self.list.current
        await asyncio.sleep(_SETTLE_SECONDS)
        if not self.is_attached:  # the screen was closed meanwhile
            return
        sought = self.sought.strip()
        found = await self.ask(self.context.query(FindFiles(self.context.session, sought, MOST_FILES)))
        if found and self.is_attached and sought == self.sought.strip():
            if not self.list.items:
                self.say("")
            group = self.words("palette.group_files")
            self._files = sought, [_file(row.path, group) for row in found]
            # They come late and stand last: what enter takes is not changed under the person's hand.
            self.filter(stay=self.list.current is not top)

    # -------------------------------------------------------------- what a row does

    def chosen(self, item: Item) -> None:
        self._remember(item)
        if isinstance(item.value, ModelRow):
            row = item.value
            if row.ready:
                self.work(lambda: self._use(row), "choose")
            else:
                self.dismiss(OpenScreen("firstrun", row.provider))
        else:
            self.dismiss(item.value)

    def typed(self, text: str) -> None:
        """A slash command that is not listed runs all the same."""
        if text.startswith("/"):
            self.dismiss(RunLine(text))

    def action_other(self) -> None:
        item = self.list.current
        if item is None:
            return
        outcome: Outcome | None = None
        match item.value:
            case Resume(session=session):
                outcome = Resume(session, fork=True)
            case InsertText(text=text) if text.startswith("@"):
                outcome = OpenPath(item.label)
            case RunLine() | OpenScreen() if item.label.startswith("/"):
                outcome = InsertText(f"{item.label.split()[0]} ")
        if outcome is not None:
            self._remember(item)
            self.dismiss(outcome)

    def _remember(self, item: Item) -> None:
        key = item.key.removeprefix("recent:")
        recent = self.context.recent
        if key in recent:
            recent.remove(key)
        recent.appendleft(key)

    async def _use(self, row: ModelRow) -> None:
        done = await self.ask(self._set_model(row))
        if done:
            self.dismiss(ShowLine(self.words("models.set", model=one_line(row.model), provider=one_line(row.provider))))

    async def _set_model(self, row: ModelRow) -> bool:
        await self.context.submit(SetModel(self.context.session, row.model, row.provider))
        return True


def _file(path: str, group: str, before: str = "") -> Item:
    value: Outcome = InsertText(f"@{path} ")
    return Item(f"{before}file:{path}", path, "", group, value=value)


def _action(row: Any, palette: Chooser) -> Item:
    keys = ", ".join(key_shown(key) for key in keys_of(row, palette.context.keys))
    said = palette.words(f"keys.{row.id}")
    group = palette.words("palette.group_actions")
    return Item(f"action:{row.id}", said, "", group, value=RunAction(row.id), side=(keys,))


SCREENS: dict[str, type[Chooser]] = {"palette": CommandPalette, "help": HelpScreen}
