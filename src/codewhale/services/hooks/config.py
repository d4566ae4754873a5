"""Hooks as they are written down, checked when they are read: a hook that could never run, or could run when nobody
meant it to, is refused with its reason and the others stand."""

import fnmatch
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

from codewhale.protocol.modes import Mode
from codewhale.protocol.tools import Effect

BEFORE, AFTER, SUBMIT, SHELL_ENV = "tool_call_before", "tool_call_after", "message_submit", "shell_env"
EVENTS = (
    "session_start", "session_end", SUBMIT, BEFORE, AFTER, "mode_change", "on_error", "turn_end", "subagent_spawn",
    "subagent_complete", SHELL_ENV,
)  # fmt: skip
SECONDS, MOST_SECONDS = 30.0, 600.0
MOST_HOOKS = 64
_WITH_TOOL = (BEFORE, AFTER)
# What a tool is called by what it may do; the first name is ours, the others are taken as well.
CATEGORIES: Mapping[str, Effect] = {
    "read": Effect.READS, "safe": Effect.READS, "write": Effect.WRITES, "file_write": Effect.WRITES,
    "execute": Effect.EXECUTES, "shell": Effect.EXECUTES, "network": Effect.NETWORK,
}  # fmt: skip
_SANDBOXES = ("workspace-write", "read-only", "none")
_KEYS = frozenset(
    "event command condition timeout_secs background continue_on_error name sandbox network enabled".split()
)


class HookMoment(Struct, frozen=True):
    """What a hook is told of the moment it runs at. `result` and `ok` are those of a call that ended."""

    event: str
    session: str
    workspace: str
    mode: str = ""
    tool: str = ""
    arguments: dict[str, Any] | None = None
    effects: tuple[Effect, ...] = ()
    result: str = ""
    ok: bool | None = None
    exit_code: int | None = None
    message: str = ""
    error: str = ""
    previous_mode: str = ""


class Condition(Struct, frozen=True):
    """When a hook runs: `kind` is always, tool_name, tool_category, mode, exit_code, all or any; `value` what must be
    met, `parts` the conditions of all and any."""

    kind: Literal["always", "tool_name", "tool_category", "mode", "exit_code", "all", "any"] = "always"
    value: str | int = ""
    parts: tuple["Condition", ...] = ()

    def holds(self, moment: HookMoment) -> bool:
        match self.kind:
            case "tool_name":
                return fnmatch.fnmatchcase(moment.tool, str(self.value))
            case "tool_category":
                effect = CATEGORIES[str(self.value)]
                return set(moment.effects) <= {effect} if effect is Effect.READS else effect in moment.effects
            case "mode":
                return moment.mode == self.value
            case "exit_code":
                return moment.exit_code == self.value
            case "all":
                return all(part.holds(moment) for part in self.parts)
            case "any":
                return any(part.holds(moment) for part in self.parts)
            case _:
                return True


class Hook(Struct, frozen=True):
    """One hook. `origin` is the file it stands in, `project` whether that is a project's own."""

    event: str
    command: str
    name: str
    origin: str
    project: bool = False
    condition: Condition = Condition()
    seconds: float = SECONDS
    background: bool = False
    continue_on_error: bool = True
    sandbox: str = "workspace-write"
    network: bool = False


class HookError(Exception):
    """A hook that is not taken; the text says why."""


def read_hooks(tree: object, origin: str, project: bool = False) -> tuple[tuple[Hook, ...], tuple[str, ...]]:
    """The hooks of a `[hooks]` table with `[[hooks.hooks]]` rows, and one line for each row that is refused."""
    rows = tree.get("hooks", []) if isinstance(tree, dict) else None
    if not isinstance(tree, dict) or not isinstance(rows, list):
        return (), (f"{origin}: hooks must be [[hooks.hooks]] rows; ignored",)
    if tree.get("enabled", True) is False:
        return (), ()
    hooks: list[Hook] = []
    refused: list[str] = []
    for number, row in enumerate(rows, 1):
        try:
            if number > MOST_HOOKS:
                raise HookError(f"there are more than {MOST_HOOKS}")
            if not isinstance(row, dict):
                raise HookError("it is not a table")
            if row.get("enabled", True) is not False:
                hooks.append(_hook(row, origin, project, number))
        except HookError as error:
            name = row.get("name") if isinstance(row, dict) else ""
            refused.append(f"{origin}: hook {name or number} is ignored: {error}")
    return tuple(hooks), tuple(refused)


def _hook(row: dict[str, Any], origin: str, project: bool, number: int) -> Hook:
    event = row.get("event")
    if event not in EVENTS:
        raise HookError(f"event {event!r} is not one of {', '.join(EVENTS)}")
    if unknown := sorted(set(row) - _KEYS):
        raise HookError(f"{', '.join(unknown)} is not known; known are {', '.join(sorted(_KEYS))}")
    command = row.get("command")
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        raise HookError("command must be a command line")
    sandbox = row.get("sandbox", "workspace-write")
    if sandbox not in _SANDBOXES:
        raise HookError(f"sandbox {sandbox!r} is not one of {', '.join(_SANDBOXES)}")
    if project and (sandbox == "none" or row.get("network") or event == SHELL_ENV):
        raise HookError("a project's hook runs in the sandbox, without network, and cannot set environment variables")
    name = row.get("name", f"{event} {number}")
    if not isinstance(name, str) or not name.isprintable() or len(name) > 100:
        raise HookError("name must be a short text")
    background = _flag(row, "background", False)
    if background and event in (SHELL_ENV,):
        raise HookError("a hook in the background cannot change what happens")
    condition = _condition(row.get("condition", {"type": "always"}), event)
    _refuse_contradiction(condition)
    return Hook(
        event=event,
        command=command,
        name=name,
        origin=origin,
        project=project,
        condition=condition,
        seconds=_seconds(row.get("timeout_secs", SECONDS)),
        background=background,
        continue_on_error=_flag(row, "continue_on_error", True),
        sandbox=sandbox,
        network=_flag(row, "network", False),
    )


def _flag(row: dict[str, Any], key: str, default: bool) -> bool:
    value = row.get(key, default)
    if not isinstance(value, bool):
        raise HookError(f"{key} must be true or false")
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MOST_SECONDS:
        raise HookError(f"timeout_secs must be above 0 and at most {MOST_SECONDS:g}")
    return float(value)


def _condition(raw: Any, event: str, depth: int = 0) -> Condition:
    if isinstance(raw, str):
        raw = {"type": raw}
    if not isinstance(raw, dict) or depth > 8:
        raise HookError('condition must be a table such as { type = "tool_name", name = "exec_shell" }')
    kind = raw.get("type")
    value = raw.get("value", raw.get(_VALUE_KEYS.get(str(kind), "value"), ""))
    match kind:
        case "always":
            return Condition()
        case "all" | "any":
            parts = raw.get("conditions")
            if not isinstance(parts, list) or not parts:
                raise HookError(f"condition {kind} needs conditions")
            return Condition(kind, "", tuple(_condition(part, event, depth + 1) for part in parts))
        case "tool_name" | "tool_category" if event not in _WITH_TOOL:
            raise HookError(f"condition {kind} is never met at {event}: no tool runs then")
        case "exit_code" if event != AFTER:
            raise HookError(f"condition exit_code is never met at {event}: only {AFTER} knows one")
        case "tool_name" if isinstance(value, str) and value:
            return Condition("tool_name", value)
        case "tool_category" if value in CATEGORIES:
            return Condition("tool_category", str(value))
        case "mode" if value in list(Mode):
            return Condition("mode", str(value))
        case "exit_code" if isinstance(value, int) and not isinstance(value, bool):
            return Condition("exit_code", value)
        case _:
            raise HookError(f"condition {kind!r} with {value!r} is never met")


_VALUE_KEYS = {"tool_name": "name", "tool_category": "category", "mode": "mode", "exit_code": "code"}


def _refuse_contradiction(condition: Condition) -> None:
    """Raises Refused where `all` wants two things at once that exclude each other."""
    for kind in ("tool_name", "mode", "exit_code"):
        wanted = {part.value for part in _joined(condition) if part.kind == kind}
        plain = {value for value in wanted if not (isinstance(value, str) and set(value) & set("*?["))}
        if len(plain) > 1:
            raise HookError(
                f"condition all is never met: {kind} cannot be {' and '.join(map(str, sorted(plain, key=str)))}"
            )
    for part in condition.parts:
        _refuse_contradiction(part)


def _joined(condition: Condition) -> Iterator[Condition]:
    if condition.kind == "all":
        for part in condition.parts:
            yield from _joined(part)
    else:
        yield condition
