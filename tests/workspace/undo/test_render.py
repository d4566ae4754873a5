"""What is said of plans, turns and refusals: short, and no path moves a cursor."""

from codewhale.protocol.files import FileChange
from codewhale.workspace.undo import UndoneFile, UndoPlan, UndoRefusal, UndoTurn
from codewhale.workspace.undo.journal import FileState
from codewhale.workspace.undo.render import MOST_LISTED, capped, done_lines, place, plan_lines, turn_line

STATE = FileState(0o100644, "1" * 40, 1)


def test_lists_end() -> None:
    lines = [str(n) for n in range(60)]
    assert capped(lines)[MOST_LISTED:] == ["... and 10 more"] and capped(lines[:3]) == lines[:3]


def test_places() -> None:
    assert place(UndoRefusal("a", "why")) == "a"
    assert place(UndoRefusal("", "why")) == "some files"
    assert place(UndoRefusal("a", "why", (3, 2))) == "a, line 3"
    assert place(UndoRefusal("a", "why", (3, 5))) == "a, lines 3 to 5"
    assert "\x1b" not in place(UndoRefusal("\x1b[2J", "why"))


def test_turns_plans_and_what_was_done() -> None:
    turn = UndoTurn(1, 4, 0.0, ("edit_file", "exec_shell"), ("a", "b", "c", "d"))
    assert turn_line(turn) == "turn 4 (edit_file, exec_shell): a, b, c and 1 more"
    assert turn_line(UndoTurn(1, 0, 0.0, ("undo",), ())) == "the last undo (undo): too many files to list"
    files = (UndoneFile("a", STATE, None), UndoneFile("b", None, STATE), UndoneFile("c", STATE, STATE, b"x"))
    plan = UndoPlan("s", "/w", 1, files, (UndoRefusal("d", "why", (1, 2)),))
    assert plan_lines(plan) == ["removed: a", "restored: b", "reverted: c", "not undone: d, lines 1 to 2: why"]
    changes = (FileChange("a", "1", None), FileChange("b", None, "2"))
    assert done_lines(changes, ()) == ["removed: a", "restored: b"]
