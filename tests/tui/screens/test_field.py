"""The line to type into."""

from textual import events

from codewhale.tui.widgets import Field
from support.tuirecord import hosted, screen_text, until
from support.tuiscreens import HOSTILE


async def test_what_is_pasted_or_put_in_is_made_safe() -> None:
    async with hosted(lambda palette: Field("x\x1b[2Jy\tz\n字")) as (host, pilot):
        field = host.panel
        assert field.value == "x[2Jy z 字"
        field.focus()
        host.post_message(events.Paste(HOSTILE))
        await until(pilot, lambda: field.value == "a]0;t[2J")
        field.value = HOSTILE
        assert "\u202e" not in field.value and "\x9b" not in field.value
        await pilot.pause()
        assert not set("\x1b\x9b\x07\u202e") & set(screen_text(host))
        await pilot.press("é", "a")
        assert "éa" in field.value
