"""Sessions as lists of events for tests of the transcript: one with everything in it, and texts that are hard on it."""

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import strategies as st

from codewhale.display.transcript.model import TranscriptModel
from codewhale.protocol.blocks import ChecklistBlock, DiffBlock, MarkdownBlock, TableBlock, TerminalBlock
from codewhale.protocol.decisions import Offer
from codewhale.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallFinished,
    CallProgress,
    CallStarted,
    CallStreamed,
    ChildClosed,
    ChildOpened,
    ChildProgress,
    Compacted,
    ContextAppended,
    Envelope,
    Event,
    FileChanged,
    JobEnded,
    JobOutput,
    JobStarted,
    MessageAdded,
    ModeChanged,
    Notice,
    PrefixInvalidated,
    QuestionAnswered,
    QuestionAsked,
    ReasoningStreamed,
    RepairRecorded,
    RequestSent,
    RetryCountdown,
    SessionOpened,
    ShellOutput,
    ShellRan,
    TextStreamed,
    TurnFinished,
    TurnStarted,
)
from codewhale.protocol.files import FileChange
from codewhale.protocol.messages import Message, Part, Reasoning, Text, ToolCall
from codewhale.protocol.modes import Mode
from codewhale.protocol.tools import CommandSubject, Effect
from support.tuirecord import envelopes

DIFF = """--- a/src/parse.py
+++ b/src/parse.py
@@ -10,3 +10,4 @@ def parse(text):
     lines = text.split("\\n")
-    return lines[0]
+    head = lines[0]
+    return head.strip()
     # the end
"""

ANSWER = """# Found it

The **parser** keeps the blank, see [the notes](https://example.org/notes).

- one
- [x] two

```python
def parse(text: str) -> str:
    return text.strip()
```

| file | lines |
|------|------:|
| a.py | 12 |
"""

USAGE = {"input": 4210, "output": 300, "cache_hit": 4000, "cache_miss": 210, "cost": 0.0012, "currency": "USD"}


def asked(text: str) -> MessageAdded:
    """A message of the person."""
    return MessageAdded(Message("user", (Text(text),)))


def answered(*parts: Part) -> MessageAdded:
    """A message of the model."""
    return MessageAdded(Message("assistant", parts), "stop")


def said(text: str) -> Text:
    """Words of the model."""
    return Text(text, source="model")


def request(number: int) -> RequestSent:
    """A request for the conversation."""
    return RequestSent(number, 100, "0" * 64, 2)


def begun(turn: int = 1, text: str = "Fix the parser, please.") -> list[Event]:
    """The beginning of a turn up to its first request."""
    opened: list[Event] = [SessionOpened(1, "/project", Mode.AGENT, "deepseek", "v4")] if turn == 1 else []
    return [*opened, TurnStarted(turn), asked(text), request(turn)]


def finished(turn: int = 1, status: str = "done", changed: int = 1) -> TurnFinished:
    """The end of a turn."""
    return TurnFinished(turn, status, "", {"usage": USAGE, "changes": [{"path": "a"}] * changed})


def whole_session() -> list[Event]:
    """One of everything."""
    return [*_thought_and_called(), *_done(), *_beside(), *_ended()]


def _thought_and_called() -> list[Event]:
    return [
        *begun(),
        ContextAppended("mode", "You work in mode agent."),
        RetryCountdown(1, 5, 2.0, "the provider is busy"),
        ReasoningStreamed("I should "),
        ReasoningStreamed("look first."),
        TextStreamed("Let me "),
        TextStreamed("look."),
        CallStreamed(0, "exec_shell"),
        answered(
            Reasoning("I should look first."),
            said("Let me look."),
            ToolCall("c1", "exec_shell", '{"command":"pytest -q"}'),
            ToolCall("c2", "edit_file", '{"path":"src/parse.py"}'),
            ToolCall("c3", "grep", '{"pattern":"parse"}'),
            ToolCall("c4", "checklist_write", "{}"),
        ),
        RepairRecorded("c2", ("R3",), False, "edit", "{}"),
        ApprovalAsked(
            "r1", "c1", "exec_shell", (CommandSubject("pytest -q"),), "agent asks", offer=Offer("exec_shell", "prefix")
        ),
        ApprovalAnswered("r1", True, remember="session"),
    ]


def _done() -> list[Event]:
    return [
        CallStarted("c1", "exec_shell", '{"command":"pytest -q"}', (Effect.EXECUTES,), "mode"),
        CallProgress("c1", "collected 3 items"),
        CallFinished(
            "c1",
            "exec_shell",
            True,
            "3 passed",
            1200,
            display=(TerminalBlock("pytest -q", "\n".join(f"line {number}" for number in range(40)), 0),),
            metadata={"workspace_tree_sha256": "a" * 64, "summary": "3 passed", "tests_ran": 3},
        ),
        CallStarted("c2", "edit_file", '{"path":"src/parse.py"}', (Effect.WRITES,), "mode"),
        CallFinished("c2", "edit_file", True, "done", 12, display=(DiffBlock("src/parse.py", DIFF),)),
        FileChanged("c2", FileChange("src/parse.py", "a", "b")),
        CallFinished(
            "c3",
            "grep",
            True,
            "1 hit",
            5,
            display=(TableBlock(("file", "line", "text"), (("a.py", "3", "def parse"),)),),
        ),
        CallFinished(
            "c4",
            "checklist_write",
            True,
            "kept",
            1,
            display=(ChecklistBlock((("completed", "look"), ("in_progress", "fix"), ("pending", "test"))),),
        ),
    ]


def _beside() -> list[Event]:
    return [
        JobStarted("job_1", "npm run dev", "."),
        JobOutput("job_1", "ready\n"),
        ChildOpened("ch1", "scout", "find the callers"),
        ChildProgress("ch1", "reading a.py"),
        ModeChanged(Mode.YOLO, Mode.AGENT),
        QuestionAsked("q1", ({"id": "a", "header": "Which", "question": "Which one?", "options": []},)),
        QuestionAnswered("q1", ({"id": "a", "label": "This", "value": "this"},)),
    ]


def _ended() -> list[Event]:
    return [
        request(2),
        *(TextStreamed(ANSWER[at : at + 7]) for at in range(0, len(ANSWER), 7)),
        answered(said(ANSWER)),
        CallFinished("c9", "notes", False, "Error: no such note", 3, error="not_found", display=()),
        CallFinished("c10", "index", True, "fine", 3, display=(MarkdownBlock("**fine**"),)),
        JobEnded("job_1", "Completed", 0, 3.2),
        ChildClosed("ch1", "done", "three callers"),
        Notice("warning", "The index is old."),
        PrefixInvalidated("compaction", 1),
        Compacted(1, "window", (Message("user", (Text("What was said."),)),), 120_000, 14_000),
        finished(),
        ShellOutput("a\n"),
        ShellRan("ls", "a\nb\n", 0, 0.1),
    ]


def told(events: Sequence[Event]) -> TranscriptModel:
    """The story of these events."""
    return of_record(envelopes(events))


def of_record(record: Sequence[Envelope]) -> TranscriptModel:
    """The story of a record."""
    story = TranscriptModel()
    for envelope in record:
        story.take(envelope)
    return story


# What markdown is made of, and what breaks it.
PIECES = [
    "word ", "**bold** ", "`code` ", "[link](https://a.b/c) ", "\n", "\n", "\n\n", "- item\n", "  - inner\n",
    "1. one\n", "```py\n", "```\n", "~~~\n", "    indented\n", "   ```js\n", "> quote\n", "# head\n",
    "| a | b |\n|---|---|\n", "| 1 | 2 |\n", "---\n", "* * *\n", "\t", "\x1b[2J", "\u202e", "中文，字",
    "👩‍👩‍👧", "é́́", "x" * 90, " ", "- ```\n", "<b>", "&#x202e;", "[a]: https://b.c\n", "![i](file:///x)",
    "==\n", "\r\n", "\\", "$", "_", "*",
]  # fmt: skip
LONG = [" " * 5_000, "`" * 5_000, "x" * 9_000, "> " * 3_000, "- " * 3_000, "中" * 5_000, "a b " * 2_000, "~" * 4_097]
_ALL = [*PIECES, *LONG]
markdown_texts = st.one_of(
    st.lists(st.integers(0, len(PIECES) - 1), max_size=40), st.lists(st.integers(0, len(_ALL) - 1), max_size=12)
).map(lambda places: "".join(_ALL[place] for place in places))


@st.composite
def sliced(draw: st.DrawFn, texts: st.SearchStrategy[str] = markdown_texts) -> tuple[str, list[str]]:
    """A text, and the same text in slices."""
    text = draw(texts)
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    ends = [0, *places, len(text)]
    return text, [text[a:b] for a, b in pairwise(ends)]
