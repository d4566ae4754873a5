"""Patch text to Patch, the format told by its first line."""

from codewhale.services.patching import envelope, unified
from codewhale.services.patching.model import FilePatch, Patch
from codewhale.services.patching.refusal import malformed

_WANTED = "a unified diff with @@ hunks, or *** Begin Patch ... *** End Patch"


def parse(text: str) -> Patch:
    """Read a patch. Raises ToolError invalid_input naming the line at fault, or that nothing is changed."""
    lines = _lines(text)
    if not lines:
        raise malformed("the patch is empty", _WANTED, "")
    files: list[FilePatch]
    if lines[0].startswith(envelope.OPENERS):
        files = envelope.Reader(lines).files()
    elif lines[0].startswith("*** "):
        raise malformed("this patch format is not known", _WANTED, lines[0])
    else:
        files = unified.Reader(lines).files()
    if not files or not any(_changes(file) for file in files):
        raise malformed("the patch has no hunks", _WANTED, lines[0])
    return Patch(tuple(file for file in files if _changes(file)))


def _changes(file: FilePatch) -> bool:
    return bool(file.hunks or file.move_to or file.kind != "update" or file.executable is not None)


def _lines(text: str) -> list[str]:
    """The lines of a patch, without a Markdown fence around it; a patch whose every line ends in a carriage
    return was converted as a whole, so those go."""
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[-1] == "":
        lines.pop()
    while lines and not lines[0].strip():
        del lines[0]
    if lines and lines[0].startswith("```"):
        del lines[0]
        while lines and not lines[-1].strip():
            lines.pop()
        if lines and lines[-1].startswith("```"):
            lines.pop()
    if lines and all(line.endswith("\r") for line in lines):
        lines = [line[:-1] for line in lines]
    return lines
