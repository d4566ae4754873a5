"""Screens to read, search and copy: what a command said, differences, figures; and bars for long work."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from rich.cells import cell_len, set_cell_size
from textual import on
from textual.binding import BindingType
from textual.widget import Widget
from textual.widgets import Input

from codewhale.display.palette import Palette
from codewhale.display.text import Span, Spans, fit, flat, safe_lines
from codewhale.display.transcript.calls import counts
from codewhale.display.transcript.code import Highlighter, diff_lines, diff_rows
from codewhale.display.words import Words
from codewhale.protocol.blocks import DiffBlock
from codewhale.protocol.events import Envelope, ProgressShown
from codewhale.protocol.ops import CommandOutput, RunCommand, SessionStatus, SessionUsage, UsageView
from codewhale.protocol.views import ContextView, GetContext, GetDiff, GetTools, ToolsView
from codewhale.tui.keys import bindings
from codewhale.tui.screens.context import OpenScreen, ScreenContext
from codewhale.tui.screens.frame import Frame
from codewhale.tui.screens.layers import layer_facts, layer_title
from codewhale.tui.widgets import INDENT, Field, Leafed, Page, TagLine

MOST_COPIED = 1 << 20
MOST_FILES = 500
MOST_ROWS = 20_000
_WIDTH = 4000
BAR = 60
METER, _EDGES = 30, 5
# What a part of the next request belongs to in the bar; all others are the conversation. How each is drawn, in this
# order.
_PARTS = {
    "system text": "system", "envelope": "system", "tools": "tools", "skills": "instructions",
    "repo-constitution": "instructions", "repo-rules": "instructions", "user-memory": "memory",
    "codemap-wiki": "memory", "compacted": "memory",
}  # fmt: skip
PARTS = (
    "system text", "skills", "tools", "your messages", "answers", "reasoning", "tool calls", "tool results", "pictures",
    "from CodeWhale", "relay", "compacted", "envelope",
)  # fmt: skip
_FILL = {
    "system": ("█", "accent"), "tools": ("▓", "user"), "instructions": ("█", "warning"), "memory": ("▓", "link"),
    "conversation": ("█", "success"), "free": ("░", "border"), "reserved": ("▒", "muted"),
}  # fmt: skip
_NAME, _PART, _TITLE = 24, 20, 24
MOST_CALLS = 50
SOURCES = ("configured", "reported", "catalog", "name", "fallback", "overflow")
MOST_BARS = 4
PROGRESS_BAR = 20
TASKS = ("index", "install", "tool")
_TASK = 16
_SHARE = 7  # columns of a percentage


class ReportScreen(Leafed, Frame):
    """Lines to read. What they are is given by `report`."""

    PANEL = "report"
    BINDINGS: ClassVar[list[BindingType]] = bindings("pager")
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("pager.down", "frame.move"),
        ("pager.find", "report.find"),
        ("pager.copy", "report.copy"),
        ("pager.close", "frame.close"),
    )

    DEFAULT_CSS = """
    ReportScreen #find { display: none; }
    ReportScreen.finding #find { display: block; }
    """

    def __init__(self, context: ScreenContext, argument: str = "") -> None:
        super().__init__(context, argument)
        self.page = Page(context.palette, id="text")

    async def report(self) -> Sequence[Spans] | None:
        """The lines; None where they could not be had, and why was said."""
        return ()

    def body(self) -> Iterable[Widget]:
        yield self.page
        yield Field(placeholder=self.words("report.sought"), id="find", max_length=200)

    def on_mount(self) -> None:
        self.page.focus()
        self.work(self.load)

    async def load(self) -> None:
        lines = await self.report()
        if lines is not None:
            self.page.show(lines)
            if not lines:
                self.say(self.words("report.nothing"))

    # -------------------------------------------------------------- searching

    @property
    def _line(self) -> Input:
        return self.query_one("#find", Input)

    def action_find(self) -> None:
        self.set_class(True, "finding")
        self._line.focus()

    @on(Input.Submitted, "#find")
    def _sought(self, event: Input.Submitted) -> None:
        event.stop()
        self._stop_finding()
        self.action_find_next()

    def _stop_finding(self) -> None:
        self.set_class(False, "finding")
        self.page.focus()

    def action_find_next(self) -> None:
        """To the next line that has it, from the top again behind the last."""
        self._find(1)

    def action_find_previous(self) -> None:
        self._find(-1)

    def _find(self, step: int) -> None:
        sought = self._line.value
        if not sought:
            self.action_find()
        elif self.page.seek(sought, step):
            self.say("")
        else:
            self.say(self.words("report.not_found", text=flat(sought, 60)), "warning")

    # -------------------------------------------------------------- keys

    def action_copy(self) -> None:
        text = "\n".join("".join(part for part, _ in line) for line in self.page.lines)[:MOST_COPIED]
        self.app.copy_to_clipboard(text)
        self.say(self.words("report.copied", n=len(self.page.lines)), "success")

    def action_close(self) -> None:
        if self.has_class("finding"):
            self._stop_finding()
        else:
            self.dismiss(None)


class CommandReport(ReportScreen):
    """What a slash command says; `argument` is its line."""

    async def report(self) -> Sequence[Spans] | None:
        self.retitle(self.argument)
        said: CommandOutput | None = await self.ask(
            self.context.submit(RunCommand(self.context.session, self.argument)), "frame.loading"
        )
        if said is None:
            return None
        return safe_lines(said.text, "text" if said.ok else "error")


def changed_lines(blocks: Sequence[DiffBlock]) -> list[Spans]:
    """Diffs one after another, each under the name of its file with what it adds and takes away."""
    colours = Highlighter()
    lines: list[Spans] = []
    for block in blocks[:MOST_FILES]:
        added, removed = counts(block.diff)
        lines.append(((flat(block.path), "bold accent"), (f"  +{added:,}", "added"), (f" -{removed:,}", "removed")))
        rows = diff_rows(block.diff, max(0, MOST_ROWS - len(lines)))
        lines += [line.spans for line in diff_lines(rows, block.path, _WIDTH, colours, named=False)]
        lines.append(())
    return lines


class DiffReport(ReportScreen):
    """What differs from the last commit; `argument` is a path to look at alone."""

    PANEL = "diff"

    async def report(self) -> Sequence[Spans] | None:
        if self.argument:
            self.retitle(self.argument)
        blocks: Sequence[DiffBlock] | None = await self.ask(
            self.context.query(GetDiff(self.context.session, self.argument)), "frame.loading"
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


def named(name: str, value: str, tone: str = "text") -> Spans:
    """A name and its value, in columns."""
    return ((set_cell_size(name, max(_NAME, cell_len(name) + 1)), "muted"), (value, tone))


def bar(part: float, whole: float, width: int = METER, tone: str = "accent") -> Spans:
    """How much of a whole a part is."""
    share = min(1.0, max(0.0, part / whole)) if whole > 0 else 0.0
    full = round(share * width)
    return (("█" * full, tone), ("░" * (width - full), "border"))


class ContextReport(ReportScreen):
    """The model's window as one bar of what takes it, then the same as a table."""

    PANEL = "context"
    BINDINGS: ClassVar[list[BindingType]] = bindings("context")
    HINTS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("pager.down", "frame.move"),
        ("context.layers", "context.actions"),
        ("pager.copy", "report.copy"),
        ("pager.close", "frame.close"),
    )

    def action_layers(self) -> None:
        self.dismiss(OpenScreen("layers"))

    async def report(self) -> Sequence[Spans] | None:
        view: ContextView | None = await self.ask(self.context.query(GetContext(self.context.session)), "frame.loading")
        status = None if view is None else await self.ask(self.context.query(SessionStatus(self.context.session)))
        if view is None or status is None:
            return None
        names = ", ".join(flat(name, 40) for name in status.children)
        return [*self._lines(view), *([named(self.words("context.children"), names)] if names else [])]

    def _lines(self, view: ContextView) -> Iterable[Spans]:
        words = self.words
        percent = 100 * view.used // max(1, view.spendable)
        tone = "error" if percent >= 90 else "warning" if percent >= 75 else "text"
        source = words(f"context.source_{view.window_source}") if view.window_source in SOURCES else ""
        yield ((words("context.at", model=flat(view.model), provider=flat(view.provider)), "bold text"),)
        yield ((words("context.window", n=f"{view.window:,}", source=source), "muted"),)
        yield ()
        used = words("context.used", used=f"{view.used:,}", of=f"{view.spendable:,}", percent=percent)
        yield (
            (used, f"bold {tone}"),
            (f"  {words('context.counted' if view.calibrated else 'context.estimated')}", "muted"),
        )
        yield ()
        yield from self._window(view)
        yield ()
        threshold = (
            words("context.threshold", n=f"{view.threshold:,}") if view.threshold else words("context.no_threshold")
        )
        compacted = f" {words('context.compactions', n=view.compactions)}" if view.compactions else ""
        yield ((threshold + compacted, "text"),)
        yield named(words("context.last"), words("context.hit", hit=f"{view.last_hit:,}", miss=f"{view.last_miss:,}"))
        billed = words("context.in_out", tokens_in=f"{view.billed_input:,}", tokens_out=f"{view.billed_output:,}")
        yield named(words("context.billed"), billed)
        yield from self._consists(view)

    def _window(self, view: ContextView) -> Iterable[Spans]:
        """The bar, and a row for each of its parts."""
        parts = _parts(view)
        window, at, width, spans = max(1, view.window, sum(parts.values())), 0, 0, list[Span]()
        whole = max(8, min(BAR, self.app.size.width - _EDGES))
        for name, tokens in parts.items():
            at += tokens
            end = min(whole, max(round(at / window * whole), width + (tokens > 0)))
            spans.append((_FILL[name][0] * (end - width), _FILL[name][1]))
            width = end
        yield tuple(spans)
        yield ()
        for name, tokens in parts.items():
            if tokens or name not in ("instructions", "memory"):
                fill, tone = _FILL[name]
                yield self._row(f"{fill} ", tone, self.words(f"context.part_{name}"), tokens, window)

    def _consists(self, view: ContextView) -> Iterable[Spans]:
        """What the next request consists of, to the byte: the layers of memory, then all the rest."""
        if not view.bytes:
            return
        yield ()
        yield self._sized(self.words("context.layers"), "bold text", view.bytes, view.used)
        for row in view.rows:
            title = layer_title(self.words, row)
            yield self._sized(title, "text" if row.sent else "muted", row.sent, row.tokens)
            yield ((INDENT, "muted"), (" · ".join(layer_facts(self.words, row)), "muted"))
        yield ()
        for part in view.parts:
            name = self.words(f"context.layer_{part.name}") if part.name in PARTS else flat(part.name, 40)
            yield self._sized(name, "text", part.bytes, part.tokens)

    def _sized(self, name: str, tone: str, size: int, tokens: int) -> Spans:
        said = self.words("context.sized", bytes=f"{size:,}", tokens=f"{tokens:,}")
        return ((set_cell_size(fit(name, _TITLE), _TITLE), tone), (said, "muted"))

    def _row(self, mark: str, tone: str, name: str, tokens: int, window: int) -> Spans:
        share = f"{100 * tokens / window:>4.0f} %" if window else ""
        label = set_cell_size(name, _PART - len(mark))
        return (
            (mark, tone),
            (label, "text" if window else "muted"),
            (f"{tokens:>9,}{share}", "text" if window else "muted"),
        )


def _parts(view: ContextView) -> dict[str, int]:
    """The tokens of each part of the window."""
    parts = dict.fromkeys(_FILL, 0)
    sizes = [*((row.name, row.tokens) for row in view.rows), *((part.name, part.tokens) for part in view.parts)]
    for name, tokens in sizes:
        parts[_PARTS.get(name, "conversation")] += tokens
    if not view.parts:
        parts["conversation"] = view.used
    parts["reserved"] = view.reserved
    parts["free"] = max(0, view.window - view.reserved - view.used)
    return parts


class CostReport(ReportScreen):
    """What the session's model calls took and cost."""

    PANEL = "cost"

    async def report(self) -> Sequence[Spans] | None:
        view: UsageView | None = await self.ask(self.context.query(SessionUsage(self.context.session)), "frame.loading")
        return None if view is None else list(self._lines(view))

    def _lines(self, view: UsageView) -> Iterable[Spans]:
        words, total = self.words, view.total
        if not total.get("calls"):
            yield ((words("cost.nothing"), "muted"),)
        yield named(words("cost.total"), self._cost(total), "bold text")
        yield named(words("cost.turn"), self._cost(view.turn))
        if view.turns and total.get("cost"):
            each = {currency: amount / view.turns for currency, amount in total["cost"].items()}
            yield named(words("cost.each"), _money(each))
        if total.get("saved"):
            yield named(words("cost.saved"), _money(total["saved"]), "success")
        yield ()
        counted = words(
            "context.in_out", tokens_in=f"{total.get('input', 0):,}", tokens_out=f"{total.get('output', 0):,}"
        )
        yield named(words("cost.tokens"), counted)
        if total.get("hit_rate") is not None:
            rate = float(total["hit_rate"])
            yield (*named(words("cost.cached"), f"{rate:.1%}  "), *bar(rate, 1.0, tone="success"))
        yield from self._bounds(view)
        if view.children.get("calls"):
            yield named(words("cost.children"), self._cost(view.children))
        if len(view.models) > 1:
            yield ()
            for row in view.models:
                yield named(f"  {flat(str(row.get('model', '')), 22)}", self._cost(row))
        yield ()
        yield named(words("cost.price"), self._price(view.price))
        if view.calls:
            yield ()
            yield ((words("cost.calls"), "bold text"),)
            yield from (self._call(row) for row in view.calls[-MOST_CALLS:])

    def _bounds(self, view: UsageView) -> Iterable[Spans]:
        for key in ("cost", "tokens", "turns"):
            bound = getattr(view.limits, key)
            used = view.used.get(key) or 0
            if bound:
                tone = "error" if used >= bound * 0.95 else "warning" if used >= bound * 0.8 else "success"
                said = self.words(f"cost.bound_{key}", used=f"{used:,.6g}", bound=f"{bound:,.6g}")
                yield (*named(self.words("cost.budget"), f"{said}  "), *bar(used, bound, tone=tone))

    def _cost(self, sums: dict[str, Any]) -> str:
        calls, unpriced = sums.get("calls", 0), sums.get("unpriced", 0)
        if not calls:
            return self.words("cost.none")
        if unpriced == calls:
            return self.words("cost.unknown")
        known = _money(sums.get("cost") or {})
        return self.words("cost.partly", cost=known, n=unpriced) if unpriced else known

    def _price(self, price: dict[str, Any] | None) -> str:
        if price is None:
            return self.words("cost.no_price")
        parts = [
            f"{key} {price[key]:g}" for key in ("miss", "hit", "output") if isinstance(price.get(key), int | float)
        ]
        return self.words("cost.priced", parts=", ".join(parts), currency=flat(str(price.get("currency", "USD")), 8))

    def _call(self, row: dict[str, Any]) -> Spans:
        usage = row.get("usage") or {}
        took, hit = usage.get("input", 0), usage.get("cache_hit", 0)
        said = self.words("cost.call", hit=f"{hit:,}", of=f"{took:,}", out=f"{usage.get('output', 0):,}")
        cause = f"  {flat(str(row['cause']), 40)}" if row.get("cause") else ""
        return (*named(f"  {row.get('request', '')}", said), (cause, "warning"))


class ToolsReport(ReportScreen):
    """The tools that requests carry, with their bytes. `argument` is one to go to."""

    PANEL = "tools"

    async def report(self) -> Sequence[Spans] | None:
        view: ToolsView | None = await self.ask(self.context.query(GetTools(self.context.session)), "frame.loading")
        if view is None:
            return None
        words = self.words
        lines: list[Spans] = [
            named(words("tools.count"), f"{len(view.tools):,}"),
            named(words("tools.size"), words("tools.bytes", n=f"{view.bytes:,}")),
            named(words("tools.profile"), f"{flat(view.profile) or words('tools.usual')} · {flat(view.dialect)}"),
            (),
        ]
        most = max((size for _, size in view.tools), default=0)
        for name, size in view.tools:
            found = ((f"  {words('tools.activated')}", "success"),) if name in view.activated else ()
            tone = "bold accent" if name == self.argument else "text"
            row = ((set_cell_size(fit(flat(name), 26), 27), tone), (f"{size:>7,}  ", "muted"))
            lines.append((*row, *bar(size, most, 12), *found))
        return lines

    async def load(self) -> None:
        """Show it, and go to the tool that was asked for."""
        await super().load()
        if self.argument:
            self.call_after_refresh(self.page.seek, self.argument, 1)


def _money(amounts: dict[str, float]) -> str:
    return " + ".join(f"{amount:.4f} {flat(currency, 8)}" for currency, amount in amounts.items()) or "0"


class ProgressPanel(TagLine):
    """The bars, each on its line at any width. It takes no room while nothing goes on."""

    def __init__(self, words: Words, palette: Palette) -> None:
        super().__init__(palette, id="progress")
        self._words = words
        self._going: dict[str, ProgressShown] = {}

    def take(self, envelope: Envelope) -> None:
        event = envelope.event
        if not isinstance(event, ProgressShown):
            return
        if event.total and event.done >= event.total:
            self._going.pop(event.task, None)
        else:
            self._going[event.task] = event
            while len(self._going) > MOST_BARS:
                del self._going[next(iter(self._going))]
        self.refresh(layout=True)

    def begin(self) -> None:
        """Another session is followed: nothing goes on in it yet."""
        self._going.clear()
        self.refresh(layout=True)

    def pieces(self, width: int) -> list[Spans]:
        return [self._line(shown, width) for shown in self._going.values()]

    def _line(self, shown: ProgressShown, width: int) -> Spans:
        known = shown.task in TASKS
        name = self._words(f"progress.{shown.task}") if known else flat(shown.task, 40)
        room = min(_TASK, width // 3)
        label = set_cell_size(fit(name, room), room)
        said = flat(shown.text, 120)
        if not shown.total:
            return ((label, "muted"), (f" {shown.done:,} ", "accent"), (said, "muted"))
        share = f" {100 * shown.done // shown.total:>3} % "
        length = max(0, min(PROGRESS_BAR, width - room - _SHARE))
        return ((label, "muted"), *bar(shown.done, shown.total, length), (share, "text"), (said, "muted"))


SCREENS: dict[str, type[Frame]] = {
    "context": ContextReport,
    "cost": CostReport,
    "tools": ToolsReport,
    "diff": DiffReport,
    "report": CommandReport,
}
