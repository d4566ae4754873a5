"""Each kind of block as lines, in colour for the view and as plain text for whoever reads line by line."""

from collections.abc import Callable
from typing import Any

from codewhale.display.leaving import money
from codewhale.display.text import PROSE, Span, StyledLine, cells, clean, columns, ends, fit, one_row, safe_rows, wrap
from codewhale.display.transcript.blocks import (
    RUNNING,
    AskRecord,
    CallCard,
    Countdown,
    Explored,
    NoteBlock,
    Receipt,
    TextBlock,
    TranscriptBlock,
    Work,
    Writing,
    note_text,
)
from codewhale.display.transcript.calls import call_text
from codewhale.display.transcript.cards import OPENED, CardDrawer, DrawOptions, state_text, time_text
from codewhale.display.transcript.markdown import Growing, Pen
from codewhale.display.words import Words

_INDENT: Span = ("  ", "text")
_BAR: tuple[Span, Span] = (("  ", "text"), ("│ ", "border"))
_TINT = "on:surface"
_PERSON = f"text {_TINT}"
_PERSON_BAR: tuple[Span] = (("┃ ", f"user bold {_TINT}"),)
# Words of the person that are longer are folded to their beginning.
_LONG_CHARS = 2_400
_LONG_ROWS = 24
_SHOWN_ROWS = 12
_NOTE_ROWS = 6
_WANTED_ROWS = 100
_ASKED_ROWS = 4
_MOST_ROW = 2_000
_LEAST_TEXT = 8
# Texts that still grow are kept as they were drawn, so many at once.
_MOST_GROWING = 8
_LEVELS = {"warning": ("! ", "warning"), "error": ("✗ ", "error")}
_ENDINGS = {"done": "success", "denied": "warning", "interrupted": "warning", "budget": "warning"}
_PLAIN_WIDTH = 1_000
# The columns of a child's task beside what it does.
_ABOUT = 40
_GOOD, _BAD, _STOPPED = ("✓", "success"), ("✗", "error"), ("■", "warning")
_WORK = {
    "completed": _GOOD, "done": _GOOD, "ok": _GOOD, "failed": _BAD, "infra": _BAD, "timedout": _BAD, "denied": _BAD,
    "budget": _BAD, "cancelled": _STOPPED, "interrupted": _STOPPED, "killed": _STOPPED, "stale": _STOPPED,
}  # fmt: skip


class Drawer:
    """Draws blocks. Holds the parser and lexers, and texts that are growing; `stop` is the key that stops a turn."""

    def __init__(self, words: Words, stop: str = "") -> None:
        self._words = words
        self._pen = Pen()
        self._cards = CardDrawer(words, self._pen, stop)
        self._growing: dict[int, Growing] = {}
        self._draw: dict[type, Callable[[Any, DrawOptions], list[StyledLine]]] = {
            TextBlock: self._said,
            CallCard: self._cards.lines,
            Explored: self._cards.explored,
            AskRecord: self._asked,
            Work: self._work,
            NoteBlock: self._note,
            Receipt: self._receipt,
            Writing: self._writing,
            Countdown: self._countdown,
        }

    def lines(self, block: TranscriptBlock, view: DrawOptions) -> list[StyledLine]:
        return self._draw[type(block)](block, view)

    def below(
        self, former: TranscriptBlock | None, block: TranscriptBlock, width: int, opened: bool, now: float
    ) -> list[StyledLine]:
        """The lines of a block with the gap between it and the one before."""
        within = 2 if block.group >= 0 else 0
        lines = self.lines(block, DrawOptions(width - within, opened, now))
        if within:
            lines = [StyledLine((_INDENT, *line.spans), line.fill) for line in lines]
        return [StyledLine(), *lines] if lines and gap_before(former, block) else lines

    def warm(self) -> None:
        """Load the parser and the lexers' package."""
        self._pen.warm()

    # ------------------------------------------------------------------ words

    def _said(self, block: TextBlock, view: DrawOptions) -> list[StyledLine]:
        match block.who:
            case "model":
                return [StyledLine((_INDENT, *line.spans), line.fill) for line in self._markdown(block, view.width - 2)]
            case "person":
                return self._person(block, view)
            case "thought":
                return self._folded(block, view, self._thought_head(block, view))
        first = one_row(block.text.strip().partition("\n")[0][:_MOST_ROW])
        return self._folded(block, view, self._words("transcript.told_words", text=first))

    def _markdown(self, block: TextBlock, width: int) -> list[StyledLine]:
        """The lines of markdown; of what still grows only the open end is drawn again."""
        growing = self._growing.get(block.id)
        if growing is None or growing.width != width or growing.taken > len(block.text):
            growing = Growing(self._pen, width, block.opening)
        growing.feed(block.text[growing.taken :])
        if block.id < 0:
            self._growing[block.id] = growing
            for old in list(self._growing)[:-_MOST_GROWING]:
                del self._growing[old]
            return growing.lines()
        return growing.whole()

    def _person(self, block: TextBlock, view: DrawOptions) -> list[StyledLine]:
        long = block.size > _LONG_CHARS or block.text.count("\n") > _LONG_ROWS
        folded = not view.opened and (long or block.part > 0)
        if folded and block.part:
            return []
        rows = block.text.rstrip("\n").split("\n")
        shown = rows[:_SHOWN_ROWS] if folded else rows
        width = min(view.width, PROSE + 2)
        lines: list[StyledLine] = []
        for row in shown:
            text = one_row(row[: _LONG_CHARS // 4] if folded else row)
            lines += wrap([(text, _PERSON)], width, _PERSON_BAR, _PERSON_BAR)
        left = block.size - sum(map(len, shown))
        if folded and left > len(shown):
            more = self._words("transcript.more_chars", n=f"{left:,}")
            lines += wrap([(more, f"muted italic {_TINT}")], width, _PERSON_BAR, _PERSON_BAR)
        return [StyledLine(line.spans, _TINT) for line in lines]

    def _thought_head(self, block: TextBlock, view: DrawOptions) -> str:
        if block.id < 0 and not block.seconds:
            now = max(0.0, view.now - block.began) if view.now and block.began else 0.0
            return self._words("transcript.thinking", time=time_text(self._words, now))
        if block.seconds:
            return self._words("transcript.thought", time=time_text(self._words, block.seconds))
        return self._words("transcript.thought_once")

    def _folded(self, block: TextBlock, view: DrawOptions, head: str) -> list[StyledLine]:
        """Words that are one line until they are opened."""
        if not view.opened:
            return [] if block.part else [self._head_line("▸", head, view.width)]
        lines = [] if block.part else [self._head_line("▾", head, view.width)]
        for row in clean(block.text).strip("\n").split("\n"):
            lines += wrap([(row, "muted italic")], min(view.width, PROSE + 4), _BAR, _BAR)
        return lines

    def _head_line(self, glyph: str, text: str, width: int) -> StyledLine:
        return StyledLine(((f"{glyph} ", "muted"), (fit(text.replace("\n", " "), width - 2), "muted")))

    # ------------------------------------------------------------------ the record

    def _asked(self, block: AskRecord, view: DrawOptions) -> list[StyledLine]:
        if block.card and not view.opened:
            return []
        words = self._words
        good = block.state.startswith(("allowed", "answered"))
        glyph, colour = ("?", "warning") if block.state == "open" else (("✓", "success") if good else ("✗", "error"))
        state = state_text(words, block.state)
        if block.kind == "question":
            head = words("transcript.question", state=state)
        else:
            head = words(f"transcript.{block.kind}", tool=one_row(block.subject), state=state)
        head = words("asking.by", asker=one_row(block.asker), title=head) if block.asker else head
        lines = wrap([(f"{glyph} ", colour), (head, "text")], view.width, (), (_INDENT,))
        rows = [(name, row) for name, text in block.rows for row in _asked_rows(block, name, text)]
        most = OPENED if view.opened else _ASKED_ROWS
        for name, row in rows[:most]:
            shown = ends(row, _MOST_ROW * 3 if view.opened else _MOST_ROW // 3)
            lines += wrap([(shown, "code" if name in ("command", "url") else "text")], view.width, _BAR, _BAR)
        lines += self._cards.more(len(rows) - most, view.width)
        if block.reason and (view.opened or block.state == "open"):
            lines += wrap([(one_row(block.reason), "muted")], view.width, _BAR, _BAR)
        return lines

    def _work(self, block: Work, view: DrawOptions) -> list[StyledLine]:
        glyph, colour = ("◐", "accent") if block.status == RUNNING else _WORK.get(block.status.lower(), ("✗", "error"))
        label = f"{self._words(f'transcript.{block.kind}')} {one_row(block.name)}"
        role = f"({one_row(block.role)}) " if block.role else ""
        first: list[Span] = [(f"{glyph} ", colour), (f"{fit(label, max(8, view.width // 3))} ", "text bold")]
        ends_with = self._work_ends(block, view.now)
        text, now = (one_row(part) for part in self._at_work(block))
        if view.opened:
            text = " — ".join(filter(None, (one_row(block.text), now)))
            tail = [(f" · {end}", "muted") for end in ends_with]
            return wrap([*first, (role, "muted"), (text, "text"), *tail], view.width, (), (_INDENT,))
        taken = sum(cells(part) for part, _ in first)
        if now and taken + cells(text) + sum(cells(end) + 3 for end in ends_with) > view.width:
            text = now
        least = taken + min(cells(text), max(_LEAST_TEXT, view.width // 3))
        while ends_with and least + sum(cells(end) + 3 for end in ends_with) > view.width:
            ends_with.pop()
        role = role if least + sum(cells(end) + 3 for end in ends_with) + cells(role) <= view.width else ""
        tail = [(f" · {end}", "muted") for end in ends_with]
        room = view.width - taken - cells(role) - sum(cells(part) for part, _ in tail)
        return [StyledLine((*first, (role, "muted"), (fit(text, room), "text"), *tail))]

    def _at_work(self, block: Work) -> tuple[str, str]:
        """What it is about with what it does now, and that alone; what a child came to stands alone."""
        now = call_text(self._words, block.call) if block.call is not None else block.latest
        if block.kind != "child" or not now:
            return " — ".join(filter(None, (block.text, now))), ""
        return (f"{fit(one_row(block.text), _ABOUT)} — {now}" if block.status == RUNNING else now), now

    def _work_ends(self, block: Work, now: float) -> list[str]:
        """How it stands, for how long, and what it has used; the first of them says most."""
        words, state = self._words, block.status.lower()
        seconds = block.seconds
        if block.status == RUNNING:
            seconds = now - block.started if now and block.started else 0.0
            said = [time_text(words, seconds)] if seconds >= 1 else [] if now else [words("transcript.work_running")]
        else:
            code = f" {block.exit_code}" if block.exit_code else ""
            said = [f"{words(f'transcript.work_{state}') if state in _WORK else one_row(state)}{code}"]
            said += [time_text(words, seconds)] if seconds >= 0 else []
        said += [words("transcript.steps", n=block.steps)] if block.steps else []
        return [*said, *([words("transcript.tokens", n=rounded(block.tokens))] if block.tokens > 0 else [])]

    def _note(self, block: NoteBlock, view: DrawOptions) -> list[StyledLine]:
        if block.key == "told" and not view.opened:
            return []
        said = note_text(self._words, block)
        mark, style = _LEVELS.get(block.level, ("· ", "muted"))
        if block.detail:
            mark = "▾ " if view.opened else "▸ "
        rows = said.strip("\n").split("\n")
        most = OPENED if view.opened else _WANTED_ROWS if block.asked else _NOTE_ROWS
        lines: list[StyledLine] = []
        for row in rows[:most]:
            lines += wrap(
                [(ends(row, _MOST_ROW), style)], view.width, (_INDENT if lines else (mark, style),), (_INDENT,)
            )
        lines += self._cards.more(len(rows) - most, view.width)
        if block.detail and view.opened:
            for row in clean(block.detail).strip("\n").split("\n")[:OPENED]:
                lines += wrap([(row, "muted")], view.width, _BAR, _BAR)
        return lines

    def _receipt(self, block: Receipt, view: DrawOptions) -> list[StyledLine]:
        items = _receipt_items(self._words, block)
        tone = _ENDINGS.get(block.status, "error")
        sign = "✓" if block.status == "done" else "■" if tone == "warning" else "✗"
        lines: list[StyledLine] = []
        row: list[Span] = [(f"{sign} ", tone)]
        for text, style in items:
            joint = " · " if len(row) > 1 else ""
            if joint and columns(row) + cells(joint + text) > view.width:
                lines += wrap(row, view.width, (), (_INDENT,))
                row, joint = [_INDENT], ""
            row += [(joint, "muted"), (text, style)]
        lines += wrap(row, view.width, (), (_INDENT,))
        if block.reason and block.status not in ("done", "interrupted"):
            for part in clean(ends(block.reason, _MOST_ROW)).split("\n"):
                lines += wrap([(part, tone)], min(view.width, PROSE), (_INDENT,), (_INDENT,))
        return lines

    # ------------------------------------------------------------------ what is on its way

    def _writing(self, block: Writing, view: DrawOptions) -> list[StyledLine]:
        return [self._head_line("◌", f"{call_text(self._words, CallCard(name=block.name))} …", view.width)]

    def _countdown(self, block: Countdown, view: DrawOptions) -> list[StyledLine]:
        left = max(0.0, block.until - view.now) if view.now else block.delay
        text = self._words(
            "transcript.retry_broke" if block.broke else "transcript.retry",
            attempt=block.attempt,
            attempts=block.attempts,
            time=time_text(self._words, left),
            reason=one_row(block.reason),
        )
        return wrap([("↻ ", "warning"), (text, "warning")], view.width, (), (_INDENT,))


def lines_of(block: TranscriptBlock, words: Words, said: bool = True) -> list[str]:
    """A block as plain lines, opened and not wrapped; safe to print. `said` as in DrawOptions."""
    found = Drawer(words).lines(block, DrawOptions(_PLAIN_WIDTH, opened=True, said=said))
    return [line.text.rstrip() for line in found]


def gap_before(former: TranscriptBlock | None, block: TranscriptBlock) -> bool:
    """Whether a blank line stands between two neighbours: around words, what a call shows, and behind a turn's end."""
    if former is None or block.group >= 0 or (isinstance(block, TextBlock) and block.part > 0):
        return False
    return _spacious(former) or _spacious(block)


def _spacious(block: TranscriptBlock) -> bool:
    return isinstance(block, Receipt | CallCard | Explored | Countdown | Writing) or (
        isinstance(block, TextBlock) and block.who != "told"
    )


def _receipt_items(words: Words, block: Receipt) -> list[Span]:
    usage = block.usage
    items: list[Span] = []
    if block.status != "done":
        known = block.status in ("failed", "infra", *_ENDINGS)
        ending = f"transcript.end_{block.status}" if known else "transcript.end_other"
        items.append((words(ending, status=one_row(block.status)), _ENDINGS.get(block.status, "error")))
    items.append((time_text(words, block.seconds), "muted"))
    if block.changed:
        items.append((words("transcript.files", n=block.changed), "muted"))
    if block.verified:
        items.append((words("transcript.verified"), "success"))
    elif block.stale and block.changed:
        items.append((words("transcript.stale"), "warning"))
    elif block.changed:
        items.append((words("transcript.unverified"), "warning"))
    asked, hit = usage.get("input") or 0, usage.get("cache_hit") or 0
    if asked:
        key = "transcript.tokens_cached" if hit else "transcript.tokens"
        size = rounded(asked + (usage.get("output") or 0))
        items.append((words(key, n=size, hit=f"{hit / asked:.0%}"), "muted"))
    if (cost := usage.get("cost")) is not None:
        items.append((money(cost, str(usage.get("currency") or "USD")), "muted"))
    return items


def rounded(count: int) -> str:
    """A number of tokens as people say it: 950, 6.1k, 120k, 1.2M."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.1f}{unit}" if count < 100 * size else f"{count / size:.0f}{unit}"
    return str(count)


def _asked_rows(block: AskRecord, name: str, text: str) -> list[str]:
    """What is asked about, character by character: nothing in it may pass unseen."""
    if block.kind == "question":
        return [*(safe_rows(name) if name else ()), *(f"→ {row}" for row in safe_rows(text) if text)]
    return safe_rows(text) if text else []
