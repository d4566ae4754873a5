"""Old tool results said shorter: each stays readable under the handle that takes its place."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from codewhale.engine.conversation import result_parts
from codewhale.engine.outputs import Keeper
from codewhale.engine.rulelines import rule_lines, within
from codewhale.lib.text import one_line
from codewhale.protocol.messages import Message, ResultPart, ToolCall

SHORTEST = 1024
_RULE_BYTES = 512
MARK = "[Set aside to save room:"


class Pruned(Struct, frozen=True):
    """Results that stand in place of longer ones, whole batches of them, and the bytes that are saved."""

    results: tuple[ResultPart, ...]
    saved: int


def prune(
    messages: Sequence[Message], wanted: int, keeper: Keeper, session: str, artifacts: Mapping[str, str]
) -> Pruned:
    """Shorter results for the oldest batches of `messages` until `wanted` bytes are saved or none is left. `artifacts`
    are the outputs kept already, by call id. Raises StorageFullError, SessionError."""
    calls = {call.id: call for message in messages for call in message.calls}
    results: list[ResultPart] = []
    saved = 0
    for message in messages:
        if saved >= wanted:
            break
        if message.role == "tool" and any(_long(part) for part in result_parts(message)):
            for part in result_parts(message):
                if _long(part):
                    sha = artifacts.get(part.call_id) or keeper.put(part.content.encode("utf-8", "replace"))
                    keeper.remember(session, part.call_id, sha)
                    shorter = ResultPart(part.call_id, _stub(part, calls.get(part.call_id), sha), part.ok)
                    saved += len(part.content) - len(shorter.content)
                    part = shorter
                results.append(part)
    return Pruned(tuple(results), saved)


def _long(part: ResultPart) -> bool:
    return len(part.content) > SHORTEST and not part.content.startswith(MARK)


def _stub(part: ResultPart, call: ToolCall | None, sha: str) -> str:
    what = f"{call.sent_name} {one_line(call.sent_arguments, 120)}" if call is not None else "a call"
    lines = part.content.splitlines()
    head = f"{MARK} {len(part.content.encode('utf-8', 'replace'))} bytes, {len(lines)} lines of {what}."
    text = f'{head} Read it again with retrieve_tool_result {{"ref": "art_{sha[:16]}"}}.]'
    rules = within(rule_lines(part.content), _RULE_BYTES)
    return "\n".join([text, "Rules it states, word for word:", *rules]) if rules else text
