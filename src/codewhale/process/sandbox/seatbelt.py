"""The sandbox of macOS: a profile for sandbox-exec. Written from Apple's public profiles and its rules' published
behaviour; only its text is tested, it has not run on a Mac."""

import os
from collections.abc import Iterator, Sequence

from codewhale.process.sandbox.landlock import NULL_DEVICES
from codewhale.process.sandbox.profiles import Confinement, SandboxPlan, Site, cache_folders, private_caches
from codewhale.protocol.protected import PROTECTED_FILES, PROTECTED_FOLDERS, RULE_FILES

PROGRAM = "/usr/bin/sandbox-exec"
_DEVICES = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper")
_ESCAPES = {'"': '\\"', "\\": "\\\\"}


def seatbelt(argv: Sequence[str], confinement: Confinement, site: Site) -> SandboxPlan:
    if confinement.isolated:
        return SandboxPlan((PROGRAM, "-p", _isolated_profile(argv[0], confinement), *argv), {})
    temp = {"TMPDIR": site.temp, "TMP": site.temp, "TEMP": site.temp}
    caches = cache_folders(confinement.caches, site.home, {})
    return SandboxPlan(
        argv=(PROGRAM, "-p", seatbelt_profile(confinement, site, caches), *argv),
        env={**temp, **private_caches(confinement.caches, f"{site.temp}/.cache")},
    )


def seatbelt_profile(confinement: Confinement, site: Site, caches: Sequence[str] = ()) -> str:
    """The profile's text: all may be read, what is named may be written, and later rules win over earlier ones. Rules
    name what is protected by pattern, so that it holds in every folder, in any case, and where nothing stands yet."""
    return "\n".join(_lines(confinement, site, caches)) + "\n"


def _isolated_profile(program: str, confinement: Confinement) -> str:
    """The text of one under which only the program runs, and only what is named is there. Where a path leads is looked
    up in the folders above, so that what they are may be asked."""
    paths = (program, *confinement.seen)
    seen = dict.fromkeys((*map(os.path.realpath, paths), "/usr/lib"))
    read = (*(f"(subpath {_quoted(path)})" for path in seen), *(f"(literal {_quoted(path)})" for path in NULL_DEVICES))
    rows = (
        "(version 1)", "(deny default)", f"(allow process-exec (subpath {_quoted(os.path.realpath(program))}))",
        "(allow signal (target self))", "(allow sysctl-read)", "(allow file-read-metadata)",
        f'(allow file-read* (literal "/") {" ".join(read)})', '(allow file-write-data (literal "/dev/null"))',
    )  # fmt: skip
    return "\n".join(rows) + "\n"


def _lines(confinement: Confinement, site: Site, caches: Sequence[str]) -> Iterator[str]:
    yield from ("(version 1)", "(deny default)", "(allow process-exec)", "(allow process-fork)")
    yield from ("(allow signal (target same-sandbox))", "(allow process-info* (target same-sandbox))")
    yield from ("(allow file-read*)", "(allow sysctl-read)", "(allow ipc-posix-sem)", "(allow pseudo-tty)")
    yield '(allow file-ioctl (regex #"^/dev/tty"))'
    writable = [f"(subpath {_quoted(path)})" for path in (site.temp, *caches, *confinement.folders)]
    writable += [f"(literal {_quoted(path)})" for path in _DEVICES]
    if confinement.writes:
        writable += [f"(subpath {_quoted(path)})" for path in (site.workspace, *(place.path for place in site.git))]
    yield f"(allow file-write* {' '.join(writable)})"
    if confinement.network:
        yield from ("(allow network*)", "(allow system-socket)", "(allow mach-lookup)")
    if confinement.writes:
        for pattern in _protected():
            yield f'(deny file-write* (regex #"{pattern}"))'
    yield from (f"(deny file-write* (subpath {_quoted(path)}))" for path in site.own)
    if confinement.home is not None:
        seen = (*confinement.home, *confinement.seen, *confinement.folders, *caches, site.workspace, site.temp)
        shown = (*seen, *(place.path for place in site.git))
        yield f"(deny file-read-data (subpath {_quoted(site.home)}))"
        yield f"(allow file-read-data {' '.join(f'(subpath {_quoted(os.path.realpath(path))})' for path in shown)})"
    if site.state:
        yield f"(deny file-read* file-write* (subpath {_quoted(site.state + '/secrets')}))"


def _quoted(path: str) -> str:
    return '"' + "".join(_ESCAPES.get(character, character) for character in path) + '"'


def _protected() -> Iterator[str]:
    """Patterns of protected paths. The rules know no case-blind matching, so each letter stands for both of its
    forms."""
    for name in PROTECTED_FOLDERS:
        yield f"/{_both(name)}(/|$)"
    for name in (*PROTECTED_FILES, *RULE_FILES):
        yield f"/{_both(name)}$"
    yield f"/{_both('.git')}/{_both('hooks')}(/|$)"
    yield f"/{_both('.git')}/(.*/)?({_both('config')}|{_both('config.worktree')}|{_both('commondir')})$"
    yield f"/{_both('.git')}$"


def _both(name: str) -> str:
    return "".join(f"[{c.lower()}{c.upper()}]" if c.isalpha() else f"[{c}]" if c == "." else c for c in name)
