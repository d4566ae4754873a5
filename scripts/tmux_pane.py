"""The real program in a tmux of its own, for scripts that look at it or use it as a person does."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

SECONDS = 20.0


class Pane:
    """One program in a tmux of its own."""

    def __init__(self, folder: Path, size: tuple[int, int], environ: dict[str, str], words: list[str]) -> None:
        self._tmux = ["tmux", "-f", "/dev/null", "-S", str(folder / "tmux")]
        self._environ = {**environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        self._run("new-session", "-d", "-x", str(size[0]), "-y", str(size[1]), "-c", str(folder / "work"), *words)
        self._run("set", "-g", "status", "off")
        self._run("set", "-ga", "terminal-overrides", ",*:Tc")

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            [*self._tmux, *words], env=self._environ, stdout=subprocess.PIPE, check=True, timeout=SECONDS, text=True
        )
        return done.stdout

    def picture(self, *, colours: bool = True) -> str:
        """What is on the screen."""
        return self._run("capture-pane", "-p", *(["-e"] if colours else []))

    def sees(self, words: str, *, rests: bool = False) -> bool:
        """Wait until words are there, with `rests` until nothing moves any more."""
        until, last = time.monotonic() + SECONDS, ""
        while time.monotonic() < until:
            text = self.picture(colours=False)
            if words in text and (text == last or not rests):
                return True
            last = text
            time.sleep(0.3 if rests else 0.1)
        return False

    def until(self, condition: Callable[[str], bool], seconds: float = SECONDS) -> str:
        """Wait until the screen's text fulfils a condition; the text. Raises TimeoutError with the last screen."""
        until = time.monotonic() + seconds
        while not condition(text := self.picture(colours=False)):
            if time.monotonic() > until:
                raise TimeoutError(text)
            time.sleep(0.05)
        return text

    def waits(self) -> None:
        """Wait until an answer counts: not before nobody types any more."""
        until = time.monotonic() + SECONDS
        while "stop typing first" in self.picture(colours=False) and time.monotonic() < until:
            time.sleep(0.1)

    def press(self, *keys: str) -> None:
        """Keys by tmux's names."""
        self._run("send-keys", *keys)

    def say(self, text: str) -> None:
        """Type a message and send it."""
        self._run("send-keys", "-l", text)
        time.sleep(0.2)
        self.press("Enter")

    def end(self) -> None:
        """Close it all."""
        subprocess.run([*self._tmux, "kill-server"], env=self._environ, check=False, timeout=SECONDS)
