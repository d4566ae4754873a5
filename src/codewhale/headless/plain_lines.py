"""The event stream as plain lines: no colours, no cursor, no signs that a screen reader stumbles over."""

import re

from codewhale.display.transcript.blocks import Block, Card, Countdown, Note, Receipt, Work
from codewhale.display.transcript.drawing import lines_of
from codewhale.display.transcript.story import Story
from codewhale.display.words import Words
from codewhale.lib.text import one_line, sanitise
from codewhale.protocol.events import (
    AnswerDropped,
    CallFinished,
    CallStarted,
    ChildClosed,
    Envelope,
    JobEnded,
    MessageAdded,
    RequestSent,
    RetryCountdown,
    TextStreamed,
)
from codewhale.protocol.messages import Text

MOST_LINES = 60
_TAIL_LINES = 20
_LINE = 2_000
_SIGN = re.compile(r"^(\s*)([^\x00-\x7f\w])\s")
_NAMED = {"✗": "plain.failed", "✓": "plain.done"}


class Teller:
    """Takes each event once, in order, and says its lines; words of the model as soon as a line of them is whole."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._story = Story()
        self._streamed = ""
        self._told = 0

    def tell(self, envelope: Envelope) -> list[str]:
        """The lines of an event, safe to print; none for most."""
        event = envelope.event
        card = self._story.open_calls.get(event.call_id) if isinstance(event, CallFinished) else None
        settled = len(self._story.settled)
        self._story.touched.clear()
        self._story.take(envelope)
        match event:
            case TextStreamed(text=text):
                return self._stream(text)
            case RequestSent():
                return self._cut_off()
            case AnswerDropped():
                told = self._cut_off()
                return [*told, *(line for block in self._story.settled[settled:] for line in self._plain(block)[:1])]
            case MessageAdded(message=message) if message.role == "assistant":
                whole = "".join(part.text for part in message.parts if isinstance(part, Text))
                return self._message(whole)
            case CallStarted(call_id=call_id):
                begun = self._story.open_calls.get(call_id)
                return [self._words("plain.runs", call=_call(begun))] if begun is not None else []
            case CallFinished() if card is not None:
                return self._plain(card)
            case RetryCountdown() if not event.broke:  # of one that broke, the line of what was dropped says it
                return [
                    line for block in self._story.live if isinstance(block, Countdown) for line in self._plain(block)
                ]
            case JobEnded() | ChildClosed():
                return [line for at in sorted(self._story.touched) for line in self._plain(self._story.settled[at])]
        return [line for block in self._story.settled[settled:] if _is_told(block) for line in self._plain(block)]

    def _stream(self, text: str) -> list[str]:
        self._streamed += text
        end = self._streamed.rfind("\n") + 1
        lines = self._said(self._streamed[self._told : end])
        self._told = max(self._told, end)
        return lines

    def _message(self, whole: str) -> list[str]:
        # What was held back or repaired after it was streamed is said again as it now stands.
        told = self._told if whole.startswith(self._streamed[: self._told]) else 0
        self._told = told
        lines = self._said(whole[told:].rstrip("\n"))
        self._streamed, self._told = "", 0
        return lines

    def _cut_off(self) -> list[str]:
        lines = self._said(self._streamed[self._told :])
        self._streamed, self._told = "", 0
        return lines

    def _said(self, text: str) -> list[str]:
        if not text.strip():
            return []
        lines = [sanitise(line) for line in text.removesuffix("\n").split("\n")]
        return lines if self._told else [self._words("plain.model"), *lines]

    def _plain(self, block: Block) -> list[str]:
        first, *rest = lines_of(block, self._words) or [""]
        head = _SIGN.sub(self._sign, first).replace(" · ", ", ")
        lines = [head, *(_SIGN.sub(r"\1  ", line) for line in rest)]
        if len(lines) > MOST_LINES:
            more = self._words("plain.more", n=len(lines) - MOST_LINES)
            lines = [*lines[: MOST_LINES - _TAIL_LINES], more, *lines[-_TAIL_LINES:]]
        return [line if len(line) <= _LINE else line[:_LINE] + "…" for line in lines]

    def _sign(self, match: re.Match[str]) -> str:
        name = _NAMED.get(match[2], "")
        return f"{self._words(name)} " if name else ""


def _is_told(block: Block) -> bool:
    """Whether a settled block is a line of its own: what the harness told the model is not."""
    if isinstance(block, Note):
        return block.key != "told"
    return isinstance(block, Receipt | Work) or (isinstance(block, Card) and not block.call_id)


def _call(card: Card) -> str:
    return one_line(f"{card.name} {card.subject}".strip(), 300)
