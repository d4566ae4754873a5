"""What may run now: the rules of the person, of a trusted project and of the session's answers, put to policy with all
that it asks about the machine; and what an answer is remembered as. One line of the audit log a decision."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import Struct

from codewhale.lib.text import one_line
from codewhale.permissions.audit import AuditLog
from codewhale.permissions.constitution import Constitution, FoundLaw, read_constitution
from codewhale.permissions.constitution_files import constitution_files
from codewhale.permissions.folders import Outside, folder_to_add, granted, outside, real_outside
from codewhale.permissions.paths import Special, beneath
from codewhale.permissions.policy import Policy, PolicyInputs, SandboxOptions
from codewhale.permissions.rules import (
    NO_RULES,
    PERMISSIONS_FILE,
    RuleSet,
    add_rule,
    parse_rules,
    read_permissions,
    read_rules,
    remembered,
    remove_rule,
)
from codewhale.process.command import home_inside
from codewhale.process.itself import own_places, start_folders
from codewhale.process.repository import find_repository, steering
from codewhale.process.sandbox.gitfiles import read_small
from codewhale.process.sandbox.profiles import beneath as within
from codewhale.protocol.decisions import Decision, DecisionRequest, Opinion, Rule
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.events import Event, FolderAdded, Notice
from codewhale.protocol.ops import Answer
from codewhale.protocol.protected import GIT_LAYOUT, is_git_directory
from codewhale.protocol.tools import ChildSubject, CommandSubject, JobSubject, PathSubject, Subject, UrlSubject

if TYPE_CHECKING:
    from codewhale.permissions.shell.judge import ShellJudgement

PROJECT_FILE = os.path.join(".codewhale", PERMISSIONS_FILE)
# How much of the files that a command names is part of what is approved.
MOST_FILES = 32
_MOST_DEPTH = 64
_GIT_NAMES = {name.casefold(): name for name in GIT_LAYOUT}
_WORD = re.compile(r"""[^\s;|&<>()]+""")
_KEPT = (
    "{} is no longer what was trusted. The constitution that was trusted still holds in this process: trust the new "
    "one (codewhale trust add), or revoke the trust (codewhale trust remove)."
)


class Lookups(Protocol):
    """What is asked elsewhere, each only when a call needs it (see PolicyInputs). `disabled` are the tools that are
    switched off in a workspace, `canonical` gives the name that a tool is decided by, `clean` a text
    without secrets, `trusts` tells whether a project's file with these bytes may be used, and `sources` are the paths
    that are attached in a workspace to be read."""

    def disabled(self, workspace: str) -> frozenset[str]: ...
    def canonical(self, name: str) -> str: ...
    def clean(self, text: str, workspace: str) -> str: ...
    def tell(self, session: str, event: Event) -> None: ...
    def analyse(self, subject: CommandSubject, request: DecisionRequest) -> "ShellJudgement": ...
    def url(self, url: str, request: DecisionRequest) -> Opinion | None: ...
    def sandboxed(self) -> bool: ...
    def sandbox_options(self, request: DecisionRequest) -> SandboxOptions: ...
    def job(self, session: str, job: str) -> str | None: ...
    def unfinished(self, session: str, job: str) -> str: ...
    def trusts(self, path: str, sha256: str) -> bool: ...
    def sources(self, workspace: str) -> tuple[str, ...]: ...


class _Read(Struct, frozen=True):
    """A file of rules as it was read: how it stood then, and its rows."""

    stamp: tuple[tuple[int, ...], ...]
    rules: tuple[Rule, ...]


class PermissionService:
    """The gate of every session of this process."""

    def __init__(self, home: str, lookups: Lookups, audit: AuditLog) -> None:
        self.path = os.path.join(os.path.realpath(home), PERMISSIONS_FILE)
        self._trust = os.path.join(os.path.realpath(home), "trust.json")
        self._lookups = lookups
        self._audit = audit
        self._files: dict[str, _Read] = {}
        self._grants: dict[str, RuleSet] = {}
        self._laws: dict[str, tuple[object, FoundLaw, list[str]]] = {}
        self._told: set[str] = set()
        self._inputs = PolicyInputs(
            analyse=lookups.analyse,
            url=lookups.url,
            paths=_names,
            special=lambda request: _special(request, os.path.dirname(self.path)),
            sandboxed=lookups.sandboxed,
            job=lookups.job,
            unfinished=lookups.unfinished,
            sandbox_options=lookups.sandbox_options,
        )

    def decide(self, request: DecisionRequest) -> Decision:
        """The decision about a call; for one that is about to run it is a line of the audit log."""
        request = self._with_folders(request)
        policy = self._policy(request.session, request.workspace)
        decision = policy.decide(request, self._granted(request))
        if request.call:
            self._note("decision", request, decision, verdict=decision.verdict, sandbox=decision.sandbox)
        return decision

    def judge(self, request: DecisionRequest) -> Decision:
        """What the rules say, whoever is there: an ask stays one."""
        return self._policy(request.session, request.workspace).judge(
            self._with_folders(request), self._granted(request)
        )

    def digest(self, request: DecisionRequest, arguments: Mapping[str, object]) -> str:
        """What would run, as a hash: the tool, its arguments, and the bytes of the workspace files that a command
        names. It is compared once it was approved."""
        call = msgspec.json.encode([request.tool, request.subjects, arguments], order="sorted")
        seen = hashlib.sha256(call)
        for path in self._named(request):
            seen.update(_bytes(path))
        return seen.hexdigest()

    def _granted(self, request: DecisionRequest) -> RuleSet:
        """What was allowed for the session, and for those that it works for, and what its active skills pre-approve."""
        if not (request.owners or request.approved):
            return self._grants.get(request.session, NO_RULES)
        sessions = (*request.owners, request.session)
        granted = [rule for session in sessions for rule in self._grants.get(session, NO_RULES).rules]
        return RuleSet((*granted, *request.approved))

    def answered(self, request: DecisionRequest, decision: Decision, answer: Answer | None) -> FolderAdded | None:
        """Keep what was answered (None is a no): a line of the audit log, and the rules that the approval offered; a
        folder that it offered is for the session's log. Raises ConfigError when that cannot be done."""
        remember, changed = ("", "") if answer is None else (answer.remember, answer.command)
        verdict = "denied" if answer is None else "changed" if changed else "allowed"
        clauses = " ".join((*(clause.id for clause in decision.clauses), *decision.lifted))
        more = {"clauses": clauses} if clauses else {}
        self._note("approval", request, decision, answer=verdict, remember=remember, **more)
        if answer is None or remember not in ("session", "always") or decision.offer is None or changed:
            return None
        if decision.offer.field == "folder":
            return folder_to_add(decision.offer.value, request.workspace, os.path.dirname(self.path))
        for rule in remembered(decision.offer, request, answer.exact):
            if remember == "always":
                self.add(rule)
                continue
            rules = self._grants.get(request.session, NO_RULES).rules
            kept = msgspec.structs.replace(rule, source="session", row=len(rules) + 1)
            self._grants[request.session] = RuleSet((*rules, kept))
        return None

    def rules(self, session: str, workspace: str) -> tuple[Rule, ...]:
        """Every rule that counts for a session, in the order in which it was written."""
        files = (*self._user(session).rules, *self._project(session, workspace).rules)
        files += self.law(session, workspace).rules
        return (*files, *self._grants.get(session, NO_RULES).rules)

    def add(self, rule: Rule) -> None:
        """Save a row in the person's permissions. Raises ConfigError."""
        try:
            RuleSet((rule,))
        except ValueError as error:
            raise ConfigError(str(error)) from None
        add_rule(self.path, rule)

    def remove(self, row: int) -> Rule:
        """Take a row of the person's permissions out. Raises ConfigError."""
        return remove_rule(self.path, row)

    def forget(self, session: str) -> None:
        self._grants.pop(session, None)

    def liftable(self, workspace: str, names: Iterable[str]) -> list[str]:
        """The ids of blocking clauses of a workspace's constitution, by name. Raises ConfigError for a name that is
        none's."""
        clauses = self.law("", os.path.realpath(workspace)).clauses
        blocking = {clause.id.casefold(): clause.id for clause in clauses if clause.action == "deny"}
        for name in names:
            if name.casefold() not in blocking:
                known = (
                    f"those that block are {', '.join(blocking.values())}" if blocking else "none blocks anything here"
                )
                raise ConfigError(f"no clause {name[:80]!r} of a trusted constitution blocks a call; {known}")
        return [blocking[name.casefold()] for name in names]

    def check(self) -> None:
        """Raises ConfigError when the person's permissions cannot be used."""
        RuleSet(self._canonical(read_rules(self.path)))

    def _with_folders(self, request: DecisionRequest) -> DecisionRequest:
        """The request with the folders that the configuration opens to commands beside those of its session, and with
        what is attached to be read."""
        own = granted(self._lookups.sandbox_options(request).more) if request.subjects else ()
        folders = (*request.folders, *(os.path.realpath(folder) for folder in own))
        sources = self._lookups.sources(request.workspace) if request.subjects else ()
        return msgspec.structs.replace(request, folders=folders, sources=sources) if own or sources else request

    def _outside(self, subject: PathSubject, request: DecisionRequest) -> Outside | None:
        return outside(subject, request, os.path.dirname(self.path))

    # ------------------------------------------------------------------ rules

    def _policy(self, session: str, workspace: str) -> Policy:
        rules = RuleSet((*self._user(session).rules, *self._project(session, workspace).rules))
        law = self.law(session, workspace)
        held = law.opinions if law.clauses else None
        return Policy(self._inputs, rules, self._lookups.disabled(workspace), held, self._outside)

    def _user(self, session: str) -> _Read:
        return self._file(session, (self.path,), lambda data: parse_rules(self.path, data, "user"))

    def _project(self, session: str, workspace: str) -> _Read:
        path = os.path.join(workspace, PROJECT_FILE)
        places = (path, self._trust)
        return self._file(session, places, lambda data: self._of_project(session, os.path.realpath(workspace), data))

    def _of_project(self, session: str, workspace: str, data: bytes) -> tuple[Rule, ...]:
        """The rows by which a trusted project makes things narrower."""
        path = os.path.join(workspace, PROJECT_FILE)
        if not self._lookups.trusts(path, hashlib.sha256(data).hexdigest()):
            self._tell(session, f"{path} is ignored: not trusted (codewhale trust add)")
            return ()
        rules = parse_rules(path, data, "project")
        kept = tuple(rule for rule in rules if rule.action in ("deny", "ask"))
        if len(kept) < len(rules):
            self._tell(session, f"{path}: a project can only restrict; its allow rows are ignored")
        return kept

    def law(self, session: str, workspace: str) -> Constitution:
        """The project's constitution, where it is trusted as it is. One that is changed or taken away, not by a person
        who revoked its trust, goes on to hold as it was in this process."""
        if not workspace:
            return Constitution()
        stamp = [(path, _stamp(path)) for path, _ in constitution_files(workspace)], _stamp(self._trust)
        before, former, problems = self._laws.get(workspace, (None, FoundLaw(), list[str]()))
        if before == stamp:
            for text in problems if session else ():
                self._tell(session, text)
            return former.law
        try:
            found = read_constitution(workspace, self._lookups.trusts)
            problems = [f"{path} is ignored: not trusted (codewhale trust add)" for path in found.untrusted]
        except ConfigError as error:
            found, problems = FoundLaw(), [f"the project's constitution is ignored: {error}"]
        if former.path and _lost(former) and self._lookups.trusts(former.path, former.sha256):
            found, problems = former, [_KEPT.format(former.path)]
        elif found.path:
            clauses = (msgspec.structs.replace(one, rules=self._canonical(one.rules)) for one in found.law.clauses)
            law = Constitution(tuple(clauses), found.law.folder, found.law.notices)
            found = msgspec.structs.replace(found, law=law)
        self._laws[workspace] = stamp, found, [*problems, *found.law.notices]
        return self.law(session, workspace)

    def _file(self, session: str, places: tuple[str, ...], parse: Callable[[bytes], tuple[Rule, ...]]) -> _Read:
        """The rows of the first of `places`, read anew when one of them has changed. A file that cannot be used leaves
        what held before, and denies everything where nothing did."""
        stamp = tuple(_stamp(place) for place in places)
        kept = self._files.get(places[0])
        if kept is not None and kept.stamp == stamp:
            return kept
        try:
            data = read_permissions(places[0])
            rules = self._canonical(() if data is None else parse(data))
            RuleSet(rules)
        except (ConfigError, ValueError) as error:
            self._tell(session, f"permissions cannot be read; the previous ones still apply: {error}")
            rules = (Rule("deny", reason=str(error)),) if kept is None else kept.rules
        self._files[places[0]] = _Read(stamp, rules)
        return self._files[places[0]]

    def _canonical(self, rules: tuple[Rule, ...]) -> tuple[Rule, ...]:
        name = self._lookups.canonical
        return tuple(msgspec.structs.replace(rule, tool=name(rule.tool)) if rule.tool else rule for rule in rules)

    def _tell(self, session: str, text: str) -> None:
        if session and text not in self._told:
            self._told.add(text)
            self._lookups.tell(session, Notice("warning", text, "permissions"))

    def _note(self, event: str, request: DecisionRequest, decision: Decision, **more: str) -> None:
        about = " ".join(_shown(subject) for subject in request.subjects)
        self._audit.add(
            event,
            session=request.session,
            call=request.call,
            tool=request.tool,
            mode=request.mode.value,
            authority=request.authority.value,
            rule=decision.rule,
            about=one_line(self._lookups.clean(about, request.workspace), 300) if about else "",
            **more,
        )

    def _named(self, request: DecisionRequest) -> list[str]:
        """The files that the commands of a call name, relative to where they run."""
        paths = []
        for subject in request.subjects:
            if isinstance(subject, CommandSubject):
                where = os.path.join(request.workspace, subject.cwd)
                words = _WORD.findall(f"{subject.command}\n{subject.stdin}")
                paths += [os.path.join(where, word.strip("\"'")) for word in words]
        return paths[:MOST_FILES]


def _lost(law: FoundLaw) -> bool:
    """Whether a constitution is no longer what it was when it was read."""
    try:
        data = read_permissions(law.path)
    except ConfigError:
        return True
    return data is None or hashlib.sha256(data).hexdigest() != law.sha256


def _names(subject: PathSubject, request: DecisionRequest) -> Sequence[str]:
    """The paths below the workspace that a path stands for: as it is named, and as it really is. Of one outside it,
    where it really is, from the added folder that it lies in or from the top of the machine."""
    if elsewhere := real_outside(subject.path, request.workspace):
        root = next((one for one in sorted(request.folders, key=len, reverse=True) if within(elsewhere, one)), "/")
        below = beneath(elsewhere, root)
        return (below,) if below is not None else ()
    named = beneath(subject.path, request.workspace)
    try:
        root = os.path.realpath(request.workspace)
        real = beneath(os.path.realpath(os.path.join(root, subject.path)), root)
    except (OSError, ValueError):
        real = None  # no path of this system; its tool says so
    return tuple(dict.fromkeys(path for path in (named, real) if path is not None))


def _special(request: DecisionRequest, state: str) -> Special:
    """What is special below the workspace of a call that writes; `state` is the folder of our own settings."""
    root = os.path.realpath(request.workspace)
    included, hooks = steering(root)
    git = (*_git_folders(root), *included, state)
    return Special(
        (*_below(git, root), *_layouts(request, root)),
        _below(hooks, root),
        home_inside(root),
        tuple(beneath(place, root) or "." for place in own_places(root)),
        _below(filter(None, os.environ.get("PATH", "").split(os.pathsep)), root),
        tuple(beneath(place, root) or "." for place in start_folders(root)),
    )


def _below(paths: Iterable[str], root: str) -> tuple[str, ...]:
    inside = (beneath(os.path.realpath(path), root) for path in paths)
    return tuple(dict.fromkeys(path for path in inside if path is not None and path != "."))


def _git_folders(root: str) -> tuple[str, ...]:
    repository = find_repository(root)
    return () if repository is None else (repository.gitdir, repository.common)


def _layouts(request: DecisionRequest, root: str) -> Iterator[str]:
    """What git reads in each folder that the call would write in and that is a git directory then, whatever its name:
    git takes one for a repository as soon as somebody stands in it."""
    written = [_names(one, request) for one in request.subjects if isinstance(one, PathSubject) and one.write]
    added: dict[str, set[str]] = {}
    for name in {name for names in written for name in names}:
        parts = name.split("/")
        for depth, part in enumerate(parts[:_MOST_DEPTH]):
            added.setdefault("/".join(parts[:depth]), set()).add(_GIT_NAMES.get(part.casefold(), part))
    for folder, names in added.items():
        place = os.path.join(root, folder)
        if is_git_directory({*names, *(name for name in GIT_LAYOUT if _exists(place, name))}):
            yield from (f"{folder}/{name}".lstrip("/") for name in GIT_LAYOUT)


def _exists(place: str, name: str) -> bool:
    try:
        return os.path.lexists(os.path.join(place, name))
    except ValueError:
        return False


def _stamp(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ()
    return (status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode, status.st_uid)


def _bytes(path: str) -> bytes:
    """What a file holds, or for a large one how it stands; nothing for what is no file."""
    data = read_small(path)
    return repr(_stamp(path)).encode() if data is None else data


def _shown(subject: Subject) -> str:
    match subject:
        case CommandSubject(command=command, stdin=stdin):
            return f"{command} <<< {stdin}" if stdin else command
        case PathSubject(path=path):
            return path
        case UrlSubject(url=url):
            return url
        case JobSubject(id=job):
            return job
        case ChildSubject(role=role, objective=objective):
            return f"{role}: {objective}"
