"""Write the catalog's generated file from the tool families, or check that it is up to date.

usage: catalog.py [--check]
"""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

import codewhale.tools
from codewhale.catalog.lifecycle import NOT_YET, unlisted
from codewhale.catalog.registry import SPECS_FILE
from codewhale.protocol.tools import ToolSpec
from codewhale.tools.base import declared, specs


def families() -> Iterator[tuple[str, type]]:
    """Each class that declares tools, with the name of its file."""
    for path in sorted(Path(codewhale.tools.__path__[0]).glob("[a-z]*.py")):
        module = importlib.import_module(f"codewhale.tools.{path.stem}")
        for one in vars(module).values():
            if isinstance(one, type) and one.__module__ == module.__name__ and declared(one):
                yield path.stem, one


def generate() -> bytes:
    """The file's bytes: rows sorted by name, one key a line."""
    rows: list[ToolSpec] = []
    for key, family in families():
        rows += specs(family, key)
    names = [row.name for row in rows]
    if wrong := unlisted(names):
        raise SystemExit(f"not in catalog/lifecycle.py: {', '.join(wrong)}")
    if built := NOT_YET & set(names):
        raise SystemExit(f"built, but still promised in catalog/lifecycle.py: {', '.join(sorted(built))}")
    rows.sort(key=lambda row: row.name)
    return msgspec.json.format(msgspec.json.encode(rows), indent=1) + b"\n"


def main() -> int:
    """0 when written or up to date, 1 when --check finds a difference."""
    fresh = generate()
    if "--check" not in sys.argv:
        Path(SPECS_FILE).write_bytes(fresh)
        return 0
    if Path(SPECS_FILE).read_bytes() == fresh:
        return 0
    print(f"{SPECS_FILE} is out of date: run scripts/catalog.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
