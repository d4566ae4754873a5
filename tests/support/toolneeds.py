"""Needs in a stranger's words with the tool for each, over our tools and three hundred of other servers."""

import json
import re
from pathlib import Path

from codewhale.catalog.registry import Catalog
from codewhale.catalog.search import ToolIndex, stems
from codewhale.protocol.tools import ToolSpec

FOLDER = Path(__file__).resolve().parent.parent / "catalog"


def others() -> list[ToolSpec]:
    """Tools as servers of all kinds declare them."""
    rows = json.loads((FOLDER / "mcp_like.json").read_text())
    return [ToolSpec(row["name"], "", row["description"], row["parameters"], ()) for row in rows]


def needs() -> list[tuple[str, str]]:
    """(need, name of its tool)."""
    return [(need, name) for need, name in json.loads((FOLDER / "needs.json").read_text())]


def whole_index() -> ToolIndex:
    """Ours and theirs together."""
    return ToolIndex([*Catalog.load().rows.values(), *others()])


def shared(need: str, name: str) -> set[str]:
    """Words of a need that stand in the name of its tool, endings left out too."""
    words = set(re.findall(r"[a-z0-9]+", need.lower()))
    return words & set(re.findall(r"[a-z0-9]+", name.lower())) | set(stems(need)) & set(stems(name))


def ranks(index: ToolIndex) -> list[tuple[str, str, int]]:
    """(need, tool, its place among the first eight, 0 when it is not there)."""
    found = []
    for need, name in needs():
        hits = [hit for hit, _ in index.words(need, 8)]
        found.append((need, name, hits.index(name) + 1 if name in hits else 0))
    return found
