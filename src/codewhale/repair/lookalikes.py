"""Calls that a model wrote in a form that is not run, so that it can be told: known markup in the middle of a text, and
the looser forms. What is marked as code or quoted and has words behind it is shown, and none of these.
"""

import re
from functools import cache
from itertools import islice
from typing import Any

from codewhale.protocol.marks import LABELS, Fences
from codewhale.repair.jsoncalls import (
    CALL_GIVEN,
    CALL_NAME,
    Row,
    calls_of,
    decode_at,
    encode,
    json_rows,
    pythonic,
    react,
)
from codewhale.repair.textcalls import Known, TextCall, find_calls, mid_text, spoken

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
