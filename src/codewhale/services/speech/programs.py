"""The programs of the system that speak and that play sound, as rows of data: the first that is installed is used."""

import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from codewhale.process.programs import find_program

_FILE = "spoken.wav"


class VoiceProgram(Struct, frozen=True):
    """How a program speaks the text on its standard input. `argv` are its arguments for a voice ("" is its own) and
    words a minute. One that writes no `stream` to its output writes the file `spoken.wav` where it is started, and is
    given the text as its last argument where it reads none (`typed`). Its voices are the first group of `row` in what
    it lists, or `voices`."""

    name: str
    argv: Callable[[str, int], tuple[str, ...]]
    stream: bool = True
    typed: bool = False
    listing: tuple[str, ...] = ()
    row: re.Pattern[str] = re.compile(r"^\s*\d+\s+(\S+)\s", re.M)
    voices: tuple[str, ...] = ()


def _voice(option: str, voice: str) -> tuple[str, ...]:
    return (option, voice) if voice else ()


def _espeak(voice: str, rate: int) -> tuple[str, ...]:
    return ("--stdin", "--stdout", "-b", "1", "-s", str(rate), *_voice("-v", voice))


PROGRAMS: tuple[VoiceProgram, ...] = (
    VoiceProgram("espeak-ng", _espeak, listing=("--voices",)),
    VoiceProgram(
        "say",
        lambda voice, rate: ("-f", "-", "-o", _FILE, "--file-format=WAVE", "--data-format=LEI16@22050",
                             "-r", str(rate), *_voice("-v", voice)),
        stream=False, listing=("-v", "?"), row=re.compile(r"^(\S.*?)\s{2,}\w\w[_-]", re.M),
    ),
    VoiceProgram("espeak", _espeak, listing=("--voices",)),
    VoiceProgram(
        "pico2wave", lambda voice, rate: ("-w", _FILE, *_voice("-l", voice), "--"), stream=False, typed=True,
        voices=("de-DE", "en-GB", "en-US", "es-ES", "fr-FR", "it-IT"),
    ),
)  # fmt: skip

# Programs that play a file, and what stands before its name.
PLAYERS: tuple[tuple[str, ...], ...] = (
    ("pw-play",), ("paplay",), ("aplay", "-q"), ("afplay",), ("play", "-q"),
)  # fmt: skip


def voice_program(places: str, workspace: str) -> tuple[VoiceProgram, str] | None:
    """The first voice program on the PATH `places`, with its path; nothing of the workspace is run."""
    for program in PROGRAMS:
        if path := find_program(program.name, workspace, places):
            return program, path
    return None


def players(places: str, workspace: str) -> list[tuple[str, ...]]:
    """The beginnings of the command lines that play a file here."""
    found: list[Any] = [(find_program(row[0], workspace, places), *row[1:]) for row in PLAYERS]
    return [tuple(row) for row in found if row[0]]
