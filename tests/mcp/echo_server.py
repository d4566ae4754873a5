"""A little server written with the SDK, as a program: the tests' own."""

import asyncio
import os
import sys
from typing import Annotated

from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

server = MCPServer("little", instructions="Say what you need.")


class Age(BaseModel):
    """What is asked."""

    age: int = 7


def how_old() -> Elicit[Age]:
    """The question."""
    return Elicit("How old?", Age)


@server.tool()
def add(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


@server.tool()
def note(path: str, text: str) -> str:
    """Append a line to a file."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(text + "\n")
    return "noted"


@server.tool()
def die(path: str) -> str:
    """Append a line, and end."""
    note(path, "died")
    print("I am gone", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool()
def fail() -> str:
    """Always fails."""
    raise ValueError("no such thing")


@server.tool()
def environment() -> dict[str, str]:
    """The environment of the server."""
    return dict(os.environ)


@server.tool()
def parts(count: int, size: int) -> list[str]:
    """So many texts of such a size."""
    return ["x" * size] * count


@server.tool()
async def wait(seconds: float, path: str) -> str:
    """Wait; say in a file when that was cancelled."""
    note(path, "began")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        note(path, "cancelled")
        raise
    return "waited"


@server.tool()
async def talk(ctx: Context, age: Annotated[ElicitationResult[Age], Resolve(how_old)]) -> str:
    """Ask for the age, report progress and log."""
    await ctx.report_progress(1, 2, "half")
    await ctx.info("a line")
    return f"{age.action} {getattr(age, 'data', None)}"


@server.resource("note://one")
def one() -> str:
    """A resource."""
    return "the first note"


@server.prompt()
def greet(name: str) -> str:
    """A greeting."""
    return f"Greet {name}."


if __name__ == "__main__":
    server.run("stdio")
