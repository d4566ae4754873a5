"""The status lines: while something is done what that is and how to stop it, below it how the session stands."""

import math
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType

from codewhale.display.palette import Palette
from codewhale.display.text import Span, Spans, cells, columns, fit
from codewhale.display.transcript.blocks import RUNNING, CallCard
from codewhale.display.transcript.calls import call_text
from codewhale.display.words import Words
from codewhale.lib.text import one_line
from codewhale.protocol.events import Envelope
from codewhale.protocol.ops import StatusView
from codewhale.protocol.views import ContextView, WorkspaceRow
from codewhale.tui.facts import SessionFacts
from codewhale.tui.keys import first_key
from codewhale.tui.widgets import LOW, TagLine

SAID_SECONDS = 6.0
LEAST_DOING = 24
SILENT_SECONDS = 10.0  # after which the line says that a model sends nothing
FULL, NEARLY = 0.9, 0.75
_GAP = "  "
_ASKS = {"approval_suggest": "muted", "approval_sandbox": "accent", "rights_plan": "muted"}
_USUAL = frozenset(("approval_suggest", "approval_never", "rights_plan"))
_MONEY = {"USD": "$", "CNY": "¥", "EUR": "€"}

# What a line is made of: text, its colour, and how soon it is left out where there is no room (0 never).
Piece = tuple[str, str, int]


def seconds_text(seconds: float) -> str:
    """ "8 s", "2 m 05 s" or "1 h 04 m"."""
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} m"


def money_text(amount: float, currency: str) -> str:
    """An amount with two digits that count: "$0.0042", "$1.37"."""
    digits = 2 if amount >= 1 or amount == 0 else min(6, 1 - math.floor(math.log10(amount)))
    sign = _MONEY.get(currency)
    return f"{sign}{amount:.{digits}f}" if sign else f"{amount:.{digits}f} {one_line(currency, 4)}"


def fitting(pieces: list[Piece], width: int) -> list[Piece]:
    """The pieces that stand in `width` columns, a gap between each two; those of the highest rank go first."""
    kept = [piece for piece in pieces if piece[0]]
    while kept and sum(cells(text) for text, _, _ in kept) + len(_GAP) * (len(kept) - 1) > width:
        last = max(kept, key=lambda piece: piece[2])
        if not last[2]:
            break
        kept.remove(last)
    return kept


class Status(TagLine):
    """One line, or two while something is done. Fed events by `take`, views by the `see` methods, and words for a while
    by `say`: they stand in place of what is less urgent."""

    DEFAULT_CSS = "Status { height: auto; width: 1fr; }"

    def __init__(
        self,
        words: Words,
        palette: Palette,
        clock: Callable[[], float] = time.monotonic,
        keys: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(palette)
        rows = ("composer.send", "app.palette", "app.help", "composer.escape")
        self._named = {row.partition(".")[2]: first_key(row, keys) for row in rows}
        self._words = words
        self._clock = clock
        self._said: tuple[str, str] = ("", "")
        self._said_until = 0.0
        self._opening = "opening"
        self._rows = 1
        self.facts = SessionFacts(clock)

    def on_mount(self) -> None:
        self.set_interval(1.0, self._tick)

    def _tick(self) -> None:
        if self.facts.busy or self._opening == "opening" or self._said[0]:
            self._renew()

    def _renew(self) -> None:
        """Draw again, and make room where there is another line now."""
        former, self._rows = self._rows, len(self.pieces(self.size.width))
        self.refresh(layout=former != self._rows)

    def begin(self) -> None:
        self.facts.begin()
        self._renew()

    def take(self, envelope: Envelope) -> None:
        self._opening = ""
        former = self.facts.busy, self.facts.asking
        if self.facts.take(envelope):
            if former != (self.facts.busy, self.facts.asking):
                self._said = ("", "")  # it was about what was before
            self._renew()

    def see(self, view: StatusView) -> None:
        """How the session says it stands."""
        self.facts.see(view)
        self._renew()

    def see_context(self, view: ContextView) -> None:
        self.facts.see_context(view)
        self._renew()

    def see_workspace(self, view: WorkspaceRow) -> None:
        self.facts.see_workspace(view)
        self._renew()

    @property
    def hint(self) -> str:
        """What can be typed and pressed while nothing stands in the composer."""
        return self._words("status.hint", **self._named)

    def say(self, text: str, tone: str = "text") -> None:
        """Say one line for six seconds. `tone` is a colour of the palette."""
        self._said = (one_line(text, 400), tone)
        self._said_until = self._clock() + SAID_SECONDS
        self._renew()

    def lost(self) -> None:
        self._opening = "failed"
        self.facts = SessionFacts(self._clock)
        self._renew()

    def pieces(self, width: int) -> list[Spans]:
        """The lines that there are."""
        now = self._now()
        above = [_joined(now, self._beside(), width)] if now else []
        low = self.facts.asking and self.screen.size.height < LOW  # a question needs the rows of a low screen
        if now and (low or not (self.facts.busy or self.facts.children)):
            return above
        return [*above, _joined(self._facts(), self._figures(), width)]

    # -------------------------------------------------------------- the upper line

    def _now(self) -> list[Piece]:
        words, facts = self._words, self.facts
        if self._said[0] and self._clock() < self._said_until:
            return [(self._said[0], self._said[1], 0)]
        self._said = ("", "")
        if facts.busy:
            tone = "warning" if facts.asking else "accent"
            seconds, stop = (
                self._seconds(),
                words("status.stop_asking" if facts.turn_asks else "status.stop", **self._named),
            )
            room = self.size.width - 2 - cells(seconds) - cells(stop) - 2 * len(_GAP)
            doing = fit(f"● {self._doing()}", max(room, LEAST_DOING))
            return [(doing, tone, 0), (seconds, "text", 0), (stop, "muted", 1)]
        if facts.children:
            stop = words("status.stop_children", **self._named)
            return [(f"◐ {words('status.children', n=len(facts.children))}", "accent", 0), (stop, "muted", 1)]
        if self._opening:
            return [(words(f"status.{self._opening}"), "muted" if self._opening == "opening" else "error", 0)]
        return []

    def _doing(self) -> str:
        facts = self.facts
        subject = one_line(facts.subject)
        if facts.silent >= SILENT_SECONDS:
            name = "silent" if facts.doing == "model" else "stalled"
            return self._words(f"status.{name}", provider=one_line(facts.provider, 40))
        if facts.doing in ("call", "tool", "approval"):
            subject = call_text(
                self._words, CallCard(name=facts.subject, status=RUNNING if facts.doing == "tool" else "")
            )
        return self._words(f"status.doing_{facts.doing}", subject=subject)

    def _seconds(self) -> str:
        facts = self.facts
        if facts.again_at and facts.doing == "retry":
            return self._words("status.again", seconds=seconds_text(facts.again_at - self._clock() + 0.99))
        if facts.denied_at and facts.doing == "approval":
            return self._words("status.denied_in", seconds=seconds_text(facts.denied_at - self._clock() + 0.99))
        if facts.silent >= SILENT_SECONDS:
            return seconds_text(facts.silent)
        return seconds_text(self._clock() - facts.since)

    def _beside(self) -> list[Piece]:
        words, facts = self._words, self.facts
        queue, children = facts.queue, len(facts.children) if facts.busy else 0
        turn = self._clock() - facts.turn_since
        return [
            (words("status.queued", n=queue) if queue else "", "user", 2),
            (words("status.children", n=children) if children else "", "accent", 3),
            (words("status.turn", seconds=seconds_text(turn)) if facts.turn_since and turn >= 10 else "", "muted", 4),
        ]

    # -------------------------------------------------------------- the lower line

    def _facts(self) -> list[Piece]:
        words, facts = self._words, self.facts
        if not facts.mode:
            return []
        model = "/".join(part for part in (facts.provider, facts.model) if part)
        effort = f" · {facts.effort}" if facts.effort else ""
        asks = f"rights_{facts.mode}" if facts.mode != "agent" else f"approval_{facts.approval}"
        # Who asks outside the sandbox says with that that there is one.
        held = None if asks == "approval_sandbox" and facts.sandbox else facts.sandbox
        return [
            (one_line(model + effort, 48), "text", 1 * (asks not in _USUAL)),
            # What is not asked about is never left out.
            (words(f"status.{asks}") if facts.approval else "", _ASKS.get(asks, "warning"), 5 * (asks in _USUAL)),
            (
                "" if held is None else words("status.held" if held else "status.free"),
                "muted" if held else "warning",
                6,
            ),
            (words("status.skill", names=one_line(", ".join(facts.skills), 32)) if facts.skills else "", "warning", 0),
        ]

    def _figures(self) -> list[Piece]:
        words, facts = self._words, self.facts
        jobs = len(facts.jobs)
        share = facts.context_used / facts.context_room if facts.context_room else 0.0
        tone = "error" if share >= FULL else "warning" if share >= NEARLY else "muted"
        hit = facts.hit
        money = money_text(facts.cost, facts.currency) if facts.cost is not None else ""
        changed = f" ±{facts.changed}" if facts.changed else ""
        return [
            (words("status.jobs", n=jobs) if jobs else "", "accent", 3),
            (words("status.context", share=f"{share:.0%}") if facts.context_room else "", tone, 2),
            (words("status.cache", share=f"{hit:.0%}") if hit is not None else "", "muted", 7),
            (money, "muted", 4),
            (f"{one_line(facts.branch, 28)}{changed}" if facts.branch else "", "muted", 8),
        ]


def _joined(left: list[Piece], right: list[Piece], width: int) -> Spans:
    """Both ends of a line in `width` columns; what has no room is left out, the last of it cut."""
    inner = max(0, width - 2)
    kept = fitting([*left, *right], inner)
    begin, end = [p for p in left if p in kept], [p for p in right if p in kept]
    used = sum(cells(text) for text, _, _ in kept) + len(_GAP) * (len(kept) - 1 if kept else 0)
    spans: list[Span] = []
    for number, (text, tone, _) in enumerate([*begin, *end]):
        if number == len(begin):
            spans.append((" " * max(0, inner - used), "text"))
        if number:
            spans.append((_GAP, "text"))
        spans.append((text, tone))
    if columns(spans) <= inner:
        return ((" ", "text"), *spans)
    room, cut = inner - 1, list[Span]()
    for text, tone in spans:
        cut.append((fit(text, room).removesuffix("…") if cells(text) > room else text, tone))
        room -= cells(text)
        if room <= 0:
            break
    return ((" ", "text"), *cut, ("…", "muted"))
