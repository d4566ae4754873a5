"""Paths as models dress them: what is read is found, what is written is refused with the name that was meant."""

from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.events import CallFinished
from codewhale.testing import harness
from support.patchland import read_tree
from support.scenes import results

# How a path comes, of a file "NAME" in a workspace that is called "project".
DRESSES = (
    '"NAME"', "'NAME'", "`NAME`", "NAME\n", " NAME", "@NAME", "<path>NAME</path>", "<NAME>", "[NAME](NAME)",
    "path: NAME", "file_path=NAME", "$PWD/NAME", "${PWD}/NAME", "NAME:1", "NAME:3:7", "NAME:2-9", "NAME#L4", "a/NAME",
    "b/NAME", "project/NAME", "/workspace/NAME", "/home/somebody/project/NAME", "`NAME`:2", '@"NAME"',
)  # fmt: skip
READ_ALONE = ("repo/NAME", "/workspace/project/NAME", "./a/NAME", "file://NAME")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A workspace with a file and a folder."""
    space = tmp_path / "project"
    (space / "src").mkdir(parents=True)
    (space / "app.py").write_text("value = 1\n")
    (space / "src" / "deep.py").write_text("deep = 1\n")
    return space


async def played(home: Path, space: Path, name: str, arguments: dict[str, Any]) -> CallFinished:
    """The result of one call."""
    script = [{"calls": [{"name": name, "arguments": arguments}]}, {"text": "Done."}]
    async with harness(home, space, script) as stage:
        (result,) = results(await stage.turn("Go"))
    return result


def writes(path: str) -> dict[str, dict[str, Any]]:
    """A call of each tool that may make a file, with this path."""
    return {
        "write_file": {"path": path, "content": "made\n"},
        "apply_patch": {"changes": [{"path": path, "content": "made\n"}]},
        "patch": {"patch": f"*** Begin Patch\n*** Add File: {path}\n+made\n*** End Patch\n"},
    }


@pytest.mark.parametrize("kind", ["write_file", "apply_patch", "patch"])
async def test_no_file_is_made_under_a_dressed_name(kind: str, home: Path, project: Path) -> None:
    before = read_tree(project)
    for dress in DRESSES:
        path = dress.replace("NAME", "out.txt")
        if kind == "patch" and ("\n" in path or path != path.strip()):
            continue
        tool = "apply_patch" if kind == "patch" else kind
        result = await played(home, project, tool, writes(path)[kind])
        assert not result.ok and "Did you mean 'out.txt'?" in result.content, (path, result.content)
        assert read_tree(project) == before, path


@pytest.mark.parametrize("dress", DRESSES)
async def test_the_next_call_of_a_refused_write_writes(dress: str, home: Path, project: Path) -> None:
    result = await played(home, project, "write_file", writes(dress.replace("NAME", "out.txt"))["write_file"])
    fix = result.metadata["error"]["fix"]
    assert fix == {"name": "write_file", "arguments": {"path": "out.txt", "content": "made\n"}}
    assert (await played(home, project, fix["name"], fix["arguments"])).ok
    assert (project / "out.txt").read_text() == "made\n"


@pytest.mark.parametrize("dress", DRESSES)
async def test_an_edit_of_a_dressed_name_is_refused_with_the_same_edit(dress: str, home: Path, project: Path) -> None:
    edit = {"path": dress.replace("NAME", "app.py"), "search": "value = 1", "replace": "value = 2"}
    result = await played(home, project, "edit_file", edit)
    assert not result.ok and "Did you mean" in result.content and (project / "app.py").read_text() == "value = 1\n"
    fix = result.metadata["error"]["fix"]
    assert fix == {"name": "edit_file", "arguments": {**edit, "path": "app.py"}}
    assert (await played(home, project, fix["name"], fix["arguments"])).ok


@pytest.mark.parametrize("dress", (*DRESSES, *READ_ALONE))
@pytest.mark.parametrize(("tool", "more"), [("read_file", {}), ("grep_files", {"pattern": "deep"})])
async def test_what_is_read_by_a_dressed_name_is_found_and_said(
    dress: str, tool: str, more: dict[str, Any], home: Path, project: Path
) -> None:
    if dress.startswith("file:"):
        dress = f"file://{project}/NAME"
    result = await played(home, project, tool, {"path": dress.replace("NAME", "src/deep.py"), **more})
    assert result.ok and "deep = 1" in result.content, result.content


async def test_backslashes_lead_to_what_is_read(home: Path, project: Path) -> None:
    for path in ("src\\deep.py", ".\\src\\deep.py"):
        result = await played(home, project, "read_file", {"path": path})
        assert result.ok and "deep = 1" in result.content
        assert 'The call was read as read_file {"path":' in result.content


async def test_a_name_that_is_there_is_taken_as_it_is(home: Path, project: Path) -> None:
    names = ("@app.py", "`app.py`", "app.py:1", "a/app.py", "src\\deep.py")
    (project / "a").mkdir()
    for name in names:
        (project / name).write_text("dressed\n")
        result = await played(home, project, "read_file", {"path": name})
        assert result.ok and result.content == "dressed\n", name
        assert (await played(home, project, "write_file", {"path": name, "content": "again\n"})).ok
        assert (project / name).read_text() == "again\n"


@pytest.mark.parametrize(
    "name",
    ["app/[id]/page.tsx", "(group)/x.tsx", "it's.txt", "a b.txt", "12:30", "@types/x.d.ts", "$lib/x.ts", "new/a/x.py"],
)
async def test_odd_names_that_people_use_are_made(name: str, home: Path, project: Path) -> None:
    assert (await played(home, project, "write_file", {"path": name, "content": "x\n"})).ok
    assert (project / name).read_text() == "x\n"


async def test_a_file_elsewhere_on_the_machine_is_never_taken_for_one_of_the_workspace(
    home: Path, project: Path, tmp_path: Path
) -> None:
    other = tmp_path / "elsewhere" / "project"
    other.mkdir(parents=True)
    (other / "app.py").write_text("SECRET\n")
    result = await played(home, project, "read_file", {"path": str(other / "app.py")})
    assert result.error == "path_escape" and "value" not in result.content and "SECRET" not in result.content
