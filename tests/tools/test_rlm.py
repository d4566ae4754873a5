"""Recursive sessions through a turn: opened over a source, run in rounds, configured, and ended."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.events import CallFinished, RequestSent, ValueKept
from codewhale.protocol.modes import Authority
from codewhale.protocol.ops import RunCommand
from codewhale.testing import harness
from support.recursive import Models, evaluated, opened, parsed, rounds

COUNT = "answers = sub_query_all('How many lines say error? Answer with a number only.', chunk(2000))\n"


def written(workspace: Path, text: str | bytes = "", name: str = "source.txt") -> Path:
    path = workspace / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def log(lines: int = 2_000) -> str:
    return "".join(f"{n} {'error' if n % 7 == 0 else 'fine'} in module {n % 13}\n" for n in range(lines))


def errors(prompt: str) -> str:
    """A model that counts the lines that say error in what it was shown."""
    return str(len(re.findall(r"^\d+ error", prompt, re.MULTILINE)))


async def test_a_worked_example_counts_over_the_whole_source(home: Path, workspace: Path) -> None:
    written(workspace, log())
    (card, result), models, events = await rounds(
        home, workspace, [opened(), evaluated(COUNT + "finalize(sum(int(a) for a in answers))")], errors
    )
    assert "error" not in card, card
    assert card["length"] == len(log()) and card["preview_500"] == log()[:500] and len(card["sha256"]) == 64
    assert result["final_value"] == 286 and result["final"]["type"] == "number" and not result["had_error"]
    assert result["coverage"]["percent"] == 100.0 and "note" not in result
    assert result["rpc_count"] == len(models.questions) > 16
    assert result["limits"]["sub_queries"] == {"used": len(models.questions), "max": 200}
    kept = [event.handle for event in events if isinstance(event, ValueKept)]
    assert [one.name for one in kept] == ["final_0"] or [one.name for one in kept] == ["final_1"]


async def test_an_answer_from_a_part_says_what_nothing_has_seen(home: Path, workspace: Path) -> None:
    written(workspace, log())
    code = "parts = chunk(2000)\nfinalize(sub_query_batch('How many?', parts[:3]))"
    (_, result), _, _ = await rounds(home, workspace, [opened(), evaluated(code)], errors)
    assert 0 < result["coverage"]["percent"] < 100 and result["coverage"]["gaps"][0][0] > 0
    assert "whole source" in result["note"]


async def test_a_second_run_asks_no_model(home: Path, workspace: Path) -> None:
    written(workspace, log())
    calls = [opened(), evaluated(COUNT + "finalize(answers)")]
    (_, first), models, _ = await rounds(home, workspace, calls, errors)
    (_, again), later, _ = await rounds(home, workspace, calls, errors)
    assert len(models.questions) > 16 and later.questions == []
    assert again["final_value"] == first["final_value"] and again["coverage"] == first["coverage"]


async def test_variables_stay_and_long_output_becomes_a_handle(home: Path, workspace: Path) -> None:
    written(workspace, log())
    calls = [
        opened(),
        evaluated("kept = SOURCE[:5]\nprint('x' * 5000)"),
        evaluated("print(kept)\n_context == SOURCE and content == _ctx"),
        evaluated("print('y' * 5000)"),
        evaluated("context"),
    ]
    (_, first, second, third, unbound), _, _ = await rounds(home, workspace, calls)
    assert {"name": "kept", "type": "str", "size": 5} in first["new_vars"]
    assert len(first["stdout_preview"]) == 1000 and first["stdout_handle"]["length"] >= 5000
    assert log()[:5] in second["stdout_preview"] and "True" in second["stdout_preview"]
    assert third["stdout_handle"]["name"] != first["stdout_handle"]["name"]
    assert unbound["had_error"] and unbound["error"]["kind"] == "NameError"


async def test_the_log_holds_no_text_of_the_source(home: Path, workspace: Path) -> None:
    written(workspace, log())
    _, _, events = await rounds(home, workspace, [opened(), evaluated(COUNT)], errors)
    questions = [event for event in events if isinstance(event, RequestSent) and event.purpose == "question"]
    assert len(questions) > 16
    assert not any("in module" in event.extra for event in questions)
    assert all(json.loads(event.extra)["recipe"]["span"] for event in questions)


async def test_a_round_that_fails_leaves_the_session_usable(home: Path, workspace: Path) -> None:
    written(workspace, log())
    calls = [opened(), evaluated("1 / 0"), evaluated("import os\nos._exit(3)"), evaluated("print(len(SOURCE))")]
    (_, failed, ended, after), _, _ = await rounds(home, workspace, calls)
    assert failed["error"]["kind"] == "ZeroDivisionError" and "line 1" in failed["error"]["traceback"]
    assert ended["had_error"] and "begins anew" in ended["state_lost"]
    assert after["stdout_preview"].strip() == str(len(log())) and "without earlier variables" in after["state_lost"]


async def test_what_cannot_be_asked_fills_its_slot(home: Path, workspace: Path) -> None:
    written(workspace, log(50))
    code = "a = sub_query_batch('', ['x'])\nprint(a[0], a.errors[0].kind)"
    (_, result), models, _ = await rounds(home, workspace, [opened(), evaluated(code)])
    assert "[sub-query failed: prompt: the prompt is empty" in result["stdout_preview"] and models.questions == []
    assert result["failed_sub_queries"] == 1


async def test_the_transcript_opens_as_a_source_without_thoughts(home: Path, workspace: Path) -> None:
    def thinking(request: dict[str, Any]) -> dict[str, Any]:
        return {"reasoning": "a secret thought", "calls": [{"name": "rlm_session_objects", "arguments": {}}]}

    calls: list[Any] = [
        ("rlm_open", {"name": "t", "session_object": "session://active/transcript"}),
        evaluated("print('secret thought' in SOURCE, 'redacted' in SOURCE, 'Go' in SOURCE)", "t"),
        ("rlm_open", {"name": "u", "session_object": "session://active/latest_user"}),
        evaluated("print(SOURCE)", "u"),
    ]
    models = Models(calls, lambda prompt: "yes")
    async with harness(home, workspace, [thinking, *[models] * 9]) as stage:
        events = await stage.turn("Go")
    objects, _, seen, _, user = [parsed(one) for one in events if isinstance(one, CallFinished)]
    assert {"session", "system_prompt", "transcript", "message"} == {one["kind"] for one in objects["objects"]}
    assert "secret thought" not in json.dumps(objects)
    assert seen["stdout_preview"].split() == ["False", "True", "True"] and user["stdout_preview"].strip() == "Go"


async def test_settings_hold_and_a_closed_session_is_gone(home: Path, workspace: Path) -> None:
    written(workspace, log())
    calls: list[Any] = [
        opened(),
        ("rlm_configure", {"name": "s", "output_feedback": "metadata", "round_seconds": 10, "temperature": 0.4}),
        evaluated("print('x')\nsub_query('How warm?')"),
        ("rlm_close", {"name": "s"}),
        evaluated("1"),
    ]
    (_, configured, quiet, closed, gone), _, events = await rounds(home, workspace, calls)
    assert configured["current_config"]["round_seconds"] == 10
    assert "stdout_preview" not in quiet and quiet["stdout_handle"]["repr_preview"]
    (asked,) = [one for one in events if isinstance(one, RequestSent) and one.purpose == "question"]
    assert json.loads(asked.extra)["temperature"] == 0.4
    assert (closed["rounds"], closed["rpc_count"]) == (1, 1)
    assert "no recursive session 's' (none is open)" in gone["error"]


async def test_more_sub_queries_are_a_matter_of_the_user(home: Path, workspace: Path) -> None:
    written(workspace, log())
    fewer: Any = ("rlm_configure", {"name": "s", "max_sub_queries": 3})
    more: Any = ("rlm_configure", {"name": "s", "max_sub_queries": 1000})
    (_, low, high, result), _, _ = await rounds(home, workspace, [opened(), fewer, more, evaluated(COUNT)], errors)
    assert low["current_config"]["max_sub_queries"] == high["current_config"]["max_sub_queries"] == 3
    assert "sub_queries` raises it" in high["note"]
    assert result["limits"]["sub_queries"] == {"used": 3, "max": 3} and result["failed_sub_queries"] > 3


async def test_sub_rlm_works_with_code_of_its_own(home: Path, workspace: Path) -> None:
    written(workspace, log())

    def answer(prompt: str) -> str:
        if "Python session in which SOURCE" in prompt:
            return "```python\nfinalize(sum(line.count('error') for line in SOURCE.splitlines()))\n```"
        return "plain"

    calls = [opened(), evaluated("print(sub_rlm('How many errors?', SOURCE[:600]))")]
    (_, result), _, _ = await rounds(home, workspace, calls, answer)
    assert result["stdout_preview"].strip() == str(log()[:600].count("error"))
    nothing = evaluated("print(sub_rlm('How many errors?', SOURCE[5:5]), sub_rlm('How many errors?'))")
    (_, result), _, _ = await rounds(home, workspace, [opened(), nothing], answer)
    assert result["stdout_preview"].split() == ["0", str(log().count("error"))]
    calls.insert(1, ("rlm_configure", {"name": "s", "sub_rlm_max_depth": 0}))
    (_, _, result), _, _ = await rounds(home, workspace, calls, answer)
    assert result["stdout_preview"].strip() == "plain"


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("rlm_open", {}, "exactly one source"),
        ("rlm_open", {"file_path": "source.txt", "content": "x"}, "got file_path and content"),
        ("rlm_open", {"file_path": "  "}, "exactly one source"),
        ("rlm_open", {"file_path": "absent.txt"}, "absent.txt"),
        ("rlm_open", {"file_path": "../outside"}, "outside"),
        ("rlm_open", {"session_object": "session://active/nothing"}, "rlm_session_objects lists them"),
        ("rlm_open", {"content": "x" * 200_001}, "200,000"),
        ("rlm_eval", {"name": "nobody", "code": "1"}, "no recursive session 'nobody'"),
        ("rlm_eval", {"name": "s", "code": ""}, "code"),
        ("rlm_configure", {"name": "s", "sub_rlm_max_depth": 4}, "sub_rlm_max_depth"),
        ("rlm_configure", {"name": "s", "sub_query_timeout_secs": 601}, "sub_query_timeout_secs"),
        ("rlm_close", {"name": "nobody"}, "no recursive session"),
    ],
)
async def test_bad_input_says_what_to_send(
    home: Path, workspace: Path, name: str, arguments: dict[str, Any], words: str
) -> None:
    written(workspace, "text")
    results, _, _ = await rounds(home, workspace, [opened(), (name, arguments)])
    assert words in results[1]["error"]


async def test_a_name_is_taken_once_and_there_are_eight(home: Path, workspace: Path) -> None:
    written(workspace, "text")
    calls = [opened(), opened(), *[opened(name=f"n{n}") for n in range(8)]]
    results, _, _ = await rounds(home, workspace, calls)
    assert "named 's' is open" in results[1]["error"] and "8 recursive sessions are open" in results[-1]["error"]
    assert all("id" in one for one in results[2:-1])


async def test_an_output_too_large_for_the_window_names_the_call_that_opens_it(home: Path, workspace: Path) -> None:
    written(workspace, "".join(f"{n} needle\n" for n in range(20_000)), "big.txt")
    found: list[CallFinished] = []

    def root(request: dict[str, Any]) -> dict[str, Any]:
        results = [one["content"] for one in request["messages"] if one["role"] == "tool"]
        if not results:
            return {"calls": [{"name": "exec_shell", "arguments": {"command": "cat big.txt"}}]}
        if len(results) == 1:
            (arguments,) = re.findall(r"rlm_open (\{.*?\})", results[0])
            return {"calls": [{"name": "rlm_open", "arguments": {**json.loads(arguments), "name": "s"}}]}
        if len(results) == 2:
            return {"calls": [{"name": "rlm_eval", "arguments": {"name": "s", "code": "finalize(len(SOURCE))"}}]}
        return {"text": "Done."}

    async with harness(home, workspace, root, window=32_000) as stage:
        found = [event for event in await stage.turn("Go") if isinstance(event, CallFinished)]
    assert len(found) == 3, [one.content[-900:] for one in found]
    card, result = parsed(found[1]), parsed(found[2])
    assert card["type"] == "output" and result["final_value"] == card["length"] > 200_000


async def test_an_output_that_the_window_holds_names_no_session(home: Path, workspace: Path) -> None:
    written(workspace, "".join(f"{n} needle\n" for n in range(20_000)), "big.txt")
    calls = [{"calls": [{"name": "exec_shell", "arguments": {"command": "cat big.txt"}}]}, {"text": "ok"}]
    async with harness(home, workspace, calls) as stage:
        (found,) = [event for event in await stage.turn("Go") if isinstance(event, CallFinished)]
    assert "retrieve_tool_result" in found.content and "rlm_open" not in found.content


async def test_an_attached_source_opens_by_its_name(home: Path, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "beside").mkdir()
    place = written(tmp_path / "beside", "one\ntwo\n", "rivers.txt")
    models = Models([opened("rivers"), evaluated("finalize(SOURCE)")], errors)
    async with harness(home, workspace, models) as stage:
        session = await stage.open(authority=Authority.PERSON)
        done = await stage.client.submit(RunCommand(session, f"/context attach {place} as rivers"))
        assert done.ok, done.text
        events = await stage.turn("Go", session)
    found = [parsed(event) for event in events if isinstance(event, CallFinished)]
    assert found[1]["final_value"] == "one\ntwo\n", found
