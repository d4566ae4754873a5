"""From the raw string a model sent to checked arguments, or to an error that says where and what.

Strict: nothing is guessed and unreadable arguments never become an empty object.
"""

from typing import Any

import msgspec

from codewhale.catalog.schema import Problem, check
from codewhale.protocol.errors import NextCall, ToolError
from codewhale.protocol.tools import ToolSpec

MAX_ARGUMENT_BYTES = 1_048_576


def parse(raw: str, spec: ToolSpec) -> dict[str, Any]:
    """The object that `raw` says, nulls dropped but where a field is required, and whole numbers as integers (5.0 is
    5). An empty string is the empty object when nothing is required.

    Raises ToolError invalid_input naming the parse position with its surroundings, or what was there instead
    of an object.
    """
    if len(raw) > MAX_ARGUMENT_BYTES:
        raise _refusal(spec, f"arguments are {len(raw)} characters long", f"at most {MAX_ARGUMENT_BYTES}")
    if not raw.strip():
        if spec.parameters.get("required"):
            raise _refusal(spec, "arguments are empty", f"a JSON object with {_required(spec)}")
        return {}
    try:
        value = _whole(msgspec.json.decode(raw.encode("utf-8", "surrogatepass")))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise _refusal(spec, _where(raw), "one JSON object") from None
    if not isinstance(value, dict):
        raise _refusal(spec, f"arguments are {_kind(value)}, not an object", f"a JSON object with {_required(spec)}")
    required = spec.parameters.get("required", ())
    return {key: item for key, item in value.items() if item is not None or key in required}


def validate(arguments: dict[str, Any], spec: ToolSpec) -> None:
    """Check arguments against the tool's schema. Raises ToolError for the first problem, naming all of them,
    with the same call less its faulty parts as the fix where that still says something and all that is required."""
    problems = check(arguments, spec.parameters)
    if not problems:
        return
    first = problems[0]
    missing = first.kind == "missing"
    lines = [_sentence(problem) for problem in problems[:5]]
    if missing and arguments:
        lines.append(f"The call had: {', '.join(sorted(arguments))}.")
    raise ToolError(
        "missing_field" if missing else "invalid_input",
        " ".join(lines),
        field=first.field,
        expected=first.expected,
        received=first.received,
        fix=_fix(arguments, spec),
    )


def _fix(arguments: dict[str, Any], spec: ToolSpec) -> NextCall:
    alone = {**spec.parameters, "required": []}
    rest = {key: value for key, value in arguments.items() if not check({key: value}, alone)}
    whole = bool(rest) or not spec.parameters.get("properties")
    if whole and set(spec.effects) <= {"reads"} and not check(rest, spec.parameters):
        return NextCall(spec.name, rest)
    return NextCall(spec.rescue_tool, spec.rescue)


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value


def _sentence(problem: Problem) -> str:
    if problem.kind == "missing":
        return f"`{problem.field}` is missing ({problem.received} came): it must be {problem.expected}."
    if problem.kind == "unknown":
        known = problem.expected
        return f"`{problem.field}` is not an argument of this tool ({problem.received} came); it takes {known}."
    return f"`{problem.field}` must be {problem.expected}; got {problem.received}."


def _refusal(spec: ToolSpec, received: str, expected: str) -> ToolError:
    fix = NextCall(spec.rescue_tool, spec.rescue)
    message = f"The arguments could not be read: {received}. Send {expected}."
    return ToolError("invalid_input", message, field="arguments", expected=expected, received=received, fix=fix)


def _required(spec: ToolSpec) -> str:
    names = spec.parameters.get("required", ())
    return ", ".join(f"`{name}`" for name in names) if names else "its arguments"


def _where(raw: str) -> str:
    import json

    try:
        json.loads(raw)
    except json.JSONDecodeError as error:
        start = max(0, error.pos - 20)
        near = raw[start : error.pos + 20]
        return f"not valid JSON at character {error.pos} ({error.msg}) near {near!r}"
    except RecursionError:
        return "nested too deeply"
    return "not valid JSON (a lone surrogate, a number out of range, or nesting too deep)"


def _kind(value: object) -> str:
    names = {str: "a string", list: "an array", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")
