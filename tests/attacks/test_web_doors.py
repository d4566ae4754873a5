"""The network list through every tool that dials: a page, steps on the web, a recursive session, and a search whose
provider leads astray. Nothing nearby is ever dialled; every body ends at its cap and in its time."""

import asyncio
import gzip
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from codewhale.process.addresses import address_kind
from codewhale.protocol.events import CallFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.services.web.dialler import Dialler
from codewhale.services.web.searching import PROVIDERS, SearchOptions, WebSearch
from codewhale.testing import harness
from support.nearby import PRIVATE
from support.patience import HANG
from support.scenes import results
from support.webserver import Answer, WebServer, html

PORT = 8080
SITE = f"http://docs.example.org:{PORT}"
Door = Callable[[str, int], tuple[str, dict[str, Any]]]
DOORS: dict[str, Door] = {
    "fetch_url": lambda url, number: ("fetch_url", {"url": url, "timeout_ms": 2_000, "max_bytes": 100_000}),
    "web_run": lambda url, number: ("web_run", {"open": [{"ref_id": url}]}),
    "rlm_open": lambda url, number: ("rlm_open", {"url": url}),
    "web_search": lambda url, number: ("web_search", {"query": str(number), "timeout_ms": 2_000}),
}


async def tried(
    home: Path, workspace: Path, door: str, urls: Sequence[str], site: WebServer, **how: Any
) -> list[CallFinished]:
    """What each address gives through a door, in one session."""

    async def found(host: str, port: int) -> Sequence[str]:
        if "resolve" in how:
            return tuple(how["resolve"](host, port))
        if host.endswith("example.org"):
            return [site.ip]
        raise OSError(f"no such host: {host}")

    shown = {"name": "tool_search_tool_regex", "arguments": {"query": f"^{door}$"}}
    made = [DOORS[door](url, number) for number, url in enumerate(urls)]
    calls = [{"calls": [{"name": name, "arguments": arguments}]} for name, arguments in made]
    script = [{"calls": [shown]}, *calls, {"text": "Done."}]
    async with harness(home, workspace, script, environ=how.get("environ")) as stage:
        dialler = Dialler(found, lambda address: "public" if address == site.ip else address_kind(address))
        row = replace(PROVIDERS["bing"], url=lambda query, most: urls[int(query)])
        stage.app.parts.web.dialler = dialler
        stage.app.parts.web.search = WebSearch(dialler, SearchOptions(("bing",)), {}, {"bing": row})
        session = await stage.open(mode=Mode.AGENT, authority=Authority.HEADLESS)
        return results(await stage.turn("Read.", session, seconds=5 * HANG))[1:]


@pytest.fixture
async def nearby() -> Any:
    """A place of this machine that nobody may dial."""
    async with WebServer({"/": html("<p>SECRET OF THIS MACHINE</p>")}) as inner:
        yield inner


def held(found: Sequence[CallFinished], count: int, inner: WebServer) -> None:
    assert len(found) == count and not [one.content for one in found if one.ok]
    assert not inner.asked and "SECRET OF THIS MACHINE" not in "".join(one.content for one in found)


@pytest.mark.parametrize("door", DOORS)
async def test_d1_d4_no_spelling_of_a_place_nearby_is_dialled(
    door: str, home: Path, workspace: Path, nearby: WebServer
) -> None:
    odd = [
        f"http://docs.example.org@{nearby.ip}:{PORT}/", f"http://{nearby.ip}:{PORT}\\@docs.example.org/",
        f"http://docs.example.org:{PORT}\t@{nearby.ip}/", f"{SITE[:-5]}:22/", f"{SITE[:-5]}:25/", f"{SITE[:-5]}:6379/",
        f"http://{nearby.ip}:{PORT}/", f"file://{nearby.ip}/etc/passwd", f"gopher://{nearby.ip}:{PORT}/",
    ]  # fmt: skip
    urls = [*odd, *(f"http://{host}:{PORT}/" for host in PRIVATE[::4])]
    async with WebServer({"/": html("<p>public</p>")}) as site:
        found = await tried(home, workspace, door, urls, site)
    held(found, len(urls), nearby)
    assert not site.asked


@pytest.mark.parametrize("door", DOORS)
async def test_d2_a_redirect_leads_to_no_place_nearby_and_not_on_for_ever(
    door: str, home: Path, workspace: Path, nearby: WebServer
) -> None:
    places = (
        f"http://{nearby.ip}:{PORT}/", f"//{nearby.ip}:{PORT}/", "http://127.1:8080/", "http://localhost:8080/",
        "http://[::1]:8080/", "http://169.254.169.254/latest/meta-data", "http://metadata.google.internal/",
        "file:///etc/passwd", "gopher://docs.example.org/", "ftp://docs.example.org/", "http://10.0.0.1/",
        "javascript:alert(1)", "data:text/html,x", f"http://other.example.org:{PORT}/",
    )  # fmt: skip
    pages: dict[str, Answer] = {f"/to/{n}": (302, {"location": place}, b"") for n, place in enumerate(places)}
    pages |= {f"/hop/{n}": (302, {"location": f"/hop/{n + 1}"}, b"") for n in range(40)}
    urls = [*(f"{SITE}/to/{n}" for n in range(len(places))), f"{SITE}/hop/0"]
    async with WebServer(pages) as site:
        found = await tried(home, workspace, door, urls, site)
    held(found, len(urls), nearby)
    assert len(site.asked) <= len(places) + 8


@pytest.mark.parametrize("door", DOORS)
async def test_d3_d4_a_name_is_dialled_as_it_was_judged(
    door: str, home: Path, workspace: Path, nearby: WebServer
) -> None:
    names = ("turns", "mixed", "nearby", "wrapped", "nobody")
    looked_up = dict.fromkeys(names, 0)
    async with WebServer({"/": html("<p>public</p>")}) as site:

        def resolve(host: str, port: int) -> Sequence[str]:
            name = host.partition(".")[0]
            looked_up[name] += 1
            first = {
                "turns": [nearby.ip], "mixed": [site.ip, nearby.ip], "nearby": [nearby.ip],
                "wrapped": [f"::ffff:{nearby.ip}"], "nobody": [],
            }[name]  # fmt: skip
            return [site.ip] if name == "turns" and looked_up[name] == 1 else first

        urls = [f"http://{name}.example.org:{PORT}/" for name in names]
        found = await tried(home, workspace, door, urls, site, resolve=resolve)
    assert looked_up == dict.fromkeys(names, 1) and not nearby.asked
    assert [one.ok for one in found[1:]] == [False] * 4 and len(site.asked) == 1


@pytest.mark.parametrize("door", DOORS)
async def test_d5_every_body_ends_at_its_cap_and_in_its_time(door: str, home: Path, workspace: Path) -> None:
    sent = 0

    async def ten_gigabytes(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 x\r\ncontent-type: text/plain\r\ncontent-length: 10000000000\r\n\r\n")
        while True:
            writer.write(b"y" * 65_536)
            sent += 65_536
            await writer.drain()

    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 x\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"10000\r\n" + b"x" * 65_536 + b"\r\n")
            await writer.drain()

    async def a_byte_a_second(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 x\r\ncontent-type: text/plain\r\ncontent-length: 1000\r\n\r\n")
        while True:
            writer.write(b"z")
            await writer.drain()
            await asyncio.sleep(1)

    bomb = gzip.compress(bytes(80 << 20), 9)
    pages: dict[str, Answer] = {
        "/huge": ten_gigabytes, "/endless": endless, "/slow": a_byte_a_second,
        "/bomb": (200, {"content-type": "text/plain", "content-encoding": "gzip"}, bomb),
        "/charset": (200, {"content-type": "text/html; charset=utf-7"}, b"<p>+ADw-script+AD4- caf\xe9</p>"),
    }  # fmt: skip
    if door in ("web_run", "rlm_open"):
        del pages["/slow"]  # their time is the same bound, of 20 and 60 seconds
    async with WebServer(pages) as site:
        found = await tried(home, workspace, door, [SITE + path for path in pages], site)
    assert len(found) == len(pages)
    assert all(len(one.content) < 20_000 for one in found) and sent < 64 << 20
    assert not any(one.ok for one, path in zip(found, pages, strict=True) if path == "/slow")
    assert "<script" not in found[-1].content


@pytest.mark.parametrize("door", DOORS)
async def test_d6_a_secret_does_not_leave_in_an_address(door: str, home: Path, workspace: Path) -> None:
    secret = "q7-the-key-of-the-person-81"
    urls = [f"{SITE}/?k={secret}", f"{SITE}/{secret}", f"{SITE}/?q={'word+' * 400}", f"{SITE}/{'a' * 3_000}"]
    async with WebServer({"/": html("x")}) as site:
        found = await tried(home, workspace, door, urls, site, environ={"SOME_API_KEY": secret})
    assert [one.ok for one in found] == [False] * 4 and not site.asked
