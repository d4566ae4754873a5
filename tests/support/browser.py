"""A page in headless Chromium, driven over the browser's own protocol: one on the PATH, or the one that
CODEWHALE_CHROMIUM names."""

import asyncio
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from support.patience import HANG

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = HANG
KEYS = {"Enter": (13, "\r"), "Tab": (9, "\t")}  # their codes, and what they write
COLUMNS, ROWS = 400, 200  # more than any window has
# The page draws on a canvas, so what it was sent is read along, and an emulator says what stands there.
TEE = """(() => {
  const Real = window.WebSocket, chunks = [];
  window.WebSocket = class extends Real {
    constructor(...rest) {
      super(...rest);
      this.addEventListener('message', async event => {
        if (typeof event.data === 'string') return;
        const data = event.data instanceof Blob ? await event.data.arrayBuffer() : event.data;
        chunks.push(Array.from(new Uint8Array(data)));
      });
    }
  };
  window.takeChunks = () => chunks.splice(0).flat();
})()"""


def browser() -> str:
    """The path of a Chromium, "" where there is none."""
    named = os.environ.get("CODEWHALE_CHROMIUM", "")
    return named or next((path for name in BROWSERS if (path := shutil.which(name))), "")


class Page:
    """One page over the browser's own protocol."""

    def __init__(self, socket: Any) -> None:
        import pyte

        self._socket = socket
        self._number = 0
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)

    async def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Have the browser do something; its answer."""
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        while True:
            answer = await self._socket.receive_json(timeout=SECONDS)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    async def text(self) -> str:
        """What stands on the page."""
        self._stream.feed(bytes(await self.value("window.takeChunks()") or ()))
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    async def value(self, expression: str) -> Any:
        """What a line of JavaScript comes to there."""
        result = await self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        return result["result"].get("value")

    async def until(self, words: str, key: str = "") -> str:
        """Wait for words on the page, pressing a key again and again where one is named; what stands there then."""
        for turn in range(int(SECONDS * 10)):
            text = await self.text()
            if words in text:
                return text
            if key and turn % 10 == 9:
                await self.press(key)
            await asyncio.sleep(0.1)
        raise AssertionError(f"{words!r} never came; the page:\n{text}")

    async def type(self, text: str) -> None:
        """Type text."""
        await self.ask("Input.insertText", text=text)

    async def press(self, key: str) -> None:
        """Press a key that has a name."""
        common = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key][0]}
        await self.ask("Input.dispatchKeyEvent", type="keyDown", text=KEYS[key][1], **common)
        await self.ask("Input.dispatchKeyEvent", type="keyUp", **common)


@asynccontextmanager
async def started(path: str, profile: str) -> AsyncIterator[str]:
    """A browser of its own; the address of its protocol."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--window-size=1200,900"]
    words = [path, *flags, f"--user-data-dir={profile}", "about:blank"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as child:  # noqa: ASYNC220
        try:
            assert child.stderr is not None
            port = ""
            while not port and (line := await asyncio.to_thread(child.stderr.readline)):
                port = "".join(re.findall(r"DevTools listening on ws://127\.0\.0\.1:(\d+)/", line))
            yield f"http://127.0.0.1:{port}"
        finally:
            child.kill()


@asynccontextmanager
async def opened(path: str, address: str) -> AsyncIterator[Page]:
    """A page at an address, in a browser of its own."""
    from aiohttp import ClientSession

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        async with started(path, profile) as protocol, ClientSession() as session:
            async with session.put(f"{protocol}/json/new?about:blank") as answer:
                url = (await answer.json())["webSocketDebuggerUrl"]
            async with session.ws_connect(url, max_msg_size=0) as socket:
                page = Page(socket)
                await page.ask("Page.enable")
                await page.ask("Page.addScriptToEvaluateOnNewDocument", source=TEE)
                await page.ask("Page.navigate", url=address)
                yield page
