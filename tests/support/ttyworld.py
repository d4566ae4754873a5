"""A home with a scripted model and a workspace, with the interface opened on pseudo-terminals."""

import json
import sys
import time
from pathlib import Path
from typing import Any

from codewhale.lib.clock import SystemClock
from codewhale.protocol.events import Event
from codewhale.session.store import SessionStore
from support.patience import HANG
from support.terminal import WARM, Terminal, environment

PROGRAM = [sys.executable, "-m", "codewhale"]


class World:
    """A home with a scripted model, and a workspace; opens terminals on them."""

    def __init__(self, folder: Path) -> None:
        self.home, self.work = folder / "home", folder / "work"
        self.home.mkdir(mode=0o700)
        self.work.mkdir()
        self.opened: list[Terminal] = []

    def says(self, *turns: dict[str, Any], approval: str = "auto") -> None:
        """What its model says."""
        script = self.home / "script.jsonl"
        script.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
        (self.home / "config.toml").write_text(
            f'provider = "scripted"\nmodel = "m"\napproval = "{approval}"\n[tui]\nnotify = "off"\n'
            f'[providers.scripted]\ndialect = "scripted"\nscript = {json.dumps(str(script))}\n'
        )

    def open(self, *options: str, **how: Any) -> Terminal:
        """The interface, ready."""
        term = Terminal([*WARM, *options], environment(self.home), cwd=self.work, **how)
        self.opened.append(term)
        term.sees("scripted/m")
        return term

    def until_drafted(self, text: str) -> None:
        """Wait until a draft of this text is on disk."""
        deadline = time.monotonic() + HANG
        while not any(text in path.read_text(errors="replace") for path in self.home.rglob("drafts/*.json")):
            assert time.monotonic() < deadline, sorted(map(str, self.home.rglob("*")))
            time.sleep(0.05)

    def until_recorded(self, kind: type[Event]) -> None:
        """Wait until an event of a kind is in the log."""
        deadline = time.monotonic() + HANG
        while not any(isinstance(event, kind) for event in self.events()):
            assert time.monotonic() < deadline, self.events()
            time.sleep(0.05)

    def events(self) -> list[Event]:
        """All that was recorded in the latest session."""
        store = SessionStore(str(self.home), SystemClock())
        return [envelope.event for envelope in store.read(store.resolve("latest"))]
