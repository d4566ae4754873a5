"""What a job printed as an artifact: without secrets, with the handle that reads it back."""

import asyncio
from collections.abc import Callable, Iterable, Iterator

import msgspec
from msgspec import Struct

from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.errors import SessionError
from codewhale.protocol.tools import OutputKept, ToolResult
from codewhale.services.jobs.job import JobReading
from codewhale.services.jobs.log import JobLog
from codewhale.services.jobs.render import line_end
from codewhale.services.jobs.service import ShellJobs

Redact = Callable[[str], str]
HEAD = 12 << 20
TAIL = 4 << 20


class LogArtifact(Struct, frozen=True):
    """Where an artifact is: the handle that tools take, its sha256, its file and its size in bytes."""

    ref: str
    sha256: str
    path: str
    bytes: int


class LogArchive:
    """Puts the logs of jobs among the artifacts; `redact(session)` takes known secrets out of a text."""

    def __init__(self, jobs: ShellJobs, artifacts: ArtifactStore, redact: Callable[[str], Redact]) -> None:
        self._jobs = jobs
        self._artifacts = artifacts
        self._redact = redact

    async def keep(self, session: str, job_id: str) -> LogArtifact | None:
        """The job's output so far as an artifact, the middle left out above 16 MiB; None when the disk does not take
        it. Raises KeyError for a job the session does not have."""
        log, recent = self._jobs.log(session, job_id), self._jobs.recent(session, job_id)
        try:
            sha, size = await asyncio.to_thread(self._artifacts.put_blocks, clean(log, recent, self._redact(session)))
        except SessionError:
            return None
        return LogArtifact(f"art_{sha[:16]}", sha, self._artifacts.path(sha), size)

    async def with_whole(self, session: str, reading: JobReading, result: ToolResult) -> ToolResult:
        """The result of a job that ended; where it leaves some of the output out, with the handle of the whole."""
        job = reading.job
        if job.status == "Running" or not (reading.stdout_omitted or reading.stderr_omitted):
            return result
        kept = await self.keep(session, job.id)
        if kept is None:
            return result
        total = job.stdout_total + job.stderr_total
        note = f'[all {total} bytes it printed: retrieve_tool_result {{"ref": "{kept.ref}"}}]'
        metadata = {**result.metadata, "log_artifact_id": kept.ref, "log_artifact_sha256": kept.sha256}
        content = f"{line_end(result.content)}{note}"
        return msgspec.structs.replace(
            result,
            content=content,
            metadata={**metadata, "log_bytes": kept.bytes},
            updates=(*result.updates, OutputKept(kept.sha256, kept.bytes)),
        )


def clean(log: JobLog, recent: str, redact: Redact) -> Iterator[bytes]:
    """What is kept of a log, without secrets; of a long one the beginning and the end. `recent` is the end of what was
    printed, for a log that was not kept to its end."""
    if log.kept <= HEAD + TAIL:
        yield from _redacted(log.blocks(), redact)
    else:
        yield from _redacted(log.blocks(0, HEAD), redact)
        yield f"\n[... {log.kept - HEAD - TAIL} bytes left out ...]\n".encode()
        yield from _redacted(log.blocks(log.kept - TAIL), redact)
    if log.kept < log.total:
        yield f"\n[... {log.total - log.kept} of {log.total} bytes were not kept; the end of them: ...]\n".encode()
        yield redact(recent).encode("utf-8", "replace")


def _redacted(blocks: Iterable[bytes], redact: Redact) -> Iterator[bytes]:
    for block in _whole_lines(blocks):
        yield redact(block.decode("utf-8", "replace")).encode("utf-8", "replace")


def _whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, cut behind line ends; a line longer than a block is cut where the block is."""
    rest = b""
    for block in blocks:
        whole, end, part = block.rpartition(b"\n")
        if end:
            yield rest + whole + end
            rest = part
        elif rest:
            yield rest + part
            rest = b""
        else:
            rest = part
    if rest:
        yield rest
