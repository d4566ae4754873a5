"""A question beside the conversation as the log keeps it: a recipe for its text, and the rest of its request."""

import msgspec
from msgspec import Struct

from codewhale.models.dialects.base import Dialect, RequestOptions
from codewhale.protocol.messages import Image, Message, Text

QUESTION = "question"  # the purpose of its request


class QuestionRecord(Struct, frozen=True, omit_defaults=True):
    """What stands in `RequestSent.extra`. `redacted`: secrets were hidden in the text after it was made."""

    model: str
    recipe: dict[str, object]
    system: str = ""
    effort: str = ""
    temperature: float | None = None
    redacted: bool = False

    def body(self, dialect: Dialect, text: str, max_tokens: int) -> bytes:
        """The request's body around the text that was sent; `max_tokens` as its event says."""
        wire = dialect.message(Message("user", (Text(text, source="harness"),)), _no_image)
        options = RequestOptions(max_tokens, self.effort, self.temperature)
        return dialect.body(self.model, self.system, "", (wire,), options)


def read_record(extra: str) -> QuestionRecord:
    """The record of a question in a log. Raises msgspec.MsgspecError for what is none."""
    return msgspec.json.decode(extra, type=QuestionRecord)


def _no_image(image: Image) -> bytes:
    raise KeyError(image.artifact)
