"""What the application is made of, as rows: a key, where its class is, and the keys its constructor takes.

Rows are read lazily: a class is imported when the first call needs it. The floor-plan test counts each row as
an import of this room.
"""

from msgspec import Struct


class Row(Struct, frozen=True):
    """`target` is "module:Class", `needs` the keys of its constructor arguments in order."""

    target: str
    needs: tuple[str, ...] = ()


PARTS: dict[str, Row] = {
    "compaction": Row("codewhale.engine.compaction:Compactions", ("artifacts",)),
    "repair": Row("codewhale.repair.face:Repair", ("catalog", "repair_extent")),
    "workspaces": Row("codewhale.services.workspace:Workspaces", ("artifacts",)),
    "jobs": Row("codewhale.services.shelljobs:ShellJobs", ("listener",)),
    "finder": Row("codewhale.engine.discovery:Discovery", ("catalog", "find_session", "decide")),
    "code_search": Row("codewhale.services.codesearch.answering:CodeSearch", ("home", "touched")),
    "code_maps": Row("codewhale.services.codesearch.codemap:CodeMaps", ("code_search",)),
    "completer": Row("codewhale.engine.completer:Completions", ("find_session", "redactor")),
}

TOOLS: dict[str, Row] = {
    "files": Row("codewhale.tools.files:FileTools", ("workspaces",)),
    "patch": Row("codewhale.tools.patch:PatchTools", ("workspaces",)),
    "fim": Row("codewhale.tools.fim:FimTools", ("workspaces", "completer")),
    "search": Row("codewhale.tools.search:SearchTools", ("map_of",)),
    "git": Row("codewhale.tools.git:GitTools"),
    "shell": Row("codewhale.tools.shell:ShellTools", ("jobs",)),
    "verify": Row("codewhale.tools.verify:VerifyTools"),
    "diagnostics": Row("codewhale.tools.diagnostics:DiagnosticsTools"),
    "work": Row("codewhale.tools.work:WorkTools", ("lists",)),
    "data": Row("codewhale.tools.data:DataTools", ("workspaces",)),
    "results": Row("codewhale.tools.results:ResultTools", ("artifacts",)),
    "ask": Row("codewhale.tools.ask:AskTools", ("asker",)),
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
    "search": Row("codewhale.commands.search:SearchCommand", ("code_search",)),
    "help": Row("codewhale.commands.help:HelpCommand", ("command_specs",)),
}

COMMANDS: dict[str, str] = {
    "/budget": "usage",
    "/cache": "usage",
    "/compact": "context",
    "/context": "context",
    "/cost": "usage",
    "/tokens": "usage",
    "/tools": "tools",
    "/effort": "effort",
    "/help": "help",
    "/mode": "session",
    "/model": "session",
    "/search": "search",
    "/sessions": "session",
    "/status": "session",
}
