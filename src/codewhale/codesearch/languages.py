"""Which language a file is in: by its name, for the few shared endings by its text. The table is languages.json."""

import os
import re
from importlib import resources

import msgspec
from msgspec import Struct

_CPP = re.compile(rb"::|^\s*(?:class|namespace|template|using|public:|private:)\b", re.MULTILINE)
_OBJC = re.compile(rb"^\s*(?:@interface|@implementation|@protocol|@import|#import)\b", re.MULTILINE)
_SHEBANG = re.compile(rb"\A#!\s*\S*?(?:env\s+(?:-\S+\s+)*)?([a-z]+)[0-9.]*\s*(?:\s|\Z)")
_INTERPRETERS = {
    "python": "python", "sh": "bash", "bash": "bash", "zsh": "bash", "node": "javascript", "ruby": "ruby",
    "perl": "perl", "php": "php", "lua": "lua", "bats": "bash", "elixir": "elixir", "escript": "erlang",
}  # fmt: skip
_PEEKED = 8192


class ParsedLanguage(Struct, frozen=True):
    """A language with a grammar: its endings, whole names, the grammar's name where it differs, what each node type
    defines (a kind, or "=" and how to tell), and what to query a tree for."""

    extensions: list[str]
    definitions: dict[str, str]
    query: list[str]
    names: list[str] = []
    grammar: str = ""


class _Table(Struct, frozen=True):
    into: list[str]
    parsed: dict[str, ParsedLanguage]
    plain: dict[str, list[str]]
    names: dict[str, list[str]]


class Languages:
    """The table, read once by whoever needs it."""

    def __init__(self) -> None:
        data = resources.files("codewhale.codesearch").joinpath("languages.json").read_bytes()
        table = msgspec.json.decode(data, type=_Table)
        self.parsed = table.parsed
        self.into = frozenset(table.into)
        self._endings = {end: name for name, ends in table.plain.items() for end in ends}
        self._endings.update((end, name) for name, row in table.parsed.items() for end in row.extensions)
        self._names = {name: language for language, names in table.names.items() for name in names}
        self._names.update((name, language) for language, row in table.parsed.items() for name in row.names)

    def known(self) -> list[str]:
        """Every known language, sorted."""
        return sorted({*self._endings.values(), *self._names.values()})

    def of(self, path: str, data: bytes) -> str:
        """The language of a file, "" where it is not known. Only the first bytes of `data` are looked at."""
        name = os.path.basename(path)
        known = self._names.get(name)
        if known is not None:
            return known
        parts = name.split(".")[1:]
        ending = ".".join(parts[-2:])
        found = self._endings.get(ending) or self._endings.get(parts[-1]) if parts else None
        if found is None and parts:
            found = self._endings.get(parts[-1].lower())
        if found is None:
            return self._by_first_line(data)
        if found == "c" and parts[-1] == "h":
            head = data[: _PEEKED * 4]
            return "objc" if _OBJC.search(head) else "cpp" if _CPP.search(head) else "c"
        return found

    def _by_first_line(self, data: bytes) -> str:
        match = _SHEBANG.match(data[:200])
        return _INTERPRETERS.get(match[1].decode("ascii"), "") if match else ""
