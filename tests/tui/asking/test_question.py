"""The question card: one option, several, words of one's own, several questions; by Enter on a row alone."""

from codewhale.protocol.events import QuestionAsked
from codewhale.protocol.ops import Answer
from support.tuiasking import asked, question
from support.tuirecord import screen_text, typed, until

MORE = {
    "id": "extras",
    "header": "Extras",
    "question": "What else?",
    "multiple": True,
    "options": [{"label": name, "description": f"It has {name}."} for name in ("logs", "docs", "tests")],
}


def answered(*answers: dict[str, object], request: str = "ask_q") -> Answer:
    return Answer("s-recorded", request, answers=answers)


async def test_no_number_and_no_letter_answers() -> None:
    async with asked([question(MORE)]) as stage:
        await stage.armed()
        text = screen_text(stage.host)
        assert "Which database should it use?" in text and "› SQLite  One file, nothing to run." in text
        assert "Something else" in text and "Database" in text
        await typed(stage.pilot, [*"2 t", "enter"])
        assert stage.typed == "2 t" and stage.client.ops == [] and stage.panel.card.at == 0


async def test_arrows_and_enter_answer() -> None:
    async with asked([question()]) as stage:
        await stage.armed()
        await stage.press("down", "down", "down", "up", "up", "enter")
        await stage.gone()
        assert stage.client.ops == [answered({"id": "database", "label": "PostgreSQL", "value": "PostgreSQL"})]


async def test_words_of_ones_own() -> None:
    async with asked([question()]) as stage:
        await stage.armed()
        await stage.take_row("Something else")
        await until(stage.pilot, lambda: "your answer" in screen_text(stage.host))
        await stage.press("enter", *"t1 DB")
        await until(stage.pilot, lambda: "t1 DB" in screen_text(stage.host))
        await stage.press("enter")
        await stage.gone()
        assert stage.client.ops == [answered({"id": "database", "label": "Other", "value": "t1 DB"})]


async def test_writing_can_be_left() -> None:
    async with asked([question()]) as stage:
        await stage.armed()
        await stage.take_row("Something else")
        await stage.press("x", "escape")
        card = await stage.armed()
        assert not card.writing and stage.client.ops == []
        await stage.press("escape")
        await stage.gone()
        assert stage.client.ops == [answered()]


async def test_several_options_of_one_question() -> None:
    async with asked([QuestionAsked("ask_q", (MORE,))]) as stage:
        await stage.armed()
        assert "you can select several" in screen_text(stage.host)
        for row in ("logs", "tests", "docs", "docs"):
            await stage.take_row(row)
        assert "[x] logs" in screen_text(stage.host) and "[ ] docs" in screen_text(stage.host)
        await stage.take_row("Submit selected (2)")
        await stage.gone()
        assert stage.client.ops == [answered({"id": "extras", "label": "logs, tests", "value": ["logs", "tests"]})]


async def test_of_several_none_is_no_answer() -> None:
    async with asked([QuestionAsked("ask_q", (MORE,))]) as stage:
        await stage.armed()
        await stage.take_row("Submit selected (0)")
        assert stage.client.ops == [] and stage.panel.card is not None


async def test_several_questions_go_out_together() -> None:
    async with asked([question(MORE)]) as stage:
        await stage.armed()
        assert "question 1 of 2" in screen_text(stage.host)
        await stage.take_row("SQLite")
        await until(stage.pilot, lambda: "question 2 of 2" in screen_text(stage.host))
        await stage.press("left")
        await until(stage.pilot, lambda: "question 1 of 2" in screen_text(stage.host))
        await stage.take_row("PostgreSQL")
        await stage.take_row("logs")
        await stage.take_row("Submit selected (1)")
        await stage.gone()
        assert stage.client.ops == [
            answered(
                {"id": "database", "label": "PostgreSQL", "value": "PostgreSQL"},
                {"id": "extras", "label": "logs", "value": ["logs"]},
            )
        ]


async def test_hostile_questions_stay_in_their_lines() -> None:
    bad = "a\x1b[2J\u202e[bold]\r" + "字" * 300
    asks = [{"id": "x", "header": bad, "question": bad, "options": [{"label": bad, "description": bad * 3}] * 3}]
    async with asked([QuestionAsked("ask_q", tuple(asks))]) as stage:
        await stage.armed()
        for key in ("down", "down", "down"):
            text = screen_text(stage.host)
            assert "\x1b" not in text and "\u202e" not in text and "[bold]" in text and "›" in text
            assert stage.panel.card.size.height <= 15
            await stage.press(key)
        assert "› Something else" in screen_text(stage.host)


async def test_a_question_without_options_or_sense() -> None:
    asks = ({"id": "a", "question": "Why?"}, {"options": ["no option", {"label": "yes"}], "header": 3})
    async with asked([QuestionAsked("ask_q", asks)]) as stage:
        await stage.armed()
        await stage.take_row("Something else")
        await stage.press(*"so", "enter")
        await until(stage.pilot, lambda: "question 2 of 2" in screen_text(stage.host))
        await stage.armed()
        await stage.take_row("yes")
        await stage.gone()
        assert stage.client.ops == [
            answered({"id": "a", "label": "Other", "value": "so"}, {"id": "", "label": "yes", "value": "yes"})
        ]


async def test_no_questions_at_all_can_be_closed() -> None:
    async with asked([QuestionAsked("ask_q", ())]) as stage:
        await stage.armed()
        await stage.press("escape")
        await stage.gone()
        assert stage.client.ops == [answered()]
