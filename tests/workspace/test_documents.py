"""Images known by their header, and extracted text made readable. PDFs are read in the file tools' tests."""

import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from codewhale.protocol.errors import ToolError
from codewhale.workspace.documents import ImageFacts, by_program, clean, image_facts, pdf_text
from support.minipdf import pdf
from support.patience import HANG, Moment

JPEG = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x11\x08" + struct.pack(">HH", 30, 40) + bytes(12)


@pytest.mark.parametrize(
    ("data", "facts"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 3, 4), ImageFacts("image/png", 3, 4)),
        (b"\x89PNG\r\n\x1a\n", ImageFacts("image/png")),
        (b"GIF89a" + struct.pack("<HH", 5, 6), ImageFacts("image/gif", 5, 6)),
        (JPEG, ImageFacts("image/jpeg", 40, 30)),
        (JPEG[:9], ImageFacts("image/jpeg")),
        (b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + b"\x09\0\0\x13\0\0", ImageFacts("image/webp", 10, 20)),
        (b"RIFF\0\0\0\0WEBPVP8L" + bytes(5) + struct.pack("<I", 9 | 19 << 14), ImageFacts("image/webp", 10, 20)),
        (b"RIFF\0\0\0\0WEBPVP8 " + bytes(10) + struct.pack("<HH", 10, 20), ImageFacts("image/webp", 10, 20)),
        (b"RIFF\0\0\0\0WAVE", None),
        (b"plain text", None),
        (b"", None),
    ],
)
def test_image_facts(data: bytes, facts: ImageFacts | None) -> None:
    assert image_facts(data) == facts


def test_clean() -> None:
    assert clean("a \r\nb\xa0c\0\n\n\n\nd\x07\t \n") == "a\nb c\ufffd\n\nd"


async def test_without_the_library_pdftotext_is_asked() -> None:
    if shutil.which("pdftotext"):
        found = await by_program("d.pdf", pdf("first page", "second page", "third page"), 2, 0)
        assert (found.first, found.total, found.pages) == (2, 0, ("second page", "third page"))
    with pytest.raises(ToolError) as caught:
        await by_program("d.pdf", b"%PDF-1.4 garbage", 1, 0)
    assert caught.value.kind == ("execution_failed" if shutil.which("pdftotext") else "not_available")


def packed(content: bytes, count: int = 1) -> bytes:
    """A PDF whose one page has this content, compressed, and that says to hold `count` pages."""
    stream = zlib.compress(content, 1)
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count %d>>" % count,
        page,
        b"<</Length %d/Filter/FlateDecode>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    body = b"".join(b"%d 0 obj%s endobj\n" % (number, text) for number, text in enumerate(objects, 1))
    return b"%PDF-1.4\n" + body + b"trailer<</Root 1 0 R/Size 6>>\n%%EOF"


BOMBS = {
    "letters": lambda: packed(b"BT /F1 9 Tf " + b"(a) Tj " * 15_000_000 + b"ET"),
    "saved states": lambda: packed(b"q " * 60_000_000),
}
# A process of its own: a child's peak begins at the size of the process that forked it, and a test worker is large.
READER = """
import asyncio, pathlib, resource, sys
from codewhale.protocol.errors import ToolError
from codewhale.workspace.documents import pdf_text
data = pathlib.Path(sys.argv[1]).read_bytes()
try:
    asyncio.run(pdf_text("bomb.pdf", data, 1, 0))
    print("read", end=" ")
except ToolError as error:
    print(error.kind, end=" ")
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_document_that_unpacks_to_gigabytes_is_given_up(tmp_path: Path, bomb: str) -> None:
    document = tmp_path / "bomb.pdf"
    document.write_bytes(BOMBS[bomb]())
    began = Moment()
    argv = [sys.executable, "-c", READER, str(document)]
    ended = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=HANG)
    outcome, peak = ended.stdout.split()
    assert outcome in ("read", "timeout", "execution_failed")
    assert not began.hung
    assert int(peak) <= 700 << 10


async def test_a_document_that_claims_two_billion_pages_is_done_with() -> None:
    data = packed(b"BT /F1 9 Tf (one) Tj ET", 2_000_000_000)
    began = Moment()
    try:
        await pdf_text("many.pdf", data, 1, 0)
    except ToolError as error:
        assert error.kind in ("timeout", "execution_failed")
    assert not began.hung


def test_a_picture_of_empty_segments_is_done_with() -> None:
    began = Moment()
    assert image_facts(b"\xff\xd8" + b"\xff\xe0\x00\x02" * 4_000_000) == ImageFacts("image/jpeg")
    assert image_facts(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 2**31, 2**31)) is not None
    assert not began.laboured
