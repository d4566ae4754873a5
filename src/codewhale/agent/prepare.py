"""The first stages of a call, pure: what was meant by it, and what later requests will say of it. Nothing runs here."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from codewhale.agent.collect import RawCall
from codewhale.agent.holdback import HoldBack
from codewhale.catalog.arguments import right_already
from codewhale.catalog.registry import Catalog
from codewhale.lib.beneath import Root
from codewhale.permissions.path_spelling import meant
from codewhale.protocol.errors import ToolError
from codewhale.protocol.messages import ToolCall
from codewhale.protocol.tools import Effect, ToolSpec
from codewhale.repair.codes import RepairCode

if TYPE_CHECKING:
    from codewhale.repair.repairer import CallRepairer

# What an answer that came to its end says of it, whose calls are as its model meant them.
ENDED = frozenset(("stop", "tool_calls", "function_call", "tool_use", "end_turn", "completed"))
_BEGINNING = 40
_WIRE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
# What every text that may hold calls has somewhere.
_CALL_SIGNS = re.compile(r"[<\[{`]|Action:|Thought:|call:|to=")


class Prepared(Struct, frozen=True):
    """A call that is ready (`error` None, `spec` and `arguments` set) or refused (`error` set). `repairs` are the
    codes of what was mended; `lossy` that a reading was chosen."""

    call: ToolCall
    spec: ToolSpec | None = None
    arguments: dict[str, Any] = {}
    alias: str = ""
    error: ToolError | None = None
    repairs: tuple[str, ...] = ()
    lossy: bool = False

    @property
    def name(self) -> str:
        """The canonical name where one is known, else what the model sent."""
        return self.spec.name if self.spec is not None else self.call.name


def prepare(
    raw: RawCall, call_id: str, catalog: Catalog, cut: bool, repairer: "Callable[[], CallRepairer]", array: str = ""
) -> Prepared:
    """Judge one call by its text alone. `cut` says that the answer it stands in hit its length limit, `array` is the
    tools value that the model was shown. A call that is right as it came needs no repairer."""
    found = None if cut else catalog.resolve(raw.name)
    arguments = None if found is None else right_already(raw.arguments, found.spec)
    written = (raw.code,) if raw.code else ()
    if found is not None and arguments is not None and not _applies_patch(found.spec, arguments):
        return Prepared(_wire(raw, call_id, found.spec, arguments), found.spec, arguments, found.alias, repairs=written)
    verdict = repairer().judge(raw.name, raw.arguments, cut, raw.ended)
    runs = verdict.error is None
    # A verb that the array shows as a tool goes back under its own name, as it was said.
    shown = bool(raw.name) and f'"name":"{raw.name}"' in array
    return Prepared(
        call=_wire(raw, call_id, None if shown else verdict.spec, verdict.arguments if runs else None),
        spec=verdict.spec,
        arguments=(verdict.arguments or {}) if runs else {},
        alias=verdict.alias,
        error=verdict.error,
        repairs=(*written, *verdict.repairs),
        lossy=verdict.lossy,
    )


def unread(raw: RawCall, call_id: str) -> Prepared:
    """A call that is not looked into, because it is not to run."""
    return Prepared(_wire(raw, call_id, None, None))


def read_on(prepared: Prepared, workspace: str) -> Prepared:
    """The call of a tool that only reads with the path of what is there, where its own leads nowhere and is that path
    dressed up: in quotes, with a line number, under the name of the workspace. What was read is said aloud."""
    spec, path = prepared.spec, prepared.arguments.get("path")
    if prepared.error is not None or spec is None or spec.effects != (Effect.READS,) or not isinstance(path, str):
        return prepared
    if spec.source:  # whose files are not those of the workspace
        return prepared
    likely = meant(Root(workspace), path)
    if not likely:
        return prepared
    arguments = {**prepared.arguments, "path": likely}
    return msgspec.structs.replace(
        prepared, arguments=arguments, repairs=(*prepared.repairs, RepairCode.DRESSED_PATH), lossy=True
    )


def _applies_patch(spec: ToolSpec, arguments: dict[str, Any]) -> bool:
    """Whether a command may be one that other harnesses take for a call of a tool."""
    return spec.name == "exec_shell" and "apply_patch" in str(arguments.get("command", ""))[:_BEGINNING]


def may_hold_calls(text: str) -> bool:
    """Whether a text is worth a look for calls written in it."""
    if not _CALL_SIGNS.search(text):
        return False
    hold = HoldBack()
    hold.feed(text)
    return bool(hold.end()) or "</think>" in text


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
