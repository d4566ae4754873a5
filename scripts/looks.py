"""`make looks`: the terminal interface as a person meets it: ten scenes of the real program in tmux, with a scripted
model on this machine, at three sizes, dark and light. Each ends as a picture in ANSI colours in .scratch/looks (look at
one with `less -R`), and the words it must show are waited for. Exit 1 when a scene never came to show them.

python scripts/looks.py [SCENE]... [--sizes 80x24,120x40,200x60] [--themes dark,light] [--out DIR]
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from policy_server import Policy, PolicyServer, Turn  # noqa: E402
from tmux_pane import Pane  # noqa: E402

from codewhale.lib.clock import SystemClock  # noqa: E402
from codewhale.protocol.events import SessionOpened, is_durable  # noqa: E402
from codewhale.protocol.modes import Mode  # noqa: E402
from codewhale.session.store import SessionStore  # noqa: E402
from support.terminal import environment  # noqa: E402
from support.tuiscenes import CHILDREN  # noqa: E402

CODEWHALE = str(Path(sys.executable).parent / "codewhale")
BASKET = """def total(prices: list[int], discount: int = 0) -> int:
    \"\"\"Sum of the prices less a discount in percent.\"\"\"
    full = sum(prices)
    return (full * (100 + discount) + 50) // 100
"""
TEST = """from basket import total


def test_discount() -> None:
    assert total([1000], 20) == 800
"""
SHOP = "".join(
    f"def price_{at}(cents: int, discount: int) -> int:\n    return cents * (100 + discount) // 100\n\n\n"
    for at in range(60)
)


def fix() -> Policy:
    """Look, edit, run the tests, tell."""
    yield Turn("I look at what the function does.", (("read_file", {"path": "basket.py"}),))
    edit = {"path": "basket.py", "search": "100 + discount", "replace": "100 - discount"}
    yield Turn("The sign is wrong.", (("edit_file", edit),))
    run = {"command": "python3 -c 'from test_basket import test_discount as t; t(); print(\"1 passed\")'"}
    yield Turn("", (("exec_shell", run),))
    yield Turn("**Done**: the discount is taken *off* now.\n\n```python\nassert total([1000], 20) == 800\n```\n")


def push() -> Policy:
    """Ask for what a person must allow."""
    yield Turn("It is fixed. I push it.", (("exec_shell", {"command": "git push origin main"}),))
    yield Turn("Then it stays here.")


def ask() -> Policy:
    """Put a question."""
    options = [
        {"label": "Half up", "description": "as the invoices do today"},
        {"label": "Half to even", "description": "as banks do"},
    ]
    asked = {"id": "way", "header": "Rounding", "question": "How should half a cent be rounded?", "options": options}
    yield Turn("Two ways are open.", (("request_user_input", {"questions": [asked]}),))
    yield Turn("Half up it is.")


def rewrite() -> Policy:
    """Change sixty functions at once."""
    yield Turn("", (("read_file", {"path": "shop.py"}),))
    new = SHOP.replace("100 + discount", "100 - discount")
    yield Turn("The same mistake is in every price.", (("write_file", {"path": "shop.py", "content": new}),))
    yield Turn("All sixty take the discount off now.")


def start() -> Policy:
    """Leave two commands running."""
    for command in ("sleep 300", "sh -c 'echo ready on port 5173; sleep 300'"):
        yield Turn("", (("exec_shell", {"command": command, "background": True}),))
    yield Turn("Both run.")


class Scene(NamedTuple):
    """What the model plays, what the person does until the scene stands, and the words that it shows then."""

    name: str
    shows: str
    play: Callable[[], Policy] = fix
    acts: Callable[[Pane], None] = lambda pane: None
    words: tuple[str, ...] = ()
    ready: str = "here/m"


def says(text: str, *then: tuple[str, tuple[str, ...]]) -> Callable[[Pane], None]:
    """Send a message; then, each time words are seen, press keys."""

    def acts(pane: Pane) -> None:
        pane.say(text)
        for seen, keys in then:
            pane.sees(seen, rests=True)
            pane.waits()
            pane.press(*keys)

    return acts


def keys(*pressed: str) -> Callable[[Pane], None]:
    """Press keys."""
    return lambda pane: pane.press(*pressed)


ALLOWED = ("Run this command?", ("Enter",))
SCENES = (
    Scene("first-run", "DEEPSEEK_API_KEY", ready="deepseek"),
    Scene("full-turn", "1 passed", acts=says("The discount is wrong. Fix it.", ALLOWED)),
    Scene("approval", "git push origin main", push, says("Push it.")),
    Scene("question", "How should half a cent be rounded?", ask, says("How do we round?")),
    Scene("long-diff", "All sixty", rewrite, says("Every price adds the discount.")),
    Scene("sub-agents", "taxes", words=("--resume",)),
    Scene("error", "Connection refused", acts=says("Is anybody there?"), words=("--provider", "gone"), ready="gone/"),
    Scene("jobs", "sleep 300", start, says("Start both.", ("Both run.", ("M-j",)))),
    Scene("palette", "basket.py", acts=keys("C-k", "b", "a")),
    Scene("session-picker", "The discount is wrong", acts=keys("M-s")),
)


def world(folder: Path, url: str, theme: str, *, known: bool) -> str:
    """A home, `known` with a provider, and a workspace; the id of a session with ten sub-agents."""
    home, work = folder / "home", folder / "work"
    home.mkdir(mode=0o700)
    work.mkdir()
    for name, text in (("basket.py", BASKET), ("test_basket.py", TEST), ("shop.py", SHOP)):
        (work / name).write_text(text)
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "Begin"]):
        who = ["-c", "user.name=A", "-c", "user.email=a@example.invalid"]
        subprocess.run(["git", *who, *words], cwd=work, check=True, env=environment(home))
    provider = f'provider = "here"\nmodel = "m"\n[providers.here]\nbase_url = "{url}"\ncontext_window = 64000\n'
    provider += '[providers.gone]\nbase_url = "http://127.0.0.1:9/v1"\ndefault_model = "m"\ncontext_window = 64000\n'
    (home / "config.toml").write_text((provider if known else "") + f'[tui]\ntheme = "{theme}"\n')
    if not known:
        return ""
    opened = SessionOpened(1, str(work), Mode.AGENT, "here", "m")
    log = SessionStore(str(home), SystemClock()).create(opened)
    log.append([event for event in CHILDREN[1:] if is_durable(event)])
    log.close()
    return log.session


def look(scene: Scene, size: tuple[int, int], theme: str, out: Path) -> bool:
    """One scene at a size in a theme: its picture in `out`; whether it shows what it must."""
    with tempfile.TemporaryDirectory(prefix="codewhale-looks-", ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        with PolicyServer(lambda words: scene.play()) as server:
            session = world(folder, server.base_url, theme, known=scene.name != "first-run")
            environ = environment(folder / "home")
            if scene.name == "session-picker":
                told = [CODEWHALE, "exec", "--auto", "The discount is wrong. Fix it."]
                subprocess.run(told, cwd=folder / "work", env=environ, check=False, capture_output=True, timeout=60)
            words = [*scene.words, session] if "--resume" in scene.words else list(scene.words)
            pane = Pane(folder, size, environ, [CODEWHALE, *words])
            try:
                good = pane.sees(scene.ready)
                scene.acts(pane)
                good = pane.sees(scene.shows, rests=True) and good
                picture = pane.picture()
            finally:
                pane.end()
    (out / f"{scene.name}-{size[0]}x{size[1]}-{theme}.ansi").write_text(picture)
    good = good and "Traceback" not in picture
    print(f"  {scene.name} {size[0]}x{size[1]} {theme}{'' if good else ': NOT SHOWN'}", flush=True)
    return good


def main() -> int:
    """Take every picture that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="*", metavar="SCENE")
    parser.add_argument("--sizes", default="80x24,120x40,200x60")
    parser.add_argument("--themes", default="dark,light")
    parser.add_argument("--out", type=Path, default=ROOT / ".scratch" / "looks")
    args = parser.parse_args()
    unknown = set(args.scenes) - {scene.name for scene in SCENES}
    if unknown or shutil.which("tmux") is None:
        known = ", ".join(scene.name for scene in SCENES)
        print(f"no scene {', '.join(sorted(unknown))}; there are {known}" if unknown else "this needs tmux")
        return 2
    args.out.mkdir(parents=True, exist_ok=True)
    sizes = [(int(width), int(height)) for width, _, height in (text.partition("x") for text in args.sizes.split(","))]
    chosen = [scene for scene in SCENES if not args.scenes or scene.name in args.scenes]
    taken = [
        look(scene, size, theme, args.out) for scene in chosen for size in sizes for theme in args.themes.split(",")
    ]
    print(json.dumps({"pictures": len(taken), "shown": sum(taken), "folder": os.path.relpath(args.out)}))
    return int(not all(taken))


if __name__ == "__main__":
    sys.exit(main())
