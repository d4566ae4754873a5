"""A patch as data, in no format's words, and the lines of a file that it is applied to."""

from functools import cached_property
from typing import Literal

from msgspec import Struct

Kind = Literal["update", "create", "delete", "copy"]


class PatchLine(Struct, frozen=True):
    """One line of a hunk: `tag` is " ", "-" or "+"; `text` has no newline (a carriage return stays); `ended`
    False says that the file ends there without one."""

    tag: str
    text: str
    ended: bool = True


class Hunk(Struct, frozen=True, dict=True):
    """One place to change.

    `start` is the stated old line from 1, None when the patch gives none; `after` means that lines are inserted
    behind it. `anchors` are lines that stand above, outermost first; `at_end` asks for the end of the file.
    `strict` hunks also say where a final newline is missing. `number` is the hunk's line in the patch.
    """

    lines: tuple[PatchLine, ...]
    start: int | None = None
    after: bool = False
    anchors: tuple[str, ...] = ()
    heading: str = ""
    at_end: bool = False
    strict: bool = True
    recounted: bool = False
    number: int = 0

    @cached_property
    def old(self) -> tuple[PatchLine, ...]:
        """The lines that must be there: context and removals."""
        return tuple(line for line in self.lines if line.tag != "+")

    @cached_property
    def new(self) -> tuple[PatchLine, ...]:
        """The lines that will be there."""
        return tuple(line for line in self.lines if line.tag != "-")

    @cached_property
    def leading(self) -> int:
        return next((i for i, line in enumerate(self.lines) if line.tag != " "), len(self.lines))

    @cached_property
    def trailing(self) -> int:
        return next((i for i, line in enumerate(reversed(self.lines)) if line.tag != " "), len(self.lines))

    def cut(self, head: int, tail: int) -> "Hunk":
        """The hunk without its first `head` and last `tail` lines, which must be context."""
        return Hunk(
            self.lines[head : len(self.lines) - tail],
            None if self.start is None else self.start + head,
            self.after,
            self.anchors,
            self.heading,
            self.at_end and not tail,
            self.strict,
            self.recounted,
            self.number,
        )


class FilePatch(Struct, frozen=True):
    """What happens to one file.

    `names` are the paths it may be known by, likeliest first; "" when the patch names none. `move_to` renames.
    `replaces` lets a create overwrite; `whole` deletes whatever the content is. `executable` is None to keep.
    `bare` are those names that stand in the header as they are, without a prefix to strip; `note` says how the
    header was understood.
    """

    kind: Kind
    names: tuple[str, ...]
    hunks: tuple[Hunk, ...] = ()
    move_to: str = ""
    replaces: bool = False
    whole: bool = False
    executable: bool | None = None
    bare: tuple[str, ...] = ()
    note: str = ""


class Patch(Struct, frozen=True):
    """Files in the order of the patch; `notes` say what was overlooked in its text."""

    files: tuple[FilePatch, ...]
    notes: tuple[str, ...] = ()


_MARK = "\ufeff"


class FileContent(Struct, frozen=True, dict=True):
    """`lines` have no newline (a carriage return stays); `ended` False says that the last lacks one. `mark` is
    the byte-order mark or "". `encoding` and `errors` are for writing back."""

    lines: tuple[str, ...] = ()
    ended: bool = True
    mark: str = ""
    encoding: str = "utf-8"
    errors: str = "strict"

    @cached_property
    def crlf(self) -> bool:
        return sum(line.endswith("\r") for line in self.lines) * 2 > len(self.lines)

    def encode(self, lines: list[str], ended: bool) -> bytes:
        """Other lines in the form of this file. Raises UnicodeEncodeError for what its encoding cannot say."""
        text = self.mark + "\n".join(lines) + ("\n" if lines and ended else "")
        return text.encode(self.encoding, self.errors)


def file_content(data: bytes, patch_text: str) -> FileContent:
    """Split a file. Bytes that are no UTF-8 are read as Latin-1, or kept as they are where the patch itself
    carries such bytes. The mark is set apart unless the patch speaks of it."""
    encoding, errors = "utf-8", "strict"
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raw = any("\udc80" <= char <= "\udcff" for char in patch_text)
        encoding, errors = ("utf-8", "surrogateescape") if raw else ("latin-1", "strict")
        text = data.decode(encoding, errors)
    mark = _MARK if text.startswith(_MARK) and _MARK not in patch_text[1:] else ""
    lines = text[len(mark) :].split("\n")
    ended = lines[-1] == ""
    if ended:
        lines.pop()
    return FileContent(tuple(lines), ended or not lines, mark, encoding, errors)
