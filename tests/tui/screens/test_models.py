"""The pickers of models and providers."""

from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import SetModel
from codewhale.protocol.views import FindLocal, ListModels, ListProviders, ModelRow
from codewhale.tui.screens.context import OpenScreen, ShowLine
from support.tuirecord import until
from support.tuiscreens import HOSTILE, SESSION, model, opened, provider

MODELS = {
    ListModels: (
        model(current=True),
        model("grey-2", price=None, window=0, images=True),
        model("seek", "deep", ready=False, why="There is no key: set DEEP_API_KEY."),
    )
}
HERE = {"local": True, "ready": True, "why": ""}
PROVIDERS = {
    ListProviders: (
        provider("parrot", ready=True, why="", current=True),
        provider("deep"),
        provider("ollama", local=True),
    ),
    FindLocal: (
        provider("ollama", base_url="http://127.0.0.1:11434/v1", **HERE),
        provider("vllm", base_url="http://127.0.0.1:8000/v1", **HERE),
    ),
}


async def test_models_tell_what_they_are_and_lack() -> None:
    async with opened("models", MODELS) as stage:
        text = await stage.shown(
            "parrot", "* grey-1", "✓ grey-2", "deep", "· seek", "There is no key: set DEEP_API_KEY."
        )
        assert "0.5 in, 2 out per million tokens (USD)" in text and "64k" in text
        await stage.shown("in use", "window: 64,000 tokens", "text only")
        await stage.press("down")
        await stage.shown("window: unknown tokens", "no price", "accepts images")


async def test_what_is_typed_stays_when_the_models_come_later() -> None:
    async with opened("models", MODELS) as stage:
        await stage.type("my-own")
        await stage.shown("+ my-own")
        stage.screen.action_reload()
        await stage.host.workers.wait_for_complete()
        assert [item.key for item in stage.screen.list.items] == ["typed:my-own"]


async def test_one_is_used() -> None:
    async with opened("models", MODELS) as stage:
        await stage.press("down", "enter")
        assert await stage.done() == ShowLine("Model: grey-2 at parrot")
        assert stage.client.ops == [SetModel(SESSION, "grey-2", "parrot")]


async def test_one_that_lacks_something_is_helped() -> None:
    async with opened("models", MODELS) as stage:
        await stage.type("seek")
        await stage.press("enter")
        assert await stage.done() == OpenScreen("firstrun", "deep")


async def test_any_id_that_is_typed_will_do() -> None:
    for typed, argument, op in (
        ("my/own-model:7b", "", SetModel(SESSION, "my/own-model:7b", "")),
        ("deep own-model", "", SetModel(SESSION, "own-model", "deep")),
        ("own-model", "deep", SetModel(SESSION, "own-model", "deep")),
    ):
        async with opened("models", MODELS, argument) as stage:
            await stage.type(typed)
            await stage.shown("As typed", "+ ")
            await until(stage.pilot, lambda: stage.screen.list.current is not None)
            await stage.press("up", "enter")
            assert (await stage.done()).ok
            assert stage.client.ops == [op]


async def test_what_is_typed_is_not_taken_before_what_fits() -> None:
    async with opened("models", MODELS) as stage:
        await stage.type("grey-2")
        await until(stage.pilot, lambda: len(stage.screen.list.items) == 2)
        assert stage.screen.list.current.key == "parrot/grey-2"


async def test_a_refusal_is_said_and_the_list_stays() -> None:
    async with opened("models", MODELS | {SetModel: CodeWhaleError("A turn is running; wait.")}) as stage:
        await stage.press("enter")
        await stage.shown("A turn is running; wait.", "grey-1")
        await stage.press("alt+f")
        assert await stage.done() == OpenScreen("providers")


async def test_no_models_is_no_dead_end() -> None:
    async with opened("models", {ListModels: ()}) as stage:
        await stage.shown("No known models. Type a model id")
        await stage.type("x")
        await stage.shown("As typed")
        await stage.press("enter")
        assert await stage.done() == ShowLine("Model: x at the same provider")


async def test_providers_and_those_found_here() -> None:
    async with opened("providers", PROVIDERS) as stage:
        text = await stage.shown("Found on this machine", "vllm", "Ready", "* parrot", "Not set up", "· deep")
        assert text.count("ollama") == 1 or "http://127.0.0.1:11434" not in text
        await stage.press("enter")
        assert await stage.done() == OpenScreen("models", "vllm")


async def test_a_provider_that_lacks_something_is_connected() -> None:
    async with opened("providers", PROVIDERS) as stage:
        await stage.type("deep")
        await stage.press("enter")
        assert await stage.done() == OpenScreen("firstrun", "deep")
    async with opened("providers", PROVIDERS) as stage:
        await stage.type("parrot")
        await stage.press("alt+f")
        assert await stage.done() == OpenScreen("firstrun", "parrot")


async def test_looking_around_may_fail() -> None:
    async with opened("providers", PROVIDERS | {FindLocal: OSError("no sockets")}) as stage:
        await stage.shown("parrot")
        await stage.press("f5", "escape")
        assert await stage.done() is None


async def test_hostile_names_are_only_text() -> None:
    row = model(HOSTILE, HOSTILE, price={"miss": "x"}, current=True)
    async with opened("models", {ListModels: (row, model("b", ready=False, why=HOSTILE))}) as stage:
        await stage.shown("[bold]x[/]")
        stage.clean()
        await stage.press("down")
        stage.clean()
    async with opened("providers", {ListProviders: (provider("x", why=HOSTILE),), FindLocal: ()}) as stage:
        await stage.shown("[bold]x[/]")
        stage.clean()


async def test_the_servers_own_models_come_behind_what_is_known() -> None:
    def listed(query: ListModels) -> tuple[ModelRow, ...]:
        own = (model(f"own-{number:04}") for number in range(3000))
        return (*MODELS[ListModels], *own) if query.dial else MODELS[ListModels]

    async with opened("models", {ListModels: listed}) as stage:
        assert stage.client.asked[:2] == [ListModels(SESSION), ListModels(SESSION, dial=True)]
        await stage.shown("grey-1", "grey-2", "own-0000")
        await stage.type("own-2999")
        await until(stage.pilot, lambda: stage.screen.list.current.key == "parrot/own-2999")
        await stage.press("f5")
        await until(stage.pilot, lambda: stage.client.asked[-1] == ListModels(SESSION, dial=True, fresh=True))
        assert stage.screen.list.current.key == "parrot/own-2999"


async def test_why_the_server_lists_nothing_is_said() -> None:
    rows = (model(current=True, why="parrot does not answer: cannot connect"), model("grey-2"))
    async with opened("models", {ListModels: rows}) as stage:
        await stage.shown("grey-2", "The server did not list its models: parrot does not")
