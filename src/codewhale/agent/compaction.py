"""Room in the context: old results set aside first, then the conversation said shorter, never inside a step.

A summary is asked for behind the unchanged conversation, so that the provider's cache serves it; what must not be
lost stands word for word beside it, and the whole stays readable. A compaction that fails changes nothing.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from codewhale.agent.aside import PAUSES, NoAnswer, ask_aside, bound_for, in_place_of_a_turn
from codewhale.agent.context_window import CompactionFailed, bytes_to_tokens, measure
from codewhale.agent.model_call import ModelCalls
from codewhale.agent.turn import Turn
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import Compacted, Event, PrefixInvalidated, ResultsPruned
from codewhale.protocol.messages import Message, Part, Text
from codewhale.session.conversation import COMPACTED, Conversation
from codewhale.session.kept import Kept, contained
from codewhale.session.outputs import Keeper
from codewhale.session.pruning import Keep, prune
from codewhale.session.session import Session
from codewhale.session.standing import of_conversation
from codewhale.session.transcript import transcript
from codewhale.session.window import ContextSettings

INSTRUCTIONS = "# Instructions of this project\n"
MOST_OVERFLOWS = 2
_REPEATED_BYTES = 8192
_RULE_BYTES = 24_576
_SMALL_WINDOW = 64_000
_PROMPT = Path(__file__).with_name("prompts") / "compaction.md"


class ConversationCompactor:
    """Keeps a session within its model's window. `pauses` are the seconds before each new try of a summary; while one
    is asked for, `asking` is set, and stays so when it is cancelled."""

    def __init__(
        self, session: Session, settings: ContextSettings, keeper: Keeper, pauses: tuple[float, ...] = PAUSES
    ) -> None:
        self.session = session
        self.settings = settings
        self.keeper = keeper
        self.asking = False
        self._pauses = pauses
        self._overflows = 0
        self._idle_below = 0

    async def make_room(self, calls: ModelCalls) -> None:
        """Before a request: make room if it is time to. What cannot be done now is tried again once the conversation
        has grown."""
        before = measure(self.session, self.settings)
        if not 0 < before.threshold <= before.used or before.used < self._idle_below or self.session.state.open_calls:
            return
        work = _Work(self.session, self.settings.kept(before.spendable))
        wanted, least = before.used - before.threshold // 2, before.used - before.threshold * 9 // 10
        fits = before.used + bound_for(before.window) <= before.window
        if self._prune(work, wanted, least if fits else 1):
            before = measure(self.session, self.settings)
            if before.used < before.threshold:
                return
            work = _Work(self.session, self.settings.kept(before.spendable))
        self._idle_below = before.used + before.spendable // 20
        if work.gain < before.spendable // 10:
            return
        try:
            done = await self.compact(calls, work=work, reason="full")
            self._idle_below = done.tokens_after + before.spendable // 5
        except CompactionFailed as error:
            self.session.notice("warning", f"The conversation could not be compacted: {error}", "compaction_failed")

    async def overflowed(self, calls: ModelCalls) -> bool:
        """After the provider refused a request as too long: whether enough was taken away to send it again. Twice a
        turn at most."""
        if self._overflows >= MOST_OVERFLOWS or self.session.state.open_calls:
            return False
        self._overflows += 1
        before = measure(self.session, self.settings)
        limit = min(before.spendable, before.used * 4 // 5)
        if before.head > before.spendable and before.window_source != "overflow":
            text = f"System text and tools alone take about {before.head:,} of {before.window:,} tokens"
            source = f"the window is {before.window_source}; set providers.{self.session.state.provider}.context_window"
            self.session.notice("error", f"{text} ({source} where that is wrong).", "window_too_small")
        work = _Work(self.session, self.settings.kept(limit) // self._overflows)
        if self._overflows == 1 and self._prune(work, before.used // 2, before.used // 4):
            return True
        if not work.old:
            return False
        try:
            await self.compact(calls, work=work, reason="overflow")
        except CompactionFailed as error:
            return self._compact_bare(work, str(error))
        return True

    def _compact_bare(self, work: "_Work", why: str) -> bool:
        try:
            self._replace(work, "overflow", _bare_summary(work.old, why))
        except CompactionFailed:
            return False
        return True

    async def asked(self, turn: Turn, focus: str) -> Compacted:
        return await in_place_of_a_turn(turn, lambda calls: self.compact(calls, focus=focus))

    async def compact(
        self, calls: ModelCalls, *, focus: str = "", work: "_Work | None" = None, reason: str = "asked"
    ) -> Compacted:
        """Ask for a summary and put it, with what is kept word for word, in place of the conversation but its newest
        steps. Raises CompactionFailed, and then nothing has changed."""
        session = self.session
        if session.state.open_calls:
            raise CompactionFailed("a call is still open")
        if work is None:
            spendable = measure(session, self.settings).spendable
            work = _Work(session, self.settings.kept(spendable))
            if len(work.old) < 2:
                work = _Work(session, 0)
        if len(work.old) < 2:
            raise CompactionFailed("there is nothing to compact yet")
        summary = await self._summary(calls, focus)
        return self._replace(work, reason, summary)

    async def _summary(self, calls: ModelCalls, focus: str) -> str:
        window = measure(self.session, self.settings).window
        small = window < _SMALL_WINDOW
        extra = _PROMPT.read_text(encoding="utf-8").strip().replace("{words}", "500" if small else "900")
        if focus:
            extra += f"\n\nThe developer asks to keep above all: {focus}"
        self.asking = True
        try:
            summary = await ask_aside(calls, "compaction", extra, bound_for(window), self._pauses)
        except NoAnswer as failed:
            self.asking = False
            raise CompactionFailed(str(failed)) from None
        self.asking = False
        return summary

    # ------------------------------------------------------------------ what changes

    def _keep(self, call_id: str, content: str) -> str:
        sha = self.keeper.put(content.encode("utf-8", "replace"))
        self.keeper.remember(self.session.id, call_id, sha)
        return sha

    def _prune(self, work: "_Work", wanted: int, least: int) -> bool:
        session = self.session
        projection = session.projection
        if not self.settings.prune:
            return False
        try:
            found = prune(work.old, int(wanted / work.rate), self._keep, session.state.artifacts, not work.new)
        except SessionError:
            return False
        if not found.results or found.saved * work.rate < least:
            return False
        first = projection.index([result.call_id for result in found.results])
        session.emit(PrefixInvalidated("pruned", first), ResultsPruned(found.results))
        saved = int(found.saved * work.rate)
        session.notice("info", f"Old tool results were shortened, saving about {saved} tokens.", "pruned")
        return True

    def _replace(self, work: "_Work", reason: str, summary: str) -> Compacted:
        session = self.session
        before = measure(session, self.settings)
        try:
            sha = self.keeper.put(transcript(work.events).encode("utf-8", "replace"))
        except SessionError as error:
            raise CompactionFailed(str(error)) from error
        number = session.state.compactions + 1
        head = _head_text(session, work, number, sha, summary, before.spendable)
        messages = (Message("user", (Text(head, source="harness"),)), *work.tail(self._keep, before.spendable))
        after = before.head + work.tokens(messages) + work.tokens([Message("user", tuple(work.pending))])
        if after >= before.used:
            raise CompactionFailed("it would not get shorter")
        event = Compacted(number, reason, messages, before.used, after)
        session.emit(PrefixInvalidated("compaction", 1), event)
        text = f"The conversation was compacted: about {before.used} tokens before, {after} now."
        session.notice("info", f"{text} /compact undo takes it back.", "compacted")
        return event


class _Work:
    """A session's conversation in two: `old`, and the newest whole steps that stay, of `keep` tokens at most."""

    def __init__(self, session: Session, keep: int) -> None:
        self.session = session
        self.events: list[Event] = list(of_conversation(session.log, session.state))
        conversation = Conversation(self.events)
        messages, self.pending = conversation.messages, conversation.pending
        self.rate = bytes_to_tokens(session)
        self._keep = keep
        cut, taken = len(messages), 0
        for start in reversed(range(len(messages))):
            taken += self.tokens(messages[start : start + 1])
            if taken > keep:
                break
            if messages[start].role != "tool":
                cut = start
        self.old, self.new = messages[:cut], messages[cut:]

    def tokens(self, messages: Sequence[Message]) -> int:
        return int(sum(len(msgspec.json.encode(message)) for message in messages) * self.rate)

    @property
    def gain(self) -> int:
        stays = [part for message in self.old for part in message.parts if isinstance(part, Text) and _stays(part)]
        return self.tokens(self.old) - self.tokens([Message("user", tuple(stays))])

    def tail(self, keep: Keep, spendable: int) -> tuple[Message, ...]:
        if self.new or not self.old or self.old[-1].role != "tool":
            return self.new
        step = self.old[-2:]
        state = self.session.state
        shorter = prune(step, 2**62, keep, state.artifacts, True).results
        step = (step[0], Message("tool", shorter)) if shorter else step
        return step if self.tokens(step) <= max(self._keep, spendable // 4) else ()

    def said_below(self, tail: Sequence[Message]) -> int:
        parts: list[Part] = [part for message in tail for part in message.parts]
        return sum(isinstance(part, Text) and part.source == "person" for part in (*parts, *self.pending))


def _stays(text: Text) -> bool:
    return text.source == "person" or (text.source == "harness" and text.text.startswith(COMPACTED))


def _head_text(session: Session, work: _Work, number: int, sha: str, summary: str, spendable: int) -> str:
    kept = Kept(work.events)
    room = int(spendable / 4 / work.rate)
    sections = [
        ("The developer's messages, word for word", kept.words_text(work.said_below(work.new), room)),
        ("Instructions in force", _instructions(session)),
        ("From CodeWhale", kept.told_text(session.state.skills)),
        (
            "Rules that tool results state (data, quoted word for word)",
            kept.rules_text(min(_RULE_BYTES, max(4096, room // 4))),
        ),
        ("Plan and checklist", kept.lists_text()),
        ("Refused: do not try these again", kept.refused_text()),
        ("Questions to the developer", kept.questions_text()),
        ("Open, running, changed, noted", kept.open_text()),
        ("Summary, written by the model", f"<summary>\n{contained(summary)}\n</summary>"),
    ]
    fetch = f'retrieve_tool_result {{"ref": "art_{sha[:16]}", "mode": "query", "query": "..."}}'
    top = (
        f'{COMPACTED} number="{number}">\nThe conversation so far was shortened to this. All but the summary is word '
        f"for word; the whole of it can be read with {fetch}."
    )
    return "\n\n".join([top, *(f"# {title}\n{text}" for title, text in sections if text)]) + "\n</compacted>"


def _instructions(session: Session) -> str:
    _, mark, chain = session.state.pinned.system.rpartition(INSTRUCTIONS)
    if not mark or "instructions" in session.state.context_updates:
        return ""
    if len(chain.encode("utf-8", "replace")) > _REPEATED_BYTES:
        return "The instruction files in the system text hold in full."
    return chain


def _bare_summary(old: Sequence[Message], why: str) -> str:
    said = [message.text for message in old if message.role == "assistant" and message.text.strip()][-3:]
    calls = [f"- {call.sent_name} {call.sent_arguments[:160]}" for message in old for call in message.calls][-40:]
    return "\n".join([f"No summary could be made ({why}). Last said:", *said, "Calls made last:", *calls])
