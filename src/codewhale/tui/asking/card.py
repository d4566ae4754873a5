"""What approvals and questions share: a card that is answered by Enter on a row alone, takes no answer by accident, and
no more of the screen than it may."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from rich.cells import cell_len
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from codewhale.display.palette import Palette
from codewhale.display.text import Spans, fit, flat
from codewhale.display.words import Words
from codewhale.protocol.events import Envelope
from codewhale.protocol.ops import Answer
from codewhale.tui.input import once
from codewhale.tui.paint import CURSOR
from codewhale.tui.widgets import LOW, Field, Leafed, Page, TagLine, hint, in_rows

SHARE = 0.6
LEAST_ROWS = 4
# On a screen of fewer rows the card leaves so many to the composer, the bar and the end of the transcript; what has no
# room scrolls in it.
LEFT, CHOICES, LEAST_HEIGHT = 7, 3, 12
_BETWEEN = "  "
_LEAST_MORE = 6
LONGEST_LINE = 2000


class Patience(Struct, frozen=True):
    """Seconds: no key may have been pressed for `idle` before a card takes the focus, and it takes no answer until it
    has been seen with the focus for `seen`."""

    idle: float = 0.7
    seen: float = 0.4


class AnswerRow(Struct, frozen=True):
    """An answer to choose: `name` says what it does, `label` is what a person reads, `more` what stands behind it."""

    name: str
    label: str
    more: str = ""


class AskCard(Leafed, Vertical, can_focus=True):
    """A card in the asking panel. `PANEL` names its rows of keys.py. `free` tells whether the composer is empty: while
    it is not, Enter is for what stands there and nothing is answered."""

    PANEL = ""

    DEFAULT_CSS = """
    AskCard {
        height: auto; border: round $border; border-title-style: bold; border-title-color: $accent;
        background: $surface; padding: 0 1;
    }
    AskCard:focus, AskCard:focus-within { border: round $accent; }
    AskCard > Page { height: 1; background: $surface; }
    AskCard > TagLine { background: $surface; }
    AskCard > Input { display: none; background: $background; }
    AskCard.writing > Input { display: block; }
    """

    class Answered(Message):
        """The person's answer. `reason` goes to the model beside a no, `stop` ends the turn."""

        def __init__(self, answer: Answer, reason: str = "", stop: bool = False) -> None:
            super().__init__()
            self.answer = answer
            self.reason = reason
            self.stop_turn = stop

    class Left(Message):
        """The person goes back to writing; the card waits."""

    def __init__(
        self, words: Words, palette: Palette, envelope: Envelope, patience: Patience, keys: Mapping[str, str]
    ) -> None:
        super().__init__()
        self.words = words
        self.envelope = envelope
        self.keys = keys
        self.patience = patience
        self.arguments = ""
        self.free: Callable[[], bool] = lambda: True
        self.left = False
        self.away = ""
        self.armed = False
        self.cursor = 0
        self.page = Page(palette, "surface")
        self.page.can_focus = False
        self.facts = TagLine(palette, "surface")
        self.choices = TagLine(palette, "surface")
        self.hints = TagLine(palette, "surface")
        self.line = Field(max_length=LONGEST_LINE, select_on_focus=False)
        self._seen = 0.0
        self._place = ""

    # -------------------------------------------------------------- being answered

    @property
    def request(self) -> str:
        """The id of what is asked."""
        return str(getattr(self.envelope.event, "request_id", ""))

    def answer(self, **fields: Any) -> Answer:
        return Answer(self.envelope.session, self.request, **fields)

    def on_focus(self) -> None:
        """From now on the person sees that keys are answers; a moment later they are."""
        self.call_after_refresh(self._begin_to_be_seen)

    def _begin_to_be_seen(self) -> None:
        self._seen = time.monotonic()
        once(self, self.patience.seen, self._arm)

    def _arm(self) -> None:
        if self.has_focus and time.monotonic() - self._seen >= self.patience.seen * 0.99:
            self.armed = True
            self.lay_out()

    def on_blur(self) -> None:
        self.armed = False
        self.lay_out()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Nothing is answered before the card was seen, nor while something stands in the composer."""
        return (self.armed and self.free()) or self.writing or action in ("leave", "previous", "next")

    @property
    def rows(self) -> Sequence[AnswerRow]:
        return ()

    def action_previous(self) -> None:
        self._move(-1)

    def action_next(self) -> None:
        self._move(1)

    def _move(self, by: int) -> None:
        self.cursor = (self.cursor + by) % max(1, len(self.rows))
        self.lay_out()

    def choice_lines(self, width: int) -> list[Spans]:
        """The answers, one a line, the one at the cursor marked."""
        lines: list[Spans] = []
        count = len(self.rows)
        most = min(count, CHOICES - (self.screen.size.height <= LEAST_HEIGHT)) if self.low else count
        first = max(0, min(self.cursor - most // 2, count - most))
        for at, row in list(enumerate(self.rows))[first : first + most]:
            beyond = "↑ " if at == first > 0 else "↓ " if at == first + most - 1 < count - 1 else "  "
            edge, tone = (CURSOR, "bold accent") if at == self.cursor else (beyond, "text")
            label = fit(flat(row.label), width - len(edge))
            room = width - len(edge) - cell_len(label) - len(_BETWEEN)
            more = fit(flat(row.more), room) if row.more and room > _LEAST_MORE else ""
            lines.append(((edge, "bold accent"), (label, tone), *(((_BETWEEN + more, "muted"),) if more else ())))
        return lines

    def action_fold_all(self) -> None:
        """Nothing is folded."""

    def action_pager(self) -> None:
        """What the key does that shows all of something: here it stays in the card."""
        self.action_fold_all()

    def action_leave(self) -> None:
        if self.writing:
            self.write(False)
        self.post_message(self.Left())

    # -------------------------------------------------------------- writing into it

    @property
    def writing(self) -> bool:
        return self.has_class("writing")

    def write(self, on: bool, placeholder: str = "") -> None:
        """Open the line, or close it."""
        self.set_class(on, "writing")
        if on:
            self.line.placeholder = flat(placeholder)
            self.line.focus()
        else:
            self.line.value = ""
            self.focus()
        self.lay_out()

    # -------------------------------------------------------------- drawing

    def retitle(self, text: str) -> None:
        """Set the title, behind the name of a child that asks; no markup is read from it."""
        asker = str(getattr(self.envelope.event, "asker", ""))
        title = self.words("asking.by", asker=flat(asker, 60), title=text) if asker else text
        self.border_title = Content(flat(title, 160))

    def place(self, number: int, count: int) -> None:
        said = self.words("asking.waiting", number=number, count=count) if count > 1 else ""
        self._place = said
        self.border_subtitle = Content(said)

    def show_hints(self, hints: Sequence[Spans]) -> None:
        """Show which keys answer, or while none does, how to come to that."""
        wait: Spans = ((self.words("asking.text_waits" if self.away == "text" else "asking.wait"), "muted"),)
        if self.left or self.away == "elsewhere":
            wait = hint("app.answer", self.words("asking.to_answer"), self.keys)
        shown = hints if self.armed or self.writing else [wait]
        self.hints.show([] if self.low else in_rows(shown, self.inner))
        if self.low and not self._place:
            first = next(iter(in_rows(shown, self.inner - 2)), ())
            self.border_subtitle = Content("".join(text for text, _ in first))

    @property
    def low(self) -> bool:
        """Whether the screen has few rows."""
        return self.screen.size.height < LOW

    def room(self) -> int:
        """How many lines the page may have."""
        parts = (self.facts, self.choices, self.hints)
        taken = sum(line.get_content_height(self.size, self.size, self.inner) for line in parts)
        if self.low:
            return max(LEAST_ROWS, self.screen.size.height - LEFT - taken - (1 if self.writing else 0))
        most = int(self.screen.size.height * SHARE) - taken - 2 - (1 if self.writing else 0)
        return max(LEAST_ROWS, most)

    @property
    def inner(self) -> int:
        return max(20, self.content_size.width)

    def lay_out(self) -> None:
        """Lay everything out again."""

    def on_mount(self) -> None:
        self.lay_out()

    def on_resize(self) -> None:
        self.lay_out()

    def repaint(self, palette: Palette) -> None:
        for part in (self.page, self.facts, self.choices, self.hints):
            part.repaint(palette)
