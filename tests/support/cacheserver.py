"""A model server on loopback with an honest prefix cache: it reads each request as a prompt of tokens, remembers the
prompts of each model, and counts what a new one begins with alike, in whole blocks."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from support.loopserver import LoopServer
from support.wire import answer, delta, sse, stream

BLOCK = 64
_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_REMEMBERED = 12


def tokens(text: bytes) -> int:
    """Tokens of a text: each run of letters is worth its beginning, all else counts by the byte. Sums add up."""
    return len(text.translate(None, _LETTERS)) + len(text) // 16


def alike(one: bytes, other: bytes) -> int:
    """The number of bytes two texts begin with alike."""
    end = min(len(one), len(other))
    low, high = 0, end
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == other[:middle] else (low, middle - 1)
    return low


@dataclass
class Served:
    """A request: the model, its prompt, what was counted, and the share of the request before it that it kept."""

    model: str
    payload: dict[str, Any]
    prompt: bytes
    input: int
    hit: int
    kept: float


Reply = dict[str, Any]


@dataclass
class CacheServer(LoopServer):
    """Answers POST /chat/completions with what `respond` says: {"text"} or {"calls": [(name, arguments)]}."""

    respond: Callable[[dict[str, Any]], Reply]
    served: list[Served] = field(default_factory=list)
    memory: dict[str, list[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://{self.address}/v1"

    def forget(self) -> None:
        """Lose the whole cache."""
        self.memory.clear()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer request after request."""
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            size = int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0)
            body = await reader.readexactly(size)
            writer.write(self._answer(body) if size else answer(404))
            await writer.drain()

    def _answer(self, body: bytes) -> bytes:
        payload = json.loads(body)
        served = self._count(payload)
        self.served.append(served)
        reply = self.respond(payload)
        calls = [
            {
                "index": at,
                "id": f"c{len(self.served)}_{at}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for at, (name, arguments) in enumerate(reply.get("calls", ()))
        ]
        said = {"tool_calls": calls} if calls else {"content": reply["text"]}
        usage = {
            "prompt_tokens": served.input,
            "completion_tokens": 20,
            "prompt_cache_hit_tokens": served.hit,
            "prompt_cache_miss_tokens": served.input - served.hit,
        }
        finish = "tool_calls" if calls else "stop"
        return stream(sse(delta(role="assistant", **said), delta(finish), {"choices": [], "usage": usage}, "[DONE]"))

    def _count(self, payload: dict[str, Any]) -> Served:
        """Read the prompt as a template would: tools first, then the messages, each closed off."""
        pieces = [payload.get("tools", []), *payload["messages"]]
        prompt = b"\n".join(json.dumps(piece).encode() for piece in pieces) + b"\n"
        memory = self.memory.setdefault(payload["model"], [])
        best = max((alike(earlier, prompt) for earlier in memory), default=0)
        hit = tokens(prompt[:best]) // BLOCK * BLOCK
        before = self.served[-1].prompt if self.served else b""
        same = bool(self.served) and self.served[-1].model == payload["model"]
        kept = alike(before, prompt) / len(before) if same else 0.0
        memory.append(prompt)
        del memory[:-_REMEMBERED]
        return Served(payload["model"], payload, prompt, tokens(prompt), hit, kept)
