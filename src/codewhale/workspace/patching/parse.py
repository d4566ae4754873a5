"""Patch text to Patch, the format told by its first line."""

from codewhale.workspace.patching import envelope, unified
from codewhale.workspace.patching.model import FilePatch, Patch
from codewhale.workspace.patching.refusal import malformed

_WANTED = "a unified diff with @@ hunks, or *** Begin Patch ... *** End Patch"


def parse(text: str) -> Patch:
    """Read a patch. Raises ToolError invalid_input naming the line at fault, that nothing is changed, or that the
    patch was cut off."""
    lines, fenced, notes = _lines(text)
    if not lines:
        raise malformed("the patch is empty", _WANTED, "")
    files: list[FilePatch]
    begin = _envelope_begin(lines)
    if begin is not None:
        files, notes = envelope.Reader(lines, begin).files(), ()
    elif lines[0].startswith("*** "):
        raise malformed("this patch format is not known", _WANTED, lines[0])
    else:
        files = unified.Reader(lines, fenced).files()
    if not files or not any(_changes(file) for file in files):
        raise malformed("the patch has no hunks", _WANTED, lines[0])
    return Patch(tuple(file for file in files if _changes(file)), notes)


def _envelope_begin(lines: list[str]) -> int | None:
    """The line at which a `*** Begin Patch` patch begins, None for a diff. Prose may stand above it."""
    if lines[0].strip().startswith(envelope.OPENERS):
        return 0
    for number, line in enumerate(lines):
        if line.startswith(("--- ", "diff --git ", "@@")):
            return None
        if line.strip() == envelope.OPENERS[0]:
            return number
    return None


def _changes(file: FilePatch) -> bool:
    return bool(file.hunks or file.move_to or file.kind != "update" or file.executable is not None)


def _lines(text: str) -> tuple[list[str], bool, tuple[str, ...]]:
    """The lines of a patch without a Markdown fence around it, whether a closing fence stood there, and notes: a
    patch whose every line ends in a carriage return was converted as a whole, so those go."""
    lines = text.removeprefix("\ufeff").split("\n")
    notes: list[str] = []
    if lines[-1] == "":
        lines.pop()
    else:
        notes.append("the patch's last line lacks a newline")
    while lines and not lines[0].strip():
        del lines[0]
    fenced = False
    if lines and lines[0].startswith("```"):
        del lines[0]
        while lines and not lines[-1].strip():
            lines.pop()
        fenced = bool(lines) and lines[-1].startswith("```")
        if fenced:
            lines.pop()
            notes = []
    if lines and all(line.endswith("\r") for line in lines):
        lines = [line[:-1] for line in lines]
        notes.append("carriage returns removed from the patch")
    return lines, fenced, tuple(notes)
