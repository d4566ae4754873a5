"""The marked formats in which models write calls as text: how each is read at the place where it opens.

A reader takes one block of calls and says where it ends. A block that is cut off keeps its call, with arguments that
end in the middle, so that whoever judges it sees a cut call; a broken one keeps its text for the same reason.
"""

import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from codewhale.repair.codes import RepairCode
from codewhale.repair.jsoncalls import (
    Row,
    calls_of,
    cut_off,
    decode_at,
    encode,
    json_rows,
    next_word,
    pythonic,
    values,
)

_CUT_OFF = ', "'


class Block(Struct, frozen=True):
    """Calls read from one place, and where the text after them begins; without calls, what is none of them. `closed`
    tells that they are whole and end as their format ends them."""

    rows: list[Row]
    end: int
    closed: bool = True


class Source:
    """A text with its searches remembered, so that many openings without an end cost one look at it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._found: dict[str, tuple[int, int]] = {}

    def find(self, mark: str, at: int) -> int:
        """The first place of `mark` from `at`, -1 for none."""
        asked, place = self._found.get(mark, (-1, -2))
        if place == -2 or not (asked <= at and (place == -1 or place >= at)):
            place = self.text.find(mark, at)
            self._found[mark] = (at, place)
        return place


Reader = Callable[[Source, int], Block | None]

# ---------------------------------------------------------------------- JSON between marks


def between(opening: str, *closings: str) -> Reader:
    """A reader of JSON behind a mark, up to one of `closings` or, where none follows, to the end of the text."""
    pattern = re.compile(opening)

    def reader(source: Source, at: int) -> Block | None:
        match = pattern.match(source.text, at)
        return match and _json_block(source, at, match.end(), closings)

    return reader


def _json_block(source: Source, opened: int, start: int, closings: tuple[str, ...]) -> Block | None:
    """JSON from `start`: where it is whole its own end counts, so that marks inside its strings do not."""
    text = source.text
    rows: list[Row] = []
    at = next_word(text, start)
    if text.startswith("```", at):
        at = next_word(text, text.find("\n", at) if "\n" in text[at : at + 20] else at + 3)
    while text[at : at + 1] in ("{", "["):
        try:
            value, end = decode_at(text, at)
        except ValueError:
            break
        some = calls_of(value)
        if some is None:
            return None
        rows += some
        at = next_word(text, end)
    rest = (text[at : at + 3] == "```" and next_word(text, at + 3)) or at
    for mark in closings:
        if text.startswith(mark, rest) and rows:
            return Block(rows, rest + len(mark))
    if rows and text[rest : rest + 1] not in ("{", "["):
        # Behind a special token the JSON's own end is the end: servers strip the token that follows it.
        return Block(rows, rest, text[opened] != "<" or text[opened + 1] in "|｜")
    ends = [(place, mark) for mark in closings if (place := source.find(mark, at)) >= 0]
    again = source.find("\n" + text[opened:start].strip()[:12], at)
    end, mark = min(ends, default=(len(text), ""))
    if 0 <= again < end:
        end, mark = again, ""
    more = json_rows(text[at:end], closed=bool(ends) or again >= 0) or []
    return Block(rows + more, end + len(mark), bool(mark))


def named(pattern: str, *closings: str) -> Reader:
    """A reader of a name behind a mark and of its arguments as JSON, up to one of `closings`."""
    compiled = re.compile(pattern)

    def reader(source: Source, at: int) -> Block | None:
        text = source.text
        match = compiled.match(text, at)
        if match is None:
            return None
        name, start = match["name"], next_word(text, match.end())
        fenced = text.startswith("```", start)
        if fenced:
            start = next_word(text, text.find("\n", start) if "\n" in text[start : start + 20] else start + 3)
        try:
            _, end = decode_at(text, start)
            said, whole = text[start:end], True
        except ValueError:
            whole = False
            ends = [place for mark in closings if (place := source.find(mark, start)) >= 0]
            end = min(ends, default=len(text))
            said = text[start:end].strip().removesuffix("```").strip()
            said = said if ends else cut_off(said)
        after = next_word(text, end)
        if fenced and text.startswith("```", after):
            after = next_word(text, after + 3)
        mark = next((mark for mark in closings if text.startswith(mark, after)), "")
        return Block([(name, said)], after + len(mark) if mark else end, whole or bool(mark))

    return reader


# ---------------------------------------------------------------------- tags

BAR = r"(?:[|｜]{1,2}|‖)"
_DSML = rf"{BAR}DSML{BAR}\s*"


class Tags(Struct, frozen=True):
    """How a family of tags writes a call: its opening with `name` (and `self` where it ends at once), a parameter's
    opening with `key` and `rest`, and what ends each, told from the text of the opening."""

    call: re.Pattern[str]
    parameter: re.Pattern[str]
    ends_call: Callable[[re.Match[str]], str]
    ends_parameter: Callable[[re.Match[str]], str]


def _prefixed(word: str) -> Callable[[re.Match[str]], str]:
    return lambda match: f"</{match['prefix']}{word}>"


_INVOKE_TAGS = Tags(
    re.compile(rf"<(?P<prefix>{_DSML}|[\w-]+:|)invoke\s+name\s*=\s*[\"']?(?P<name>[\w.:/-]+)[\"']?\s*(?P<self>/?)>"),
    re.compile(
        rf"\s*<(?P<prefix>{_DSML}|[\w-]+:|)parameter\s+name\s*=\s*[\"']?(?P<key>[\w.$-]+)[\"']?(?P<rest>[^<>]*)>"
    ),
    _prefixed("invoke"),
    _prefixed("parameter"),
)
_FUNCTION_TAGS = Tags(
    re.compile(r"<(?P<prefix>)function=[\"']?(?P<name>[\w.:/-]+)[\"']?\s*(?P<self>/?)>"),
    re.compile(r"\s*<(?P<prefix>)parameter=[\"']?(?P<key>[\w.$-]+)[\"']?(?P<rest>)\s*>"),
    _prefixed("function"),
    _prefixed("parameter"),
)


def tagged(tags: Tags) -> Reader:
    """A reader of calls written as tags."""

    def reader(source: Source, at: int) -> Block | None:
        opening = tags.call.match(source.text, at)
        if opening is None:
            return None
        name, start = opening["name"], opening.end()
        if opening["self"]:
            return Block([(name, "{}")], start)
        closing = tags.ends_call(opening)
        given, place, whole = _parameters(source, start, closing, tags)
        if whole and source.text.startswith(closing, place):
            return Block([(name, encode(given))], place + len(closing))
        if not whole and source.find(closing, place) < 0:
            return Block([(name, encode(given)[:-2])], len(source.text), False)
        return _broken(source, (name, start, place, closing), given if whole else None, tags)

    return reader


def _parameters(source: Source, at: int, closing: str, tags: Tags) -> tuple[dict[str, Any], int, bool]:
    """Arguments from tags, the place behind the last one, and whether each has its end, before this call's and the
    next one's beginning."""
    given: dict[str, Any] = {}
    while match := tags.parameter.match(source.text, at):
        end = _end_of_value(source, match, tags)
        if end < 0:
            return {**given, match["key"]: source.text[match.end() :]}, match.end(), False
        over = source.find(closing, match.end())
        if 0 <= over < end and tags.call.match(source.text, next_word(source.text, over + len(closing))):
            return given, match.end(), False
        given[match["key"]] = typed(source.text[match.end() : end], match["rest"])
        at = end + len(tags.ends_parameter(match))
    return given, next_word(source.text, at), True


def _end_of_value(source: Source, match: re.Match[str], tags: Tags) -> int:
    """The first end of a parameter that a parameter or the end of the call follows, so that the same tag inside a
    value does not end it; -1 where there is none."""
    closing = tags.ends_parameter(match)
    end = first = source.find(closing, match.end())
    for _ in range(16):
        if end < 0:
            break
        after = next_word(source.text, end + len(closing))
        if source.text.startswith("</", after) or any(
            tag.match(source.text, after) for tag in (tags.parameter, tags.call)
        ):
            return end
        end = source.find(closing, end + 1)
    return first


def _broken(source: Source, call: tuple[str, int, int, str], given: dict[str, Any] | None, tags: Tags) -> Block | None:
    """A call whose tags are not as they should be: JSON in their place, cut off, or broken and kept for judgement.
    `call` is its name, where its body begins, how far it could be read, and what should end it."""
    name, start, place, closing = call
    text = source.text
    end = source.find(closing, start if given is not None else place)
    following = tags.call.search(text, place, end if end >= 0 else len(text)) if given is not None else None
    if following is not None:
        end, closing = following.start(), ""
    if end < 0:
        whole = text[start:].strip()
        if not given and whole[:1] == "{" and values(whole) is not None:
            return Block([(name, whole)], len(text), False)
        return Block([(name, cut_off(encode(given or {})[:-1]))], len(text), False)
    body = text[start:end].strip()
    if not given and body[:1] == "{":
        return Block([(name, body)], end + len(closing), bool(closing))
    return Block([(name, body or "{" + _CUT_OFF)], end + len(closing), bool(closing))


def typed(value: str, rest: str) -> Any:
    """A tag's text: a string as it stands but for the line breaks beside the tags; what says it is no string, as
    JSON."""
    if re.search(r"""string\s*=\s*["']?false""", rest):
        found = values(value)
        return found[0] if found and len(found) == 1 else value
    if re.search(r"""string\s*=\s*["']?true""", rest) is None and value.startswith("\n"):
        return value[1:].removesuffix("\n")
    return value


def _pairs(
    source: Source, place: int, opening: re.Pattern[str], ending: Callable[[str], str]
) -> tuple[dict[str, Any], int, bool]:
    """Arguments in tags, each opened by `opening` and ended by `ending` of its key; the place behind them, and whether
    each has its end."""
    given: dict[str, Any] = {}
    while match := opening.match(source.text, place):
        ends = ending(match["key"])
        end = source.find(ends, match.end())
        if end < 0:
            return given, len(source.text), False
        given[match["key"]] = typed(source.text[match.end() : end], "")
        place = end + len(ends)
    return given, next_word(source.text, place), True


def _cut(name: str, given: dict[str, Any], source: Source) -> Block:
    return Block([(name, cut_off(encode(given)[:-1]))], len(source.text), False)


_GLM = re.compile(r"<tool_call>\s*(?P<name>[\w.:/-]+)\s*(?=<arg_key>|</tool_call>|$)")
_GLM_KEY = re.compile(r"\s*<arg_key>\s*(?P<key>[\w.$-]+)\s*</arg_key>\s*<arg_value>")


def glm(source: Source, at: int) -> Block | None:
    """A name, then pairs of key and value in tags of their own."""
    opening = _GLM.match(source.text, at)
    if opening is None:
        return None
    given, place, _ = _pairs(source, opening.end(), _GLM_KEY, lambda key: "</arg_value>")
    if source.text.startswith("</tool_call>", place):
        return Block([(opening["name"], encode(given))], place + len("</tool_call>"))
    if place >= len(source.text):
        return _cut(opening["name"], given, source)
    end = source.find("</tool_call>", place)
    if end < 0:
        return None
    return Block([(opening["name"], source.text[opening.end() : end].strip())], end + len("</tool_call>"))


_NAME_TAG = re.compile(r"<(?P<name>[a-z][a-z0-9]*(?:_[a-z0-9]+)+)>")
_CHILD = re.compile(r"\s*<(?P<key>[a-z][a-z0-9_]*)>")


def name_tags(source: Source, at: int) -> Block | None:
    """A tag that is the tool's name, with a tag for each argument."""
    opening = _NAME_TAG.match(source.text, at)
    if opening is None:
        return None
    given, place, _ = _pairs(source, opening.end(), _CHILD, "</{}>".format)
    closing = f"</{opening['name']}>"
    if source.text.startswith(closing, place):
        return Block([(opening["name"], encode(given))], place + len(closing))
    return _cut(opening["name"], given, source) if given and place >= len(source.text) else None


_OLD_INVOKE = re.compile(r"<invoke>\s*<tool_name>\s*(?P<name>[\w.:/-]+)\s*</tool_name>\s*<parameters>")
_OLD_END = re.compile(r"\s*</parameters>\s*</invoke>")


def old_invoke(source: Source, at: int) -> Block | None:
    """`<invoke>` with the name and the parameters in tags within."""
    opening = _OLD_INVOKE.match(source.text, at)
    if opening is None:
        return None
    given, place, whole = _pairs(source, opening.end(), _CHILD, "</{}>".format)
    if not whole:
        return _cut(opening["name"], given, source)
    end = _OLD_END.match(source.text, place)
    return Block([(opening["name"], encode(given))], end.end()) if end else None


def code_calls(opening: str, *closings: str) -> Reader:
    """A reader of Python calls behind a mark."""
    pattern = re.compile(opening)

    def reader(source: Source, at: int) -> Block | None:
        match = pattern.match(source.text, at)
        if match is None:
            return None
        ends = [(place, mark) for mark in closings if (place := source.find(mark, match.end())) >= 0]
        end, mark = min(ends, default=(len(source.text), ""))
        rows = pythonic(source.text[match.end() : end])
        return Block(rows, end + len(mark), bool(mark) or match.group()[:2] == "<|") if rows else None

    return reader


FORMATS: tuple[tuple[str, Reader], ...] = (
    (RepairCode.TEXT_INVOKE, tagged(_INVOKE_TAGS)),
    (RepairCode.TEXT_FUNCTION, tagged(_FUNCTION_TAGS)),
    (RepairCode.TEXT_GLM, glm),
    (RepairCode.TEXT_TOOL_CALL,
     between(r"<(?:tool_calls?|tool_use|tool|function_calls?)(?:\s[^<>\n]{0,80})?>\s*(?:```\w*\s*)?(?=[\[{])",
                   "</tool_call>", "</tool_calls>", "</tool_use>", "</tool>", "</function_call>", "</function_calls>")),
    (RepairCode.TEXT_TOOL_CALL,
     between(r"<(?:longcat_|minimax:|seed:)tool_calls?>\s*(?=[\[{])",
                   "</longcat_tool_call>", "</minimax:tool_call>", "</seed:tool_call>")),
    (RepairCode.TEXT_DEEPSEEK,
     named(r"<[|｜]tool[▁_]call[▁_]begin[|｜]>\s*(?:function\s*<[|｜]tool[▁_]sep[|｜]>)?\s*(?P<name>[\w.:/-]+)\s*"
                 r"(?:<[|｜]tool[▁_]sep[|｜]>)?(?=\s*(?:```|\{))", "<｜tool▁call▁end｜>", "<|tool▁call▁end|>")),
    (RepairCode.TEXT_KIMI,
     named(r"<\|tool_call_begin\|>\s*(?P<name>[\w.:/-]+)\s*<\|tool_call_argument_begin\|>", "<|tool_call_end|>")),
    (RepairCode.TEXT_HARMONY,
     named(r"(?:<\|start\|>assistant\s*)?(?:<\|channel\|>\s*(?:commentary|analysis)\s*)?to=(?P<name>[\w.:-]+)\s*"
                  r"(?:<\|channel\|>\s*(?:commentary|analysis)\s*)?(?:code|json|<\|constrain\|>\s*json)?\s*<\|message\|>",
                  "<|call|>", "<|end|>")),
    (RepairCode.TEXT_MISTRAL,
     named(r"\[TOOL_CALLS\]\s*(?P<name>[\w.-]+)\s*(?:\[CALL_ID\]\s*[\w-]+\s*)?(?:\[ARGS\]\s*)?(?=\{)")),
    (RepairCode.TEXT_MISTRAL,
     between(r"\[TOOL_CALLS?\]\s*(?=[\[{]\s*[\[{\"'])", "[/TOOL_CALLS]", "[/TOOL_CALL]", "</s>")),
    (RepairCode.TEXT_JSON,
     between(r"<\|python_tag\|>\s*(?=[\[{])", "<|eom_id|>", "<|eot_id|>")),
    (RepairCode.TEXT_PYTHON,
     code_calls(r"<\|python_(?:start|tag)\|>", "<|python_end|>", "<|eom_id|>", "<|eot_id|>", "<|eot|>")),
    (RepairCode.TEXT_PYTHON,
     code_calls(r"<function_calls>", "</function_calls>")),
    (RepairCode.TEXT_JSON,
     between(r"<\|tool_call\|>|<TOOLCALL>|<\|action_start\|>\s*<\|plugin\|>|<\|START_ACTION\|>|functools(?=\[)",
                   "<|/tool_call|>", "</TOOLCALL>", "<|action_end|>", "<|END_ACTION|>")),
    (RepairCode.TEXT_INVOKE, old_invoke),
    (RepairCode.TEXT_NAME_TAG, name_tags),
)  # fmt: skip
