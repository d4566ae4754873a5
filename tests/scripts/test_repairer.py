"""What the scripted repairer reads from test output, and the server that lets it speak."""

import json
import sys
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from support.house import ROOT
from support.patience import HANG

sys.path.insert(0, str(ROOT / "scripts"))
from policy_server import Policy, PolicyServer, Turn
from repairer import Place, body, failing_test, frames, passed, unique_edit

OUTPUT = """F
____ test_pick ____
tests/test_pick.py:4: in test_pick
    assert pick([1]) == 1
src/pick.py:9: in pick
    return items[1]
E   IndexError: list index out of range
FAILED tests/test_pick.py::test_pick - IndexError: list index out of range
1 failed in 0.02s
"""


def told(code: int, stdout: str) -> str:
    """A run_tests result."""
    return json.dumps({"success": code == 0, "exit_code": code, "stdout": stdout, "stderr": ""})


def test_file_line_and_test_are_read_from_the_output() -> None:
    assert frames(told(1, OUTPUT)) == [("tests/test_pick.py", 4), ("src/pick.py", 9)]
    assert failing_test(told(1, OUTPUT)) == "tests/test_pick.py::test_pick"
    assert passed(told(0, "1 passed")) and not passed(told(1, OUTPUT)) and not passed("Error: no such tool")


def test_an_edit_names_lines_that_stand_once() -> None:
    before = "def a():\n    return 1\n\ndef b():\n    return 1\n"
    after = "def a():\n    return 1\n\ndef b():\n    return 2\n"
    search, replace = unique_edit(before, after)
    assert before.count(search) == 1 and before.replace(search, replace) == after
    assert unique_edit(after, before) == ("    return 2\n", "    return 1\n")


def test_a_body_ends_where_the_indent_does() -> None:
    text = "def a():\n    x = 1\n\n    return x\n\ndef b():\n    pass\n"
    assert body("m.py", text, 1) == Place("m.py", 1, 5)


def ask(server: PolicyServer, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The chunks that one request is answered with."""
    connection = HTTPConnection(urlsplit(server.base_url).netloc, timeout=HANG)
    connection.request("POST", "/v1/chat/completions", json.dumps({"messages": messages}))
    lines = connection.getresponse().read().decode().split("\n\n")
    connection.close()
    assert lines[-2] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-2]]


def called(chunks: list[dict[str, Any]]) -> list[str]:
    """Names of the tools that chunks call."""
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    return [call["function"]["name"] for delta in deltas for call in delta.get("tool_calls", [])]


def test_the_server_hands_results_to_the_policy_and_answers_a_retry_alike() -> None:
    seen: list[list[str]] = []

    def policy(words: str) -> Policy:
        seen.append((yield Turn(words, (("list_dir", {}),))))
        yield Turn("Done.")

    with PolicyServer(policy) as server:
        said = [{"role": "user", "content": "Look."}]
        begun = ask(server, said)
        assert called(begun) == ["list_dir"], begun
        said += [{"role": "assistant", "content": ""}, {"role": "tool", "tool_call_id": "x", "content": "a.txt"}]
        first, again = ask(server, said), ask(server, said)
    assert seen == [["a.txt"]] and first == again
    assert first[0]["choices"][0]["delta"]["content"] == "Done."
