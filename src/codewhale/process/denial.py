"""Telling from what a failed command printed that the sandbox refused it something, with the line that says so."""

import os
import re
from collections.abc import Sequence

from msgspec import Struct

from codewhale.lib.text import one_line
from codewhale.process.confinement import LANDLOCK, NONE, PROFILES, sandbox
from codewhale.process.sandbox.profiles import TOOLCHAINS_ALONE

_TAIL = 20_000
_NETWORK, _READ_ONLY = "network", PROFILES[1]
_OPEN_BY_LANDLOCK = "what is already in the workspace (no new files at its top, no change of modes or times)"
_UNREACHABLE = re.compile(
    r"network is unreachable|could not resolve (host|proxy)|couldn.t resolve host|temporary failure in name resolution"
    r"|temporary failure resolving|name or service not known|nodename nor servname|no address associated with hostname"
    r"|unable to resolve host|failed to lookup address|getaddrinfo (enotfound|eai_again)|\benotfound\b|\beai_again\b"
    r"|\benetunreach\b|no route to host|dns error|dial (tcp|udp).*(lookup|unreachable)"
    r"|failed to establish a new connection|unknownhostexception|could not connect to server"
    r"|socket: (operation not permitted|permission denied)"
    r"|no such host",
    re.IGNORECASE,
)
# What a place that is mounted read-only, or lies elsewhere, answers; and what Landlock and a lack of rights do.
_UNWRITABLE = re.compile(
    r"read-only file system|device or resource busy|invalid cross-device link|\be(rofs|busy|xdev)\b"
    r"|\[errno (16|18|30)\]|os error (16|18|30)\b|^(bwrap|sandbox): ",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"permission denied|operation not permitted|\be(acces|perm)\b|\[errno (1|13)\]|os error (1|13)\b", re.IGNORECASE
)
# What a program itself calls a warning is not what it failed of: pytest goes on where it cannot write its cache.
_WARNED = re.compile(r"warning\b[^:]{0,40}:", re.IGNORECASE)


# What a program says of a place of the home that it cannot see.
_ABSENT = re.compile(r"no such file|not found|cannot find|does not exist|\benoent\b|permission denied", re.IGNORECASE)
_PATH = re.compile(r"/[^\s:;,'\"`()\[\]]+")


class Denial(Struct, frozen=True):
    """What the sandbox refused: the allowance that would give it ("network", "write" or "home"), the line of the
    command's own output that tells, and a sentence for whoever reads the result."""

    allowance: str
    evidence: str
    message: str


class ConfinedRun(Struct, frozen=True):
    """How a command was held. `loses_rights`: by more than its mounts say, as Landlock holds, or as root is held;
    `place` is what workspace-write opens, in words."""

    profile: str
    allowances: Sequence[str] = ()
    loses_rights: bool = False
    place: str = "the workspace"


def denial(profile: str, allowances: Sequence[str], exit_code: int | None, text: str) -> Denial | None:
    """What the sandbox refused a command that ran under a profile, by its end and its output; None for nothing."""
    if profile == NONE or exit_code == 0:
        return None
    landlocked = sandbox().mechanism == LANDLOCK
    place = _OPEN_BY_LANDLOCK if landlocked and not sandbox().brokered else "the workspace"
    return recognise(ConfinedRun(profile, allowances, landlocked or os.geteuid() == 0, place), exit_code, text)


def recognise(held: ConfinedRun, exit_code: int | None, text: str) -> Denial | None:
    """The denial that a command's end and output (stdout and stderr) tell of, or None. Where it lost rights, a refusal
    that the machine would have given in any case may be taken for one of the sandbox."""
    profile, allowances = held.profile, held.allowances
    if profile == "none" or exit_code == 0:
        return None
    lines = text[-_TAIL:].splitlines()
    if _NETWORK not in allowances:
        line = _first(_UNREACHABLE, lines)
        if line:
            message = "Commands in the sandbox have no network unless the user allows it."
            return Denial(_NETWORK, line, message)
    if TOOLCHAINS_ALONE in allowances and (line := next(filter(_hidden, lines), "")):
        message = "In the sandbox, commands see only what toolchains need of the home folder (codewhale sandbox check)."
        return Denial("home", one_line(line.strip(), 200), message)
    lines = [line for line in lines if not _WARNED.search(line)]
    line = _first(_UNWRITABLE, lines) or (_first(_REFUSED, lines) if held.loses_rights else "")
    if not line:
        return None
    where = "a private /tmp" if profile == _READ_ONLY else f"{held.place} and a private /tmp"
    message = f"In the sandbox ({profile}), commands can write only {where}, never git settings or CodeWhale itself."
    return Denial("write", line, message)


def _hidden(line: str) -> bool:
    """Whether a line misses what is there below the home."""
    home = os.path.expanduser("~")
    return bool(_ABSENT.search(line)) and any(
        path.startswith(f"{home}/") and os.path.lexists(path) for path in _PATH.findall(line)
    )


def _first(pattern: re.Pattern[str], lines: Sequence[str]) -> str:
    return next((one_line(line.strip(), 200) for line in lines if pattern.search(line)), "")
