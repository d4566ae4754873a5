"""Known secrets are replaced wherever they stand, the same way every time, and nothing breaks by it."""

import json
import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codewhale.protocol.blocks import TerminalBlock
from codewhale.protocol.events import (
    CallFinished,
    CallStarted,
    Event,
    MessageAdded,
    SessionOpened,
    TextStreamed,
    TurnStarted,
)
from codewhale.protocol.messages import Message, Reasoning, Text, ToolCall
from codewhale.protocol.modes import Mode
from codewhale.protocol.tools import Effect
from codewhale.session.redaction import Redactor
from support.keys import KEYS

PLAIN = "sk-0123456789abcdef"
TRICKY = 'p"a\\s/s\nwörd'
SECRETS = {"DEEPSEEK_API_KEY": PLAIN, "DB_PASSWORD": TRICKY, "PATH": "/usr/local/bin", "PIN_TOKEN": "1234"}


def said(text: str, arguments: str = "{}") -> MessageAdded:
    """An answer with a call."""
    call = ToolCall("call_1", "exec_shell", arguments)
    return MessageAdded(Message("assistant", (Reasoning(text), Text(text, source="model"), call)), "tool_calls")


def test_a_value_is_replaced_by_its_name() -> None:
    assert Redactor(SECRETS).text(f"key={PLAIN}.") == "key=[redacted DEEPSEEK_API_KEY]."


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("GITHUB_TOKEN", "ghp_12345678", False),
        ("aws_secret_access", "abcdefgh", False),
        ("PGPASSWD", "hunter2hunter2", False),
        ("PIN_TOKEN", "1234567", True),
        ("HOME", "12345678", True),
        ("SSH_KEY_FILE", "/root/.ssh/id", True),
        ("MY_KEY", "", True),
    ],
)
def test_what_counts_as_a_secret(name: str, value: str, kept: bool) -> None:
    text = f"<{value}>"
    assert (Redactor({name: value}).text(text) == text) is kept


def test_the_longest_value_wins_where_one_holds_another() -> None:
    redactor = Redactor({"A_KEY": "abcdefgh", "B_KEY": "abcdefghij"})
    assert redactor.text("abcdefghij abcdefgh") == "[redacted B_KEY] [redacted A_KEY]"


def test_an_event_without_secrets_is_the_same_object() -> None:
    event = said("nothing here")
    assert Redactor(SECRETS).event(event) is event
    assert Redactor({}).event(said(PLAIN)) == said(PLAIN)


def hidden(event: Event) -> str:
    """The redacted event as the log would write it."""
    return msgspec.json.encode(Redactor(SECRETS).event(event)).decode()


@pytest.mark.parametrize("secret", [PLAIN, TRICKY])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_json_inside_json_hides_nothing(secret: str, depth: int) -> None:
    inner = secret
    for _ in range(depth):
        inner = json.dumps({"a": inner}, ensure_ascii=False)
    for event in (
        said(inner, json.dumps({"command": inner}, ensure_ascii=False)) if depth < 2 else said(inner),
        CallFinished("call_1", "exec_shell", True, inner, metadata={"out": [inner]}),
        CallStarted("call_1", "exec_shell", inner, (Effect.EXECUTES,), "rule"),
        TextStreamed(inner),
    ):
        shown = hidden(event)
        assert "[redacted " in shown
        assert "sk-0123" not in shown and "wörd" not in shown


def test_json_written_by_a_tool_is_clean_text() -> None:
    shown = Redactor(SECRETS).text(json.dumps({"env": TRICKY, "key": PLAIN}, ensure_ascii=False))
    assert json.loads(shown) == {"env": "[redacted DB_PASSWORD]", "key": "[redacted DEEPSEEK_API_KEY]"}


def test_arguments_stay_a_json_object() -> None:
    event = Redactor(SECRETS).event(said("", json.dumps({"command": f"echo {TRICKY}"}, ensure_ascii=False)))
    assert isinstance(event, MessageAdded)
    assert json.loads(event.message.calls[0].arguments) == {"command": "echo [redacted DB_PASSWORD]"}


@pytest.mark.parametrize("word", ["assistant", "tool_call", "arguments", "message_added", "tool_calls"])
def test_a_value_that_is_a_word_of_ours_breaks_nothing(word: str) -> None:
    redactor = Redactor({"ODD_KEY": word, "API_KEY": PLAIN})
    event = redactor.event(said(f"{word} {PLAIN}"))
    assert isinstance(event, MessageAdded)
    assert event.message.role == "assistant"
    assert event.message.calls[0].name == "exec_shell"
    assert PLAIN not in event.message.text


def test_where_a_session_works_is_left_alone() -> None:
    opened = SessionOpened(1, "/home/postgres/work", Mode.AGENT, "scripted", "scripted")
    assert Redactor({"DB_PASSWORD": "postgres"}).event(opened) is opened


def test_variables_and_events_that_are_no_utf8_are_taken() -> None:
    redactor = Redactor({"BAD_KEY": "abcdefgh\udcff", "API_KEY": PLAIN})
    assert redactor.event(TurnStarted(1)) == TurnStarted(1)
    event = redactor.event(TextStreamed(f"\udcff {PLAIN}"))
    assert event == TextStreamed("\ufffd [redacted API_KEY]")


def test_the_order_of_variables_makes_no_difference() -> None:
    variables = [("A_KEY", "same-value"), ("B_KEY", "same-value"), ("C_KEY", "same-value-longer"), ("D_KEY", PLAIN)]
    text = f"same-value same-value-longer {PLAIN}"
    shown = set()
    for seed in range(10):
        random.Random(seed).shuffle(variables)
        shown.add(Redactor(dict(variables)).text(text))
    assert len(shown) == 1


@given(st.text(), st.text())
def test_redacting_twice_changes_nothing_more(before: str, after: str) -> None:
    redactor = Redactor(SECRETS)
    once = redactor.text(before + PLAIN + after)
    assert PLAIN not in once
    assert redactor.text(once) == once


def test_a_secret_learned_later_is_replaced_from_then_on() -> None:
    redactor = Redactor({"A_KEY": "sk-aaaaaaaa"})
    assert redactor.text("sk-bbbbbbbb") == "sk-bbbbbbbb"
    redactor.learn({"key of b": "sk-bbbbbbbb", "key of a": "sk-aaaaaaaa", "key of c": ""})
    assert redactor.text("sk-aaaaaaaa sk-bbbbbbbb") == "[redacted A_KEY] [redacted key of b]"


KEY = "sk-proj-A1b2C3d4E5f6G7h8"


def test_a_cut_value_is_found_in_what_programs_and_people_are_shown() -> None:
    redactor = Redactor({"A_KEY": KEY, "B_KEY": TRICKY + "0123456789"})
    cut = (KEY[:15], TRICKY + "01")
    shown = TerminalBlock("cat x", f"a\n{cut[0]}\n[...]\n{KEY[-12:]} b", 0)
    event = CallFinished("c", "exec_shell", True, "x", display=(shown,), metadata={"summary": cut[0], "s": [cut[1]]})
    clean = redactor.event(event)
    said = msgspec.json.encode(clean).decode()
    assert isinstance(clean, CallFinished)
    assert clean.metadata == {"summary": "[redacted A_KEY]", "s": ["[redacted B_KEY]"]}
    assert clean.display == (TerminalBlock("cat x", "a\n[redacted A_KEY]\n[...]\n[redacted A_KEY] b", 0),)
    assert "A1b2" not in said
    assert "G7h8" not in said


def test_keys_of_known_shapes_are_replaced_in_what_comes_from_outside() -> None:
    key = KEYS["github"]
    told = Redactor({}).event(CallFinished("call_1", "read_file", True, f"a\n{key}\nb"))
    assert isinstance(told, CallFinished) and told.content == "a\n[redacted GitHub token]\nb"
    assert Redactor({}).text(key) == "[redacted GitHub token]"
    assert Redactor({}, shapes=False).text(key) == key
    assert Redactor({}).event(said(key)) == said(key)
    assert Redactor({"ANY": key}).event(said(key)) == said("[redacted ANY]")
