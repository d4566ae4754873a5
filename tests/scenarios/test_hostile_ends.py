"""A run that met something hostile ends: by itself, by --max-seconds, and by a signal."""

import json
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from support.patience import HANG, Moment
from support.program import codewhale_program, environment, scripted

STARS = "*a" * 18 + "*b"
# (tool, arguments, the name and the bytes of a file it needs): each of them took minutes, and some no end.
SLOW: dict[str, tuple[str, dict[str, Any], str, bytes]] = {
    "ignore rules": ("list_dir", {"path": "."}, ".gitignore", "\n".join(f"{STARS}{n}" for n in range(70)).encode()),
    "ignore rules of a walk": ("file_search", {"query": "a"}, ".gitignore", f"{STARS}\n".encode() * 70),
    "dotted keys": ("validate_data", {"path": "d.toml"}, "d.toml", b".".join([b"a"] * 100_000) + b" = 1"),
    "counted groups": ("grep_files", {"pattern": "(?:(?:(?:a{1000}){1000}){1000}){1000}"}, "a.txt", b"a" * 1000),
    "nested stars": ("grep_files", {"pattern": "(a*)*$"}, "a.txt", b"a" * 5_000_000 + b"!"),
    "a search of tools": ("tool_search_tool_regex", {"query": "(?:(?:(?:a{1000}){1000}){1000}){1000}"}, "a", b""),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A workspace with a name that is as bad as the rules."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / ("a" * 200)).write_text("x")
    return folder


def prepared(home: Path, project: Path, kind: str) -> None:
    """The file is there, and the model calls the tool."""
    tool, arguments, name, data = SLOW[kind]
    (project / name).write_bytes(data)
    scripted(home, json.dumps({"calls": [{"name": tool, "arguments": arguments}]}), json.dumps({"text": "Gone on."}))


@pytest.mark.slow
@pytest.mark.parametrize("kind", SLOW)
def test_a_run_goes_on_after_what_is_hostile(tmp_path: Path, project: Path, kind: str) -> None:
    prepared(tmp_path, project, kind)
    began = Moment()
    done = codewhale_program(tmp_path, "exec", "hi", cwd=project)
    assert (done.returncode, done.stdout) == (0, "Gone on.\n"), done.stderr
    assert not began.hung


@pytest.mark.slow
@pytest.mark.parametrize("kind", SLOW)
@pytest.mark.parametrize("how", ["--max-seconds", "SIGTERM"])
def test_a_run_that_is_held_up_ends_when_it_is_told_to(tmp_path: Path, project: Path, kind: str, how: str) -> None:
    prepared(tmp_path, project, kind)
    words = ["exec", "--output-format", "stream-json", "hi"]
    words += ["--max-seconds", "2"] if how == "--max-seconds" else []
    with subprocess.Popen(
        [sys.executable, "-m", "codewhale", *words],
        cwd=project,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        try:
            if how == "SIGTERM":
                assert any(b"call_started" in line for line in process.stdout)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(1)  # it is well in it by then, or through
                process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=HANG)
        finally:
            process.kill()
        # Python itself no longer catches a signal once the program is over.
        over = process.returncode == -signal.SIGTERM and b"turn_finished" in out
        assert process.returncode in (0, 4, 130) or over
