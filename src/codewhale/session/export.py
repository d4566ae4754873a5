"""A session as one document to keep or to pass on: Markdown, HTML that needs no other file, or JSON. What a rewind took
back is left out; every text goes through `hide`, which removes what is known to be secret."""

import html
import os
import stat
from collections.abc import Callable, Iterable
from typing import Literal

import msgspec
from msgspec import Struct

from codewhale.lib.files import atomic_write
from codewhale.lib.text import fenced, one_line, sanitise, scrub_surrogates
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import CallFinished, Event, MessageAdded
from codewhale.protocol.messages import Message, Reasoning, Text, ToolCall
from codewhale.protocol.views import SessionSummary
from codewhale.session.standing import standing

Format = Literal["md", "json", "html"]
FORMATS: tuple[Format, ...] = ("md", "json", "html")
_ENDINGS = {".md": "md", ".markdown": "md", ".json": "json", ".html": "html", ".htm": "html"}
_HEADS = {"user": "You", "assistant": "Assistant", "thought": "Thought", "harness": "Added by CodeWhale"}
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color:#1f2328;"
    "background:#fff}section{margin:1rem 0;padding:.2rem 1rem;border-left:3px solid #d0d7de}"
    ".user{border-color:#0969da;background:#f6f8fa}.failed{border-color:#cf222e}h2{font-size:1rem;margin:.6rem 0}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f6f8fa;padding:.6rem}summary{cursor:pointer}"
    "@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}.user,pre{background:#161b22}}"
)


class ExportedPart(Struct, frozen=True, omit_defaults=True):
    """One thing that was said or done: `role` is user, assistant, thought, harness or tool. A tool's entry has its
    `name`, its `arguments` as sent, and in `text` what it answered."""

    role: str
    text: str
    name: str = ""
    arguments: str = ""
    failed: bool = False


class Exported(Struct, frozen=True):
    """A whole session. `version` is that of this form."""

    version: int
    session: SessionSummary
    entries: tuple[ExportedPart, ...]


def exported(summary: SessionSummary, log: Iterable[Event], form: Format, hide: Callable[[str], str]) -> bytes:
    """The document in UTF-8."""

    def clean(text: str) -> str:
        return scrub_surrogates(hide(text))

    named = msgspec.structs.replace(summary, title=clean(summary.title))
    whole = Exported(1, named, tuple(_entries(standing(log), clean)))
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"
    text = _html(whole) if form == "html" else _markdown(whole)
    return text.encode()


def _entries(events: list[Event], clean: Callable[[str], str]) -> Iterable[ExportedPart]:
    results = {event.call_id: event for event in events if isinstance(event, CallFinished)}
    for event in events:
        if isinstance(event, MessageAdded):
            yield from _said(event.message, results, clean)


def _said(message: Message, results: dict[str, CallFinished], clean: Callable[[str], str]) -> Iterable[ExportedPart]:
    for part in message.parts:
        match part:
            case Text(source="harness", text=text) if text.strip():
                yield ExportedPart("harness", clean(text))
            case Text(text=text) if text.strip():
                yield ExportedPart(message.role, clean(text))
            case Reasoning(text=text) if text.strip():
                yield ExportedPart("thought", clean(text))
            case ToolCall():
                done = results.get(part.id)
                text = "(no result)" if done is None else clean(done.content)
                failed = done is None or not done.ok
                yield ExportedPart("tool", text, one_line(part.sent_name), clean(part.sent_arguments), failed)


def _facts(session: SessionSummary) -> list[str]:
    turns = f"{session.turns} turn{'s' * (session.turns != 1)}"
    return [f"Session {session.id}", session.workspace, session.model, f"{session.created} to {session.updated}", turns]


def _markdown(whole: Exported) -> str:
    lines = [f"# {one_line(whole.session.title) or 'Session'}", ""]
    lines += [f"- {one_line(fact)}" for fact in _facts(whole.session)]
    for entry in whole.entries:
        if entry.role == "tool":
            lines += ["", f"### Tool: {entry.name}{' (failed)' if entry.failed else ''}"]
            lines += ["", fenced(sanitise(entry.arguments)), "", fenced(sanitise(entry.text))]
        elif entry.role == "assistant":
            lines += ["", "## Assistant", "", sanitise(entry.text)]
        else:
            lines += ["", f"## {_HEADS[entry.role]}", "", fenced(sanitise(entry.text))]
    return "\n".join(lines) + "\n"


def _html(whole: Exported) -> str:
    from markdown_it import MarkdownIt

    markdown = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    title = html.escape(one_line(whole.session.title) or "Session")
    facts = "".join(f"<li>{html.escape(one_line(fact))}</li>" for fact in _facts(whole.session))
    body = [f"<h1>{title}</h1><ul>{facts}</ul>"]
    for entry in whole.entries:
        text = f"<pre>{html.escape(sanitise(entry.text))}</pre>"
        head = _HEADS.get(entry.role, "")
        if entry.role == "assistant":
            text = f"<h2>{head}</h2>{markdown.render(sanitise(entry.text))}"
        elif entry.role == "user":
            text = f"<h2>{head}</h2>{text}"
        else:
            head = head or f"Tool: {html.escape(entry.name)}{' (failed)' if entry.failed else ''}"
            given = f"<pre>{html.escape(sanitise(entry.arguments))}</pre>" if entry.arguments else ""
            text = f"<details><summary>{head}</summary>{given}{text}</details>"
        body.append(f'<section class="{entry.role}{" failed" if entry.failed else ""}">{text}</section>')
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}"><title>{title}</title>'
    joined = "\n".join(body)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<style>{_STYLE}</style></head>\n<body>{joined}</body></html>\n'
    )


# ---------------------------------------------------------------------- to a file


def format_of(path: str, wanted: str) -> Format:
    """The format that is asked for, else that of the file's ending; Markdown without either. Raises SessionError."""
    name = wanted or (_ENDINGS.get(os.path.splitext(path)[1].lower(), "") if path else "md")
    form = next((one for one in FORMATS if one == name), None)
    if form is None:
        shown = f"no format {one_line(wanted, 40)!r}" if wanted else f"no format in the name {one_line(path)!r}"
        raise SessionError(f"there is {shown}; end the name in .md, .json or .html, or say --format")
    return form


def write_export(path: str, data: bytes, force: bool) -> None:
    """Write a document in one step. What is there already is replaced only with `force`, and only where it is a file.
    Raises SessionError."""
    shown = one_line(path, 500)
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        mode = 0
    except (OSError, ValueError) as error:
        raise SessionError(f"cannot export to {shown}: {getattr(error, 'strerror', None) or error}") from error
    if stat.S_ISLNK(mode):
        raise SessionError(f"cannot export to {shown}: it is a symbolic link; name the file itself")
    if stat.S_ISDIR(mode) or path.endswith("/"):
        raise SessionError(f"cannot export to {shown}: it is a folder; name a file in it")
    if mode and not stat.S_ISREG(mode):
        raise SessionError(f"cannot export to {shown}: it is not a regular file")
    if mode and not force:
        raise SessionError(f"{shown} already exists; choose another name, or replace it with --force")
    if not os.path.isdir(os.path.dirname(os.path.abspath(path))):
        raise SessionError(f"cannot export to {shown}: its folder does not exist; create it first")
    try:
        atomic_write(path, data, point="export")
    except OSError as error:
        raise SessionError(f"cannot export to {shown}: {error.strerror or error}") from error
