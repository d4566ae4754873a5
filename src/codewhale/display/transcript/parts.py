"""Long words as parts of a bounded size, so that no block is dear to draw. Where a text is cut depends on it alone."""

from codewhale.display.transcript.blocks import Said
from codewhale.display.transcript.splitting import Opening, Splitter

# A part ends with the first piece of markdown that reaches so far, in characters.
PART = 6_000


class Parts:
    """The parts of a text that grows; the last of them is open. Parts before it never change again."""

    def __init__(self, who: str, label: str = "") -> None:
        self.parts = [Said(who=who, label=label, opening=Opening())]
        self._who = who
        self._label = label
        self._splitter = Splitter()
        self._start = 0
        self._seen = 0
        self._size = 0

    def feed(self, text: str) -> None:
        """Take more of the text."""
        last = self.parts[-1]
        last.text += text
        last.version += 1
        self._size += len(text)
        self.parts[0].size = self._size
        self._splitter.feed(text)
        for piece in self._splitter.pieces[self._seen :]:
            if piece.then is not None and self._start + PART <= piece.end < self._size:
                self._cut(piece.end, piece.then)
        self._seen = len(self._splitter.pieces)

    def _cut(self, end: int, then: Opening) -> None:
        last = self.parts[-1]
        kept = end - self._start
        self.parts.append(
            Said(who=self._who, label=self._label, text=last.text[kept:], part=len(self.parts), opening=then)
        )
        last.text = last.text[:kept]
        self._start = end


def parts_of(who: str, text: str, label: str = "") -> list[Said]:
    """A whole text as its parts."""
    if len(text) < PART:
        return [Said(who=who, text=text, label=label, size=len(text), opening=Opening())]
    parts = Parts(who, label)
    parts.feed(text)
    return parts.parts
