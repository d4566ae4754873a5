"""Approvals and questions as forms of an elicitation, and the answer that a filled form comes to."""

from collections.abc import Mapping
from typing import Any

import mcp_types as types

from codewhale.display.asklines import approval_lines, options_of, question_text, takes_several
from codewhale.display.words import Words
from codewhale.protocol.events import ApprovalAsked, Envelope, QuestionAsked
from codewhale.protocol.ops import Answer

_MOST_MESSAGE = 20_000
_MOST_QUESTIONS = 10


def form_of(asked: Envelope, written: str, words: Words) -> types.ElicitRequestFormParams:
    """What is asked, as a form; `written` is how the call was written."""
    event = asked.event
    if isinstance(event, ApprovalAsked):
        return _approval(event, written, words)
    assert isinstance(event, QuestionAsked)
    fields = {f"answer_{at}": _field(one) for at, one in enumerate(event.questions[:_MOST_QUESTIONS], 1)}
    texts = [f"{at}. {question_text(one)}" for at, one in enumerate(event.questions[:_MOST_QUESTIONS], 1)]
    return _form("\n".join([words("mcpserver.question"), *texts]), fields)


def answer_of(asked: Envelope, result: types.ElicitResult | None) -> Answer:
    """What a filled form answers. Whatever is no clear yes to an approval is a no; None is nobody."""
    event, content = asked.event, dict(result.content or {}) if result is not None else {}
    accepted = result is not None and result.action == "accept"
    if isinstance(event, ApprovalAsked):
        if event.clauses:
            confirm = str(content.get("confirm", "")).strip() if accepted else ""
            allowed = bool(confirm) and event.confirmed(confirm)
            return Answer(asked.session, event.request_id, allowed=allowed, confirm=confirm if allowed else "")
        allowed = accepted and content.get("decision") == "allow"
        return Answer(asked.session, event.request_id, allowed=allowed)
    assert isinstance(event, QuestionAsked)
    rows = [_row(one, content.get(f"answer_{at}")) for at, one in enumerate(event.questions, 1)] if accepted else []
    return Answer(asked.session, event.request_id, answers=tuple(rows))


def _approval(ask: ApprovalAsked, written: str, words: Words) -> types.ElicitRequestFormParams:
    message = "\n".join(approval_lines(ask, written, words))
    if ask.clauses:
        text = words("mcpserver.confirm", word=ask.word)
        return _form(message, {"confirm": {"type": "string", "title": text, "maxLength": 200}})
    choices = [{"const": one, "title": words(f"mcpserver.{one}")} for one in ("allow", "deny")]
    field = {"type": "string", "title": words("mcpserver.decision"), "oneOf": choices}
    return _form(message, {"decision": field})


def _form(message: str, fields: dict[str, dict[str, Any]]) -> types.ElicitRequestFormParams:
    schema = {"type": "object", "properties": fields, "required": list(fields)}
    cut = message if len(message) <= _MOST_MESSAGE else message[:_MOST_MESSAGE] + "…"
    return types.ElicitRequestFormParams(message=cut, requested_schema=schema)


def _field(question: Mapping[str, Any]) -> dict[str, Any]:
    labels = [str(option.get("label", "")) for option in options_of(question)]
    title = {"title": str(question.get("header", ""))[:60] or "Answer"}
    if labels and takes_several(question):
        return {"type": "array", **title, "items": {"type": "string", "enum": labels}}
    return {"type": "string", **title, "enum": labels} if labels else {"type": "string", **title}


def _row(question: Mapping[str, Any], value: Any) -> dict[str, Any]:
    several = takes_several(question)
    chosen = [str(one) for one in value] if isinstance(value, list) else [] if value is None else [str(value)]
    return {
        "id": str(question.get("id", "")),
        "label": ", ".join(chosen),
        "value": chosen if several else "".join(chosen[:1]),
    }
