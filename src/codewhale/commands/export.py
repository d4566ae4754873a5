"""/export: the session as one file to keep or to pass on."""

import os
import shlex
from typing import Protocol

from codewhale.commands.base import CommandContext, command
from codewhale.lib.text import one_line
from codewhale.protocol.errors import SessionError
from codewhale.protocol.ops import CommandOutput

USAGE = "Use /export [PATH] [--format md|json|html] [--force]; put a path with spaces in quotes."


class Export(Protocol):  # writes a session to a path ("" is one of its own name), and gives the path
    def __call__(self, session: str, path: str, form: str, force: bool) -> str: ...


class ExportCommand:
    """/export."""

    def __init__(self, export: Export) -> None:
        self._export = export

    @command("/export", "[PATH] [--format md|json|html] [--force]")
    async def export(self, args: str, context: CommandContext) -> CommandOutput:
        """Write the conversation to a Markdown, JSON or HTML file, without secrets."""
        try:
            words = shlex.split(args)
        except ValueError:
            return CommandOutput(USAGE, ok=False)
        force, form, paths = False, "", list[str]()
        while words:
            word = words.pop(0)
            if word == "--force":
                force = True
            elif word == "--format" and words:
                form = words.pop(0)
            elif word.startswith("-"):
                return CommandOutput(USAGE, ok=False)
            else:
                paths.append(word)
        if len(paths) > 1:
            return CommandOutput(USAGE, ok=False)
        path = os.path.join(context.workspace, os.path.expanduser(paths[0])) if paths else ""
        try:
            written = self._export(context.session, path, form, force)
        except SessionError as error:
            return CommandOutput(f"Not exported: {error}.", ok=False)
        return CommandOutput(f"Exported to {one_line(written, 1000)}")
