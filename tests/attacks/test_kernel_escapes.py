"""What code of a recursive session can reach: under each mechanism, as root and as an ordinary user."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from typing import Any

import pytest

from codewhale.process.confinement import BUBBLEWRAP, LANDLOCK
from support.escapeworld import plain_python
from support.house import ROOT
from support.kernelworld import ATTACKS
from support.patience import HANG

ORDINARY = 1001
# These may end the kernel; after all others its variables are still there.
ENDING = {
    "an endless loop that swallows all", "a memory bomb", "a memory bomb of one block", "a memory bomb of shared pages",
    "a thread bomb", "frames on every descriptor", "every descriptor closed", "every descriptor opened",
    "a gigabyte written to what prints", "a frame printed", "every pipe filled",
}  # fmt: skip
MOST_TEXT = 200_000


def tried(mechanism: str, uid: int) -> dict[str, dict[str, Any]]:
    (ROOT / ".scratch").mkdir(exist_ok=True)
    base = tempfile.mkdtemp(prefix="kernel-", dir=ROOT / ".scratch")
    os.chown(base, uid or os.geteuid(), -1)
    program = str(ROOT / "tests" / "support" / "kernelworld.py")
    try:
        done = subprocess.run(
            [sys.executable, program, mechanism, str(uid), base],
            capture_output=True,
            text=True,
            timeout=15 * HANG,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        rows: dict[str, dict[str, Any]] = json.loads(done.stdout)
        return rows
    finally:
        shutil.rmtree(base, ignore_errors=True)


@pytest.mark.parametrize("uid", [0, ORDINARY], ids=["as-one-is", "as-an-ordinary-user"])
@pytest.mark.parametrize("mechanism", [BUBBLEWRAP, LANDLOCK])
def test_c11_code_of_a_model_reaches_nothing_and_the_next_round_works(mechanism: str, uid: int) -> None:
    if uid and (os.geteuid() != 0 or not plain_python()):
        pytest.skip("becoming an ordinary user needs root, and a Python that all users may run")
    rows = tried(mechanism, uid)
    if "skipped" in rows:
        pytest.skip(f"{mechanism} holds nothing on this machine: {rows['skipped']}")
    assert list(rows) == list(ATTACKS)
    for name, row in rows.items():
        assert row["found"] == [], (name, row)
        assert row["kind"], f"{name}: no error at all: {row}"
        assert row["again"] is True, (name, row)
        assert not row["lost"] or name in ENDING, (name, row)
        assert row["size"] < MOST_TEXT and row["seconds"] < HANG, (name, row)
