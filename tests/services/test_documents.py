"""Images known by their header, and extracted text made readable. PDFs are read in the file tools' tests."""

import shutil
import struct

import pytest

from codewhale.protocol.errors import ToolError
from codewhale.services.documents import ImageFacts, by_program, clean, image_facts
from support.minipdf import pdf

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
    assert caught.value.fix is not None
