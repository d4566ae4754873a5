"""`make captures`: write the captures of the terminal interface in docs/captures again, and say which have changed.

With --check nothing is written; names of scenes limit it to those."""

import asyncio
import itertools
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from support.tuicapture import FOLDER, capture, names  # noqa: E402
from support.tuiscenes import SCENES, SIZES, THEMES  # noqa: E402


async def main() -> int:
    """Capture every scene, or those that are named."""
    check = "--check" in sys.argv
    wanted = set(sys.argv[1:]) - {"--check"}
    FOLDER.mkdir(exist_ok=True)
    changed = 0
    for scene, size, theme in itertools.product(SCENES, SIZES, THEMES):
        if not wanted or scene.name in wanted:
            drawn = await capture(scene, size, theme)
            changed += sum(keep(path, text, check) for path, text in zip(names(scene, size, theme), drawn, strict=True))
    print(f"captures: {changed} changed")
    return int(check and changed > 0)


def keep(path: Path, text: str, check: bool) -> bool:
    """Write a capture, or with `check` only look; whether it is another one."""
    if path.exists() and path.read_text() == text:
        return False
    if not check:
        path.write_text(text)
    print(f"{'differs' if check else 'written'}: {path.relative_to(ROOT)}", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
