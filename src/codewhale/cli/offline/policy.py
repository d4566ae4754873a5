"""`codewhale policy check`: what would be decided about command lines, with nobody there to ask and nothing run."""

import os
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.config import home_dir
from codewhale.permissions.constitution import read_constitution
from codewhale.permissions.paths import NOTHING_SPECIAL
from codewhale.permissions.policy import Policy, PolicyInputs, SandboxOptions
from codewhale.permissions.rules import PERMISSIONS_FILE, RuleSet, read_rules
from codewhale.permissions.shell.judge import ShellContext, ShellJudgement, analyse
from codewhale.permissions.trust import TrustStore
from codewhale.process.confinement import sandbox
from codewhale.process.sandbox.homes import can_narrow
from codewhale.protocol.decisions import Decision, DecisionRequest
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.tools import CommandSubject, Effect

TOOL = "exec_shell"


class CheckOptions(Struct, frozen=True):
    """What lines are judged by: mode and approval, a file with more rules ("" for none), and whether the person's own
    count."""

    workspace: str
    mode: Mode = Mode.AGENT
    rules: str = ""
    user_rules: bool = True
    approval: Approval = Approval.SUGGEST


class _Line(Struct, frozen=True):
    id: Any = None
    cmd: str | None = None


class PolicyCheck:
    """Judges command lines as a call of exec_shell in the workspace would be judged."""

    def __init__(self, options: CheckOptions, environ: Mapping[str, str]) -> None:
        """Raises ConfigError for rules that cannot be used."""
        self._options = options
        self._home = environ.get("HOME", "") or os.path.expanduser("~")
        self._held = bool(sandbox().mechanism)
        rules = read_rules(os.path.join(home_dir(environ), PERMISSIONS_FILE)) if options.user_rules else ()
        if options.rules:
            if not os.path.isfile(options.rules):
                raise ConfigError(f"--rules {options.rules}: no such file")
            rules += read_rules(options.rules)
        try:
            made = RuleSet(rules)
        except ValueError as error:
            raise ConfigError(f"--rules {options.rules}: {error}") from None
        law = read_constitution(options.workspace, TrustStore(home_dir(environ)).holds).law
        self._policy = Policy(
            PolicyInputs(
                analyse=self._analyse,
                url=lambda url, request: None,
                paths=lambda subject, request: (),
                special=lambda request: NOTHING_SPECIAL,
                sandboxed=lambda: self._held,
                job=lambda session, job: None,
                sandbox_options=lambda request: SandboxOptions(narrows=lambda: can_narrow(request.workspace)),
            ),
            made,
            law=law.opinions if law.clauses else None,
        )

    def judge(self, command: str) -> Decision:
        """The decision about one line; an ask stays one."""
        subject = CommandSubject(command)
        request = DecisionRequest(
            tool=TOOL,
            effects=(Effect.EXECUTES,),
            subjects=(subject,),
            mode=self._options.mode,
            authority=Authority.HEADLESS,
            session="",
            workspace=self._options.workspace,
            approval=self._options.approval,
        )
        return self._policy.judge(request)

    def line(self, data: bytes) -> dict[str, Any]:
        """The answer to `{"id","cmd"}`. Raises ValueError, in words, for a line that is none."""
        try:
            line = msgspec.json.decode(data, type=_Line)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise ValueError(f"not a JSON object with id and cmd: {error}") from None
        if line.cmd is None:
            raise ValueError("no cmd")
        return {"id": line.id, **told(self.judge(line.cmd))}

    def _analyse(self, subject: CommandSubject, request: DecisionRequest) -> ShellJudgement:
        root = self._options.workspace
        return analyse(subject.command, ShellContext(root, root, self._home, self._held))


def told(decision: Decision) -> dict[str, Any]:
    """A decision as programs read it."""
    return {
        "decision": decision.verdict,
        "rule": decision.rule,
        "reason": decision.reason,
        "sandbox": decision.sandbox,
    }


def checked(lines: Iterator[bytes], check: PolicyCheck) -> Iterator[tuple[dict[str, Any], bool]]:
    """Each line's answer in order, with whether the line could be read."""
    for number, line in enumerate(lines, start=1):
        try:
            yield check.line(line), True
        except ValueError as error:
            yield {"id": None, "line": number, "error": {"code": "bad_line", "message": str(error)}}, False
