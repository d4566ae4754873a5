"""The one place where tool names live: which are canonical, which are aliases, and in what state each stands.

Plain data. Every name that a tool family registers must stand in exactly one of these sets; a test fails the
build otherwise. The array sent to a model is made of the registered canonical names.
"""

from typing import Literal

from msgspec import Struct

State = Literal["active", "deferred", "hidden", "deprecated", "removed"]

ACTIVE: frozenset[str] = frozenset(
    """agent_close agent_eval agent_open apply_patch checklist_write edit_file exec_shell exec_shell_interact
    exec_shell_wait fetch_url file_search git_diff git_log git_show git_status grep_files list_dir read_file
    run_tests update_plan web_search write_file tool_search_tool_bm25 tool_search_tool_regex""".split()
)

DEFERRED: frozenset[str] = frozenset(
    """checklist_add checklist_list checklist_update diagnostics exec_shell_cancel fim_edit git_blame note project_map
    request_user_input retrieve_tool_result run_verifiers validate_data""".split()
)

# Canonical names promised but not built yet; the set may only shrink.
NOT_YET: frozenset[str] = frozenset(
    """agent_close agent_eval agent_open fetch_url web_search tool_search_tool_bm25 tool_search_tool_regex""".split()
)


# Provider fact -> what a provider needs to have for the tools it gates. A gated tool stands in no head: it is found
# by search, or called by name.
GATES: dict[str, str] = {"fim": "a model that fills in the middle"}


class Alias(Struct, frozen=True):
    """A name that runs another tool. Hidden ones are silent; deprecated ones tell the model once per result."""

    canonical: str
    state: State
    since: str
    removal: str
    note: str = ""


ALIASES: dict[str, Alias] = {
    "exec_wait": Alias("exec_shell_wait", "hidden", "0.1.0", "not planned"),
    "exec_interact": Alias("exec_shell_interact", "hidden", "0.1.0", "not planned"),
    "todo_write": Alias("checklist_write", "deprecated", "0.1.0", "1.0.0"),
    "todo_add": Alias("checklist_add", "deprecated", "0.1.0", "1.0.0"),
    "todo_update": Alias("checklist_update", "deprecated", "0.1.0", "1.0.0"),
    "todo_list": Alias("checklist_list", "deprecated", "0.1.0", "1.0.0"),
}


def state_of(name: str) -> State | None:
    """The lifecycle state of a name, or None for one that stands nowhere."""
    if name in ALIASES:
        return ALIASES[name].state
    if name in ACTIVE:
        return "active"
    return "deferred" if name in DEFERRED else None
