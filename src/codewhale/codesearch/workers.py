"""Worker processes that turn files into segments. A worker that dies or answers short costs its task alone: the task is
tried again in halves, and the one file no parser survives is taken without its grammar. No file is lost: one that no
worker survives at all is named in the end."""

import asyncio
import functools
import os
from collections import deque
from collections.abc import AsyncGenerator, Sequence

from msgspec.structs import replace

from codewhale.codesearch.indexing import Segment, Task, nothing
from codewhale.codesearch.worker import Unframed, framed
from codewhale.process.confinement import held_where_possible
from codewhale.process.itself import own_python
from codewhale.process.launch import Child, Launch, settle, start

SECONDS = 120.0  # for one task; more is a parser that does not come to an end
_STARTS = 3  # before a process that says nothing at its start counts as one that cannot run
_AHEAD = 2  # segments waiting to be taken
_COMPLAINT = 1000  # bytes of what a process says of itself before it ends
_CODE = "from codewhale.codesearch.worker import main; raise SystemExit(main())"


class _Worker:
    """One process and what it said."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._child: Child | None = None
        self._said: asyncio.Queue[Segment | None] = asyncio.Queue()
        self._complaint = b""

    async def run(self, task: Task) -> Segment | None:
        """The segment of a task; None when the process did not survive it. Raises OSError when none can be started."""
        for _ in range(_STARTS):
            if self._child is not None:
                return await self._asked(task)
            await self._start(task.root)
            await self._asked(Task(task.root, []))  # a process that cannot run is not to be taken for a bad file
        if self._child is not None:
            return await self._asked(task)
        told = self._complaint.decode("utf-8", "replace").strip().rpartition("\n")[2] or "it says nothing"
        raise OSError(f"a worker process of the code index does not start: {told}")

    async def _asked(self, task: Task) -> Segment | None:
        assert self._child is not None
        try:
            async with asyncio.timeout(SECONDS):
                await self._child.write(framed(task))
                segment = await self._said.get()
        except (TimeoutError, BrokenPipeError, ConnectionError):
            segment = None
        if segment is None:
            await self.close()
        return segment

    async def _start(self, root: str) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)  # what holds the process needs it there
        said: asyncio.Queue[Segment | None] = asyncio.Queue()
        self._said, self._complaint = said, b""
        heard = functools.partial(self._heard, Unframed(), said)  # what an earlier process says late is not for this
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

    def _heard(self, unframed: Unframed, said: "asyncio.Queue[Segment | None]", stream: str, data: bytes) -> None:
        if stream != "stdout":
            self._complaint = (self._complaint + data)[-_COMPLAINT:]
            return
        try:
            for segment in unframed.feed(data):
                said.put_nowait(segment)
        except ValueError:
            said.put_nowait(None)

    async def close(self) -> None:
        """End the process."""
        child, self._child = self._child, None
        if child is not None:
            await child.kill()


async def segments(tasks: Sequence[Task], folder: str, workers: int) -> AsyncGenerator[Segment, None]:
    """The segments of tasks, as they are done, and between them answers that only tell how much is held; the last names
    the files that no worker survived (`failed`), if any. So each path of a task stands in one segment. `folder` holds
    the grammars. Closing the iterator ends the workers.

    Raises OSError when no worker can be started, or none survives any file.
    """
    waiting = deque(tasks)
    failed: list[str] = []
    answered = False
    done: asyncio.Queue[Segment | BaseException | None] = asyncio.Queue(_AHEAD)
    runners = [
        asyncio.create_task(_Server(waiting, folder, done, failed).serve())
        for _ in range(max(1, min(workers, len(tasks))))
    ]
    try:
        running = len(runners)
        while running:
            found = await done.get()
            if found is None:
                running -= 1
            elif isinstance(found, BaseException):
                raise found
            else:
                answered = answered or bool(found.files)
                yield found
        if failed and not answered and len(failed) > 1:
            raise OSError("no worker process of the code index survives any file")
        if failed:
            yield nothing(failed=failed)
    finally:
        for runner in runners:
            runner.cancel()
        await asyncio.gather(*runners, return_exceptions=True)


class _Server:
    """Works off tasks with one process. What the process holds when it dies is done again, from then on without being
    held: so the task it died of is found."""

    def __init__(
        self, waiting: deque[Task], folder: str, done: "asyncio.Queue[Segment | BaseException | None]",
        failed: list[str],
    ) -> None:  # fmt: skip
        self._waiting = waiting
        self._worker = _Worker(folder)
        self._done = done
        self._failed = failed
        self._held: list[Task] = []
        self._careful = False

    async def serve(self) -> None:
        """Until nothing is waiting and nothing held."""
        try:
            while self._waiting or self._held:
                last = not self._waiting
                task = Task(self._held[0].root, []) if last else self._waiting.popleft()
                await self._try(replace(task, hold=0) if self._careful else task)
            await self._done.put(None)
        except Exception as error:  # whatever it is, who waits for segments must hear of it
            await self._done.put(error)
        finally:
            await settle(self._worker.close())

    async def _try(self, task: Task) -> None:
        segment = await self._worker.run(task)
        if segment is None or not _is_whole(segment, [*self._held, task]):
            await self._worker.close()
            smaller = _smaller(task)
            self._failed += [] if smaller else task.paths
            self._waiting.extendleft([*smaller, *self._held])
            self._held, self._careful = [], True
            return
        self._held = [*self._held, task] if segment.held else []
        await self._done.put(segment)


def _is_whole(segment: Segment, tasks: Sequence[Task]) -> bool:
    """Whether an answer tells of each file of the tasks, and of no other."""
    asked = [path for task in tasks for path in task.paths]
    if segment.held:
        return segment.held == len(asked)
    return sorted([row.path for row in segment.files] + segment.gone) == sorted(asked)


def _smaller(task: Task) -> list[Task]:
    """What to try instead of a task that no worker survived; nothing for a single file that fails even plainly."""
    half = len(task.paths) // 2
    if half:
        return [Task(task.root, task.paths[:half], task.plain), Task(task.root, task.paths[half:], task.plain)]
    return [] if task.plain or not task.paths else [Task(task.root, task.paths, True)]
