"""What interfaces look at beside the events of a session: its jobs, its workspace, what differs there, what an undo
would do, and how other sessions ended. Each part is built when it is first looked at."""

import asyncio
import os
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from codewhale.app.container import Services
from codewhale.app.mcpparts import McpParts
from codewhale.lib.text import one_line
from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.blocks import DiffBlock
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import CallFinished, MessageAdded, whole_output
from codewhale.protocol.ops import UsageView
from codewhale.protocol.views import (
    ClosingView,
    JobRow,
    PreviewRewind,
    PreviewUndo,
    ReadOutput,
    RewindView,
    ServerRow,
    SessionPreview,
    UndoView,
)
from codewhale.services.jobs.job import JobView
from codewhale.session.export import exported, format_of, write_export
from codewhale.session.store import SessionStore
from codewhale.workspace.git import differences, workspace_status
from codewhale.workspace.patching import unified_diff
from codewhale.workspace.undo.journal import SnapshotError
from codewhale.workspace.undo.render import plan_lines, refusal_lines, turn_line

if TYPE_CHECKING:
    from codewhale.workspace.undo import Undo, UndoPlan

TAIL = 2_000
LINE = 400
MOST_LINES = 50
MOST_TURNS = 50
DIFF_ROOM = 256 << 10


class WorkQueries:
    def __init__(
        self,
        services: Services,
        sessions: SessionStore,
        redact: Callable[[str], Callable[[str], str]],
        artifacts: ArtifactStore,
    ) -> None:
        self._services = services
        self._artifacts = artifacts
        self._sessions = sessions
        self._redact = redact

    def jobs(self, session: str) -> tuple[JobRow, ...]:
        jobs = self._services.jobs
        rows = [_job(view, jobs.recent(session, view.id)[-TAIL:]) for view in reversed(jobs.jobs(session))]
        rows += [_job(view, "") for view in jobs.stale(session)]
        return tuple(sorted(rows, key=lambda row: row.status != "Running"))

    workspace = staticmethod(workspace_status)

    async def servers(self, mcp: McpParts) -> tuple[ServerRow, ...]:
        """The MCP servers that files name; nothing is imported where there is none."""
        calls = mcp.at()
        if calls is None:
            return ()
        from codewhale.mcp.admin import McpAdmin

        return await asyncio.to_thread(McpAdmin(calls.service).rows)

    async def diff(self, session: str, workspace: str, path: str = "") -> tuple[DiffBlock, ...]:
        """What differs from the last commit; without git, all that the session's turns changed and that still stands.
        Raises CodeWhaleError."""
        blocks = await differences(workspace, path)
        if blocks is not None:
            return blocks
        undo = self._services.undo
        try:
            turns = await undo.turns(session, workspace)
            if not turns:
                return ()
            plan = await undo.plan(session, workspace, turns[-1].since)
            found = await self._contents(undo, plan, back=False)
        except SnapshotError as error:
            raise SessionError(f"this is not a git repository, and there are no snapshots to compare with: {error}")
        inside = os.path.normpath(path) if path else ""
        return tuple(one for one in found if not inside or one.path == inside or one.path.startswith(inside + "/"))

    async def undo(self, query: PreviewUndo, workspace: str) -> UndoView:
        undo = self._services.undo
        try:
            turns = await undo.turns(query.session, workspace)
            if not turns:
                return UndoView((), why="No turn of this session has file changes left to undo.")
            rows = tuple((number, turn_line(turn)) for number, turn in enumerate(turns[:MOST_TURNS], 1))
            number = max(1, min(query.turns, len(turns)))
            plan = await undo.plan(query.session, workspace, turns[number - 1].since)
            return UndoView(rows, *await self._planned(undo, plan))
        except SnapshotError as error:
            return UndoView((), why=f"Undo is not available here: {error}.")

    async def rewind(self, query: PreviewRewind, workspace: str, messages: tuple[str, ...]) -> RewindView:
        """What going back takes with it: these messages, and what would become of files."""
        undo = self._services.undo
        try:
            since = await undo.since_turn(query.session, workspace, query.turn)
            if since is None:
                return RewindView(messages)
            return RewindView(messages, *await self._planned(undo, await undo.plan(query.session, workspace, since)))
        except SnapshotError as error:
            return RewindView(messages, why=f"Files cannot be restored here: {error}.")

    async def closing(self, session: str, workspace: str, usage: Callable[[str], UsageView]) -> ClosingView:
        """What a session came to. Where nobody can say what it changed, nothing is said of files."""
        files, lines = 0, list[str]()
        undo = self._services.undo
        try:
            if turns := await undo.turns(session, workspace):
                plan = await undo.plan(session, workspace, turns[-1].since)
                files = len(plan.files)
                lines = "".join(block.diff for block in await self._contents(undo, plan, back=False)).splitlines()
        except SnapshotError:
            files = 0
        added = sum(line.startswith("+") and not line.startswith("+++") for line in lines)
        removed = sum(line.startswith("-") and not line.startswith("---") for line in lines)
        title = self._sessions.summary(session).title
        took = usage(session)
        return ClosingView(title, took.turns, files, added, removed, took.total["cost"])

    async def _planned(
        self, undo: "Undo", plan: "UndoPlan"
    ) -> tuple[tuple[str, ...], tuple[str, ...], tuple[DiffBlock, ...]]:
        """What becomes of each file, what stays as it is and why, and the differences."""
        refused = tuple(refusal_lines(plan.refused))
        files = tuple(line for line in plan_lines(plan) if line not in refused)
        return files, refused, await self._contents(undo, plan, back=True)

    async def _contents(self, undo: "Undo", plan: "UndoPlan", back: bool) -> tuple[DiffBlock, ...]:
        room, blocks = DIFF_ROOM, []
        for path, now, then in await undo.contents(plan):
            text = unified_diff(path, now, then, room) if back else unified_diff(path, then, now, room)
            room = max(0, room - len(text))
            if text and room:
                blocks.append(DiffBlock(path, text))
        return tuple(blocks)

    def export(self, session: str, path: str, form: str, force: bool) -> str:
        """Write a session to a file: at `path`, or in its workspace by its own name. The path. Raises SessionError."""
        summary = self._sessions.summary(session)
        kind = format_of(path, form)
        path = path or os.path.join(summary.workspace, f"codewhale-{session}.{kind}")
        events = (envelope.event for envelope in self._sessions.read(session))
        write_export(path, exported(summary, events, kind, self._redact(session)), force)
        return path

    async def output(self, query: ReadOutput) -> str:
        """All that a call printed or answered. Raises SessionError where it is not there any more."""
        return await asyncio.to_thread(self._output, query)

    def _output(self, query: ReadOutput) -> str:
        text, kept = "", query.kept
        for envelope in () if kept else self._sessions.read(query.session):
            event = envelope.event
            if isinstance(event, CallFinished) and event.call_id == query.call_id:
                text, kept = event.content, whole_output(event)
        try:
            return self._artifacts.get(kept).decode("utf-8", "replace") if kept else text
        except KeyError:
            raise SessionError("the full output is no longer stored") from None

    async def session(self, name: str, last: int) -> SessionPreview:
        return await asyncio.to_thread(self._preview, self._sessions.resolve(name), max(1, min(last, MOST_LINES)))

    def _preview(self, session: str, last: int) -> SessionPreview:
        lines: deque[tuple[str, str]] = deque(maxlen=last)
        for envelope in self._sessions.read(session):
            event = envelope.event
            if isinstance(event, MessageAdded) and not event.child and (said := event.message.text.strip()):
                lines.append((event.message.role, one_line(said, LINE)))
        return SessionPreview(self._sessions.summary(session), tuple(lines))


def _job(view: JobView, tail: str) -> JobRow:
    printed = view.stdout_total + view.stderr_total
    seconds = round(view.seconds, 1)
    return JobRow(view.id, view.command, view.cwd, view.status, seconds, view.exit_code, tail, printed)
