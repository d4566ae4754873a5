"""Attempts: the uncommitted diff of the workspace as a patch that is kept, on a durable task or in the session."""

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, Protocol

import msgspec

from codewhale.lib.clock import Clock, rfc3339
from codewhale.lib.ids import short_id
from codewhale.lib.jsontext import pretty
from codewhale.lib.text import one_line
from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.attempts import AttemptRecord
from codewhale.protocol.errors import CodeWhaleError, Corrected, Look, ToolError
from codewhale.protocol.tools import AttemptKept, CallContext, Effect, OutputKept, ToolResult
from codewhale.tools.base import Args, Doc, tool
from codewhale.workspace.worktreepatch import check_patch, worktree_patch

_MOST_FILES = 200  # that a listing names of one attempt
Redact = Callable[[str], str]
TaskId = Annotated[
    str, Doc("A durable task; default the one this session works for, else the session.", min_length=1, max_length=100)
]
AttemptId = Annotated[str, Doc("As pr_attempt_record gave it.", min_length=1, max_length=100)]
Check = Annotated[str, Doc("A command, or the id of a gate.", max_length=500)]


class KeptAttempts(Protocol):
    """The attempts of an application."""

    def task_of(self, session: str) -> str: ...
    async def attempts(self, session: str, task: str) -> tuple[str, tuple[AttemptRecord, ...]]:
        """The task's full id with its attempts; of task "" those of the session. Raises TaskError."""

    async def put(self, task: str, updates: dict[str, object]) -> None:
        """Write into a task. Raises TaskError."""


class AttemptRecordArgs(Args, frozen=True):
    """What is recorded."""

    summary: Annotated[str, Doc("What was tried, in a sentence.", min_length=1, max_length=2000)]
    task_id: TaskId | None = None
    attempt_group_id: (
        Annotated[
            str,
            Doc("Ties attempts at one change together; a new one if absent.", max_length=64, pattern=r"^[\w.-]+$"),
        ]
        | None
    ) = None
    attempt_index: Annotated[int, Doc("Which of the group.", ge=1, le=1000)] = 1
    attempt_count: Annotated[int, Doc("How many the group has; the index if absent.", ge=1, le=1000)] | None = None
    verification: Annotated[tuple[Check, ...], Doc("What checked it: commands or gate ids.", max_length=50)] = ()


class AttemptList(Args, frozen=True):
    """Whose."""

    task_id: TaskId | None = None


class AttemptNamed(Args, frozen=True):
    """Which attempt."""

    attempt_id: AttemptId
    task_id: TaskId | None = None


class AttemptTools:
    """The tools of attempts."""

    def __init__(
        self, kept: KeptAttempts, artifacts: ArtifactStore, clock: Clock, redact: Callable[[str], Redact]
    ) -> None:
        self._kept = kept
        self._artifacts = artifacts
        self._clock = clock
        self._redact = redact

    @tool("pr_attempt_record", effects={Effect.READS}, polls=True)
    async def pr_attempt_record(self, args: AttemptRecordArgs, call: CallContext) -> ToolResult:
        """Keep the diff of the workspace against its last commit (staged, unstaged and new files) as a patch, with what
        was tried and what checked it, on a durable task or in this session. Changes neither files nor git's index.
        """
        count = args.attempt_index if args.attempt_count is None else args.attempt_count
        if args.attempt_index > count:
            raise ToolError(
                "invalid_input", "`attempt_index` is larger than `attempt_count`.", field="attempt_index",
                expected=f"1 to {count}", received=str(args.attempt_index),
                fix=Corrected({"attempt_count": args.attempt_index}),
            )  # fmt: skip
        own = self._kept.task_of(call.session)
        task = (await self._attempts(call, args.task_id))[0] if args.task_id else own
        if own and task != own:
            raise ToolError(
                "permission_denied", f"This session works for {own}; it records nothing on another task.",
                field="task_id", expected=own, received=task, fix=Corrected({"task_id": own}),
            )  # fmt: skip
        found = await worktree_patch(call.workspace)
        if not found.patch:
            return _nothing("Nothing was recorded: the workspace does not differ from its last commit.")
        text = found.patch.decode("utf-8", "replace")
        if await asyncio.to_thread(self._redact(call.session), text) != text:
            return _nothing(
                "Nothing was recorded: the diff holds a secret. Take it out, or let .gitignore name its file."
            )
        sha = await asyncio.to_thread(self._artifacts.put, found.patch)
        record = AttemptRecord(
            id=short_id("attempt"),
            attempt_group_id=args.attempt_group_id or short_id("group"),
            attempt_index=args.attempt_index,
            attempt_count=count,
            base_ref=found.base_ref,
            base_sha=found.base_sha,
            head_ref=found.base_ref,
            head_sha=found.base_sha,
            summary=args.summary,
            changed_files=found.files,
            patch_path=self._artifacts.path(sha),
            verification=args.verification,
            selected=False,
            recorded_at=rfc3339(self._clock.now()),
            task_id=task or None,
            patch_sha256=sha,
            patch_bytes=len(found.patch),
        )
        updates = {"attempt": msgspec.to_builtins(record), "artifacts": [_artifact(record)]}
        if task and task != own:
            await self._kept.put(task, updates)
        where = f"It is kept on {task}." if task else "No durable task is active: it is kept in this session."
        said = {"attempt": _short(record), "read_patch": _reading(record), "note": where}
        metadata = {"task_id": task or None, "task_updates": updates}
        kept = (OutputKept(sha, len(found.patch)), AttemptKept(record))
        return ToolResult(pretty(said), metadata=metadata, updates=kept)

    @tool("pr_attempt_list", effects={Effect.READS}, polls=True)
    async def pr_attempt_list(self, args: AttemptList, call: CallContext) -> ToolResult:
        """List the attempts recorded on a durable task, or in this session, oldest first."""
        task, rows = await self._attempts(call, args.task_id)
        said: dict[str, Any] = {"task_id": task or None, "attempts": [_short(row) for row in rows]}
        if not rows:
            said["note"] = "No attempt is recorded; pr_attempt_record keeps one."
        return ToolResult(pretty(said), metadata={"task_id": task or None, "attempts": [row.id for row in rows]})

    @tool("pr_attempt_read", effects={Effect.READS}, polls=True)
    async def pr_attempt_read(self, args: AttemptNamed, call: CallContext) -> ToolResult:
        """Read one recorded attempt, and how to read its patch."""
        record = await self._named(args, call)
        said = {"attempt": _short(record), "artifact": _artifact(record), "read_patch": _reading(record)}
        if not self._artifacts.has(record.patch_sha256):
            said = {"attempt": _short(record), "note": "Its patch is not kept any more."}
        return ToolResult(pretty(said), metadata={"attempt": msgspec.to_builtins(record)})

    @tool("pr_attempt_preflight", effects={Effect.READS}, polls=True)
    async def pr_attempt_preflight(self, args: AttemptNamed, call: CallContext) -> ToolResult:
        """Check with git apply --check whether the patch of an attempt applies to a clean checkout of its base
        (would_apply), and whether to the files as they are now (worktree). Changes nothing.
        """
        record = await self._named(args, call)
        try:
            patch = await asyncio.to_thread(self._artifacts.get, record.patch_sha256)
        except KeyError:
            raise ToolError(
                "execution_failed", f"The patch of {record.id} is not kept any more, or was changed.",
                field="attempt_id", expected="an attempt whose patch is there", received=record.id,
                fix=Look("pr_attempt_list", {}),
            ) from None  # fmt: skip
        check = await check_patch(call.workspace, patch, record.base_sha)
        said = {
            "attempt_id": record.id,
            "patch_path": record.patch_path,
            "would_apply": check.exit_code == 0,
            "exit_code": check.exit_code,
            "stdout_summary": check.stdout,
            "stderr_summary": check.stderr,
            "mutated_worktree": False,
            "checked_against": record.base_sha or "nothing: there was no commit",
            "worktree": check.worktree,
            **({"worktree_conflict": check.conflict} if check.worktree == "conflicts" else {}),
        }
        return ToolResult(pretty(said), metadata=said)

    async def _attempts(self, call: CallContext, task: str | None) -> tuple[str, tuple[AttemptRecord, ...]]:
        try:
            return await self._kept.attempts(call.session, task or self._kept.task_of(call.session))
        except CodeWhaleError as error:
            raise ToolError(
                "invalid_input", str(error), field="task_id", expected="the id of a durable task; task_list shows them",
                received=repr(task)[:200], fix=Corrected({"task_id": None}),
            ) from error  # fmt: skip

    async def _named(self, args: AttemptNamed, call: CallContext) -> AttemptRecord:
        rows = (await self._attempts(call, args.task_id))[1]
        found = next((row for row in rows if row.id == args.attempt_id), None)
        if found is not None:
            return found
        known = ", ".join(row.id for row in rows[-5:])
        asked = one_line(args.attempt_id, 60)
        raise ToolError(
            "invalid_input",
            f"`attempt_id`: there is no attempt {asked}. "
            f"{f'There are: {known}' if known else 'None is recorded here'}; "
            "pr_attempt_list {} lists them, with task_id those of another task.",
            field="attempt_id", expected=known or "the id of a recorded attempt", received=asked,
            fix=Corrected({"attempt_id": rows[0].id}, sure=True) if len(rows) == 1 else Look("pr_attempt_list", {}),
        )  # fmt: skip


def _nothing(text: str) -> ToolResult:
    return ToolResult(text, ok=False)


def _short(record: AttemptRecord) -> dict[str, Any]:
    """The record as a model reads it."""
    said: dict[str, Any] = msgspec.to_builtins(record)
    if (left := len(record.changed_files) - _MOST_FILES) > 0:
        said |= {"changed_files": record.changed_files[:_MOST_FILES], "changed_files_left_out": left}
    return said


def _artifact(record: AttemptRecord) -> dict[str, Any]:
    name = f"{record.id}.patch"
    return {"name": name, "kind": "patch", "sha256": record.patch_sha256, "bytes": record.patch_bytes}


def _reading(record: AttemptRecord) -> str:
    return f'retrieve_tool_result {{"ref": "art_{record.patch_sha256[:16]}"}}'
