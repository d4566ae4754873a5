"""What a request consists of: each byte of its body belongs to a layer of memory or to another named part."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import replace

from codewhale.lib.patterns import lazy
from codewhale.models.dialects.jsontext import encode
from codewhale.models.dialects.sizes import PICTURES
from codewhale.protocol.memory import ContextPart, LayerRow
from codewhale.protocol.messages import Part, Text
from codewhale.session.conversation import COMPACTED

PERSON, HARNESS, SHORTENED = "your messages", "from CodeWhale", "compacted"
SYSTEM, SKILLS, TOOLS, RELAY, ENVELOPE = "system text", "skills", "tools", "relay", "envelope"
MEMORY, LAW, RULES, MAP = "user-memory", "repo-constitution", "repo-rules", "codemap-wiki"
EXTERNAL = "aleph-external"
LAYERS = (
    LayerRow(MEMORY, "Your notes", "user", "user", "not sent"),
    LayerRow(LAW, "Constitution", "workspace", "repo", "not sent"),
    LayerRow(RULES, "Rules and instruction files", "workspace", "repo", "not sent"),
    LayerRow(MAP, "Map of the code", "workspace", "derived", "not sent"),
    LayerRow("trace-store", "Traces", "workspace", "derived", "not sent"),
    LayerRow("rlm-memo", "Answers to sub-queries", "global", "derived", "not sent"),
    LayerRow("cached-overlay", "Promoted lessons", "workspace", "learned", "not sent"),
    LayerRow(EXTERNAL, "External memory", "workspace", "derived", "not sent"),
)
_PARTS = (
    SYSTEM, SKILLS, TOOLS, PERSON, "answers", "reasoning", "tool calls", "tool results", PICTURES, HARNESS, RELAY,
    SHORTENED, ENVELOPE,
)  # fmt: skip
PICTURE_BYTES = 128  # of a picture's text form, one token
# Whose a context update is, by its kind up to a colon.
_UPDATES: Mapping[str, str] = MappingProxyType(
    {
        "memory": MEMORY, "constitution": LAW, "instructions": RULES, "rules": RULES, "codemap": MAP,
        "skills": SKILLS, "skill": SKILLS, "offered_skills": SKILLS, "relay": RELAY, "sources": EXTERNAL,
    }
)  # fmt: skip
# How the sections of a system text begin.
_SECTIONS: Mapping[str, str] = MappingProxyType(
    {
        "# The user's notes": MEMORY, "# The project's constitution": LAW, "# Rules": RULES,
        "# Instructions of this project": RULES, "# Map of the code": MAP, "# Skills": SKILLS,
    }
)  # fmt: skip
_TAGS = "user_memory|constitution|rule|instructions|codemap|skills?"
# A heading, and then blocks, which nothing in them can close, and lines of our own, up to an empty one.
_SECTION = lazy(
    rf"(?:\A|(?<=\n\n))(?P<head>{'|'.join(map(re.escape, _SECTIONS))})(?=\n)"
    rf"(?:\n<(?P<tag>{_TAGS})\b.*?</(?P=tag)>|\n(?!\n|<(?:{_TAGS})\b)[^\n]*)*",
    re.DOTALL,
)


class Footprint(Struct, frozen=True):
    """The bytes of a request's body by what they are: `head` in system text and tools, `tail` in the messages. What is
    in neither is the envelope: the model, options, roles, ids and punctuation."""

    body: int
    head: Mapping[str, int]
    tail: Mapping[str, int]

    @property
    def envelope(self) -> int:
        return self.body - sum(self.head.values()) - sum(self.tail.values())

    def without(self, words: int) -> "Footprint":
        """The same request without so many bytes of the person's words."""
        return Footprint(self.body - words, self.head, {**self.tail, PERSON: self.tail[PERSON] - words})


def written(text: str) -> int:
    """The bytes of a text inside a JSON string."""
    return len(encode(text)) - 2


def head_sizes(system: str, tools_json: str) -> dict[str, int]:
    """The bytes of a head by what they are."""
    sizes = Counter({TOOLS: len(tools_json.encode()) if tools_json != "[]" else 0})
    for section in _SECTION().finditer(system):
        sizes[_SECTIONS[section["head"]]] += written(section[0])
    sizes[SYSTEM] = written(system) - sum(sizes[name] for name in set(_SECTIONS.values()))
    return dict(sizes)


def word_sizes(parts: Iterable[Part]) -> Counter[str]:
    """The bytes of a user message's texts by whose they are; blank ones are punctuation."""
    sizes: Counter[str] = Counter()
    for part in parts:
        if isinstance(part, Text) and part.text.strip():
            sizes[_whose(part)] += written(part.text)
    return sizes


def _whose(text: Text) -> str:
    if text.source != "harness":
        return "answers" if text.source == "model" else PERSON
    if not text.kind and text.text.startswith(COMPACTED):
        return SHORTENED
    return _UPDATES.get(text.kind.partition(":")[0], HARNESS)


def tables(
    request: Footprint, used: int, layers: Sequence[LayerRow] = LAYERS
) -> tuple[tuple[LayerRow, ...], tuple[ContextPart, ...]]:
    """The rows of the layers with what is sent of each, and all other parts of the request; the bytes of both come to
    its body, their tokens to `used`."""
    head, tail = request.head, request.tail
    sizes = Counter(head) + Counter(tail) + Counter({ENVELOPE: request.envelope})
    names = list(dict.fromkeys((*(row.name for row in layers), *(one for one in _PARTS if sizes[one]), *sizes)))
    pictures = min(used, sizes[PICTURES] // PICTURE_BYTES)
    tokens = _apportioned(used - pictures, {name: sizes[name] for name in names if name != PICTURES})
    tokens[PICTURES] = pictures
    rows = tuple(
        replace(
            row,
            place="head" if head.get(row.name) else "tail" if tail.get(row.name) else "not sent",
            sent=sizes[row.name],
            tokens=tokens[row.name],
        )
        for row in layers
    )
    return rows, tuple(ContextPart(name, sizes[name], tokens[name]) for name in names[len(layers) :])


def _apportioned(total: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """A total in whole shares by size; those that lose most by rounding down get what is left."""
    whole = max(1, sum(sizes.values()))
    shares = {name: total * size // whole for name, size in sizes.items()}
    left = total - sum(shares.values())
    for name in sorted(sizes, key=lambda name: -(total * sizes[name] % whole))[:left]:
        shares[name] += 1
    return shares
