"""`make contact-sheets`: draw every screen at four widths in both languages, and put them on one sheet a theme in
docs/captures. Needs Pillow and a font with Chinese (pip install pillow; apt install fonts-wqy-microhei).

Names of looks (dark, light, contrast, none) limit it to those; --one SCREEN draws that screen in full size instead.
"""

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.style import Style
from textual.strip import Strip

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from codewhale.display.palette import load_palette  # noqa: E402
from support.tuicapture import FOLDER  # noqa: E402
from support.tuisheets import LOOKS, SCREENS, WIDTHS, shown, strips  # noqa: E402

FONTS = Path("/usr/share/fonts/truetype")
LATIN, BOLD, WIDE = (
    FONTS / "dejavu" / "DejaVuSansMono.ttf", FONTS / "dejavu" / "DejaVuSansMono-Bold.ttf",
    FONTS / "wqy" / "wqy-microhei.ttc",
)  # fmt: skip
CELL = (7, 14)
SMALL = 2  # a sheet shows them at one of so many
GAP = 6
COLOURS = 32
# What stands in a row of a sheet: a width with its language.
COLUMNS = (*((size, "en") for size in WIDTHS), (WIDTHS[0], "zh-Hans"), (WIDTHS[1], "zh-Hans"))


class Painter:
    """Draws strips as a terminal would, in the colours of a look."""

    def __init__(self, look: str) -> None:
        from PIL import ImageFont

        palette = load_palette("dark" if look == "none" else look, "")
        self.text, self.ground = ("#d7dae0", "#14161b") if look == "none" else (palette.text, palette.background)
        self.latin, self.bold = (ImageFont.truetype(str(path), 11) for path in (LATIN, BOLD))
        self.wide = ImageFont.truetype(str(WIDE), 13)

    def image(self, lines: list[Strip]) -> Any:
        """A picture of lines."""
        from PIL import Image, ImageDraw

        wide, high = CELL
        picture = Image.new("RGB", (lines[0].cell_length * wide, len(lines) * high), self.ground)
        drawing = ImageDraw.Draw(picture)
        for row, line in enumerate(lines):
            column = 0
            for text, style, _ in line:
                for char in text:
                    taken = cell_len(char)
                    self.cell(drawing, (column * wide, row * high), char, taken, style or Style())
                    column += taken
        return picture

    def cell(self, drawing: Any, at: tuple[int, int], char: str, taken: int, style: Style) -> None:
        """A character on its ground."""
        ink, ground = style.color, style.bgcolor
        text = ink.get_truecolor().hex if ink is not None and not ink.is_default else self.text
        back = ground.get_truecolor().hex if ground is not None and not ground.is_default else self.ground
        if style.reverse:
            text, back = back, text
        (x, y), (wide, high) = at, CELL
        drawing.rectangle((x, y, x + wide * taken - 1, y + high - 1), fill=back)
        if char.strip():
            font = self.wide if taken > 1 else self.bold if style.bold else self.latin
            drawing.text((x, y), char, fill=text, font=font)


async def sheet(look: str) -> Path:
    """All screens in one look."""
    from PIL import Image

    painter, rows = Painter(look), []
    for scene in SCREENS:
        pictures = []
        for size, language in COLUMNS:
            async with shown(scene, size, look, language) as stage:
                whole = painter.image(strips(stage))
            pictures.append(whole.resize((whole.width // SMALL, whole.height // SMALL), Image.Resampling.LANCZOS))
        rows.append(pictures)
        print(f"{look}: {scene.name}", flush=True)
    heights = [max(picture.height for picture in row) + GAP for row in rows]
    width = sum(picture.width + GAP for picture in rows[0])
    picture = Image.new("RGB", (width, sum(heights)), "#808080")
    for row, top in zip(rows, (sum(heights[:at]) for at in range(len(rows))), strict=True):
        left = 0
        for one in row:
            picture.paste(one, (left, top))
            left += one.width + GAP
    path = FOLDER / f"sheet-{look}.webp"
    picture.quantize(COLOURS, dither=Image.Dither.NONE).convert("RGB").save(path, lossless=True, method=6)
    return path


async def main() -> int:
    """Draw the sheets, or one screen."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("looks", nargs="*", choices=[[], *LOOKS], help="(all)")
    parser.add_argument("--one", help="a screen to draw in full size, into .scratch/screens")
    options = parser.parse_args()
    for look in options.looks or LOOKS:
        if not options.one:
            path = await sheet(look)
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")
            continue
        folder = ROOT / ".scratch" / "screens"
        folder.mkdir(parents=True, exist_ok=True)
        (scene,) = (scene for scene in SCREENS if scene.name == options.one)
        for size, language in COLUMNS:
            async with shown(scene, size, look, language) as stage:
                Painter(look).image(strips(stage)).save(folder / f"{scene.name}-{size[0]}-{look}-{language}.png")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
