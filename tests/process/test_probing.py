"""What holds commands here, as found by trying; a choice of the person's is kept to."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from codewhale.process.confinement import BUBBLEWRAP, CHOICE, LANDLOCK, sandbox
from support.program import environment

SCRIPT = """
import msgspec
from codewhale.process.confinement import sandbox
print(msgspec.json.encode(sandbox()).decode())
"""


def found(home: Path, **env: str) -> dict[str, object]:
    """What another process finds."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment(home, env), capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def test_it_is_asked_once(tmp_path: Path) -> None:
    assert sandbox() is sandbox()
    assert [one.name for one in sandbox().tried] and all(one.detail for one in sandbox().tried)
    assert found(tmp_path, PATH="/nowhere")["mechanism"] == sandbox().mechanism


@pytest.mark.parametrize("choice", [BUBBLEWRAP, LANDLOCK])
def test_a_choice_is_that_mechanism_or_none(choice: str, tmp_path: Path) -> None:
    assert found(tmp_path, **{CHOICE: choice})["mechanism"] in (choice, "")


def test_the_best_one_needs_no_advice_and_any_other_has_it() -> None:
    assert ("bubblewrap" in sandbox().fix) is (sandbox().mechanism not in (BUBBLEWRAP, "seatbelt"))
