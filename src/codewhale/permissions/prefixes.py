"""Prefixes of commands: how many words make up what a command does, which prefixes an approval may be remembered as,
and whether a rule's prefix is that of a command."""

import posixpath
import re
import shlex
from functools import lru_cache

from codewhale.permissions.shell.words import UNKNOWN

_BARE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")

# How many words say what a program is asked to do; 1 for a program that is not here. A longer row wins.
_ARITY = {
    "apt": 2, "apt-get": 2, "aws": 3, "az": 3, "brew": 2, "bun": 2, "bun run": 3, "bundle": 2, "cargo": 2,
    "composer": 2, "composer run-script": 3, "conda": 2, "deno": 2, "deno task": 3, "dnf": 2, "docker": 2,
    "docker builder": 3, "docker buildx": 3, "docker compose": 3, "docker container": 3, "docker image": 3,
    "docker network": 3, "docker system": 3, "docker volume": 3, "dotnet": 2, "gcloud": 3, "gem": 2, "gh": 3, "git": 2,
    "git bundle": 3, "git lfs": 3, "git notes": 3, "git reflog": 3, "git remote": 3, "git sparse-checkout": 3,
    "git stash": 3, "git submodule": 3, "git worktree": 3, "go": 2, "go mod": 3, "gradle": 2, "gradlew": 2, "helm": 2,
    "just": 2, "kubectl": 2, "kubectl config": 3, "kubectl rollout": 3, "make": 2, "mix": 2, "mvn": 2, "nix": 2,
    "npm": 2, "npm cache": 3, "npm config": 3, "npm run": 3, "npm run-script": 3, "nx": 2, "pacman": 2, "pip": 2,
    "pip3": 2, "pipenv": 2, "pnpm": 2, "pnpm run": 3, "podman": 2, "podman compose": 3, "poetry": 2, "rake": 2,
    "rustup": 2, "sbt": 2, "systemctl": 2, "task": 2, "terraform": 2, "tofu": 2, "turbo": 2, "turbo run": 3, "uv": 2,
    "uv pip": 3, "uv tool": 3, "yarn": 2, "yarn run": 3, "yum": 2,
}  # fmt: skip

# Options that stand before a program's own word and take a value of their own.
_VALUED = {
    "bun": {"--cwd", "--config"},
    "cargo": {"--color", "--config", "-C", "-Z", "--manifest-path"},
    "docker": {"-H", "--host", "--context", "-c", "--config", "-l", "--log-level"},
    "gh": {"-R", "--repo"},
    "git": {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix", "--attr-source"},
    "go": {"-C"},
    "helm": {"-n", "--namespace", "--kube-context", "--kubeconfig"},
    "kubectl": {"-n", "--namespace", "--context", "--kubeconfig", "--cluster", "--user", "-s", "--server"},
    "make": {"-C", "--directory", "-f", "--file", "-I", "-j", "-o", "-W"},
    "npm": {"--prefix", "-C", "-w", "--workspace", "--loglevel"},
    "pnpm": {"-C", "--dir", "--filter", "-F"},
    "systemctl": {"-H", "--host", "-M", "--machine"},
    "uv": {"--directory", "--project", "--config-file"},
    "yarn": {"--cwd"},
}

# Programs that run what they are told to: interpreters, shells, wrappers, remote and container shells.
_RUNNERS = frozenset(
    """. ash at awk babashka bash batch bb builtin bunx busybox chroot chrt command csh cscript dash doas ed emacs
    env eval ex exec expect find fish flock gawk gdb git-shell groovy guile ionice iex java jshell ksh less ltrace
    lua luajit man mawk mksh more mosh msbuild nano nawk nice node nodejs nohup npx nsenter nvim osascript
    parallel perl php pipx pkexec pnpx powershell proot prlimit psql pwsh python racket rc rksh rlwrap rsync
    rscript ruby run-parts runuser scala scp screen script sed setarch setpriv setsid sh socat source sqlite3 ssh
    sshpass start-stop-daemon stdbuf strace su sudo swift systemd-run taskset tclsh tcsh time timeout tmux toybox
    trap ts-node tsx unbuffer unshare uvx vi view vim watch wish wsl x xargs xonsh xterm yash zsh pypy julia
    bpython ipython hy""".split()
)
# Programs that destroy, change rights, or carry data away: allowed each time, never for ever.
_GRAVE = frozenset(
    """chattr chgrp chmod chown cp crontab curl dd fdisk ftp http httpie install kill killall ln mkfs mount mv nc ncat
    netcat nmap parted passwd pkill reboot rm rmdir setfacl sftp shred shutdown srm tee telnet truncate umount unlink
    useradd userdel usermod wget wipefs""".split()
)
# Words of a program with which it runs what it is told to, or reaches everywhere.
_RUNNING_WORDS = {
    "aws": {"ssm", "ecs"},
    "az": {"vm"},
    "bun": {"x", "repl", "exec"},
    "bundle": {"exec"},
    "cargo": {"run", "script", "install"},
    "composer": {"exec"},
    "conda": {"run"},
    "deno": {"run", "eval", "repl", "x", "serve"},
    "docker": {"run", "exec", "compose", "container", "cp", "buildx"},
    "dotnet": {"script", "fsi"},
    "gh": {"api", "alias", "extension", "codespace", "auth"},
    "git": {"config", "rebase", "bisect", "submodule", "filter-branch", "filter-repo", "difftool", "mergetool", "alias",
            "daemon", "instaweb", "send-email", "credential", "svn", "p4", "clean", "gc", "update-ref"},
    "go": {"run", "generate", "tool"},
    "kubectl": {"exec", "run", "debug", "cp", "attach"},
    "mix": {"run"},
    "nix": {"run", "shell", "develop", "eval"},
    "npm": {"exec", "x", "explore", "config", "set"},
    "pipenv": {"run", "shell"},
    "pnpm": {"exec", "dlx"},
    "podman": {"run", "exec", "compose", "cp"},
    "poetry": {"run", "shell"},
    "rustup": {"run"},
    "uv": {"run", "tool"},
    "yarn": {"exec", "dlx", "node"},
}  # fmt: skip


@lru_cache(maxsize=4096)
def words(prefix: str) -> tuple[str, ...]:
    """The words of a prefix as it is written in a rule. Raises ValueError for one that no command has."""
    split = tuple(shlex.split(prefix))
    if not split or "\n" in prefix or UNKNOWN in prefix:
        raise ValueError("it must be the first words of one command")
    return split


def begins(pattern: str, argv: tuple[str, ...]) -> bool:
    """Whether a command is of the form of a pattern: "git log *" is every one that begins with these words, "make test"
    that one alone, and "*" all."""
    first = tuple(pattern.removesuffix("*").split())
    return argv[: len(first)] == first if pattern.endswith("*") else argv == first


def arity(argv: tuple[str, ...]) -> int:
    """How many words say what this command does."""
    for length in (2, 1):
        row = " ".join(argv[:length])
        if row in _ARITY:
            return _ARITY[row]
    return 1


def offered(argv: tuple[str, ...]) -> str:
    """The prefix that an approval of this command may be remembered as; "" where none may: for an interpreter, a
    wrapper, a program that destroys or carries away, a path, a program whose own word is missing or runs others."""
    count = arity(argv)
    prefix = argv[:count]
    program = prefix[0] if prefix else ""
    if len(prefix) < count or any(not _plain(word) for word in prefix):
        return ""
    if is_runner(program) or program.casefold() in _GRAVE:
        return ""
    if count > 1 and prefix[1] in _RUNNING_WORDS.get(program, ()):
        return ""
    return " ".join(prefix)


# The words with which programs run a project's tests, by the runner that it has.
_TESTS = {
    "pytest": (
        "pytest", "py.test", "python -m pytest", "python3 -m pytest", "python -m unittest", "python3 -m unittest",
        "uv run pytest", "uv run python -m pytest", "poetry run pytest", "pipenv run pytest", "pdm run pytest",
        "hatch test",
    ),
    "cargo": ("cargo test", "cargo nextest run"),
    "go": ("go test",),
    "make": ("make test",),
}  # fmt: skip


def running_tests(argv: tuple[str, ...], runner: str, program: str) -> str:
    """The first words of a command that runs the tests of a project with this runner, whose `program` may also be
    named as it is chosen; "" for any other command."""
    own = (
        (f"{runner} test", f"{runner} run test") if runner in ("npm", "pnpm", "yarn", "bun") else _TESTS.get(runner, ())
    )
    for row in own:
        wanted = tuple(row.split())
        there = argv[: len(wanted)]
        chosen = bool(there) and posixpath.dirname(there[0]) == posixpath.dirname(program) != ""
        name = posixpath.basename(there[0]) if chosen else there[0] if there else ""
        if (name, *there[1:]) == wanted:
            return shlex.join(there)
    return ""


def is_runner(program: str) -> bool:
    """Whether a program runs whatever it is told to: an interpreter or a wrapper, versions in its name included."""
    name = posixpath.basename(program).casefold().removesuffix(".exe")
    return name in _RUNNERS or name.rstrip("0123456789.-") in _RUNNERS


def allows(rule: tuple[str, ...], argv: tuple[str, ...]) -> bool:
    """Whether a trusted prefix is that of a command: word for word, with nothing between, and long enough to say what
    the program does. Options behind it never count."""
    return len(rule) >= arity(rule) and argv[: len(rule)] == rule and UNKNOWN not in "".join(rule)


def forbids(rule: tuple[str, ...], argv: tuple[str, ...]) -> bool:
    """Whether a prefix that is denied or asked about is, or may be, that of a command. Case, the program's folder and
    options in between do not matter; options of the rule may stand anywhere in the command and in any grouping. A
    word that is known only when the line runs may be any word."""
    if not argv:
        return False
    program, operands = _name(argv[0]), _operands(argv)
    wanted = [word.casefold() for word in rule[1:] if not word.startswith("-")]
    if _name(rule[0]) != program and UNKNOWN not in program:
        return False
    if any(not _same(word, operands[at] if at < len(operands) else None) for at, word in enumerate(wanted)):
        return False
    options = [word for word in argv[1:] if word.startswith("-") or UNKNOWN in word]
    return all(_has(option, options) for option in rule[1:] if option.startswith("-"))


def _same(word: str, operand: str | None) -> bool:
    return operand is not None and (word == operand.casefold() or UNKNOWN in operand)


def _operands(argv: tuple[str, ...]) -> list[str]:
    """The words of a command behind its name that are no options and no values of such before the program's own."""
    valued = _VALUED.get(_name(argv[0]), set())
    operands: list[str] = []
    skip = False
    for word in argv[1:]:
        if skip:
            skip = False
        elif word.startswith("-") and len(word) > 1:
            skip = not operands and word in valued
        else:
            operands.append(word)
    return operands


def _has(option: str, options: list[str]) -> bool:
    if option.startswith("--"):
        name = option.partition("=")[0]
        return any(_long(name, word.partition("=")[0]) or UNKNOWN in word for word in options)
    letters = set(option[1:])
    grouped = {letter for word in options if not word.startswith("--") for letter in word[1:]}
    return letters <= grouped or any(UNKNOWN in word for word in options)


def _long(name: str, word: str) -> bool:
    """Whether a long option is this one, also abbreviated as most programs allow."""
    return name == word or (len(word) > 3 and name.startswith(word))


def _name(program: str) -> str:
    return posixpath.basename(program).casefold()


def _plain(word: str) -> bool:
    return _BARE.fullmatch(word) is not None
