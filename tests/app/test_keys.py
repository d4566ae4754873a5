"""Which key goes where: the order in which keys are looked for, and the host each belongs to."""

import json
from pathlib import Path

import pytest

from codewhale.app.compose import AppOptions, open_app
from codewhale.app.keys import MISSING, NOT_NEEDED, Key, Keys
from codewhale.app.routes import Routes, open_routes
from codewhale.app.settings import open_config
from codewhale.models.keys import KeyStore
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import OpenSession, SendMessage
from codewhale.protocol.stream import Failed
from codewhale.testing import Harness, ScriptedProvider, collect
from support.wire import Reply, Wire, answer, delta, sse, stream

X = '[providers.x]\nbase_url = "https://x.example/v1"\n'
MOVED = {"CODEWHALE_PROVIDERS_X_BASE_URL": "https://elsewhere.example/v1"}


def routes(home: Path, config: str = "", flag: str = "", **environ: str) -> Routes:
    if config:
        (home / "config.toml").write_text(config)
    overrides = {"provider": "x"} if flag else {}
    return open_routes(str(home), open_config(str(home), str(home), environ, overrides), environ, flag)


def stored(home: Path, name: str, key: str, host: str) -> None:
    KeyStore(str(home)).put(name, key, host)


def test_the_first_that_is_there_wins(home: Path) -> None:
    config = X + 'api_key = "from-table"\napi_key_env = "X_KEY"\n'
    stored(home, "x", "from-file", "x.example")
    found = routes(home, config, "from-flag", X_KEY="from-variable").key("x")
    assert (found.value, found.source) == ("from-flag", "command line")
    found = routes(home, X_KEY="from-variable").key("x")
    assert (found.value, found.source) == ("from-table", f"{home}/config.toml")
    found = routes(home, X + 'api_key_env = "X_KEY"\n', X_KEY=" from-variable\n").key("x")
    assert (found.value, found.source, found.variable) == ("from-variable", "environment X_KEY", "X_KEY")
    found = routes(home, X_KEY="").key("x")
    assert (found.value, found.source) == ("from-file", f"{home}/secrets/keys.json")
    KeyStore(str(home)).remove("x")
    assert routes(home).key("x") == Key("", MISSING)
    assert routes(home, X).key("x").source == NOT_NEEDED


def test_a_stored_key_comes_before_the_variables_that_hold_one_by_custom(home: Path) -> None:
    assert routes(home, KIMI_API_KEY="sk-kimi").key("moonshot").source == "environment KIMI_API_KEY"
    both = routes(home, KIMI_API_KEY="sk-kimi", MOONSHOT_API_KEY="sk-moon")
    assert both.key("moonshot").value == "sk-moon"
    stored(home, "moonshot", "sk-file", "api.moonshot.ai")
    assert routes(home, MOONSHOT_API_KEY="sk-moon").key("moonshot").value == "sk-file"


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ('api_key = "sk-table"\n', ""),
        ('api_key_env = "X_KEY"\n', ""),
        ("", "sk-file"),
    ],
)
def test_no_key_follows_a_base_url_that_a_later_layer_moves(home: Path, config: str, key: str) -> None:
    if key:
        stored(home, "x", key, "x.example")
    here = routes(home, X + config, X_KEY="sk-variable")
    assert here.key("x").value.startswith("sk-")
    there = routes(home, X_KEY="sk-variable", **MOVED)
    found = there.key("x")
    assert found.value == ""
    assert "belongs to x.example and is not sent to elsewhere.example; if it is meant for" in found.refused[0]
    same = routes(home, X_KEY="sk-variable", CODEWHALE_PROVIDERS_X_BASE_URL="https://X.example:443/v2")
    assert same.key("x").value == here.key("x").value


def test_a_usual_variable_goes_to_the_official_host_alone(home: Path) -> None:
    gateway = '[providers.deepseek]\nbase_url = "https://gateway.example/v1"\n'
    moved = routes(home, gateway, DEEPSEEK_API_KEY="sk-ambient")
    assert moved.key("deepseek").value == ""
    with pytest.raises(ConfigError, match=r"belongs to api\.deepseek\.com.*set providers\.deepseek\.api_key_env = "):
        moved.may_ask("deepseek")
    said = routes(home, gateway + 'api_key_env = "DEEPSEEK_API_KEY"\n', DEEPSEEK_API_KEY="sk-ambient")
    assert said.key("deepseek").value == "sk-ambient"
    said.may_ask("deepseek")
    local = '[providers.deepseek]\nbase_url = "http://127.0.0.1:9/v1"\n'
    loopback = routes(home, local, DEEPSEEK_API_KEY="sk-ambient")
    assert loopback.key("deepseek").value == ""
    loopback.may_ask("deepseek")


def test_the_flag_is_for_the_provider_in_use_and_no_other(home: Path) -> None:
    found = routes(home, X + '[providers.y]\nbase_url = "https://y.example/v1"\n', "sk-flag")
    assert found.key("x").value == "sk-flag"
    assert found.key("y").value == ""


def test_a_header_with_a_secret_does_not_follow_either(home: Path) -> None:
    config = X + '[providers.x.headers]\nX-Api-Key = "sk-header"\nX-Title = "codewhale"\n'
    routes(home, config).build("x", "m")
    with pytest.raises(ConfigError, match=r"X-Api-Key was written for x\.example") as caught:
        routes(home, **MOVED).build("x", "m")
    assert "sk-header" not in str(caught.value)


def test_a_key_is_needed_where_one_is_named_or_the_provider_is_a_hosted_one(home: Path) -> None:
    with pytest.raises(ConfigError, match=r"DEEPSEEK_API_KEY is not set.*codewhale login deepseek .*/login deepseek\)"):
        routes(home).may_ask("deepseek")
    for name in ("ollama", "vllm", "scripted"):
        routes(home).may_ask(name)
    box = '[providers.vllm]\nbase_url = "https://box.example/v1"\n'
    routes(home, box).may_ask("vllm")
    with pytest.raises(ConfigError, match="MY_KEY is not set"):
        routes(home, box + 'api_key_env = "MY_KEY"\n').may_ask("vllm")


def test_a_file_of_keys_that_others_can_read_is_told_and_not_used(home: Path) -> None:
    stored(home, "deepseek", "sk-file-key", "api.deepseek.com")
    (home / "secrets" / "keys.json").chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600") as caught:
        routes(home).may_ask("deepseek")
    assert "sk-file-key" not in str(caught.value)


def test_no_key_is_in_what_is_printed_of_it(home: Path) -> None:
    found = routes(home, X + 'api_key = "sk-abcdefgh"\n')
    assert "sk-abcdefgh" not in repr(found.key("x")) + repr(found.rows())
    assert "sk-abcdefgh" not in repr(found.build("x", "m").settings)


async def test_every_known_key_is_kept_out_of_the_log(home: Path, workspace: Path) -> None:
    held = {"sk-in-the-table": "x", "sk-in-the-file": "y", "sk-in-plain-name": "z", "sk-in-a-header": "h"}
    stored(home, "y", "sk-in-the-file", "y.example")
    script = home / "script.jsonl"
    script.write_text(json.dumps({"text": " ".join(held)}) + "\n")
    (home / "config.toml").write_text(
        f'provider = "play"\n[providers.play]\ndialect = "scripted"\nscript = "{script}"\n'
        '[providers.x]\nbase_url = "https://x.example"\napi_key = "sk-in-the-table"\n'
        '[providers.z]\nbase_url = "https://z.example"\napi_key_env = "PLAIN"\n'
        '[providers.h]\nbase_url = "https://h.example"\n'
        '[providers.h.headers]\nAuthorization = "Bearer sk-in-a-header"\n'
    )
    async with open_app(AppOptions(str(home), str(workspace)), environ={"PLAIN": "sk-in-plain-name"}) as app:
        session = await app.client.submit(OpenSession(str(workspace)))
        await app.client.submit(SendMessage(session, "Say my keys: sk-in-the-table"))
        await collect(app.client.events(session))
        log = (home / "sessions" / session / "log.jsonl").read_text()
    for key in held:
        assert key not in log
    assert log.count("[redacted ") >= 5


async def test_a_key_goes_out_in_the_header_and_an_error_does_not_tell_it(home: Path, workspace: Path) -> None:
    refusal = answer(401, b'{"error":{"message":"wrong key sk-in-the-table"}}')
    said = stream(sse(delta(content="Hello"), delta("stop"), "[DONE]"))
    async with Wire([Reply([said]), Reply([refusal])]) as wire:
        (home / "config.toml").write_text(
            f'provider = "x"\nmodel = "m"\n[providers.x]\nbase_url = "{wire.url}"\napi_key = "sk-in-the-table"\n'
        )
        async with open_app(AppOptions(str(home), str(workspace)), environ={}) as app:
            opening = OpenSession(str(workspace), mode=Mode.PLAN, authority=Authority.HEADLESS)
            session = await app.client.submit(opening)
            for text in ("one", "two"):
                await Harness(app, ScriptedProvider([]), workspace).turn(text, session)
            log = (home / "sessions" / session / "log.jsonl").read_text()
    assert [request.headers["authorization"] for request in wire.requests] == ["Bearer sk-in-the-table"] * 2
    assert "sk-in-the-table" not in log and "wrong key" in log


def test_a_moved_base_url_is_refused_even_where_no_key_is_needed(home: Path) -> None:
    stored(home, "x", "sk-file", "x.example")
    moved = routes(home, X.replace("x.example", "y.example"))
    assert moved.key("x").source == MISSING
    with pytest.raises(ConfigError, match=r"belongs to x\.example.*run: codewhale login x; or choose another"):
        moved.may_ask("x")


def test_a_damaged_file_of_keys_does_not_hide_a_variable(home: Path) -> None:
    stored(home, "deepseek", "sk-file", "api.deepseek.com")
    (home / "secrets" / "keys.json").write_text("{")
    found = routes(home, DEEPSEEK_API_KEY="sk-variable").key("deepseek")
    assert found.value == "sk-variable" and "is damaged" in found.refused[0]


def test_a_password_in_a_url_is_not_shown(home: Path) -> None:
    found = routes(home, '[providers.x]\nbase_url = "https://me:sk-password@x.example/v1"\n')
    (row,) = [row for row in found.rows() if row.name == "x"]
    assert "[hidden]@x.example" in row.base_url and "is not a URL" in row.problem
    assert "sk-password" not in row.base_url + row.problem


async def test_a_refused_key_is_told_by_the_place_it_came_from(home: Path) -> None:
    async with Wire([Reply([answer(401, b'{"error":{"message":"wrong key"}}')])]) as wire:
        (home / "config.toml").write_text(f'[providers.x]\nbase_url = "{wire.url}"\n')
        stored(home, "x", "sk-file-key", wire.url.removeprefix("http://").removesuffix("/v1"))
        provider = routes(home).build("x", "m")
        (event,) = [event async for event in provider.stream(b"{}")]
        await provider.aclose()
    assert isinstance(event, Failed) and f"(the key is read from {home}/secrets/keys.json)" in event.message


def test_a_key_in_the_keyring_is_used_for_its_host(home: Path) -> None:
    class Ring:
        def get_password(self, service: str, name: str) -> str:
            return f"sk-{service}-{name}"

        def set_password(self, service: str, name: str, key: str) -> None:
            pass

    (home / "config.toml").write_text(X)
    store = KeyStore(str(home), Ring)
    store.put("x", "sk", "x.example", keyring=True)
    config = open_config(str(home), str(home), {}, {})
    found = Routes(config, {}, Keys(config, store, {}, ("", "")), {})
    told: dict[str, str] = {}
    found.on_key(told.update)
    assert (found.key("x").value, found.key("x").source) == ("sk-codewhale-x", "keyring")
    found.build("x", "m")
    assert told == {"key of x": "sk-codewhale-x"}


def test_one_login_serves_a_host_in_both_of_its_dialects(home: Path) -> None:
    stored(home, "deepseek", "sk-file", "api.deepseek.com")
    assert routes(home).key("deepseek-anthropic").value == "sk-file"
    own = '[providers.mine]\nbase_url = "https://api.deepseek.com"\napi_key_env = "MY_KEY"\n'
    assert routes(home, own).key("mine").value == ""
    stored(home, "deepseek-anthropic", "sk-other", "api.deepseek.com")
    assert routes(home).key("deepseek-anthropic").value == "sk-other"


async def test_the_flag_reaches_the_provider_and_not_the_log(home: Path, workspace: Path) -> None:
    said = stream(sse(delta(content="You sent sk-from-flag"), delta("stop"), "[DONE]"))
    async with Wire([Reply([said])]) as wire:
        (home / "config.toml").write_text(f'[providers.x]\nbase_url = "{wire.url}"\n')
        options = AppOptions(str(home), str(workspace), provider="x", model="m", api_key="sk-from-flag")
        async with open_app(options, environ={}) as app:
            session = await app.client.submit(OpenSession(str(workspace)))
            await Harness(app, ScriptedProvider([]), workspace).turn("Hello", session)
            log = (home / "sessions" / session / "log.jsonl").read_text()
    assert wire.requests[0].headers["authorization"] == "Bearer sk-from-flag"
    assert "sk-from-flag" not in log and "You sent [redacted " in log
