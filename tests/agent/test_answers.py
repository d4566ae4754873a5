"""Words of a model where a call was due, through the whole application: what runs, what is told, and what ends."""

import json
from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.events import CallFinished, ContextAppended, MessageAdded, TextStreamed, TurnFinished
from codewhale.testing import harness
from support.writtencalls import STANDING, Call

CLEAR: Call = ("write_file", {"path": "build/old.txt", "content": "gone\n"})
WRITE: Call = ("write_file", {"path": "made.txt", "content": "one\n"})
READ: Call = ("read_file", {"path": "app.py"})
ORDER = "Clean the workspace up as we said."
HERMES = STANDING["hermes"]


class Played:
    """One turn of a script in yolo: its events, and what the model was told."""

    def __init__(self, events: list[Any]) -> None:
        self.events = events
        self.end = next(event for event in events if isinstance(event, TurnFinished))
        self.nudges = [event.text for event in events if isinstance(event, ContextAppended) and event.kind == "nudge"]
        self.calls = [event.name for event in events if isinstance(event, CallFinished) and event.ok]


async def play(tmp_path: Path, *said: str | dict[str, Any], asked: str = ORDER, **facts: bool) -> Played:
    workspace = tmp_path / "workspace"
    (workspace / "build").mkdir(parents=True, exist_ok=True)
    (workspace / "build" / "old.txt").write_text("old\n")
    (workspace / "app.py").write_text("LIMIT = 10\n")
    script = [{"text": turn} if isinstance(turn, str) else turn for turn in said]
    async with harness(tmp_path / "home", workspace, script, facts=facts) as stage:
        return Played(await stage.turn(asked))


def kept(folder: Path) -> bool:
    """Whether the file that is to be cleared is as it was."""
    return (folder / "workspace" / "build" / "old.txt").read_text() == "old\n"


def native(call: Call) -> dict[str, Any]:
    return {"calls": [{"name": call[0], "arguments": call[1]}]}


@pytest.mark.parametrize(
    "lead",
    ["我不会执行这个：", "Je n'enverrai jamais ceci :", "Ich habe das im Log gefunden:",
     "If you confirm, I will run this:", "Let me check the tail of the log:",
     "I need to check whether our parser handles this:",
     "2026-03-01 12:00:03 INFO the model said"],
)  # fmt: skip
async def test_a_shown_change_behind_words_of_any_language_never_runs(tmp_path: Path, lead: str) -> None:
    for name in ("hermes", "qwen-coder", "dsml", "mistral"):
        text = f"{lead}\n{STANDING[name]([CLEAR])}"
        played = await play(tmp_path / name, text, "DONE")
        assert kept(tmp_path / name) and played.calls == []
        assert len(played.nudges) == 1 and (played.end.status, played.end.result["answer"]) == ("done", text)


@pytest.mark.parametrize(
    "lead",
    ["The folder does not exist yet.", "Got it. The folder is missing, so the command failed.",
     "The output shows that it is old.", "**Step 1: remove it**", "Voy a borrarlo."],
)  # fmt: skip
@pytest.mark.parametrize("before", [(), (READ,)], ids=["first", "mid-task"])
async def test_a_meant_change_behind_words_is_told_once_and_then_runs(
    tmp_path: Path, lead: str, before: tuple[Call, ...]
) -> None:
    for number, again in enumerate((native(CLEAR), HERMES([CLEAR]))):
        folder = tmp_path / str(number)
        opening = [native(call) for call in before]
        played = await play(folder, *opening, f"{lead}\n{HERMES([CLEAR])}", again, "Removed.")
        assert len(played.nudges) == 1 and "alone with nothing else" in played.nudges[0]
        assert played.calls == [*(name for name, _ in before), "write_file"]
        assert not kept(folder) and played.end.status == "done"


async def test_a_read_behind_words_runs_at_once(tmp_path: Path) -> None:
    played = await play(tmp_path, f"The folder is there.\n{HERMES([READ])}", "The limit is 10.")
    assert (played.calls, played.nudges, played.end.status) == (["read_file"], [], "done")


async def test_of_several_calls_behind_words_one_change_keeps_all_from_running(tmp_path: Path) -> None:
    played = await play(tmp_path, f"Both.\n{HERMES([READ, CLEAR])}", "DONE")
    assert (played.calls, len(played.nudges)) == ([], 1)


async def test_where_text_is_the_channel_a_change_behind_words_runs_at_once(tmp_path: Path) -> None:
    text = f"Je vais le supprimer.\n{HERMES([CLEAR])}"
    played = await play(tmp_path, text, "Removed, 1 folder.", text_calls=True)
    assert (played.calls, played.nudges) == (["write_file"], [])
    assert not kept(tmp_path)


async def test_where_text_is_no_channel_at_all_nothing_in_text_runs(tmp_path: Path) -> None:
    played = await play(tmp_path, HERMES([CLEAR]), HERMES([CLEAR]), "DONE", text_calls=False)
    assert played.calls == [] and "alone" not in played.nudges[0] and "<tool_call>" not in played.nudges[1]


@pytest.mark.parametrize("channel", [True, None])
@pytest.mark.parametrize(
    "frame",
    [
        "So:\n```\n{}\n```",
        "So:\n```\n{}\n```\nThat is all.",
        "<log>\n{}\n</log>",
        "{}\n\nI wait for the result.",
        "    {}",
    ],
)
async def test_a_change_that_is_fenced_quoted_or_in_the_middle_never_runs(
    tmp_path: Path, frame: str, channel: bool | None
) -> None:
    facts = {} if channel is None else {"text_calls": channel}
    call = HERMES([CLEAR]).replace("\n", "")
    played = await play(tmp_path, "Look.\n\n" + frame.replace("{}", call), "DONE", **facts)
    assert played.calls == [] and kept(tmp_path) and played.end.status == "done"


JSON = json.dumps({"name": WRITE[0], "arguments": WRITE[1]})
LOOSE = {
    "fenced-json": f"```json\n{JSON}\n```",
    "fenced-command": "```bash\necho one > made.txt\n```",
    "search-replace": "app.py\n<<<<<<< SEARCH\nLIMIT = 10\n=======\nLIMIT = 20\n>>>>>>> REPLACE",
    "patch": "*** Begin Patch\n*** Add File: made.txt\n+one\n*** End Patch",
    "tool-code": "```tool_code\nwrite_file(path='made.txt', content='one\\n')\n```",
    "json": JSON,
    "harmony": f"assistantcommentary to=functions.write_file json{json.dumps(WRITE[1])}",
    "lone-mark": "</tool_call>",
    "upper-case": f"<TOOL_CALL>\n{JSON}\n</TOOL_CALL>",
    "react-json": f"Action:\n```json\n{json.dumps({'action': WRITE[0], 'action_input': WRITE[1]})}\n```",
}


@pytest.mark.parametrize("form", LOOSE)
async def test_a_call_in_a_looser_form_behind_words_is_told_three_times_and_then_fails(
    tmp_path: Path, form: str
) -> None:
    text = f"Let me do it:\n{LOOSE[form]}"
    played = await play(tmp_path, *[text] * 5)
    assert (played.calls, len(played.nudges), played.end.status) == ([], 3, "failed")
    assert "wrote tool calls as text" in played.end.reason
    assert "worked example" in played.nudges[1] and "last reminder" in played.nudges[2]
    if form in ("fenced-json", "tool-code", "json", "harmony", "upper-case", "react-json"):
        assert json.dumps({"name": WRITE[0], "arguments": WRITE[1]}, separators=(",", ":")) in played.nudges[1]


async def test_the_worked_call_runs_when_it_is_sent_as_it_stands(tmp_path: Path) -> None:
    text = f"Let me do it:\n{LOOSE['fenced-json']}"
    played = await play(tmp_path, text, text, HERMES([WRITE]), "Written.")
    worked = played.nudges[1].split("send this and nothing else:\n")[1]
    assert played.calls == ["write_file"] and (tmp_path / "workspace" / "made.txt").read_text() == "one\n"
    again = await play(tmp_path / "again", text, text, worked, "Written.")
    assert again.calls == ["write_file"] and (tmp_path / "again" / "workspace" / "made.txt").read_text() == "one\n"


PROMISES = ("Calling read_file on app.py.", "Proceeding to make the change.", "Procedo a realizar el cambio.",
            "Ich nehme die Änderung jetzt vor.", "これから変更します。", "Let me read the file:")  # fmt: skip


@pytest.mark.parametrize("text", PROMISES)
@pytest.mark.parametrize("before", [(), (READ,)], ids=["first", "after a read"])
async def test_an_empty_promise_never_ends_a_turn_with_success(
    tmp_path: Path, text: str, before: tuple[Call, ...]
) -> None:
    played = await play(tmp_path, *(native(call) for call in before), *[text] * 5)
    assert (len(played.nudges), played.end.status) == (3, "failed") and "announced" in played.end.reason
    kept = await play(tmp_path / "kept", *(native(call) for call in before), text, native(WRITE), "Written.")
    assert (len(kept.nudges), kept.end.status, kept.calls[-1]) == (1, "done", "write_file")


@pytest.mark.parametrize(
    ("asked", "text"),
    [("What is in app.py?", "It holds the limit."), ("hi", "Hello there, how can I help."),
     (ORDER, "The limit is 10 and nothing uses it."), (ORDER, "Which of the two folders do you mean?")],
)  # fmt: skip
async def test_an_ordinary_answer_costs_no_turn(tmp_path: Path, asked: str, text: str) -> None:
    played = await play(tmp_path, text, asked=asked)
    assert (played.nudges, played.end.status, played.end.result["answer"]) == ([], "done", text)


async def test_a_report_after_a_change_costs_no_turn(tmp_path: Path) -> None:
    played = await play(tmp_path, native(WRITE), "I wrote the file as you asked me to.")
    assert (played.nudges, played.end.status) == ([], "done")


async def test_who_makes_a_call_each_time_and_says_no_more_is_believed(tmp_path: Path) -> None:
    """A model that answers in short words without a fact is not asked for ever."""
    words = "Everything is working just as expected."
    played = await play(tmp_path, *[native(READ), words] * 6, asked=ORDER)
    assert (len(played.nudges), played.end.status, played.end.result["answer"]) == (3, "done", words)


async def test_the_count_begins_again_with_every_call(tmp_path: Path) -> None:
    promise = PROMISES[1]
    played = await play(tmp_path, promise, promise, native(READ), promise, promise, native(WRITE), "Written.")
    assert (len(played.nudges), played.end.status) == (4, "done")


@pytest.mark.parametrize(
    "lead", ["", "\n\n", "The tag is\n<tool_call> here.\n\n", "Look.\n\n", "See `x`:\n```\ny\n```\n"]
)
@pytest.mark.parametrize("call", [READ, CLEAR])
async def test_what_was_shown_of_an_answer_is_what_is_recorded(tmp_path: Path, lead: str, call: Call) -> None:
    for name in ("hermes", "dsml", "mistral", "kimi"):
        for facts in ({}, {"text_calls": True}, {"text_calls": False}):
            folder = tmp_path / f"{name}{facts}"
            played = await play(folder, lead + STANDING[name]([call]), "DONE", "DONE", **facts)
            said = [n for n, event in enumerate(played.events) if isinstance(event, MessageAdded)]
            place = next(n for n in said if played.events[n].message.role == "assistant")
            seen = "".join(event.text for event in played.events[:place] if isinstance(event, TextStreamed))
            assert seen == played.events[place].message.text
