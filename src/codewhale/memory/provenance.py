"""Whose text a sentence of the model comes from: the person's own words, or a text that the conversation took in."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.lib.text import one_line
from codewhale.memory.model import Fact
from codewhale.protocol.events import (
    CallFinished,
    CallStarted,
    ChildOpened,
    ContextAppended,
    Event,
    FactProposed,
    HeaderPinned,
    MessageAdded,
    SessionOpened,
    ShellRan,
    TurnStarted,
)
from codewhale.protocol.messages import Image, Message, Text
from codewhale.protocol.tools import Effect, Origin

MESSAGE_SHOWN = 200  # characters of the message that a proposal is kept with
_OURS = (Origin.HARNESS, Origin.PERSON)
_OUTSIDE = (Origin.WEB, Origin.MCP, Origin.ISSUE)
_MOST_TEXT = 2_000_000  # characters that are compared, the newest first
_MOSTLY = 0.5
# A word is letters and digits; of scripts that do not part words, each sign.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_COMMON = frozenset(
    """a an and are as at be but by do does for from has have in is it its like likes of on or please prefer prefers
    remember that the their they this to use uses user want wants was we when with you your i my me our""".split()
)
_BLOCK = re.compile(
    r'<(instructions|skill)\b[^>\n]*?(?:file|name)="(?P<label>[^"\n]*)"[^>\n]*>\n(?P<text>.*?)\n</\1>', re.S
)


class Provenance(Struct, frozen=True):
    """Where a sentence comes from. `message` begins the person's message that the turn came from, `origin` names the
    foreign text ("" where it is the person's own), `proposed` counts what was proposed in this turn."""

    message: str = ""
    origin: str = ""
    proposed: int = 0


class _Source(Struct):
    """A text that nobody of the conversation wrote. `recent`: it came in this turn; `shown`: it was read as such, and
    so may have steered the model in words of its own."""

    label: str
    text: str
    recent: bool = True
    shown: bool = True
    outside: bool = False


class _Reader:
    def __init__(self) -> None:
        self.sources: list[_Source] = []
        self.messages: list[str] = []
        self.owner = self.name = ""
        self.proposed = 0
        self._calls: dict[str, CallStarted] = {}
        self._children: dict[str, str] = {}
        self._printed: list[_Source] = []

    def take(self, event: Event) -> None:
        match event:
            case SessionOpened():
                self.owner, self.name = event.owner, event.name
            case TurnStarted():
                for source in self.sources:
                    source.recent = source in self._printed
                self.proposed, self._printed = 0, []
            case MessageAdded(message=Message(role="user")):
                self.sources += self._sent(event)
            case CallStarted():
                self._calls[event.call_id] = event
            case CallFinished() if event.origin not in _OURS:
                self.sources.append(self._result(event))
            case ShellRan():
                self._printed.append(_Source(_output(event.command), event.output))
                self.sources.append(self._printed[-1])
            case ChildOpened():
                self._children[event.child] = event.name
            case HeaderPinned(system=text) | ContextAppended(text=text):
                self.sources += (
                    _Source(block["label"], block["text"], shown=False)
                    for block in _BLOCK.finditer(text)
                    if not block["label"].startswith("~/")
                )
            case FactProposed():
                self.proposed += 1

    def _sent(self, event: MessageAdded) -> Iterator[_Source]:
        """What a message brings beside the person's words, which stand first in it."""
        if event.child:
            yield _Source(f"the sub-agent {self._children.get(event.child, event.child)}", event.message.text)
            return
        texts = [part.text for part in event.message.parts if isinstance(part, Text) and part.source == "person"]
        self.messages += texts[:1]
        if self.owner:
            return
        yield from (_Source("what was attached to the message", text) for text in texts[1:])
        if any(isinstance(part, Image) for part in event.message.parts):
            yield _Source("an attached image", "")

    def _result(self, event: CallFinished) -> _Source:
        started = self._calls.get(event.call_id)
        effects = started.effects if started is not None else ()
        shown = Effect.WRITES not in effects and bool(effects)
        label = _label(event.name, _arguments(started.arguments if started is not None else ""))
        return _Source(label, event.content, shown=shown, outside=event.origin in _OUTSIDE)


def provenance(events: Iterable[Event], sentence: str, stored: Iterable[Fact] = ()) -> Provenance:
    """Where `sentence` comes from, by the events on which the conversation stands and the facts that are `stored`. In
    doubt it is foreign: only what one message of the person holds word for word is theirs while a foreign text is there
    that could have said it."""
    reader = _Reader()
    reader.sources += (_Source(f"the fact {one.id}", one.text, False, False) for one in stored if one.tainted)
    for event in events:
        reader.take(event)
    message = one_line(reader.messages[-1], MESSAGE_SHOWN) if reader.messages else ""
    return Provenance(message, one_line(_origin(reader, sentence), 160), reader.proposed)


def _origin(reader: _Reader, sentence: str) -> str:
    words = frozenset(_words(sentence))
    if not words:
        words = frozenset(_words(sentence, frozenset()))
    best, share = _nearest(reader.sources, words)
    own = [] if reader.owner else reader.messages
    if share < 1 and words and any(_share(text, words) == 1 for text in own):
        return ""
    if best is not None and share >= _MOSTLY:
        return best.label
    read = [source for source in reader.sources if source.shown and source.recent]
    if read:
        return f"a turn that read {(best if best in read else read[-1]).label}"
    outside = [source for source in reader.sources if source.outside]
    if outside:
        return f"a session that read {outside[-1].label}"
    return f"the sub-agent {reader.name or 'of a session'}" if reader.owner else ""


def _nearest(sources: Sequence[_Source], words: frozenset[str]) -> tuple[_Source | None, float]:
    """The source that holds most of the words close together, the newest of several, and which part of them."""
    best, most, left = None, 0.0, _MOST_TEXT
    for source in reversed(sources):
        share = _share(source.text[:left], words)
        if share > most:
            best, most = source, share
        left -= len(source.text)
        if left <= 0 or most == 1:
            break
    return best, most


def _share(text: str, words: frozenset[str]) -> float:
    """The greatest part of the words that stands in one passage of the text."""
    if not words:
        return 0.0
    window, most = 3 * len(words) + 20, 0
    counts: dict[str, int] = {}
    places: list[tuple[int, str]] = []
    first = 0
    for place, word in enumerate(_words(text, frozenset())):
        if word not in words:
            continue
        places.append((place, word))
        counts[word] = counts.get(word, 0) + 1
        while places[first][0] <= place - window:
            former = places[first][1]
            first += 1
            counts[former] -= 1
            if not counts[former]:
                del counts[former]
        most = max(most, len(counts))
        if most == len(words):
            break
    return most / len(words)


def _words(text: str, left_out: frozenset[str] = _COMMON) -> Iterator[str]:
    for match in _WORD.finditer(_plain(text)):
        word = match.group()
        if word not in left_out:
            yield word[:-1] if len(word) > 3 and word.endswith("s") else word


def _plain(text: str) -> str:
    """Text as it is compared: one form of each letter, and nothing that is not seen between two of them."""
    import unicodedata

    folded = unicodedata.normalize("NFKC", text).casefold()
    return folded if folded.isascii() else "".join(one for one in folded if unicodedata.category(one) != "Cf")


def _arguments(raw: str) -> Mapping[str, Any]:
    try:
        decoded = msgspec.json.decode(raw or "{}")
    except msgspec.DecodeError:
        return {}
    return decoded if isinstance(decoded, dict) else {}


def _label(tool: str, arguments: Mapping[str, Any]) -> str:
    """What a call has read, in words."""
    for key in ("url", "path"):
        value = arguments.get(key)
        if isinstance(value, str) and value.strip() not in ("", ".", "./"):
            return f"the page {value}" if key == "url" else value
    command = arguments.get("command")
    if isinstance(command, str) and command:
        return _output(command)
    return f"the result of {tool}"


def _output(command: str) -> str:
    return f"the output of `{one_line(command, 80)}`"
