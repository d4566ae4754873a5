"""The one table of names: every name stands in exactly one state, and what follows from where it stands."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import codewhale.tools
from codewhale.catalog.lifecycle import (
    ACTIVE,
    ALIASES,
    DEFERRED,
    DEPRECATED,
    HEAD_BYTES,
    HIDDEN,
    MODEL_GATES,
    NOT_YET,
    PROFILES,
    REMOVED,
    RETIRED,
    SEARCHES,
    Alias,
    closed_gate,
    is_retired,
    state_of,
    unlisted,
)
from codewhale.catalog.registry import Catalog
from codewhale.catalog.search import ToolIndex
from codewhale.models.build import DIALECTS, build_dialect
from codewhale.models.dialects.base import ProviderSettings
from codewhale.repair.judge import judge
from codewhale.tools.base import declared

HEAD = """agent_close agent_eval agent_open apply_patch checklist_write edit_file exec_shell exec_shell_interact
exec_shell_wait fetch_url file_search git_diff git_log git_show git_status grep_files list_dir read_file run_tests
update_plan web_search write_file""".split()
ARCEE = "checklist_write file_search git_diff git_status grep_files list_dir read_file update_plan".split()
COMPACT = "agent_open checklist_write edit_file exec_shell grep_files read_file write_file".split()
CATALOG = Catalog.load()
RETIREMENTS = [
    ("exec_wait", "exec_shell_wait", "hidden"),
    ("exec_interact", "exec_shell_interact", "hidden"),
    ("tts", "speech", "hidden"),
    ("web.run", "web_run", "hidden"),
    ("read_mcp_resource", "mcp_read_resource", "hidden"),
    ("todo_write", "checklist_write", "deprecated"),
    ("todo_add", "checklist_add", "deprecated"),
    ("todo_update", "checklist_update", "deprecated"),
    ("todo_list", "checklist_list", "deprecated"),
]

FOLDER = Path(codewhale.tools.__path__[0])


def families() -> Iterator[type]:
    """Every class that declares tools."""
    for path in sorted(FOLDER.glob("[a-z]*.py")):
        module = importlib.import_module(f"codewhale.tools.{path.stem}")
        yield from (one for one in vars(module).values() if isinstance(one, type) and declared(one))


def test_the_profiles_are_the_agreed_names_and_the_two_searches() -> None:
    assert len(HEAD) == 22 and sorted(ACTIVE) == sorted([*HEAD, *SEARCHES]) and PROFILES["default"] == ACTIVE
    assert PROFILES["arcee"] == {*ARCEE, *SEARCHES} and len(ARCEE) == 8
    assert PROFILES["compact"] == {*COMPACT, "tool_search_tool_bm25"}
    assert len(PROFILES["intent"]) == 11 and PROFILES.keys() == HEAD_BYTES.keys()


def test_no_name_stands_in_two_places() -> None:
    assert frozenset() == ACTIVE & DEFERRED
    assert set(ALIASES) & (ACTIVE | DEFERRED) == set() == RETIRED & (ACTIVE | DEFERRED | set(ALIASES))
    assert set(ALIASES) == HIDDEN | DEPRECATED | REMOVED and frozenset() == HIDDEN & DEPRECATED == REMOVED


def test_the_manifest_of_retired_names() -> None:
    told = {(name, row.canonical, row.state) for name, row in ALIASES.items()}
    assert told == set(RETIREMENTS)
    for row in ALIASES.values():
        assert (row.since, row.removal, row.replays) == ("0.8.53", "TBD (>= 0.9.x)", True)
        assert row.canonical in ACTIVE | DEFERRED


def test_what_is_registered_is_what_is_listed_and_built() -> None:
    assert NOT_YET <= ACTIVE | DEFERRED
    assert set(CATALOG.names()) == (ACTIVE | DEFERRED) - NOT_YET
    assert unlisted(CATALOG.names()) == []
    assert unlisted(["read_file", "made_up", "exec_wait", "agent_spawn"]) == ["made_up", "exec_wait", "agent_spawn"]


@pytest.mark.parametrize(
    ("name", "state"),
    [("read_file", "active"), ("note", "deferred"), ("exec_wait", "hidden"), ("todo_add", "deprecated"), ("x", None)],
)
def test_state_of_a_name(name: str, state: str | None) -> None:
    assert state_of(name) == state


# ------------------------------------------------------------------ no two names for one thing


@pytest.mark.parametrize("profile", sorted(set(PROFILES) - {"intent"}))
def test_no_alias_and_no_twin_is_active(profile: str) -> None:
    assert set(ALIASES) & PROFILES[profile] == set()
    shown = {row.name for row in CATALOG.head_of(profile)}
    bodies: dict[str, str] = {}
    for family in families():
        for name, (_, _, function) in declared(family).items():
            if name in shown:
                body = f"{function.__module__}.{function.__qualname__}"
                assert bodies.setdefault(body, name) == name
    assert set(bodies.values()) == shown


@pytest.mark.parametrize("name", sorted(HIDDEN | DEPRECATED))
def test_a_retired_name_is_in_no_search_and_still_resolves(name: str) -> None:
    index = ToolIndex(CATALOG.rows.values())
    assert name not in index.pattern(name, 8) and name not in [hit for hit, _ in index.words(name, 100)]
    assert name not in CATALOG.closest(name)
    found, canonical = CATALOG.resolve(name), ALIASES[name].canonical
    if canonical in NOT_YET:
        assert found is None
    else:
        assert found is not None and (found.spec, found.alias) == (CATALOG.spec(canonical), name)


def test_a_removed_name_resolves_to_nothing() -> None:
    aliases = {"old_read": Alias("read_file", "removed", "0.8.53", "0.9.9", replays=False)}
    catalog = Catalog(CATALOG.rows.values(), aliases=aliases)
    assert catalog.resolve("old_read") is None and catalog.resolve("read_file") is not None
    for raw in ('{"path": "a"}', "{}", "{'path': 'a'"):
        verdict = judge("old_read", raw, catalog)
        assert verdict.error is not None and verdict.error.kind == "not_available" and verdict.arguments is None
        assert "removed in 0.9.9; use read_file" in verdict.error.message


def test_only_four_names_of_agents_may_ever_be_registered() -> None:
    named = {name for name in ACTIVE | DEFERRED if "agent" in name}
    assert named == {"agent_open", "agent_eval", "agent_close", "tool_agent"}
    texts = {node.value for path in FOLDER.glob("*.py") for node in ast.walk(ast.parse(path.read_text()))
             if isinstance(node, ast.Constant) and isinstance(node.value, str)}  # fmt: skip
    assert texts & (RETIRED - {"wait"}) == set()
    registered = {name for family in families() for name in declared(family)}
    assert [name for name in registered if is_retired(name)] == [] and "agent_open" in registered


# ------------------------------------------------------------------ gates


@pytest.mark.parametrize(
    ("model", "opens"),
    [
        ("deepseek-v4-flash", True),
        ("deepseek-v4-pro", True),
        ("deepseek-ai/DeepSeek-V4-Flash", True),
        ("deepseek-v3.2", False),
        ("trinity-large-thinking", False),
        ("", False),
    ],
)
def test_the_fast_lane_is_for_its_models(model: str, opens: bool) -> None:
    assert "tool_agent" in MODEL_GATES and "tool_agent" in DEFERRED
    assert (closed_gate("tool_agent", "", {}, model) == "") is opens
    assert all("tool_agent" not in names for names in PROFILES.values())


def test_a_gate_of_a_provider_opens_by_its_fact() -> None:
    assert closed_gate("fim_edit", "fim", {}, "m") == "a model that fills in the middle"
    assert closed_gate("fim_edit", "fim", {"fim": "deepseek"}, "m") == "" == closed_gate("read_file", "", {}, "m")


# ------------------------------------------------------------------ the head


@pytest.mark.parametrize("dialect", sorted(set(DIALECTS) - {"scripted"}))
@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_a_head_fits_its_budget_and_holds_what_is_built_of_it(profile: str, dialect: str) -> None:
    rows = CATALOG.head_of(profile)
    tools = build_dialect(dialect, ProviderSettings(dialect=dialect)).tools_json(rows)
    assert len(tools.encode()) <= HEAD_BYTES[profile]
    names = [row.name for row in rows]
    assert names == sorted(names)
    if profile == "intent":
        assert set(names) < PROFILES[profile]
    else:
        assert set(names) == PROFILES[profile] - NOT_YET


def test_the_count_of_the_head() -> None:
    counts = [len(CATALOG.head_of(name)) for name in ("default", "arcee", "compact", "intent")]
    assert counts == [24, 10, 8, 10]


def test_nothing_of_a_state_stands_in_a_schema_or_a_description() -> None:
    for row in CATALOG.rows.values():
        text = f"{row.description} {row.parameters}".lower()
        assert not [word for word in ("deprecat", "hidden", "deferred", "0.8.53") if word in text], row.name
        assert not [name for name in ALIASES if f"{name} " in text], row.name


def test_a_small_window_is_told_less_of_what_is_optional() -> None:
    short = {row.name: row for row in CATALOG.head_of("compact")}["exec_shell"]
    whole = CATALOG.rows["exec_shell"]
    assert short.description == whole.description
    assert short.parameters["properties"]["command"] == whole.parameters["properties"]["command"]
    assert "description" not in short.parameters["properties"]["background"]
    assert short.parameters["properties"].keys() == whole.parameters["properties"].keys()
