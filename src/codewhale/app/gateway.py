"""The gate as the engine has it, built when the first call is decided, and what policy asks of the machine, each looked
up when a call needs it."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from codewhale.app.settings import NetworkTable, WorkspaceSettings
from codewhale.catalog.lifecycle import ALIASES
from codewhale.protocol.decisions import Decision, DecisionRequest, Opinion
from codewhale.protocol.errors import ToolError
from codewhale.protocol.events import Event, FolderAdded
from codewhale.protocol.ops import Answer
from codewhale.protocol.tools import CommandSubject

if TYPE_CHECKING:
    from codewhale.permissions.policy import SandboxOptions
    from codewhale.permissions.service import PermissionService
    from codewhale.permissions.shell.judge import ShellJudgement
    from codewhale.services.jobs import ShellJobs


class Gateway:
    """The gate of an application, and what its permissions look up. `settings(workspace)` is what is configured,
    `trusts(path, sha256)` says whether a project's file may be used, `sources(workspace)` which paths are
    attached to be read; `jobs()` is None where there are none."""

    def __init__(
        self,
        settings: Callable[[str], WorkspaceSettings],
        tell: Callable[[str, Event], None],
        trusts: Callable[[str, str], bool],
        permissions: "Callable[[], PermissionService]",
        jobs: "Callable[[], ShellJobs | None]",
        sources: Callable[[str], tuple[str, ...]],
    ) -> None:
        self._settings = settings
        self.tell = tell
        self.trusts = trusts
        self.permits = permissions
        self.sources = sources
        self._jobs = jobs

    def decide(self, request: DecisionRequest) -> Decision:
        return self.permits().decide(request)

    def digest(self, request: DecisionRequest, arguments: Mapping[str, object]) -> str:
        return self.permits().digest(request, arguments)

    def answered(self, request: DecisionRequest, decision: Decision, answer: Answer | None) -> FolderAdded | None:
        return self.permits().answered(request, decision, answer)

    def canonical(self, name: str) -> str:
        return ALIASES[name].canonical if name in ALIASES else name

    def disabled(self, workspace: str) -> frozenset[str]:
        return frozenset(self._settings(workspace).tools.disabled)

    def clean(self, text: str, workspace: str) -> str:
        return self._settings(workspace).redactor.text(text)

    def analyse(self, subject: CommandSubject, request: DecisionRequest) -> "ShellJudgement":
        from codewhale.permissions.shell.judge import ShellContext, analyse

        context = ShellContext(
            workspace=request.workspace,
            cwd=os.path.normpath(os.path.join(request.workspace, subject.cwd)),
            home=os.path.expanduser("~"),
            sandbox=self.sandboxed(),
            stdin=subject.stdin,
            folders=request.folders,
        )
        judged = analyse(subject.command, context)
        single = judged.verdict == "ask" and judged.plain and len(judged.commands) == 1
        tests = _tests(judged.commands[0].argv, request.workspace) if single else ""
        return replace(judged, tests=tests) if tests else judged

    def url(self, url: str, request: DecisionRequest) -> Opinion | None:
        from codewhale.permissions.network import judge_url, leak

        judged = judge_url(url)
        if not judged.ok:
            return Opinion("deny", judged.rule, f"{judged.reason}.")
        if self.clean(url, request.workspace) != url:
            return Opinion("ask", "network.secret", "The address contains the value of a secret.")
        carried = leak(url)
        if carried is not None:
            return Opinion("ask", carried.rule, carried.reason)
        return by_host(url, self._settings(request.workspace).network)

    def sandbox_options(self, request: DecisionRequest) -> "SandboxOptions":
        from codewhale.permissions.policy import SandboxOptions
        from codewhale.process.sandbox.homes import can_narrow

        confining = self._settings(request.workspace).sandbox
        narrows = partial(can_narrow, request.workspace)
        return SandboxOptions(confining.network, confining.more, confining.less, narrows)

    def sandboxed(self) -> bool:
        from codewhale.process.confinement import sandbox

        return bool(sandbox().mechanism)

    def job(self, session: str, job: str) -> str | None:
        jobs = self._jobs()
        try:
            return None if jobs is None else jobs.view(session, job).profile
        except KeyError:
            return None

    def unfinished(self, session: str, job: str) -> str:
        jobs = self._jobs()
        try:
            return "" if jobs is None else jobs.unfinished(session, job)
        except KeyError:
            return ""


def by_host(url: str, table: NetworkTable) -> Opinion | None:
    """What the `[network]` table says about an address; None where it may be read."""
    from codewhale.permissions.policy import NETWORK_DEFAULT
    from codewhale.permissions.rules import host_matches, host_of

    said = ((table.deny, "deny"), (table.ask, "ask"), (table.allow, "allow"))
    found = [verdict for hosts, verdict in said if any(host_matches(host, url) for host in hosts)]
    verdict = found[0] if found else table.default
    if verdict == "allow":
        return None
    where = f"[network] {verdict}" if found else f"[network] default = {verdict}"
    rule = f"network.{verdict}" if found else NETWORK_DEFAULT
    return Opinion("deny" if verdict == "deny" else "ask", rule, f"{host_of(url)}: the configuration says `{where}`.")


def _tests(argv: tuple[str, ...], workspace: str) -> str:
    """The first words of a command that runs the project's tests, "" for any other one."""
    from codewhale.permissions.prefixes import running_tests
    from codewhale.services.testruns.runners import foresee

    try:
        runner = foresee(workspace)
    except ToolError:
        return ""
    named = os.path.relpath(runner.argv[0], workspace)
    return running_tests(argv, runner.name, runner.argv[0]) or running_tests(argv, runner.name, named)
