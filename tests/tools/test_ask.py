from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from codewhale.protocol.errors import ToolError
from codewhale.protocol.tools import Origin
from codewhale.tools.ask import AskTools
from support.calls import call, payload, refused


class Person:
    """Answers with the first option, or as told."""

    def __init__(self, fails: ToolError | None = None, *, silent: bool = False) -> None:
        self.asked: list[tuple[str, Sequence[dict[str, Any]], float]] = []
        self.fails, self.silent = fails, silent

    def attended(self, session: str) -> bool:
        return self.fails is None

    async def question(
        self, session: str, questions: Sequence[dict[str, Any]], seconds: float
    ) -> tuple[dict[str, Any], ...]:
        self.asked.append((session, questions, seconds))
        if self.fails is not None:
            raise self.fails
        if self.silent:
            return ()
        return tuple(
            {"id": question["id"], "label": question["options"][0]["label"], "value": question["options"][0]["label"]}
            for question in questions
        )


def question(name: str = "db", labels: str = "ab") -> dict[str, Any]:
    options = [{"label": label, "description": "d"} for label in labels]
    return {"header": "Database", "id": name, "question": "Which one?", "options": options}


def test_request_user_input_asks_and_answers() -> None:
    person = Person()
    result = call(AskTools(person), "request_user_input", {"questions": [question("one"), question("two", "xyz")]})
    answers = [{"id": "one", "label": "a", "value": "a"}, {"id": "two", "label": "x", "value": "x"}]
    assert payload(result) == {"answers": answers}
    assert result.origin is Origin.PERSON
    assert person.asked == [("s", [question("one"), question("two", "xyz")], 300.0)]


def test_nobody_there_and_no_answer() -> None:
    nobody = ToolError("not_available", "nobody is here")
    with pytest.raises(ToolError, match="nobody is here"):
        call(AskTools(Person(nobody)), "request_user_input", {"questions": [question()]})
    assert refused(AskTools(Person(silent=True)), "request_user_input", {"questions": [question()]}).kind == (
        "execution_failed"
    )


@pytest.mark.parametrize(
    ("questions", "field"),
    [
        ([question("db"), question("db")], "questions[1].id"),
        ([question(labels="ab"), question("x", "aba")], "questions[1].options[2].label"),
    ],
)
def test_what_repeats_is_refused_with_a_call_that_works(questions: list[dict[str, Any]], field: str) -> None:
    person = Person()
    tools = AskTools(person)
    error = refused(tools, "request_user_input", {"questions": questions})
    assert error.field == field
    assert person.asked == []
    assert error.fix is not None
    assert call(tools, error.fix.name, error.fix.arguments).ok


def test_counts_are_bounded() -> None:
    for questions in ([], [question(str(n)) for n in range(4)], [question(labels="a")], [question(labels="abcd")]):
        with pytest.raises(msgspec.ValidationError):
            call(AskTools(Person()), "request_user_input", {"questions": questions})
