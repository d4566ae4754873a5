"""/models and /providers: what can be chosen, and what each lacks; /connect, /login and /doctor for a model that does
not answer."""

from collections.abc import Awaitable, Callable, Sequence

from codewhale.commands.base import CommandContext, command, misuse
from codewhale.lib.text import one_line
from codewhale.protocol.ops import CommandOutput
from codewhale.protocol.requests import Ask
from codewhale.protocol.views import ListModels, ListProviders, ModelRow, ProviderRow

# Where there is no screen for them.
_CONNECT = (
    "Connecting needs the terminal interface. In a shell: codewhale config set providers.NAME.base_url ADDRESS, then "
    "/model NAME MODEL here; codewhale provider test NAME asks it."
)
_LOGIN = "A key is not typed here, where it would be visible. In a shell: codewhale login {name}; then /retry here."


class ProviderCommands:
    """/models, /providers, /connect, /login, /doctor. `ask(query)` answers it, `examine(session)` gives a diagnosis in
    words and whether all is well."""

    def __init__(self, ask: Ask, examine: Callable[[str], Awaitable[tuple[str, bool]]]) -> None:
        self._ask = ask
        self._examine = examine

    @command("/connect", "[ADDRESS]")
    async def connect(self, args: str, context: CommandContext) -> CommandOutput:
        """Connect a model: one on this machine, at an address, or a provider with a key."""
        return misuse(_CONNECT)

    @command("/login", "[PROVIDER]")
    async def login(self, args: str, context: CommandContext) -> CommandOutput:
        """Check and store a provider's API key."""
        return misuse(_LOGIN.format(name=one_line(args, 60) or "PROVIDER"))

    @command("/doctor")
    async def doctor(self, args: str, context: CommandContext) -> CommandOutput:
        """Check this machine and the configuration, and ask the model's provider."""
        text, well = await self._examine(context.session)
        return CommandOutput(text, well)

    @command("/models", "[PROVIDER]")
    async def models(self, args: str, context: CommandContext) -> CommandOutput:
        """List the models for /model, of one provider or of all; the session's provider is asked."""
        rows: Sequence[ModelRow] = await self._ask(ListModels(context.session, dial=True, provider=args))
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
