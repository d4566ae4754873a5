"""The image of the clipboard, read by the program that this desktop has for it: terminals give text alone."""

import os
import sys
from collections.abc import Mapping

from codewhale.display.drafts.attachments import IMAGE_BYTES
from codewhale.process import launch
from codewhale.process.command import Launch
from codewhale.process.programs import find_program, here

SECONDS = 5.0
_PASSED = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")


def programs(environ: Mapping[str, str], platform: str = sys.platform) -> list[tuple[str, ...]]:
    """The commands that may print a PNG, best first."""
    if platform == "darwin":
        return [("pngpaste", "-")]
    found: list[tuple[str, ...]] = []
    if environ.get("WAYLAND_DISPLAY"):
        found.append(("wl-paste", "--no-newline", "--type", "image/png"))
    if environ.get("DISPLAY"):
        found.append(("xclip", "-selection", "clipboard", "-target", "image/png", "-out"))
    return found


async def image_of_clipboard(environ: Mapping[str, str] | None = None) -> bytes | None:
    """The bytes of the image, b"" when there is none; None when no program here can tell."""
    own = os.environ if environ is None else environ
    passed = {name: own[name] for name in _PASSED if name in own}
    found: bytes | None = None
    for name, *rest in programs(own):
        program = find_program(name, here(), own.get("PATH", os.defpath))
        if program is None:
            continue
        order = Launch(
            argv=(program, *rest),
            cwd="/",
            profile="none",  # it speaks to the desktop
            env=passed,
            seconds=SECONDS,
            supervised=False,
            own=True,
            output_limit=2 * IMAGE_BYTES,
        )
        try:
            done = await launch.run(order)
        except OSError:
            continue
        found = b""
        if done.exit_code == 0 and done.stdout and done.stdout_gap < 0:
            return done.stdout
    return found
