"""The memory of the original in an older home: planned first, copied once when a person asks for it, never changed."""

import os
import re
import stat
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from codewhale.lib.bounded import read_regular
from codewhale.lib.clock import rfc3339
from codewhale.lib.text import counted, told_line
from codewhale.lib.toml import parse_toml
from codewhale.memory.lines import LONGEST_FACT, parse_line, text_id
from codewhale.memory.model import Fact, FactScope
from codewhale.memory.orders import orders_in
from codewhale.process.rowfile import RowFile
from codewhale.protocol.errors import ConfigError

LIMIT = 100 << 10  # the original sent no more
TAKEN = "taken-over.json"
_MOST_FOLDERS = 500
_OWN = re.compile(r"(?:global|workspace/[^/]+)/MEMORY\.md")
_ITEM = re.compile(r"(?:[-*+]|\d{1,4}[.)])\s+(?:\[[ xX]\]\s+)?(?P<rest>\S.*)")
_NO_FACT = {
    "heading": re.compile(r"#{1,6}(?:\s|$)"),
    "mark": re.compile(r"(?:```|~~~|<!--.*-->$|[-*_=]{3,}$|[-*+]$|</?user_memory\b[^>]*>$)"),
}


class OlderFile(Struct, frozen=True):
    """What a file of an older home says: the facts that would be copied, and a line for what would not."""

    path: str
    scope: FactScope
    facts: tuple[Fact, ...] = ()
    skipped: tuple[str, ...] = ()


class TakeOver(Struct, frozen=True):
    """What would be copied; and of each other place of an older home where it is used from."""

    files: tuple[OlderFile, ...] = ()
    others: tuple[tuple[str, str], ...] = ()
    problem: str = ""

    @property
    def facts(self) -> tuple[Fact, ...]:
        return tuple(fact for file in self.files for fact in file.facts)


class Taken(Struct, frozen=True):
    """How many facts of a file were copied, and when."""

    facts: int
    at: str


class Homes(Struct, frozen=True):
    """`home` is CODEWHALE_HOME, `person` the person's own folder, `place` the name of the folder of the workspace's
    memory."""

    home: str
    person: str
    place: str

    @property
    def older(self) -> tuple[str, ...]:
        own = os.path.realpath(self.home)
        tops = [os.path.join(self.person, name) for name in (".deepseek", ".codewhale")]
        return tuple(top for top in tops if os.path.isdir(top) and os.path.realpath(top) != own)


def plan(homes: Homes, stored: Collection[str], hide: Callable[[str], str]) -> TakeOver:
    """What was not taken over yet. `stored` are the texts of the facts that there are, `hide` replaces secrets;
    `problem` says why it is not known what was taken over, and then nothing is planned."""
    try:
        taken = _taken(homes.home).read().keys()
    except ConfigError as error:
        return TakeOver(problem=str(error))
    seen = {_flat(text) for text in stored}
    files = []
    for path, scope in _places(homes):
        file = None if os.path.realpath(path) in taken else _read(path, scope, homes.person, hide)
        if file is not None and (file.facts or file.skipped):
            fresh = dict[str, Fact]()
            for fact in file.facts:
                fresh.setdefault(_flat(fact.text), fact)
            facts = tuple(fact for flat, fact in fresh.items() if flat not in seen)
            more = _skipped({"is there already": len(file.facts) - len(facts)})
            files.append(replace(file, facts=facts, skipped=(*file.skipped, *more)))
            seen |= fresh.keys()
    return TakeOver(tuple(files), tuple(row for row in _others(homes) if os.path.realpath(row[0]) not in taken))


def plan_lines(plan: TakeOver) -> tuple[str, ...]:
    """The plan for a person."""
    lines = [told_line(plan.problem)] if plan.problem else []
    for file in plan.files:
        where = "for everything" if file.scope == "global" else "for this workspace"
        lines.append(f"{told_line(file.path)}: {counted(len(file.facts), 'fact')} would be copied, {where}")
        lines += [f"  skipped: {reason}" for reason in file.skipped]
    return (*lines, *(f"{told_line(path)}: {text}" for path, text in plan.others))


def take_over(plan: TakeOver, homes: Homes, keep: Callable[[FactScope, Sequence[Fact]], object]) -> int:
    """Copy the facts of a plan by `keep` and note that it was done; how many. What was copied before an end that came
    in between is there already for the next plan."""
    for scope in ("global", "workspace"):
        if facts := [fact for fact in plan.facts if fact.scope == scope]:
            keep(scope, facts)
    counts = {file.path: len(file.facts) for file in plan.files}
    if not counts and not plan.others:
        return 0
    with _taken(homes.home).changing(homes.home, os.path.join(homes.home, "memory")) as rows:
        for path in (*counts, *(path for path, _ in plan.others)):
            rows[os.path.realpath(path)] = Taken(counts.get(path, 0), rfc3339(time.time()))
    return len(plan.facts)


def _taken(home: str) -> RowFile[Taken]:
    path = os.path.join(home, "memory", TAKEN)
    return RowFile(path, "taken", Taken, lambda about: None, again="take the older home over again")


def nested_paths(home: str) -> Iterator[str]:
    """Files of memory where nothing reads them, as a path that was put together twice leaves them."""
    memory = os.path.join(home, "memory")
    for top in (memory, os.path.join(home, ".codewhale")):
        for folder, folders, names in islice(os.walk(top), _MOST_FOLDERS):
            folders[:] = sorted(name for name in folders if name != "trash")
            paths = (os.path.join(folder, name) for name in names if name in ("memory.md", "MEMORY.md"))
            yield from (path for path in paths if not _OWN.fullmatch(os.path.relpath(path, memory)))


def _places(homes: Homes) -> Iterator[tuple[str, FactScope]]:
    """The files that may be there, each once."""
    tops = (homes.home, *homes.older)
    own = f"memory/workspace/{homes.place}/MEMORY.md"
    paths = [os.path.join(top, "memory.md") for top in tops]
    paths += [path for top in tops for path in configured(top, homes.person)]
    paths += [os.path.join(top, f"memory/{name}") for top in homes.older for name in ("memory.md", "global/MEMORY.md")]
    paths += [os.path.join(top, own) for top in homes.older]
    paths += nested_paths(homes.home)
    seen = {os.path.realpath(os.path.join(homes.home, name)) for name in (own, "memory/global/MEMORY.md")}
    for path in paths:
        path = os.path.join(path, "memory.md") if os.path.isdir(path) else path
        above, folder = os.path.split(os.path.dirname(path))
        scope: FactScope = "workspace" if os.path.basename(above) == "workspace" else "global"
        real = os.path.realpath(path)
        if os.path.lexists(path) and real not in seen and (scope == "global" or folder == homes.place):
            seen.add(real)
            yield path, scope


def configured(top: str, person: str) -> list[str]:
    """The files of memory that the configuration in a home names, as the original read it."""
    try:
        fd = os.open(os.path.join(top, "config.toml"), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        tree = parse_toml(read_regular(fd, 1 << 20) or b"")
    except (OSError, ValueError):
        return []
    table = tree.get("memory")
    inner = [table.get("path"), table.get("memory_path")] if isinstance(table, dict) else []
    names = [name for name in (tree.get("memory_path"), *inner) if isinstance(name, str) and name and "\0" not in name]
    spelled = [person + name[1:] if name == "~" or name.startswith("~/") else name for name in names]
    return [os.path.normpath(os.path.join(top, name)) for name in spelled]


def _read(path: str, scope: FactScope, person: str, hide: Callable[[str], str]) -> OlderFile:
    shown = f"~{path[len(person) :]}" if path.startswith(person.rstrip("/") + "/") else path
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return OlderFile(path, scope, skipped=(f"it cannot be read: {error.strerror}",))
    with os.fdopen(fd, "rb") as file:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            return OlderFile(path, scope, skipped=("it is no regular file",))
        data = file.read(LIMIT)
    whole = info.st_size <= LIMIT
    data = data if whole else data[: data.rfind(b"\n") + 1]
    facts, why = list[Fact](), Counter[str]()
    for number, line in enumerate(data.decode("utf-8-sig", "replace").split("\n"), 1):
        fact = _fact(line, scope, number, hide, why)
        if fact is not None:
            facts.append(replace(fact, source=fact.source or f"{shown} line {number}"))
    skipped = _skipped(why)
    if not whole:
        skipped.append(f"{info.st_size - len(data):,} bytes beyond {LIMIT >> 10} KiB, which the original did not send")
    return OlderFile(path, scope, tuple(facts), tuple(skipped))


def _fact(line: str, scope: FactScope, number: int, hide: Callable[[str], str], why: Counter[str]) -> Fact | None:
    """The fact that a line says; None where it says none, which is counted in `why`."""
    text = line.strip()
    kinds = [kind for kind, pattern in _NO_FACT.items() if pattern.match(text)]
    if not text or kinds:
        why["is a heading"] += "heading" in kinds
        return None
    item = _ITEM.match(text)
    rest = item["rest"] if item else text
    fact = parse_line(f"- {rest}", scope, number)
    reason = (
        "says nothing" if fact is None
        else f"is longer than {LONGEST_FACT:,} characters" if len(rest) > LONGEST_FACT
        else "looks like a secret" if hide(rest) != rest
        else f"has {what}" if (what := orders_in(rest))
        else ""
    )  # fmt: skip
    why[reason] += bool(reason)
    return None if reason or fact is None else replace(fact, id=text_id(fact.text))


def _skipped(why: Mapping[str, int]) -> list[str]:
    return [f"{counted(count, 'line')} that {reason}" for reason, count in why.items() if reason and count]


def _others(homes: Homes) -> Iterator[tuple[str, str]]:
    """What else of the original there is, with where it is used from."""
    for top in (homes.home, *homes.older):
        old = os.path.basename(top) == ".deepseek"
        if old and os.path.isdir(os.path.join(top, "skills")):
            yield os.path.join(top, "skills"), "skills are used from there"
        sessions = os.path.join(top, "sessions")
        if any(name.endswith(".json") for name in _names(sessions)):
            yield sessions, "sessions stay; to continue one: codewhale sessions import FILE"
        if os.path.isfile(os.path.join(top, "handoff.md")):
            yield os.path.join(top, "handoff.md"), "stays; a session reads the one of its workspace"
        folders = _names(os.path.join(top, "memory/workspace")) if top != homes.home else []
        if count := len([name for name in folders if name != homes.place]):
            text = f"memory of {counted(count, 'other workspace')} stays; their facts are known by other names"
            yield os.path.join(top, "memory/workspace"), text


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _flat(text: str) -> str:
    return " ".join(text.split()).casefold()
