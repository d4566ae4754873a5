"""The blocks of a story as a pane shows them: each with its gap, folded or opened. What draws them is imported when
there is something to draw."""

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from codewhale.display.transcript.blocks import Block, Card, Receipt, Said
from codewhale.display.transcript.lines import Line
from codewhale.display.transcript.model import Story
from codewhale.display.words import Words

if TYPE_CHECKING:
    from codewhale.display.transcript.drawing import Drawer

_DRAWER = "codewhale.display.transcript.drawing:Drawer"


class Sheet:
    """A story with what is opened in it. `now` is the time that running things count to."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self.clear()

    def clear(self) -> None:
        """Begin with nothing."""
        self.story = Story()
        self.all_open = False
        self.now = 0.0
        self._opened: dict[int, bool] = {}
        self._drawer: Drawer | None = None

    def __len__(self) -> int:
        return len(self.story.settled) + len(self.story.live)

    def block(self, index: int) -> Block:
        """The block at an index: the settled ones, then those on their way."""
        settled = self.story.settled
        return settled[index] if index < len(settled) else self.story.live[index - len(settled)]

    def lines(self, index: int, width: int) -> Sequence[Line]:
        """The lines of a block with the gap before it."""
        block = self.block(index)
        former = self.block(index - 1) if index else None
        return self.drawer.below(former, block, width, self.is_open(block), self.now)

    @property
    def drawer(self) -> "Drawer":
        """What draws the blocks."""
        if self._drawer is None:
            module, _, name = _DRAWER.partition(":")
            self._drawer = getattr(importlib.import_module(module), name)(self._words)
        return self._drawer

    def warm(self) -> None:
        """Load what draws the blocks, beside the event loop."""
        self.drawer.warm()

    def estimate(self, index: int, width: int) -> int:
        """About how many lines a block takes."""
        block = self.block(index)
        if isinstance(block, Said) and block.who in ("model", "person"):
            return 1 + block.text.count("\n") + len(block.text) // max(10, width)
        if isinstance(block, Card):
            return 1 + min(8, sum(3 for _ in block.display))
        return 3 if isinstance(block, Receipt) else 1

    # ------------------------------------------------------------------ folding

    def is_open(self, block: Block) -> bool:
        """Whether all of a block is shown."""
        return self._opened.get(_key(block), self.all_open)

    def set_open(self, block: Block, opened: bool) -> list[int]:
        """Show all of a block, or its short form; the indexes that this concerns."""
        self._opened[_key(block)] = opened
        return self.siblings(block)

    def siblings(self, block: Block) -> list[int]:
        """The indexes of all parts of the words that a block belongs to, its own for any other block."""
        if not isinstance(block, Said):
            return [self.index_of(block.id)]
        first = self.index_of(block.whole)
        found = [first]
        while found[-1] + 1 < len(self):
            other = self.block(found[-1] + 1)
            if not isinstance(other, Said) or other.whole != block.whole:
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
        live = self.story.live
        at = next((at for at, block in enumerate(live) if block.id == block_id), len(live) - 1)
        return len(self.story.settled) + max(0, at)

    def moved(self) -> dict[int, int]:
        """Which ids have become which since the last time: what was opened stays opened."""
        became = dict(self.story.became)
        self.story.became.clear()
        for old, new in became.items():
            if old in self._opened:
                self._opened[new] = self._opened.pop(old)
        return became


def _key(block: Block) -> int:
    return block.whole if isinstance(block, Said) else block.id
