"""Both ends of a pipe on the event loop."""

import asyncio
import os

import pytest

from codewhale.process.streams import PipeReader, PipeWriter
from support.patience import HANG
from support.running import eventually


async def test_a_reader_hands_on_what_comes_and_says_when_it_ends() -> None:
    theirs, ours = os.pipe()
    heard: list[bytes] = []
    ended: list[bool] = []
    reader = PipeReader(theirs, heard.append, lambda: ended.append(True))
    os.write(ours, b"abc")
    await eventually(lambda: heard)
    assert reader.open and not ended
    os.close(ours)
    await eventually(lambda: ended)
    assert heard == [b"abc"] and not reader.open
    reader.close()


async def test_draining_takes_what_is_there_and_does_not_wait() -> None:
    theirs, ours = os.pipe()
    heard: list[bytes] = []
    reader = PipeReader(theirs, heard.append, lambda: None)
    os.write(ours, b"x" * 60_000)
    reader.drain()
    assert sum(map(len, heard)) == 60_000 and reader.open
    reader.close()
    os.close(ours)


async def test_a_writer_waits_for_its_reader() -> None:
    theirs, ours = os.pipe()
    heard: list[bytes] = []
    writer = PipeWriter(ours)
    writing = asyncio.create_task(writer.write(b"y" * 1_000_000))
    await asyncio.sleep(0)
    assert not writing.done()
    reader = PipeReader(theirs, heard.append, lambda: None)
    await writing
    await writer.finish()
    await eventually(lambda: not reader.open)
    assert sum(map(len, heard)) == 1_000_000
    with pytest.raises(BrokenPipeError):
        await writer.write(b"more")


async def test_feeding_a_reader_that_left_is_nobodys_error() -> None:
    theirs, ours = os.pipe()
    writer = PipeWriter(ours)
    os.close(theirs)
    writer.feed(b"z" * 100_000, then_close=True)
    await asyncio.sleep(0)
    writer.close()


async def test_closing_ends_a_write_that_waits() -> None:
    theirs, ours = os.pipe()
    writer = PipeWriter(ours)
    writing = asyncio.create_task(writer.write(b"w" * 1_000_000))
    await asyncio.sleep(0)
    writer.close()
    with pytest.raises(BrokenPipeError):
        await asyncio.wait_for(writing, HANG)
    os.close(theirs)
