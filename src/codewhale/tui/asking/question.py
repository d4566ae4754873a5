"""The card that puts questions to the person, one after another: one option, several of them, or an answer in words
of one's own."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from codewhale.display.asks import shown_question
from codewhale.display.palette import Palette
from codewhale.display.text import Span, Spans, flat, wrap_whole
from codewhale.display.words import Words
from codewhale.protocol.events import Envelope, QuestionAsked
from codewhale.tui.asking.card import AnswerRow, AskCard, Patience
from codewhale.tui.keys import bindings
from codewhale.tui.paint import CURSOR
from codewhale.tui.widgets import hint, moves

MOST_OPTIONS = 9
MOST_QUESTIONS = 20
# What the model reads as the label of an answer in the person's own words.
OWN = "Other"


class QuestionCard(AskCard):
    """Asks one to several questions; the answers go out together."""

    PANEL = "question"
    BINDINGS: ClassVar[list[BindingType]] = bindings("question")

    def __init__(
        self, words: Words, palette: Palette, envelope: Envelope, patience: Patience | None, keys: Mapping[str, str]
    ) -> None:
        super().__init__(words, palette, envelope, patience or Patience(), keys)
        assert isinstance(envelope.event, QuestionAsked)
        self.questions: Sequence[Mapping[str, Any]] = envelope.event.questions[:MOST_QUESTIONS]
        self.at = 0
        self.marked: set[int] = set()
        self._answers: dict[int, dict[str, Any]] = {}

    def compose(self) -> ComposeResult:
        yield self.page
        yield self.line
        yield self.hints

    # -------------------------------------------------------------- what is shown

    @property
    def question(self) -> Mapping[str, Any]:
        if self.at >= len(self.questions):
            return {}
        return shown_question(self.request, self.questions[self.at], self.words)

    @property
    def options(self) -> list[Mapping[str, Any]]:
        given = self.question.get("options") or ()
        return [option for option in given if isinstance(option, Mapping)][:MOST_OPTIONS]

    @property
    def several(self) -> bool:
        """Whether several options may be marked."""
        return any(self.question.get(key) is True for key in ("multiple", "multi_select", "multiSelect"))

    def lay_out(self) -> None:
        """Show the question; the option at the cursor is always seen."""
        if not self.is_mounted:
            return
        header = flat(str(self.question.get("header", "")), 60) or self.words("asking.question_title")
        number = self.words("asking.several", number=self.at + 1, count=len(self.questions))
        self.retitle(f"{header} · {number}" if len(self.questions) > 1 else header)
        self.show_hints(list(self._keys()))
        lines, spots = self._lines(self.inner - 1)
        self.page.styles.height = min(len(lines), self.room())
        self.page.show(lines)
        first, last = spots[min(self.cursor, len(spots) - 1)]
        self.call_after_refresh(self._see, first, last)

    def _see(self, first: int, last: int) -> None:
        height, top = max(1, self.page.size.height), self.page.scroll_offset.y
        if first < top or last - first >= height:
            self.page.scroll_to(y=first, animate=False)
        elif last >= top + height:
            self.page.scroll_to(y=last - height + 1, animate=False)

    def _lines(self, width: int) -> tuple[list[Spans], list[tuple[int, int]]]:
        """(what is drawn, where each option begins and ends in it)."""
        lines: list[Spans] = wrap_whole(((flat(str(self.question.get("question", "")), 2000), "bold text"),), width)
        if self.several:
            lines.append(((self.words("asking.several_may"), "muted"),))
        spots = []
        for number, option in enumerate(self.options):
            first = len(lines)
            lines += self._option(number, option, width)
            spots.append((first, len(lines) - 1))
        for number, row in enumerate(self.rows[len(self.options) :], len(self.options)):
            lines.append((self._edge(number), (row.label, self._tone(number))))
            spots.append((len(lines) - 1, len(lines) - 1))
        return lines, spots

    @property
    def rows(self) -> Sequence[AnswerRow]:
        """The options, words of one's own, and where several may be marked a row that sends them."""
        words = self.words
        done = (AnswerRow("done", words("asking.done", n=len(self.marked))),) if self.several else ()
        return (*(AnswerRow("option", "") for _ in self.options), AnswerRow("own", words("asking.own_words")), *done)

    def _option(self, number: int, option: Mapping[str, Any], width: int) -> list[Spans]:
        box = ("[x] " if number in self.marked else "[ ] ") if self.several else ""
        edge = (self._edge(number), (box, self._tone(number)))
        room = max(8, width - sum(len(text) for text, _ in edge))
        label = (flat(str(option.get("label", "")), 200), self._tone(number))
        said = flat(str(option.get("description", "")), 600)
        pieces = wrap_whole((label, (f"  {said}" if said else "", "muted")), room)
        indent: Span = (" " * (width - room), "muted")
        return [(*edge, *pieces[0]), *((indent, *piece) for piece in pieces[1:])]

    def _edge(self, number: int) -> Span:
        return CURSOR if number == self.cursor else "  ", "bold accent"

    def _tone(self, number: int) -> str:
        return "bold accent" if number == self.cursor else "text"

    def _keys(self) -> Iterable[Spans]:
        words, keys = self.words, self.keys
        if self.writing:
            yield ((words("asking.answer_keys"), "muted"),)
            return
        yield moves(self.PANEL, words("asking.move"), keys)
        mark = self.several and self.rows[self.cursor].name == "option"
        yield hint("question.choose", words("asking.mark" if mark else "asking.choose"), keys)
        if self.at:
            yield hint("question.back", words("asking.back"), keys)
        yield hint("question.cancel", words("asking.skip"), keys)
        yield hint("question.leave", words("asking.leave"), keys)

    # -------------------------------------------------------------- what is answered

    def action_choose(self) -> None:
        """Do what the row at the cursor says: of several options each is marked, and the last row sends them."""
        if self.writing:
            return
        match self.rows[self.cursor].name:
            case "own":
                self.write(True, self.words("asking.answer"))
            case "option" if self.several:
                self.marked ^= {self.cursor}
                self.lay_out()
            case "option":
                self._answered([self._label(self.cursor)])
            case "done" if self.marked:
                self._answered([self._label(number) for number in sorted(self.marked)])

    def _label(self, number: int) -> str:
        options = [option for option in self.questions[self.at].get("options") or () if isinstance(option, Mapping)]
        return str(options[number].get("label", ""))

    @on(Input.Submitted)
    def _written(self, event: Input.Submitted) -> None:
        event.stop()
        text = event.value.strip()
        if text:
            self.write(False)
            self._go_on({"label": OWN, "value": text})

    def _answered(self, labels: Sequence[str]) -> None:
        self._go_on({"label": ", ".join(labels), "value": list(labels) if self.several else labels[0]})

    def _go_on(self, answer: dict[str, Any]) -> None:
        """Keep an answer; after the last one all go out."""
        self._answers[self.at] = {"id": str(self.question.get("id", "")), **answer}
        if self.at + 1 < len(self.questions):
            self._turn_to(self.at + 1)
            return
        answers = tuple(self._answers[number] for number in sorted(self._answers))
        self.post_message(self.Answered(self.answer(answers=answers)))

    def action_back(self) -> None:
        if self.at:
            self._turn_to(self.at - 1)

    def _turn_to(self, number: int) -> None:
        self.at, self.cursor, self.marked = number, 0, set()
        self.page.scroll_home(animate=False)
        self.lay_out()

    def action_cancel(self) -> None:
        if self.writing:
            self.write(False)
            return
        self.post_message(self.Answered(self.answer()))
