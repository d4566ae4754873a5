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
from codewhale.protocol.decisions import Rule
from codewhale.protocol.errors import ConfigError

MAX_BYTES = 256 << 10
MOST_ROWS, MOST_PATHS, MOST_TEXT = 500, 200, 500
Kind = Literal["authority", "invariant", "branch", "verification", "escalation"]
_ACTIONS: dict[object, Literal["ask", "deny"]] = {"ask": "ask", "block": "deny"}
_ID = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,39}")
_FIELDS = (
    "schema_version", "authority", "protected_invariants", "branch_policy", "verification_policy", "escalate_when",
)  # fmt: skip
_BRANCHES = ("protected", "protected_branches", "branches")


class Clause(Struct, frozen=True, omit_defaults=True):
    """One clause; `row` counts from 1 within its field. Held ones have rules, branches, or what must have succeeded
    (a `command`, or the `tool` run_tests) before work counts as verified; `action` is what the others do."""

    id: str
    text: str
    kind: Kind
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

    def law(self, tree: Mapping[str, Any]) -> ParsedLaw:
        self._unknown(tree, _FIELDS, "")
        self._section(tree, "authority", "authority")
        self._section(tree, "protected_invariants", "invariant", "paths", "action")
        self._branches(tree.get("branch_policy", []))
        policy = tree.get("verification_policy", {})
        if isinstance(policy, str):
            policy = {"before_claiming_done": [policy]}
        if not isinstance(policy, dict):
            raise self._wrong("verification_policy", "an object with before_claiming_done, or a text")
        self._unknown(policy, ("before_claiming_done",), "verification_policy.")
        self._section(policy, "before_claiming_done", "verification", "command", "tool", place="verification_policy.")
        self._section(tree, "escalate_when", "escalation", "paths", "commands", "tools")
        return ParsedLaw(tuple(_named(self._clauses)), tuple(self._notices))

    def _wrong(self, field: str, expected: str) -> ConfigError:
        return ConfigError(f"{self._path}: {field}: must be {expected}")

    def _unknown(self, entry: Mapping[str, Any], known: Iterable[str], place: str) -> None:
        for name in sorted(entry.keys() - set(known)):
            text = f"{place}{name}"[:120]
            self._notices.append(f"{self._path}: {text}: is not a field of a constitution, so it has no effect")

    def _section(self, tree: Mapping[str, Any], field: str, kind: Kind, *members: str, place: str = "") -> None:
        rows, name = tree.get(field, []), f"{place}{field}"
        if isinstance(rows, str) and kind != "invariant":
            rows = [rows]
        if not isinstance(rows, list) or len(rows) > MOST_ROWS:
            raise self._wrong(name, f"a list of at most {MOST_ROWS}")
        for number, row in enumerate(rows, 1):
            self._clause(row, kind, number, f"{name}[{number}]", members)

    def _clause(self, row: object, kind: Kind, number: int, place: str, members: tuple[str, ...]) -> None:
        entry = {"text": row} if isinstance(row, str) else row
        if not isinstance(entry, dict):
            raise self._wrong(place, "a text or an object")
        self._unknown(entry, ("id", "text", *members), f"{place}.")
        clause = Clause(self._id(entry, place), self._text(entry, "text", place), kind, number)
        if kind in ("invariant", "escalation"):
            action = self._action(entry, place) if kind == "invariant" else "ask"
            rules = tuple(self._rules(entry, place, action, members))
            rules = tuple(replace(rule, reason=clause.text[:MOST_TEXT], row=number) for rule in rules)
            clause = replace(clause, action=action if rules else "", rules=rules)
        elif kind == "verification":
            command, tool = self._text(entry, "command", place), entry.get("tool", "")
            if tool not in ("", "run_tests"):
                raise self._wrong(f"{place}.tool", '"run_tests"')
            clause = replace(clause, command=command, tool=tool)
        if clause.text or clause.held:
            self._clauses.append((clause, msgspec.json.encode([kind, entry], order="sorted")))

    def _branches(self, policy: object) -> None:
        rows = policy if isinstance(policy, list) else [policy] if policy else []
        if isinstance(policy, list) and policy and all(isinstance(one, str) for one in policy):
            rows = [{"protected": policy}]
        for number, row in enumerate(rows, 1):
            place = f"branch_policy[{number}]" if isinstance(policy, list) else "branch_policy"
            if not isinstance(row, str | dict):
                raise self._wrong(place, "a text, a list of branches, or an object with protected and action")
            entry = {"text": row} if isinstance(row, str) else row
            self._unknown(entry, ("id", "text", "action", *_BRANCHES), f"{place}.")
            names = [name for field in _BRANCHES for name in self._list(entry, field, place, "a branch such as main")]
            names = [name.removeprefix("refs/heads/") for name in names]
            action = self._action(entry, place)
            clause = Clause(self._id(entry, place), self._text(entry, "text", place), "branch", number)
            if names:
                clause = replace(clause, action=action, branches=tuple(names))
            if clause.text or clause.held:
                self._clauses.append((clause, msgspec.json.encode(["branch", entry], order="sorted")))

    def _id(self, entry: Mapping[str, Any], place: str) -> str:
        name = entry.get("id", "")
        if name != "" and (not isinstance(name, str) or not _ID.fullmatch(name)):
            raise self._wrong(f"{place}.id", "letters, digits, dots and dashes, a letter first, at most 40")
        return str(name)

    def _text(self, entry: Mapping[str, Any], field: str, place: str) -> str:
        text = entry.get(field, "")
        if not isinstance(text, str):
            raise self._wrong(f"{place}.{field}", "a text")
        return " ".join(text.split())[: 4 * MOST_TEXT]

    def _action(self, entry: Mapping[str, Any], place: str) -> Literal["ask", "deny"]:
        action = entry.get("action", "ask")
        if not isinstance(action, str) or action not in _ACTIONS:
            raise self._wrong(f"{place}.action", f"one of {', '.join(map(str, _ACTIONS))}")
        return _ACTIONS[action]

    def _list(self, entry: Mapping[str, Any], field: str, place: str, what: str) -> list[str]:
        rows = entry.get(field, [])
        if not isinstance(rows, list) or len(rows) > MOST_PATHS:
            raise self._wrong(f"{place}.{field}", f"a list of at most {MOST_PATHS}, each {what}")
        for at, row in enumerate(rows, 1):
            if not isinstance(row, str) or not row.strip("/. ") or len(row) > MOST_TEXT or "\0" in row:
                raise self._wrong(f"{place}.{field}[{at}]", what)
        return rows

    def _rules(
        self, entry: Mapping[str, Any], place: str, action: Literal["ask", "deny"], members: tuple[str, ...]
    ) -> Iterable[Rule]:
        yield from (
            Rule(action, path=one, source="constitution")
            for one in self._list(entry, "paths", place, "a pattern such as src/generated/**")
        )
        if "commands" not in members:
            return
        for at, one in enumerate(self._list(entry, "commands", place, "the first words of a command"), 1):
            try:
                prefixes.words(one)
            except ValueError as error:
                raise ConfigError(f"{self._path}: {place}.commands[{at}]: {error}") from None
            yield Rule(action, command=one, source="constitution")
        for one in self._list(entry, "tools", place, "the name of a tool"):
            yield Rule(action, tool=one, source="constitution")


def _named(clauses: list[tuple[Clause, bytes]]) -> Iterable[Clause]:
    """The clauses with their ids: their own, else the beginning of the hash of what they say, as long as it needs to be
    to be the only one."""
    own = {clause.id.casefold() for clause, _ in clauses if clause.id}
    hashes = [hashlib.sha256(entry).hexdigest().upper() for _, entry in clauses]
    taken: set[str] = set()
    for (clause, _), digest in zip(clauses, hashes, strict=True):
        name = clause.id
        if not name:
            rivals = {other[:4] for other in hashes if other != digest}
            name = f"C{digest[: 4 if digest[:4] not in rivals and f'c{digest[:4]}'.lower() not in own else 12]}"
            same = sum(1 for one in taken if one.partition("-")[0] == name.casefold())
            name += f"-{same + 1}" if same else ""
        if name.casefold() in taken:
            raise ConfigError(f"two clauses of the constitution have the id {name}; give one of them another")
        taken.add(name.casefold())
        yield replace(clause, id=name)
