"""The tools of sub-agents through the front door: what is refused names the field, the cap or the owner, and the call
that a refusal suggests, made to the letter, succeeds."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.events import CallFinished
from codewhale.protocol.modes import Authority
from codewhale.testing import Harness, harness
from support.children import Model

Call = tuple[str, dict[str, Any]]
FIRST: Call = ("agent_open", {"prompt": "Work once", "name": "first"})
SCHEMA = {"type": "object", "properties": {"a": {"type": 5}}}


async def made(here: Harness, model: Model, session: str, call: Call) -> CallFinished:
    """The result of one call of the parent."""
    events = await here.turn(model.ask(call), session)
    (result,) = [event for event in events if isinstance(event, CallFinished)]
    return result


def opening(**arguments: Any) -> Call:
    return "agent_open", {"prompt": "Work once", **arguments}


BAD: list[tuple[str, Sequence[Call], Call, str, Sequence[str]]] = [
    ("unknown role", (), opening(role="wizard"), "role", ["wizard", "general", "explore", "custom"]),
    ("prompt and items", (), opening(items=["Work too"]), "items", ["prompt", "items", "not both"]),
    ("a name that is taken", [FIRST], opening(name="first"), "name", ["'first'", "is a sub-agent already", "session"]),
    ("a name that is none", (), opening(name="../x y"), "name", ["letters, digits"]),
    ("a folder outside", (), opening(cwd="../.."), "cwd", ["out of the workspace"]),
    ("a folder that is not there", (), opening(cwd="no/such"), "cwd", ["no/such", "no folder"]),
    ("a tool that is none", (), opening(allowed_tools=["read_fil"]), "allowed_tools", ["'read_fil'", "read_file"]),
    ("custom without tools", (), opening(role="custom"), "allowed_tools", ["custom", "allowed_tools"]),
    ("no JSON Schema", (), opening(output_schema=SCHEMA), "output_schema", ["no JSON Schema"]),
    ("one that there is not", [FIRST], ("agent_eval", {"name": "last"}), "name", ["'last'", "first", "agent_open"]),
    (
        "one that is released",
        [FIRST, opening(name="other"), ("agent_close", {"name": "other"})],
        ("agent_eval", {"name": "other", "message": "Work more"}),
        "name",
        ["'other'", "first"],
    ),
    ("a message to nobody", [FIRST], ("agent_eval", {"message": "Work more"}), "name", ["which sub-agent", "first"]),
    ("a message where there is none", (), ("agent_eval", {"message": "Work more"}), "name", ["agent_open"]),
    ("a retired name", (), ("spawn_agent", {"message": "Work once"}), "name", ["agent_open, agent_eval and"]),
]  # fmt: skip


@pytest.mark.parametrize(("before", "bad", "field", "words"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
async def test_a_refusal_names_what_is_wrong_and_a_call_that_succeeds(
    home: Path, workspace: Path, before: Sequence[Call], bad: Call, field: str, words: Sequence[str]
) -> None:
    model = Model()
    async with harness(home, workspace, model) as here:
        session = await here.open(authority=Authority.HEADLESS)
        for call in before:
            assert (await made(here, model, session, call)).ok
        refused = await made(here, model, session, bad)
        error = refused.metadata["error"]
        assert (
            not refused.ok and error["field"] == field and not [word for word in words if word not in refused.content]
        )
        fix = error["fix"]
        assert fix is not None, refused.content
        again = await made(here, model, session, (fix["name"], fix["arguments"]))
        assert again.ok, again.content


async def test_a_task_that_is_missing_is_not_made_up(home: Path, workspace: Path) -> None:
    model = Model()
    async with harness(home, workspace, model) as here:
        session = await here.open(authority=Authority.HEADLESS)
        refused = await made(here, model, session, ("agent_open", {"role": "explore"}))
        error = refused.metadata["error"]
        assert (refused.ok, error["field"], error["fix"]) == (False, "prompt", None)


async def test_the_eleventh_at_once_is_refused_with_the_cap_and_those_that_run(home: Path, workspace: Path) -> None:
    model = Model()
    async with harness(home, workspace, model) as here:
        session = await here.open(authority=Authority.PERSON)
        for number in range(10):
            assert (await made(here, model, session, opening(prompt="Work long", name=f"n{number}"))).ok
        refused = await made(here, model, session, opening(name="n10"))
        assert not refused.ok and "at most 10" in refused.content and "hard cap 20" in refused.content
        assert all(f"n{number}" in refused.content for number in range(10))
        fix = refused.metadata["error"]["fix"]
        assert fix["name"] == "agent_eval" and "max_concurrent" in refused.content
        looked = await made(here, model, session, ("agent_eval", {**fix["arguments"], "timeout_ms": 50}))
        assert looked.ok
        assert (await made(here, model, session, ("agent_close", {"name": "n3"}))).ok
        assert (await made(here, model, session, opening(name="n10"))).ok


async def test_the_fourth_level_is_refused_with_the_depth(home: Path, workspace: Path) -> None:
    model = Model()
    async with harness(home, workspace, model) as here:
        session = await here.open(authority=Authority.HEADLESS)
        assert (await made(here, model, session, opening(prompt="Work down"))).ok
    (refused,) = {text for text in model.results if "Error" in text}
    assert "3 deep" in refused and "depth 3" in refused
