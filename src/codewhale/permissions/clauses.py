"""The clauses of a constitution.json, each with an id that a person can type. Some are held by the machine, the others
are for the model to read. An id depends on what the clause says, not on where it stands: no edit elsewhere gives it to
another clause."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from codewhale.lib.bounded import check_nesting
from codewhale.permissions import prefixes
from codewhale.protocol.decisions import Clause, ClauseKind, Rule
from codewhale.protocol.errors import ConfigError

MAX_BYTES = 256 << 10
MOST_ROWS, MOST_PATHS, MOST_TEXT = 500, 200, 500
_ACTIONS: dict[str, Literal["ask", "deny"]] = {"ask": "ask", "block": "deny"}
_ID = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,39}")
_FIELDS = (
    "schema_version", "authority", "protected_invariants", "branch_policy", "verification_policy", "escalate_when",
)  # fmt: skip
_BRANCHES = ("protected", "protected_branches", "branches")
_MEMBERS: dict[ClauseKind, tuple[str, ...]] = {
    "authority": (), "invariant": ("paths", "action"), "branch": ("action", *_BRANCHES),
    "verification": ("command", "tool"), "escalation": ("paths", "commands", "tools"),
}  # fmt: skip


class ParsedLaw(Struct, frozen=True):
    """A file's clauses, and a notice for each field that nothing reads."""

    clauses: tuple[Clause, ...] = ()
    notices: tuple[str, ...] = ()


def parse_clauses(path: str, data: bytes) -> ParsedLaw:
    """Raises ConfigError naming file and field."""
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{path}: is larger than {MAX_BYTES} bytes; a constitution cannot be so large")
    try:
        check_nesting(data)
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    try:
        tree = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: is not valid JSON: {error}") from None
    if not isinstance(tree, dict):
        raise ConfigError(f"{path}: must be a JSON object")
    if tree.get("schema_version", 1) != 1:
        raise ConfigError(f"{path}: schema_version: must be 1")
    return _Reader(path).law(tree)


class _Reader:
    """Reads one file; the entries of a field become clauses in their order."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._notices: list[str] = []
        self._clauses: list[tuple[Clause, bytes]] = []

    def law(self, tree: dict[str, Any]) -> ParsedLaw:
        self._unknown(tree, _FIELDS, "")
        policy = tree.get("verification_policy", {})
        policy = {"before_claiming_done": [policy]} if isinstance(policy, str) else policy
        if not isinstance(policy, dict):
            raise self._wrong("verification_policy", "an object with before_claiming_done, or a text")
        self._unknown(policy, ("before_claiming_done",), "verification_policy.")
        done = policy.get("before_claiming_done", [])
        branches = tree.get("branch_policy", [])
        if isinstance(branches, list) and branches and all(isinstance(one, str) for one in branches):
            branches = {"protected": branches}
        branches = [branches] if branches and isinstance(branches, dict | str) else branches or []
        self._section(tree.get("authority", []), "authority", "authority")
        self._section(tree.get("protected_invariants", []), "protected_invariants", "invariant")
        self._section(branches, "branch_policy", "branch")
        self._section(done, "verification_policy.before_claiming_done", "verification")
        self._section(tree.get("escalate_when", []), "escalate_when", "escalation")
        return ParsedLaw(tuple(_named(self._clauses)), tuple(self._notices))

    def _wrong(self, field: str, expected: str) -> ConfigError:
        return ConfigError(f"{self._path}: {field}: must be {expected}")

    def _unknown(self, entry: Mapping[str, Any], known: Iterable[str], place: str) -> None:
        for name in sorted(entry.keys() - set(known)):
            text = f"{place}{name}"[:120]
            self._notices.append(f"{self._path}: {text}: is not a field of a constitution, so it has no effect")

    def _section(self, rows: object, field: str, kind: ClauseKind) -> None:
        if not isinstance(rows, list) or len(rows) > MOST_ROWS:
            raise self._wrong(field, f"a list of at most {MOST_ROWS}")
        for number, row in enumerate(rows, 1):
            place = f"{field}[{number}]" if kind != "branch" or len(rows) > 1 else field
            entry = {"text": row} if isinstance(row, str) else row
            if not isinstance(entry, dict):
                raise self._wrong(place, "a text or an object")
            self._unknown(entry, ("id", "text", *_MEMBERS[kind]), f"{place}.")
            known = {name: value for name, value in entry.items() if name in ("id", "text", *_MEMBERS[kind])}
            clause = self._clause(known, kind, number, place)
            if clause.text or clause.held:
                self._clauses.append((clause, msgspec.json.encode([kind, entry], order="sorted")))

    def _clause(self, entry: dict[str, Any], kind: ClauseKind, number: int, place: str) -> Clause:
        name, tool, action = entry.get("id", ""), entry.get("tool", ""), entry.get("action", "ask")
        if not isinstance(name, str) or (name and not _ID.fullmatch(name)):
            raise self._wrong(f"{place}.id", "letters, digits, dots and dashes, a letter first, at most 40")
        if tool not in ("", "run_tests"):
            raise self._wrong(f"{place}.tool", '"run_tests"')
        if not isinstance(action, str) or action not in _ACTIONS:
            raise self._wrong(f"{place}.action", f"one of {', '.join(_ACTIONS)}")
        verdict, text = _ACTIONS[action], self._text(entry, "text", place)
        branches = [one for field in _BRANCHES for one in self._list(entry, field, place, "a branch such as main")]
        rules = [Rule(verdict, path=one) for one in self._list(entry, "paths", place, "a pattern such as src/gen/**")]
        for at, one in enumerate(self._list(entry, "commands", place, "the first words of a command"), 1):
            try:
                prefixes.words(one)
            except ValueError as error:
                raise ConfigError(f"{self._path}: {place}.commands[{at}]: {error}") from None
            rules.append(Rule(verdict, command=one))
        rules += [Rule(verdict, tool=one) for one in self._list(entry, "tools", place, "the name of a tool")]
        return Clause(
            id=name,
            text=text,
            kind=kind,
            row=number,
            action=verdict if rules or branches else "",
            rules=tuple(replace(one, reason=text[:MOST_TEXT], source="constitution", row=number) for one in rules),
            branches=tuple(one.removeprefix("refs/heads/") for one in branches),
            command=self._text(entry, "command", place),
            tool=tool,
        )

    def _text(self, entry: Mapping[str, Any], field: str, place: str) -> str:
        text = entry.get(field, "")
        if not isinstance(text, str):
            raise self._wrong(f"{place}.{field}", "a text")
        return " ".join(text.split())[: 4 * MOST_TEXT]

    def _list(self, entry: Mapping[str, Any], field: str, place: str, what: str) -> list[str]:
        rows = entry.get(field, [])
        if not isinstance(rows, list) or len(rows) > MOST_PATHS:
            raise self._wrong(f"{place}.{field}", f"a list of at most {MOST_PATHS}, each {what}")
        for at, row in enumerate(rows, 1):
            if not isinstance(row, str) or not row.strip("/. ") or len(row) > MOST_TEXT or "\0" in row:
                raise self._wrong(f"{place}.{field}[{at}]", what)
        return rows


def _named(clauses: list[tuple[Clause, bytes]]) -> Iterable[Clause]:
    """The clauses with their ids: their own, else the beginning of the hash of what they say, longer where another one
    begins alike, and numbered where another one says the same."""
    hashes = [hashlib.sha256(entry).hexdigest().upper() for _, entry in clauses]
    taken: set[str] = set()
    for (clause, _), digest in zip(clauses, hashes, strict=True):
        rivals = {other for other in hashes if other[:4] == digest[:4]}
        name = clause.id or f"C{digest[: 4 if len(rivals) == 1 else 12]}"
        same = 0 if clause.id else sum(one.partition("-")[0] == name.casefold() for one in taken)
        name += f"-{same + 1}" if same else ""
        if name.casefold() in taken:
            raise ConfigError(f"two clauses of the constitution have the id {name}; give one of them another")
        taken.add(name.casefold())
        yield replace(clause, id=name)
