"""The web: who dials, what reads pages, and who searches; built with the first call."""

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from codewhale.app.settings import WebTable
from codewhale.config import Config

if TYPE_CHECKING:
    from codewhale.services.web.dialler import Dialler, Resolver
    from codewhale.services.web.pages import WebPages
    from codewhale.services.web.searching import WebSearch


class WebParts:
    """The web of one application."""

    def __init__(self, config: Config, environ: Mapping[str, str]) -> None:
        self.config = config
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
