"""What is asked, in lines, and what typed words come to."""

from typing import Any, Literal

import pytest

from codewhale.display.words import LANGUAGES, Words
from codewhale.headless.plain_text import PlainAsks
from codewhale.protocol.blocks import DiffBlock
from codewhale.protocol.decisions import BlockingClause, Offer
from codewhale.protocol.events import ApprovalAnswered, ApprovalAsked, QuestionAsked
from codewhale.protocol.ops import Answer
from codewhale.protocol.tools import CommandSubject, JobSubject, PathSubject, UrlSubject
from support.tuirecord import SESSION, envelopes

OPTIONS = [{"label": "Red", "description": "warm"}, {"label": "Blue"}]


def approval(command: str = "pytest -q", **fields: Any) -> ApprovalAsked:
    """An approval of a command."""
    return ApprovalAsked("r1", "c1", "exec_shell", (CommandSubject(command),), "runs a program", rule="mode", **fields)


def asked(*events: Any) -> tuple[PlainAsks, list[str]]:
    """What is open after events, and the lines of the last one."""
    asks = PlainAsks(Words("en"))
    lines: list[str] = []
    for envelope in envelopes(events):
        lines = asks.take(envelope)
    return asks, lines


def test_an_approval_says_all_of_it() -> None:
    offer = Offer("exec_shell", "prefix", "pytest")
    _, lines = asked(approval("echo \u202eevil\rgood", offer=offer, sandbox="workspace-write"))
    text = "\n".join(lines)
    assert "Run this command?" in text and "$ echo \\u202eevil\\x0dgood" in text
    assert "runs a program (mode)" in text and "starting with pytest" in text and "invisible" in text
    assert "writes in the workspace only, no network" in text and "a for always" in text


def test_chinese_says_what_a_rule_is_about() -> None:
    event = ApprovalAsked("r1", "c1", "exec_shell", (), "curl reaches the network", rule="shell.network")
    lines = PlainAsks(Words("zh-Hans")).take(envelopes([event])[0])
    assert "原因: 会使用网络：curl reaches the network (shell.network)" in lines


def test_the_end_of_a_long_command_is_seen() -> None:
    _, lines = asked(approval("\n".join(f"echo {number}" for number in range(5_000)) + "\nrm -rf /"))
    assert any("rm -rf /" in line for line in lines)
    assert any("more lines" in line for line in lines)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_kind_of_subject(language: str) -> None:
    subjects = (
        PathSubject("a.py", write=True),
        UrlSubject("https://x.example"),
        JobSubject("j1", "text"),
        JobSubject("j2"),
    )
    event = ApprovalAsked(
        "r1", "c1", "t", subjects, "why", (DiffBlock("a.py", "@@ -1 +1 @@\n-x\n+y\n"),), kind="elevation"
    )
    asks = PlainAsks(Words(language))
    text = "\n".join(asks.take(envelopes([event])[0]))
    assert all(part in text for part in ("a.py", "https://x.example", "j1", "text", "j2", "+y"))


@pytest.mark.parametrize(
    ("said", "answer", "reason"),
    [
        ("y", Answer(SESSION, "r1", allowed=True), ""),
        ("YES", Answer(SESSION, "r1", allowed=True), ""),
        ("n", Answer(SESSION, "r1"), ""),
        ("n, use make", Answer(SESSION, "r1"), "use make"),
        ("a", None, ""),
        ("s", None, ""),
        ("yes please do", None, ""),
        ("", None, ""),
        ("maybe", None, ""),
    ],
)
def test_typed_words_answer(said: str, answer: Answer | None, reason: str) -> None:
    asks, _ = asked(approval(offer=Offer("exec_shell", "prefix", "pytest")))
    reply = asks.reply(said)
    assert (reply.answer, reply.reason) == (answer, reason)
    assert (asks.open is None) == (answer is not None)


@pytest.mark.parametrize(("word", "remember"), [("a", "always"), ("s", "session")])
def test_what_grants_more_than_this_once_is_asked_again(word: str, remember: Literal["always", "session"]) -> None:
    asks, _ = asked(approval(offer=Offer("exec_shell", "prefix", "pytest")))
    assert "commands starting with pytest? (y/n)" in asks.reply(word).lines[0]
    assert asks.reply(word).answer is None and asks.reply("n").answer == Answer(SESSION, "r1")
    asks, _ = asked(approval(offer=Offer("exec_shell", "prefix", "pytest")))
    asks.reply(word)
    assert asks.reply("y").answer == Answer(SESSION, "r1", allowed=True, remember=remember)


def test_without_an_offer_nothing_is_remembered() -> None:
    asks, lines = asked(approval())
    assert "always" not in lines[-1] and asks.reply("a").answer is None


def test_one_after_another_and_what_was_answered_elsewhere_goes() -> None:
    second = ApprovalAsked("r2", "c2", "exec_shell", (CommandSubject("two"),), "why")
    asks, lines = asked(approval("one"), second)
    assert lines == []
    lines = asks.take(envelopes([ApprovalAnswered("r1", True)])[0])
    assert any("$ two" in line for line in lines) and asks.refuse() == Answer(SESSION, "r2")
    assert asks.ask() == [] and asks.reply("y").answer is None


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("2", {"label": "Blue", "value": "Blue"}),
        ("red", {"label": "Red", "value": "Red"}),
        ("green", {"label": "Other", "value": "green"}),
        ("3", {"label": "Other", "value": "3"}),
        ("1,2", {"label": "Other", "value": "1,2"}),
    ],
)
def test_a_question_is_answered(said: str, answer: dict[str, str]) -> None:
    asks, lines = asked(
        QuestionAsked("q1", ({"id": "c", "header": "Colour", "question": "Which?", "options": OPTIONS},))
    )
    assert lines[:3] == ["Colour: Which?", "1. Red: warm", "2. Blue"]
    assert asks.reply("").answer is None
    assert asks.reply(said).answer == Answer(SESSION, "q1", answers=({"id": "c", **answer},))


def test_several_options_may_be_chosen() -> None:
    asks, _ = asked(QuestionAsked("q1", ({"id": "c", "question": "Which?", "options": OPTIONS, "multiple": True},)))
    answer = asks.reply("1, 2").answer
    assert answer is not None and answer.answers == ({"id": "c", "label": "Red, Blue", "value": ["Red", "Blue"]},)


def test_the_input_of_a_command_is_part_of_what_is_asked() -> None:
    event = ApprovalAsked(
        "r1", "c1", "exec_shell", (CommandSubject("sh", stdin="touch\x1b made"),), "runs", rule="mode"
    )
    lines = PlainAsks(Words("en")).take(envelopes([event])[0])
    assert any("$ sh" in line for line in lines) and any("its input touch\\x1b made" in line for line in lines)


def test_who_asks_is_named_where_it_is_an_agent() -> None:
    asks = PlainAsks(Words("en"))
    ask = ApprovalAsked("r1", "c1", "exec_shell", (CommandSubject("make"),), "runs a program", asker="general one")
    question = QuestionAsked("q1", ({"id": "a", "header": "Which", "question": "This?", "options": []},), "explore two")
    first, second = envelopes([ask, question])
    assert asks.take(first)[0] == "general one asks: Run this command?"
    assert asks.take(second) == []  # one after another
    asks.reply("y")
    assert asks.ask()[0] == "explore two asks: Which: This?"


def test_what_a_clause_blocks_wants_its_id_typed() -> None:
    event = approval(kind="clause", clauses=(BlockingClause("C3FA", "main is released from"),))
    asks, lines = asked(event)
    assert "C3FA: main is released from" in lines and lines[-1].startswith("Type C3FA")
    for word in ("y", "", "yes", "a", "s", "h", "C3F"):
        reply = asks.reply(word)
        assert reply.answer is None and reply.lines[0].startswith("Type C3FA")
    assert asks.reply("c3fa").answer == Answer(SESSION, "r1", allowed=True, confirm="c3fa")
