"""A call of each tool that works, and what has to be there before it can."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

ABC = [{"label": "a", "description": "A"}, {"label": "b", "description": "B"}]
# JOB stands for the id of a job; the first call of a session is call_1.
EVIDENCE = {"files_changed": ["a.txt"], "tests_run": ["make test: passed"], "final_status": "It starts."}
GOOD: dict[str, dict[str, Any]] = {
    "agent_close": {"name": "helper"},
    "agent_eval": {"block": False},
    "agent_open": {"prompt": "Work once", "role": "explore"},
    "apply_patch": {"changes": [{"path": "new.txt", "content": "x"}]},
    "automation_create": {"name": "nightly", "prompt": "Look at it", "rrule": "FREQ=HOURLY;INTERVAL=6"},
    "automation_delete": {"automation_id": "JOB"},
    "automation_list": {},
    "automation_pause": {"automation_id": "JOB"},
    "automation_read": {"automation_id": "JOB"},
    "automation_resume": {"automation_id": "JOB"},
    "automation_run": {"automation_id": "JOB"},
    "automation_update": {"automation_id": "JOB", "name": "weekly"},
    "checklist_add": {"content": "x"},
    "checklist_list": {},
    "checklist_update": {"id": 1, "status": "pending"},
    "checklist_write": {"todos": [{"content": "a"}]},
    "code_history": {"query": "one"},
    "code_symbols": {"symbol": "one"},
    "codebase_search": {"query": "one"},
    "diagnostics": {},
    "edit_file": {"path": "a.txt", "search": "one", "replace": "two"},
    "exec_shell": {"command": "true"},
    "exec_shell_cancel": {"task_id": "JOB"},
    "exec_shell_interact": {"task_id": "JOB", "timeout_ms": 0},
    "exec_shell_wait": {"task_id": "JOB"},
    "fetch_url": {"url": "http://example.org:8080/"},
    "file_search": {"query": "a"},
    "fim_edit": {"path": "a.txt", "prefix_anchor": "one", "suffix_anchor": "\n"},
    "git_blame": {"path": "a.txt"},
    "git_diff": {},
    "git_log": {},
    "git_show": {"rev": "HEAD"},
    "git_status": {},
    "grep_files": {"pattern": "one"},
    "list_dir": {"path": "."},
    "load_skill": {"name": "house"},
    "memory_get": {"id": "1a2b3c4d"},
    "memory_search": {"query": "tabs"},
    "list_mcp_resource_templates": {},
    "list_mcp_resources": {},
    "mcp_get_prompt": {"server": "library", "name": "ask"},
    "mcp_read_resource": {"server": "library", "uri": "memo://one"},
    "note": {"content": "n"},
    "github_close_issue": {
        "number": 12,
        "repo": "a/q",
        "acceptance_criteria": ["it starts"],
        "evidence": EVIDENCE,
        "allow_dirty": True,
    },
    "github_close_pr": {
        "number": 7,
        "repo": "a/q",
        "acceptance_criteria": ["it is replaced"],
        "evidence": EVIDENCE,
        "allow_dirty": True,
    },
    "github_comment": {"target": "issue", "number": 12, "repo": "a/q", "body": "Fixed.", "evidence": EVIDENCE},
    "github_issue_context": {"number": 12, "repo": "a/q"},
    "github_pr_context": {"number": 12, "repo": "a/q"},
    "handle_read": {"handle": "notes/final_0", "count": True},
    "pr_attempt_list": {},
    "pr_attempt_preflight": {"attempt_id": "JOB"},
    "pr_attempt_read": {"attempt_id": "JOB"},
    "pr_attempt_record": {"summary": "s"},
    "project_map": {},
    "read_file": {"path": "a.txt"},
    "request_user_input": {"questions": [{"header": "h", "id": "i", "question": "q?", "options": ABC}]},
    "remember": {"fact": "Tabs are used here."},
    "retrieve_tool_result": {"ref": "call_1"},
    "revert_turn": {},
    "rlm_close": {"name": "notes"},
    "rlm_configure": {"name": "notes", "sub_query_timeout_secs": 30},
    "rlm_eval": {"name": "notes", "code": "print(len(SOURCE))"},
    "rlm_open": {"file_path": "a.txt"},
    "rlm_session_objects": {},
    "run_tests": {},
    "run_verifiers": {"commands": [{"name": "t", "program": "true"}]},
    "speech": {"text": "Good morning."},
    "task_cancel": {"task_id": "JOB"},
    "task_create": {"prompt": "Look at it"},
    "task_gate_run": {"gate": "custom", "command": "true"},
    "task_list": {},
    "task_read": {"task_id": "JOB"},
    "task_shell_start": {"command": "true"},
    "task_shell_wait": {"task_id": "JOB"},
    "tool_agent": {"prompt": "Work once"},
    "tool_search_tool_bm25": {"query": "who wrote a line"},
    "tool_search_tool_regex": {"query": "^git_"},
    "update_plan": {"plan": [{"step": "a", "status": "pending"}]},
    "validate_data": {"content": "1"},
    "web_run": {"search_query": [{"q": "one"}]},
    "web_search": {"query": "one"},
    "write_file": {"path": "new.txt", "content": "x"},
}


def shell(command: str, background: bool = False) -> dict[str, Any]:
    """A call that runs a command."""
    return {"name": "exec_shell", "arguments": {"command": command, "background": background}}


# What has to be there before a call of a tool can be a good one.
RLM = {"name": "rlm_open", "arguments": {"name": "notes", "content": "one\ntwo\n"}}
TASK = {"name": "task_create", "arguments": {"prompt": "Look at it"}}
SCHEDULE = {
    "name": "automation_create",
    "arguments": {"name": "nightly", "prompt": "Look at it", "rrule": "FREQ=HOURLY;INTERVAL=6"},
}
ATTEMPT = {"name": "pr_attempt_record", "arguments": {"summary": "s"}}
NOTHING = ({"name": "list_dir", "arguments": {}},)
READY: dict[str, Sequence[dict[str, Any]]] = defaultdict(
    lambda: NOTHING,
    exec_shell_wait=(shell("true", True),),
    exec_shell_interact=(shell("exec cat", True),),
    exec_shell_cancel=(shell("exec cat", True),),
    task_shell_wait=(shell("true", True),),
    automation_delete=(SCHEDULE,),
    automation_pause=(SCHEDULE,),
    automation_read=(SCHEDULE,),
    automation_resume=(SCHEDULE,),
    automation_run=(SCHEDULE,),
    automation_update=(SCHEDULE,),
    task_cancel=(TASK,),
    task_read=(TASK,),
    retrieve_tool_result=(shell("seq 9999"),),
    handle_read=(RLM, {"name": "rlm_eval", "arguments": {"name": "notes", "code": "finalize(SOURCE)"}}),
    pr_attempt_preflight=(ATTEMPT,),
    pr_attempt_read=(ATTEMPT,),
    rlm_close=(RLM,),
    rlm_configure=(RLM,),
    rlm_eval=(RLM,),
    revert_turn=({"name": "write_file", "arguments": {"path": "made.txt", "content": "x"}},),
    checklist_update=({"name": "checklist_write", "arguments": {"todos": [{"content": "a"}]}},),
)
