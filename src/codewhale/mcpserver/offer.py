"""Which tools a client of the server is offered, and how a row of the catalog is listed to it."""

from collections.abc import Iterable, Sequence
from typing import Any

import mcp_types as types
from msgspec import Struct

from codewhale.protocol.errors import ConfigError
from codewhale.protocol.tools import Effect, ToolSpec

# What only reads the workspace and its repository.
DEFAULT = (
    "read_file", "list_dir", "project_map", "file_search", "grep_files", "codebase_search", "code_symbols",
    "code_history", "git_status", "git_diff", "git_log", "git_show", "git_blame", "retrieve_tool_result",
)  # fmt: skip
# Tools that belong to a conversation: its checklist, its sub-agents, its search for tools, its undo.
OF_CONVERSATIONS = frozenset(("agents", "ask", "handles", "rlm", "skills", "toolsearch", "undo", "work"))
START, CONTINUE = "start_conversation", "continue_conversation"
MOST_PROMPT = 200_000  # characters


class OfferedTools(Struct, frozen=True):
    """The rows that may be called, by name, and whether conversations may be opened."""

    rows: dict[str, ToolSpec]
    conversations: bool

    @property
    def changes(self) -> bool:
        """Whether a tool is offered that does more than read."""
        return any(row.touches and Effect.NETWORK not in row.effects for row in self.rows.values())


def offered(rows: Iterable[ToolSpec], named: Sequence[str], conversations: bool) -> OfferedTools:
    """The default tools and the named ones. Raises ConfigError for a name that cannot be offered."""
    known = {row.name: row for row in rows}
    for name in named:
        row = known.get(name)
        if row is None:
            raise ConfigError(f"there is no tool {name!r} to offer here; see: codewhale tools list")
        if row.family in OF_CONVERSATIONS:
            raise ConfigError(f"{name} works inside a conversation alone and cannot be offered; offer another tool")
    names = dict.fromkeys((*DEFAULT, *named))
    return OfferedTools({name: known[name] for name in names if name in known}, conversations)


def listed(offer: OfferedTools, mode: str) -> list[types.Tool]:
    """The tools as a client lists them; conversations work in `mode`."""
    tools = [_tool(row) for row in offer.rows.values()]
    return [*tools, *_conversation_tools(mode)] if offer.conversations else tools


def _tool(row: ToolSpec) -> types.Tool:
    reads = not row.touches or set(row.effects) == {Effect.READS, Effect.NETWORK}
    return types.Tool(
        name=row.name,
        description=row.description,
        input_schema=row.parameters,
        annotations=types.ToolAnnotations(
            read_only_hint=reads,
            destructive_hint=not reads,
            open_world_hint=Effect.NETWORK in row.effects or Effect.EXECUTES in row.effects,
        ),
    )


def _conversation_tools(mode: str) -> list[types.Tool]:
    prompt = {"type": "string", "minLength": 1, "maxLength": MOST_PROMPT, "description": "What to do or to answer."}
    session = {"type": "string", "description": f"The session_id that {START} answered."}
    rights = {"plan": "It reads and plans, and changes nothing.", "yolo": "It may change files and run programs."}
    may = rights.get(mode, "It may change files in the workspace; programs run as this machine's rules decide.")
    start = "Give a task to a coding agent in this workspace and wait for its answer. " + may
    hints = types.ToolAnnotations(
        read_only_hint=mode == "plan", destructive_hint=mode != "plan", open_world_hint=True, idempotent_hint=False
    )
    return [
        types.Tool(
            name=name, description=text, input_schema=_schema(**fields), output_schema=_ANSWER, annotations=hints
        )
        for name, text, fields in (
            (START, f"{start} Answers with a session_id, by which {CONTINUE} goes on.", {"prompt": prompt}),
            (
                CONTINUE,
                f"Go on with a conversation that {START} began here, and wait for the answer. {may}",
                {"session_id": session, "prompt": prompt},
            ),
        )
    ]


def _schema(**fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


_ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "session_id": {"type": "string"},
        "status": {"type": "string", "description": "done, failed, denied, budget, interrupted or infra"},
        "answer": {"type": "string"},
        "error": {"type": "string"},
        "usage": {"type": "object"},
    },
    "required": ["session_id", "status", "answer"],
}
