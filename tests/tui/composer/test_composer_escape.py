"""Whatever is pressed, in whatever order: no text is lost."""

import random
from pathlib import Path

import pytest

from codewhale.protocol.events import TurnFinished, TurnStarted
from codewhale.protocol.views import QueuedRow
from codewhale.tui.composer.composer import Composer
from support.composing import Desk, desk
from support.tuirecord import typed

KEYS = "escape escape ctrl+s up down alt+r enter tab ctrl+t alt+q left shift+left home".split()


def everywhere(here: Desk) -> str:
    """All texts that are kept somewhere."""
    keeper = here.composer._store
    kept = [here.text, here.composer.draft.text, *(row.draft.text for row in keeper.parked())]
    kept += [entry.text for entry in keeper.history.entries] + [row.text for row in here.waiting]
    kept += [message.text for message in here.said(Composer.Sent)]
    kept += [draft.text for draft in keeper.walk._left.values()]
    return "\n".join(kept)


@pytest.mark.parametrize("seed", range(3))
async def test_no_order_of_keys_loses_a_word(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    async with desk(tmp_path) as here:
        words = []
        for number in range(12):
            if chance.random() < 0.3:
                here.happen(TurnStarted(1) if chance.random() < 0.5 else TurnFinished(1, "done"))
            if chance.random() < 0.2:
                here.waiting.append(QueuedRow(f"queued{number}", "queue"))
                words.append(f"queued{number}")
            in_list = bool(here.composer._list)
            here.composer.text.focus()
            await here.until(lambda: here.composer.text.has_focus)
            word = f"w{number}q"
            # Not into another word, and not over what is selected.
            await typed(here.pilot, ["end", *word])
            # What is typed into a list are letters to search by.
            if not in_list:
                words.append(word)
            keys = chance.choices(KEYS, k=4)
            await here.pilot.press(*[key for key in keys if "left" not in key], *[key for key in keys if key == "left"])
            found = everywhere(here)
            assert [word for word in words if word not in found] == [], keys
