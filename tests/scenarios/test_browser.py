"""`codewhale web` in a real browser: the page has a name and the focus, a turn is typed, a command approved."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from support.browser import Page, browser, opened
from support.program import environment, scripted

pytest.importorskip("textual_serve")
pytestmark = pytest.mark.skipif(not browser(), reason="no Chromium here: install one, or name it in CODEWHALE_CHROMIUM")
CALL = json.dumps({"calls": [{"name": "exec_shell", "arguments": {"command": "echo made > made.txt"}}]})


@asynccontextmanager
async def page_of(home: Path) -> AsyncIterator[Page]:
    """The page of `codewhale web` over a folder with a name of its own."""
    work = home / 'shop "&<b>'
    work.mkdir()
    command = [sys.executable, "-m", "codewhale", "web", "--port", "0", "-w", str(work)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment(home), text=True) as server:  # noqa: ASYNC220
        try:
            assert server.stdout is not None
            address = (await asyncio.to_thread(server.stdout.readline)).strip()
            async with opened(browser(), address) as page:
                yield page
        finally:
            server.terminate()
            await asyncio.to_thread(server.wait, 60)


async def test_a_page_has_a_name_and_a_turn_is_typed_and_approved_in_it(tmp_path: Path) -> None:
    scripted(tmp_path, CALL, '{"text":"It is made."}')
    async with page_of(tmp_path) as page:
        await page.until("Ask anything")
        assert await page.value("document.title") == 'shop "&<b> · CodeWhale'
        assert await page.value("document.activeElement.className") == "xterm-helper-textarea"
        await page.type("make the file")  # nothing was clicked
        await page.until("make the file")
        await page.press("Enter")
        await page.until("echo made")
        assert not (tmp_path / 'shop "&<b>' / "made.txt").exists()
        await page.until("It is made.", key="Enter")
    assert (tmp_path / 'shop "&<b>' / "made.txt").read_text() == "made\n"


async def test_the_page_asks_no_other_host_and_takes_the_focus_back(tmp_path: Path) -> None:
    scripted(tmp_path, '{"text":"hello"}')
    async with page_of(tmp_path) as page:
        await page.until("Ask anything")
        hosts = await page.value(
            "[...new Set(performance.getEntriesByType('resource').map(one => new URL(one.name).hostname))].join()"
        )
        assert hosts == "127.0.0.1"
        await page.value("document.activeElement.blur()")
        await page.value("window.dispatchEvent(new Event('focus'))")
        await page.type("typed again")
        await page.until("typed again")
