"""Errors that cross rooms. A `ToolError` is written for the model that will read it: what was wrong, what
was wanted, and the next call to make."""

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
    """A call that, made literally, succeeds or asks a person."""

    name: str
    arguments: dict[str, Any]


class ToolError(Exception):
    """A tool call that failed, told to the model.

    `kind` is one of the seven kinds; `field` the argument at fault ("" when none), `expected` what is wanted
    and `received` what came, both short text; `fix` the next call, or None to let dispatch supply one.
    `metadata` joins the result's metadata.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        field: str = "",
        expected: str = "",
        received: str = "",
        fix: NextCall | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind
        self.message = message
        self.field = field
        self.expected = expected
        self.received = received
        self.fix = fix
        self.metadata: dict[str, Any] = {}


class CodeWhaleError(Exception):
    """Base of errors told to a person: the text names what was wrong and what to do."""


class ConfigError(CodeWhaleError):
    """Configuration that cannot be used; names the file, the key and the remedy."""


class SessionError(CodeWhaleError):
    """A session that cannot be opened, found or written."""


class SessionBusyError(SessionError):
    """Another live process holds the session."""


class StorageFullError(SessionError):
    """The disk refused a write; what was acknowledged before is safe."""


class ProviderError(CodeWhaleError):
    """A model provider that cannot be reached or used as configured."""
