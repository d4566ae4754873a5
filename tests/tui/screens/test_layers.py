"""The layers of a context: what is said of each, and what its actions come to."""

import pytest

from codewhale.display.words import catalogue
from codewhale.protocol.memory import LayerRow
from codewhale.protocol.ops import SessionStatus
from codewhale.protocol.views import GetContext
from codewhale.tui.screens.context import OfferText, OpenScreen, RunLine, ShowLine
from codewhale.tui.screens.layers import ACTIONS, NOTES
from support.tuiapp import STATUS
from support.tuiscreens import context_view, opened, parts

LAYER = LayerRow(
    "user-memory", "User memory", "global", "user", "head", 3, 300, 200, 50,
    actions=(("add", "/memory add TEXT"), ("doctor", "/memory doctor"), ("own", "codewhale own")),
    note="2 of 3 facts are sent; 1 wait for you: /memory waiting; of 7 whales",
)  # fmt: skip


def answers() -> dict[type, object]:
    return {GetContext: context_view(rows=(LAYER,), parts=parts(("tools", 9))), SessionStatus: STATUS}


@pytest.mark.parametrize(
    ("downs", "outcome"),
    [
        (0, RunLine("/context user-memory")),
        (1, OfferText("/memory add ")),
        (2, RunLine("/memory doctor")),
        (3, ShowLine("Type this in a shell: codewhale own")),
    ],
)
async def test_an_action_of_a_layer_is_run_or_written(downs: int, outcome: object) -> None:
    async with opened("context", answers()) as stage:
        await stage.press("enter")
        assert await stage.done() == OpenScreen("layers")
        await stage.open("layers")
        await stage.press(*["down"] * downs, "enter")
        assert await stage.done() == outcome


@pytest.mark.parametrize("language", ["en", "zh-Hans"])
async def test_what_is_noted_of_a_layer_is_said_in_the_language_of_the_person(language: str) -> None:
    words = {name: catalogue(language, "layers") for name in (*ACTIONS, *(f"note_{name}" for name in NOTES.values()))}
    assert all(name in known for name, known in words.items())
    async with opened("context", answers(), size=(120, 60), language=language) as stage:
        text = await stage.shown("/memory waiting", "of 7 whales")
        assert ("2 of 3 facts are sent" in text) == (language == "en")
        assert ("发送 3 条中的 2 条" in text) == (language != "en")
