"""A scripted repairer: finds a fault from test output and repairs it, seeing tool results and nothing else.

It runs the tests, takes file and line from the traceback or the names from the failing line, finds definitions
with grep_files, asks once which lines the failing test runs, then tries inverse repairs one at a time.
"""

import json
import re
from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

from mutations import Site, apply, language_of, repairs
from policy_server import Policy, Turn
from tracers import tracing

Step = Generator[Turn, list[str], str]

CHUNK = 30  # repairs
TIERS = {"one_more": 1, "one_less": 1, "not_removed": 2, "not_removed_inside": 3}


class Place(NamedTuple):
    """Lines `first`..`last` (from 1) of a file, worth looking at."""

    path: str
    first: int
    last: int


class Limits(NamedTuple):
    """How hard to try: repairs attempted, and whether edits are allowed at all."""

    attempts: int = 450
    edits: bool = True


class Repairer:
    """One attempt at one workspace. `play` is the policy; `attempts` counts the repairs tried."""

    def __init__(self, python: bool, limits: Limits) -> None:
        self._python = python
        self._kind = "*.py" if python else "*.js"
        self._limits = limits
        self._files: dict[str, str] = {}
        self.attempts = 0

    def play(self, words: str) -> Policy:
        """The policy: yields turns, is sent tool results; ends with a text."""
        told = yield from self._tests("")
        if passed(told):
            yield Turn("The tests pass already.")
            return
        failing = failing_test(told) if self._python else ""
        tried: set[tuple[str, Site]] = set()
        for path, site in (yield from self._candidates(told, failing)):
            if (path, site) in tried or not self._reads_well(path, site):
                continue
            tried.add((path, site))
            if self.attempts >= self._limits.attempts:
                break
            self.attempts += 1
            repaired = yield from self._try(path, site, failing)
            if repaired:
                yield Turn(f"Repaired {path}: the tests pass.")
                return
        yield Turn(f"I could not repair it in {self.attempts} attempts.")

    def _reads_well(self, path: str, site: Site) -> bool:
        """Whether the file would still be a program; told without a run for Python alone."""
        return not self._python or compiles(apply(self._files[path], site))

    def _call(self, text: str, name: str, **arguments: Any) -> Step:
        told = yield Turn(text, ((name, arguments),))
        return told[0] if told else ""

    def _tests(self, only: str) -> Step:
        if not self._python:
            return (yield from self._call("Run the tests.", "run_tests"))
        return (yield from self._call("Run the tests.", "run_tests", args=f"-x -q --tb=short {only}".strip()))

    def _try(self, path: str, site: Site, failing: str) -> Generator[Turn, list[str], bool]:
        """Make one repair and run the tests; take it back when they still fail."""
        before = self._files[path]
        after = apply(before, site)
        if not (yield from self._edit(path, before, after)):
            return False
        told = yield from self._tests(failing)
        if passed(told) and failing:
            told = yield from self._tests("")
        if passed(told):
            return True
        if not (yield from self._edit(path, after, before)):
            yield from self._read(path)
            return False
        line = before.count("\n", 0, site.start) + 1
        yield from self._call("Back as it was?", "read_file", path=path, start_line=line, max_lines=1)
        return False

    def _edit(self, path: str, before: str, after: str) -> Generator[Turn, list[str], bool]:
        search, replace = unique_edit(before, after)
        told = yield from self._call(
            "Try this." if before == self._files[path] else "No: take it back.",
            "edit_file",
            path=path,
            search=search,
            replace=replace,
        )
        if not re.search(r"^[-+]{3} |^@@ ", told, re.M):
            return False
        self._files[path] = after
        return True

    def _read(self, path: str) -> Step:
        """The whole text of a file, read in pieces; "" when it cannot be read."""
        pieces: list[str] = []
        first = 1
        while first:
            told = yield from self._call(f"Read {path}.", "read_file", path=path, start_line=first, max_lines=400)
            shown = re.findall(r"^ *(\d+)\u2502 ?(.*)$", told, re.M)
            pieces += [text for _, text in shown]
            following = re.search(r'next_start_line="?(\d+)', told)
            first = int(following[1]) if following and shown else 0
        self._files[path] = "\n".join(pieces) + "\n" if pieces else ""
        return self._files[path]

    def _candidates(self, told: str, failing: str) -> Generator[Turn, list[str], Iterator[tuple[str, Site]]]:
        """Repairs to try, the most suspicious lines first."""
        places = [Place(path, line, line) for path, line in reversed(frames(told)) if not is_test(path)]
        if places:
            text = yield from self._read(places[0].path)
            places.insert(1, enclosing(text, places[0]))
        command = tracing(failing or next((path for path, _ in frames(told) if is_test(path)), ""))
        if command:
            traced = yield from self._call("Which lines does it run?", "exec_shell", command=command)
            found = re.findall(r"SUSPECT (\S+) (\d+) (\d+)", output(traced))
            places = [*places[:2], *(Place(path, int(first), int(last)) for path, first, last in found), *places[2:]]
        places += yield from self._definitions(told)
        code = yield from self._call(
            "Which files hold code?", "grep_files", pattern=r"\b(def|function) ", context_lines=0, include=[self._kind]
        )
        whole = [place.path for place in places] + [path for path, _ in definitions(code)]
        places += [Place(path, 1, 10**6) for path in dict.fromkeys(whole)]
        for path in dict.fromkeys(place.path for place in places):
            if path not in self._files:
                yield from self._read(path)
        return self._ordered(places)

    def _ordered(self, places: list[Place]) -> Iterator[tuple[str, Site]]:
        """Repairs by place, as many places at a time as hold a handful of repairs: exchanged words first, then
        numbers, then missing negations, which can stand almost anywhere."""
        found: list[tuple[str, Site]] = []
        for place in [*places, None]:
            found += self._sites(place) if place is not None else []
            if len(found) >= CHUNK or place is None:
                yield from sorted(found, key=lambda row: TIERS.get(row[1].operator, 0))
                found = []

    def _definitions(self, told: str) -> Generator[Turn, list[str], list[Place]]:
        """Bodies of the functions that the failing line names, then of those that these name."""
        shown = yield from self._failing_source(told)
        names, seen, places = names_in(shown + "\n" + failing_lines(told)), set[str](), list[Place]()
        for _ in range(3):
            names = [name for name in names if name not in seen][:40]
            seen.update(names)
            if not names:
                break
            either = "|".join(re.escape(name) for name in names)
            pattern = rf"(def|class|function) +({either})\b|\b({either})['\"\]]* *[:=] *function"
            found = yield from self._call(
                "Where is it defined?", "grep_files", pattern=pattern, context_lines=0, include=[self._kind]
            )
            fresh = []
            for path, line in definitions(found):
                if path not in self._files:
                    yield from self._read(path)
                fresh.append(body(path, self._files[path], line))
            fresh.sort(key=lambda place: position(names, self._files[place.path], place.first))
            places += fresh
            names = names_in("\n".join(text_of(self._files[place.path], place) for place in fresh))
        return places

    def _failing_source(self, told: str) -> Step:
        """The lines of the tests that a traceback passes through."""
        lines = []
        for path, line in frames(told):
            if is_test(path) and not path.startswith("/"):
                text = self._files.get(path) or (yield from self._read(path))
                lines.append(text_of(text, Place(path, line, line)))
        return "\n".join(lines)

    def _sites(self, place: Place) -> Iterator[tuple[str, Site]]:
        text = self._files.get(place.path, "")
        starts = line_starts(text)
        first = starts[min(place.first, len(starts)) - 1]
        last = starts[place.last] if place.last < len(starts) else len(text)
        return ((place.path, site) for site in repairs(text, language_of(place.path)) if first <= site.start < last)


def compiles(text: str) -> bool:
    """Whether a Python text is one."""
    try:
        compile(text, "candidate", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def passed(told: str) -> bool:
    """Whether a run_tests result says that every test passed."""
    try:
        said = json.loads(told)
    except ValueError:
        return bool(re.search(r"exit[_ ]code\W+0\b", told)) and not re.search(r"\bfailed\b", told)
    return isinstance(said, dict) and said.get("exit_code") == 0


def output(told: str) -> str:
    """What the tests printed."""
    try:
        said = json.loads(told)
    except ValueError:
        return told
    return "\n".join(str(said.get(key, "")) for key in ("stdout", "stderr")) if isinstance(said, dict) else told


def frames(told: str) -> list[tuple[str, int]]:
    """(path, line) of each traceback entry inside the workspace, outermost first."""
    found = re.findall(r"^(?:E +)?(?:  File \")?([\w./-]+\.py)(?:\", line |:)(\d+)", output(told), re.M)
    found += reversed(re.findall(r"\((?:file://)?([^\s():]+\.c?js):(\d+):\d+\)", output(told)))
    return [(path.split("/tree/", 1)[-1], int(line)) for path, line in found if "node_modules" not in path]


def failing_test(told: str) -> str:
    """The id of the first failing test; "" when the output names none."""
    found = re.search(r"^(?:FAILED|ERROR) (\S+?)(?: - .*)?$", output(told), re.M)
    return found[1].split("[")[0] if found else ""


def failing_lines(told: str) -> str:
    """The source lines that the output shows as failing, and the failing tests' names."""
    text = output(told)
    shown = re.findall(r"^(?:>|    |E  )\s*(\S.*)$", text, re.M) + re.findall(r"^\s*(assert.*)$", text, re.M)
    named = [name.replace("test_", "") for name in re.findall(r"\btest_\w+", text)]
    return "\n".join([*shown, *named])


def names_in(text: str) -> list[str]:
    """Names that may be functions, in order, called ones first."""
    called = re.findall(r"([A-Za-z_]\w{2,})\(", text)
    stems = [re.sub(r"[A-Z][a-z]+$", "", name) for name in called]
    return [name for name in dict.fromkeys([*called, *stems, *re.findall(r"[A-Za-z_]\w{2,}", text)]) if name]


def is_test(path: str) -> bool:
    """Whether a path belongs to the tests."""
    return bool(re.search(r"(^|/)(tests?/|test_|conftest|_pytest|every-test)|_test\.", path)) or path.startswith("/")


def definitions(found: str) -> list[tuple[str, int]]:
    """(path, line) of each match outside the tests."""
    try:
        rows = json.loads(found)["matches"]
    except (ValueError, KeyError, TypeError):
        return []
    return [(row["file"], row["line_number"]) for row in rows if not is_test(row["file"])]


def body(path: str, text: str, line: int) -> Place:
    """From a definition's line to the last line that is indented deeper."""
    lines = text.splitlines()
    indent = len(lines[line - 1]) - len(lines[line - 1].lstrip()) if line <= len(lines) else 0
    last = line
    for number in range(line, len(lines)):
        stripped = lines[number].strip()
        if stripped and len(lines[number]) - len(lines[number].lstrip()) <= indent and stripped[0] not in ")]}":
            break
        last = number + 1
    return Place(path, line, last)


def enclosing(text: str, place: Place) -> Place:
    """The function around a line, as far as indents tell; the line itself at the top of a file."""
    lines = text.splitlines()
    own = len(lines[place.first - 1]) - len(lines[place.first - 1].lstrip()) if place.first <= len(lines) else 0
    for number in range(min(place.first, len(lines)), 0, -1):
        line = lines[number - 1]
        if re.match(r"\s*(async +)?(def|function|class)\b", line) and len(line) - len(line.lstrip()) < own:
            return body(place.path, text, number)
    return place


def position(names: list[str], text: str, line: int) -> int:
    """Where in the list of names a definition's own name stands."""
    shown = text_of(text, Place("", line, line))
    return next((index for index, name in enumerate(names) if re.search(rf"\b{re.escape(name)}\b", shown)), len(names))


def text_of(text: str, place: Place) -> str:
    """The lines of a place."""
    return "\n".join(text.splitlines()[place.first - 1 : place.last])


def line_starts(text: str) -> list[int]:
    """The offset of each line's first character."""
    return [0, *(match.end() for match in re.finditer("\n", text))]


def unique_edit(before: str, after: str) -> tuple[str, str]:
    """The smallest run of whole lines that differs and stands once in `before`: (search, replace)."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    same = next((index for index, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), 0)
    first, last = same, same + 1
    while before.count("".join(old[first:last])) > 1:
        first, last = max(0, first - 1), min(len(old), last + 1)
    return "".join(old[first:last]), "".join(new[first : last + len(new) - len(old)])
