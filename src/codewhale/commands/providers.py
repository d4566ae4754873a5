"""/models and /providers: what can be chosen, and what each lacks."""

from collections.abc import Sequence

from codewhale.commands.base import CommandContext, command
from codewhale.lib.text import one_line
from codewhale.protocol.ops import CommandOutput
from codewhale.protocol.requests import Ask
from codewhale.protocol.views import ListModels, ListProviders, ModelRow, ProviderRow


class ProviderCommands:
    """/models, /providers. `ask(query)` answers it."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    @command("/models", "[PROVIDER]")
    async def models(self, args: str, context: CommandContext) -> CommandOutput:
        """List the models for /model, of one provider or of all."""
        rows: Sequence[ModelRow] = await self._ask(ListModels(context.session))
        lines = [_model(row) for row in rows if args in ("", row.provider)]
        return CommandOutput(
            "\n".join(lines) or f"No known models for {args}; /providers lists the names.", bool(lines)
        )

    @command("/providers")
    async def providers(self, args: str, context: CommandContext) -> CommandOutput:
        """List the providers and what each needs before use."""
        rows: Sequence[ProviderRow] = await self._ask(ListProviders(context.session))
        return CommandOutput("\n".join(map(_provider, rows)))


def _model(row: ModelRow) -> str:
    mark = "*" if row.current else " "
    price = row.price
    cost = f"{price['miss']:g}/{price['output']:g} {price.get('currency', 'USD')}" if price else "price unknown"
    window = f"{row.window // 1000}k" if row.window else "?"
    lacks = "" if row.ready else f"  ({one_line(row.why)})"
    return f"{mark} {row.provider:<18} {one_line(row.model):<40} {window:>6}  {cost}{lacks}"


def _provider(row: ProviderRow) -> str:
    mark = "*" if row.current else " "
    where = "on this machine" if row.local else "ready"
    return f"{mark} {row.name:<20} {one_line(row.why) if not row.ready else where}  {row.base_url}"
