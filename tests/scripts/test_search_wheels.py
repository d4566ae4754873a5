"""Questions made of docstrings: taken out of the tree, with where they stood."""

import ast
import sys
from pathlib import Path

from support.house import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from search_wheels import _asked, _bared

TEXT = '''"""Of the module."""


class Walrus:
    """Dives for clams below the ice each winter. And more."""

    def dive(self) -> None:
        """Hold the breath until the sea bed is reached."""
        return None

    def _hide(self) -> None:
        """Keep away from every bear that comes near."""

    def sing(self) -> None:
        """Short."""


def walrus_song() -> str:
    """What a walrus_song sounds like from far away."""
    return "ü"
'''


def test_docstrings_become_questions_and_leave_the_tree(tmp_path: Path) -> None:
    for path in ("sea/life.py", "tests/test_life.py"):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(TEXT, "utf-8")
    asked = {(kind, query, one.path, one.start) for kind, query, one in _asked(list(_bared(tmp_path)))}
    assert asked == {
        ("docstring", "Dives for clams below the ice each winter", "sea/life.py", 4),
        ("docstring", "Hold the breath until the sea bed is reached", "sea/life.py", 7),
        ("name", "Walrus", "sea/life.py", 4),
    }
    left = (tmp_path / "sea/life.py").read_text("utf-8")
    assert ast.get_docstring(ast.parse(left)) is None and "clams" not in left and '"ü"' in left
    assert left.count("\n") == TEXT.count("\n") and "walrus_song" in left
