"""Unified diffs of what was changed, for models and people."""

from collections.abc import Iterator, Sequence

_CONTEXT = 3
_MOST_LINES = 4000
_MOST_TEXT = 64 * 1024


def unified_diff(path: str, before: bytes | None, after: bytes | None, limit: int = _MOST_TEXT) -> str:
    """The diff of one file with a/ and b/ headers, "" when nothing differs. Above `limit` characters it is cut at
    a line and says so; what is no text is told in one line."""
    if before == after:
        return ""
    old, new = (_text(data) for data in (before, after))
    head = [f"--- a/{path}" if before is not None else "--- /dev/null"]
    head.append(f"+++ b/{path}" if after is not None else "+++ /dev/null")
    if old is None or new is None:
        sizes = [f"{len(data):,} bytes" if data is not None else "nothing" for data in (before, after)]
        return "\n".join([*head, f"Binary content: {sizes[0]} before, {sizes[1]} now", ""])
    out, size = [], 0
    for line in (*head, *_body(_split(old), _split(new))):
        size += len(line) + 1
        if size > limit:
            out.append(f"... (diff cut at {limit:,} characters)")
            break
        out.append(line)
    return "\n".join([*out, ""])


def _text(data: bytes | None) -> str | None:
    if data is None:
        return ""
    if b"\0" in data[:8192]:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _split(text: str) -> list[str]:
    """Lines without newlines; the last carries the usual note when its newline is missing."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    else:
        lines[-1] += "\n\\ No newline at end of file"
    return lines


def _body(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Hunks. What is alike at both ends is left out before comparing; a middle too long to compare is shown as
    removed and added whole."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    low, after = max(0, head - _CONTEXT), max(0, tail - _CONTEXT)
    left, right = old[low : len(old) - after], new[low : len(new) - after]
    if max(len(left), len(right)) > _MOST_LINES:
        lead, trail = head - low, tail - after
        yield _range(low, len(left), len(right))
        yield from (" " + line for line in left[:lead])
        yield from ("-" + line for line in left[lead : len(left) - trail])
        yield from ("+" + line for line in right[lead : len(right) - trail])
        yield from (" " + line for line in left[len(left) - trail :])
        return
    import difflib

    groups = difflib.SequenceMatcher(None, left, right, autojunk=False).get_grouped_opcodes(_CONTEXT)
    for group in groups:
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        yield f"@@ -{_span(low + i1, i2 - i1)} +{_span(low + j1, j2 - j1)} @@"
        for word, a1, a2, b1, b2 in group:
            if word == "equal":
                yield from (" " + line for line in left[a1:a2])
                continue
            yield from ("-" + line for line in left[a1:a2])
            yield from ("+" + line for line in right[b1:b2])


def _range(low: int, old: int, new: int) -> str:
    return f"@@ -{_span(low, old)} +{_span(low, new)} @@"


def _span(start: int, count: int) -> str:
    return f"{start if count == 0 else start + 1},{count}" if count != 1 else str(start + 1)
