"""Mistakes of a command line, what the program ends with, and the folder and the session that a line names; what parses
one is loaded where there is something to parse."""

import os
from typing import TYPE_CHECKING, Any

from codewhale.cli.stdio import InputError
from codewhale.lib.text import one_line
from codewhale.protocol.errors import CodeWhaleError, ConfigError, ProviderError, SessionBusyError, StorageFullError

if TYPE_CHECKING:
    from codewhale.protocol.modes import Authority, Mode
    from codewhale.protocol.ops import OpenSession

USAGE, INTERRUPTED, RETRYABLE, BROKEN_PIPE = 2, 130, 75, 141


class UsageError(Exception):
    """The command line makes no sense; the text says why."""


class ChoiceError(CodeWhaleError):
    """The command line names something that is not there; ends like any wrong usage."""


def exit_code(error: CodeWhaleError) -> int:
    """What the program ends with when this stops it."""
    if isinstance(error, ChoiceError | InputError | ConfigError | ProviderError):
        return USAGE
    if isinstance(error, SessionBusyError | StorageFullError) or isinstance(error.__cause__, StorageFullError):
        return RETRYABLE
    return 1


def workspace(args: Any) -> str:
    """The absolute real path that -w names. Raises UsageError when it is no folder that can be read."""
    given = one_line(args.workspace)
    if not args.workspace:
        raise UsageError("-w needs the path of a folder; it is empty")
    try:
        path: str = os.path.realpath(args.workspace, strict=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"-w {given}: {reason}") from error
    if not os.path.isdir(path):
        raise UsageError(f"-w {given}: not a folder")
    if not os.access(path, os.R_OK | os.X_OK):
        raise UsageError(f"-w {given}: this folder cannot be read")
    return path


def opening(args: Any, folder: str, mode: "Mode", authority: "Authority") -> "OpenSession":
    """The session that a command line opens. Raises UsageError."""
    from codewhale.protocol.modes import Approval
    from codewhale.protocol.ops import OpenSession

    for name in ("resume", "fork"):
        if getattr(args, name) == "":
            raise UsageError(f"--{name} needs the id of a session; see: codewhale sessions list")
    return OpenSession(
        workspace=folder,
        mode=mode,
        authority=authority,
        provider=args.provider,
        model=args.model,
        resume="latest" if args.latest else args.resume or "",
        fork=args.fork or "",
        approval=Approval(args.approval) if args.approval else None,
        folders=tuple(map(os.path.abspath, map(os.path.expanduser, args.add_dir or ()))),
    )
