"""What a model wants, said by one of eleven verbs, as a call of a real tool; no model is asked for it.

A table of rules, one a verb: arguments in, tool and arguments out. What a rule had to choose is marked; what could be
two calls alike is refused with both of them filled in. Rules speak only of tools that are registered.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.catalog.schema import check
from codewhale.protocol.errors import NextCall, ToolError
from codewhale.protocol.tools import ToolSpec
from codewhale.repair.codes import RepairCode
from codewhale.repair.fit import fit, fold, milliseconds, spelt

Given = dict[str, Any]
Call = tuple[str, Given]
Rows = Mapping[str, ToolSpec]
_STOP = frozenset(
    """a about after all an and any are as at be been by can code codebase defined definition did do does every file
    files find for from function functions get given handled handles has have how i implemented implementation in
    into is it its list locate look me method my new of on or our place places project repo repository search see
    set show that the their there these this to use used uses using want was we were what when where which who why
    will with work works would you your""".split()
)
_ENDINGS = """bash c cc cfg cjs cpp cs css csv env go h hpp html ini ipynb java js json jsx kt lock lua md mjs php
    pl properties proto py pyi rb rs rst scala scss sh sql svelte swift tf toml ts tsx txt vue xml yaml yml""".split()
_FILE = re.compile(rf"[\w@./+-]+\.(?:{'|'.join(_ENDINGS)})|(?:.*/)?(?:Makefile|Dockerfile|LICENSE|README|Cargo\.lock)")
_STRUCTURE = re.compile(
    r"(?i)\b(?:structure|overview|layout|architecture|directory tree|file tree|project map|codemap)\b"
)
_CODE = re.compile(r"[(){}\[\]=<>;:&|\"'$#]|^\s*(?:def|class|import|from|func|fn|struct|const|let|var|return|raise)\s")
_QUOTED = re.compile(r"""["'`“](?P<text>[^"'`“”]{2,})["'`”]""")
_BOX = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])?\s*(?:\[(?P<box>[ xX~>/-])\]\s*)?(?P<text>.*)", re.S)
_BOXES = {"x": "completed", "~": "in_progress", ">": "in_progress", "/": "in_progress", "-": "in_progress"}
_YES_NO = re.compile(r"(?i)\s*(?:should|do|does|did|is|are|was|can|could|shall|may|would|will|has|have|ok(?:ay)?)\b")
_LONGEST_WORD = 60
_LONGEST_QUERY = 500
_MOST_STEPS = 200
_LONGEST_SHOWN = 600
_LONGEST_SERVER = 2000
_MOST_KEYS = 64


class Lowered(Struct, frozen=True):
    """The real call behind a verb. `arguments` None: the model's own could not be read. `chosen` where there was a
    choice; `codes` of what was repaired on the way."""

    tool: str
    arguments: Given | None = None
    chosen: bool = False
    codes: tuple[RepairCode, ...] = (RepairCode.VERB,)


class Unclear(Exception):
    """A verb that could mean several calls, or has nothing to mean here; `error` is for the model."""

    def __init__(self, error: ToolError) -> None:
        super().__init__(error.message)
        self.error = error


def lower(name: str, arguments: Any, rows: Rows) -> Lowered | None:
    """The call that a verb stands for; None where `name` is no verb or is, with these arguments, a tool of its own.
    Raises Unclear."""
    verb = _FOLDED.get(fold(name))
    if verb is None:
        return None
    rule, home = (_inspect, "read_file") if verb == "inspect" else _RULES[verb]
    own = verb in rows
    if own and (verb in _LATER or not rows[verb].family):
        return None
    if not isinstance(arguments, dict) or len(arguments) > _MOST_KEYS:
        return None if own or home not in rows else Lowered(home)
    unwrapped = fit(arguments, {"type": "object", "properties": {}, "additionalProperties": True})
    try:
        found = rule(unwrapped.arguments, rows)
    except _Open as choice:
        raise Unclear(_refusal(verb, choice, rows)) from None
    if found is None and fold(name) in _PLAIN:
        found = Lowered(verb if own else home, unwrapped.arguments)
    if found is None or found.tool not in rows:
        return None
    return msgspec.structs.replace(found, codes=(*unwrapped.repairs, *found.codes))


class _Open(Exception):
    """A rule's own words for several calls alike, the one to fall back on first."""

    def __init__(self, why: str, *calls: Call) -> None:
        super().__init__(why)
        self.calls = calls


def _refusal(verb: str, choice: _Open, rows: Rows) -> ToolError:
    """The refusal that names the calls a model may have meant, each of which would be accepted as it stands."""
    calls: list[Call] = []
    for name, given in choice.calls:
        fitted = fit(given, rows[name].parameters, name).arguments if name in rows else {}
        if name in rows and not check(fitted, rows[name].parameters):
            calls.append((name, fitted))
    shown = [f"{number}. {name} {_shown(given)}" for number, (name, given) in enumerate(calls, start=1)]
    return ToolError(
        "invalid_input",
        f"{verb}: {choice} Nothing was run.{' Make the call you mean: ' if calls else ''}{' '.join(shown)}",
        field="arguments",
        expected=" or ".join(dict.fromkeys(name for name, _ in calls)) or "another call, or the answer",
        received=str(choice),
        fix=NextCall(*calls[0]) if calls else None,
    )


def _shown(given: Given) -> str:
    said = msgspec.json.encode(given).decode()
    return said if len(said) <= _LONGEST_SHOWN else said[:_LONGEST_SHOWN] + "…"


def _take(given: Given, names: str) -> Any:
    """The first of these members that is there, however it is spelt, taken out; None for none."""
    for name in names.split():
        for key in list(given):
            if fold(key) == fold(name) and given[key] not in (None, ""):
                return given.pop(key)
    return None


# ---------------------------------------------------------------------- looking


# Words for a kind of definition as codebase_search names it, and kinds of search that it is by itself.
_DEFINES = {
    "function": "fn", "func": "fn", "method": "fn", "def": "fn", "constant": "const", "variable": "const",
    "mod": "module", "package": "module", "protocol": "interface",
}  # fmt: skip
_BY_ITSELF = frozenset("all any auto code definition hybrid keyword natural reference semantic symbol symbols".split())
_AS_TEXT = frozenset("content exact file filename files literal map name overview path structure text tree".split())


def _asked(rest: Given, query: Any, kind: str, limit: Any, paths: tuple[list[Any], list[Any]]) -> Given:
    """Arguments of codebase_search: folders and patterns of names are one filter of paths."""
    folders = [str(folder).removeprefix("./").rstrip("/") for folder in paths[0] if folder not in (None, "", ".", "./")]
    names = [str(name) for name in paths[1] if name not in (None, "")]
    globs = [f"{folder}/**/{name}" for folder in folders for name in names] if folders and names else folders or names
    found = {**rest, "query": query}
    if globs:
        found["path_glob"] = globs[0] if len(globs) == 1 else "{" + ",".join(globs) + "}"
    if kind and kind not in _BY_ITSELF:
        found["kind"] = _DEFINES.get(kind, kind)
    return found if limit is None else {**found, "max_results": limit}


def _codebase_search(given: Given, rows: Rows) -> Lowered | None:
    """A question or a name by the tool itself; text that is said to be text by grep_files, names by file_search, the
    whole by project_map. Without the tool a question goes to grep_files by its words."""
    rest = dict(given)
    where = _take(rest, "path directory dir folder target_directories target_directory scope root")
    limit = _take(rest, "max_results limit top_k num_results count n")
    said = _take(rest, "kind type mode search_type")
    if said is not None and not isinstance(said, str):
        return None
    kind = (said or "").lower()
    regex = _take(rest, "pattern regex regexp")
    file = _take(rest, "file_name filename file name glob file_pattern")
    query = _take(rest, "query q question search text symbol keywords search_term search_query")
    endings = _take(rest, "extensions file_types file_type extension")
    if endings is not None and file is None:
        some = endings if isinstance(endings, list) else [endings]
        rest["include"] = [f"*.{str(ending).lstrip('*.')}" for ending in some]
    if isinstance(query, list):
        query = " ".join(str(word) for word in query)
    if query is not None and "codebase_search" in rows and kind not in _AS_TEXT:
        folders = where if isinstance(where, list) else [where]
        asked = _asked(rest, query, kind, limit, (folders, [*rest.pop("include", ()), file]))
        return None if asked == given else Lowered("codebase_search", asked)
    if isinstance(where, list):
        if len(where) > 1 and isinstance(query, str):
            calls = [("grep_files", {"pattern": re.escape(query), "path": path}) for path in where[:2]]
            raise _Open("one call looks in one folder.", *calls)
        where = where[0] if where else None
    place = {"path": where} if where not in (None, ".", "") else {}
    if query is None and regex is None and file is None:
        if kind in ("structure", "map", "tree", "overview"):
            return Lowered("project_map", {})
        if "codebase_search" in rows:
            return None
        raise _Open("`query` is missing.", ("project_map", {}), ("list_dir", {"path": "."}))
    if query is None and regex is None:
        return Lowered("file_search", {**rest, "query": file, **place, **({"limit": limit} if limit else {})})
    more = {**place, **({"max_results": limit} if limit else {}), **({"include": [file]} if file else {})}
    if regex is not None and query is None:
        return Lowered("grep_files", {**rest, "pattern": regex, **more})
    meant = search_words(str(query), kind if not file else "content")
    if meant.tool == "file_search":
        rest.pop("include", None)
        more = {**place, **({"limit": limit} if limit else {})}
    if meant.tool == "project_map":
        more, rest = {}, {}
    return Lowered(meant.tool, {**rest, **meant.arguments, **more}, meant.chosen)


def _read_file(given: Given, rows: Rows) -> Lowered | None:
    """One file at a time; a last line as a number of lines."""
    rest = dict(given)
    several = rest.get("path") if isinstance(rest.get("path"), list) else _take(rest, "paths files file_paths")
    if isinstance(several, list) and several and all(isinstance(path, str) for path in several):
        rest.pop("path", None)
        if len(several) > 1:
            calls = [("read_file", {**rest, "path": path}) for path in several[:2]]
            raise _Open(f"one call reads one file; {len(several)} were named.", *calls)
        rest["path"] = several[0]
    first, last = spelt(rest, "start_line"), spelt(rest, "end_line")
    if _whole(rest.get(first)) and _whole(rest.get(last)) and "max_lines" not in rest:
        begin, end = int(str(rest[first])), int(str(rest[last]))
        if 1 <= begin <= end:
            del rest[first], rest[last]
            rest["start_line"], rest["max_lines"] = begin, end - begin + 1
    return None if rest == given else Lowered("read_file", rest)


def _inspect(given: Given, rows: Rows) -> Lowered:
    """A look at something: a folder, a file, a question about the code, or, of nothing, the whole."""
    rest = dict(given)
    path = _take(rest, "path file file_path filename target directory dir folder")
    if isinstance(path, str) and (path.endswith("/") or path in (".", "..")):
        return Lowered("list_dir", {"path": path, **rest})
    if path is not None:
        return _read_file({"path": path, **rest}, rows) or Lowered("read_file", {"path": path, **rest})
    if rest:
        return _codebase_search(rest, rows) or Lowered("codebase_search", rest)
    return Lowered("project_map", rest)


def _whole(value: object) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, str) and value.isdigit())


def _git_diff(given: Given, rows: Rows) -> Lowered | None:
    """What is staged under its other names; a commit is another tool's."""
    rest = dict(given)
    staged = _take(rest, "staged index")
    rev = _take(rest, "rev commit revision ref base sha range target from")
    if isinstance(rev, str):
        rest = {"path": rest["path"]} if isinstance(rest.get("path"), str) else {}
        why = "it shows changes that are not committed, and a commit was named."
        raise _Open(why, ("git_show", {"rev": rev, **rest}), ("git_diff", rest))
    return None if staged is None else Lowered("git_diff", {**rest, "cached": staged})


# ---------------------------------------------------------------------- changing


def _apply_patch(given: Given, rows: Rows) -> Lowered | None:
    """One text for another is edit_file's; a whole file is one of `changes`."""
    rest = dict(given)
    path = _take(rest, "path file_path filename file")
    if not isinstance(path, str) or "patch" in rest or "changes" in rest:
        return None
    before = _take(rest, "search old_string old_str old_text")
    after = next((key for key in rest if fold(key) in ("replace", "newstring", "newstr", "newtext")), None)
    if isinstance(before, str) and after is not None:
        return Lowered("edit_file", {"path": path, "search": before, "replace": rest.pop(after), **rest})
    content = _take(rest, "content contents")
    if before is not None or rest or not isinstance(content, str):
        return None
    if re.match(r"\s*(?:\*\*\* Begin Patch|--- |diff --git |@@ )", content):
        return Lowered("apply_patch", {"path": path, "patch": content})
    return Lowered("apply_patch", {"changes": [{"path": path, "content": content}]})


def _run_tests(given: Given, rows: Rows) -> Lowered | None:
    """Checks other than tests are run_verifiers'; a filter or path is a word for the runner."""
    gates = rows["run_verifiers"].parameters["properties"] if "run_verifiers" in rows else {}
    known = {key: value for key, value in given.items() if key in gates}
    if known and len(known) == len(given):
        return Lowered("run_verifiers", known)
    rest = dict(given)
    command = _take(rest, "command cmd")
    if isinstance(command, str):
        runner = _RUNNER.match(command.strip())
        words = command.strip()[runner.end() :] if runner else ""
        raise _Open(
            "it finds the runner itself, and a command line was given.",
            ("run_tests", {"args": words.strip()} if words.strip() else {}),
            ("exec_shell", {"command": command}),
        )
    if known:
        said = rest.get("args")
        raise _Open(
            "arguments of two tools came together.",
            ("run_tests", {"args": said} if isinstance(said, str) else {}),
            ("run_verifiers", known),
        )
    word = _take(rest, "filter path pattern test test_name file test_path target")
    return Lowered("run_tests", {**rest, "args": word}) if isinstance(word, str) and not rest else None


_RUNNER = re.compile(r"(?:python3?\s+-m\s+)?(?:pytest|unittest|cargo test|go test|npm test|npm run test)\b")


def _shell_run(given: Given, rows: Rows) -> Lowered:
    """A command, in the background where it would not end by itself; or what comes after, by the job's id."""
    rest = dict(given)
    job = _take(rest, "task_id job_id id shell_id bash_id")
    command = _take(rest, "command cmd script command_line")
    if job is not None and command is not None:
        raise _Open(
            "a job and a new command came together.",
            ("exec_shell_wait", {"task_id": job}),
            ("exec_shell", {"command": command, **rest}),
        )
    if job is not None:
        return _job(str(job), rest)
    _seconds(rest)
    if command is not None:
        rest["command"] = command
    settled = any(fold(key) in ("background", "runinbackground", "isbackground", "detach") for key in rest)
    if isinstance(command, str) and not settled and _SERVES.search(command[:_LONGEST_SERVER]):
        rest["background"] = True
    return Lowered("exec_shell", rest)


def _job(job: str, rest: Given) -> Lowered:
    typed = _take(rest, "input stdin text keys")
    action = str(_take(rest, "action operation") or "").lower()
    ended = [_take(rest, name) for name in ("cancel", "kill", "stop", "close", "terminate")]
    if True in ended or action in ("cancel", "kill", "stop", "close", "terminate"):
        return Lowered("exec_shell_cancel", {"task_id": job})
    if typed is not None:
        return Lowered("exec_shell_interact", {"task_id": job, "input": typed, **rest})
    _seconds(rest)
    return Lowered("exec_shell_wait", {"task_id": job, **rest})


def _seconds(rest: Given) -> None:
    """A time limit under another name as milliseconds: the tool's bounds leave one reading of the number."""
    exact = _take(rest, "timeout_seconds timeout_secs timeout_s timeout_sec seconds")
    value = exact if exact is not None else _take(rest, "timeout")
    if value is not None:
        found = milliseconds(value, seconds=exact is not None)
        rest.update({"timeout": value} if found is None else {"timeout_ms": found})


_SERVES = re.compile(
    r"""(?x)(?:^|&&|;|\|\|)\s*(?:\w+=\S+\s+)*(?:sudo\s+|exec\s+|nohup\s+|npx\s+|bunx\s+|uv\s+run\s+|poetry\s+run\s+)*(?:
    (?:npm|pnpm|yarn|bun)\s+(?:run\s+)?(?:dev|start|serve|watch|preview)\b | python3?\s+-m\s+http\.server\b |
    (?:python3?\s+)?\S*manage\.py\s+runserver\b | flask\s+(?:\S+\s+){0,6}run\b | uvicorn\b | gunicorn\b | hypercorn\b |
    vite(?:\s+(?:dev|serve|preview)|\s*$) | next\s+(?:dev|start)\b | ng\s+serve\b | nodemon\b | http-server\b |
    serve\s |
    (?:bin/)?rails\s+s(?:erver)?\b | php\s+-S\b | hugo\s+server\b | jekyll\s+serve\b |
    mkdocs\s+serve\b | caddy\s+run\b |
    docker(?:-|\s+)compose\s+(?:\S+\s+){0,8}up\b(?!.{0,300}\s(?:-d|--detach)\b) |
    tail\s+(?:\S+\s+){0,6}-\w*[fF]\b | watch\s |
    cargo\s+watch\b | (?:tsc|jest|vitest)\b.{0,300}\s--watch\b |
    streamlit\s+run\b | jupyter\s+(?:lab|notebook|server)\b )"""
)


# ---------------------------------------------------------------------- saying


def _work_update(given: Given, rows: Rows) -> Lowered:
    """Items are the checklist's, phases the plan's; an id is one item of the checklist."""
    rest = dict(given)
    if (marked := _marked(given)) is not None:
        return marked
    items = checklist(_take(rest, "todos items checklist tasks todo_list list"), "content")
    plan = checklist(_take(rest, "plan steps phases"), "step")
    if items is not None and plan is not None:
        raise _Open(
            "`items` and `plan` came together.", ("checklist_write", {"todos": items}), ("update_plan", {"plan": plan})
        )
    if plan is not None:
        return Lowered("update_plan", {"plan": plan, **rest})
    if items is not None:
        _take(rest, "explanation merge")
        return Lowered("checklist_write", {"todos": items, **rest})
    number = _take(rest, "id item_id index number todo_id task_id")
    status = _take(rest, "status state") or ("completed" if True in (rest.get("done"), rest.get("completed")) else None)
    if status == "completed":
        _take(rest, "done completed")
    if number is not None and status is not None:
        return Lowered("checklist_update", {"id": number, "status": status})
    if number is not None:
        done, begun = ({"id": number, "status": said} for said in ("completed", "in_progress"))
        why = "it says which item and not what became of it."
        raise _Open(why, ("checklist_update", done), ("checklist_update", begun))
    item = _take(rest, "content item add todo task title")
    if item is not None and not rest:
        return Lowered("checklist_add", {"content": item, **({"status": status} if status else {})})
    said = item or _take(rest, "text message note update summary progress step description")
    if isinstance(said, str) and said.strip():
        raise _Open(
            "it may be a step to do or a remark to keep.",
            ("checklist_add", {"content": said[:1000].strip()}),
            ("note", {"content": said}),
        )
    if status is not None:
        raise _Open(
            "it does not say which item.", ("checklist_list", {}), ("checklist_update", {"id": 1, "status": status})
        )
    return Lowered("checklist_list", rest)


def _marked(given: Given) -> Lowered | None:
    """Rows that hold an id and a status each, and no text: what became of items that there are."""
    rows = [value for key, value in given.items() if fold(key) in ("todos", "items", "updates", "checklist", "tasks")]
    marks = rows[0] if len(rows) == len(given) == 1 else None
    if not isinstance(marks, list) or not marks or not all(isinstance(row, dict) for row in marks):
        return None
    if any(set(row) != {"id", "status"} for row in marks):
        return None
    calls = [("checklist_update", {"id": row["id"], "status": row["status"]}) for row in marks[:2]]
    if len(marks) == 1:
        return Lowered(*calls[0])
    raise _Open("one call changes one item, or writes the whole list anew with the text of each.", *calls)


def _ask_user(given: Given, rows: Rows) -> Lowered:
    """One question or a few, with two or three choices each; one without choices can be answered in words."""
    rest = dict(given)
    several = _take(rest, "questions")
    if isinstance(several, str):
        several = decoded(several)
    asked = several if isinstance(several, list) else [rest if several is None else {**rest, "question": several}]
    made = [question(item, number) for number, item in enumerate(asked, start=1)]
    if not made or None in made:
        raise _Open("`question` is missing: what should the user be asked?")
    crowded = next((one for one in made if one and len(one["options"]) > 3), None)
    if crowded is not None:
        words = "; ".join(option["label"] for option in crowded["options"])
        open_one = question({"question": f"{crowded['question']} ({words})"[:1000]}, 1)
        three = {**crowded, "options": crowded["options"][:3]}
        calls = [("request_user_input", {"questions": [one]}) for one in (open_one, three)]
        raise _Open(f"a question has two or three choices; {len(crowded['options'])} came.", *calls)
    return Lowered("request_user_input", {"questions": made})


# ---------------------------------------------------------------------- handing over


def _agent_run(given: Given, rows: Rows) -> Lowered:
    """A new sub-agent by its task, a running one by its id: asked, or closed."""
    rest = dict(given)
    known, name = _take(rest, "agent_id id"), _take(rest, "name agent_name session_name")
    task = _take(rest, "prompt task objective instructions description")
    closes = True in (_take(rest, "close"), _take(rest, "cancel"), _take(rest, "stop"))
    if "agent_open" not in rows:
        raise _Open("there are no sub-agents in this catalog; do the work yourself, step by step.")
    if closes:
        return Lowered("agent_close", {"name": known or name})
    if known is not None or (task is None and name is not None):
        message = {} if task is None else {"message": task}
        return Lowered("agent_eval", {"name": known or name, **message, **rest})
    if task is None and not any(
        fold(key) in ("items", "block", "wait", "timeout", "timeoutms", "message") for key in rest
    ):
        why = "`prompt` is missing: what is the sub-agent to do?"
        raise _Open(why, ("agent_eval", {"block": False}))
    if task is None and not any(fold(key) in ("items", "message") for key in rest):
        return Lowered("agent_eval", rest)
    made = {**({"name": name} if name else {}), **({} if task is None else {"prompt": task})}
    kind = str(rest.get("type", rest.get("lane", rest.get("role", "")))).lower()
    if kind in ("fin", "fast", "tool_agent") and "tool_agent" in rows:
        _take(rest, "type lane role")
        return Lowered("tool_agent", {**made, **rest})
    return Lowered("agent_open", {**made, **rest})


def _workflow_run(given: Given, rows: Rows) -> Lowered:
    raise _Open("there are no workflows in this version; do the work yourself, step by step.")


def _as_it_is(given: Given, rows: Rows) -> None:
    return None


# ---------------------------------------------------------------------- plain words as arguments


class Search(Struct, frozen=True):
    """A search as a call; `chosen` where the words could have meant another one."""

    tool: str
    arguments: dict[str, Any]
    chosen: bool = False


def search_words(query: str, kind: str = "") -> Search:
    """What to look for, and by which tool. A word of code is looked for as it stands; a question by its words."""
    bare = query.strip()
    if len(bare) > _LONGEST_QUERY:
        return Search("grep_files", {"pattern": bare})
    if kind in ("structure", "map", "tree", "overview"):
        return Search("project_map", {})
    if kind in ("file", "files", "filename", "name", "path"):
        return Search("file_search", _file(bare))
    if kind in ("content", "text", "symbol", "literal", "exact"):
        return Search("grep_files", {"pattern": re.escape(bare)})
    if " " not in bare:
        if "*" in bare and not _CODE.search(bare):
            return Search("file_search", _file(bare), chosen=True)
        if _FILE.fullmatch(bare):
            return Search("file_search", {"query": bare}, chosen=True)
        return Search("grep_files", {"pattern": re.escape(bare)})
    quoted = _QUOTED.search(bare)
    if quoted is not None:
        return Search("grep_files", {"pattern": re.escape(quoted["text"])}, chosen=True)
    if _CODE.search(bare):
        return Search("grep_files", {"pattern": re.escape(bare)}, chosen=True)
    if _STRUCTURE.search(bare):
        return Search("project_map", {}, chosen=True)
    words = list(dict.fromkeys(_stem(word) for word in re.findall(r"[\w.]+", bare) if word.lower() not in _STOP))
    pattern = "|".join(re.escape(word[:_LONGEST_WORD]) for word in words[:8]) or re.escape(bare)
    return Search("grep_files", {"pattern": pattern, "case_insensitive": True, "context_lines": 0}, chosen=True)


def _file(glob: str) -> dict[str, Any]:
    """A pattern of names as the letters that occur in them, in order."""
    plain = re.sub(r"/{2,}", "/", glob.replace("*", "").replace("?", "")).lstrip("/")
    ending = re.search(r"\.(\w{1,10})$", glob)
    if "*" not in glob or not plain:
        return {"query": plain or "."}
    return {"query": plain, "extensions": [ending[1]]} if ending else {"query": plain}


def _stem(word: str) -> str:
    """A word less the ending that texts and code differ in."""
    bare = word.strip(".")
    cut = re.sub(r"(?:ings?|ed|es|s)$", "", bare)
    return cut if len(cut) >= 4 and bare.islower() else bare


def checklist(value: Any, key: str) -> Any:
    """Steps as rows of text under `key` and status, from rows, texts or lines with boxes; None where none came."""
    if isinstance(value, str):
        value = decoded(value)
    if isinstance(value, str):
        value = [line for line in value.splitlines() if line.strip()]
        if any(line.lstrip()[:1] in "{}" or '":' in line for line in value):
            return value  # rows that are damaged: no text of a step
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list):
        return None
    return [_step(item, key) for item in value] if len(value) <= _MOST_STEPS else value


def decoded(value: str) -> Any:
    """The JSON list or object that a text is, else the text."""
    if value.lstrip()[:1] not in ("[", "{"):
        return value
    try:
        found = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return value
    return found if isinstance(found, list | dict) else value


def _step(item: Any, key: str) -> Any:
    if isinstance(item, str):
        line = _BOX.fullmatch(item.strip())
        if line is None or not line["text"]:
            return item
        return {key: line["text"], "status": _BOXES.get((line["box"] or " ").lower(), "pending")}
    if not isinstance(item, dict):
        return item
    rest = dict(item)
    text = _first(rest, key, "content step text title task item name todo description")
    if not isinstance(text, str):
        return item
    done = _first(rest, "done completed checked finished")
    status = _first(rest, "status state") or ("completed" if done is True else "pending")
    for name in list(rest):
        if fold(name) in ("id", "priority", "activeform"):
            del rest[name]
    return {key: text, "status": status, **rest}


def question(asked: Any, number: int) -> dict[str, Any] | None:
    """A question as a person is shown it: heading, id, text, choices; None for what holds no question."""
    rest = {"question": asked} if isinstance(asked, str) else dict(asked) if isinstance(asked, dict) else {}
    text = _first(rest, "question prompt message text query q content")
    if not isinstance(text, str) or not text.strip():
        return None
    given = _first(rest, "options choices answers suggestions")
    if isinstance(given, str):
        given = decoded(given)
    if isinstance(given, str):
        given = [word.strip() for word in re.split(r"[\n|]" if re.search(r"[\n|]", given) else ",", given)]
        given = [word for word in given if word]
    choices = [_choice(one) for one in given[:_MOST_STEPS]] if isinstance(given, list) else []
    if not choices and _YES_NO.match(text):
        choices = [_choice("Yes"), _choice("No")]
    if not choices:
        choices = [
            {"label": "My own words", "description": "Type the answer."},
            {"label": "You decide", "description": "Go on with what seems best, and say what it was."},
        ]
    if len(choices) == 1:
        choices.append({"label": "Something else", "description": "Say what instead."})
    words = [word for word in re.findall(r"\w+", text[:_LONGEST_QUERY]) if word.lower() not in _STOP]
    header = _first(rest, "header title topic") or " ".join(words[:2]).capitalize() or "Question"
    name = _first(rest, "id key") or f"question_{number}"
    return {"header": str(header)[:40], "id": str(name), "question": text.strip(), "options": choices}


def _choice(said: Any) -> Any:
    if not isinstance(said, dict):
        return {"label": str(said), "description": str(said)[:500]}
    rest = dict(said)
    label = _first(rest, "label text title name value option")
    about = _first(rest, "description detail details explanation")
    return {"label": label, "description": about if about is not None else label}


def _first(rest: dict[str, Any], *names: str) -> Any:
    for name in " ".join(names).split():
        for key in list(rest):
            if fold(key) == fold(name) and rest[key] is not None:
                return rest.pop(key)
    return None


# ---------------------------------------------------------------------- the verbs

# Verb -> its rule, and the tool that stands for it where nothing can be read.
_RULES: dict[str, tuple[Callable[[Given, Rows], Lowered | None], str]] = {
    "codebase_search": (_codebase_search, "grep_files"),
    "read_file": (_read_file, "read_file"),
    "apply_patch": (_apply_patch, "apply_patch"),
    "run_tests": (_run_tests, "run_tests"),
    "git_status": (_as_it_is, "git_status"),
    "git_diff": (_git_diff, "git_diff"),
    "work_update": (_work_update, "checklist_write"),
    "ask_user": (_ask_user, "request_user_input"),
    "shell_run": (_shell_run, "exec_shell"),
    "agent_run": (_agent_run, "agent_open"),
    "workflow_run": (_workflow_run, "workflow"),
}
# Verbs that are to be tools of their own one day, with arguments of their own.
_LATER = frozenset(("agent_run", "workflow_run"))
VERBS: dict[str, str] = {verb: home for verb, (_, home) in _RULES.items()}
# What a model declares that it wants to do, in one word, and the verb that does it.
_PLAIN = {
    "search": "codebase_search", "inspect": "inspect", "test": "run_tests", "delegate": "agent_run",
    "runshell": "shell_run", "runworkflow": "workflow_run",
}  # fmt: skip
_FOLDED = {**_PLAIN, **{fold(verb): verb for verb in _RULES}}
