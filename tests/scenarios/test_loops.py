"""Rounds of changing and testing are work, however many there are; the same call with nothing changed is a loop."""

from pathlib import Path
from typing import Any

import pytest

from codewhale.display.transcript.blocks import Receipt
from codewhale.testing import harness
from support.scenes import ending, results
from support.transcripts import of_record
from support.tuirecord import envelopes

ROUNDS = 12
TEST = "import unittest\nfrom app import value\n\n\nclass Case(unittest.TestCase):\n    def test_it(self):\n"
TEST += f"        self.assertTrue(value == {ROUNDS}, 'not yet')\n"


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """One call as an answer of the script."""
    return {"calls": [{"name": name, "arguments": arguments}]}


@pytest.fixture
def project(workspace: Path) -> Path:
    """A project whose check is green once its value is right."""
    (workspace / "app.py").write_text("value = 0\n")
    (workspace / "check.py").write_text(
        f"from app import value\nassert value == {ROUNDS}, 'not yet'\nprint('1 passed')\n"
    )
    return workspace


def edited(step: int) -> dict[str, Any]:
    """The edit of a round by edit_file."""
    return call("edit_file", path="app.py", search=f"value = {step}", replace=f"value = {step + 1}")


def patched(step: int) -> dict[str, Any]:
    """The edit of a round by a patch."""
    patch = f"*** Begin Patch\n*** Update File: app.py\n@@\n-value = {step}\n+value = {step + 1}\n*** End Patch\n"
    return call("apply_patch", patch=patch)


def typed(step: int) -> dict[str, Any]:
    """The edit of a round by a program."""
    return call("exec_shell", command=f"sed -i s/{step}/{step + 1}/ app.py")


@pytest.mark.parametrize("edit", [edited, patched, typed])
async def test_twelve_rounds_of_change_and_the_same_failing_test_end_green(
    home: Path, project: Path, edit: Any
) -> None:
    test = call("exec_shell", command="python3 -B check.py")
    script = [turn for step in range(ROUNDS) for turn in (edit(step), test)]
    async with harness(home, project, [*script, {"text": "It is green."}]) as stage:
        events = await stage.turn("Make it green")
    tests = results(events)[1::2]
    assert [item.ok for item in tests] == [False] * (ROUNDS - 1) + [True], [item.content for item in tests]
    assert not any("loop guard" in item.content for item in results(events))
    assert ending(events).status == "done"


async def test_twelve_rounds_with_the_test_tool_end_verified(home: Path, workspace: Path) -> None:
    (workspace / "app.py").write_text("value = 0\n")
    (workspace / "test_app.py").write_text(TEST)
    unneeded = ("cacheprovider", "hypothesispytest", "asyncio", "anyio", "xdist", "xdist.looponfail", "timeout")
    test = call("run_tests", args=" ".join(["-q", *(f"-p no:{plugin}" for plugin in unneeded)]))
    script = [turn for step in range(ROUNDS) for turn in (edited(step), test)]
    async with harness(home, workspace, [*script, {"text": "It is green."}]) as stage:
        story = of_record(envelopes(await stage.turn("Make it green")))
    receipt = next(block for block in story.blocks if isinstance(block, Receipt))
    assert receipt.verified and not receipt.stale


async def test_after_a_block_a_change_lets_the_same_command_run_again(home: Path, project: Path) -> None:
    test = call("exec_shell", command="python3 -B check.py")
    (project / "app.py").write_text(f"value = {ROUNDS - 1}\n")
    script = [*[test] * 6, edited(ROUNDS - 1), test, {"text": "Green."}]
    async with harness(home, project, script) as stage:
        events = await stage.turn("Make it green")
    found = results(events)
    assert ["was not run" in item.content for item in found] == [False] * 4 + [True] * 2 + [False] * 2
    assert found[-1].ok and ending(events).status == "done"


@pytest.mark.parametrize(
    "spelling",
    [
        lambda number: "python3 -B check.py" + " " * number,
        lambda number: "python3" + " " * (number + 1) + "-B check.py",
        lambda number: "\t" * number + "python3 -B check.py",
        lambda number: f"python3 -B check.py  # try {number}",
    ],
)
async def test_the_same_failing_command_with_more_blanks_is_the_same(home: Path, project: Path, spelling: Any) -> None:
    script = [call("exec_shell", command=spelling(number)) for number in range(14)]
    async with harness(home, project, script) as stage:
        events = await stage.turn("Try")
    assert len(results(events)) == 8
    assert "8 times with the same outcome" in ending(events).reason


async def test_blanks_that_a_command_says_are_another_command(home: Path, project: Path) -> None:
    script = [call("exec_shell", command=f"printf '%s' '{' ' * number}' > /dev/null") for number in range(8)]
    async with harness(home, project, [*script, {"text": "Printed."}]) as stage:
        events = await stage.turn("Print")
    assert not any("loop guard" in item.content for item in results(events))


async def test_a_change_that_failed_or_changed_nothing_makes_nothing_new(home: Path, project: Path) -> None:
    test = call("exec_shell", command="python3 -B check.py")
    same = call("write_file", path="app.py", content="value = 0\n")
    missed = call("edit_file", path="app.py", search="nowhere", replace="x")
    async with harness(home, project, [turn for _ in range(9) for turn in (same, missed, test)]) as stage:
        events = await stage.turn("Make it green")
    assert ending(events).status == "failed"


async def test_a_command_that_writes_a_log_each_time_is_a_loop_by_itself(home: Path, project: Path) -> None:
    grows = call("exec_shell", command="echo x >> log; python3 -B check.py")
    async with harness(home, project, [grows] * 14) as stage:
        events = await stage.turn("Try")
    assert len(results(events)) == 8
