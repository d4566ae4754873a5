"""Hooks as they are written: which are taken, and why the others are not."""

from typing import Any

import pytest

from codewhale.protocol.tools import Effect
from codewhale.services.hooks.config import EVENTS, MOST_HOOKS, Condition, HookMoment, read_hooks


def row(**fields: Any) -> dict[str, Any]:
    return {"event": "tool_call_before", "command": "true", **fields}


def test_every_event_is_taken_with_its_defaults() -> None:
    hooks, refused = read_hooks({"hooks": [row(event=event) for event in EVENTS]}, "c.toml")
    assert [hook.event for hook in hooks] == list(EVENTS) and refused == ()
    assert (hooks[0].name, hooks[0].seconds, hooks[0].sandbox, hooks[0].continue_on_error) == (
        "session_start 1", 30.0, "workspace-write", True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"event": "tool_call"}, "is not one of"),
        ({"event": ["x"]}, "is not one of"),
        ({"command": ""}, "command line"),
        ({"command": ["ls"]}, "command line"),
        ({"command": "a\0b"}, "command line"),
        ({"timeout_secs": 0}, "timeout_secs"),
        ({"timeout_secs": -1}, "timeout_secs"),
        ({"timeout_secs": 10_000}, "timeout_secs"),
        ({"timeout_secs": True}, "timeout_secs"),
        ({"timeout_secs": float("nan")}, "timeout_secs"),
        ({"timeout": 5}, "timeout is not known"),
        ({"background": "yes"}, "background must be"),
        ({"sandbox": "danger"}, "sandbox"),
        ({"name": "a\nb"}, "name"),
        ({"condition": {"type": "tool_name"}}, "never met"),
        ({"condition": {"type": "tool_category", "category": "odd"}}, "never met"),
        ({"condition": {"type": "mode", "mode": "agnet"}}, "never met"),
        ({"condition": {"type": "moon"}}, "never met"),
        ({"condition": []}, "must be a table"),
        ({"condition": {"type": "exit_code", "code": 0}}, "only tool_call_after"),
        ({"event": "session_start", "condition": {"type": "tool_name", "name": "x"}}, "no tool runs then"),
        ({"condition": {"type": "all", "conditions": []}}, "needs conditions"),
        ({"condition": {"type": "all", "conditions": [
            {"type": "mode", "mode": "plan"}, {"type": "mode", "mode": "yolo"}]}}, "cannot be plan and yolo"),
        ({"condition": {"type": "any", "conditions": [{"type": "all", "conditions": [
            {"type": "tool_name", "name": "a"}, {"type": "tool_name", "name": "b"}]}]}}, "cannot be a and b"),
        ({"event": "shell_env", "background": True}, "cannot change what happens"),
    ],
)  # fmt: skip
def test_what_could_never_run_is_refused_and_the_rest_stands(fields: dict[str, Any], why: str) -> None:
    hooks, refused = read_hooks({"hooks": [row(**fields), row(name="good")]}, "c.toml")
    assert [hook.name for hook in hooks] == ["good"]
    assert len(refused) == 1 and why in refused[0] and refused[0].startswith("c.toml: hook ")


@pytest.mark.parametrize("fields", [{"sandbox": "none"}, {"network": True}, {"event": "shell_env"}])
def test_a_project_widens_nothing(fields: dict[str, Any]) -> None:
    assert read_hooks({"hooks": [row(**fields)]}, "c.toml")[0]
    assert read_hooks({"hooks": [row(**fields)]}, "c.toml", project=True)[0] == ()


@pytest.mark.parametrize("tree", [None, [], "x", {"hooks": {}}, {"hooks": "x"}])
def test_what_is_no_list_is_told(tree: Any) -> None:
    hooks, refused = read_hooks(tree, "c.toml")
    assert hooks == () and len(refused) == 1


def test_they_can_be_switched_off_and_are_bounded() -> None:
    assert read_hooks({"enabled": False, "hooks": [row()]}, "c") == ((), ())
    assert read_hooks({"hooks": [row(enabled=False)]}, "c") == ((), ())
    hooks, refused = read_hooks({"hooks": [row()] * (MOST_HOOKS + 2) + [3]}, "c")
    assert (len(hooks), len(refused)) == (MOST_HOOKS, 3)


@pytest.mark.parametrize(
    ("condition", "met"),
    [
        (Condition(), True),
        (Condition("tool_name", "exec_shell"), True),
        (Condition("tool_name", "exec_*"), True),
        (Condition("tool_name", "read_file"), False),
        (Condition("tool_category", "shell"), True),
        (Condition("tool_category", "read"), False),
        (Condition("mode", "agent"), True),
        (Condition("mode", "plan"), False),
        (Condition("exit_code", 3), True),
        (Condition("exit_code", 0), False),
        (Condition("all", "", (Condition("mode", "agent"), Condition("exit_code", 3))), True),
        (Condition("all", "", (Condition("mode", "plan"), Condition())), False),
        (Condition("any", "", (Condition("mode", "plan"), Condition())), True),
    ],
)
def test_conditions(condition: Condition, met: bool) -> None:
    effects = (Effect.READS, Effect.EXECUTES)
    moment = HookMoment("tool_call_after", "s", "/w", "agent", tool="exec_shell", effects=effects, exit_code=3)
    assert condition.holds(moment) is met
