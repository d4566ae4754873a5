"""A server by hand, in the older revision, whose results have parts of any kind and size, and which asks the model: a
program of the tests, with no library."""

import base64
import json
import sys

OUT = sys.stdout
BEGIN = {"png": b"\x89PNG\r\n\x1a\n", "wav": b"RIFF\0\0\0\0WAVE", "bin": b"\0\1", "script": b"#!/bin/sh\n"}


def send(message: dict[str, object]) -> None:
    """One message, one line."""
    OUT.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    OUT.flush()


def part(wanted: dict[str, object]) -> dict[str, object]:
    """A part as it is wanted: `kind` of part, `bytes` it begins with, `size`, `mime`."""
    data = BEGIN[str(wanted.get("bytes", "bin"))].ljust(int(str(wanted.get("size", 20))), b"\0")
    encoded = str(wanted.get("raw") or base64.b64encode(data).decode())
    kind, mime = str(wanted.get("kind")), str(wanted.get("mime", ""))
    if kind == "resource":
        return {"type": kind, "resource": {"uri": "made:///one", "mimeType": mime, "blob": encoded}}
    if kind == "document":
        return {"type": "resource", "resource": {"uri": "made:///two", "text": "y" * int(str(wanted["size"]))}}
    if "as it is" in wanted:
        return wanted["as it is"]  # type: ignore[return-value]
    if kind == "text":
        return {"type": kind, "text": "z" * int(str(wanted["size"]))}
    return {"type": kind, "data": encoded, "mimeType": mime}


def ask(wanted: dict[str, object]) -> object:
    """Ask the client's model, and wait for the answer."""
    message = {"role": "user", "content": {"type": "text", "text": "Say yes." + "x" * int(str(wanted.get("size", 0)))}}
    params = {"messages": [message], "maxTokens": wanted.get("tokens", 9), "systemPrompt": "Be short."}
    send({"id": "asked", "method": "sampling/createMessage", "params": params})
    for line in sys.stdin:
        answer = json.loads(line)
        if answer.get("id") == "asked":
            return answer.get("result", answer.get("error"))
    return None


def call(name: str, arguments: dict[str, object]) -> list[object]:
    """What one call comes to."""
    if name == "give":
        return [part(one) for one in arguments["parts"]]  # type: ignore[attr-defined]
    answers = [ask(arguments) for _ in range(int(str(arguments.get("times", 1))))]
    return [{"type": "text", "text": json.dumps(one)} for one in answers]


def main() -> None:
    """Answer until the input ends."""
    rows = [{"name": name, "description": name, "inputSchema": {"type": "object"}} for name in ("give", "ask")]
    about = {
        "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "parts", "version": "1"},
    }  # fmt: skip
    for line in sys.stdin:
        message = json.loads(line)
        number, method = message.get("id"), message.get("method")
        if method == "initialize":
            send({"id": number, "result": about})
        elif method == "tools/list":
            send({"id": number, "result": {"tools": rows}})
        elif method == "tools/call":
            content = call(message["params"]["name"], message["params"].get("arguments") or {})
            send({"id": number, "result": {"content": content}})
        elif number is not None:
            send({"id": number, "error": {"code": -32601, "message": "unknown"}})


if __name__ == "__main__":
    main()
