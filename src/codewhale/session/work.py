"""What the files of the workspace have been through, by a session's log: how often they were changed, and which
commands have succeeded since the last change."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.lib.patterns import lazy
from codewhale.lib.text import counted, one_line, sanitise
from codewhale.protocol import events
from codewhale.protocol.blocks import TerminalBlock
from codewhale.protocol.events import Event, Passed

RUN_TESTS = "run_tests"
_LINES = ("exec_shell", "task_gate_run", RUN_TESTS)
_CHECK = lazy(r"(?i)\b(py)?tests?\b|\b(check|lint|build|verify|vet|tsc|clippy|mypy|ruff|unittest|tox|nox)\b")
_MOST_CHECKS = 8
_TAIL, _TAIL_LINES = 900, 12


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


def checks_run(log: Iterable[Event]) -> list[str]:
    """A line for each check that was run, oldest first: how it ended last, and whether files were changed since."""
    work, last = WorkState(), dict[str, tuple[str, int]]()

    def end(command: str, how: str) -> None:
        if _CHECK().search(command):
            last.pop(command, None)
            last[command] = (how, work.changes)

    for event in log:
        arguments = work.calls.get(event.call_id) if isinstance(event, events.CallFinished) else None
        before = work.passed
        work.apply(event)
        if work.passed is not before:
            known = len(before) if work.passed[: len(before)] == before else 0
            for one in work.passed[known:]:
                end(one.command, "succeeded")
        if isinstance(event, events.CallFinished) and arguments is not None and event.metadata.get("exit_code"):
            given: dict[str, Any] = msgspec.json.decode(arguments)
            tail = "\n  ".join(sanitise(event.content.strip()[-_TAIL:]).splitlines()[-_TAIL_LINES:])
            code = event.metadata["exit_code"]
            end(str(given.get("command") or event.name), f"FAILED with exit code {code}:\n  {tail}\n ")
    return [_line(*row, work.changes) for row in list(last.items())[-_MOST_CHECKS:]]


def _line(command: str, ended: tuple[str, int], changes: int) -> str:
    how, then = ended
    since = changes - then
    stale = f"stale: files were changed {counted(since, 'time')} since" if since else "nothing changed since"
    return f"- Check `{one_line(command, 200)}` {how} ({stale})"
