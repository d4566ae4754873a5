"""speech in turns: what it writes, what it asks before it plays, and what goes wrong."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from codewhale.protocol.events import CallFinished, Event, FileChanged, QuestionAsked
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.ops import RunCommand
from codewhale.services.speech.wav import whole
from codewhale.testing import Harness, harness
from support.scenes import answered, results
from support.sounds import program, sound
from support.webserver import WebServer

# A voice that keeps what it was asked to say, and writes a tone.
SAY = """printf '%s\\n' "$@" > {there}/asked
if [ "$2" = "?" ]; then printf 'Anna    de_DE    # Hallo\\nSandy (English (UK))  en_GB  # Hi\\n'; exit; fi
cat > {there}/text
case "$*" in *Nobody*) echo "Voice Nobody not found." >&2; exit 1;; esac
cp {there}/tone.wav spoken.wav"""
KEY = "k-0123456789abcdef"
FOUND = {"name": "tool_search_tool_regex", "arguments": {"query": "^speech$"}}


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """A folder of programs: a voice, and a device that keeps what it was given to play."""
    folder = tmp_path / "bin"
    program(folder, "say", SAY.format(there=folder))
    program(folder, "aplay", f'cat "$2" > {folder}/played')
    (folder / "tone.wav").write_bytes(sound(0.4))
    return folder


async def said(
    home: Path, workspace: Path, places: str, *calls: dict[str, Any], answer: str = "", site: WebServer | None = None
) -> tuple[list[CallFinished], list[Event]]:
    """What calls of speech come to, each question answered alike; "" is a run where nobody is asked."""
    script = [{"calls": [FOUND]}, *({"calls": [{"name": "speech", "arguments": one}]} for one in calls), {"text": "."}]
    async with harness(home, workspace, script, environ={"PATH": places, "MY_API_KEY": KEY}) as stage:
        if site is not None:
            site.serve(stage)
        session = await stage.open(mode=Mode.AGENT, authority=Authority.PERSON if answer else Authority.HEADLESS)
        events = await answered(stage, session, label=answer)
        return results(events)[1:], events


async def test_text_becomes_a_file_and_is_played_only_when_a_person_agrees(
    home: Path, workspace: Path, there: Path
) -> None:
    call = {"text": "  Good -n morning\n", "voice": "Anna", "play": True}
    (yes,), events = await said(home, workspace, str(there), call, answer="Yes")
    assert yes.ok and "It was played." in yes.content and yes.metadata["seconds"] == 0.4
    path = yes.metadata["path"]
    assert path.startswith("output/speech-") and (workspace / path).read_bytes() == sound(0.4)
    assert (there / "played").read_bytes() == sound(0.4) and (there / "text").read_text() == "Good -n morning\n"
    assert (there / "asked").read_text().split()[-4:] == ["-r", "175", "-v", "Anna"]
    assert [event.change.path for event in events if isinstance(event, FileChanged)] == [path]
    assert sum(isinstance(event, QuestionAsked) for event in events) == 1
    (there / "played").unlink()
    (no, plain), _ = await said(
        home, workspace, str(there), call, {"text": "Hi", "output": "sounds/b.wav"}, answer="No"
    )  # fmt: skip
    assert no.ok and "the user does not want that" in no.content
    (alone,), _ = await said(home, workspace, str(there), call)
    assert alone.ok and "there is no user to ask" in alone.content
    assert plain.ok, plain.content
    assert (
        not (there / "played").exists() and (workspace / "sounds/b.wav").exists() and plain.metadata["played"] is False
    )


async def test_what_cannot_be_spoken_or_played_is_one_line(home: Path, workspace: Path, there: Path) -> None:
    calls = [
        {"text": "x" * 1_000_000}, {"text": "a\x1b[31mb"}, {"text": " \n"}, {"text": "Hi", "voice": "Nobody"},
        {"text": "Hi", "voice": "../x"}, {"text": "Hi", "output": "hi.mp3"}, {"text": "Hi", "output": "../hi.wav"},
        {"text": f"My key is {KEY}"},
    ]  # fmt: skip
    wanted = [
        "1,000,000 characters", "U+001B", "no text to speak", "Voice Nobody not found", "no voice '../x'",
        ".wav file", "hi.wav", "secret",
    ]  # fmt: skip
    found, _ = await said(home, workspace, str(there), *calls)
    for result, words in zip(found, wanted, strict=True):
        assert not result.ok and words in result.metadata["error"]["message"], result.content
        assert "\n" not in result.metadata["error"]["message"] and KEY not in result.content
    program(there, "aplay", "echo 'ALSA lib x' >&2; echo 'main:831: audio open error: No such file' >&2; exit 1")
    (broken,), _ = await said(home, workspace, str(there), {"text": "Hi", "play": True}, answer="Yes")
    path = broken.metadata["path"]
    assert not broken.ok and "No sound device" in broken.content and "audio open error" in broken.content
    assert f"{path} holds the sound" in broken.content and (workspace / path).read_bytes() == sound(0.4)
    assert "\n" not in broken.content
    (missing,), _ = await said(home, workspace, str(home), {"text": "Hi"})
    assert missing.error == "not_available" and "espeak-ng" in missing.metadata["error"]["message"]


async def test_voices_are_listed(home: Path, workspace: Path, there: Path) -> None:
    (listed,), _ = await said(home, workspace, str(there), {"list_voices": True})
    assert listed.metadata["voices"] == ["Anna", "Sandy (English (UK))"]


async def test_a_service_that_the_person_configured_speaks(home: Path, workspace: Path, there: Path) -> None:
    pages = {"/audio/speech": (200, {"content-type": "audio/wav"}, sound(0.2)), "/bad": (200, {}, b"{}")}
    found = []
    async with WebServer(pages) as site:  # type: ignore[arg-type]
        for url in (f"{site.address}/audio/speech", f"{site.address}/bad", "127.0.0.1:1/x"):
            table = f'url = "http://{url}"\nmodel = "m-1"\nvoice = "alloy"\nkey_env = "MY_API_KEY"\n'
            home.mkdir(exist_ok=True)
            (home / "config.toml").write_text(f"[speech]\n{table}")
            found += (await said(home, workspace, "", {"text": "Hello", "rate": 350}, site=site))[0]
    good, bad, gone = found
    assert good.ok and (workspace / good.metadata["path"]).read_bytes() == sound(0.2)
    assert site.bodies[0] == b'{"model":"m-1","input":"Hello","voice":"alloy","response_format":"wav","speed":2.0}'
    assert f"Authorization: Bearer {KEY}" in site.asked[0]
    assert "not a WAV file" in bad.content and not gone.ok


async def voiced(stage: Harness, session: str, line: str) -> tuple[bool, str]:
    output = await stage.client.submit(RunCommand(session, line))
    return output.ok, output.text


async def test_the_last_answer_is_read_aloud(home: Path, workspace: Path, there: Path) -> None:
    answer = "# Done\n\nIt **works**, see [the guide](https://x.test/y).\n\n```py\nprint(1)\nprint(2)\n```\n\x07"
    script = [{"text": "First."}, {"text": answer}]
    async with harness(home, workspace, script, environ={"PATH": str(there)}) as stage:
        session = await stage.open(mode=Mode.PLAN, authority=Authority.HEADLESS)
        assert await voiced(stage, session, "/voice") == (False, "There is no answer to read yet.")
        for _ in range(2):
            await stage.turn("Go.", session)
        assert await voiced(stage, session, "/voice Anna") == (True, "Read aloud: 0 s.")
        assert (there / "text").read_text() == "Done\n\nIt works, see the guide.\n\n\n(2 lines of code)\n".replace(
            "\n\n\n", "\n\n"
        )
        assert (there / "played").read_bytes() == sound(0.4) and not (workspace / "output").exists()
        assert await voiced(stage, session, "/voice list") == (True, "Anna, Sandy (English (UK))")
        assert await voiced(stage, session, "/voice stop") == (True, "Nothing is being read.")
        (there / "aplay").unlink()
        ok, text = await voiced(stage, session, "/voice")
        (kept,) = (workspace / "output").iterdir()
        assert not ok and "No sound device" in text and f"written to output/{kept.name}" in text
        assert kept.read_bytes() == sound(0.4)


async def test_a_reading_goes_on_beside_what_a_person_types_until_it_is_stopped(
    home: Path, workspace: Path, there: Path
) -> None:
    program(there, "aplay", f"echo $$ > {there}/playing; exec sleep 600")
    async with harness(home, workspace, [{"text": "Done."}], environ={"PATH": str(there)}) as stage:
        session = await stage.open(mode=Mode.AGENT, authority=Authority.PERSON)
        await stage.turn("Go.", session)
        for name in ("pw-play", "paplay"):
            program(there, name, "exit 1")
        ok, text = await voiced(stage, session, "/voice")
        assert ok and text == "Reading aloud: 0 s. /voice stop ends it."
        assert (there / "playing").read_text().strip().isdecimal()
        assert await voiced(stage, session, "/voice stop") == (True, "Stopped.")
        assert await voiced(stage, session, "/voice again") == (True, "Reading aloud: 0 s. /voice stop ends it.")


def test_a_wav_whose_sizes_were_not_known_is_made_whole() -> None:
    data = sound(0.5)
    streamed = data[:4] + b"\x24\xf0\xff\x7f" + data[8:40] + b"\x00\xf0\xff\x7f" + data[44:]
    wav = whole(streamed)
    assert wav is not None and wav.data == data and (wav.rate, wav.seconds) == (8_000, 0.5)
    assert [whole(bad) for bad in (b"", b"ID3", data[:20], data[:36], b"RIFF\0\0\0\0WAVE" + b"\xff" * 40)] == [None] * 5


LINES = (
    ("en", "The build has passed, and all of the tests are green."), ("de", "Der Bau ist fertig, alles ist grün."),
    ("fr", "La construction est terminée."), ("es", "La compilación ha terminado."), ("it", "La prova è riuscita."),
)  # fmt: skip


@pytest.mark.skipif(shutil.which("espeak-ng") is None, reason="espeak-ng is not installed")
async def test_the_distributions_voice_speaks_five_languages(home: Path, workspace: Path) -> None:
    calls = [{"text": text, "voice": voice, "output": f"{voice}.wav"} for voice, text in LINES]
    wrong = {"text": "Hi", "voice": "xx-nowhere"}
    found, _ = await said(home, workspace, "/usr/bin:/bin", *calls, wrong, {"list_voices": True})
    for (voice, text), result in zip(LINES, found, strict=False):
        wav = whole((workspace / f"{voice}.wav").read_bytes())
        assert result.ok and wav is not None and wav.rate == 22_050
        assert 0.03 < wav.seconds / len(text) < 0.2, (voice, wav.seconds)
    assert "no voice 'xx-nowhere'" in found[-2].content
    assert {"de", "es", "it"} <= set(found[-1].metadata["voices"])
