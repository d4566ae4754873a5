"""Errors that cross rooms. A `ToolError` is written for the model that will read it: what was wrong, what
was wanted, and the next call to make."""

import re
from typing import Any, Literal

from msgspec import Struct

ErrorKind = Literal[
    "invalid_input",
    "missing_field",
    "path_escape",
    "execution_failed",
    "timeout",
    "not_available",
    "permission_denied",
]


class NextCall(Struct, frozen=True):
    """The failed call made right: of the same tool, and made literally it succeeds or asks a person."""

    name: str
    arguments: dict[str, Any]


class Corrected(Struct, frozen=True):
    """The same: the failed call with these arguments in the place of its own. Where what changes things may fail for
    another reason it is not `sure`, and made of a tool that reads alone."""

    arguments: dict[str, Any]
    sure: bool = False


class Look(Struct, frozen=True):
    """A call that shows what the failed one was about: said as advice, never as the next call."""

    name: str
    arguments: dict[str, Any]

    @classmethod
    def of_address(cls, url: str) -> "Look":
        """A search of the web for the words of an address."""
        from urllib.parse import unquote

        place = unquote(url.partition("://")[2].rpartition("@")[2]).partition("?")[0]
        return cls("web_search", {"query": " ".join(re.findall(r"[^\W_]{2,30}", place)[:12]) or "web"})


class ToolError(Exception):
    """A tool call that failed, told to the model.

    `kind` is one of the seven kinds; `field` the argument at fault ("" when none), `expected` what is wanted
    and `received` what came, both short text. `fix` is the failed call made right, or what shows how to make it, or
    None: a next call that does something else is worse than none. `metadata` joins the result's metadata.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        field: str = "",
        expected: str = "",
        received: str = "",
        fix: NextCall | Corrected | Look | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind
        self.message = message
        self.field = field
        self.expected = expected
        self.received = received
        self.fix = fix if isinstance(fix, NextCall) else None
        self.correction = fix if isinstance(fix, Corrected) else None
        self.look = fix if isinstance(fix, Look) else None
        self.metadata: dict[str, Any] = {}


class QuestionFailed(ToolError):
    """A question that has no answer: `failure` is the kind of what the provider said (quota ...), "timeout",
    or "budget" where the session may spend no more."""

    def __init__(self, kind: ErrorKind, message: str, failure: str) -> None:
        super().__init__(kind, message)
        self.failure = failure


class CodeWhaleError(Exception):
    """Base of errors told to a person: the text names what was wrong and what to do."""


class ConfigError(CodeWhaleError):
    """Configuration that cannot be used; names the file, the key and the remedy."""


class SessionError(CodeWhaleError):
    """A session that cannot be opened, found or written."""


class ReviewTargetError(SessionError):
    """What is to be reviewed is not there."""


class SessionBusyError(SessionError):
    """Another live process holds the session."""


class StorageFullError(SessionError):
    """The disk refused a write; what was acknowledged before is safe."""


class ProviderError(CodeWhaleError):
    """A model provider that cannot be reached or used as configured."""
