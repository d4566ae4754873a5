"""The tables beside this file as they are used: what only reads (reads.toml, git.toml), what does harm
(harm.toml). Read once, when the first line is judged."""

import functools
import re
import tomllib
from importlib import resources
from typing import Any

from msgspec import Struct, convert

from codewhale.permissions.shell.words import UNKNOWN


class Reads(Struct, frozen=True):
    """How a program may be called; the words are explained at the head of reads.toml."""

    any: bool = False
    flags: str = ""
    values: str = ""
    long: frozenset[str] = frozenset()
    text: bool = False
    pattern: frozenset[str] | None = None
    most: int = 1000
    least: int = 0
    words: frozenset[str] = frozenset()
    check: str = ""
    counts: bool = False
    bars: frozenset[str] = frozenset()
    follows: frozenset[str] = frozenset()
    at: bool = False
    star: bool = False
    log: bool = False
    sandbox: bool = False


class ReadTable(Struct, frozen=True):
    """Programs by name, git's commands by name, what may stand before those; whose version may be asked for, by the one
    word that asks; what else must be asked of whom."""

    programs: dict[str, Reads]
    git: dict[str, Reads]
    before_git: frozenset[str]
    versions: dict[str, frozenset[str]]
    questions: dict[str, frozenset[str]]


class ProgramNames(Struct, frozen=True):
    """A set of program names; one that was written with a * stands for all that begin so."""

    whole: frozenset[str]
    starts: tuple[str, ...]

    def __contains__(self, name: str) -> bool:
        return name in self.whole or (bool(self.starts) and name.startswith(self.starts))


class HarmRow(Struct, frozen=True):
    """One shape of harm: its kind, where it is looked for (None: every call), and why it must not happen."""

    kind: str
    why: str
    when: re.Pattern[str] | None = None


class HarmTable(Struct, frozen=True):
    """Sets of names; `carrying` those of all that may run what is in their words, `telling` of all that can be part of
    any harm but as a source of text; the rows for each program, those for
    names by their beginning, the shapes of programs handed to interpreters, the patterns of what flows out; the rule
    that a question names by program, the words behind a program that mean the network, how many operands stand before
    a wrapped command."""

    names: dict[str, ProgramNames]
    carrying: ProgramNames
    telling: ProgramNames
    rows: dict[str, tuple[HarmRow, ...]]
    starts: tuple[tuple[str, HarmRow], ...]
    code: tuple[HarmRow, ...]
    flow: dict[str, re.Pattern[str]]
    asks: dict[str, ProgramNames]
    reaches: dict[str, frozenset[str]]
    leading: dict[str, int]


class Roles(Struct, frozen=True):
    """What the tables say of one program: the sets that name it, whether it may run what is in its words, whether it
    can be part of any harm but as a source of text, whether what it prints may be fetched or decoded, whether lines may
    run by it (in its words or its input), and its rows."""

    sets: frozenset[str]
    carries: bool
    tells: bool
    hides: bool
    lines: bool
    rows: tuple[HarmRow, ...]


# What runs its words besides the shells, wrappers and takers of lines that the table names.
_TELLING = ("dd find rsync sed gsed yq sd xxd uniq source . at batch cargo npm",)
# What turns encoded text into plain text with some option or operand.
_DECODES = frozenset("base64 base32 basenc openssl gpg gbase64 age xxd gzip bzip2 xz zstd lz4 printf echo".split())
# What runs the lines of a file or of its input.
TAKERS = frozenset(("eval", "source", ".", "at", "batch"))
_CARRYING = ("eval", "trap", "xargs", "parallel", "alias", "function")


@functools.cache
def reads() -> ReadTable:
    programs, git = _load("reads.toml"), _load("git.toml")
    versions, questions = (
        {key: frozenset(names.split()) for key, names in programs.pop(part).items()}
        for part in ("versions", "questions")
    )
    before = frozenset(git.pop("options")["flags"])
    shared = git.pop("shared")["long"]
    for row in git.values():
        row["sandbox"] = True
        if row.get("log"):
            row["long"] = [*row.get("long", ()), *shared]
    return ReadTable(_rules(programs), _rules(git), before, versions, questions)


@functools.cache
def harm() -> HarmTable:
    data = _load("harm.toml")
    names = {key: _names(text) for key, text in data["names"].items()}
    rows: dict[str, list[HarmRow]] = {}
    starts = []
    for row in data["harm"]:
        made = HarmRow(row["kind"], row["why"], re.compile(row["when"]) if "when" in row else None)
        on = _names(row["on"])
        for name in on.whole:
            rows.setdefault(name, []).append(made)
        starts += [(start, made) for start in on.starts]
    fragments = data["fragments"]
    code = tuple(
        HarmRow(row["kind"], row["why"], re.compile(_filled(row["when"], fragments), re.I | re.S))
        for row in data["code"]
    )
    flow = {key: re.compile(text, re.I) for key, text in data["flow"].items()}
    asks = {rule: _names(text) for rule, text in data["asks"].items()}
    reaches = {name: frozenset(text.split()) for name, text in data["reaches"].items()}
    carrying = " ".join([*(data["names"][key] for key in ("shells", "liners", "carriers")), *_CARRYING])
    telling = [carrying, *(row["on"] for row in data["harm"]), *_TELLING]
    telling += [text for key, text in data["names"].items() if key not in ("readers", "decoders", "network")]
    by_name = {name: tuple(made_rows) for name, made_rows in rows.items()}
    known = names, _names(carrying), _names(" ".join(telling))
    return HarmTable(*known, by_name, tuple(starts), code, flow, asks, reaches, data["leading"])


@functools.lru_cache(maxsize=4096)
def roles(name: str) -> Roles:
    table = harm()
    sets = frozenset(key for key, names in table.names.items() if name in names)
    rows = table.rows.get(name, ()) + tuple(row for start, row in table.starts if name.startswith(start))
    hides = bool(sets.intersection(("fetchers", "interpreters", "decoders"))) or name in _DECODES
    carries, tells = name in table.carrying, name in table.telling or UNKNOWN in name
    lines = carries or name in TAKERS or not sets.isdisjoint(("shells", "interpreters"))
    return Roles(sets, carries, tells, hides, lines, rows)


def _load(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files("codewhale.permissions.shell").joinpath(name).read_text("utf-8"))


def _rules(rows: dict[str, Any]) -> dict[str, Reads]:
    return {name: convert(rows[row["same"]] if "same" in row else row, Reads) for name, row in rows.items()}


def _names(text: str) -> ProgramNames:
    words = text.split()
    whole = frozenset(word for word in words if not word.endswith("*"))
    return ProgramNames(whole, tuple(word[:-1] for word in words if word.endswith("*")))


def _filled(pattern: str, fragments: dict[str, str]) -> str:
    return re.sub(r"\{([A-Z]+)\}", lambda match: fragments[match[1]], pattern)
