"""Typed rules: rows that deny, ask for or allow a call by its tool, command, path or host, and what they say of one."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from codewhale.permissions import prefixes
from codewhale.permissions.paths import beneath, matches
from codewhale.protocol.decisions import DecisionRequest, Opinion, Rule
from codewhale.protocol.tools import CommandSubject, PathSubject, Subject, UrlSubject

if TYPE_CHECKING:
    from codewhale.permissions.shell.judge import ShellJudgement

Analyse = Callable[[CommandSubject], "ShellJudgement"]
Paths = Callable[[PathSubject], Sequence[str]]


class View(Struct, frozen=True):
    """What rules may ask about a call beyond the request itself, worked out only when a rule asks: the analysis of a
    command, and every path below the workspace that a path subject stands for."""

    analyse: Analyse
    paths: Paths


class RuleSet:
    """Rules in the order in which they were written; every one counts."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        """Raises ValueError for a row whose command or path cannot be read, naming the row."""
        self.rules = tuple(rules)
        self._words = {id(rule): _read(rule) for rule in self.rules}

    def __len__(self) -> int:
        return len(self.rules)

    def opinions(self, request: DecisionRequest, view: View) -> list[Opinion]:
        """What the rows say of a call; floor exceptions say nothing here."""
        found = []
        for rule in self.rules:
            if rule.action != "floor_exception" and self._matches(rule, request, view):
                found.append(Opinion(rule.action, rule.name, _reason(rule)))
        return found

    def lifts(self, command: str, request: DecisionRequest) -> Rule | None:
        """The person's row that lifts the floor for exactly this command line."""
        for rule in self.rules:
            lifts = rule.action == "floor_exception" and rule.source == "user" and rule.command_exact == command
            if lifts and _here(rule, request):
                return rule
        return None

    def _matches(self, rule: Rule, request: DecisionRequest, view: View) -> bool:
        if not _of_tool(rule.tool, request.tool) or not _here(rule, request):
            return False
        if not (rule.command or rule.command_exact or rule.path or rule.host):
            return True
        judged = [self._subject(rule, subject, view) for subject in request.subjects]
        return bool(judged) and (all(judged) if rule.action == "allow" else any(judged))

    def _subject(self, rule: Rule, subject: Subject, view: View) -> bool:
        match subject:
            case CommandSubject():
                return not rule.path and not rule.host and self._command(rule, subject, view)
            case PathSubject():
                return bool(rule.path) and not rule.command and not rule.host and _path(rule, view.paths(subject))
            case UrlSubject():
                return bool(rule.host) and not rule.command and not rule.path and _host(rule.host, subject.url)
            case _:
                return False

    def _command(self, rule: Rule, subject: CommandSubject, view: View) -> bool:
        if rule.action == "allow" and subject.stdin:
            return False
        if rule.command_exact:
            return subject.command.strip() == rule.command_exact.strip()
        words, judged = self._words[id(rule)], view.analyse(subject)
        if rule.action == "allow":
            return judged.plain and len(judged.commands) == 1 and prefixes.allows(words, judged.commands[0].argv)
        if not judged.commands:
            return all(word.casefold() in subject.command.casefold() for word in words)
        return any(prefixes.forbids(words, command.argv) for command in judged.commands)


NO_RULES = RuleSet()


def _read(rule: Rule) -> tuple[str, ...]:
    try:
        if rule.path:
            matches(rule.path, ".")
        return prefixes.words(rule.command) if rule.command else ()
    except ValueError as error:
        field = "path" if rule.path else "command"
        raise ValueError(f"row {rule.row}: {field} {getattr(rule, field)!r}: {error}") from None


def _reason(rule: Rule) -> str:
    verb = {"deny": "denies", "ask": "asks about", "allow": "allows"}[rule.action]
    where = f"row {rule.row} of the {rule.source}'s permissions"
    if rule.source == "session":
        where = "this session's answer"
    elif rule.source == "constitution":
        where = f"invariant {rule.row} of the project's constitution"
    return f"{where} {verb} {rule.shown}" + (f": {rule.reason}" if rule.reason else ".")


def _of_tool(pattern: str, tool: str) -> bool:
    if pattern.endswith("*"):
        return tool.startswith(pattern[:-1])
    return not pattern or pattern == tool


def _here(rule: Rule, request: DecisionRequest) -> bool:
    return not rule.workspace or beneath(request.workspace, rule.workspace) is not None


def _path(rule: Rule, paths: Sequence[str]) -> bool:
    judged = [matches(rule.path, path) for path in paths]
    return bool(judged) and (all(judged) if rule.action == "allow" else any(judged))


def _host(pattern: str, url: str) -> bool:
    host = host_of(url)
    wanted = pattern.casefold().rstrip(".")
    return host.endswith(wanted) and host != wanted if wanted.startswith(".") else host == wanted


def host_of(url: str) -> str:
    """The host of an address, lower case and without a trailing dot; "" where it has none."""
    from urllib.parse import urlsplit

    try:
        return (urlsplit(url).hostname or "").casefold().rstrip(".")
    except ValueError:
        return ""
