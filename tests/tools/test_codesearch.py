"""codebase_search through the front door: found, filtered, bounded, refused, and what the session's calls touch."""

import json
from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.events import CallFinished
from codewhale.testing import harness
from support.known import know_every_tool
from support.repos import write
from support.scenes import ending, results
from support.searchtree import FILES

SEARCH = "codebase_search"


@pytest.fixture
def tree(workspace: Path) -> Path:
    write(workspace, FILES)
    return workspace


async def played(home: Path, workspace: Path, *calls: dict[str, Any]) -> list[CallFinished]:
    """The results of calls that are made one after the other."""
    if not (home / "config.toml").exists():
        know_every_tool(home)
    turns = [{"calls": [call]} for call in calls]
    async with harness(home, workspace, [*turns, {"text": "Done."}]) as agent:
        events = await agent.turn("Go.")
    assert ending(events).status == "done"
    return results(events)


def search(**arguments: Any) -> dict[str, Any]:
    return {"name": SEARCH, "arguments": arguments}


async def test_what_is_meant_is_found_with_everything_that_is_promised(home: Path, tree: Path) -> None:
    (found,) = await played(home, tree, search(query="how are expired tokens refreshed", max_results=3))
    told = json.loads(found.content)
    assert found.ok and len(told["results"]) == 3 and told["results"][0]["path"] == "src/auth/token_store.py"
    assert {"path", "line", "end_line", "snippet", "score", "reasons"} <= set(told["results"][0])
    assert {"backend", "fallback_grep_hits", "index_age_s", "coverage"} <= set(told)
    assert found.metadata["results"] == 3 and found.display


async def test_text_that_is_known_exactly_is_found(home: Path, tree: Path) -> None:
    (found,) = await played(home, tree, search(query="refresh token was revoked by the provider"))
    told = json.loads(found.content)
    assert told["results"][0]["path"] == "src/auth/token_store.py" and told["fallback_grep_hits"] >= 1
    assert any(reason.startswith("exact ") for reason in told["results"][0]["reasons"])


async def test_filters(home: Path, tree: Path) -> None:
    found = await played(
        home,
        tree,
        search(query="token", path_glob="docs/**"),
        search(query="session", lang="TypeScript"),
        search(query="token calls", kind="class", path_glob="src/**/*.py"),
    )
    paths = [{row["path"] for row in json.loads(one.content)["results"]} for one in found]
    assert paths == [
        {"docs/tokens.md"}, {"src/store/session.ts"}, {"src/auth/token_store.py", "src/net/rate_limiter.py"},
    ]  # fmt: skip


async def test_nothing_found_is_a_result(home: Path, tree: Path) -> None:
    (found,) = await played(home, tree, search(query="xyzzyplugh"))
    assert found.ok and json.loads(found.content)["results"] == [] and not found.error


async def test_a_filter_that_cannot_be_is_refused_with_a_call_that_works(home: Path, tree: Path) -> None:
    spoiled = ({"lang": "klingon"}, {"kind": "walrus"}, {"path_glob": "a" * 2000})
    wrong = [search(query="token", **more) for more in spoiled]
    for found, field in zip(await played(home, tree, *wrong), ("lang", "kind", "path_glob"), strict=True):
        error = found.metadata["error"]
        assert (found.ok, error["code"], error["field"]) == (False, "invalid_input", field)
        (again,) = await played(home, tree, error["fix"])
        assert again.ok


async def test_changes_of_the_session_are_found_and_its_files_count_more(home: Path, tree: Path) -> None:
    text = {"path": "src/walrus.py", "content": "def walrus_song():\n    return 'oo'\n"}
    found = await played(
        home,
        tree,
        search(query="walrus song"),
        {"name": "write_file", "arguments": text},
        {"name": "read_file", "arguments": {"path": "src/net/retry.py"}},
        search(query="walrus song, wait after each failure"),
    )
    before, after = (json.loads(found[at].content)["results"] for at in (0, 3))
    assert "src/walrus.py" not in [row["path"] for row in before]
    reasons = {row["path"]: " ".join(row["reasons"]) for row in after}
    assert "session +" in reasons["src/walrus.py"] and "session +" in reasons["src/net/retry.py"]


async def test_a_state_that_cannot_be_written_leads_to_text_search(home: Path, tree: Path) -> None:
    (home / "index").write_text("in the way")
    (found,) = await played(home, tree, search(query="TokenStore refresh"))
    error = found.metadata["error"]
    assert (found.ok, error["code"]) == (False, "not_available") and error["fix"] is None
    look = json.loads(found.content.rpartition("grep_files ")[2])
    (again,) = await played(home, tree, {"name": "grep_files", "arguments": look})
    assert again.ok and "token_store.py" in again.content
