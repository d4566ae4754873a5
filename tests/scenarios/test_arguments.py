"""Arguments in another dress through the front door: what can mean one thing alone runs, all else is refused with the
call that was meant, and a text whose line breaks are two characters is never written as if nothing were wrong."""

import json
from pathlib import Path
from typing import Any

import pytest

from codewhale.catalog.registry import Catalog
from codewhale.protocol.events import CallFinished
from codewhale.testing import harness
from support.goodcalls import GOOD
from support.known import know_every_tool
from support.scenes import results

PATCH = "*** Begin Patch\n*** Update File: app.py\n@@\n-value = 1\n+value = 2\n*** End Patch"


@pytest.fixture
def project(workspace: Path) -> Path:
    """A workspace with one file of two lines."""
    (workspace / "app.py").write_text("value = 1\nother = 1\n")
    return workspace


async def played(home: Path, space: Path, name: str, arguments: Any, finish: str = "") -> CallFinished:
    """The result of one call; `arguments` are an object or the text that a model sent for one."""
    turn: dict[str, Any] = {"calls": [{"name": name, "arguments": arguments}]}
    async with harness(home, space, [{**turn, "finish": finish} if finish else turn, {"text": "Done."}]) as stage:
        (result,) = results(await stage.turn("Go"))
    return result


async def followed(home: Path, space: Path, result: CallFinished) -> CallFinished:
    """The result of the next call that a refusal names, made literally."""
    fix = result.metadata["error"]["fix"]
    return await played(home, space, fix["name"], fix["arguments"])


@pytest.mark.parametrize(
    ("name", "arguments", "ran"),
    [
        ("exec_shell", {"command": "echo here", "timeout": 30}, "here"),
        ("exec_shell", {"command": "echo here", "timeout": 30000}, "here"),
        ("exec_shell", {"command": "echo here", "timeout_seconds": "20"}, "here"),
        ("exec_shell", {"commands": ["echo here"]}, "here"),
        ("exec_shell", {"command": ["echo here"]}, "here"),
        ("exec_shell", {"command": "echo here", "cwd": "null", "stdin": None, "timeout_ms": "null"}, "here"),
        ("read_file", {"path": "app.py", "start_line": "null", "max_lines": "None", "pages": "undefined"}, "value = 1"),
        ("grep_files", {"pattern": "value", "path": "null"}, "app.py"),
    ],
)
async def test_what_means_one_thing_runs(name: str, arguments: Any, ran: str, home: Path, project: Path) -> None:
    result = await played(home, project, name, arguments)
    assert result.ok and ran in result.content and result.metadata["repairs"], result.content


@pytest.mark.parametrize("name", ["shell", "Bash", "exec_shell", "shell_run"])
@pytest.mark.parametrize(
    "command",
    [f"apply_patch <<'EOF'\n{PATCH}\nEOF", f"apply_patch <<PATCH\n{PATCH}\nPATCH\n", f"apply_patch '{PATCH}'"],
)
async def test_a_patch_on_a_command_line_is_applied(name: str, command: str, home: Path, project: Path) -> None:
    result = await played(home, project, name, {"command": command})
    assert result.ok and result.name == "apply_patch"
    assert (project / "app.py").read_text() == "value = 2\nother = 1\n"


async def test_a_command_that_does_more_than_patch_is_a_command(home: Path, project: Path) -> None:
    for command in (
        f"apply_patch <<'EOF'\n{PATCH}\nEOF\necho more",
        "apply_patch --help",
        f'apply_patch "{PATCH} $(x)"',
    ):
        result = await played(home, project, "exec_shell", {"command": command})
        assert result.name == "exec_shell" and (project / "app.py").read_text() == "value = 1\nother = 1\n"


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ({"content": ["a", "b"]}, "a\nb\n"),
        ({"content": {"a": [1]}}, '{\n  "a": [\n    1\n  ]\n}\n'),
        ({"content": "a\n", "colour": "red"}, "a\n"),
        ({"content": "import os\\nprint(1)\\n"}, "import os\nprint(1)\n"),
    ],
)
async def test_a_write_that_takes_a_choice_is_proposed(arguments: Any, meant: str, home: Path, project: Path) -> None:
    result = await played(home, project, "write_file", {"path": "out.txt", **arguments})
    assert not result.ok and not (project / "out.txt").exists()
    assert (await followed(home, project, result)).ok
    assert (project / "out.txt").read_text() == meant


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"content": ["a\n", "b\n"]}, "a\nb\n"),
        ({"content": "a\n", "encoding": "utf-8", "overwrite": True, "create_dirs": True}, "a\n"),
        ({"content": 'print("a\\nb")'}, 'print("a\\nb")'),
        ({"content": "The two characters \\n end it.\n"}, "The two characters \\n end it.\n"),
    ],
)
async def test_a_write_that_can_mean_one_thing_is_made(arguments: Any, text: str, home: Path, project: Path) -> None:
    assert (await played(home, project, "write_file", {"path": "out.txt", **arguments})).ok
    assert (project / "out.txt").read_text() == text


@pytest.mark.parametrize(
    "edit",
    [
        {"search": "value = 1", "replace": "value = 2\\nmore = 3"},
        {"search": "value = 1\\nother = 1", "replace": "value = 2\\nmore = 3"},
        {"search": "value = 1\\nother = 1", "replace": "value = 2\nmore = 3"},
    ],
)
async def test_line_breaks_that_came_as_two_characters_are_no_edit(edit: Any, home: Path, project: Path) -> None:
    result = await played(home, project, "edit_file", {"path": "app.py", **edit})
    assert not result.ok and (project / "app.py").read_text() == "value = 1\nother = 1\n"
    assert (await followed(home, project, result)).ok
    assert "value = 2\nmore = 3\n" in (project / "app.py").read_text()
    assert "\\n" not in (project / "app.py").read_text()


async def test_two_characters_go_into_a_file_that_holds_such(home: Path, project: Path) -> None:
    (project / "app.py").write_text("print('a\\nb')\nvalue = 1\n")
    for put in ("'x\\ny'", "print(1)\\nprint(2)"):
        result = await played(home, project, "edit_file", {"path": "app.py", "search": "value = 1", "replace": put})
        assert result.ok and put in (project / "app.py").read_text()
        (project / "app.py").write_text("print('a\\nb')\nvalue = 1\n")


async def test_two_edits_in_one_call_are_told_apart(home: Path, project: Path) -> None:
    edits = [{"search": "value = 1", "replace": "value = 2"}, {"old_string": "other = 1", "new_string": "other = 2"}]
    for given in (edits, edits[::-1]):
        (project / "app.py").write_text("value = 1\nother = 1\n")
        result = await played(home, project, "edit_file", {"path": "app.py", "edits": given})
        assert not result.ok and "one edit" in result.content and "There is no tool" not in result.content
        assert (await followed(home, project, result)).ok
        assert (project / "app.py").read_text().count("2") == 1


@pytest.mark.parametrize("tool", Catalog.load().names())
async def test_two_different_objects_are_no_call_of_any_tool(tool: str, home: Path, project: Path) -> None:
    know_every_tool(home)
    good = GOOD[tool]
    other = {**good, "path": "elsewhere", "query": "other", "content": "other"}
    for raw in ([good, other], [other, good], [{**good, "flag": True}, {**good, "flag": 1}]):
        result = await played(home, project, tool, json.dumps(raw))
        assert (result.ok, result.error) == (False, "invalid_input") and "an array, not an object" in result.content


@pytest.mark.parametrize(
    ("raw", "finish", "ran"),
    [
        ('{"command": "echo here"', "tool_calls", True),
        ('{"command": "echo here"', "stop", True),
        ('{"command": "echo here", "timeout_ms": 60000', "tool_calls", True),
        ('{"command": "echo here"', "length", False),
        ('{"command": "echo here"', "content_filter", False),
        ('{"command": "echo here', "tool_calls", False),
        ('{"command": "echo here",', "stop", False),
        ('{"command": "echo here", "cwd"', "stop", False),
        ('{"command": "echo here", "cwd": ', "stop", False),
    ],
)
async def test_a_missing_closer_is_judged_by_how_the_answer_ended(
    raw: str, finish: str, ran: bool, home: Path, project: Path
) -> None:
    result = await played(home, project, "exec_shell", raw, finish)
    assert (result.ok, "here\n" in result.content) == (ran, ran), result.content


async def test_a_count_of_replacements_is_put_as_all_of_them(home: Path, project: Path) -> None:
    edit = {"path": "app.py", "search": " = 1", "replace": " = 3"}
    result = await played(home, project, "edit_file", {**edit, "expected_replacements": 2})
    assert not result.ok and result.metadata["error"]["fix"]["arguments"] == {**edit, "replace_all": True}
    assert (await followed(home, project, result)).ok
    assert (project / "app.py").read_text() == "value = 3\nother = 3\n"
    once = {"path": "app.py", "search": "value = 3", "replace": "value = 4", "expected_replacements": 1}
    assert (await played(home, project, "edit_file", once)).ok


@pytest.mark.parametrize("search", ["VALUE = 1", "    value  =  1  # the first", "value is 1, other is 1"])
async def test_a_search_beside_a_near_twin_is_shown_it(search: str, home: Path, project: Path) -> None:
    result = await played(home, project, "edit_file", {"path": "app.py", "search": search, "replace": "x"})
    assert not result.ok and "The nearest lines are" in result.content and "value = 1" in result.content


async def test_the_next_call_of_a_long_write_is_not_said_to_the_letter(home: Path, project: Path) -> None:
    text = "line\n" * 5000
    result = await played(home, project, "write_file", {"path": "`out.txt`", "content": text})
    assert len(result.content) < 2000 and '"[25,000 characters, as you sent them]"' in result.content
    assert (await followed(home, project, result)).ok and (project / "out.txt").read_text() == text


@pytest.mark.parametrize("path", ["../x", ".git/config", "/etc/passwd"])
async def test_nobody_is_sent_to_a_person_who_is_not_there(path: str, home: Path, project: Path) -> None:
    for name, more in (("read_file", {}), ("write_file", {"content": "x"}), ("grep_files", {"pattern": "x"})):
        result = await played(home, project, name, {"path": path, **more})
        assert "person" not in result.content, result.content


async def test_a_text_of_the_wrong_form_is_told_the_form(home: Path, project: Path) -> None:
    result = await played(home, project, "read_file", {"path": "app.py", "pages": "x"})
    assert "`pages` must be a string of the form ^" in result.content
