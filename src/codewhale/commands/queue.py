"""/queue: what waits for the running turn."""

from collections.abc import Callable, Sequence

from codewhale.commands.base import CommandContext, command, misuse
from codewhale.lib.text import one_line
from codewhale.protocol.ops import CommandOutput, EditQueue
from codewhale.protocol.views import QueuedRow

USAGE = "Use /queue, /queue edit N TEXT, /queue drop N or /queue clear."


class QueueCommand:
    """/queue. `rows(session)` gives what waits, `edit(op)` changes one of them and gives its former text."""

    def __init__(self, rows: Callable[[str], Sequence[QueuedRow]], edit: Callable[[EditQueue], str]) -> None:
        self._rows = rows
        self._edit = edit

    @command("/queue", "[list | edit N TEXT | drop N | clear]")
    async def queue(self, args: str, context: CommandContext) -> CommandOutput:
        """Show the queued messages, edit one, or drop one or all."""
        verb, number, text = (*args.split(maxsplit=2), "", "", "")[:3]
        rows = self._rows(context.session)
        if verb in ("", "list"):
            return CommandOutput("\n".join(map(_line, range(1, len(rows) + 1), rows)) or "The queue is empty.")
        if verb == "clear":
            dropped = [self._edit(EditQueue(context.session, index, "")) for index in reversed(range(len(rows)))]
            return CommandOutput(f"Dropped: {len(dropped)}." if dropped else "The queue is empty.")
        if verb not in ("edit", "drop") or not number.isdigit() or bool(text) is (verb == "drop"):
            return misuse(USAGE)
        former = self._edit(EditQueue(context.session, int(number) - 1, text))
        if not former:
            return misuse(f"No queued message has number {number}.")
        return CommandOutput(f"{'Dropped' if verb == 'drop' else 'Changed'}: {one_line(former)}")


def _line(number: int, row: QueuedRow) -> str:
    more = f" (+{row.attachments} images)" if row.attachments else ""
    return f"{number:>3}  {row.delivery:<6} {one_line(row.text)}{more}"
