"""A small catalog and raw calls, for tests of what happens to a call before and around its run."""

from typing import Annotated, Literal

from codewhale.agent.collect import RawCall
from codewhale.catalog.registry import Catalog
from codewhale.protocol.tools import CallContext, Effect, ToolResult, ToolSpec
from codewhale.tools.base import Args, Doc, specs, tool


class Item(Args):
    """An entry of a list argument."""

    text: str
    status: Literal["open", "done"] = "open"


class ReadArgs(Args):
    """Arguments of a reading tool."""

    path: Annotated[str, Doc("A path.", min_length=1)]
    limit: Annotated[int, Doc("Lines.", ge=1, le=500)] | None = None


class WriteArgs(Args):
    """Arguments of a writing tool."""

    path: str
    content: str


class PlanArgs(Args):
    """Arguments with a list of objects."""

    items: Annotated[list[Item], Doc("Entries.", min_length=1, max_length=3)]


class NoArgs(Args):
    """No arguments at all."""


class SampleTools:
    """Tools under real names whose schemas hold one of everything."""

    @tool("read_file", effects={Effect.READS}, parallel=True)
    async def read_file(self, args: ReadArgs, call: CallContext) -> ToolResult:
        """Read."""
        return ToolResult(args.path)

    @tool("write_file", effects={Effect.WRITES})
    async def write_file(self, args: WriteArgs, call: CallContext) -> ToolResult:
        """Write."""
        return ToolResult(args.content)

    @tool("checklist_write", effects=())
    async def checklist_write(self, args: PlanArgs, call: CallContext) -> ToolResult:
        """Plan."""
        return ToolResult("ok")

    @tool("git_status", effects={Effect.READS}, polls=True)
    async def git_status(self, args: NoArgs, call: CallContext) -> ToolResult:
        """Status."""
        return ToolResult("clean")


ROWS: list[ToolSpec] = specs(SampleTools, "sample")


def sample_catalog() -> Catalog:
    """The catalog of `SampleTools`."""
    return Catalog(ROWS)


def raw(name: str, arguments: str, call_id: str = "call_1") -> RawCall:
    """A call as streamed."""
    return RawCall(call_id, name, arguments)
