"""What the context holds, what a session has cost, and which tools its requests carry: as figures and bars."""

from collections.abc import Iterable, Sequence
from typing import Any

from rich.cells import cell_len, set_cell_size

from codewhale.display.tones import Line, fit, flat
from codewhale.protocol.ops import ContextView, SessionUsage, ToolsView, UsageView
from codewhale.protocol.views import GetContext, GetTools
from codewhale.tui.screens.report import Report

BAR = 30
_NAME = 24
MOST_CALLS = 50
SOURCES = ("configured", "reported", "catalog", "name", "fallback", "overflow")


def named(name: str, value: str, tone: str = "text") -> Line:
    """A name and its value, in columns."""
    return ((set_cell_size(name, max(_NAME, cell_len(name) + 1)), "muted"), (value, tone))


def bar(part: float, whole: float, width: int = BAR, tone: str = "accent") -> Line:
    """How much of a whole a part is."""
    share = min(1.0, max(0.0, part / whole)) if whole > 0 else 0.0
    full = round(share * width)
    return (("█" * full, tone), ("░" * (width - full), "border"))


class ContextReport(Report):
    """How full the context is, layer by layer."""

    PANEL = "context"

    async def report(self) -> Sequence[Line] | None:
        """The figures of the next request."""
        view: ContextView | None = await self.ask(self.desk.query(GetContext(self.desk.session)), "frame.loading")
        return None if view is None else list(self._lines(view))

    def _lines(self, view: ContextView) -> Iterable[Line]:
        words = self.words
        percent = 100 * view.used // max(1, view.spendable)
        tone = "error" if percent >= 90 else "warning" if percent >= 75 else "success"
        yield named(words("context.model"), words("context.at", model=flat(view.model), provider=flat(view.provider)))
        source = words(f"context.source_{view.window_source}") if view.window_source in SOURCES else ""
        yield named(words("context.window"), f"{words('context.tokens', n=f'{view.window:,}')}  {source}")
        yield named(words("context.reserved"), words("context.tokens", n=f"{view.reserved:,}"))
        yield ()
        used = words("context.used", used=f"{view.used:,}", of=f"{view.spendable:,}", percent=percent)
        yield named(words("context.next"), used, tone)
        yield (*named("", "")[:1], *bar(view.used, view.spendable, tone=tone))
        yield named("", words("context.counted" if view.calibrated else "context.estimated"), "muted")
        yield ()
        most = max((tokens for _, tokens in view.layers), default=0)
        for name, tokens in view.layers:
            yield (*named(f"  {flat(name, 22)}", f"{tokens:>10,}  "), *bar(tokens, most))
        yield ()
        room = words("context.threshold", n=f"{view.threshold:,}") if view.threshold else words("context.no_threshold")
        yield named(words("context.room"), room)
        yield named(words("context.compactions"), f"{view.compactions:,}")
        yield named(words("context.last"), words("context.hit", hit=f"{view.last_hit:,}", miss=f"{view.last_miss:,}"))
        billed = words("context.in_out", tokens_in=f"{view.billed_input:,}", tokens_out=f"{view.billed_output:,}")
        yield named(words("context.billed"), billed)


class CostReport(Report):
    """What the session's model calls took and cost."""

    PANEL = "cost"

    async def report(self) -> Sequence[Line] | None:
        """Sums, by model, and the latest calls."""
        view: UsageView | None = await self.ask(self.desk.query(SessionUsage(self.desk.session)), "frame.loading")
        return None if view is None else list(self._lines(view))

    def _lines(self, view: UsageView) -> Iterable[Line]:
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

    def _bounds(self, view: UsageView) -> Iterable[Line]:
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

    def _call(self, row: dict[str, Any]) -> Line:
        usage = row.get("usage") or {}
        took, hit = usage.get("input", 0), usage.get("cache_hit", 0)
        said = self.words("cost.call", hit=f"{hit:,}", of=f"{took:,}", out=f"{usage.get('output', 0):,}")
        cause = f"  {flat(str(row['cause']), 40)}" if row.get("cause") else ""
        return (*named(f"  {row.get('request', '')}", said), (cause, "warning"))


class ToolsReport(Report):
    """The tools that requests carry, with their bytes. `argument` is one to go to."""

    PANEL = "tools"

    async def report(self) -> Sequence[Line] | None:
        """The array in its order."""
        view: ToolsView | None = await self.ask(self.desk.query(GetTools(self.desk.session)), "frame.loading")
        if view is None:
            return None
        words = self.words
        lines: list[Line] = [
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
