"""Calls that a model wrote in a form that is not run, so that it can be told: known markup in the middle of a text, and
the looser forms. What is marked as code or quoted and has words behind it is shown, and none of these.
"""

import re
from functools import cache
from itertools import islice
from typing import Any

from msgspec import Struct

from codewhale.protocol.marks import LABELS, Fences
from codewhale.repair.jsoncalls import Row, calls_of, decode_at, encode, json_rows, pythonic, react
from codewhale.repair.textcalls import Known, find_calls, mid_text, spoken

_TAIL = 65_536
_MAX_PLACES = 64
_MAX_NAMES = 400
_SHELLS = frozenset("bash sh shell zsh console shell-session terminal powershell cmd".split())
_PATCH = re.compile(r"^\*\*\* (?:Begin Patch|(?:Update|Add|Delete) File: )", re.M)
_SEARCH = re.compile(r"^<{5,9} ?SEARCH\b[^\n]*\n", re.M)
_DIVIDER = re.compile(r"^={5,9}[ \t]*\n", re.M)
_REPLACED = re.compile(r"^>{5,9}", re.M)
_QUOTED = re.compile(r"[ \t]*(?:>{1,4}(?!>)|\|)|(?: {4}| {0,3}\t)")
_PATH = re.compile(r"[\w./-]{1,200}\.\w{1,8}")
_SPAN = re.compile(r"(`{1,2})(?!`)[^`\n]{1,2000}\1")
_JSON_PLACE = re.compile(r"(?m)(?:^|[:.!。：！>)\]])[ \t]*(?=[\[{])")
_JSON_NAME = re.compile(
    r"""["'](?:name|tool|tool_name|function|action|recipient_name)["']\s*:\s*["'](?P<name>[\w.:/-]{2,80})["']"""
)
_JSON_GIVEN = re.compile(r"""["'](?:arguments|parameters|args|input|action_input|tool_input)["']\s*:""")
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


class Lookalike(Struct, frozen=True):
    """A call as far as it could be made out: its tool ("" for none) and its arguments as JSON ("" for none)."""

    name: str = ""
    arguments: str = ""


def looks_like_call(text: str, known: Known) -> Lookalike | None:
    """The call that a text writes in a form which is not run, None where it writes none."""
    known = cache(known)
    begin, end = spoken(text)
    text = text[max(begin, end - _TAIL) : end]
    found = find_calls(text, known)
    call = found.calls[0] if found is not None else mid_text(text, known)
    if call is not None:
        return Lookalike(call.name, call.arguments)
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


# ---------------------------------------------------------------------- a fence at the very end


def _fenced(label: str, body: str, known: Known) -> Lookalike | None:
    word = label.split(maxsplit=1)[0] if label else ""
    found = find_calls(body, known)
    if found is not None:
        return Lookalike(found.calls[0].name, found.calls[0].arguments)
    written = _patch(body)
    if written is not None:
        return written
    if word in _SHELLS or (word in ("", "text") and body.lstrip().startswith("$ ")):
        return Lookalike("exec_shell", encode({"command": body.strip().removeprefix("$ ")}))
    rows = pythonic(body) if word in (*LABELS, "python", "py") else None
    rows = rows or json_rows(body, closed=True) or react(body)
    return _first(rows, known) or _in_json(body, known)


def _first(rows: list[Row] | None, known: Known) -> Lookalike | None:
    for name, arguments in rows or ():
        bare = name.removeprefix("default_api.").removeprefix("functions.")
        if known(bare):
            return Lookalike(bare, arguments)
    return None


# ---------------------------------------------------------------------- in words


def _plain(text: str, known: Known) -> Lookalike | None:
    """A call in the words of a text."""
    written = _patch(text) or _in_json(text, known)
    if written is not None:
        return written
    for match in islice(_ACTION.finditer(text), _MAX_NAMES):
        if known(match["name"]):
            return _first(react(text[match.start() :].lstrip()), known) or Lookalike(match["name"])
    for match in islice(_GIVEN.finditer(text), _MAX_NAMES):
        if known(match["name"]):
            return Lookalike(match["name"], _given(text, match.end("name")))
    last = text.rstrip().rsplit("\n", 1)[-1]
    found = _first(pythonic(last), known)
    if found is not None:
        return found
    for match in islice(_ADDRESSED.finditer(text), _MAX_NAMES):
        if known(match["name"]):
            return Lookalike(match["name"], _given(text, match.end()))
    if not _LONE.search(text):
        return None
    lower = _UPPER_TAG.sub(lambda match: match.group().lower(), text)
    call = mid_text(lower, known) if lower != text else None
    return Lookalike() if call is None else Lookalike(call.name, call.arguments)


def _given(text: str, at: int) -> str:
    """The arguments that follow a name as JSON, "" where they cannot be read."""
    brace = text.find("{", at, at + 80)
    try:
        value: Any = decode_at(text, brace)[0] if brace >= 0 else None
    except ValueError:
        return ""
    return encode(value) if isinstance(value, dict) else ""


def _patch(text: str) -> Lookalike | None:
    """A change to a file in the form of a patch."""
    if match := _PATCH.search(text):
        return Lookalike("apply_patch", encode({"patch": text[match.start() :].strip() + "\n"}))
    opening = _SEARCH.search(text)
    if opening is None:
        return None
    divider = _DIVIDER.search(text, opening.end())
    end = _REPLACED.search(text, divider.end()) if divider is not None else None
    paths = _PATH.findall(text[max(0, opening.start() - 400) : opening.start()])
    if divider is None or end is None or not paths:
        return Lookalike("edit_file")
    old, new = text[opening.end() : divider.start()], text[divider.end() : end.start()]
    return Lookalike("edit_file", encode({"path": paths[-1], "search": old, "replace": new}))


def _in_json(text: str, known: Known) -> Lookalike | None:
    """A call that JSON says, or the damaged JSON of one."""
    for match in islice(_JSON_PLACE.finditer(text), _MAX_PLACES):
        try:
            rows = calls_of(decode_at(text, match.end())[0])
        except ValueError:
            continue
        if found := _first(rows, known):
            return found
    for match in islice(_JSON_NAME.finditer(text), _MAX_NAMES):
        near = text[max(0, match.start() - 2_000) : match.end() + 2_000]
        if known(match["name"]) and _JSON_GIVEN.search(near):
            return Lookalike(match["name"])
    return None
