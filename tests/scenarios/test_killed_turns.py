"""What is left of a turn whose process was killed: the messages that waited, what was streamed, and which session it
was."""

import asyncio
import json
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from codewhale.cli.offline.stored_sessions import envelopes
from codewhale.display.transcript.blocks import NoteBlock, TextBlock
from codewhale.display.transcript.model import TranscriptModel
from codewhale.protocol.events import AnswerStreamed, MessageAdded, TurnFinished
from codewhale.protocol.modes import Authority
from codewhale.protocol.ops import CloseSession, EditQueue, OpenSession, RunCommand, SendMessage
from codewhale.protocol.stream import Finished, StreamEvent, TextDelta
from codewhale.protocol.views import GetQueue
from codewhale.testing import harness
from support.scenes import DeltaProvider, only, scene, watching

# Streams words until it is killed; what waits is sent when the model has begun.
CHILD = """
    import asyncio, sys
    from pathlib import Path
    from codewhale.protocol.events import AnswerStreamed
    from codewhale.protocol.modes import Authority
    from codewhale.protocol.ops import EditQueue, SendMessage
    from codewhale.protocol.stream import TextDelta
    from support.scenes import DeltaProvider, scene, watching

    class Endless(DeltaProvider):
        async def stream(self, body):
            for number in range(100_000):
                yield TextDelta(f"word{number} ")
                await asyncio.sleep(0.01)

    async def main(home, workspace):
        async with scene(home, workspace, Endless([]), {"API_KEY": "k-secret-value-17"}) as stage:
            session = await stage.open(authority=Authority.PERSON)
            async with watching(stage, session) as watch:
                await stage.client.submit(SendMessage(session, "Begin"))
                await watch.until(AnswerStreamed)
                for text in ("first wait", "second wait", "third wait k-secret-value-17"):
                    await stage.client.submit(SendMessage(session, text, "with context", "queue"))
                await stage.client.submit(SendMessage(session, "to be dropped", "", "steer"))
                await stage.client.submit(EditQueue(session, 0, ""))
                await stage.client.submit(EditQueue(session, 1, "second, changed"))
                await watch.until(AnswerStreamed, 2)
                print(session, flush=True)
                await asyncio.sleep(600)

    asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))
"""


def killed(home: Path, workspace: Path) -> str:
    """The session of a process that was killed in the middle of an answer."""
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD), str(home), str(workspace)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
        env={"PYTHONPATH": str(Path(__file__).parents[1]), "PATH": "/usr/bin:/bin", "HOME": str(home.parent)},
    )
    try:
        assert child.stdout is not None
        return child.stdout.readline().strip()
    finally:
        child.kill()
        child.communicate()


def shown(home: Path, session: str) -> TranscriptModel:
    model = TranscriptModel()
    for envelope in envelopes(str(home), session):
        model.take(envelope)
    return model


async def test_what_waited_is_there_again_and_is_sent_once(home: Path, workspace: Path) -> None:
    session = killed(home, workspace)
    answers: Sequence[Sequence[StreamEvent]] = [[TextDelta(f"Answer {n}."), Finished("stop")] for n in range(9)]
    provider = DeltaProvider(answers)
    async with scene(home, workspace, provider) as stage:
        # An empty session begun since is not the latest one of which anything was said.
        empty = await stage.open(authority=Authority.PERSON)
        assert await stage.client.submit(OpenSession(str(workspace), authority=Authority.PERSON, resume="latest")) in (
            session,
        )
        assert empty != session
        rows = await stage.client.query(GetQueue(session))
        assert [row.text for row in rows] == ["first wait", "second, changed", "third wait [redacted API_KEY]"]
        assert provider.requests == []
        output = await stage.client.submit(RunCommand(session, "/queue drop 2"))
        assert output.ok
        await stage.client.submit(EditQueue(session, 0, "first, edited"))
        # A fork does not send them a second time.
        fork = await stage.client.submit(OpenSession(str(workspace), authority=Authority.PERSON, fork=session))
        assert await stage.client.query(GetQueue(fork)) == ()
        async with watching(stage, session) as watch:
            await stage.client.submit(SendMessage(session, "Go on"))
            await watch.until(TurnFinished, 3)
        texts = [one.message.text for one in only(watch.events, MessageAdded) if one.message.role == "user"]
        assert [text.split("\n")[0] for text in texts] == [
            "Go on", "first, edited", "third wait [redacted API_KEY]"
        ]  # fmt: skip
        assert "with context" in texts[1]
        assert await stage.client.query(GetQueue(session)) == ()
        await stage.client.submit(CloseSession(session))
        again = await stage.client.submit(OpenSession(str(workspace), authority=Authority.PERSON, resume=session))
        assert await stage.client.query(GetQueue(again)) == ()


async def test_nobody_who_is_not_there_sends_what_a_person_left_waiting(home: Path, workspace: Path) -> None:
    session = killed(home, workspace)
    async with harness(home, workspace, [{"text": "Done."}]) as stage:
        await stage.turn("Go on", await stage.open(resume=session, authority=Authority.AUTO))
        assert len(stage.provider.requests) == 1
        await stage.client.submit(CloseSession(session))
        await stage.client.submit(OpenSession(str(workspace), authority=Authority.PERSON, resume=session))
        assert len(await stage.client.query(GetQueue(session))) == 3


async def test_what_was_streamed_is_shown_with_a_mark_and_not_sent_back(home: Path, workspace: Path) -> None:
    session = killed(home, workspace)
    before = [block.text for block in shown(home, session).settled if isinstance(block, TextBlock)]
    assert not any("word0" in text for text in before)
    async with harness(home, workspace, [{"text": "Whole."}]) as stage:
        await stage.turn("Go on", await stage.open(resume=session))
        model = shown(home, session)
        texts = [block.text for block in model.settled if isinstance(block, TextBlock)]
        assert any(text.startswith("word0 word1 ") for text in texts) and texts[-1] == "Whole."
        marks = [block.key for block in model.settled if isinstance(block, NoteBlock)]
        assert marks.count("killed_partial") == 1 and marks.index("killed_partial") < marks.index("resumed")
        assert "word1" not in json.dumps(json.loads(stage.provider.requests[-1])["messages"])


async def test_a_whole_answer_is_shown_once(home: Path, workspace: Path) -> None:
    class Slow(DeltaProvider):
        async def stream(self, body: bytes):  # type: ignore[no-untyped-def]
            for number in range(70):
                yield TextDelta(f"word{number} ")
                await asyncio.sleep(0.01)
            yield Finished("stop")

    async with scene(home, workspace, Slow([])) as stage:
        session = await stage.open()
        await stage.turn("Begin", session)
        await stage.client.submit(CloseSession(session))
        await stage.client.submit(OpenSession(str(workspace), resume=session))
        log = [envelope.event for envelope in envelopes(str(home), session)]
    assert only(log, AnswerStreamed)
    blocks = shown(home, session).settled
    assert sum("word0 " in block.text for block in blocks if isinstance(block, TextBlock)) == 1
    assert not [block for block in blocks if isinstance(block, NoteBlock) and block.key.startswith("killed")]
