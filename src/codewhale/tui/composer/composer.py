"""The composer: where everything is written, whatever the turn does. It holds the text, the list above it and what goes
with it, decides what a key means, and says upward what was sent."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from functools import partial
from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import TextArea

from codewhale.display.attachments import IMAGE_BYTES, MOST_CHIPS, AttachmentTooLargeError, Chip
from codewhale.display.drafts import Draft, HistoryEntry, Parked, fact_of
from codewhale.display.palette import Palette
from codewhale.display.setup import is_command
from codewhale.display.text import fit
from codewhale.display.words import Words
from codewhale.lib.text import one_line
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.events import (
    ChildClosed,
    ChildOpened,
    Envelope,
    QueueChanged,
    Queued,
    SessionResumed,
    TurnFinished,
    TurnStarted,
)
from codewhale.protocol.ops import Attachment, Interrupt, NoteFile
from codewhale.protocol.requests import Ask, Do, Op
from codewhale.protocol.views import FileMention, LookAtMentions
from codewhale.tui.composer.completion import Completion, CompletionRequest, CompletionRows, CompletionSearch, wanted
from codewhale.tui.composer.parts import Chips, Popup, PopupRow, PromptMark, QueueLines
from codewhale.tui.composer.store import ComposerStore
from codewhale.tui.composer.text import ComposerText
from codewhale.tui.input import once
from codewhale.tui.keys import bindings
from codewhale.tui.screens.table import image_reader, text_editor

HINT_SECONDS = 6.0
MENTION_SECONDS = 0.15  # while letters still come, files are not looked at
# Longer text from an editor or another place goes along as an attachment.
MOST_CHARACTERS = 200_000
_LABEL = 300
# Hints that are true while nothing is written.
_OF_NOTHING = frozenset({"stashed", "former_prompt", "stash_empty", "history_empty", "queue_empty"})
# Two escapes within this are one wish.
TWICE_SECONDS = 1.0
_REMEMBERED = 50
Delivery = Literal["turn", "steer", "queue"]


class Composer(Widget, can_focus=False):
    """`keeper` knows where text is kept; `editor` is the command line of the person's editor. Asks by `query`, acts by
    `submit`; messages, commands and shell lines go upward."""

    BINDINGS: ClassVar = bindings("composer")
    DEFAULT_CSS = """
    Composer { height: auto; width: 1fr; background: $background; border: round $cw-muted;
        border-title-color: $cw-muted; border-title-background: $background; border-subtitle-align: left;
        border-subtitle-color: $cw-muted; border-subtitle-background: $background; }
    Composer.-plan { border: round $cw-link; border-title-color: $cw-link; }
    Composer.-yolo { border: round $cw-error; border-title-color: $cw-error; }
    Composer.-shell { border: round $cw-warning; }
    Composer.-fact { border: round $cw-success; }
    Composer > Horizontal { height: auto; width: 1fr; }
    """

    class Sent(Message):
        """A message to the model. Whoever cannot send it gives `draft` back."""

        def __init__(self, draft: Draft, delivery: Delivery) -> None:
            super().__init__()
            self.draft = draft
            self.text = draft.text.rstrip()
            self.delivery = delivery
            self.attachments: tuple[Attachment, ...] = tuple(chip.attachment() for chip in draft.chips)

    class Command(Message):
        """A slash command line."""

        def __init__(self, line: str) -> None:
            super().__init__()
            self.line = line

    class Shell(Message):
        """A command line of the person's own, without the mark before it."""

        def __init__(self, line: str) -> None:
            super().__init__()
            self.line = line

    class Continued(Message):
        """Enter where nothing is written and nothing waits."""

    class ModeCycled(Message):
        """The next mode is wanted."""

    class EffortCycled(Message):
        """The next reasoning effort is wanted."""

    def __init__(
        self,
        words: Words,
        palette: Palette,
        query: Ask,
        submit: Do,
        store: ComposerStore,
        editor: str = "",
    ) -> None:
        super().__init__()
        self._words = words
        self._query = query
        self._submit = submit
        self._store = store
        store.trouble = lambda why: self.hint("not_kept", why=why)
        self.text = ComposerText(self._pasted, self._rubbed, words("composer.placeholder"))
        self._popup = Popup(palette)
        self._chips = Chips(words, palette)
        self._mark = PromptMark(palette)
        self._completer = CompletionSearch(query, self._found)
        self._completion: CompletionRows | None = None
        # What a key waits for, and what it does then.
        self._then: tuple[CompletionRequest, Callable[[], None]] | None = None
        # "" while the list shows completions, else "history" or "stash"; `_held` stood here before that was opened.
        self._list = ""
        self._held = Draft()
        self._walked: Draft | None = None
        self._hint_timer: asyncio.TimerHandle | None = None
        self._hinted = ""
        self._mode = ""
        self.idle_hint = ""
        self.busy = False
        self._children: dict[str, str] = {}  # by session, with their kinds
        self._whole = False
        self.asked = False
        self._editor = editor
        self._escaped = 0.0
        self._files: dict[str, tuple[Chip, ...]] = {}
        self.queue = QueueLines(words, palette, query, submit, lambda text: text.rstrip() in self._files)

    def compose(self) -> ComposeResult:
        """The text; what is only seen at times comes behind the first frame."""
        with Horizontal():
            yield self._mark
            yield self.text

    def on_mount(self) -> None:
        self.call_after_refresh(self.complete)

    async def complete(self) -> None:
        """Have all parts there: the list and what goes with the text stand above it."""
        if not self._whole:
            self._whole = True
            await self.mount(self.queue, self._popup, self._chips, before=0)

    # -------------------------------------------------------------- what stands here

    @property
    def draft(self) -> Draft:
        """What was written here and not sent."""
        return self._held if self._list else self._now

    @property
    def _now(self) -> Draft:
        return Draft(self.text.content, self.text.offset_of_cursor, self._chips.chips)

    @property
    def _fact(self) -> bool:
        return not self._list and bool(fact_of(self._now))

    def _put(self, draft: Draft) -> None:
        self.text.put(draft)
        self._chips.set_chips(draft.chips)
        self._changed()

    def _changed(self) -> None:
        content = self.text.content
        if self._list:
            self._fill_list()
        else:
            self._completer.look(content, self.text.offset_of_cursor)
            self._store.save(self._now)
            self._note_mentions(content)
        shell = not self._list and content.startswith("!")
        kind = "shell" if shell else "fact" if self._fact else "command" if is_command(content) else "prompt"
        self._mark.set_kind(self._list or kind)
        self.set_class(shell, "-shell")
        self.set_class(self._fact, "-fact")
        if content and self._hinted in _OF_NOTHING:
            self._unhint()
        if self.asked and content:
            self.hint("card_waits")
        else:
            self._unhint("card_waits")
        self._show_idle()

    def _set_busy(self, busy: bool) -> None:
        self.busy = self.queue.busy = busy
        self._set_placeholder()

    def _set_placeholder(self) -> None:
        name = f"placeholder_{self._list}" if self._list else "placeholder_busy" if self.busy else "placeholder"
        if self.asked and not self._list:
            name = "placeholder_asking"
        room = self.text.content_size.width  # a second line would take its row from the transcript
        self.text.placeholder = fit(self._words(f"composer.{name}"), room) if room else self._words(f"composer.{name}")
        self._show_idle()

    def on_resize(self) -> None:
        self.call_after_refresh(self._set_placeholder)

    def hint(self, key: str, **values: object) -> None:
        """Say a sentence of the composer's words on its edge for some seconds."""
        self.border_subtitle = Content(self._words(f"composer.{key}", **values))
        if self._hint_timer is not None:
            self._hint_timer.cancel()
        self._hinted = key
        self._hint_timer = once(self, HINT_SECONDS, self._unhint)

    def _unhint(self, key: str = "") -> None:
        """Say nothing any more; with `key` only where that was said."""
        if not key or key == self._hinted:
            self._hinted = ""
            self._show_idle()

    def _show_idle(self) -> None:
        """What can be done here stands on the edge while nothing else does."""
        if not self._hinted:
            idle = self.idle_hint if not (self._list or self.busy or self.asked or self.text.content) else ""
            idle = self._words("composer.fact") if self._fact else idle
            self.border_subtitle = Content(idle) if idle else None

    def set_mode(self, mode: str) -> None:
        """The mode of the session: the edge has its name and its colour."""
        if mode != self._mode:
            self._mode = mode
            self.border_title = Content(self._words(f"composer.mode_{mode}")) if mode else None
            for name in ("plan", "yolo"):
                self.set_class(mode == name, f"-{name}")

    def repaint(self, palette: Palette) -> None:
        for part in (self.queue, self._popup, self._chips, self._mark):
            part.repaint(palette)

    def on_text_area_changed(self, message: TextArea.Changed) -> None:
        message.stop()
        self._changed()

    def on_text_area_selection_changed(self, message: TextArea.SelectionChanged) -> None:
        message.stop()
        if not self._list:
            self._completer.look(self.text.content, self.text.offset_of_cursor)

    # -------------------------------------------------------------- attachments

    def _pasted(self, text: str) -> None:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        line = self.text.content[:1] in ("!", "/")
        whole = self._list or (line and len(text) <= MOST_CHARACTERS)
        try:
            chip = None if whole else self._store.chip(text)
        except AttachmentTooLargeError as error:
            self.hint("too_large", size=error.limit >> 20)
        else:
            if chip is None:
                self.text.type(text[:_LABEL] if self._list else text)
            else:
                self._add_chip(chip)

    def _add_chip(self, chip: Chip) -> None:
        if len(self._chips.chips) >= MOST_CHIPS:
            self.hint("too_many_chips", n=MOST_CHIPS)
        elif chip not in self._chips.chips:
            self._chips.set_chips((*self._chips.chips, chip))
            self._changed()

    def _rubbed(self) -> None:
        if self._chips.chips and not self._list:
            self._chips.set_chips(self._chips.chips[:-1])
            self._changed()

    def _put_long(self, text: str) -> None:
        """Put a text of any length: what is too long to edit here becomes an attachment."""
        chips = self._chips.chips
        try:
            chip = self._store.text(text) if len(text) > MOST_CHARACTERS else None
        except AttachmentTooLargeError as error:
            self.hint("too_large", size=error.limit >> 20)
        else:
            self._put(Draft(text, len(text), chips) if chip is None else Draft("", 0, (*chips, chip)))

    def _note_mentions(self, text: str) -> None:
        """Show what becomes of the files that the message names."""
        if "@" in text and self._store.session and not (self._fact or text.startswith(("/", "!"))):
            look = partial(self._look_at_mentions, text)
            self.run_worker(look, group="mentions", exclusive=True)  # type: ignore[arg-type]
        elif self._chips.is_mounted:
            self.workers.cancel_group(self, "mentions")
            self._chips.set_mentions(())

    async def _look_at_mentions(self, text: str) -> None:
        await asyncio.sleep(MENTION_SECONDS)
        rows: tuple[FileMention, ...] = ()
        with contextlib.suppress(CodeWhaleError, OSError, KeyError):
            rows = tuple(await self._query(LookAtMentions(self._store.session, text)))
        self._chips.set_mentions(rows)

    # -------------------------------------------------------------- completion

    def _found(self, found: CompletionRows | None) -> None:
        if self._list:
            return
        self._completion = found
        if found is None:
            self._popup.close()
        else:
            self._popup.set_rows([PopupRow(row.label, row.detail, row) for row in found.rows], found.header)
        then, self._then = self._then, None
        if then is not None and then[0] == self._wanted:
            then[1]()

    @property
    def _wanted(self) -> CompletionRequest | None:
        return wanted(self.text.content, self.text.offset_of_cursor)

    def when_found(self, do: Callable[[], None]) -> bool:
        """Do it when the completions of the text as it stands have come; False when none are on their way."""
        self._completer.look(self.text.content, self.text.offset_of_cursor)
        if not self._completer.asking:
            return False
        at = self._wanted
        self._then = None if at is None else (at, do)
        return True

    def take_first(self) -> None:
        """Take the completion at hand, if there is one."""
        if (row := self._row_at_hand()) is not None:
            self._take(row)

    def _row_at_hand(self) -> Completion | None:
        """The completion that is chosen, None when it was found for another text."""
        line = None if self._list else self._popup.chosen
        if line is None or self._completion is None or self._completion.wanted != self._wanted:
            return None
        row: Completion = line.stands_for
        return row

    def _enter_takes(self, row: Completion) -> bool:
        """Whether Enter takes a completion rather than sends the text as it stands."""
        if self._popup.moved:
            return True
        assert self._completion is not None
        at = self._completion.wanted
        if at.trigger.line:
            whole = at.line if " " not in at.line else at.word
            return bool(at.word) and row.insert.rstrip() != whole and row.insert.startswith(whole)
        return row.insert.strip().removeprefix(at.trigger.character).strip('"') != at.word

    def _take(self, row: Completion) -> None:
        after = self.text.content[row.end : row.end + 1]
        insert = row.insert.rstrip(" ") if after in (" ", "\n") else row.insert
        self.text.replace_between(row.start, row.end, insert)
        if row.path:
            self.run_worker(self._tell(NoteFile(self._store.session, row.path)))
        if not row.more:
            self._completer.refuse(self.text.content)
        self._changed()

    async def _tell(self, op: Op[object]) -> None:
        with contextlib.suppress(CodeWhaleError):
            await self._submit(op)

    def _open_list(self, name: str) -> None:
        self._held = self._now
        self._completer.stop()
        self._list = name
        self.text.put(Draft())
        self._set_placeholder()
        self._changed()

    def _fill_list(self) -> None:
        letters = self.text.content
        if self._list == "history":
            entries = self._store.history.search(letters)
            self._popup.set_rows([PopupRow(_label(entry.draft(), self._chips), "", entry) for entry in entries])
        else:
            rows = [row for row in self._store.parked() if letters.lower() in row.draft.text.lower()]
            self._popup.set_rows([_parked_line(row, self._chips) for row in rows])

    def _close_list(self, put: Draft | None = None) -> None:
        """Leave a list for what stood here before it, or for `put`: then that is put aside."""
        if not self._list:
            return
        held, self._held, self._list = self._held, Draft(), ""
        self._popup.close()
        self._set_placeholder()
        self._put(held if put is None else put)
        if put is not None and held:
            self._store.park(held)
            self.hint("recalled")

    def _take_row(self) -> None:
        if (line := self._popup.chosen) is None:
            return
        if isinstance(line.stands_for, HistoryEntry):
            self._close_list(line.stands_for.draft())
            return
        draft = self._store.take(line.stands_for)
        self._close_list(draft)
        if draft is None:
            self.hint("stash_gone")

    def action_search_history(self) -> None:
        if self._list == "history":
            self._popup.move(1)
        elif self._list:
            self._close_list()
        elif not self._store.history.entries:
            self.hint("history_empty")
        else:
            self._open_list("history")

    def action_up(self) -> None:
        """Up in the list, in the text, and at its top to what was sent before."""
        if self._popup.chosen is not None:
            self._popup.move(-1)
        elif not self._list and (self.text.at_top or self._now == self._walked):
            self._walk(self._store.walk.up(self._now))
        else:
            self.text.action_cursor_up()

    def action_down(self) -> None:
        """Down in the list, in the text, and at its end to what was sent after."""
        if self._popup.chosen is not None:
            self._popup.move(1)
        elif not self._list and (self.text.at_bottom or self._now == self._walked):
            self._walk(self._store.walk.down(self._now))
        else:
            self.text.action_cursor_down()

    def _walk(self, draft: Draft | None) -> None:
        if draft is not None:
            self._put(draft)
            self._completer.refuse(self.text.content)
            self._walked = self._now

    def action_newline(self) -> None:
        if not self._list:
            self.text.type("\n")

    # -------------------------------------------------------------- beside a card that waits

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
        if not self._store.walk.untouched(now):
            self._store.park(now)
        for left in self._store.walk.end():
            self._store.park(left)
        self._put(Draft())
        self.hint("stashed" if now else "former_prompt")

    def on_unmount(self) -> None:
        self._store.save(self.draft, sync=True)

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
        former = self._store.session
        found = self._store.open(session, workspace, self._now)
        self._completer.session = self.queue.session = session
        self._set_busy(False)
        self._children.clear()
        if found != self._now:
            self._put(found)
            if found and not former:
                self.hint("restored")
        self.run_worker(self.queue.look(), group="queue")

    def take(self, envelope: Envelope) -> None:
        match envelope.event:
            case TurnStarted():
                self._set_busy(True)
            case TurnFinished() | SessionResumed():
                self._set_busy(False)
                self._unhint("interrupting")
            case ChildOpened(child=child, kind=kind):
                self._children[child] = kind
            case ChildClosed(child=child):
                self._children.pop(child, None)
                self._unhint("stopping_children")
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
            self._store.park(draft)
        self.hint("given_back")

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

    def _send(self, delivery: Delivery) -> None:
        draft = self._now
        text = draft.text.strip()
        if not draft:
            if self.queue.rows:
                self.run_worker(self.queue.push_oldest(), group="queue")
            else:
                self.post_message(self.Continued())
            return
        gone = next((chip for chip in draft.chips if not chip.there), None)
        ordered = text[1:].strip() if text.startswith("!") else text if is_command(text) else ""
        if gone is not None:
            self._chips.set_chips(tuple(chip for chip in draft.chips if chip.there))
            self.hint("chip_gone", name=gone.name)
        elif fact := fact_of(draft):
            self._sent(draft)
            self.post_message(self.Command(f"/memory add workspace {fact}"))
        elif not ordered:
            self._sent(draft)
            self.post_message(self.Sent(draft, delivery))
        elif draft.chips:
            self.hint("command_files")
        else:
            self._sent(draft)
            self.post_message(self.Shell(ordered) if text.startswith("!") else self.Command(ordered))

    def _sent(self, draft: Draft) -> None:
        self._store.sent(draft)
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
            self.post_message(self.Sent(draft, "turn"))
        else:
            self._store.park(draft)
            self.hint("dropped")

    # -------------------------------------------------------------- putting aside

    def action_escape(self) -> None:
        """Close the list, else the selection, else stop the turn, else put the text aside; twice on nothing: back to
        a former message."""
        if self._list:
            self._close_list()
        elif self._popup.open:
            self._completer.refuse(self.text.content)
        elif not self.text.selection.is_empty:
            self.text.move_cursor(self.text.cursor_location)
        elif self.busy or "review" in self._children.values() or (self._children and self.empty):
            count = len(self._children)
            name = "stopping_children" if not self.busy else "interrupting_children" if count else "interrupting"
            self.hint(name, n=count)
            self.run_worker(self._tell(Interrupt(self._store.session)))
        elif self.text.content or self._now:
            self._put_aside()
        elif time.monotonic() - self._escaped < TWICE_SECONDS:
            self._escaped = 0.0
            self.post_message(self.Command("/rewind"))
        else:
            self._escaped = time.monotonic()
            self.hint("former_prompt")

    def action_stash(self) -> None:
        """Put the text aside; where there is none take it back, or choose where there are several."""
        if self._list:
            self._close_list()
        elif self._now:
            self._put_aside()
        elif not (rows := self._store.parked()):
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
        draft = self._store.take(row)
        if draft is None:
            self.hint("stash_gone")
        else:
            self._put(draft)

    # -------------------------------------------------------------- the other keys

    def action_complete(self) -> None:
        """Take the completion; where there is none and none is on its way, say what Tab is for."""
        if self._list:
            self._take_row()
            return
        if self.when_found(self.take_first):
            return
        if self._row_at_hand() is not None:
            self.take_first()
        else:
            self.hint("no_completion")

    def action_mode(self) -> None:
        if not self._list:
            self.post_message(self.ModeCycled())

    def action_effort(self) -> None:
        self.post_message(self.EffortCycled())

    def action_edit_outside(self) -> None:
        if not self._list:
            self.run_worker(self._edit(), group="editor", exclusive=True)

    async def _edit(self) -> None:
        before = self._now
        edited = await text_editor()(self.app, self._editor, before.text)
        if edited.code:
            self.hint(edited.code, wrong=edited.wrong)
        elif edited.text != before.text:
            self._put_long(edited.text)

    def action_attach(self) -> None:
        if not self._list:
            self.run_worker(self._attach_image(), group="clipboard", exclusive=True)

    async def _attach_image(self) -> None:
        data = await image_reader()()
        try:
            chip = self._store.image(data, "clipboard.png") if data else None
        except AttachmentTooLargeError:
            self.hint("too_large", size=IMAGE_BYTES >> 20)
            return
        if chip is not None:
            self._add_chip(chip)
        else:
            self.hint("clipboard_none" if data is None else "clipboard_empty")


def _parked_line(row: Parked, chips: Chips) -> PopupRow:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(row.at))
    return PopupRow(_label(row.draft, chips), when, row)


def _label(draft: Draft, chips: Chips) -> str:
    """A draft on one line: what it says, and what goes with it."""
    named = "  ".join(f"[{chips.label(chip)}]" for chip in draft.chips)
    return f"{one_line(draft.text, _LABEL)} {named}".strip()
