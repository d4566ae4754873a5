"""Every tool of the catalog against bad input, as a model would send it. What can be read without doubt runs, and what
can be guessed where the tool only reads; all else is refused in words that help, the next call it names works when made
literally, is of the same tool, nothing hangs and nothing in the workspace changes."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from codewhale.agent.loop import MOST_CALLS
from codewhale.catalog.registry import Catalog
from codewhale.protocol.events import CallFinished
from codewhale.testing import harness
from support.badcalls import Bad, spoiled
from support.goodcalls import GOOD, NOTHING, READY
from support.known import know_every_tool
from support.patience import HANG
from support.repos import make_repo
from support.scenes import ending, results
from support.sounds import program
from support.webserver import WebServer, hits, html

# What only answers where a server of MCP is connected: tests of those servers call it.
SERVED = {"list_mcp_resource_templates", "list_mcp_resources", "mcp_get_prompt", "mcp_read_resource"}
CATALOG = Catalog.load()
TOOLS = [name for name in CATALOG.names() if name not in SERVED]
NEXT = re.compile(r"^Next call: (\S+) (\{.*\})$", re.MULTILINE)
# Bad calls that no schema can tell from good ones.
EXTRA: dict[str, list[dict[str, Any]]] = {
    "agent_close": [{"name": "nobody"}],
    "agent_eval": [{"name": "nobody"}, {"message": "Go on."}, {"interrupt": True}],
    "agent_open": [
        {},
        {"prompt": "Work", "items": ["Work"]},
        {"prompt": "Work", "name": "a b"},
        {"prompt": "Work", "role": "wizard"},
        {"prompt": "Work", "role": "custom"},
        {"prompt": "Work", "allowed_tools": ["read_fil"]},
        {"prompt": "Work", "output_schema": {"type": 5}},
    ],
    "apply_patch": [
        {},
        {"patch": ""},
        {"patch": "no patch at all"},
        {"patch": "x", "changes": [{"path": "new.txt", "content": "x"}]},
        {"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-three\n+four\n"},
        {"patch": "--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n"},
        {"patch": "*** Begin Patch\n*** Update File: a.txt\n*** Move to: ../x\n@@\n-one\n+two\n*** End Patch\n"},
        {"patch": "*** Begin Patch\n*** Delete File: /etc/passwd\n*** End Patch\n"},
    ],
    "codebase_search": [
        {"query": " \n"},
        {"query": "one", "lang": "klingon"},
        {"query": "one", "kind": "walrus"},
        {"query": "one", "path_glob": "a" * 2000},
    ],
    "edit_file": [
        {"path": "a.txt", "search": "", "replace": "x"},
        {"path": "a.txt", "search": "absent words", "replace": "x"},
        {"path": "twice.txt", "search": "same", "replace": "x"},
    ],
    "automation_create": [
        {"name": "", "prompt": "x", "rrule": "FREQ=HOURLY"},
        {"name": "x", "prompt": "x", "rrule": "FREQ=DAILY"},
        {"name": "x", "prompt": "x", "rrule": "FREQ=HOURLY", "timezone": "Nowhere"},
        {"name": "x", "prompt": "x", "rrule": "FREQ=HOURLY", "cwds": ["/"]},
        {"name": "x", "prompt": "x", "rrule": "FREQ=HOURLY", "cwds": ["a", "b"]},
    ],
    **{
        f"automation_{name}": [{"automation_id": "auto_00000000"}, {"automation_id": "../x"}, {"automation_id": ""}]
        for name in ("delete", "pause", "read", "resume", "run", "update")
    },
    "automation_list": [{"limit": 0}, {"limit": 1000}],
    "exec_shell": [{"command": "true\0"}, {"command": "true", "interactive": True}],
    "exec_shell_cancel": [{"task_id": "no-such-job"}, {"task_id": ""}, {}],
    "exec_shell_interact": [{"task_id": ""}, {"task_id": "no-such-job"}],
    "exec_shell_wait": [{"task_id": ""}, {"task_id": "no-such-job"}],
    "file_search": [{"query": "  "}],
    "fim_edit": [
        {"path": "a.txt", "prefix_anchor": "", "suffix_anchor": "\n"},
        {"path": "a.txt", "prefix_anchor": "absent words", "suffix_anchor": "\n"},
        {"path": "a.txt", "prefix_anchor": "\n", "suffix_anchor": "one"},
        {"path": "a.txt", "prefix_anchor": "one", "suffix_anchor": "e\n"},
    ],
    "git_blame": [{"path": "a.txt", "rev": "--output=x"}, {"path": "a.txt", "rev": "a b"}],
    "git_log": [{"since": "no date"}, {"until": "--output=x"}],
    "git_show": [{"rev": "--output=x"}, {"rev": "HEAD\n"}],
    "handle_read": [
        {"handle": "notes/final_9", "count": True},
        {"handle": "art_0123456789abcdef", "count": True},
        {"handle": "notes/final_0", "count": True, "introspect": True},
        {"handle": "notes/final_0", "count": True, "sha256": "0" * 64},
        {"handle": "notes/final_0", "jsonpath": "$.a"},
        {"handle": "notes/final_0", "slice": {"start": 9, "end": 3}},
        {"handle": "notes/final_0", "range": {"start": 9, "end": 3}},
    ],
    "pr_attempt_list": [{"task_id": "task_00000000"}, {"task_id": "../x"}],
    "pr_attempt_preflight": [{"attempt_id": "attempt_00000000"}, {"attempt_id": "../x"}],
    "pr_attempt_read": [{"attempt_id": "attempt_00000000"}, {"attempt_id": ""}],
    "pr_attempt_record": [
        {"summary": "x", "attempt_index": 3, "attempt_count": 2},
        {"summary": "x", "attempt_index": 0},
        {"summary": "x", "attempt_group_id": "../x"},
        {"summary": "x", "task_id": "task_00000000"},
    ],
    "read_file": [{"path": "a.txt", "pages": "1"}],
    "request_user_input": [{"questions": [GOOD["request_user_input"]["questions"][0]] * 2}],
    "retrieve_tool_result": [
        {"ref": "art_0000000000000000"},
        {"ref": "../../etc/passwd"},
        {"ref": "call_1", "mode": "query"},
        {"ref": "call_1", "mode": "lines", "start_line": 9, "end_line": 3},
        {"ref": "call_1", "mode": "lines", "lines": "9-3"},
    ],
    "run_tests": [{"args": "-s'"}],
    "run_verifiers": [{"commands": [{"name": "t", "program": "true", "cwd": "../"}]}],
    "task_cancel": [{"task_id": "task_00000000"}, {"task_id": "../x"}, {"task_id": ""}],
    "task_create": [
        {"prompt": "x", "mode": "yolo"},
        {"prompt": "x", "workspace": "/"},
        {"prompt": "x", "workspace": "nowhere"},
        {"prompt": "x", "on_death": "maybe"},
        {"prompt": " "},
    ],
    "task_list": [{"limit": 0}, {"limit": 1000}],
    "task_read": [{"task_id": "task_00000000"}, {"task_id": "../x"}, {"task_id": ""}],
    "task_gate_run": [
        {"gate": "tests", "command": "true"},
        {"gate": "", "command": "true"},
        {"gate": "custom", "command": "true\0"},
        {"gate": "custom", "command": "true", "timeout_ms": 0},
    ],
    "task_shell_start": [{"command": "true\0"}],
    "task_shell_wait": [{"task_id": ""}, {"task_id": "no-such-job"}, {"task_id": "no-such-job", "gate": "test"}],
    "validate_data": [{}, {"path": "a.txt", "content": "1"}],
}
RAW = (
    '{"path": "a"',
    "[]",
    '"x"',
    "null",
    "{'a': 1}",
    '{"path": "\\ud800"}',
    "[" * 5000,
    '{"limit": 1e999}',
    '{"a":1}}',
)
PATHS = {
    "agent_open": "cwd",
    "apply_patch": "changes", "edit_file": "path", "exec_shell": "cwd", "file_search": "path", "fim_edit": "path",
    "git_blame": "path", "git_diff": "path", "git_log": "path", "git_show": "path", "git_status": "path",
    "grep_files": "path", "list_dir": "path", "read_file": "path", "run_verifiers": "commands",
    "task_gate_run": "cwd", "task_shell_start": "cwd", "validate_data": "path", "write_file": "path",
}  # fmt: skip
HOSTILE = (
    "../x", "/etc/passwd", "a/../../x", "../workspace-evil/x", "a\0b", "C:\\x", "\\\\server\\share\\x", "link",
    "linkdir", "linkdir/secret.txt",
)  # fmt: skip
CREATORS = {"apply_patch", "write_file"}
FACTS = {"fim": "completions", "fast_model": "quick"}
# What is wrong with a call of one of these may be put right by another.
AGENTS = {"agent_open", "agent_eval", "agent_close", "tool_agent"}
FILES = {*CREATORS, "edit_file", "fim_edit", "git_blame", "read_file", "validate_data"}
DIRECTORIES = {"agent_open", "exec_shell", "list_dir", "run_verifiers", "task_gate_run", "task_shell_start"}
EMPTY_IS_ROOT = {"agent_open", "exec_shell", "run_verifiers", "task_gate_run", "task_shell_start"}
# Where a path may lead that is no file of text, and the tools that must refuse to go there.
PLACES = {
    "absent": set(PATHS) - CREATORS,
    "folder": FILES,
    "binary": {*DIRECTORIES, "edit_file", "fim_edit", "read_file"},
    "huge": {*DIRECTORIES, *FILES} - {"git_blame"},
    "pipe": set(PATHS),
    "": set(PATHS) - EMPTY_IS_ROOT,
}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with three files and tests that pass, to be copied."""
    space = tmp_path_factory.mktemp("repository")
    make_repo(space, {"a.txt": "one\n", "twice.txt": "same\nsame\n", "folder/b.txt": "b\n"})
    (space / "Makefile").write_text("test:\n\t@true\n")
    return space


@pytest.fixture
def land(request: pytest.FixtureRequest, tmp_path: Path, repository: Path) -> Path:
    """A repository with a file of each kind that a tool could trip over; a secret lies beside it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("SECRET one\n")
    (tmp_path / "workspace-evil").mkdir()
    space = tmp_path / "land"
    shutil.copytree(repository, space)
    (space / "binary").write_bytes(bytes(range(256)) * 8)
    if "pr_attempt" not in request.node.name:  # whose patch would hold it
        with open(space / "huge", "wb") as huge:
            huge.truncate(5 << 30)
    os.mkfifo(space / "pipe")
    (space / "link").symlink_to(outside / "secret.txt")
    (space / "linkdir").symlink_to(outside)
    return space


def state(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Mode, size and time of change of everything in and beside a workspace."""
    found = {}
    for place, folders, files in os.walk(folder.parent):
        for name in (*folders, *files):
            path = os.path.join(place, name)
            if not path.startswith(str(folder.parent / "home")):
                seen = os.lstat(path)
                found[path] = (seen.st_mode, 0 if name in folders else seen.st_size, seen.st_mtime_ns)
    return found


GITHUB = ("github_close_issue", "github_close_pr", "github_comment")
SENDS = '[[rules]]\naction = "allow"\ntool = "github_*"\n'  # where there is nobody to say yes
# What needs a person, or a program that need not be installed.
NOT_HERE = frozenset({*GITHUB, "github_issue_context", "github_pr_context", "request_user_input", "speech"})


@pytest.fixture(autouse=True)
def gh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gh that nobody is logged in to, whatever this machine has."""
    program(tmp_path / "bin", "gh", "echo 'To get started with GitHub CLI, please run:  gh auth login' >&2; exit 4")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")


class Badly:
    """A model that gets ready, makes bad calls, then makes every next call that it was told, word for word."""

    def __init__(self, space: Path, tool: str, calls: list[Any]) -> None:
        self.calls = calls
        self.next: list[tuple[str, str]] = []
        self.before: dict[str, tuple[int, int, int]] = {}
        self.after: dict[str, tuple[int, int, int]] = {}
        self._space = space
        self._tool = tool
        self._step = 0
        self._left: list[dict[str, Any]] = []
        self._followed = False

    def __call__(self, body: dict[str, Any]) -> dict[str, Any]:
        """The turn for a request."""
        if "messages" not in body:  # an edit asks for the text between two anchors
            return {"text": "two"}
        if not any("Go." in str(message["content"]) for message in body["messages"] if message["role"] == "user"):
            return {"text": "SUMMARY: done"}  # a sub-agent
        self._step += 1
        told = [message["content"] for message in body["messages"] if message["role"] == "tool"]
        if self._step == 1:
            return {"calls": list(READY[self._tool])}
        if self._step == 2:
            self.before = self.after = state(self._space)
            job = re.search(r'"((?:attempt|auto|shell|task)_[0-9a-f]{8})"', told[0])
            calls = json.loads(json.dumps(self.calls).replace('"JOB"', f'"{job[1] if job else ""}"'))
            self._left = [
                {"name": self._tool, "arguments": arguments} if self._tool else arguments for arguments in calls
            ]
        elif not self._left and not self._followed:
            self._followed = True
            self.after = state(self._space)
            self.next = list(dict.fromkeys(found.groups() for text in told if (found := NEXT.search(text))))
            self._left = [{"name": name, "arguments": arguments} for name, arguments in self.next]
        some, self._left = self._left[:MOST_CALLS], self._left[MOST_CALLS:]
        return {"calls": some} if some else {"text": "Done."}


async def refused(
    home: Path, space: Path, tool: str, calls: list[Any], changed: frozenset[str] = frozenset()
) -> list[CallFinished]:
    """The result of each call, once what holds of every bad call was seen to hold: nothing but `changed` changed."""
    model = Badly(space, tool, calls)
    window = 128_000 if tool == "retrieve_tool_result" else 0  # a small one reads less at once, and keeps the rest
    if not (home / "config.toml").exists():
        know_every_tool(home)
        (home / "skills/house").mkdir(parents=True)
        (home / "skills/house/SKILL.md").write_text("---\nname: house\ndescription: Rules of the house\n---\nKnock.\n")
    (home / "permissions.toml").write_text(SENDS)
    site = WebServer({"/": html("<p>One page.</p>"), "/search": hits(("One", "http://example.org/", "one"))})
    async with site, harness(home, space, model, facts=FACTS, window=window) as stage:
        site.serve(stage)
        events = await stage.turn("Go.")
    assert ending(events).status == "done", ending(events)
    found = results(events)[len(READY[tool]) :]
    bad, good = found[: len(calls)], found[len(calls) :]
    assert {path for path, _ in model.before.items() ^ model.after.items()} == changed
    assert [result.ms for result in found if result.ms > HANG * 1000] == []
    assert len(good) == len(model.next)
    for named, result in zip(model.next, good, strict=True):
        nobody = named[0] in NOT_HERE and result.error in ("not_available", "execution_failed")
        assert named[0] == tool or not tool or {named[0], tool} <= AGENTS, f"the next call is of {named[0]}"
        assert result.ok or nobody, f"{model.next} the next call {named} fails: {result.content[:300]}"
    return bad


def judge(result: CallFinished, what: object, field: str = "") -> None:
    """Whether a refusal has all its parts, for programs and in words."""
    said = f"{what}: {result.content[:300]} {result.metadata.get('error')}"
    assert not result.ok and result.error, said
    error = result.metadata["error"]
    assert (
        set(error) == {"code", "message", "field", "expected", "received", "fix"} and error["code"] == result.error
    ), said
    assert error["field"] == field or not field or error["field"].startswith(f"{field}[0]."), said
    assert error["field"] and error["expected"] and error["received"], said
    shown = " ".join(result.content.split())
    for part in ("field", "expected"):
        assert " ".join(error[part].split())[:150] in shown, said
    assert bool(error["fix"]) == bool(NEXT.search(result.content)), said
    assert "tool itself failed" not in result.content, said


def test_the_tables_know_every_tool() -> None:
    assert set(GOOD) == {*TOOLS, *SERVED}
    named = {
        tool for tool in TOOLS if {"path", "cwd"} & set(re.findall(r'"(\w+)":', json.dumps(row_properties(tool))))
    }  # fmt: skip
    assert named == set(PATHS)


def row_properties(tool: str) -> Any:
    """The arguments of a tool, as its schema has them."""
    row = CATALOG.spec(tool)
    assert row is not None
    return row.parameters.get("properties", {})


def reads(tool: str) -> bool:
    """Whether reading is all that a tool does."""
    row = CATALOG.spec(tool)
    return row is not None and [effect.value for effect in row.effects] == ["reads"]


def said_in(tool: str, field: str) -> Any:
    """The schema of an argument, by its path."""
    schema: Any = {"properties": row_properties(tool)}
    for name in re.findall(r"\w+", field):
        schema = schema["items"] if name.isdigit() else schema["properties"][name]
    return schema


def guessed(tool: str, case: Bad) -> bool:
    """Whether a spoiled call is run all the same: one text is a list of one; of a tool that reads, a key that it does
    not know is left out where another argument came, and a number is taken for a text."""
    if case.label == "a string for a array":
        return said_in(tool, case.field)["items"].get("type") == "string"
    if case.label == "unknown":
        return reads(tool) and "." not in case.field and (bool(GOOD[tool]) or not row_properties(tool))
    schema = said_in(tool, case.field)
    if case.label == "below the minimum":
        return reads(tool) and "line" in case.field and schema["minimum"] == 1
    number = case.label in ("a integer for a string", "item a integer for a string")
    return number and reads(tool) and "enum" not in schema and re.search(schema.get("pattern", ""), "7") is not None


def judge_guess(result: CallFinished, what: object) -> None:
    """Whether a call that was run on a guess says so, and fails, if it does, like any other."""
    assert result.metadata["repairs"], what
    if result.error and not (result.name in NOT_HERE and result.error in ("not_available", "execution_failed")):
        judge(result, what)


@pytest.mark.parametrize("tool", TOOLS)
async def test_each_argument_spoiled(tool: str, home: Path, land: Path) -> None:
    row = CATALOG.spec(tool)
    assert row is not None
    cases = list(spoiled(row.parameters, GOOD[tool]))
    found = await refused(home, land, tool, [case.arguments for case in cases])
    for case, result in zip(cases, found, strict=True):
        what = (tool, case.label, case.field)
        if guessed(tool, case):
            judge_guess(result, what)
            continue
        judge(result, what, case.field)
        missing = case.label in ("missing", "null") or result.metadata["error"]["received"] == "nothing"
        assert result.error == ("missing_field" if missing else "invalid_input")


@pytest.mark.parametrize("tool", TOOLS)
async def test_arguments_that_are_no_object_and_what_no_schema_tells(tool: str, home: Path, land: Path) -> None:
    taken_back = frozenset({str(land), str(land / "made.txt")} if tool == "revert_turn" else ())
    found = await refused(home, land, tool, [*EXTRA.get(tool, ()), *RAW], taken_back)
    for arguments, result in zip([*EXTRA.get(tool, ()), *RAW], found, strict=True):
        (judge_guess if understood(tool, arguments) else judge)(result, (tool, arguments))


def understood(tool: str, raw: object) -> bool:
    """Whether a text that is no object says enough: nothing where nothing is required, the one thing that is required
    of a tool that reads, an object but for its last brace."""
    row = CATALOG.spec(tool)
    assert row is not None
    required, properties = row.parameters.get("required", []), row_properties(tool)
    if raw in ("[]", "null"):
        return not required
    if raw == '"x"':
        return reads(tool) and len(required) == 1
    if raw == '{"path": "a"':
        alone = "path" in properties and set(required) <= {"path"}
        return alone or tool in ("run_tests", "rlm_session_objects")
    return raw in ("{'a': 1}", '{"a":1}}') and reads(tool) and not properties


@pytest.mark.parametrize("tool", PATHS)
async def test_each_path_that_leads_nowhere_or_out(tool: str, home: Path, land: Path) -> None:
    places = [place for place, refusing in PLACES.items() if tool in refusing]
    found = await refused(home, land, tool, [aimed(tool, path) for path in (*places, *HOSTILE)])
    for path, result in zip((*places, *HOSTILE), found, strict=True):
        judge(result, (tool, path))
        assert result.error == "path_escape" or path not in HOSTILE
        assert "SECRET" not in result.content and "root:" not in result.content


@pytest.mark.parametrize("tool", sorted(set(PATHS) - CREATORS - {"edit_file", "fim_edit"}))
async def test_every_other_odd_path_is_answered(tool: str, home: Path, land: Path) -> None:
    places = [place for place, refusing in PLACES.items() if tool not in refusing]
    for place, result in zip(
        places, await refused(home, land, tool, [aimed(tool, place) for place in places]), strict=True
    ):
        assert result.ok or result.content, place
        assert "tool itself failed" not in result.content


def aimed(tool: str, path: str) -> dict[str, Any]:
    """A call of a tool that is otherwise good, at this path."""
    field = PATHS[tool]
    if field == "changes":
        return {"changes": [{"path": "new.txt", "content": "x"}, {"path": path, "content": "x"}]}
    if field == "commands":
        return {"commands": [{"name": "t", "program": "true", "cwd": path}]}
    return {"path": path} if tool == "validate_data" else {**GOOD[tool], field: path}


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool.startswith("git_")])
async def test_without_a_repository(tool: str, home: Path, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    (result,) = await refused(home, workspace, tool, [GOOD[tool]])
    assert (result.ok, result.error) == (False, "not_available")
    assert str(workspace) in result.content and not NEXT.search(result.content)


async def test_a_name_that_is_spelt_otherwise(home: Path, land: Path) -> None:
    names = ("readfile", "read-file", "read_file ", "ReadFile", "functions.read_file:0", "read_fille")
    for result in await refused(home, land, "", [{"name": name, "arguments": {"path": "a.txt"}} for name in names]):
        assert result.ok and result.name == "read_file" and result.metadata["repairs"]


async def test_a_name_that_is_no_tool(home: Path, land: Path) -> None:
    names = ("", "x" * 5000, "rm -rf /", "\x1b]0;x\x07", "функция", "get_project_overview")
    found = await refused(home, land, "", [{"name": name, "arguments": {"path": "a.txt"}} for name in names])
    for name, result in zip(names, found, strict=True):
        judge(result, name, "name")
        assert result.error == "not_available"


async def test_too_long_arguments(home: Path, land: Path) -> None:
    (result,) = await refused(home, land, "write_file", [{"path": "new.txt", "content": "x" * (1 << 20)}])
    judge(result, "a mebibyte", "arguments")


async def test_a_file_that_does_not_parse_is_a_result_and_no_fault(home: Path, land: Path) -> None:
    (result,) = await refused(home, land, "validate_data", [{"path": "a.txt"}])
    assert (result.ok, result.error, result.metadata["valid"]) == (False, "", False)


WITHOUT_WORKSPACE = {
    "agent_eval", "automation_list", "checklist_add", "checklist_list", "checklist_write", "diagnostics",
    "handle_read", "list_mcp_resource_templates", "list_mcp_resources", "mcp_get_prompt", "mcp_read_resource",
    "memory_search", "note", "pr_attempt_list", "remember", "request_user_input", "retrieve_tool_result",
    "rlm_session_objects", "task_list", "tool_search_tool_bm25", "tool_search_tool_regex", "update_plan",
    "validate_data", "web_run",
}  # fmt: skip


async def test_a_workspace_that_is_gone_is_what_every_tool_says(home: Path, tmp_path: Path, repository: Path) -> None:
    space = tmp_path / "space"
    shutil.copytree(repository, space)
    tried = [tool for tool in TOOLS if tool not in WITHOUT_WORKSPACE and READY[tool] is NOTHING]

    def deleted(request: dict[str, Any]) -> dict[str, Any]:
        shutil.rmtree(space)
        return {"calls": [{"name": tool, "arguments": GOOD[tool]} for tool in tried]}

    know_every_tool(home)
    (home / "permissions.toml").write_text(SENDS)
    async with harness(home, space, [{"calls": list(NOTHING)}, deleted, {"text": "Gone."}]) as stage:
        events = await stage.turn("Go")
    finished = [event for event in events if isinstance(event, CallFinished)][len(NOTHING) :]
    assert ending(events).status == "done" and [event.name for event in finished] == tried
    assert {event.name: event.content for event in finished if "is gone: it was deleted" not in event.content} == {}
    assert not any(event.ok for event in finished) and "itself failed" not in str(finished)
