"""The card that puts questions to the person, one after another: options by number or arrows, one or several of them,
or an answer in words of one's own."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from codewhale.frontends.tui.asking.card import Card, Patience
from codewhale.frontends.tui.keys import bindings
from codewhale.frontends.tui.palette import Palette
from codewhale.frontends.tui.screens.hints import hint
from codewhale.frontends.tui.screens.tones import Line, Span, flat, wrap
from codewhale.frontends.tui.words import Words
from codewhale.protocol.events import Envelope, QuestionAsked

MOST_OPTIONS = 9
MOST_QUESTIONS = 20
# What the model reads as the label of an answer in the person's own words.
OWN = "Other"


class QuestionCard(Card):
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
        self.cursor = 0
        self.marked: set[int] = set()
        self._answers: dict[int, dict[str, Any]] = {}

    def compose(self) -> ComposeResult:
        """The question with its options, the line for other words, the keys."""
        yield self.page
        yield self.line
        yield self.hints

    # -------------------------------------------------------------- what is shown

    @property
    def question(self) -> Mapping[str, Any]:
        """The one at hand."""
        return self.questions[self.at] if self.at < len(self.questions) else {}

    @property
    def options(self) -> list[Mapping[str, Any]]:
        """Its options."""
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

    def _lines(self, width: int) -> tuple[list[Line], list[tuple[int, int]]]:
        """(what is drawn, where each option begins and ends in it)."""
        lines: list[Line] = wrap(((flat(str(self.question.get("question", "")), 2000), "bold text"),), width)
        if self.several:
            lines.append(((self.words("asking.several_may"), "muted"),))
        spots = []
        for number, option in enumerate(self.options):
            first = len(lines)
            lines += self._option(number, option, width)
            spots.append((first, len(lines) - 1))
        last = len(self.options)
        lines.append((*self._edge(last, f"{last + 1} "), (self.words("asking.own_words"), self._tone(last))))
        spots.append((len(lines) - 1, len(lines) - 1))
        return lines, spots

    def _option(self, number: int, option: Mapping[str, Any], width: int) -> list[Line]:
        box = ("[x] " if number in self.marked else "[ ] ") if self.several else ""
        edge = self._edge(number, f"{number + 1} {box}")
        room = max(8, width - sum(len(text) for text, _ in edge))
        label = (flat(str(option.get("label", "")), 200), self._tone(number))
        said = flat(str(option.get("description", "")), 600)
        pieces = wrap((label, (f"  {said}" if said else "", "muted")), room)
        indent: Span = (" " * (width - room), "muted")
        return [(*edge, *pieces[0]), *((indent, *piece) for piece in pieces[1:])]

    def _edge(self, number: int, text: str) -> tuple[Span, Span]:
        here = number == self.cursor
        return ("› " if here else "  ", "bold accent"), (text, "bold accent" if here else "muted")

    def _tone(self, number: int) -> str:
        return "bold accent" if number == self.cursor else "text"

    def _keys(self) -> Iterable[Line]:
        words, keys = self.words, self.keys
        if self.writing:
            yield ((words("asking.answer_keys"), "muted"),)
            return
        yield ((f"1-{len(self.options) + 1}", "bold accent"), (f" {words('asking.numbers')}", "muted"))
        yield hint("question.choose", words("asking.done" if self.several else "asking.choose"), keys)
        if self.several:
            yield hint("question.mark", words("asking.mark"), keys)
        yield hint("question.write", words("asking.own"), keys)
        if self.at:
            yield hint("question.back", words("asking.back"), keys)
        yield hint("question.cancel", words("asking.skip"), keys)
        yield hint("question.leave", words("asking.leave"), keys)

    # -------------------------------------------------------------- what is answered

    def pressed(self, key: str) -> bool:
        """A number takes or marks its option."""
        if key not in "123456789" or int(key) > len(self.options) + 1:
            return False
        self.cursor = int(key) - 1
        if self.several:
            self.action_mark()
        else:
            self.action_choose()
        return True

    def action_previous(self) -> None:
        """The option before."""
        self._move(-1)

    def action_next(self) -> None:
        """The next option."""
        self._move(1)

    def _move(self, by: int) -> None:
        self.cursor = (self.cursor + by) % (len(self.options) + 1)
        self.lay_out()

    def action_mark(self) -> None:
        """Mark the option at the cursor, or take the mark away."""
        if self.cursor == len(self.options):
            self.action_write()
        elif self.several:
            self.marked ^= {self.cursor}
            self.lay_out()

    def action_choose(self) -> None:
        """Take the option at the cursor; of several, those that are marked."""
        if self.several and self.marked:
            self._answered([str(self.options[number].get("label", "")) for number in sorted(self.marked)])
        elif self.cursor == len(self.options):
            self.action_write()
        else:
            self._answered([str(self.options[self.cursor].get("label", ""))])

    def action_write(self) -> None:
        """Answer in words of one's own."""
        self.cursor = len(self.options)
        self.write(True, self.words("asking.answer"))

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
        """The question before."""
        if self.at:
            self._turn_to(self.at - 1)

    def _turn_to(self, number: int) -> None:
        self.at, self.cursor, self.marked = number, 0, set()
        self.page.scroll_home(animate=False)
        self.lay_out()

    def action_cancel(self) -> None:
        """Close the line, or leave all of it unanswered."""
        if self.writing:
            self.write(False)
            return
        self.post_message(self.Answered(self.answer()))
