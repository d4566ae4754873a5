"""Finding the right one among three hundred tools of twenty servers, in the style of those that are in use, by what a
model needs to do in other words."""

from pathlib import Path

import pytest
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


# What may be missed: the needs that the ranking was made with, and a hundred that were worded by one who knew the tools
# alone. Of these the odd lines may be looked at when the ranking is worked on; the even ones are measured only.
MISSED = {"mcp_needs.txt": 7, "odd": 5, "even": 4}


def missed(lines: list[str]) -> list[tuple[str, str]]:
    """The needs whose tool is not among the first three, with it."""
    served = rows()
    names = {spec.name for spec in served}
    assert len(names) == 300 and len({spec.name.split("_")[1] for spec in served}) == 20
    index, found = ToolIndex([*Catalog.load().rows.values(), *served]), []
    for line in lines:
        need, _, wanted = line.partition("|")
        name = wire_name(*wanted.split())
        assert name in names, line
        if name not in [hit for hit, _ in index.words(need, AMONG)]:
            found.append((need, name))
    return found


def test_most_needs_find_their_tool_among_three_hundred() -> None:
    needs = (FOLDER / "mcp_needs.txt").read_text().splitlines()
    lost = missed(needs)
    assert len(needs) == 100 and len(lost) <= MISSED["mcp_needs.txt"], lost


@pytest.mark.parametrize(("half", "first"), [("odd", 0), ("even", 1)])
def test_so_do_needs_of_another_hand(half: str, first: int) -> None:
    needs = (FOLDER / "mcp_needs_blind.txt").read_text().splitlines()[first::2]
    lost = missed(needs)
    assert len(needs) == 50 and len(lost) <= MISSED[half], len(lost) if half == "even" else lost
