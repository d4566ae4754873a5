"""The verbs: each as the real call it stands for, what is refused with both calls filled in, and their rows."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from codewhale.catalog.lifecycle import PROFILES
from codewhale.catalog.registry import VERBS_FILE, Catalog
from codewhale.catalog.schema import check
from codewhale.protocol.tools import ToolSpec
from codewhale.repair.intents import VERBS
from codewhale.repair.judge import Verdict, judge

CATALOG = Catalog.load()
ROWS = msgspec.json.decode(Path(VERBS_FILE).read_bytes(), type=list[ToolSpec])
# A catalog from before code search, or one where it was left out.
UNSEARCHED = Catalog([row for name, row in CATALOG.rows.items() if name != "codebase_search"])
Given = dict[str, Any]


def verdict(verb: str, given: object, catalog: Catalog = CATALOG) -> Verdict:
    return judge(verb, given if isinstance(given, str) else json.dumps(given), catalog)


def two(one: str, other: str, key: str = "content") -> list[Given]:
    return [{key: one, "status": "pending"}, {key: other, "status": "completed"}]


PLAIN: list[tuple[str, Given, str, Given]] = [
    ("shell_run", {"command": "make test"}, "exec_shell", {"command": "make test"}),
    ("shell_run", {"cmd": "ls", "cwd": "src"}, "exec_shell", {"command": "ls", "cwd": "src"}),
    ("shell_run", {"command": ["bash", "-lc", "ls | wc -l"]}, "exec_shell", {"command": "ls | wc -l"}),
    ("shell_run", {"command": "ls", "timeout": 30}, "exec_shell", {"command": "ls", "timeout_ms": 30_000}),
    ("shell_run", {"command": "ls", "timeout": 45_000}, "exec_shell", {"command": "ls", "timeout_ms": 45_000}),
    ("shell_run", {"command": "ls", "timeout_seconds": "1.5"}, "exec_shell", {"command": "ls", "timeout_ms": 1500}),
    ("shell_run", {"task_id": "shell_1"}, "exec_shell_wait", {"task_id": "shell_1"}),
    ("shell_run", {"job_id": "shell_1", "wait": False}, "exec_shell_wait", {"task_id": "shell_1", "wait": False}),
    ("shell_run", {"task_id": "s", "input": "y\n"}, "exec_shell_interact", {"task_id": "s", "input": "y\n"}),
    ("shell_run", {"task_id": "s", "stop": True}, "exec_shell_cancel", {"task_id": "s"}),
    ("shell_run", {"task_id": "s", "action": "kill"}, "exec_shell_cancel", {"task_id": "s"}),
    ("work_update", {}, "checklist_list", {}),
    ("work_update", {"items": ["read", "[x] write"]}, "checklist_write", {"todos": two("read", "write")}),
    ("work_update", {"items": "- [ ] read\n- [x] write"}, "checklist_write", {"todos": two("read", "write")}),
    (
        "work_update",
        {"todos": [{"id": "1", "content": "read", "status": "pending"}, {"text": "write", "done": True}]},
        "checklist_write",
        {"todos": two("read", "write")},
    ),
    (
        "work_update",
        {"plan": ["read", {"title": "write", "status": "done"}], "explanation": "so"},
        "update_plan",
        {"plan": two("read", "write", "step"), "explanation": "so"},
    ),
    ("work_update", {"id": "2", "status": "DONE"}, "checklist_update", {"id": 2, "status": "completed"}),
    ("work_update", {"item_id": 2, "completed": True}, "checklist_update", {"id": 2, "status": "completed"}),
    ("work_update", {"updates": [{"id": 1, "status": "done"}]}, "checklist_update", {"id": 1, "status": "completed"}),
    (
        "work_update",
        {"items": '[{"content": "read"}, {"content": "write", "status": "done"}]'},
        "checklist_write",
        {"todos": two("read", "write")},
    ),
    ("codebase_search", {"query": "x", "extensions": ["py"]}, "codebase_search", {"query": "x", "path_glob": "*.py"}),
    ("work_update", {"content": "read"}, "checklist_add", {"content": "read"}),
    ("codebase_search", {"query": "SessionStore"}, "codebase_search", {"query": "SessionStore"}),
    ("codebase_search", {"question": "who saves?"}, "codebase_search", {"query": "who saves?"}),
    (
        "codebase_search",
        {"q": ["save", "load"], "top_k": 3},
        "codebase_search",
        {"query": "save load", "max_results": 3},
    ),
    ("codebase_search", {"query": "x", "type": "function"}, "codebase_search", {"query": "x", "kind": "fn"}),
    ("codebase_search", {"query": "x", "search_type": "semantic"}, "codebase_search", {"query": "x"}),
    ("codebase_search", {"query": "x", "path": "./src/"}, "codebase_search", {"query": "x", "path_glob": "src"}),
    (
        "codebase_search",
        {"query": "x", "dir": "src", "glob": "*.py"},
        "codebase_search",
        {"query": "x", "path_glob": "src/**/*.py"},
    ),
    (
        "codebase_search",
        {"query": "x", "target_directories": ["a", "b"]},
        "codebase_search",
        {"query": "x", "path_glob": "{a,b}"},
    ),
    ("codebase_search", {"query": "x", "target_directories": ["."]}, "codebase_search", {"query": "x"}),
    ("codebase_search", {"query": "a.b", "kind": "content"}, "grep_files", {"pattern": r"a\.b"}),
    ("codebase_search", {"pattern": r"def \w+", "path": "src"}, "grep_files", {"pattern": r"def \w+", "path": "src"}),
    (
        "codebase_search",
        {"query": "TODO", "kind": "content", "file_pattern": "*.py"},
        "grep_files",
        {"pattern": "TODO", "include": ["*.py"]},
    ),
    ("codebase_search", {"query": "conftest", "kind": "file"}, "file_search", {"query": "conftest"}),
    ("codebase_search", {"filename": "setup.cfg", "limit": 3}, "file_search", {"query": "setup.cfg", "limit": 3}),
    ("codebase_search", {"kind": "structure"}, "project_map", {}),
    ("run_tests", {"level": "full"}, "run_verifiers", {"level": "full"}),
    ("run_tests", {"path": "tests/test_a.py"}, "run_tests", {"args": "tests/test_a.py"}),
    ("run_tests", {}, "run_tests", {}),
    ("git_diff", {"staged": True}, "git_diff", {"cached": True}),
    ("git_status", {"path": "src"}, "git_status", {"path": "src"}),
    (
        "read_file",
        {"path": "a.py", "start_line": 3, "end_line": 9},
        "read_file",
        {"path": "a.py", "start_line": 3, "max_lines": 7},
    ),
    ("read_file", {"paths": ["a.py"]}, "read_file", {"path": "a.py"}),
    (
        "apply_patch",
        {"path": "a.py", "old_string": "x", "new_string": "y"},
        "edit_file",
        {"path": "a.py", "search": "x", "replace": "y"},
    ),
    (
        "apply_patch",
        {"path": "a.py", "content": "x\n"},
        "apply_patch",
        {"changes": [{"path": "a.py", "content": "x\n"}]},
    ),
    (
        "apply_patch",
        {"path": "a.py", "content": "--- a/a.py\n"},
        "apply_patch",
        {"path": "a.py", "patch": "--- a/a.py\n"},
    ),
]


@pytest.mark.parametrize(("verb", "given", "tool", "meant"), PLAIN)
def test_verb_becomes_a_call_of_a_real_tool(verb: str, given: Given, tool: str, meant: Given) -> None:
    found = verdict(verb, given)
    assert found.error is None, found.error
    assert (found.name, found.arguments, found.lossy) == (tool, meant, False)


CHOSEN: list[tuple[str, str, Given]] = [
    (
        "where are sessions stored?",
        "grep_files",
        {"pattern": "session|stor", "case_insensitive": True, "context_lines": 0},
    ),
    ('the message "no such session"', "grep_files", {"pattern": r"no\ such\ session"}),
    ("def open_session(", "grep_files", {"pattern": r"def\ open_session\("}),
    ("src/**/*.toml", "file_search", {"query": "src/.toml", "extensions": ["toml"]}),
    ("pyproject.toml", "file_search", {"query": "pyproject.toml"}),
    ("overview of the project structure", "project_map", {}),
]


@pytest.mark.parametrize(("query", "tool", "meant"), CHOSEN)
def test_search_said_in_words_is_a_choice_that_is_said_aloud(query: str, tool: str, meant: Given) -> None:
    found = verdict("codebase_search", {"query": query}, UNSEARCHED)
    assert (found.name, found.arguments, found.lossy, found.error) == (tool, meant, True, None)


@pytest.mark.parametrize("query", [query for query, _, _ in CHOSEN])
def test_a_search_in_words_is_the_search_for_words_where_there_is_one(query: str) -> None:
    found = verdict("codebase_search", {"query": query})
    assert (found.name, found.arguments, found.repairs, found.lossy) == ("codebase_search", {"query": query}, (), False)


SERVERS = [
    "npm run dev", "cd web && pnpm dev", "python3 -m http.server 8000", "PORT=1 flask --app x run", "npx vite",
    "uv run uvicorn app:app --reload", "docker compose up", "tail -f log.txt", "python manage.py runserver",
    "php -S :80",
]  # fmt: skip
TASKS = [
    "npm run build", "npm test", "docker compose up -d", "tail -n 5 log.txt", "vite build", "python3 -m pytest",
    "grep -rn 'npm run dev' docs", "cat serve.py", "git log -p", "go run ./cmd/once", "echo uvicorn",
]  # fmt: skip


@pytest.mark.parametrize("command", SERVERS)
def test_what_would_not_end_by_itself_starts_in_the_background(command: str) -> None:
    assert verdict("shell_run", {"command": command}).arguments == {"command": command, "background": True}
    said = {"command": command, "background": False}
    assert verdict("shell_run", said).arguments == said


@pytest.mark.parametrize("command", TASKS)
def test_what_ends_by_itself_is_waited_for(command: str) -> None:
    assert verdict("shell_run", {"command": command}).arguments == {"command": command}


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        ({"question": "Which one?", "options": ["SQLite", "Postgres"]}, ["SQLite", "Postgres"]),
        ({"prompt": "Which one?", "choices": [{"label": "A", "description": "a"}, {"value": "B"}]}, ["A", "B"]),
        ({"question": "Should I go on?"}, ["Yes", "No"]),
        ({"question": "What is it called?"}, ["My own words", "You decide"]),
        ({"questions": ["Is it so?"]}, ["Yes", "No"]),
        ({"question": "Which one?", "options": "red, green"}, ["red", "green"]),
        ({"question": "Which one?", "options": '["a, b", "c"]'}, ["a, b", "c"]),
    ],
)
def test_question_is_asked_with_choices(given: Given, labels: list[str]) -> None:
    found = verdict("ask_user", given)
    assert found.name == "request_user_input" and found.error is None and found.arguments is not None
    assert [option["label"] for option in found.arguments["questions"][0]["options"]] == labels


OPEN: list[tuple[str, Given, list[tuple[str, Given]]]] = [
    (
        "shell_run",
        {"command": "ls", "task_id": "s"},
        [("exec_shell_wait", {"task_id": "s"}), ("exec_shell", {"command": "ls"})],
    ),
    (
        "work_update",
        {"text": "parser done"},
        [("checklist_add", {"content": "parser done"}), ("note", {"content": "parser done"})],
    ),
    (
        "work_update",
        {"id": 2},
        [
            ("checklist_update", {"id": 2, "status": "completed"}),
            ("checklist_update", {"id": 2, "status": "in_progress"}),
        ],
    ),
    (
        "work_update",
        {"status": "completed"},
        [("checklist_list", {}), ("checklist_update", {"id": 1, "status": "completed"})],
    ),
    (
        "work_update",
        {"items": ["a"], "plan": ["b"]},
        [
            ("checklist_write", {"todos": [{"content": "a", "status": "pending"}]}),
            ("update_plan", {"plan": [{"step": "b", "status": "pending"}]}),
        ],
    ),
    ("git_diff", {"commit": "HEAD~1"}, [("git_show", {"rev": "HEAD~1"}), ("git_diff", {})]),
    (
        "run_tests",
        {"command": "pytest -q a"},
        [("run_tests", {"args": "-q a"}), ("exec_shell", {"command": "pytest -q a"})],
    ),
    (
        "work_update",
        {"items": [{"id": 1, "status": "completed"}, {"id": 2, "status": "pending"}]},
        [("checklist_update", {"id": 1, "status": "completed"}), ("checklist_update", {"id": 2, "status": "pending"})],
    ),
    (
        "run_tests",
        {"command": "sh check.sh"},
        [("run_tests", {}), ("exec_shell", {"command": "sh check.sh"})],
    ),
    (
        "run_tests",
        {"args": "-k x", "level": "full"},
        [("run_tests", {"args": "-k x"}), ("run_verifiers", {"level": "full"})],
    ),
    ("read_file", {"paths": ["a", "b", "c"]}, [("read_file", {"path": "a"}), ("read_file", {"path": "b"})]),
    (
        "codebase_search",
        {"query": "x", "kind": "content", "target_directories": ["a", "b"]},
        [("grep_files", {"pattern": "x", "path": "a"}), ("grep_files", {"pattern": "x", "path": "b"})],
    ),
]


@pytest.mark.parametrize(("verb", "given", "calls"), OPEN)
def test_what_may_be_two_calls_is_refused_with_both(verb: str, given: Given, calls: list[tuple[str, Given]]) -> None:
    error = verdict(verb, given).error
    assert error is not None and error.fix is not None
    assert (error.fix.name, error.fix.arguments) == calls[0]
    for name, meant in calls:
        assert f"{name} {msgspec.json.encode(meant).decode()}" in error.message
        assert not check(meant, CATALOG.rows[name].parameters)


@pytest.mark.parametrize("verb", sorted(VERBS))
@pytest.mark.parametrize(
    "given", [{}, [], "x", {"query": 5}, {"id": []}, {"questions": [{}]}, {"options": [1, 2, 3, 4]}]
)
def test_whatever_comes_the_answer_is_a_call_that_fits_or_a_fix_that_does(verb: str, given: object) -> None:
    found = verdict(verb, given)
    if found.error is None:
        assert not check(found.arguments, CATALOG.rows[found.name].parameters)
    elif found.error.fix is not None:
        assert not check(found.error.fix.arguments, CATALOG.rows[found.error.fix.name].parameters)


@pytest.mark.parametrize("given", [{}, {"name": "x"}, {"script": "x"}])
def test_what_is_not_there_to_hand_work_to_is_said_and_nothing_else_proposed(given: object) -> None:
    error = verdict("workflow_run", given).error
    assert error is not None and error.fix is None and "in this version" in error.message


@pytest.mark.parametrize("verb", ["agent_run", "delegate"])
def test_work_for_nobody_in_particular_is_asked_for(verb: str) -> None:
    error = verdict(verb, {}).error
    assert error is not None and "`prompt` is missing" in error.message and error.fix is not None
    assert (error.fix.name, error.fix.arguments) == ("agent_eval", {"block": False})
    alone = Catalog([row for name, row in CATALOG.rows.items() if "agent" not in name])
    assert verdict(verb, {"prompt": "look"}, alone).error is not None


@pytest.mark.parametrize(
    ("verb", "given", "tool"),
    [
        ("search", {"query": "where is the token refreshed"}, "codebase_search"),
        ("inspect", {"path": "a.py"}, "read_file"),
        ("inspect", {"path": "src/"}, "list_dir"),
        ("inspect", {"query": "retry policy"}, "codebase_search"),
        ("inspect", {}, "project_map"),
        ("test", {}, "run_tests"),
        ("run-shell", {"command": "make"}, "exec_shell"),
    ],
)
def test_what_a_model_declares_in_one_word_is_done(verb: str, given: object, tool: str) -> None:
    found = verdict(verb, given)
    assert (found.error, found.name) == (None, tool)


def test_damage_and_spelling_are_repaired_before() -> None:
    found = verdict("functions.ShellRun:0", '{"arguments": {"command": "ls", "background": "true",}}')
    assert (found.name, found.arguments) == ("exec_shell", {"command": "ls", "background": True})
    assert {"N4", "I1", "P1", "A1", "A9"} <= set(found.repairs) and found.error is None


def test_cut_or_guessed_commands_of_a_verb_do_not_run() -> None:
    assert verdict("shell_run", '{"command": "rm -rf keep').error is not None
    refused = verdict("shell_run", '{"command": "echo "hi" there"}').error
    assert refused is not None and refused.fix is not None and refused.fix.name == "exec_shell"


def test_rows_that_are_damaged_are_no_steps() -> None:
    error = verdict("work_update", {"items": '[{"content": "read",, "status": done}]'}).error
    assert error is not None and error.field.startswith("todos")


def test_functions_of_someone_else_are_no_verbs() -> None:
    row = ToolSpec("run_tests", "", "", {"type": "object", "properties": {"level": {"type": "string"}}}, ())
    assert verdict("run_tests", {"level": "full"}, Catalog([row])).name == "run_tests"


AGENTS: list[tuple[Given, str, Given]] = [
    ({"prompt": "look"}, "agent_open", {"prompt": "look"}),
    (
        {"task": "look", "name": "a", "role": "explore"},
        "agent_open",
        {"name": "a", "prompt": "look", "role": "explore"},
    ),
    ({"items": ["a", "b"]}, "agent_open", {"items": ["a", "b"]}),
    ({"prompt": "look", "worktree": True}, "agent_open", {"prompt": "look", "cwd": "worktree"}),
    ({"id": "agent_1"}, "agent_eval", {"name": "agent_1"}),
    ({"name": "a"}, "agent_eval", {"name": "a"}),
    ({"name": "a", "message": "go on"}, "agent_eval", {"name": "a", "message": "go on"}),
    ({"agent_id": "agent_1", "prompt": "go on"}, "agent_eval", {"name": "agent_1", "message": "go on"}),
    ({"timeout": 5}, "agent_eval", {"timeout_ms": 5000}),
    ({"id": "agent_1", "close": True}, "agent_close", {"name": "agent_1"}),
    ({"prompt": "fetch", "lane": "fast"}, "tool_agent", {"prompt": "fetch"}),
]


@pytest.mark.parametrize(("given", "tool", "meant"), AGENTS)
@pytest.mark.parametrize("verb", ["agent_run", "delegate"])
def test_a_sub_agent_is_run_by_the_tool_that_its_arguments_mean(
    verb: str, given: Given, tool: str, meant: Given
) -> None:
    found = verdict(verb, given)
    assert (found.error, found.name, found.arguments) == (None, tool, meant)


def test_rows_are_canonical_and_stand_for_what_exists() -> None:
    assert Path(VERBS_FILE).read_bytes() == msgspec.json.format(msgspec.json.encode(ROWS), indent=1) + b"\n"
    shown = {row.name for row in ROWS}
    assert set(VERBS) == PROFILES["intent"]
    assert [row.name for row in ROWS] == sorted(shown)
    assert shown == {verb for verb, home in VERBS.items() if verb not in CATALOG.rows and home in CATALOG.rows}


EXAMPLES: dict[str, list[Given]] = {
    "agent_run": [
        {"prompt": "look", "name": "a", "role": "explore", "allowed_tools": ["read_file"]},
        {"name": "a", "message": "go on"},
        {"name": "a", "close": True},
    ],
    "ask_user": [{"question": "Which?", "options": ["A", "B"], "header": "Choice"}],
    "shell_run": [
        {"command": "ls", "background": False, "timeout_ms": 5000, "cwd": "src"},
        {"task_id": "s", "input": "y\n"},
        {"task_id": "s", "stop": True},
    ],
    "work_update": [
        {"items": [{"content": "a", "status": "in_progress"}]},
        {"plan": [{"step": "a"}], "explanation": "so"},
        {"id": 1, "status": "completed"},
    ],
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_a_row_offers_its_verb_takes(row: ToolSpec) -> None:
    for given in EXAMPLES[row.name]:
        assert not check(given, row.parameters)
        assert verdict(row.name, given).error is None
    assert set().union(*EXAMPLES[row.name]) == set(row.parameters["properties"])
