"""/search: the person's own look into the code index."""

import asyncio

from codewhale.codesearch.render import render_json, render_text
from codewhale.codesearch.search import CodeSearch
from codewhale.codesearch.store import IndexDamagedError
from codewhale.commands.base import CommandContext, command, misuse
from codewhale.protocol.errors import CodeWhaleError
from codewhale.protocol.ops import CommandOutput


class SearchCommand:
    """/search."""

    def __init__(self, search: CodeSearch) -> None:
        self._search = search

    @command("/search", "[json] QUERY")
    async def search(self, args: str, context: CommandContext) -> CommandOutput:
        """Find code by what it does: the best files with the reasons for each."""
        first, _, rest = args.partition(" ")
        query = rest.strip() if first == "json" else args
        if not any(letter.isalnum() for letter in query):
            return misuse("Use /search QUERY or /search json QUERY.")
        try:
            answer = await self._search.search(context.workspace, query)
        except (OSError, CodeWhaleError, IndexDamagedError) as error:
            return CommandOutput(f"The code index cannot be used: {error}", ok=False)
        if first == "json":
            return CommandOutput((await asyncio.to_thread(render_json, context.workspace, query, answer))[0])
        text = await asyncio.to_thread(render_text, context.workspace, query, answer)
        return CommandOutput("\n".join((text, *answer.notes)))
