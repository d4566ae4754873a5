"""The start screen: what it says of a new session, at every width, in both languages."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from codewhale import __version__
from codewhale.display.start import StartFacts, last_session, start_lines
from codewhale.display.text import cells
from codewhale.display.words import LANGUAGES, Words
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import StatusView
from codewhale.protocol.views import SessionSummary, WorkspaceRow

STATUS = StatusView(
    "s-2", "/srv/shop", Mode.AGENT, Authority.PERSON, "deepseek", "v4-pro", 0, 0, 0, False, "",
    (("AGENTS.md", 3_100),), 0, 0, sandbox="landlock",
)  # fmt: skip
AT = "2026-03-02T09:00:00Z"
NOW = datetime(2026, 3, 2, 11, 0, tzinfo=UTC).timestamp()
LAST = SessionSummary("s-1", "Fix the discount", AT, AT, "/srv/shop", 3, 9, "m", "idle", "", files=3)
FACTS = StartFacts(STATUS, WorkspaceRow("/srv/shop", "main", 2), LAST, NOW, "f1")


def drawn(facts: StartFacts, width: int = 100, language: str = "en") -> list[str]:
    return [line.text.rstrip() for line in start_lines(facts, Words(language), width)]


def test_it_says_where_we_are_what_holds_and_what_can_be_done() -> None:
    assert drawn(FACTS) == [
        f"  CodeWhale {__version__}",
        "",
        "  Model         v4-pro · deepseek",
        "  Folder        /srv/shop  main, 2 files changed",
        "  Instructions  AGENTS.md 3 KB",
        "  Sandbox       on: commands change only this folder and have no network",
        "",
        "  Continue      Fix the discount  2 hours ago · 3 files  Enter",
        '  Try           "Why does test_login fail?"',
        "                @ adds a file · / lists the commands · ! runs a shell command",
        "                f1 shows all keys",
    ]


def test_what_is_not_there_is_not_claimed() -> None:
    bare = StartFacts(replace(STATUS, sandbox="", instructions=()), WorkspaceRow("/srv/shop", "", 0), None, NOW, "f1")
    text = "\n".join(drawn(bare))
    assert "none: commands run with all your rights" in text and "none (no AGENTS.md)" in text
    assert "Continue" not in text and "main" not in text


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_it_fits_and_nothing_in_it_is_obeyed(language: str, width: int) -> None:
    hostile = replace(LAST, title="\x1b[2J\u202e" * 60)
    for last in (LAST, hostile, None):
        for line in drawn(replace(FACTS, last=last), width, language):
            assert cells(line) <= width and line.isprintable()


def test_the_last_session_is_one_that_can_be_gone_on_with() -> None:
    later = "2026-03-02T10:00:00Z"
    others = [
        replace(LAST, id=f"x{at}", updated=later, **change)
        for at, change in enumerate(({"turns": 0}, {"state": "open"}, {"state": "damaged"}, {"owner": "s-1"}))
    ]
    assert last_session([LAST, replace(LAST, id="s-2", updated=later), *others], "s-2") == LAST
    assert last_session(others, "s-2") is None
