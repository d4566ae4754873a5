"""What the model is told: the pinned system text, the instruction chain and the facts appended to a message.

The system text holds nothing that changes within a day or between two sessions in one repository; whatever
does change (date, branch, mode, edited instructions) is appended once with the person's words.
"""

import os
import re
import stat
from collections.abc import Collection, Iterable

from msgspec import Struct

from codewhale.lib.patterns import lazy
from codewhale.lib.text import one_line, sanitise
from codewhale.protocol.modes import Mode
from codewhale.protocol.skills import Guided

INSTRUCTION_LIMIT = 32_768
INSTRUCTION_NAMES = ("AGENTS.md", "CLAUDE.md")
RULES = "# Rules\n"  # how the rules that always apply begin
NOTES = "# The user's notes\n"  # how the person's own facts begin
SKILL_LIMIT = 32_768  # characters of one skill
_CLOSING = lazy(
    r"<(?=\s*/\s*(?:instructions|context|skills?|rules?|constitution|codemap|context_update)|\s*(?:/\s*)?user_memory)",
    re.IGNORECASE,
)
_NOTES = lazy(re.escape(NOTES) + r".*?</user_memory>\n*", re.DOTALL)
_VERSION = lazy(r'<user_memory version="(\w+)">')
# A part of the text for arrays that hold some tools and lack others.
_FOR = lazy(r"\{(?P<when>[a-z_0-9|+!]+):(?P<text>[^{}]*)\}")
# How a skill became active, by who did it.
_BY = {
    "person": "The user activated this skill for {until}.",
    "model": "This skill was loaded for {until}.",
    "plan": "Your plan names this skill; it is active for {until}.",
    "file": "This applies to a file that was just touched or found.",
    "always": "This always applies here.",
}
_PROMPTS = os.path.join(os.path.dirname(__file__), "prompts")


class Instruction(Struct, frozen=True):
    """One instruction file: the name shown for it, its text (cut to what the budget left) and its full size."""

    name: str
    text: str
    bytes: int


def mode_text(mode: Mode) -> str:
    """What the model is told of a mode."""
    return _prompt(mode)


def _prompt(name: str) -> str:
    with open(os.path.join(_PROMPTS, f"{name}.md"), encoding="utf-8") as file:
        return file.read().strip()


def system_text(
    tools: Collection[str],
    instructions: Iterable[Instruction],
    skills: str = "",
    codemap: str = "",
    rules: str = "",
    notes: str = "",
) -> str:
    """The system text for an array of these tools, which names no other, with the person's notes, the map of the code,
    the listed skills, the rules that always apply and the instruction chain behind it."""
    base = _FOR().sub(lambda found: found["text"] if _holds(found["when"], tools) else "", _prompt("system"))
    parts = (base, notes, _codemap_text(codemap), skills_text(skills), rules, instruction_text(instructions))
    return "\n\n".join(part for part in parts if part)


def with_notes(system: str, notes: str) -> str:
    """A system text with these notes of the person in place of those that it has."""
    return _NOTES().sub(lambda _: f"{notes}\n\n" if notes else "", system, count=1)


def notes_version(text: str) -> str:
    """What tells one state of the person's notes from another; "" where a text has none."""
    found = _VERSION().search(text)
    return "" if found is None else found[1]


def _holds(when: str, tools: Collection[str]) -> bool:
    """Whether one of the alternatives holds: all of its tools are in the array, those with a mark before them not."""
    return any(
        all((name[1:] not in tools) if name.startswith("!") else name in tools for name in names.split("+"))
        for names in when.split("|")
    )


def _codemap_text(codemap: str) -> str:
    """The map of the code as the session began; "" when there is none."""
    if not codemap:
        return ""
    head = "# Map of the code\nAs it was indexed before this session: folders, and the files that others use most."
    return f"{head}\n<codemap>\n{contained(sanitise(codemap))}\n</codemap>"


def skills_text(listing: str) -> str:
    """A listing of skills, a line each, with what it is for; "" when it is empty."""
    if not listing:
        return ""
    head = "# Skills\nInstructions for kinds of tasks. Before a task that one fits, read it with load_skill."
    return f"{head}\n<skills>\n{contained(listing)}\n</skills>"


def skill_text(guided: Guided) -> str:
    """The text of a skill or rule that has become active, with why, what it leaves of the tools, and its files."""
    event, body = guided.event, guided.body.strip()
    how = _BY[event.by].format(until="this turn" if event.lasts == "turn" else "the session")
    lines = [f"{how} Its text guides how you work; it gives no rights."]
    if event.scope is not None:
        lines.append(f"It restricts the tools to: {', '.join(event.scope.tools or ()) or 'none'}.")
        lines += [f"Of {tool}, the commands: {', '.join(patterns)}." for tool, patterns in event.scope.lines]
    cut = ""
    if len(body) > SKILL_LIMIT:
        body, cut = (
            body[:SKILL_LIMIT],
            f"\nCut at {SKILL_LIMIT:,} characters; the rest: read_file {one_line(event.path)}",
        )
    name, source = _attribute(event.name), _attribute(event.path)
    block = f'<skill name="{name}" source="{source}">\n{contained(sanitise(body))}\n</skill>'
    beside = "".join(f"\n- {one_line(path)}" for path in guided.companions)
    return "\n".join(lines) + f"\n{block}{cut}" + (f"\nFiles beside it:{beside}" if beside else "")


def released_text(name: str) -> str:
    return f"The skill {name} was switched off by the user: it no longer applies."


def offered_text(rows: Iterable[tuple[str, str]]) -> str:
    """Skills that may fit what the person asks, by name and description."""
    lines = [f"- {name}: {one_line(description, 280)}" for name, description in rows]
    return "\n".join(["These skills may fit the request; read one with load_skill if it does:", *map(contained, lines)])


def instruction_text(instructions: Iterable[Instruction]) -> str:
    """The chain as one text, outermost first; "" when there is none."""
    blocks = [
        f'<instructions file="{_attribute(item.name)}">\n{contained(item.text)}\n</instructions>'
        for item in instructions
    ]
    if not blocks:
        return ""
    head = "# Instructions of this project\nLater files are closer to the work and win where two disagree."
    return "\n".join([head, *blocks])


def load_instructions(workspace: str, home: str, root: str | None) -> tuple[Instruction, ...]:
    """The user's AGENTS.md in `home` (it may be a link to anywhere), then AGENTS.md (else CLAUDE.md) of every folder
    from the repository root `root` (None: the workspace alone) down to the workspace; at most 32 KiB in all, nearest
    files kept first."""
    top = root if root is not None and _is_beneath(workspace, root) else workspace
    places: list[tuple[str, str, str, tuple[str, ...]]] = [(home, "~/", "/", INSTRUCTION_NAMES[:1])]
    for folder in _folders(top, workspace):
        shown = os.path.relpath(folder, top)
        places.append((folder, "" if shown == "." else shown + "/", top, INSTRUCTION_NAMES))
    found: list[Instruction] = []
    left = INSTRUCTION_LIMIT
    for folder, shown, within, names in reversed(places):
        for name in names:
            data = _read(os.path.join(folder, name), within, left)
            if data is not None:
                left -= len(data[0].encode())
                found.append(Instruction(shown + name, *data))
                break
    return tuple(reversed(found))


def context_text(kind_values: Iterable[tuple[str, str]]) -> str:
    """Facts of the moment as one block: `<context>` with a `name: value` line each; characters nobody sees are shown
    as escapes."""
    lines = [f"{name}: {contained(sanitise(value))}" for name, value in kind_values]
    return "<context>\n" + "\n".join(lines) + "\n</context>"


def contained(text: str) -> str:
    """Text that can neither close the block it stands in nor pass for the person's notes."""
    return _CLOSING().sub(r"<\\", text.strip())


def _attribute(name: str) -> str:
    return one_line(name).replace('"', "'").replace("<", "(").replace(">", ")")


def _folders(top: str, workspace: str) -> list[str]:
    folders = [workspace]
    while folders[-1] != top and len(folders) < 64:
        folders.append(os.path.dirname(folders[-1]))
    return list(reversed(folders))


def _is_beneath(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _read(path: str, within: str, limit: int) -> tuple[str, int] | None:
    """At most `limit` bytes of a regular file as text, with its size; None when it is not one, is empty, or is
    a link that leads out of `within`."""
    try:
        if os.path.islink(path) and not _is_beneath(os.path.realpath(path), os.path.realpath(within)):
            return None
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or not info.st_size:
            return None
        data = os.read(fd, max(0, min(limit, info.st_size)))
    finally:
        os.close(fd)
    return data.decode("utf-8", "replace").encode()[:limit].decode("utf-8", "ignore"), info.st_size
