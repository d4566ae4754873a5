"""Worker processes: they answer, and one that dies costs nothing but time."""

import asyncio
import os
import signal
import sys
from collections import deque
from pathlib import Path

import pytest

from codewhale.codesearch.indexing import Segment, Task, nothing
from codewhale.codesearch.worker import Unframed, framed
from codewhale.codesearch.workers import _is_whole, _Server, _smaller, _Worker, segments


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for number in range(9):
        (tmp_path / f"f{number}.py").write_text(f"def f{number}(): pass\n")
    (tmp_path / "state").mkdir()
    return tmp_path


async def test_tasks_become_segments(tree: Path) -> None:
    tasks = [Task(str(tree), [f"f{number}.py" for number in group]) for group in ((0, 1, 2), (3, 4), (5, 6, 7, 8))]
    found = [segment async for segment in segments(tasks, str(tree / "state" / "grammars"), 2)]
    assert sorted(row.path for segment in found for row in segment.files) == [f"f{n}.py" for n in range(9)]


async def test_what_is_held_comes_in_the_end_in_one(tree: Path) -> None:
    tasks = [Task(str(tree), [f"f{number}.py"], hold=1 << 20) for number in range(9)]
    found = [segment async for segment in segments(tasks, str(tree / "state" / "grammars"), 1)]
    assert [segment.held for segment in found] == [*range(1, 10), 0] and len(found[-1].files) == 9


async def test_what_a_killed_worker_held_is_done_again(tree: Path) -> None:
    tasks = [Task(str(tree), [f"f{number}.py"], hold=1 << 20) for number in range(9)]
    found, server = [], _Server(deque(tasks), str(tree / "state" / "grammars"), asyncio.Queue(), [])
    serving = asyncio.create_task(server.serve())
    while (segment := await server._done.get()) is not None:
        assert isinstance(segment, Segment)
        found.append(segment)
        if segment.held == 4 and server._worker._child is not None:
            os.kill(server._worker._child.pid, signal.SIGKILL)
    await serving
    assert sorted(row.path for segment in found for row in segment.files) == [f"f{number}.py" for number in range(9)]


async def test_a_worker_that_is_killed_is_replaced(tree: Path) -> None:
    worker = _Worker(str(tree / "state" / "grammars"))
    assert isinstance(await worker.run(Task(str(tree), ["f1.py"])), Segment)
    assert worker._child is not None
    os.kill(worker._child.pid, signal.SIGKILL)
    await worker._child.ended()
    assert await worker.run(Task(str(tree), ["f1.py"])) is None
    again = await worker.run(Task(str(tree), ["f2.py"]))
    assert again is not None and again.files[0].path == "f2.py"
    await worker.close()


async def test_a_file_that_kills_every_worker_is_named(tree: Path) -> None:
    deadly = "f\0.py"  # no file can have this name: opening it ends a worker
    paths = ["f0.py", "f1.py", deadly, "f2.py"]
    found = [segment async for segment in segments([Task(str(tree), paths)], str(tree / "state" / "grammars"), 2)]
    assert found[-1] == nothing(failed=[deadly]) and not any(segment.failed for segment in found[:-1])
    assert sorted(row.path for segment in found for row in segment.files) == ["f0.py", "f1.py", "f2.py"]


async def test_workers_that_survive_nothing_are_an_error(tree: Path) -> None:
    with pytest.raises(OSError, match="survives any file"):
        async for _ in segments([Task(str(tree), ["f\0.py", "g\0.py"])], str(tree / "state" / "grammars"), 2):
            raise AssertionError("nothing can be told")


async def test_a_worker_that_does_not_start_is_an_error(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tree / "python"
    program.write_text("#!/bin/sh\necho 'ImportError: half a module' >&2\nexit 1\n")
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))
    with pytest.raises(OSError, match="does not start: ImportError: half a module"):
        async for _ in segments([Task(str(tree), ["f1.py"])], str(tree / "state" / "grammars"), 1):
            raise AssertionError("nothing can be told")


async def test_a_short_answer_is_none(tree: Path) -> None:
    worker = _Worker(str(tree / "state" / "grammars"))
    one, two = Task(str(tree), ["f1.py"]), Task(str(tree), ["f2.py", "no.py"], hold=1 << 20)
    answer = await worker.run(one)
    held = await worker.run(two)
    await worker.close()
    assert answer is not None and _is_whole(answer, [one]) and not _is_whole(answer, [one, two])
    assert held is not None and _is_whole(held, [two]) and not _is_whole(held, [one, two])


def test_a_task_that_kills_is_tried_in_halves_and_at_last_plainly() -> None:
    waiting, tried = deque([Task("/", ["a", "b", "c"])]), []
    while waiting:
        task = waiting.popleft()
        tried.append((task.paths, task.plain))
        waiting.extendleft(_smaller(task))
    assert (["b"], True) in tried and tried.count((["b"], True)) == 1 and len(tried) == 8


def test_messages_come_whole_however_they_are_cut() -> None:
    data = framed(Task("/tree", ["a"] * 100, True)) * 2
    unframed, found = Unframed(), 0
    with pytest.raises(ValueError, match="no segment"):
        for at in range(0, len(data), 7):
            found += len(unframed.feed(data[at : at + 7]))
    with pytest.raises(ValueError, match="too long"):
        Unframed().feed(b"\xff\xff\xff\xff")
