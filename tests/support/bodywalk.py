"""A request's body taken apart without the program's help: each string, name and mark of it belongs to somebody."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

PLAIN = {"role", "type", "id", "call_id", "tool_call_id", "tool_use_id", "model", "media_type", "detail", "phase"}
HEADINGS = {
    "# The user's notes\n": ("user_memory", "user-memory"),
    "# The project's constitution\n": ("constitution", "repo-constitution"),
    "# Rules\n": ("rule skill", "repo-rules"),
    "# Instructions of this project\n": ("instructions", "repo-rules"),
    "# Map of the code\n": ("codemap", "codemap-wiki"),
    "# Skills\n": ("skills", "skills"),
}


def coded(value: Any) -> int:
    """The bytes of a value as JSON."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


class Walk:
    """What the parts of a body take, by their names in the dashboard. `texts` are those of user messages with whose
    they are; a string in a place that is not known here is an AssertionError."""

    def __init__(self, body: bytes, texts: Mapping[str, str]) -> None:
        self.sizes: Counter[str] = Counter()
        self._texts = sorted(texts.items(), key=lambda row: -len(row[0]))
        wire = json.loads(body)
        self._top(wire)
        assert sum(self.sizes.values()) == len(body), "the walk does not see all of the body"

    def _say(self, what: str, text: str) -> None:
        self.sizes[what] += coded(text) - 2
        self.sizes["envelope"] += 2

    def _marks(self, wire: dict[str, Any]) -> None:
        self.sizes["envelope"] += 1 + len(wire) + (not wire) + sum(coded(key) + 1 for key in wire)

    def _row(self, items: list[Any]) -> None:
        self.sizes["envelope"] += 1 + len(items) + (not items)

    def _plain(self, value: Any) -> None:
        self.sizes["envelope"] += coded(value)

    def _top(self, wire: dict[str, Any]) -> None:
        self._marks(wire)
        for key, value in wire.items():
            if key == "tools":
                self.sizes["tools"] += coded(value)
            elif key == "instructions":
                self._system(value)
            elif key == "system":
                self._row(value)
                for block in value:
                    self._marks(block)
                    for name, part in block.items():
                        self._system(part) if name == "text" else self._plain(part)
            elif key in ("messages", "input"):
                self._row(value)
                for message in value:
                    self._message(message)
            else:
                self._plain(value)

    def _system(self, text: str) -> None:
        rest, at = "", 0
        while starts := [(text.find(head, at), head) for head in HEADINGS if text.find(head, at) >= 0]:
            start, head = min(starts)
            tags, owner = HEADINGS[head]
            end = max(text.rfind(f"</{tag}>") + len(tag) + 3 for tag in tags.split())
            assert end > start, "a section without a block"
            rest += text[at:start]
            self.sizes[owner] += coded(text[start:end]) - 2
            at = end
        self._say("system text", rest + text[at:])

    def _message(self, wire: dict[str, Any]) -> None:
        role, kind = wire.get("role", ""), wire.get("type", "message")
        self._marks(wire)
        for key, value in wire.items():
            if key in PLAIN:
                self._plain(value)
            elif role == "system":
                self._system(value)
            elif key == "content" and isinstance(value, list):
                self._row(value)
                for block in value:
                    self._block(block, role)
            elif key == "tool_calls":
                self._row(value)
                for call in value:
                    self._block(call, role)
            elif kind == "function_call" and key in ("name", "arguments"):
                self._say("tool calls", value)
            elif key in ("content", "output"):
                self._words(value, "user" if role == "user" else role or "tool")
            else:
                self._thought(key, value)

    def _block(self, wire: dict[str, Any], role: str) -> None:
        kind = wire["type"]
        self._marks(wire)
        for key, value in wire.items():
            if key in ("type", "id", "tool_use_id", "is_error", "detail"):
                self._plain(value)
            elif kind in ("thinking", "redacted_thinking"):
                self._thought(key, value)
            elif key == "input":
                self.sizes["tool calls"] += coded(value)
            elif key == "function":
                self._marks(value)
                self._say("tool calls", value["name"])
                self._say("tool calls", value["arguments"])
            elif key == "source":
                self._marks(value)
                self._plain(value["type"])
                self._plain(value["media_type"])
                self._say("pictures", value["data"])
            elif key == "image_url":
                if isinstance(value, dict):
                    self._marks(value)
                    value = value["url"]
                self._say("pictures", value)
            elif key == "name":
                self._say("tool calls", value)
            elif key == "text":
                self._words(value, role)
            else:
                assert (kind, key) == ("tool_result", "content"), (kind, key)
                self._say("tool results", value)

    def _thought(self, key: str, value: Any) -> None:
        assert key in ("reasoning_content", "thinking", "signature", "data", "summary", "encrypted_content"), key
        size = coded(value)
        self.sizes["reasoning"] += size - 2 * isinstance(value, str)
        self.sizes["envelope"] += 2 * isinstance(value, str)

    def _words(self, text: str, role: str) -> None:
        if role != "user":
            self._say({"assistant": "answers", "tool": "tool results"}[role], text)
            return
        self.sizes["envelope"] += 2
        while text:
            known = next((row for row in self._texts if row[0].strip() and text.startswith(row[0])), None)
            if known is None:  # what joins two, or stands for a picture that is not sent
                assert text[0].isspace() or text.startswith("["), text[:200]
                known = (text[:1] if text[0].isspace() else text[: text.index("]") + 1], "envelope")
            self.sizes[known[1]] += coded(known[0]) - 2
            text = text[len(known[0]) :]
