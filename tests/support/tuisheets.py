"""The screens of the contact sheets: the scenes of the captures and what else a person comes by, at four widths, in all
themes and without colours, in both languages."""

import itertools
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from unittest import mock

from msgspec.structs import replace
from rich.segment import Segment
from textual.strip import Strip

from codewhale.app.families import COMMANDS as FAMILIES
from codewhale.protocol.blocks import DiffBlock
from codewhale.protocol.events import CallProgress, CallStarted, FileChanged, TurnFinished
from codewhale.protocol.files import FileChange
from codewhale.protocol.ops import SessionStatus, SessionUsage
from codewhale.protocol.views import (
    CommandRow,
    GetContext,
    GetSettings,
    ListCommands,
    ListModels,
    PreviewUndo,
    SettingRow,
    UndoView,
)
from codewhale.session.footprint import LAYERS as BARE
from support.tuiapp import STATUS, Stage
from support.tuicapture import settle, staged
from support.tuiscenes import (
    BEGUN,
    DIFF,
    MODELS,
    OPENED,
    PALETTE,
    RESULT,
    RUNS,
    SCENES,
    TURN,
    WRITES,
    Scene,
    asked,
    call,
    said,
)
from support.tuiscreens import context_view, parts, usage_view

WIDTHS = ((40, 24), (80, 24), (120, 32), (200, 40))
LOOKS = ("dark", "light", "contrast", "none")
LANGUAGES = ("en", "zh-Hans")
ROWS_SENT = {"user-memory": (300, 2), "repo-rules": (500, 2)}
LAYERS = tuple(
    replace(row, sent=3 * sent, tokens=sent, items=items, bytes=3 * sent, place="head" if sent else "not sent")
    for row in BARE
    for sent, items in [ROWS_SENT.get(row.name, (0, 0))]
)
PARTS = parts(
    ("system text", 3_000), ("tools", 7_200), ("your messages", 1_500), ("answers", 2_500), ("tool calls", 1_000),
    ("tool results", 14_000),
)  # fmt: skip
ROWS = tuple(CommandRow(name, "[N]" if name == "/undo" else "", f"What {name} does.") for name in FAMILIES)
SETTINGS = (
    SettingRow("approval", "suggest", "default", ("suggest", "auto", "never")),
    SettingRow("model", "deepseek-v4", "config.toml"),
    SettingRow("tui.theme", "dark", "config.toml", ("auto", "dark", "light", "contrast")),
)
UNDO = UndoView(((1, "Fix the discount"),), ("shop/basket.py: put back",), (), (DiffBlock("shop/basket.py", DIFF),), "")
RUNNING = (
    *BEGUN,
    asked("I'll run the tests.", ("c1", "exec_shell", '{"command":"pytest -q"}')),
    CallStarted("c1", "exec_shell", '{"command":"pytest -q"}', RUNS, "mode.agent"),
    CallProgress("c1", "collected 13 items"),
    CallProgress("c1", "test_basket.py ......"),
)
PATCH = (
    *BEGUN,
    asked("Both files have it.", ("c1", "apply_patch", "{}")),
    *call(
        "c1", "apply_patch", "{}", WRITES, display=(DiffBlock("shop/basket.py", DIFF), DiffBlock("shop/tax.py", DIFF))
    ),
    FileChanged("c1", FileChange("shop/basket.py", "a" * 64, "b" * 64)),
    FileChanged("c1", FileChange("shop/tax.py", "a" * 64, "b" * 64)),
    said("The discount comes off in both.", "model"),
    TurnFinished(1, "done", "", RESULT),
)


def opens(name: str, argument: str = "") -> Callable[[Stage], Awaitable[None]]:
    """What opens a screen."""

    async def act(stage: Stage) -> None:
        await stage.until(lambda: stage.app.link.session)
        await settle(stage)
        stage.app.open_screen(name, argument)

    return act


async def pages(stage: Stage) -> None:
    """Open the pager on the last call."""
    await settle(stage)
    stage.app.transcript.action_pager()


SCREENS = (
    Scene("start", (OPENED,), ""),
    Scene("running", RUNNING, ""),
    Scene("patch", PATCH, ""),
    *(scene for scene in SCENES if scene.name != "sub-agents"),
    Scene("commands", TURN, "", (), PALETTE | {ListCommands: ROWS}, opens("palette")),
    Scene("help", TURN, "", (), {ListCommands: ROWS}, opens("help")),
    Scene("models", TURN, "", (), {ListModels: MODELS}, opens("models")),
    Scene(
        "context",
        TURN,
        "",
        (),
        {GetContext: context_view(rows=LAYERS, parts=PARTS), SessionStatus: STATUS},
        opens("context"),
    ),
    Scene("settings", TURN, "", (), {GetSettings: SETTINGS}, opens("config")),
    Scene("undo", TURN, "", (), {PreviewUndo: UNDO}, opens("undo")),
    Scene("cost", TURN, "", (), {SessionUsage: usage_view()}, opens("cost")),
    Scene("keys", TURN, "", (), {}, opens("keys")),
    Scene("leave", TURN, "", (), {}, opens("leave", "A turn is running: it would be stopped.")),
    Scene("pager", TURN, "", (), {}, pages),
)
ALL = tuple(itertools.product(SCREENS, WIDTHS, LOOKS, LANGUAGES))


@asynccontextmanager
async def shown(scene: Scene, size: tuple[int, int], look: str, language: str) -> AsyncIterator[Stage]:
    """A screen, come to rest; the look "none" is without colours."""
    without = {"NO_COLOR": "1"} if look == "none" else {}
    with mock.patch.dict(os.environ, without):
        async with staged(scene, size, "dark" if without else look, language) as stage:
            if scene.act is not None:
                await scene.act(stage)
                await settle(stage)
            yield stage


def strips(stage: Stage) -> list[Strip]:
    """What is drawn, dialogs over what stands behind them."""
    app = stage.app
    app.screen._repaint_required = True  # what was drawn for its text alone had nothing behind it
    app.screen._styles_cache.clear()
    render = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    lines = app.console.render_lines(render, app.console.options.update(width=app.size.width), pad=True)
    return [Strip([Segment(text, style) for text, style, control in line if not control]) for line in lines]
