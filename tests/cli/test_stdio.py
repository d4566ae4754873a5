"""Bare standard descriptors: nothing is lost, nothing hangs, nothing is guessed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.patience import HANG
from support.program import environment, scripted


def python(home: Path, code: str, **settings: object) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [sys.executable, "-c", f"from codewhale.cli.stdio import *; import os; {code}"],
        env=environment(home),
        capture_output="stdout" not in settings,
        timeout=HANG,
        **settings,  # type: ignore[call-overload]
    )


def test_everything_is_written_through_a_narrow_pipe(tmp_path: Path) -> None:
    done = python(tmp_path, "os.set_blocking(1, False); put('x' * 3_000_000)", stdin=subprocess.DEVNULL)
    assert done.stdout == b"x" * 3_000_000


def test_text_is_utf8_whatever_the_locale(tmp_path: Path) -> None:
    done = python(tmp_path, r"put('\u00e9\u2028\udc80'); say('\u00e9\x1b\udc80')", stdin=subprocess.DEVNULL)
    assert done.stdout == "\u00e9\u2028\ufffd".encode()
    assert done.stderr == "\u00e9\\x1b\\udc80\n".encode()


@pytest.mark.parametrize(("kind", "expected"), [("null", False), ("pipe", True), ("file", True)])
def test_what_counts_as_piped(tmp_path: Path, kind: str, expected: bool) -> None:
    code = "put(str(piped_in()))"
    (tmp_path / "file").write_text("")
    if kind == "null":
        done = python(tmp_path, code, stdin=subprocess.DEVNULL)
    elif kind == "pipe":
        done = python(tmp_path, code, input=b"")
    else:
        handle = os.open(tmp_path / "file", os.O_RDONLY)
        done = python(tmp_path, code, stdin=handle)
        os.close(handle)
    assert done.stdout.decode() == str(expected)


def test_the_bound_is_exact(tmp_path: Path) -> None:
    code = "put(str(len(read_stdin())))"
    assert python(tmp_path, code, input=b"x" * (1 << 20)).stdout == b"1048576"
    over = python(tmp_path, code, input=b"x" * ((1 << 20) + 1))
    assert b"InputError: stdin is larger than 1048576 bytes" in over.stderr


@pytest.mark.slow
def test_waiting_for_a_pipe_that_stays_open_is_told(tmp_path: Path) -> None:
    scripted(tmp_path, '{"text":"fine"}')
    with subprocess.Popen(
        [sys.executable, "-m", "codewhale", "exec", "hi"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
        cwd=tmp_path,
    ) as process:
        assert process.stderr is not None
        assert b"waiting for stdin to end" in process.stderr.readline()
        out, _ = process.communicate(b"late", timeout=HANG)
    assert (process.returncode, out) == (0, b"fine\n")
