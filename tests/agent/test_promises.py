"""Words that promise a deed and hold none: told from answers by form and moment, in whatever language."""

from pathlib import Path

import msgspec
import pytest

from codewhale.agent.incomplete_turn import Moment, promises, says_done
from codewhale.catalog.registry import Catalog
from codewhale.protocol.modes import Mode

FOLDER = Path(__file__).parent / "promises"
CATALOG = Catalog.load()
FIRST = Moment("Fix the failing test.", Mode.AGENT)
READ = msgspec.structs.replace(FIRST, called=True)
ACTED = msgspec.structs.replace(READ, acted=True)


def lines(name: str) -> list[str]:
    """The texts of a file, one a line, `\\n` for a line break."""
    told = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [line.replace("\\n", "\n") for line in told if line and not line.startswith("#")]


def promised(text: str, moment: Moment = FIRST) -> bool:
    return promises(text, moment, lambda name: CATALOG.resolve(name) is not None)


@pytest.mark.parametrize("text", lines("announced.txt"))
def test_an_order_is_not_answered_by_words_of_what_comes_next(text: str) -> None:
    assert promised(text)


@pytest.mark.parametrize("text", lines("read.txt"))
def test_after_reads_alone_words_without_a_fact_are_no_answer(text: str) -> None:
    assert promised(text, READ)


@pytest.mark.parametrize("text", lines("ended.txt"))
def test_a_text_that_answers_asks_or_waits_is_an_end(text: str) -> None:
    """A report of what was done, and whatever is said to a question or in small talk."""
    assert not promised(text, ACTED)
    for asked in ("What does it hold?", "¿Qué hay dentro?", "里面有什么？", "hi", "ok"):
        assert not promised(text, msgspec.structs.replace(FIRST, asked=asked))


@pytest.mark.parametrize("text", lines("facts.txt"))
def test_a_text_that_says_a_fact_is_an_end(text: str) -> None:
    assert not promised(text) and not promised(text, READ)


@pytest.mark.parametrize("text", ["Now the tests:", "Creating it...", "Ich öffne die Datei …", "接下来：", "**Next:**"])
def test_what_ends_as_if_more_came_is_no_end_whatever_was_done_before(text: str) -> None:
    for moment in (FIRST, READ, ACTED, msgspec.structs.replace(FIRST, asked="hi")):
        assert promised(text, moment)


@pytest.mark.parametrize("text", ["Calling read_file on app.py.", "Llamo a `read_file` ahora.", "Nutze edit_file."])
def test_words_that_end_with_the_name_of_a_tool_announce_it(text: str) -> None:
    assert promised(text) and promised(text, READ)
    assert not promised(text, ACTED)


def test_in_plan_mode_what_follows_reads_is_the_plan() -> None:
    text = "I'll change the limit and then the test."
    assert not promised(text, msgspec.structs.replace(READ, mode=Mode.PLAN))
    assert promised(text, msgspec.structs.replace(FIRST, mode=Mode.PLAN))


def test_what_ends_with_code_is_an_answer() -> None:
    assert not promised("I'll write the function:\n```python\npass\n```")


@pytest.mark.parametrize(("text", "done"), [("DONE", True), ("**Done.**", True), ("All done.", False), ("", False)])
def test_one_word_says_that_the_message_before_stands(text: str, done: bool) -> None:
    assert says_done(text) is done
