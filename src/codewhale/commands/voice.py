"""/voice: the last answer read aloud, for people who listen."""

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Callable

from codewhale.commands.base import CommandContext, command
from codewhale.lib.files import atomic_write
from codewhale.lib.text import one_line
from codewhale.protocol.errors import ToolError
from codewhale.protocol.events import Event, Notice
from codewhale.protocol.ops import CommandOutput
from codewhale.services.speech.service import MOST_TEXT, Speech, Utterance
from codewhale.services.speech.spoken import spoken
from codewhale.services.speech.wav import Wav
from codewhale.workspace.files import Workspaces

_SHOWN_VOICES = 8_000
_FAILS_WITHIN = 2.0  # seconds in which a missing device is known


class VoiceCommand:
    """/voice. `answer(session)` is the last answer of a session, "" where there is none; `attended` says whether
    somebody goes on typing while it is read, and `tell` what went wrong meanwhile."""

    def __init__(
        self,
        speech: Speech,
        workspaces: Workspaces,
        answer: Callable[[str], str],
        attended: Callable[[str], bool],
        tell: Callable[[str, Event], None],
    ) -> None:
        self._speech = speech
        self._workspaces = workspaces
        self._answer = answer
        self._attended = attended
        self._tell = tell

    @command("/voice", "[stop | list | VOICE]")
    async def voice(self, args: str, context: CommandContext) -> CommandOutput:
        """Read the last answer aloud, by the voice that is named; /voice list names the voices."""
        if args == "stop":
            return CommandOutput("Stopped." if self._speech.stop() else "Nothing is being read.")
        try:
            if args == "list":
                names = await self._speech.voices(context.workspace)
                return CommandOutput(", ".join(names)[:_SHOWN_VOICES] or "The speech service does not list its voices.")
            text = spoken(await asyncio.to_thread(self._answer, context.session))
            if not text:
                return CommandOutput("There is no answer to read yet.", ok=False)
            said = Utterance(_begin(text), args)
            return await self._read(said, await self._speech.speak(said, context.workspace), context)
        except ToolError as error:
            return CommandOutput(error.message, ok=False)

    async def _read(self, said: Utterance, wav: Wav, context: CommandContext) -> CommandOutput:
        """Read to the end; where somebody is there, only begin."""
        reading = self._speech.begin(self._heard(said, wav, context))
        attended = self._attended(context.session)
        await asyncio.wait({reading}, timeout=_FAILS_WITHIN if attended else None)
        if reading.done():
            why = "" if reading.cancelled() else reading.result()
            return CommandOutput(why or f"Read aloud: {wav.seconds:.0f} s.", ok=not why)

        def ended(reading: "asyncio.Task[str]") -> None:
            if not reading.cancelled() and (why := reading.result()):
                self._tell(context.session, Notice("error", why))

        reading.add_done_callback(ended)
        return CommandOutput(f"Reading aloud: {wav.seconds:.0f} s. /voice stop ends it.")

    async def _heard(self, said: Utterance, wav: Wav, context: CommandContext) -> str:
        """Play it; why nothing was heard, "" where it was."""
        with tempfile.TemporaryDirectory(prefix="codewhale-voice-") as folder:
            path = os.path.join(folder, "answer.wav")
            await asyncio.to_thread(atomic_write, path, wav.data)
            try:
                await self._speech.play(path, wav.seconds, context.workspace)
            except ToolError as error:
                return f"{error.message}; {await self._kept(said, wav, context)}"
        return ""

    async def _kept(self, said: Utterance, wav: Wav, context: CommandContext) -> str:
        """Where the sound is that could not be played."""
        name = f"{self._speech.options.folder}/answer-{hashlib.sha256(said.text.encode()).hexdigest()[:10]}.wav"
        try:
            change = await asyncio.to_thread(
                self._workspaces.at(context.workspace).write, context.session, name, wav.data, False
            )
        except ToolError as error:
            return f"it could not be kept either: {error.message}"
        return f"it was written to {one_line(change.path, 300)}."


def _begin(text: str) -> str:
    """As much of a text as is spoken at once, to the end of a sentence where one is near."""
    if len(text) <= MOST_TEXT:
        return text
    cut = text[:MOST_TEXT]
    return cut[: cut.rfind(". ") + 1] or cut
