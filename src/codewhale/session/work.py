"""What the files of the workspace have been through, by a session's log: how often they were changed, and which
commands have succeeded since the last change."""

from typing import Any

import msgspec
from msgspec import Struct

from codewhale.protocol.blocks import TerminalBlock
from codewhale.protocol.events import (
    CallFinished,
    CallStarted,
    ChildClosed,
    ChildOpened,
    Event,
    FileChanged,
    JobEnded,
    JobStarted,
    Passed,
    Rewound,
    ShellRan,
    TurnFinished,
)

RUN_TESTS = "run_tests"
_LINES = frozenset(("exec_shell", "task_gate_run", RUN_TESTS))
_MOST = 64


class WorkState(Struct):
    """`changes` counts, `told` is their number at the end of the last turn; `passed` has succeeded since the last. What
    began counts with the number of changes that there were then: a job, and the child that brings its own."""

    changes: int = 0
    told: int = 0
    passed: list[Passed] = []
    calls: dict[str, str] = {}
    jobs: dict[str, tuple[JobStarted, int]] = {}
    children: dict[str, int] = {}
    brought: dict[str, int] = {}

    def apply(self, event: Event) -> None:
        match event:
            case CallStarted(call_id=call, name=name, arguments=arguments) if name in _LINES:
                self.calls[call] = arguments
            case CallFinished(call_id=call):
                self._finished(event, self.calls.pop(call, None))
            case FileChanged() | Rewound(files=True):
                self._changed()
            case JobStarted(job_id=job):
                self.jobs[job] = (event, self.changes)
            case JobEnded(job_id=job, exit_code=code):
                begun, then = self.jobs.pop(job, (None, -1))
                if begun is not None and code == 0 and then == self.changes:
                    self._pass(Passed("exec_shell", begun.command, begun.cwd))
            case ShellRan(command=command, exit_code=0):
                self._pass(Passed("exec_shell", command))
            case ChildOpened(child=child):
                self.children[child] = self.changes
            case ChildClosed():
                self._child(event)
            case TurnFinished():
                self.told = self.changes

    def _changed(self) -> None:
        self.changes += 1
        self.passed = []

    def _pass(self, *passed: Passed) -> None:
        self.passed = [*self.passed, *passed][-_MOST:]

    def _finished(self, event: CallFinished, arguments: str | None) -> None:
        """What a command changed itself does not undo that it succeeded, if it was that command alone."""
        changed = bool(event.metadata.get("changed_files"))
        if changed:
            self._changed()
        if arguments is None or not event.ok or event.metadata.get("exit_code") != 0:
            return
        blocks = [block.command for block in event.display if isinstance(block, TerminalBlock)]
        given: dict[str, Any] = msgspec.json.decode(arguments)
        command = blocks[0] if event.name == RUN_TESTS and blocks else str(given.get("command", ""))
        if not event.metadata.get("backgrounded"):
            narrowed = event.name == RUN_TESTS and bool(given.get("args"))
            tool = "exec_shell" if narrowed else event.name
            self._pass(Passed(tool, command, str(given.get("cwd") or "."), changed))

    def _child(self, event: ChildClosed) -> None:
        """What a child changed counts, and what succeeded for it, if nobody else has changed anything meanwhile."""
        alone = self.children.pop(event.child, -1) == self.changes
        if event.changes > self.brought.get(event.child, 0):
            self.brought[event.child] = event.changes
            self._changed()
        if alone:
            self._pass(*event.passed)
