"""The place above the composer where asks are shown, one at a time. It is cheap: the cards are imported when something
is asked."""

from collections.abc import Callable, Mapping
from typing import Any

from textual.containers import Vertical
from textual.message import Message
from textual.timer import Timer

from codewhale.display.asks import Asks
from codewhale.display.palette import Palette
from codewhale.display.words import Words
from codewhale.protocol.events import ApprovalAsked, Envelope
from codewhale.protocol.ops import Interrupt, SendMessage
from codewhale.protocol.requests import Do
from codewhale.tui.screens.table import approval_card, question_card

_LOOK_SECONDS = 0.1
# The id of the widget from which a card may take the focus.
COMPOSER = "composer"


class AskingPanel(Vertical):
    """Shows what is asked and submits the answers. `submit` does an operation, `quiet` tells for how many seconds
    no key was pressed, None while something stands in the composer. `keys` are the person's own, `patience` is a
    card.Patience, None for the usual one."""

    DEFAULT_CSS = """
    AskingPanel { height: auto; display: none; background: $background; }
    AskingPanel.asking { display: block; }
    """

    class Waits(Message):
        """Whether a card waits for an answer has changed."""

        def __init__(self, on: bool) -> None:
            super().__init__()
            self.on = on

    class Left(Message):
        """The composer should have the focus."""

    class Failed(Message):
        """An answer could not be given: one line for the person."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(
        self,
        words: Words,
        palette: Palette,
        submit: Do,
        quiet: Callable[[], float | None],
        keys: Mapping[str, str],
        patience: Any = None,
    ) -> None:
        super().__init__(id="asking")
        self.asks = Asks()
        self._words = words
        self._palette = palette
        self._submit = submit
        self._quiet = quiet
        self._keys = keys
        self._patience = patience
        self._card: Any = None
        self._looking: Timer | None = None
        self._answering = ""

    # -------------------------------------------------------------- what is asked

    def take(self, envelope: Envelope) -> None:
        if self.asks.take(envelope):
            self.call_later(self._settle)

    def begin(self) -> None:
        """Another session is followed from now on: what was asked before is not asked here."""
        self.asks = Asks()
        self.call_later(self._settle)

    @property
    def card(self) -> Any:
        """The card that is shown, or None."""
        return self._card

    async def _settle(self) -> None:
        """Show the first ask, and nothing else."""
        first = self.asks.first
        if self._card is not None and (first is None or self._card.envelope is not first):
            had_focus = self._card.has_focus or self._card.writing
            card, self._card = self._card, None
            await card.remove()
            if had_focus:
                self.post_message(self.Left())
        if first is not None and self._card is None:
            await self._show(first)
        if self._card is not None:
            self._card.place(1, len(self.asks))
        self.set_class(self._card is not None, "asking")
        self.post_message(self.Waits(self._card is not None))
        self._look()

    async def _show(self, envelope: Envelope) -> None:
        kind = approval_card() if isinstance(envelope.event, ApprovalAsked) else question_card()
        self._card = kind(self._words, self._palette, envelope, self._patience, self._keys)
        self._card.arguments = self.asks.arguments(envelope.session, getattr(envelope.event, "call_id", ""))
        self._card.free = lambda: self._quiet() is not None
        self.set_class(True, "asking")
        await self.mount(self._card)

    def _look(self) -> None:
        """Watch for the moment when the card may take the focus, while there is one."""
        if self._card is None and self._looking is not None:
            self._looking.stop()
            self._looking = None
        elif self._card is not None and self._looking is None:
            self._looking = self.set_interval(_LOOK_SECONDS, self._consider)

    def _consider(self) -> None:
        card, quiet = self._card, self._quiet()
        if card is None or card.writing or self.app.screen is not self.screen:
            return
        if card.has_focus:
            if quiet is None:
                self.post_message(self.Left())
            return
        if card.left:
            return
        focused = self.screen.focused
        writing = focused is None or focused.id == COMPOSER
        away = "elsewhere" if not writing else "text" if quiet is None else ""
        if card.away != away:
            card.away = away
            card.lay_out()
        # Whoever is in the search line, the queue or the transcript is left there.
        if not away and quiet is not None and quiet >= card.patience.idle:
            self.screen.set_focus(card)

    # -------------------------------------------------------------- what is answered

    def focus_card(self) -> bool:
        """Give the card the focus, as the person asked for; whether there is one."""
        if self._card is None:
            return False
        self._card.left = False
        self.screen.set_focus(self._card)
        return True

    async def on_ask_card_answered(self, message: Any) -> None:
        """Hand the answer on. A reason goes first, so that the model reads both together."""
        message.stop()
        answer = message.answer
        if self._answering == answer.request_id:
            return
        self._answering = answer.request_id
        try:
            if message.reason:
                await self._submit(SendMessage(answer.session, message.reason, delivery="steer"))
            await self._submit(Interrupt(answer.session) if message.stop_turn else answer)
        except Exception as error:
            # The card stays: the person can answer again.
            self._answering = ""
            self.post_message(self.Failed(self._words("asking.failed", error=str(error))))
            return
        self.asks.drop(answer.request_id)
        self.call_later(self._settle)

    def on_ask_card_left(self, message: Any) -> None:
        message.stop()
        if self._card is not None:
            self._card.left = True
            self._card.lay_out()
        self.post_message(self.Left())

    def repaint(self, palette: Palette) -> None:
        self._palette = palette
        if self._card is not None:
            self._card.repaint(palette)
