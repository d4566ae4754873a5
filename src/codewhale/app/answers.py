"""Answers to what interfaces ask beside a session's events, and what they tell to do beside its turns. Built at the
first of them; each part below is built when it is needed."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from codewhale.agent.engine import Engine
from codewhale.agent.outgoing import queued
from codewhale.app.completing import Source, complete
from codewhale.commands.base import CommandRegistry
from codewhale.protocol.errors import CodeWhaleError, SessionError
from codewhale.protocol.ops import (
    ChangeSetting,
    ConnectProvider,
    NoteFile,
    Op,
    RunShell,
    SendMessage,
    StartDemo,
)
from codewhale.protocol.views import (
    Choice,
    CommandRow,
    CompleteCommand,
    FindFiles,
    FindLocal,
    GetContext,
    GetDiff,
    GetQueue,
    GetSettings,
    GetTools,
    GetWorkspace,
    ListCommands,
    ListJobs,
    ListModels,
    ListProviders,
    PreviewSession,
    PreviewUndo,
    ViewQuery,
)

if TYPE_CHECKING:
    from codewhale.app.choices import Choices
    from codewhale.app.looking import Looking
    from codewhale.services.attaching import Attaching, Enclosed
    from codewhale.services.shelljobs.own import OwnShell
    from codewhale.workspace.file_search import Mentions

FILES_OFFERED = 20


class Answers:
    """Answers. `part(key)` gives a part of the application."""

    def __init__(
        self, part: Callable[[str], Any], engine: Engine, commands: CommandRegistry, open_session: Callable[..., Any]
    ) -> None:
        self._part = part
        self._engine = engine
        self._commands = commands
        self._open = open_session
        self._sources: dict[str, Source] = {
            "COMMAND": self._command_names,
            "MODEL": self._model_names,
            "PROVIDER": self._provider_names,
            "KEY": self._setting_keys,
            "VALUE": self._setting_values,
            "ID": self._job_ids,
            "FILE": self._file_names,
            "PATH": self._file_names,
            "N": self._turn_numbers,
            "SKILL": self._skill_names,
        }

    async def answer(self, query: ViewQuery) -> Any:
        """Answer as the query says. Raises CodeWhaleError."""
        match query:
            case PreviewSession(id=name, last=last):
                return await self._looking.session(name, last)
            case GetSettings():
                return await asyncio.to_thread(self._choices.settings)
            case FindLocal():
                return await self._choices.local()
            case GetQueue(session=session):
                return queued(self._engine.session(session))
            case GetContext(session=session, brief=brief):
                return self._engine.context(session, brief)
            case GetTools(session=session):
                return self._engine.tools(session)
            case ListCommands():
                return tuple(CommandRow(spec.name, spec.usage, spec.summary) for spec in self._commands.specs())
            case CompleteCommand(session=session, line=line):
                return tuple(await complete(line, self._commands.specs(), self._sources, session))
            case ListProviders(session=session):
                return await self._choices.providers(self._engine.session(session).state.provider)
            case ListModels(session=session):
                state = self._engine.session(session).state
                return await self._choices.models((state.provider, state.model))
            case ListJobs(session=session):
                return self._looking.jobs(session)
            case _:
                return await self._of_workspace(query)

    async def _of_workspace(self, query: FindFiles | GetWorkspace | GetDiff | PreviewUndo) -> Any:
        root = self._engine.session(query.session).state.workspace
        match query:
            case FindFiles(text=text, limit=limit):
                return await self._mentions.find(root, text, limit)
            case GetWorkspace():
                return await self._looking.workspace(root)
            case GetDiff(session=session, path=path):
                return await self._looking.diff(session, root, path)
            case PreviewUndo():
                return await self._looking.undo(query, root)

    async def do(self, op: Op) -> Any:
        """Do it; answered as the operation says. Raises CodeWhaleError."""
        match op:
            case NoteFile(session=session, path=path):
                await self._mentions.note(self._engine.session(session).state.workspace, path)
                return None
            case RunShell(session=session, command=command):
                here = self._engine.session(session)
                code = await self._own_shell.run(session, here.state.workspace, command)
                await here.barrier()
                return code
            case ConnectProvider():
                return await self._connect(op)
            case ChangeSetting(key=key, value=value):
                return await asyncio.to_thread(self._choices.change, key, value)
            case StartDemo():
                return await self._part("start_demo")(self._open)
            case _:
                raise SessionError(f"{type(op).__name__} is not done here")

    async def _connect(self, op: ConnectProvider) -> str:
        here = self._engine.session(op.session)
        if not here.idle:
            return "A turn is running; interrupt it or wait for its end."
        try:
            provider, model = await asyncio.to_thread(self._choices.connect, op)
            self._engine.reconnect(op.session, provider, model)
            await here.barrier()
        except CodeWhaleError as error:
            return str(error)
        return ""

    async def enclose(self, op: SendMessage) -> "Enclosed":
        """What the attachments of a message come to. Raises SessionError for one that cannot be sent."""
        here = self._engine.session(op.session)
        facts = here.provider.settings.facts if here.provider is not None else {}
        takes = bool(facts.get("images", True))
        model = here.state.model
        no_images = "" if takes else f"{model} reads no images; choose another model (/model), or leave it out"
        attaching: Attaching = self._part("attaching")
        return await asyncio.to_thread(attaching.enclose, op.attachments, here.state.workspace, no_images)

    # ------------------------------------------------------------------ what takes the place of names

    async def _command_names(self, session: str, words: Sequence[str]) -> Sequence[Choice]:
        return [Choice(spec.name, spec.summary) for spec in self._commands.specs()]

    async def _model_names(self, session: str, words: Sequence[str]) -> Sequence[Choice]:
        rows = await self.answer(ListModels(session))
        return [Choice(row.model, row.provider) for row in rows if row.ready]

    async def _provider_names(self, session: str, words: Sequence[str]) -> Sequence[Choice]:
        rows = await self.answer(ListProviders(session))
        return [Choice(row.name, row.why or row.base_url) for row in rows]

    async def _setting_keys(self, session: str, words: Sequence[str]) -> Sequence[Choice]:
        return [Choice(row.key, f"{row.shown}  ({row.origin})") for row in await self.answer(GetSettings(session))]

    async def _job_ids(self, session: str, words: Sequence[str]) -> Sequence[Choice]:
        return [Choice(row.id, f"{row.status}: {row.command}") for row in self._looking.jobs(session)]

    async def _file_names(self, session: str, words: Sequence[str]) -> Sequence[Choice]:
        rows = await self.answer(FindFiles(session, words[-1], FILES_OFFERED))
        return [Choice(row.path) for row in rows]

    async def _skill_names(self, session: str, words: Sequence[str]) -> Sequence[Choice]:
        root = self._engine.session(session).state.workspace
        found = await asyncio.to_thread(self._part("skills").of, root)
        return [Choice(skill.name, skill.description) for skill in found.skills]

    async def _turn_numbers(self, session: str, words: Sequence[str]) -> Sequence[Choice]:
        view = await self.answer(PreviewUndo(session))
        return [Choice(str(number), line) for number, line in view.rows]

    async def _setting_values(self, session: str, words: Sequence[str]) -> Sequence[Choice]:
        rows = await self.answer(GetSettings(session))
        return [Choice(choice) for row in rows if row.key == words[-2] for choice in row.choices]

    # ------------------------------------------------------------------ parts

    @property
    def _choices(self) -> "Choices":
        found: Choices = self._part("choices")
        return found

    @property
    def _looking(self) -> "Looking":
        found: Looking = self._part("looking")
        return found

    @property
    def _mentions(self) -> "Mentions":
        found: Mentions = self._part("mentions")
        return found

    @property
    def _own_shell(self) -> "OwnShell":
        found: OwnShell = self._part("own_shell")
        return found
