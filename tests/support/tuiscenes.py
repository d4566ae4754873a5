"""Recorded scenes of the terminal interface: what is captured for the papers and held by a test."""

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from codewhale.protocol.blocks import DiffBlock, TerminalBlock
from codewhale.protocol.decisions import Offer
from codewhale.protocol.events import (
    ApprovalAsked,
    CallFinished,
    CallStarted,
    ChildClosed,
    ChildOpened,
    ChildProgress,
    Envelope,
    Event,
    FileChanged,
    JobStarted,
    ListChanged,
    MessageAdded,
    QuestionAsked,
    RequestSent,
    SessionOpened,
    TurnFinished,
    TurnStarted,
    UsageReported,
    is_durable,
)
from codewhale.protocol.files import FileChange
from codewhale.protocol.messages import Message, Reasoning, Text, ToolCall
from codewhale.protocol.modes import Mode
from codewhale.protocol.ops import ListSessions, SessionStatus
from codewhale.protocol.stream import Usage
from codewhale.protocol.tools import CommandSubject, Effect
from codewhale.protocol.views import (
    CommandRow,
    FileMatch,
    FindFiles,
    FindLocal,
    GetTools,
    JobRow,
    ListCommands,
    ListJobs,
    ListModels,
    ListProviders,
    ModelRow,
    PreviewSession,
    ProviderRow,
    SessionPreview,
    SessionSummary,
    ToolsView,
)
from support.tuiapp import CONTEXT, FOLDER, READY, STATUS, Stage
from support.tuirecord import BEGAN, SESSION

SIZES = ((80, 24), (120, 40), (200, 60))
THEMES = ("dark", "light")
SECOND = 1_772_442_000.0  # what BEGAN says


class Still:
    """A clock that stands at the end of the record."""

    def now(self) -> float:
        """Thirty seconds after the beginning."""
        return SECOND + 30

    def monotonic(self) -> float:
        """A number."""
        return 1000.0


class Scene(Struct, frozen=True):
    """A name, what happened, what is answered, the keys that are pressed, and words that stand there in the end."""

    name: str
    events: tuple[Event, ...]
    shows: str
    keys: tuple[str, ...] = ()
    answers: dict[type, Any] = {}
    act: Callable[[Stage], Awaitable[None]] | None = None


OPENED = SessionOpened(1, FOLDER, Mode.AGENT, "deepseek", "deepseek-v4")
READS = (Effect.READS,)
WRITES = (Effect.WRITES,)
RUNS = (Effect.EXECUTES,)


def said(text: str, source: str = "person") -> MessageAdded:
    """Words of the person or of the model."""
    role: Any = "assistant" if source == "model" else "user"
    return MessageAdded(Message(role, (Text(text, source),)))


def asked(text: str, *calls: tuple[str, str, str], thought: str = "") -> MessageAdded:
    """Words of the model with calls (id, name, arguments)."""
    parts: list[Any] = [Reasoning(thought)] if thought else []
    parts += [Text(text, "model")] if text else []
    return MessageAdded(Message("assistant", (*parts, *(ToolCall(*call) for call in calls))), "tool_calls")


def call(id: str, name: str, arguments: str, effects: tuple[Effect, ...], **fields: Any) -> tuple[Event, Event]:
    """A call from its beginning to its end."""
    given = {"ok": True, "content": "", "ms": 320, **fields}
    return CallStarted(id, name, arguments, effects, "mode.agent"), CallFinished(id, name, **given)


DIFF = """--- a/shop/basket.py
+++ b/shop/basket.py
@@ -3,6 +3,6 @@
\x20
 def total(prices: list[int], discount: int = 0) -> int:
     \"\"\"Sum of the prices less a discount in percent.\"\"\"
     full = sum(prices)
-    return (full * (100 + discount) + 50) // 100
+    return (full * (100 - discount) + 50) // 100
\x20
"""
STEPS = (("completed", "See what fails"), ("completed", "Fix it"), ("in_progress", "Run the tests again"))
TESTS = """...                                                                      [100%]
3 passed in 0.21s
"""
ANSWER = """The discount was **added** where it should be taken off: `basket.py` line 7.

- `total()` now takes it off, rounded half up as before.
- All three tests pass.

```python
assert total([1000], discount=20) == 800
```
"""
RESULT = {
    "usage": {"input": 6120, "output": 412, "cache_hit": 5600, "cache_miss": 520, "cost": 0.0019, "currency": "USD"}
}
BEGUN: tuple[Event, ...] = (
    OPENED,
    TurnStarted(1),
    said("The tests fail. Find out why, and fix it."),
    RequestSent(1, 9000, "", 2),
)
TURN: tuple[Event, ...] = (
    *BEGUN,
    UsageReported(1, Usage(2900, 160, 2600, 300, cost=0.0008)),
    asked(
        "I run the tests, then look at what they say.",
        ("c1", "read_file", '{"path":"shop/basket.py"}'),
        thought="The person wants the tests to pass. First see which of them fails.",
    ),
    *call("c1", "read_file", '{"path":"shop/basket.py"}', READS),
    RequestSent(2, 12000, "", 4),
    UsageReported(2, Usage(6120, 252, 5600, 520, cost=0.0011)),
    asked(
        "", ("c2", "edit_file", '{"path":"shop/basket.py"}'), ("c3", "exec_shell", '{"command":"python3 -m pytest -q"}')
    ),
    *call("c2", "edit_file", '{"path":"shop/basket.py"}', WRITES, display=(DiffBlock("shop/basket.py", DIFF),)),
    FileChanged("c2", FileChange("shop/basket.py", "a" * 64, "b" * 64)),
    ListChanged("checklist", tuple({"status": status, "text": text} for status, text in STEPS)),
    *call(
        "c3",
        "exec_shell",
        '{"command":"python3 -m pytest -q"}',
        RUNS,
        display=(TerminalBlock("python3 -m pytest -q", TESTS, 0),),
    ),
    said(ANSWER, "model"),
    TurnFinished(1, "done", "", RESULT),
)
COMMAND = "git push --force origin main"
APPROVAL: tuple[Event, ...] = (
    *BEGUN,
    asked("It is fixed. I push it.", ("c1", "exec_shell", f'{{"command":"{COMMAND}"}}')),
    ApprovalAsked(
        "r1",
        "c1",
        "exec_shell",
        (CommandSubject(COMMAND, "."),),
        "git push writes to another place, and --force rewrites what is there.",
        rule="shell.git-write",
        sandbox="workspace",
        offer=Offer("exec_shell", "prefix", "git push"),
    ),
)
QUESTION: tuple[Event, ...] = (
    *BEGUN,
    asked("Two ways are open.", ("c1", "request_user_input", "{}")),
    CallStarted("c1", "request_user_input", "{}", (), "mode.agent"),
    QuestionAsked(
        "q1",
        (
            {
                "id": "way",
                "header": "Rounding",
                "question": "How should half a cent be rounded?",
                "options": [
                    {"label": "Half up (Recommended)", "description": "as the invoices do today"},
                    {"label": "Half to even", "description": "as banks do"},
                ],
            },
        ),
    ),
)


def _long_diff() -> str:
    lines = ["--- a/shop/prices.py", "+++ b/shop/prices.py", "@@ -1,90 +1,90 @@"]
    for number in range(45):
        lines.append(f" def price_{number}(basket: Basket) -> int:")
        lines.append(f"-    return basket.lines[{number}].cents * (100 + basket.discount) // 100")
        lines.append(f"+    return basket.lines[{number}].cents * (100 - basket.discount) // 100")
    return "\n".join(lines) + "\n"


LONG: tuple[Event, ...] = (
    *BEGUN,
    asked("The same mistake stands in every price.", ("c1", "apply_patch", "{}")),
    *call("c1", "apply_patch", "{}", WRITES, display=(DiffBlock("shop/prices.py", _long_diff()),)),
    FileChanged("c1", FileChange("shop/prices.py", "a" * 64, "b" * 64)),
    said("All 45 prices take the discount off now.", "model"),
    TurnFinished(1, "done", "", RESULT),
)
PLACES = ("api", "basket", "checkout", "email", "invoices", "login", "prices", "search", "stock", "taxes")
CHILDREN: tuple[Event, ...] = (
    *BEGUN,
    said("I have ten sub-agents look at one module each.", "model"),
    *(
        ChildOpened(f"k{at}", place, f"Find wrong discounts in shop/{place}.py", "explore")
        for at, place in enumerate(PLACES)
    ),
    *(
        ChildProgress(f"k{at}", "read_file", f'{{"path": "shop/{place}.py"}}', 3, Usage(6_100, 240))
        for at, place in enumerate(PLACES)
        if at % 3
    ),
    *(ChildClosed(f"k{at}", "completed", "nothing wrong", steps=7, usage=Usage(21_300, 900)) for at in (0, 3, 6)),
    ChildClosed("k9", "failed", "shop/taxes.py is not there", steps=2),
)
ERROR: tuple[Event, ...] = (
    *BEGUN,
    TurnFinished(
        1,
        "failed",
        "deepseek refused the key (401): set DEEPSEEK_API_KEY, or keep a key with: codewhale login deepseek",
        {"usage": {"input": 0, "output": 0, "cache_hit": 0, "cache_miss": 0, "cost": None, "currency": "USD"}},
    ),
)
JOBS = (
    JobRow(
        "shell_1",
        "npm run dev",
        "web",
        "Running",
        754.0,
        None,
        "ready in 412 ms\nlocal: http://localhost:5173/\n",
        2210,
    ),
    JobRow("shell_2", "python3 -m pytest -q --maxfail 1", ".", "Running", 12.0, None, "......\n", 7),
    JobRow("shell_3", "make docs", ".", "Failed", 3.2, 2, "make: *** No rule to make target 'docs'.  Stop.\n", 48),
)
TITLES = (
    ("2026-03-02T07:00", "Fix the discount"), ("2026-03-01T08:00", "Why does the login fail?"),
    ("2026-02-27T16:20", "出貨單的金額不對"), ("2026-02-11T10:00", "Round half up"),
)  # fmt: skip
SESSIONS = tuple(
    SessionSummary(
        f"20260302-{number}f3a", title, BEGAN, f"{at}:00.000Z", FOLDER, 6 - number, 30 - number, "deepseek-v4",
        "open" if number == 1 else "idle", "", files=3 * number % 5,
    )
    for number, (at, title) in enumerate(TITLES)
)  # fmt: skip
PREVIEW = SessionPreview(
    SESSIONS[0],
    (
        ("user", "The tests fail. Find out why, and fix it."),
        ("assistant", "The discount was added where it should be taken off: basket.py line 7."),
    ),
)
COMMANDS = (
    CommandRow("/compact", "[focus]", "Make room by compacting the conversation."),
    CommandRow("/cost", "", "What the session has cost."),
    CommandRow("/mode", "[plan|agent|yolo]", "Show or change the mode."),
    CommandRow("/undo", "[N] [preview]", "Undo what the last turns changed."),
)
MODELS = (
    ModelRow("deepseek", "deepseek-v4", 128_000, {"miss": 0.27, "hit": 0.03, "output": 1.1}, True, "", True),
    ModelRow("ollama", "qwen3-coder:30b", 32_768, None, True, "", False),
)
FIRST = (
    ProviderRow(
        "deepseek",
        "openai-chat",
        "https://api.deepseek.com",
        False,
        "DEEPSEEK_API_KEY is not set",
        False,
        "DEEPSEEK_API_KEY",
        (),
        True,
    ),
    ProviderRow(
        "anthropic",
        "anthropic",
        "https://api.anthropic.com",
        False,
        "ANTHROPIC_API_KEY is not set",
        False,
        "ANTHROPIC_API_KEY",
    ),
    ProviderRow(
        "openrouter",
        "openai-chat",
        "https://openrouter.ai/api/v1",
        False,
        "OPENROUTER_API_KEY is not set",
        False,
        "OPENROUTER_API_KEY",
    ),
)
LOCAL = (ProviderRow("ollama", "openai-chat", "http://127.0.0.1:11434/v1", True, "", True, "", ("qwen3-coder:30b",)),)
PALETTE: dict[type, Any] = {
    ListCommands: COMMANDS,
    ListModels: MODELS,
    ListSessions: list(SESSIONS),
    FindFiles: (FileMatch("shop/basket.py", 9.0), FileMatch("shop/prices.py", 7.0), FileMatch("test_basket.py", 5.0)),
    GetTools: ToolsView(
        "", "openai-chat", 2, 11_200, (("read_file", 900), ("edit_file", 1200), ("exec_shell", 1500)), ()
    ),
}

SCENES = (
    Scene("first-run", (OPENED,), "ollama", answers={ListProviders: FIRST, FindLocal: LOCAL}),
    Scene("full-turn", TURN, "All three tests pass."),
    Scene("approval", APPROVAL, "git push --force origin main"),
    Scene("question", QUESTION, "How should half a cent be rounded?"),
    Scene("long-diff", LONG, "All 45 prices"),
    Scene("sub-agents", CHILDREN, "taxes"),
    Scene("error", ERROR, "DEEPSEEK_API_KEY"),
    Scene("jobs", (*TURN, JobStarted("shell_1", "npm run dev", "web")), "make docs", ("alt+j",), {ListJobs: JOBS}),
    Scene("palette", TURN, "basket.py", ("ctrl+k", "b", "a"), PALETTE),
    Scene(
        "session-picker",
        TURN,
        "The discount was added",
        ("alt+s",),
        {ListSessions: list(SESSIONS), PreviewSession: PREVIEW},
    ),
)


def record(scene: Scene) -> list[Envelope]:
    """A scene's events, one second apart."""
    found, seq = [], 0
    for number, event in enumerate(scene.events):
        seq += is_durable(event)
        found.append(Envelope(seq, SESSION, f"2026-03-02T09:00:{min(number, 29):02}.000Z", event))
    return found


__all__ = ["CONTEXT", "READY", "SCENES", "SIZES", "STATUS", "THEMES", "Scene", "SessionStatus", "Still", "record"]
