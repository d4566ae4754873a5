"""An answer with a call, cut everywhere on its way: the turn goes on or ends by name, every later request is sound, and
the call runs once."""

import json
from pathlib import Path

from codewhale.models.dialects.validate import Validator
from codewhale.protocol.events import AnswerDropped, CallFinished, RetryCountdown
from support.machine import MAKES_FILES
from support.wire import Reply, delta, sse, stream
from support.wired import wired


def write(name: str, arguments: str) -> dict[str, object]:
    return {"index": 0, "id": name, "function": {"name": "exec_shell", "arguments": arguments}}


COMMAND = json.dumps({"command": "echo ran >> ran.txt"})
BODY = sse(
    delta(reasoning_content="I will."),
    delta(content="Working."),
    delta(tool_calls=[write("call_a", COMMAND[:9])]),
    delta(tool_calls=[{"index": 0, "function": {"arguments": COMMAND[9:]}}]),
    delta("tool_calls"),
    {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
    "[DONE]",
)
WHOLE = stream(BODY)
LAST = stream(sse(delta("stop", content="Done."), "[DONE]"))
# Inside the head, at and around each event's end, and inside each event.
ENDS = [at + 2 for at in range(len(WHOLE)) if WHOLE.startswith(b"\n\n", at)]
CUTS = sorted({0, 9, *ENDS, *(end - 1 for end in ENDS), *(end - 30 for end in ENDS)})


async def play(home: Path, workspace: Path, cut: int) -> tuple[str, int]:
    """(status of the turn, requests that the server got) of an answer cut behind `cut` bytes."""
    ended = b'"finish_reason": "tool_calls"' in WHOLE[:cut] and WHOLE[:cut].count(b"\n\n") >= 5
    replies = [Reply([WHOLE[:cut]], "close"), *([] if ended else [Reply([WHOLE])]), Reply([LAST])]
    async with wired(home, workspace, replies) as agent:
        events, result = await agent.turn("Run it.")
    status = str(result["status"])
    assert status == "done"
    assert len([event for event in events if isinstance(event, CallFinished)]) == 1
    assert (workspace / "ran.txt").read_text() == "ran\n"
    for request in agent.wire.requests:
        messages = json.loads(request.body)["messages"]
        text = ",".join(json.dumps(message) for message in messages[1:]).encode()
        assert Validator("openai-chat", {}, 1).fault(text) == ""
    broke = [event.broke for event in events if isinstance(event, RetryCountdown)]
    assert broke == ([] if ended else [cut >= WHOLE.index(b"\r\n\r\n") + 4])
    assert [isinstance(event, AnswerDropped) for event in events].count(True) == broke.count(True)
    return status, len(agent.wire.requests)


@MAKES_FILES
async def test_a_cut_answer_never_runs_a_call_twice(tmp_path: Path) -> None:
    found = {}
    for cut in CUTS:
        workspace = tmp_path / str(cut)
        workspace.mkdir()
        found[cut] = await play(tmp_path / "home", workspace, cut)
    assert found[0] == ("done", 3) and found[CUTS[-1]] == ("done", 2)
