"""Old tool results said shorter: each stays readable under the handle that takes its place."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from codewhale.lib.text import head_tail, one_line
from codewhale.protocol.messages import Message, ResultPart, ToolCall
from codewhale.session.conversation import result_parts
from codewhale.session.rulelines import rule_lines, within

Keep = Callable[[str, str], str]  # a call id and its output; the sha256 under which it is kept
SHORTEST = 1024
EXCERPT = 2048
_RULE_BYTES = 512
MARK = "[Set aside to save room:"


class Pruned(Struct, frozen=True):
    """Results that stand in place of longer ones, whole batches of them, and the bytes that are saved."""

    results: tuple[ResultPart, ...]
    saved: int


def prune(
    messages: Sequence[Message], wanted: int, keep: Keep, artifacts: Mapping[str, str], unread: bool = False
) -> Pruned:
    """Shorter results for the oldest batches of `messages` until `wanted` bytes are saved or none is left; of the
    last message, where it is `unread`, head and tail stay. `artifacts` are the outputs kept already, by call id.
    Raises StorageFullError, SessionError."""
    calls = {call.id: call for message in messages for call in message.calls}
    results: list[ResultPart] = []
    saved = 0
    for place, message in enumerate(messages, start=1):
        if saved >= wanted:
            break
        excerpt = EXCERPT if unread and place == len(messages) else 0
        if message.role == "tool" and any(_long(part, excerpt) for part in result_parts(message)):
            for part in result_parts(message):
                if _long(part, excerpt):
                    sha = artifacts.get(part.call_id) or keep(part.call_id, part.content)
                    shorter = ResultPart(part.call_id, _stub(part, calls.get(part.call_id), sha, excerpt), part.ok)
                    saved += len(part.content) - len(shorter.content)
                    part = shorter
                results.append(part)
    return Pruned(tuple(results), saved)


def _long(part: ResultPart, excerpt: int) -> bool:
    return len(part.content) > SHORTEST + 2 * excerpt and not part.content.startswith(MARK)


def _stub(part: ResultPart, call: ToolCall | None, sha: str, excerpt: int) -> str:
    what = f"{call.sent_name} {one_line(call.sent_arguments, 120)}" if call is not None else "a call"
    lines = part.content.splitlines()
    head = f"{MARK} {len(part.content.encode('utf-8', 'replace'))} bytes, {len(lines)} lines of {what}."
    text = f'{head} Read it again with retrieve_tool_result {{"ref": "art_{sha[:16]}"}}.]'
    if excerpt:
        start, end, _ = head_tail(part.content, excerpt)
        return "\n".join([text, start, "[...]", end])
    rules = within(rule_lines(part.content), _RULE_BYTES)
    return "\n".join([text, "Rules it states, word for word:", *rules]) if rules else text
