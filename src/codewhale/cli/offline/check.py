"""What would become of calls, told without running any: by their text alone, one answer a line."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.agent.pending_call import ENDED
from codewhale.catalog.registry import Catalog
from codewhale.catalog.schema import right_already
from codewhale.protocol.errors import ConfigError, ToolError
from codewhale.protocol.tools import Effect, ToolSpec
from codewhale.repair.judge import Verdict
from codewhale.repair.repairer import CallRepairer

# Types of other function lists: the JSON Schema word for each; "any" and what is not known leave the type open.
_TYPES = {"dict": "object", "float": "number", "tuple": "array", "double": "number", "int": "integer", "str": "string"}
_KNOWN = frozenset("string integer number boolean array object null".split())
_RETRYABLE = frozenset(("invalid_input", "missing_field", "not_available"))


class _Line(Struct, frozen=True):
    id: Any = None
    name: str | None = None
    arguments: Any = None
    text: str | None = None
    finish: str = ""


class Checker:
    """Judges the lines of a file of calls against our tools, or against functions of someone else."""

    def __init__(self, functions: bytes | None = None, text_channel: bool = False) -> None:
        """`functions` is a JSON array; `catalog` the rows of it; `text_channel` that the model's calls come as text.
        Raises ConfigError for functions that cannot be used."""
        self._text_channel = text_channel
        self.catalog = Catalog.load() if functions is None else Catalog(_rows(functions))
        self._repair = CallRepairer(self.catalog)

    def line(self, data: bytes) -> dict[str, Any]:
        """The answer to one line: `{"id","name","arguments"}`, with the `finish` of its answer where that is known, or
        `{"id","text"}`. Raises ValueError, in words, for
        a line that is neither."""
        try:
            line = msgspec.json.decode(data, type=_Line)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise ValueError(f"not a JSON object with id, name and arguments or text: {error}") from None
        if line.text is not None:
            return {"id": line.id, **self._text(line.text)}
        if line.name is None:
            raise ValueError("neither name nor text")
        raw = line.arguments
        if raw is None:
            raw = ""
        elif not isinstance(raw, str):
            raw = msgspec.json.encode(raw).decode()
        return {"id": line.id, **_told(self._judge(line.name, raw, line.finish))}

    def _judge(self, name: str, raw: str, finish: str = "") -> Verdict:
        spec = self.catalog.spec(name)
        arguments = right_already(raw, spec) if spec is not None else None
        cut = finish == "length"
        if arguments is not None and not cut:
            return Verdict(name, spec, arguments)
        return self._repair.judge(name, raw, cut, finish in ENDED)

    def _text(self, text: str) -> dict[str, Any]:
        found = self._repair.find_calls(text)
        if found is None:
            seen = self._repair.looks_like_call(text)
            written = {} if seen is None else {"outcome": "tell", "name": seen.name or None}
            return {**_NONE, **written, "calls": []}
        runs = self._repair.takes(found, self._text_channel)
        calls = []
        for call in found.calls:
            told = _told(self._judge(call.name, call.arguments))
            outcome = told["outcome"] if runs else "tell"
            calls.append({**told, "outcome": outcome, "repairs": [call.code, *told["repairs"]]})
        return {**calls[0], "calls": calls}


_NONE: dict[str, Any] = {
    "outcome": "none", "name": None, "arguments": None, "lossy": False, "repairs": [], "error": None,
}  # fmt: skip


def _told(verdict: Verdict) -> dict[str, Any]:
    return {
        "outcome": "refuse" if verdict.error is not None else "run",
        "name": verdict.name,
        "arguments": verdict.arguments if verdict.error is None else None,
        "lossy": verdict.lossy,
        "repairs": list(verdict.repairs),
        "error": None if verdict.error is None else _error(verdict.error),
    }


def _error(error: ToolError) -> dict[str, Any]:
    fix = None if error.fix is None else {"name": error.fix.name, "arguments": error.fix.arguments}
    return {
        "code": error.kind,
        "message": error.message,
        "field": error.field,
        "expected": error.expected,
        "received": error.received,
        "fix": fix,
        "retryable": error.kind in _RETRYABLE,
    }


def _rows(functions: bytes) -> list[ToolSpec]:
    """Functions of someone else as rows: mutating unless they say `read_only`, with no call of ours to suggest."""
    try:
        values = msgspec.json.decode(functions)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ConfigError(f"--schemas: not JSON: {error}") from None
    rows = []
    for number, value in enumerate(values if isinstance(values, list) else [None], start=1):
        function = value.get("function", value) if isinstance(value, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise ConfigError(f'--schemas: entry {number} is not {{"name", "parameters"}}')
        read_only = bool(value.get("read_only") or function.get("read_only"))
        rows.append(
            ToolSpec(
                name=function["name"],
                family="",
                description=str(function.get("description", "")),
                parameters=_schema(function.get("parameters") or {"type": "object", "properties": {}}),
                effects=(Effect.READS,) if read_only else (Effect.EXECUTES,),
            )
        )
    return rows


def _schema(value: Any, depth: int = 0) -> dict[str, Any]:
    """A schema in the words of ours."""
    if not isinstance(value, dict) or depth > 32:
        return {}
    kind = value.get("type")
    if isinstance(kind, list):
        options = [_schema({**value, "type": one}, depth + 1) for one in kind]
        return options[0] if len(options) == 1 else {"anyOf": options}
    told = {
        key: value[key]
        for key in ("required", "enum", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems")
        if value.get(key) is not None
    }
    kind = _TYPES.get(str(kind).lower(), str(kind).lower())
    if kind in _KNOWN:
        told["type"] = kind
    if isinstance(value.get("properties"), dict):
        told["properties"] = {str(key): _schema(item, depth + 1) for key, item in value["properties"].items()}
        told.setdefault("type", "object")
        told["required"] = [name for name in told.get("required", ()) if name in told["properties"]]
    if "items" in value:
        told["items"] = _schema(value["items"], depth + 1)
    choices = value.get("anyOf") or value.get("oneOf")
    if isinstance(choices, list):
        told["anyOf"] = [_schema(choice, depth + 1) for choice in choices]
    if value.get("additionalProperties") is False or depth == 0:
        told["additionalProperties"] = False
    return told


def answers(lines: Iterator[bytes], checker: Checker) -> Iterator[tuple[dict[str, Any], bool]]:
    """Each line's answer in order, with whether the line could be read."""
    for number, line in enumerate(lines, start=1):
        try:
            yield checker.line(line), True
        except ValueError as error:
            yield {"id": None, "line": number, "error": {"code": "bad_line", "message": str(error)}}, False
