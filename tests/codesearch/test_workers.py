"""Worker processes: they answer, and one that dies costs nothing but time."""

import os
import signal
import sys
from collections import deque
from pathlib import Path

import pytest

from codewhale.codesearch.indexing import Batch, ReadTask
from codewhale.codesearch.worker import BatchDecoder, framed
from codewhale.codesearch.workers import _is_whole, _smaller, _Worker, batches


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for number in range(9):
        (tmp_path / f"f{number}.py").write_text(f"def f{number}(): pass\n")
    (tmp_path / "state").mkdir()
    return tmp_path


async def test_tasks_become_batches(tree: Path) -> None:
    tasks = [ReadTask(str(tree), [f"f{number}.py" for number in group]) for group in ((0, 1, 2), (3, 4), (5, 6, 7, 8))]
    found = [batch async for batch in batches(tasks, str(tree / "state" / "grammars"), 2)]
    assert sorted(row.path for batch in found for row in batch.files) == [f"f{n}.py" for n in range(9)]


async def test_a_worker_that_is_killed_is_replaced(tree: Path) -> None:
    worker = _Worker(str(tree / "state" / "grammars"))
    assert isinstance(await worker.run(ReadTask(str(tree), ["f1.py"])), Batch)
    assert worker._child is not None
    os.kill(worker._child.pid, signal.SIGKILL)
    await worker._child.ended()
    assert await worker.run(ReadTask(str(tree), ["f1.py"])) is None
    again = await worker.run(ReadTask(str(tree), ["f2.py"]))
    assert again is not None and again.files[0].path == "f2.py"
    await worker.close()


async def test_a_file_that_kills_every_worker_is_named(tree: Path) -> None:
    deadly = "f\0.py"  # no file can have this name: opening it ends a worker
    paths = ["f0.py", "f1.py", deadly, "f2.py"]
    found = [batch async for batch in batches([ReadTask(str(tree), paths)], str(tree / "state" / "grammars"), 2)]
    assert found[-1] == Batch([], [], [deadly]) and not any(batch.failed for batch in found[:-1])
    assert sorted(row.path for batch in found for row in batch.files) == ["f0.py", "f1.py", "f2.py"]


async def test_workers_that_survive_nothing_are_an_error(tree: Path) -> None:
    with pytest.raises(OSError, match="survives any file"):
        async for _ in batches([ReadTask(str(tree), ["f\0.py", "g\0.py"])], str(tree / "state" / "grammars"), 2):
            raise AssertionError("nothing can be told")


async def test_a_worker_that_does_not_start_is_an_error(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tree / "python"
    program.write_text("#!/bin/sh\necho 'ImportError: half a module' >&2\nexit 1\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(OSError, match="does not start: ImportError: half a module"):
        async for _ in batches([ReadTask(str(tree), ["f1.py"])], str(tree / "state" / "grammars"), 1):
            raise AssertionError("nothing can be told")


async def test_a_short_answer_is_not_taken(tree: Path) -> None:
    worker = _Worker(str(tree / "state" / "grammars"))
    one, two = ReadTask(str(tree), ["f1.py"]), ReadTask(str(tree), ["f1.py", "no.py"])
    short, whole = await worker.run(one), await worker.run(two)
    await worker.close()
    assert short is not None and _is_whole(short, one) and not _is_whole(short, two)
    assert whole is not None and _is_whole(whole, two) and not _is_whole(whole, one)


def test_a_task_that_kills_is_tried_in_halves_and_at_last_plainly() -> None:
    waiting, tried = deque([ReadTask("/", ["a", "b", "c"])]), []
    while waiting:
        task = waiting.popleft()
        tried.append((task.paths, task.plain))
        waiting.extendleft(_smaller(task))
    assert (["b"], True) in tried and tried.count((["b"], True)) == 1 and len(tried) == 8


def test_messages_come_whole_however_they_are_cut() -> None:
    data = framed(ReadTask("/tree", ["a"] * 100, True)) * 2
    unframed, found = BatchDecoder(), 0
    with pytest.raises(ValueError, match="no batch of files"):
        for at in range(0, len(data), 7):
            found += len(unframed.feed(data[at : at + 7]))
    with pytest.raises(ValueError, match="too long"):
        BatchDecoder().feed(b"\xff\xff\xff\xff")
