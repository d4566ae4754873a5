"""What the panels and the terminal say upward: each message is handed on to whoever does it."""

import asyncio
from typing import Any

from codewhale.display.words import Words


class Hearing:
    """Of an app that has these panels, and does these things."""

    words: Words
    attention: Any
    composer: Any
    doings: Any
    overlays: Any
    transcript: Any
    run_worker: Any
    _sending: asyncio.Lock

    def say(self, text: str, tone: str = "text") -> None:
        raise NotImplementedError

    def look(self) -> None:
        """Ask for what no event tells."""
        raise NotImplementedError

    def on_composer_sent(self, message: Any) -> None:
        """A message to the model; what could not be sent stands in the composer again."""
        self.transcript.action_bottom()
        self.run_worker(self._send(message))

    async def _send(self, message: Any) -> None:
        async with self._sending:
            if not await self.doings.send(message):
                self.composer.give_back(message.draft)

    def on_composer_command(self, message: Any) -> None:
        self.transcript.action_bottom()
        self.run_worker(self._command(message.line))

    async def _command(self, line: str) -> None:
        await self.doings.command(line)
        self.look()

    def on_composer_shell(self, message: Any) -> None:
        self.transcript.action_bottom()
        self.run_worker(self.doings.shell(message.line))

    def on_composer_mode_cycled(self) -> None:
        self.run_worker(self.doings.next_mode())

    def on_composer_effort_cycled(self) -> None:
        self.run_worker(self.doings.next_effort())

    def on_transcript_open_file(self, message: Any) -> None:
        self.run_worker(self.overlays.edit(message.path, message.line))

    def on_transcript_copied(self, message: Any) -> None:
        name = "copied_nothing" if not message.size else "copied" if message.whole else "copied_part"
        said = self.words(f"app.{name}", what=message.what, size=f"{message.size:,}")
        self.say(said, "success" if message.size and message.whole else "warning")

    def on_transcript_left(self) -> None:
        self.composer.focus()

    def on_asking_panel_edit(self, message: Any) -> None:
        self.composer.offer(message.text)
        self.composer.focus()

    def on_asking_panel_waits(self, message: Any) -> None:
        self.composer.card_waits(message.on)

    def on_asking_panel_left(self) -> None:
        self.composer.focus()

    def on_asking_panel_failed(self, message: Any) -> None:
        self.say(message.text, "error")

    def on_app_focus(self) -> None:
        self.attention.focus(True)

    def on_app_blur(self) -> None:
        self.attention.focus(False)
