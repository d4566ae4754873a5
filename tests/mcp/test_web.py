"""Servers at addresses: real sockets of this machine, of which some lead to places that nobody named."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from codewhale.app.mcpparts import open_servers
from codewhale.mcp.admin import McpAdmin
from codewhale.mcp.logins import LoginStore, WayBack
from codewhale.mcp.servers import McpServers
from codewhale.mcp.terms import ServerFailed, ServerSpec
from codewhale.protocol.errors import ConfigError
from support.mcpsite import Silent, Site, browser

PATIENCE = 90.0


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[McpServers]:
    """Servers, with a place for logins."""
    made = McpServers(LoginStore(str(tmp_path)))
    yield made
    await made.shut()


async def test_what_is_configured_for_an_address_goes_to_no_other(
    site: Callable[[], Site], servers: McpServers
) -> None:
    plain, other = site(), site()
    plain.token = "mine"
    spec = plain.spec(headers={"Authorization": "Bearer mine"})
    assert (await servers.open(spec)).protocol == "2025-11-25"
    assert (await servers.call("web", "say", {}, Silent())).pieces[0].text == "said"
    assert {token for _, token in plain.seen} == {"Bearer mine"}
    plain.moved = f"{other.url}/mcp"
    with pytest.raises(ServerFailed):
        await servers.call("web", "say", {}, Silent())
    assert other.seen == []
    with pytest.raises(ServerFailed, match=r"web2.*could not be reached"):
        await servers.open(ServerSpec("web2", url="http://127.0.0.1:1/mcp", connect_seconds=PATIENCE))


async def test_a_login_is_kept_for_its_origin_alone(
    site: Callable[[], Site], servers: McpServers, tmp_path: Path
) -> None:
    guarded, other = site(), site()
    guarded.token = other.token = "fresh"
    with pytest.raises(ServerFailed, match="codewhale mcp login web") as needed:
        await servers.open(guarded.spec())
    assert needed.value.kind == "auth"
    asked: list[str] = []
    offer = await servers.login(guarded.spec(), browser(asked))
    assert [tool.name for tool in offer.tools] == ["say"] and asked[0].startswith(f"{guarded.url}/authorize?")
    store = LoginStore(str(tmp_path))
    assert os.stat(store.path).st_mode & 0o777 == 0o600
    assert store.find("web", f"{guarded.url}/mcp")["tokens"]["access_token"] == "fresh"
    assert store.find("web", f"{other.url}/mcp") == {}
    await servers.open(guarded.spec())
    assert (await servers.call("web", "say", {}, Silent())).pieces[0].text == "said"
    with pytest.raises(ServerFailed, match="asks for a login"):
        await servers.open(other.spec())
    assert {token for _, token in other.seen} == {""}
    os.chmod(store.path, 0o644)
    with pytest.raises(ConfigError, match="others can read it"):
        store.find("web", f"{guarded.url}/mcp")


async def test_a_person_logs_in_to_a_configured_server(site: Callable[[], Site], tmp_path: Path) -> None:
    guarded = site()
    guarded.token = "fresh"
    (tmp_path / "mcp.json").write_text(
        json.dumps({"servers": {"web": {"url": f"{guarded.url}/mcp", "connect_timeout": 120}}})
    )
    admin = McpAdmin(open_servers(str(tmp_path), str(tmp_path), str(tmp_path / "mcp.json"), {}))
    try:
        with pytest.raises(ConfigError, match="approve"):
            await admin.log_in("web", browser([]))
        pending = admin.pending("web")
        assert pending is not None
        admin.approve("web", pending.fingerprint)
        with pytest.raises(ConfigError, match="asks for a login"):
            await admin.start("web")
        admin.keep_token("web", "typed and old")
        await admin.log_in("web", browser([]))
        assert (await admin.start("web")).tools
        (tmp_path / "secrets" / "mcp-logins.json").chmod(0o644)
        with pytest.raises(ConfigError, match="others can read it"):
            await admin.log_in("web", browser([]))
        (tmp_path / "secrets" / "mcp-logins.json").chmod(0o600)
        assert admin.forget_token("web") and not admin.forget_token("web")
    finally:
        await admin.aclose()
    (tmp_path / "elsewhere").mkdir()
    other = McpAdmin(open_servers(str(tmp_path), str(tmp_path / "elsewhere"), str(tmp_path / "mcp.json"), {}))
    try:
        assert other.pending("web") is None  # an address is the same in every folder
    finally:
        await other.aclose()


async def test_an_authority_in_a_network_that_nobody_named_is_not_dialled(
    site: Callable[[], Site], servers: McpServers
) -> None:
    guarded = site()
    guarded.token, guarded.authority = "fresh", "http://169.254.169.254"
    with pytest.raises(ServerFailed) as refused:
        await servers.login(guarded.spec(), lambda url: None)
    assert "169.254.169.254" in str(refused.value)


async def test_the_way_back_takes_what_the_browser_brings_and_nothing_else() -> None:
    async with WayBack() as way:
        for path in ("/other?code=1", "/callback?code=2&state=s"):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(way.url.split(":")[2].split("/")[0]))
            writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
            assert b"HTTP/1.1" in await reader.readline()
            writer.close()
        assert await way.found() == {"code": "2", "state": "s"}
