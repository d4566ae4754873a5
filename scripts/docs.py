"""The generated parts of the papers: the room table, the modes. `--write` renews them, `--check`
tells whether they are what would be written.

A part stands between `<!-- generated: NAME -->` and `<!-- end: NAME -->`; docs/tools.md is generated whole.
"""

import argparse
import difflib
import json
import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SPECS = ROOT / "src" / "codewhale" / "catalog" / "specs.json"
FLOOR = ROOT / "tests" / "house" / "floor.toml"
MARK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end: \2 -->)", re.S)


def room_table() -> str:
    """The rooms of the floor plan with what each may import and holds."""
    floor = tomllib.loads(FLOOR.read_text())
    rows = ["| room | ceiling (lines) | may import | holds |", "|---|---:|---|---|"]
    for room in floor["room"]:
        names = [name for name in room["imports"] if name not in floor["everywhere"]]
        open_rooms = "anything" if room["name"] == "testing" else ", ".join(f"`{name}`" for name in names) or "–"
        rows.append(f"| `{room['name']}` | {room['ceiling']:,} | {open_rooms} | {room['holds']} |")
    every = " and ".join(f"`{name}`" for name in floor["everywhere"])
    rows.append(f"\nEvery room may import {every}; all but those two may import `{floor['machine']}`.")
    return "\n".join(rows) + "\n"


def tool_rows() -> list[dict[str, Any]]:
    """Rows of the generated catalog, by name; none before the catalog has been generated."""
    if not SPECS.exists():
        return []
    loaded = json.loads(SPECS.read_text())
    rows = loaded if isinstance(loaded, list) else loaded.get("tools", list(loaded.values()))
    return sorted(rows, key=lambda row: str(row["name"]))


def mode_table() -> str:
    """The modes and what each allows, from the words of the protocol."""
    sys.path.insert(0, str(ROOT / "src"))
    from codewhale.protocol.modes import Mode

    said = {
        Mode.PLAN: ("read, search, think", "nothing is written or run; a refusal names the mode that allows the call"),
        Mode.AGENT: ("reads, workspace writes, commands that read", "a person is asked; headless, `--auto` runs it"),
        Mode.YOLO: ("everything", "protected paths (`.git`, `.codewhale`) and what wrecks a machine stay refused"),
    }
    rows = ["| mode | runs by itself | the rest |", "|---|---|---|"]
    rows += [f"| `{mode}` | {said[mode][0]} | {said[mode][1]} |" for mode in Mode]
    return "\n".join(rows) + "\n"


def tools_page() -> str:
    """docs/tools.md: each tool with its description and arguments."""
    parts = [
        "# Tools\n",
        "Generated from the catalog by `make docs`; what a model reads is exactly this text and these schemas.\n",
    ]
    for row in tool_rows():
        parts.append(f"## `{row['name']}`\n\n{row['description']}\n")
        traits = [", ".join(row.get("effects", ())) or "no effects"]
        words = {"parallel": "runs beside others", "polls": "polls", "previews": "shows first what it will do"}
        traits += [word for key, word in words.items() if row.get(key)]
        traits += [f"needs the provider fact `{row['gate']}`; in no head"] if row.get("gate") else []
        parts.append(f"May: {'; '.join(traits)}.\n")
        parts.append(argument_table(row["parameters"]))
    return "\n".join(parts)


def argument_table(schema: dict[str, Any]) -> str:
    """The arguments of a schema as a table."""
    fields = schema.get("properties", {})
    if not fields:
        return "No arguments.\n"
    rows = ["| argument | type | needed | meaning |", "|---|---|---|---|"]
    for name, field in fields.items():
        kind = str(field.get("type", "any"))
        if kind == "array":
            kind = f"{field.get('items', {}).get('type', 'any')}[]"
        bounds = [
            f"{key} {json.dumps(field[key])}" for key in ("default", "minimum", "maximum", "enum") if key in field
        ]
        meaning = " ".join(str(field.get("description", "")).split()).replace("|", "\\|")
        extra = f" ({'; '.join(bounds)})" if bounds else ""
        rows.append(f"| `{name}` | {kind} | {'yes' if name in schema.get('required', ()) else ''} | {meaning}{extra} |")
    return "\n".join(rows) + "\n"


def profile_table() -> str:
    """The profiles: how many tools, what they take as each wire says them, and what each may take."""
    sys.path.insert(0, str(ROOT / "src"))
    from codewhale.catalog.lifecycle import HEAD_BYTES, NOT_YET, PROFILES
    from codewhale.catalog.registry import Catalog
    from codewhale.models.build import build_dialect
    from codewhale.models.dialects.base import ProviderSettings

    catalog, wires = Catalog.load(), ("openai-chat", "anthropic", "openai-responses")
    rows = [f"| profile | tools | {' | '.join(wires)} | at most | names |", "|---|---:|---:|---:|---:|---:|---|"]
    for profile in PROFILES:
        head = catalog.head_of(profile)
        sizes = [len(build_dialect(w, ProviderSettings(dialect=w)).tools_json(head).encode()) for w in wires]
        shown = " ".join(f"`{row.name}`" for row in head)
        figures = " | ".join(f"{size:,}" for size in sizes)
        rows.append(f"| `{profile}` | {len(head)} | {figures} | {HEAD_BYTES[profile]:,} | {shown} |")
    promised = ", ".join(f"`{name}`" for name in sorted(NOT_YET))
    return "\n".join(rows) + f"\n\nFigures are bytes. Promised and not built yet, so in no array: {promised}.\n"


def deferred_table() -> str:
    """The tools that are found by search, with what their gates need."""
    sys.path.insert(0, str(ROOT / "src"))
    from codewhale.catalog.lifecycle import DEFERRED, GATES, MODEL_GATES

    rows = ["| deferred tool | may | only with |", "|---|---|---|"]
    for row in tool_rows():
        if row["name"] in DEFERRED:
            needs = [GATES[row["gate"]].needs] if row.get("gate") else []
            gate = ", ".join([*needs, *(f"`{one}`" for one in MODEL_GATES.get(row["name"], ()))])
            rows.append(f"| `{row['name']}` | {', '.join(row['effects']) or '–'} | {gate or '–'} |")
    return "\n".join(rows) + "\n"


def alias_table() -> str:
    """The manifest of retired names."""
    sys.path.insert(0, str(ROOT / "src"))
    from codewhale.catalog.lifecycle import ALIASES

    rows = ["| name | use instead | state | since | removal | replays |", "|---|---|---|---|---|---|"]
    for name, row in ALIASES.items():
        replays = "yes" if row.replays else "no"
        rows.append(f"| `{name}` | `{row.canonical}` | {row.state} | {row.since} | {row.removal} | {replays} |")
    return "\n".join(rows) + "\n"


def repair_table() -> str:
    """What each code of a repair means."""
    from codewhale.repair.codes import RepairCode

    rows = (f"| `{code.value}` | {code.words} |" for code in RepairCode)
    return "\n".join(("| code | what it says |", "|---|---|", *rows)) + "\n"


PARTS: dict[str, Callable[[], str]] = {
    "rooms": room_table,
    "modes": mode_table,
    "profiles": profile_table,
    "deferred": deferred_table,
    "aliases": alias_table,
    "repairs": repair_table,
}


def papers() -> dict[Path, str]:
    """Every paper with a generated part, as it should read."""
    wanted = {ROOT / "docs" / "tools.md": tools_page()}
    for path in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]:
        text = path.read_text()
        if path not in wanted and MARK.search(text):
            wanted[path] = MARK.sub(lambda found: found[1] + PARTS[found[2]]() + found[3], text)
    return wanted


def main() -> int:
    """0 when the papers are as they should be (or were made so), 1 with a diff when not."""
    parser = argparse.ArgumentParser(description=__doc__)
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--write", action="store_true")
    choice.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    stale = 0
    for path, wanted in papers().items():
        found = path.read_text() if path.exists() else ""
        if found == wanted:
            continue
        name = path.relative_to(ROOT).as_posix()
        if asked.write:
            path.write_text(wanted)
            print(f"wrote {name}")
            continue
        stale += 1
        diff = difflib.unified_diff(found.splitlines(), wanted.splitlines(), name, f"{name} as generated", lineterm="")
        print("\n".join(list(diff)[:60]))
    if stale:
        print(f"{stale} papers are out of date: run `make docs`")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
