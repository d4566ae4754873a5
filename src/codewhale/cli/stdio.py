"""Standard input, output and error as bare descriptors: no buffer to lose at exit, no encoding to guess."""

import os
import select
import stat
from collections.abc import Iterator

from codewhale.lib.text import one_line, scrub_surrogates
from codewhale.protocol.errors import CodeWhaleError

MAX_STDIN = 1 << 20
# A pipe takes this much at once when select says that it is writable.
_PIPE_BUF = 4096
_PATIENCE = 3.0


class OutputError(CodeWhaleError):
    """Standard output cannot be written."""


class InputError(CodeWhaleError):
    """What was piped in cannot be used."""


def keep_standard_descriptors() -> None:
    """Open /dev/null on whichever of 0, 1, 2 the caller closed, so that no file of ours can take its place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def put(text: str) -> None:
    """Write text to stdout. Raises BrokenPipeError when nobody reads it."""
    put_bytes(scrub_surrogates(text).encode())


def put_bytes(data: bytes) -> None:
    """Write bytes to stdout. Raises BrokenPipeError when nobody reads them, OutputError for anything else."""
    try:
        _write(1, data)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"standard output cannot be written: {error.strerror}") from error


def say(text: str) -> None:
    """One safe line on stderr."""
    say_raw(one_line(text, 2000) + "\n")


def say_raw(text: str) -> None:
    """Text that is already safe, on stderr; a closed stderr is nobody's loss."""
    try:
        _write(2, scrub_surrogates(text).encode())
    except OSError:
        return


def _write(number: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(number, view) :]
        except BlockingIOError:
            select.select([], [number], [])


class Stdout:
    """stdout for a running event loop: a slow reader delays the writer alone, not the loop."""

    def __init__(self) -> None:
        self.is_terminal = os.isatty(1)

    async def write(self, text: str) -> None:
        """Write and flush. Raises like `put`."""
        import asyncio

        if len(text) <= _PIPE_BUF // 4 and select.select([], [1], [], 0)[1]:
            put(text)
        else:
            await asyncio.to_thread(put, text)


def piped_in() -> bool:
    """Whether something was piped or redirected into stdin: a pipe, a file or a socket; not a terminal and not
    /dev/null."""
    mode = os.fstat(0).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)


def read_stdin() -> str:
    """All of stdin as text, bytes that are no UTF-8 replaced. Raises InputError above 1 MiB."""
    remedy = "; put it in a file in the workspace and name the file"
    return read_all_stdin(MAX_STDIN, remedy).decode("utf-8", "replace")


def read_all_stdin(limit: int, remedy: str = "") -> bytes:
    """All of stdin as bytes. Raises InputError, which ends with `remedy`, above `limit`."""
    data = bytearray()
    _tell_when_waiting()
    while chunk := _read_some():
        data += chunk
        if len(data) > limit:
            raise InputError(f"stdin is larger than {limit} bytes{remedy}")
    return bytes(data)


def stdin_lines(limit: int = 64 << 20) -> Iterator[bytes]:
    """The lines of stdin as they come, split on line feeds alone, blank ones left out. Raises InputError for a line
    longer than `limit` bytes."""
    held = bytearray()
    _tell_when_waiting()
    while chunk := _read_some():
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            held += line
            if held.strip():
                yield bytes(held)
            held.clear()
        held += rest
        if len(held) > limit:
            raise InputError(f"a line of stdin is longer than {limit} bytes")
    if held.strip():
        yield bytes(held)


def _read_some() -> bytes:
    while True:
        try:
            return os.read(0, 1 << 16)
        except BlockingIOError:
            select.select([0], [], [])
        except OSError as error:
            raise InputError(f"stdin cannot be read: {error.strerror}") from error


def _tell_when_waiting() -> None:
    if not select.select([0], [], [], _PATIENCE)[0]:
        say("codewhale: waiting for stdin to end; close it, or add </dev/null if there is no input")
