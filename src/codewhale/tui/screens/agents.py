"""The sub-agents of a session: how each stands, its transcript as it grows, a message to one, the end of one."""

from collections.abc import Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from codewhale.display.text import Spans, flat
from codewhale.display.transcript.drawing import Drawer, rounded
from codewhale.display.transcript.model import TranscriptModel
from codewhale.protocol.children import ChildView, ListChildren, ReadEvents, StopChild, TellChild
from codewhale.protocol.events import ChildClosed, ChildOpened, ChildProgress, ChildReleased, Envelope, MessageAdded
from codewhale.protocol.messages import Text
from codewhale.tui.rows import Item
from codewhale.tui.screens.frame import Frame
from codewhale.tui.screens.jobs import JobsCentre
from codewhale.tui.status import money_text, seconds_text

_MARKS = {
    "running": ("◐", "accent"),
    "completed": ("✓", "success"),
    "failed": ("✗", "error"),
    "interrupted": ("■", "warning"),
    "cancelled": ("■", "warning"),
}
_BLOCKS = 400  # of a transcript that are drawn, the last ones


class AgentsCentre(JobsCentre):
    """The agents above, the end of the transcript of the one at hand below; `argument` is the session of one whose
    transcript fills the screen."""

    PANEL = "agents"
    EVENTS = (ChildOpened, ChildProgress, ChildClosed, ChildReleased)
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("jobs.output", "agents.transcript"),
        ("jobs.write", "agents.message"),
        ("jobs.stop", "agents.stop"),
        ("jobs.close", "frame.close"),
    )
    WRITING: ClassVar[tuple[tuple[str, str], ...]] = (("jobs.output", "agents.message"), ("jobs.close", "frame.close"))

    def on_mount(self) -> None:
        self._drawer = Drawer(self.words)
        self._read: dict[str, tuple[TranscriptModel, int]] = {}
        self.set_class(bool(self.argument), "reading")

    def retitle(self, more: str = "") -> None:
        """Name the one whose transcript fills the screen."""
        row = self.job if self.has_class("reading") else None
        super().retitle(more if row is None else f"{flat(row.name, 40)} · {self.words(f'agents.state_{row.status}')}")

    def action_output(self) -> None:
        super().action_output()
        self.work(self.load)

    def action_close(self) -> None:
        super().action_close()
        self.work(self.load)

    async def rows(self) -> Sequence[Item] | None:
        views: Sequence[ChildView] | None = await self.ask(self.context.query(ListChildren(self.context.session)))
        return None if views is None else [self._agent(view) for view in views]

    def _agent(self, view: ChildView) -> Item:
        mark, tone = _MARKS[view.status]
        words = self.words
        said = [words(f"agents.state_{view.status}"), words("transcript.steps", n=view.steps) if view.steps else ""]
        said += [seconds_text(view.seconds) if view.seconds else "", rounded(view.tokens) if view.tokens else ""]
        said += [money_text(view.cost, view.currency) if view.cost else ""]
        label = f"{flat(view.name, 40)} ({flat(view.role, 30)})"
        about = " · ".join(filter(None, (*said, flat(view.objective, 200))))
        return Item(view.session, label, about, "", mark, tone, value=view)

    def runs(self, row: ChildView) -> bool:
        return not row.over

    def writable(self, row: ChildView) -> bool:
        """One that is over goes on with a message."""
        return True

    def called(self, row: ChildView) -> str:
        return row.name

    async def end(self, row: ChildView) -> None:
        if await self.ask(self.context.submit(StopChild(self.context.session, row.session))) is not None:
            self.say(self.words("agents.stopped", name=flat(row.name, 40)))
            await self.load()

    async def send(self, row: ChildView, text: str) -> None:
        if not text.strip():
            return
        if await self.ask(self.context.submit(TellChild(self.context.session, row.session, text))) is not None:
            self._close_line()
            self.say(self.words("agents.sent", name=flat(row.name, 40)))
            await self.load()

    def action_end_input(self) -> None:
        """A message needs no end."""

    # -------------------------------------------------------------- its transcript

    def show_at_hand(self) -> None:
        row = self.job
        if row is None:
            self.show_output(("", ""), ())
        else:
            self.work(lambda: self._follow(row), "follow")

    async def _follow(self, row: ChildView) -> None:
        """Read what the log of an agent has more than was seen of it, and show its end."""
        model, seq = self._read.get(row.session) or (TranscriptModel(), 0)
        while True:
            events: Sequence[Envelope] = await self.ask(self.context.query(ReadEvents(row.session, seq))) or ()
            if not events:
                break
            for envelope in events:
                model.take(_as_shown(envelope))
            seq = events[-1].seq
        self._read[row.session] = model, seq
        width = max(20, self.page.size.width - 2)
        shown = (row.session, f"{seq} {width}")
        if self._at() == row.session and shown != self._shown:
            self.show_output(shown, self._drawn(model, width))

    def _drawn(self, model: TranscriptModel, width: int) -> list[Spans]:
        lines: list[Spans] = []
        former: Any = None
        for block in model.blocks[-_BLOCKS:]:
            lines += [line.spans or (("", "text"),) for line in self._drawer.below(former, block, width, False, 0.0)]
            former = block
        return lines


def _as_shown(envelope: Envelope) -> Envelope:
    """What stands beside the words that an agent was sent, its role among it, is no words of the person."""
    event = envelope.event
    if not isinstance(event, MessageAdded) or event.message.role != "user":
        return envelope
    first, *more = event.message.parts
    parts = (first, *(replace(part, source="harness") if isinstance(part, Text) else part for part in more))
    return replace(envelope, event=replace(event, message=replace(event.message, parts=parts)))


SCREENS: dict[str, type[Frame]] = {"agents": AgentsCentre}
