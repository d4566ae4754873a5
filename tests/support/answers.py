"""One answer with words and a call, and one that ends a turn, in each wire format: as events, and as bytes."""

import json
from typing import Any

from support.wire import delta, sse, stream

ARGUMENTS = json.dumps({"path": "made.txt", "content": "made once"})
DIALECTS = ("openai-chat", "openai-responses", "anthropic")
USED = {"prompt_tokens": 50, "completion_tokens": 20}


def _chat(words: str, arguments: str) -> list[Any]:
    events: list[Any] = [delta(role="assistant", content="")]
    events += [delta(content=word) for word in words.split(" ")]
    if not arguments:
        return [*events, delta("stop"), {"choices": [], "usage": USED}, "[DONE]"]
    begun = {"index": 0, "id": "call_a", "function": {"name": "write_file", "arguments": arguments[:9]}}
    rest = {"index": 0, "function": {"arguments": arguments[9:]}}
    return [
        *events,
        delta(tool_calls=[begun]),
        delta(tool_calls=[rest]),
        delta("tool_calls"),
        {"choices": [], "usage": USED},
        "[DONE]",
    ]


def _anthropic(words: str, arguments: str) -> list[Any]:
    usage = {"input_tokens": 50, "output_tokens": 1}
    events: list[Any] = [
        {"type": "message_start", "message": {"usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
    ]
    for word in words.split(" "):
        events.append({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}})
    events.append({"type": "content_block_stop", "index": 0})
    if arguments:
        block = {"type": "tool_use", "id": "toolu_1", "name": "write_file", "input": {}}
        events.append({"type": "content_block_start", "index": 1, "content_block": block})
        for piece in (arguments[:9], arguments[9:]):
            part = {"type": "input_json_delta", "partial_json": piece}
            events.append({"type": "content_block_delta", "index": 1, "delta": part})
        events.append({"type": "content_block_stop", "index": 1})
    reason = "tool_use" if arguments else "end_turn"
    ended = {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 20}}
    return [*events, ended, {"type": "message_stop"}]


def _responses(words: str, arguments: str) -> list[Any]:
    content = [{"type": "output_text", "text": words.replace(" ", ""), "annotations": []}]
    message = {"id": "msg_1", "type": "message", "role": "assistant"}
    output: list[Any] = [{**message, "content": content}]
    events: list[Any] = [
        {"type": "response.created", "response": {"status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**message, "content": []}},
    ]
    for word in words.split(" "):
        events.append({"type": "response.output_text.delta", "output_index": 0, "delta": word})
    events.append({"type": "response.output_item.done", "output_index": 0, "item": output[0]})
    if arguments:
        call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "write_file"}
        output.append({**call, "arguments": arguments, "status": "completed"})
        events.append({"type": "response.output_item.added", "output_index": 1, "item": {**call, "arguments": ""}})
        for piece in (arguments[:9], arguments[9:]):
            part = {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": piece}
            events.append(part)
        events.append({"type": "response.output_item.done", "output_index": 1, "item": output[1]})
    usage = {"input_tokens": 50, "output_tokens": 20}
    whole = {"status": "completed", "output": output, "usage": usage}
    return [*events, {"type": "response.completed", "response": whole}]


_MAKERS = {"openai-chat": _chat, "openai-responses": _responses, "anthropic": _anthropic}


def answer_events(dialect: str, words: str, arguments: str = "") -> list[Any]:
    """The events of an answer: words, then a call of write_file where there are arguments."""
    return _MAKERS[dialect](words, arguments)


def answer_bytes(dialect: str, words: str, arguments: str = "") -> bytes:
    """The whole answer as it comes over the wire, an HTTP chunk an event."""
    events = [sse(event) for event in answer_events(dialect, words, arguments)]
    head = stream(b"").removesuffix(b"0\r\n\r\n")
    return head + b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in events) + b"0\r\n\r\n"


def last_needed(dialect: str, events: list[Any]) -> int:
    """The number of events after which an answer is whole: what follows adds counts at most."""
    ends = {
        "openai-chat": lambda event: isinstance(event, dict) and any(c.get("finish_reason") for c in event["choices"]),
        "anthropic": lambda event: event["type"] == "message_delta",
        "openai-responses": lambda event: event["type"] == "response.completed",
    }
    return 1 + next(at for at, event in enumerate(events) if ends[dialect](event))
