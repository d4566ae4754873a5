"""A fact as a patch of one line for the nearest instruction file, which a person applies: nothing is written here."""

import os
import re
from collections.abc import Callable

from msgspec import Struct

from codewhale.lib.bounded import read_regular
from codewhale.lib.text import one_line, told_line
from codewhale.memory.layers import MemoryRefused
from codewhale.memory.lines import LONGEST_FACT
from codewhale.memory.model import Fact
from codewhale.process.repository import find_root
from codewhale.protocol.marks import Fences

INSTRUCTION_NAMES = ("AGENTS.md", "CLAUDE.md")
LIMIT = 32 << 10  # sessions read no more of instruction files
_CONTEXT = 3
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.*)")
_NOTES = re.compile(r"(?i)(?:\w+ )?(?:notes?|memory|facts|笔记|备注|记忆)\s*#*\s*$")
_NO_NEWLINE = "\\ No newline at end of file\n"


class Promotion(Struct, frozen=True):
    """A patch for the file at `path`, which is relative to `root`; `source` says where its fact came from."""

    root: str
    path: str
    diff: str
    source: str


def promote(fact: Fact, workspace: str, hide: Callable[[str], str] = str) -> Promotion:
    """A patch that `git apply` and `patch -p1` take in the root of the repository (of the workspace, outside of one).
    Raises MemoryRefused, also for a text that `hide` finds a secret in."""
    if hide(fact.text) != fact.text:
        raise MemoryRefused(f"The fact {one_line(fact.id)} holds a secret, which no repository should hold.")
    workspace = os.path.realpath(workspace)
    root = os.path.realpath(find_root(workspace) or workspace)
    text = one_line(fact.text, LONGEST_FACT)
    path, data = _nearest(workspace, root)
    shown = told_line(path)
    try:
        lines = re.findall(r"[^\n]*\n|[^\n]+", (data or b"").decode())
    except UnicodeDecodeError:
        raise MemoryRefused(f"{shown} is not UTF-8, so no patch fits it. Add the line yourself: - {text}") from None
    if len(data or b"") + len(text.encode()) + 3 > LIMIT:
        raise MemoryRefused(f"{shown} would pass {LIMIT >> 10} KiB, more than sessions read. Shorten it first.")
    for number, line in enumerate(lines, 1):
        if line.strip().lstrip("-*+ ").casefold() == text.casefold():
            raise MemoryRefused(f"{shown} has this in line {number} already.")
    head = f"--- {_named('a/', path)}\n+++ {_named('b/', path)}\n"
    if data is None:
        head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
    return Promotion(root, path, head + _hunk(lines, _place(lines), f"- {text}"), _source(fact))


def answer(made: Promotion) -> tuple[str, ...]:
    """What is said beside the patch."""
    return (
        f"A patch of one line for {told_line(made.path)}, from {made.source}.",
        f"Nothing was written. Apply it in {told_line(made.root)}: git apply FILE, or patch -p1 < FILE.",
    )


def _source(fact: Fact) -> str:
    words = [f"the fact {one_line(fact.id)}", one_line(fact.created), one_line(fact.source) or "your own words"]
    return ", ".join(word for word in words if word) + (" (foreign text: check it first)" if fact.tainted else "")


def _nearest(workspace: str, root: str) -> tuple[str, bytes | None]:
    """The file that sessions take nearest to the workspace, with its bytes; None for one that is to be made."""
    folder = workspace
    while True:
        for name in INSTRUCTION_NAMES:
            path = os.path.realpath(os.path.join(folder, name))
            if path.startswith(root.rstrip("/") + "/") and (data := _read(path)):
                return os.path.relpath(path, root), data
        if folder == root:
            break
        folder = os.path.dirname(folder)
    name = INSTRUCTION_NAMES[0]
    if not os.path.lexists(os.path.join(root, name)):
        return name, None
    if os.path.islink(os.path.join(root, name)) or _read(os.path.join(root, name)) is None:
        raise MemoryRefused(f"{name} in {told_line(root)} is no file of text inside of it. Move it away first.")
    return name, b""


def _read(path: str) -> bytes | None:
    """The bytes of a regular file; None where there is none. Raises MemoryRefused for one that is too large."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
        size = os.fstat(fd).st_size
    except OSError:
        return None
    data = read_regular(fd, LIMIT)
    if data is None and os.path.isfile(path) and size > LIMIT:
        raise MemoryRefused(f"{told_line(path)} is larger than {LIMIT >> 10} KiB, more than sessions read.")
    return data


def _place(lines: list[str]) -> int:
    """Where the line goes: behind the last text below a heading such as Notes, else behind the last of the file."""
    start, end, fences = 0, len(lines), Fences()
    for at, line in enumerate(lines):
        fences.pass_line(line.rstrip())
        heading = None if fences.inside else _HEADING.match(line.rstrip())
        if heading and start:
            end = at
            break
        if heading and _NOTES.match(heading[1]):
            start = at + 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    return end


def _hunk(lines: list[str], at: int, added: str) -> str:
    end = "\r\n" if lines and lines[max(0, min(at, len(lines) - 1) - 1)].endswith("\r\n") else "\n"
    before, after = lines[max(0, at - _CONTEXT) : at], lines[at : at + _CONTEXT]
    body = [_marked(" ", line) for line in before]
    if before and not before[-1].endswith("\n"):
        body[-1] = _marked("-", before[-1]) + f"+{before[-1]}{end}"
    body += [f"+{added}{end}", *(_marked(" ", line) for line in after)]
    old, new = len(before) + len(after), len(before) + len(after) + 1
    first = at - len(before) + (1 if old else 0)
    return f"@@ -{first},{old} +{at - len(before) + 1},{new} @@\n" + "".join(body)


def _marked(mark: str, line: str) -> str:
    return mark + line if line.endswith("\n") else f"{mark}{line}\n{_NO_NEWLINE}"


def _named(side: str, path: str) -> str:
    """The name of a file as the head of a patch has it: quoted where it must be, with a tab behind one with spaces."""
    if path.isprintable() and not re.search(r'["\\]', path):
        return f"{side}{path}" + "\t" * (" " in path)
    safe = (chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}" for byte in os.fsencode(path))
    return f'"{side}{"".join(safe)}"'
