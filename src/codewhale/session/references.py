"""Files that instructions name and that are not there. A name that may mean something else is passed over: what is
generated, an example, a placeholder, an address, a package, a branch."""

import fnmatch
import os
import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from msgspec import Struct

from codewhale.lib.bounded import read_regular
from codewhale.protocol.marks import Fences

_LIMIT, _MOST_ENTRIES = 256 << 10, 30_000
_TOKEN = re.compile(
    r"(?<!`)`([^`\s]{1,300})`(?!`)|(?<!!)\[[^\]\n]{0,300}\]\(<?([^()\s<>]{1,300})>?(?:\s+\"[^\"]*\")?\)"
)
_PATH = re.compile(r"(?:\./)?[\w.+-]+(?:/[\w.+@-]+)*/?")
_ENDING = re.compile(r"\.([A-Za-z][A-Za-z0-9]{0,5})$")
_HOST = re.compile(r"(?i)(?:www\.|.*\.(?:com|org|net|io|dev|ai|app|edu|gov|co|rs|me|test|example|localhost)$)")
_FILES = frozenset(
    "py pyi md mdx rst txt toml json jsonc json5 yaml yml ts tsx mts cts js jsx mjs cjs vue svelte rs go java kt kts c"
    " h cc cpp hpp cs rb php swift scala ex exs erl hs lua pl r jl dart zig nim sh bash zsh fish ps1 bat cmd sql css"
    " scss sass less html htm xml svg ini cfg conf lock gradle cmake mk proto graphql tf hcl nix ipynb csv tsv".split()
)
# A library's name, not a file's.
_LIBRARY = re.compile(r"[A-Z][A-Za-z]*\.(?:js|ts|py|rs|go|io)|(?i:node|vue|next|nuxt|express|three|d3|alpine)\.js")
# What is made by tools, and so need not be there.
_MADE = frozenset(
    "node_modules dist build target out output coverage htmlcov venv .venv env __pycache__ .git .next .nuxt .cache tmp"
    " temp .tox .nox .mypy_cache .ruff_cache .pytest_cache vendor bin obj site _build logs log generated .turbo .idea"
    " .vscode .gradle DerivedData Pods".split()
)
_PLACEHOLDER = re.compile(
    r"(?:^|[/_.-])(?i:path/to|foo|bar|baz|qux|x{2,}|y{3,}|your|my|some|example|sample|placeholder|name|yyyy)(?:$|[/_.-])"
    r"|(?:^|/)(?:[A-Z][A-Z_]*/|(?:FILE|NAME|X+)\b)|(?:^|[/_-])[A-Zx-z]\.[a-z]|\.[A-Z]{3,}\."
    r"|(?i:(?:kebab|snake|camel|pascal)[-_]?case)"
)
# A line that speaks of what is not there, or need not be.
_MAYBE = re.compile(
    r"(?i)\b(?:creat\w+|generat\w+|produc\w+|writ(?:e|es|ten|ing)\b.{0,20}\bto|outputs?|emit\w*|e\.g\.|examples?"
    r"|such as|like this|if (?:it|there|present|any|you)|when (?:there|present)|optional\w*|(?:git)?ignored?|remov\w+"
    r"|delet\w+|no longer|renam\w+|former\w*|moved|legacy|deprecated|instead of|rather than|do not|don't|never"
    r"|new files?|add an?|nam(?:e|ed|ing)|called|cop(?:y|ied)|will be|would|should be placed|download\w*|temporary"
    r"|install\w*|built|artifacts?|local(?:ly)?|may exist|not checked in|uncommitted|untracked|placeholder)\b"
)


class DeadReference(Struct, frozen=True):
    """A name in a line, counted from 1, of a file."""

    path: str
    line: int
    name: str


def dead_references(files: Iterable[str], root: str) -> Iterator[DeadReference]:
    """What the files of a repository name that is not in it."""
    tree = None
    for path in files:
        fences, text = Fences(), _text(path)
        for number, line in enumerate(text.split("\n"), 1):
            fences.pass_line(line.rstrip())
            names = {} if fences.inside else dict(_names(line))
            for name, linked in names.items():
                tree = tree or _Tree(root)
                if tree.lacks(name, os.path.dirname(path), linked):
                    yield DeadReference(path, number, name)


def _text(path: str) -> str:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    return (read_regular(fd, _LIMIT) or b"").decode("utf-8", "replace")


def _names(line: str) -> Iterator[tuple[str, bool]]:
    """What may be the path of a file or a folder, and whether it is linked."""
    may_lack = _MAYBE.search(_TOKEN.sub("", line)) is not None
    for ticked, linked in _TOKEN.findall(line):
        name = re.sub(r"(?:::.*|[:#](?:L?\d+(?:[-:,]L?\d+)*|[\w-]*))$", "", unquote(linked) or ticked)
        parts = name.strip("/").split("/")
        if (
            not _PATH.fullmatch(name)
            or _PLACEHOLDER.search(name)
            or _HOST.match(parts[0])
            or not _MADE.isdisjoint(parts)
            or (ticked and (may_lack or _LIBRARY.fullmatch(name)))
        ):
            continue
        if linked or "/" in name or _is_file_name(name):
            yield name, bool(linked)


def _is_file_name(name: str) -> bool:
    ending = _ENDING.search(name)
    return ending is not None and ending[1].lower() in _FILES and not name.startswith(".")


class _Tree:
    """The names in a repository, each path with a slash in front; `whole` is False where there are too many."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._ends = set[str]()
        self._ignored = [line.strip().strip("/") for line in _text(os.path.join(root, ".gitignore")).split("\n")]
        self._whole, count = True, 0
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(name for name in folders if name not in _MADE)
            count += len(folders) + len(names)
            if count > _MOST_ENTRIES:
                self._whole = False
                return
            inside = os.path.relpath(folder, root).split("/") if folder != root else []
            for name in (*folders, *names):
                parts = [*inside, name]
                self._ends.update("/".join(parts[at:]) for at in range(len(parts)))

    def lacks(self, name: str, folder: str, linked: bool) -> bool:
        """Whether a name in a file of this folder leads nowhere."""
        path = os.path.normpath(name)
        places = {os.path.normpath(os.path.join(top, path)) for top in (self._root, folder)}
        inside = [place for place in places if place.startswith(self._root.rstrip("/") + "/")]
        if not inside or any(map(os.path.lexists, places)) or self._is_ignored(path):
            return False
        if linked:
            return True
        # Of words with a slash between them only what begins with a folder that is there is meant as a path.
        begins = any(os.path.isdir(os.path.join(top, path.split("/")[0])) for top in (self._root, folder))
        plain = "/" in name and not path.startswith(".")
        if not begins and not (plain and _is_file_name(os.path.basename(path))) and not _is_file_name(path):
            return False
        return self._whole and path not in self._ends

    def _is_ignored(self, path: str) -> bool:
        """As git reads the simple patterns."""
        parts = path.split("/")
        names = {path, *parts, *("/".join(parts[:at]) for at in range(1, len(parts)))}
        return any(
            fnmatch.fnmatchcase(name, row) for row in self._ignored if row[:1] not in ("", "#", "!") for name in names
        )
