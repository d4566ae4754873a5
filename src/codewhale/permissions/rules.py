"""Typed rules: rows of permissions.toml that deny, ask for or allow a call, and what they say of one.

A row is a `[[rules]]` table with an action (deny, ask, allow, floor_exception) and what it is about: tool, command (a
prefix) or command_exact, path, host, workspace. `deny = ["git push"]` at the top, and so for the other actions, is
short for rows with that command. Rows are added and removed in place; comments and order stay.
"""

import os
import posixpath
import stat
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, get_args

import msgspec
from msgspec import Struct

from codewhale.lib.files import atomic_write, private_dir
from codewhale.lib.toml import parse_toml
from codewhale.permissions import prefixes
from codewhale.permissions.paths import beneath, matches
from codewhale.protocol.decisions import Action, DecisionRequest, Offer, Opinion, Rule, Source
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.tools import CommandSubject, PathSubject, Subject, UrlSubject

if TYPE_CHECKING:
    from codewhale.permissions.shell.judge import ShellJudgement

Analyse = Callable[[CommandSubject], "ShellJudgement"]
Paths = Callable[[PathSubject], Sequence[str]]


class RuleFacts(Struct, frozen=True):
    """What rules may ask about a call beyond the request itself, worked out only when a rule asks: the analysis of a
    command, and every path below the workspace that a path subject stands for. `typed`: the command lines are for a
    program that runs already."""

    analyse: Analyse
    paths: Paths
    typed: bool = False


class RuleSet:
    """Rules in the order in which they were written; every one counts."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        """Raises ValueError for a row whose command or path cannot be read, naming the row."""
        self.rules = tuple(rules)
        for rule in self.rules:
            _check(rule)

    def __len__(self) -> int:
        return len(self.rules)

    def opinions(self, request: DecisionRequest, view: RuleFacts) -> list[Opinion]:
        """What the rows say of a call; floor exceptions say nothing here."""
        return [
            Opinion(rule.action, rule.name, _reason(rule))
            for rule in self.matching(request, view)
            if rule.action != "floor_exception"
        ]

    def matching(self, request: DecisionRequest, view: RuleFacts) -> list[Rule]:
        """The rows that a call is about."""
        return [rule for rule in self.rules if self._matches(rule, request, view)]

    def lifts(self, command: str, request: DecisionRequest) -> Rule | None:
        """The person's row that lifts the floor for exactly this command line."""
        for rule in self.rules:
            lifts = rule.action == "floor_exception" and rule.source == "user" and rule.command_exact == command
            if lifts and _in_workspace(rule, request):
                return rule
        return None

    def _matches(self, rule: Rule, request: DecisionRequest, view: RuleFacts) -> bool:
        if not _of_tool(rule.tool, request.tool) or not _in_workspace(rule, request):
            return False
        if rule.action == "allow" and request.tool in SENDS and not rule.tool:
            return False
        if not (rule.command or rule.command_exact or rule.path or rule.host):
            return True
        judged = [self._subject(rule, subject, view) for subject in request.subjects]
        return bool(judged) and (all(judged) if rule.action == "allow" else any(judged))

    def _subject(self, rule: Rule, subject: Subject, view: RuleFacts) -> bool:
        match subject:
            case CommandSubject():
                return not rule.path and not rule.host and self._command(rule, subject, view)
            case PathSubject():
                return bool(rule.path) and not rule.command and not rule.host and _path(rule, view.paths(subject))
            case UrlSubject():
                return bool(rule.host) and not rule.command and not rule.path and host_matches(rule.host, subject.url)
            case _:
                return False

    def _command(self, rule: Rule, subject: CommandSubject, view: RuleFacts) -> bool:
        if (rule.action == "allow" and subject.stdin) or (
            rule.cwd and rule.cwd != posixpath.normpath(subject.cwd or ".")
        ):
            return False
        if rule.command_exact:
            return subject.command.strip() == rule.command_exact.strip()
        words, judged = prefixes.words(rule.command), view.analyse(subject)
        if rule.action == "allow":
            return judged.plain and len(judged.commands) == 1 and prefixes.allows(words, judged.commands[0].argv)
        if not judged.commands:
            return all(word.casefold() in subject.command.casefold() for word in words)
        return any(prefixes.forbids(words, command.argv) for command in judged.commands)


NO_RULES = RuleSet()
# The tools that speak to others in the name of the person: a row that allows one names it.
SENDS = frozenset({"github_comment", "github_close_issue", "github_close_pr"})
# The tools that change what runs later: no sandbox of this turn holds that.
QUEUES = frozenset(
    "task_create task_cancel automation_create automation_update automation_pause automation_resume automation_delete "
    "automation_run".split()
)


def _check(rule: Rule) -> None:
    try:
        if rule.path:
            matches(rule.path, ".")
        if rule.command:
            prefixes.words(rule.command)
    except ValueError as error:
        field = "path" if rule.path else "command"
        raise ValueError(f"row {rule.row}: {field} {getattr(rule, field)!r}: {error}") from None


def _reason(rule: Rule) -> str:
    verb = {"deny": "denies", "ask": "asks about", "allow": "allows"}[rule.action]
    where = f"row {rule.row} of the {rule.source}'s permissions"
    if rule.source == "session":
        where = "this session's answer"
    return f"{where} {verb} {rule.shown}" + (f": {rule.reason}" if rule.reason else ".")


def remembered(offer: Offer, request: DecisionRequest, exact: bool) -> list[Rule]:
    """The rows that keep an approval in the workspace; `exact` is for this one line, whatever was offered."""
    asked = next((one for one in request.subjects if isinstance(one, CommandSubject)), None)
    place, tool, value = request.workspace, offer.tool, offer.value
    if asked is not None and (exact or offer.field == "exact"):
        cwd = posixpath.normpath(asked.cwd or ".")
        return [Rule("allow", tool, command_exact=asked.command.strip(), cwd=cwd, workspace=place)]
    if offer.field == "tests":
        rows = [Rule("allow", command=value, workspace=place)] if value else []
        return [*rows, Rule("allow", "run_tests", workspace=place)]
    where = {"command" if offer.field == "prefix" else offer.field: value} if value else {}
    return [Rule("allow", tool, workspace=place, **where)]  # type: ignore[arg-type]


def _of_tool(pattern: str, tool: str) -> bool:
    if pattern.endswith("*"):
        return tool.startswith(pattern[:-1])
    return not pattern or pattern == tool


def _in_workspace(rule: Rule, request: DecisionRequest) -> bool:
    return not rule.workspace or beneath(request.workspace, rule.workspace) is not None


def _path(rule: Rule, paths: Sequence[str]) -> bool:
    judged = [matches(rule.path, path) for path in paths]
    return bool(judged) and (all(judged) if rule.action == "allow" else any(judged))


def host_matches(pattern: str, url: str) -> bool:
    """Whether an address is of this host; `.host` means every host below it."""
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


PERMISSIONS_FILE = "permissions.toml"
MAX_BYTES = 1 << 20
MOST_RULES = 2000
_FIELDS = ("action", "tool", "command", "command_exact", "path", "host", "cwd", "workspace", "reason")
_SELECTORS = ("command", "command_exact", "path", "host")
_ACTIONS = get_args(Action)


def read_rules(path: str, source: Source = "user") -> tuple[Rule, ...]:
    """The rows of a file in order, none where there is no file. Raises ConfigError naming file, row and field; nothing
    of a file with a fault is used."""
    data = read_permissions(path)
    return () if data is None else parse_rules(path, data, source)


def read_permissions(path: str) -> bytes | None:
    """The bytes of a file, None where there is none. Raises ConfigError for one that cannot be read, is no regular
    file, is too large, or could have been written by others."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{path}: is not a regular file")
        if status.st_uid not in (os.geteuid(), 0) or status.st_mode & stat.S_IWOTH:
            raise ConfigError(f"{path}: other users can write it, so it is not used; fix it with chmod go-w")
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path}: is larger than {MAX_BYTES} bytes; permissions cannot be so large")
    return data


def parse_rules(path: str, data: bytes, source: Source) -> tuple[Rule, ...]:
    try:
        tree = parse_toml(data)
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    unknown = [key for key in tree if key != "rules" and key not in _ACTIONS]
    if unknown:
        raise ConfigError(f"{path}: {unknown[0]} is unknown; write [[rules]] tables, or {', '.join(_ACTIONS)}")
    rows = [(f"{action}[{n}]", _short(action, row)) for action in _ACTIONS for n, row in _listed(path, tree, action)]
    rows = [*((f"rules[{n}]", row) for n, row in _listed(path, tree, "rules")), *rows]
    if len(rows) > MOST_RULES:
        raise ConfigError(f"{path}: has {len(rows)} rules; at most {MOST_RULES} are read")
    return tuple(_rule(path, place, row, source, number) for number, (place, row) in enumerate(rows, 1))


def _listed(path: str, tree: dict[str, Any], key: str) -> list[tuple[int, Any]]:
    rows = tree.get(key, [])
    if not isinstance(rows, list):
        raise ConfigError(f"{path}: {key} must be a list: [[{key}]] tables")
    return list(enumerate(rows, 1))


def _short(action: str, row: Any) -> Any:
    if isinstance(row, str):
        return {"action": action, "command_exact" if action == "floor_exception" else "command": row}
    return {**row, "action": action} if isinstance(row, dict) else row


def _rule(path: str, place: str, row: Any, source: Source, number: int) -> Rule:
    fault = _fault(row)
    if fault:
        raise ConfigError(f"{path}: {place}: {fault}")
    if row["action"] == "floor_exception" and "command" in row:
        row = {**{key: value for key, value in row.items() if key != "command"}, "command_exact": row["command"]}
    return Rule(**row, source=source, row=number)


def _fault(row: Any) -> str:
    if not isinstance(row, dict):
        return "must be a table"
    for key, value in row.items():
        if key not in _FIELDS:
            return f"{key} is unknown; known: {', '.join(_FIELDS)}"
        if not isinstance(value, str) or not value or "\0" in value:
            return f"{key} must be text that is not empty"
    action = row.get("action")
    if action not in _ACTIONS:
        return f"action must be one of {', '.join(_ACTIONS)}; it is {action!r}"
    selectors = [key for key in _SELECTORS if key in row]
    if len(selectors) > 1:
        return f"{' and '.join(selectors)} cannot be combined in one row"
    if action == "floor_exception" and (not {"command", "command_exact"} & set(row) or "tool" in row):
        return "a floor_exception needs command, the whole command line, and takes no tool"
    if action == "allow" and not selectors and "tool" not in row:
        return "a row that allows every call is refused; name a tool, command, path or host"
    if "workspace" in row and not os.path.isabs(row["workspace"]):
        return "workspace must be an absolute path"
    return ""


def add_rule(path: str, rule: Rule) -> None:
    """Add a row at the end, unless the same one stands there already. Raises ConfigError, and then nothing has
    changed."""
    if any(_same(rule, other) for other in read_rules(path)):
        return
    document = _document(path)
    import tomlkit

    table = tomlkit.table()
    for field in _FIELDS:
        if getattr(rule, field):
            table[field] = getattr(rule, field)
    rows = document.get("rules")
    if not isinstance(rows, tomlkit.items.AoT):
        if rows:
            raise ConfigError(f"{path}: rules is written as a list of inline tables; write them as [[rules]]")
        document.pop("rules", None)
        rows = tomlkit.aot()
        document.append("rules", rows)
    rows.append(table)
    _write(path, document, read_rules(path), added=rule)


def remove_rule(path: str, row: int) -> Rule:
    """Take the row of this number (from 1, as listed) out; returns it. Raises ConfigError, and then nothing has
    changed."""
    rules = read_rules(path)
    if not 0 < row <= len(rules):
        raise ConfigError(f"{path}: there is no row {row}; it has {len(rules)}")
    document = _document(path)
    at = row - 1
    for key in ("rules", *_ACTIONS):
        rows = document.get(key, [])
        if at < len(rows):
            rows.pop(at)
            break
        at -= len(rows)
    _write(path, document, rules, removed=rules[row - 1])
    return rules[row - 1]


def _document(path: str) -> Any:
    import tomlkit

    return tomlkit.parse((read_permissions(path) or b"").decode("utf-8-sig"))


def _write(
    path: str, document: Any, before: tuple[Rule, ...], *, added: Rule | None = None, removed: Rule | None = None
) -> None:
    """Replace the file, once what would stand there is what was meant."""
    data = document.as_string().encode()
    after = [_bare(rule) for rule in parse_rules(path, data, "user")]
    wanted = [_bare(rule) for rule in before if rule is not removed and rule != removed]
    wanted += [_bare(added)] if added is not None else []
    if sorted(after, key=repr) != sorted(wanted, key=repr):
        raise ConfigError(f"{path}: cannot be changed without changing other rows; edit it by hand")
    try:
        private_dir(os.path.dirname(path))
        atomic_write(path, data, 0o600)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror or error}") from None


def _bare(rule: Rule) -> Rule:
    return msgspec.structs.replace(rule, row=0, source="user")


def _same(one: Rule, other: Rule) -> bool:
    return _bare(one) == _bare(other)
