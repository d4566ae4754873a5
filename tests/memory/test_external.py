"""Attached sources as they are kept: names, scopes, several processes, changes, and copies."""

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from codewhale.app.sourcing import open_sources
from codewhale.memory.external import Sources, changed_since
from codewhale.memory.layers import MemoryRefused
from codewhale.memory.manifest import read_version
from codewhale.memory.places import GitAccess, Places
from codewhale.memory.sourcelayer import SourceLayer
from codewhale.process.repository import config_entries, find_repository
from codewhale.protocol.errors import ConfigError
from codewhale.testing import FakeClock
from codewhale.workspace.git import first_commits
from support.patience import HANG
from support.scenes import appears

SRC, TESTS = (str(Path(__file__).parents[2] / name) for name in ("src", "tests"))


def opened(home: Path) -> Sources:
    """The sources of a home."""
    return open_sources(str(home), places(home), FakeClock())


def places(home: Path) -> Places:
    """Which workspaces are the same, as the program tells it."""
    git = GitAccess(find_repository, config_entries, first_commits)
    return Places(str(home / "memory"), git)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with two files, in a folder of its own."""
    folder = tmp_path / "beside" / "data"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text("one\n")
    (folder / "deep" / "b.txt").write_text("two\n")
    return folder


def names(sources: Sources, workspace: Path) -> list[str]:
    """The names of what is attached there."""
    return [one.name for one in sources.of(str(workspace))]


async def test_what_one_process_attaches_another_sees_at_once(home: Path, workspace: Path, data: Path) -> None:
    here, there = opened(home), opened(home)
    assert here.of(str(workspace)) == there.of(str(workspace)) == () and not (home / "memory").exists()
    await here.attach(str(workspace), str(data))
    assert names(there, workspace) == ["data"] and there.of(str(data)) == ()
    there.detach(str(workspace), "data")
    assert names(here, workspace) == [] and here.readable(str(workspace)) == ()


async def test_a_clone_of_a_workspace_has_its_sources(home: Path, workspace: Path, data: Path, tmp_path: Path) -> None:
    git = ("git", "-c", "user.name=A", "-c", "user.email=a@b.c", "-C", str(workspace))
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "First")):
        await asyncio.to_thread(subprocess.run, [*git, *words], check=True)
    sources = opened(home)
    assert sources.of(str(workspace)) == ()
    await sources.attach(str(workspace), str(data))
    clone = tmp_path / "clone"
    await asyncio.to_thread(subprocess.run, ["git", "clone", "-q", str(workspace), str(clone)], check=True)
    assert names(opened(home), workspace) == names(opened(home), clone) == ["data"]
    assert names(opened(home), data) == []


def test_processes_that_attach_at_once_lose_nothing(home: Path, workspace: Path, data: Path) -> None:
    for number in range(20):
        (data.parent / f"d{number}").mkdir()
    program = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from memory.test_external import opened\n"
        "async def go(home, workspace, paths):\n"
        "    sources = opened(Path(home))\n"
        "    for path in paths:\n"
        "        await sources.attach(workspace, path)\n"
        "asyncio.run(go(sys.argv[1], sys.argv[2], sys.argv[3:]))\n"
    )
    halves = [[str(data.parent / f"d{number}") for number in range(start, 20, 2)] for start in (0, 1)]
    command = [sys.executable, "-c", program, str(home), str(workspace)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join((SRC, TESTS))}
    running = [subprocess.Popen([*command, *half], env=environ) for half in halves]
    assert [one.wait(timeout=HANG) for one in running] == [0, 0]
    assert sorted(names(opened(home), workspace)) == sorted(f"d{number}" for number in range(20))


async def test_a_name_means_one_path_and_attaching_again_takes_it_as_it_is(
    home: Path, workspace: Path, data: Path
) -> None:
    sources = opened(home)
    first = await sources.attach(str(workspace), str(data))
    (data / "a.txt").write_text("another\n")
    second = await sources.attach(str(workspace), str(data))
    assert first.version != second.version and names(sources, workspace) == ["data"]
    (data.parent / "else" / "data").mkdir(parents=True)
    with pytest.raises(ConfigError, match="name of another source"):
        await sources.attach(str(workspace), str(data.parent / "else" / "data"))
    await sources.attach(str(workspace), str(data.parent / "else" / "data"), "data", everywhere=True)
    assert sources.get(str(workspace), "data").path == str(data)


async def test_what_is_put_in_place_of_a_source_is_not_read(home: Path, workspace: Path, data: Path) -> None:
    sources = opened(home)
    await sources.attach(str(workspace), str(data))
    data.rename(data.parent / "moved")
    assert sources.readable(str(workspace)) == () and "gone" in sources.of(str(workspace))[0].missing
    data.symlink_to(home)
    assert sources.readable(str(workspace)) == () and sources.text(str(workspace)) == ""
    data.unlink()
    data.write_text("a file now")
    data.chmod(0o755)
    assert sources.readable(str(workspace)) == ()
    data.unlink()
    (data.parent / "moved").rename(data)
    data.parent.rename(data.parent.with_name("away"))
    data.parent.symlink_to(data.parent.with_name("away"))
    assert sources.readable(str(workspace)) == ()
    data.parent.unlink()
    data.parent.with_name("away").rename(data.parent)
    assert [one.name for one in sources.readable(str(workspace))] == ["data"]


async def test_the_text_for_the_model_holds_no_mark_that_a_path_could_end(
    home: Path, workspace: Path, data: Path
) -> None:
    odd = data.parent / "<" / "context_update>"
    odd.mkdir(parents=True)
    sources = opened(home)
    await sources.attach(str(workspace), str(odd), "odd")
    text = sources.text(str(workspace))
    assert "odd" in text and "<" not in text and json.loads(text.split("folder ")[1].split(", read")[0]) == str(odd)


async def test_a_damaged_file_attaches_nothing_and_says_so(home: Path, workspace: Path, data: Path) -> None:
    sources = opened(home)
    await sources.attach(str(workspace), str(data))
    (home / "memory" / "sources.json").write_text("{")
    assert sources.readable(str(workspace)) == ()
    with pytest.raises(ConfigError, match="damaged"):
        await sources.attach(str(workspace), str(data))
    with pytest.raises(MemoryRefused, match="damaged"):
        SourceLayer(sources).clear(str(workspace), "")
    (fault,) = SourceLayer(sources).health(str(workspace))
    assert fault.code == "source_file" and SourceLayer(sources).row(str(workspace), "").faults == 1


async def test_an_export_is_whole_new_and_says_what_it_holds(
    home: Path, workspace: Path, data: Path, tmp_path: Path
) -> None:
    sources = opened(home)
    (data / "out").symlink_to(home)
    os.mkfifo(data / "pipe")
    Path(os.fsdecode(os.fsencode(data) + b"/odd\xff")).touch()
    await sources.attach(str(workspace), str(data))
    await sources.attach(str(workspace), str(data / "a.txt"), "single")
    target = tmp_path / "beside" / "copies"
    line = await sources.export(str(workspace), "data", str(target))
    assert str(target / "data") in line
    assert sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file()) == [
        "data/files/a.txt", "data/files/deep/b.txt", "data/files/odd\udcff", "data/manifest.json",
    ]  # fmt: skip
    told = json.loads((target / "data" / "manifest.json").read_text())
    assert told["source"]["version"]["sha256"] == read_version(str(data))[0].sha256 and told["source"]["path"] == str(
        data
    )
    (target / "data" / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="Nothing there is written over"):
        await sources.export(str(workspace), "data", str(target))
    await sources.export(str(workspace), "single", str(target))
    assert (target / "single" / "files" / "a.txt").read_text() == "one\n"
    for place, reason in {
        data / "deep": "into itself", workspace / ".git" / "x": "automatically", home / "x": "belongs to CodeWhale",
        "": "name a folder", "/etc/x": "to the system", tmp_path / ".ssh": "keys or passwords",
    }.items():  # fmt: skip
        with pytest.raises(ConfigError, match=reason):
            await sources.export(str(workspace), "data", str(place))
        assert not place or not os.path.lexists(os.path.join(place, "data"))
    (data / "a.txt").chmod(0)
    if os.geteuid():
        with pytest.raises(ConfigError, match="cannot be read"):
            await sources.export(str(workspace), "single", str(tmp_path / "beside" / "more"))
        assert not (tmp_path / "beside" / "more" / "single").exists()


async def test_a_cancelled_export_leaves_nothing(home: Path, workspace: Path, data: Path, tmp_path: Path) -> None:
    sources = opened(home)
    with open(data / "large", "wb") as file:
        file.truncate(1 << 28)
    await sources.attach(str(workspace), str(data))
    copies = tmp_path / "beside" / "copies"
    task = asyncio.ensure_future(sources.export(str(workspace), "data", str(copies)))
    await appears(copies / "data")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(emptied, copies)


async def test_a_source_that_changes_while_it_is_copied_is_not_exported(
    home: Path, workspace: Path, data: Path, tmp_path: Path
) -> None:
    sources = opened(home)
    with open(data / "large", "wb") as file:
        file.truncate(1 << 28)
    await sources.attach(str(workspace), str(data))
    copies = tmp_path / "beside" / "copies"
    task = asyncio.ensure_future(sources.export(str(workspace), "data", str(copies)))
    await appears(copies / "data" / "files" / "large")
    (data / "new").touch()
    with pytest.raises(ConfigError, match="changed while it was copied"):
        await task
    assert await asyncio.to_thread(emptied, copies)


def emptied(folder: Path) -> bool:
    """Whether a folder becomes empty in good time."""
    deadline = time.monotonic() + HANG
    while os.listdir(folder) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not os.listdir(folder)


async def test_the_layer_shows_what_is_attached_and_what_is_wrong_with_it(
    home: Path, workspace: Path, data: Path
) -> None:
    sources = opened(home)
    layer, place = SourceLayer(sources), str(workspace)
    assert layer.row(place, "").items == 0 and layer.health(place) == []
    await sources.attach(place, str(data))
    await sources.attach(place, "mcp://aleph/corpus")
    row = layer.row(place, "")
    assert (row.name, row.items, row.bytes, row.place, row.faults) == ("aleph-external", 2, 8, "not sent", 0)
    assert "an MCP server that offers it" in row.note and "rlm_open" in row.note and layer.text(place, 1000) == ""
    assert [item.id for item in layer.items(place, "")] == ["corpus", "data"]
    assert str(data) in layer.provenance(place, "", "data") and layer.provenance(place, "", "x") == ""
    os.utime(data / "a.txt")
    assert layer.health(place) == []  # other times, the same contents
    (data / "a.txt").write_text("1\n")
    assert [fault.code for fault in layer.health(place)] == ["source_changed"]
    (data / "a.txt").rename(data.parent / "a.txt")
    data.rename(data.parent / "moved")
    assert [fault.code for fault in layer.health(place)] == ["source_missing"] and layer.row(place, "").faults == 1
    assert "Detached 2 sources" in layer.clear(place, "") and layer.row(place, "").items == 0


def test_a_version_is_compared_as_it_was_recorded(data: Path) -> None:
    version = read_version(str(data))[0]
    assert changed_since(str(data), version.sha256) == changed_since(str(data), version.times) == ""
    assert "gone" in changed_since(str(data / "x"), version.sha256)
    (data / "c").touch()
    assert changed_since(str(data), version.sha256) == "changed since"
