"""Names on their way out: each does what its twin does, says so where it should, and leaves a line for people."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from codewhale.catalog.lifecycle import ALIASES, HIDDEN, NOT_YET, PROMISED, RETIRED, SUCCESSORS
from codewhale.protocol.events import CallFinished
from codewhale.repair.foreign import rows_of
from codewhale.testing import harness
from support.scenes import results
from support.sounds import sound
from support.webserver import WebServer, hits

STARTED = {"name": "exec_shell", "arguments": {"command": "cat", "background": True}}
LISTED = {"name": "checklist_write", "arguments": {"todos": [{"content": "a"}, {"content": "b"}]}}
SEARCHED = {"name": "tool_search_tool_regex", "arguments": {"query": "^web_run$"}}
# A call before it, and the arguments; JOB stands for the id of a job.
USES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "exec_shell_wait": (STARTED, {"task_id": "JOB", "wait": False}),
    "exec_shell_interact": (STARTED, {"task_id": "JOB", "input": "hello\n", "timeout_ms": 60_000}),
    "checklist_write": (LISTED, {"todos": [{"content": "c", "status": "completed"}]}),
    "checklist_add": (LISTED, {"content": "c"}),
    "checklist_update": (LISTED, {"id": 2, "status": "in_progress"}),
    "checklist_list": (LISTED, {}),
    "speech": ({**SEARCHED, "arguments": {"query": "^speech$"}}, {"text": "Good morning."}),
    "web_run": (SEARCHED, {"search_query": [{"q": "queue"}]}),
}
# read_mcp_resource needs a server: test_mcp_client.py calls it by both names.
BUILT = sorted(name for name in ALIASES if name in USES or ALIASES[name].canonical in USES)
CHANGING = re.compile(r'"updated_at": ?"[^"]*"|\bshell_\w+|\d+(\.\d+)? s\b|"\w+_ms": ?\d+')


async def used(home: Path, workspace: Path, name: str) -> tuple[CallFinished, list[bytes]]:
    """The result of a use under this name, and the requests of its session."""
    before, arguments = USES[ALIASES[name].canonical if name in ALIASES else name]

    def call(body: dict[str, Any]) -> dict[str, Any]:
        job = re.search(r'"task_id": "([^"]+)"', body["messages"][-1]["content"])
        said = json.dumps(arguments).replace("JOB", job[1] if job else "")
        return {"calls": [{"name": name, "arguments": json.loads(said)}]}

    wav = (200, {"content-type": "audio/wav"}, sound(0.1))
    site = WebServer({"/search": hits(("Queues", "https://docs.test/", "Rows")), "/speech": wav})
    async with site:
        home.mkdir(parents=True, exist_ok=True)
        (home / "config.toml").write_text(f'[speech]\nurl = "http://{site.address}/speech"\n')
        async with harness(home, workspace, [{"calls": [before]}, call, {"text": "Done."}]) as stage:
            site.serve(stage)
            _, result = results(await stage.turn("Go."))
            return result, list(stage.provider.requests)


def steady(value: Any) -> str:
    """A result less its times and ids."""
    return CHANGING.sub("*", value if isinstance(value, str) else json.dumps(value, sort_keys=True))


@pytest.mark.parametrize("alias", BUILT)
async def test_a_retired_name_does_what_its_twin_does(alias: str, tmp_path: Path, workspace: Path) -> None:
    row = ALIASES[alias]
    (own, own_requests) = await used(tmp_path / "own", workspace, row.canonical)
    (other, requests) = await used(tmp_path / "other", workspace, alias)
    assert (own.ok, other.ok, other.name) == (True, True, row.canonical)
    metadata = dict(other.metadata)
    notice = metadata.pop("_deprecation", None)
    if alias not in HIDDEN:
        assert (metadata["canonical_tool"], metadata["compat_alias"]) == (row.canonical, True)
        assert own.metadata["compat_alias"] is False
    assert steady({**metadata, "compat_alias": False}) == steady({**own.metadata, "compat_alias": False})
    assert steady(other.content) == steady(own.content)
    (own_said, said) = (steady(json.loads(found[-1])["messages"][-1]["content"]) for found in (own_requests, requests))
    told = f"Tool '{alias}' is deprecated; use '{row.canonical}' instead."
    if alias in HIDDEN:
        assert notice is None and said == own_said and "compat_alias" not in metadata
    else:
        assert notice == {
            "this_tool": alias, "use_instead": row.canonical, "first_deprecated": "0.8.53",
            "removed_in": "TBD (>= 0.9.x)", "message": told,
        }  # fmt: skip
        assert said == f"{own_said}\n\n{told}"
    # Nothing of it in what stays: the array is the same, and says nothing of either.
    own_arrays, arrays = ([json.dumps(json.loads(body)["tools"]) for body in some] for some in (own_requests, requests))
    assert own_arrays == arrays and alias not in "".join(arrays) and "deprecat" not in "".join(arrays)
    assert len(set(arrays[1:])) == 1


async def test_each_use_is_a_line_of_the_audit_log(home: Path, workspace: Path) -> None:
    calls = [{"name": name, "arguments": {"content": "c"}} for name in ("todo_add", "checklist_add", "todo_add")]
    async with harness(home, workspace, [{"calls": calls}, {"text": "Done."}]) as stage:
        session = await stage.open()
        found = results(await stage.turn("Go.", session))
    every = [json.loads(line) for line in (home / "audit.log").read_text().splitlines()]
    lines = [line for line in every if line["event"] == "alias_used"]
    assert [line["call"] for line in every if line["event"] == "decision"] == [item.call_id for item in found]
    assert [(line["event"], line["session"], line["call"]) for line in lines] == [
        ("alias_used", session, found[0].call_id), ("alias_used", session, found[2].call_id),
    ]  # fmt: skip
    assert {(line["alias"], line["canonical"], line["state"]) for line in lines} == {
        ("todo_add", "checklist_add", "deprecated")
    }


@pytest.mark.parametrize("name", sorted(RETIRED | (NOT_YET | PROMISED) - {"web_run"}))
@pytest.mark.parametrize("form", ["{}", "functions.{}", "{}:0"])
async def test_a_name_that_is_retired_or_not_built_says_so_and_runs_nothing(
    name: str, form: str, home: Path, workspace: Path
) -> None:
    arguments = {"id": "shell_1", "input": "x", "prompt": "look", "query": "x", "text": "x", "content": "x"}
    calls = [{"name": form.format(name), "arguments": arguments}, {"name": form.format(name), "arguments": {}}]
    async with harness(home, workspace, [{"calls": calls}, {"text": "Done."}]) as stage:
        found = results(await stage.turn("Go."))
    for result in found:
        assert (result.ok, result.error) == (False, "not_available") and "Did you mean" not in result.content
        fix = result.metadata["error"]["fix"]
        if name in RETIRED:
            assert "agent_open, agent_eval and agent_close" in result.content
            assert fix is None or fix["name"] in SUCCESSORS
        else:
            assert "not available in this version" in result.content and fix is None


def test_no_row_of_another_harness_runs_a_tool_by_a_name_of_ours_that_is_none() -> None:
    for name in NOT_YET | PROMISED:
        assert [row.names for row in rows_of(name) if row.tool or row.verb] == [], name
    for name in RETIRED:
        assert {row.tool for row in rows_of(name)} <= {*SUCCESSORS, *(["exec_shell_wait"] if name == "wait" else [])}
