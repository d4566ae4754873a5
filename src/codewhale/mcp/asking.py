"""What a server may ask back while a call of it runs: the person, by questions, and the model, where that is allowed,
paid from the session's budget."""

from collections.abc import Callable
from typing import Any

import msgspec

from codewhale.lib.text import one_line
from codewhale.mcp.rows import bounded
from codewhale.mcp.terms import ServerFailed
from codewhale.protocol.errors import ToolError
from codewhale.protocol.ports import Asker, Completer, ModelQuestion
from codewhale.protocol.tools import StepProgress

ASK_SECONDS, SAMPLE_SECONDS = 300.0, 120.0
MOST_FIELDS, MOST_CHOICES, MOST_TRIES = 12, 12, 3
MOST_TOKENS, MOST_PROMPT, MOST_SAMPLES = 4096, 200_000, 8
_DECLINE = "Decline"
_LEAVE = "Leave it out"


class CallAsker:
    """Implements `ServerCaller` for one call of a session. `sampling` lets the server ask the model; `say` shows how
    far the call has come."""

    def __init__(
        self, session: str, asker: Asker, completer: Callable[[], Completer], sampling: bool,
        say: Callable[[str | StepProgress], None],
    ) -> None:  # fmt: skip
        self._session = session
        self._asker = asker
        self._completer = completer
        self._sampling = sampling
        self._say = say
        self._samples = 0

    async def elicit(self, server: str, message: str, schema: dict[str, Any], url: str) -> dict[str, Any]:
        """Put a server's question to the person; a cancel where nobody is there to answer."""
        asked = f"The MCP server {one_line(server, 80)} asks: {bounded(message, 600)}"
        try:
            if url:
                return await self._visit(asked, url)
            fields = _fields(schema)
            if not await self._agreed(asked, "Answer", f"You are asked for: {', '.join(fields) or 'a yes'}."):
                return {"action": "decline"}
            content = {}
            for name, field in fields.items():
                value = await self._value(server, name, field, name in schema.get("required", ()))
                if value is not None:
                    content[name] = value
        except (ToolError, _NoAnswer):
            return {"action": "cancel"}
        return {"action": "accept", "content": content}

    async def _visit(self, asked: str, url: str) -> dict[str, Any]:
        text = f"{asked} It wants you to open {one_line(url, 400)} yourself; nothing is opened for you."
        agreed = await self._agreed(text, "I have opened it", "Go on once you are done there.")
        return {"action": "accept" if agreed else "decline"}

    async def _agreed(self, text: str, label: str, description: str) -> bool:
        options = [_option(label, description), _option(_DECLINE, "The server goes on without it.")]
        return await self._answer("consent", text, options) == label

    async def _value(self, server: str, name: str, field: dict[str, Any], required: bool) -> Any:
        """What the person gives for a field; None for one that they leave out."""
        said = bounded(str(field.get("description") or field.get("title") or name), 400)
        text = f"{one_line(server, 80)}: {said} ({one_line(name, 80)}, {_type(field)})"
        choices = _choices(field)
        options = [_option(label, "") for label in choices][:MOST_CHOICES]
        options += [] if required and len(options) > 1 else [_option(_LEAVE, "Or type what you want to give.")]
        for _ in range(MOST_TRIES):
            given = await self._answer(name, text, options)
            if given == _LEAVE and not choices.get(given):
                if not required:
                    return None
                raise _NoAnswer
            try:
                return choices[given] if given in choices else _converted(given, field)
            except ValueError as wrong:
                text = f"{wrong}. {text}"
        raise _NoAnswer

    async def _answer(self, name: str, text: str, options: list[dict[str, str]]) -> str:
        question = {"id": name, "header": "MCP server", "question": text, "options": options}
        answers = await self._asker.question(self._session, [question], ASK_SECONDS)
        if not answers:
            raise _NoAnswer
        return str(answers[0].get("value") or answers[0].get("label") or "")

    async def sample(self, server: str, request: dict[str, Any]) -> dict[str, Any]:
        """Ask the session's model for a server. Raises ServerFailed "refused"."""
        if not self._sampling:
            raise ServerFailed("refused", f"sampling is not allowed for {server}: the user has not configured it")
        self._samples += 1
        if self._samples > MOST_SAMPLES:
            raise ServerFailed("refused", f"one call may ask the model {MOST_SAMPLES} times; make another call")
        text = _conversation(request)
        if len(text) > MOST_PROMPT:
            raise ServerFailed(
                "refused", f"the question has {len(text):,} characters; at most {MOST_PROMPT:,} are sent"
            )
        recipe: dict[str, object] = {"kind": "mcp_sampling", "server": server, "text": text}
        asked = request.get("maxTokens", MOST_TOKENS)
        most = min(asked, MOST_TOKENS) if isinstance(asked, int) and asked > 0 else MOST_TOKENS
        system = str(request.get("systemPrompt") or "")[:MOST_PROMPT]
        question = ModelQuestion(text, recipe, system, max_tokens=most, seconds=SAMPLE_SECONDS)
        try:
            reply = await self._completer().question(self._session, question)
        except ToolError as error:
            raise ServerFailed("refused", f"the model was not asked: {error.message}") from None
        ended = "maxTokens" if reply.finish == "length" else "endTurn"
        content = {"type": "text", "text": reply.text}
        return {"role": "assistant", "content": content, "model": reply.model, "stopReason": ended}

    def progress(self, server: str, done: float, total: float | None, text: str) -> None:
        """How far the call has come."""
        label = bounded(text, 120) or one_line(server, 80)
        whole = total is not None and total == int(total) > 0 and done == int(done)
        self._say(StepProgress(int(done), int(total or 0), label) if whole else f"{label} {done:g}")

    def log(self, server: str, level: str, text: str) -> None:
        """A line that the server tells."""
        self._say(f"{one_line(server, 80)} ({one_line(level, 20)}): {bounded(text, 200)}")


class _NoAnswer(Exception):
    """The person gave none."""


def _option(label: str, description: str) -> dict[str, str]:
    return {"label": label, "description": description}


def _fields(schema: dict[str, Any]) -> dict[str, dict[str, Any]]:
    properties = schema.get("properties", {})
    if not isinstance(properties, dict) or len(properties) > MOST_FIELDS:
        raise _NoAnswer
    return {str(name): field for name, field in properties.items() if isinstance(field, dict)}


def _choices(field: dict[str, Any]) -> dict[str, Any]:
    """The answers that there are, by what a person is shown."""
    if field.get("type") == "boolean":
        return {"Yes": True, "No": False}
    if isinstance(field.get("enum"), list):
        shown = field.get("enumNames")
        values = field["enum"][:MOST_CHOICES]
        names = shown if isinstance(shown, list) and len(shown) == len(field["enum"]) else values
        return {bounded(str(name), 100): value for name, value in zip(names, values, strict=False)}
    titled = field.get("oneOf", field.get("anyOf"))
    if isinstance(titled, list):
        rows = [row for row in titled[:MOST_CHOICES] if isinstance(row, dict) and "const" in row]
        return {bounded(str(row.get("title", row["const"])), 100): row["const"] for row in rows}
    return {}


def _type(field: dict[str, Any]) -> str:
    return one_line(str(field.get("type", "a text")), 20)


def _converted(text: str, field: dict[str, Any]) -> Any:
    """What was typed, as the field wants it. Raises ValueError."""
    match field.get("type"):
        case "integer" | "number":
            try:
                number = float(text)
            except ValueError:
                raise ValueError(f"{one_line(text, 60)} is no number") from None
            if field["type"] == "integer" and number != int(number):
                raise ValueError(f"{one_line(text, 60)} is no whole number")
            return int(number) if field["type"] == "integer" else number
        case "array":
            return [part.strip() for part in text.split(",") if part.strip()]
        case "boolean":
            raise ValueError("answer Yes or No")
    if isinstance(field.get("enum"), list) and text not in field["enum"]:
        raise ValueError(f"{one_line(text, 60)} is none of them")
    return text


def _conversation(request: dict[str, Any]) -> str:
    """The messages of a question as one text."""
    lines = []
    messages = request.get("messages", [])
    for message in messages if isinstance(messages, list) else []:
        content = message.get("content") if isinstance(message, dict) else None
        for part in content if isinstance(content, list) else [content]:
            text = part.get("text") if isinstance(part, dict) else None
            said = text if isinstance(text, str) else f"[{part.get('type', 'part')}]" if isinstance(part, dict) else ""
            lines.append(f"{message.get('role', 'user')}: {said}")
    return "\n\n".join(lines) or msgspec.json.encode(request).decode()[:1000]
