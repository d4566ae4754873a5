"""Asking the person: the tool's face of the Asker port."""

from typing import Annotated, Any, NoReturn

import msgspec
from msgspec import Struct

from codewhale.lib.jsontext import pretty
from codewhale.protocol.blocks import TableBlock
from codewhale.protocol.errors import NextCall, ToolError
from codewhale.protocol.ports import Asker
from codewhale.protocol.tools import CallContext, Origin, ToolResult
from codewhale.tools.base import Args, Doc, tool

SECONDS = 300.0


class Option(Struct, frozen=True, forbid_unknown_fields=True):
    """One choice."""

    label: Annotated[str, Doc("The choice in 1 to 5 words.", min_length=1, max_length=100)]
    description: Annotated[str, Doc("What choosing it leads to, one sentence.", max_length=500)]


class Question(Struct, frozen=True, forbid_unknown_fields=True):
    """One question with its choices."""

    header: Annotated[str, Doc("A heading of one or two words.", min_length=1, max_length=40)]
    id: Annotated[str, Doc("A name for the answer, unique in this call, such as database.", min_length=1)]
    question: Annotated[str, Doc("The question, one sentence.", min_length=1, max_length=1000)]
    options: Annotated[list[Option], Doc("Two or three choices, the best first.", min_length=2, max_length=3)]


class RequestUserInput(Args, frozen=True):
    """The questions."""

    questions: Annotated[list[Question], Doc("One to three questions.", min_length=1, max_length=3)]


class AskTools:
    """The tool that puts questions to the person."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    @tool("request_user_input", effects=())
    async def request_user_input(self, args: RequestUserInput, call: CallContext) -> ToolResult:
        """Ask the person one to three short multiple-choice questions and wait for the answers. Use it only when
        the work cannot go on sensibly without a decision that neither the request nor the workspace settles; the
        person may also answer in free words. Waits up to 300 seconds. Returns JSON: answers, each with the
        question's id, the label chosen and its value. Where nobody can be asked it fails at once.
        """
        self._check(args)
        questions = [msgspec.to_builtins(question) for question in args.questions]
        call.progress("Waiting for the answer")
        answers = await self._asker.question(call.session, questions, SECONDS)
        if not answers:
            raise ToolError(
                "execution_failed",
                "The user closed the questions without an answer. Go on with the safest assumption and say which "
                "it was, or end the turn with the question in your answer.",
                field="questions",
                expected="an answer",
                received="none",
            )
        rows = tuple((str(answer.get("id", "")), str(answer.get("label", ""))) for answer in answers)
        return ToolResult(
            pretty({"answers": list(answers)}),
            display=(TableBlock(("question", "answer"), rows),),
            metadata={"answers": list(answers)},
            origin=Origin.PERSON,
        )

    def _check(self, args: RequestUserInput) -> None:
        seen: set[str] = set()
        for i, question in enumerate(args.questions):
            if question.id in seen:
                _refuse(args, f"questions[{i}].id", "an id no other question of the call has", question.id)
            seen.add(question.id)
            labels: list[str] = []
            for j, option in enumerate(question.options):
                if option.label in labels:
                    field = f"questions[{i}].options[{j}].label"
                    _refuse(args, field, "a label no other option of the question has", option.label)
                labels.append(option.label)


def _refuse(args: RequestUserInput, field: str, expected: str, received: str) -> NoReturn:
    raise ToolError(
        "invalid_input",
        f"`{field}` must be {expected}; got {received!r} a second time. Nobody was asked.",
        field=field,
        expected=expected,
        received=repr(received),
        fix=NextCall("request_user_input", {"questions": _distinct(args)}),
    )


def _distinct(args: RequestUserInput) -> list[dict[str, Any]]:
    """The same questions with repeated ids and labels numbered."""
    questions: list[dict[str, Any]] = []
    for number, question in enumerate(args.questions, 1):
        fixed = msgspec.to_builtins(question)
        if any(other["id"] == fixed["id"] for other in questions):
            fixed["id"] = f"{fixed['id']}_{number}"
        for place, option in enumerate(fixed["options"], 1):
            if any(other["label"] == option["label"] for other in fixed["options"][: place - 1]):
                option["label"] = f"{option['label'][:90]} ({place})"
        questions.append(fixed)
    return questions
