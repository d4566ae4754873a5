"""The families of tools and of slash commands, each built at its first call. Those of tools are imported one by
one, those of commands all together."""

from collections.abc import Callable
from functools import partial
from typing import Any

from codewhale.app.client import EngineClient
from codewhale.app.container import Container
from codewhale.commands.base import OwnCommands
from codewhale.protocol.events import CallFinished, MessageAdded
from codewhale.protocol.tools import UrlSubject
from codewhale.session.standing import of_conversation

# Each slash command with its family.
COMMANDS: dict[str, str] = {
    "/agents": "agents",
    "/add-dir": "permissions",
    "/approval": "permissions",
    "/batonpass": "relay",
    "/budget": "usage",
    "/cache": "usage",
    "/clear": "new",
    "/compact": "context",
    "/config": "config",
    "/connect": "providers",
    "/context": "context",
    "/cost": "usage",
    "/diff": "workspace",
    "/doctor": "providers",
    "/effort": "effort",
    "/export": "export",
    "/fork": "new",
    "/help": "help",
    "/hooks": "hooks",
    "/init": "init",
    "/jobs": "jobs",
    "/login": "providers",
    "/mcp": "mcp",
    "/memory": "memory",
    "/mode": "session",
    "/model": "session",
    "/models": "providers",
    "/network": "permissions",
    "/new": "new",
    "/permissions": "permissions",
    "/plan": "plan",
    "/providers": "providers",
    "/queue": "queue",
    "/relay": "relay",
    "/restore": "undo",
    "/remember": "remember",
    "/rename": "session",
    "/retry": "session",
    "/review": "review",
    "/rewind": "undo",
    "/rules": "rules",
    "/search": "search",
    "/sessions": "session",
    "/skill": "skill",
    "/skills": "skills",
    "/status": "session",
    "/task": "tasks",
    "/tokens": "usage",
    "/tools": "tools",
    "/trust": "trust",
    "/undo": "undo",
    "/voice": "voice",
    "/yolo": "session",
    "/接力": "relay",
}


def tool_family(app: Container, key: str) -> object:
    """The tools of a family of the catalog. Raises LookupError for a family that there is not."""
    match key:
        case "files":
            from codewhale.tools.files import FileTools

            return FileTools(app.services.workspaces)
        case "mcp":
            from codewhale.tools.mcp import McpTools

            return McpTools(lambda session: app.mcp.at())
        case "patch":
            from codewhale.tools.patch import PatchTools

            return PatchTools(app.services.workspaces)
        case "fim":
            from codewhale.tools.fim import FimTools

            return FimTools(app.services.workspaces, app.services.completer)
        case "data":
            from codewhale.tools.data import DataTools

            return DataTools(app.services.workspaces)
        case "search":
            from codewhale.tools.search import SearchTools

            return SearchTools(app.services.map_of)
        case "codesearch":
            from codewhale.tools.codesearch import CodeSearchTools

            return CodeSearchTools(app.services.code_search)
        case "codesymbols":
            from codewhale.tools.codesymbols import CodeSymbolTools

            return CodeSymbolTools(app.services.code_search)
        case "git":
            from codewhale.tools.git import GitTools

            return GitTools()
        case "web":
            from codewhale.services.web.references import WebRefs
            from codewhale.tools.web import WebTools

            refs = WebRefs(app.artifacts, partial(_read_on_the_web, app), app.redact)
            return WebTools(app.web.pages, app.web.search, refs, partial(_may_dial, app))
        case "github":
            from codewhale.tools.github import GithubTools

            return GithubTools(app.redact)
        case "speech":
            from codewhale.tools.speech import SpeechTools

            return SpeechTools(app.web.speech, app.services.workspaces, app.asking, app.redact)
        case _:
            return _tools_of_the_work(app, key)


def _tools_of_the_work(app: Container, key: str) -> object:
    match key:
        case "shell":
            from codewhale.tools.shell import ShellTools

            return ShellTools(app.services.jobs, app.services.job_logs, app.hooking.shell_env, app.asking)
        case "taskshell":
            from codewhale.tools.taskshell import TaskShellTools

            shell_env, task_of = app.hooking.shell_env, app.tasking.task_of
            return TaskShellTools(app.services.jobs, app.services.job_logs, app.clock, shell_env, task_of)
        case "undo":
            from codewhale.tools.undo import UndoTools

            return UndoTools(app.services.undo)
        case "verify":
            from codewhale.tools.verify import VerifyTools

            return VerifyTools()
        case "diagnostics":
            from codewhale.tools.diagnostics import DiagnosticsTools

            return DiagnosticsTools()
        case "work":
            from codewhale.tools.work import WorkTools

            return WorkTools(app.lists)
        case "results":
            from codewhale.tools.results import ResultTools

            return ResultTools(app.artifacts)
        case "ask":
            from codewhale.tools.ask import AskTools

            return AskTools(app.asking)
        case "agents":
            from codewhale.tools.agents import AgentTools

            return AgentTools(app.children)
        case "skills":
            from codewhale.tools.skills import SkillTools

            return SkillTools(app.services.skills)
        case "memory":
            from codewhale.tools.memory import MemoryTools

            return MemoryTools(app.memory.facts, app.memory.waiting, app.engine.session, app.redact)
        case "handles":
            from codewhale.tools.handles import HandleTools

            values = lambda session: app.engine.session(session).state.values  # noqa: E731
            return HandleTools(app.artifacts, values, app.recursion.transcript, app.tasking.artifact)
        case _:
            return _tools_beside_the_work(app, key)


def _tools_beside_the_work(app: Container, key: str) -> object:
    match key:
        case "automations":
            from codewhale.tools.automations import AutomationTools

            return AutomationTools(app.tasking.automations, app.tasking)
        case "attempts":
            from codewhale.app.attempts import Attempts
            from codewhale.tools.attempts import AttemptTools

            return AttemptTools(Attempts(app.engine, app.tasking), app.artifacts, app.clock, app.redact)
        case "tasks":
            from codewhale.tools.tasks import TaskTools

            return TaskTools(app.tasking)
        case "rlm":
            from codewhale.tools.rlm import RlmTools

            return RlmTools(app.recursion.sessions, app.services.workspaces, app.engine.session, app.asking, app.web)
        case "toolsearch":
            from codewhale.tools.toolsearch import ToolSearchTools

            return ToolSearchTools(app.services.discovery)
    raise LookupError(f"there is no family of tools {key!r}")


def command_families(client: EngineClient) -> dict[str, Callable[[], object]]:
    from codewhale.commands.agents import AgentsCommand
    from codewhale.commands.config import ConfigCommand
    from codewhale.commands.context import ContextCommands
    from codewhale.commands.effort import EffortCommand
    from codewhale.commands.export import ExportCommand
    from codewhale.commands.files import FileCommands
    from codewhale.commands.help import HelpCommand
    from codewhale.commands.hooks import HooksCommand
    from codewhale.commands.init import InitCommand
    from codewhale.commands.jobs import JobsCommand
    from codewhale.commands.new import NewCommands
    from codewhale.commands.permissions import PermissionsCommands
    from codewhale.commands.providers import ProviderCommands
    from codewhale.commands.queue import QueueCommand
    from codewhale.commands.remember import RememberCommand
    from codewhale.commands.search import SearchCommand
    from codewhale.commands.session import SessionCommands
    from codewhale.commands.sources import SourceCommands
    from codewhale.commands.tasks import TaskCommand
    from codewhale.commands.tools import ToolsCommand
    from codewhale.commands.trust import TrustCommand
    from codewhale.commands.undo import UndoCommands
    from codewhale.commands.usage import UsageCommands
    from codewhale.commands.workspace import WorkspaceCommands
    from codewhale.process.confinement import sandbox

    app, control, services = client.parts, client.parts.control, client.parts.services
    return {
        "agents": lambda: AgentsCommand(client.query, client.submit),
        "config": lambda: ConfigCommand(client.providers.settings, client.providers.change),
        "context": lambda: ContextCommands(
            control, app.memory.items, app.memory.clear, client.submit, SourceCommands(app.memory.sources, app.tell).run
        ),
        "effort": lambda: EffortCommand(control),
        "export": lambda: ExportCommand(client.work.export),
        "files": lambda: _from_elsewhere(client, FileCommands(app.place.home, services.trust, control, client.submit)),
        "help": lambda: HelpCommand(client.commands.specs),
        "hooks": lambda: HooksCommand(app.hooking),
        "init": InitCommand,
        "jobs": lambda: JobsCommand(services.jobs),
        "new": lambda: NewCommands(control, client.submit),
        "permissions": lambda: PermissionsCommands(app.permissions, control),
        "plan": lambda: services.plans,
        "providers": lambda: ProviderCommands(client.query, client.examine),
        "queue": lambda: QueueCommand(client.queued, client.edit_queue),
        "remember": lambda: RememberCommand(app.place.home),
        "review": lambda: client.reviews,
        "search": lambda: SearchCommand(services.code_search),
        "session": lambda: SessionCommands(control, app.sessions.summaries, lambda: sandbox().mechanism),
        "tasks": lambda: TaskCommand(client.query, client.submit),
        "tools": lambda: ToolsCommand(control),
        "trust": lambda: TrustCommand(services.trust),
        "undo": lambda: UndoCommands(services.undo, services.workspaces, control, app.tell),
        "usage": lambda: UsageCommands(control),
        "workspace": lambda: WorkspaceCommands(client.work.diff),
        "mcp": lambda: _mcp(app),
        "memory": lambda: _memory(client),
        **_guiding(app),
    }


def _from_elsewhere(client: EngineClient, files: OwnCommands) -> object:
    """The commands of files, and those that servers make, where any is named."""
    if client.parts.mcp.at() is None:
        return files
    from codewhale.commands.mcp import PromptCommands

    return PromptCommands(files, client.parts.mcp.at, client.submit)


def _mcp(app: Container) -> object:
    from codewhale.commands.mcp import McpCommand
    from codewhale.mcp.admin import McpAdmin

    return McpCommand(lambda: McpAdmin(app.mcp.built().service))


def _memory(client: EngineClient) -> object:
    from codewhale.app.clearing import Clearing
    from codewhale.commands.memory import MemoryCommand
    from codewhale.commands.proposals import ProposalCommands

    parts, proposals = client.parts.memory, ProposalCommands(client.query, client.submit)
    return MemoryCommand(parts.facts, Clearing(client.parts), parts.doctor, parts.hide, proposals.table)


def _guiding(app: Container) -> dict[str, Callable[[], object]]:
    from codewhale.commands.relay import RelayCommand
    from codewhale.commands.rules import RulesCommand
    from codewhale.commands.skill import SkillCommand
    from codewhale.commands.skills import SkillsCommand
    from codewhale.commands.voice import VoiceCommand

    return {
        "relay": lambda: RelayCommand(lambda: app.relays.files),
        "rules": lambda: RulesCommand(app.services.rules, app.services.trust, app.control),
        "skill": lambda: SkillCommand(
            lambda session, name: app.guide.activate(app.engine.session(session), name),
            lambda session, name: app.guide.release(app.engine.session(session), name),
        ),
        "skills": lambda: SkillsCommand(app.services.skill_files, app.services.skills, app.skill_places),
        "voice": lambda: VoiceCommand(
            app.web.speech, app.services.workspaces, partial(_last_answer, app), app.asking.attended, app.tell
        ),
    }


def _may_dial(app: Container, session: str, url: str) -> bool:
    """Whether an address may be read without asking, by what holds of that session now."""
    from codewhale.agent.authorize import decision_request

    spec = app.catalog.spec("fetch_url")
    if spec is None:
        return False
    asked = decision_request(app.engine.session(session), spec, (UrlSubject(url),))
    return app.gateway.decide(asked).verdict == "allow"


def _read_on_the_web(app: Container, session: str) -> list[dict[str, Any]]:
    """What was found and read in a conversation, from its log."""
    here = app.engine.session(session)
    events = of_conversation(here.log, here.state)
    return [row for event in events if isinstance(event, CallFinished) for row in event.metadata.get("refs", ())]


def _last_answer(app: Container, session: str) -> str:
    """The text of the last answer of a conversation, "" where there is none."""
    here, last = app.engine.session(session), ""
    for event in of_conversation(here.log, here.state):
        if isinstance(event, MessageAdded) and event.message.role == "assistant" and not event.child:
            last = event.message.text.strip() or last
    return last
