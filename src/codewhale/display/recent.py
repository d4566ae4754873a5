"""The latest sessions by what their listings say, for completion: nothing of the engine is loaded for it."""

import json
import os
from itertools import islice
from pathlib import Path
from typing import Any

MOST, MOST_READ, READ_LIMIT = 100, 1000, 1 << 20


def recent(home: Path) -> list[tuple[str, dict[str, Any]]]:
    """Sessions with what their listing holds ({} where it cannot be read), those of the current folder first; none that
    works for another one."""
    try:
        names = sorted((name for name in os.listdir(home / "sessions") if name[0] != "."), reverse=True)
    except OSError:
        return []
    here = os.path.realpath(".")
    folds = ((name, _fold(home / "sessions" / name / "listing.json")) for name in names[:MOST_READ])
    rows = islice((row for row in folds if not row[1].get("owner")), MOST)
    return sorted(rows, key=lambda row: row[1].get("workspace", here) != here)


def _fold(path: Path) -> dict[str, Any]:
    try:
        fold = json.loads(path.read_bytes()[:READ_LIMIT])["fold"]
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return {}
    return fold if isinstance(fold, dict) else {}
