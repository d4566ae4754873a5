"""The configuration: every value with where it comes from, changed in its place."""

from codewhale.protocol.errors import ConfigError
from codewhale.protocol.ops import ChangeSetting
from codewhale.protocol.views import GetSettings
from support.tuirecord import until
from support.tuiscreens import HOSTILE, SESSION, opened, setting

ROWS = (
    setting(),
    setting("effort", "high", "config.toml", choices=("low", "high")),
    setting("api_key", "(hidden)", "OPENAI_API_KEY", fixed=True),
)


async def test_every_value_tells_where_it_comes_from() -> None:
    async with opened("config", {GetSettings: ROWS}) as stage:
        text = await stage.shown(
            "model            grey-1", "default", "effort           high", "config.toml", "(hidden)", "OPENAI_API_KEY"
        )
        assert "mcp_config_path  not set" in text
        await stage.type("effort")
        await stage.shown("one of: low, high", "from: config.toml")
        await stage.type("mcp")
        await stage.shown("MCP servers are not supported yet")
        await stage.press("enter")
        assert not stage.screen.editing


async def test_a_row_for_mcp_is_not_doubled() -> None:
    rows = (*ROWS, setting("mcp_config_path", "/x/mcp.json", "config.toml"))
    async with opened("config", {GetSettings: rows}) as stage:
        assert (await stage.shown("mcp_config_path  /x/mcp.json")).count("mcp_config_path") == 1


async def test_a_value_is_changed() -> None:
    rows = list(ROWS)

    def change(op: ChangeSetting) -> str:
        rows[1] = setting("effort", op.value, "config.toml")
        return ""

    async with opened("config", {GetSettings: lambda query: tuple(rows), ChangeSetting: change}) as stage:
        await stage.type("effort")
        await stage.press("enter")
        await stage.shown("Changing effort", "enter save")
        assert stage.host.focused.value == "high"
        await stage.type("low")
        await stage.shown("│ low ")
        await stage.press("up", "down", "enter")
        await stage.shown("effort           low", "effort changed")
        assert stage.client.ops == [ChangeSetting(SESSION, "effort", "low")]
        assert not stage.screen.editing and stage.host.focused.id == "sought"


async def test_a_refused_value_says_why_and_stays_to_be_repaired() -> None:
    wrong = ConfigError("effort is 'strong'; choose low or high")
    async with opened("config", {GetSettings: ROWS, ChangeSetting: wrong}) as stage:
        await stage.type("effort")
        await stage.press("enter")
        await stage.type("strong")
        await stage.press("enter")
        await stage.shown("effort is 'strong'; choose low or high")
        assert stage.screen.editing and stage.host.focused.value == "strong"
        await stage.press("escape")
        await until(stage.pilot, lambda: not stage.screen.editing)
        await stage.press("escape")
        assert await stage.done() is None


async def test_what_is_to_be_known_of_a_change_is_said() -> None:
    async with opened("config", {GetSettings: ROWS, ChangeSetting: "CODEWHALE_MODEL still wins."}) as stage:
        await stage.type("model")
        await stage.press("enter", "enter")
        await stage.shown("CODEWHALE_MODEL still wins.")


async def test_a_fixed_value_is_not_opened() -> None:
    async with opened("config", {GetSettings: ROWS}) as stage:
        await stage.type("api_key")
        await stage.press("enter")
        await stage.shown("Cannot be changed here")
        assert not stage.screen.editing


async def test_values_that_cannot_be_read_and_hostile_ones() -> None:
    async with opened("config", {GetSettings: ConfigError("config.toml, line 3: no value")}) as stage:
        await stage.shown("config.toml, line 3: no value")
        await stage.press("enter", "escape")
        assert await stage.done() is None
    async with opened("config", {GetSettings: (setting(HOSTILE, HOSTILE, HOSTILE, choices=(HOSTILE,)),)}) as stage:
        await stage.shown("[bold]x[/]")
        stage.clean()
        await stage.press("enter")
        await until(stage.pilot, lambda: stage.screen.editing)
        stage.clean()
