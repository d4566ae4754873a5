"""A command as it is ordered and as it ended: the words of starting processes, apart from what starts them."""

from msgspec import Struct


class Ceiling(Struct, frozen=True):
    """What a command's whole tree may take; 0 is unlimited. `memory` is resident bytes, `file_size` the largest
    file one process may write. Crossing the first two ends the tree."""

    processes: int = 0
    memory: int = 0
    file_size: int = 0


class Held(Struct, frozen=True):
    """What a command may touch: the `profile` and `allowances` of a Launch."""

    profile: str
    allowances: tuple[str, ...] = ()


class Launch(Struct, frozen=True):
    """A command to run.

    `env` is added to the allow-listed environment. `stdin` is written and closed; empty, there is none at all, unless
    `keep_stdin` holds the pipe open. `seconds` bounds the command itself, not what it leaves behind. `merge` sends
    stderr into stdout; `tty` gives a pseudo-terminal, which merges them as well. `output_limit` bytes of each stream
    are kept. `attached` gives it the harness's own three streams instead, and with `foreground` it stays in the
    harness's session, in a process group of its own, so that it can be given the terminal. Unsupervised is for programs
    of the harness's own choice that start nothing lasting; `own` gives one an environment in which nothing leads into
    the workspace (see system.programs for where it is found).

    `profile` ("none", "read-only", "workspace-write") with its `allowances` says what the sandbox lets it touch; there
    is none by itself, so that whoever starts something says how it is held. `workspace` is the root of what it works on
    ("" is `cwd`). In a sandbox /tmp is private to this run of the program,
    and a command that a signal ended has the exit code 128 and its number.
    """

    argv: tuple[str, ...]
    cwd: str
    profile: str
    env: dict[str, str] = {}
    stdin: bytes = b""
    keep_stdin: bool = False
    seconds: float | None = None
    allowances: tuple[str, ...] = ()
    workspace: str = ""
    tty: bool = False
    merge: bool = False
    attached: bool = False
    foreground: bool = False
    output_limit: int = 1_000_000
    supervised: bool = True
    own: bool = False
    ceiling: Ceiling = Ceiling()


class Completed(Struct, frozen=True):
    """How a command ended.

    `exit_code` is negative for a signal and None when it is not known. `stdout_gap` is the offset in the kept bytes at
    which the middle was left out, -1 when all was kept. `leftovers` counts processes that outlived the command. `over`
    names the ceiling it crossed: "processes", "memory" or "". `confined` is the mechanism that held it: "bubblewrap",
    "landlock", "seatbelt" or "".
    """

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    stdout_total: int
    stderr_total: int
    timed_out: bool
    killed: bool
    seconds: float
    leftovers: int
    stdout_gap: int = -1
    stderr_gap: int = -1
    over: str = ""
    confined: str = ""
