"""Colours that are chosen while the interface runs."""

from pathlib import Path

from codewhale.protocol.events import SessionOpened, TurnStarted
from codewhale.protocol.modes import Mode
from codewhale.protocol.ops import ChangeSetting
from support.tuiapp import FOLDER, recorded

OPENED = SessionOpened(1, FOLDER, Mode.AGENT, "deepseek", "deepseek-v4")


async def test_themes_are_changed_and_kept(tmp_path: Path) -> None:
    (tmp_path / "themes").mkdir()
    (tmp_path / "themes/sea.toml").write_text('muted = "#222222"\n')
    async with recorded(tmp_path, [OPENED, TurnStarted(1)]) as stage:
        await stage.until("main")
        await stage.pilot.press("f3")
        await stage.until("theme light")
        assert stage.app.palette.name == "light" and stage.app.screen.styles.background.hex.lower() == "#fbfaf7"
        await stage.app.actions.command("/theme contrast")
        await stage.until(lambda: [op for op in stage.client.ops if isinstance(op, ChangeSetting)])
        assert [op for op in stage.client.ops if isinstance(op, ChangeSetting)] == [
            ChangeSetting(stage.client.session, "tui.theme", "contrast")
        ]
        await stage.app.actions.command("/theme sea")
        await stage.until("has a contrast of")
        assert stage.app.palette.name == "contrast"
        await stage.app.actions.command("/theme")
        await stage.until("themes: dark, light, contrast, sea")
