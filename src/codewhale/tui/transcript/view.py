"""The transcript on the screen: takes events, shows their blocks, and is moved about in by key. What draws, copies and
pages blocks is imported when it is first needed."""

import asyncio
import bisect
import gc
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.message import Message

from codewhale.display.palette import Palette
from codewhale.display.text import PROSE, StyledLine
from codewhale.display.transcript.blocks import CallCard, Explored, NoteBlock, Receipt, TextBlock, TranscriptBlock, Work
from codewhale.display.transcript.model import TranscriptModel, counts_seconds
from codewhale.display.words import Words
from codewhale.protocol.events import Envelope, TurnStarted
from codewhale.protocol.ops import StatusView
from codewhale.protocol.views import SessionSummary, WorkspaceRow
from codewhale.tui.input import once
from codewhale.tui.keys import bindings
from codewhale.tui.transcript.pane import Pane
from codewhale.tui.transcript.search import PaneSearch, TextSearch

if TYPE_CHECKING:
    from codewhale.display.start import StartFacts
    from codewhale.display.transcript.drawing import Drawer
    from codewhale.tui.screens.context import ScreenContext
    from codewhale.tui.transcript.copying import Copier

# How long events are taken in before a frame, and from how many on it is said that they are.
_SLICE = 0.025
_BACKLOG = 3_000
_TICK = 1.0


class TranscriptSource:
    """A transcript with what is opened in it. `now` is the time that running things count to, `stop` the key that ends
    them; `start` is shown where the session was opened, until its first turn begins."""

    def __init__(self, words: Words, stop: str = "") -> None:
        self._words = words
        self._stop = stop
        self.clear()

    def clear(self) -> None:
        self.model = TranscriptModel()
        self.all_open = False
        self.now = 0.0
        self.start: StartFacts | None = None
        self._opened: dict[int, bool] = {}
        self._drawer: Drawer | None = None

    def __len__(self) -> int:
        return len(self.model.settled) + len(self.model.live)

    def block(self, index: int) -> TranscriptBlock:
        """The block at an index: the settled ones, then those on their way."""
        settled = self.model.settled
        return settled[index] if index < len(settled) else self.model.live[index - len(settled)]

    def lines(self, index: int, width: int) -> Sequence[StyledLine]:
        """The lines of a block with the gap before it."""
        block = self.block(index)
        if block.group >= 0 and not self.is_open(self.block(block.group)):
            return ()
        if self.start is not None and _opens(block):
            from codewhale.display.start import start_lines

            return [StyledLine(), *start_lines(self.start, self._words, width)]
        former = self.block(index - 1) if index else None
        return self.drawer.below(former, block, width, self.is_open(block), self.now)

    @property
    def drawer(self) -> "Drawer":
        if self._drawer is None:
            from codewhale.display.transcript.drawing import Drawer

            self._drawer = Drawer(self._words, self._stop)
        return self._drawer

    def warm(self) -> None:
        """Load what draws the blocks, beside the event loop."""
        self.drawer.warm()

    def estimate(self, index: int, width: int) -> int:
        """About how many lines a block takes."""
        block = self.block(index)
        if block.group >= 0 and not self.is_open(self.block(block.group)):
            return 0
        if isinstance(block, TextBlock) and block.who in ("model", "person"):
            return (not block.part) + 1 + block.text.count("\n") + len(block.text) // max(10, min(width, PROSE))
        if isinstance(block, CallCard):
            return 2 + min(8, sum(3 for _ in block.display))
        if isinstance(block, NoteBlock) and block.key == "told":
            return 0
        return 2 if isinstance(block, Receipt | Explored) else 1

    # ------------------------------------------------------------------ folding

    def is_open(self, block: TranscriptBlock) -> bool:
        """Whether all of a block is shown."""
        return self._opened.get(_key(block), self.all_open)

    def set_open(self, block: TranscriptBlock, opened: bool) -> list[int]:
        """Show all of a block, or its short form, in a group that is open; the indexes that this concerns."""
        self._opened[_key(block)] = opened
        if block.group >= 0 and opened and not self.is_open(group := self.block(block.group)):
            return self.set_open(group, opened)
        return self.siblings(block)

    def siblings(self, block: TranscriptBlock) -> list[int]:
        """The indexes of all parts of the words that a block belongs to and of what is shown in a group, its own for
        any other block."""
        if isinstance(block, Explored):
            last = max((card.id for card in block.cards), default=block.id)
            return [at for at in range(block.id, last + 1) if at == block.id or self.block(at).group == block.id]
        if not isinstance(block, TextBlock):
            return [self.index_of(block.id)]
        first = self.index_of(block.whole)
        found = [first]
        while found[-1] + 1 < len(self):
            other = self.block(found[-1] + 1)
            if not isinstance(other, TextBlock) or other.whole != block.whole:
                break
            found.append(found[-1] + 1)
        return found

    def open_all(self, opened: bool) -> None:
        """Show all of every block, or the short forms."""
        self.all_open = opened
        self._opened.clear()

    def index_of(self, block_id: int) -> int:
        """Where the block of an id stands; the end for one that is gone."""
        if block_id >= 0:
            return block_id
        live = self.model.live
        at = next((at for at, block in enumerate(live) if block.id == block_id), len(live) - 1)
        return len(self.model.settled) + max(0, at)

    def moved(self) -> dict[int, int]:
        """Which ids have become which since the last time: what was opened stays opened."""
        became = dict(self.model.became)
        self.model.became.clear()
        for old, new in became.items():
            if old in self._opened:
                self._opened[new] = self._opened.pop(old)
        return became


def _opens(block: TranscriptBlock) -> bool:
    return isinstance(block, NoteBlock) and block.key == "opened"


def _key(block: TranscriptBlock) -> int:
    return block.whole if isinstance(block, TextBlock) else block.id


class Transcript(Pane):
    """What happened, block by block."""

    BINDINGS: ClassVar = bindings("transcript")
    DEFAULT_CSS = "Transcript { height: 1fr; background: $background; }"

    class OpenFile(Message):
        """A file is to be opened in the person's editor; `line` is 0 where none is known."""

        def __init__(self, path: str, line: int) -> None:
            super().__init__()
            self.path = path
            self.line = line

    class OpenAgent(Message):
        """The transcript of an agent, by its session, is to be shown."""

        def __init__(self, session: str) -> None:
            super().__init__()
            self.session = session

    class Copied(Message):
        """Something was put into the clipboard: what it is, in words, and its size in characters. `whole` is False
        where only its beginning fitted; with a `size` of 0 there was nothing."""

        def __init__(self, what: str, size: int, whole: bool = True) -> None:
            super().__init__()
            self.what = what
            self.size = size
            self.whole = whole

    class Left(Message):
        """The person is done here: the composer has the keys again."""

    def __init__(
        self,
        words: Words,
        palette: Palette,
        id: str | None = None,
        now: Callable[[], float] = time.time,
        stop: str = "",
    ) -> None:
        self.source = TranscriptSource(words, stop)
        self._now = now
        super().__init__(palette, self.source, id=id)
        self._words = words
        self._palette = palette
        self.context: ScreenContext | None = None
        self._inbox: deque[Envelope] = deque()
        self._settled = 0
        self._live: list[tuple[int, int]] = []
        self._left_at: tuple[int, int] | None = None
        self._ticking = False
        self._large = False
        self._warm = False
        self._session = ""
        self._code = (-1, -1)
        self.before_frame = self._fold_events
        self.search = PaneSearch(self, words, self._search_for, self._reveal)

    # ------------------------------------------------------------------ what happens

    def begin(self, session: str) -> None:
        """Show another session, from its beginning."""
        self._session = session
        self._inbox.clear()
        self.source.clear()
        self._settled, self._live, self._left_at = 0, [], None
        self.cursor, self.follow = -1, True
        self.renew(0)
        self.search.close()
        self.wake()

    def take(self, envelope: Envelope) -> None:
        """Take an event; it is shown with the next frame."""
        if not self._session or envelope.session == self._session:
            self._inbox.append(envelope)
            self.wake()
            if not self._warm and self.is_mounted and isinstance(envelope.event, TurnStarted):
                self._warm = True
                self.run_worker(asyncio.to_thread(self.source.warm), group="warm", exit_on_error=False)

    def tell(self, text: str, detail: str = "", level: str = "error") -> None:
        """Show a line that is no event of the session, such as why there is none."""
        self.take_all()
        self.source.model.say(f"{text}\n{detail}".rstrip(), level)
        self.wake()

    def welcome(self, status: StatusView, place: WorkspaceRow, rows: list[SessionSummary], help: str) -> None:
        """Show how a new session stands, until its first turn begins; `help` is the key that shows all keys."""
        from codewhale.display.start import StartFacts, last_session

        if not self.source.model.turn_starts:
            self._start(StartFacts(status, place, last_session(rows, status.session), self._now(), help))

    def _start(self, facts: "StartFacts | None") -> None:
        self.source.start = facts
        for index, block in enumerate(self.source.model.settled):
            if _opens(block):
                self.changed(index)
        self.wake()

    def repaint(self, palette: Palette) -> None:
        self._palette = palette
        super().repaint(palette)

    def _fold_events(self) -> bool:
        """Fold what has come for as long as a frame allows; whether more is waiting."""
        until = time.monotonic() + _SLICE
        inbox, take = self._inbox, self.source.model.take
        while inbox:
            for _ in range(min(32, len(inbox))):
                take(inbox.popleft())
            if time.monotonic() > until:
                break
        if len(inbox) > _BACKLOG or self._large:
            self._large = bool(inbox)
            gc.freeze()  # else each collection of garbage goes through all that was read, for a second at its worst
        self._sync()
        searching = self.search.scan()
        self._keep_time()
        return bool(inbox) or searching

    def take_all(self) -> None:
        while self._inbox:
            self.source.model.take(self._inbox.popleft())
        self._sync()

    def _sync(self) -> None:
        """Have drawn again what has changed in the transcript."""
        model = self.source.model
        if self.source.start is not None and model.turn_starts:
            self._start(None)
        live = [(block.id, block.version) for block in model.live]
        whole, model.cut = min(self._settled, model.cut), len(model.settled)
        if (
            len(model.settled) != self._settled
            or whole < self._settled
            or [row[0] for row in live] != [row[0] for row in self._live]
        ):
            place = self._place()
            became = self.source.moved()
            self.renew(whole)
            self.grow()
            self._stay(place, became)
        else:
            for at, (now, then) in enumerate(zip(live, self._live, strict=True)):
                if now != then:
                    self.changed(self._settled + at)
        for block_id in model.touched:
            self.changed(block_id)
        model.touched.clear()
        self._settled, self._live = len(model.settled), live

    def _place(self) -> int:
        """The id of the block that is seen first, 0 for a settled one."""
        index = self._anchor[0] - self._settled
        return self._live[index][0] if 0 <= index < len(self._live) else 0

    def _stay(self, place: int, became: dict[int, int]) -> None:
        """Keep the block in sight whose id was `place`, whatever stands before it now."""
        if place < 0:
            self._anchor = self.source.index_of(became.get(place, place)), self._anchor[1]
        if self.cursor >= min(self._settled, self.source.model.cut):
            self.cursor = min(self.cursor, len(self.source) - 1)

    # ------------------------------------------------------------------ time

    def _keep_time(self) -> None:
        self.source.now = self._now() if self.source.model.running else 0.0
        if self.source.now and not self._ticking and not self._inbox:
            self._ticking = True
            once(self, _TICK, self._tick)

    def _tick(self) -> None:
        self._ticking = False
        model = self.source.model
        for block in (*model.open_calls.values(), *model.work.values()):
            self.changed(block.id if block.group < 0 else block.group)
        for at, live in enumerate(model.live):
            if counts_seconds(live):
                self.changed(len(model.settled) + at)
        self.wake()

    def hint(self) -> str:
        """How much has come below what is seen, or how much is still to be read."""
        if len(self._inbox) > _BACKLOG:
            return self._words("transcript.opening", n=f"{len(self._inbox):,}")
        if self.follow:
            self._left_at = None
            return ""
        last = len(self.source) - 1
        if self._left_at is None:
            self._left_at = last, self.heights.height(last)
        index, height = self._left_at
        grown = self.heights.total - self.heights.start(min(index, last)) - height
        return self._words("transcript.new_lines", n=grown) if grown > 0 else ""

    # ------------------------------------------------------------------ moving

    def action_page_up(self) -> None:
        self.move(-max(1, self.room - 2))

    def action_page_down(self) -> None:
        self.move(max(1, self.room - 2))

    def action_top(self) -> None:
        self.go_to_top()

    def action_bottom(self) -> None:
        self.go_to_end()

    def action_turn_up(self) -> None:
        index, line = self._anchor
        starts = self.source.model.turn_starts
        at = bisect.bisect_left(starts, index + (line > 0))
        if at:
            self.go_to(starts[at - 1])

    def action_turn_down(self) -> None:
        starts = self.source.model.turn_starts
        at = bisect.bisect_right(starts, self._anchor[0])
        if at < len(starts) and not self.follow:
            self.go_to(starts[at])
        else:
            self.go_to_end()

    def action_next(self) -> None:
        self._choose(1)

    def action_previous(self) -> None:
        self._choose(-1)

    def action_first(self) -> None:
        self.go_to_top()
        self._choose_from(0, 1)

    def action_last(self) -> None:
        self.go_to_end()
        self._choose_from(len(self.source) - 1, -1)

    def _choose(self, step: int) -> None:
        at = self.cursor + step if 0 <= self.cursor < len(self.source) else self.chosen
        self._choose_from(at, step)

    def _choose_from(self, at: int, step: int) -> None:
        while 0 <= at < len(self.source) and not self._stands(at):
            at += step
        if 0 <= at < len(self.source):
            self.cursor = at
            self.show_block(at)

    def _stands(self, index: int) -> bool:
        """Whether a block can be chosen: it is seen, and no later part of longer words."""
        return bool(self.lines_at(index)) and getattr(self.source.block(index), "part", 0) == 0

    @property
    def chosen(self) -> int:
        """The block that keys are about: the chosen one, else the last that is seen."""
        if 0 <= self.cursor < len(self.source):
            return self.cursor
        return self.seen[-1][0] if self.seen else -1

    @property
    def marked(self) -> int:
        """The block that is shown to be the one that keys are about."""
        return self.chosen if self.has_focus else -1

    def show_block(self, index: int) -> None:
        """Have a block in sight, from its first line."""
        lines = len(self.lines_at(index))
        if not all((index, line) in self.seen for line in range(min(lines, self.room))):
            first = self.seen[0] if self.seen else (0, 0)
            self.go_to(index, 0, above=0 if (index, 0) < first else max(0, self.room - min(lines, self.room)))
        self.draw()

    def on_click(self, event: events.Click) -> None:
        """Choose a block with the mouse; once more folds or unfolds it."""
        if event.y < len(self.seen):
            index = self.seen[event.y][0]
            if index == self.cursor:
                self.action_fold()
            self.cursor = index
            self.draw()

    def action_fold(self) -> None:
        if self.chosen >= 0:
            block = self.source.block(self.chosen)
            for index in self.source.set_open(block, not self.source.is_open(block)):
                self.changed(index)
            self.follow = False
            self.draw()

    def action_fold_all(self) -> None:
        self.source.open_all(not self.source.all_open)
        self.changed_all()
        self.draw()

    def action_back(self) -> None:
        if not self.search.close():
            self.cursor = -1
            self.post_message(self.Left())

    # ------------------------------------------------------------------ searching

    def _search_for(self, query: str) -> TextSearch:
        model = self.source.model
        return TextSearch(len(model.settled), lambda index: self._copier.searchable(model.settled[index]), query)

    def _reveal(self, index: int) -> None:
        """Unfold a block."""
        for changed in self.source.set_open(self.source.block(index), True):
            self.changed(changed)

    def action_find(self) -> None:
        self.search.open()

    def action_find_next(self) -> None:
        self.search.step(1)

    def action_find_previous(self) -> None:
        self.search.step(-1)

    # ------------------------------------------------------------------ taking things elsewhere

    @property
    def _copier(self) -> "Copier":
        from codewhale.tui.transcript.copying import Copier

        return Copier(self.source.model, self._words)

    def action_copy(self) -> None:
        if self.chosen >= 0:
            self._copy(*self._copier.block(self.source.block(self.chosen)))

    def action_copy_block(self) -> None:
        """Copy a code block of the chosen words; the next one each time."""
        if self.chosen >= 0:
            self._copy_code(self.chosen, 1)

    def action_copy_answer(self) -> None:
        self.take_all()
        self._copy("answer", self._copier.answer())

    def action_copy_code(self) -> None:
        """Copy a code block of the last answer; the one before it each time."""
        self.take_all()
        answer = self._copier.last_words()
        if answer is None:
            self._copy("block", "")
        else:
            self._copy_code(self.source.index_of(answer.whole), -1)

    def _copy_code(self, index: int, step: int) -> None:
        blocks = self._copier.code_blocks(self.source.block(index))
        former, number = self._code
        number = number + step if former == index else (0 if step > 0 else -1)
        self._code = index, number
        self._copy("block", blocks[number % len(blocks)] if blocks else "")

    def _copy(self, what: str, text: str) -> None:
        kept, whole = self._copier.bounded(text)
        if kept:
            self.app.copy_to_clipboard(kept)
        self.post_message(self.Copied(self._words(f"transcript.copied_{what}"), len(kept), whole))

    def action_open(self) -> None:
        """Open the file that the chosen block is about."""
        if self.chosen >= 0:
            self._open(*self._copier.place_of(self.source.block(self.chosen)))

    def action_open_last(self) -> None:
        """Open the file that was changed last."""
        self.take_all()
        self._open(self.source.model.last_file, 0)

    def _open(self, path: str, line: int) -> None:
        if path:
            self.post_message(self.OpenFile(path, line))
        else:
            self.app.bell()

    def action_pager(self) -> None:
        """Show all of the chosen block on a screen of its own; while none is, of the last call that is seen."""
        from codewhale.tui.transcript.pager import Pager

        self.take_all()
        seen = dict.fromkeys(index for index, _ in reversed(self.seen)) if self.cursor < 0 else {}
        calls = (index for index in seen if isinstance(self.source.block(index), CallCard | Explored))
        at = next(calls, self.chosen)
        block = self.source.block(at) if at >= 0 else None
        if isinstance(block, Work) and block.kind == "child":
            self.post_message(self.OpenAgent(block.key))
        elif block is not None:
            self.app.push_screen(Pager.of_block(self.source.model, block, self._words, self._palette, self.context))
