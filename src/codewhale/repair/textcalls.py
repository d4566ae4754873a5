"""Calls that a model wrote as text: found where they were meant as calls, left alone where they are shown.

A call is meant when it stands at the beginning of a line, in no code fence or quotation, complete, and nothing
follows it. Formats whose marks also occur in ordinary text must be the whole message.
"""

import ast
import html
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

_MAX_TEXT = 1_048_576
_MAX_CALLS = 64


class TextCall(Struct, frozen=True):
    """A call found in text: its name and argument string as written, and the code of its format."""

    name: str
    arguments: str
    code: str


class Found(Struct, frozen=True):
    """Calls found in a text, and the text that stands before them."""

    calls: tuple[TextCall, ...]
    before: str


Rows = list[tuple[str, str]]
Parse = Callable[[str], Rows | None]


class _Format(Struct, frozen=True):
    """One way of writing calls. `opening` begins it; `parse` reads everything from there to the end of the text;
    `alone` tells that nothing may stand before it."""

    code: str
    opening: re.Pattern[str]
    parse: Parse
    alone: bool = False


def find_calls(text: str, known: Callable[[str], bool]) -> Found | None:
    """The calls that end a text, None where it holds none that was meant. `known` tells whether a name is a tool's;
    a format that ordinary text may hold counts with known names alone."""
    if len(text) > _MAX_TEXT:
        return None
    for form in _FORMATS:
        for start in _openings(text, form):
            rows = form.parse(text[start:])
            if rows and len(rows) <= _MAX_CALLS and any(known(name) for name, _ in rows):
                calls = tuple(TextCall(name, arguments, form.code) for name, arguments in rows)
                return Found(calls, text[:start].rstrip())
    return None


def opens(line: str) -> bool:
    """Whether a line could begin calls written as text, or be the first characters of one that does."""
    bare = line.lstrip()
    return bool(bare) and any(mark.startswith(bare[: len(mark)]) for mark in _MARKS)


def _openings(text: str, form: _Format) -> Iterator[int]:
    """Places where a format may begin, the first of each run: at the start of a line, outside fences and quotations,
    with no sentence before it that announces an example."""
    if form.alone:
        start = len(text) - len(text.lstrip())
        if form.opening.match(text, start):
            yield start
        return
    for match in form.opening.finditer(text):
        before = text[: match.start()]
        line = before[before.rfind("\n") + 1 :]
        if line.strip() or before.count("```") % 2 or before.count("~~~") % 2:
            continue
        if not _EXAMPLE.search(before[-200:]):
            yield match.start()
        return


_EXAMPLE = re.compile(
    r"(?i)\b(example|e\.g|for instance|such as|looks? like|like this|like so|format|syntax|template|instead of|never|"
    r"do not|don't|would (?:be|write|emit|send)|as follows|sample|demo|illustrat\w+|quoted?|literal\w*|placeholder|"
    r"documentation|markup|shown|shows)\b[^\n]*\n?\s*$"
)

# ---------------------------------------------------------------------- pieces


def _json_call(value: Any) -> tuple[str, str] | None:
    """Name and arguments of a call as JSON says it."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict):
        value = value["function"]
    name = next((value[key] for key in ("name", "tool_name", "tool", "function", "action") if key in value), None)
    given = [key for key in ("arguments", "parameters", "args", "input", "tool_input", "action_input") if key in value]
    if not isinstance(name, str) or (not given and len(value) > 1):
        return None
    arguments = value[given[0]] if given else {}
    return name, arguments if isinstance(arguments, str) else _encode(arguments)


def _encode(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _decode(text: str) -> Any:
    """A JSON value, None for what is none."""
    try:
        return msgspec.json.decode(text.strip().encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _json_calls(text: str) -> Rows | None:
    """A text that is one call, an array of calls, or one call a line."""
    value = _decode(text)
    values = value if isinstance(value, list) else [value] if value is not None else []
    if value is None:
        values = [_decode(line) for line in text.strip().splitlines()] or [None]
    calls = [_json_call(item) for item in values]
    return [call for call in calls if call] if calls and all(calls) else None


def _tail(text: str, pattern: re.Pattern[str], row: Callable[[re.Match[str]], tuple[str, str] | None]) -> Rows | None:
    """Calls that match one after another up to the end of the text; None when anything else stands there."""
    rows: Rows = []
    at = 0
    while match := pattern.match(text, at):
        found = row(match)
        if found is None:
            return None
        rows.append(found)
        at = match.end()
    return rows if rows and not _ENDS.sub("", text[at:]).strip() else None


_ENDS = re.compile(
    r"</?(?:function_calls|tool_calls?|minimax:tool_call|antml:function_calls|seed:tool_call)>|<[|｜][^<>|｜]*[|｜]>|"
    r"</[|｜‖]{1,2}DSML[|｜‖]{1,2}\s*(?:function_calls|tool_calls)>|\[/TOOL_CALLS?\]|</s>"
)

_PARAMETER = re.compile(
    r"\s*<(?P<p>[^<>\s/=]*?)parameter(?:\s+name)?=[\"']?(?P<key>[\w.-]+)[\"']?(?P<rest>[^<>]*)>"
    r"(?P<value>.*?)</(?P=p)parameter>",
    re.S,
)
_ARG_PAIR = re.compile(r"\s*<arg_key>(?P<key>.*?)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>", re.S)


def _parameters(body: str, pattern: re.Pattern[str]) -> str | None:
    """Arguments written as tags, as a JSON object; None when something else stands among them."""
    given: dict[str, Any] = {}
    at = 0
    while match := pattern.match(body, at):
        rest = match.groupdict().get("rest") or ""
        given[match["key"].strip()] = _typed(match["value"], rest)
        at = match.end()
    if body[at:].strip():
        value = _decode(body) if not given else None
        return _encode(value) if isinstance(value, dict) else None
    return _encode(given)


def _typed(value: str, rest: str) -> Any:
    """A tag's text: a string as it stands but for the line breaks beside the tags; what says it is no string, as
    JSON."""
    if 'string="false"' in rest:
        decoded = _decode(value)
        return value if decoded is None and value.strip() != "null" else decoded
    if value.startswith("\n"):
        value = value[1:].removesuffix("\n")
    return value if 'string="true"' in rest else html.unescape(value) if "&" in value and "<" not in value else value


def _tagged(match: re.Match[str]) -> tuple[str, str] | None:
    arguments = _parameters(match["body"], _PARAMETER)
    return None if arguments is None else (match["name"].strip(), arguments)


def _raw(match: re.Match[str]) -> tuple[str, str] | None:
    return match["name"].strip(), match["body"].strip()


# ---------------------------------------------------------------------- formats

_BAR = r"(?:[|｜‖]{1,2})"
_DSML = re.compile(
    rf"\s*(?:<{_BAR}DSML{_BAR}\s*(?:function_calls|tool_calls)>)?\s*<{_BAR}DSML{_BAR}\s*invoke\s+name=[\"'](?P<name>[^\"']+)[\"']\s*>"
    rf"(?P<body>.*?)</{_BAR}DSML{_BAR}\s*invoke>(?:\s*</{_BAR}DSML{_BAR}\s*(?:function_calls|tool_calls)>)?",
    re.S,
)
_DSML_PARAMETER = re.compile(
    rf"\s*<{_BAR}DSML{_BAR}\s*parameter\s+name=[\"'](?P<key>[^\"']+)[\"'](?P<rest>[^<>]*)>(?P<value>.*?)"
    rf"</{_BAR}DSML{_BAR}\s*parameter>",
    re.S,
)
_INVOKE = re.compile(
    r"\s*(?:<(?:[\w-]+:)?(?:function_calls|tool_calls?)>)?\s*<(?P<q>(?:[\w-]+:)?)invoke\s+name=[\"'](?P<name>[^\"']+)[\"']\s*>"
    r"(?P<body>.*?)</(?P=q)invoke>(?:\s*</(?:[\w-]+:)?(?:function_calls|tool_calls?)>)?",
    re.S,
)
_QWEN = re.compile(
    r"\s*(?:<(?:[\w-]+:)?tool_calls?>)?\s*<function=(?P<name>[^<>\s]+)>(?P<body>.*?)</function>(?:\s*</(?:[\w-]+:)?tool_calls?>)?",
    re.S,
)
_GLM = re.compile(
    r"\s*<tool_call>\s*(?P<name>[\w.:/-]+)\s*(?P<body>(?:<arg_key>.*?</arg_value>\s*)*)</tool_call>", re.S
)
_HERMES = re.compile(r"\s*<tool_calls?>\s*(?P<body>[\[{].*?[\]}])\s*</tool_calls?>", re.S)
_DEEPSEEK = re.compile(
    r"\s*(?:<[|｜]tool▁calls▁begin[|｜]>)?\s*<[|｜]tool▁call▁begin[|｜]>(?:function<[|｜]tool▁sep[|｜]>)?(?P<name>[\w.:-]+)"
    r"(?:<[|｜]tool▁sep[|｜]>)?\s*(?:```(?:json)?\s*)?(?P<body>\{.*?\})\s*(?:```)?\s*<[|｜]tool▁call▁end[|｜]>",
    re.S,
)
_KIMI = re.compile(
    r"\s*(?:<\|tool_calls_section_begin\|>)?\s*<\|tool_call_begin\|>\s*(?P<name>[\w.:-]+)\s*<\|tool_call_argument_begin\|>"
    r"(?P<body>.*?)<\|tool_call_end\|>",
    re.S,
)
_HARMONY = re.compile(
    r"\s*(?:<\|start\|>assistant)?\s*(?:<\|channel\|>(?:commentary|analysis))?\s*to=(?P<name>[\w.-]+)\s*"
    r"(?:<\|channel\|>(?:commentary|analysis))?\s*(?:code|json|<\|constrain\|>json)?\s*<\|message\|>(?P<body>.*?)<\|call\|>",
    re.S,
)
_MISTRAL = re.compile(
    r"\s*\[TOOL_CALLS\]\s*(?P<name>[\w.-]+)\s*(?:\[CALL_ID\][\w-]+)?\s*(?:\[ARGS\])?\s*(?P<body>\{.*?\})(?=\s*(?:\[TOOL_CALLS\]|\[/TOOL_CALLS\]|</s>|$))",
    re.S,
)
_FENCE = re.compile(r"```(?P<label>[\w-]*)[ \t]*\n(?P<body>.*?)\n?```\s*$", re.S)
_REACT = re.compile(
    r"\s*(?:Thought:.*?\n\s*)?Action:\s*`?(?P<name>[\w.-]+)`?\s*\n\s*Action Input:\s*(?:```(?:json)?\s*)?"
    r"(?P<body>.*?)(?:```)?\s*$",
    re.S,
)
_ARROW = re.compile(
    r"\s*(?:\[TOOL_CALL\])?\s*\{\s*tool\s*=>\s*[\"'](?P<name>[^\"']+)[\"']\s*,\s*args\s*=>\s*\{(?P<body>.*)\}\s*\}\s*(?:\[/TOOL_CALL\])?",
    re.S,
)
_ARROW_PAIR = re.compile(r"\s*--(?P<key>[\w-]+)\s+(?P<value>\"(?:\\.|[^\"\\])*\"|[^\s\"]+)\s*,?", re.S)


def _dsml(text: str) -> Rows | None:
    def row(match: re.Match[str]) -> tuple[str, str] | None:
        arguments = _parameters(match["body"], _DSML_PARAMETER)
        return None if arguments is None else (match["name"], arguments)

    return _tail(text, _DSML, row)


def _glm(text: str) -> Rows | None:
    def row(match: re.Match[str]) -> tuple[str, str] | None:
        arguments = _parameters(match["body"], _ARG_PAIR)
        return None if arguments is None else (match["name"], arguments)

    return _tail(text, _GLM, row)


def _hermes(text: str) -> Rows | None:
    rows: Rows = []
    at = 0
    while match := _HERMES.match(text, at):
        found = _json_calls(match["body"]) or _damaged(match["body"])
        if found is None:
            return None
        rows += found
        at = match.end()
    return rows if rows and not _ENDS.sub("", text[at:]).strip() else None


_DAMAGED = re.compile(
    r"""\s*\{\s*["']?name["']?\s*:\s*["'](?P<name>[\w.:-]+)["']\s*,\s*["']?(?:arguments|parameters)["']?\s*:\s*(?P<body>.*)\}\s*$""",
    re.S,
)


def _damaged(body: str) -> Rows | None:
    """A call whose JSON is broken: its name and, for repair to judge, its arguments as they came."""
    match = _DAMAGED.match(body)
    return [(match["name"], match["body"].strip())] if match else None


def _bracketed(text: str) -> Rows | None:
    """`[TOOL_CALLS]` and its kin before JSON."""
    body = re.sub(
        r"^\s*(?:\[TOOL_CALLS\]|<\|tool_call\|>|<\|python_tag\|>|<TOOLCALL>|<\|action_start\|>\s*<\|plugin\|>)",
        "",
        text,
    )
    body = re.sub(
        r"(?:\[/TOOL_CALLS\]|<\|/tool_call\|>|<\|e(?:om|ot)_id\|>|</TOOLCALL>|<\|action_end\|>|</s>)\s*$", "", body
    )
    return _json_calls(body)


def _fenced(text: str) -> Rows | None:
    match = _FENCE.match(text.strip())
    if match is None or match["label"] not in ("json", "tool_call", "tool_code", "tool", ""):
        return None
    return _pythonic(match["body"]) if match["label"] == "tool_code" else _json_calls(match["body"])


def _pythonic(text: str) -> Rows | None:
    """`[name(key=value), ...]` in Python's own words, literals alone."""
    body = re.sub(r"^\s*<\|python_start\|>|<\|python_end\|>\s*$|<\|eot\|>\s*$", "", text).strip()
    if len(body) > 65_536:
        return None
    try:
        tree = ast.parse(body, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    rows: Rows = []
    for node in tree.elts if isinstance(tree, ast.List) else [tree]:
        if not isinstance(node, ast.Call) or node.args or any(word.arg is None for word in node.keywords):
            return None
        try:
            given = {str(word.arg): ast.literal_eval(word.value) for word in node.keywords}
            rows.append((ast.unparse(node.func), _encode(given)))
        except (ValueError, TypeError, RecursionError):
            return None
    return rows


def _arrow(text: str) -> Rows | None:
    match = _ARROW.match(text)
    if match is None or _ENDS.sub("", text[match.end() :]).strip():
        return None
    given: dict[str, Any] = {}
    at = 0
    while pair := _ARROW_PAIR.match(match["body"], at):
        value = _decode(pair["value"])
        given[pair["key"]] = pair["value"] if value is None else value
        at = pair.end()
    return None if match["body"][at:].strip() else [(match["name"], _encode(given))]


def _of(pattern: re.Pattern[str], row: Callable[[re.Match[str]], tuple[str, str] | None]) -> Parse:
    return lambda text: _tail(text, pattern, row)


_FORMATS = (
    _Format("T1", re.compile(rf"<{_BAR}DSML{_BAR}"), _dsml),
    _Format("T3", re.compile(r"<(?:[\w-]+:)?tool_calls?>\s*<function=|<function="), _of(_QWEN, _tagged)),
    _Format("T6", re.compile(r"<tool_call>\s*[\w.:/-]+\s*(?:<arg_key>|</tool_call>)"), _glm),
    _Format("T2", re.compile(r"<tool_calls?>\s*[\[{]"), _hermes),
    _Format("T4", re.compile(r"<[|｜]tool▁calls?▁begin[|｜]>"), _of(_DEEPSEEK, _raw)),
    _Format("T5", re.compile(r"<\|tool_calls_section_begin\|>|<\|tool_call_begin\|>"), _of(_KIMI, _raw)),
    _Format("T7", re.compile(r"\[TOOL_CALLS\]\s*[\w.-]+\s*(?:\[|\{)"), _of(_MISTRAL, _raw)),
    _Format(
        "T7", re.compile(r"\[TOOL_CALLS\]|<\|tool_call\|>|<\|python_tag\|>|<TOOLCALL>|<\|action_start\|>"), _bracketed
    ),
    _Format(
        "T8",
        re.compile(r"(?:<(?:[\w-]+:)?(?:function_calls|tool_calls?)>\s*)?<(?:[\w-]+:)?invoke "),
        _of(_INVOKE, _tagged),
    ),
    _Format(
        "T11",
        re.compile(r"<\|start\|>assistant|<\|channel\|>(?:commentary|analysis)|to=functions\."),
        _of(_HARMONY, _raw),
    ),
    _Format("T13", re.compile(r"\[TOOL_CALL\]\s*\{\s*tool\s*=>|\{\s*tool\s*=>"), _arrow),
    _Format("T12", re.compile(r"(?:Thought:|Action:)"), _of(_REACT, _raw), alone=True),
    _Format("T9", re.compile(r"[\[{]\s*[\"{]"), _json_calls, alone=True),
    _Format("T14", re.compile(r"```"), _fenced, alone=True),
    _Format("T10", re.compile(r"<\|python_start\|>|\[\s*[A-Za-z_][\w.]*\("), _pythonic, alone=True),
)
# What a line that begins calls begins with; also used to hold such a line back while it is still streamed.
_MARKS = (
    "<｜DSML", "<|DSML", "<‖DSML", "<｜｜DSML", "<||DSML", "<tool_call", "<function=", "<function_calls", "<invoke ",
    "<｜tool▁call", "<|tool_call", "<|tool▁call", "[TOOL_CALL", "<|python_", "<TOOLCALL", "<|action_start", "<|start|>",
    "<|channel|>", "<minimax:tool_call", "<", "<seed:tool_call", "to=functions.",
)  # fmt: skip
