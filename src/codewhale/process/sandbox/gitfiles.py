"""What stands in a git directory and its configuration, read as git reads it, that can make plain git run a program or
take another directory for its own."""

import functools
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator

from msgspec import Struct

from codewhale.lib.bounded import read_regular
from codewhale.lib.patterns import lazy
from codewhale.process.sandbox.profiles import beneath

_HEADER = lazy(r"\[\s*([-.a-zA-Z0-9]+)\s*(?:\"((?:[^\"\\\n]|\\[^\n])*)\")?\s*\]")
_NAME = lazy(r"([a-zA-Z][-a-zA-Z0-9]*)[ \t]*")
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b", '"': '"', "\\": "\\"}
MOST_ENTRIES = 20_000
# Settings that choose no program, no file and no other place, whatever their value.
_PLAIN = r"""core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks
    |autocrlf|eol|safecrlf|abbrev|bigfilethreshold|compression|loosecompression|quotepath|trustctime|checkstat|untrackedcache
    |protecthfs|protectntfs|longpaths|sparsecheckout|sparsecheckoutcone|commentchar|whitespace|fscache|hidedotfiles
    |preferSymlinkRefs|sharedrepository|multipackindex|commitgraph|deltabasecachelimit|packedgitlimit
    |packedgitwindowsize|preloadindex|splitindex|warnambiguousrefs)
    |extensions\.(objectformat|worktreeconfig|partialclone|refstorage|noop|compatobjectformat|preciousobjects)
    |remote\..*\.(fetch|push|tagopt|prune|prunetags|mirror|skipdefaultupdate|skipfetchall|promisor|partialclonefilter)
    |branch\..*\.(remote|pushremote|merge|rebase|description|vscode-merge-base|gh-merge-base)
    |submodule\..*\.(active|branch|ignore|shallow|fetchrecursesubmodules)|submodule\.(active|recurse|fetchjobs)
    |user\.(name|email|useconfigonly)|author\.(name|email)|committer\.(name|email)|init\.defaultbranch
    |gc\.(auto|autodetach|autopacklimit|pruneexpire|reflogexpire|reflogexpireunreachable|worktreepruneexpire|packrefs
    |writecommitgraph|cruftpacks|bigpackthreshold|rerereresolved|rerereunresolved)|pack\.[a-z]+|index\.(version|threads|sparse|skiphash)|feature\.[a-z]+|color\..*|column\..*|advice\..*
    |push\.(default|autosetupremote|followtags)|pull\.(rebase|ff)|fetch\.(prune|prunetags|parallel|writecommitgraph)
    |merge\.(ff|conflictstyle|renames|renamelimit|stat|log)|rebase\.(autostash|autosquash|updaterefs|stat)
    |diff\.(renames|renamelimit|algorithm|noprefix|mnemonicprefix|colormoved|context|suppressblankempty)
    |status\.(short|branch|showuntrackedfiles|relativepaths)|log\.(date|decorate|follow|abbrevcommit)
    |rerere\.(enabled|autoupdate)|commit\.(verbose|cleanup|status)|tag\.sort|lfs\.repositoryformatversion
    |maintenance\.(auto|strategy)|receive\.(denycurrentbranch|denynonfastforwards|denydeletes|autogc)
    |transfer\.[a-z]+|clone\.[a-z]+|checkout\.(defaultremote|guess|workers)|stash\.[a-z]+|http\.postbuffer
    """.replace("\n", "").replace(" ", "")
# An address, unless it names a program to speak through: `ext::sh -c x`, `fd::3`, `--upload-pack=x`.
_ADDRESS = lazy(r"(remote\..*\.(push)?url|submodule\..*\.url)", re.DOTALL)
_HELPER = lazy(r"\s*-|[a-z0-9.+-]+::", re.IGNORECASE)
_UPDATE = lazy(r"submodule\..*\.update", re.DOTALL)


def entries(data: bytes) -> "list[tuple[str, str]]":
    """(name, value) in their order, section and variable in small letters. Raises ValueError for what git would not
    read either, or for more than 20,000."""
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff").replace("\r\n", "\n")
    settings: list[tuple[str, str]] = []
    section, at = "", 0
    while at < len(text):
        character = text[at]
        if character.isspace():
            at += 1
        elif character in "#;":
            at = _line_end(text, at)
        elif character == "[":
            header = _HEADER().match(text, at)
            if header is None:
                raise ValueError("a section's name cannot be read")
            section, at = _section(header), header.end()
        else:
            name = _NAME().match(text, at)
            if name is None or not section:
                raise ValueError("a line cannot be read")
            value, at = _value(text, name.end())
            settings.append((f"{section}.{name[1].lower()}", value))
        if len(settings) > MOST_ENTRIES:
            raise ValueError("too many settings")
    return settings


def _section(header: "re.Match[str]") -> str:
    name = header[1].lower()
    return name if header[2] is None else name + "." + re.sub(r"\\(.)", r"\1", header[2])


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _value(text: str, at: int) -> "tuple[str, int]":
    if at >= len(text) or text[at] in "\n#;":
        return "true", _line_end(text, at)
    if text[at] != "=":
        raise ValueError("a variable without a value")
    out, quoted, at = [], False, at + 1
    while at < len(text) and (text[at] != "\n" or quoted):
        character = text[at]
        if character == "\n":
            raise ValueError("a quotation mark is not closed")
        if character == "\\":
            following = text[at + 1 : at + 2]
            if following not in _ESCAPES and following != "\n":
                raise ValueError("an escape that there is not")
            out.append(_ESCAPES.get(following, ""))
            at += 2
            continue
        if character in "#;" and not quoted:
            break
        if character == '"':
            quoted = not quoted
        else:
            out.append(character)
        at += 1
    return "".join(out).strip(), _line_end(text, at)


@functools.cache
def _plain() -> re.Pattern[str]:
    return re.compile(_PLAIN, re.IGNORECASE | re.DOTALL)  # 5 ms, which no start needs


def steers(name: str, value: str) -> bool:
    """Whether a setting can make git run a program, open a file or go elsewhere, as far as its name and value tell."""
    if _ADDRESS().fullmatch(name):
        return bool(_HELPER().match(value))
    if _UPDATE().fullmatch(name):
        return value.lower() not in ("checkout", "rebase", "merge", "none")
    return _plain().fullmatch(name) is None


def steering(data: bytes) -> "list[tuple[str, str]]":
    """The settings of a file that steer git; one that cannot be read does."""
    try:
        return [(name, value) for name, value in entries(data) if steers(name, value)]
    except ValueError as error:
        return [("unreadable", str(error))]


def named_files(data: bytes, folder: str) -> "tuple[list[str], list[str]]":
    """The files that a configuration in `folder` includes, and the folders that it takes hooks from, as they are
    written but for `folder` before what is relative."""
    try:
        rows = entries(data)
    except ValueError:
        return [], []
    included = [value for name, value in rows if name == "include.path" or re.fullmatch(r"includeif\..*\.path", name)]
    hooks = [value for name, value in rows if name == "core.hookspath"]
    return [os.path.join(folder, os.path.expanduser(path)) for path in included], hooks


_MOST_HOOKS = 200
_DEEPEST = 3
_CONFIGS = ("config", "config.worktree")
# What may not change while a command runs, where it is there: the files and folders that are judged here.
ARMS = (*_CONFIGS, "commondir", "gitdir", "hooks", "info/attributes", "objects/info/alternates")


class Arm(Struct, frozen=True):
    """Something that steers git: the file it stands in, what it is for people, and the file's identity."""

    path: str
    what: str
    value: str
    inode: tuple[int, int]

    @property
    def marks(self) -> tuple[tuple[object, ...], tuple[object, ...]]:
        """By either of these it is the same one again: at its place, or moved with its folder."""
        return (self.path, self.what, self.value), (self.inode, self.what, self.value)


def arms_of(place: str, root: str) -> list[Arm]:
    """What steers git at a place: a git directory, or a `.git` that is a file or a link. `root` is the workspace; what
    lies in it is judged wherever it is named from."""
    if os.path.isdir(place) and not os.path.islink(place):
        return list(_in_directory(place, root))
    return list(_of_pointer(place, root))


def read_small(path: str, most: int = 1 << 20, links: bool = True) -> bytes | None:
    """The bytes of a regular file, None for one that is larger and for anything else; never waits on a FIFO or a
    device. Without `links` a link is not followed."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW))
    except (OSError, ValueError):
        return None
    return read_regular(fd, most)


def read_file(path: str) -> bytes | None:
    """The same of what is no link."""
    return read_small(path, links=False)


def harmless(data: bytes) -> bytes:
    """A configuration with nothing left in it that steers git."""
    try:
        return written([row for row in entries(data) if row not in steering(data)])
    except ValueError:
        return b""


def without_places(listed: bytes) -> bytes:
    """Of what `git config --list -z --show-scope` printed, the person's own settings that choose no program and no
    place: no address, header or helper with a key is among them."""
    fields = listed.decode("utf-8", "surrogateescape").split("\0")
    rows = [row.partition("\n") for scope, row in zip(fields[::2], fields[1::2], strict=False) if scope == "global"]
    kept = [(name, value) for name, _, value in rows if _plain().fullmatch(name) or name == "safe.directory"]
    return written(kept)


def written(rows: Iterable[tuple[str, str]]) -> bytes:
    """A configuration of these settings."""
    lines = []
    for name, value in rows:
        section, _, rest = name.partition(".")
        inner, _, variable = rest.rpartition(".")
        lines.append(f"[{section} {_quoted(inner)}]" if inner else f"[{section}]")
        lines.append(f"\t{variable} = {_quoted(value)}")
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def _arm(path: str, what: str, value: str = "") -> Iterator[Arm]:
    try:
        status = os.lstat(path)
    except OSError:
        return
    yield Arm(path, what, value, (status.st_dev, status.st_ino))


def _in_directory(folder: str, root: str) -> Iterator[Arm]:
    for name in _CONFIGS:
        yield from _in_config(os.path.join(folder, name), root, folder, 0)
    yield from _in_hooks(os.path.join(folder, "hooks"))
    yield from _of_commondir(os.path.join(folder, "commondir"), folder)
    attributes = os.path.join(folder, "info", "attributes")
    if os.path.lexists(attributes):
        data = read_file(attributes)
        if data is None or any(line.strip() and not line.startswith(b"#") for line in data.splitlines()):
            yield from _arm(attributes, "attributes", _digest(data))
    alternates = os.path.join(folder, "objects", "info", "alternates")
    for line in (read_file(alternates) or b"").splitlines():
        named = os.path.realpath(os.path.join(folder, "objects", os.fsdecode(line)))
        if line and not line.startswith(b"#") and not beneath(named, root):
            yield from _arm(alternates, "objects of another repository", named)


def _in_config(path: str, root: str, folder: str, depth: int) -> Iterator[Arm]:
    if not os.path.lexists(path):
        return
    data = read_file(path)
    if data is None:
        yield from _arm(path, "no plain file")
        return
    for name, value in steering(data):
        if name == "core.worktree" and beneath(os.path.realpath(os.path.join(folder, value)), root):
            continue
        yield from _arm(path, name, value)
    included, hooks = named_files(data, os.path.dirname(path))
    for named in included if depth < _DEEPEST else ():
        if beneath(os.path.realpath(named), root):
            yield from _in_config(os.path.normpath(named), root, folder, depth + 1)
    for named in hooks:
        place = os.path.normpath(os.path.join(os.path.dirname(folder), os.path.expanduser(named)))
        if beneath(os.path.realpath(place), root):
            yield from _in_hooks(place)


def _in_hooks(folder: str) -> Iterator[Arm]:
    if os.path.islink(folder):
        yield from _arm(folder, "hooks elsewhere", os.readlink(folder))
        return
    try:
        names = sorted(os.listdir(folder))[:_MOST_HOOKS]
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        if not name.endswith((".sample", SET_ASIDE)) and not (os.path.isdir(path) and not os.path.islink(path)):
            yield from _arm(path, "hook", _digest(read_file(path)))


SET_ASIDE = ".set-aside"


def _of_commondir(path: str, folder: str) -> Iterator[Arm]:
    """A linked worktree's names the directory that it lies in; any other leads git elsewhere."""
    if not os.path.lexists(path):
        return
    named = os.fsdecode((read_file(path) or b"").strip())
    if named in (".", "") and os.path.isfile(path):
        return
    own = os.path.dirname(os.path.dirname(os.path.realpath(folder)))
    if os.path.islink(path) or os.path.realpath(os.path.join(folder, named)) != own:
        yield from _arm(path, "leads elsewhere", named)


def _of_pointer(path: str, root: str) -> Iterator[Arm]:
    if os.path.islink(path):
        named = os.path.realpath(path)
    else:
        data = read_file(path)
        if data is None or not data.startswith(b"gitdir:"):
            return
        named = os.path.realpath(os.path.join(os.path.dirname(path), os.fsdecode(data[len(b"gitdir:") :].strip())))
    if not beneath(named, root):
        if not names_back(named, os.path.dirname(path)):
            yield from _arm(path, "leads elsewhere", named)
    elif os.path.isdir(named):
        yield from _in_directory(named, root)


def names_back(gitdir: str, tree: str) -> bool:
    """Whether a git directory is that of a linked worktree or a submodule at `tree`, by its own word."""
    tree = os.path.realpath(tree)
    back = os.fsdecode((read_file(os.path.join(gitdir, "gitdir")) or b"").strip())
    if back:
        return os.path.realpath(os.path.join(gitdir, back)) == os.path.join(tree, ".git")
    try:
        named = dict(entries(read_file(os.path.join(gitdir, "config")) or b"")).get("core.worktree", "")
    except ValueError:
        return False
    return bool(named) and os.path.realpath(os.path.join(gitdir, named)) == tree


def _digest(data: bytes | None) -> str:
    return "no plain file" if data is None else hashlib.sha256(data).hexdigest()


def existing_arms(place: str) -> list[str]:
    """What of a place is there and must stay as it is."""
    if not os.path.isdir(place) or os.path.islink(place):
        return [] if os.path.islink(place) else [place]
    paths = (os.path.join(place, name) for name in ARMS)
    return [path for path in paths if os.path.exists(path) and stat.S_IFMT(os.lstat(path).st_mode) != stat.S_IFLNK]
