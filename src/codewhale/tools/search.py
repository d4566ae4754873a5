"""Looking around by text and by name: grep_files, file_search, project_map. All three see the files the one walker
lists and answer in workspace-relative paths; what matches is decided in workspace/textsearch and workspace/ranking."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from codewhale.lib.globs import GlobError, Globs
from codewhale.lib.text import one_line
from codewhale.process.programs import find_program
from codewhale.protocol.blocks import MarkdownBlock, TableBlock
from codewhale.protocol.errors import NextCall, ToolError
from codewhale.protocol.tools import CallContext, Effect, PathSubject, ToolResult
from codewhale.tools.base import Args, Doc, tool
from codewhale.workspace.file_search import score
from codewhale.workspace.files.beside import walked, without_secrets
from codewhale.workspace.files.errors import locate
from codewhale.workspace.ignore import EXCLUDES
from codewhale.workspace.projectmap import build_map
from codewhale.workspace.textsearch import PatternError, PatternTooSlow, TextMatches, TextQuery, escaped, search
from codewhale.workspace.walk import FileListing, Walker

SECONDS = 30.0
GREP_EXCLUDES = (
    "node_modules", ".git", "target", "*.min.js", "*.min.css", "dist", "build", "__pycache__", ".venv", "venv",
)  # fmt: skip
MAP_SKIPS = frozenset({"node_modules", "__pycache__", ".venv", "venv"})
_ROWS = 20
_PART = 500  # files looked at between two looks at the clock
_ESCAPABLE = 4000  # characters of a pattern that stay within bounds when each is escaped


class GrepFiles(Args, frozen=True):
    """Arguments of grep_files."""

    pattern: Annotated[str, Doc("Regular expression, matched within single lines.", min_length=1, max_length=10_000)]
    path: Annotated[str, Doc("File or folder to search; the whole workspace when absent.", min_length=1)] | None = None
    include: Annotated[list[str], Doc("Globs a file must match, such as *.py or src/**.", max_length=50)] | None = None
    exclude: (
        Annotated[list[str], Doc("Globs to leave out, besides dependency and build folders.", max_length=50)] | None
    ) = None
    context_lines: Annotated[int, Doc("Lines shown around each match; 2 when absent.", ge=0, le=20)] | None = None
    case_insensitive: Annotated[bool, Doc("Ignore case.")] | None = None
    max_results: Annotated[int, Doc("Most matches to return; 100 when absent.", ge=1, le=1000)] | None = None


class FileSearch(Args, frozen=True):
    """Arguments of file_search."""

    query: Annotated[str, Doc("Part of a file name or path; letters may be left out.", min_length=1, max_length=500)]
    path: Annotated[str, Doc("Folder to look in; the whole workspace when absent.", min_length=1)] | None = None
    limit: Annotated[int, Doc("Most files to return; 20 when absent.", ge=1, le=200)] | None = None
    extensions: Annotated[list[str], Doc("Only files that end so, such as py or .ts.", max_length=50)] | None = None
    exclude: Annotated[list[str], Doc("Globs to leave out, besides build folders.", max_length=50)] | None = None


class ProjectMapArgs(Args, frozen=True):
    """Arguments of project_map."""

    max_depth: Annotated[int, Doc("Levels of folders to show; 3 when absent.", ge=1, le=10)] | None = None


# (workspace, levels of folders) -> the map of its index and what must be known of that, None where there is no index.
MapOf = Callable[[str, int], Awaitable[tuple[str, tuple[str, ...]] | None]]


class SearchTools:
    """Searches of one workspace after another; holds nothing between calls."""

    def __init__(self, map_of: MapOf | None = None) -> None:
        self._map_of = map_of

    @tool(
        "grep_files",
        effects={Effect.READS},
        subjects=lambda args: (PathSubject(args.path),) if args.path else (),
        parallel=True,
    )
    async def grep_files(self, args: GrepFiles, call: CallContext) -> ToolResult:
        """Search file contents for a regular expression, line by line. Returns matches with their file, line number
        and surrounding lines, sorted by path. Leaves out what git ignores, binary files and files over 10 MiB.
        """
        until = time.monotonic() + SECONDS
        top, path = walked(call.workspace, args.path, call.allowances)
        start = locate(top, path, _again("grep_files", args, path=None))
        wanted = await asyncio.to_thread(_globs, "grep_files", args, "include", args.include or [])
        unwanted = await asyncio.to_thread(
            _globs, "grep_files", args, "exclude", [*GREP_EXCLUDES, *(args.exclude or [])]
        )
        listing = await Walker(top).files(start, skip=unwanted.names)
        files = await _filtered(
            listing.files, lambda path: path == start or _chosen(path, start, wanted, unwanted), until
        )
        if top != call.workspace:
            files = without_secrets(files)
        query = TextQuery(
            args.pattern, bool(args.case_insensitive), _or(args.context_lines, 2), _or(args.max_results, 100)
        )
        try:
            found = await search(
                top,
                files,
                query,
                seconds=max(0.1, until - time.monotonic()),
                rg=find_program("rg", call.workspace),
            )
        except PatternError as error:
            raise _bad_pattern(args, error)
        except PatternTooSlow as slow:
            raise _slow_pattern(args, str(slow))
        if top != call.workspace:
            matches = (replace(one, file=os.path.join(top, one.file)) for one in found.matches)
            found = replace(found, matches=list(matches))
        return _grep_result(found, listing, "" if found.matches else _instead(args, listing, found))

    @tool(
        "file_search",
        effects={Effect.READS},
        subjects=lambda args: (PathSubject(args.path),) if args.path else (),
        parallel=True,
    )
    async def file_search(self, args: FileSearch, call: CallContext) -> ToolResult:
        """Find files by name or path, best match first; the letters of the query need only occur in order. Leaves out
        what git ignores. For text inside files use grep_files.
        """
        query = args.query.strip().removeprefix("./")
        if not query:
            raise _blank_query(args)
        until = time.monotonic() + SECONDS
        top, path = walked(call.workspace, args.path, call.allowances)
        start = locate(top, path, _again("file_search", args, path=None))
        hidden = [glob for glob in EXCLUDES if not Globs([glob]).match(query)]
        unwanted = await asyncio.to_thread(_globs, "file_search", args, "exclude", [*hidden, *(args.exclude or [])])
        listing = await Walker(top).files(start, skip=unwanted.names)
        endings = tuple("." + ending.strip().lstrip(".").lower() for ending in args.extensions or ())
        paths = await _filtered(
            (*listing.files, *listing.links),
            lambda path: (not endings or path.lower().endswith(endings)) and _chosen(path, start, Globs(()), unwanted),
            until,
        )
        ranked = sorted((-value, path) for path in paths if (value := score(query, path)) is not None)
        limit = _or(args.limit, 20)
        away = "" if top == call.workspace else top
        best = [(value, os.path.join(away, path)) for value, path in ranked[:limit]]
        rows = [{"path": path, "name": path.rpartition("/")[2], "score": round(-value, 4)} for value, path in best]
        table = TableBlock(("path", "score"), tuple((path, f"{-value:.2f}") for value, path in best[:_ROWS]))
        return ToolResult(
            content=_json(rows),
            display=(table,),
            metadata={"total": len(ranked), "truncated": len(ranked) > limit or listing.truncated},
        )

    @tool("project_map", effects={Effect.READS}, parallel=True)
    async def project_map(self, args: ProjectMapArgs, call: CallContext) -> ToolResult:
        """Show the workspace's folders and files as a tree, what kinds of files it holds, and the key files to read
        first; once its code is indexed, the most used files with their main definitions. Leaves out what git ignores.
        """
        depth = _or(args.max_depth, 3)
        listing = await Walker(call.workspace).files(skip=MAP_SKIPS)
        shown = build_map((*listing.files, *listing.links), depth, truncated=listing.truncated)
        drawn = await self._map_of(call.workspace, depth) if self._map_of is not None else None
        if drawn is not None:
            shown = msgspec.structs.replace(shown, tree=drawn[0], summary=" ".join((shown.summary, *drawn[1])))
        return ToolResult(
            content=_json(shown),
            display=(MarkdownBlock(f"{shown.summary}\n\n```\n{shown.tree}\n```"),),
            metadata={"truncated": listing.truncated},
        )


async def _filtered(paths: Sequence[str], wanted: Callable[[str], bool], until: float) -> list[str]:
    """The paths that are wanted, a part at a time so that neither the clock nor a cancel has to wait."""
    kept: list[str] = []
    for at in range(0, len(paths), _PART):
        if time.monotonic() > until:
            raise ToolError(
                "timeout",
                f"the globs take too long for {len(paths):,} files. Give fewer of them, or a path inside.",
                field="exclude",
                expected="a few globs",
                received="more than can be tried in time",
            )
        kept += await asyncio.to_thread(lambda part: list(filter(wanted, part)), paths[at : at + _PART])
    return kept


def _chosen(path: str, start: str, wanted: Globs, unwanted: Globs) -> bool:
    """Whether the globs let `path` through; they may be meant from the workspace or from the folder searched."""
    inner = path if start == "." else path[len(start) + 1 :]
    if unwanted.match(inner):
        return False
    return not wanted or wanted.match(inner) or (inner != path and wanted.match(path))


def _globs(name: str, args: GrepFiles | FileSearch, field: str, globs: list[str]) -> Globs:
    try:
        return Globs(globs)
    except GlobError as error:
        raise ToolError(
            "invalid_input",
            f"{field} holds a glob that cannot be used: {error}.",
            field=field,
            expected='globs such as "*.py" or "src/**/*.ts"',
            received=one_line(str(globs)),
            fix=_again(name, args, **{field: None}),
        )


def _instead(args: GrepFiles, listing: FileListing, found: TextMatches) -> str:
    """What to try where nothing matches."""
    if not found.complete or listing.truncated:
        return "Not every file was searched: give a path inside."
    if not found.searched:
        left = (
            f"include leaves none of {len(listing.files):,} files: leave it out"
            if args.include
            else "There is no text file here"
        )
        return f"{left}; look with file_search or list_dir."
    case = "" if args.case_insensitive else "case_insensitive, "
    return f"No line matches. Try {case}a shorter pattern, or codebase_search, which finds code by what it does."


def _grep_result(found: TextMatches, listing: FileListing, hint: str) -> ToolResult:
    truncated = found.total > len(found.matches) or not found.complete or listing.truncated
    told: dict[str, Any] = {
        "total_matches": found.total,
        "files_searched": found.searched,
        "truncated": truncated,
    }
    rows = tuple((match.file, str(match.line_number), one_line(match.line)) for match in found.matches[:_ROWS])
    return ToolResult(
        content=_json({"matches": found.matches, **told, **({"hint": hint} if hint else {})}),
        display=(TableBlock(("file", "line", "text"), rows),),
        metadata={**told, "timed_out": not found.complete},
    )


def _bad_pattern(args: GrepFiles, error: PatternError) -> ToolError:
    before, after = args.pattern[: error.position][-20:], args.pattern[error.position :][:20]
    return ToolError(
        "invalid_input",
        f"pattern is not a valid regular expression: {error.reason} at position {error.position}, between "
        f"{before!r} and {after!r}. To search for the text itself, escape it.",
        field="pattern",
        expected="a regular expression",
        received=one_line(args.pattern),
        fix=_again("grep_files", args, pattern=escaped(args.pattern[:_ESCAPABLE])),
    )


def _slow_pattern(args: GrepFiles, file: str) -> ToolError:
    on = f" on {one_line(file)}" if file else ""
    return ToolError(
        "timeout",
        f"pattern takes too long{on}: it can match the same text in too many ways. Write it without "
        "nested repeats, or search for the text itself.",
        field="pattern",
        expected="a pattern without nested repeats",
        received=one_line(args.pattern),
        fix=_again("grep_files", args, pattern=escaped(args.pattern[:_ESCAPABLE])),
    )


def _blank_query(args: FileSearch) -> ToolError:
    return ToolError(
        "invalid_input",
        "query is blank; give part of a file name.",
        field="query",
        expected="part of a file name or path",
        received=repr(args.query[:50]),
    )


def _again(name: str, args: Args, **changes: Any) -> NextCall:
    """The same call with some arguments changed, or dropped where the change is None."""
    arguments = {**msgspec.to_builtins(args), **changes}
    return NextCall(name, {key: value for key, value in arguments.items() if value is not None})


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _json(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
