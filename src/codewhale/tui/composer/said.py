"""What a composer says upward."""

from typing import Literal

from textual.message import Message

from codewhale.display.drafts import Draft
from codewhale.protocol.ops import Attachment

Delivery = Literal["turn", "steer", "queue"]


class Sent(Message, namespace="composer"):
    """A message to the model. Whoever cannot send it gives `draft` back."""

    def __init__(self, draft: Draft, delivery: Delivery) -> None:
        super().__init__()
        self.draft = draft
        self.text = draft.text.rstrip()
        self.delivery = delivery
        self.attachments: tuple[Attachment, ...] = tuple(chip.attachment() for chip in draft.chips)


class Command(Message, namespace="composer"):
    """A slash command line."""

    def __init__(self, line: str) -> None:
        super().__init__()
        self.line = line


class Shell(Message, namespace="composer"):
    """A command line of the person's own, without the mark before it."""

    def __init__(self, line: str) -> None:
        super().__init__()
        self.line = line


class ModeCycled(Message, namespace="composer"):
    """The next mode is wanted."""


class EffortCycled(Message, namespace="composer"):
    """The next reasoning effort is wanted."""
