"""Calls of tools that no model made: a program asks for one by its name, and it is decided, run and recorded as any."""

from typing import Any

from msgspec import Struct

from codewhale.protocol.requests import Op, Query
from codewhale.protocol.tools import ToolSpec


class DirectOutcome(Struct, frozen=True):
    """What a call came to: `content` as a model would read it, `images` as (media type, bytes)."""

    ok: bool
    content: str
    error: str = ""
    images: tuple[tuple[str, bytes], ...] = ()


class RunCall(Op[DirectOutcome], frozen=True, tag="run_call"):
    """Call a tool by its own name in an open session, beside a turn or without one; its events carry `call_id`, which
    nobody has used before. Whoever waits and is cancelled cancels the call. Raises SessionError for a session that is
    closed meanwhile."""

    session: str
    call_id: str
    name: str
    arguments: dict[str, Any]


class ListTools(Query[tuple[ToolSpec, ...]], frozen=True, tag="list_tools"):
    """Ask for the rows of all tools that can be called in a session: those that its provider can serve and that are not
    switched off."""

    session: str
