"""What is read of a kept value: a slice, a range of lines, its size, what a JSONPath selects, or a description."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Literal

import msgspec
from msgspec import Struct

from codewhale.lib.jsontext import pretty
from codewhale.protocol.handles import PREVIEW, VarHandle

SHOWN, MOST_SHOWN = 12_000, 50_000
PATH_SECONDS, PATH_CHARS, PATH_BYTES = 5.0, 1_000, 64 << 20
_MATCHES = 10_000
_PATTERN_SECONDS = 1.0
Unit = Literal["chars", "lines"]


class ProjectionError(Exception):
    """A projection that a value cannot give; the text says why and what to do."""


class KeptValue:
    """A value as it was kept: `data` is UTF-8 of a text, or JSON. Its text is the text itself, or the JSON indented."""

    def __init__(self, handle: VarHandle, data: bytes) -> None:
        """Raises ProjectionError where JSON does not parse."""
        self.handle = handle
        self.bytes = len(data)
        self.json: Any = None
        if handle.type == "str":
            self.text = data.decode("utf-8", "replace")
            return
        try:
            self.json = msgspec.json.decode(data)
            self.text = pretty(self.json)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ProjectionError(f"What was kept of {handle.name} is no JSON: {error}.") from None

    def lines(self) -> list[str]:
        """The lines with their ends."""
        found = self.text.split("\n")
        ended = [f"{line}\n" for line in found[:-1]]
        return [*ended, found[-1]] if found[-1] else ended

    def count(self) -> dict[str, Any]:
        row: dict[str, Any] = {"chars": len(self.text), "lines": len(self.lines()), "bytes": self.bytes}
        return row if self.handle.type == "str" else {"json_type": self.handle.type, "length": self.handle.length} | row

    def slice(self, start: int, end: int | None, unit: Unit, most: int) -> dict[str, Any]:
        """From `start` (0 is the first) to before `end`."""
        if unit == "chars":
            last = len(self.text) if end is None else min(end, len(self.text))
            return _cut(
                self.text[start:last], most, {"unit": unit, "start": start, "end": last, "of": len(self.text)}, start
            )
        lines = self.lines()
        last = len(lines) if end is None else min(end, len(lines))
        meta = {"unit": unit, "start": start, "end": last, "of": len(lines)}
        return _cut("".join(lines[start:last]), most, meta, sum(map(len, lines[:start])))

    def range(self, first: int, last: int, most: int) -> dict[str, Any]:
        """Lines `first` to `last`, both included; 1 is the first."""
        lines = self.lines()
        last = min(last, len(lines))
        meta = {"unit": "lines", "start": first, "end": last, "of": len(lines)}
        return _cut("".join(lines[first - 1 : last]), most, meta, sum(map(len, lines[: first - 1])))

    def select(self, path: str, most: int) -> dict[str, Any]:
        """What a JSONPath (RFC 9535) selects. Raises ProjectionError where it cannot."""
        if self.handle.type == "str":
            raise ProjectionError("This value is a text, and JSONPath selects from JSON. Use slice, range or count.")
        if self.bytes > PATH_BYTES:
            size = f"{self.bytes:,} bytes; JSONPath reads at most {PATH_BYTES:,}"
            raise ProjectionError(f"This value has {size}. Use slice or range, or select in rlm_eval before finalize.")
        matches = selected(path, self.json)
        text = pretty(matches)
        row: dict[str, Any] = {"jsonpath": path, "count": len(matches)}
        if len(text) <= most:
            return row | {"matches": matches, "truncated": False}
        return row | {"matches": [], "preview": text[:most], "truncated": True, "omitted_chars": len(text) - most}

    def introspect(self) -> dict[str, Any]:
        """What the value is, and a call for each way to read it."""
        ways: dict[str, Any] = {
            "slice": {"start": 0, "end": 2000, "unit": "chars"}, "range": {"start": 1, "end": 50}, "count": True,
        }  # fmt: skip
        if self.handle.type in ("list", "dict"):
            ways["jsonpath"] = "$[0]" if self.handle.type == "list" else "$.*"
        row: dict[str, Any] = {
            "value_type": self.handle.type, "length": self.handle.length, "repr_preview": self.text[:PREVIEW],
        }  # fmt: skip
        if isinstance(self.json, dict):
            row["keys"] = [name[:100] for name in list(self.json)[:40]]
        return row | {"projections": [{"name": name, "example": {name: given}} for name, given in ways.items()]}


def selected(path: str, value: Any) -> list[Any]:
    """The values that a JSONPath selects. Raises ProjectionError."""
    from jsonpath_rfc9535 import JSONPathError, JSONPathRecursionError

    if len(path) > PATH_CHARS:
        raise ProjectionError(f"The path has {len(path):,} characters; at most {PATH_CHARS:,}.")
    try:
        with _within(PATH_SECONDS):
            query = _environment().compile(path)
            found: list[Any] = []
            for node in query.finditer(value):
                found.append(node.value)
                if len(found) > _MATCHES:
                    raise ProjectionError(f"The path selects more than {_MATCHES:,} values; narrow it, or use count.")
            return found
    except TimeoutError:
        raise ProjectionError(
            f"The path took longer than {PATH_SECONDS:.0f} seconds; name members instead of using .. or a pattern."
        ) from None
    except (JSONPathRecursionError, RecursionError):
        raise ProjectionError("The value or the path is too deep for this path; name the members on the way.") from None
    except JSONPathError as error:
        why = str(error).split("\n")[0]
        raise ProjectionError(
            f"{path!r} is no JSONPath (RFC 9535): {why}. Examples: $.items[0].name, $..id, $.items[?@.ok == true]"
        ) from None


def _environment() -> Any:
    """JSONPath as the RFC says it, its patterns within a time."""
    from jsonpath_rfc9535 import JSONPathEnvironment

    environment = JSONPathEnvironment()
    for name, whole in (("match", True), ("search", False)):
        environment.function_extensions[name] = _pattern_function(whole)
    return environment


def _pattern_function(whole: bool) -> Any:
    import regex  # type: ignore[import-untyped]
    from iregexp_check import check
    from jsonpath_rfc9535.function_extensions import Match
    from jsonpath_rfc9535.function_extensions._pattern import map_re

    class Timed(Match):
        """`match`, or `search`; the library's own would follow a hostile pattern for ever."""

        def __call__(self, string: object, pattern: object) -> bool:
            if not isinstance(string, str) or not isinstance(pattern, str) or not check(pattern):
                return False
            find = regex.fullmatch if whole else regex.search
            try:
                return bool(find(map_re(pattern), string, timeout=_PATTERN_SECONDS))
            except regex.error:
                return False

    return Timed()


@contextmanager
def _within(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in this thread's Python code once the time is over: a path can ask for more steps than ever
    end, and a thread cannot be ended from outside."""
    end = time.monotonic() + seconds
    former = sys.getprofile()

    def look(frame: FrameType, event: str, arg: object) -> None:
        # Only in the library's own frames: an error raised in a callback of the garbage collector would be lost, and
        # this look with it.
        if time.monotonic() > end and frame.f_globals.get("__name__", "").startswith("jsonpath_rfc9535"):
            raise TimeoutError

    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(former)


class _Cut(Struct, frozen=True):
    """A part of a text as its reader gets it."""

    content: str
    truncated: bool
    shown_chars: int
    omitted_chars: int
    meta: dict[str, Any]


def _cut(text: str, most: int, meta: dict[str, Any], before: int) -> dict[str, Any]:
    """At most `most` characters of a part, which begins `before` characters into the text. Lines are left whole; where
    one alone is too long, its reader goes on by characters."""
    shown, unit = text[:most], meta["unit"]
    if len(shown) < len(text) and unit == "lines" and "\n" in shown:
        shown = shown[: shown.rindex("\n") + 1]
        meta = meta | {"next_start": meta["start"] + shown.count("\n")}
    elif len(shown) < len(text):
        meta = meta | {"next_start" if unit == "chars" else "next_char": before + len(shown)}
    return msgspec.structs.asdict(_Cut(shown, len(shown) < len(text), len(shown), len(text) - len(shown), meta))
