"""A model for a session and its sub-agents: the session makes the call that it is asked for, and each sub-agent does
what the second word of its task says."""

from typing import Any

Call = tuple[str, dict[str, Any]]


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)


class Model:
    """`ask` gives the message that makes the session call a tool. Of tasks: `Work once` ends at once, `Work long` does
    not end by itself, `Work down` opens another that works down; what a task of `tasks` begins with makes its calls,
    one list a step. `results` are what the calls of `Work down` came to, `heard` those of `tasks` in their order."""

    def __init__(self) -> None:
        self._calls: dict[str, Call] = {}
        self._asked = 0
        self.results: list[str] = []
        self.tasks: dict[str, list[list[Call]]] = {}
        self.heard: list[str] = []

    def ask(self, call: Call) -> str:
        self._asked += 1
        message = f"Call {self._asked}."
        self._calls[message] = call
        return message

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        messages = request["messages"]
        asked = [_text(one) for one in messages if one["role"] == "user"]
        task = "" if any("Call " in text for text in asked) else " ".join(asked)
        for begin in [begin for begin in self.tasks if begin in task]:
            self.heard = [_text(one) for one in messages if one["role"] == "tool"]
            if self.tasks[begin]:
                calls = self.tasks[begin].pop(0)
                return {"calls": [{"name": name, "arguments": arguments} for name, arguments in calls]}
        if "Work long" in task:
            return {"text": "late", "delay": 600}
        if "Work down" in task:
            self.results += [_text(one) for one in messages if one["role"] == "tool"]
            if messages[-1]["role"] == "tool" or len(asked) > 2:
                return {"text": "SUMMARY: as far as it goes"}
            return {"calls": [{"name": "agent_open", "arguments": {"prompt": "Work down"}}]}
        wanted = next((message for message in self._calls if any(message in text for text in asked)), "")
        if task or not wanted:
            return {"text": "SUMMARY: done"}
        call = self._calls.pop(wanted)
        return {"calls": [{"name": call[0], "arguments": call[1]}]}
