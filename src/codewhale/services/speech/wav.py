"""WAV files as voice programs write them: whole, and how long they sound."""

import struct

from msgspec import Struct

_CHUNK = struct.Struct("<4sI")
_PCM = 1


class Wav(Struct, frozen=True):
    """A whole file of uncompressed sound."""

    data: bytes
    rate: int
    seconds: float


def whole(data: bytes) -> Wav | None:
    """The file with sizes that hold: a program that writes to a pipe cannot know them before. None is no such file."""
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        return None
    at, width, rate = 12, 0, 0
    while at + _CHUNK.size <= len(data):
        name, size = _CHUNK.unpack_from(data, at)
        begin = at + _CHUNK.size
        if name == b"fmt " and size >= 16 and begin + 16 <= len(data):
            kind, _, rate, bytes_a_second = struct.unpack_from("<HHII", data, begin)
            width = bytes_a_second if kind == _PCM and rate else 0
        elif name == b"data":
            size = min(size, len(data) - begin)
            if not width:
                return None
            head = data[4:at]
            body = data[begin : begin + size]
            riff = struct.pack("<I", len(head) - 4 + _CHUNK.size + size)
            return Wav(b"RIFF" + riff + head[4:] + _CHUNK.pack(b"data", size) + body, rate, size / width)
        at = begin + size + size % 2
    return None
