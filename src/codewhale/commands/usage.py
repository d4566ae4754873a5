"""Slash commands about tokens and money: what was used, what it cost, what the cache spared, and the bounds."""

import re
from typing import Any

from msgspec.structs import replace

from codewhale.commands.base import CommandContext, command, misuse
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import CommandOutput, Limits, UsageView
from codewhale.protocol.ports import SessionControl

# Why a call paid for tokens that it had sent before, in words.
CAUSES = {
    "cold": "first request to this model",
    "model": "another model was chosen",
    "compaction": "the conversation was compacted",
    "undo": "a compaction was undone",
    "rewind": "the conversation went back to an earlier message",
    "pruned": "old tool results were shortened",
    "activation": "a tool was activated",
    "effort": "reasoning was switched on or off",
    "expired": "the session was idle for too long",
    "provider": "the provider's cache expired",
    "changed": "earlier parts of the request changed",
}
_AMOUNT = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_COUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kKmM]?)")
_BUDGET_USAGE = "Use /budget AMOUNT, /budget tokens N, /budget turns N, or /budget off."


class UsageCommands:
    """/tokens, /cost, /cache, /budget."""

    def __init__(self, control: SessionControl) -> None:
        self._control = control

    @command("/tokens")
    async def tokens(self, args: str, context: CommandContext) -> CommandOutput:
        """Show the tokens of this session: active, reserved, billed and cached."""
        view = self._control.usage(context.session)
        total, share = view.total, f" ({view.active / view.window:.0%} of it)" if view.window else ""
        rows = [
            ("window", f"{view.window:,} ({view.window_source})"),
            ("active", f"{view.active:,}{share}: latest prompt and answer"),
            ("reserved", f"{view.reserved:,} for an answer" if view.reserved else "nothing for an answer"),
            ("billed in", f"{total['input']:,} in {total['calls']} calls, {view.turn['input']:,} of them this turn"),
            ("billed out", f"{total['output']:,}, {total['reasoning']:,} of them reasoning"),
            ("cached", _cached(total)),
        ]
        if children := view.children["calls"]:
            rows.append(
                ("sub-agents", f"{view.children['input']:,} in, {view.children['output']:,} out in {children} calls")
            )
        return CommandOutput(_table(rows))

    @command("/cost")
    async def cost(self, args: str, context: CommandContext) -> CommandOutput:
        """Show what this session has cost, by model, and what the cache saved."""
        view = self._control.usage(context.session)
        total = view.total
        rows = [("cost", _cost(total)), ("this turn", _cost(view.turn))]
        if view.turns:
            each = [f"{amount / view.turns:.4g} {currency}" for currency, amount in total["cost"].items()]
            rows.append(("each turn", " + ".join(each) or "unknown"))
        rows.append(("saved", f"{_money(total['saved'])} by the cache" if total["saved"] else "unknown"))
        if view.children["calls"]:
            rows.append(("sub-agents", f"{_cost(view.children)}, part of the cost"))
        if len(view.models) > 1:
            rows += [("", f"{row['model']} at {row['provider']}: {_cost(row)}") for row in view.models]
        rows.append(("price", _price(view)))
        return CommandOutput(_table(rows))

    @command("/cache", "[calls]")
    async def cache(self, args: str, context: CommandContext) -> CommandOutput:
        """Show how much of the prompts was cached by the provider, and why not all."""
        view = self._control.usage(context.session)
        total = view.total
        rows = [("hits", _cached(total))]
        if total["expected_rate"] is not None:
            rows.append(("expected", f"{total['expected']:,} tokens, {total['expected_rate']:.1%}, from request bytes"))
        if total["saved"]:
            rows.append(("saved", _money(total["saved"])))
        for cause, count in sorted(total["misses"].items(), key=lambda item: -int(item[1]["tokens"])):
            calls = f"{count['calls']} call{'s' * (count['calls'] != 1)}"
            rows.append((cause, f"{count['tokens']:,} tokens in {calls}: {CAUSES.get(cause, cause)}"))
        if args == "calls":
            rows += [(f"call {row['request']}", _call(row)) for row in view.calls]
        return CommandOutput(_table(rows))

    @command("/budget", "[AMOUNT | tokens N | turns N | off]")
    async def budget(self, args: str, context: CommandContext) -> CommandOutput:
        """Show the budget of this session, or limit cost, tokens or model calls."""
        words = args.split()
        if words:
            limits = _bounds(words, self._control.usage(context.session).limits)
            if limits is None:
                return misuse(f"{args!r} is not a limit. {_BUDGET_USAGE}")
            try:
                self._control.set_budget(context.session, limits)
            except CodeWhaleError as error:
                return CommandOutput(str(error), ok=False)
        view = self._control.usage(context.session)
        currency = (view.price or {}).get("currency", "USD")
        rows = _bound_rows("session", view.limits, view.used, currency)
        rows += _bound_rows("this run", view.run_limits, view.run_used, currency)
        return CommandOutput(_table(rows) if rows else f"No limits are set. {_BUDGET_USAGE}")


def _bounds(words: list[str], limits: Limits) -> Limits | None:
    """The bounds that a person's words ask for; None when they make no sense."""
    match words:
        case ["off"]:
            return Limits()
        case ["tokens" | "turns" as name, "off"]:
            return replace(limits, **{name: None})
        case ["tokens" | "turns" as name, value] if found := _COUNT.fullmatch(value):
            count = int(float(found[1]) * {"": 1, "k": 1_000, "m": 1_000_000}[found[2].lower()])
            return replace(limits, **{name: count}) if count > 0 else None
        case ["cost", value] | [value]:
            if value == "off":
                return replace(limits, cost=None)
            number = value.lstrip("$€¥")
            return replace(limits, cost=float(number)) if _AMOUNT.fullmatch(number) and float(number) > 0 else None
    return None


def _bound_rows(whose: str, limits: Limits, used: dict[str, Any], currency: str) -> list[tuple[str, str]]:
    rows = []
    if limits.cost is not None:
        rows.append(_bound(whose, used["cost"], limits.cost, f" {currency}"))
    if limits.tokens is not None:
        rows.append(_bound(whose, used["tokens"], limits.tokens, " tokens"))
    if limits.turns is not None:
        rows.append(_bound(whose, used["turns"], limits.turns, " model calls"))
    if limits.seconds is not None:
        rows.append((whose, f"{limits.seconds:g} seconds a turn"))
    return rows


def _bound(whose: str, used: float, bound: float, unit: str) -> tuple[str, str]:
    left = max(0.0, bound - used)
    return whose, f"{used:,.6g} of {bound:,.6g}{unit} used ({used / bound:.0%}), {left:,.6g} left"


def _cached(sums: dict[str, Any]) -> str:
    if sums["hit_rate"] is None:
        return "unknown: the provider does not report it" if sums["calls"] else "no model call yet"
    return f"{sums['hit']:,} tokens, {sums['hit_rate']:.1%} of input; {sums['told'] - sums['hit']:,} missed"


def _call(row: dict[str, Any]) -> str:
    usage = {"input": 0, "cache_hit": 0, **row.get("usage", {})}
    why = f", {row['cause']}" if row.get("cause") else ""
    return f"{usage['cache_hit']:,} of {usage['input']:,} tokens, {row.get('expected', 0):,} expected{why}"


def _cost(sums: dict[str, Any]) -> str:
    if not sums["calls"]:
        return "nothing: no model call yet"
    if sums["unpriced"] == sums["calls"]:
        return "unknown: no price for this model"
    known = _money(sums["cost"])
    return f"{known}, and {sums['unpriced']} calls without a price" if sums["unpriced"] else known


def _money(amounts: dict[str, float]) -> str:
    return " + ".join(f"{amount:.6f} {currency}" for currency, amount in amounts.items()) or "0"


def _price(view: UsageView) -> str:
    price = view.price
    if price is None:
        return (
            f"unknown for {view.model} at {view.provider}; set it in "
            f'[providers.{view.provider}.prices."{view.model}"] with miss, hit and output per million tokens'
        )
    text = f"{price['miss']:g} missed, {price['hit']:g} cached, {price['output']:g} out per million tokens, "
    text += str(price.get("currency", "USD"))
    if "peak" in price:
        text += f", at peak hours ({price['peak']} UTC); {price.get('off_peak', 1.0):.0%} of it at others"
    if price.get("source"):
        text += f" ({price['source']}, {price.get('date', 'undated')})"
    return text


def _table(rows: list[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)
