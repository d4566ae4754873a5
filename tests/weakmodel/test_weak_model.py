"""Damaged answers of a weak model through the real program: what is to become of each, and the rules behind them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.machine import MAKES_FILES
from support.weakcases import DONE, Played, cases, figures, play, run_inside, run_program, sample, tree
from support.weakserver import Say, Seat, WeakServer

CASES = cases()
MORE = cases("more.json")
SHELL = {case.id for case in (*CASES, *MORE) if any(call["name"] == "exec_shell" for call in case.right)}
SESSIONS = ("P1", "P3", "P7", "P8", "P13c", "P14", "N4", "N7", "C5", "C7")
REFUSED = {"refused": "refused_with_useful_error", "told": "refused_with_useful_error"}
READ = {"calls": [{"name": "read_file", "arguments": '{"path": "notes.txt"}'}]}
Results = Mapping[str, Played]


def marked(rows: Sequence[Any]) -> list[Any]:
    """The cases as parameters; some want a command to make a folder."""
    return [pytest.param(case, id=case.id, marks=[MAKES_FILES] if case.id in SHELL else []) for case in rows]


@pytest.fixture(scope="module")
def server() -> Iterator[WeakServer]:
    """The endpoint of all runs."""
    with WeakServer() as server:
        yield server


@pytest.fixture(scope="module")
def played(server: WeakServer, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Every case once, at an endpoint that takes anything."""
    folder = tmp_path_factory.mktemp("lenient")
    return {case.id: play(case, server, folder, run=run_inside) for case in CASES}


@pytest.fixture(scope="module")
def strictly(server: WeakServer, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The ten damages that end sessions elsewhere, at an endpoint that takes nothing unsound."""
    folder = tmp_path_factory.mktemp("strict")
    return {case.id: play(case, server, folder, True, run_inside) for case in CASES if case.id in SESSIONS}


@pytest.mark.parametrize("case", marked(CASES))
def test_each_damage_comes_to_what_it_should(case: Any, played: Results) -> None:
    assert played[case.id].outcome == REFUSED.get(case.label, case.label), played[case.id].told


@pytest.mark.parametrize("case", marked(MORE))
def test_more_damage_comes_to_what_it_should_at_a_strict_endpoint(
    case: Any, server: WeakServer, tmp_path: Path
) -> None:
    found = play(case, server, tmp_path, True, run_inside)
    assert (found.outcome, found.rejected) == (REFUSED.get(case.label, case.label), ""), found.told


@pytest.mark.parametrize("name", ["P3", "P13b", "C1", "T1"])
def test_the_program_does_what_the_application_does(
    name: str, server: WeakServer, tmp_path: Path, played: Results
) -> None:
    case = next(case for case in CASES if case.id == name)
    assert play(case, server, tmp_path, True, run_program)[:3] == played[name][:3]


def test_the_score_is_within_its_bounds(played: Results) -> None:
    score = figures(played, iter(CASES))
    assert score["cases"] == 58 and score["wrong"] == 0
    assert (score["success"], score["strict"]) >= (95, 93) and score["no_extra_turn"] >= 60


# ---------------------------------------------------------------------- the rules


@pytest.mark.parametrize("name", ["P13a", "P13b", "P13c", "P13d", "C7"])
def test_what_is_cut_never_runs_and_the_model_is_told_what_came_and_to_split_it(name: str, played: Results) -> None:
    case = next(case for case in CASES if case.id == name)
    call = case.sends["calls"][0]
    assert f"{len(call['arguments'])} characters" in played[name].told
    assert call["name"] in played[name].told and "smaller pieces" in played[name].told


@pytest.mark.parametrize("name", ["P8", "P12"])
def test_a_guessed_reading_of_a_write_is_proposed_and_not_run(name: str, played: Results) -> None:
    case = next(case for case in CASES if case.id == name)
    assert f"Next call: write_file {json.dumps(case.right[0]['arguments'], separators=(',', ':'))}" in played[name].told


def test_a_guessed_reading_of_a_read_runs_and_is_said_aloud(server: WeakServer, tmp_path: Path) -> None:
    damaged = {"calls": [{"name": "grep_files", "arguments": '{"pattern": "MARK_APP" "path": "src"}'}]}
    seat, code, _ = conversation(server, tmp_path, [damaged, {"text": DONE}])
    told = seat.requests[1][-1]["content"]
    assert code == 0 and "NAME  # MARK_APP" in told
    assert 'was read as grep_files {"pattern":"MARK_APP","path":"src"}' in told


def test_a_bad_escape_keeps_its_backslash(played: Results) -> None:
    assert played["P9"].outcome == "executed_right"


def test_unreadable_arguments_are_told_by_place_and_schema_and_never_emptied(
    server: WeakServer, tmp_path: Path
) -> None:
    raw = '{"path": "made.txt", "content": }} ] {'
    damaged = {"calls": [{"name": "write_file", "arguments": raw}]}
    seat, code, _ = conversation(server, tmp_path, [damaged, {"text": DONE}])
    told = seat.requests[1][-1]["content"]
    assert code == 0 and tree(tmp_path / "workspace") == tree(sample(tmp_path / "untouched"))
    assert "character" in told and '"content": }} ] {' in told and "`content`" in told
    assert "missing" not in told


@pytest.mark.parametrize("name", SESSIONS)
def test_a_strict_endpoint_ends_no_session(name: str, strictly: Results) -> None:
    found = strictly[name]
    case = next(case for case in CASES if case.id == name)
    assert (found.rejected, found.killed, found.code) == ("", False, 0)
    assert found.outcome == REFUSED.get(case.label, case.label)


def test_what_the_model_wrote_stays_in_the_log_beside_what_is_sent(server: WeakServer, tmp_path: Path) -> None:
    raw = "{'path': 'notes.txt'}"
    damaged = {"calls": [{"name": "functions.read_file:0", "arguments": raw}]}
    seat, _, _ = conversation(server, tmp_path, [damaged, {"text": DONE}])
    (sent,) = seat.requests[1][-2]["tool_calls"]
    assert sent["function"] == {"name": "read_file", "arguments": '{"path":"notes.txt"}'}
    (log,) = (tmp_path / "state").rglob("*.jsonl")
    assert raw in log.read_text() and "functions.read_file:0" in log.read_text()


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("", '{"path": "notes.txt"}', "read_file"),
        ("frobnicate", "{}", "read_file"),
        ("wrte_fle", '{"path": "made.txt", "content": "x"}', 'Next call: write_file {"path":"made.txt","content":"x"}'),
        ("write_file_to_disk_now", "{}", "write_file takes `path` (a string), `content` (a string)"),
    ],
)
def test_a_name_that_is_none_is_answered_with_the_right_one_and_its_schema(
    server: WeakServer, tmp_path: Path, name: str, arguments: str, told: str
) -> None:
    damaged = {"calls": [{"name": name, "arguments": arguments}]}
    seat, code, _ = conversation(server, tmp_path, [damaged, {"text": DONE}], strict=True)
    answer = seat.requests[1][-1]["content"]
    assert code == 0 and told in answer
    assert tree(tmp_path / "workspace") == tree(sample(tmp_path / "untouched"))


@pytest.mark.parametrize("name", ["N1a", "N1b", pytest.param("N3a", marks=MAKES_FILES), "N3b", "N3c", "N4", "N5"])
def test_a_name_that_was_understood_costs_no_turn(name: str, played: Results) -> None:
    assert (played[name].outcome, played[name].requests) == ("executed_right", 2)


@pytest.mark.parametrize("name", ["A1a", "A1b", "A1c", "A2", "A3", "A4a", "A4b", "A5", "A7", "A8", "A9"])
def test_arguments_that_mean_one_thing_cost_no_turn(name: str, played: Results) -> None:
    assert (played[name].outcome, played[name].requests) == ("executed_right", 2)


def test_calls_as_text_are_run_only_where_the_endpoint_is_known_for_them(server: WeakServer, tmp_path: Path) -> None:
    written = next(case for case in CASES if case.id == "T2").sends
    script = [written, {"text": DONE}]
    seat, code, _ = conversation(server, tmp_path, script, facts="text_calls = false")
    assert code == 0 and not (tmp_path / "workspace" / "made.txt").exists()
    assert "Text is not run" in seat.requests[1][-1]["content"]


@pytest.mark.parametrize("said", [{}, {"reasoning": "I should read the notes."}])
def test_an_empty_answer_is_told_once_and_then_fails(server: WeakServer, tmp_path: Path, said: Say) -> None:
    seat, code, out = conversation(server, tmp_path, [said], strict=True)
    assert (len(seat.requests), seat.rejected, code, out["status"]) == (2, "", 1, "failed")
    assert "neither an answer nor a tool call" in out["error"]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"text": "I'll read notes.txt now."}, "announced a tool call and made none"),
        ({"text": "Procedo a realizar el cambio."}, "announced a tool call and made none"),
        ({"text": "Let me look at the code:", "finish": "tool_calls"}, "announced a tool call and made none"),
    ],
)
def test_an_ending_that_is_none_is_told_three_times_and_then_fails(
    server: WeakServer, tmp_path: Path, said: Say, reason: str
) -> None:
    seat, code, out = conversation(server, tmp_path, [said], strict=True)
    assert (len(seat.requests), seat.rejected, code) == (4, "", 1)
    assert "worked example" in seat.requests[2][-1]["content"] and "last reminder" in seat.requests[3][-1]["content"]
    assert reason in out["error"] and out["status"] == "failed"


@pytest.mark.parametrize("name", ["C2a", "C2b"])
def test_a_loop_is_noted_at_three_blocked_at_five_and_stopped_at_eight(
    server: WeakServer, tmp_path: Path, name: str
) -> None:
    case = next(case for case in CASES if case.id == name)
    script = [{"calls": [{**case.sends["calls"][0], "id": f"call_{turn}"}]} for turn in range(12)]
    seat, code, out = conversation(server, tmp_path, script)
    told = [request[-1]["content"] for request in seat.requests[1:]]
    assert ["loop guard" in text for text in told] == [False, False, True, True, True, True, True]
    assert ["was not run" in text for text in told] == [False] * 4 + [True] * 3
    assert code == 1 and "8 times with the same outcome" in out["error"]


def test_nothing_of_an_answer_that_broke_off_has_run(server: WeakServer, tmp_path: Path) -> None:
    whole = {"name": "write_file", "arguments": '{"path": "made.txt", "content": "x"}'}
    other = {"name": "exec_shell", "arguments": '{"command": "mkdir made"}'}
    seat, code, out = conversation(server, tmp_path, [{"calls": [whole, other], "breaks": True}])
    assert tree(tmp_path / "workspace") == tree(sample(tmp_path / "untouched"))
    assert (len(seat.requests), code, out["tools"]) == (2, 75, [])


@pytest.mark.parametrize("name", ["C5", "C8", "C9", "C10", "P16"])
def test_calls_are_told_apart_however_they_are_streamed(name: str, played: Results) -> None:
    assert (played[name].outcome, played[name].requests) == ("executed_right", 2)


def conversation(
    server: WeakServer, home: Path, script: list[Say], *, strict: bool = False, facts: str = ""
) -> tuple[Seat, int, dict[str, Any]]:
    """The program against these answers, the last one repeated: its seat, exit code and report."""
    seat, url = server.seat(lambda messages, number: script[min(number, len(script)) - 1], strict)
    done = run_inside(home, sample(home / "workspace"), url, facts)
    return seat, done.code, dict(done.report)
