"""The gate as the engine has it, built when the first call is decided; what policy asks of the machine, each looked up
when a call needs it; and who watches which call."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from codewhale.agent.observers import CallObserver
from codewhale.app.parts import Parts
from codewhale.app.settings import SandboxSettings
from codewhale.app.table import LOOKUPS, WATCHERS, target
from codewhale.catalog.lifecycle import ALIASES
from codewhale.protocol.decisions import CallView, Decision, DecisionRequest, Opinion
from codewhale.protocol.events import Event
from codewhale.protocol.tools import CommandSubject, Effect

if TYPE_CHECKING:
    from codewhale.permissions.service import PermissionService
    from codewhale.session.redaction import Redactor


class Gateway:
    """The gate of an application. Implements the Gate of the engine and the lookups of the permits."""

    def __init__(
        self, parts: Parts, redactor: "Redactor", disabled: frozenset[str], confining: SandboxSettings
    ) -> None:
        self._parts = parts
        self._confining = confining
        self._redactor = redactor
        self.disabled = disabled

    def permits(self) -> "PermissionService":
        """The permits themselves, built when they are first needed."""
        found: PermissionService = self._parts.part("permits")  # type: ignore[assignment]
        return found

    def decide(self, request: DecisionRequest) -> Decision:
        """The decision about a call."""
        return self.permits().decide(request)

    def digest(self, request: DecisionRequest, arguments: Mapping[str, Any]) -> str:
        """What would run, as a hash."""
        return self.permits().digest(request, arguments)

    def answered(self, request: DecisionRequest, decision: Decision, by: str, remember: str = "") -> None:
        """Note an answer, and remember what it says to remember. Raises ConfigError."""
        self.permits().answered(request, decision, by, remember)

    async def forget(self, session: str) -> None:
        """What a session was granted ends with it."""
        if self._parts.built("permits") is not None:
            self.permits().forget(session)

    def canonical(self, name: str) -> str:
        """The name that a tool is decided by, for any of its names."""
        return ALIASES[name].canonical if name in ALIASES else name

    def clean(self, text: str) -> str:
        """Text without secrets."""
        return self._redactor.text(text)

    def tell(self, session: str, event: Event) -> None:
        """Tell the person of a session."""
        listener: Any = self._parts.part("listener")
        listener(session, event)

    def observers(self, call: CallView) -> Sequence[CallObserver]:
        """Who watches a call: hooks where there are any, and innermost what keeps the workspace's former state, where a
        call may change it."""
        hooks = self._parts.built("hooking").at(call.workspace)
        watching = [] if hooks is None else [hooks]
        changes = Effect.WRITES in call.effects or Effect.EXECUTES in call.effects
        changes = changes and call.tool != "revert_turn"
        return [*watching, *(self._parts.part(key) for key in WATCHERS if changes)]

    def analyse(self, subject: CommandSubject, request: DecisionRequest) -> Any:
        """The judgement of a command line where it would run."""
        context = target(LOOKUPS["where"])(
            workspace=request.workspace,
            cwd=os.path.normpath(os.path.join(request.workspace, subject.cwd)),
            home=os.path.expanduser("~"),
            sandbox=self.sandboxed(),
            stdin=subject.stdin,
        )
        return target(LOOKUPS["analyse"])(subject.command, context)

    def url(self, url: str) -> Opinion | None:
        """What is said of an address before it is resolved: refused, or asked about because of what it may carry."""
        judged = target(LOOKUPS["judge_url"])(url)
        if not judged.ok:
            return Opinion("deny", judged.rule, f"{judged.reason}.")
        if self._redactor.text(url) != url:
            return Opinion("ask", "network.secret", "The address holds the value of a secret.")
        carried = target(LOOKUPS["leak"])(url)
        return None if carried is None else Opinion("ask", carried.rule, carried.reason)

    def sandbox_options(self) -> Any:
        """What is configured of the sandbox, its paths absolute."""
        found = self._confining
        return target(LOOKUPS["sandbox_options"])(found.network, found.more, found.less)

    def sandboxed(self) -> bool:
        """Whether a sandbox holds here."""
        return bool(target(LOOKUPS["sandbox"])().mechanism)

    def job(self, session: str, job: str) -> str | None:
        """The profile that a job is held to, None where there is no such job."""
        jobs = self._parts.built("jobs")
        try:
            return None if jobs is None else str(jobs.view(session, job).profile)
        except KeyError:
            return None

    def unfinished(self, session: str, job: str) -> str:
        """The line that a job was typed and that has not ended."""
        jobs = self._parts.built("jobs")
        try:
            return "" if jobs is None else str(jobs.unfinished(session, job))
        except KeyError:
            return ""

    def trusts(self, path: str, sha256: str) -> bool:
        """Whether a project's file with these bytes may be used."""
        trust: Any = self._parts.part("trust")
        return bool(trust.holds(path, sha256))
