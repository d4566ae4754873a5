"""Text taken out of bytes and put back."""

import random

import pytest

from codewhale.lib.textform import decode, line_end, looks_binary, with_line_end


@pytest.mark.parametrize(
    ("data", "encoding"),
    [(b"a\n", "utf-8"), (b"\xef\xbb\xbfa", "utf-8"), ("ü".encode(), "utf-8"), (b"\xfc", "latin-1"), (b"", "utf-8"),
     ("ü".encode("utf-16"), "utf-16-le"), (b"\xfe\xff\0a", "utf-16-be"), (b"\xed\xa0\x80", "latin-1"),
     (b"a\0", "utf-8")],
)  # fmt: skip
def test_encodings(data: bytes, encoding: str) -> None:
    form = decode(data)
    assert form is not None and form.encoding == encoding and form.encode(form.text) == data


def test_any_bytes_come_back_or_are_no_text() -> None:
    rng = random.Random(5)
    texts = 0
    for _ in range(2000):
        data = bytes(rng.choice(b"ab \n\r\xe9\xc3\xa9\xff\xfe\xef\xbb\xbf\0") for _ in range(rng.randint(0, 40)))
        form = decode(data)
        if form is not None:
            texts += 1
            assert form.encode(form.text) == data
    assert texts > 500


def test_binary() -> None:
    assert looks_binary(bytes(range(256)) * 8) and looks_binary(b"\x7fELF" + bytes(60)) and looks_binary(b"\xff\xfe\0")
    assert not looks_binary(b"text with \x1b[31mcolour\x1b[0m\n" * 50) and not looks_binary(b"")
    assert decode(bytes(100)) is None


def test_line_ends() -> None:
    assert [line_end(text) for text in ("", "a", "a\n", "a\r\n", "a\r\nb\nc\n", "a\r\nb\r\nc\n")] == [
        "\n", "\n", "\n", "\r\n", "\n", "\r\n",
    ]  # fmt: skip
    assert with_line_end("a\nb\r\nc", "\r\n") == "a\r\nb\r\nc" and with_line_end("a\r\nb\r", "\n") == "a\nb\r"
