"""Two indexes on one store, as two programs have them: each knows what the other has written."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from codewhale.codesearch.build import FEW, CodeIndex, is_stale, refresh
from support.codetree import grammars


def add(tree: Path, *names: str) -> None:
    for name in names:
        (tree / name).write_text(f"def {Path(name).stem}(): pass\n")


CHANGES: dict[str, Callable[[Path], None]] = {
    "edited": lambda tree: add(tree, "first.py"),
    "added": lambda tree: add(tree, "new.py"),
    "removed": lambda tree: (tree / "second.py").unlink(),
    "touched": lambda tree: os.utime(tree / "second.py", ns=(7, 7)),
    "many": lambda tree: add(tree, *(f"many{number}.py" for number in range(FEW + 9))),
    "replaced": lambda tree: (tree / "second.py").rename(tree / "first.py") and None,
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    for name in ("first", "second", "third"):
        (folder / f"{name}.py").write_text(f"# {name}\n")
    return folder


async def agree(one: CodeIndex, other: CodeIndex) -> None:
    """Both know what the store holds, hold it for complete, and find nothing to do."""
    store = one.open()
    try:
        for index in (one, other):
            assert set(index.stamps(store)) == set(store.stamps())
            assert store.meta("complete") and not await is_stale(index, store)
            report = await refresh(index)
            assert (report.indexed, report.forgotten, report.complete) == (0, 0, True)
    finally:
        store.close()


@pytest.mark.parametrize("change", CHANGES)
async def test_what_one_has_read_the_other_does_not_read_again(change: str, tree: Path, tmp_path: Path) -> None:
    one, other = (grammars(CodeIndex(str(tree), str(tmp_path / "home")), tmp_path) for _ in range(2))
    await refresh(one)
    await agree(one, other)
    CHANGES[change](tree)
    await refresh(other)
    await agree(one, other)
    add(tree, "third.py", "last.py")
    assert (await refresh(one)).indexed == 2
    await agree(other, one)


@pytest.mark.parametrize("change", CHANGES)
async def test_what_both_write_in_turn_both_know(change: str, tree: Path, tmp_path: Path) -> None:
    one, other = (grammars(CodeIndex(str(tree), str(tmp_path / "home")), tmp_path) for _ in range(2))
    await refresh(one)
    await refresh(other)
    for writer, names in ((other, ("a.py",)), (one, ("b.py",)), (other, ("c.py",)), (other, ("d.py",))):
        add(tree, *names)
        await refresh(writer)
    CHANGES[change](tree)
    await refresh(one)
    await agree(other, one)


async def test_what_somebody_else_wrote_is_not_taken_for_ones_own(tree: Path, tmp_path: Path) -> None:
    one, other = (grammars(CodeIndex(str(tree), str(tmp_path / "home")), tmp_path) for _ in range(2))
    await refresh(one)
    store = one.open()
    assert one.stamps(store)
    for name in ("a.py", "b.py"):
        add(tree, name)
        await refresh(other)
    one.update_stamps(store.generation(), {})
    assert one.stamps(store) == store.stamps()
    store.close()
