"""The one place where tool names live: which are canonical, which are aliases, in what state each stands, and which
of them a request carries.

Plain data. Every name that a tool family registers must stand in exactly one of the sets; a test fails the build
otherwise. Nothing of this ever reaches a schema or a description.
"""

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Literal

from msgspec import Struct

State = Literal["active", "deferred", "hidden", "deprecated", "removed"]

SEARCHES: frozenset[str] = frozenset(("tool_search_tool_bm25", "tool_search_tool_regex"))

# In the array of every request of the default profile.
ACTIVE: frozenset[str] = SEARCHES | frozenset(
    """agent_close agent_eval agent_open apply_patch checklist_write edit_file exec_shell exec_shell_interact
    exec_shell_wait fetch_url file_search git_diff git_log git_show git_status grep_files list_dir read_file
    run_tests update_plan web_search write_file""".split()
)

# Registered and found by search; the array does not hold them until they are.
DEFERRED: frozenset[str] = frozenset(
    """automation_create automation_delete automation_list automation_pause automation_read automation_resume
    automation_run automation_update checklist_add checklist_list checklist_update code_history code_symbols
    codebase_search diagnostics exec_shell_cancel fim_edit git_blame github_close_issue github_close_pr
    github_comment github_issue_context github_pr_context handle_read list_mcp_resource_templates list_mcp_resources
    load_skill mcp_get_prompt mcp_read_resource memory_get memory_search note pr_attempt_list pr_attempt_preflight
    pr_attempt_read pr_attempt_record project_map
    remember request_user_input retrieve_tool_result revert_turn rlm_close rlm_configure rlm_eval rlm_open
    rlm_session_objects run_verifiers speech task_cancel task_create task_gate_run task_list task_read
    task_shell_start task_shell_wait tool_agent validate_data web_run""".split()
)

# Canonical names promised but not built yet; the set may only shrink.
NOT_YET: frozenset[str] = frozenset()


class Alias(Struct, frozen=True):
    """A name that runs another tool. Hidden ones are silent; deprecated ones tell the model once per result; of a
    removed one nothing is left but this row, and a call of it is an error. `replays`: old sessions may still hold it.
    """

    canonical: str
    state: State
    since: str
    removal: str
    replays: bool = True


_LATER = "TBD (>= 0.9.x)"
ALIASES: dict[str, Alias] = {
    "exec_wait": Alias("exec_shell_wait", "hidden", "0.8.53", _LATER),
    "exec_interact": Alias("exec_shell_interact", "hidden", "0.8.53", _LATER),
    "tts": Alias("speech", "hidden", "0.8.53", _LATER),
    "read_mcp_resource": Alias("mcp_read_resource", "hidden", "0.8.53", _LATER),
    "web.run": Alias("web_run", "hidden", "0.8.53", _LATER),
    "todo_write": Alias("checklist_write", "deprecated", "0.8.53", _LATER),
    "todo_add": Alias("checklist_add", "deprecated", "0.8.53", _LATER),
    "todo_update": Alias("checklist_update", "deprecated", "0.8.53", _LATER),
    "todo_list": Alias("checklist_list", "deprecated", "0.8.53", _LATER),
}

# Not in the array and not found by search, but run when called: like their twins, to the byte.
HIDDEN: frozenset[str] = frozenset(name for name, alias in ALIASES.items() if alias.state == "hidden")
# The same, with a notice in the result that names the twin.
DEPRECATED: frozenset[str] = frozenset(name for name, alias in ALIASES.items() if alias.state == "deprecated")
# Nothing runs.
REMOVED: frozenset[str] = frozenset(name for name, alias in ALIASES.items() if alias.state == "removed")

# Names that no family may ever register again, all of sub-agents; nor may any that begins with `swarm_`.
RETIRED: frozenset[str] = frozenset(
    """agent_assign agent_cancel agent_list agent_result agent_resume agent_send_input agent_spawn agent_swarm
    agent_wait assign_agent close_agent delegate_to_agent report_agent_job_result resume_agent send_input spawn_agent
    spawn_agents_on_csv wait""".split()
)
_RETIRED_LETTERS = frozenset(name.replace("_", "") for name in RETIRED)
SUCCESSORS = ("agent_open", "agent_eval", "agent_close")

# Other names that were promised and stand for nothing yet: none of them ever runs another tool.
PROMISED: frozenset[str] = frozenset(
    """create_goal finance get_goal image_analyze image_ocr js_execution notify pandoc_convert recall_archive review
    slop_ledger_append slop_ledger_export slop_ledger_query slop_ledger_update update_goal""".split()
)

# What the array of a session begins with, by profile. A profile is chosen when the head is pinned, never in a turn.
# `arcee` holds nothing whose text a gateway takes for an attack; `compact` is for small windows: see `Catalog.head_of`.
PROFILES: dict[str, frozenset[str]] = {
    "default": ACTIVE,
    "arcee": SEARCHES
    | frozenset("checklist_write file_search git_diff git_status grep_files list_dir read_file update_plan".split()),
    "compact": frozenset(
        """agent_open checklist_write edit_file exec_shell grep_files read_file tool_search_tool_bm25
        write_file""".split()
    ),
    "intent": frozenset(
        """agent_run apply_patch ask_user codebase_search git_diff git_status read_file run_tests shell_run work_update
        workflow_run""".split()
    ),
}
DEFAULT_PROFILE = "default"

# What the head of a profile may take, in bytes, as the chat dialect says it.
HEAD_BYTES: dict[str, int] = {"default": 20_480, "arcee": 20_480, "compact": 6_144, "intent": 12_288}


class Gate(Struct, frozen=True):
    """What a provider must have for the tools that a fact gates, what to do without it, and the tool that does it when
    called `instead` with the same arguments, or that has a `look` at the same path."""

    needs: str
    advice: str
    instead: str = ""
    look: str = ""


# Provider fact -> its gate. A gated tool stands in no head: it is found by search, or called by name.
GATES: dict[str, Gate] = {
    "fim": Gate("a model that fills in the middle", "Read the place, then write it with edit_file", look="read_file"),
    "fast_model": Gate(
        "a fast model that the provider names", "Open a sub-agent with agent_open", instead="agent_open"
    ),
}

# Tool -> the models it is for (shell patterns over the id in lower case). Elsewhere search does not show it.
MODEL_GATES: dict[str, tuple[str, ...]] = {"tool_agent": ("deepseek-v4*", "*/deepseek-v4*")}

# Tool -> the program without which it does nothing.
PROGRAMS: dict[str, str] = dict.fromkeys(("git_blame", "git_diff", "git_log", "git_show", "git_status"), "git")


def state_of(name: str) -> State | None:
    """The lifecycle state of a name, or None for one that stands nowhere."""
    if name in ALIASES:
        return ALIASES[name].state
    if name in ACTIVE:
        return "active"
    return "deferred" if name in DEFERRED else None


def is_retired(name: str) -> bool:
    """Whether a name is a retired one, however it is spelt."""
    letters = re.sub(r"[^a-z]", "", name.lower())
    return letters in _RETIRED_LETTERS or letters.startswith("swarm")


def closed_gate(name: str, gate: str, facts: Mapping[str, object], model: str) -> str:
    """What a session lacks for the gated tool `name`, in words; "" where its gate is open or it has none."""
    if gate and not facts.get(gate):
        return GATES[gate].needs
    patterns = MODEL_GATES.get(name, ())
    if patterns and not any(fnmatchcase(model.lower(), pattern) for pattern in patterns):
        return "a DeepSeek V4 model"
    return ""


def unlisted(names: Iterable[str]) -> list[str]:
    """Those of the names that may not be registered: in no set, an alias, or retired."""
    return [name for name in names if name not in ACTIVE | DEFERRED or is_retired(name)]
