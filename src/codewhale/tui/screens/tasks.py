"""Durable tasks and automations of the home: how each stands, its history, going on with one, the end of one."""

from collections.abc import Sequence
from typing import Any, ClassVar

from codewhale.display.text import flat, safe_lines
from codewhale.protocol.automations import AutomationBoard, AutomationView, ListAutomations, SwitchAutomation
from codewhale.protocol.tasks import CancelTask, GetTask, ListTasks, ResumeTask, TaskBoard, TaskRecord, TaskView
from codewhale.tui.rows import Item
from codewhale.tui.screens.context import ScreenContext
from codewhale.tui.screens.frame import Frame
from codewhale.tui.screens.jobs import JobsCentre
from codewhale.tui.status import seconds_text

_MARKS = {
    "queued": ("○", "muted"),
    "running": ("●", "success"),
    "waiting": ("○", "muted"),
    "interrupted": ("■", "warning"),
    "completed": ("✓", "muted"),
    "failed": ("✗", "error"),
    "cancelled": ("■", "muted"),
    "active": ("◷", "accent"),
    "paused": ("◷", "muted"),
}
_GOES_ON = ("interrupted", "failed", "cancelled", "paused")
MOST = 100


class TasksCentre(JobsCentre):
    """Tasks and automations above, the history of the one at hand below."""

    PANEL = "tasks"
    EVENTS: ClassVar[tuple[type, ...]] = ()
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("jobs.output", "tasks.history"),
        ("jobs.write", "tasks.resume"),
        ("jobs.stop", "tasks.stop"),
        ("jobs.close", "frame.close"),
    )

    def __init__(self, context: ScreenContext, argument: str = "") -> None:
        super().__init__(context, argument)
        self._notice = ""

    async def load(self) -> bool:
        """Get the rows again, and say what holds of them all where nothing else is said."""
        good = await super().load()
        if good and self._notice and not self.said:
            self.say(self._notice, "warning")
        return good

    async def rows(self) -> Sequence[Item] | None:
        board: TaskBoard | None = await self.ask(self.context.query(ListTasks(MOST)))
        clock: AutomationBoard | None = await self.ask(self.context.query(ListAutomations(MOST)))
        if board is None or clock is None:
            return None
        self._notice = flat(board.notice or clock.notice, 300)
        return [*map(self._of_task, board.tasks), *map(self._of_automation, clock.automations)]

    def _of_task(self, view: TaskView) -> Item:
        mark, tone = _MARKS[view.status]
        lasted = seconds_text(view.duration_ms / 1000) if view.duration_ms else ""
        said = (self.words(f"tasks.state_{view.status}"), lasted, flat(view.error, 120), flat(view.id, 30))
        return Item(view.id, flat(view.prompt, 200), " · ".join(filter(None, said)), "", mark, tone, value=view)

    def _of_automation(self, view: AutomationView) -> Item:
        mark, tone = _MARKS[view.status]
        following = self.words("tasks.next", at=flat(view.next_run_at[:16].replace("T", " "), 30))
        missed = self.words("tasks.missed", n=view.missed) if view.missed else ""
        said = (
            self.words(f"tasks.state_{view.status}"),
            following if view.next_run_at else "",
            missed,
            flat(view.id, 30),
        )
        return Item(view.id, flat(view.name, 100), " · ".join(filter(None, said)), "", mark, tone, value=view)

    def runs(self, row: Any) -> bool:
        return row.status in ("queued", "running", "waiting", "active")

    def writable(self, row: Any) -> bool:
        return False

    def called(self, row: Any) -> str:
        return str(row.id)

    # -------------------------------------------------------------- keys

    def action_write(self) -> None:
        """Let the one at hand go on."""
        row = self.job
        if row is not None and row.status in _GOES_ON:
            self.work(lambda: self._go_on(row), "act")
        else:
            self.say(self.words("tasks.takes_none"))

    async def _go_on(self, row: Any) -> None:
        done = await self.ask(self.context.submit(_resumed(row)))
        await self._tell_done(done, "tasks.resumed", row)

    async def end(self, row: Any) -> None:
        op = SwitchAutomation(row.id, paused=True) if isinstance(row, AutomationView) else CancelTask(row.id)
        done = await self.ask(self.context.submit(op))
        await self._tell_done(done, "tasks.paused" if isinstance(row, AutomationView) else "tasks.stopped", row)

    async def _tell_done(self, done: Any, word: str, row: Any) -> None:
        if done is not None:
            await self.load()
            self.say(self.words(word, name=flat(row.id, 40)))

    def action_end_input(self) -> None:
        """Nothing is written to a task."""

    # -------------------------------------------------------------- the one at hand

    def show_at_hand(self) -> None:
        row = self.job
        if row is None:
            self.show_output(("", ""), ())
        elif isinstance(row, AutomationView):
            self._show(row.id, self._rule(row))
        else:
            self.work(lambda: self._history(row), "follow")

    async def _history(self, row: TaskView) -> None:
        record: TaskRecord | None = await self.ask(self.context.query(GetTask(row.id)))
        if record is not None and self._at() == row.id:
            self._show(row.id, self._told(record))

    def _show(self, key: str, lines: list[str]) -> None:
        shown = (key, "\n".join(lines))
        if shown != self._shown:
            self.show_output(shown, safe_lines(shown[1]))

    def _told(self, record: TaskRecord) -> list[str]:
        task = record.task
        lines = [task.prompt[:2000], f"{task.workspace} · {task.mode} · {task.model}", ""]
        for gate in record.updates.get("gate", ()):
            if isinstance(gate, dict):
                status = self._ours("gate", str(gate.get("status")))
                lines.append(f"{gate.get('gate')} {status}: {str(gate.get('command'))[:300]}")
        lines += [f"{line.at[11:19]}  {self._ours('line', line.kind)}  {line.text}" for line in record.timeline]
        lines += [self.words("tasks.unfinished", what=what) for what in task.unfinished]
        return [*lines, "", task.answer] if task.answer else lines

    def _ours(self, what: str, name: str) -> str:
        """What a name of ours is called; one that is not ours stands."""
        try:
            return self.words(f"tasks.{what}_{name}")
        except KeyError:
            return name

    def _rule(self, view: AutomationView) -> list[str]:
        unasked = self.words("tasks.unasked" if view.auto_approve else "tasks.asked")
        return [
            view.prompt[:2000],
            f"{view.rrule} · {view.timezone}",
            f"{view.workspace} · {view.mode} · {unasked}",
            view.note,
        ]


def _resumed(row: Any) -> Any:
    return SwitchAutomation(row.id, paused=False) if isinstance(row, AutomationView) else ResumeTask(row.id)


SCREENS: dict[str, type[Frame]] = {"tasks": TasksCentre}
