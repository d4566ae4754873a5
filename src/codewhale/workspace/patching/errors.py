"""What a patch that cannot be read or applied is answered with."""

from collections import Counter
from collections.abc import Sequence

from codewhale.protocol.errors import ToolError
from codewhale.workspace.patching.model import Hunk

_PREVIEW = 4
_AROUND = 2
_LINE = 160


def malformed(text: str, expected: str, received: str, path: str = "") -> ToolError:
    where = f" ({path})" if path and path not in text else ""
    return ToolError("invalid_input", text + where, field="patch", expected=expected, received=received[:_LINE])


def cut_off(text: str) -> ToolError:
    """The patch ends before it is whole. No next call: only its author knows the rest."""
    return ToolError(
        "invalid_input",
        f"the patch is cut off, and nothing was changed: {text}. Send the whole patch again, in parts if it is long",
        field="patch",
        expected="a whole patch",
        received="the beginning of one",
    )


def not_found(path: str, place: str, hunk: Hunk, lines: Sequence[str]) -> ToolError:
    """The context stands nowhere in the file. `place` is "hunk i/n", `lines` the file's."""
    near, hits = closest(hunk, lines)
    wanted = [line.text.rstrip("\r") for line in hunk.old]
    out = [f"{path}: {place} does not match. It expects:", *preview(wanted[:_PREVIEW])]
    if len(wanted) > _PREVIEW:
        out.append(f"  ... and {len(wanted) - _PREVIEW} more lines")
    if lines:
        out.append(f"The file has there (lines {near + 1} on):")
        low, high = max(0, near - _AROUND), min(len(lines), near + min(len(wanted), _PREVIEW) + _AROUND)
        out += [f"  {i + 1:>5}│ {clip(lines[i])}" for i in range(low, high)]
    else:
        out.append("The file is empty.")
    out.append("Hint: " + _hint(hunk, lines, near, hits))
    return ToolError(
        "execution_failed",
        "\n".join(out),
        field="patch",
        expected=f"context lines copied from {path} as it is now",
        received=clip(wanted[0]) if wanted else "",
    )


def ambiguous(path: str, place: str, starts: Sequence[int], how: str) -> ToolError:
    """The context stands at several places (0-based `starts`); `how` names the comparison used."""
    shown = ", ".join(str(start + 1) for start in starts[:8])
    more = f" and {len(starts) - 8} more" if len(starts) > 8 else ""
    return ToolError(
        "execution_failed",
        f"{path}: {place} fits {len(starts)} places ({how}): lines {shown}{more}. Nothing was changed. Add context "
        "lines until it fits one, or give the right line number",
        field="patch",
        expected="context that occurs once in the file",
        received=f"matches at lines {shown}",
    )


def overlapping(path: str, first: str, second: str, line: int) -> ToolError:
    return ToolError(
        "execution_failed",
        f"{path}: {first} and {second} both change line {line}. Make one hunk of them",
        field="patch",
        expected="hunks that change different lines",
        received=f"two changes at line {line}",
    )


def closest(hunk: Hunk, lines: Sequence[str]) -> tuple[int, int]:
    """Where most of the expected lines stand in order: (0-based start, lines that agree but for blanks)."""
    stated = min(max((hunk.start or 1) - 1, 0), max(len(lines) - 1, 0))
    places: dict[str, list[int]] = {}
    for number, line_there in enumerate(lines):
        places.setdefault(line_there.strip(), []).append(number)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(hunk.old):
        text = line.text.strip()
        if text:
            votes.update(place - offset for place in places.get(text, ())[:1000])
    if not votes:
        return stated, 0
    start, hits = min(votes.items(), key=lambda vote: (-vote[1], abs(vote[0] - stated), vote[0]))
    return max(0, start), hits


def _hint(hunk: Hunk, lines: Sequence[str], near: int, hits: int) -> str:
    new = [line.text.strip() for line in hunk.new]
    stripped = [line.strip() for line in lines]
    if any(stripped[i : i + len(new)] == new for i in range(max(0, near - 5), near + 6)) and new:
        return "the new lines are already there; the change may have been made before."
    if not hits:
        return "none of these lines is in the file; check the path and read the file again."
    for offset, line in enumerate(hunk.old):
        at = near + offset
        have = stripped[at] if at < len(stripped) else None
        if have != line.text.strip():
            received = "the end of the file" if have is None else repr(clip(have))
            return f"line {at + 1} differs: wanted {clip(line.text.strip())!r}, found {received}."
    return "the lines differ in blanks only, in a way that does not show how to indent the new ones."


def preview(texts: Sequence[str]) -> list[str]:
    return [f"  {clip(text)}" for text in texts]


def clip(text: str) -> str:
    flat = text.rstrip("\r\n")
    return flat if len(flat) <= _LINE else flat[: _LINE - 1] + "…"
