"""Screens for tests: one of the table opened over an app, with a client that answers as the test says."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Input, Static

from codewhale.display.palette import Palette
from codewhale.display.words import Words
from codewhale.protocol.memory import ContextPart
from codewhale.protocol.ops import CommandOutput, Limits, UsageView
from codewhale.protocol.views import (
    CommandRow,
    ContextView,
    JobRow,
    ModelRow,
    ProviderRow,
    SessionPreview,
    SessionSummary,
    SettingRow,
    ToolsView,
)
from codewhale.tui.screens.context import ScreenContext
from codewhale.tui.screens.table import load
from support.tuirecord import PanelHost, RecordedClient, hosted, screen_text, until

SESSION = "s-recorded"
WORKSPACE = "/home/anne/work"
HOSTILE = "a\x1b]0;t\x07\x1b[2J\u202e\r[bold]x[/][@click=app.quit]y[/]\x9b6n"
PENDING = object()


class Opened:
    """A screen that is open; `outcome` is PENDING until it has come to something."""

    def __init__(self, host: PanelHost, pilot: Pilot[None], client: RecordedClient, desk: ScreenContext) -> None:
        self.host, self.pilot, self.client, self.context = host, pilot, client, desk
        self.outcome: Any = PENDING
        self.screen: Any = None

    async def open(self, name: str, argument: str = "") -> None:
        """Open a screen, and let what it asks be answered."""
        self.outcome = PENDING
        self.screen = screen = load(name)(self.context, argument)
        self.host.push_screen(screen, self.close)
        await until(self.pilot, lambda: self.host.screen is screen and screen.is_mounted)
        await self.host.workers.wait_for_complete()
        await self.pilot.pause()

    def close(self, outcome: Any) -> None:
        """What the screen came to."""
        self.outcome = outcome

    @property
    def text(self) -> str:
        """What is on the screen."""
        return screen_text(self.host)

    async def shown(self, *said: str) -> str:
        """Wait until all of it is on the screen."""
        await until(self.pilot, lambda: all(one in self.text for one in said))
        return self.text

    async def press(self, *keys: str) -> None:
        """Press keys, and let what they do happen."""
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def type(self, text: str) -> None:
        """Put a text into the line that has the focus, as a paste would."""
        focused = self.host.focused
        assert isinstance(focused, Input)
        focused.value = text
        await self.pilot.pause()

    async def done(self) -> Any:
        """Wait for the outcome."""
        await until(self.pilot, lambda: self.outcome is not PENDING)
        return self.outcome

    def clean(self) -> str:
        """The screen, which holds nothing that a terminal would obey, and no line that is wider than it."""
        text = self.text
        assert not any((ord(char) < 32 and char != "\n") or 0x7F <= ord(char) < 0xA0 for char in text)
        assert "\u202e" not in text
        return text


@asynccontextmanager
async def opened(
    name: str,
    answers: Mapping[type, Any] | None = None,
    argument: str = "",
    size: tuple[int, int] = (80, 24),
    language: str = "en",
    keys: Mapping[str, str] | None = None,
) -> AsyncIterator[Opened]:
    """The screen of a name. An answer that is an exception is raised."""
    client = RecordedClient((), {kind: _raising(answer) for kind, answer in (answers or {}).items()})
    palettes: list[Palette] = []

    def make(palette: Palette) -> Static:
        palettes.append(palette)
        return Static("", markup=False)

    async with hosted(make, size) as (host, pilot):
        desk = ScreenContext(Words(language), palettes[0], client.query, client.submit, keys or {})
        desk.session, desk.workspace = SESSION, WORKSPACE
        stage = Opened(host, pilot, client, desk)
        await stage.open(name, argument)
        yield stage


def _raising(answer: Any) -> Any:
    if not isinstance(answer, Exception):
        return answer

    def fail(asked: Any) -> Any:
        raise answer

    return fail


# ------------------------------------------------------------------ rows


def command(name: str = "/mode", usage: str = "[plan|agent|yolo]", summary: str = "Show the mode.") -> CommandRow:
    """A slash command."""
    return CommandRow(name, usage, summary)


def session(number: int = 1, **fields: Any) -> SessionSummary:
    """A session of this folder."""
    given: dict[str, Any] = {
        "id": f"s-{number:04}",
        "title": f"Fix the harbour crane {number}",
        "created": "2026-03-02T09:00:00.000Z",
        "updated": f"2026-03-{number % 28 + 1:02}T10:30:00.000Z",
        "workspace": WORKSPACE,
        "turns": number,
        "messages": 2 * number,
        "model": "grey-1",
        "state": "idle",
        "parent": "",
    }
    return SessionSummary(**(given | fields))


def preview(row: SessionSummary) -> SessionPreview:
    """How it ended."""
    return SessionPreview(row, (("user", f"Please look at {row.id}"), ("assistant", "It is **done**.")))


def model(name: str = "grey-1", provider: str = "parrot", **fields: Any) -> ModelRow:
    """A model that is ready."""
    given: dict[str, Any] = {
        "provider": provider,
        "model": name,
        "window": 64_000,
        "price": {"miss": 0.5, "hit": 0.1, "output": 2, "currency": "USD"},
        "ready": True,
        "why": "",
        "current": False,
    }
    return ModelRow(**(given | fields))


def provider(name: str = "parrot", **fields: Any) -> ProviderRow:
    """A provider that lacks its key."""
    given: dict[str, Any] = {
        "name": name,
        "dialect": "openai-chat",
        "base_url": f"https://{name}.example/v1",
        "ready": False,
        "why": f"There is no key: set {name.upper()}_API_KEY.",
        "key_env": f"{name.upper()}_API_KEY",
    }
    return ProviderRow(**(given | fields))


def job(number: int = 1, **fields: Any) -> JobRow:
    """A job that runs."""
    given: dict[str, Any] = {
        "id": f"shell_{number}",
        "command": f"make watch-{number}",
        "cwd": ".",
        "status": "Running",
        "seconds": 12.0 * number,
        "exit_code": None,
        "tail": f"watching {number}\nready\n",
        "bytes": 17,
    }
    return JobRow(**(given | fields))


def setting(key: str = "model", shown: str = "grey-1", origin: str = "default", **fields: Any) -> SettingRow:
    """A value."""
    return SettingRow(key, shown, origin, **fields)


def parts(*sizes: tuple[str, int]) -> tuple[ContextPart, ...]:
    """Parts of a request by their tokens."""
    return tuple(ContextPart(name, 3 * tokens, tokens) for name, tokens in sizes)


def context_view(**fields: Any) -> ContextView:
    """A context that is half full."""
    given: dict[str, Any] = {
        "provider": "parrot",
        "model": "grey-1",
        "window": 64_000,
        "window_source": "catalog",
        "reserved": 4_000,
        "spendable": 60_000,
        "used": 30_000,
        "threshold": 48_000,
        "rows": (),
        "parts": parts(("system text", 2_000), ("tools", 9_000), ("your messages", 19_000)),
        "bytes": 90_000,
        "calibrated": True,
        "billed_input": 90_000,
        "billed_output": 5_000,
        "last_hit": 25_000,
        "last_miss": 5_000,
        "compactions": 1,
    }
    return ContextView(**(given | fields))


def usage_view(**fields: Any) -> UsageView:
    """A session of two turns."""
    sums: dict[str, Any] = {
        "calls": 4,
        "unpriced": 0,
        "input": 90_000,
        "output": 5_000,
        "cost": {"USD": 0.42},
        "saved": {"USD": 0.2},
        "hit_rate": 0.8,
    }
    given: dict[str, Any] = {
        "provider": "parrot",
        "model": "grey-1",
        "window": 64_000,
        "window_source": "catalog",
        "active": 30_000,
        "reserved": 4_000,
        "price": {"miss": 0.5, "hit": 0.1, "output": 2, "currency": "USD"},
        "turns": 2,
        "total": sums,
        "turn": sums | {"calls": 1, "cost": {"USD": 0.1}},
        "models": (),
        "calls": ({"request": 4, "usage": {"input": 100, "cache_hit": 80, "output": 9}, "cause": "expired"},),
        "limits": Limits(cost=1.0),
        "used": {"cost": 0.42, "tokens": 95_000, "turns": 4},
        "run_limits": Limits(),
        "run_used": {"cost": 0.42, "tokens": 95_000, "turns": 4},
    }
    return UsageView(**(given | fields))


def tools_view(*names: str) -> ToolsView:
    """An array of tools."""
    tools = tuple((name, 900 - 10 * number) for number, name in enumerate(names))
    return ToolsView("default", "openai-chat", 3, 12_345, tools, names[-1:])


def said(text: str, ok: bool = True) -> CommandOutput:
    """What a command says."""
    return CommandOutput(text, ok)
