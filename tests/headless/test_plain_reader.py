"""Lines from a pipe and from a terminal."""

import os

from codewhale.headless.plain import MOST_BYTES, LineReader


async def lines_of(data: bytes) -> list[str]:
    """Every line of a pipe."""
    out, into = os.pipe()
    os.write(into, data)
    os.close(into)
    reader = LineReader(out)
    found = []
    while (line := await reader.line()) is not None:
        found.append(line)
    reader.close()
    os.close(out)
    return found


async def test_a_pipe_is_split_at_line_ends() -> None:
    assert await lines_of(b"one\ntwo\r\n\nlast") == ["one", "two", "", "last"]
    assert await lines_of(b"") == []
    assert await lines_of(b"\xff\xfe bytes\n") == ["\ufffd\ufffd bytes"]


async def test_a_line_has_a_bound() -> None:
    out, into = os.pipe()
    reader = LineReader(out)
    import threading

    def write() -> None:
        with open(into, "wb") as file:
            file.write(b"x" * (MOST_BYTES + 10))

    writer = threading.Thread(target=write)
    writer.start()
    first = await reader.line()
    rest = await reader.line()
    writer.join()
    os.close(out)
    assert first is not None and rest is not None
    assert len(first) == MOST_BYTES and len(first + rest) == MOST_BYTES + 10
    assert not reader.is_terminal
    reader.remember(["never shown"])
    reader.complete(lambda line: [])
