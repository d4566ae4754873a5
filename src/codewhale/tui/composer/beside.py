"""What the composer does beside a card that waits for an answer: it says so, and can be put aside for it."""

from codewhale.display.drafts import Draft
from codewhale.tui.composer.box import Box


class Beside(Box, can_focus=False):
    """`asked` tells that a card waits above."""

    asked = False

    @property
    def choosing(self) -> bool:
        """Whether a list is open here, of what was sent or put aside."""
        return bool(self._list)

    def card_waits(self, on: bool) -> None:
        """Say that a card above waits for an answer, or no longer."""
        self.asked = on
        self._set_placeholder()
        if on and self.text.content:
            self.hint("card_waits")
        elif not on:
            self._unhint("card_waits")

    def step_aside(self) -> None:
        """Put what stands here aside, so that a card can be answered."""
        self._close_list()
        if self._now:
            self._put_aside()

    def _put_aside(self) -> None:
        """Keep what stands here where it is found again, and leave nothing."""
        now = self._now
        if not self._keeper.walk.untouched(now):
            self._keeper.park(now)
        for left in self._keeper.walk.end():
            self._keeper.park(left)
        self._put(Draft())
        self.hint("stashed" if now else "former_prompt")

    def _set_placeholder(self) -> None:
        super()._set_placeholder()
        if self.asked and not self._list:
            self.text.placeholder = self._words("composer.placeholder_asking")

    def _changed(self) -> None:
        super()._changed()
        if self.asked and self.text.content:
            self.hint("card_waits")
        else:
            self._unhint("card_waits")
