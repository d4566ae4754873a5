"""Which branches a command line may add commits to, here or at a remote, by the words of its git commands and by what
is checked out where they run. What cannot be told counts as any branch."""

import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from codewhale.permissions.shell.words import UNKNOWN
from codewhale.process.repository import Repository, find_repository, read_head
from codewhale.process.sandbox.gitfiles import read_small

if TYPE_CHECKING:
    from codewhale.permissions.shell.harm import SimpleCommand

ANY = "*"  # some branch, and it is not known which
# Sub-commands of git that move no branch. Any other one that is not named below may: an alias, an extension.
_SAFE = frozenset(
    """add annotate apply archive blame bugreport bundle cat-file check-attr check-ignore check-mailmap
    check-ref-format checkout-index cherry clean column commit-graph commit-tree config count-objects credential
    credential-cache credential-store daemon describe diagnose diff diff-files diff-index diff-tree difftool
    fast-export fetch-pack fmt-merge-msg for-each-ref format-patch fsck gc get-tar-commit-id grep hash-object help
    index-pack instaweb interpret-trailers lfs log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge-base
    merge-file merge-index merge-one-file merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes
    pack-objects pack-redundant pack-refs patch-id prune prune-packed range-diff read-tree reflog remote repack replace
    request-pull rerere restore rev-list rev-parse rm send-email shortlog show show-branch show-index show-ref
    sparse-checkout stage status stripspace tag unpack-file unpack-objects var verify-commit verify-pack verify-tag
    version whatchanged write-tree""".split()
)
_COMMITS = frozenset("commit merge cherry-pick revert am pull rebase reset".split())
# What changes which branch is checked out, or makes a repository where none was.
_SWITCHES = frozenset("switch checkout symbolic-ref worktree stash bisect init clone".split())
_VALUED = frozenset("-c -C --git-dir --work-tree --namespace --config-env --super-prefix --attr-source".split())
_FORCED = re.compile(r"-[a-zA-Z]*[fdDmMcC]|--(?:f(?:o|or|orc|orce)|del(?:e|et|ete)?|m(?:o|ov|ove)|cop(?:y)?)\Z")
# Settings by which a push or a name goes elsewhere than its words say, as they stand in a file and behind -c.
_DIVERTS = re.compile(
    r"^\s*(?:push|mirror)\s*=|^\s*default\s*=\s*(?:matching|upstream|tracking)\b|^\s*\[include", re.I | re.M
)
_DIVERTING = ("alias.", "push.", "remote.", "branch.", "include", "url.", "core.worktree")
# Programs that run a command elsewhere, or with words that stand nowhere in the line.
_CARRIERS = frozenset(
    "sudo doas chroot unshare nsenter systemd-run runuser su ssh docker podman parallel xargs find fd popd".split()
)
_SHELLS = frozenset("sh bash zsh dash ksh eval source . trap watch".split())
_OTHERS = {"gh": (("pr", "merge"), ("repo", "sync"), ("api",)), "glab": (("mr", "merge"), ("api",))}
_FRONTENDS = frozenset("jj sl hg gt got stg dulwich git-town".split())
_MOVING = _COMMITS | {"push", "submit", "ship", "sync", "update-ref", "branch"}
_LOOPS = re.compile(r"\b(?:for|while|until|function)\b|\(\)")
_UNSURE = re.compile(r"\bGIT_|\bCDPATH=|\.git/")
_FREELY = re.compile(r"[;\n]|\|\||(?<![&>])&(?![&>])")
# Options of push and rebase whose value stands behind them.
_WITH_VALUE = re.compile(r"-[a-zA-Z]*o|--(?:push-?o|rec(?:eive|v)|ex|repo|onto)[a-z-]*")
_REBASING = ("rebase-merge/head-name", "rebase-apply/head-name")


def moved_branches(line: str, commands: "Sequence[SimpleCommand]", root: str, typed: bool = False) -> set[str]:
    """The branches; ANY among them for one that is not known. `typed`: the line is for a program that runs already, so
    that its folder is not known."""
    if not commands:
        return {ANY} if "git" in line.casefold() else set()
    names = [posixpath.basename(command.argv[0]) if command.argv else "" for command in commands]
    loose = any(name in _SHELLS for name in names) or bool(_LOOPS.search(line))
    switched = loose and any(map(_switches, commands))
    unsure = typed or bool(_UNSURE.search(line)) or any(map(_elsewhere, commands))
    moved: set[str] = set()
    for command in commands:
        folders = {command.where, root} if _FREELY.search(line) else {command.where}
        moved |= _Moves(command, folders, unsure or switched).names()
        switched = switched or _switches(command)
    return moved


def _elsewhere(command: "SimpleCommand") -> bool:
    name = posixpath.basename(command.argv[0]) if command.argv else ""
    if name == "env":
        return any(word.startswith(("-C", "-S", "--chdir", "--split", "GIT_")) for word in command.argv[1:])
    return name in _CARRIERS or any("GIT_" in word for word in command.argv if name in ("export", "declare", "typeset"))


def _switches(command: "SimpleCommand") -> bool:
    sub, rest, _ = _split(command.argv)
    if command.argv[:1] and posixpath.basename(command.argv[0]) == "gh":
        return "checkout" in command.argv or "clone" in command.argv
    quiet = sub in ("checkout", "stash", "worktree") and ("--" in rest or rest[:1] in ([], ["."], ["list"], ["push"]))
    return sub in _SWITCHES and not quiet


def _split(argv: Sequence[str]) -> tuple[str, list[str], list[tuple[str, str]]]:
    """The sub-command of git, the words behind it and the options before it with their values; "" for no git."""
    name = posixpath.basename(argv[0]).casefold().removesuffix(".exe") if argv else ""
    if name.startswith("git-") and name not in _FRONTENDS:
        return name.removeprefix("git-"), list(argv[1:]), []
    if name not in ("git", "hub") and UNKNOWN not in name:
        return "", [], []
    rest, before = list(argv[1:]), list[tuple[str, str]]()
    while rest and rest[0].startswith("-"):
        option, glued, value = rest.pop(0).partition("=")
        if option in _VALUED and not glued and rest:
            value = rest.pop(0)
        before.append((option, value))
    if UNKNOWN in name and not set(rest[:1]) & (_MOVING | _SWITCHES):
        return "", [], []
    return (rest[0] if rest else "", rest[1:], before)


class _Moves:
    """What one command moves."""

    def __init__(self, command: "SimpleCommand", folders: set[str], unsure: bool) -> None:
        self._argv = command.argv
        self._sub, self._rest, before = _split(command.argv)
        self._folders, self._gitdir = folders, ""
        for option, value in before:
            if option == "-C":
                self._folders = {os.path.join(folder, value) if folder else "" for folder in self._folders}
            elif option == "--git-dir":
                self._gitdir = value
            unsure = unsure or option in ("--work-tree", "--config-env", "--bare") or UNKNOWN in value
            unsure = unsure or (option == "-c" and value.casefold().startswith(_DIVERTING))
        self._unsure = unsure

    def names(self) -> set[str]:
        sub, rest = self._sub, self._rest
        if not sub:
            return {ANY} if self._other() else set()
        if (sub in _SAFE and "migrate" not in rest) or rest[:1] in (["-h"], ["--help"]):
            return set()
        move = {
            "push": self._push, "fetch": self._fetch, "branch": self._branch, "checkout": self._recreated,
            "switch": self._recreated, "worktree": self._recreated, "update-ref": self._ref, "symbolic-ref": self._ref,
            "reset": self._reset, "rebase": self._rebase, "pull": self._pull,
        }.get(sub)  # fmt: skip
        if move is not None:
            return {ANY if UNKNOWN in name else _plain(name) for name in move()}
        if sub in _COMMITS:
            return self._current()
        runs = (sub == "bisect" and "run" in rest) or (sub == "submodule" and "foreach" in rest)
        return {ANY} if runs or sub not in _SWITCHES | {"submodule"} else set()

    def _other(self) -> bool:
        """Whether another program may move a branch: a host's own, or another front end of git."""
        name = posixpath.basename(self._argv[0]) if self._argv else ""
        words = [word for word in self._argv[1:] if not word.startswith("-")]
        if name in _FRONTENDS:
            return bool(_MOVING.intersection(words))
        for row in _OTHERS.get(name, ()):
            if words[: len(row)] == list(row):
                return row != ("api",) or any(
                    part in word for word in self._argv for part in ("merge", "ref", "contents", "graphql")
                )
        return False

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
        if self._unsure:
            return {ANY}
        return set().union(*(self._at(folder) for folder in self._folders))

    def _at(self, folder: str) -> set[str]:
        if not folder or UNKNOWN in folder or not os.path.isdir(folder):
            return {ANY}
        gitdir = os.path.join(folder, self._gitdir)
        repository = find_repository(folder) if not self._gitdir else Repository(folder, gitdir, gitdir)
        head = None if repository is None else read_head(repository)
        if repository is None or head is None:
            return {ANY}
        found = {"" if re.fullmatch(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", head) else head}
        for name in _REBASING:  # whose branch is moved at the end
            data = read_small(os.path.join(repository.gitdir, name))
            found.add((data or b"").decode("utf-8", "replace").strip().removeprefix("refs/heads/"))
        return found - {"", "detached HEAD"}

    def _push(self) -> set[str]:
        options, operands = [word for word in self._rest if word.startswith("-")], self._operands()
        every = ("--all", "--branches", "--mirror", "--prune")
        if any(len(word) > 3 and one.startswith(word) for word in options for one in every):
            return {ANY}
        refs = {name for word in operands for name in self._targets(word)}
        whole = [word for word in operands[1:] if word.partition(":")[2]]
        if len(operands) < 2 or len(whole) < len(operands) - 1:
            refs |= {ANY} if self._diverted() else self._current() if len(operands) < 2 else set()
        return refs

    def _targets(self, refspec: str) -> Iterator[str]:
        """Where a refspec leads at the other end."""
        source, colon, target = refspec.lstrip("+").partition(":")
        name = target if colon and target else source
        if colon and not source and not target:
            yield ANY  # ":" is all that match
        elif not target and name in ("HEAD", "@"):
            yield from self._current()
        else:
            yield ANY if set("*?[") & set(name) else name

    def _diverted(self) -> bool:
        """Whether settings may send a push elsewhere than to the branch of the same name."""
        if self._unsure:
            return True
        files = [os.path.expanduser("~/.gitconfig"), os.path.expanduser("~/.config/git/config"), "/etc/gitconfig"]
        for folder in self._folders:
            repository = find_repository(folder) if os.path.isdir(folder) else None
            if repository is None:
                return not self._gitdir
            files += [os.path.join(repository.common, "config"), os.path.join(repository.gitdir, "config.worktree")]
        return any(_DIVERTS.search((read_small(file) or b"").decode("utf-8", "replace")) for file in files)

    def _fetch(self) -> Iterator[str]:
        if "--stdin" in self._rest:
            yield ANY
        for word in self._operands()[1:]:
            target = word.partition(":")[2]
            if target or UNKNOWN in word:
                yield ANY if set("*?[") & set(target) else target or UNKNOWN

    def _pull(self) -> set[str]:
        return {*self._current(), *self._fetch()}

    def _branch(self) -> set[str]:
        if not any(_FORCED.match(word) or UNKNOWN in word for word in self._rest):
            return set()
        operands = self._operands()
        renames = any(re.match(r"-[a-zA-Z]*[mMcC]|--m|--c", word) for word in self._rest)
        return {*operands, *(self._current() if renames and len(operands) < 2 else ())}

    def _recreated(self) -> Iterator[str]:
        """The branch that is set anew, whatever it held: -B, and -C of switch."""
        letter, long = ("C", "--force-create") if self._sub == "switch" else ("B", "\n")
        for at, word in enumerate(self._rest):
            behind = self._rest[at + 1] if at + 1 < len(self._rest) else UNKNOWN
            option, glued, value = word.partition("=")
            if UNKNOWN in word and word.startswith("-"):
                yield ANY
            elif word.startswith("--") and len(option) > len("--force") and long.startswith(option):
                yield value if glued else behind
            elif re.match(rf"-[a-zA-Z]*{letter}", word) and not word.startswith("--"):
                yield word.partition(letter)[2] or behind

    def _ref(self) -> set[str]:
        operands = self._operands()
        if "--stdin" in self._rest:
            return {ANY}
        if self._sub == "symbolic-ref" and operands[:1] == ["HEAD"]:
            return set()
        return self._current() if operands[:1] == ["HEAD"] else set(operands[:1])

    def _reset(self) -> set[str]:
        ahead = self._rest[: self._rest.index("--")] if "--" in self._rest else self._rest
        moves = [word for word in ahead if word != "HEAD" and (not word.startswith("-") or UNKNOWN in word)]
        return self._current() if moves else set()

    def _rebase(self) -> set[str]:
        if any(word.startswith(("-x", "--ex", "--update-r")) for word in self._rest):
            return {ANY}
        return {*self._current(), *self._operands()[1:]}


def _plain(name: str) -> str:
    return re.sub(r"^(?:refs/)?heads/", "", name)
