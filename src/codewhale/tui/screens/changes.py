"""What differs in the workspace, file by file, with the colours of the transcript's diffs."""

from collections.abc import Sequence

from codewhale.display.tones import Line, Span, flat
from codewhale.display.transcript.difflines import counts, diff_lines, diff_rows
from codewhale.display.transcript.highlight import Highlighter
from codewhale.protocol.blocks import DiffBlock
from codewhale.protocol.views import GetDiff
from codewhale.tui.screens.report import Report

MOST_FILES = 500
MOST_ROWS = 20_000
_WIDTH = 4000


def tone_of(style: str) -> str:
    """A style of the transcript ("added bold on:added_background") as a tone ("bold added on added_background")."""
    names = style.split()
    ground = next((name.removeprefix("on:") for name in names if name.startswith("on:")), "")
    plain = [name for name in names if not name.startswith("on:") and name not in _MANNERS]
    colour = plain[0] if plain else "text"
    return f"{'bold ' if 'bold' in names else ''}{colour}{f' on {ground}' if ground else ''}"


_MANNERS = frozenset({"bold", "italic", "underline", "dim", "strike", "reverse"})


def changed_lines(blocks: Sequence[DiffBlock]) -> list[Line]:
    """Diffs one after another, each under the name of its file with what it adds and takes away."""
    colours = Highlighter()
    lines: list[Line] = []
    for block in blocks[:MOST_FILES]:
        added, removed = counts(block.diff)
        lines.append(((flat(block.path), "bold accent"), (f"  +{added:,}", "added"), (f" -{removed:,}", "removed")))
        rows = diff_rows(block.diff, max(0, MOST_ROWS - len(lines)))
        lines += [_line(line.spans) for line in diff_lines(rows, block.path, _WIDTH, colours, named=False)]
        lines.append(())
    return lines


def _line(spans: Sequence[Span]) -> Line:
    return tuple((text, tone_of(style)) for text, style in spans)


class DiffReport(Report):
    """What differs from the last commit; `argument` is a path to look at alone."""

    PANEL = "diff"

    async def report(self) -> Sequence[Line] | None:
        """The differences."""
        if self.argument:
            self.retitle(self.argument)
        blocks: Sequence[DiffBlock] | None = await self.ask(
            self.desk.query(GetDiff(self.desk.session, self.argument)), "frame.loading"
        )
        if blocks is None:
            return None
        if not blocks:
            return [((self.words("diff.none"), "muted"),)]
        added, removed = (sum(numbers) for numbers in zip(*(counts(block.diff) for block in blocks), strict=True))
        said = self.words("diff.files", n=len(blocks), added=f"{added:,}", removed=f"{removed:,}")
        self.retitle(said)
        lines = changed_lines(blocks)
        if len(blocks) > MOST_FILES:
            lines.append(((self.words("diff.more", n=len(blocks) - MOST_FILES), "muted"),))
        return lines
