"""A server under a public name that leads to places nearby, when it is opened and in a call, in every spelling. Names
are resolved by the test; all else is real: the broker's process, its client, sockets."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx2
import pytest

from codewhale.mcp import link
from codewhale.mcp.broker import web
from codewhale.process.addresses import address_kind
from codewhale.protocol.modes import Mode
from codewhale.protocol.ops import RunCommand
from codewhale.services.web.dialler import Dialler
from codewhale.testing import harness
from support.mcpsite import Site
from support.mcpworld import McpWorld
from support.nearby import PRIVATE
from support.patience import HANG
from support.scenes import results

HOST = "mcp.example.org"
SITE_IP, NEAR_IP = "127.77.3.9", "127.0.0.1"
# The broker as it is, but for who answers for names: each name that is looked up is written down.
BROKER = """
from functools import partial
from codewhale.mcp.broker import web
from codewhale.process.addresses import address_kind
from codewhale.services.web.dialler import Dialler

async def resolve(host, port):
    with open({log!r}, "a") as file:
        print(host, file=file)
    return [{ip!r}] if host.endswith("example.org") else [host]

web.Dialler = partial(Dialler, resolve, lambda address: "public" if address == {ip!r} else address_kind(address))
"""


@pytest.fixture
def far() -> Iterator[Site]:
    site = Site(SITE_IP)
    yield site
    site.end()


@pytest.fixture
def near() -> Iterator[Site]:
    """A server of this machine that nobody named."""
    site = Site(NEAR_IP)
    yield site
    site.end()


def places(near: Site) -> list[str]:
    """Where it leads, in the spellings that resolvers take."""
    port = near.port
    hosts = ("127.0.0.1", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "localhost")
    return [
        *(f"http://{host}:{port}/mcp" for host in hosts), f"//127.0.0.1:{port}/mcp", "http://10.0.0.1/mcp",
        f"http://{HOST}@127.0.0.1:{port}/mcp", f"http://other.example.org:{port}/mcp", f"http://{HOST}:{port}/mcp",
        "http://169.254.169.254/latest/meta-data?token=q7-secret", "http://metadata.google.internal/", "file:///etc/passwd",
    ]  # fmt: skip


async def test_d2_d8_a_server_of_a_public_name_leads_to_no_place_nearby(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, far: Site, near: Site
) -> None:
    log = tmp_path / "names"
    monkeypatch.setattr(link, "_BROKER", BROKER.format(log=str(log), ip=SITE_IP) + link._BROKER)
    world, leads = McpWorld(tmp_path), places(near)
    for number, place in enumerate(leads):
        status = (302, 307, 303, 308, 301)[number % 5]
        far.leads[f"/opened/{number}", "initialize"] = far.leads[f"/called/{number}", "tools/call"] = status, place
    base = f"http://{HOST}:{far.port}"
    known = {f"c{number}": {"url": f"{base}/called/{number}", "connect_timeout": HANG} for number in range(len(leads))}
    known |= {f"o{number}": {"url": f"{base}/opened/{number}", "connect_timeout": HANG} for number in range(len(leads))}
    world.name(**known)
    world.approve(*known)
    calls = [{"name": f"mcp_c{number}_say", "arguments": {}} for number in range(len(leads))]
    # The first time a tool is shown, the second time it is called.
    script = [*({"calls": [call]} for call in calls for _ in range(2)), {"text": "Done."}]
    async with harness(world.home, world.work, script) as stage:
        session = await stage.open(mode=Mode.YOLO)
        states = [(await stage.client.submit(RunCommand(session, f"/mcp reload {name}"))).text for name in known]
        rows = [(await stage.client.submit(RunCommand(session, f"/mcp show {name}"))).text for name in known]
        called = results(await stage.turn("Go", session))[1::2]
    assert near.seen == [] and set(log.read_text().split()) == {HOST}
    why = "leads elsewhere, to ", "which is not its configured address; nothing was sent there"
    opened = [*states[len(leads) :], *rows[len(leads) :]]
    texts = [*opened, *(one.content for one in called)]
    assert len(called) == len(leads) and not any(one.ok for one in called)
    assert [text for text in texts if not all(part in text for part in why)] == []
    assert all("ready" in text for text in states[: len(leads)]) and "q7-secret" not in "".join(texts)
    assert "to http://127.1:" in opened[1] and "to http://169.254.169.254/latest/meta-data," in opened[13]


async def test_d2_d8_a_redirect_that_were_followed_would_be_judged_and_not_dialled(
    monkeypatch: pytest.MonkeyPatch, far: Site, near: Site
) -> None:
    looked_up: list[str] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        looked_up.append(host)
        return {HOST: [SITE_IP], "turned.example.org": [SITE_IP, NEAR_IP]}.get(host, [NEAR_IP])

    def kind(address: str) -> str:
        return "public" if address == SITE_IP else address_kind(address)

    monkeypatch.setattr(web, "Dialler", lambda: Dialler(resolve, kind))
    noted: list[str] = []
    key = {"Authorization": "Bearer q7-secret"}
    guarded = web.GuardedTransport(f"http://{HOST}:{far.port}/mcp", key, lambda problem, denied: noted.append(problem))
    hosts = [f"{host}:{port}" for host in PRIVATE if host.isascii() for port in (80, near.port)]
    hosts += ["turned.example.org", "nearby.example.org", f"turned.example.org:{near.port}", f"{HOST}:{near.port}"]
    tried = 0
    async with httpx2.AsyncClient(transport=guarded, headers=key, trust_env=False) as client:
        for host in hosts:
            try:
                request = client.build_request("POST", f"http://{host}/mcp", json={})
            except httpx2.InvalidURL:
                continue
            tried += 1
            with pytest.raises(httpx2.ConnectError):
                await client.send(request)
        mine = await client.post(f"http://{HOST}:{far.port}/mcp", json={"id": 1, "method": "initialize"})
    assert mine.status_code == 200 and tried > 100 and near.seen == []
    assert far.seen == [("/mcp", "Bearer q7-secret")] and len(noted) == tried + 1 and noted[-1] == ""
    assert set(looked_up) == {HOST, "turned.example.org", "nearby.example.org"}
