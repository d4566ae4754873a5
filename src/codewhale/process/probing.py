"""What can hold a command on this machine, found out by trying, once for a process and never at start-up."""

import os
import sys
from functools import cache

from msgspec import Struct

from codewhale.process.programs import how_to_install
from codewhale.process.sandbox.bubblewrap import PLACES, probe_command
from codewhale.process.sandbox.landlock import LEAST_ABI, landlock_abi, probe_landlock
from codewhale.process.sandbox.profiles import Confinement, Site
from codewhale.process.sandbox.seatbelt import PROGRAM, seatbelt_profile

BUBBLEWRAP, LANDLOCK, SEATBELT = "bubblewrap", "landlock", "seatbelt"
# The person's choice of one of the mechanisms; without it the first that holds.
CHOICE = "CODEWHALE_SANDBOX"
_SECONDS = 5.0
_RESTRICTED = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"


class Mechanism(Struct, frozen=True):
    """One that was tried: whether it holds, and what it is or why it does not."""

    name: str
    holds: bool
    detail: str


class Sandbox(Struct, frozen=True):
    """`mechanism` is the one that is used, "" for none; `program` is bubblewrap's path. `fix` says how to get the best
    one, "" where it is there. `brokered`: what Landlock holds can make new names at the top of a workspace."""

    mechanism: str
    tried: tuple[Mechanism, ...]
    program: str = ""
    fix: str = ""
    brokered: bool = False


@cache
def sandbox() -> Sandbox:
    """This machine's, about 10 ms the first time; it starts processes and waits for them."""
    chosen = os.environ.get(CHOICE, "")
    if sys.platform == "darwin":
        tried = [_seatbelt()]
    else:
        program = next((path for path in PLACES if os.access(path, os.X_OK)), "")
        tried = [_bubblewrap(program) if chosen != LANDLOCK else _passed_over(BUBBLEWRAP)]
        wanted = chosen == LANDLOCK or not (tried[0].holds or chosen == BUBBLEWRAP)
        tried.append(_landlock() if wanted else _passed_over(LANDLOCK))
    mechanism = next((one.name for one in tried if one.holds), "")
    fix = _fix() if mechanism not in (BUBBLEWRAP, SEATBELT) and not chosen else ""
    brokered = mechanism == LANDLOCK and not _try(probe_landlock(brokered=True))
    return Sandbox(mechanism, tuple(tried), program if mechanism == BUBBLEWRAP else "", fix, brokered)


def _bubblewrap(program: str) -> Mechanism:
    if not program:
        return Mechanism(BUBBLEWRAP, False, "bubblewrap is not installed (bwrap)")
    problem = _try(probe_command(program))
    return Mechanism(BUBBLEWRAP, not problem, problem or program)


def _landlock() -> Mechanism:
    abi = landlock_abi()
    if abi < LEAST_ABI:
        found = f"version {abi}" if abi else "not in this kernel"
        return Mechanism(LANDLOCK, False, f"Landlock is {found}; {LEAST_ABI} is needed (Linux 6.12)")
    problem = _try(probe_landlock())
    return Mechanism(LANDLOCK, not problem, problem or f"Landlock version {abi} with seccomp")


def _seatbelt() -> Mechanism:
    profile = seatbelt_profile(Confinement(), Site("/", "/", "/private/tmp"))
    problem = _try((PROGRAM, "-p", profile, "/usr/bin/true"))
    return Mechanism(SEATBELT, not problem, problem or PROGRAM)


def _passed_over(name: str) -> Mechanism:
    return Mechanism(name, False, "not tried: another one is used")


def _try(argv: tuple[str, ...]) -> str:
    """Run a command that should succeed; "" or why it did not."""
    import subprocess

    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, cwd="/", timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{argv[0]}: {error}"
    said = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
    return "" if done.returncode == 0 else f"{argv[0]} failed: {said or f'exit code {done.returncode}'}"


def _fix() -> str:
    try:
        with open(_RESTRICTED, "rb") as setting:
            restricted = setting.read(1) == b"1"
    except OSError:
        restricted = False
    install = how_to_install("bubblewrap")
    return f"{install}; AppArmor must allow it user namespaces ({_RESTRICTED})" if restricted else install
