"""`make speech`: 200 sentences in five languages by the voice program of this machine, each measured with sox: length,
sample rate, and how much of it sounds. Without espeak-ng or sox it says so and ends.

python scripts/speech.py [--sentences N]
"""

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from codewhale.services.speech.service import Speech, SpeechOptions, Utterance

RATE = 22_050
# Seconds of sound for each character of a sentence, and the share of it that is no silence.
LEAST, MOST, SOUNDS = 0.03, 0.2, 0.6
WORDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "en": (
        ("The build", "Every test of the parser", "Your last change", "The new index", "A worker in the queue",
         "The second answer", "This pull request", "The server on port 8080"),
        ("has passed without a warning.", "is slower than it was yesterday.", "needs one more review before Friday.",
         "was written in 2026, and nobody knows why.", "failed: three files are missing!"),
    ),
    "de": (
        ("Der letzte Bau", "Jeder Test des Lesers", "Deine Änderung", "Das neue Verzeichnis",
         "Ein Prozess der Schlange", "Die zweite Antwort", "Dieser Vorschlag", "Der Rechner mit Anschluss 8080"),
        ("ist ohne Warnung durchgelaufen.", "ist langsamer als gestern.", "braucht vor Freitag noch eine Prüfung.",
         "wurde 2026 geschrieben, und keiner weiß, wozu.", "schlug fehl: Es fehlen drei Dateien!"),
    ),
    "fr": (
        ("La dernière construction", "Chaque essai du lecteur", "Ta modification", "Le nouvel index",
         "Un processus de la file", "La deuxième réponse", "Cette proposition", "Le serveur du port 8080"),
        ("a réussi sans avertissement.", "est plus lente qu'hier.", "demande encore une relecture avant vendredi.",
         "date de 2026, et personne ne sait pourquoi.", "a échoué : il manque trois fichiers !"),
    ),
    "es": (
        ("La última compilación", "Cada prueba del lector", "Tu cambio", "El nuevo índice", "Un proceso de la cola",
         "La segunda respuesta", "Esta propuesta", "El servidor del puerto 8080"),
        ("terminó sin avisos.", "es más lenta que ayer.", "necesita otra revisión antes del viernes.",
         "se escribió en 2026, y nadie sabe por qué.", "falló: ¡faltan tres archivos!"),
    ),
    "it": (
        ("L'ultima compilazione", "Ogni prova del lettore", "La tua modifica", "Il nuovo indice",
         "Un processo della coda", "La seconda risposta", "Questa proposta", "Il server della porta 8080"),
        ("è riuscita senza avvisi.", "è più lenta di ieri.", "vuole un'altra revisione prima di venerdì.",
         "risale al 2026, e nessuno sa perché.", "non è riuscita: mancano tre file!"),
    ),
}  # fmt: skip


def sentences(count: int) -> Iterator[tuple[str, str]]:
    """Voices and sentences, the languages in turn."""
    made = [[(voice, f"{head} {tail}") for head, tail in product(*WORDS[voice])] for voice in WORDS]
    return iter([row for rows in zip(*made, strict=True) for row in rows][:count])


def measured(path: Path, scratch: Path) -> tuple[int, float, float]:
    """The sample rate, the seconds, and the seconds without pauses, as sox sees them."""
    short = scratch / "short.wav"
    cut = ["silence", "-l", "1", "0.02", "0.5%", "-1", "0.15", "0.5%"]
    subprocess.run(["sox", "-V1", str(path), str(short), *cut], check=True, timeout=60)
    said = [
        subprocess.run(["soxi", option, str(one)], check=True, capture_output=True, text=True, timeout=60).stdout
        for option, one in (("-r", path), ("-D", path), ("-D", short))
    ]
    return int(said[0]), float(said[1]), float(said[2])


async def spoken(count: int, scratch: Path) -> list[str]:
    """Speak and measure; what is wrong. Prints the figures."""
    environ = {"PATH": os.environ.get("PATH", os.defpath)}

    async def nowhere(*_: object) -> tuple[int, str, bytes]:
        raise OSError("no service is asked")

    speech, wrong = Speech(SpeechOptions(), environ, nowhere), list[str]()
    rows: dict[str, list[tuple[float, float, float, float]]] = {}
    for number, (voice, text) in enumerate(sentences(count)):
        begun = time.perf_counter()
        wav = await speech.speak(Utterance(text, voice), str(scratch))
        took = time.perf_counter() - begun
        path = scratch / f"{number}.wav"
        path.write_bytes(wav.data)
        rate, seconds, sounding = measured(path, scratch)
        rows.setdefault(voice, []).append((seconds, seconds / len(text), sounding / seconds, took))
        good = rate == RATE and LEAST <= seconds / len(text) <= MOST and sounding / seconds >= SOUNDS
        if not good or abs(seconds - wav.seconds) > 0.01:
            wrong.append(f"{voice}: {text!r}: {rate} Hz, {seconds:.2f} s, {sounding / seconds:.0%} of it sounds")
    for voice, found in rows.items():
        length, each, loud, took = (statistics.median(column) for column in zip(*found, strict=True))
        print(
            f"{voice}: {len(found)} sentences, {length:.2f} s each, {each * 1000:.0f} ms a character, "
            f"{loud:.0%} sounds, made in {took * 1000:.0f} ms"
        )
    return wrong


def main() -> int:
    """0 when every sentence sounds as it should, or nothing can speak here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=200)
    args = parser.parse_args()
    missing = [name for name in ("espeak-ng", "sox", "soxi") if shutil.which(name) is None]
    if missing:
        print(f"skipped: {', '.join(missing)} is not installed")
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        wrong = asyncio.run(spoken(args.sentences, Path(scratch)))
    print("\n".join(wrong) or f"all of {args.sentences} sentences are {RATE} Hz and sound")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
