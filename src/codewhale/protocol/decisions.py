"""The question put to policy before a call runs, and its answer."""

from typing import Any, Literal

from msgspec import Struct

from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.scopes import Scope
from codewhale.protocol.tools import Effect, Origin, Subject

Verdict = Literal["allow", "ask", "deny"]
# How a refusal that nobody was there to answer ends: what a model does about it, and nothing that a person needs.
FOR_THE_MODEL = " Go on without it, or end and say so."


class BlockingClause(Struct, frozen=True):
    """A clause of the project's constitution that blocks a call; a person who types its id lets it through once."""

    id: str
    text: str


class Opinion(Struct, frozen=True):
    """What one layer says of a call: its verdict ("" for none), the rule that made it, and the reason for model and
    person. An observer may put other `arguments` in place of the call's, and say `context` below its result. `clause`
    is the one that denies, where a person can let that through."""

    verdict: Verdict | Literal[""]
    rule: str
    reason: str
    arguments: dict[str, Any] | None = None
    context: str = ""
    clause: BlockingClause | None = None


class CallView(Struct, frozen=True):
    """A call about to run, as those who watch calls see it; `workspace` is the absolute root."""

    session: str
    call_id: str
    tool: str
    arguments: dict[str, Any]
    effects: tuple[Effect, ...]
    subjects: tuple[Subject, ...]
    workspace: str
    mode: Mode


class DecisionRequest(Struct, frozen=True):
    """A call about to run: all that policy may look at. `tainted`: the session took in text from `origins` that are
    not trusted. `unseen`: what it will write does not stand in the call. `opinions` are those of hooks; `call` is the
    call's id, "" where none is about to run; `folders` are those beside the workspace that belong to the session,
    `sources` the paths that are attached to be read;
    `scope` is what the session's role and its active skills leave it, `owners` are the sessions that it works for,
    `approved` what those skills pre-approve. `lifted` are the ids of clauses that a person has let through. `server` is
    what brings the tool, "" for our own."""

    tool: str
    effects: tuple[Effect, ...]
    subjects: tuple[Subject, ...]
    mode: Mode
    authority: Authority
    session: str
    tainted: bool = False
    unseen: bool = False
    approval: Approval = Approval.SUGGEST
    workspace: str = ""
    origins: tuple[Origin, ...] = ()
    opinions: tuple[Opinion, ...] = ()
    call: str = ""
    folders: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    scope: Scope | None = None
    owners: tuple[str, ...] = ()
    approved: "tuple[Rule, ...]" = ()
    lifted: tuple[str, ...] = ()
    server: str = ""


class Offer(Struct, frozen=True):
    """The rule that an approval may be remembered as: `tool` may be called where `value`, exactly as it is shown, is
    the command's prefix, the whole command line (`exact`), the path, the host, or (`tool`, value "") always; `tests`
    are the project's tests, by the tool that runs them and by commands that begin with `value`; or the `folder` may be
    added to the session."""

    tool: str
    field: Literal["prefix", "exact", "path", "host", "tool", "tests", "folder"]
    value: str = ""


class Decision(Struct, frozen=True):
    """Policy's answer. `rule` names what decided, `reason` is told to model and person alike. `sandbox` is the launch
    profile that the call must run under, `allowances` what is allowed beyond it, such as "network". `offer` is what an
    approval may be remembered as, None for once only. `held`: it is asked about a call that the sandbox holds, so that
    nobody need be asked (Approval.SANDBOX). `fetches`: with the network, what it prints may be what others wrote.
    `clauses` block it and nothing else denies it; `lifted` are the ids of those that would, and were let through."""

    verdict: Verdict
    rule: str
    reason: str
    sandbox: str = "none"
    allowances: tuple[str, ...] = ()
    offer: Offer | None = None
    held: bool = False
    fetches: bool = False
    clauses: tuple[BlockingClause, ...] = ()
    lifted: tuple[str, ...] = ()


Action = Literal["deny", "ask", "allow", "floor_exception"]
Source = Literal["user", "project", "session", "constitution", "skill"]


class Rule(Struct, frozen=True):
    """One row of the permissions: what it says of calls that every selector it has matches. `tool` is a canonical name,
    or one that ends in `*`; `command` a prefix, `command_exact` a whole line; `path` a pattern below the workspace;
    `host` a name, or with a leading dot all names below it. `cwd` is the folder below the workspace that a command must
    run in ("" for any). `workspace` holds the row to one folder. `source` and `row`
    (from 1) tell where it stands; `reason` is the person's own word."""

    action: Action
    tool: str = ""
    command: str = ""
    command_exact: str = ""
    path: str = ""
    host: str = ""
    cwd: str = ""
    workspace: str = ""
    reason: str = ""
    source: Source = "user"
    row: int = 0

    @property
    def name(self) -> str:
        return f"{'' if self.source == 'constitution' else 'permissions.'}{self.source}.{self.row}"

    @property
    def shown(self) -> str:
        said = self.command or self.command_exact or self.path or self.host
        return " ".join(part for part in (self.tool, said) if part) or "every call"


ClauseKind = Literal["authority", "invariant", "branch", "verification", "escalation"]


class Clause(Struct, frozen=True, omit_defaults=True):
    """One clause; `row` counts from 1 within its field. Held ones have rules, branches, or what must have succeeded
    (a `command`, or the `tool` run_tests) before work counts as verified; `action` is what the others do."""

    id: str
    text: str
    kind: ClauseKind
    row: int
    action: Literal["", "ask", "deny"] = ""
    rules: tuple[Rule, ...] = ()
    branches: tuple[str, ...] = ()
    command: str = ""
    tool: str = ""

    @property
    def held(self) -> bool:
        return bool(self.rules or self.branches or self.command or self.tool)

    @property
    def rule(self) -> str:
        """What a decision by this clause names."""
        return f"constitution.{'' if self.kind == 'invariant' else f'{self.kind}.'}{self.row}"
