"""What a paste is: text, an image, or long text."""

import base64
import os
import stat
from pathlib import Path

import pytest

from codewhale.display.attachments import (
    IMAGE_BYTES,
    KEPT_SECONDS,
    TEXT_BYTES,
    AttachmentTooLargeError,
    Folder,
    chip_of_paste,
    image_chip,
    image_kind,
    is_long,
    prune,
    text_chip,
)
from support.minipng import PNG


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A workspace's folder."""
    return Folder(str(tmp_path / "home"), str(tmp_path))


@pytest.mark.parametrize(
    "shape", ["{}", "'{}'", '"{}"', "  {}\n", "file://{url}", "file://localhost{url}", "{escaped}"]
)
def test_a_dropped_image_is_attached(tmp_path: Path, folder: Folder, shape: str) -> None:
    image = tmp_path / "my shot.png"
    image.write_bytes(PNG)
    path = str(image)
    chip = chip_of_paste(shape.format(path, url=path.replace(" ", "%20"), escaped=path.replace(" ", "\\ ")), folder)
    assert chip is not None and (chip.name, chip.media_type, chip.size) == ("my shot.png", "image/png", len(PNG))
    image.unlink()
    assert chip.there and Path(chip.path).read_bytes() == PNG
    assert stat.S_IMODE(os.stat(chip.path).st_mode) == 0o600
    assert chip.attachment().path == chip.path


def test_what_is_no_image_is_text(tmp_path: Path, folder: Folder) -> None:
    (tmp_path / "fake.png").write_text("no picture")
    os.mkfifo(tmp_path / "pipe.png")
    for text in (
        f"{tmp_path}/fake.png",
        f"{tmp_path}/pipe.png",
        f"{tmp_path}",
        "/nowhere.png",
        "relative.png",
        "\0/x",
        "~",
    ):
        assert chip_of_paste(text, folder) is None
    assert chip_of_paste("data:image/png;base64,AAAA", folder) is None
    assert image_chip(b"GIF", "x", folder) is None


def test_a_data_url_is_an_image(folder: Folder) -> None:
    chip = chip_of_paste("data:image/png;base64," + base64.b64encode(PNG).decode(), folder)
    assert chip is not None and Path(chip.path).read_bytes() == PNG


def test_long_text_is_attached(folder: Folder) -> None:
    assert not is_long("x" * 2_000) and is_long("x" * 2_001)
    assert not is_long("x\n" * 19) and is_long("x\n" * 20)
    chip = chip_of_paste("line\n" * 25, folder)
    assert chip is not None and (chip.lines, chip.media_type, chip.size) == (25, "text/plain", 125)
    assert text_chip("line\n" * 25, folder).path == chip.path


def test_there_is_a_most(tmp_path: Path, folder: Folder) -> None:
    with pytest.raises(AttachmentTooLargeError):
        text_chip("x" * (TEXT_BYTES + 1), folder)
    large = tmp_path / "large.png"
    with large.open("wb") as file:
        file.write(PNG)
        file.truncate(IMAGE_BYTES + 1)
    with pytest.raises(AttachmentTooLargeError):
        chip_of_paste(str(large), folder)


def test_kinds_are_told_by_the_bytes() -> None:
    starts = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a", b"RIFF0000WEBPVP8 ", b"<svg")
    assert [(image_kind(start) or ("",))[0] for start in starts] == [
        "image/png",
        "image/jpeg",
        "image/gif",
        "image/webp",
        "",
    ]


def test_what_nothing_names_goes_after_its_time(folder: Folder) -> None:
    kept, lost, new = (text_chip(name, folder) for name in ("kept", "lost", "new"))
    for chip in (kept, lost):
        os.utime(chip.path, (1, 1))
    assert prune(folder, {kept.path}) == 1
    assert (kept.there, lost.there, new.there) == (True, False, True)
    assert prune(folder, set(), now=os.stat(new.path).st_mtime + KEPT_SECONDS + 1) == 2
