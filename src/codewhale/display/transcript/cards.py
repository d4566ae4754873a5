"""A tool call as lines: one line that says what it is about, and below it what it shows, folded to its end or its
beginning."""

from collections.abc import Sequence

import msgspec

from codewhale.display.text import Span, StyledLine, cells, clean, ends, fit, fold_hard, one_row, wrap
from codewhale.display.transcript.blocks import ASKING, DONE, FAILED, RUNNING, WAITING, CallCard
from codewhale.display.transcript.code import counts, diff_lines, diff_rows
from codewhale.display.transcript.markdown import Cell, Pen, markdown_lines, table_lines
from codewhale.display.words import Words
from codewhale.lib.text import one_line
from codewhale.protocol.blocks import Block as Display
from codewhale.protocol.blocks import ChecklistBlock, DiffBlock, MarkdownBlock, TableBlock, TerminalBlock

_STATES = ("open", "allowed", "allowed_session", "allowed_always", "denied", "cancel", "timeout", "answered")
GLYPHS = {
    WAITING: ("◌", "muted"),
    ASKING: ("?", "warning"),
    RUNNING: ("◐", "accent"),
    DONE: ("✓", "success"),
    FAILED: ("✗", "error"),
}
_CHECKS = {"completed": ("☑", "success"), "in_progress": ("◐", "accent")}
# Lines of one display that are shown folded, and opened; what is beyond is in the pager.
FOLDED = {DiffBlock: 16, TerminalBlock: 8, TableBlock: 8, ChecklistBlock: 16, MarkdownBlock: 10}
OPENED = 400
TAIL = 6
_FAILED_LINES = 4
_MOST_ROW = 2_000
_MOST_CELL = 300
_MOST_MARKDOWN = 30_000
_INDENT: Span = ("  ", "text")
_BAR: tuple[Span, Span] = (("  ", "text"), ("│ ", "border"))
# Tables whose rows are places in files: the columns of the path and the line.
_HITS = {("file", "line", "text"): 2, ("place", "name", "text"): 1, ("place", "score"): 1}


def state_text(words: Words, state: str) -> str:
    """How an approval or a question was answered, in words."""
    return words(f"transcript.state_{state}") if state in _STATES else one_row(state)


class DrawOptions(msgspec.Struct, frozen=True):
    """How wide a block is drawn, whether it is opened, and what time it is (seconds since the epoch, 0 for never)."""

    width: int
    opened: bool = False
    now: float = 0.0


class CardDrawer:
    """Draws cards."""

    def __init__(self, words: Words, pen: Pen) -> None:
        self._words = words
        self._pen = pen

    def lines(self, card: CallCard, view: DrawOptions) -> list[StyledLine]:
        return [*self._head(card, view), *self._body(card, view)]

    def _head(self, card: CallCard, view: DrawOptions) -> list[StyledLine]:
        glyph, colour = GLYPHS[card.status]
        name = one_row(card.name)
        first: list[Span] = [(f"{glyph} ", colour), (fit(name, max(8, view.width // 2)), "text bold")]
        subject = one_row(card.subject)
        meta = self._meta(card, view.now)
        if view.opened:
            spans = [*first, (f" {subject}" if subject else "", "text"), *meta]
            return wrap(spans, view.width, (), (_INDENT,))
        room = view.width - sum(cells(text) for text, _ in (*first, *meta)) - 1
        if room < 12 and meta:
            head = StyledLine(
                (*first, (f" {fit(subject, view.width - sum(cells(text) for text, _ in first) - 1)}", "text"))
            )
            return [head, *wrap(meta, view.width, (_INDENT,), (_INDENT,))]
        return [StyledLine((*first, *(((f" {fit(subject, room)}", "text"),) if subject else ()), *meta))]

    def _meta(self, card: CallCard, now: float) -> list[Span]:
        """What is said of a call behind what it is about."""
        words, found = self._words, []
        if card.status == RUNNING and card.started and now > card.started:
            found.append((words("transcript.running", time=time_text(words, now - card.started)), "accent"))
        elif card.status in (ASKING, WAITING, RUNNING):
            found.append((words(f"transcript.{card.status}"), "muted"))
        if card.answer:
            found.append((state_text(words, card.answer), "muted"))
        for display in card.display:
            if isinstance(display, DiffBlock):
                added, removed = counts(display.diff)
                found += [(f"+{added}", "added"), (f"-{removed}", "removed")]
            elif isinstance(display, TerminalBlock) and display.exit_code:
                found.append((words("transcript.exit", code=display.exit_code), "error"))
        if card.status == FAILED and card.error:
            found.append((one_row(card.error)[:60], "error"))
        if card.ms >= 100:
            found.append((time_text(words, card.ms / 1000), "muted"))
        if card.repairs:
            found.append((words("transcript.guessed" if card.lossy else "transcript.repaired"), "warning"))
        return [span for text, style in found for span in ((" · ", "muted"), (text, style))]

    # ------------------------------------------------------------------ what it shows

    def _body(self, card: CallCard, view: DrawOptions) -> list[StyledLine]:
        if card.tail:
            rows = card.tail[-(OPENED if view.opened else TAIL) :]
            return self._rows(rows, view, len(card.tail) - len(rows), "muted")
        lines = [line for display in card.display for line in self._display(display, card, view)]
        if card.repairs and view.opened:
            codes = one_row(" ".join(card.repairs))
            lines += wrap(
                [(self._words("transcript.repairs", codes=codes), "muted")], view.width, (_INDENT,), (_INDENT,)
            )
        if not card.display and card.said and (view.opened or card.status == FAILED):
            lines += self._said(card, view)
        if card.shortened:
            text = self._words("transcript.shortened", n=card.shortened)
            lines += wrap([(text, "muted")], view.width, (_INDENT,), (_INDENT,))
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
            text = one_row(ends(row, _MOST_ROW))
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
                return self._diff(display, card, view, most)
            case TableBlock():
                return self._table(display, view, most)
            case ChecklistBlock():
                return self._checklist(display, view, most)
            case MarkdownBlock():
                drawn = markdown_lines(self._pen, display.text[:_MOST_MARKDOWN], view.width - 2)
                lines = [StyledLine((_INDENT, *line.spans), line.fill) for line in drawn[:most]]
                return lines + self.more(len(drawn) - most, view.width)

    def _terminal(self, display: TerminalBlock, card: CallCard, view: DrawOptions, most: int) -> list[StyledLine]:
        output = display.output.rstrip("\n")
        rows = output.rsplit("\n", most)
        left = rows.pop(0).count("\n") + 1 if len(rows) > most else 0
        lines: list[StyledLine] = []
        command = clean(display.command).strip()
        if command and (view.opened or one_line(display.command, 300) != card.subject):
            for row in command.split("\n", 20)[:20]:
                lines += fold_hard(self._pen.colours.single(row, "bash"), view.width, (*_BAR[:1], ("$ ", "accent")))
        return lines + (self._rows(rows, view, left, "text") if output else [])

    def _diff(self, display: DiffBlock, card: CallCard, view: DrawOptions, most: int) -> list[StyledLine]:
        rows = diff_rows(display.diff, most + 1)
        path = one_row(display.path)
        lines = (
            []
            if path in card.subject or path == "."
            else [StyledLine((_INDENT, (fit(path, view.width - 2), "accent")))]
        )
        named = path in ("", ".")
        drawn = diff_lines(rows[:most], display.path, view.width - 2, self._pen.colours, named)
        lines += [StyledLine((_INDENT, *line.spans), line.fill) for line in drawn]
        return lines + self.more(display.diff.count("\n") - most if len(rows) > most else 0, view.width)

    def _table(self, display: TableBlock, view: DrawOptions, most: int) -> list[StyledLine]:
        if not display.rows:
            return wrap([(self._words("transcript.search_none"), "muted italic")], view.width, (_INDENT,), (_INDENT,))
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
