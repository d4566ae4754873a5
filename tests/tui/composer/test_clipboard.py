"""The image of the clipboard, by the program that is there."""

import sys
from pathlib import Path

import pytest

from codewhale.tui.composer.outside import image_of_clipboard, programs
from support.composing import desk
from support.minipng import PNG
from support.tuirecord import screen_text


def put(tmp_path: Path, name: str, body: str) -> dict[str, str]:
    """An environment whose clipboard program does this."""
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!{sys.executable}\nimport sys\n{body}\n")
    program.chmod(0o755)
    return {"PATH": str(folder), "DISPLAY": ":0"}


async def test_what_the_program_prints(tmp_path: Path) -> None:
    environ = put(tmp_path, "xclip", f"sys.stdout.buffer.write({PNG!r})")
    assert await image_of_clipboard(environ) == PNG
    assert await image_of_clipboard(put(tmp_path, "xclip", "sys.exit(1)")) == b""
    assert await image_of_clipboard({"PATH": "/nowhere", "DISPLAY": ":0"}) is None
    assert await image_of_clipboard({"PATH": "/nowhere"}) is None


def test_which_program(tmp_path: Path) -> None:
    assert programs({}, "darwin") == [("pngpaste", "-")]
    both = programs({"WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0"}, "linux")
    assert [argv[0] for argv in both] == ["wl-paste", "xclip"]


async def test_the_key_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    async with desk(tmp_path) as here:
        await here.pilot.press("alt+v")
        await here.until(lambda: "from the clipboard" in screen_text(here.host))
    environ = put(tmp_path, "xclip", f"sys.stdout.buffer.write({PNG!r})")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    async with desk(tmp_path) as here:
        await here.pilot.press("alt+v")
        await here.until(lambda: "image clipboard.png" in screen_text(here.host))
