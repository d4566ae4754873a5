"""Worker processes that turn files into batches. A worker that dies or answers short costs its task alone: the task is
tried again in halves, and the one file no parser survives is taken without its grammar. No file is lost: one that no
worker survives at all is named in the end."""

import asyncio
import functools
import os
from collections import deque
from collections.abc import AsyncGenerator, Sequence

from codewhale.codesearch.indexing import Batch, ReadTask
from codewhale.codesearch.worker import BatchDecoder, framed
from codewhale.process.confinement import held_where_possible
from codewhale.process.itself import own_python
from codewhale.process.launch import Child, Launch, settle, start

SECONDS = 120.0  # for one task; more is a parser that does not come to an end
_STARTS = 3  # before a process that says nothing at its start counts as one that cannot run
_AHEAD = 2  # batches waiting to be taken
_COMPLAINT = 1000  # bytes of what a process says of itself before it ends
_CODE = "from codewhale.codesearch.worker import main; raise SystemExit(main())"


class _Worker:
    """One process and what it said."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._child: Child | None = None
        self._said: asyncio.Queue[Batch | None] = asyncio.Queue()
        self._complaint = b""

    async def run(self, task: ReadTask) -> Batch | None:
        """The batch of a task; None when the process did not survive it. Raises OSError when none can be started."""
        for _ in range(_STARTS):
            if self._child is not None:
                return await self._asked(task)
            await self._start(task.root)
            await self._asked(ReadTask(task.root, []))  # a process that cannot run is not to be taken for a bad file
        if self._child is not None:
            return await self._asked(task)
        told = self._complaint.decode("utf-8", "replace").strip().rpartition("\n")[2] or "it says nothing"
        raise OSError(f"a worker process of the code index does not start: {told}")

    async def _asked(self, task: ReadTask) -> Batch | None:
        assert self._child is not None
        try:
            async with asyncio.timeout(SECONDS):
                await self._child.write(framed(task))
                batch = await self._said.get()
        except (TimeoutError, BrokenPipeError, ConnectionError):
            batch = None
        if batch is None:
            await self.close()
        return batch

    async def _start(self, root: str) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)  # what holds the process needs it there
        said: asyncio.Queue[Batch | None] = asyncio.Queue()
        self._said, self._complaint = said, b""
        heard = functools.partial(
            self._heard, BatchDecoder(), said
        )  # what an earlier process says late is not for this
        self._child = await start(
            Launch(
                argv=own_python(_CODE, self._folder),
                cwd=os.path.dirname(self._folder),
                profile=await held_where_possible("read-only"),
                workspace=root,
                allowances=(f"read:{self._folder}",),
                env={"OPENBLAS_NUM_THREADS": "1"},
                keep_stdin=True,
                output_limit=4096,
                supervised=False,
                own=True,
            ),
            heard,
        )
        asyncio.ensure_future(self._child.ended()).add_done_callback(lambda _: said.put_nowait(None))

    def _heard(self, unframed: BatchDecoder, said: "asyncio.Queue[Batch | None]", stream: str, data: bytes) -> None:
        if stream != "stdout":
            self._complaint = (self._complaint + data)[-_COMPLAINT:]
            return
        try:
            for batch in unframed.feed(data):
                said.put_nowait(batch)
        except ValueError:
            said.put_nowait(None)

    async def close(self) -> None:
        """End the process."""
        child, self._child = self._child, None
        if child is not None:
            await child.kill()


async def batches(tasks: Sequence[ReadTask], folder: str, workers: int) -> AsyncGenerator[Batch, None]:
    """The batches of tasks, as they are done; the last names the files that no worker survived (`failed`), if any. So
    each path of a task is in one batch. `folder` holds the grammars. Closing the iterator ends the workers.

    Raises OSError when no worker can be started, or none survives any file.
    """
    waiting = deque(tasks)
    failed: list[str] = []
    answered = False
    done: asyncio.Queue[Batch | BaseException | None] = asyncio.Queue(_AHEAD)
    runners = [
        asyncio.create_task(_serve(waiting, folder, done, failed)) for _ in range(max(1, min(workers, len(tasks))))
    ]
    try:
        running = len(runners)
        while running:
            batch = await done.get()
            if batch is None:
                running -= 1
            elif isinstance(batch, BaseException):
                raise batch
            else:
                answered = answered or bool(batch.files)
                yield batch
        if failed and not answered and len(failed) > 1:
            raise OSError("no worker process of the code index survives any file")
        if failed:
            yield Batch([], [], failed)
    finally:
        for runner in runners:
            runner.cancel()
        await asyncio.gather(*runners, return_exceptions=True)


async def _serve(
    waiting: deque[ReadTask], folder: str, done: "asyncio.Queue[Batch | BaseException | None]", failed: list[str]
) -> None:
    """Work off tasks with one process until none is waiting."""
    worker = _Worker(folder)
    try:
        while waiting:
            task = waiting.popleft()
            batch = await worker.run(task)
            if batch is not None and _is_whole(batch, task):
                await done.put(batch)
                continue
            await worker.close()
            smaller = _smaller(task)
            failed += [] if smaller else task.paths
            waiting.extendleft(smaller)
        await done.put(None)
    except Exception as error:  # whatever it is, who waits for batches must hear of it
        await done.put(error)
    finally:
        await settle(worker.close())


def _is_whole(batch: Batch, task: ReadTask) -> bool:
    """Whether an answer covers each file of a task, and no other."""
    return sorted([row.path for row in batch.files] + batch.gone) == sorted(task.paths)


def _smaller(task: ReadTask) -> list[ReadTask]:
    """What to try instead of a task that no worker survived; nothing for a single file that fails even plainly."""
    half = len(task.paths) // 2
    if half:
        return [ReadTask(task.root, task.paths[:half], task.plain), ReadTask(task.root, task.paths[half:], task.plain)]
    return [] if task.plain or not task.paths else [ReadTask(task.root, task.paths, True)]
