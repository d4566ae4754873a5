"""Sound files, and programs that stand for those of a system that speak and play."""

import io
import math
import struct
import wave
from pathlib import Path


def sound(seconds: float, rate: int = 8_000) -> bytes:
    """A WAV file of a tone."""
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        tone = (int(8_000 * math.sin(n / 3)) for n in range(round(seconds * rate)))
        file.writeframes(b"".join(struct.pack("<h", one) for one in tone))
    return out.getvalue()


def program(folder: Path, name: str, script: str) -> Path:
    """A shell script on a PATH that consists of this folder and the system's."""
    folder.mkdir(exist_ok=True, mode=0o755)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
