"""JSON and Python calls as models write them: one value or a whole message that is nothing but calls.

Damaged JSON keeps its arguments as they came, to be judged; what is cut off ends in the middle, so that nobody can
take it for whole.
"""

import ast
import json
import re
from typing import Any

import msgspec

from codewhale.protocol.marks import LABELS
from codewhale.repair.codes import RepairCode
from codewhale.repair.payload import Unreadable, read

Row = tuple[str, str]
_LONGEST_CODE = 65_536
_CUT_OFF = ', "'

_NAMES = ("name", "tool_name", "toolName", "tool", "function", "function_name", "recipient_name", "action")
_GIVEN = ("arguments", "parameters", "args", "input", "params", "tool_input", "action_input", "kwargs", "tool_args")
_BESIDE = frozenset("id type call_id tool_call_id index thought reasoning status".split())
_LISTS = ("tool_calls", "tool_uses", "calls", "function_calls")
CALL_NAME = re.compile(r"""["']?(?:name|tool_name|tool|function|action)["']?\s*:\s*["'](?P<name>[\w.:/-]+)["']""")
CALL_GIVEN = re.compile(r"""["']?(?:arguments|parameters|args|(?:action_|tool_)?input)["']?\s*:\s*""")
_DECODER = json.JSONDecoder(strict=False)
_BLANK = re.compile(r"[\s,;]*")
_FIRST_LOOK = 512


def call_of(value: Any) -> Row | None:
    """Name and arguments of a call as JSON says it."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("function"), dict) and set(value) - {"function"} <= _BESIDE:
        value = value["function"]
    names = [key for key in _NAMES if isinstance(value.get(key), str)]
    given = [key for key in _GIVEN if key in value and key not in names[:1]]
    if not names or len(given) > 1 or set(value) - {names[0], *given} - _BESIDE - set(names):
        return None
    arguments = value[given[0]] if given else {}
    return value[names[0]], arguments if isinstance(arguments, str) else encode(arguments)


def calls_of(value: Any) -> list[Row] | None:
    """The calls a JSON value says: one, a list of them, or a list under a name such as `tool_calls`."""
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in _LISTS:
        value = next(iter(value.values()))
    found = [call_of(item) for item in (value if isinstance(value, list) else [value])]
    return [row for row in found if row] if found and all(found) else None


def encode(value: Any) -> str:
    """A value as JSON."""
    return msgspec.json.encode(value).decode()


def values(text: str) -> list[Any] | None:
    """The JSON values that stand one after another in a text; None where something else does."""
    found: list[Any] = []
    at = next_word(text, 0)
    while at < len(text):
        try:
            value, at = decode_at(text, at)
        except ValueError:
            return None
        found.append(value)
        at = next_word(text, at)
    return found or None


def decode_at(text: str, at: int) -> tuple[Any, int]:
    """The JSON value at a place and where it ends. Raises ValueError. A fault costs no more than the way to it."""
    look = _FIRST_LOOK
    while True:
        piece = text[at : at + look]
        try:
            value, end = _DECODER.raw_decode(piece)
        except json.JSONDecodeError as error:
            open_end = error.pos + 12 >= len(piece) or error.msg.startswith("Unterminated")
            if not open_end or at + look >= len(text):
                raise
        except RecursionError:
            raise ValueError("nested too deep") from None
        else:
            if end < len(piece) or at + look >= len(text) or not isinstance(value, int | float):
                return value, at + end
        look *= 4


def next_word(text: str, at: int) -> int:
    """The place of the next thing that is neither blank nor between two values."""
    match = _BLANK.match(text, at)
    return match.end() if match else at


def json_rows(body: str, closed: bool) -> list[Row] | None:
    """The calls of a JSON text; `closed` tells that a mark ends it. Damaged ones keep their arguments as they came."""
    body = bare(body)
    found = values(body)
    if found is not None:
        rows = [calls_of(value) for value in found]
        return [row for some in rows for row in some or ()] if all(rows) else None
    if body[:1] not in ("{", "["):
        return None
    try:
        reading = read(body)
    except Unreadable as error:
        return damaged(body, closed=closed and not error.truncated)
    rows_read = calls_of(reading.value) if not reading.lossy else None
    return rows_read or damaged(body, closed=closed)


def bare(body: str) -> str:
    """A text without the fence around it."""
    body = body.strip()
    fenced = re.match(r"```[\w-]*[ \t]*\n?", body)
    return body[fenced.end() :].removesuffix("```").strip() if fenced else body


def damaged(body: str, *, closed: bool) -> list[Row] | None:
    """A call whose JSON is broken: its name and what is to be judged as its arguments."""
    name = CALL_NAME.search(body, 0, 2_000)
    if name is None:
        return None
    given = CALL_GIVEN.search(body, 0, 4_000)
    said = body[given.end() :] if given else body
    if given and name.start() > given.start():
        said = said[: name.start() - given.end()].rstrip().rstrip(",")
    elif closed:
        said = said.rstrip().removesuffix("]").rstrip().removesuffix("}")
    return [(name["name"], said.strip() if closed else cut_off(said))]


def cut_off(said: str) -> str:
    """Arguments that end in the middle, in such a way that nobody can take them for whole."""
    try:
        read(said)
    except Unreadable as error:
        if error.truncated:
            return said
    return (said.rstrip() or "{") + _CUT_OFF


# ---------------------------------------------------------------------- whole messages

_REACT = re.compile(r"Action:\s*`?(?P<name>[\w.-]+)`?(?:\(\))?[ \t]*\n\s*Action Input:\s*")
_OBSERVED = re.compile(r"\n[ \t]*(?:Observation|Thought|Final Answer):")
_FENCED = re.compile(r"```(?P<label>[\w-]*)[ \t]*\n(?P<body>[\s\S]*?)\n?[ \t]*```\s*$")
_ARROW = re.compile(
    r"\{\s*tool\s*=>\s*[\"'](?P<name>[^\"'\n]+)[\"']\s*,\s*(?:args|parameters)\s*=>\s*\{(?P<body>[\s\S]*)\}\s*\}\s*$"
)
_ARROW_PAIR = re.compile(
    r"\s*(?:--(?P<flag>[\w-]+)\s+|[\"']?(?P<key>[\w-]+)[\"']?\s*=>\s*)(?P<value>\"(?:\\.|[^\"\\])*\"|[^\s\",{}]+)\s*,?"
)


def react(text: str, observed: bool = False) -> list[Row] | None:
    """`Action:` and `Action Input:`; with `observed` also where the model made up what follows them."""
    start = text.find("\nAction:") + 1 if text.startswith("Thought:") else 0
    match = _REACT.match(text, start)
    if match is None:
        return None
    made_up = _OBSERVED.search(text, match.end())
    if made_up and not observed:
        return None
    said = bare(text[match.end() : made_up.start() if made_up else len(text)])
    if values(said) is None and "\n\n" in said and values(said.split("\n\n")[0]) is not None:
        return None
    if not made_up and said[:1] == "{" and values(said) is None and _unfinished(said):
        said = cut_off(said)
    if said[:1] not in ("{", "["):
        said = encode(said.strip()) if said.strip().lower() not in ("", "none", "n/a") else "{}"
    return [(match["name"], said)]


def whole_json(text: str) -> list[Row] | None:
    """A message that is the JSON of calls and nothing else."""
    found = values(text)
    if found is not None:
        rows = [calls_of(value) for value in found]
        if not all(rows) or not any(f'"{key}"' in text for key in _GIVEN):
            return None
        return [row for some in rows for row in some or ()]
    if not re.match(r"""[\[{]\s*[{"']*\s*["']?(?:name|tool|function|tool_name|tool_calls)["']?\s*:""", text[:200]):
        return None
    closed = text.rstrip()[-1:] in ("}", "]")
    return json_rows(text, closed=closed) if closed or _unfinished(text) else None


def _unfinished(text: str) -> bool:
    try:
        repairs = read(text).repairs
    except Unreadable as error:
        return error.truncated
    return RepairCode.BRACKET in repairs and RepairCode.SURROUNDED not in repairs


def fenced(text: str) -> list[Row] | None:
    """A message that is one fence around calls and nothing else, with a label that says so."""
    match = _FENCED.match(text)
    if match is None or "\n```" in match["body"] or match["label"] not in LABELS:
        return None
    return pythonic(match["body"].strip()) or (
        None if match["label"] == "tool_code" else whole_json(match["body"].strip())
    )


def pythonic(text: str) -> list[Row] | None:
    """`[name(key=value), ...]` in Python's own words, literals alone; one call, a list, or a line each."""
    body = re.sub(r"^\s*print\(([\s\S]*)\)\s*$", r"\1", text.strip())
    if len(body) > _LONGEST_CODE or "(" not in body:
        return None
    try:
        lines = ast.parse(body).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    rows: list[Row] = []
    for line in lines:
        node = line.value if isinstance(line, ast.Expr) else None
        for item in node.elts if isinstance(node, ast.List) else [node]:
            row = _python_call(item)
            if row is None:
                return None
            rows.append(row)
    return rows or None


def _python_call(node: ast.AST | None) -> Row | None:
    if not isinstance(node, ast.Call) or node.args or any(word.arg is None for word in node.keywords):
        return None
    try:
        return ast.unparse(node.func), encode({str(word.arg): ast.literal_eval(word.value) for word in node.keywords})
    except (ValueError, TypeError, RecursionError):
        return None


def arrow(text: str) -> list[Row] | None:
    """`{tool => "name", args => { --key "value" }}`."""
    match = _ARROW.match(text)
    if match is None:
        return None
    given: dict[str, Any] = {}
    at = 0
    while pair := _ARROW_PAIR.match(match["body"], at):
        found = values(pair["value"])
        given[pair["flag"] or pair["key"]] = found[0] if found else pair["value"]
        at = pair.end()
    return None if match["body"][at:].strip() else [(match["name"], encode(given))]
