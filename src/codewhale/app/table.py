"""What the application is made of, as rows: a key, where its class is, and the keys its constructor takes.

Rows are read lazily: a class is imported when the first call needs it. The floor-plan test counts each row as
an import of this room.
"""

import importlib
from typing import Any

from msgspec import Struct


class Row(Struct, frozen=True):
    """`target` is "module:Class", `needs` the keys of its constructor arguments in order."""

    target: str
    needs: tuple[str, ...] = ()


def target(row: Row) -> Any:
    """The class a row names."""
    module, _, name = row.target.partition(":")
    return getattr(importlib.import_module(module), name)


PARTS: dict[str, Row] = {
    "compaction": Row("codewhale.agent.compaction:Compactions", ("artifacts",)),
    "trust": Row("codewhale.permissions.trust:TrustStore", ("home",)),
    "hooks": Row(
        "codewhale.services.hooks:Hooks", ("hooks_written", "trust", "redact", "control", "listener", "audit")
    ),
    "permits": Row("codewhale.permissions.service:PermissionService", ("home", "lookups", "audit")),
    "repair": Row("codewhale.repair.face:Repair", ("catalog", "repair_extent")),
    "workspaces": Row("codewhale.workspace.files:Workspaces", ("artifacts", "redact")),
    "jobs": Row("codewhale.services.shelljobs:ShellJobs", ("listener", "clock", "home", "past_jobs")),
    "job_logs": Row("codewhale.services.shelljobs.keeping:LogKeeper", ("jobs", "artifacts", "redact")),
    "undo": Row("codewhale.workspace.undo:Undo", ("home", "clock", "turn_of", "listener")),
    "finder": Row("codewhale.agent.discovery:Discovery", ("catalog", "find_session", "decide")),
    "skills": Row("codewhale.services.skills:Skills", ("home", "person", "trust")),
    "code_search": Row(
        "codewhale.codesearch.answering:CodeSearch", ("home", "touched", "search_settings", "index_told")
    ),
    "code_maps": Row("codewhale.codesearch.codemap:CodeMaps", ("code_search",)),
    "frecency": Row("codewhale.workspace.file_search:FrecencyStore", ("home", "clock")),
    "mentions": Row("codewhale.workspace.file_search:Mentions", ("frecency",)),
    "attaching": Row("codewhale.services.attaching:Attaching", ("artifacts",)),
    "own_shell": Row("codewhale.services.shelljobs.own:OwnShell", ("listener", "shell_env", "redact")),
    "completer": Row("codewhale.agent.completer:Completions", ("find_session", "redactor")),
}

# What policy asks of the rest of the program, each imported when a call needs it.
LOOKUPS: dict[str, Row] = {
    "hooks_written": Row("codewhale.services.hooks.service:Written"),
    "analyse": Row("codewhale.permissions.shell.judge:analyse"),
    "where": Row("codewhale.permissions.shell.judge:ShellContext"),
    "judge_url": Row("codewhale.permissions.network:judge_url"),
    "leak": Row("codewhale.permissions.network:leak"),
    "sandbox": Row("codewhale.process.confinement:sandbox"),
    "sandbox_options": Row("codewhale.permissions.policy:SandboxOptions"),
    "branch": Row("codewhale.workspace.git:branch_of"),
    "demo": Row("codewhale.models.demo:demo_provider"),
}

# The parts that watch calls which may change the workspace.
WATCHERS: tuple[str, ...] = ("undo",)

TOOLS: dict[str, Row] = {
    "files": Row("codewhale.tools.files:FileTools", ("workspaces",)),
    "patch": Row("codewhale.tools.patch:PatchTools", ("workspaces",)),
    "fim": Row("codewhale.tools.fim:FimTools", ("workspaces", "completer")),
    "search": Row("codewhale.tools.search:SearchTools", ("map_of",)),
    "git": Row("codewhale.tools.git:GitTools"),
    "shell": Row("codewhale.tools.shell:ShellTools", ("jobs", "job_logs", "shell_env", "asker")),
    "taskshell": Row("codewhale.tools.taskshell:TaskShellTools", ("jobs", "job_logs", "clock", "shell_env")),
    "undo": Row("codewhale.tools.undo:UndoTools", ("undo",)),
    "verify": Row("codewhale.tools.verify:VerifyTools"),
    "diagnostics": Row("codewhale.tools.diagnostics:DiagnosticsTools"),
    "work": Row("codewhale.tools.work:WorkTools", ("lists",)),
    "data": Row("codewhale.tools.data:DataTools", ("workspaces",)),
    "results": Row("codewhale.tools.results:ResultTools", ("artifacts",)),
    "ask": Row("codewhale.tools.ask:AskTools", ("asker",)),
    "skills": Row("codewhale.tools.skills:SkillTools", ("skills",)),
    "codesearch": Row("codewhale.tools.codesearch:CodeSearchTools", ("code_search",)),
    "codesymbols": Row("codewhale.tools.codesymbols:CodeSymbolTools", ("code_search",)),
    "toolsearch": Row("codewhale.tools.toolsearch:ToolSearchTools", ("finder",)),
}

COMMAND_FAMILIES: dict[str, Row] = {
    "usage": Row("codewhale.commands.usage:UsageCommands", ("control",)),
    "context": Row("codewhale.commands.context:ContextCommands", ("control",)),
    "session": Row("codewhale.commands.session:SessionCommands", ("control", "sessions")),
    "effort": Row("codewhale.commands.effort:EffortCommand", ("control",)),
    "tools": Row("codewhale.commands.tools:ToolsCommand", ("control",)),
    "skills": Row("codewhale.commands.skills:SkillsCommand", ("skills",)),
    "trust": Row("codewhale.commands.trust:TrustCommand", ("trust",)),
    "jobs": Row("codewhale.commands.jobs:JobsCommand", ("jobs",)),
    "undo": Row("codewhale.commands.undo:UndoCommands", ("undo", "control", "listener")),
    "permissions": Row("codewhale.commands.permissions:PermissionsCommands", ("permits", "control")),
    "hooks": Row("codewhale.commands.hooks:HooksCommand", ("hooking",)),
    "search": Row("codewhale.commands.search:SearchCommand", ("code_search",)),
    "workspace": Row("codewhale.commands.workspace:WorkspaceCommands", ("diff",)),
    "config": Row("codewhale.commands.config:ConfigCommand", ("setting_rows", "change_setting")),
    "queue": Row("codewhale.commands.queue:QueueCommand", ("queued", "edit_queue")),
    "providers": Row("codewhale.commands.providers:ProviderCommands", ("ask",)),
    "new": Row("codewhale.commands.new:NewCommands", ("control", "open_session")),
    "help": Row("codewhale.commands.help:HelpCommand", ("command_specs",)),
}

COMMANDS: dict[str, str] = {
    "/approval": "permissions",
    "/budget": "usage",
    "/cache": "usage",
    "/clear": "new",
    "/fork": "new",
    "/compact": "context",
    "/config": "config",
    "/context": "context",
    "/cost": "usage",
    "/diff": "workspace",
    "/tokens": "usage",
    "/tools": "tools",
    "/effort": "effort",
    "/help": "help",
    "/hooks": "hooks",
    "/jobs": "jobs",
    "/mode": "session",
    "/yolo": "session",
    "/network": "permissions",
    "/permissions": "permissions",
    "/model": "session",
    "/models": "providers",
    "/new": "new",
    "/providers": "providers",
    "/queue": "queue",
    "/restore": "undo",
    "/retry": "session",
    "/search": "search",
    "/sessions": "session",
    "/skills": "skills",
    "/status": "session",
    "/trust": "trust",
    "/undo": "undo",
}
