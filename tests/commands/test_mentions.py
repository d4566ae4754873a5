"""Files that a message names: which go along, which stay a path, which are refused, and what is only words."""

import os
from pathlib import Path

import pytest

from codewhale.commands.mentions import IMAGE_BYTES, MENTIONED_BYTES, MOST, TRIED, mentioned
from support.minipng import PNG


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace with files of every kind."""
    place = tmp_path / "work"
    (place / "src").mkdir(parents=True)
    (place / "src" / "a.py").write_text("a = 1\n")
    (place / "my file.txt").write_text("mine\n")
    (place / "Ünï.md").write_text("ü\n")
    (place / "full.txt").write_bytes(b"x" * MENTIONED_BYTES)
    (place / "large.txt").write_bytes(b"x" * (MENTIONED_BYTES + 1))
    (place / "huge.bin").write_bytes(b"\0" * (IMAGE_BYTES + 1))
    (place / "binary").write_bytes(b"\x7fELF\0\0\1")
    (place / ".env").write_text("KEY=1\n")
    (place / ".env.example").write_text("KEY=\n")
    os.symlink(".env", place / "innocent")
    (tmp_path / "outside.txt").write_text("not yours\n")
    os.symlink("../outside.txt", place / "out")
    os.mkfifo(place / "pipe")
    return place


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("@src/a.py", "src/a.py"),
        ("look at @src/a.py.", "src/a.py"),
        ("(@src/a.py)", "src/a.py"),
        ("is it @src/a.py?", "src/a.py"),
        ('see @"my file.txt", please', "my file.txt"),
        ("one\n@Ünï.md", "Ünï.md"),
        ("@./src/../src/a.py", "src/a.py"),
        ("@full.txt", "full.txt"),
        ("@.env.example", ".env.example"),
    ],
)
def test_a_small_text_goes_along(work: Path, text: str, path: str) -> None:
    [(mention, data)] = mentioned(text, str(work))
    assert (mention.path, mention.attached, mention.refused) == (path, True, "")
    assert data == (work / path).read_bytes() and mention.size == len(data)


@pytest.mark.parametrize(("path", "size"), [("large.txt", MENTIONED_BYTES + 1), ("huge.bin", IMAGE_BYTES + 1)])
def test_a_large_file_stays_a_path(work: Path, path: str, size: int) -> None:
    [(mention, data)] = mentioned(f"@{path}", str(work))
    assert (mention.size, mention.attached, mention.refused, data) == (size, False, "", b"")


@pytest.mark.parametrize(
    ("path", "why"),
    [("binary", "it is binary"), (".env", "passwords or keys"), ("innocent", "passwords or keys")],
)
def test_what_must_not_go_along_says_why(work: Path, path: str, why: str) -> None:
    [(mention, data)] = mentioned(f"@{path}", str(work))
    assert why in mention.refused and not mention.attached and data == b""


@pytest.mark.parametrize(
    "text",
    [
        "mail me@src/a.py", "@property", "@", "@@src/a.py", "@src", "@src/", "@pipe", "@out", "@../outside.txt",
        "@/etc/passwd", "@~/x", "@a\0b", "@" + "x" * 5000, "@\ud800", '@""',
    ],
)  # fmt: skip
def test_what_names_no_file_here_is_only_words(work: Path, text: str) -> None:
    assert mentioned(text, str(work)) == []


def test_each_file_goes_along_once_and_not_too_many(work: Path) -> None:
    assert len(mentioned("@src/a.py and @./src/a.py", str(work))) == 1
    for number in range(MOST + 5):
        (work / f"{number}").write_text("x\n")
    assert len(mentioned(" ".join(f"@{number}" for number in range(MOST + 5)), str(work))) == MOST


def test_no_more_names_are_looked_for_than_a_person_writes(work: Path) -> None:
    many = " ".join(f"@none{number}" for number in range(TRIED))
    assert mentioned(f"{many} @src/a.py", str(work)) == []
    assert len(mentioned(f"{'@none ' * TRIED}@src/a.py", str(work))) == 1


def test_an_image_goes_along_whatever_it_weighs(work: Path) -> None:
    (work / "shot.png").write_bytes(PNG + b"\0" * (2 * MENTIONED_BYTES))
    [(mention, data)] = mentioned("what is on @shot.png", str(work))
    assert mention.attached and data[:4] == b"\x89PNG"
