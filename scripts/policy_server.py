"""A model server on loopback whose answers come from a policy: a generator that is sent tool results and yields
turns. It speaks the OpenAI chat wire form, streamed, and sees only what a request's messages say."""

import json
import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NamedTuple, Self


class Turn(NamedTuple):
    """What the model says next: text, and calls as (tool name, arguments)."""

    text: str
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


Policy = Generator[Turn, list[str], None]


class PolicyServer:
    """Serves one conversation at a time on 127.0.0.1; a conversation without an assistant message begins anew.

    `begin` is given the person's words and makes a policy. `base_url` is what a provider table wants. A request
    no longer than the last one is a retry and is answered as before.
    """

    def __init__(self, begin: Callable[[str], Policy]) -> None:
        self._begin = begin
        self._policy: Policy | None = None
        self._seen = 0
        self._turn = Turn("")
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.requests = 0

    @property
    def base_url(self) -> str:
        """Where it listens, `/v1` included."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, messages: list[dict[str, Any]]) -> Turn:
        """The next turn for these messages."""
        with self._lock:
            self.requests += 1
            if not any(message["role"] == "assistant" for message in messages):
                words = next((text_of(message) for message in messages if message["role"] == "user"), "")
                self._policy, self._seen = self._begin(words), len(messages)
                self._turn = next(self._policy)
            elif self._policy is not None and len(messages) > self._seen:
                self._seen = len(messages)
                self._turn = self._advance(self._policy, results(messages))
            return self._turn

    def _advance(self, policy: Policy, told: list[str]) -> Turn:
        try:
            return policy.send(told)
        except StopIteration:
            return Turn("There is nothing more to do.")


def text_of(message: dict[str, Any]) -> str:
    """The text of a wire message, whole or in parts."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def results(messages: list[dict[str, Any]]) -> list[str]:
    """The tool results after the last assistant message, in order."""
    last = max(index for index, message in enumerate(messages) if message["role"] == "assistant")
    return [text_of(message) for message in messages[last + 1 :] if message["role"] == "tool"]


def chunks(turn: Turn, number: int) -> list[dict[str, Any]]:
    """A turn as stream chunks."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": turn.text}]
    for index, (name, arguments) in enumerate(turn.calls):
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": index, "id": f"call_{number}_{index}", "type": "function", "function": function}
        deltas.append({"tool_calls": [call]})
    finish = "tool_calls" if turn.calls else "stop"
    made: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    made.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    made.append({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
    return [{"id": "policy", "object": "chat.completion.chunk", "model": "policy", **chunk} for chunk in made]


def _handler(server: PolicyServer) -> type[BaseHTTPRequestHandler]:
    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            # So short an answer is wanted for a title alone, beside the conversation.
            titled = min(body.get(key) or 4096 for key in ("max_tokens", "max_completion_tokens")) <= 64
            turn = Turn("A title") if titled else server.answer(body["messages"])
            lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks(turn, server.requests)]
            sent = ("".join(lines) + "data: [DONE]\n\n").encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            with suppress(ConnectionError):  # whoever asked has gone
                self.wfile.write(sent)

        def do_GET(self) -> None:
            sent = json.dumps({"object": "list", "data": [{"id": name} for name in ("m", "m-large")]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            with suppress(ConnectionError):  # whoever asked has gone
                self.wfile.write(sent)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the server is silent."""

    return Answering
