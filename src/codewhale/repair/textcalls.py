"""Calls that a model wrote as text: read where their form says that they are calls, left alone where they are quoted.

Form alone decides, never the words around a call: whether calls are all of a text, or stand at its very end, whole,
closed and in no fence or quotation. What may run of them is the engine's to say, which knows the endpoint.
"""

import re
from collections.abc import Callable
from functools import cache
from itertools import islice
from typing import Any, Literal

from msgspec import Struct

from codewhale.protocol.marks import LABELS, MARKS, Fences, may_stand
from codewhale.repair.codes import RepairCode
from codewhale.repair.formats import BAR, FORMATS, Block, Source
from codewhale.repair.jsoncalls import (
    CALL_GIVEN,
    CALL_NAME,
    Row,
    arrow,
    calls_of,
    decode_at,
    encode,
    fenced,
    json_rows,
    next_word,
    pythonic,
    react,
    whole_json,
)

_MAX_TEXT = 1_048_576
_MAX_CALLS = 64
_MAX_PLACES = 400
_LONGEST_LINE = 4_000
Known = Callable[[str], bool]
# What a call may stand as: `alone` nothing else is in the text; `ending` words stand before it; `cut` it is not closed;
# `served` in a form that only the parser of a server takes: in a fence that is its mark, or with results made up
# behind it.
Form = Literal["alone", "ending", "cut", "served"]


class TextCall(Struct, frozen=True):
    """A call found in text: its name and argument string as written, and the code of its format. One that was cut off
    has arguments that end in the middle."""

    name: str
    arguments: str = ""
    code: str = ""


class Found(Struct, frozen=True):
    """Calls found at the end of a text, the text that stands before them as it was written, and their form."""

    calls: tuple[TextCall, ...]
    before: str
    form: Form = "alone"


def find_calls(text: str, known: Known) -> Found | None:
    """The calls that end a text, None where it ends with none. `known` tells whether a name is a tool's."""
    if len(text) > _MAX_TEXT:
        return None
    begin, end = spoken(text)
    said = text[begin:end]
    found = _whole(said.strip(), known) or _standing(said, known)
    if found is None or not begin:
        return found
    before = found.before or said[: len(said) - len(said.lstrip())]
    return Found(found.calls, text[:begin] + before, found.form)


def spoken(text: str) -> tuple[int, int]:
    """The part of a text that counts: what follows thoughts written into it, or the thoughts where nothing does."""
    end = text.find("</think>")
    if end < 0 or (not text.lstrip().startswith("<think>") and _OPENING.search(text, 0, end)):
        return 0, len(text)
    return (end + len("</think>"), len(text)) if text[end + len("</think>") :].strip() else (0, end)


# ---------------------------------------------------------------------- whole messages

_TOKENS = re.compile(r"<[|｜][^<>|｜\n]{1,40}[|｜]>|</s>|</?think>")
_LAST_TOKENS = re.compile(r"(?:\s{0,4}(?:<[|｜][^<>|｜\n]{1,40}[|｜]>|</s>)){1,4}\Z")


def _whole(text: str, known: Known) -> Found | None:
    near = max(0, len(text) - 200)
    last = _LAST_TOKENS.search(text, near)
    text = text[: last.start()] if last else text
    for code, opening, parse, form in _WHOLES:
        if opening.match(text):
            rows = parse(text)
            if rows and len(rows) <= _MAX_CALLS and all(known(name) for name, _ in rows):
                return Found(tuple(TextCall(name, arguments, code) for name, arguments in rows), "", form)
    return None


_WHOLES: tuple[tuple[str, re.Pattern[str], Callable[[str], list[Row] | None], Form], ...] = (
    (RepairCode.TEXT_REACT, re.compile(r"Thought:|Action:"), react, "alone"),
    (RepairCode.TEXT_REACT, re.compile(r"Thought:|Action:"), lambda text: react(text, observed=True), "served"),
    (RepairCode.TEXT_JSON, re.compile(r"[\[{]\s*[\"'{\w]"), whole_json, "alone"),
    (RepairCode.TEXT_ARROW, re.compile(r"\{\s*tool\s*=>"), arrow, "alone"),
    (RepairCode.TEXT_FENCE, re.compile(r"```(?!json)\w"), fenced, "served"),
    (RepairCode.TEXT_PYTHON, re.compile(r"\[\s*[A-Za-z_][\w.]*\("), pythonic, "alone"),
)

# ---------------------------------------------------------------------- calls in a text

_OPENING = re.compile(
    rf"<(?=[|｜‖a-zT])(?:{'|'.join(re.escape(mark[1:]) for mark in MARKS if mark[0] == '<')}"
    rf"|[a-z][a-z0-9]*(?:_[a-z0-9]+)+>)|{'|'.join(re.escape(mark) for mark in MARKS if mark[0] != '<')}"
)
_WRAPS = re.compile(
    rf"(?:\s*(?:<{BAR}DSML{BAR}\s*(?:function_calls|tool_calls|calls)>|<\|tool_calls_section_begin\|>|"
    r"<[|｜]tool[▁_]calls[▁_]begin[|｜]>|<(?:[\w-]+:)?(?:function_calls?|tool_calls?)>(?=\s*<)))+\s*"
)
_ENDS = re.compile(
    rf"(?:\s*(?:</(?:[\w-]+:)?(?:function_calls?|tool_calls?|tool_use|tool|TOOLCALL)>|</{BAR}DSML{BAR}\s*\w+>|"
    r"<[|｜](?!tool[▁_]call[▁_]|tool_call|start|channel|action_start|plugin|python|START|message)[^<>|｜\n]{1,40}[|｜]>|"
    r"<[|｜]tool[▁_]calls?[▁_](?:section[▁_])?end[|｜]>|\[/TOOL_CALLS?\]|</s>|</think>))+"
)
_MADE_UP = re.compile(
    r"\s*(?:<(?:tool_response|tool_result|function_results?|tool_output|function_response)s?>|Observation:|"
    r"<\|?(?:tool_response|observation)\|?>|<[|｜]tool[▁_]outputs?[▁_]begin)"
)
_ARROWED = re.compile(r"\[TOOL_CALL\]\s*(?=\{\s*tool\s*=>)")


def _block(source: Source, place: int) -> tuple[str, Block] | None:
    """The calls that open at a place, and the code of their format."""
    text = source.text
    wraps = _WRAPS.match(text, place)
    start = wraps.end() if wraps else place
    if _ARROWED.match(text, start):
        end = source.find("[/TOOL_CALL]", start)
        rows = arrow(text[start + len("[TOOL_CALL]") : end].strip()) if end >= 0 else None
        return (RepairCode.TEXT_ARROW, Block(rows, end + len("[/TOOL_CALL]"))) if rows else None
    for code, reader in FORMATS:
        block = reader(source, start)
        if block is not None:
            return RepairCode.TEXT_DSML if "DSML" in text[place : place + 9] else code, block
    return None


class _Run(Struct):
    """Calls that stand side by side, from where to where, and whether each is closed."""

    calls: list[TextCall]
    start: int
    end: int
    closed: bool = True


def _runs(text: str) -> list[_Run]:
    """All calls that stand in a text, those with nothing between them together."""
    source, places = Source(text), _Places(text)
    runs: list[_Run] = []
    at = 0
    for _ in range(_MAX_PLACES):
        beside = bool(runs) and at == runs[-1].end
        place = places.next(at, adjacent=beside)
        if place < 0:
            break
        found = _block(source, place)
        if found is None or not found[1].rows:
            at = place + 1 if found is None else max(found[1].end, place + 1)
            continue
        code, block = found
        if not runs or text[runs[-1].end : place].strip():
            runs.append(_Run([], place, place))
        runs[-1].calls += [TextCall(name, arguments, code) for name, arguments in block.rows]
        runs[-1].closed = runs[-1].closed and block.closed
        ends = _ENDS.match(text, block.end)
        runs[-1].end = at = ends.end() if ends else block.end
    return runs


def _standing(text: str, known: Known) -> Found | None:
    """Calls that stand at the very end of a text and nowhere else in it, which nothing quotes."""
    runs = _runs(text)
    if len(runs) != 1 or len(runs[0].calls) > _MAX_CALLS or not any(known(call.name) for call in runs[0].calls):
        return None
    run = runs[0]
    before = text[: run.start]
    if quotes(before):
        return None
    made_up = bool(_MADE_UP.match(text, run.end))
    if text[run.end :].strip() and not made_up:
        return None
    alone = not _TOKENS.sub("", before).strip()
    form: Form = "served" if made_up else "alone" if alone else "ending" if run.closed else "cut"
    return Found(tuple(run.calls), "" if alone else before, form)


def mid_text(text: str, known: Known) -> TextCall | None:
    """The first call of a tool that stands anywhere in a text, in a known markup and no fence."""
    if len(text) > _MAX_TEXT:
        return None
    return next((call for run in _runs(text) for call in run.calls if known(call.name)), None)


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


# ---------------------------------------------------------------------- quotations

_ELEMENT = re.compile(
    r"(?m)^[ \t>]{0,40}<(/?)([A-Za-z][\w:-]{0,40})[^<>\n]{0,200}>|<(/?)([A-Za-z][\w:-]{0,40})>[ \t]*$"
)
_NO_END = frozenset("br hr img input link meta p li td th tr think".split())
_PAIRS = (("“", "”"), ("«", "»"), ("「", "」"), ("『", "』"))
_QUOTED_BEFORE = 20_000


def quotes(before: str) -> bool:
    """Whether a text leaves a quotation open: an element of a page or a log, a quoted text, or a patch."""
    before = before[-_QUOTED_BEFORE:]
    if before.startswith(("diff --git", "@@ ", "--- ")) or "\n@@ " in before or "\ndiff --git" in before:
        return True
    elements: dict[str, bool] = {}
    for match in _ELEMENT.finditer(before):
        name = (match[2] or match[4]).lower()
        if name not in _NO_END and not match.group().rstrip().endswith("/>"):
            elements[name] = not (match[1] or match[3])
    lines = before.rstrip().rsplit("\n", 1)
    if any(elements.values()) or _OPENING.match(lines[-1].lstrip(" \t>")):
        return True
    last = before[before.rfind("\n\n") + 1 :]
    apart = any(last.rfind(opening) > last.rfind(closing) for opening, closing in _PAIRS)
    return apart or last.count('"') % 2 == 1 or any(before.count(mark) % 2 for mark in ('"""', "'''"))


# ---------------------------------------------------------------------- forms that are not run
# Calls that a model wrote in a form that is not run, so that it can be told: known markup in the middle of a text, and
# the looser forms. What is marked as code or quoted and has words behind it is shown, and none of these.

_TAIL = 65_536
_MAX_PLACES = 64
_MAX_NAMES = 400
_SHELLS = frozenset("bash sh shell zsh console shell-session terminal powershell cmd".split())
_PATCH = re.compile(r"^\*\*\* (?:Begin Patch|(?:Update|Add|Delete) File: )", re.M)
_SEARCH = re.compile(r"^<{5,9} ?SEARCH\b[^\n]*\n", re.M)
_QUOTED = re.compile(r"[ \t]*(?:>{1,4}(?!>)|\|)|(?: {4}| {0,3}\t)")
_SPAN = re.compile(r"(`{1,2})(?!`)[^`\n]{1,2000}\1")
_JSON_PLACE = re.compile(r"(?m)(?:^|[:.!。：！>)\]])[ \t]*(?=[\[{])")
_ACTION = re.compile(r"^[ \t]*\**Action:?\**:?[ \t]*`?(?P<name>[\w.-]{2,80})", re.M)
# A name and what it is given, with nothing of a sentence between: `name({...})`, `to=functions.name code{...}`.
_GIVEN = re.compile(
    r"(?<![\w.`'\"/])(?:(?:to=|call:|functions?[.:]|default_api\.|tools\.){0,3})(?P<name>[A-Za-z]\w{1,60})"
    r"(?::\d{1,4})?(?:\s{0,2}(?:<[^<>\n]{1,40}>|\[ARGS\]|code|json|commentary|\(\)|:|=))?\s{0,2}"
    r"(?:\{\s*[\"']\w|\(\s*(?:\w{1,40}\s*=[^=]|\{))"
)
_ADDRESSED = re.compile(r"\bto=(?:functions\.)?(?P<name>[A-Za-z]\w{1,60})")
_MARK = (
    r"(?:</?(?:[\w-]{1,20}:)?(?:tool_?calls?|tool_?use|function_?calls?|toolcall|function|invoke)\b[^<>\n]{0,200}>"
    r"|\[/?TOOL_?CALLS?\]|</?[|｜‖]{1,2}\s?(?:DSML|tool|function|python_tag|action|plugin|call)[^<>\n]{0,60}>)"
)
_LONE = re.compile(rf"^[ \t]*{_MARK}[ \t]*$|{_MARK}\s*\Z", re.M | re.I)
_UPPER_TAG = re.compile(r"</?[A-Za-z_:]{2,40}(?=[\s=>/])")


def looks_like_call(text: str, known: Known) -> TextCall | None:
    """The call that a text writes in a form which is not run, as far as it could be made out: "" for a tool or
    arguments that could not. None where it writes none."""
    known = cache(known)
    begin, end = spoken(text)
    text = text[max(begin, end - _TAIL) : end]
    found = find_calls(text, known)
    call = found.calls[0] if found is not None else mid_text(text, known)
    if call is not None:
        return call
    plain, label, body = _parted(text)
    fenced = _fenced(label, body, known) if body.strip() else None
    return fenced or _plain(plain, known)


def _parted(text: str) -> tuple[str, str, str]:
    """A text without its code and quotations, and the label and body of the fence that ends it."""
    fences = Fences()
    plain: list[str] = []
    label = ""
    body: list[str] = []
    for line in text.split("\n"):
        inside = fences.inside
        fences.pass_line(line)
        if fences.inside and not inside:
            label, body = line.strip(" \t>`~").lower(), []
        elif fences.inside:
            body.append(line)
        elif not inside and line.strip():
            label, body = "", []
            if not _QUOTED.match(line):
                plain.append(line)
    return _SPAN.sub(" ", "\n".join(plain)), label, "\n".join(body)


def _fenced(label: str, body: str, known: Known) -> TextCall | None:
    word = label.split(maxsplit=1)[0] if label else ""
    found = find_calls(body, known)
    written = _patch(body) if found is None else found.calls[0]
    if written is not None:
        return written
    if word in _SHELLS or (word in ("", "text") and body.lstrip().startswith("$ ")):
        return TextCall("exec_shell", encode({"command": body.strip().removeprefix("$ ")}))
    rows = pythonic(body) if word in (*LABELS, "python", "py") else None
    rows = rows or json_rows(body, closed=True) or react(body)
    return _first(rows, known) or _in_json(body, known)


def _first(rows: list[Row] | None, known: Known) -> TextCall | None:
    for name, arguments in rows or ():
        bare = name.removeprefix("default_api.").removeprefix("functions.")
        if known(bare):
            return TextCall(bare, arguments)
    return None


def _plain(text: str, known: Known) -> TextCall | None:
    last = text.rstrip().rsplit("\n", 1)[-1]
    written = _patch(text) or _in_json(text, known) or _first(pythonic(last), known)
    if written is not None:
        return written
    for pattern in (_ACTION, _GIVEN, _ADDRESSED):
        for match in islice(pattern.finditer(text), _MAX_NAMES):
            if known(match["name"]):
                return TextCall(match["name"], _given(text, match.end("name")))
    if not _LONE.search(text):
        return None
    lower = _UPPER_TAG.sub(lambda match: match.group().lower(), text)
    call = mid_text(lower, known) if lower != text else None
    return call or TextCall("")


def _given(text: str, at: int) -> str:
    """The arguments that follow a name as JSON, "" where they cannot be read."""
    brace = text.find("{", at, at + 80)
    try:
        value: Any = decode_at(text, brace)[0] if brace >= 0 else None
    except ValueError:
        return ""
    return encode(value) if isinstance(value, dict) else ""


def _patch(text: str) -> TextCall | None:
    """A change to a file in the form of a patch."""
    if match := _PATCH.search(text):
        return TextCall("apply_patch", encode({"patch": text[match.start() :].strip() + "\n"}))
    return TextCall("edit_file") if _SEARCH.search(text) else None


def _in_json(text: str, known: Known) -> TextCall | None:
    """A call that JSON says, or the damaged JSON of one."""
    for match in islice(_JSON_PLACE.finditer(text), _MAX_PLACES):
        try:
            rows = calls_of(decode_at(text, match.end())[0])
        except ValueError:
            continue
        if found := _first(rows, known):
            return found
    for match in islice(CALL_NAME.finditer(text), _MAX_NAMES):
        near = text[max(0, match.start() - 2_000) : match.end() + 2_000]
        if known(match["name"]) and CALL_GIVEN.search(near):
            return TextCall(match["name"])
    return None
