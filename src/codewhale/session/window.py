"""A model's window as figures: what of it may be spent, and from where on room is made. It knows no session."""

from typing import Annotated

from msgspec import Meta, Struct

LARGE_WINDOW = 500_000
_NEAR_END = 95
_SAFETY = 1024
_OUTPUT = 8192
_KEEP = 20_000
MOST_MAP = 8_000


class ContextSettings(Struct, frozen=True, omit_defaults=True):
    """The `[context]` table. `auto_compact` unset is by the window: at `percent` of what may be spent, and only near
    the end where the window is 500,000 tokens or more. `prune` first sets old tool results aside; `keep_tokens` is how
    much of the newest conversation a compaction leaves as it is (0: an eighth of what may be spent, 20,000 at
    most). `codemap_tokens` bounds the map of the workspace that a session begins with, where there is a code index
    (0: none)."""

    auto_compact: bool | None = None
    percent: int = 80
    prune: bool = True
    keep_tokens: int = 0
    codemap_tokens: Annotated[int, Meta(ge=0, le=MOST_MAP)] = 0

    def threshold(self, window: int, spendable: int) -> int:
        """Tokens from which on room is made by itself; 0 is never."""
        if self.auto_compact is False:
            return 0
        by_window = self.auto_compact is None and window >= LARGE_WINDOW
        return spendable * (_NEAR_END if by_window else min(100, max(10, self.percent))) // 100

    def kept(self, spendable: int) -> int:
        """Tokens of the newest conversation that a compaction leaves as they are."""
        return min(self.keep_tokens, spendable // 2) if self.keep_tokens else min(_KEEP, spendable // 8)


def reserved(window: int, max_output: int) -> int:
    """Tokens of the window that are kept for the answer; `max_output` 0 is not known."""
    output = min(max_output, window // 2) if max_output else min(_OUTPUT, window // 4)
    return output + min(_SAFETY, window // 16)
