"""/config: every value of the configuration with where it comes from, and changing one."""

from collections.abc import Callable, Sequence

from codewhale.commands.base import CommandContext, command, misuse
from codewhale.lib.text import sanitise
from codewhale.protocol.errors import ConfigError
from codewhale.protocol.ops import CommandOutput
from codewhale.protocol.views import SettingRow


class ConfigCommand:
    """/config. `rows(workspace)` gives the values, `change(key, value)` sets one and says what to know of it."""

    def __init__(self, rows: Callable[[str], Sequence[SettingRow]], change: Callable[[str, str], str]) -> None:
        self._rows = rows
        self._change = change

    @command("/config", "[KEY | set KEY VALUE]")
    async def config(self, args: str, context: CommandContext) -> CommandOutput:
        """Show every value of the configuration and where it comes from, or change one."""
        words = args.split(maxsplit=2)
        try:
            if words[:1] == ["set"]:
                return self._set(words)
            rows = [
                row
                for row in self._rows(context.workspace)
                if not args or row.key == args or row.key.startswith(args + ".")
            ]
        except ConfigError as error:
            return CommandOutput(str(error), ok=False)
        if not rows:
            return misuse(f"{args} is not set; /config lists what is set.")
        return CommandOutput("\n".join(sanitise(f"{row.key} = {row.shown}  # {row.origin}") for row in rows))

    def _set(self, words: Sequence[str]) -> CommandOutput:
        if len(words) < 3:
            return misuse("Use /config set KEY VALUE, such as /config set tui.theme light.")
        note = self._change(words[1], words[2])
        return CommandOutput(f"{words[1]} is set; takes effect in new sessions. {note}".strip())
