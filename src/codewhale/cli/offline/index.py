"""The code index of a folder for a person or a script: what state it is in, made true, made anew."""

import asyncio
import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import json

from codewhale.codesearch.build import BusyError, CodeIndex, Progress, is_stale, is_unlocked, refresh
from codewhale.codesearch.scan import too_few
from codewhale.codesearch.store import IndexDamagedError, Store, open_existing
from codewhale.protocol.errors import CodeWhaleError


@contextlib.contextmanager
def made(home: str, root: str) -> Iterator[None]:
    """While the index of `root` is made and asked: whatever stops it becomes a CodeWhaleError that says so."""
    try:
        yield
    except (BusyError, IndexDamagedError) as error:
        raise CodeWhaleError(f"the code index of {root} could not be built: {error}") from error
    except OSError as error:
        text = f"the code index of {root} could not be built: {error}; it is stored in {home} (CODEWHALE_HOME)"
        raise CodeWhaleError(text) from error


async def index_status(home: str, root: str) -> dict[str, Any]:
    """What stands of the index of `root`, changed by nothing: state (absent, building, ready, stale, damaged), counts,
    languages (files by language), branch, head, when it was built and how old that is in seconds, coverage (share of
    the tree's files that are in), and what was left out and why."""
    index = CodeIndex(root, home)
    row = _row(index)
    try:
        store = open_existing(index.path, index.root)
    except IndexDamagedError as error:
        return {**row, "state": "damaged", "problem": str(error)}
    if store is None:
        return row if is_unlocked(index) else {**row, "state": "building"}
    try:
        if not await asyncio.to_thread(store.is_sound):
            return {**row, "state": "damaged", "problem": "the database fails its integrity check"}
        told = {**row, **await asyncio.to_thread(_told, index, store)}
        if not is_unlocked(index):
            return {**told, "state": "building"}
        return {**told, "state": "stale" if await is_stale(index, store) else "ready"}
    except IndexDamagedError as error:
        return {**row, "state": "damaged", "problem": str(error)}
    finally:
        store.close()


async def index_build(
    home: str, root: str, *, rebuild: bool = False, progress: Progress | None = None
) -> dict[str, Any]:
    """Make the index of `root` true of the folder, `rebuild`: from nothing, and say what stands then.

    Raises CodeWhaleError when another process keeps building it, or it cannot be built.
    """
    index = CodeIndex(root, home, workers=max(1, min(4, os.cpu_count() or 1)))
    with made(home, root):
        await refresh(index, progress=progress, rebuild=rebuild)
    return await index_status(home, root)


def warnings(status: dict[str, Any]) -> list[str]:
    """What a person must know before trusting answers from an index of this state."""
    found = []
    if status["state"] == "absent":
        found.append("there is no index yet; answers come from names and plain text search")
    if status["state"] == "damaged":
        found.append(f"the index is damaged ({status.get('problem', '')}) and will be rebuilt")
    if status["state"] in ("ready", "stale") and (few := too_few(status["files"], json.encode(status["skipped"]))):
        found.append(few)
    if status.get("truncated"):
        found.append("the folder has more files than are indexed; search a folder inside it")
    return found


def _row(index: CodeIndex) -> dict[str, Any]:
    return {
        "root": index.root,
        "db": index.path,
        "state": "absent",
        "files": 0,
        "chunks": 0,
        "symbols": 0,
        "bytes": 0,
        "languages": {},
        "branch": None,
        "head": None,
        "built_at": None,
        "age_s": None,
        "coverage": 0.0,
        "skipped": {},
    }


def _told(index: CodeIndex, store: Store) -> dict[str, Any]:
    rows = store.rows("SELECT lang, state, count(*), sum(chunks), sum(symbols) FROM files GROUP BY lang, state")
    languages: dict[str, int] = {}
    skipped: dict[str, int] = {}
    for lang, state, count, _, _ in rows:
        if not state and lang:
            languages[lang] = languages.get(lang, 0) + count
        if state and state != "empty":
            skipped[state] = skipped.get(state, 0) + count
    with contextlib.suppress(msgspec.DecodeError, TypeError):
        skipped |= msgspec.json.decode(store.meta("left_out") or b"{}", type=dict[str, int])
    indexed = sum(count for _, state, count, _, _ in rows if state in ("", "empty"))
    complete, built = bool(store.meta("complete")), store.meta("built_at")
    listed = int(store.meta("listed") or 0)
    known = sum(count for _, _, count, _, _ in rows)
    return {
        "files": indexed,
        "chunks": sum(chunks for _, _, _, chunks, _ in rows),
        "symbols": sum(symbols for _, _, _, _, symbols in rows),
        "bytes": sum(os.path.getsize(index.path + end) for end in ("", "-wal") if os.path.exists(index.path + end)),
        "languages": dict(sorted(languages.items(), key=lambda item: (-item[1], item[0]))),
        "branch": store.meta("branch") or None,
        "head": store.meta("history") or None,
        "built_at": _date(built),
        "age_s": None if built is None else round(max(0.0, time.time() - built / 1e9), 1),
        "coverage": 1.0 if complete else round(min(1.0, known / listed), 4) if listed else 0.0,
        "skipped": dict(sorted(skipped.items())),
        "truncated": bool(store.meta("truncated")),
    }


def _date(nanoseconds: int | None) -> str | None:
    """RFC 3339, UTC."""
    return None if nanoseconds is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(nanoseconds / 1e9))
