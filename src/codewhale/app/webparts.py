"""The web and speech: who dials, what reads pages, who searches, and who speaks; built with the first call."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from codewhale.app.settings import SpeechTable, WebTable
from codewhale.config import Config

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from codewhale.services.speech.service import Speech
    from codewhale.services.web.dialler import Dialler, Resolver
    from codewhale.services.web.pages import WebPages
    from codewhale.services.web.searching import WebSearch


class WebParts:
    """The web and the voice of one application."""

    def __init__(self, config: Config, environ: Mapping[str, str], closers: "AsyncExitStack") -> None:
        self.config = config
        self._closers = closers
        self._environ = environ
        self.resolve: Resolver | None = None  # another in tests alone

    @cached_property
    def dialler(self) -> "Dialler":
        from codewhale.services.web.dialler import Dialler, resolved

        return Dialler(self.resolve or resolved)

    @cached_property
    def pages(self) -> "WebPages":
        from codewhale.services.web.pages import WebPages

        return WebPages(self.dialler)

    @cached_property
    def search(self) -> "WebSearch":
        from codewhale.services.web.searching import SearchOptions, WebSearch

        table = self.config.section("web", WebTable)
        return WebSearch(self.dialler, SearchOptions(table.search, table.searxng), self._environ)

    async def post(
        self, url: str, headers: Sequence[tuple[str, str]], body: bytes, most: int, seconds: float
    ) -> tuple[int, str, bytes]:
        """Send JSON to an address that the person's configuration names, which may be private. Raises ToolError."""
        from codewhale.services.web.dialler import WebRequest

        request = WebRequest(url, most, seconds, "*/*", tuple(headers), body, own=True)
        answer = await self.dialler.ask(request)
        return answer.status, answer.content_type, answer.body

    @cached_property
    def speech(self) -> "Speech":
        """Who speaks; its sound ends with the application."""
        from codewhale.services.speech.service import Speech, SpeechOptions

        table = self.config.section("speech", SpeechTable)
        options = SpeechOptions(table.url, table.model, table.voice, table.key_env, table.folder)
        speech = Speech(options, self._environ, self.post)
        self._closers.push_async_callback(speech.aclose)
        return speech
