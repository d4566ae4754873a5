"""Git repositories for tests: ordinary ones, and ones whose every setting tries to run a program."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from support.patience import HANG

IDENTITY = ("-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "init.defaultBranch=main")
PLAIN = {"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}


def raw_git(folder: Path, *args: str, stdin: bytes = b"", check: bool = True) -> bytes:
    """Plain git, as a person would run it."""
    done = subprocess.run(
        ["git", *IDENTITY, *args], cwd=folder, input=stdin, capture_output=True, check=False, timeout=HANG, env=PLAIN
    )
    if check and done.returncode != 0:
        raise AssertionError((args, done.stderr))
    return done.stdout


def make_repo(folder: Path, files: dict[str, str]) -> Path:
    """A repository at `folder` with one commit holding `files`."""
    folder.mkdir(parents=True, exist_ok=True)
    raw_git(folder, "init", "-q", "--template=")  # none of the samples that nobody reads
    write(folder, files)
    raw_git(folder, "add", "-A")
    raw_git(folder, "commit", "-q", "--allow-empty", "-m", "Begin")
    return folder


def commit(folder: Path, files: dict[str, str], message: str = "Begin") -> str:
    """Write `files`, commit everything, and return the commit's id."""
    write(folder, files)
    raw_git(folder, "add", "-A")
    raw_git(folder, "commit", "-q", "--allow-empty", "-m", message)
    return raw_git(folder, "rev-parse", "HEAD").decode().strip()


def write(folder: Path, files: dict[str, str]) -> None:
    """Write text files, making folders."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


class Trap(Struct, frozen=True):
    """One way a repository has to run a program: how it is set, and a plain command that falls for it (none where it
    takes a terminal)."""

    name: str
    set: Callable[[Path, str], None]
    falls: tuple[str, ...] = ()


def _config(*pairs: str, attributes: str = "") -> Callable[[Path, str], None]:
    def apply(repo: Path, payload: str) -> None:
        if attributes:
            (repo / ".gitattributes").write_text(attributes)
        for pair in pairs:
            key, _, value = pair.partition("=")
            raw_git(repo, "config", key, value.replace("PAYLOAD", payload))

    return apply


def _hook(repo: Path, payload: str) -> None:
    hook = repo / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{payload}\n")
    hook.chmod(0o755)
    os.utime(repo / "a.txt", (1, 1))  # what git has noted of it is certainly another time


def _signed(kind: str, *pairs: str) -> Callable[[Path, str], None]:
    def apply(repo: Path, payload: str) -> None:
        body = raw_git(repo, "cat-file", "commit", "HEAD").decode()
        head, _, message = body.partition("\n\n")
        signature = f"gpgsig -----BEGIN {kind}-----\n \n AAAA\n -----END {kind}-----"
        made = raw_git(
            repo, "hash-object", "-t", "commit", "-w", "--stdin", stdin=f"{head}\n{signature}\n\n{message}".encode()
        )
        raw_git(repo, "update-ref", "HEAD", made.decode().strip())
        _config(*pairs)(repo, payload)

    return apply


def _included(repo: Path, payload: str) -> None:
    (repo / ".git" / "more").write_text(f'[filter "evil"]\n\tclean = {payload}\n')
    _config("include.path=more", attributes="*.txt filter=evil\n")(repo, payload)


def _submodule(repo: Path, payload: str) -> None:
    inner = make_repo(repo / "inner", {"b.txt": "b\n"})
    raw_git(repo, "add", "inner")
    raw_git(repo, "commit", "-q", "-m", "Add inner")
    _config("filter.evil.clean=PAYLOAD", "core.fsmonitor=PAYLOAD", attributes="*.txt filter=evil\n")(inner, payload)
    (inner / "b.txt").write_text("changed\n")


def _lazy_fetch(repo: Path, payload: str) -> None:
    blob = raw_git(repo, "rev-parse", "HEAD:a.txt").decode().strip()
    (repo / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    _config(
        "core.repositoryformatversion=1", "extensions.partialClone=origin", "remote.origin.url=.",
        "remote.origin.promisor=true", "remote.origin.uploadpack=PAYLOAD </dev/null; false",
    )(repo, payload)  # fmt: skip


EVIL = "*.txt filter=evil diff=evil\n"
TRAPS = (
    Trap("fsmonitor", _config("core.fsmonitor=PAYLOAD"), ("status",)),
    Trap("diff.external", _config("diff.external=PAYLOAD"), ("diff",)),
    Trap("diff command", _config("diff.evil.command=PAYLOAD", attributes=EVIL), ("diff",)),
    Trap("textconv", _config("diff.evil.textconv=PAYLOAD", attributes=EVIL), ("log", "-p")),
    Trap("textconv in blame", _config("diff.evil.textconv=PAYLOAD", attributes=EVIL), ("blame", "a.txt")),
    Trap("clean filter", _config("filter.evil.clean=PAYLOAD", attributes=EVIL), ("diff",)),
    Trap("required filter", _config("filter.evil.clean=PAYLOAD", "filter.evil.required=1", attributes=EVIL), ("diff",)),
    Trap("process filter", _config("filter.evil.process=PAYLOAD", attributes=EVIL), ("diff",)),
    Trap("smudge filter", _config("filter.evil.smudge=PAYLOAD", attributes=EVIL), ("cat-file", "--filters", ":a.txt")),
    Trap("filter with dots", _config("filter.e.v.i.l.clean=PAYLOAD", attributes="*.txt filter=e.v.i.l\n"), ("diff",)),
    Trap("filter in an included file", _included, ("diff",)),
    Trap("alias", _config("alias.st=!PAYLOAD", "alias.status=!PAYLOAD"), ("st",)),
    Trap("hook", _hook, ("status",)),
    Trap("gpg", _signed("PGP SIGNATURE", "log.showSignature=true", "gpg.program=PAYLOAD"), ("log", "-1")),
    Trap("gpg of ssh", _signed("SSH SIGNATURE", "log.showSignature=true", "gpg.ssh.program=PAYLOAD",
                              "gpg.ssh.allowedSignersFile=/dev/null"), ("log", "-1")),
    Trap("gpg of x509", _signed("SIGNED MESSAGE", "log.showSignature=true", "gpg.x509.program=PAYLOAD"), ("log", "-1")),
    Trap("gpg by format", _signed("PGP SIGNATURE", "format.pretty=%G?", "gpg.openpgp.program=PAYLOAD"), ("show",)),
    Trap("pager", _config("core.pager=PAYLOAD", "pager.status=PAYLOAD", "pager.log=PAYLOAD")),  # terminals only
    Trap("submodule", _submodule, ("status",)),
    Trap("lazy fetch", _lazy_fetch, ("show", "HEAD")),
)  # fmt: skip


def lay(trap: Trap, folder: Path, marker: Path) -> Path:
    """A repository at `folder` with that trap, whose program makes `marker` (and then behaves like cat)."""
    repo = make_repo(folder, {"a.txt": "one\ntwo\n", "b.txt": "b\n"})
    payload = folder.parent / "payload"
    payload.write_text(f"#!/bin/sh\ntouch '{marker}'\nexec cat\n")
    payload.chmod(0o755)
    trap.set(repo, str(payload))
    (repo / "a.txt").write_text("one\nTWO\n")
    return repo
