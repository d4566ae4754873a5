"""A weak model behind a chat endpoint on loopback: it says what its script holds byte for byte, then looks at what it
is told. A strict endpoint answers 400 once the history holds what strict servers do not take."""

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Say = Mapping[str, Any]
Message = dict[str, Any]
# What the model says to a request, by its messages and its number from 1.
Model = Callable[[list[Message], int], Say]

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Seat:
    """One session's place at the server: its model, and what was asked and answered."""

    def __init__(self, model: Model, strict: bool) -> None:
        self._model = model
        self._strict = strict
        self.requests: list[list[Message]] = []
        self.rejected = ""

    def answer(self, messages: list[Message]) -> tuple[int, bytes, bool]:
        """Status and body for a request, and whether the connection breaks off behind it."""
        fault = fault_of(messages) if self._strict else ""
        if fault:
            self.rejected = fault
            return (
                400,
                json.dumps({"error": {"message": fault, "type": "BadRequestError", "code": 400}}).encode(),
                False,
            )
        self.requests.append(messages)
        say = self._model(messages, len(self.requests))
        lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks(say)]
        if say.get("breaks"):
            return 200, "".join(lines[:-2]).encode(), True
        return 200, ("".join(lines) + "data: [DONE]\n\n").encode(), False


class WeakServer:
    """Serves any number of sessions at once, each below a path of its own."""

    def __init__(self) -> None:
        self._seats: dict[str, Seat] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self._seats))
        self._server.daemon_threads = True

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def seat(self, model: Model, strict: bool = False) -> tuple[Seat, str]:
        """A new session's seat and its base URL."""
        name = f"s{len(self._seats)}"
        seat = self._seats[name] = Seat(model, strict)
        return seat, f"http://127.0.0.1:{self._server.server_address[1]}/{name}/v1"


def chunks(say: Say) -> list[dict[str, Any]]:
    """What is said as stream chunks: `reasoning`, `text`, `calls` (arguments cut in three) or `deltas` as they are,
    and `finish`. What `breaks` ends before its finish."""
    deltas: list[dict[str, Any]] = []
    if say.get("reasoning"):
        deltas.append({"reasoning_content": say["reasoning"]})
    deltas += [{"content": piece} for piece in _thirds(say.get("text", ""))]
    for place, call in enumerate(say.get("calls", ())):
        deltas += _fragments(call, place)
    deltas += say.get("deltas", ())
    finish = say.get("finish") or ("tool_calls" if say.get("calls") else "stop")
    made: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    made.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    made.append({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}})
    return [{"id": "weak", "object": "chat.completion.chunk", "model": "weak", **chunk} for chunk in made]


def _fragments(call: Mapping[str, Any], place: int) -> list[dict[str, Any]]:
    """One call: its id and name with the first piece of its arguments, then the rest."""
    given = call["arguments"]
    pieces = _thirds(given) or [""] if isinstance(given, str) else [given]
    head = {"name": call["name"], "arguments": pieces[0]}
    first = {"index": place, "id": call.get("id", f"call_{place}"), "type": "function", "function": head}
    rest = [{"index": place, "function": {"arguments": piece}} for piece in pieces[1:]]
    return [{"tool_calls": [fragment]} for fragment in (first, *rest)]


def _thirds(text: str) -> list[str]:
    size = len(text) // 3 + 1
    return [text[at : at + size] for at in range(0, len(text), size)]


def fault_of(messages: Sequence[Message]) -> str:
    """What a strict server would not take in a history, "" when it is sound."""
    due: list[str] = []
    for place, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in due:
                return f"messages[{place}]: a tool message that answers no call"
            due.remove(message["tool_call_id"])
            continue
        if due:
            return f"messages[{place}]: calls without results: {', '.join(due)}"
        for call in message.get("tool_calls") or ():
            if told := _call_fault(call):
                return f"messages[{place}]: {told}"
            due.append(call["id"])
        if len(due) != len(set(due)):
            return f"messages[{place}]: two calls of one id"
    return f"calls without results: {', '.join(due)}" if due else ""


def _call_fault(call: Mapping[str, Any]) -> str:
    name, arguments = call["function"]["name"], call["function"]["arguments"]
    if not _NAME.fullmatch(name):
        return f"invalid function name {name!r}"
    try:
        sound = isinstance(arguments, str) and isinstance(json.loads(arguments), dict)
    except ValueError:
        sound = False
    if not sound:
        return f"arguments of {name} are not a JSON object: {str(arguments)[:80]}"
    return "" if call.get("id") else "a call without an id"


def _handler(seats: Mapping[str, Seat]) -> type[BaseHTTPRequestHandler]:
    class Answering(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, sent, breaks = seats[self.path.split("/")[1]].answer(body["messages"])
            self.send_response(status)
            self.send_header("Content-Type", "text/event-stream" if status == 200 else "application/json")
            self.send_header("Content-Length", str(len(sent) + breaks))
            self.end_headers()
            self.wfile.write(sent)
            self.close_connection = self.close_connection or breaks

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the server is silent."""

    return Answering
