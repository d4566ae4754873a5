"""Attachments on their line."""

import os
from pathlib import Path

from codewhale.tui.composer.composer import Composer
from support.composing import desk
from support.minipng import PNG
from support.tuirecord import screen_text


async def test_an_image_is_attached_sent_and_taken_away(tmp_path: Path) -> None:
    image = tmp_path / "shot one.png"
    image.write_bytes(PNG)
    async with desk(tmp_path) as here:
        here.composer.text._pasted(f"'{image}'")
        await here.until(lambda: "image shot one.png" in screen_text(here.host))
        await here.pilot.press("backspace")
        await here.until(lambda: "shot one" not in screen_text(here.host))
        here.composer.text._pasted(f"file://{str(image).replace(' ', '%20')}")
        await here.pilot.press(*"see", "enter")
        [sent] = await here.until(lambda: here.said(Composer.Sent))
        [attachment] = sent.attachments
        assert (attachment.name, attachment.media_type) == ("shot one.png", "image/png")
        assert Path(attachment.path).read_bytes() == PNG
        await here.pilot.press("up")
        assert here.composer.draft.chips[0].name == "shot one.png"
        await here.pilot.press("home", *"/status ", "enter")
        assert here.said(Composer.Command) == [] and here.composer.draft.chips
        os.unlink(attachment.path)
        await here.pilot.press("ctrl+u", "x", "enter")
        assert len(here.said(Composer.Sent)) == 1 and here.text == "xsee"


async def test_the_last_ones_are_seen_and_the_others_counted(tmp_path: Path) -> None:
    async with desk(tmp_path, size=(50, 12)) as here:
        for number in range(25):
            here.composer.text._pasted(f"{number}\n" * 30)
        await here.until(lambda: "20 attachments" in screen_text(here.host))
        await here.until(lambda: "pasted text, 30 lines" in screen_text(here.host))
        assert "+19" in screen_text(here.host)
        assert len(here.composer.draft.chips) == 20
