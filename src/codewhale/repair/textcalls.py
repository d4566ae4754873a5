"""Calls that a model wrote as text: found where they were meant as calls, left alone where they are shown.

A call is meant when it stands at the start of a line or behind a sentence, in no code fence or quotation, when what
leads to it speaks of doing something rather than of how calls are written, and when nothing but more of that follows.
Formats whose marks also occur in ordinary text must be the whole message.
"""

import re
from collections.abc import Callable

from msgspec import Struct

from codewhale.protocol.marks import MARKS, Fences, may_stand
from codewhale.repair.formats import (
    FUNCTION_TAGS,
    INVOKE_TAGS,
    Block,
    Reader,
    Source,
    between,
    code_calls,
    glm,
    name_tags,
    named,
    old_invoke,
    tagged,
)
from codewhale.repair.jsoncalls import Row, arrow, fenced, next_word, pythonic, react, whole_json

_MAX_TEXT = 1_048_576
_MAX_CALLS = 64
_MAX_PLACES = 400
_LONGEST_LINE = 4_000
Known = Callable[[str], bool]


class TextCall(Struct, frozen=True):
    """A call found in text: its name and argument string as written, and the code of its format. One that was cut off
    has arguments that end in the middle."""

    name: str
    arguments: str
    code: str


class Found(Struct, frozen=True):
    """Calls found in a text, and the text that stands before them."""

    calls: tuple[TextCall, ...]
    before: str


def find_calls(text: str, known: Known) -> Found | None:
    """The calls that end a text, None where it holds none that was meant. `known` tells whether a name is a tool's."""
    if len(text) > _MAX_TEXT:
        return None
    begin, end = _spoken(text)
    said = text[begin:end]
    found = _whole(said.strip(), known) or _standing(said, known)
    if found is None or not begin:
        return found
    return Found(found.calls, (text[:begin] + found.before).strip())


def _spoken(text: str) -> tuple[int, int]:
    """The part of a text that counts: what follows thoughts written into it, or the thoughts where nothing does."""
    end = text.find("</think>")
    if end < 0 or (not text.lstrip().startswith("<think>") and _OPENING.search(text, 0, end)):
        return 0, len(text)
    return (end + len("</think>"), len(text)) if text[end + len("</think>") :].strip() else (0, end)


# ---------------------------------------------------------------------- whole messages

_TOKENS = re.compile(r"<[|｜][^<>|｜\n]{1,40}[|｜]>|</s>|</?think>")
_LAST_TOKENS = re.compile(r"(?:\s{0,4}(?:<[|｜][^<>|｜\n]{1,40}[|｜]>|</s>)){1,4}\Z")


def _whole(text: str, known: Known) -> Found | None:
    """Calls that are all of a message."""
    near = max(0, len(text) - 200)
    last = _LAST_TOKENS.search(text, near)
    text = text[: last.start()] if last else text
    for code, opening, parse in _WHOLES:
        if opening.match(text):
            rows = parse(text)
            if rows and len(rows) <= _MAX_CALLS and all(known(name) for name, _ in rows):
                return Found(tuple(TextCall(name, arguments, code) for name, arguments in rows), "")
    return None


_WHOLES: tuple[tuple[str, re.Pattern[str], Callable[[str], list[Row] | None]], ...] = (
    ("T12", re.compile(r"Thought:|Action:"), react),
    ("T9", re.compile(r"[\[{]\s*[\"'{\w]"), whole_json),
    ("T13", re.compile(r"\{\s*tool\s*=>"), arrow),
    ("T14", re.compile(r"```"), fenced),
    ("T10", re.compile(r"\[?\s*[A-Za-z_][\w.]*\("), pythonic),
)

# ---------------------------------------------------------------------- calls in a text

_BAR = r"(?:[|｜]{1,2}|‖)"
_OPENING = re.compile(
    rf"<(?=[|｜‖a-zT])(?:{'|'.join(re.escape(mark[1:]) for mark in MARKS if mark[0] == '<')}"
    rf"|[a-z][a-z0-9]*(?:_[a-z0-9]+)+>)|{'|'.join(re.escape(mark) for mark in MARKS if mark[0] != '<')}"
)
_WRAPS = re.compile(
    rf"(?:\s*(?:<{_BAR}DSML{_BAR}\s*(?:function_calls|tool_calls|calls)>|<\|tool_calls_section_begin\|>|"
    r"<[|｜]tool[▁_]calls[▁_]begin[|｜]>|<(?:[\w-]+:)?(?:function_calls?|tool_calls?)>(?=\s*<)))+\s*"
)
_ENDS = re.compile(
    rf"(?:\s*(?:</(?:[\w-]+:)?(?:function_calls?|tool_calls?|tool_use|tool|TOOLCALL)>|</{_BAR}DSML{_BAR}\s*\w+>|"
    r"<[|｜](?!tool[▁_]call[▁_]|tool_call|start|channel|action_start|plugin|python|START|message)[^<>|｜\n]{1,40}[|｜]>|"
    r"<[|｜]tool[▁_]calls?[▁_](?:section[▁_])?end[|｜]>|\[/TOOL_CALLS?\]|</s>|</think>))+"
)
_MADE_UP = re.compile(
    r"\s*(?:<(?:tool_response|tool_result|function_results?|tool_output|function_response)s?>|Observation:|"
    r"<\|?(?:tool_response|observation)\|?>|<[|｜]tool[▁_]outputs?[▁_]begin)"
)
_FORMATS: tuple[tuple[str, Reader], ...] = (
    ("T8", tagged(INVOKE_TAGS)),
    ("T3", tagged(FUNCTION_TAGS)),
    ("T6", glm),
    ("T2", between(r"<(?:tool_calls?|tool_use|tool|function_calls?)(?:\s[^<>\n]{0,80})?>\s*(?:```\w*\s*)?(?=[\[{])",
                   "</tool_call>", "</tool_calls>", "</tool_use>", "</tool>", "</function_call>", "</function_calls>")),
    ("T2", between(r"<(?:longcat_|minimax:|seed:)tool_calls?>\s*(?=[\[{])",
                   "</longcat_tool_call>", "</minimax:tool_call>", "</seed:tool_call>")),
    ("T4", named(r"<[|｜]tool[▁_]call[▁_]begin[|｜]>\s*(?:function\s*<[|｜]tool[▁_]sep[|｜]>)?\s*(?P<name>[\w.:/-]+)\s*"
                 r"(?:<[|｜]tool[▁_]sep[|｜]>)?(?=\s*(?:```|\{))", "<｜tool▁call▁end｜>", "<|tool▁call▁end|>")),
    ("T5", named(r"<\|tool_call_begin\|>\s*(?P<name>[\w.:/-]+)\s*<\|tool_call_argument_begin\|>", "<|tool_call_end|>")),
    ("T11", named(r"(?:<\|start\|>assistant\s*)?(?:<\|channel\|>\s*(?:commentary|analysis)\s*)?to=(?P<name>[\w.:-]+)\s*"
                  r"(?:<\|channel\|>\s*(?:commentary|analysis)\s*)?(?:code|json|<\|constrain\|>\s*json)?\s*<\|message\|>",
                  "<|call|>", "<|end|>")),
    ("T7", named(r"\[TOOL_CALLS\]\s*(?P<name>[\w.-]+)\s*(?:\[CALL_ID\]\s*[\w-]+\s*)?(?:\[ARGS\]\s*)?(?=\{)")),
    ("T7", between(r"\[TOOL_CALLS?\]\s*(?=[\[{]\s*[\[{\"'])", "[/TOOL_CALLS]", "[/TOOL_CALL]", "</s>")),
    ("T9", between(r"<\|python_tag\|>\s*(?=[\[{])", "<|eom_id|>", "<|eot_id|>")),
    ("T10", code_calls(r"<\|python_(?:start|tag)\|>", "<|python_end|>", "<|eom_id|>", "<|eot_id|>", "<|eot|>")),
    ("T10", code_calls(r"<function_calls>", "</function_calls>")),
    ("T9", between(r"<\|tool_call\|>|<TOOLCALL>|<\|action_start\|>\s*<\|plugin\|>|<\|START_ACTION\|>|functools(?=\[)",
                   "<|/tool_call|>", "</TOOLCALL>", "<|action_end|>", "<|END_ACTION|>")),
    ("T8", old_invoke),
    ("T17", name_tags),
)  # fmt: skip
_ARROWED = re.compile(r"\[TOOL_CALL\]\s*(?=\{\s*tool\s*=>)")


def _block(source: Source, place: int) -> tuple[str, Block] | None:
    """The calls that open at a place, and the code of their format."""
    text = source.text
    wraps = _WRAPS.match(text, place)
    start = wraps.end() if wraps else place
    if _ARROWED.match(text, start):
        end = source.find("[/TOOL_CALL]", start)
        rows = arrow(text[start + len("[TOOL_CALL]") : end].strip()) if end >= 0 else None
        return ("T13", Block(rows, end + len("[/TOOL_CALL]"))) if rows else None
    for code, reader in _FORMATS:
        block = reader(source, start)
        if block is not None:
            return "T1" if "DSML" in text[place : place + 9] else code, block
    return None


def _standing(text: str, known: Known) -> Found | None:
    """Calls that stand in a text, from the first that was meant to the end."""
    source, places = Source(text), _Places(text)
    calls: list[TextCall] = []
    after = at = 0
    before = ""
    meant = True
    for _ in range(_MAX_PLACES):
        place = places.next(at, adjacent=at == after > 0)
        if place < 0:
            break
        found = _block(source, place)
        if found is None:
            at = place + 1
            continue
        code, block = found
        lead = text[after:place]
        if lead.strip():
            meant = leads(lead, doing=bool(calls))
        if (calls and not meant) or len(calls) > _MAX_CALLS:
            return None
        if meant and block.rows:
            before = before if calls else text[:place]
            calls += [TextCall(name, arguments, code) for name, arguments in block.rows]
        after = at = _end_of(text, block.end)
    if not calls or len(calls) > _MAX_CALLS or not any(known(call.name) for call in calls):
        return None
    rest = text[after:]
    return None if rest.strip() and not leads(rest, doing=True) else Found(tuple(calls), before.rstrip())


def _end_of(text: str, at: int) -> int:
    """Where what belongs to a block ends: its closing marks, and the results that a model made up behind it."""
    ends = _ENDS.match(text, at)
    after = ends.end() if ends else at
    return len(text) if _MADE_UP.match(text, after) else after


class _Places:
    """Where calls may open: at the start of a line or behind a sentence, outside code fences."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._fences = Fences()
        self._passed = 0

    def next(self, at: int, *, adjacent: bool) -> int:
        """The next place from `at`, which may only grow, -1 for none; with `adjacent` also one right there."""
        text = self._text
        near = next_word(text, at)
        if adjacent and _OPENING.match(text, near):
            return near
        for match in _OPENING.finditer(text, at):
            place = match.start()
            begin = text.rfind("\n", max(0, place - _LONGEST_LINE), place) + 1
            if not begin and place > _LONGEST_LINE:
                continue
            while self._passed < begin:
                end = text.find("\n", self._passed)
                self._fences.pass_line(text[self._passed : end])
                self._passed = end + 1
            if self._fences.inside or not may_stand(text[max(begin, place - 8) : place]):
                continue
            if _free(text, begin, place):
                return place
        return -1


def _free(text: str, begin: int, place: int) -> bool:
    """Whether nothing on the line before a place quotes or indents it."""
    line = text[begin:place]
    if not line.strip():
        return len(line.expandtabs(4)) < 4 or not text[:begin].strip()
    return line.count("`") % 2 == 0 and line.count('"') % 2 == 0 and line.lstrip()[:1] not in ("|", ">", "#", "+")


# ---------------------------------------------------------------------- meant or shown

_ADVERBS = r"(?:\s+(?:first|now|also|just|then|quickly|next|still|actually|simply|to|go ahead and|try to|try and))*\s+"
_WORK = (
    "read|look|check|open|see|view|examine|search|find|run|edit|fix|write|update|use|call|start|begin|continue|proceed|"
    "inspect|understand|explore|list|create|test|verify|get|take|go|make|add|do|try|review|scan|locate|grep|fetch|apply|"
    "change|modify|replace|delete|remove|rename|implement|refactor|investigate|gather|confirm|wait|issue|execute|retry|"
    "grab|load|pull|study|double-check|figure|trace|analy[sz]e|work|move|put|save|set|determine|identify|browse|dig|mend|correct|adjust|address|invoke"
)
_INTENT = re.compile(
    r"(?i)(?:\b(?:i|we)(?:['’]ll|\s+will|\s+(?:need|have|want|am going|are going)|"
    r"['’]d (?:like|better)|['’](?:m|re) going|"
    rf"\s+should|\s+must|\s+am about|['’]m about)|\blet\s+(?:me|us)|\blet['’]s){_ADVERBS}(?:have a look|{_WORK})\b|"
    r"\bi need (?:more|the|its|a|some)\b|\btime to\b"
)
_UNDER_WAY = re.compile(
    r"(?i)(?:^|[,;:–—]\s+)(?:(?:now|next|first|then|okay|ok|so|sure|great|good)[,:]?\s+)?(?:(?:i|we)['’](?:m|re)\s+(?:now\s+)?)?(?:reading|checking|looking|"
    r"running|searching|opening|editing|writing|creating|listing|updating|fixing|calling|inspecting|verifying|finding|"
    r"testing|exploring|applying|adding|continuing|trying|getting|fetching|waiting|proceeding|viewing|retrieving|"
    r"executing|using|scanning|examining|replacing|removing|gathering|starting|beginning)\b(?!\s*(?:with|on|by)?\s*:)"
)
_MAKING = re.compile(
    r"(?i)\b(?:make|making|issue|run|execute|do|retry|try)\s+(?:the|a|this|that|another|my)\s+"
    r"[\w\s-]{0,20}?calls?"
)
_ABOUT_CALLS = re.compile(
    r"(?i)\blike (?:this|so|these|that)\b|\bas follows\b|"
    r"\b(?:syntax|markup|completions?|transcript|dialect|verbatim|snippet)\b|"
    r"\b(?:illustrat|demonstrat)\w+|\bexamples? (?:of|calls?|outputs?|answers?)\b|\b(?:tool|function)[ -]calls?\b|"
    r"\b(?:variants?|hermes|qwen\S*|dsml|kimi|glm|minimax|harmony|the following|"
    r"(?:on|as|in) this\b|this case|"
    r"case \d+|in full|"
    r"this as|at one|a (?:case|fixture))\b|\bform[.:]?\s*$|"
    r"\b(?:an?|the|this|that|such|each|one)\s+calls?\b(?!\s+(?:site|stack|graph|chain|to|of|in))"
)
_AT_IT = re.compile(
    r"(?i)^(?:(?:ok(?:ay)?|sure(?: thing)?|understood|got it|right|alright|all right|great|good|perfect|nice|done|"
    r"hmm+|on it|of course|certainly|absolutely|interesting|noted|thanks|thank you|yes|no problem|"
    r"working on it|moving on|looks good)\b"
    r"[^:]{0,40}[.!…]$|(?:next|first|now|then|next step)[,:]\s+[^:]{1,60}[.!…]$|"
    r"(?:the|that) (?:bug|problem|cause|culprit|failure|mistake) (?:is|was|lies|comes|must)\b|the fix is\b|"
    r"the (?:user|person) (?:wants|asked|asks|needs|is asking|would like)\b)|"
    r"^(?:ich|je|voy|vamos|vou|io|ik|jag|leo|lese|сейчас|теперь|я|我|让我|先|现在|接下来|まず|次に|これから)"
)
_STEP = re.compile(
    r"(?i)^\s*(?:[-*]|\d+[.)]|\W{0,2}step \d+\W+)\s+(?:\[.\]\s*)?"
    r"(?:read|edit|run|check|find|fix|look|inspect|search|update|create|verify|"
    r"test|implement|add|open|explore|understand|locate|list|change|replace|report|review|rename|remove|delete)\b[^:]*$"
)
_EXAMPLE = re.compile(
    r"(?i)\b(?:examples?|e\.g|i\.e|for instance|such as|looks? (?:like|as)|like (?:this|so|these|that|the following)|"
    r"formats?|syntax|templates?|samples?|demo\w*|illustrat\w+|quot\w+|literal\w*|placeholders?|documentation|docs?|"
    r"markup|shown|shows?|showing|snippets?|as follows|verbatim|transcripts?|pasted?|logged|readme|tutorials?|specs?|"
    r"specification|"
    r"would (?:be|write|emit|send|look|produce|have|call)|so[- ]called|equivalent|hypothetical\w*|imagine|suppose|"
    r"explain\w*|describ\w+|defin\w+|means|represents?|parsed?|parsers?|render\w*|serializ\w+|emits?|emitted|encod\w+|"
    r"wrapped|delimit\w+|tags?|tokens?|payload|schema|grammar|fixture|regex)\b|示例|例如|格式|样例"
)
_SPEAKING = re.compile(
    r"(?i)\b(?:do not|don['’]t|never|instead of|avoid|models?|outputs?|writes?|written|prints?|sends?|sent|returns?|"
    r"produces?|generates?|generated|responds?|replies|reply|calls?|called|tools?|functions?|assistant|harness|server|"
    r"texts?|following|below|above|elements?|attributes?|parameters?|arguments?|blocks?|listing|figure|consider|"
    r"parses?|executed?|contains?|inputs?|contents?|not run|must not|should not|cannot|can['’]t|won['’]t|"
    r"you|your|dialects?|variants?|prompts?|messages?|invocations?|wire|raw|xml|json|becomes?|before|after)\b"
)
_OPEN_MARKUP = (
    "pre",
    "code",
    "blockquote",
    "example",
    "samp",
    "textarea",
    "details",
    "script",
    "xmp",
    "document",
    "td",
)


def leads(text: str, *, doing: bool = False) -> bool:
    """Whether a text leads to calls that are meant, by its last words: it speaks of doing something, or at least
    not of how calls are written. With `doing` it must speak of doing something."""
    bare = _TOKENS.sub(" ", text[-4_000:]).rstrip()
    if not bare.strip():
        return not doing
    line = bare[bare.rfind("\n") + 1 :]
    if _framed(bare, line):
        return False
    sentence = re.split(r"(?<=[.!?。！？])\s+", line.strip(" *_"))[-1]
    if _INTENT.search(sentence):
        return not _ABOUT_CALLS.search(_MAKING.sub("", sentence))
    shows = bool(_EXAMPLE.search(line) or _SPEAKING.search(line))
    if _UNDER_WAY.search(sentence):
        return not (_EXAMPLE.search(sentence) or _SPEAKING.search(sentence))
    return not doing and bool(_STEP.match(line) or (not shows and _AT_IT.search(sentence)))


def _framed(text: str, line: str) -> bool:
    """Whether what follows is part of a heading, a table, a quotation, a patch or an element of a page."""
    if line.lstrip()[:1] in ("#", "|", ">", "+", "@") or re.fullmatch(r"\s*(?:[-=_*]{3,}|\d+\s.*\|.*)", line):
        return True
    if text.startswith(("diff --git", "@@ ", "--- ")) or "\n@@ " in text or "\ndiff --git" in text:
        return True
    lower = text.lower()
    return any(lower.rfind(f"<{tag}") > lower.rfind(f"</{tag}") for tag in _OPEN_MARKUP)
