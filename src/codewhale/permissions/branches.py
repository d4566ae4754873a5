"""Which branches a command line may add commits to, here or at a remote, by the words of its git commands and by what
is checked out where they run. What cannot be told counts as any branch."""

import functools
import os
import posixpath
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from codewhale.permissions.shell.words import UNKNOWN
from codewhale.process.repository import Repository, find_repository, read_head
from codewhale.process.sandbox.gitfiles import read_small

if TYPE_CHECKING:
    from codewhale.permissions.shell.harm import SimpleCommand

ANY = "*"  # some branch, and it is not known which
_FORCED = re.compile(r"-[a-zA-Z]*[fdDmMcC]|--(?:f(?:o|or|orc|orce)|del(?:e|et|ete)?|m(?:o|ov|ove)|cop(?:y)?)\Z")
_RENAMED = re.compile(r"-[a-zA-Z]*[mMcC]|--m|--c")
# Settings by which a push goes elsewhere, as they stand in a file.
_DIVERTS = re.compile(
    r"^\s*(?:push|mirror)\s*=|^\s*default\s*=\s*(?:matching|upstream|tracking)\b|^\s*\[include", re.I | re.M
)
# Options of push and rebase whose value stands behind them; those of push for every branch, however cut short.
_WITH_VALUE = re.compile(r"-[a-zA-Z]*o|--(?:push-?o|rec(?:eive|v)|ex|repo|onto)[a-z-]*")
_EVERY = re.compile(r"--(?:al|bra|mir|prun)")
_RUNS = frozenset((("bisect", "run"), ("submodule", "foreach"), ("lfs", "migrate")))
_RUNNING = re.compile(r"-x|--ex|--update-r")
_LOOPS = re.compile(r"\b(?:for|while|until|function)\b|\(\)")
_UNSURE = re.compile(r"\bGIT_|\bCDPATH=|\.git/")
_FREELY = re.compile(r"[;\n]|\|\||(?<![&>])&(?![&>])")
_COMMIT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?|detached HEAD|")
_GLOBS = frozenset("*?[")
_REBASING = ("rebase-merge/head-name", "rebase-apply/head-name")


@functools.cache
def _table() -> dict[str, frozenset[str]]:
    rows = tomllib.loads(Path(__file__).with_name("branches.toml").read_text("utf-8")).items()
    return {name: frozenset(row if isinstance(row, list) else row.split()) for name, row in rows}


def moved_branches(line: str, commands: "Sequence[SimpleCommand]", root: str, typed: bool = False) -> set[str]:
    """The branches; ANY among them for one that is not known. `typed`: the line is for a program that runs already, so
    that its folder is not known."""
    if not commands:
        return {ANY} if "git" in line.casefold() else set()
    loose = any(_name(command) in _table()["shells"] for command in commands) or bool(_LOOPS.search(line))
    switched = loose and any(map(_switches, commands))
    unsure = typed or bool(_UNSURE.search(line)) or any(map(_elsewhere, commands))
    moved: set[str] = set()
    for command in commands:
        folders = {command.where, root} if _FREELY.search(line) else {command.where}
        moved |= _Moves(command, folders, unsure or switched).names()
        switched = switched or _switches(command)
    return moved


def _name(command: "SimpleCommand") -> str:
    return posixpath.basename(command.argv[0]).casefold().removesuffix(".exe") if command.argv else ""


def _elsewhere(command: "SimpleCommand") -> bool:
    name = _name(command)
    if name == "env":
        return any(word.startswith(("-C", "-S", "--chdir", "--split", "GIT_")) for word in command.argv[1:])
    return name in _table()["carriers"] or (name in ("export", "declare", "typeset") and "GIT_" in str(command.argv))


def _switches(command: "SimpleCommand") -> bool:
    sub, rest, _ = _split(command)
    if _name(command) == "gh":
        return "checkout" in command.argv or "clone" in command.argv
    quiet = sub in ("checkout", "stash", "worktree") and ("--" in rest or rest[:1] in ([], ["."], ["list"], ["push"]))
    return sub in _table()["switches"] and not quiet


def _split(command: "SimpleCommand") -> tuple[str, list[str], list[tuple[str, str]]]:
    """The sub-command of git, the words behind it and the options before it with their values; "" for no git."""
    name, rest, before, table = _name(command), list(command.argv[1:]), list[tuple[str, str]](), _table()
    if name.startswith("git-") and name != "git-town":
        return name.removeprefix("git-"), rest, []
    if name not in ("git", "hub") and UNKNOWN not in name:
        return "", [], []
    while rest and rest[0].startswith("-"):
        option, glued, value = rest.pop(0).partition("=")
        if option in table["valued"] and not glued and rest:
            value = rest.pop(0)
        before.append((option, value))
    known = table["commits"] | table["switches"] | table["looked_at"]
    if UNKNOWN in name and not known.intersection(rest[:1]):
        return "", [], []
    return (rest[0] if rest else "", rest[1:], before)


class _Moves:
    """What one command moves."""

    def __init__(self, command: "SimpleCommand", folders: set[str], unsure: bool) -> None:
        self._command = command
        self._sub, self._rest, before = _split(command)
        self._folders, self._gitdir = folders, ""
        for option, value in before:
            if option == "-C":
                self._folders = {os.path.join(folder, value) if folder else "" for folder in self._folders}
            elif option == "--git-dir":
                self._gitdir = value
            unsure = unsure or option in ("--work-tree", "--config-env", "--bare") or UNKNOWN in value
            unsure = unsure or (option == "-c" and value.casefold().startswith(tuple(_table()["diverting"])))
        self._unsure = unsure

    def names(self) -> set[str]:
        sub, rest, table = self._sub, self._rest, _table()
        if not sub:
            return {ANY} if self._other() else set()
        runs = any((sub, word) in _RUNS for word in rest) or (sub == "rebase" and any(map(_RUNNING.match, rest)))
        if rest[:1] in (["-h"], ["--help"]) or (sub in table["safe"] and not runs):
            return set()
        if sub in table["looked_at"]:
            named = {ANY} if runs else self._named()
            return {ANY if UNKNOWN in name else re.sub(r"^(?:refs/)?heads/", "", name) for name in named}
        if sub in table["commits"]:
            return self._current()
        return set() if sub in table["switches"] and not runs else {ANY}

    def _other(self) -> bool:
        words = [_name(self._command), *(word for word in self._command.argv[1:] if not word.startswith("-"))]
        row = next((row for row in _table()["others"] if words[: row.count(" ") + 1] == row.split()), "")
        text = " ".join(self._command.argv)
        return bool(row) and (not row.endswith(" api") or bool(re.search("merge|ref|contents|graphql", text)))

    def _operands(self) -> list[str]:
        operands, behind, valued = list[str](), False, False
        for word in self._rest:
            behind = behind or word == "--"
            if word != "--" and not valued and (behind or not word.startswith("-") or UNKNOWN in word):
                operands.append(word)
            valued = not behind and self._sub in ("push", "rebase") and bool(_WITH_VALUE.fullmatch(word))
        return operands

    def _current(self) -> set[str]:
        """The branches that are checked out where it runs."""
        return {ANY} if self._unsure else set().union(*map(self._at, self._folders))

    def _at(self, folder: str) -> set[str]:
        if not folder or UNKNOWN in folder or not os.path.isdir(folder):
            return {ANY}
        gitdir = os.path.join(folder, self._gitdir)
        repository = find_repository(folder) if not self._gitdir else Repository(folder, gitdir, gitdir)
        head = None if repository is None else read_head(repository)
        if repository is None or head is None:
            return {ANY}
        rebased = (read_small(os.path.join(repository.gitdir, name)) or b"" for name in _REBASING)
        names = (head, *(name.decode("utf-8", "replace").strip().removeprefix("refs/heads/") for name in rebased))
        return {name for name in names if not _COMMIT_ID.fullmatch(name)}

    def _named(self) -> Iterator[str]:
        """The branches that the words of a sub-command name, and the current one where they mean it."""
        operands, rest, sub = self._operands(), self._rest, self._sub
        ahead = rest[: rest.index("--")] if "--" in rest else rest
        current = sub == "pull" or (sub == "update-ref" and operands[:1] == ["HEAD"])
        if sub == "push":
            yield from self._pushed(operands)
        elif sub in ("fetch", "pull"):
            targets = [word.partition(":")[2] or word for word in operands[1:] if ":" in word or UNKNOWN in word]
            yield from (ANY if _GLOBS & set(target) else target for target in targets)
        elif sub == "branch" and any(_FORCED.match(word) or UNKNOWN in word for word in rest):
            yield from operands
            current = len(operands) < 2 and any(map(_RENAMED.match, rest))
        elif sub in ("switch", "checkout", "worktree"):
            yield from self._recreated(*(("C", "--force-create") if sub == "switch" else ("B", "")))
        elif sub in ("update-ref", "symbolic-ref"):
            yield from {*operands[:1]} - {"HEAD"}
        elif sub == "reset":
            current = any(word != "HEAD" and (word[:1] != "-" or UNKNOWN in word) for word in ahead)
        elif sub == "rebase":
            yield from operands[1:]
            current = True
        yield from self._current() if current else ()
        yield from {ANY} if "--stdin" in rest else ()

    def _pushed(self, operands: list[str]) -> Iterator[str]:
        """Where refspecs lead at the other end; ":" alone is all that match."""
        if any(map(_EVERY.match, self._rest)):
            yield ANY
        for word in operands:
            source, _, target = word.lstrip("+").partition(":")
            if source in ("HEAD", "@") and not target:
                yield from self._current()
            else:
                yield ANY if _GLOBS & set(target or source or "*") else target or source
        if (len(operands) < 2 or not all(word.partition(":")[2] for word in operands[1:])) and self._diverted():
            yield ANY
        yield from self._current() if len(operands) < 2 else ()

    def _diverted(self) -> bool:
        """Whether settings may send a push elsewhere than to the branch of the same name."""
        files = [os.path.expanduser("~/.gitconfig"), os.path.expanduser("~/.config/git/config"), "/etc/gitconfig"]
        for folder in self._folders:
            repository = find_repository(folder) if os.path.isdir(folder) else None
            if repository is None or self._unsure:
                return True
            files += [os.path.join(repository.common, "config"), os.path.join(repository.gitdir, "config.worktree")]
        return any(_DIVERTS.search((read_small(file) or b"").decode("utf-8", "replace")) for file in files)

    def _recreated(self, letter: str, long: str) -> Iterator[str]:
        """The branch that is set anew, whatever it held."""
        for at, word in enumerate(self._rest):
            behind = self._rest[at + 1] if at + 1 < len(self._rest) else UNKNOWN
            option, glued, value = word.partition("=")
            if len(option) > len("--force") and long.startswith(option):
                yield value if glued else behind
            elif re.match(rf"-[a-zA-Z]*{letter}|-.*{UNKNOWN}", word):
                yield UNKNOWN if UNKNOWN in word else word.partition(letter)[2] or behind
