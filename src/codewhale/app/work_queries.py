"""What interfaces look at beside the events of a session: its jobs, its workspace, what differs there, what an undo
would do, and how other sessions ended. Each part is built when it is first looked at."""

import asyncio
import os
from collections import deque
from typing import TYPE_CHECKING

from codewhale.app.container import Services
from codewhale.lib.text import one_line
from codewhale.protocol.blocks import DiffBlock
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import MessageAdded
from codewhale.protocol.views import JobRow, PreviewUndo, SessionPreview, UndoView
from codewhale.services.jobs.job import JobView
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
    def __init__(self, services: Services, sessions: SessionStore) -> None:
        self._services = services
        self._sessions = sessions

    def jobs(self, session: str) -> tuple[JobRow, ...]:
        jobs = self._services.jobs
        rows = [_job(view, jobs.recent(session, view.id)[-TAIL:]) for view in reversed(jobs.jobs(session))]
        rows += [_job(view, "") for view in jobs.stale(session)]
        return tuple(sorted(rows, key=lambda row: row.status != "Running"))

    workspace = staticmethod(workspace_status)

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
            raise SessionError(f"this is not a git repository, and no snapshots show what changed: {error}")
        inside = os.path.normpath(path) if path else ""
        return tuple(one for one in found if not inside or one.path == inside or one.path.startswith(inside + "/"))

    async def undo(self, query: PreviewUndo, workspace: str) -> UndoView:
        undo = self._services.undo
        try:
            turns = await undo.turns(query.session, workspace)
            if not turns:
                return UndoView((), why="No turn of this session changed a file that is not already undone.")
            rows = tuple((number, turn_line(turn)) for number, turn in enumerate(turns[:MOST_TURNS], 1))
            number = max(1, min(query.turns, len(turns)))
            plan = await undo.plan(query.session, workspace, turns[number - 1].since)
            diffs = await self._contents(undo, plan, back=True)
        except SnapshotError as error:
            return UndoView((), why=f"Undo is not available here: {error}.")
        refused = tuple(refusal_lines(plan.refused))
        files = tuple(line for line in plan_lines(plan) if line not in refused)
        return UndoView(rows, files, refused, diffs)

    async def _contents(self, undo: "Undo", plan: "UndoPlan", back: bool) -> tuple[DiffBlock, ...]:
        room, blocks = DIFF_ROOM, []
        for path, now, then in await undo.contents(plan):
            text = unified_diff(path, now, then, room) if back else unified_diff(path, then, now, room)
            room = max(0, room - len(text))
            if text and room:
                blocks.append(DiffBlock(path, text))
        return tuple(blocks)

    async def session(self, name: str, last: int) -> SessionPreview:
        return await asyncio.to_thread(self._preview, self._sessions.resolve(name), max(1, min(last, MOST_LINES)))

    def _preview(self, session: str, last: int) -> SessionPreview:
        lines: deque[tuple[str, str]] = deque(maxlen=last)
        for envelope in self._sessions.read(session):
            event = envelope.event
            if isinstance(event, MessageAdded) and (said := event.message.text.strip()):
                lines.append((event.message.role, one_line(said, LINE)))
        return SessionPreview(self._sessions.summary(session), tuple(lines))


def _job(view: JobView, tail: str) -> JobRow:
    printed = view.stdout_total + view.stderr_total
    seconds = round(view.seconds, 1)
    return JobRow(view.id, view.command, view.cwd, view.status, seconds, view.exit_code, tail, printed)
