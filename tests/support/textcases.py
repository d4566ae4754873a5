"""300 answers that hold a call as text: eight formats, twelve languages, and six ways to mean or not to mean it; and
what becomes of each at a model with a native channel for calls and at one whose channel is text."""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from msgspec import Struct

from codewhale.protocol.events import CallStarted, ContextAppended, Event, MessageAdded, TextStreamed, TurnFinished
from codewhale.testing import harness
from support.writtencalls import STANDING, Call

LANGUAGES: dict[str, dict[str, str]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
# A format, as `writtencalls` names it, and the public parser that reads it.
FORMATS = {
    "hermes": "HermesDetector",
    "qwen-coder": "Qwen3CoderDetector",
    "dsml": "DeepSeekV32Detector",
    "deepseek-v3.1": "DeepSeekV31Detector",
    "kimi": "KimiK2Detector",
    "glm": "Glm4MoeDetector",
    "mistral": "MistralDetector",
    "minimax": "MinimaxM2Detector",
}
# How a call stands in an answer that does not mean it, beside the bare end that every kind has.
LAYOUTS = {
    "end": "{lead}\n\n{call}",
    "fence": "{lead}\n\n```\n{call}\n```\n\n{after}",
    "fence-end": "{lead}\n\n```xml\n{call}\n```",
    "log": "{lead}\n\n<log>\n2026-03-01 12:00:03 INFO\n{call}\n</log>\n\n{after}",
    "quote": "{lead}\n\n> {call}\n\n{after}",
    "middle": "{lead}\n\n{call}\n\n{after}",
}
CALLS: tuple[Call, ...] = (
    ("exec_shell", {"command": "rm -rf build"}),
    ("write_file", {"path": "made.txt", "content": "one\ntwo\n"}),
    ("edit_file", {"path": "app.py", "search": "LIMIT = 10", "replace": "LIMIT = 20"}),
    ("exec_shell", {"command": "mkdir made"}),
)
MEANT = ("meant", "mid-task")
NOT_MEANT = ("shown", "quoted", "conditional", "refused")
FILES = {"app.py": "LIMIT = 10\n", "build/old.txt": "old\n"}
LOOK = {"name": "read_file", "arguments": {"path": "app.py"}}


class TextCase(Struct, frozen=True):
    """A text with one call of a change in it. `whole`: its form says call, all of the answer or its very end."""

    id: str
    text: str
    call: Call
    parser: str
    kind: str
    whole: bool
    plain: str


class Outcome(Struct, frozen=True):
    """What came of a text: which calls ran because of its first sending, whether its change was made in the end, how
    many answers came after it, whether the model was told something, how the turn ended, and what was shown of the
    answer beside what was recorded."""

    ran: list[Call]
    changed: bool
    answers: int
    told: bool
    status: str
    shown: str
    recorded: str


def texts() -> Iterator[TextCase]:
    """The texts, fifty of each kind."""
    pairs = list(product(FORMATS, LANGUAGES))
    for place, kind in enumerate((*MEANT, *NOT_MEANT)):
        for number in range(50):
            name, language = pairs[(number * 11 + place * 17) % len(pairs)]
            call = CALLS[(number + place) % len(CALLS)]
            layout = "end" if kind in MEANT or number % 2 else list(LAYOUTS)[1 + number // 2 % (len(LAYOUTS) - 1)]
            words = LANGUAGES[language]
            written = STANDING[name]([call])
            if layout == "quote":
                written = written.replace("\n", "\n> ")
            said = {"lead": words[kind], "call": written, "after": words["after"]}
            alone = kind == "meant" and number % 5 == 0
            text = written if alone else LAYOUTS[layout].format(**said)
            yield TextCase(
                f"{kind}/{language}/{name}/{'alone' if alone else layout}/{call[0]}/{number}",
                text, call, FORMATS[name], kind, layout == "end", words["plain"],
            )  # fmt: skip


class _Model:
    """Sends the text, follows what it is told, and says what it did or that nothing was meant. One with a native
    channel sends the call again as such or alone by turns, one without alone."""

    def __init__(self, case: TextCase, native: bool, again: bool) -> None:
        self._case = case
        self._native = native and again
        self._sent = 0
        self.answers = 0

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        case = self._case
        if case.kind == "mid-task" and not self._sent and not self.answers:
            self.answers = -1
            return {"calls": [LOOK]}
        self.answers = max(self.answers, 0) + 1
        self._sent += 1
        last = request["messages"][-1]
        if self._sent == 1:
            return {"text": case.text}
        if last["role"] == "tool":
            return {"text": "All 1 of it is done."}
        if case.kind not in MEANT:
            return {"text": "DONE" if self._sent % 2 == 0 and len(case.id) % 2 else case.plain}
        name, arguments = case.call
        if self._native:
            return {"calls": [{"name": name, "arguments": arguments}]}
        return {"text": STANDING["hermes"]([case.call])}


async def play(case: TextCase, folder: Path, *, native: bool) -> Outcome:
    """One text through a whole application, in yolo."""
    workspace = folder / "workspace"
    for name, content in FILES.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(content)
    before = tree(workspace)
    model = _Model(case, native, again=len(case.text) % 2 == 0)
    facts = {} if native else {"text_calls": True}
    async with harness(folder / "home", workspace, [model] * 12, facts=facts) as stage:
        events = await stage.turn("Clean the workspace up as we said.")
    return _outcome(case, model, events, tree(workspace) != before)


def _outcome(case: TextCase, model: _Model, events: list[Event], changed: bool) -> Outcome:
    said = [place for place, event in enumerate(events) if _is_answer(event)]
    place = said[1 if case.kind == "mid-task" else 0]
    begin = said[0] if case.kind == "mid-task" else 0
    answer = events[place]
    assert isinstance(answer, MessageAdded)
    shown = "".join(event.text for event in events[begin:place] if isinstance(event, TextStreamed))
    ids = [call.id for call in answer.message.calls]
    started = [event for event in events[place:] if isinstance(event, CallStarted) and event.call_id in ids]
    told = any(isinstance(event, ContextAppended) and event.kind == "nudge" for event in events[place:])
    end = next(event for event in events if isinstance(event, TurnFinished))
    ran = [(event.name, json.loads(event.arguments)) for event in started]
    return Outcome(ran, changed, model.answers - 1, told, end.status, shown, answer.message.text)


def _is_answer(event: Event) -> bool:
    return isinstance(event, MessageAdded) and event.message.role == "assistant"


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder, the harness's own left out, and every folder."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not name.startswith((".codewhale", ".git")):
            found[name] = "" if path.is_dir() else path.read_text()
    return found
