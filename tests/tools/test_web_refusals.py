"""Addresses, references and selectors that cannot be read: each error names a call that works, and it does."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.events import CallFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.testing import harness
from support.minipdf import pdf
from support.scenes import results
from support.webserver import WebServer, hits, html

SITE = "http://docs.example.org:8080"
LOCKED = pdf("one").replace(
    b"/Root 1 0 R", b"/Encrypt<</Filter/Standard/V 1/R 2/P -4/O(x)/U(y)>>/ID[(a)(a)]/Root 1 0 R"
)
NEXT = re.compile(r"(?:Next call|To see what is there|To look elsewhere): (\w+) (\{.*\})")


async def silent(writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(30)


PAGES = {
    "/": html("<main id='top'><h1>Start</h1><p>One page of the guide, with words enough to be read.</p></main>"),
    "/empty": (204, {}, b""),
    "/round": (302, {"location": "/round"}, b""),
    "/away": (302, {"location": "http://other.example.org:8080/"}, b""),
    "/locked.pdf": (200, {"content-type": "application/pdf"}, LOCKED),
    "/photo.png": (200, {"content-type": "image/png"}, b"\x89PNG\r\n\x1a\n\0\0\0\r"),
    "/slow": silent,
    "/search": hits(("The guide", f"{SITE}/", "One page")),
}
# What is asked -> what the answer says of it.
BAD: list[tuple[dict[str, Any], str]] = [
    ({"url": "file:///etc/hostname"}, "file"),
    ({"url": "ftp://docs.example.org/a"}, "ftp"),
    ({"url": "http://docs.example.org:22/"}, "port"),
    ({"url": "http://me:secret@docs.example.org:8080/"}, "password"),
    ({"url": "http://localhost:3000/health"}, "localhost"),
    ({"url": "http://169.254.169.254/latest/meta-data"}, "credentials"),
    ({"url": "http://nowhere.example.net/a-guide"}, "not found"),
    ({"url": f"{SITE}/missing-guide"}, "404"),
    ({"url": f"{SITE}/empty"}, "empty"),
    ({"url": f"{SITE}/round"}, "back to itself"),
    ({"url": f"{SITE}/away"}, "another site"),
    ({"url": f"{SITE}/locked.pdf"}, "password"),
    ({"url": f"{SITE}/photo.png"}, "image/png"),
    ({"url": f"{SITE}/slow", "timeout_ms": 1000}, "within 1 seconds"),
    ({"url": f"{SITE}/", "selector": "#absent"}, "finds nothing"),
    ({"url": f"{SITE}/", "selector": "p >"}, "selector"),
    ({"url": f"{SITE}/", "ref_id": "web1"}, "not both"),
    ({"ref_id": "web99"}, "no page of this session"),
    ({"ref_id": "web2"}, "not read yet"),
    ({"url": "  "}, "needs `url`"),
]


@pytest.mark.parametrize(("arguments", "says"), BAD, ids=[str(next(iter(row[0].values())))[:40] for row in BAD])
async def test_what_cannot_be_read_names_a_call_that_works(
    arguments: dict[str, Any], says: str, home: Path, workspace: Path
) -> None:
    seen: list[CallFinished] = []

    def follow(request: dict[str, Any]) -> dict[str, Any]:
        answer = str(request["messages"][-1]["content"])
        found = NEXT.search(answer)
        assert found, answer
        return {"calls": [{"name": found[1], "arguments": json.loads(found[2])}]}

    first = [("fetch_url", {"url": f"{SITE}/"}), ("web_search", {"query": "guide"}), ("fetch_url", arguments)]
    script = [*({"calls": [{"name": name, "arguments": given}]} for name, given in first), follow, {"text": "Done."}]
    async with WebServer(PAGES) as site, harness(home, workspace, script) as stage:
        site.serve(stage)
        seen = results(await stage.turn("Read.", await stage.open(mode=Mode.AGENT, authority=Authority.HEADLESS)))
    bad, right = seen[2:]
    assert says.lower() in bad.content.lower()
    assert "tool itself failed" not in bad.content and "secret" not in bad.content.replace(json.dumps(arguments), "")
    assert right.ok, right.content
