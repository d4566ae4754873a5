"""Recursive language model sessions: code and cheap questions over a source that no context window holds."""

import asyncio
import os
import re
from collections.abc import Callable
from typing import Annotated, Any, Literal, Protocol

import msgspec

from codewhale.lib.jsontext import pretty
from codewhale.lib.text import one_line
from codewhale.protocol.errors import Corrected, NextCall, ToolError
from codewhale.protocol.handles import VarHandle
from codewhale.protocol.marks import inert
from codewhale.protocol.ports import Asker
from codewhale.protocol.tools import CallContext, Effect, Origin, PathSubject, Subject, ToolResult, UrlSubject
from codewhale.rlm.model import BATCH, CONTENT_CHARS, MOST_DEPTH, MOST_QUERIES, PROMPT_CHARS, SESSIONS, RoundOutput
from codewhale.rlm.sessions import RecursiveSession, RecursiveSessions, RoundReport, default_name
from codewhale.services.web.dialler import MOST_BYTES, MOST_SECONDS, WebRequest
from codewhale.services.web.pages import WebPages
from codewhale.session.objects import ACTIVE, object_cards, session_objects
from codewhale.session.session import Session
from codewhale.tools.base import Args, Doc, tool
from codewhale.workspace.files import Workspaces

_PREVIEW = 1_000
_VALUE = 2_000
_CUT = re.compile(r"art_([0-9a-f]{8,64})")
_SOURCES = ("file_path", "content", "session_object", "url")
_WEB = "web page"  # the kind of a source whose text others wrote
Name = Annotated[str, Doc("The session's name or id, as rlm_open gave it.", min_length=1, max_length=100)]


class PageReader(Protocol):
    """Reads pages of the web."""

    @property
    def pages(self) -> WebPages: ...


class RlmSessionObjects(Args, frozen=True):
    """Nothing to give."""


class RlmOpen(Args, frozen=True):
    """Which source; exactly one."""

    name: Annotated[str, Doc("A short name; left out: made from the source.", max_length=48)] | None = None
    file_path: Annotated[str, Doc("A file of the workspace, or an attached source by its name.")] | None = None
    url: (
        Annotated[str, Doc("A web page: its http or https address.", max_length=8192, pattern=r"^https?://")] | None
    ) = None
    content: Annotated[str, Doc(f"The text itself, at most {CONTENT_CHARS:,} characters.")] | None = None
    session_object: Annotated[str, Doc("An id of rlm_session_objects, or art_... of a cut output.")] | None = None


class RlmEval(Args, frozen=True):
    """One round."""

    name: Name
    code: Annotated[str, Doc("Python. SOURCE is the text; print what you need to read.", min_length=1)]


class RlmConfigure(Args, frozen=True):
    """What to change."""

    name: Name
    output_feedback: Annotated[Literal["full", "metadata"], Doc("metadata shows sizes in place of text.")] | None = None
    sub_query_timeout_secs: Annotated[int, Doc("Seconds for one sub-query (120).", ge=1, le=600)] | None = None
    sub_rlm_max_depth: Annotated[int, Doc("How deep sub_rlm may go (1).", ge=0, le=MOST_DEPTH)] | None = None
    share_session: Annotated[bool, Doc("Let your sub-agents use this session.")] | None = None
    round_seconds: Annotated[int, Doc("Seconds for one rlm_eval (180).", ge=10, le=540)] | None = None
    temperature: Annotated[float, Doc("Of the model that is asked.", ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Doc("Of one answer (4096).", ge=16, le=32_768)] | None = None
    max_sub_queries: (
        Annotated[int, Doc("Sub-queries of the session; the user is asked, with the price.", ge=1, le=MOST_QUERIES)]
        | None
    ) = None


class RlmClose(Args, frozen=True):
    """Which session."""

    name: Name


def _opens(args: RlmOpen) -> tuple[Subject, ...]:
    if args.url and args.url.strip():
        return (UrlSubject(args.url.strip()),)
    return (PathSubject(args.file_path),) if args.file_path and args.file_path.strip() else ()


class RlmTools:
    """The tools of recursive sessions. `raised` asks the user for more sub-queries, of which it says the price."""

    def __init__(
        self,
        sessions: RecursiveSessions,
        workspaces: Workspaces,
        session: Callable[[str], Session],
        asker: Asker,
        web: PageReader,
    ) -> None:
        self._sessions = sessions
        self._workspaces = workspaces
        self._session = session
        self._asker = asker
        self._web = web

    @tool("rlm_session_objects", effects={Effect.READS}, parallel=True)
    async def rlm_session_objects(self, args: RlmSessionObjects, call: CallContext) -> ToolResult:
        """List what of this conversation rlm_open can open: session facts, system text, transcript, the user's latest
        message, single messages. Returns cards: id, kind, title, length, preview_500, sha256. Thoughts appear as size
        and hash, long results with their beginning.
        """
        rows, omitted = await asyncio.to_thread(object_cards, self._session(call.session))
        row: dict[str, Any] = {"objects": msgspec.to_builtins(rows)}
        if omitted:
            row["omitted_messages"] = omitted
        text = pretty(row | {"open_with": {"rlm_open": {"session_object": f"{ACTIVE}transcript"}}})
        return ToolResult(text, origin=Origin.WORKSPACE)

    @tool("rlm_open", effects={Effect.READS}, subjects=_opens)
    async def rlm_open(self, args: RlmOpen, call: CallContext) -> ToolResult:
        """Open a Python session over one source that is too large to read: a file, a web page, a text, or a part of
        this conversation. The text stays outside your context; rlm_eval works on it as SOURCE. At most 8 at once.
        Example: rlm_open {"name": "log", "file_path": "build.log"}, then rlm_eval {"name": "log", "code":
        "parts = chunk(20000)\\nanswers = sub_query_all('How many errors are in this part? Answer with a number.',
        parts)\\nfinalize(sum(int(a) for a in answers))"}. Returns name, id, length, type, preview_500, sha256.
        """
        kind, value = _one_source(args)
        taken = {one.name for one in self._sessions.of(call.session)}
        name = (args.name or "").strip() or default_name(value if kind == "file_path" else kind, taken)
        path, type_ = await self._path(kind, value, call)
        confined = True
        try:
            session = await self._sessions.open(call.session, name, path, type_)
        except ToolError as error:
            if error.kind != "not_available" or error.expected != "none":
                raise
            await self._allow_unconfined(call, error)
            confined = False
            session = await self._sessions.open(call.session, name, path, type_, confined=False)
        source = session.source
        preview = source.head.decode("utf-8", "replace")[:500]
        row = {"name": name, "id": session.id, "length": source.bytes, "type": source.kind, "preview_500": preview}
        row |= {"sha256": source.sha256, **({} if confined else {"unconfined": True})}
        return ToolResult(_written(session, row), metadata={"rlm": session.id}, origin=_origin(session))

    @tool("rlm_eval", effects={Effect.READS})
    async def rlm_eval(self, args: RlmEval, call: CallContext) -> ToolResult:
        """Run Python in a recursive session. SOURCE (also _context, _ctx, content) is the text. Helpers: peek(start,
        end), search(pattern), chunk(max_chars) gives slices; sub_query(prompt, slice) asks a fast model about one,
        sub_query_batch(prompt, slices) about at most 16 a call, sub_query_all(prompt, slices) about any number;
        sub_rlm(prompt, source) lets it work with code; finalize(value) gives the answer. Variables stay between rounds.
        Example: {"name": "log", "code": "parts = chunk(20000)\\nanswers = sub_query_all('List the error codes in this
        part, comma separated.', parts)\\nfinalize(sorted(set(','.join(answers).replace(' ', '').split(','))))"}. Long
        output and values become handles: handle_read.
        """
        session = self._find(args.name, call)
        report = await session.run(args.code)
        row = await asyncio.to_thread(self._report, session, report, call)
        counts = session.queries.counts
        metadata = {
            "child_input_tokens": counts.input,
            "child_output_tokens": counts.output,
            "child_prompt_cache_hit_tokens": counts.cache_hit,
            "child_prompt_cache_miss_tokens": counts.cache_miss,
        }
        return ToolResult(_written(session, row), metadata=metadata, origin=_origin(session))

    @tool("rlm_configure", effects={Effect.READS})
    async def rlm_configure(self, args: RlmConfigure, call: CallContext) -> ToolResult:
        """Change how a recursive session works: what rlm_eval shows of output, seconds of a sub-query (1 to 600) and of
        a round, depth of sub_rlm (0 to 3), temperature and length of answers, how many sub-queries it may ask (200;
        more asks the user), and whether sub-agents may use it. Returns name and current_config.
        """
        session = self._find(args.name, call)
        fields = {key: value for key, value in msgspec.structs.asdict(args).items() if value is not None}
        most = fields.pop("max_sub_queries", None)
        del fields["name"]
        note = ""
        if most is not None and most > session.queries.limits.session:
            note = await self._allow_more(session, most, call)
        settings = self._sessions.configure(session, fields, None if note else most)
        config = {**msgspec.to_builtins(settings), "max_sub_queries": session.queries.limits.session}
        row = {"name": session.name, "current_config": config} | ({"note": note} if note else {})
        return ToolResult(pretty(row), origin=Origin.HARNESS)

    @tool("rlm_close", effects={Effect.READS})
    async def rlm_close(self, args: RlmClose, call: CallContext) -> ToolResult:
        """End a recursive session and its kernel. What it kept stays readable by handle_read. Returns its name, id and
        what it used: rounds, sub-queries, seconds.
        """
        session = self._find(args.name, call)
        await self._sessions.close(session)
        counts = session.queries.counts
        row = {
            "name": session.name, "id": session.id, "rpc_count": counts.queries + counts.cached,
            "total_duration_ms": int(counts.seconds * 1000), "peak_var_count": counts.variables,
            "rounds": counts.rounds, "coverage": _coverage(session),
        }  # fmt: skip
        return ToolResult(pretty(row), origin=Origin.HARNESS)

    def _find(self, name: str, call: CallContext) -> RecursiveSession:
        session = self._sessions.find(call.session, name.strip())
        owner = self._session(call.session).state.owner
        if session is None and owner:
            shared = self._sessions.find(owner, name.strip())
            session = shared if shared is not None and shared.queries.settings.share_session else None
        if session is not None:
            return session
        open_ = [one.name for one in self._sessions.of(call.session)]
        names = f"open: {', '.join(open_)}" if open_ else "none is open"
        raise ToolError(
            "invalid_input",
            f"There is no recursive session {name!r} ({names}). One that was opened by a process that has ended is "
            "lost with its variables; the handles of what it kept can still be read. Open the source again.",
            field="name",
            expected="the name of an open session",
            received=repr(name),
            fix=Corrected({"name": open_[0]}, sure=False) if len(open_) == 1 else None,
        )

    async def _path(self, kind: str, value: str, call: CallContext) -> tuple[str, str]:
        if kind == "file_path":
            space = self._workspaces.of(call)
            return await asyncio.to_thread(_real_file, space.open(value)), "file"
        if kind == "url":
            request = WebRequest(value.strip(), MOST_BYTES, MOST_SECONDS)
            page = await self._web.pages.page(request)
            if page.elsewhere or page.status >= 400 or not page.text:
                what = f"leads to {one_line(page.elsewhere, 200)}" if page.elsewhere else f"answered {page.status}"
                raise ToolError(
                    "not_available", f"{one_line(value, 200)} {what}, without a text; nothing was opened.", field="url",
                    expected="a page with text", received=one_line(value, 200),
                    fix=NextCall("rlm_open", {"url": page.elsewhere}) if page.elsewhere else None,
                )  # fmt: skip
            sha = await asyncio.to_thread(self._workspaces.artifacts.put, page.text.encode("utf-8", "replace"))
            return self._workspaces.artifacts.path(sha), _WEB
        text = value
        if kind == "session_object" and (cut := _CUT.fullmatch(value.strip())):
            outputs = await asyncio.to_thread(self._workspaces.artifacts.find, cut[1])
            if len(outputs) == 1:
                return self._workspaces.artifacts.path(outputs[0]), "output"
        if kind == "session_object":
            objects = await asyncio.to_thread(
                lambda: {one.id: one for one in session_objects(self._session(call.session))}
            )
            if value.strip() not in objects:
                raise ToolError(
                    "invalid_input",
                    f"There is no session object {value!r}; rlm_session_objects lists them.",
                    field="session_object",
                    expected=f"one of {', '.join(list(objects)[:4])} ...",
                    received=value,
                    fix=NextCall("rlm_open", {"session_object": f"{ACTIVE}transcript"}),
                )
            found = objects[value.strip()]
            text, type_ = found.text, f"session_object:{found.kind}"
        else:
            type_ = "content"
        artifacts = self._workspaces.artifacts
        sha = await asyncio.to_thread(artifacts.put, text.encode("utf-8", "replace"))
        return artifacts.path(sha), type_

    async def _allow_unconfined(self, call: CallContext, error: ToolError) -> None:
        if not self._asker.attended(call.session):
            raise error
        question = f"{error.message} Run the code of this recursive session without a sandbox, as your user?"
        if not await self._yes(call, question, "Unconfined code"):
            raise ToolError("permission_denied", "The user does not let this code run without a sandbox.")

    async def _allow_more(self, session: RecursiveSession, most: int, call: CallContext) -> str:
        """Why there may not be so many sub-queries, "" where a person agrees to them."""
        counts = session.queries.counts
        each = (counts.input + counts.output) / counts.queries if counts.queries else 0
        price = f"about {each:,.0f} tokens each so far" if each else "none was asked yet"
        if not self._asker.attended(call.session):
            return "Nobody can be asked for more sub-queries, so their number stays; `[rlm] sub_queries` raises it."
        if not await self._yes(call, f"Let session {session.name} ask {most:,} sub-queries ({price})?", "Sub-queries"):
            return f"The user does not allow {most} sub-queries; their number stays."
        return ""

    async def _yes(self, call: CallContext, question: str, header: str) -> bool:
        options = [{"label": "Yes", "description": "Go on"}, {"label": "No", "description": "Refuse"}]
        asked = [{"header": header, "id": "allow", "question": question, "options": options}]
        answers = await self._asker.question(call.session, asked, 300)
        return any(answer.get("label") == "Yes" for answer in answers)

    def _report(self, session: RecursiveSession, report: RoundReport, call: CallContext) -> dict[str, Any]:
        """The result of a round. Keeps what is long."""
        result, queries = report.result, session.queries
        full = queries.settings.output_feedback == "full"
        row: dict[str, Any] = {
            "name": session.name, "id": session.id, "duration_ms": report.ms, "rpc_count": report.asked,
            "had_error": result.error is not None,
        }  # fmt: skip
        if result.error is not None:
            row["error"] = {"kind": result.error.kind, "message": result.error.message}
            if result.error.traceback:
                row["error"]["traceback"] = result.error.traceback[-_PREVIEW:]
        row["new_vars"] = msgspec.to_builtins(result.new_vars[:40])
        row["final"] = None
        for final in result.finals:
            row["final"] = msgspec.to_builtins(self._kept(session, call, "final", final.value))
            if full and len(shown := pretty(final.value)) <= _VALUE:
                row["final_value"] = final.value if not isinstance(final.value, str) else final.value or shown
            if final.coerced:
                row["coerced"] = "the value was no JSON value; its text was kept"
            if final.confidence is not None:
                row["confidence"] = final.confidence
        for stream, printed in (("stdout", result.stdout), ("stderr", result.stderr)):
            row |= self._printed(session, call, stream, printed, full)
        return row | _standing(session, report)

    def _kept(self, session: RecursiveSession, call: CallContext, base: str, value: Any) -> VarHandle:
        """A value as it is read later, by whatever tool: nothing in one of the web begins or ends a block."""
        safe = _inert(value) if session.source.kind == _WEB else value
        return self._sessions.keep(call.session, session.id, base, safe)

    def _printed(
        self, session: RecursiveSession, call: CallContext, stream: str, printed: RoundOutput, full: bool
    ) -> dict[str, Any]:
        if not printed.text:
            return {}
        row: dict[str, Any] = {}
        if full:
            row[f"{stream}_preview"] = printed.text[:_PREVIEW]
        if len(printed.text) > _PREVIEW or not full:
            row[f"{stream}_handle"] = msgspec.to_builtins(self._kept(session, call, stream, printed.text))
        if printed.bytes > len(printed.text.encode()):
            row[f"{stream}_bytes"] = printed.bytes
        return row


def _standing(session: RecursiveSession, report: RoundReport) -> dict[str, Any]:
    """How the session stands after a round: what of the source was seen, what is used, what went wrong with it."""
    queries, counts = session.queries, session.queries.counts
    row: dict[str, Any] = {}
    if queries.coverage.spans:
        row["coverage"] = _coverage(session)
        if report.result.finals and queries.coverage.seen() < session.source.bytes:
            row["note"] = "No sub-query has seen the whole source: see coverage.gaps (bytes)."
    row["limits"] = {
        "rounds": {"used": counts.rounds},
        "sub_queries": {"used": counts.queries, "max": queries.limits.session},
        "sub_queries_this_round": {"used": queries.round, "max": queries.limits.round},
        "batch": {"max": BATCH},
        "prompt_chars": {"used": counts.longest_prompt, "max": PROMPT_CHARS},
        "seconds": {"used": round(report.ms / 1000, 1), "max": queries.settings.round_seconds},
        "memory_bytes": {"used": report.result.memory, "max": report.result.memory_max},
    }
    if counts.failed:
        row["failed_sub_queries"] = counts.failed
    if report.lost:
        row["state_lost"] = f"{report.lost}; variables are gone, the next rlm_eval begins anew over the same source"
    if report.began_anew:
        row["state_lost"] = f"{report.began_anew}; this round began without earlier variables"
    if not report.confined and not report.lost:
        row["unconfined"] = True
    return row


def _coverage(session: RecursiveSession) -> dict[str, Any]:
    seen, size = session.queries.coverage.seen(), session.source.bytes
    gaps = [list(gap) for gap in session.queries.coverage.gaps(size)]
    return {
        "seen_bytes": seen,
        "of_bytes": size,
        "percent": round(100 * seen / size, 2) if size else 100.0,
        "gaps": gaps,
    }


def _written(session: RecursiveSession, row: dict[str, Any]) -> str:
    """A result; what others wrote begins and ends nothing in it."""
    return pretty(_inert(row) if session.source.kind == _WEB else row)


def _inert(value: Any) -> Any:
    match value:
        case str():
            return inert(value)
        case dict():
            return {_inert(key): _inert(one) for key, one in value.items()}
        case list() | tuple():
            return [_inert(one) for one in value]
    return value


def _origin(session: RecursiveSession) -> Origin:
    return Origin.WEB if session.source.kind == _WEB else Origin.WORKSPACE


def _one_source(args: RlmOpen) -> tuple[str, str]:
    given = {key: value for key in _SOURCES if (value := getattr(args, key)) is not None and value.strip()}
    if len(given) != 1:
        which = " and ".join(given) or "none"
        first = next(iter(given.items()), ("file_path", "path/of/the/file"))
        fixed: dict[str, Any] = dict.fromkeys(_SOURCES) | {first[0]: first[1]}
        raise ToolError(
            "invalid_input" if given else "missing_field",
            f"Give exactly one source: {', '.join(_SOURCES)}; got {which}.",
            field="file_path",
            expected="exactly one source that is not blank",
            received=which,
            fix=Corrected(fixed, sure=False) if given else None,
        )
    ((kind, value),) = given.items()
    if kind == "content" and len(value) > CONTENT_CHARS:
        raise ToolError(
            "invalid_input",
            f"content has {len(value):,} characters; at most {CONTENT_CHARS:,}. Write it to a file and give file_path.",
            field="content",
            expected=f"at most {CONTENT_CHARS:,} characters",
            received=f"{len(value):,} characters",
        )
    return kind, value


def _real_file(file: Any) -> str:
    """Where a file that was opened within the rules really is."""
    with file:
        place = f"/proc/self/fd/{file.stream.fileno()}"
        return os.path.realpath(place) if os.path.exists(place) else os.path.realpath(file.resolved)


__all__ = ("SESSIONS", "RlmTools")
