"""The form of a text file (encoding, byte-order mark, line ends), so that text can be changed and every other
byte stays as it was."""

import codecs
import re

from msgspec import Struct

_BOMS = (("utf-8", codecs.BOM_UTF8), ("utf-16-le", codecs.BOM_UTF16_LE), ("utf-16-be", codecs.BOM_UTF16_BE))
_SAMPLE = 8192
_CONTROL = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")
_FEW_CONTROLS, _MAX_CONTROL_SHARE = 4, 0.05


class TextForm(Struct, frozen=True):
    """A file's text without its mark, and what is needed to write it back: `encoding` is utf-8, utf-16-le,
    utf-16-be or latin-1, `bom` the mark's bytes or none."""

    text: str
    encoding: str = "utf-8"
    bom: bytes = b""

    def encode(self, text: str) -> bytes:
        """The bytes of other text in this form. Raises UnicodeEncodeError for what the encoding cannot say."""
        return self.bom + text.encode(self.encoding)


def decode(data: bytes) -> TextForm | None:
    """The text of `data`, or None for what is no text. Decoding and encoding again gives the same bytes."""
    if looks_binary(data):
        return None
    for encoding, bom in _BOMS:
        if data.startswith(bom):
            try:
                return TextForm(data[len(bom) :].decode(encoding), encoding, bom)
            except UnicodeDecodeError:
                break
    try:
        return TextForm(data.decode("utf-8"))
    except UnicodeDecodeError:
        return None if b"\0" in data else TextForm(data.decode("latin-1"), "latin-1")


def looks_binary(data: bytes) -> bool:
    """Whether the first 8 KiB hold more control bytes than text does; marked UTF-16 is text."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return len(data) % 2 == 1
    sample = data[:_SAMPLE]
    return len(_CONTROL.findall(sample)) > _FEW_CONTROLS + len(sample) * _MAX_CONTROL_SHARE


def line_end(text: str) -> str:
    """The line end that most lines have, "\\n" for text without one."""
    crlf = text.count("\r\n")
    return "\r\n" if crlf * 2 > text.count("\n") else "\n"


def with_line_end(text: str, end: str) -> str:
    """Text with every line end replaced by `end`."""
    flat = text.replace("\r\n", "\n")
    return flat if end == "\n" else flat.replace("\n", end)
