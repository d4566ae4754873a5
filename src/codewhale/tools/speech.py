"""Speech: text to a sound file of the workspace, and to the speakers once a person has agreed."""

import hashlib
import os
from collections.abc import Callable
from typing import Annotated

import msgspec

from codewhale.lib.text import one_line
from codewhale.lib.threads import run_to_end
from codewhale.protocol.errors import Corrected, ToolError
from codewhale.protocol.ports import Asker
from codewhale.protocol.tools import CallContext, Effect, PathSubject, Subject, ToolResult
from codewhale.services.speech.service import MOST_TEXT, RATE, Speech, Utterance
from codewhale.tools.base import Args, Doc, tool
from codewhale.workspace.files import Workspaces

_ASK_SECONDS = 300.0
_SHOWN_VOICES = 4_000


class SpeechArgs(Args, frozen=True):
    """What to speak, and how."""

    text: Annotated[str, Doc(f"Plain text, at most {MOST_TEXT} characters.")] = ""
    voice: Annotated[str, Doc("A voice's name, such as de or en-gb.", max_length=80)] = ""
    rate: Annotated[int, Doc("Words a minute.", ge=80, le=400)] = RATE
    output: Annotated[str, Doc("The .wav file to write; left out, one in the output folder.", max_length=1000)] = ""
    play: Annotated[bool, Doc("Play it too; the user is asked first.")] = False
    list_voices: Annotated[bool, Doc("Only list the voices.")] = False


class SpeechTools:
    """The tool that speaks."""

    def __init__(
        self, speech: Speech, workspaces: Workspaces, asker: Asker, redact: Callable[[str], Callable[[str], str]]
    ) -> None:
        self._speech = speech
        self._workspaces = workspaces
        self._asker = asker
        self._redact = redact

    @tool("speech", effects={Effect.WRITES}, subjects="_written")
    async def speech(self, args: SpeechArgs, call: CallContext) -> ToolResult:
        """Speak text: write it as a WAV file in the workspace, by the voice program of the system or the speech
        service that the user has configured; with play also to the speakers, if the user agrees. Returns path, length
        and voice. With list_voices: the names of the voices.
        """
        if args.list_voices:
            names = await self._speech.voices(call.workspace)
            text = ", ".join(names)[:_SHOWN_VOICES] or "The configured speech service does not list its voices."
            return ToolResult(text, metadata={"voices": names})
        said = Utterance(args.text, args.voice, args.rate)
        said.check()
        if self._redact(call.session)(args.text) != args.text:
            raise ToolError(
                "invalid_input", "text cannot be spoken: it holds a secret of the user; leave it out.", field="text",
                expected="text without secrets", received="a secret",
            )  # fmt: skip
        path = self._path(args)
        wav = await self._speech.speak(said, call.workspace)
        space = self._workspaces.of(call)
        change = await run_to_end(space.write, call.session, path, wav.data)
        metadata = {
            "path": change.path, "bytes": len(wav.data), "seconds": round(wav.seconds, 2), "rate": wav.rate,
            "voice": args.voice or self._speech.options.voice or "default", "played": False,
        }  # fmt: skip
        wrote = f"Written: {change.path} ({wav.seconds:.1f} s of sound, {wav.rate} Hz)."
        if not args.play:
            return ToolResult(wrote, metadata=metadata, changes=(change,))
        refused = await self._refused(args.text, change.path, wav.seconds, call)
        if not refused:
            try:
                await self._speech.play(os.path.join(call.workspace, change.path), wav.seconds, call.workspace)
            except ToolError as error:
                refused = f"{error.message}; {change.path} holds the sound."
                return ToolResult(
                    f"{wrote} {refused}", ok=False, error=error.kind, metadata=metadata, changes=(change,)
                )
        played = refused or "It was played."
        return ToolResult(f"{wrote} {played}", metadata=metadata | {"played": not refused}, changes=(change,))

    async def _refused(self, text: str, path: str, seconds: float, call: CallContext) -> str:
        """Why nothing is played, "" where the person agrees."""
        if not self._asker.attended(call.session):
            return "It was not played: there is no user to ask."
        options = [{"label": "Yes", "description": "Play it"}, {"label": "No", "description": "Keep the file"}]
        question = f"Play {seconds:.0f} s of sound ({one_line(path, 200)}): {one_line(text, 300)}"
        asked = [{"header": "Sound", "id": "play", "question": question, "options": options}]
        answers = await self._asker.question(call.session, asked, _ASK_SECONDS)
        agreed = any(answer.get("label") == "Yes" for answer in answers)
        return "" if agreed else "It was not played: the user does not want that."

    def _path(self, args: SpeechArgs) -> str:
        """Where the sound goes: by itself the same file for the same words."""
        path = args.output.strip()
        if not path:
            mark = hashlib.sha256(msgspec.json.encode((args.text, args.voice, args.rate))).hexdigest()[:10]
            return f"{self._speech.options.folder}/speech-{mark}.wav"
        if not path.lower().endswith(".wav"):
            raise ToolError(
                "invalid_input", f"output must name a .wav file, not {one_line(path, 200)!r}.", field="output",
                expected="a path that ends in .wav", received=one_line(path, 200),
                fix=Corrected({"output": os.path.splitext(path)[0] + ".wav"}, sure=True),
            )  # fmt: skip
        return path

    def _written(self, args: SpeechArgs) -> tuple[Subject, ...]:
        if args.list_voices:
            return ()
        name = args.output.strip() if args.output.strip() and not args.output.lower().strip().endswith(".wav") else ""
        return (PathSubject(name or self._path(args), write=True),)
