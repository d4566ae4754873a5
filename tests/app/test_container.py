"""Lazy construction: each part once, when it is needed, and closed in reverse."""

import contextlib
from pathlib import Path

import pytest

from codewhale.app.compose import AppOptions, open_app
from codewhale.app.container import Container
from codewhale.app.families import COMMANDS, tool_family
from codewhale.app.routes import open_routes
from codewhale.app.settings import Place
from codewhale.catalog.registry import Catalog
from codewhale.lib.clock import SystemClock
from codewhale.protocol.errors import SessionError, ToolError
from codewhale.protocol.ops import RunCommand
from codewhale.testing import harness
from codewhale.tools.base import declared
from support.calls import context


@pytest.fixture
def parts(home: Path, workspace: Path) -> Container:
    """The parts of an application that has opened no session."""
    place = Place(str(home), str(workspace), {}, {})
    config = place.config()
    return Container(place, config, SystemClock(), open_routes(str(home), config, {}), tool_family)


def test_every_row_of_the_catalog_has_its_family_and_every_family_its_rows(parts: Container) -> None:
    by_family: dict[str, set[str]] = {}
    for row in filter(None, map(parts.catalog.spec, parts.catalog.names())):
        by_family.setdefault(row.family, set()).add(row.name)
    assert by_family == {key: set(declared(type(tool_family(parts, key)))) for key in by_family}


def test_a_family_that_there_is_not_is_an_error(parts: Container) -> None:
    with pytest.raises(LookupError, match="'dice'"):
        tool_family(parts, "dice")


async def test_every_command_is_of_the_family_that_has_it(home: Path, workspace: Path) -> None:
    async with harness(home, workspace, []) as stage:
        said = await stage.client.submit(RunCommand(await stage.open(), "/help"))
    assert [line.split()[0] for line in said.text.splitlines()] == sorted(COMMANDS)


def test_a_part_is_built_at_its_first_use_and_once(parts: Container) -> None:
    assert not parts.services.built("workspaces")
    assert parts.services.workspaces is parts.services.workspaces
    assert parts.services.built("workspaces")
    with pytest.raises(AttributeError):
        parts.built("nothing")


def test_a_call_is_bound_to_its_tool_with_its_subjects(parts: Container) -> None:
    spec = Catalog.load().spec("read_file")
    assert spec is not None
    (subject,) = parts.toolbox.bind(spec, {"path": "a"}).subjects
    assert subject.path == "a" and not subject.write  # type: ignore[union-attr]
    with pytest.raises(ToolError) as caught:
        parts.toolbox.bind(spec, {"path": 5})
    assert caught.value.kind == "invalid_input"


async def test_paths_of_calls_that_came_through_are_told_once_to_who_asks(parts: Container, workspace: Path) -> None:
    (workspace / "a").write_text("text\n")
    for name, path in (("read_file", "a"), ("read_file", "absent"), ("list_dir", "."), ("write_file", "b")):
        spec = Catalog.load().spec(name)
        assert spec is not None
        given = {"path": path, "content": "x"} if name == "write_file" else {"path": path}
        with contextlib.suppress(ToolError):
            await parts.toolbox.bind(spec, given).run(context(workspace))
    touched = parts.toolbox.touched
    assert touched("/elsewhere") == [] and {"a", "b"} <= set(touched(str(workspace))) <= {"a", ".", "b"}
    assert touched(str(workspace)) == [] and not parts.services.built("code_search")


async def test_what_was_built_is_closed_last_first(home: Path, workspace: Path) -> None:
    closed = []
    async with open_app(AppOptions(str(home), str(workspace)), environ={}) as app:
        services, closers = app.parts.services, app.parts.closers
        closers.callback(closed.append, "first")
        assert services.jobs and services.undo
        closers.callback(closed.append, "last")
    assert closed == ["last", "first"]
    with pytest.raises(SessionError, match="not open"):
        app.engine.session("s")
