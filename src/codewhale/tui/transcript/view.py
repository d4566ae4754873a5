"""The transcript on the screen: takes events, shows their blocks, and is moved about in by key."""

import asyncio
import bisect
import gc
import time
from collections import deque
from collections.abc import Callable
from typing import ClassVar

from textual import events

from codewhale.display.palette import Palette
from codewhale.display.transcript.blocks import Countdown
from codewhale.display.words import Words
from codewhale.protocol.events import Envelope, TurnStarted
from codewhale.tui.input import once
from codewhale.tui.keys import bindings
from codewhale.tui.transcript.search import Search
from codewhale.tui.transcript.sheet import Sheet
from codewhale.tui.transcript.taking import Taking

# How long events are taken in before a frame, and from how many on it is said that they are.
_SLICE = 0.025
_BACKLOG = 3_000
_TICK = 1.0


class Transcript(Taking):
    """What happened, block by block."""

    BINDINGS: ClassVar = bindings("transcript")
    DEFAULT_CSS = "Transcript { height: 1fr; background: $background; }"

    def __init__(
        self, words: Words, palette: Palette, id: str | None = None, now: Callable[[], float] = time.time
    ) -> None:
        self.sheet = Sheet(words)
        self._now = now
        super().__init__(palette, self.sheet, id=id)
        self._words = words
        self._palette = palette
        self._inbox: deque[Envelope] = deque()
        self._settled = 0
        self._live: list[tuple[int, int]] = []
        self._left_at: tuple[int, int] | None = None
        self._ticking = False
        self._large = False
        self._warm = False
        self._session = ""

    # ------------------------------------------------------------------ what happens

    def begin(self, session: str) -> None:
        """Show another session, from its beginning."""
        self._session = session
        self._inbox.clear()
        self.sheet.clear()
        self._settled, self._live, self._left_at = 0, [], None
        self.cursor, self.follow = -1, True
        self.renew(0)
        self.close_search()
        self.wake()

    def take(self, envelope: Envelope) -> None:
        """Take an event; it is shown with the next frame."""
        if not self._session or envelope.session == self._session:
            self._inbox.append(envelope)
            self.wake()
            if not self._warm and self.is_mounted and isinstance(envelope.event, TurnStarted):
                self._warm = True
                self.run_worker(asyncio.to_thread(self.sheet.warm), group="warm", exit_on_error=False)

    def tell(self, text: str, detail: str = "", level: str = "error") -> None:
        """Show a line that is no event of the session, such as why there is none."""
        self.take_all()
        self.sheet.story.say(f"{text}\n{detail}".rstrip(), level)
        self.wake()

    def repaint(self, palette: Palette) -> None:
        """Draw in other colours."""
        self._palette = palette
        super().repaint(palette)

    def prepare(self) -> bool:
        """Fold what has come for as long as a frame allows; whether more is waiting."""
        until = time.monotonic() + _SLICE
        inbox, take = self._inbox, self.sheet.story.take
        while inbox:
            for _ in range(min(32, len(inbox))):
                take(inbox.popleft())
            if time.monotonic() > until:
                break
        if len(inbox) > _BACKLOG or self._large:
            self._large = bool(inbox)
            gc.freeze()  # else each collection of garbage goes through all that was read, for a second at its worst
        self._sync()
        searching = self.scan()
        self._keep_time()
        return bool(inbox) or searching

    def take_all(self) -> None:
        """Fold all that has come."""
        while self._inbox:
            self.sheet.story.take(self._inbox.popleft())
        self._sync()

    def _sync(self) -> None:
        """Have drawn again what has changed in the story."""
        story = self.sheet.story
        live = [(block.id, block.version) for block in story.live]
        if len(story.settled) != self._settled or [row[0] for row in live] != [row[0] for row in self._live]:
            place = self._place()
            became = self.sheet.moved()
            self.renew(self._settled)
            self.grow()
            self._stay(place, became)
        else:
            for at, (now, then) in enumerate(zip(live, self._live, strict=True)):
                if now != then:
                    self.changed(self._settled + at)
        for block_id in story.touched:
            self.changed(block_id)
        story.touched.clear()
        self._settled, self._live = len(story.settled), live

    def _place(self) -> int:
        """The id of the block that is seen first, 0 for a settled one."""
        index = self._anchor[0] - self._settled
        return self._live[index][0] if 0 <= index < len(self._live) else 0

    def _stay(self, place: int, became: dict[int, int]) -> None:
        """Keep the block in sight whose id was `place`, whatever stands before it now."""
        if place < 0:
            self._anchor = self.sheet.index_of(became.get(place, place)), self._anchor[1]
        if self.cursor >= self._settled:
            self.cursor = min(self.cursor, len(self.sheet) - 1)

    # ------------------------------------------------------------------ time

    def _keep_time(self) -> None:
        self.sheet.now = self._now() if self.sheet.story.running else 0.0
        if self.sheet.now and not self._ticking and not self._inbox:
            self._ticking = True
            once(self, _TICK, self._tick)

    def _tick(self) -> None:
        self._ticking = False
        story = self.sheet.story
        for block in (*story.open_calls.values(), *story.work.values()):
            self.changed(block.id)
        for at, live in enumerate(story.live):
            if isinstance(live, Countdown):
                self.changed(len(story.settled) + at)
        self.wake()

    def hint(self) -> str:
        """How much has come below what is seen, or how much is still to be read."""
        if len(self._inbox) > _BACKLOG:
            return self._words("transcript.opening", n=f"{len(self._inbox):,}")
        if self.follow:
            self._left_at = None
            return ""
        last = len(self.sheet) - 1
        if self._left_at is None:
            self._left_at = last, self.heights.height(last)
        index, height = self._left_at
        grown = self.heights.total - self.heights.start(min(index, last)) - height
        return self._words("transcript.new_lines", n=grown) if grown > 0 else ""

    # ------------------------------------------------------------------ moving

    def action_page_up(self) -> None:
        """A page up."""
        self.move(-max(1, self.room - 2))

    def action_page_down(self) -> None:
        """A page down."""
        self.move(max(1, self.room - 2))

    def action_top(self) -> None:
        """The beginning."""
        self.go_to_top()

    def action_bottom(self) -> None:
        """The end."""
        self.go_to_end()

    def action_turn_up(self) -> None:
        """The turn before the one that is seen first."""
        index, line = self._anchor
        starts = self.sheet.story.turn_starts
        at = bisect.bisect_left(starts, index + (line > 0))
        if at:
            self.go_to(starts[at - 1])

    def action_turn_down(self) -> None:
        """The next turn, or the end."""
        starts = self.sheet.story.turn_starts
        at = bisect.bisect_right(starts, self._anchor[0])
        if at < len(starts) and not self.follow:
            self.go_to(starts[at])
        else:
            self.go_to_end()

    def action_next(self) -> None:
        """Choose the next block."""
        self._choose(1)

    def action_previous(self) -> None:
        """Choose the block before."""
        self._choose(-1)

    def action_first(self) -> None:
        """Choose the first block."""
        self.go_to_top()
        self._choose_from(0, 1)

    def action_last(self) -> None:
        """Choose the last block."""
        self.go_to_end()
        self._choose_from(len(self.sheet) - 1, -1)

    def _choose(self, step: int) -> None:
        at = self.cursor + step if 0 <= self.cursor < len(self.sheet) else self.chosen
        self._choose_from(at, step)

    def _choose_from(self, at: int, step: int) -> None:
        while 0 <= at < len(self.sheet) and not self._stands(at):
            at += step
        if 0 <= at < len(self.sheet):
            self.cursor = at
            self.show_block(at)

    def _stands(self, index: int) -> bool:
        """Whether a block can be chosen: it is seen, and no later part of longer words."""
        return bool(self.lines_at(index)) and getattr(self.sheet.block(index), "part", 0) == 0

    def search_for(self, query: str) -> Search:
        """The search through the settled blocks."""
        story = self.sheet.story
        return Search(len(story.settled), lambda index: self.copying.searchable(story, story.settled[index]), query)

    def reveal(self, index: int) -> None:
        """Unfold a block."""
        for changed in self.sheet.set_open(self.sheet.block(index), True):
            self.changed(changed)

    @property
    def chosen(self) -> int:
        """The block that keys are about: the chosen one, else the last that is seen."""
        if 0 <= self.cursor < len(self.sheet):
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
        """Fold or unfold the chosen block."""
        if self.chosen >= 0:
            block = self.sheet.block(self.chosen)
            for index in self.sheet.set_open(block, not self.sheet.is_open(block)):
                self.changed(index)
            self.follow = False
            self.draw()

    def action_fold_all(self) -> None:
        """Fold or unfold everything."""
        self.sheet.open_all(not self.sheet.all_open)
        self.changed_all()
        self.draw()

    def action_back(self) -> None:
        """Close the search, else give the keys back."""
        if not self.close_search():
            self.cursor = -1
            self.post_message(self.Left())
