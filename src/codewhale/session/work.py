"""What the files of the workspace have been through, by a session's log: how often they were changed, and which
commands have succeeded since the last change."""

from typing import Any

import msgspec
from msgspec import Struct

from codewhale.protocol import events
from codewhale.protocol.blocks import TerminalBlock
from codewhale.protocol.events import Event, Passed

RUN_TESTS = "run_tests"
_LINES = ("exec_shell", "task_gate_run", RUN_TESTS)


class WorkState(Struct):
    """`changes` counts, `told` is their number at the end of the last turn; `passed` has succeeded since the last. Jobs
    and children (with what they brought before) are kept with the number of changes when they began."""

    changes: int = 0
    told: int = 0
    passed: list[Passed] = []
    calls: dict[str, str] = {}
    jobs: dict[str, tuple[events.JobStarted, int]] = {}
    children: dict[str, int] = {}
    brought: dict[str, int] = {}

    def apply(self, event: Event) -> None:
        match event:
            case events.CallStarted(call_id=call, name=name, arguments=arguments) if name in _LINES:
                self.calls[call] = arguments
            case events.CallFinished(call_id=call, metadata=data):
                self._changed(bool(data.get("changed_files")))
                self._finished(event, self.calls.pop(call, None))
            case events.FileChanged() | events.Rewound(files=True):
                self._changed()
            case events.JobStarted(job_id=job):
                self.jobs[job] = (event, self.changes)
            case events.JobEnded(job_id=job, exit_code=code) if job in self.jobs:
                begun, then = self.jobs.pop(job)
                self._pass(*([Passed("exec_shell", begun.command, begun.cwd)] * (code == 0 and then == self.changes)))
            case events.ShellRan(command=command, exit_code=0):
                self._pass(Passed("exec_shell", command))
            case events.ChildOpened(child=child):
                self.children[child] = self.changes
            case events.ChildClosed(child=child, changes=changes, passed=passed):
                # What succeeded for it counts if nobody else has changed anything meanwhile.
                alone = self.children.pop(child, -1) == self.changes
                self._changed(changes > self.brought.get(child, 0))
                self.brought[child] = changes
                self._pass(*(passed if alone else ()))
            case events.TurnFinished():
                self.told = self.changes

    def _changed(self, really: bool = True) -> None:
        self.changes += really
        self.passed = [] if really else self.passed

    def _pass(self, *passed: Passed) -> None:
        self.passed = [*self.passed, *passed][-64:]

    def _finished(self, event: events.CallFinished, arguments: str | None) -> None:
        data = event.metadata
        if arguments is None or not event.ok or data.get("exit_code") != 0 or data.get("backgrounded"):
            return
        given: dict[str, Any] = msgspec.json.decode(arguments)
        shown = [block.command for block in event.display if isinstance(block, TerminalBlock)]
        whole = event.name == RUN_TESTS and not given.get("args")
        command, cwd = str(given.get("command") or "".join(shown[:1])), str(given.get("cwd") or ".")
        self._pass(Passed(RUN_TESTS if whole else "exec_shell", command, cwd, bool(data.get("changed_files"))))
