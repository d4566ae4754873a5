"""/memory waiting, take and drop: what a model proposes to remember, and what the person makes of it."""

import msgspec

from codewhale.commands.base import CommandContext, misuse
from codewhale.lib.text import counted, one_line
from codewhale.memory.orders import orders_in
from codewhale.protocol.errors import SessionError
from codewhale.protocol.memory import DecideFact, GetWaiting, WaitingFact
from codewhale.protocol.ops import CommandOutput
from codewhale.protocol.requests import Ask, Do


class ProposalCommands:
    """The sub-commands of /memory for what waits, by their names in `table`."""

    def __init__(self, ask: Ask, do: Do) -> None:
        self._ask = ask
        self._do = do
        self.table = {"waiting": self._waiting, "take": self._take, "drop": self._drop}

    async def _waiting(self, args: str, context: CommandContext) -> CommandOutput:
        if args not in ("", "json"):
            return misuse("Say /memory waiting, or /memory waiting json.")
        try:
            rows = await self._ask(GetWaiting(context.workspace))
        except SessionError as error:
            return CommandOutput(str(error), ok=False)
        if args:
            return CommandOutput(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
        if not rows:
            return CommandOutput("Nothing waits to be remembered.")
        one = rows[0].id[:4]
        head = f"{counted(len(rows), 'proposal')} to remember:"
        tail = (
            f"/memory take {one} stores it, /memory take {one} TEXT stores TEXT instead, /memory drop {one} drops it."
        )
        return CommandOutput("\n".join([head, *(line for row in rows for line in _lines(row)), tail]))

    async def _take(self, args: str, context: CommandContext) -> CommandOutput:
        name, _, text = args.partition(" ")
        if not name:
            return misuse(
                "Say /memory take ID, or /memory take ID TEXT to store other words; /memory waiting lists ids."
            )
        return await self._decided(DecideFact(context.workspace, name, "take", text.strip(), context.session))

    async def _drop(self, args: str, context: CommandContext) -> CommandOutput:
        if not args or " " in args:
            return misuse("Say /memory drop ID; /memory waiting lists ids.")
        return await self._decided(DecideFact(context.workspace, args, "drop", session=context.session))

    async def _decided(self, op: DecideFact) -> CommandOutput:
        try:
            await self._do(op)
        except SessionError as error:
            return CommandOutput(str(error), ok=False)
        return CommandOutput("Remembered." if op.decision == "take" else "Dropped.")


def _lines(row: WaitingFact) -> list[str]:
    where = "everywhere" if row.scope == "global" else "here"
    lines = [f"{row.id[:4]}  {one_line(row.text, 2000)}", f"      holds {where}; {row.created}, session {row.session}"]
    if row.origin:
        lines.append(f"      not your words: from {one_line(row.origin)}")
    if what := orders_in(row.text):
        lines.append(f"      beware: this is no plain fact, it has {what}")
    if row.message:
        lines.append(f"      after your message: {one_line(row.message)}")
    return lines + [f"      stored about the same: {one_line(text, 300)}" for text in row.contradicts]
