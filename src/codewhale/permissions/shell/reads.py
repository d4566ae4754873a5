"""What only reads: commands held against a table of programs and their harmless options; and whether a git command that
reads may run a program that a repository names, or read another one's."""

import functools
import os
import re
import struct
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from codewhale.permissions.shell.checks import CHECKS, SYNTAXES
from codewhale.permissions.shell.paths import ShellPaths, ask, chosen, program_in, read_once, real_path
from codewhale.permissions.shell.table import Reads, reads, roles
from codewhale.permissions.shell.words import GLOB, UNKNOWN, Word
from codewhale.process.repository import Repository, config_entries, find_repository, named_elsewhere
from codewhale.process.sandbox.gitfiles import read_small, steering
from codewhale.protocol.protected import is_git_directory

_MOST_INDEX = 1 << 26
_GITLINK = 0o160000
# Settings that steer commands which write or dial, and none that reads.
_IDLE = re.compile(
    r"core\.(?:editor|hookspath)|user\.signingkey|(?:commit|tag|push)\.gpgsign|(?:alias|difftool|mergetool|merge|rebase|sequence"
    r"|credential|https?|gui|gitflow|svn-remote)\..*|remote\..*\.(?:receivepack|proxy|gh-resolved)|(?:diff|merge)\.(?:gui)?tool"
)
# Commands that look into the work trees of submodules, each of which has settings of its own.
_DEEP = frozenset("status diff diff-files diff-index describe grep ls-files stash".split())


def look_anew() -> None:
    """Forget what was seen of the disk: a line is about to be looked at, and what it meets is as it is then."""
    for kept in (real_path, program_in, chosen, read_once, _repository_of, _why_any, _submodule):
        kept.cache_clear()


def why_more(folder: str, command: str) -> str:
    """Why a git command in a folder may do more than read the repository that the folder is in; "" for nothing."""
    why, repository = _why_any(folder), _repository_of(folder)
    return why or (_submodule(repository) if repository is not None and command in _DEEP else "")


@functools.lru_cache(maxsize=256)
def _repository_of(folder: str) -> Repository | None:
    """The repository that a folder is in; kept until one look at a line is over."""
    return find_repository(folder)


@functools.lru_cache(maxsize=256)
def _why_any(folder: str) -> str:
    """Why any git command there may do more; kept until one look at a line is over."""
    repository = _repository_of(folder)
    if repository is None and named_elsewhere(folder):
        return "its .git points to a repository that does not point back"
    bare = _bare_at(folder, repository.root if repository is not None else "/")
    if bare:
        return f"{bare} looks like the inside of a Git repository"
    if repository is None:
        return ""
    for file in (os.path.join(repository.common, "config"), os.path.join(repository.gitdir, "config.worktree")):
        data = read_small(file)
        if data is None and os.path.lexists(file):
            return f"{file} cannot be read"
        for name, value in steering(data or b""):
            if not _IDLE.fullmatch(name) and not (name == "core.pager" and value in ("", "cat")):
                return f"its setting {name} may start a program"
            if name == "core.hookspath" and _hooked(os.path.join(repository.root, os.path.expanduser(value))):
                return "it has a Git hook that runs on reading"
    return "it has a Git hook that runs on reading" if _hooked(os.path.join(repository.common, "hooks")) else ""


def _small_names(repository: Repository) -> bool:
    """Whether names of objects are of the length that the index is read with here."""
    settings = config_entries(os.path.join(repository.common, "config"))
    return all(name != "extensions.objectformat" or value == "sha1" for name, value in settings)


def _hooked(folder: str) -> bool:
    return os.path.lexists(os.path.join(folder, "post-index-change"))


def _bare_at(folder: str, top: str) -> str:
    """The folder, or one above it up to the top of the work tree, that git takes for a git directory."""
    folder = real_path(folder)
    while True:
        names = set(_names(folder))
        if ".git" not in names and is_git_directory(names):
            return folder
        if folder in (top, "/"):
            return ""
        folder = os.path.dirname(folder)


@functools.lru_cache(maxsize=256)
def _submodule(repository: Repository) -> str:
    """Which repository stands where the index says that one does; kept until one look at a line is over."""
    shared = [name for name in _names(repository.gitdir) if name.startswith("sharedindex.")]
    for name in ("index", *shared):
        file = os.path.join(repository.gitdir, name)
        data = read_small(file, _MOST_INDEX)
        if data is None and os.path.lexists(file):
            return f"{file} cannot be read"
        if data is None or struct.pack(">I", _GITLINK) not in data:
            continue
        if not _small_names(repository):
            return "it may contain repositories"
        try:
            inside = [path for path in _gitlinks(data) if os.path.lexists(os.path.join(repository.root, path, ".git"))]
        except (ValueError, struct.error):
            return "it may contain repositories"
        if inside:
            return f"the repository {inside[0]} in it has its own settings"
    return ""


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _gitlinks(data: bytes) -> Iterator[str]:
    """The paths of an index at which it holds a commit. Raises ValueError for a form that is not known."""
    signature, version, count = struct.unpack_from(">4sII", data)
    if signature != b"DIRC" or version not in (2, 3):
        raise ValueError("the version of the index")
    at = 12
    for _ in range(count):
        (mode,) = struct.unpack_from(">I", data, at + 24)
        (flags,) = struct.unpack_from(">H", data, at + 60)
        begin = at + (64 if flags & 0x4000 else 62)
        end = data.index(b"\0", begin)
        if mode == _GITLINK:
            yield os.fsdecode(data[begin:end])
        at += (end - at) // 8 * 8 + 8


_FOLDERS = re.compile(r"/(?:usr/)?bin/")
# A pattern for all names with an ending, or for folders; checks that mind a text that is not known.
_SUFFIX = re.compile(r"\*[\w.-]*\.\w+|\*/(?:[\w.*-]+/?)*")
_UNKNOWN_TEXT = frozenset(("printf", "test"))
_PATH_VALUES = frozenset(("r", "reference", "f", "file", "O", "exclude-from", "ignore-rev"))


class SortedWords(Struct, gc=False):
    """The words of a call, sorted: names and letters of options as they came, their values, operands."""

    options: list[str]
    values: list[tuple[str, str]]
    operands: list[str]


class Candidate(Struct, frozen=True, gc=False):
    """One command to judge: its words, the folders that it may run in, whether paths of the workspace that are not
    known yet will join its words, and whether it is given an input."""

    words: Sequence[Word]
    folders: tuple[str, ...]
    more: bool = False
    fed: bool = False


def only_reads(call: Candidate, places: ShellPaths) -> bool:
    """Whether one command needs the sandbox to do no more than reading; asks about one that may do more."""
    first, *others = call.words
    name, folders, table = program(first), call.folders, reads()
    if not name:
        ask("shell.unknown", f"{first.text} may not be the system's own program")
    if planted := program_in(places.workspace, name):
        ask("shell.project-code", f"{planted} may run as {name}")
    rest = [word.text for word in others]
    if rest and rest[-1] in table.versions and _asks_version(name, rest, call, places):
        return name in table.questions["chosen"]
    rules: Reads | None
    if name == "git":
        while rest and (rest[0] in table.before_git or (rest[0] == "-C" and len(rest) > 1)):
            if rest[0] == "-C":
                places.reading(rest[1], *folders)
                folders, rest = tuple(places.absolute(rest[1], folder) for folder in folders), rest[1:]
            rest = rest[1:]
        name = f"git {rest[0]}" if rest else "git"
        rules, rest = table.git.get(rest[0]) if rest else None, rest[1:]
        for folder in folders if rules is not None else ():
            if why := why_more(folder, name.partition(" ")[2]):
                ask("shell.repository", f"git there may run programs or read other places: {why}")
    else:
        rules = table.programs.get(name)
    if rules is None:
        ask("shell.unknown", f"{name} may do more than read")
    if call.more and (not rules.any or rules.at):
        ask("shell.option", f"{name} may read a file name as an option")
    for word in others:
        if (word.glob or UNKNOWN in word.text) and (doubt := _doubt(word, rules)):
            ask("shell.expansion", doubt)
    _look(name, rules, rest, folders, places)
    return rules.sandbox


def _asks_version(name: str, rest: list[str], call: Candidate, places: ShellPaths) -> bool:
    """Whether words that end like one are a question for a program's version. A program that takes code from its input
    must have none, and one that a file of the project chooses is asked about where there is such a file."""
    versions, questions = reads().versions, reads().questions
    if call.more or UNKNOWN in "".join(rest):
        return False
    module = rest[1] if name in ("python", "python3") and rest[0] == "-m" and len(rest) == 3 else ""
    if (rest[-1] != "--version" or module not in questions["modules"]) if module else len(rest) > 1:
        return False
    if name not in versions[rest[-1]]:
        return False
    looks: list[Callable[[ShellPaths, str], str]] = [chosen] if name in questions["chosen"] else []
    looks += [ShellPaths.shadowed] if module else []
    looks += [ShellPaths.loaded] if (module or name) in questions["loading"] else []
    if why := next((why for look in looks for folder in call.folders if (why := look(places, folder))), ""):
        ask("shell.project-code", f"a file in the project decides what runs: {why}")
    if call.fed and not roles(name).sets.isdisjoint(("shells", "interpreters")):
        ask("shell.construct", f"{name} may run what it reads")
    return True


def program(word: Word) -> str:
    """The name of the program that a first word runs, "" where it is not surely the system's."""
    if not word.literal or not word.plain or word.glob:
        return ""
    name = _FOLDERS.sub("", word.text, count=1) if word.text.startswith("/") else word.text
    return "" if "/" in name or "=" in name or UNKNOWN in name else name


def _doubt(word: Word, rules: Reads) -> str:
    """Why it is not known well enough what a word will be. What is not known may stand where everything is text. A
    pattern may, where every name it can stand for begins with what cannot be an option, and is not hidden."""
    if UNKNOWN in word.text and not (rules.text and (rules.any or rules.check in _UNKNOWN_TEXT)):
        return "a value is only known when it runs"
    if not word.glob:
        return ""
    pattern = word.names[0]
    head = GLOB.split(pattern, maxsplit=1)[0]
    free = rules.any and not rules.at and ((rules.star and pattern == "*") or bool(_SUFFIX.fullmatch(pattern)))
    if (not head and not free) or (head.startswith("-") and "=" not in head):
        return f"{pattern} may be read as an option if a file is named so; write ./{pattern.lstrip('-')}"
    hidden = any(part.startswith(".") and re.search(r"[*?]", part) for part in pattern.split("/"))
    return f"{pattern} may match hidden files" if hidden or "[" in pattern else ""


def _look(name: str, rules: Reads, words: list[str], folders: tuple[str, ...], places: ShellPaths) -> None:
    if rules.check in SYNTAXES:
        for where in folders:
            SYNTAXES[rules.check](words, where, places)
        return
    kinds = SortedWords([], [], [])
    bad = _loosely(rules, words, kinds) if rules.any else _strictly(rules, words, kinds)
    if bad:
        ask("shell.option", f"{name} {bad} may do more than read")
    count, first = len(kinds.operands), kinds.operands[0] if kinds.operands else ""
    if not rules.least <= count <= rules.most:
        ask("shell.option", f"{name} with {count} arguments may do more than read")
    if rules.words and first not in rules.words:
        ask("shell.option", f"{name} {first} may do more than read")
    why = CHECKS[rules.check](kinds.options, kinds.values, kinds.operands) if rules.check else ""
    if not why and rules.at and any(word.startswith("@") for word in kinds.operands):
        why = f"{name} takes options from the file after @"
    if not why and not rules.follows.isdisjoint(kinds.options):
        why = next((why for where in folders if (why := places.links(_operands(rules, kinds), where))), "")
    if why:
        ask("shell.option", why)
    paths = [] if rules.text else _operands(rules, kinds)
    if kinds.values and not rules.any:
        paths += [value for option, value in kinds.values if option in _PATH_VALUES]
    for path in paths:
        if rules.sandbox and ":" in path:  # git's REVISION:PATH
            path = path.partition(":")[2] or "."
        places.reading(path, *folders)


def _operands(rules: Reads, kinds: SortedWords) -> list[str]:
    patterned = rules.pattern is not None and not rules.pattern.intersection(kinds.options)
    return kinds.operands[1:] if patterned else list(kinds.operands)


def _loosely(rules: Reads, words: list[str], kinds: SortedWords) -> str:
    """Sort the words of a program whose options do no harm but those in `bars`; returns the first that is barred."""
    ended, value = False, False
    for word in words:
        if value:
            value = False
        elif ended or not word.startswith("-") or word == "-":
            kinds.operands.append(word)
        elif word == "--":
            ended = True
        elif word.startswith("--"):
            option = word[2:].partition("=")[0]
            kinds.options.append(option)
            if any(len(bar) > 1 and bar.startswith(option) for bar in rules.bars):
                return word
        else:
            for at, letter in enumerate(word[1:], 2):
                kinds.options.append(letter)
                if letter in rules.bars:
                    return word
                if letter in rules.values:
                    value = at == len(word)
                    break
    return ""


def _strictly(rules: Reads, words: list[str], kinds: SortedWords) -> str:
    """Sort the words; returns the first that is not allowed, "" for none."""
    waiting, ended = "", False
    for word in words:
        if waiting:
            kinds.values.append((waiting, word))
            waiting = ""
        elif ended or not word.startswith("-") or word == "-":
            kinds.operands.append(word)
        elif word == "--":
            ended = True
        else:
            allowed, waiting = (_long if word.startswith("--") else _short)(rules, word.lstrip("-"), kinds)
            if not allowed or word.startswith("---"):
                return word
    return f"the value is missing of {waiting}" if waiting else ""


def _long(rules: Reads, word: str, kinds: SortedWords) -> tuple[bool, str]:
    """Whether a long option is allowed, and its name if its value is still to come."""
    option, equals, value = word.partition("=")
    kinds.options.append(option)
    if equals:
        kinds.values.append((option, value))
        return option + "=" in rules.long or option + "?" in rules.long, ""
    if option + "=" in rules.long:
        return True, option
    return option in rules.long or option + "?" in rules.long, ""


def _short(rules: Reads, letters: str, kinds: SortedWords) -> tuple[bool, str]:
    """Whether all letters are allowed, and the one whose value is still to come."""
    if letters.isdigit():
        return rules.counts or rules.log, ""
    for at, letter in enumerate(letters):
        kinds.options.append(letter)
        if letter in rules.values:
            if at + 1 < len(letters):
                kinds.values.append((letter, letters[at + 1 :]))
                return True, ""
            return True, letter
        if letter not in rules.flags:
            return False, ""
    return True, ""
