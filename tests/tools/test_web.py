"""fetch_url and web_search in turns: what the model reads, refers to and reopens."""

import json
from pathlib import Path
from typing import Any

from codewhale.protocol.events import CallFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import ResumeSession
from codewhale.protocol.tools import Origin
from codewhale.testing import Harness, harness
from support.scenes import results
from support.webserver import WebServer, hits, html

SITE = "http://docs.example.org:8080"
PARAGRAPH = "Each worker takes one row of the queue and says so before it begins. "


def long_page(sections: int = 200) -> str:
    parts = [f"<h2>Part {n}</h2><p>{PARAGRAPH * 6} <a href='/ref/{n}'>more</a></p>" for n in range(sections)]
    return f"<html><title>The queue</title><body><main><h1>Queue</h1>{''.join(parts)}</main></body></html>"


PAGES = {
    "/": html(f"<title>Start</title><main><h1>Start</h1><p>{PARAGRAPH * 3}<a href='/two'>two</a></p></main>"),
    "/long": html(long_page()),
    "/data.json": (200, {"content-type": "application/json"}, b'{"a": [1, 2]}'),
    "/gone": (404, {"content-type": "text/html"}, b"<p>There is no such page.</p>"),
    "/search": hits(("Queues", f"{SITE}/", "Rows of a <b>queue</b>"), ("Other", "https://other.test/x", "More")),
}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


async def made(stage: Harness, *calls: dict[str, Any], session: str = "") -> list[CallFinished]:
    """The results of calls that are made one after the other."""
    script = iter([*({"calls": [one]} for one in calls), {"text": "Done."}])
    stage.provider.script = lambda request: next(script)
    return results(await stage.turn("Read.", session or await stage.open()))
