"""A session that another program kept as one JSON file, read into words of ours: who said what, which calls were made
and what they answered. Pure; what cannot be taken over is counted, never guessed."""

import base64
import binascii

import msgspec
from msgspec import Struct

from codewhale.protocol.errors import SessionError

SCHEMA_VERSION = 1
_RESULT_KEYS = ("tool_use_id", "tool_call_id", "call_id", "id")
_INPUT_KEYS = ("input", "arguments", "args", "parameters")


class Picture(Struct, frozen=True):
    """An image with its bytes."""

    media_type: str
    data: bytes


class Thought(Struct, frozen=True):
    """What a model thought."""

    text: str


class Result(Struct, frozen=True):
    """What a call answered; `call_id` is "" where the file does not say."""

    call_id: str
    content: str
    ok: bool = True


class ForeignCall(Struct, frozen=True):
    """A call as it was made, with its result where one stands behind it; `arguments` is the raw string."""

    id: str
    name: str
    arguments: str
    result: Result | None = None


Piece = str | Thought | ForeignCall | Picture


class ForeignMessage(Struct, frozen=True):
    """One message: its role (user, assistant, system) and its pieces in order."""

    role: str
    pieces: tuple[Piece, ...]


class Foreign(Struct, frozen=True):
    """A session as its file tells it; "" where it does not. `left_out` counts pieces that have no form here."""

    id: str
    title: str
    workspace: str
    mode: str
    provider: str
    model: str
    messages: tuple[ForeignMessage, ...]
    left_out: int = 0


def parse(data: bytes) -> Foreign:
    """Read a session file. Raises SessionError naming what makes it unusable."""
    try:
        whole = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise SessionError(f"not a session file: not valid JSON ({error})") from None
    if not isinstance(whole, dict) or not isinstance(whole.get("messages"), list):
        raise SessionError('not a session file: it is a JSON object with "schema_version", "metadata" and "messages"')
    version = whole.get("schema_version", SCHEMA_VERSION)
    if not isinstance(version, int) or isinstance(version, bool) or version != SCHEMA_VERSION:
        raise SessionError(f"schema_version is {version!r}; this version reads only {SCHEMA_VERSION}")
    reader = _Reader()
    read = [reader.message(value, number) for number, value in enumerate(whole["messages"], 1)]
    messages, lone = _paired(read)
    about = whole.get("metadata")
    told = {**whole, **about} if isinstance(about, dict) else whole
    return Foreign(
        id=_word(told, "id", "session_id"),
        title=_word(told, "title", "name"),
        workspace=_word(told, "workspace", "workspace_path", "cwd"),
        mode=_word(told, "mode"),
        provider=_word(told, "provider", "api_provider", "model_provider"),
        model=_word(told, "model"),
        messages=messages,
        left_out=reader.left_out + lone,
    )


class _Read(Struct, frozen=True):
    role: str
    pieces: tuple[Piece | Result, ...]


def _paired(read: list[_Read]) -> tuple[tuple[ForeignMessage, ...], int]:
    """The messages with each result at the call before it that it answers, and how many results answer none. One that
    does not say which call it answers is the next one's that has none; where an id came again the newest counts."""
    results: dict[tuple[int, int], Result] = {}
    open_calls: list[tuple[tuple[int, int], str]] = []
    lone = 0
    for number, message in enumerate(read):
        for place, piece in enumerate(message.pieces):
            if isinstance(piece, ForeignCall):
                open_calls.append(((number, place), piece.id))
            elif isinstance(piece, Result):
                newest = sorted(open_calls, key=lambda one: (-one[0][0], one[0][1]))
                found = next((one for one in newest if piece.call_id in (one[1], "")), None)
                if found is None:
                    lone += 1
                else:
                    open_calls.remove(found)
                    results[found[0]] = piece
    said = []
    for number, message in enumerate(read):
        pieces: list[Piece] = []
        for place, piece in enumerate(message.pieces):
            if isinstance(piece, ForeignCall):
                pieces.append(msgspec.structs.replace(piece, result=results.get((number, place))))
            elif not isinstance(piece, Result):
                pieces.append(piece)
        if pieces:
            said.append(ForeignMessage(message.role, tuple(pieces)))
    return tuple(said), lone


class _Reader:
    def __init__(self) -> None:
        self.left_out = 0

    def message(self, value: object, number: int) -> _Read:
        """One message of the list. Raises SessionError for what is none."""
        if not isinstance(value, dict) or not isinstance(value.get("role"), str):
            raise SessionError(f"message {number} is not an object with a role")
        role = {"developer": "system", "model": "assistant", "function": "tool"}.get(value["role"], value["role"])
        if role not in ("user", "assistant", "tool", "system"):
            raise SessionError(f"message {number} has role {value['role']!r}; known are user, assistant, tool, system")
        pieces: list[Piece | Result] = [
            Thought(text) for text in _texts(value, "reasoning_content", "reasoning", "thinking")
        ]
        content = value.get("content")
        if role == "tool" and not _holds_results(content):
            pieces.append(Result(_word(value, *_RESULT_KEYS[:3]), self._flat(content), not value.get("is_error")))
        else:
            pieces += self._content(content, number)
        made = value.get("tool_calls") or ([value["function_call"]] if value.get("function_call") else [])
        if not isinstance(made, list):
            raise SessionError(f"message {number} has tool_calls that are not a list")
        pieces += [self._call(call, number) for call in made]
        return _Read(role, tuple(piece for piece in pieces if piece != ""))

    def _content(self, content: object, number: int) -> list[Piece | Result]:
        if content is None:
            return []
        if isinstance(content, str):
            return [content]
        blocks = [content] if isinstance(content, dict) else content
        if not isinstance(blocks, list):
            raise SessionError(f"message {number} has content that is neither text nor a list of blocks")
        return [piece for block in blocks for piece in self._block(block, number)]

    def _block(self, block: object, number: int) -> list[Piece | Result]:
        if isinstance(block, str):
            return [block]
        if not isinstance(block, dict):
            raise SessionError(f"message {number} has a block that is neither text nor an object")
        kind = str(block.get("type", ""))
        if kind in ("thinking", "reasoning"):
            return [Thought(text) for text in _texts(block, "thinking", "text", "reasoning", "content")]
        if kind in ("tool_call", "function_call", "function") or kind.endswith("tool_use"):
            return [self._call(block, number)]
        if kind.endswith("tool_result") or kind == "function_call_output":
            failed = block.get("is_error") or block.get("success") is False or block.get("status") == "error"
            answered = block["content"] if "content" in block else block.get("output")
            return [Result(_word(block, *_RESULT_KEYS), self._flat(answered), not failed)]
        picture = _picture(block)
        if picture is not None:
            return [picture]
        if isinstance(block.get("text"), str):
            return [block["text"]]
        self.left_out += 1
        return []

    def _call(self, value: object, number: int) -> ForeignCall:
        function = value.get("function") if isinstance(value, dict) else None
        inner = function if isinstance(function, dict) else value
        if not isinstance(inner, dict) or not isinstance(inner.get("name"), str):
            raise SessionError(f"message {number} has a tool call without a name")
        given = next((inner[key] for key in _INPUT_KEYS if inner.get(key) is not None), "")
        arguments = given if isinstance(given, str) else msgspec.json.encode(given).decode()
        return ForeignCall(_word(value, "id", "call_id", "tool_use_id"), inner["name"], arguments)

    def _flat(self, content: object) -> str:
        """A result's text: a string, the texts of blocks, or any other JSON as it stands."""
        if content is None:
            return ""
        if isinstance(content, str):
            return content
        if isinstance(content, list) and all(isinstance(block, dict) for block in content):
            texts = [block["text"] for block in content if isinstance(block.get("text"), str)]
            if texts or not content:
                self.left_out += len(content) - len(texts)
                return "\n".join(texts)
        return msgspec.json.encode(content).decode()


def _holds_results(content: object) -> bool:
    blocks = content if isinstance(content, list) else ()
    return any(isinstance(block, dict) and str(block.get("type", "")).endswith("tool_result") for block in blocks)


def _word(value: object, *keys: str) -> str:
    found = (value.get(key) for key in keys) if isinstance(value, dict) else ()
    return next((text for text in found if isinstance(text, str) and text), "")


def _texts(value: dict[str, object], *keys: str) -> list[str]:
    text = _word(value, *keys)
    return [text] if text.strip() else []


def _picture(block: dict[str, object]) -> Picture | None:
    source = block.get("source")
    if not isinstance(source, dict) or not isinstance(source.get("data"), str):
        return None
    try:
        data = base64.b64decode(source["data"], validate=True)
    except (binascii.Error, ValueError):
        return None
    return Picture(_word(source, "media_type") or "image/png", data) if data else None
