"""Calls in forms that are not run: each is noticed, with the call as far as it can be made out, and code that is shown
with words behind it is none of them."""

import json

import pytest

from codewhale.catalog.registry import Catalog
from codewhale.repair.repairer import CallRepairer
from support.patience import Moment
from support.writtencalls import EDIT, READ, SEARCH, SHELL, STANDING, WRITE, Call, shown

REPAIR = CallRepairer(Catalog.load())


def js(call: Call, name: str = "name", arguments: str = "arguments") -> str:
    return json.dumps({name: call[0], arguments: call[1]}, ensure_ascii=False)


def keywords(call: Call) -> str:
    return f"{call[0]}({', '.join(f'{key}={value!r}' for key, value in call[1].items())})"


FORMS = {
    "fenced-json": lambda call: f"```json\n{js(call)}\n```",
    "fenced-json-bare": lambda call: f"```\n{js(call, arguments='parameters')}\n```",
    "fenced-open": lambda call: f"```json\n{js(call)}",
    "fenced-markup": lambda call: f"```xml\n{STANDING['hermes']([call])}\n```",
    "fenced-react": lambda call: f"Action:\n```json\n{js(call, 'action', 'action_input')}\n```",
    "tool-code": lambda call: f"```tool_code\n{keywords(call)}\n```",
    "tool-code-print": lambda call: f"```tool_code\nprint(default_api.{keywords(call)})\n```",
    "json": js,
    "json-react": lambda call: js(call, "action", "action_input"),
    "react": lambda call: f"Action: {call[0]}\nAction Input: {json.dumps(call[1], ensure_ascii=False)}",
    "harmony": lambda call: f"assistantcommentary to=functions.{call[0]} json{json.dumps(call[1], ensure_ascii=False)}",
    "kimi": lambda call: f"functions.{call[0]}:0{json.dumps(call[1], ensure_ascii=False)}",
    "name-json": lambda call: f"{call[0]}{json.dumps(call[1], ensure_ascii=False)}",
    "upper": lambda call: f"<TOOL_CALL>\n{js(call)}\n</TOOL_CALL>",
    "mid-text": lambda call: f"{STANDING['qwen-coder']([call])}\n\nNow I wait.",
    "two": lambda call: f"{STANDING['hermes']([call])}\n\nThen again.\n\n{STANDING['hermes']([call])}",
}
LEADS = ("", "Let me do it:\n", "Ich mache das jetzt.\n\n", "我现在来做：\n")


@pytest.mark.parametrize("form", FORMS)
def test_a_call_in_any_form_is_made_out(form: str) -> None:
    for call in (READ, SEARCH, WRITE, EDIT, SHELL):
        for lead in LEADS:
            found = REPAIR.looks_like_call(lead + FORMS[form](call))
            assert found is not None, lead + FORMS[form](call)
            verdict = REPAIR.judge(found.name, found.arguments)
            assert (verdict.name, verdict.arguments) == call, found


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("Run this:\n```bash\npytest -q\n```", "exec_shell", {"command": "pytest -q"}),
        ("```\n$ pytest -q\n```", "exec_shell", {"command": "pytest -q"}),
        (
            "*** Begin Patch\n*** Delete File: a.py\n*** End Patch",
            "apply_patch",
            {"patch": "*** Begin Patch\n*** Delete File: a.py\n*** End Patch\n"},
        ),
    ],
)
def test_commands_and_patches_are_calls_of_their_tools(text: str, name: str, arguments: dict[str, str]) -> None:
    for lead in LEADS:
        found = REPAIR.looks_like_call(lead + text)
        assert found is not None and (found.name, json.loads(found.arguments)) == (name, arguments)


@pytest.mark.parametrize(
    "text",
    ["I will.\n</tool_call>", "[TOOL_CALL]", "<tool_call>read it</tool_call>", "<invoke>\n</invoke>",
     '<tool_call>{"name": "frobnicate", "arguments": {}}</tool_call>', "<｜tool▁calls▁begin｜>",
     '{"name": "read_file", "arguments": {"path": "a', "<<<<<<< SEARCH\nx",
     "src/a.py\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE"],
)  # fmt: skip
def test_what_cannot_be_read_is_noticed_all_the_same(text: str) -> None:
    assert REPAIR.looks_like_call(text) is not None


@pytest.mark.parametrize(
    "text",
    ["The tag is `<tool_call>`.", "The parser looks for <tool_call> and </tool_call> in the text.",
     '{"name": "Ada", "age": 36}', "I updated `read_file` (see tools/files.py). All 12 tests pass.",
     "Use print(x) there.", 'The config is {"name": "demo", "version": 1}.', "```python\nprint(1)\n```",
     "Run it:\n\n```bash\nmake\n```\n\nIt takes a minute.", "<details>\n<summary>More</summary>\nText\n</details>",
     "if (a < b) { return c; }", "See [the docs](https://example.org).",
     "`{\"name\": \"read_file\", \"arguments\": {}}`",
     "They wrote:\n\n> <tool_call>\n> {\"name\": \"read_file\", \"arguments\": {}}\n> </tool_call>",
     "I ran `read_file` and `grep_files`: nothing there.", "def read(path: str) -> str: ..."],
)  # fmt: skip
def test_ordinary_words_are_no_calls(text: str) -> None:
    assert REPAIR.looks_like_call(text) is None


@pytest.mark.parametrize("frame", ["fence", "fence-in-list", "thought-then-answer"])
def test_a_call_shown_in_a_fence_with_words_behind_it_is_left_alone(frame: str) -> None:
    texts = [sample.text for sample in shown() if sample.id.split("/")[1] == frame]
    assert len(texts) > 20 and not [text for text in texts if REPAIR.looks_like_call(text)]


@pytest.mark.parametrize(
    "piece",
    ["<", "{", "`", "`a ", "a.", "to=", "to=abc ", "Thought:\nAction", "Action: read_file\n", "read_file(a=1",
     "<<<<<<< SEARCH\n", "======\n", '"name": "read_file" ', "\n[{", "functions.", "<a>\n", ": {", "</tool_call>\n",
     "<tool_call>\n{", "```\n", "*** ", "\n<function=a>"],
)  # fmt: skip
def test_hostile_text_costs_little(piece: str) -> None:
    begun = Moment()
    REPAIR.looks_like_call(piece * (1_048_576 // len(piece)))
    assert not begun.laboured
