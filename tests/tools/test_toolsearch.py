"""Looking for tools: what comes back for a need, for a pattern, and for what cannot be used now."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codewhale.catalog.lifecycle import ALIASES
from codewhale.protocol.events import CallFinished
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ports import Findings, FoundTool
from codewhale.protocol.tools import CallContext, ToolSpec
from codewhale.testing import harness
from codewhale.tools.toolsearch import SearchByNeed, ToolSearchTools
from support.scenes import results

BY_NEED, BY_PATTERN = "tool_search_tool_bm25", "tool_search_tool_regex"


async def searched(
    home: Path, workspace: Path, *calls: tuple[str, dict[str, Any]], facts: Any = None, **fields: Any
) -> list[CallFinished]:
    """The results of these searches in one session, one answer each."""
    script: list[Any] = [{"calls": [{"name": name, "arguments": arguments}]} for name, arguments in calls]
    async with harness(home, workspace, [*script, {"text": "Done."}], facts=facts) as stage:
        return results(await stage.turn("Look.", await stage.open(**fields)))


def names(result: CallFinished) -> list[str]:
    """The tools that a search found."""
    answer = json.loads(result.content)
    assert answer["type"] == "tool_search_tool_search_result"
    assert all(
        row["type"] == "tool_reference" and row["schema"]["type"] == "object" for row in answer["tool_references"]
    )
    found = [row["tool_name"] for row in answer["tool_references"]]
    assert result.metadata["tool_references"] == found
    return found


def closed(result: CallFinished) -> dict[str, str]:
    """The tools that fit and cannot be used, with the reason."""
    rows = json.loads(result.content).get("unavailable_tool_references", [])
    assert list(result.metadata["unavailable_tool_references"]) == rows
    return {row["tool_name"]: row["reason"] for row in rows}


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("write down something for later sessions", "note"),
        ("who touched each line last", "git_blame"),
        ("put a choice to the developer", "request_user_input"),
        ("does this toml parse", "validate_data"),
        ("stop a background process", "exec_shell_cancel"),
        ("the rest of an output that was cut", "retrieve_tool_result"),
    ],
)
async def test_a_need_finds_its_tool(query: str, wanted: str, home: Path, workspace: Path) -> None:
    (result,) = await searched(home, workspace, (BY_NEED, {"query": query}))
    found = names(result)
    assert wanted in found[:4] and len(found) <= 8 and len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("^git_", "git_blame"),
        ("VALIDATE", "validate_data"),
        ("toml", "validate_data"),
        ("check(list)?_u", "checklist_update"),
    ],
)
async def test_a_pattern_finds_names_and_words_in_any_case(
    query: str, wanted: str, home: Path, workspace: Path
) -> None:
    (result,) = await searched(home, workspace, (BY_PATTERN, {"query": query}))
    assert wanted in names(result)


async def test_no_more_than_asked_for_and_never_more_than_eight(home: Path, workspace: Path) -> None:
    few, all_of_them, too_many = await searched(
        home, workspace, (BY_PATTERN, {"query": ".", "max_results": 2}), (BY_PATTERN, {"query": "."}),
        (BY_PATTERN, {"query": ".", "max_results": 9}),
    )  # fmt: skip
    assert (len(names(few)), len(names(all_of_them))) == (2, 8)
    assert not too_many.ok and too_many.metadata["error"]["field"] == "max_results"


async def test_no_retired_name_is_ever_found(home: Path, workspace: Path) -> None:
    asked = [(way, {"query": alias}) for alias in ALIASES for way in (BY_NEED, BY_PATTERN)]
    for result in await searched(home, workspace, *asked):
        assert not set(names(result)) & set(ALIASES) and not set(closed(result)) & set(ALIASES)


@pytest.mark.parametrize("query", ["(", "[a-", "*x", "(a+)+$" * 3 + "\\"])
async def test_a_wrong_pattern_is_answered_with_a_search_that_works(query: str, home: Path, workspace: Path) -> None:
    (result,) = await searched(home, workspace, (BY_PATTERN, {"query": query}))
    error = result.metadata["error"]
    assert (result.ok, error["code"], error["field"]) == (False, "invalid_input", "query")
    fix = error["fix"]
    (again,) = await searched(home, workspace, (fix["name"], fix["arguments"]))
    assert again.ok


async def test_nothing_found_is_said(home: Path, workspace: Path) -> None:
    (result,) = await searched(home, workspace, (BY_NEED, {"query": "xyzzy plugh"}))
    assert result.ok and names(result) == [] and "No tool fits" in json.loads(result.content)["message"]


# ------------------------------------------------------------------ why not


@pytest.mark.parametrize(
    ("mode", "authority", "said"),
    [
        (Mode.PLAN, Authority.PERSON, "agent mode"),
        (Mode.AGENT, Authority.HEADLESS, "--auto"),
        (Mode.AGENT, Authority.PERSON, ""),
        (Mode.YOLO, Authority.AUTO, ""),
    ],
)
async def test_what_the_mode_refuses_is_told_with_the_mode_that_allows_it(
    mode: Mode, authority: Authority, said: str, home: Path, workspace: Path
) -> None:
    (result,) = await searched(home, workspace, (BY_PATTERN, {"query": "^exec_shell$"}), mode=mode, authority=authority)
    if said:
        assert names(result) == [] and said in closed(result)["exec_shell"]
    else:
        assert names(result) == ["exec_shell"] and closed(result) == {}


async def test_a_disabled_tool_is_told_to_be_so(home: Path, workspace: Path) -> None:
    (home / "config.toml").write_text('[tools]\ndisabled = ["git_blame"]\n')
    (result,) = await searched(home, workspace, (BY_PATTERN, {"query": "^git_blame"}))
    assert names(result) == [] and "tools.disabled" in closed(result)["git_blame"]


async def test_a_closed_gate_is_told(home: Path, workspace: Path) -> None:
    (shut,) = await searched(home, workspace, (BY_PATTERN, {"query": "^fim_"}))
    assert names(shut) == [] and "fills in the middle" in closed(shut)["fim_edit"]
    (opened,) = await searched(home / "b", workspace, (BY_PATTERN, {"query": "^fim_"}), facts={"fim": "completions"})
    assert names(opened) == ["fim_edit"]


async def test_a_tool_for_another_model_is_not_found(home: Path, workspace: Path) -> None:
    (result,) = await searched(home, workspace, (BY_PATTERN, {"query": "^tool_agent$"}))
    assert names(result) == []


async def test_a_missing_program_is_named(
    home: Path, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    monkeypatch.setenv("PATH", str(empty))
    (result,) = await searched(home, workspace, (BY_PATTERN, {"query": "^git_blame"}))
    assert os.environ["PATH"] == str(empty)
    assert names(result) == [] and "git" in closed(result)["git_blame"]


# ------------------------------------------------------------------ size


class Long:
    """A view of tools with very long schemas."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self._sizes = sizes

    def spec(self, name: str) -> ToolSpec | None:
        """None."""
        return None

    def names(self) -> tuple[str, ...]:
        """None."""
        return ()

    async def learn(self) -> None:
        """Nothing."""

    def find(self, session: str, query: str, count: int, *, pattern: bool) -> Findings:
        """All of them."""
        schema = {"type": "object", "properties": {}}
        return Findings(tuple(FoundTool(f"t{n}", "x" * size, schema) for n, size in enumerate(self._sizes)))


@pytest.mark.parametrize(("sizes", "shown"), [([4000] * 8, 3), ([20_000, 10], 1), ([10] * 8, 8)])
async def test_what_is_too_long_to_show_is_left_out_and_said(sizes: list[int], shown: int, workspace: Path) -> None:
    call = CallContext("c", "s", str(workspace), Mode.AGENT, lambda text: None, lambda: False)
    result = await ToolSearchTools(Long(sizes)).by_need(SearchByNeed("x"), call)
    assert len(result.metadata["tool_references"]) == shown
    assert json.loads(result.content).get("message", "").startswith(str(len(sizes) - shown)) is (shown < len(sizes))
