"""Connecting a model: with a key, on this machine, at any address, or the demonstration. No step is a dead end, and
what was typed stays."""

import asyncio

import pytest

from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import ConnectProvider
from codewhale.protocol.views import CheckEndpoint, EndpointView, FindLocal, ListProviders
from codewhale.tui.screens.context import Connected, ShowLine
from support.patience import HANG
from support.tuirecord import until
from support.tuiscreens import HOSTILE, SESSION, model, opened, provider

HOSTED = (provider("deep"), provider("parrot", ready=True, why=""))
OLLAMA = provider("ollama", local=True, ready=True, base_url="http://127.0.0.1:11434/v1", models=("whale:7b", "b"))
KEY = "sk-secret-123"
BOX = "http://127.0.0.1:9/v1"
PLAIN = "http://10.0.0.5:9"


def served(name: str, *names: str, base_url: str = BOX) -> EndpointView:
    """An endpoint that lists models."""
    return EndpointView(name, base_url, tuple(model(one, name) for one in names), names[0] if names else "")


def check(query: CheckEndpoint) -> EndpointView:
    """What answers where these tests ask."""
    if query.name == "ollama":
        return served("ollama", "whale:7b", "b", base_url=OLLAMA.base_url)
    if query.name in ("deep", "parrot"):
        if query.name == "deep" and query.key != KEY:
            why = "deep rejected the key\x1b[2J (401)." if query.key else "deep needs a key."
            return EndpointView(query.name, "https://deep.example/v1", why=why, wants_key=True)
        return served(query.name, "grey-1", "grey-2", base_url=f"https://{query.name}.example/v1")
    if query.address == "9":
        return served("local-9", "m-1", "m-2")
    if query.address == "keyed:1":
        if query.key == KEY:
            return served("keyed", "m-1")
        return EndpointView("keyed", BOX, why="keyed needs a key.", wants_key=True)
    if query.address in (PLAIN, "http://10.0.0.6:9"):
        named = served("far", "m-1", base_url=query.address)
        return named if query.exposed else EndpointView("far", query.address, exposed=True)
    if query.address == "bare:1":
        return served("bare")
    return EndpointView("x", "", why=f"{query.address} does not answer")


ANSWERS = {ListProviders: HOSTED, FindLocal: (OLLAMA,), CheckEndpoint: check, ConnectProvider: ""}


async def to(stage, key: str) -> None:
    """Move to a row, that of a provider without a key behind a row of its own."""
    rows = stage.screen.list
    if key not in [item.key for item in rows.items]:
        await to(stage, "more")
        await stage.press("enter")
    for _ in rows.items:
        if rows.current.key == key:
            return
        await stage.press("down")
    raise AssertionError(key)


def typed(stage) -> str:
    """What stands in the line."""
    return stage.host.focused.value


async def test_every_way_is_offered() -> None:
    async with opened("firstrun", ANSWERS) as stage:
        text = await stage.shown(
            "Connect a model", "On this machine", "whale:7b, b", "a provider with an API key", "deep"
        )
        assert "DEEP_API_KEY" not in text and "Set up" in text
        assert "Enter an address" in text and "Try the demo" in text
        assert stage.screen.list.current.key == "ollama"


async def test_a_provider_whose_key_is_set_is_preselected() -> None:
    async with opened("firstrun", ANSWERS | {FindLocal: ()}) as stage:
        await stage.shown("parrot")
        assert stage.screen.list.current.key == "parrot"
        await stage.press("enter")
        await stage.shown("parrot · https://parrot.example/v1", "grey-1", "2 models")
        await stage.press("enter")
        assert await stage.done() == Connected("parrot", "grey-1")
        assert stage.client.ops == [ConnectProvider(SESSION, "parrot", "", "", "grey-1")]


async def test_a_provider_is_connected_with_a_key_that_is_not_shown() -> None:
    async with opened("firstrun", ANSWERS) as stage:
        await to(stage, "deep")
        await stage.press("enter")
        await stage.shown("API key for deep.", "DEEP_API_KEY", "enter done  esc back")
        await stage.type(KEY)
        assert "sk-secret" not in stage.text
        await stage.press("enter")
        await stage.shown("grey-2")
        await stage.press("down", "enter")
        assert await stage.done() == Connected("deep", "grey-2")
        assert stage.client.ops == [ConnectProvider(SESSION, "deep", KEY, "", "grey-2")]
        assert KEY not in stage.context.typed.values()


async def test_a_local_one_is_connected_with_two_keys() -> None:
    async with opened("firstrun", ANSWERS) as stage:
        await stage.press("enter")
        await stage.shown("whale:7b")
        await stage.press("enter")
        assert await stage.done() == Connected("ollama", "whale:7b")
        assert stage.client.ops == [ConnectProvider(SESSION, "ollama", "", "", "whale:7b")]


async def test_an_address_and_two_keys_connect_a_server() -> None:
    async with opened("firstrun", ANSWERS) as stage:
        await stage.press("9")
        assert stage.screen.list.items == [] or stage.screen.list.current.key == "custom"
        await stage.type("")
        await to(stage, "custom")
        await stage.press("enter")
        await stage.shown("The address of a model server.")
        await stage.press("enter")
        await stage.shown("An address is required.")
        await stage.press("9", "enter")
        await stage.shown("local-9", "m-1", "m-2")
        await stage.press("enter")
        assert await stage.done() == Connected("local-9", "m-1")
        assert stage.client.ops == [ConnectProvider(SESSION, "local-9", "", BOX, "m-1")]


async def test_an_address_may_be_typed_over_the_list() -> None:
    async with opened("firstrun", ANSWERS) as stage:
        await stage.type("keyed:1")
        await stage.shown("Connect to keyed:1")
        assert len(stage.screen.list.items) == 1
        await stage.press("enter")
        await stage.shown("keyed needs a key.")
        await stage.type(KEY)
        await stage.press("enter")
        await stage.shown("m-1")
        await stage.press("alt+f")
        await stage.shown("A name for this provider")
        assert typed(stage) == "keyed"
        await stage.type("mine")
        await stage.press("enter")
        await stage.shown("mine", "m-1")
        await stage.press("enter")
        assert await stage.done() == Connected("mine", "m-1")
        assert stage.client.ops == [ConnectProvider(SESSION, "mine", KEY, BOX, "m-1")]


async def test_another_machine_is_connected_unencrypted_after_a_question() -> None:
    async with opened("firstrun", ANSWERS) as stage:
        await stage.type("http://10.0.0.6:9")
        await stage.press("enter")
        await stage.shown("Not encrypted: others in the network could read")
        await stage.press("down", "enter")
        await stage.shown("m-1")
        await stage.press("escape")
        # Another address is another question, and enter alone leads back.
        await stage.type(PLAIN)
        await stage.press("enter")
        await stage.shown("Not encrypted")
        await stage.press("enter")
        await stage.shown(f"Connect to {PLAIN}")
        await stage.press("enter")
        await stage.shown("Connect without encryption")
        await stage.press("down", "enter")
        await stage.shown("m-1")
        await stage.press("enter")
        assert await stage.done() == Connected("far", "m-1")
        assert stage.client.ops == [ConnectProvider(SESSION, "far", "", PLAIN, "m-1", exposed=True)]


async def test_a_model_that_no_list_names_is_typed() -> None:
    async with opened("firstrun", ANSWERS, "bare:1") as stage:
        await stage.shown("Connect to bare:1")
        await stage.press("enter")
        await stage.shown("gives no list of its models")
        await stage.type("own/model")
        await stage.press("enter")
        assert await stage.done() == Connected("bare", "own/model")


async def test_a_long_list_is_searched() -> None:
    names = [f"model-{number:04}" for number in range(5000)]
    async with opened("firstrun", ANSWERS | {CheckEndpoint: served("big", *names)}, "big:1") as stage:
        await stage.press("enter")
        await stage.shown("5,000 models")
        await stage.type("4999")
        await stage.shown("model-4999")
        assert stage.screen.list.current.label == "model-4999"
        await stage.press("enter")
        assert await stage.done() == Connected("big", "model-4999")


async def test_each_step_back_keeps_what_was_typed() -> None:
    async with opened("firstrun", ANSWERS, "keyed:1") as stage:
        await stage.shown("Connect to keyed:1")
        await stage.press("enter")
        await stage.shown("keyed needs a key.")
        await stage.type(KEY)
        await stage.press("enter")
        await stage.shown("m-1")
        await stage.type("m-")
        await stage.press("alt+f")
        await stage.type("other")
        await stage.press("escape")
        assert typed(stage) == "m-"
        await stage.press("escape")
        await stage.shown("API key")
        assert typed(stage) == KEY and stage.host.focused.password
        await stage.press("escape")
        assert typed(stage) == "keyed:1" and not stage.host.focused.password
        await stage.press("escape")
        assert await stage.done() is None
        assert stage.context.typed["ways"] == "keyed:1" and KEY not in stage.context.typed.values()
        await stage.open("firstrun")
        await to(stage, "custom")
        assert typed(stage) == "keyed:1"


async def test_a_server_that_is_still_asked_can_be_left() -> None:
    asked = asyncio.Event()

    async def silent(query: CheckEndpoint) -> EndpointView:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with opened("firstrun", ANSWERS | {CheckEndpoint: silent}) as stage:
        await to(stage, "custom")
        await stage.press("enter")
        await stage.type("slow:1")
        await stage.press("enter")
        await asyncio.wait_for(asked.wait(), HANG)
        await stage.shown("Asking the server")
        await stage.press("escape")
        await stage.shown("ollama", "Try the demo")


@pytest.mark.parametrize("address", ["http://local host", "gone:1", "http://x.example/y"])
async def test_what_is_wrong_with_an_address_is_said_and_it_stays(address: str) -> None:
    async with opened("firstrun", ANSWERS) as stage:
        await to(stage, "custom")
        await stage.press("enter")
        await stage.type(address)
        await stage.press("enter")
        await stage.shown(f"{address} does not answer")
        assert typed(stage) == address


async def test_the_demonstration_needs_nothing() -> None:
    async with opened("firstrun", {ListProviders: OSError("x"), FindLocal: OSError("y")}) as stage:
        await stage.shown("Try the demo")
        await to(stage, "demo")
        await stage.press("enter")
        assert await stage.done() == Connected("", demo=True)


async def test_a_key_that_is_refused_can_be_given_again() -> None:
    async with opened("firstrun", ANSWERS, "deep") as stage:
        await stage.shown("API key for deep.")
        await stage.press("enter")
        await stage.shown("An API key is required.")
        await stage.press("x", "enter")
        await stage.shown("deep rejected the key\\x1b[2J (401).")
        assert typed(stage) == "x"
        await stage.type(KEY)
        await stage.press("enter")
        await stage.shown("grey-1")
        await stage.press("enter")
        assert await stage.done() == Connected("deep", "grey-1")


async def test_a_login_checks_and_keeps_a_key_and_nothing_else() -> None:
    rows = (*HOSTED, provider("plain", key_env=""))
    async with opened("login", ANSWERS | {ListProviders: rows}, "deep") as stage:
        await stage.shown("Log in · deep", "API key for deep.")
        await stage.type(KEY)
        await stage.press("enter")
        assert await stage.done() == ShowLine("deep accepted the key; it is stored.")
        assert stage.client.ops == [ConnectProvider(SESSION, "deep", KEY, use=False)]
    refused = {ListProviders: rows, ConnectProvider: "deep rejected the key (401)"}
    async with opened("login", ANSWERS | refused) as stage:
        await stage.shown("deep", "parrot")
        assert "plain" not in stage.text
        await stage.press("enter")
        await stage.type("wrong")
        await stage.press("enter")
        await stage.shown("deep rejected the key (401)")
        assert typed(stage) == "wrong"


async def test_a_failure_leaves_every_way_open() -> None:
    async with opened("firstrun", ANSWERS | {ConnectProvider: CodeWhaleError("the disk is full")}) as stage:
        await stage.press("enter")
        await stage.shown("whale:7b")
        await stage.press("enter")
        await stage.shown("the disk is full")
        await stage.press("escape")
        await stage.shown("ollama", "Try the demo")
        await stage.press("escape")
        assert await stage.done() is None


async def test_nothing_on_this_machine_says_what_to_start_and_looks_again() -> None:
    local: list[object] = []
    async with opened("firstrun", ANSWERS | {FindLocal: lambda query: tuple(local)}) as stage:
        await stage.shown("No model server found on this machine", "Try the demo")
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
        await stage.shown("2 models")
        await stage.press("enter")
        assert await stage.done() == Connected("ollama", "whale:7b")


async def test_arrows_do_not_leave_a_field() -> None:
    async with opened("firstrun", ANSWERS, "deep") as stage:
        await stage.shown("API key for deep.")
        await stage.press("up", "down", "k")
        assert typed(stage) == "k"


async def test_hostile_names_and_chinese() -> None:
    rows = (provider(HOSTILE, why=HOSTILE, key_env=HOSTILE),)
    async with opened("firstrun", {ListProviders: rows, FindLocal: ()}, language="zh-Hans") as stage:
        await stage.shown("连接模型", "试用演示")
        stage.clean()
        await to(stage, HOSTILE)
        stage.clean()
        await stage.press("enter")
        await until(stage.pilot, lambda: stage.screen.has_class("asking"))
        stage.clean()


async def test_hosts_and_keys_are_shown_in_an_order_one_can_read() -> None:
    names = ("arcee", "deepseek-anthropic", "moonshot", "moonshot-cn", "deepseek", "nvidia-nim")
    rows = [
        provider(name, why="DEEP_KEY is not set", key_env="DEEP_KEY", base_url=f"https://api.{name}.example/v1")
        for name in names
    ]
    rows += [provider("vllm", local=True, key_env="", why="nothing answers there now")]
    rows += [provider("odd", why="keys.toml can be read by others")]
    async with opened("firstrun", ANSWERS | {ListProviders: tuple(rows), FindLocal: ()}) as stage:
        assert stage.screen.list.current.key == "demo"
        await to(stage, "odd")
        text = await stage.shown("api.arcee.example · DEEP_KEY", "keys.toml can be read by others")
        order = [item.key for item in stage.screen.list.items]
        assert order == ["deepseek", "arcee", "moonshot", "nvidia-nim", "odd", "deepseek-anthropic", "moonshot-cn"]
        assert "vllm " not in text.replace("vLLM", "")


async def test_a_provider_without_a_key_is_met_by_search() -> None:
    async with opened("firstrun", ANSWERS) as stage:
        await stage.type("deep")
        await stage.shown("deep.example · DEEP_API_KEY")
        await stage.press("enter")
        await stage.shown("API key for deep.")
        await stage.press("escape")
        assert typed(stage) == "deep"
