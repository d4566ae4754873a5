"""`codewhale mcp serve --http`: the token, Host and Origin, what is bounded, and sessions that nobody guesses."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.mcpclient import LEGACY, MODERN, command, said
from support.program import codewhale_program, environment

TOKEN = "a-token-of-this-test-0123456789"
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server that all tests of this file share."""
    home = tmp_path_factory.mktemp("home")
    workspace = home / "work"
    workspace.mkdir()
    (workspace / "a.txt").write_text("hello\n")
    more = ("--http", "0", "--offer", "exec_shell", "--allow-host", "box.test", "--allow-origin", "https://page.test")
    env = environment(home, {"CODEWHALE_MCP_TOKEN": TOKEN})
    with subprocess.Popen(
        command(workspace, *more), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    ) as child:
        assert child.stderr is not None and child.stdout is not None
        line = child.stderr.readline().decode()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/mcp", line)
        assert found, line
        yield int(found[1])
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0
        assert child.stdout.read() == b"" and b"Traceback" not in child.stderr.read()


def ask(
    port: int, body: bytes | dict[str, Any] | None = None, method: str = "POST", **headers: str | None
) -> tuple[int, dict[str, str], bytes]:
    """One request with these headers beside or in place (None: without) of the usual ones."""
    usual = {
        "Host": f"127.0.0.1:{port}", "Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }  # fmt: skip
    for name, value in headers.items():
        usual[name.replace("_", "-")] = value  # type: ignore[assignment]
    if body is None:
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {**usual, "Content-Length": str(len(data))}
    lines = (f"{method} /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in named.items() if value is not None))
    with socket.create_connection(("127.0.0.1", port), 60) as wire:
        # All at once: a body that is sent after the server has answered its headers and closed costs the answer.
        wire.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode("latin-1") + data)
        answer = http.client.HTTPResponse(wire, method=method)
        answer.begin()
        return answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Authorization": None}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": f"Bearer {TOKEN[:-1]}"}, 401),
        ({"Authorization": "Bearer tök"}, 401),
        ({"Host": "evil.test"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Host": None}, 400),
        ({"Host": "localhost.evil.test:{port}"}, 421),
        ({"Host": "localhost:{port}"}, 200),
        ({"Host": "box.test:{port}"}, 200),
        ({"Origin": "http://evil.test"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost:{port}.evil.test"}, 403),
        ({"Origin": "http://localhost:{port}"}, 200),
        ({"Origin": "https://page.test"}, 200),
        ({"Mcp_Session_Id": "0" * 32}, 404),
        ({"Content_Type": "text/plain"}, 400),
    ],
)
def test_d8_who_gets_in(served: int, headers: dict[str, str | None], status: int) -> None:
    named = {name: value and value.replace("{port}", str(served)) for name, value in headers.items()}
    answered, found, body = ask(served, **named)
    assert answered == status, body
    assert TOKEN.encode() not in body
    if status == 200:
        assert re.fullmatch(r"[0-9a-f]{32}", found["mcp-session-id"])
    else:
        assert "mcp-session-id" not in found


def test_two_headers_of_one_name_are_none(served: int) -> None:
    lines = (f"Host: 127.0.0.1:{served}", "Host: evil.test", f"Authorization: Bearer {TOKEN}", "Content-Length: 0")
    with socket.create_connection(("127.0.0.1", served), 60) as wire:
        wire.sendall(("POST /mcp HTTP/1.1\r\n" + "".join(f"{line}\r\n" for line in lines) + "\r\n").encode())
        assert wire.recv(100).split()[1] in (b"400", b"421")


def test_bodies_that_are_too_large_or_no_message(served: int) -> None:
    assert ask(served, b"x" * (5 << 20))[0] == 413
    assert ask(served, b"{")[0] == 400
    assert ask(served, b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}')[0] == 400
    assert ask(served)[0] == 200


def test_d8_sessions_end_by_their_own_id_and_there_are_not_too_many(served: int) -> None:
    opened = [ask(served) for _ in range(70)]
    statuses = [status for status, _, _ in opened]
    assert statuses[-1] == 503 and 200 in statuses
    ids = [found["mcp-session-id"] for status, found, _ in opened if status == 200]
    assert len(set(ids)) == len(ids)
    for one in ids:
        assert ask(served, b"", "DELETE", Mcp_Session_Id=one)[0] == 200
    assert ask(served, b"", "DELETE", Mcp_Session_Id=ids[0])[0] == 404
    assert ask(served)[0] == 200


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
async def test_the_librarys_client_calls_and_its_person_is_asked(served: int, mode: str) -> None:
    import httpx2
    import mcp_types as types
    from mcp.client import Client
    from mcp.client.streamable_http import streamable_http_client

    asked: list[str] = []

    async def person(context: Any, params: Any) -> Any:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"decision": "allow"})

    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as carrier:
        transport = streamable_http_client(f"http://127.0.0.1:{served}/mcp", http_client=carrier)
        async with Client(transport, mode=mode, elicitation_callback=person) as client:
            assert said(await client.call_tool("read_file", {"path": "a.txt"})) == "hello\n"
            ran = await client.call_tool("exec_shell", {"command": f"touch {mode}.txt && echo made"})
            assert not ran.is_error and "made" in said(ran)
    assert len(asked) == 1 and "touch" in asked[0]


def test_the_token_is_made_once_kept_private_and_renewed(tmp_path: Path) -> None:
    first, again, other = (
        codewhale_program(tmp_path, "mcp", "serve", word).stdout for word in ("--token", "--token", "--new-token")
    )
    assert len(first.strip()) >= 43 and first == again != other
    kept = tmp_path / "state" / "secrets" / "keys.json"
    assert other.strip() in kept.read_text() and os.stat(kept).st_mode & 0o077 == 0
    weak = codewhale_program(tmp_path, "mcp", "serve", "--http", "0", env={"CODEWHALE_MCP_TOKEN": "short"})
    assert weak.returncode == 2 and "16 or more" in weak.stderr


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = codewhale_program(tmp_path, "mcp", "serve", "--http", str(taken.getsockname()[1]))
    assert done.returncode == 2 and "try another port" in done.stderr
