"""What answers at an address, whether a key is taken, and that nothing is kept of what did not answer."""

import asyncio
import json
import socket
from collections.abc import Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from codewhale.app.settings import open_config
from codewhale.models.endpoint import addresses, name_of
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.modes import Authority
from codewhale.protocol.ops import ConnectProvider, SessionStatus
from codewhale.protocol.views import CheckEndpoint, EndpointView, FindLocal, ListModels
from codewhale.testing import harness
from support.loopserver import LoopServer
from support.modelserver import ModelServer
from support.patience import Moment
from support.wire import Reply, Wire, answer

HERE = ("http", "https")


@pytest.mark.parametrize(
    ("written", "urls"),
    [
        ("http://127.0.0.1:8000/v1", [f"{one}://127.0.0.1:8000/v1" for one in HERE]),
        (" 127.0.0.1:8000 ", [f"{one}://127.0.0.1:8000" for one in HERE]),
        ("8000", [f"{one}://127.0.0.1:8000" for one in HERE]),
        (":8000/", [f"{one}://127.0.0.1:8000" for one in HERE]),
        ("http://0.0.0.0:8000/v1", [f"{one}://127.0.0.1:8000/v1" for one in HERE]),
        ("[::]:8000", [f"{one}://127.0.0.1:8000" for one in HERE]),
        ("192.168.1.5:8000", [f"{one}://192.168.1.5:8000" for one in reversed(HERE)]),
        ("http://192.168.1.5:8000", ["http://192.168.1.5:8000"]),
        ("https://localhost:1", ["https://localhost:1", "http://localhost:1"]),
        ("models.example.com", ["https://models.example.com"]),
        ("HTTPS://a.example/openai/", ["https://a.example/openai"]),
        ("'https://a.example/v1/chat/completions?x=1'", ["https://a.example/v1"]),
        ("https://a.example/v1/models", ["https://a.example/v1"]),
    ],
)
def test_an_address_is_read_as_people_write_it(written: str, urls: list[str]) -> None:
    assert list(addresses(written)) == urls


@pytest.mark.parametrize(
    ("written", "why"), [("", "is empty"), ("http://a b", "has spaces"), ("ftp://a", "ftp:// is not supported")]
)
def test_what_is_no_address(written: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        addresses(written)


def test_names_are_made_of_hosts() -> None:
    urls = ("http://127.0.0.1:8137/v1", "https://models.example.com/v1", "https://box", "http://10.1.2.3:80/v1")
    assert [name_of(url) for url in urls] == ["local-8137", "example", "box", "10-1-2-3"]
    assert name_of("http://[::1]:8000") == "local-8000" and name_of("http://localhost") == "local"


@asynccontextmanager
async def person(tmp_path: Path, environ: Mapping[str, str] | None = None):
    """(client, session) of a person."""
    (tmp_path / "shop").mkdir(exist_ok=True)
    async with harness(tmp_path / "home", tmp_path / "shop", [], environ) as agent:
        yield agent.client, await agent.open(authority=Authority.PERSON)


async def check(tmp_path: Path, **fields: Any) -> EndpointView:
    async with person(tmp_path) as (client, session):
        return await client.query(CheckEndpoint(session, **fields))


@pytest.mark.parametrize("base", ["/v1", ""])
@pytest.mark.parametrize("form", ["{0}", "http://{0}", "http://{0}/v1/", "https://{0}", "{0}/v1/chat/completions"])
async def test_a_server_is_met_however_its_address_is_written(tmp_path: Path, form: str, base: str) -> None:
    rows = [{"id": "beta", "max_model_len": 32_768}, "alpha"]
    async with ModelServer(rows, base=base, mode="" if base else "patient") as server:
        view = await check(tmp_path, address=form.format(server.address))
        assert (view.why, view.base_url.partition("/v1")[0], view.model) == ("", f"http://{server.address}", "alpha")
        assert [(row.model, row.window) for row in view.models] == [("alpha", 0), ("beta", 32_768)]
        assert view.name == f"local-{server.address.rpartition(':')[2]}"


async def test_a_key_is_wanted_and_another_one_where_it_is_wrong(tmp_path: Path) -> None:
    async with ModelServer(key="sk-right") as server:
        view = await check(tmp_path, address=server.address)
        assert view.wants_key and "needs a key" in view.why
        view = await check(tmp_path, address=server.address, key="sk-wrong")
        assert view.wants_key and "rejected the key (401)" in view.why
        view = await check(tmp_path, address=server.address, key="sk-right")
        assert not view.wants_key and len(view.models) == 2
        assert "not a key" in (await check(tmp_path, address=server.address, key="no key")).why


@pytest.mark.parametrize(
    ("mode", "models", "why"), [("html", (), "It works! (an HTML page"), ("no_list", (), ""), ("", (), "")]
)
async def test_a_server_without_a_list(tmp_path: Path, mode: str, models: tuple[str, ...], why: str) -> None:
    async with ModelServer(models, mode=mode) as server:
        view = await check(tmp_path, address=server.address)
        assert (why in view.why if why else view.why == "") and view.models == () and not view.wants_key


async def test_a_port_that_is_closed_and_a_server_that_never_answers(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    view = await check(tmp_path, address=str(port))
    assert f"cannot connect to 127.0.0.1:{port}: Connection refused" in view.why
    assert "has spaces" in (await check(tmp_path, address="http://local host")).why
    async with ModelServer(mode="silent") as server:
        begun = Moment()
        assert "no answer within" in (await check(tmp_path, address=server.address)).why
        assert not begun.hung


async def test_a_long_list_is_whole(tmp_path: Path) -> None:
    async with ModelServer([f"model-{number:04}" for number in range(5000)]) as server:
        view = await check(tmp_path, address=server.address)
        assert len(view.models) == 5000 and view.models[-1].model == "model-4999"


async def test_connected_means_that_it_answered(tmp_path: Path) -> None:
    config = tmp_path / "home" / "config.toml"
    async with ModelServer(key="sk-right", mode="public") as server, person(tmp_path) as (client, session):
        wrong = ConnectProvider(session, "box", "sk-wrong", server.url, "alpha")
        assert "rejected the key (401)" in await client.submit(wrong)
        gone = ConnectProvider(session, "box", "", "http://127.0.0.1:1/v1", "alpha")
        assert "does not answer" in await client.submit(gone)
        unknown = ConnectProvider(session, "box", "sk-right", server.url, "gamma")
        assert "does not serve gamma (404)" in await client.submit(unknown)
        assert "not a valid provider name" in await client.submit(ConnectProvider(session, "a b", "", server.url))
        assert not config.exists() and not (tmp_path / "home" / "secrets").exists()
        assert (await client.query(SessionStatus(session))).provider == "scripted"
        assert await client.submit(ConnectProvider(session, "box", "sk-right", server.url, "alpha")) == ""
        assert server.asked[-1] == ("POST", "/v1/chat/completions", "sk-right")
        status = await client.query(SessionStatus(session))
        assert (status.provider, status.model) == ("box", "alpha")
    assert "sk-right" not in config.read_text() and "provider =" not in config.read_text()
    chosen = open_config(str(tmp_path / "home"), str(tmp_path / "shop"), {}, {})
    assert (chosen.get("provider"), chosen.get("model")) == ("box", "alpha")


@pytest.mark.parametrize("form", ["http://{}", "{}"])
async def test_another_machine_is_asked_unencrypted_once_that_is_allowed(tmp_path: Path, form: str) -> None:
    async with ModelServer(key="sk-right") as server, person(tmp_path) as (client, session):
        address = f"[::ffff:127.0.0.1]:{server.address.rpartition(':')[2]}"  # this machine under a name of no loopback
        view = await client.query(CheckEndpoint(session, form.format(address)))
        assert view.exposed and not view.models and not view.why and server.asked == []
        wrong = await client.submit(ConnectProvider(session, view.name, "sk-right", view.base_url, "alpha"))
        assert f"codewhale config set providers.{view.name}.facts.allow_insecure_http true" in wrong
        assert server.asked == [] and not (tmp_path / "home" / "config.toml").exists()
        view = await client.query(CheckEndpoint(session, view.base_url, key="sk-right", exposed=True))
        assert [row.model for row in view.models] == ["alpha", "beta"]
        op = ConnectProvider(session, view.name, "sk-right", view.base_url, "alpha", exposed=True)
        assert await client.submit(op) == ""
        assert server.asked[-1] == ("POST", "/v1/chat/completions", "sk-right")
    kept = open_config(str(tmp_path / "home"), str(tmp_path / "shop"), {}, {})
    assert kept.get(f"providers.{view.name}.facts") == {"allow_insecure_http": True}


class Unencrypted(LoopServer):
    """Refuses what is not HTTP, as servers do."""

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        await writer.drain()


async def test_a_server_without_encryption_that_is_asked_for_it_says_so(tmp_path: Path) -> None:
    async with Unencrypted() as server:
        view = await check(tmp_path, address=f"https://127.1:{server.address.rpartition(':')[2]}")
        assert "it does not speak https" in view.why and "begins with http://" in view.why and "SSL" not in view.why


async def test_a_model_that_no_list_names_is_asked(tmp_path: Path) -> None:
    async with ModelServer(["alpha"], mode="no_list") as server, person(tmp_path) as (client, session):
        assert "name one" in await client.submit(ConnectProvider(session, "box", "", server.url))
        assert "does not serve beta" in await client.submit(ConnectProvider(session, "box", "", server.url, "beta"))
        assert await client.submit(ConnectProvider(session, "box", "", server.url, "alpha")) == ""


async def test_a_key_is_kept_without_changing_the_model(tmp_path: Path) -> None:
    async with ModelServer(key="sk-right") as server, person(tmp_path) as (client, session):
        (tmp_path / "home" / "config.toml").write_text(f'[providers.box]\nbase_url = "{server.url}"\n')
        client.parts.routes.renew(client.parts.place.config())
        login = ConnectProvider(session, "box", "sk-right", use=False)
        assert "rejected" in await client.submit(ConnectProvider(session, "box", "sk-x", use=False))
        assert await client.submit(login) == ""
        assert (await client.query(SessionStatus(session))).provider == "scripted"
        assert json.loads((tmp_path / "home" / "secrets" / "keys.json").read_text())["keys"]["box"]["key"] == "sk-right"


async def test_the_servers_own_models_are_listed_and_asked_for_once(tmp_path: Path) -> None:
    rows = [{"id": f"m{number}", "context_length": 65_536} for number in range(3)]
    async with ModelServer(rows, key="sk-right") as server:
        (tmp_path / "home").mkdir()
        text = f'[providers.box]\nbase_url = "{server.url}"\napi_key_env = "BOX_KEY"\n'
        (tmp_path / "home" / "config.toml").write_text(text)
        async with person(tmp_path, {"BOX_KEY": "sk-right"}) as (client, session):
            for fresh in (False, False, True):
                found = await client.query(ListModels(session, dial=True, provider="box", fresh=fresh))
                assert [(row.model, row.window) for row in found if row.provider == "box"] == [
                    (f"m{number}", 65_536) for number in range(3)
                ]
            assert len([path for _, path, key in server.asked if key]) == 2


async def test_a_local_server_of_ones_own_is_looked_for(tmp_path: Path) -> None:
    async with ModelServer() as server, Wire([Reply([answer(200, b"{}")])]) as other:
        (tmp_path / "home").mkdir()
        text = f'[providers.mine]\nbase_url = "{server.url}"\n[providers.other]\nbase_url = "{other.url}"\n'
        (tmp_path / "home" / "config.toml").write_text(text)
        async with person(tmp_path) as (client, session):
            rows = {row.name: row for row in await client.query(FindLocal(session))}
    assert rows["mine"].models == ("alpha", "beta") and "other" not in rows


async def test_a_window_that_the_list_names_is_kept_with_the_model(tmp_path: Path) -> None:
    async with ModelServer([{"id": "glm-4.6", "max_model_len": 32_768}]) as server:
        async with person(tmp_path) as (client, session):
            assert await client.submit(ConnectProvider(session, "box", "", server.url, "glm-4.6")) == ""
        assert '"glm-4.6" = 32768' in (tmp_path / "home" / "config.toml").read_text()
        async with person(tmp_path) as (client, session):
            view = await client.query(CheckEndpoint(session, server.address))
    assert (view.name, [row.window for row in view.models]) == ("box", [32_768])


async def test_the_name_of_another_provider_is_not_taken(tmp_path: Path) -> None:
    async with ModelServer() as server, person(tmp_path) as (client, session):
        wrong = await client.submit(ConnectProvider(session, "deepseek", "", server.url, "alpha"))
        assert wrong.startswith("deepseek is the name of https://api.deepseek.com")
        assert not (tmp_path / "home" / "config.toml").exists()
