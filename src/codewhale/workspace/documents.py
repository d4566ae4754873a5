"""Files that are read but are not text: PDF to text in a process of its own, and what an image is by its header."""

import re
import struct
import unicodedata

import msgspec
from msgspec import Struct

from codewhale.process.command import Completed
from codewhale.process.isolated import MEMORY, NO_MEMORY, SECONDS, IsolatedWork
from codewhale.process.programs import find_program, not_installed
from codewhale.protocol.errors import ErrorKind, NextCall, ToolError

TEXT_LIMIT = 128 * 1024
_MODULE = "codewhale.workspace.pdfpages"
_NO_MODULE = 3
_MOST_SEGMENTS = 1000  # of a JPEG in front of its size
_BLANKS = re.compile(r"[ \t]+(?=\n|$)")
_MANY_BLANK = re.compile(r"\n{3,}")
_JPEG_SIZES = frozenset({*range(0xC0, 0xC4), *range(0xC5, 0xC8), *range(0xC9, 0xCC), *range(0xCD, 0xD0)})


class PdfText(Struct, frozen=True):
    """Pages `first` on of a document of `total` pages (0: not known), one text each."""

    first: int
    total: int
    pages: tuple[str, ...]


class _Extracted(Struct):
    total: int
    pages: list[str]


class ImageFacts(Struct, frozen=True):
    """What an image's header says; sizes are pixels, 0 when it does not say."""

    media_type: str
    width: int = 0
    height: int = 0


async def pdf_text(path: str, data: bytes, first: int, last: int, workspace: str = "") -> PdfText:
    """The text of pages `first` to `last` (0: to the end), cleaned, until 128 KiB are reached. Raises ToolError
    for a document that cannot be read, in time or at all."""
    done = await _run(path, IsolatedWork(_MODULE, data, (str(first), str(last), str(TEXT_LIMIT))))
    if done.exit_code == _NO_MODULE:
        return await by_program(path, data, first, last, workspace)
    if done.exit_code != 0 or done.stdout_gap >= 0:
        raise _unreadable(path, done)
    extracted = msgspec.json.decode(done.stdout, type=_Extracted)
    if first > extracted.total:
        raise _no_page(path, first, extracted.total)
    return PdfText(first, extracted.total, tuple(clean(page) for page in extracted.pages))


async def by_program(path: str, data: bytes, first: int, last: int, workspace: str = "") -> PdfText:
    """The same by pdftotext, which separates pages by form feeds and does not tell how many there are."""
    span = ("-f", str(first), *(("-l", str(last)) if last else ()))
    program = find_program("pdftotext", workspace)
    if program is None:
        raise ToolError(
            "not_available",
            f"{path} is a PDF, but no program to read it is installed: {not_installed('pdftotext')}",
            field="path",
            expected="a text file",
            received="a PDF",
        )
    done = await _run(path, IsolatedWork("", data, (program, "-q", "-enc", "UTF-8", *span, "-", "-")))
    if done.exit_code != 0:
        raise _unreadable(path, done)
    pages = done.stdout.decode("utf-8", "replace")[:TEXT_LIMIT].removesuffix("\f").split("\f")
    return PdfText(first, 0, tuple(clean(page) for page in pages))


async def _run(path: str, work: IsolatedWork) -> Completed:
    done = await work.do()
    if done.timed_out:
        raise _too_much(path, "timeout", f"{SECONDS:.0f} seconds")
    if done.exit_code == NO_MEMORY:
        raise _too_much(path, "execution_failed", f"{MEMORY >> 20} MB of memory")
    return done


def _too_much(path: str, kind: ErrorKind, what: str) -> ToolError:
    return ToolError(
        kind,
        f"{path}: reading the PDF takes more than {what}. Ask for fewer pages",
        field="pages",
        expected="fewer pages",
        received="a document that is hard to read",
    )


def clean(text: str) -> str:
    """Extracted text made readable: one blank line at most, no trailing blanks, plain spaces."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd").replace("\xa0", " ")
    text = "".join(char for char in text if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs"))
    return _MANY_BLANK.sub("\n\n", _BLANKS.sub("", text)).strip("\n")


def _unreadable(path: str, done: Completed) -> ToolError:
    last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
    return ToolError(
        "execution_failed",
        f"{path} is not a PDF that can be read: {last or f'the reader ended with {done.exit_code}'}",
        field="path",
        expected="a PDF with text",
        received=path,
    )


def _no_page(path: str, first: int, total: int) -> ToolError:
    return ToolError(
        "invalid_input",
        f"{path} has {total} pages; page {first} does not exist",
        field="pages",
        expected=f"1 to {total}",
        received=str(first),
        fix=NextCall("read_file", {"path": path, "pages": "1"}),
    )


def image_facts(data: bytes) -> ImageFacts | None:
    """The image that `data` is, or None for what is no PNG, JPEG, GIF or WebP."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return ImageFacts("image/png", *_numbers(">II", data, 16))
    if data.startswith((b"GIF87a", b"GIF89a")):
        return ImageFacts("image/gif", *_numbers("<HH", data, 6))
    if data.startswith(b"\xff\xd8\xff"):
        return ImageFacts("image/jpeg", *_jpeg_size(data))
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return ImageFacts("image/webp", *_webp_size(data))
    return None


def _numbers(form: str, data: bytes, at: int) -> tuple[int, int]:
    if len(data) < at + struct.calcsize(form):
        return 0, 0
    first, second = struct.unpack_from(form, data, at)
    return first, second


def _jpeg_size(data: bytes) -> tuple[int, int]:
    at = 2
    for _ in range(_MOST_SEGMENTS):
        if at + 9 > len(data) or data[at] != 0xFF:
            break
        if data[at + 1] in _JPEG_SIZES:
            height, width = _numbers(">HH", data, at + 5)
            return width, height
        at += 2 + struct.unpack_from(">H", data, at + 2)[0]
    return 0, 0


def _webp_size(data: bytes) -> tuple[int, int]:
    form = data[12:16]
    if form == b"VP8X" and len(data) >= 30:
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if form == b"VP8L" and len(data) >= 25:
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = _numbers("<HH", data, 26)
    return width & 0x3FFF, height & 0x3FFF
