"""Questions made of what sources say of their definitions: taken out of the tree, with where they stood."""

import ast
import sys
from pathlib import Path

from support.house import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
from search_docs import bared
from search_packages import _asked

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
    asked = {(kind, query, one.path, one.start) for kind, query, one in _asked(list(bared(tmp_path)))}
    assert asked == {
        ("docstring", "Dives for clams below the ice each winter", "sea/life.py", 4),
        ("docstring", "Hold the breath until the sea bed is reached", "sea/life.py", 7),
        ("name", "Walrus", "sea/life.py", 4),
    }
    left = (tmp_path / "sea/life.py").read_text("utf-8")
    assert ast.get_docstring(ast.parse(left)) is None and "clams" not in left and '"ü"' in left
    assert left.count("\n") == TEXT.count("\n") and "walrus_song" in left


SCRIPT = """/**
 * @license nobody
 */
import { of } from "./of";

/**
 * Dives for clams below the ice each {@link Winter winter}. And more.
 *
 * @param depth how far
 */
export abstract class Walrus<T> {
  /** Hold the breath until the sea bed is reached. */
  dive(depth: number): void {}

  /** Keep away from every bear that comes near. */
  private _hide(): void {}
}

/**
 * What a walrusSong sounds like from far away.
 */
export const walrusSong = () => "\u00fc"; /** Nothing stands below this one here. */
if (walrusSong()) {}

/** See https://walrus.example for the whole song of them. */
export function sing() {}
"""


def test_comments_become_questions_and_leave_the_tree(tmp_path: Path) -> None:
    for path in ("sea/life.ts", "tests/life.test.ts"):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(SCRIPT, "utf-8")
    asked = {(kind, query, one.path, one.start) for kind, query, one in _asked(list(bared(tmp_path)))}
    assert asked == {
        ("comment", "Dives for clams below the ice each Winter", "sea/life.ts", 11),
        ("comment", "Hold the breath until the sea bed is reached", "sea/life.ts", 13),
        ("name", "Walrus", "sea/life.ts", 11),
    }
    left = (tmp_path / "sea/life.ts").read_text("utf-8")
    assert left.count("\n") == SCRIPT.count("\n") and "/**" not in left and 'walrusSong = () => "\u00fc"' in left
