"""Speaking: who makes the sound of a text, and who plays it. Everything is bounded, and a cancel ends the program."""

import asyncio
import os
import re
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from codewhale.lib.text import one_line
from codewhale.process.command import Ceiling, Completed
from codewhale.process.isolated import IsolatedWork
from codewhale.process.launch import Launch, run
from codewhale.process.programs import how_to_install
from codewhale.protocol.errors import Look, ToolError
from codewhale.services.speech.programs import VoiceProgram, players, voice_program
from codewhale.services.speech.spoken import is_control
from codewhale.services.speech.wav import Wav, whole

# Sends a body of JSON to an address that the person configured: (address, headers, body, most bytes, seconds). Answers
# status, content type and body, cut at its cap.
Post = Callable[[str, Sequence[tuple[str, str]], bytes, int, float], Awaitable[tuple[int, str, bytes]]]

MOST_TEXT = 5_000
RATE = 175
_MOST_BYTES, _MOST_SECONDS, _MOST_VOICES = 40 << 20, 60.0, 500
_VOICE = re.compile(r"[A-Za-z0-9][\w +().,-]{0,79}")
# Where the sound server of the person's desktop listens, if that is not its usual place.
_SOUND = ("PULSE_SERVER", "PULSE_COOKIE", "PIPEWIRE_REMOTE", "XDG_RUNTIME_DIR")


class SpeechOptions(Struct, frozen=True):
    """What the person configured: `url` is an address like OpenAI's /audio/speech that speaks in place of the system's
    program, asked for `model` with the key in the environment variable `key_env`; `voice` is used where a call names
    none, and files go to `folder` of the workspace."""

    url: str = ""
    model: str = ""
    voice: str = ""
    key_env: str = ""
    folder: str = "output"


class Utterance(Struct, frozen=True):
    """What is to be spoken, by which voice ("" is the usual one), at how many words a minute."""

    text: str
    voice: str = ""
    rate: int = RATE

    def check(self) -> None:
        """Raise ToolError for what cannot be spoken."""
        text = self.text
        if not text.strip():
            raise ToolError(
                "missing_field", "There is no text to speak.", field="text", expected="words", received="nothing"
            )
        if len(text) > MOST_TEXT:
            raise _refused(
                f"it has {len(text):,} characters and at most {MOST_TEXT:,} are spoken at once; speak it in parts",
                f"at most {MOST_TEXT} characters", str(len(text)),
            )  # fmt: skip
        strange = next((letter for letter in text if is_control(letter)), "")
        if strange:
            name = f"U+{ord(strange):04X}"
            raise _refused(f"it holds the control character {name}; leave it out", "text", name)


class Speech:
    """Speaks and plays for one application: one sound at a time."""

    def __init__(self, options: SpeechOptions, environ: Mapping[str, str], post: Post) -> None:
        self.options = options
        self._environ = environ
        self._post = post
        self._places = environ.get("PATH", os.defpath)
        self._reading: asyncio.Task[str] | None = None

    def begin(self, reading: Coroutine[object, object, str]) -> "asyncio.Task[str]":
        """Let this be what plays from now on, in place of what does."""
        self.stop()
        self._reading = asyncio.create_task(reading)
        return self._reading

    def stop(self) -> bool:
        """End what plays; whether anything did."""
        return self._reading is not None and self._reading.cancel()

    async def aclose(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def speak(self, said: Utterance, workspace: str) -> Wav:
        """The sound of a text. Raises ToolError."""
        said.check()
        voice = said.voice.strip() or self.options.voice
        if voice and not _VOICE.fullmatch(voice):
            raise _no_voice(voice, "")
        if self.options.url:
            return await self._asked(said, voice)
        program, path = self._program(workspace)
        text = said.text.strip().encode("utf-8", "replace") + b"\n"
        if program.stream:
            done = await IsolatedWork(
                "", text, (path, *program.argv(voice, said.rate)), seconds=_MOST_SECONDS, output_limit=_MOST_BYTES
            ).do()
            data = done.stdout if done.stdout_gap < 0 else b""
        else:
            done, data = await self._filed(program, path, program.argv(voice, said.rate), text)
        wav = whole(data) if done.exit_code == 0 else None
        if wav is None or not wav.seconds:
            raise _failed(program, voice, done)
        return wav

    async def voices(self, workspace: str) -> list[str]:
        """The names of the voices. Raises ToolError where there is no voice program."""
        if self.options.url:
            return [self.options.voice] if self.options.voice else []
        program, path = self._program(workspace)
        if program.voices:
            return list(program.voices)
        done = await IsolatedWork("", b"", (path, *program.listing), seconds=10.0, output_limit=1 << 20).do()
        found = program.row.findall(done.stdout.decode("utf-8", "replace"))
        return [one_line(name, 80) for name in dict.fromkeys(found)][:_MOST_VOICES]

    async def play(self, path: str, seconds: float, workspace: str) -> None:
        """Play a file to its end. Raises ToolError that says why nothing was heard."""
        reasons = list[str]()
        sound = {name: self._environ[name] for name in _SOUND if self._environ.get(name)}
        for argv in players(self._places, workspace):
            done = await run(
                Launch(
                    argv=(*argv, path), cwd="/", profile="none", env=sound, seconds=seconds + 15, merge=True,
                    supervised=False, own=True,
                )
            )  # fmt: skip
            if done.exit_code == 0:
                return
            reasons.append(f"{os.path.basename(argv[0])}: {_last_line(done.stdout) or 'it failed'}")
        why = "; ".join(reasons) or "no program that plays sound is installed (pw-play, paplay, aplay, afplay, play)"
        raise ToolError("not_available", f"No sound device could be used ({one_line(why, 300)})")

    def _program(self, workspace: str) -> tuple[VoiceProgram, str]:
        found = voice_program(self._places, workspace)
        if found is None:
            raise ToolError(
                "not_available",
                f"No voice program is installed. Ask the user to install one: "
                f"{how_to_install('espeak-ng', self._places)}; or to set `[speech] url` in config.toml.",
            )
        return found

    async def _filed(
        self, program: VoiceProgram, path: str, argv: tuple[str, ...], text: bytes
    ) -> tuple[Completed, bytes]:
        """How a program ended that writes into a folder, and the file that it wrote."""
        with tempfile.TemporaryDirectory(prefix="codewhale-speech-") as folder:
            words = (path, *argv, text.decode()) if program.typed else (path, *argv)
            done = await run(
                Launch(
                    argv=words, cwd=folder, profile="none", stdin=b"" if program.typed else text,
                    seconds=_MOST_SECONDS, ceiling=Ceiling(file_size=_MOST_BYTES), own=True,
                )
            )  # fmt: skip
            wrote = next(iter(Path(folder).iterdir()), None)
            return done, await asyncio.to_thread(wrote.read_bytes) if wrote is not None else b""

    async def _asked(self, said: Utterance, voice: str) -> Wav:
        options = self.options
        body: dict[str, object] = {
            "model": options.model,
            "input": said.text.strip(),
            "voice": voice,
            "response_format": "wav",
        }
        body |= {"speed": round(said.rate / RATE, 2)} if said.rate != RATE else {}
        key = self._environ.get(options.key_env, "") if options.key_env else ""
        if options.key_env and not key:
            raise ToolError("not_available", f"{options.key_env}, which `[speech] key_env` names, is not set.")
        headers = (("Authorization", f"Bearer {key}"),) if key else ()
        data = msgspec.json.encode({name: value for name, value in body.items() if value})
        status, kind, answer = await self._post(options.url, headers, data, _MOST_BYTES, _MOST_SECONDS)
        wav = whole(answer) if status == 200 else None
        if wav is None or not wav.seconds:
            came = one_line(f"{status} {kind}".strip(), 80)
            raise ToolError("execution_failed", f"The address of `[speech] url` answered {came}, not a WAV file.")
        return wav


def _refused(why: str, expected: str, received: str) -> ToolError:
    return ToolError(
        "invalid_input", f"text cannot be spoken: {why}.", field="text", expected=expected, received=received
    )


def _no_voice(voice: str, who: str) -> ToolError:
    return ToolError(
        "invalid_input", f"There is no voice {one_line(voice, 60)!r}{who}.", field="voice", expected="a voice",
        received=one_line(voice, 60), fix=Look("speech", {"list_voices": True}),
    )  # fmt: skip


def _failed(program: VoiceProgram, voice: str, done: Completed) -> ToolError:
    said = _last_line(done.stderr)
    if voice and "voice" in said.lower():
        return _no_voice(voice, f" ({program.name}: {said})")
    if done.timed_out:
        said = f"it was not done within {_MOST_SECONDS:g} seconds"
    return ToolError("execution_failed", f"{program.name} made no sound: {said or 'it ended without a WAV file'}.")


def _last_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").strip().splitlines()
    return one_line(lines[-1].strip().rstrip("."), 200) if lines else ""
