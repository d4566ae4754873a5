"""A project's own law: rows of its constitution that hold writing to paths, in every mode. It only makes things
narrower: a row asks or denies, and never allows."""

import posixpath
import re
from collections.abc import Iterator

from msgspec.structs import replace

from codewhale.permissions.paths import beneath, matches
from codewhale.permissions.rules import NO_RULES, RuleSet, View
from codewhale.protocol.decisions import DecisionRequest, Opinion, Rule
from codewhale.protocol.tools import CommandSubject, PathSubject

_TARGET = re.compile(r"(?:>>?|>\||&>>?)\s*([^\s;|&<>()]+)")
# What takes a folder for all that is in it.
_WHOLE = frozenset("rm mv shred truncate chmod chown rsync git".split())


class Constitution:
    """The rows of one file. `folder` is where the workspace lies below the folder that the law is for, "" for there."""

    def __init__(self, rules: tuple[Rule, ...] = (), folder: str = "") -> None:
        self.rules = rules
        self._set = RuleSet(rules) if rules else NO_RULES
        self._folder = folder

    def opinion(self, request: DecisionRequest, view: View) -> Opinion | None:
        """What the law says of a call: the strictest of the rows whose paths it would write; None for nothing. A
        command line that only reads writes nothing; of another one, the paths that stand in it count."""
        if not self.rules:
            return None
        written = tuple(one for one in request.subjects if isinstance(one, PathSubject) and one.write)
        said = []
        if written:
            seen = View(view.analyse, lambda subject: [self._placed(path) for path in view.paths(subject)])
            said += self._set.opinions(replace(request, subjects=written), seen)
        for subject in request.subjects:
            if isinstance(subject, CommandSubject):
                said += self._command(subject, request, view)
        return min(said, key=lambda opinion: opinion.verdict != "deny", default=None)

    def _command(self, subject: CommandSubject, request: DecisionRequest, view: View) -> Iterator[Opinion]:
        judged = view.analyse(subject)
        if judged.verdict == "allow":
            return
        where = posixpath.join(request.workspace or "/", subject.cwd)
        names = [(path, False) for path in _TARGET.findall(subject.command)]
        for command in judged.commands:
            whole = command.argv[:1] != () and command.argv[0] in _WHOLE
            names += [(word.rpartition("=")[2], whole) for word in command.argv[1:] if not word.startswith("-")]
        for name, whole in names:
            path = beneath(posixpath.join(where, name.strip("\"'")), request.workspace or "/")
            if path is not None:
                yield from (
                    Opinion(rule.action, rule.name, _reason(rule, path))  # type: ignore[arg-type]
                    for rule in self.rules
                    if matches(rule.path, self._placed(path)) or (whole and _holds(self._placed(path), rule.path))
                )

    def _placed(self, path: str) -> str:
        """A path below the workspace as the law names it."""
        return posixpath.normpath(posixpath.join(self._folder, path))


def _holds(folder: str, pattern: str) -> bool:
    """Whether what a pattern begins with lies in a folder."""
    fixed = re.split(r"[*?]", pattern.strip("/"), maxsplit=1)[0]
    return "/" in pattern.strip("/") and (folder == "." or fixed.startswith(folder.rstrip("/") + "/"))


def _reason(rule: Rule, path: str) -> str:
    return f"invariant {rule.row} of the project's constitution holds {path}" + (
        f": {rule.reason}" if rule.reason else "."
    )
