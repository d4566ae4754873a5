"""A file or a folder that is swapped for a link while the writer is at work, at each single step of that work."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

from codewhale.protocol.errors import ToolError
from codewhale.workspace.files import FileEdit, Workspace
from support.patchland import read_tree, workspace, write_tree

MINE, NEW, THEIRS, GITS = b"as it was\n", b"new\n", b"another's\n", b"[core]\n"
# What is swapped for a link to where: a file, or the folder that it lies in, to a place outside or in git's folder,
# which may be read and is never written.
SWAPS = (("d/config", "../../out/config"), ("d/config", "../.git/config"), ("d", "../out"), ("d", ".git"))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where that is to be had: thousands of syncs are not what is tested."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
    else:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as quick:
            yield Path(quick)


def reads(space: Workspace) -> None:
    data = space.read("d/config").data
    assert data in (MINE, GITS), data


def replaces(space: Workspace) -> None:
    space.write("", "d/config", NEW)


def deletes(space: Workspace) -> None:
    space.apply("", [FileEdit("d/config", None)])


def moves(space: Workspace) -> None:
    space.apply("", [FileEdit("moved", NEW, move_from="d/config")])


def work_with_swap(steps: int, swap: Callable[[], None], work: Callable[[], None]) -> tuple[bool, bool]:
    """Do the work, and swap once so many functions were called for it: whether it called that many, and was refused."""
    left = steps

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal left
        if event in ("call", "c_call"):
            left -= 1
            if left == 0:
                sys.setprofile(None)
                swap()

    sys.setprofile(count)
    try:
        work()
    except ToolError:
        return left <= 0, True
    finally:
        sys.setprofile(None)
    return left <= 0, False


@pytest.mark.parametrize("work", [reads, replaces, deletes, moves], ids=lambda work: work.__name__)
@pytest.mark.parametrize(("name", "target"), SWAPS, ids=lambda text: text.replace("/", "-"))
def test_a_swap_for_a_link_at_any_step_reaches_nothing_of_another(
    name: str, target: str, work: Callable[[Workspace], None], folder: Path
) -> None:
    others = {"out/config": THEIRS, "w/.git/config": GITS}
    space = workspace(folder / "w", folder / "store")
    kept_of_another = Path(space.artifacts.path(space.artifacts.put(THEIRS)))
    swapped, aside = folder / "w" / name, folder / "aside"

    def swap() -> None:
        with contextlib.suppress(FileNotFoundError):  # it was deleted already
            os.rename(swapped, aside)
            os.symlink(target, swapped)

    def attempt(steps: int) -> tuple[bool, bool]:
        write_tree(folder, {**others, "w/d/config": MINE})
        kept_of_another.unlink(missing_ok=True)
        outcome = work_with_swap(steps, swap, lambda: work(space))
        for place, data in others.items():
            assert (folder / place).read_bytes() == data, f"{place} was changed after {steps} steps"
        assert not kept_of_another.exists(), f"what another file holds was kept after {steps} steps"
        assert set(read_tree(folder / "out")) == {"config"} and os.listdir(folder / "w" / ".git") == ["config"]
        clear(folder, "w", "out", "aside")
        (folder / "w").mkdir()
        return outcome

    steps, refusals = 1, 0
    while (outcome := attempt(steps))[0]:
        steps += 1
        refusals += outcome[1]
    assert steps > 100 and refusals and not outcome[1]


def clear(place: Path, *names: str) -> None:
    """Remove these with all that is in them; a link alone, never what it leads to."""
    for name in names:
        path = place / name
        if path.is_dir() and not path.is_symlink():
            clear(path, *os.listdir(path))
            path.rmdir()
        else:
            path.unlink(missing_ok=True)
