"""What a person's commands may do to an open session beside sending messages. Implements SessionControl."""

import contextlib
import os
from collections.abc import Callable, Mapping

from codewhale.agent.activation import tools_view
from codewhale.agent.context_window import CompactionFailed
from codewhale.agent.effort import CHOICES, facts_at, wakes
from codewhale.agent.engine import Engine
from codewhale.agent.model_call import bound_session
from codewhale.agent.report import usage_view
from codewhale.agent.session_factory import SessionFactory
from codewhale.protocol.errors import ConfigError, SessionError
from codewhale.protocol.events import EffortChanged, FolderRemoved, ModeChanged, ModelChanged, Rewound, TitleSet
from codewhale.protocol.modes import NARROWEST_FIRST, Approval, Authority, Mode
from codewhale.protocol.ops import Limits, StatusView, UsageView
from codewhale.protocol.views import ContextView, FormerMessage, ToolsView
from codewhale.session.listing import checked_title
from codewhale.session.session import Session
from codewhale.session.standing import former_messages

Remember = Callable[[Session, Mapping[str, str]], None]


class SessionControls:
    """Over the open sessions of an engine; the port says what each does."""

    def __init__(self, engine: Engine, factory: SessionFactory, remember: Remember = lambda *chosen: None) -> None:
        """`remember(session, what)` keeps what a person chose of provider, model and reasoning_effort."""
        self._engine = engine
        self._factory = factory
        self._remember = remember
        self._borrowed: dict[str, tuple[Mode, Mode, str, str]] = {}
        engine.at_end(self._give_back)

    def set_mode(self, session: str, mode: Mode) -> None:
        target = self._engine.idle(session)
        if target.state.mode is not mode:
            target.emit(ModeChanged(mode, target.state.mode))

    def borrow(self, session: str, mode: Mode | None, model: str) -> Callable[[], None]:
        """Take another mode, no further than the one at hand, and another model ("" keeps it; PROVIDER MODEL names
        both) until the next turn has ended, or what is returned is called. Raises SessionError while a turn runs, and
        where a queued message begins the next one; ConfigError."""
        target = self._engine.idle(session)
        if self._engine.turn(session).busy and self._engine.queue(session):
            raise SessionError("a queued message is answered first; send this again once it is")
        state = target.state
        former = (state.mode, state.provider, state.model)
        if model:
            provider, _, name = model.rpartition(" ")
            self._ask(target, provider, name, lent=True)
        if mode is not None:
            self.set_mode(session, min(mode, state.mode, key=list(Mode).index))
        self._borrowed[session] = (state.mode, *former)
        return lambda: self._give_back(target)

    def _give_back(self, target: Session) -> None:
        if (borrowed := self._borrowed.pop(target.id, None)) is not None:
            mode, former, provider, model = borrowed
            if target.state.mode is mode and mode is not former:
                target.emit(ModeChanged(former, mode))
            with contextlib.suppress(ConfigError, SessionError):
                self._ask(target, provider, model)

    def set_approval(self, session: str, approval: Approval) -> None:
        target = self._engine.session(session)
        order = NARROWEST_FIRST.index
        if order(approval) > order(target.rights.approval):
            self._engine.idle(session)
        target.change_approval(approval)

    def set_model(self, session: str, provider: str, model: str) -> None:
        """Change the model; the one at hand is taken up anew when its facts are no longer those it was pinned with.
        Raises ConfigError for an unknown provider."""
        target = self._engine.idle(session)
        self._ask(target, provider, model)
        self._chose(target, provider=target.state.provider, model=model)

    def _ask(self, target: Session, provider: str, model: str, lent: bool = False) -> None:
        before = (target.state.provider, target.state.model)
        route = (provider or target.state.provider, model)
        ready = self._factory.provider(*route)
        pinned = target.state.header.facts if target.state.header is not None else None
        if route != before or pinned != facts_at(target.state.effort, ready.settings.facts):
            target.emit(ModelChanged(*route, lent))
            self._factory.attach(target, ready)

    def reconnect(self, session: str, provider: str, model: str) -> None:
        """Take a provider up anew, with the key and the address it has now. Raises ConfigError where it cannot be
        used."""
        target = self._engine.idle(session)
        ready = self._factory.provider(provider, model)
        if (provider, model) != (target.state.provider, target.state.model):
            target.emit(ModelChanged(provider, model))
        self._factory.attach(target, ready)
        self._chose(target, provider=provider, model=model)

    def set_effort(self, session: str, effort: str) -> None:
        """Change how hard the model thinks, from the next turn on. Raises SessionError for an unknown level, and while
        a turn runs if thinking begins: the conversation so far must be said otherwise."""
        target = self._engine.session(session)
        state = target.state
        if effort not in CHOICES:
            raise SessionError(f"unknown effort {effort!r}; choose one of {', '.join(CHOICES[1:])}")
        woken = effort != state.effort and state.header is not None and wakes(effort, state.header.facts)
        ready = self._factory.provider(self._engine.idle(session).state.provider, state.model) if woken else None
        if effort != state.effort:
            target.emit(EffortChanged(effort))
        if ready is not None:
            self._factory.attach(target, ready)
        self._chose(target, reasoning_effort=effort)

    def _chose(self, session: Session, **what: str) -> None:
        if session.rights.authority is Authority.PERSON:
            self._remember(session, what)

    def folders(self, session: str) -> tuple[str, ...]:
        return tuple(self._engine.session(session).state.folders)

    def set_folder(self, session: str, path: str, added: bool) -> str:
        target = self._engine.idle(session)
        if added:
            return self._factory.add_folder(target, path)
        real = os.path.realpath(os.path.join(target.state.workspace, os.path.expanduser(path)))
        known = next((one for one in (path, real) if one in target.state.folders), "")
        if known:
            target.emit(FolderRemoved(known))
        return known

    def status(self, session: str) -> StatusView:
        target, turn = self._engine.session(session), self._engine.turn(session)
        state, rights = target.state, target.rights
        chain = self._factory.instructions(state.workspace)
        return StatusView(
            session=target.id,
            workspace=state.workspace,
            mode=state.mode,
            authority=rights.authority,
            provider=state.provider,
            model=state.model,
            turns=state.turns,
            messages=state.messages,
            requests=state.requests,
            busy=not turn.idle,
            waiting_for=turn.waiting_for,
            instructions=tuple((item.name, item.bytes) for item in chain),
            tokens_in=state.usage.input,
            tokens_out=state.usage.output,
            effort=state.effort,
            approval=rights.approval,
            waiting_since=turn.waiting[1],
            queue=len(self._engine.queue(session)),
            jobs=len(state.jobs),
            children=tuple(one.state.name for one in self._engine.owned(session) if one.id in state.children),
            seq=target.log.seq,
            rewinds=len(state.rewinds),
        )

    async def context(self, session: str, brief: bool = False) -> ContextView:
        return await self._factory.context(lambda: self._engine.turn(session), brief)

    def tools(self, session: str) -> ToolsView:
        return tools_view(self._engine.session(session))

    async def retry(self, session: str) -> str:
        return await self._engine.retry(session)

    def former(self, session: str) -> tuple[FormerMessage, ...]:
        return former_messages(self._engine.session(session).log.read())

    def rewind(self, session: str, turn: int, files: bool) -> FormerMessage:
        target = self._engine.idle(session)
        former = next((row for row in self.former(session) if row.turn == turn), None)
        if former is None:
            raise SessionError(f"no message of this conversation began turn {turn}; /rewind lists those that did")
        self._factory.rewind(target, Rewound(turn, files=files))
        return former

    def undo_rewind(self, session: str) -> Rewound | None:
        target = self._engine.idle(session)
        if not target.state.rewinds:
            return None
        rewound = target.state.rewinds[-1][0]
        self._factory.rewind(target, Rewound(rewound.turn, True, rewound.files))
        return rewound

    def rename(self, session: str, title: str) -> None:
        self._engine.session(session).emit(TitleSet(checked_title(title)))

    async def compact(self, session: str, focus: str) -> tuple[int, int]:
        compactor = self._factory.window(self._engine.idle(session)).compactor
        try:
            done = await self._engine.aside(session, "compaction", lambda turn: compactor.asked(turn, focus))
        except CompactionFailed as error:
            raise SessionError(f"not compacted: {error}; nothing has changed") from None
        return done.tokens_before, done.tokens_after

    def undo_compaction(self, session: str) -> int:
        return self._factory.window(self._engine.idle(session)).undo()

    def usage(self, session: str) -> UsageView:
        return usage_view(self._engine.session(session), self._engine.owned(session))

    def set_budget(self, session: str, limits: Limits) -> None:
        bound_session(self._engine.session(session), limits)
