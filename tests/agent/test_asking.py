"""What is put to a person: one event out, one answer in, and nothing left waiting."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from codewhale.protocol.errors import ToolError
from codewhale.protocol.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Event,
    QuestionAnswered,
    QuestionAsked,
)
from codewhale.protocol.modes import Authority
from codewhale.protocol.ops import Answer
from codewhale.protocol.tools import PathSubject
from codewhale.session.session import Session
from support.stage import Stage, staged, until

ASK = ApprovalAsked("", "call_1", "exec_shell", (PathSubject("a", write=True),), "exec_shell runs a program.")


def logged(session: Session, *kinds: type[Event]) -> list[Event]:
    """The events of these types in the log."""
    return [envelope.event for envelope in session.log.read() if isinstance(envelope.event, kinds)]


async def asked(stage: Stage, session: Session) -> tuple["asyncio.Task[Answer | None]", str]:
    """A waiting approval and its id."""
    waiting = asyncio.create_task(stage.asking.approval(stage.engine.turn(session.id), ASK))
    await until(lambda: bool(stage.asking.waiting(session.id)))
    return waiting, next(iter(stage.asking.waiting(session.id)))


@pytest.mark.parametrize("allowed", [True, False])
async def test_an_approval_is_what_the_person_says(home: Path, workspace: Path, allowed: bool) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open(authority=Authority.PERSON)
        waiting, request = await asked(stage, session)
        assert stage.engine.turn(session.id).waiting_for == "approval of exec_shell"
        assert stage.asking.answer(session, Answer(session.id, request, allowed=allowed))
        assert (await waiting is not None) is allowed
        assert stage.engine.turn(session.id).waiting_for == "" and stage.asking.waiting(session.id) == []
        question, answer = logged(session, ApprovalAsked, ApprovalAnswered)
    assert question == replace(ASK, request_id=request, seconds=300) and len(request) == len("ask_") + 32
    assert answer == ApprovalAnswered(request, allowed, "person")


async def test_only_the_first_answer_to_a_known_request_counts(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open(authority=Authority.PERSON)
        waiting, request = await asked(stage, session)
        assert not stage.asking.answer(session, Answer(session.id, "ask_00000000", allowed=True))
        assert stage.asking.answer(session, Answer(session.id, request, allowed=False))
        assert not stage.asking.answer(session, Answer(session.id, request, allowed=True))
        assert await waiting is None
        assert not stage.asking.answer(session, Answer(session.id, request, allowed=True))


async def test_an_answer_to_another_session_is_no_answer(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session, other = stage.open(authority=Authority.PERSON), stage.open(authority=Authority.PERSON)
        waiting, request = await asked(stage, session)
        assert not stage.asking.answer(other, Answer(other.id, request, allowed=True))
        waiting.cancel()
        await asyncio.wait([waiting])
        assert logged(session, ApprovalAnswered) == [ApprovalAnswered(request, False, "cancel")]
        assert stage.asking.waiting(session.id) == []


async def test_questions_come_back_as_they_were_answered(home: Path, workspace: Path) -> None:
    questions = [{"id": "db", "question": "Which?"}]
    async with staged(home, workspace) as stage:
        session = stage.open(authority=Authority.PERSON)
        waiting = asyncio.create_task(stage.asking.question(session.id, questions, 300.0))
        await until(lambda: bool(stage.asking.waiting(session.id)))
        request = next(iter(stage.asking.waiting(session.id)))
        stage.asking.answer(session, Answer(session.id, request, answers=({"id": "db", "label": "A"},)))
        assert await waiting == ({"id": "db", "label": "A"},)
        assert logged(session, QuestionAsked, QuestionAnswered) == [
            QuestionAsked(request, tuple(questions)),
            QuestionAnswered(request, ({"id": "db", "label": "A"},), "person"),
        ]


async def test_a_question_nobody_answers_in_time_is_a_timeout(home: Path, workspace: Path) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open(authority=Authority.PERSON)
        with pytest.raises(ToolError) as caught:
            await stage.asking.question(session.id, [{"id": "db"}], 0.01)
        assert caught.value.kind == "timeout"
        (answered,) = logged(session, QuestionAnswered)
        assert isinstance(answered, QuestionAnswered) and answered.by == "timeout"


@pytest.mark.parametrize("authority", [Authority.HEADLESS, Authority.AUTO])
async def test_where_nobody_is_there_nothing_is_asked(home: Path, workspace: Path, authority: Authority) -> None:
    async with staged(home, workspace) as stage:
        session = stage.open(authority=authority)
        with pytest.raises(ToolError) as caught:
            await stage.asking.question(session.id, [{"id": "db"}], 300.0)
        assert caught.value.kind == "not_available" and caught.value.fix is None
        assert logged(session, QuestionAsked) == []
