"""A root model that plays calls, and a model for its sub-queries that is a function of its prompt."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from codewhale.protocol.events import CallFinished, Event
from codewhale.testing import harness

Call = tuple[str, dict[str, Any]]


class Models:
    """Answers conversations with `calls`, one after the other, and questions with `answer`; counts the questions."""

    def __init__(self, calls: Sequence[Call], answer: Callable[[str], str]) -> None:
        self._calls = list(calls)
        self._answer = answer
        self.questions: list[str] = []

    def __call__(self, request: dict[str, Any]) -> dict[str, Any]:
        if request.get("tools"):
            if not self._calls:
                return {"text": "Done."}
            name, arguments = self._calls.pop(0)
            return {"calls": [{"name": name, "arguments": arguments}]}
        prompt = request["messages"][-1]["content"]
        self.questions.append(prompt)
        return {"text": self._answer(prompt)}


async def rounds(
    home: Path, workspace: Path, calls: Sequence[Call], answer: Callable[[str], str] = lambda prompt: "yes"
) -> tuple[list[dict[str, Any]], Models, list[Event]]:
    """The results of calls, as objects (a failed one as {"error": text}), with the models and all events."""
    models = Models(calls, answer)
    async with harness(home, workspace, models) as stage:
        events = await stage.turn("Go", seconds=900)
    finished = [event for event in events if isinstance(event, CallFinished)]
    return [parsed(event) for event in finished], models, events


def parsed(event: CallFinished) -> dict[str, Any]:
    if not event.ok:
        return {"error": event.content}
    value: dict[str, Any] = json.loads(event.content)
    return value


def opened(path: str = "source.txt", name: str = "s") -> Call:
    return "rlm_open", {"name": name, "file_path": path}


def evaluated(code: str, name: str = "s") -> Call:
    return "rlm_eval", {"name": name, "code": code}
