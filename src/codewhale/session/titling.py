"""Titles as a model makes them: what it is asked, and what of its answer is the title."""

import re
from collections.abc import Iterable

from codewhale.lib.text import one_line
from codewhale.protocol.events import Event, MessageAdded
from codewhale.protocol.messages import Text
from codewhale.session.listing import TITLE_LIMIT

_SHOWN = 1_000  # characters of each side of the exchange
_PROMPT = (
    "Give this conversation a title: at most 6 words, in the language of the request, without quotes or a full stop. "
    "Answer with the title alone.\n\n<request>\n{}\n</request>\n\n<answer>\n{}\n</answer>"
)
_BEFORE = re.compile(r"^(?:title|标题)\s*[:：]\s*", re.IGNORECASE)
_AROUND = " \t*_#`'\"“”‘’«»「」《》.。"


def title_of(answer: str) -> str:
    """The title in what a model answered, "" where there is none."""
    lines = [line.strip() for line in answer.rpartition("</think>")[2].splitlines()]
    line = next(filter(None, lines), "").replace("**", "").strip(_AROUND)
    line = _BEFORE.sub("", line).strip(_AROUND)
    return one_line(line, TITLE_LIMIT)


def title_prompt(events: Iterable[Event]) -> str:
    """What to ask for a title of the first exchange: its first message and the last answer to it; "" without both."""
    asked = answered = ""
    for event in events:
        if not isinstance(event, MessageAdded):
            continue
        parts = (part for part in event.message.parts if isinstance(part, Text) and part.source != "harness")
        text = "\n".join(part.text for part in parts)
        if event.message.role == "user":
            if asked and answered:
                break
            asked = asked or text.strip()
        elif text.strip():
            answered = text.strip()
    return _PROMPT.format(asked[:_SHOWN], answered[:_SHOWN]) if asked and answered else ""
