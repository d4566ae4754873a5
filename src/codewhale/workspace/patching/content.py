"""A file's lines while a patch is worked out, and their way back to bytes."""

from functools import cached_property

from msgspec import Struct

_MARK = "\ufeff"


class Content(Struct, frozen=True, dict=True):
    """`lines` have no newline (a carriage return stays); `ended` False says that the last lacks one. `mark` is
    the byte-order mark or "". `encoding` and `errors` are for writing back."""

    lines: tuple[str, ...] = ()
    ended: bool = True
    mark: str = ""
    encoding: str = "utf-8"
    errors: str = "strict"

    @cached_property
    def crlf(self) -> bool:
        """Whether most lines end in a carriage return."""
        return sum(line.endswith("\r") for line in self.lines) * 2 > len(self.lines)

    def encode(self, lines: list[str], ended: bool) -> bytes:
        """Other lines in the form of this file. Raises UnicodeEncodeError for what its encoding cannot say."""
        text = self.mark + "\n".join(lines) + ("\n" if lines and ended else "")
        return text.encode(self.encoding, self.errors)


def content_of(data: bytes, patch_text: str) -> Content:
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
    return Content(tuple(lines), ended or not lines, mark, encoding, errors)
