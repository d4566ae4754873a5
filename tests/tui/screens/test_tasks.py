"""Durable tasks and automations on their screen: rows, a history, going on, an end."""

from typing import Any

from codewhale.protocol.automations import AutomationBoard, AutomationView, ListAutomations, SwitchAutomation
from codewhale.protocol.tasks import (
    CancelTask,
    GetTask,
    ListTasks,
    ResumeTask,
    TaskBoard,
    TaskLine,
    TaskRecord,
    TaskView,
)
from support.tuiscreens import HOSTILE, opened

WAITS = TaskView("task_1", "queued", "port the parser", "/work", "agent")
LEFT = TaskView(
    "task_2", "interrupted", "fix the links", "/work", "agent", error="its process ended",
    unfinished=("exec_shell make",),
)  # fmt: skip
NIGHTLY = AutomationView(
    "auto_3", "nightly", "check it", "FREQ=HOURLY;INTERVAL=6", "Europe/Berlin", "active", "/work", "agent",
    False, True, "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000Z", "2026-01-31T06:00:00.000Z", missed=2,
)  # fmt: skip


def record(query: GetTask) -> TaskRecord:
    gate = {"gate": "test", "status": "passed", "command": f"make test {HOSTILE}"}
    lines = (TaskLine("2026-01-31T06:00:00.000Z", "call", "read_file"),)
    return TaskRecord(LEFT if query.task == "task_2" else WAITS, lines, updates={"gate": [gate]})


ANSWERS: dict[type, Any] = {
    ListTasks: TaskBoard((WAITS, LEFT), notice="Nobody works at tasks now"),
    ListAutomations: AutomationBoard((NIGHTLY,)),
    GetTask: record,
    CancelTask: WAITS,
    ResumeTask: LEFT,
    SwitchAutomation: NIGHTLY,
}


async def test_rows_say_how_each_stands_and_the_history_is_below() -> None:
    async with opened("tasks", ANSWERS, size=(120, 40)) as stage:
        await stage.shown("○ port the parser")
        assert "■ fix the links" in stage.text and "interrupted · its process ended · task_2" in stage.text
        assert "◷ nightly" in stage.text and "by the clock · next 2026-01-31 06:00 UTC · 2 missed" in stage.text
        assert "2 to do" in stage.text
        await stage.shown("Nobody works at tasks now")
        await stage.press("down")
        await stage.shown("begun and not ended: exec_shell make")
        assert "test passed: make test" in stage.text and "06:00:00  call  read_file" in stage.text
        await stage.press("down")
        await stage.shown("FREQ=HOURLY;INTERVAL=6 · Europe/Berlin")
        assert "runs unasked what no rule asks about" in stage.text


async def test_what_is_ours_in_the_history_is_in_the_persons_language() -> None:
    async with opened("tasks", ANSWERS, size=(120, 40), language="zh-Hans") as stage:
        await stage.press("down")
        await stage.shown("已开始但未结束：exec_shell make")
        assert "test 通过: make test" in stage.text and "06:00:00  调用  read_file" in stage.text


async def test_what_waits_is_cancelled_and_what_was_left_goes_on() -> None:
    async with opened("tasks", ANSWERS, size=(120, 40)) as stage:
        await stage.shown("port the parser")
        await stage.press("i")
        await stage.shown("Only what is interrupted")
        await stage.press("x", "x")
        await stage.shown("task_1 ends.")
        await stage.press("down", "i")
        await stage.shown("task_2 goes on.")
        await stage.press("down", "x", "x")
        await stage.shown("auto_3 is paused.")
        assert stage.client.ops == [CancelTask("task_1"), ResumeTask("task_2"), SwitchAutomation("auto_3", paused=True)]


async def test_none_is_said() -> None:
    empty = {**ANSWERS, ListTasks: TaskBoard(()), ListAutomations: AutomationBoard(())}
    async with opened("tasks", empty) as stage:
        await stage.shown("No tasks.")
