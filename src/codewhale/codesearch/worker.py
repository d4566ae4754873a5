"""The program of a worker process: tasks in on standard input, batches of files out on standard output, each message
four bytes of length (little-endian) and MessagePack; each task has one answer. It ends with its input."""

import gc
import os
import sys

import msgspec

from codewhale.codesearch.indexing import Batch, ReadTask, read_files
from codewhale.codesearch.source import SourceReader

_HEAD = 4
_MOST = 1 << 30
_COLLECT = 200_000  # allocations between collections: trees and counts make no circles


def main() -> int:
    """Serve until the input ends. The one argument is the folder of grammars."""
    gc.set_threshold(_COLLECT)
    sources = SourceReader(sys.argv[1])
    while (data := _message()) is not None:
        answer = memoryview(framed(read_files(sources, msgspec.msgpack.decode(data, type=ReadTask))))
        while answer:
            answer = answer[os.write(1, answer) :]
    return 0


def framed(message: ReadTask | Batch) -> bytes:
    """A message with its length before it."""
    data = msgspec.msgpack.encode(message)
    return len(data).to_bytes(_HEAD, "little") + data


def _message() -> bytes | None:
    head = _exactly(_HEAD)
    return None if head is None else _exactly(int.from_bytes(head, "little"))


def _exactly(size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        part = os.read(0, min(size - len(data), 1 << 20))
        if not part:
            return None
        data += part
    return bytes(data)


class BatchDecoder:
    """Takes bytes as they come and gives whole messages."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[Batch]:
        """The messages that `data` completes. Raises ValueError for what no worker of ours would send."""
        self._data += data
        found: list[Batch] = []
        while len(self._data) >= _HEAD:
            size = int.from_bytes(self._data[:_HEAD], "little")
            if size > _MOST:
                raise ValueError("a message of a worker is too long")
            if len(self._data) < _HEAD + size:
                break
            try:
                found.append(msgspec.msgpack.decode(self._data[_HEAD : _HEAD + size], type=Batch))
            except msgspec.DecodeError as error:
                raise ValueError(f"a worker sent what is no batch of files: {error}") from error
            del self._data[: _HEAD + size]
        return found
