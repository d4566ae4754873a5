"""The first stages of a call, pure: resolve its name, read its arguments, validate them, choose what later
requests will say of it. Nothing runs here."""

import re
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.catalog.arguments import parse, validate
from codewhale.catalog.registry import Catalog
from codewhale.engine.collect import RawCall
from codewhale.protocol.errors import NextCall, ToolError
from codewhale.protocol.messages import ToolCall
from codewhale.protocol.tools import ToolSpec

_WIRE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Prepared(Struct, frozen=True):
    """A call that is ready (`error` None, `spec` and `arguments` set) or refused (`error` set)."""

    call: ToolCall
    spec: ToolSpec | None = None
    arguments: dict[str, Any] = {}
    alias: str = ""
    error: ToolError | None = None

    @property
    def name(self) -> str:
        """The canonical name where one is known, else what the model sent."""
        return self.spec.name if self.spec is not None else self.call.name


def prepare(raw: RawCall, call_id: str, catalog: Catalog, cut: bool) -> Prepared:
    """Judge one call by its text alone. `cut` says that the answer it stands in hit its length limit."""
    found = catalog.resolve(raw.name)
    if found is None:
        return Prepared(_wire(raw, call_id, None, None), error=_unknown(raw.name, catalog))
    spec = found.spec
    try:
        if cut:
            raise _truncated(spec, raw)
        arguments = parse(raw.arguments, spec)
        validate(arguments, spec)
    except ToolError as error:
        return Prepared(_wire(raw, call_id, spec, None), spec=spec, alias=found.alias, error=error)
    return Prepared(_wire(raw, call_id, spec, arguments), spec, arguments, found.alias)


def _wire(raw: RawCall, call_id: str, spec: ToolSpec | None, arguments: dict[str, Any] | None) -> ToolCall:
    """The call as later requests say it: under its tool's own name, or as sent where that is a name at all; with the
    arguments as sent where they are an object, else the effective ones."""
    known = spec.name if spec is not None else raw.name
    name = known if _WIRE_NAME.fullmatch(known) else "unknown_tool"
    if _is_object(raw.arguments):
        said = raw.arguments
    else:
        said = "{}" if arguments is None else msgspec.json.encode(arguments).decode()
    return ToolCall(
        id=call_id,
        name=raw.name,
        arguments=raw.arguments,
        wire_name="" if name == raw.name else name,
        wire_arguments="" if said == raw.arguments else said,
    )


def _is_object(raw: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(raw.encode()), dict)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False


def _truncated(spec: ToolSpec, raw: RawCall) -> ToolError:
    return ToolError(
        "invalid_input",
        f"This answer hit its length limit, so the call may be cut ({len(raw.arguments)} characters of arguments "
        "came) and was not run. Send it again in smaller pieces: fewer calls per answer, shorter content, or "
        "several edits instead of one whole file.",
        field="arguments",
        expected="a complete call",
        received="a call in an answer that hit its length limit",
        fix=NextCall(spec.rescue_tool, spec.rescue),
    )


def _unknown(name: str, catalog: Catalog) -> ToolError:
    close = catalog.closest(name)
    shown = name if name.strip() else "(an empty name)"
    hint = f" Did you mean {', '.join(close)}?" if close else ""
    return ToolError(
        "not_available",
        f"There is no tool named {shown[:80]!r}.{hint} The tools are: {', '.join(catalog.names())}.",
        field="name",
        expected="the name of a tool",
        received=shown[:80],
        fix=NextCall("list_dir", {"path": "."}),
    )
