"""Patches made by real programs from random trees: what `git apply` and ours make of each, and what becomes of one
that was cut off."""

import random
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

from codewhale.protocol.errors import ToolError
from codewhale.workspace.patching import apply_patch
from support.patchland import Tree, git, read_tree, workspace, write_tree
from support.patchtext import outcome

WORDS = ["alpha", "beta", "gamma", "delta", "return x", "    if y:", "\tpass", "", "}", "-- dashes", "++ pluses", "é"]


def some_lines(rng: random.Random, count: int) -> list[str]:
    return [f"{rng.choice(WORDS)} {rng.randrange(60)}".rstrip() if rng.random() < 0.8 else "" for _ in range(count)]


def join(rng: random.Random, lines: list[str], end: str) -> bytes:
    text = end.join(lines) + (end if lines and rng.random() < 0.8 else "")
    return text.encode()


def edited(rng: random.Random, lines: list[str]) -> list[str]:
    out = list(lines)
    for _ in range(rng.randint(1, 5)):
        at = rng.randint(0, len(out))
        kind = rng.random()
        if kind < 0.4:
            out[at:at] = some_lines(rng, rng.randint(1, 3))
        elif kind < 0.7:
            del out[at : at + rng.randint(1, 3)]
        elif at < len(out):
            out[at] = out[at] + " changed"
    return out


def scenario(rng: random.Random) -> tuple[Tree, Tree, Tree]:
    """(before, after, where the patch is tried: before, with lines put in here and there)"""
    before: Tree = {}
    after: Tree = {}
    tried: Tree = {}
    for number in range(rng.randint(1, 4)):
        name = (
            rng.choice(["", "src/", "a b/", "b/"]) + rng.choice(["f", "naïve", 'q"uote', "tab\tname"]) + f"{number}.txt"
        )
        end = "\r\n" if rng.random() < 0.2 else "\n"
        lines = some_lines(rng, rng.randint(0, 60))
        data = join(rng, lines, end)
        fate = rng.random()
        if fate < 0.1:
            after[name] = data
            continue
        before[name] = tried[name] = data
        if fate < 0.2:
            continue
        target = "moved/" + name if fate < 0.3 else name
        after[target] = join(rng, edited(rng, lines), end)
        if rng.random() < 0.3 and data:
            shift = [f"put in {i}" for i in range(rng.randint(1, 8))]
            tried[name] = end.join([*shift, ""]).encode() + data
    return before, after, tried


def diff_of(base: Path, context: int) -> bytes:
    """The diff from folder a to folder b as git would write it within one repository."""
    diff = git(base, "diff", "--no-index", "--src-prefix=", "--dst-prefix=", f"-U{context}", "-M30%", "a", "b").stdout
    for word in (b"from", b"to"):
        for side in (b"a/", b"b/", b'"a/', b'"b/'):
            diff = diff.replace(b"\nrename %s %s" % (word, side), b"\nrename %s %s" % (word, side.strip(b"ab/")))
    return diff


def diff_program(base: Path, rng: random.Random) -> bytes:
    """The diff from folder a to folder b as diff(1) writes it: time stamps, and the epoch for a missing file."""
    command = ["diff", "-ruN", "a", "b"]
    text = subprocess.run(command, cwd=base, capture_output=True, check=False, env={"PATH": "/usr/bin:/bin"}).stdout
    lines = [line for line in text.split(b"\n") if not line.startswith(b"Only in")]
    if rng.random() < 0.3:
        lines = [_blank_stamp(line) for line in lines]
    return b"\n".join(lines)


def _blank_stamp(line: bytes) -> bytes:
    """A header line with blanks before its time stamp, as mail programs leave it."""
    if line.startswith((b"--- ", b"+++ ")) and line.count(b"\t") == 1:
        return line.replace(b"\t", b"  ")
    return line


def dressed(diff: bytes, rng: random.Random) -> bytes:
    """The diff as it may arrive: converted to CRLF, without its last newline, without prefixes."""
    kind = rng.random()
    if kind < 0.06:
        return diff.replace(b"\n", b"\r\n")
    if kind < 0.12:
        return diff.removesuffix(b"\n")
    if kind < 0.18:
        for side in (b"a/", b"b/"):
            for before in (b"--- ", b"+++ ", b" "):
                diff = diff.replace(before + side, before)
    return diff


class Tally(NamedTuple):
    """What came of many patches; each disagreement with the patch that led to it."""

    counts: Counter[str]
    disagreements: list[str]


def against_git(seeds: Iterable[int], folder: Path) -> Tally:
    """Apply a random patch for each seed with git and with ours. A disagreement is another tree without a named
    rung, or a refusal, but for a hunk that fits several places, of what git takes."""
    tally = Tally(Counter(), [])
    for seed in seeds:
        rng = random.Random(seed)
        before, after, tried = scenario(rng)
        base = folder / str(seed)
        for name, tree in (("a", before), ("b", after), ("git", tried), ("ours", tried)):
            (base / name).mkdir(parents=True)
            write_tree(base / name, tree)
        diff = diff_program(base, rng) if rng.random() < 0.3 else diff_of(base, rng.choice([1, 3, 3, 3]))
        diff = dressed(diff, rng)
        if diff.strip():
            _compare(tally, base, tried, diff)
    return tally


def _compare(tally: Tally, base: Path, tried: Tree, diff: bytes) -> None:
    theirs = git(base / "git", "apply", "--whitespace=nowarn", "-", stdin=diff)
    space = workspace(base / "ours", base / "store")
    text = diff.decode("utf-8", "surrogateescape")
    report: dict[str, Any] = {}
    try:
        report = apply_patch(space, "s", text).report
    except ToolError as error:
        ambiguous = "fits" in error.message
        result = "both refused" if theirs.returncode else "ambiguous" if ambiguous else "refused alone"
        if read_tree(base / "ours") != tried:
            result = "changed by a refusal"
        message = error.message
    else:
        message = report["message"]
        same = theirs.returncode == 0 and read_tree(base / "ours") == read_tree(base / "git")
        result = "agreed" if same else "named" if "(" in message or "Note: " in message else "unnamed"
    tally.counts[result] += 1
    if result in ("refused alone", "changed by a refusal", "unnamed"):
        tally.disagreements.append(f"{base.name}: {result}: {message}\n{theirs.stderr.decode()}\n{text}")


def envelope_of(before: Tree, after: Tree) -> str:
    """The same change in the `*** Begin Patch` format."""
    out = ["*** Begin Patch"]
    for name in sorted({*before, *after}):
        if "\t" in name:
            continue
        old, new = (tree[name].decode().split("\n")[:-1] if name in tree else None for tree in (before, after))
        if old == new:
            continue
        if new is None:
            out.append(f"*** Delete File: {name}")
        elif old is None:
            out += [f"*** Add File: {name}", *(f"+{line}" for line in new)]
        else:
            out += [f"*** Update File: {name}", *_envelope_hunks(old, new)]
    return "\n".join([*out, "*** End Patch", ""])


def _envelope_hunks(old: list[str], new: list[str]) -> Iterator[str]:
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(3):
        yield "@@"
        for tag, a, b, c, d in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[a:b])
            else:
                yield from (f"-{line}" for line in old[a:b])
                yield from (f"+{line}" for line in new[c:d])


def cut_applied(before: Tree, patch: str, whole_hunks: bool) -> Iterator[str]:
    """Each cut of a patch, at every line, that was applied although it ends within a hunk or a header, or, with
    `whole_hunks` False, at all."""
    lines = patch.split("\n")
    for end in range(1, len(lines) - 1):
        cut = "\n".join([*lines[:end], ""])
        if whole_hunks and _ends_whole(lines[:end]):
            continue
        try:
            changed = outcome(before, cut)
        except ToolError:
            continue
        if changed != before or not whole_hunks:
            yield cut


def _ends_whole(lines: list[str]) -> bool:
    """Whether a unified diff ends with a whole hunk, or with a section that has none: read from its counts alone."""
    old = new = 0
    hunk = False
    for line in lines:
        if (old > 0 or new > 0) and not line.startswith("\\"):
            old -= line[:1] in (" ", "-", "")
            new -= line[:1] in (" ", "+", "")
        elif line.startswith("@@"):
            ranges = [part.lstrip("-+").split(",") for part in line.split(" ")[1:3]]
            old, new = (int(part[1]) if len(part) > 1 else 1 for part in ranges)
            hunk = True
        elif not line.startswith("\\"):
            hunk = line.startswith(("rename to", "index")) and _nothing_follows(lines)
    return hunk and old == 0 and new == 0


def _nothing_follows(lines: list[str]) -> bool:
    """Whether git's header of the last section says that its content does not change."""
    start = max(number for number, line in enumerate(lines) if line.startswith("diff --git "))
    section = lines[start:]
    return "similarity index 100%" in section or any(
        line.endswith("..e69de29") or line.startswith("index e69de29..") for line in section
    )
