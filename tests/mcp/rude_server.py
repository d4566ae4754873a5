"""A server by hand, in the older revision, that does what no server should: a program of the tests, with no library."""

import json
import os
import signal
import sys
import time

TOOLS = (
    "add", "huge", "many", "broken", "halves", "endless", "noise", "die", "wait", "ask", "sample", "roots", "grow",
    "note", "image", "refuse", "environment", "hold", "flood", "lists",
)  # fmt: skip
OUT = sys.stdout.buffer
grown: list[str] = []
listed: list[int] = []
held: list[object] = []


def send(message: dict[str, object]) -> None:
    """One message, one line."""
    OUT.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    OUT.flush()


def text(number: object, *texts: str) -> None:
    """A result of texts."""
    send({"id": number, "result": {"content": [{"type": "text", "text": one} for one in texts]}})


def ask(method: str, params: dict[str, object]) -> object:
    """Ask the client, and wait for its answer."""
    send({"id": "asked", "method": method, "params": params})
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "asked":
            return message.get("result", message.get("error"))
    return None


def tools() -> list[dict[str, object]]:
    """What is offered; more of it once it has grown."""
    listed.append(1)
    schema = {"type": "object"}
    return [{"name": name, "description": name, "inputSchema": schema} for name in (*TOOLS, *grown)]


def result(number: object, name: str, arguments: dict[str, object]) -> None:
    """Do one call."""
    if name == "add":
        text(number, str(arguments["a"] + arguments["b"]))  # type: ignore[operator]
    elif name == "huge":
        text(number, "x" * int(str(arguments["size"])))
    elif name == "many":
        OUT.write(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[' % number)  # type: ignore[str-bytes-safe]
        OUT.write(b",".join([b'{"type":"text","text":"y"}'] * int(str(arguments["count"]))) + b"]}}\n")
        OUT.flush()
    elif name == "broken":
        send_raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"a\xff\xfeb"}]}}', number)
    elif name == "halves":
        send_raw(b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"a\\ud800b"}]}}', number)
    elif name == "endless":
        OUT.write(b'{"jsonrpc":"2.0","id":1,"result":"')
        while True:
            OUT.write(b"z" * (1 << 20))
    elif name == "noise":
        OUT.write(b"loading...\n\n[1,2\n")
        text(number, "after the noise")
    elif name == "die":
        note(arguments)
        print("I am gone", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    elif name == "wait":
        note(arguments)
        time.sleep(float(str(arguments["seconds"])))
        text(number, "waited")
    else:
        more(number, name, arguments)


def more(number: object, name: str, arguments: dict[str, object]) -> None:
    """The calls that ask, and the rest."""
    if name == "ask":
        form = {"type": "object", "properties": {"age": {"type": "integer", "default": 7}, "name": {"type": "string"}}}
        text(number, json.dumps(ask("elicitation/create", {"message": "How old?", "requestedSchema": form})))
    elif name == "sample":
        message = {"role": "user", "content": {"type": "text", "text": "Say yes."}}
        text(number, json.dumps(ask("sampling/createMessage", {"messages": [message], "maxTokens": 9})))
    elif name == "hold":
        note(arguments)
        held.append(number)
    elif name == "roots":
        text(number, json.dumps(ask("roots/list", {})))
    elif name == "grow":
        grown.append(f"grown{len(grown)}")
        send({"method": "notifications/tools/list_changed"})
        text(number, "grown")
    elif name == "flood":
        for _ in range(int(str(arguments["count"]))):
            send({"method": "notifications/tools/list_changed"})
        text(number, "flooded")
    elif name == "lists":
        text(number, str(len(listed)))
    elif name == "note":
        note(arguments)
        text(number, "noted")
        while held:
            text(held.pop(), "no longer held")
    elif name == "image":
        part = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
        link = {"type": "resource_link", "uri": "file:///x", "name": "x"}
        inside = {"type": "resource", "resource": {"uri": "note://2", "text": "inside"}}
        send({"id": number, "result": {"content": [part, link, inside], "structuredContent": {"n": 1}}})
    elif name == "refuse":
        send({"id": number, "error": {"code": -32602, "message": "no such argument"}})
    elif name == "environment":
        text(number, json.dumps(dict(os.environ)))


def send_raw(template: bytes, number: object) -> None:
    """A line as it is."""
    OUT.write(template % number + b"\n")  # type: ignore[operator]
    OUT.flush()


def note(arguments: dict[str, object]) -> None:
    """Append a line to a file: the side effect that tests count."""
    with open(str(arguments["path"]), "a", encoding="utf-8") as file:
        file.write(f"{arguments.get('text', 'done')}\n")


def main() -> None:
    """Answer until the input ends."""
    if len(sys.argv) > 1:
        time.sleep(float(sys.argv[1]))
    for line in sys.stdin:
        message = json.loads(line)
        number, method = message.get("id"), message.get("method")
        if method == "initialize":
            about = {"name": "rude", "version": "1"}
            capabilities = {"tools": {"listChanged": True}}
            said = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": about}
            send({"id": number, "result": said})
        elif method == "tools/list":
            send({"id": number, "result": {"tools": tools()}})
        elif method == "tools/call":
            result(number, message["params"]["name"], message["params"].get("arguments") or {})
        elif number is not None:
            send({"id": number, "error": {"code": -32601, "message": "unknown"}})


if __name__ == "__main__":
    main()
