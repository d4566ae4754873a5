"""What servers return, brought to a size: many parts become few before the SDK makes objects of them, and what is large
or no text goes to files."""

import base64
import binascii
import os
import uuid
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import mcp_types as types
import msgspec
from mcp.client._transport import ReadStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

from codewhale.mcp.terms import CallOutcome, Piece

MOST_PARTS = 256
MOST_INLINE = 64 << 10  # of one text
MOST_TOTAL = 1 << 20  # of the texts of one result
BEGINNING = 4 << 10
MOST_STRUCTURED = 256 << 10
MOST_FILES = 256 << 20  # bytes on disk, of one result
_LISTS = ("content", "contents", "messages")
_PARTS = {
    "text": ("text",), "image": ("data", "mimeType"), "audio": ("data", "mimeType"), "resource_link": ("uri", "name"),
    "resource": ("uri",),
}  # fmt: skip
_MARK = "codewhale/leftOut"


class ThinStream:
    """The messages of a transport, with no more than `MOST_PARTS` parts in one."""

    def __init__(self, inner: ReadStream[SessionMessage | Exception]) -> None:
        self._inner = inner

    @property
    def last_context(self) -> Any:
        """The context of the sender, where the transport keeps one."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        return thin(await self._inner.receive())

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return thin(await self._inner.__anext__())

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._inner.__aexit__(kind, error, trace)


def thin(message: SessionMessage | Exception) -> SessionMessage | Exception:
    """The same message; parts that are none of the protocol's are left out, of those beyond the bound the texts are
    joined into one, and the rest is counted."""
    if not isinstance(message, SessionMessage) or not isinstance(message.message, JSONRPCResponse):
        return message
    result, said = message.message.result, list[str]()
    for name in _LISTS:
        parts = result.get(name)
        if isinstance(parts, list) and name == "content":
            result[name] = [part for part in parts if _is_part(part)]
            if odd := len(parts) - len(result[name]):
                said.append(f"{odd:,} parts that are none of the protocol's are left out")
            parts = result[name]
        if isinstance(parts, list) and len(parts) > MOST_PARTS:
            kept, rest = parts[: MOST_PARTS - 1], parts[MOST_PARTS - 1 :]
            texts = [text for text in map(_text, rest) if text is not None]
            joined = "\n".join(texts).encode("utf-8", "replace").decode()
            kept.append(_joined(name, joined, kept))
            result[name] = kept
            said.append(f"{len(rest):,} of {len(parts):,} parts are joined into one text")
            if len(texts) < len(rest):
                said.append(f"{len(rest) - len(texts):,} that are no text are left out")
    meta = result.get("_meta")
    if said or isinstance(meta, dict):
        result["_meta"] = {**(meta if isinstance(meta, dict) else {}), _MARK: "; ".join(said)}
    return message


def _is_part(part: Any) -> bool:
    """Whether a part is of a kind that is known and has what it must have."""
    kind = part.get("type") if isinstance(part, dict) else None
    rows = part.get("resource") if kind == "resource" else part
    if not isinstance(kind, str) or kind not in _PARTS or not isinstance(rows, dict):
        return False
    body = ("blob",) if kind == "resource" and not isinstance(rows.get("text"), str) else ()
    return all(isinstance(rows.get(name), str) for name in (*_PARTS[kind], *body))


def _text(part: Any) -> str | None:
    inner = part.get("content", part) if isinstance(part, dict) else None
    text = inner.get("text") if isinstance(inner, dict) else None
    return text if isinstance(text, str) else None


def _joined(name: str, text: str, kept: Sequence[Any]) -> dict[str, Any]:
    if name == "contents":
        uri = kept[0].get("uri") if isinstance(kept[0], dict) else None
        return {"uri": uri or "joined:", "text": text}
    part = {"type": "text", "text": text}
    return {"role": "user", "content": part} if name == "messages" else part


class _Pieces:
    """The pieces of one result, with the bounds of all of them."""

    def __init__(self, folder: str) -> None:
        self.made: list[Piece] = []
        self.left_out: list[str] = []
        self._folder = folder
        self._inline = MOST_TOTAL
        self._files = MOST_FILES

    def text(self, text: str, piece: Piece) -> None:
        """A text, where it belongs by its size."""
        data = text.encode("utf-8", "replace")
        path = ""
        if len(data) > MOST_INLINE or len(data) > self._inline:
            path = self._file(data)
            data_text = data[:BEGINNING].decode("utf-8", "ignore")
        else:
            data_text = data.decode()
        self._inline -= min(self._inline, len(data_text))
        self.made.append(msgspec.structs.replace(piece, text=data_text, path=path, size=len(data)))

    def binary(self, encoded: str, piece: Piece) -> None:
        """What came as base64."""
        try:
            data = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            self.left_out.append(f"{piece.kind} {piece.mime}: it is no base64")
            return
        self.made.append(msgspec.structs.replace(piece, path=self._file(data), size=len(data)))

    def _file(self, data: bytes) -> str:
        if len(data) > self._files:
            self.left_out.append(f"{len(data):,} bytes: files of one result hold {MOST_FILES:,} at most")
            return ""
        self._files -= len(data)
        path = os.path.join(self._folder, uuid.uuid4().hex)
        with open(path, "xb", opener=_private) as file:
            file.write(data)
        return path

    def block(self, block: Any, role: str = "") -> None:
        """One part as the protocol has it."""
        if isinstance(block, types.TextContent):
            self.text(block.text, Piece("text", role=role))
        elif isinstance(block, types.ImageContent | types.AudioContent):
            self.binary(block.data, Piece(block.type, mime=block.mime_type, role=role))
        elif isinstance(block, types.ResourceLink):
            about = " ".join(part for part in (block.title or block.name, block.description) if part)
            size = int(block.size or 0)
            self.made.append(
                Piece("link", about[:BEGINNING], block.mime_type or "", str(block.uri), size=size, role=role)
            )
        elif isinstance(block, types.EmbeddedResource):
            self.contents(block.resource, role)
        else:
            self.left_out.append(f"a part of the kind {getattr(block, 'type', '?')!s:.40}, which nobody knows")

    def contents(self, found: Any, role: str = "") -> None:
        """What a resource holds."""
        piece = Piece("resource", mime=found.mime_type or "", uri=str(found.uri), role=role)
        if isinstance(found, types.TextResourceContents):
            self.text(found.text, piece)
        else:
            self.binary(found.blob, piece)

    def outcome(self, meta: Any, structured: Any = None, error: bool = False) -> CallOutcome:
        """All of it."""
        said = (meta or {}).get(_MARK)
        if structured is not None:
            data = msgspec.json.encode(structured)
            if len(data) > MOST_STRUCTURED:
                self.left_out.append(f"structured content of {len(data):,} bytes stands in a file as JSON")
                self.text(data.decode(), Piece("text", mime="application/json"))
                structured = None
        left_out = (*((str(said),) if said else ()), *self.left_out[:20])
        return CallOutcome(tuple(self.made), structured, error, left_out)


def of_call(result: types.CallToolResult, folder: str) -> CallOutcome:
    """What a call came to."""
    pieces = _Pieces(folder)
    for block in result.content:
        pieces.block(block)
    return pieces.outcome(result.meta, result.structured_content, bool(result.is_error))


def of_resource(result: types.ReadResourceResult, folder: str) -> CallOutcome:
    """What a resource holds."""
    pieces = _Pieces(folder)
    for found in result.contents:
        pieces.contents(found)
    return pieces.outcome(result.meta)


def of_prompt(result: types.GetPromptResult, folder: str) -> CallOutcome:
    """The messages of a prompt."""
    pieces = _Pieces(folder)
    for message in result.messages:
        pieces.block(message.content, message.role)
    return pieces.outcome(result.meta)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
