"""Finding the right one among three hundred tools of twenty servers, in the style of those that are in use, by what a
model needs to do in other words."""

from pathlib import Path

from msgspec.structs import replace

from codewhale.catalog.registry import Catalog
from codewhale.catalog.search import ToolIndex
from codewhale.mcp.rows import row, wire_name
from codewhale.mcp.terms import OfferedTool
from codewhale.protocol.tools import ToolSpec

FOLDER = Path(__file__).resolve().parent.parent / "catalog"
AMONG = 3


def rows() -> list[ToolSpec]:
    """The tools as the catalog would have them."""
    found, server = [], ""
    for line in (FOLDER / "mcp_servers.txt").read_text().splitlines():
        if line.startswith("# "):
            server = line[2:]
            continue
        name, about, arguments = line.split("|")
        schema = {"type": "object", "properties": {one: {"type": "string"} for one in arguments.split()}}
        spec = row(wire_name(server, name), server, OfferedTool(name, about, input_schema=schema))
        found.append(replace(spec, source=f"mcp:{server}"))
    return found


MISSED = 12  # of a hundred: a bound that later changes of the ranking, and later tools, must not go above


def test_most_needs_find_their_tool_among_three_hundred() -> None:
    served = rows()
    names = {spec.name for spec in served}
    assert len(names) == 300 and len({spec.name.split("_")[1] for spec in served}) == 20
    index = ToolIndex([*Catalog.load().rows.values(), *served])
    missed, needs = [], (FOLDER / "mcp_needs.txt").read_text().splitlines()
    for line in needs:
        need, _, wanted = line.partition("|")
        name = wire_name(*wanted.split())
        assert name in names, line
        if name not in [hit for hit, _ in index.words(need, AMONG)]:
            missed.append((need, name))
    assert len(needs) == 100 and len(missed) <= MISSED, missed
