"""Lazy construction: each part once, from its row, closed in reverse."""

import contextlib
from pathlib import Path

import pytest

from codewhale.app.parts import Parts
from codewhale.app.table import COMMAND_FAMILIES, COMMANDS, PARTS, TOOLS, target
from codewhale.catalog.registry import Catalog
from codewhale.lib.clock import SystemClock
from codewhale.protocol.errors import ToolError
from codewhale.session.artifacts import ArtifactStore
from codewhale.session.lists import Lists
from codewhale.tools.base import declared
from support.calls import context

GIVEN = {
    "artifacts", "lists", "asker", "sessions", "listener", "control", "command_specs", "find_session", "redactor",
    "audit", "catalog", "clock", "decide", "home", "hooking", "hooks_written", "lookups", "map_of", "past_jobs",
    "person", "part", "command_registry", "open_session", "place", "routes", "index_told", "diff", "ask",
    "setting_rows", "change_setting", "queued", "edit_queue", "redact", "repair_extent", "search_settings", "shell_env",
    "touched", "turn_of",
}  # fmt: skip


@pytest.fixture
def parts(home: Path) -> Parts:
    """Parts over real stores."""
    return Parts({"artifacts": ArtifactStore(str(home / "artifacts")), "lists": Lists(), "redact": str})


def test_every_need_of_every_row_is_given_or_another_row() -> None:
    for row in [*PARTS.values(), *TOOLS.values(), *COMMAND_FAMILIES.values()]:
        assert set(row.needs) <= GIVEN | set(PARTS), row
    assert set(COMMANDS.values()) == set(COMMAND_FAMILIES)


def test_every_row_of_the_catalog_has_its_family_and_every_family_its_rows() -> None:
    catalog = Catalog.load()
    by_family = {key: set(declared(target(row))) for key, row in TOOLS.items()}
    found: dict[str, set[str]] = {key: set() for key in TOOLS}
    for row in filter(None, map(catalog.spec, catalog.names())):
        found[row.family].add(row.name)
    assert found == by_family


def test_a_part_is_built_at_its_first_use_and_once(parts: Parts) -> None:
    assert parts.built("workspaces") is None
    assert parts.part("workspaces") is parts.part("workspaces")
    assert parts.built("workspaces") is parts.part("workspaces")


def test_a_call_is_bound_to_its_tool_with_its_subjects(parts: Parts) -> None:
    spec = Catalog.load().spec("read_file")
    assert spec is not None
    (subject,) = parts.bind(spec, {"path": "a"}).subjects
    assert subject.path == "a" and not subject.write  # type: ignore[union-attr]
    with pytest.raises(ToolError) as caught:
        parts.bind(spec, {"path": 5})
    assert caught.value.kind == "invalid_input"


async def test_paths_of_calls_that_came_through_are_told_once_to_who_asks(parts: Parts, workspace: Path) -> None:
    (workspace / "a").write_text("text\n")
    for name, path in (("read_file", "a"), ("read_file", "absent"), ("list_dir", "."), ("write_file", "b")):
        spec = Catalog.load().spec(name)
        assert spec is not None
        given = {"path": path, "content": "x"} if name == "write_file" else {"path": path}
        with contextlib.suppress(ToolError):
            await parts.bind(spec, given).run(context(workspace))
    assert parts.touched("/elsewhere") == [] and {"a", "b"} <= set(parts.touched(str(workspace))) <= {"a", ".", "b"}
    assert parts.touched(str(workspace)) == [] and parts.built("code_search") is None


async def test_what_was_built_is_closed_last_first(home: Path) -> None:
    given = {"listener": lambda session, event: None, "clock": SystemClock(), "home": str(home)}
    parts = Parts({**given, "past_jobs": lambda session: ()})
    jobs = parts.part("jobs")
    assert hasattr(jobs, "aclose")
    await parts.aclose()
    await parts.aclose()
