"""What becomes of a call by its text alone: run, run and said aloud, or refused with the call to make next."""

import json
from typing import Any

import pytest

from codewhale.catalog.registry import Catalog
from codewhale.catalog.schema import check
from codewhale.protocol.tools import Effect, ToolSpec
from codewhale.repair.judge import Verdict, invalid, judge, reads_only, signature

CATALOG = Catalog.load()


def judged(name: str, raw: str, *, cut: bool = False) -> Verdict:
    """A call judged; a refusal has all its parts, and its next call, where there is one, is of that tool and fits."""
    verdict = judge(name, raw, CATALOG, cut=cut)
    if verdict.error is not None:
        error = verdict.error
        assert error.message and error.field and error.expected and error.received
        if error.fix is not None:
            assert error.fix.name == verdict.name
            assert check(error.fix.arguments, CATALOG.rows[error.fix.name].parameters) == []
    return verdict


def ran(verdict: Verdict) -> tuple[str, dict[str, Any] | None, str, bool]:
    """A call that may run: its tool, arguments, codes and whether a reading was chosen."""
    assert verdict.error is None, verdict.error
    return verdict.name, verdict.arguments, " ".join(verdict.repairs), verdict.lossy


@pytest.mark.parametrize(
    ("name", "raw", "told"),
    [
        ("read_file", '{"path": "a"}', ("read_file", {"path": "a"}, "", False)),
        (
            "read_file",
            "```json\n{'file_path': 'a', 'limit': '5',}\n```",
            ("read_file", {"path": "a", "max_lines": 5}, "N3 P5 P3 P1 A1", False),
        ),
        ("ReadFile", '{"path": "a"}', ("read_file", {"path": "a"}, "N1", False)),
        ("functions.read_file:0", '{"path": "a"}', ("read_file", {"path": "a"}, "N4", False)),
        ("list_dir", "", ("list_dir", {}, "", False)),
        ("list_dir", "null", ("list_dir", {}, "P14", False)),
        ("list_dir", '"src"', None),
        ("read_file", '"src/a"', ("read_file", {"path": "src/a"}, "P15", True)),
        ("read_file", '[{"path": "a"}]', ("read_file", {"path": "a"}, "A12", False)),
        ("read_file", '[{"path": "a"}, {"path": "a"}]', ("read_file", {"path": "a"}, "P10", False)),
        ("grep_files", '{"pattern": "say "hi" now"}', ("grep_files", {"pattern": 'say "hi" now'}, "P8", True)),
        ("write_file", '{"path": "a", "content": "b"', ("write_file", {"path": "a", "content": "b"}, "P2", False)),
        (
            "exec_shell",
            '{"command": "grep -E \'\\d+\' a"}',
            ("exec_shell", {"command": "grep -E '\\d+' a"}, "P9", False),
        ),
    ],
)
def test_calls_that_run(name: str, raw: str, told: tuple[Any, ...] | None) -> None:
    if told is None:
        assert judged(name, raw).error is not None
    else:
        assert ran(judged(name, raw)) == told


@pytest.mark.parametrize(
    ("name", "raw"),
    [
        ("write_file", '{"path": "a", "content": "say "hi" now"}'),
        ("exec_shell", '{"command": "ls" "cwd": "src"}'),
        ("write_file", '{"path": "a", "content": "C:\\new\\dir"}'),
        ("write_file", '{"path": "a", "content": "x", "path": "b"}'),
    ],
)
def test_a_chosen_reading_is_proposed_where_the_tool_changes_things(name: str, raw: str) -> None:
    verdict = judged(name, raw)
    assert verdict.error is not None and verdict.lossy and verdict.arguments is not None
    assert verdict.error.fix is not None
    assert (verdict.error.fix.name, verdict.error.fix.arguments) == (name, verdict.arguments)
    assert "send it as valid JSON" in verdict.error.message


@pytest.mark.parametrize(
    ("name", "raw", "field", "kept"),
    [
        ("exec_shell", '{"command": "ls", "shell_kind": "zsh"}', "shell_kind", {"command": "ls"}),
        (
            "edit_file",
            '{"path": "a", "search": "x", "replace": "y", "replace_all": 1}',
            "replace_all",
            {"path": "a", "search": "x", "replace": "y", "replace_all": True},
        ),
    ],
)
def test_a_guess_at_an_argument_is_told_by_its_name(name: str, raw: str, field: str, kept: dict[str, Any]) -> None:
    error = judged(name, raw).error
    assert error is not None and error.fix is not None
    assert (error.field, error.fix.name, error.fix.arguments) == (field, name, kept)


def test_a_number_is_not_proposed_as_a_text() -> None:
    error = judged("exec_shell", '{"command": 7}').error
    assert error is not None and error.field == "command" and error.fix is None
    assert ran(judged("grep_files", '{"pattern": 7}'))[1:] == ({"pattern": "7"}, "A1", True)


@pytest.mark.parametrize("tool", ["write_file", "read_file"])
@pytest.mark.parametrize("raw", ['{"path": "a", "content": "x', '{"path": "a",', '{"path":', '{"path": "a'])
def test_what_is_cut_off_is_never_run(tool: str, raw: str) -> None:
    error = judged(tool, raw).error
    assert error is not None and f"{len(raw)} characters" in error.message and "smaller pieces" in error.message


def test_an_answer_at_its_length_limit_runs_nothing() -> None:
    for raw in ('{"path": "a", "content": "x"}', '{"path": "a", "content": "x"', ""):
        error = judged("write_file", raw, cut=True).error
        assert error is not None and (not raw or "hit its length limit" in error.message)


@pytest.mark.parametrize("raw", ['{"path" "a"}', "no object", '{"path": "a"}{"path": "b"}', '{"path": "\\ud83d"}'])
def test_what_cannot_be_read_is_shown_with_its_place(raw: str) -> None:
    error = judged("read_file", raw).error
    assert error is not None and error.field == "arguments" and "not valid JSON at character" in error.received
    assert "`path`" in error.message


@pytest.mark.parametrize(
    ("raw", "field", "code"),
    [
        ("", "path", "missing_field"),
        ("{}", "path", "missing_field"),
        ('{"path": null}', "path", "missing_field"),
        ('{"path": "a", "start_line": "five"}', "start_line", "invalid_input"),
        ('{"path": "a", "start_line": -1}', "start_line", "invalid_input"),
        ("5.5.5", "arguments", "invalid_input"),
        ("[1, 2]", "arguments", "invalid_input"),
    ],
)
def test_arguments_that_do_not_fit(raw: str, field: str, code: str) -> None:
    error = judged("read_file", raw).error
    assert error is not None and (error.field, error.kind) == (field, code)


def test_the_same_call_less_its_fault_where_that_says_all() -> None:
    error = judged("read_file", '{"path": "a", "start_line": "five"}').error
    assert error is not None and error.fix is not None
    assert (error.fix.name, error.fix.arguments) == ("read_file", {"path": "a"})


def test_nothing_for_a_tool_that_writes() -> None:
    for raw in ("", "  "):
        error = judged("apply_patch", raw).error
        assert error is not None and (error.kind, error.received) == ("missing_field", "nothing")


@pytest.mark.parametrize("name", ["", "fly_to_the_moon", "x" * 5000, "\x1b]0;x\x07"])
def test_names_that_mean_nothing(name: str) -> None:
    verdict = judged(name, "{}")
    assert verdict.error is not None and (verdict.error.kind, verdict.error.field) == ("not_available", "name")
    assert "read_file" in verdict.error.message and verdict.spec is None


def test_a_remark_in_a_structure_that_was_repaired_is_a_choice() -> None:
    raw = '{"plan": {"step": "One", "status": "pending", "explanation": "why"}'
    assert judged("update_plan", raw).error is not None


def test_tools_and_their_arguments_in_words() -> None:
    assert reads_only(CATALOG.rows["read_file"]) and not reads_only(CATALOG.rows["update_plan"])
    assert signature(CATALOG.rows["write_file"]).startswith("`path` (a string")
    assert signature(CATALOG.rows["diagnostics"]) == "no arguments"
    problems = check({"lines": 1}, CATALOG.rows["read_file"].parameters)
    assert "The call had: lines." in invalid(problems, {"lines": 1}, CATALOG.rows["read_file"]).message


def test_every_call_comes_back_from_its_json() -> None:
    for name, spec in CATALOG.rows.items():
        if not spec.parameters.get("required"):
            continue
        verdict = judged(name, json.dumps({}))
        assert verdict.error is not None and verdict.error.kind == "missing_field"


def test_a_member_that_may_have_moved_with_a_bracket_is_a_choice() -> None:
    spec = ToolSpec(
        name="plot",
        family="",
        description="",
        parameters={
            "type": "object",
            "properties": {"range": {"type": "object"}, "unit": {"type": "string"}},
            "required": ["range"],
            "additionalProperties": False,
        },
        effects=(Effect.EXECUTES,),
    )
    catalog = Catalog([spec])
    assert judge("plot", '{"range": {"low": "1", "unit": "cm"}', catalog).lossy
    told = judge("plot", '{"range": {"low": "1"}, "unit": "cm"', catalog)
    assert (told.arguments, told.lossy, told.error) == ({"range": {"low": "1"}, "unit": "cm"}, False, None)


def test_a_changing_call_without_its_last_closer_runs_only_where_nothing_more_could_have_come() -> None:
    whole, cut = judged("write_file", '{"path": "a", "content": "b"'), judged("exec_shell", '{"command": "rm -rf keep"')
    assert (whole.error, whole.arguments) == (None, {"path": "a", "content": "b"})
    assert cut.error is not None and "may be cut (25 characters" in cut.error.message
    assert judged("grep_files", '{"pattern": "a"').error is None
