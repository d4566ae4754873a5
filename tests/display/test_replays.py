"""Replayed calls and imports as people read them."""

from msgspec.structs import replace

from codewhale.display.lines import call_text, import_lines
from codewhale.protocol.replays import Imported, Now, Replayed, Then

CALL = Replayed(
    seq=3, call_id="c", name="todo\x1b_write", canonical="checklist_write", state="deprecated", outcome="run",
    arguments={"todos": []}, repairs=("N2",), lossy=True, error=None, then=Then(True, 3, "as\nit was", True),
    drift="it ran otherwise", now=Now(True, False, "new"),
)  # fmt: skip


def test_a_call_that_is_understood() -> None:
    assert call_text(7, CALL).splitlines() == [
        "7. todo\\x1b_write (deprecated) -> checklist_write",
        '   arguments  {"todos":[]}',
        "   repaired   N2, read in one of several possible ways",
        "   then       ok: as it was",
        "   now        ok: new",
        "   unlike     it ran otherwise",
    ]
    same = replace(CALL, now=Now(True, True, "x"), drift="")
    assert call_text(1, same).splitlines()[-1] == "   now        the same"


def test_a_call_that_is_refused() -> None:
    error = {"code": "not_available", "message": "No.", "fix": {"name": "list_dir", "arguments": {"path": "."}}}
    told = replace(
        CALL, name="x", canonical="x", state=None, arguments=None, repairs=(), error=error, then=None, drift="",
        now=None, not_run="it would be refused",
    )  # fmt: skip
    assert call_text(1, told).splitlines() == [
        "1. x",
        "   refused    not_available: No.",
        '   next call  list_dir {"path":"."}',
        "   then       no result was recorded",
        "   now        not run: it would be refused",
    ]


def test_an_import_in_words() -> None:
    told = Imported("s", 4, 3, {"exec_wait -> exec_shell_wait": 2}, {"agent_open": 1}, 1)
    assert import_lines(told) == [
        "codewhale: imported 4 messages with 3 calls; nothing was run",
        "under today's names: exec_wait -> exec_shell_wait (2)",
        "of tools that are not here: agent_open (1)",
        "parts left out, not importable (system texts, results without a call): 1",
    ]
    assert len(import_lines(Imported("s", 1, 0, {}, {}, 0))) == 1
