"""The first stages of a call, pure: what was meant by it, and what later requests will say of it. Nothing runs here."""

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field

from codewhale.agent.collect import RawCall
from codewhale.agent.holdback import HoldBack
from codewhale.catalog.registry import Catalog
from codewhale.catalog.schema import right_already
from codewhale.lib.beneath import Root
from codewhale.lib.patterns import lazy
from codewhale.permissions.path_spelling import meant
from codewhale.protocol.decisions import Decision
from codewhale.protocol.errors import ToolError
from codewhale.protocol.events import Event
from codewhale.protocol.files import FileChange
from codewhale.protocol.messages import ToolCall
from codewhale.protocol.tools import Effect, ToolSpec
from codewhale.repair.codes import RepairCode

if TYPE_CHECKING:
    from codewhale.repair.repairer import CallRepairer

# What an answer that came to its end says of it, whose calls are as its model meant them.
ENDED = frozenset(("stop", "tool_calls", "function_call", "tool_use", "end_turn", "completed"))
_BEGINNING = 40
_WIRE_NAME = lazy(r"[A-Za-z0-9_-]{1,64}")
# What every text that may hold calls has somewhere.
_CALL_SIGNS = lazy(r"[<\[{`]|Action:|Thought:|call:|to=")


class CallTimer:
    """Runs from its making on, and stands still while a person is waited for. `now` gives seconds that only grow."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._began = now()
        self._waited = 0.0

    @property
    def ms(self) -> int:
        """Milliseconds that it ran."""
        return int((self._now() - self._began - self._waited) * 1000)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A person is waited for meanwhile."""
        begun = self._now()
        try:
            yield
        finally:
            self._waited += self._now() - begun


class PendingCall(Struct):
    """A call on its way from what the model sent to its recorded outcome; each stage fills in more of it.

    `call` is how later requests say it. Prepared, it is ready (`error` None, `spec` and `arguments` set) or refused
    (`error` set); `repairs` are the codes of what was changed, `lossy` says that a reading was chosen. Finalized, it
    holds the `events` that record it and what the turn must know; `changed` are the files that a program changed,
    `loaded` the skills that its result holds, `denied` why policy or a person refused it.
    `direct`: a program made it, which knows the tool.
    `rewritten` says what the person put in place of its command, which was shown with the decision `allowed`.
    """

    call: ToolCall
    spec: ToolSpec | None = None
    arguments: dict[str, Any] = {}
    alias: str = ""
    error: ToolError | None = None
    repairs: tuple[str, ...] = ()
    lossy: bool = False
    clock: CallTimer = field(default_factory=CallTimer)
    events: tuple[Event, ...] = ()
    changed: tuple[FileChange, ...] = ()
    loaded: tuple[str, ...] = ()
    ok: bool = False
    denied: str = ""
    end_turn: bool = False
    repeats: int = 0
    ms: int = 0
    allowed: Decision | None = None
    rewritten: str = ""
    direct: bool = False

    @property
    def id(self) -> str:
        return self.call.id

    @property
    def name(self) -> str:
        """The canonical name where one is known, else what the model sent."""
        return self.spec.name if self.spec is not None else self.call.name

    def rewrite(self, command: str, shown: Decision) -> None:
        """Put the person's own command in the place of the call's, which was shown with this decision. Raises ToolError
        where the call has none."""
        before = self.arguments.get("command")
        if not isinstance(before, str):
            raise ToolError("invalid_input", f"{self.name} has no command that could be changed; it was not run.")
        self.arguments = {**self.arguments, "command": command}
        self.allowed = shown
        first = self.rewritten.partition("\nTheirs: ")[0] or f"The user changed this command.\nYours: {before}"
        self.rewritten = f"{first}\nTheirs: {command}"

    def written(self, decision: Decision) -> bool:
        """Whether the person wrote this command, and it gets no more rights than were shown with the one before."""
        shown = self.allowed
        return (
            shown is not None
            and not decision.clauses
            and decision.sandbox in ("read-only", shown.sandbox)
            and (shown.sandbox == "none" or set(decision.allowances) <= set(shown.allowances))
        )


def prepare(
    raw: RawCall,
    call_id: str,
    catalog: Catalog,
    cut: bool,
    repairer: "Callable[[], CallRepairer]",
    shown: Collection[str] = (),
) -> PendingCall:
    """Judge one call by its text alone. `cut` says that the answer it stands in hit its length limit, `shown` are
    the tools of the array. A call that is right as it came needs no repairer."""
    known = None if cut else catalog.resolve(raw.name)
    arguments = None if known is None else right_already(raw.arguments, known.spec)
    written = (raw.code,) if raw.code else ()
    if known is not None and arguments is not None and not _applies_patch(known.spec, arguments):
        call = _wire(raw, call_id, known.spec.name, raw.arguments)
        return PendingCall(call, known.spec, arguments, known.alias, repairs=written)
    verdict = repairer().judge(raw.name, raw.arguments, cut, raw.ended)
    runs = verdict.error is None
    # A verb that the array shows as a tool goes back under its own name, as it was sent.
    name = raw.name if verdict.spec is None or raw.name in shown else verdict.spec.name
    return PendingCall(
        call=_wire(raw, call_id, name, _sendable(raw.arguments, verdict.arguments if runs else None)),
        spec=verdict.spec,
        arguments=(verdict.arguments or {}) if runs else {},
        alias=verdict.alias,
        error=verdict.error,
        repairs=(*written, *verdict.repairs),
        lossy=verdict.lossy,
    )


def unread(raw: RawCall, call_id: str) -> PendingCall:
    """A call that is not looked into, because it is not to run."""
    return PendingCall(_wire(raw, call_id, raw.name, _sendable(raw.arguments, None)))


def read_on(call: PendingCall, workspace: str) -> None:
    """Give a call of a tool that only reads the path of what is there, where its own leads nowhere and is that path
    dressed up: in quotes, with a line number, under the name of the workspace. The result says what was read."""
    spec, path = call.spec, call.arguments.get("path")
    if call.error is not None or spec is None or spec.effects != (Effect.READS,) or not isinstance(path, str):
        return
    if spec.source:  # whose files are not those of the workspace
        return
    likely = meant(Root(workspace), path)
    if likely:
        call.arguments = {**call.arguments, "path": likely}
        call.repairs, call.lossy = (*call.repairs, RepairCode.DRESSED_PATH), True


def _applies_patch(spec: ToolSpec, arguments: dict[str, Any]) -> bool:
    """Whether a command may be one that other harnesses take for a call of a tool."""
    return spec.name == "exec_shell" and "apply_patch" in str(arguments.get("command", ""))[:_BEGINNING]


def may_hold_calls(text: str) -> bool:
    """Whether a text is worth a look for calls written in it."""
    if not _CALL_SIGNS().search(text):
        return False
    hold = HoldBack()
    hold.feed(text)
    return bool(hold.end()) or "</think>" in text


def _wire(raw: RawCall, call_id: str, name: str, arguments: str) -> ToolCall:
    """The call as later requests say it, under this name where it is one at all."""
    name = name if _WIRE_NAME().fullmatch(name) else "unknown_tool"
    return ToolCall(
        id=call_id,
        name=raw.name,
        arguments=raw.arguments,
        wire_name="" if name == raw.name else name,
        wire_arguments="" if arguments == raw.arguments else arguments,
    )


def _sendable(raw: str, effective: dict[str, Any] | None) -> str:
    """Arguments as sent where they are an object, else the effective ones."""
    try:
        if isinstance(msgspec.json.decode(raw.encode()), dict):
            return raw
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass
    return "{}" if effective is None else msgspec.json.encode(effective).decode()
