"""Lines of the record: each event that has one, in both languages."""

import pytest

from codewhale.display.transcript.blocks import NoteBlock, note_of
from codewhale.display.transcript.drawing import lines_of
from codewhale.display.words import LANGUAGES, Words
from codewhale.protocol.decisions import Rule
from codewhale.protocol.events import (
    AnswerDropped,
    BudgetChanged,
    Compacted,
    CompactionUndone,
    ContextAppended,
    EffortChanged,
    Event,
    ModeChanged,
    ModelChanged,
    Notice,
    PrefixInvalidated,
    RequestSent,
    ResultsPruned,
    SessionOpened,
    SessionResumed,
    SkillActivated,
    SkillReleased,
    SourceRead,
    ToolActivated,
)
from codewhale.protocol.messages import Message, ResultPart, Text
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import Limits
from codewhale.protocol.scopes import Scope

HISTORY = Scope(tools=("read_file", "exec_shell"), lines=(("exec_shell", ("git log *",)),))
CHECKS = (Rule("allow", "exec_shell", command="make"),)
LINES: list[tuple[Event, str]] = [
    (SessionOpened(1, "/p", Mode.AGENT, "deepseek", "v4"), "· v4 (deepseek) in /p"),
    (
        SessionOpened(1, "/p", Mode.AGENT, "a", "b", parent="s-1", parent_seq=7),
        "· forked from s-1 at event 7: b (a) in /p",
    ),
    (SessionResumed(Mode.AGENT, Authority.PERSON), "· resumed"),
    (
        SessionResumed(Mode.AGENT, Authority.PERSON, 12, 1),
        "! resumed; the log was damaged: 12 bytes cut, 1 lines skipped",
    ),
    (PrefixInvalidated("a new head", 0), "· the provider's prompt cache is reused up to here: a new head"),
    (Compacted(2, "window", (), 120_000, 14_000), "· compaction 2 (window): about 120,000 tokens became 14,000"),
    (
        AnswerDropped(1, "it was cut off", 2, 5),
        "! answer interrupted, retry 2 of 5; partial answer dropped: it was cut off",
    ),
    (AnswerDropped(1, "it was cut off"), "! answer interrupted; partial answer dropped: it was cut off"),
    (CompactionUndone(2), "· compaction 2 undone"),
    (ResultsPruned((ResultPart("c", "x"),)), "· 1 old result shortened"),
    (ModeChanged(Mode.PLAN, Mode.AGENT), "· mode plan (was agent)"),
    (ModelChanged("p", "m\x1b[2J"), "· model m\\x1b[2J (p)"),
    (
        SourceRead("ri\x1bvers", "/d", 7, "0123456789abcdef"),
        "· reading the attached source ri\\x1bvers, version 0123456789ab",
    ),
    (SourceRead("rivers", "/d", 0, ""), "· reading the attached source rivers, its version is not known yet"),
    (EffortChanged("high"), "· effort high"),
    (EffortChanged(""), "· effort: the model's default"),
    (BudgetChanged(Limits(tokens=5_000)), "· session budget: 5000 tokens"),
    (BudgetChanged(Limits()), "· session budget: none"),
    (ToolActivated("grep", 1_200), "· tool grep activated (1,200 bytes)"),
    (
        SkillActivated("py", ".cursor/rules/py.mdc\x1b[2J", "0", "file"),
        "· Using rule: py (.cursor/rules/py.mdc\\x1b[2J)",
    ),
    (
        SkillActivated("r", "s/SKILL.md", "0", "person", scope=HISTORY),
        "· Using skill: r (s/SKILL.md); restricts this turn to read_file, exec_shell (git log *)",
    ),
    (
        SkillActivated("r", "SKILL.md", "0", "person", "session", Scope(tools=()), CHECKS),
        "· Using skill: r (SKILL.md); restricts the session to no tool until /skill off; pre-approves exec_shell make",
    ),
    (
        SkillActivated("r", "SKILL.md", "0", "model", scope=Scope(tools=("a", "b", "c", "d", "e", "f"))),
        "· Using skill: r (SKILL.md); restricts this turn to a, b, c, d, +2",
    ),
    (SkillReleased("r"), "· No longer using: r"),
    (Notice("error", "It [bold]broke[/bold]"), "✗ It [bold]broke[/bold]"),
]


@pytest.mark.parametrize(("event", "line"), LINES)
def test_the_line_of_an_event(event: Event, line: str) -> None:
    note = note_of(event)
    assert note is not None
    assert lines_of(note, Words("en")) == [line]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_line_has_words(language: str) -> None:
    for event, _ in LINES:
        note = note_of(event)
        assert note is not None and lines_of(note, Words(language))[0]


def test_what_was_told_is_there_when_it_is_opened() -> None:
    note = note_of(ContextAppended("rules", "First.\nSecond."))
    assert isinstance(note, NoteBlock)
    assert lines_of(note, Words("en")) == ["▾ context update for the model (rules)", "  │ First.", "  │ Second."]
    summary = note_of(Compacted(1, "window", (Message("user", (Text("So far."),)),)))
    assert isinstance(summary, NoteBlock) and summary.detail == "So far."


def test_most_events_have_no_line() -> None:
    assert note_of(RequestSent(1, 2, "", 3)) is None
    assert note_of(PrefixInvalidated("compaction", 1)) is None
