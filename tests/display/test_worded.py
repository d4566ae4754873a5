"""Tables of durable work in the words of the person: what is ours is translated, what is the work's own stands."""

import re
from typing import get_args

from codewhale.display.worded import worded
from codewhale.display.words import Words
from codewhale.journal.model import RunState
from codewhale.protocol.blocks import TableBlock
from codewhale.protocol.tasks import TaskView
from codewhale.tools.automations import AutomationCreate
from codewhale.tools.automations import _card as automation_card
from codewhale.tools.tasks import TaskCreate, _result
from codewhale.tools.tasks import _card as task_card

CHINESE = Words("zh-Hans")
HAN = re.compile(r"[\u4e00-\u9fff]")
MOMENTS = ("first runs", "Mon 2026-11-30 09:00 CET, Tue 2026-12-01 09:00 CET")


def cards() -> list[TableBlock]:
    """Each card that asks a person, with everything that it may say."""
    found: list[TableBlock] = []
    for plain in (True, False):
        args = TaskCreate("fix it", allow_shell=plain, auto_approve=plain, on_death="resume" if plain else "ask")
        found += [block for block in task_card(args, "/work") if isinstance(block, TableBlock)]
        made = AutomationCreate("a", "waits for you", "FREQ=HOURLY", allow_shell=plain, auto_approve=plain)
        said = ("next runs", "none while it is paused") if plain else MOMENTS
        rows = automation_card("waits for you", "waits for you", "FREQ=HOURLY in UTC", "/work", made)
        found.append(TableBlock(("automation", ""), (*rows, said, ("status", "active" if plain else "paused"))))
    return found


def test_every_word_of_a_card_that_is_ours_is_chinese_and_the_works_own_stands() -> None:
    for block in cards():
        assert worded(block, Words("en")) == block
        shown = worded(block, CHINESE)
        assert all(HAN.search(row[0]) for row in shown.rows) and HAN.search(shown.header[0])
        own = {"task", "folder", "name", "each run", "when"}
        for before, after in zip(block.rows, shown.rows, strict=True):
            if before[0] in own:
                assert before[1] == after[1]
            else:
                assert HAN.search(after[1]) and not re.search("[a-z]{3}", after[1].replace("agent", "")), after


def test_moments_keep_their_numbers() -> None:
    (shown,) = worded(TableBlock(("automation", ""), (MOMENTS,)), CHINESE).rows
    assert shown[1] == "周一 2026-11-30 09:00 CET, 周二 2026-12-01 09:00 CET"


def test_a_list_of_tasks_says_how_they_stand() -> None:
    states: tuple[RunState, ...] = get_args(RunState)
    views = tuple(TaskView("task_1", state, "queued", "/work", "plan", "", "", "") for state in states)
    (block,) = _result({}, views).display
    assert isinstance(block, TableBlock) and len(block.rows) == 7
    for name, said, prompt, _ in worded(block, CHINESE).rows:
        assert (name, prompt) == ("task_1", "queued") and HAN.search(said)


def test_a_table_of_others_and_one_that_holds_anything_stand() -> None:
    for block in (
        TableBlock(("file", "line", "text"), (("queued", "1", "paused"),)),
        TableBlock(("automation", ""), (("\x1b[31m{x}", "y"), ("status", "{0}"))),
        TableBlock((), ()),
    ):
        assert worded(block, CHINESE).rows == (block.rows if block.header[:1] != ("automation",) else (
            ("\x1b[31m{x}", "y"), ("状态", "{0}"),
        ))  # fmt: skip
