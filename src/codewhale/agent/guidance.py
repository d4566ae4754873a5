"""Skills and rules in a turn: those that the person's words name, that the files it touches call for, and that may fit
are looked for before each step, beside the event loop."""

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, Protocol

import msgspec

from codewhale.agent.pending_call import PendingCall
from codewhale.lib.patterns import lazy
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import CallFinished, ContextAppended, Event, FileChanged, ListChanged, SkillReleased
from codewhale.protocol.skills import Guided, Mentioned
from codewhale.session.prompt import offered_text, released_text, skill_text
from codewhale.session.session import Session

# Whose results name the files that were found.
FINDERS = frozenset(("codebase_search", "code_symbols", "file_search", "grep_files", "git_status", "list_dir"))
_PATH = lazy(r"(?<![\w/.])(?:\.{0,2}/)?(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,9}(?![\w/])")
# Files without an ending: in running text only these, for each word would be one.
_BARE = lazy(r"(?<![\w/.-])(?:\.{0,2}/)?(?:[\w.@+-]+/)*(?:\.[A-Za-z][\w-]+|[A-Z][a-z]+file)(?![\w/.-]\w)")
_MOST_PATHS, _MOST_TEXT = 400, 64 << 10


class GuidanceSource(Protocol):
    """The skills and rules of workspaces. All but `some` may read files."""

    def look(self, workspace: str) -> bool:
        """Look at what there is, for the turn that begins; whether there is any."""

    def some(self, workspace: str) -> bool:
        """Whether there was any when that was last looked at."""

    def mentioned(self, workspace: str, text: str) -> Mentioned: ...
    def planned(self, workspace: str, lines: Sequence[str]) -> tuple[Guided, ...]: ...
    def touching(self, workspace: str, paths: Sequence[str]) -> tuple[Guided, ...]: ...
    def offered(self, workspace: str, text: str) -> tuple[tuple[str, str], ...]: ...
    def standing(self, workspace: str) -> tuple[Guided, ...]: ...
    def activation(
        self, workspace: str, name: str, by: Literal["person", "model"], lasts: Literal["turn", "session"]
    ) -> Guided | None: ...


class SkillGuide:
    """Activates skills and rules in sessions."""

    def __init__(self, source: GuidanceSource) -> None:
        self._source = source

    async def check(self, session: Session, text: str) -> None:
        """Raises SessionError for a message in which it is not clear which skill is meant."""
        if "$" not in text or session.state.owner:
            return
        if await asyncio.to_thread(self._source.look, session.state.workspace):
            mentioned = await asyncio.to_thread(self._source.mentioned, session.state.workspace, text)
            if mentioned.unclear:
                raise SessionError(mentioned.unclear)

    async def hear(self, session: Session, text: str) -> None:
        """Before the first step after a message of a person. What a session is told by the one that it works for is a
        model's text: it activates nothing by name."""
        workspace, events = session.state.workspace, list[Event]()
        if not await asyncio.to_thread(self._source.look, workspace):
            return
        events += self._fresh(session, await asyncio.to_thread(self._source.standing, workspace))
        if text and not session.state.owner:
            mentioned = await asyncio.to_thread(self._source.mentioned, workspace, text)
            for notice in (*mentioned.notices, *filter(None, [mentioned.unclear])):
                session.notice("info", notice, "skill")
            events += self._activated(session, mentioned.guided)
            if not mentioned.guided:
                events += self._offers(session, await asyncio.to_thread(self._source.offered, workspace, text))
        events += await self._touched(session, _paths(text))
        if events:
            session.emit(*events)

    async def after(self, session: Session, calls: Sequence[PendingCall]) -> None:
        """Before the step after these calls."""
        workspace, guided = session.state.workspace, list[Guided]()
        if not self._source.some(workspace):
            return
        lines = [] if session.state.owner else [line for call in calls for line in _planned(call)]
        if lines:
            guided += await asyncio.to_thread(self._source.planned, workspace, lines)
        events = self._fresh(session, guided)
        for name in dict.fromkeys(name for call in calls for name in call.loaded):
            loaded = await asyncio.to_thread(self._source.activation, workspace, name, "model", "turn")
            if loaded is not None and loaded.event.scope is not None and self._is_fresh(session, loaded.event.name):
                events.append(loaded.event)  # the result holds its text
        events += await self._touched(session, _touched(calls))
        if events:
            session.emit(*events)

    async def _touched(self, session: Session, paths: Iterable[str]) -> list[Event]:
        """What applies to these files and does not stand in the conversation yet."""
        named = list(dict.fromkeys(paths))[:_MOST_PATHS]
        if not named:
            return []
        touching = await asyncio.to_thread(self._source.touching, session.state.workspace, named)
        return self._fresh(session, [one for one in touching if not self._stands(session, one)])

    def _offers(self, session: Session, rows: Iterable[tuple[str, str]]) -> list[Event]:
        """An offer of those that are not active, where it is another one than the last."""
        text = offered_text(fresh) if (fresh := [row for row in rows if self._is_fresh(session, row[0])]) else ""
        last = session.state.context_updates.get("offered_skills")
        return [ContextAppended("offered_skills", text)] if text not in ("", last) else []

    def _is_fresh(self, session: Session, name: str) -> bool:
        """Whether it is not active, and was not switched off by the person."""
        return name not in session.state.skills and name not in session.state.released

    def _fresh(self, session: Session, guided: Iterable[Guided]) -> list[Event]:
        return self._activated(session, [one for one in guided if self._is_fresh(session, one.event.name)])

    def _stands(self, session: Session, guided: Guided) -> bool:
        return session.state.context_updates.get(_kind(guided.event.name)) == skill_text(guided)

    def _activated(self, session: Session, guided: Iterable[Guided]) -> list[Event]:
        events = list[Event]()
        for one in guided:
            former, event = session.state.skills.get(one.event.name), one.event
            if former is not None and former.lasts == "session" != event.lasts:  # which the person ends, no turn
                event = msgspec.structs.replace(event, lasts="session", approved=former.approved)
            events.append(event)
            if self._stands(session, one):
                said = f"The skill {one.event.name} is active again; its text stands above."
                events.append(ContextAppended("skill", said))
            elif one.event.by != "always":  # the text of those stands in the head
                events.append(ContextAppended(_kind(one.event.name), skill_text(one)))
        return events

    # ------------------------------------------------------------------ what a person says of them

    async def activate(self, session: Session, name: str) -> Guided:
        """Activate a skill until it is released. Raises SessionError where there is none of this name."""
        await asyncio.to_thread(self._source.look, session.state.workspace)
        found = await asyncio.to_thread(self._source.activation, session.state.workspace, name, "person", "session")
        if found is None:
            raise SessionError(f"there is no skill {name[:80]!r} here that could be used; /skills lists them")
        session.emit(*self._activated(session, [found]))
        return found

    def release(self, session: Session, name: str = "") -> tuple[str, ...]:
        """Release a skill, or all; the names of those that were active."""
        names = tuple(one for one in session.state.skills if name in ("", one))
        for one in names:
            session.emit(SkillReleased(one), ContextAppended(_kind(one), released_text(one)))
        return names


def _kind(name: str) -> str:
    return f"skill:{name}"


def _planned(call: PendingCall) -> Iterator[str]:
    """The lines of a plan or checklist that a call wrote, where they name a skill."""
    lists = (event for event in call.events if isinstance(event, ListChanged))
    texts = (str(value) for event in lists for item in event.items for value in item.values())
    return (text for text in texts if text.startswith("$"))


def _paths(text: str) -> Iterator[str]:
    for pattern in (_PATH, _BARE):
        yield from (match.group() for match in pattern().finditer(text[:_MOST_TEXT]))


def _touched(calls: Iterable[PendingCall]) -> Iterator[str]:
    """The files that calls name, have changed or found."""
    for call in calls:
        if not call.ok:
            continue
        for value in call.arguments.values():
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str):
                    yield from (text,) if len(text) < 400 and not re.search(r"\s", text) else _paths(text)
        for event in call.events:
            if isinstance(event, FileChanged):
                yield event.change.path
            elif isinstance(event, CallFinished) and event.name in FINDERS:
                yield from _paths(event.content)
        yield from (change.path for change in call.changed)
