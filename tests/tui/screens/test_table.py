"""The table of screens: every row is there, is imported when it is opened, and knows its commands."""

import subprocess
import sys

import pytest
from textual.widget import Widget

from codewhale.tui.commands import COMMANDS, screen_of
from codewhale.tui.screens.table import SCREENS, load

LOADED = """
import sys
import codewhale.tui.screens.table, codewhale.tui.screens.context
import codewhale.tui.asking.panel
ours = [name for name in sys.modules if name.startswith("codewhale.tui.")]
print(sorted(name for name in ours if name.split(".")[2] in ("screens", "asking", "transcript")))
"""


def test_every_row_of_the_table_is_there() -> None:
    for name in SCREENS:
        assert issubclass(load(name), Widget)
    assert set(COMMANDS.values()) <= set(SCREENS)
    with pytest.raises(KeyError):
        load("nowhere")


@pytest.mark.parametrize(
    ("line", "screen"),
    [
        ("/jobs", ("jobs", "")),
        ("/diff src/a.py", ("diff", "src/a.py")),
        ("/undo 3", ("undo", "3")),
        ("/undo yes", None),
        ("/undo 3 yes", None),
        ("/jobs list", None),
        ("/memory", ("memory", "")),
        ("/memory edit", ("memory", "")),
        ("/memory edit global", ("memory", "")),
        ("/memory edit 1a2b", None),
        ("/memory waiting", None),
        ("/model grey-1", None),
        ("/nothing", None),
        ("", None),
    ],
)
def test_which_commands_open_a_screen(line: str, screen: tuple[str, str] | None) -> None:
    assert screen_of(line) == screen


def test_nothing_of_a_screen_or_card_is_imported_before_it_is_opened() -> None:
    said = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout
    here = "codewhale.tui"
    names = ("asking", "asking.panel", "screens", "screens.context", "screens.table")
    assert said.strip() == str([f"{here}.{name}" for name in names])
