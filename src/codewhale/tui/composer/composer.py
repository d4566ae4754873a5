"""The composer: where everything is written, whatever the turn does. It holds the text, what completes it and what goes
with it, decides what a key means, and says upward what was sent."""

import time
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from textual.widget import Widget

from codewhale.display.attachments import IMAGE_BYTES, Chip, TooLargeError
from codewhale.display.drafts import Draft, Parked
from codewhale.display.palette import Palette
from codewhale.display.setup import is_command
from codewhale.display.words import Words
from codewhale.protocol.events import Envelope, QueueChanged, Queued, SessionResumed, TurnFinished, TurnStarted
from codewhale.protocol.ops import Interrupt, Op, Query
from codewhale.tui.composer import said
from codewhale.tui.composer.beside import Beside
from codewhale.tui.composer.keeper import Keeper
from codewhale.tui.composer.parts import QueueLines
from codewhale.tui.keys import bindings
from codewhale.tui.later import later

# Two escapes within this are one wish.
TWICE_SECONDS = 1.0
_REMEMBERED = 50


class Composer(Beside, can_focus=False):
    """`keeper` knows where text is kept; `editor` is the command line of the person's editor. Asks by `query`, acts by
    `submit`; messages, commands and shell lines go upward."""

    BINDINGS: ClassVar = bindings("composer")
    DEFAULT_CSS = """
    Composer { height: auto; width: 1fr; background: $background; border-top: solid $cw-border;
        border-title-color: $cw-muted; border-title-background: $background; }
    Composer.-busy { border-top: solid $cw-accent; }
    Composer.-shell { border-top: solid $cw-warning; }
    Composer > Horizontal { height: auto; width: 1fr; }
    """
    Sent, Command, Shell = said.Sent, said.Command, said.Shell
    ModeCycled, EffortCycled = said.ModeCycled, said.EffortCycled

    def __init__(
        self,
        words: Words,
        palette: Palette,
        query: Callable[[Query], Awaitable[Any]],
        submit: Callable[[Op], Awaitable[Any]],
        keeper: Keeper,
        editor: str = "",
    ) -> None:
        super().__init__(words, palette, query, submit, keeper)
        self._editor = editor
        self._escaped = 0.0
        self._files: dict[str, tuple[Chip, ...]] = {}
        self.queue = QueueLines(words, palette, query, submit, lambda text: text.rstrip() in self._files)

    def _above(self) -> tuple[Widget, ...]:
        return self.queue, *super()._above()

    def on_unmount(self) -> None:
        self._keeper.save(self.draft, sync=True)

    # -------------------------------------------------------------- for the app

    @property
    def empty(self) -> bool:
        return not self.draft and not self.text.content

    @property
    def selected(self) -> str:
        """The selected text, "" when there is none."""
        return self.text.chosen

    def focus(self, scroll_visible: bool = True) -> "Composer":
        self.text.focus(scroll_visible)
        return self

    def open(self, session: str, workspace: str = "") -> None:
        """Write for this session from here on: its draft comes back, what was typed before there was one stays."""
        self._close_list()
        former = self._keeper.session
        found = self._keeper.open(session, workspace, self._now)
        self._completer.session = self.queue.session = session
        self._set_busy(False)
        if found != self._now:
            self._put(found)
            if found and not former:
                self.hint("restored")
        self.run_worker(self.queue.look(), group="queue")

    def _set_busy(self, busy: bool) -> None:
        super()._set_busy(busy)
        self.queue.busy = busy

    def take(self, envelope: Envelope) -> None:
        match envelope.event:
            case TurnStarted():
                self._set_busy(True)
            case TurnFinished() | SessionResumed():
                self._set_busy(False)
                self._unhint("interrupting")
            case Queued() | QueueChanged():
                pass
            case _:
                return
        if self.is_mounted:
            self.run_worker(self.queue.look(), group="queue")

    def offer(self, text: str) -> None:
        """Put a text here to be edited; what stood here is put aside."""
        self._recall(Draft(text, len(text)))

    def give_back(self, draft: Draft) -> None:
        """What could not be sent stands here again, or is put aside where something else was written meanwhile."""
        if self.empty:
            self._put(draft)
        else:
            self._keeper.park(draft)
        self.hint("given_back")

    def repaint(self, palette: Palette) -> None:
        super().repaint(palette)
        self.queue.repaint(palette)

    # -------------------------------------------------------------- sending

    def action_send(self) -> None:
        """Take what the list offers; else send, or push what waits longest into the turn."""
        if self._list:
            self._take_row()
            return
        name = self.text.content.startswith("/") and " " not in self.text.content
        if not (name and self.when_found(self._send_now)):
            self._send_now()

    def _send_now(self) -> None:
        row = self._row_at_hand()
        if row is not None and self._enter_takes(row):
            self._take(row)
            if row.more or not is_command(row.insert):
                return
        self._send("queue" if self.busy else "turn")

    def action_steer(self) -> None:
        if not self._list:
            self._send("steer" if self.busy else "turn")

    def _send(self, delivery: said.Delivery) -> None:
        draft = self._now
        text = draft.text.strip()
        if not draft:
            if self.queue.rows:
                self.run_worker(self.queue.push_oldest(), group="queue")
            return
        gone = next((chip for chip in draft.chips if not chip.there), None)
        ordered = text[1:].strip() if text.startswith("!") else text if is_command(text) else ""
        if gone is not None:
            self._chips.show(tuple(chip for chip in draft.chips if chip.there))
            self.hint("chip_gone", name=gone.name)
        elif not ordered:
            self._sent(draft)
            self.post_message(said.Sent(draft, delivery))
        elif draft.chips:
            self.hint("command_files")
        else:
            self._sent(draft)
            self.post_message(said.Shell(ordered) if text.startswith("!") else said.Command(ordered))

    def _sent(self, draft: Draft) -> None:
        self._keeper.sent(draft)
        if draft.chips:
            self._files[draft.text.rstrip()] = draft.chips
            while len(self._files) > _REMEMBERED:
                del self._files[next(iter(self._files))]
        self._put(Draft())

    # -------------------------------------------------------------- what waits

    def action_edit_queue(self) -> None:
        if self.queue.rows:
            self.queue.choose_last()
            self.queue.focus()
        else:
            self.hint("queue_empty")

    def on_queue_lines_left(self, message: QueueLines.Left) -> None:
        message.stop()
        self.text.focus()

    def on_queue_lines_kept(self, message: QueueLines.Kept) -> None:
        message.stop()
        self.hint("queue_files")

    def on_queue_lines_taken(self, message: QueueLines.Taken) -> None:
        message.stop()
        chips = self._files.get(message.text.rstrip(), ()) if message.attachments else ()
        draft = Draft(message.text, len(message.text), chips)
        if message.purpose == "edit":
            self._recall(draft)
            self.text.focus()
        elif message.purpose == "steer":
            self.post_message(said.Sent(draft, "turn"))
        else:
            self._keeper.park(draft)
            self.hint("dropped")

    # -------------------------------------------------------------- putting aside

    def action_escape(self) -> None:
        """Close the list, else the selection, else stop the turn, else put the text aside; twice on nothing: a former
        prompt."""
        if self._list:
            self._close_list()
        elif self._popup.open:
            self._completer.refuse(self.text.content)
        elif not self.text.selection.is_empty:
            self.text.move_cursor(self.text.cursor_location)
        elif self.busy:
            self.hint("interrupting")
            self.run_worker(self._tell(Interrupt(self._keeper.session)))
        elif self.text.content or self._now:
            self._put_aside()
        elif time.monotonic() - self._escaped < TWICE_SECONDS:
            self._escaped = 0.0
            self.action_search_history()
        else:
            self._escaped = time.monotonic()
            self.hint("former_prompt")

    def action_stash(self) -> None:
        """Put the text aside; where there is none take it back, or choose where there are several."""
        if self._list:
            self._close_list()
        elif self._now:
            self._put_aside()
        elif not (rows := self._keeper.parked()):
            self.hint("stash_empty")
        elif len(rows) > 1:
            self._open_list("stash")
        else:
            self._unpark(rows[0])

    def _recall(self, draft: Draft) -> None:
        """Show a draft; what stood here is put aside."""
        self._close_list()
        if self._now:
            self._put_aside()
            self.hint("recalled")
        self._put(draft)

    def _unpark(self, row: Parked) -> None:
        draft = self._keeper.take(row)
        if draft is None:
            self.hint("stash_gone")
        else:
            self._put(draft)

    # -------------------------------------------------------------- the other keys

    def action_complete_or_mode(self) -> None:
        """Take the completion; where there is none and none is on its way, the next mode."""
        if self._list:
            self._take_row()
            return
        if self.when_found(self.take_first):
            return
        if self._row_at_hand() is not None:
            self.take_first()
        else:
            self.action_mode()

    def action_mode(self) -> None:
        if not self._list:
            self.post_message(said.ModeCycled())

    def action_effort(self) -> None:
        self.post_message(said.EffortCycled())

    def action_edit_outside(self) -> None:
        if not self._list:
            self.run_worker(self._edit(), group="editor", exclusive=True)

    async def _edit(self) -> None:
        before = self._now
        edited = await later("edit_text")(self.app, self._editor, before.text)
        if edited.code:
            self.hint(edited.code, wrong=edited.wrong)
        elif edited.text != before.text:
            self._put_long(edited.text)

    def action_attach(self) -> None:
        if not self._list:
            self.run_worker(self._attach_image(), group="clipboard", exclusive=True)

    async def _attach_image(self) -> None:
        data = await later("image_of_clipboard")()
        try:
            chip = self._keeper.image(data, "clipboard.png") if data else None
        except TooLargeError:
            self.hint("too_large", size=IMAGE_BYTES >> 20)
            return
        if chip is not None:
            self._add_chip(chip)
        else:
            self.hint("clipboard_none" if data is None else "clipboard_empty")
