"""Connecting a model: with a key, on this machine, at any endpoint, or the demonstration. No step is a dead end."""

from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import ConnectProvider
from codewhale.protocol.views import FindLocal, ListProviders
from codewhale.tui.screens.context import Connected
from support.tuirecord import until
from support.tuiscreens import HOSTILE, SESSION, opened, provider

HOSTED = (provider("deep"), provider("parrot", ready=True, why=""))
OLLAMA = provider("ollama", local=True, ready=True, base_url="http://127.0.0.1:11434/v1", models=("whale:7b", "b"))
ANSWERS = {ListProviders: HOSTED, FindLocal: (OLLAMA,), ConnectProvider: ""}


async def to(stage, key: str) -> None:
    """Move to a row."""
    rows = stage.screen.list
    for _ in rows.items:
        if rows.current.key == key:
            return
        await stage.press("down")
    raise AssertionError(key)


async def test_every_way_is_offered() -> None:
    async with opened("firstrun", ANSWERS) as stage:
        text = await stage.shown("Connect a model", "On this machine", "whale:7b, b", "With an API key", "deep")
        assert "DEEP_API_KEY" in text
        assert "Another endpoint" in text and "Try the demo" in text


async def test_a_provider_is_connected_with_a_key_that_is_not_shown() -> None:
    async with opened("firstrun", ANSWERS) as stage:
        await to(stage, "deep")
        await stage.press("enter")
        await stage.shown("API key for deep.", "DEEP_API_KEY", "enter done  esc back")
        await stage.type("sk-secret-123")
        assert "sk-secret" not in stage.text
        await stage.press("enter")
        assert await stage.done() == Connected("deep")
        assert stage.client.ops == [ConnectProvider(SESSION, "deep", "sk-secret-123")]


async def test_a_local_one_is_connected_at_once() -> None:
    async with opened("firstrun", ANSWERS) as stage:
        await stage.press("enter")
        assert await stage.done() == Connected("ollama", "whale:7b")
        assert stage.client.ops == [ConnectProvider(SESSION, "ollama", "", OLLAMA.base_url, "whale:7b")]


async def test_any_endpoint_is_connected() -> None:
    async with opened("firstrun", ANSWERS) as stage:
        await to(stage, "custom")
        await stage.press("enter")
        await stage.shown("A name for this provider")
        await stage.press("enter")
        await stage.shown("A name is required.")
        await stage.press(*"mine", "enter")
        await stage.shown("Address")
        await stage.type("http://127.0.0.1:9/v1")
        await stage.press("enter")
        await stage.shown("API key for mine")
        await stage.press("enter")
        await stage.shown("Model id")
        await stage.press(*"m-1")
        await stage.shown("│ m-1 ")
        await stage.press("enter")
        assert await stage.done() == Connected("mine", "m-1")
        assert stage.client.ops == [ConnectProvider(SESSION, "mine", "", "http://127.0.0.1:9/v1", "m-1")]


async def test_the_demonstration_needs_nothing() -> None:
    async with opened("firstrun", {ListProviders: OSError("x"), FindLocal: OSError("y")}) as stage:
        await stage.shown("Try the demo")
        await to(stage, "demo")
        await stage.press("enter")
        assert await stage.done() == Connected("", demo=True)


async def test_a_key_that_is_refused_can_be_given_again() -> None:
    wrong = ["The provider refused the key\x1b[2J (401).", ""]
    async with opened("firstrun", ANSWERS | {ConnectProvider: lambda op: wrong.pop(0)}, "deep") as stage:
        await stage.shown("API key for deep.")
        await stage.press("enter")
        await stage.shown("An API key is required.")
        await stage.press("x", "enter")
        await stage.shown("The provider refused the key\\x1b[2J (401).")
        assert stage.host.focused.id == "field" and stage.host.focused.value == ""
        await stage.press("y", "enter")
        assert await stage.done() == Connected("deep")


async def test_a_failure_leaves_every_way_open() -> None:
    async with opened("firstrun", ANSWERS | {ConnectProvider: CodeWhaleError("the disk is full")}) as stage:
        await stage.press("enter")
        await stage.shown("the disk is full", "Try the demo")
        await to(stage, "deep")
        await stage.press("enter", "k", "enter")
        await stage.shown("the disk is full")
        await stage.press("escape")
        await stage.shown("ollama", "Try the demo")
        await stage.press("escape")
        assert await stage.done() is None


async def test_nothing_on_this_machine_says_what_to_start_and_looks_again() -> None:
    local: list[object] = []
    async with opened("firstrun", ANSWERS | {FindLocal: lambda query: tuple(local)}) as stage:
        await stage.shown("No model server found on this machine", "Try the demo")
        assert stage.screen.list.current.key == "demo"
        local.append(OLLAMA)
        await to(stage, "look")
        await stage.press("enter")
        await stage.shown("whale:7b")
        local.clear()
        await stage.press("f5")
        await stage.shown("No model server found")


async def test_what_cannot_be_listed_is_said_and_the_rest_works() -> None:
    async with opened("firstrun", ANSWERS | {ListProviders: OSError("config.toml cannot be read")}) as stage:
        await stage.shown("config.toml cannot be read", "ollama")
        await stage.press("enter")
        assert await stage.done() == Connected("ollama", "whale:7b")


async def test_arrows_do_not_leave_a_field() -> None:
    async with opened("firstrun", ANSWERS, "deep") as stage:
        await stage.shown("API key for deep.")
        await stage.press("up", "down", "k", "enter")
        assert await stage.done() == Connected("deep")


async def test_hostile_names_and_chinese() -> None:
    rows = (provider(HOSTILE, why=HOSTILE, key_env=HOSTILE),)
    async with opened("firstrun", {ListProviders: rows, FindLocal: ()}, language="zh-Hans") as stage:
        await stage.shown("连接模型", "试用演示", "[bold]x[/]")
        stage.clean()
        await to(stage, HOSTILE)
        await stage.press("enter")
        await until(stage.pilot, lambda: stage.screen.has_class("asking"))
        stage.clean()


async def test_hosts_and_keys_are_shown_in_an_order_one_can_read() -> None:
    names = ("arcee", "deepseek-anthropic", "moonshot", "moonshot-cn", "deepseek", "nvidia-nim")
    rows = [
        provider(name, why="DEEP_KEY is not set", key_env="DEEP_KEY", base_url=f"https://api.{name}.example/v1")
        for name in names
    ]
    rows += [provider("vllm", local=True, key_env="", why="nothing responds there now")]
    rows += [provider("odd", why="keys.toml can be read by others")]
    async with opened("firstrun", ANSWERS | {ListProviders: tuple(rows), FindLocal: ()}) as stage:
        text = await stage.shown("api.arcee.example · DEEP_KEY", "keys.toml can be read by others")
        order = [item.key for item in stage.screen.list.items][3:]
        assert order == ["deepseek", "arcee", "moonshot", "nvidia-nim", "odd", "deepseek-anthropic", "moonshot-cn"]
        assert "vllm " not in text.replace("vLLM", "")
