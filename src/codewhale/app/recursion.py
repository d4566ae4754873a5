"""The parts that recursive sessions consist of, imported and built when there is one."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any

from codewhale.agent.engine import Engine
from codewhale.app.settings import RlmTable
from codewhale.config import Config
from codewhale.process.artifacts import ArtifactStore
from codewhale.protocol.children import agent_id
from codewhale.protocol.events import ValueKept
from codewhale.protocol.handles import VarHandle
from codewhale.protocol.ports import Completer
from codewhale.session.store import SessionStore

if TYPE_CHECKING:
    from codewhale.rlm.sessions import RecursiveSessions


class RecursionParts:
    """`home` is CODEWHALE_HOME; `parts` gives the engine and who asks models."""

    def __init__(
        self,
        home: str,
        config: Config,
        artifacts: ArtifactStore,
        parts: Callable[[], tuple[Engine, Completer]],
        closers: AsyncExitStack,
        store: SessionStore,
    ) -> None:
        self._home = home
        self._config = config
        self._artifacts = artifacts
        self._parts = parts
        self._closers = closers
        self._store = store

    @cached_property
    def sessions(self) -> "RecursiveSessions":
        from codewhale.rlm.answers import AnswerStore
        from codewhale.rlm.model import QueryLimits
        from codewhale.rlm.sessions import RecursiveSessions

        engine, completer = self._parts()
        table = self._config.section("rlm", RlmTable)
        limits = QueryLimits(table.sub_queries, table.round_queries)
        sessions = RecursiveSessions(completer, self._artifacts, AnswerStore(self._home), self._keep, limits)
        self._closers.push_async_callback(sessions.aclose)
        engine.on_close(sessions.ended)
        return sessions

    def forget(self, holds: Callable[[str], bool]) -> None:
        """Drop the kept answers that hold what was cleared."""
        from codewhale.rlm.answers import AnswerStore

        if "sessions" in self.__dict__:
            self.sessions.answers.drop(holds)
            return
        answers = AnswerStore(self._home)
        answers.drop(holds)
        answers.close()

    def transcript(self, owner: str, agent: str) -> str | None:
        """What a sub-agent and its tools said, as JSON lines; None where `owner` has opened none of this id."""
        from codewhale.session.objects import transcript_of

        children = self._parts()[0].session(owner).state.children
        session = next((one for one in children if agent_id(one) == agent), None)
        return None if session is None else transcript_of(one.event for one in self._store.read(session))

    def _keep(self, owner: str, session: str, base: str, value: Any) -> VarHandle:
        from codewhale.rlm.handles import keep_value

        conversation = self._parts()[0].session(owner)
        handle = keep_value(self._artifacts, conversation.state.values, session, base, value)
        conversation.emit(ValueKept(handle))
        return handle
