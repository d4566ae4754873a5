"""A project's own law, constitution.json: what of it a machine can hold, in every mode. It only makes calls narrower.
Its clauses are read in `clauses`; what a clause blocks, a person can let through once."""

import fnmatch
import hashlib
import os
import posixpath
import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from codewhale.permissions.branches import ANY, moved_branches
from codewhale.permissions.clauses import parse_clauses
from codewhale.permissions.constitution_files import constitution_files
from codewhale.permissions.paths import beneath, matches
from codewhale.permissions.rules import RuleFacts, RuleSet, read_permissions
from codewhale.protocol.decisions import BlockingClause, Clause, DecisionRequest, Opinion, Rule
from codewhale.protocol.tools import CommandSubject, PathSubject

_TARGET = re.compile(r"(?:>>?|>\||&>>?)\s*([^\s;|&<>()]+)")
# What takes a folder for all that is in it.
_WHOLE = frozenset("rm mv shred truncate chmod chown rsync git".split())
_FIELDS = {"invariant": "invariant", "branch": "branch policy", "escalation": "escalation rule"}
_MOST_SHOWN = 300


class Constitution:
    """The clauses of one file. `folder` is where the workspace lies below the folder that the law is for, "" for there;
    `notices` name what of the file has no effect."""

    def __init__(self, clauses: tuple[Clause, ...] = (), folder: str = "", notices: tuple[str, ...] = ()) -> None:
        self.clauses = clauses
        self.notices = notices
        self.folder = folder
        self._acting = [
            (clause, RuleSet(rule for rule in clause.rules if not rule.path)) for clause in clauses if clause.action
        ]

    @property
    def rules(self) -> tuple[Rule, ...]:
        return tuple(rule for clause in self.clauses for rule in clause.rules)

    def opinions(self, request: DecisionRequest, view: RuleFacts) -> list[Opinion]:
        """What the law says of a call, one opinion for each clause that holds it. Paths count where the call would
        write them: a command line that only reads writes nothing; of another one, the paths that stand in it."""
        if not self._acting:
            return []
        written = [one for one in request.subjects if isinstance(one, PathSubject) and one.write]
        paths = [(self._placed(path), False) for subject in written for path in view.paths(subject)]
        names = [name for one in request.subjects if isinstance(one, CommandSubject) for name in _names(one, view)]
        root = request.workspace or "/"
        below = [(beneath(posixpath.join(root, where, name), root), whole) for where, name, whole in names]
        paths += [(self._placed(path), whole) for path, whole in below if path]
        moved = self._moved(request, view)
        opinions = []
        for clause, rules in self._acting:
            if what := _touched(clause, paths) or _shared(clause, moved):
                opinions.append(_opinion(clause, f"protects {what}"))
            elif matching := rules.matching(request, view):
                opinions.append(_opinion(clause, f"asks about {matching[0].shown}"))
        return opinions

    def _moved(self, request: DecisionRequest, view: RuleFacts) -> set[str]:
        """The branches that command lines of a call may add commits to."""
        moved = set[str]()
        if any(clause.branches for clause, _ in self._acting):
            for subject in request.subjects:
                if isinstance(subject, CommandSubject) and view.analyse(subject).verdict != "allow":
                    root = os.path.normpath(os.path.join(request.workspace, subject.cwd))
                    moved |= moved_branches(subject.command, view.analyse(subject).commands, root, view.typed)
        return moved

    def _placed(self, path: str) -> str:
        """A path below the workspace as the law names it."""
        return posixpath.normpath(posixpath.join(self.folder, path))


def _names(subject: CommandSubject, view: RuleFacts) -> Iterator[tuple[str, str, bool]]:
    """The words of a command line that may be paths it writes, with the folder it begins in; whether each is taken with
    all that is in it."""
    judged = view.analyse(subject)
    if judged.verdict == "allow":
        return
    yield from ((subject.cwd, path.strip("\"'"), False) for path in _TARGET.findall(subject.command))
    for command in judged.commands:
        whole = command.argv[:1] != () and command.argv[0] in _WHOLE
        for word in (word for word in command.argv[1:] if not word.startswith("-")):
            for folder in dict.fromkeys((subject.cwd, command.where)):
                yield folder, word.rpartition("=")[2].strip("\"'"), whole


def _touched(clause: Clause, paths: list[tuple[str, bool]]) -> str:
    """The first path that a clause protects, "" for none."""
    for path, whole in paths:
        for rule in clause.rules:
            if rule.path and (matches(rule.path, path) or (whole and _holds(path, rule.path))):
                return path
    return ""


def _shared(clause: Clause, moved: set[str]) -> str:
    """The protected branch that would be changed, in words; "" for none."""
    for name in sorted(moved - {ANY}):
        if any(fnmatch.fnmatchcase(name.casefold(), pattern.casefold()) for pattern in clause.branches):
            return f"the branch {name}"
    names = ", ".join(clause.branches) if ANY in moved else ""
    return f"{names}, and it cannot be told which branch this changes" if names else ""


def _holds(folder: str, pattern: str) -> bool:
    fixed = re.split(r"[*?]", pattern.strip("/"), maxsplit=1)[0]
    return "/" in pattern.strip("/") and (folder == "." or fixed.startswith(folder.rstrip("/") + "/"))


def _opinion(clause: Clause, does: str) -> Opinion:
    field = f"{_FIELDS[clause.kind]} {clause.row} of the project's constitution ({clause.id})"
    reason = f"{field} {does}" + (f": {clause.text[:_MOST_SHOWN]}" if clause.text else ".")
    blocking = BlockingClause(clause.id, clause.text or ", ".join(clause.branches)) if clause.action == "deny" else None
    return Opinion(clause.action, clause.rule, reason, clause=blocking)


class FoundLaw(Struct, frozen=True):
    """The law of a workspace, and the file that it was read from (`path` "": none is trusted as it is); `untrusted` are
    nearer files, which hold nothing."""

    law: Constitution = Constitution()
    path: str = ""
    sha256: str = ""
    untrusted: tuple[str, ...] = ()


def read_constitution(workspace: str, trusts: Callable[[str, str], bool]) -> FoundLaw:
    """The nearest law that is trusted as it is. Raises ConfigError for one that cannot be used."""
    untrusted: list[str] = []
    for path, folder in constitution_files(workspace):
        data = read_permissions(path)
        sha256 = "" if data is None else hashlib.sha256(data).hexdigest()
        if data is not None and trusts(path, sha256):
            parsed = parse_clauses(path, data)
            return FoundLaw(Constitution(parsed.clauses, folder, parsed.notices), path, sha256, tuple(untrusted))
        untrusted.append(path)
    return FoundLaw(untrusted=tuple(untrusted))
