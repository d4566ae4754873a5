"""The web: who dials and what reads pages, built with the first call."""

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codewhale.services.web.dialler import Dialler
    from codewhale.services.web.pages import WebPages


class WebParts:
    """The web of one application."""

    @cached_property
    def dialler(self) -> "Dialler":
        from codewhale.services.web.dialler import Dialler

        return Dialler()

    @cached_property
    def pages(self) -> "WebPages":
        from codewhale.services.web.pages import WebPages

        return WebPages(self.dialler)
