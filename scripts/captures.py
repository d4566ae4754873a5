"""`make captures`: write the captures of the terminal interface in docs/captures again, and say which have changed.

With --check nothing is written; names of scenes limit it to those."""

import asyncio
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from support.tuicapture import FOLDER, capture, names  # noqa: E402
from support.tuiscenes import SCENES, SIZES, THEMES  # noqa: E402


async def main() -> int:
    """Capture every scene, or those that are named."""
    wanted = set(sys.argv[1:]) - {"--check"}
    check = "--check" in sys.argv
    FOLDER.mkdir(exist_ok=True)
    changed = 0
    for scene in SCENES:
        if wanted and scene.name not in wanted:
            continue
        for size in SIZES:
            for theme in THEMES:
                for path, text in zip(names(scene, size, theme), await capture(scene, size, theme), strict=True):
                    if not path.exists() or path.read_text() != text:
                        if not check:
                            path.write_text(text)
                        changed += 1
                        print(f"{'differs' if check else 'written'}: {path.relative_to(ROOT)}")
    print(f"captures: {changed} changed")
    return int(check and changed > 0)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
