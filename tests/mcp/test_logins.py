"""Logins that are made fresh: a real authority of this machine that takes each refresh token once, and brokers that are
processes of their own."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from codewhale.mcp.logins import LoginStore
from codewhale.mcp.servers import McpServers
from codewhale.mcp.terms import ServerFailed
from support.mcpsite import Silent, Site, browser
from support.patience import HANG


@pytest.fixture
async def brokers(tmp_path: Path) -> AsyncIterator[Callable[[], McpServers]]:
    """Makes servers over one place for logins, each with a broker of its own."""
    made: list[McpServers] = []

    def make() -> McpServers:
        made.append(McpServers(LoginStore(str(tmp_path))))
        return made[-1]

    yield make
    for one in made:
        await one.shut()


def run_out(home: Path) -> None:
    """Let the time of every kept token be over."""
    path = home / "secrets" / "mcp-logins.json"
    whole = json.loads(path.read_text())
    for row in whole["logins"].values():
        row["data"]["until"] = 1
    path.write_text(json.dumps(whole))


async def test_a_login_that_ran_out_is_made_fresh_until_its_authority_refuses(
    site: Callable[[], Site], brokers: Callable[[], McpServers], tmp_path: Path
) -> None:
    guarded, servers, store, visited = site(), brokers(), LoginStore(str(tmp_path)), list[str]()
    guarded.token, guarded.gives, guarded.refresh = "fresh-0", "fresh-0", "refresh-0"
    spec = guarded.spec()
    await servers.login(spec, browser(visited))
    await servers.open(spec)
    guarded.token = "denied before its time"
    assert (await servers.call("web", "say", {}, Silent())).pieces[0].text == "said"
    assert guarded.presented == ["refresh-0"]
    assert store.find("web", spec.url)["tokens"]["refresh_token"] == "refresh-1"
    await servers.close("web")
    run_out(tmp_path)
    guarded.seen.clear()
    await servers.open(spec)
    assert {token for path, token in guarded.seen if path == "/mcp"} == {"Bearer fresh-2"}  # before it was denied
    await servers.close("web")
    run_out(tmp_path)
    guarded.refresh, guarded.token = "taken by somebody", "another"
    for _ in range(2):
        with pytest.raises(ServerFailed, match="codewhale mcp login web") as needed:
            await servers.open(spec)
        assert needed.value.kind == "auth"
    assert guarded.presented == ["refresh-0", "refresh-1", "refresh-2"]  # what was refused once is not sent again
    guarded.token, guarded.gives = "anew", "anew"
    await servers.login(spec, browser(visited))
    assert len(visited) == 2 and store.find("web", spec.url)["tokens"]["access_token"] == "anew"


async def test_of_many_processes_one_makes_a_login_fresh(
    site: Callable[[], Site], brokers: Callable[[], McpServers], tmp_path: Path
) -> None:
    guarded, several = site(), [brokers() for _ in range(3)]
    guarded.token = "fresh"
    await several[0].login(guarded.spec(), browser([]))
    for turn in range(2):
        run_out(tmp_path)
        guarded.pause = 1.0  # the others come meanwhile
        await asyncio.gather(*(servers.open(guarded.spec()) for servers in several))
        assert len(guarded.presented) == turn + 1 and len({one.broker for one in several}) == 3
        for servers in several:
            assert (await servers.call("web", "say", {}, Silent())).pieces[0].text == "said"
        await asyncio.gather(*(servers.close("web") for servers in several))
    guarded.pause = 0.0
    # One that holds a token of before takes the one that another process has kept.
    await several[0].open(guarded.spec())
    await several[1].open(guarded.spec())
    guarded.token = "denied"
    for servers in several[:2]:
        await servers.call("web", "say", {}, Silent())
    assert len(guarded.presented) == 3


async def test_tokens_on_their_way_are_kept_though_nobody_waits_any_more(
    site: Callable[[], Site], brokers: Callable[[], McpServers], tmp_path: Path
) -> None:
    guarded, store = site(), LoginStore(str(tmp_path))
    guarded.token = "fresh"
    await brokers().login(guarded.spec(), browser([]))
    run_out(tmp_path)
    for end, kept in (("close", "refresh-1"), ("shut", "refresh-2")):
        servers, guarded.pause = brokers(), 1.0
        opening = asyncio.create_task(servers.open(guarded.spec()))
        assert await asyncio.to_thread(guarded.asked.wait, HANG)
        guarded.asked.clear()
        opening.cancel()
        await (servers.close("web") if end == "close" else servers.shut())
        assert store.find("web", guarded.spec().url)["tokens"]["refresh_token"] == kept
        run_out(tmp_path)


async def test_a_refresh_token_goes_to_the_endpoint_that_gave_it_alone(
    site: Callable[[], Site], brokers: Callable[[], McpServers], tmp_path: Path
) -> None:
    guarded, authority, other, servers = site(), site(), site(), brokers()
    guarded.token, guarded.authority, authority.guards = "fresh", authority.url, [guarded]
    await servers.login(guarded.spec(), browser([]))
    guarded.authority = other.url  # the server names another one now
    run_out(tmp_path)
    await servers.open(guarded.spec())
    assert (authority.presented, guarded.presented, other.presented) == (["r"], [], [])
    await servers.close("web")
    run_out(tmp_path)
    guarded.token, authority.token_status, authority.moved = "denied", 307, other.url
    with pytest.raises(ServerFailed, match="codewhale mcp login web"):
        await servers.open(guarded.spec())
    assert other.presented == guarded.presented == [] and set(authority.presented) == {"r", "refresh-1"}


def test_a_login_belongs_to_a_name_and_an_address(tmp_path: Path) -> None:
    store, one, two = LoginStore(str(tmp_path)), "https://one.example/a/mcp", "https://one.example/b/mcp"
    store.keep("web", one, {"tokens": {"access_token": "1"}})
    assert store.find("web", "https://ONE.example:443/a/mcp#part") == store.find("web", one) != {}
    assert store.find("web", two) == store.find("other", one) == store.find("web", "http://one.example/a/mcp") == {}
    store.keep("web", two, {"tokens": {"access_token": "2"}})
    assert store.find("web", one)["tokens"]["access_token"] == "1"  # the second took nothing from the first
    assert store.lock("web", one) != store.lock("web", two)
    assert store.remove("web", two) and not store.remove("web", two) and store.find("web", one)
    path = Path(store.path)
    path.write_text(
        json.dumps({"version": 1, "logins": {"old": {"origin": "https://one.example:443", "data": {"a": 1}}}})
    )
    assert store.find("old", one) == {"a": 1} and store.find("old", "https://two.example/mcp") == {}
    store.keep("old", "https://two.example/mcp", {"b": 2})
    assert store.find("old", one) == {"a": 1}
    store.keep("old", one, {"c": 3})
    assert store.find("old", one) == {"c": 3} and store.find("old", two) == {}
