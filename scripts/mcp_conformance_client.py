"""The program that the public conformance suite starts for each scenario of a client: it uses our servers as a session
does, through the broker. `mcp_conformance_client.py URL`; the scenario stands in the environment."""

import asyncio
import json
import os
import sys
import urllib.request
from typing import Any

from codewhale.mcp.servers import McpServers
from codewhale.mcp.terms import LoginOptions, ServerFailed, ServerSpec

METADATA = "https://conformance-test.local/client-metadata.json"
RETRIED = ("auth/scope-retry-limit",)


class Scripted:
    """A caller that agrees to everything."""

    async def elicit(self, server: str, message: str, schema: dict[str, Any], url: str) -> dict[str, Any]:
        """Yes, with what the form itself says; where it says nothing, something of the right kind."""
        kinds = {"string": "text", "integer": 1, "number": 1.0, "boolean": True}
        rows = schema.get("properties", {}).items()
        content = {name: kinds[row["type"]] for name, row in rows if "default" not in row and row.get("type") in kinds}
        return {"action": "accept", "content": content}

    async def sample(self, server: str, request: dict[str, Any]) -> dict[str, Any]:
        """A word."""
        return {"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "scripted"}

    def progress(self, server: str, done: float, total: float | None, text: str) -> None:
        """Nothing."""

    def log(self, server: str, level: str, text: str) -> None:
        """Nothing."""


def visit(url: str) -> None:
    """What a browser would do: follow the address to the end."""
    asyncio.get_running_loop().run_in_executor(None, lambda: urllib.request.urlopen(url, timeout=20).read())


def arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """Something for each argument that a tool wants."""
    kinds: dict[str, Any] = {"string": "text", "integer": 3, "number": 5, "boolean": True, "array": [], "object": {}}
    rows = schema.get("properties", {}).items()
    return {name: row.get("default", kinds.get(row.get("type"))) for name, row in rows if row.get("type") in kinds}


async def use(servers: McpServers, call: dict[str, Any], must: bool) -> None:
    """Call a tool; one that `must` work ends the program where it does not."""
    try:
        await servers.call("suite", call["name"], call.get("arguments") or {}, Scripted())
    except ServerFailed as error:
        print(f"{call['name']}: {error}", file=sys.stderr)
        if must:
            raise


async def main(url: str) -> int:
    """Connect, log in where that is asked, and call every tool that is offered."""
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    options = LoginOptions(context.get("client_id", ""), context.get("client_secret", ""), METADATA)
    servers = McpServers()
    spec = ServerSpec("suite", url=url, connect_seconds=25.0, roots=(os.getcwd(),), sampling=True)
    try:
        async with servers.attended("suite", visit, options):
            offer = await servers.open(spec)
            calls = context.get("toolCalls") or [
                {"name": tool.name, "arguments": arguments(tool.input_schema)} for tool in offer.tools
            ]
            for call in calls:
                await use(servers, call, scenario in RETRIED)
        if scenario == "sse-retry":
            await asyncio.sleep(3.0)
    except ServerFailed as error:
        print(f"{error.kind}: {error}", file=sys.stderr)
        return 1
    finally:
        await servers.shut()
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1])))
