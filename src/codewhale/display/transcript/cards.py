"""A tool call as lines: one line that says what it is about, and below it what it shows, folded to its end or its
beginning."""

from collections.abc import Sequence

import msgspec

from codewhale.display.text import (
    Span,
    StyledLine,
    cells,
    clean,
    columns,
    ends,
    fit,
    fold_hard,
    one_row,
    uncoloured,
    wrap,
)
from codewhale.display.transcript.blocks import ASKING, DONE, FAILED, RUNNING, WAITING, CallCard, Explored
from codewhale.display.transcript.calls import Spoken, counts, glyph_of, problems_in, tally_of
from codewhale.display.transcript.code import diff_lines, diff_rows
from codewhale.display.transcript.markdown import Cell, Pen, markdown_lines, table_lines
from codewhale.display.worded import worded
from codewhale.display.words import Words
from codewhale.protocol.blocks import Block as Display
from codewhale.protocol.blocks import ChecklistBlock, DiffBlock, MarkdownBlock, TableBlock, TerminalBlock

_STATES = (
    "open",
    "allowed",
    "allowed_session",
    "allowed_always",
    "allowed_sandbox",
    "changed",
    "denied",
    "cancel",
    "timeout",
    "answered",
)
_CHECKS = {"completed": ("☑", "success"), "in_progress": ("◐", "accent")}
# Lines of one display that are shown folded, and opened; what is beyond is in the pager.
FOLDED = {DiffBlock: 16, TerminalBlock: 5, TableBlock: 8, ChecklistBlock: 16, MarkdownBlock: 10}
OPENED = 400
# Of a patch over several files so many are shown, with so many rows each.
_FILES, _FILE_ROWS = 8, 6
_TAIL = 3
_FAILED_LINES = 8
# Errors that are no fault of the call: the heading says them.
_STOPPED = ("interrupted", "lost")
_PROBLEM_LINES = 4
_MOST_ROW = 2_000
_MOST_CELL = 300
_MOST_MARKDOWN = 30_000
_INDENT: Span = ("  ", "text")
_GAP: Span = ("  ", "muted")
_BAR: tuple[Span, Span] = (("  ", "text"), ("│ ", "border"))
# Tables whose rows are places in files: the columns of the path and the line.
_HITS = {("file", "line", "text"): 2, ("place", "name", "text"): 1, ("place", "score"): 1}


def state_text(words: Words, state: str) -> str:
    """How an approval or a question was answered, in words."""
    return words(f"transcript.state_{state}") if state in _STATES else one_row(state)


class DrawOptions(msgspec.Struct, frozen=True):
    """How wide a block is drawn, whether it is opened, and what time it is (seconds since the epoch, 0 for never).
    `said`: what the model was answered is shown in an opened call that has nothing else to show."""

    width: int
    opened: bool = False
    now: float = 0.0
    said: bool = True


class CardDrawer:
    """Draws cards; `stop` is the key that stops what runs."""

    def __init__(self, words: Words, pen: Pen, stop: str = "") -> None:
        self._words = words
        self._pen = pen
        self._stop = stop
        self._spoken = Spoken(words)

    def lines(self, card: CallCard, view: DrawOptions) -> list[StyledLine]:
        return [*self._head(card, view), *self._body(card, view)]

    def explored(self, group: Explored, view: DrawOptions) -> list[StyledLine]:
        """A group of calls that only look, in a line or two; opened it is the heading of their cards."""
        cards = [card for card in group.cards if card.status == DONE]
        running = [card for card in group.cards if card.status != DONE]
        if not group.cards:
            return []
        first = running[0] if running else cards[0]
        what = self._spoken.explored(cards)
        if running:
            verb = self._words("calls.exploring")
            now = (f"{self._spoken.verb(first)} {self._spoken.subject(first)}", "text")
            what = [*what, *([(" · ", "muted")] if what else []), now]
        elif len(cards) == 1 and not view.opened:
            verb, came = self._spoken.verb(first), ", ".join(text for text, _ in self._spoken.outcome(first))
            what = [(", ".join(filter(None, (self._spoken.subject(first), came))), "text")]
        else:
            verb = self._words("calls.explored")
        since = min((card.started for card in running if card.started), default=0.0)
        time = self._time(since, view.now) if running else self._took(sum(card.ms for card in cards))
        glyph, colour = glyph_of(RUNNING if running else DONE, view.now)
        spans: list[Span] = [(f"{glyph} ", colour), (f"{verb} ", "text bold"), *what]
        spans += time if columns((*spans, *time)) <= view.width else []
        return wrap(spans, view.width, (), (_INDENT,))[: None if view.opened else 3]

    def _head(self, card: CallCard, view: DrawOptions) -> list[StyledLine]:
        glyph, colour = glyph_of(card.status, view.now)
        verb = fit(self._spoken.verb(card), max(8, view.width // 2))
        first: list[Span] = [(f"{glyph} ", colour), (verb, "error bold" if card.status == FAILED else "text bold")]
        subject = self._spoken.subject(card)
        meta = self._meta(card, view.now)
        if view.opened:
            spans = [*first, (f"  {subject}" if subject else "", "text"), *meta]
            return wrap(spans, view.width, (), (_INDENT,))
        room = view.width - columns((*first, *meta)) - 2
        if room < min(12, cells(subject)) and meta:
            head = StyledLine((*first, (f"  {fit(subject, max(1, view.width - columns(first) - 2))}", "text")))
            return [head, *wrap(meta[1:], view.width, (_INDENT,), (_INDENT,))]
        return [StyledLine((*first, *(((f"  {fit(subject, room)}", "text"),) if subject else ()), *meta))]

    def _meta(self, card: CallCard, now: float) -> list[Span]:
        """What is said of a call behind what it is about: what came of it, and how long it took."""
        words = self._words
        pieces: list[list[Span]] = []
        if card.status in (ASKING, WAITING):
            pieces.append([(words(f"transcript.{card.status}"), "warning" if card.status == ASKING else "muted")])
        outcome = self._spoken.outcome(card)
        if outcome:
            pieces.append([span for at, one in enumerate(outcome) for span in ([(" ", "muted")] if at else []) + [one]])
        if card.answer:
            pieces.append([(state_text(words, card.answer), "error" if card.answer == "denied" else "muted")])
        if card.status == RUNNING:
            pieces.append(self._time(card.started, now))
        elif card.error in _STOPPED and card.answer != "cancel":
            pieces.append([(words(f"calls.error_{card.error}"), "warning")])
        pieces.append(self._took(card.ms))
        if card.repairs:
            pieces.append([(words("transcript.guessed" if card.lossy else "transcript.repaired"), "warning")])
        return [span for piece in pieces if piece for span in ((_GAP, *piece) if piece[0] != _GAP else piece)]

    def _time(self, since: float, now: float) -> list[Span]:
        """How long it has been running, and what stops it."""
        seconds = now - since if since and now > since else 0.0
        stop = self._words("calls.stop", stop=self._stop) if self._stop and seconds >= 1 else ""
        return [_GAP, (time_text(self._words, seconds), "accent"), *([_GAP, (stop, "muted")] if stop else [])]

    def _took(self, ms: int) -> list[Span]:
        return [_GAP, (time_text(self._words, ms / 1000), "muted")] if ms >= 100 else []

    # ------------------------------------------------------------------ what it shows

    def _body(self, card: CallCard, view: DrawOptions) -> list[StyledLine]:
        if card.tail:
            rows = card.tail[-(OPENED if view.opened else _TAIL) :]
            return self._rows(rows, view, len(card.tail) - len(rows) if view.opened else 0, "muted")
        lines = self._displays(card, view)
        if card.repairs and view.opened:
            codes = one_row(" ".join(card.repairs))
            lines += wrap(
                [(self._words("transcript.repairs", codes=codes), "muted")], view.width, (_INDENT,), (_INDENT,)
            )
        if not card.display and card.said and view.opened and view.said:
            lines += self._said(card, view)
        elif not card.display and card.status == FAILED and card.error not in _STOPPED:
            why = self._spoken.why(card)
            lines += wrap([(why, "error")], view.width, (_INDENT,), (_INDENT,)) if why else []
        if card.shortened:
            text = self._words("transcript.shortened", n=card.shortened)
            lines += wrap([(text, "muted")], view.width, (_INDENT,), (_INDENT,))
        return lines

    def _displays(self, card: CallCard, view: DrawOptions) -> list[StyledLine]:
        diffs = [display for display in card.display if isinstance(display, DiffBlock)]
        if len(diffs) < 2:
            return [line for display in card.display for line in self._display(display, card, view)]
        shown = diffs if view.opened else diffs[:_FILES]
        lines: list[StyledLine] = []
        for diff in shown:
            added, removed = counts(diff.diff)
            room = view.width - len(f"  +{added} -{removed}") - 2
            head = (
                (fit(one_row(diff.path), room), "accent"),
                ("  ", "text"),
                (f"+{added} ", "added"),
                (f"-{removed}", "removed"),
            )
            lines += [StyledLine((_INDENT, *head)), *self._diff(diff, view, OPENED if view.opened else _FILE_ROWS)]
        if left := len(diffs) - len(shown):
            more = self._words("transcript.more_files", n=left)
            lines += wrap([(more, "muted italic")], view.width, (_INDENT,), (_INDENT,))
        return lines

    def _said(self, card: CallCard, view: DrawOptions) -> list[StyledLine]:
        most = OPENED if view.opened else _FAILED_LINES
        rows = card.said.rstrip("\n").split("\n", most)
        left = rows.pop().count("\n") + 1 if len(rows) > most else 0
        return [*self._rows(rows, view, 0, "error" if card.status == FAILED else "muted"), *self.more(left, view.width)]

    def _rows(self, rows: Sequence[str], view: DrawOptions, before: int, style: str) -> list[StyledLine]:
        """Plain rows behind a bar, whole when they are opened; `before` counts those above that are not shown."""
        lines = self.more(before, view.width, above=True)
        for row in rows:
            text = one_row(ends(uncoloured(row), _MOST_ROW))
            if view.opened:
                lines += fold_hard(((text, style),), view.width, _BAR)
            else:
                lines.append(StyledLine((*_BAR, (fit(text, view.width - 4), style))))
        return lines

    def more(self, count: int, width: int, above: bool = False) -> list[StyledLine]:
        """How many lines are not shown."""
        if count <= 0:
            return []
        text = self._words("transcript.more_above" if above else "transcript.more_lines", n=count)
        return wrap([(text, "muted italic")], width, (_INDENT,), (_INDENT,))

    def _display(self, display: Display, card: CallCard, view: DrawOptions) -> list[StyledLine]:
        most = OPENED if view.opened else FOLDED[type(display)]
        match display:
            case TerminalBlock():
                return self._terminal(display, card, view, most)
            case DiffBlock():
                return self._diff(display, view, most)
            case TableBlock():
                return self._table(worded(display, self._words), view, most)
            case ChecklistBlock():
                return self._checklist(display, view, most)
            case MarkdownBlock():
                drawn = markdown_lines(self._pen, display.text[:_MOST_MARKDOWN], view.width - 2)
                lines = [StyledLine((_INDENT, *line.spans), line.fill) for line in drawn[:most]]
                return lines + self.more(len(drawn) - most, view.width)

    def _terminal(self, display: TerminalBlock, card: CallCard, view: DrawOptions, most: int) -> list[StyledLine]:
        output = display.output.rstrip("\n")
        lines: list[StyledLine] = []
        if view.opened:
            for row in clean(display.command).strip().split("\n", 20)[:20]:
                lines += fold_hard(self._pen.colours.single(row, "bash"), view.width, (*_BAR[:1], ("$ ", "accent")))
        elif tally_of(card):
            if card.status == DONE and not display.exit_code:
                return []  # the heading says it
            if problems := problems_in(output):
                left = output.count("\n") + 1 - len(problems[:_PROBLEM_LINES])
                return self._rows(problems[:_PROBLEM_LINES], view, 0, "error") + self.more(left, view.width)
            most = _FAILED_LINES
        elif card.status == FAILED:
            most = _FAILED_LINES
        rows = output.rsplit("\n", most)
        left = rows.pop(0).count("\n") + 1 if len(rows) > most else 0
        return lines + (self._rows(rows, view, left, "text") if output else [])

    def _diff(self, display: DiffBlock, view: DrawOptions, most: int) -> list[StyledLine]:
        rows = diff_rows(display.diff, most + _FILE_ROWS)
        if most <= _FILE_ROWS:  # what has changed comes first where there is little room
            rows = rows[max(0, next((at for at, row in enumerate(rows) if row.sign in ("+", "-")), 0) - 1) :]
        named = display.path in ("", ".")
        drawn = diff_lines(rows[:most], display.path, view.width - 2, self._pen.colours, named)
        lines = [StyledLine((_INDENT, *line.spans), line.fill) for line in drawn]
        return lines + self.more(display.diff.count("\n") - most if len(rows) > most else 0, view.width)

    def _table(self, display: TableBlock, view: DrawOptions, most: int) -> list[StyledLine]:
        if not display.rows:
            return []  # the heading says it
        rows = [[_cell(value) for value in row] for row in display.rows[:most]]
        place = _HITS.get(display.header)
        if place is not None:
            lines = [_hit(row, place, view.width) for row in rows]
        else:
            header = [Cell([[(_cell(name), "accent bold")]]) for name in display.header]
            drawn = table_lines(
                [header, *([Cell([[(value, "text")]]) for value in row] for row in rows)], view.width - 2
            )
            lines = [StyledLine((_INDENT, *line.spans)) for line in drawn]
        return lines + self.more(len(display.rows) - most, view.width)

    def _checklist(self, display: ChecklistBlock, view: DrawOptions, most: int) -> list[StyledLine]:
        lines: list[StyledLine] = []
        for status, text in display.items[:most]:
            glyph, colour = _CHECKS.get(status, ("☐", "muted"))
            style = {"completed": "muted", "in_progress": "text bold"}.get(status, "text")
            lines += wrap([(_cell(text), style)], view.width, (_INDENT, (f"{glyph} ", colour)), (("    ", "text"),))
        return lines + self.more(len(display.items) - most, view.width)


def _hit(row: list[str], place: int, width: int) -> StyledLine:
    """A row whose first columns are a place in a file."""
    where = ":".join(row[:place])
    text = "  ".join(row[place:]).strip()
    shown = fit(where, max(10, width - 3) if not text else max(10, width // 2))
    room = width - 4 - cells(shown)
    return StyledLine((_INDENT, (shown, "link"), *(((f"  {fit(text, room)}", "text"),) if text and room > 3 else ())))


def _cell(text: str) -> str:
    return one_row(ends(str(text), _MOST_CELL))


def time_text(words: Words, seconds: float) -> str:
    """A span of time as people say it."""
    if seconds < 60:
        return words("transcript.seconds", n=f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}")
    if seconds >= 3600:
        return words("transcript.hours", h=int(seconds // 3600), m=f"{int(seconds % 3600 // 60):02d}")
    return words("transcript.minutes", m=int(seconds // 60), s=f"{int(seconds % 60):02d}")
