"""Finding where the hunks of one file belong.

A ladder: the lines exactly, then but for line ends, trailing blanks, indentation, and last with context lines
left out. What is less than exact must fit one place only; nothing is guessed."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from codewhale.workspace.patching.errors import ambiguous, not_found
from codewhale.workspace.patching.model import FileContent, Hunk, PatchLine


def _indent_of(text: str) -> str:
    return text[: len(text) - len(text.lstrip(" \t"))]


def indent_map(expected: Sequence[str], actual: Sequence[str]) -> dict[str, str] | None:
    """How each indentation of `given` reads in `actual`, lines paired in order; None when one indentation
    would have to become two."""
    mapping: dict[str, str] = {}
    for text, real in zip(expected, actual, strict=True):
        if text.strip() and mapping.setdefault(_indent_of(text), _indent_of(real)) != _indent_of(real):
            return None
    return mapping


def reindent(mapping: dict[str, str], texts: Iterable[str]) -> list[str] | None:
    """Lines moved by a mapping. An indentation that the mapping lacks takes its nearest known prefix, or the
    amount by which all known ones moved; None when neither says anything."""
    out = []
    for text in texts:
        if not text.strip():
            out.append(text)
            continue
        blanks = _indent_of(text)
        moved = _moved(mapping, blanks)
        if moved is None:
            return None
        out.append(moved + text[len(blanks) :])
    return out


def _moved(mapping: dict[str, str], blanks: str) -> str | None:
    if blanks in mapping:
        return mapping[blanks]
    prefixes = [known for known in mapping if blanks.startswith(known)]
    if prefixes:
        best = max(prefixes, key=len)
        return mapping[best] + blanks[len(best) :]
    for known, real in mapping.items():
        if known.startswith(blanks) and real.endswith(known[len(blanks) :]):
            return real[: len(real) - len(known) + len(blanks)]
    return None


EXACT, LINE_ENDS, TRAILING, INDENTED, FUZZY = range(5)
_NAMES = ("exact", "line ends", "trailing whitespace", "indentation", "fuzz")
_FORMS: tuple[Callable[[str], str], ...] = (str, lambda t: t.rstrip("\r"), str.rstrip, str.strip, str.rstrip)


class Placement(Struct, frozen=True):
    """Where a hunk goes: `at` is the 0-based first line of `hunk.old`, `rung` the comparison that found it,
    `offset` how far from the stated line, `dropped` the context lines left out. `unsure` tells of a hunk with less
    context than a diff would have there."""

    hunk: Hunk
    at: int
    rung: int
    offset: int = 0
    dropped: int = 0
    unsure: bool = False

    @property
    def how(self) -> str:
        words = [f"fuzz {self.dropped}" if self.rung == FUZZY else _NAMES[self.rung]]
        if self.offset:
            words.append(f"offset {self.offset:+d}")
        elif self.unsure:
            words.append("too little context to be sure")
        if self.hunk.recounted:
            words.append("counts corrected")
        return ", ".join(words)


class HunkPlacer:
    """The lines of one file, indexed once per comparison."""

    def __init__(self, path: str, content: FileContent, fuzz: int) -> None:
        self._path = path
        self._content = content
        self._fuzz = fuzz
        self._index: dict[int, dict[str, list[int]]] = {}
        self._formed: dict[int, list[str]] = {}

    def place(self, hunks: Sequence[Hunk]) -> list[Placement]:
        """A placement for each hunk. Raises ToolError for the first that fits nowhere or at several places."""
        if len(hunks) > 1 and all(hunk.start is None and hunk.old for hunk in hunks):
            return self._in_order(hunks)
        placed: list[Placement] = []
        shift = 0
        for number, hunk in enumerate(hunks, 1):
            placement = self._one(hunk, f"hunk {number}/{len(hunks)}", shift)
            if hunk.start is not None and hunk.old:
                shift = placement.offset
            placed.append(placement)
        return placed

    def _one(self, hunk: Hunk, name: str, shift: int) -> Placement:
        if not hunk.old:
            return self._insertion(hunk, name)
        for rung in (EXACT, LINE_ENDS, TRAILING, INDENTED):
            places = self._candidates(hunk, rung)
            if places:
                return self._choose(hunk, name, rung, places, shift)
        for dropped in range(1, self._fuzz + 1):
            cut = hunk.cut(min(dropped, hunk.leading), min(dropped, hunk.trailing))
            places = self._candidates(cut, FUZZY) if any(line.text.strip() for line in cut.old) else []
            if places:
                at = self._only(name, FUZZY, places)
                return Placement(cut, at, FUZZY, _offset(cut, at), len(hunk.old) - len(cut.old))
        raise not_found(self._path, name, hunk, self._content.lines)

    def _choose(self, hunk: Hunk, name: str, rung: int, places: list[int], shift: int) -> Placement:
        """The place a numbered hunk means among those that fit."""
        if hunk.start is None or rung > LINE_ENDS:
            at = self._only(name, rung, places)
            return Placement(hunk, at, rung, _offset(hunk, at))
        stated = hunk.start - 1
        edge = [at for at in places if self._at_edges(hunk, at)]
        for choice in (edge, places):
            for at in (stated + shift, stated):
                if at in choice:
                    return Placement(hunk, at, rung, at - stated, unsure=self._loose(hunk, at, edge))
        for choice in (edge, places, [at for at in places if self._under(hunk.heading, at)]):
            if len(choice) == 1:
                at = choice[0]
                return Placement(hunk, at, rung, at - stated, unsure=self._loose(hunk, at, edge))
        raise ambiguous(self._path, name, places, _NAMES[rung])

    def _at_edges(self, hunk: Hunk, at: int) -> bool:
        """Whether a hunk without context above or below lies where the file begins or ends, as a diff with
        context that was cut short there would."""
        if not hunk.leading and not hunk.trailing:
            return True
        ends = bool(hunk.trailing) or at + len(hunk.old) == len(self._content.lines)
        return ends and (at == 0 or (hunk.start or 0) > 1)

    def _loose(self, hunk: Hunk, at: int, edge: list[int]) -> bool:
        """Whether a diff with context could not have said this hunk here."""
        bare = not hunk.leading and not hunk.trailing and len(hunk.old) < len(self._content.lines)
        return hunk.strict and (bare or at not in edge)

    def _under(self, heading: str, at: int) -> bool:
        """Whether the nearest line above that could head a hunk is `heading`."""
        if not heading:
            return False
        for line in reversed(self._content.lines[:at]):
            if line[:1].isalpha() or line[:1] in ("_", "$"):
                return line.rstrip()[: len(heading)] == heading
        return False

    def _insertion(self, hunk: Hunk, name: str) -> Placement:
        """Where a hunk without old lines inserts: after its line, before it, below its anchor, or at the end."""
        lines = self._content.lines
        if hunk.start is not None:
            stated = hunk.start if hunk.after else max(0, hunk.start - 1)
            at = min(stated, len(lines))
            return Placement(hunk, at, EXACT, at - stated, unsure=hunk.strict and at != len(lines))
        if not hunk.anchors:
            return Placement(hunk, len(lines), EXACT)
        ends = self._anchored(hunk.anchors)
        if not ends:
            wanted = tuple(PatchLine(" ", anchor) for anchor in hunk.anchors)
            raise not_found(self._path, name, Hunk((*wanted, *hunk.lines)), lines)
        return Placement(hunk, self._only(name, EXACT, ends) + 1, EXACT)

    def _in_order(self, hunks: Sequence[Hunk]) -> list[Placement]:
        """Placements of hunks without numbers: they follow one another, and only one way to lay them out may
        exist. A hunk that fits one place needs no order."""
        options: list[tuple[int, list[int]]] = []
        for number, hunk in enumerate(hunks, 1):
            rung = next((r for r in (EXACT, LINE_ENDS) if self._candidates(hunk, r)), None)
            if rung is None:
                single = self._one(hunk, f"hunk {number}/{len(hunks)}", 0)
                if single.rung == FUZZY:
                    return [self._one(each, f"hunk {i}/{len(hunks)}", 0) for i, each in enumerate(hunks, 1)]
                options.append((single.rung, [single.at]))
            else:
                options.append((rung, self._candidates(hunk, rung)))
        first, last = _leftmost(hunks, options), _rightmost(hunks, options)
        if first is None or first != last:
            for number, (rung, places) in enumerate(options, 1):
                if len(places) > 1:
                    raise ambiguous(self._path, f"hunk {number}/{len(hunks)}", places, _NAMES[rung])
            first = [places[0] for _, places in options]
        return [Placement(h, at, rung) for h, at, (rung, _) in zip(hunks, first, options, strict=True)]

    def _candidates(self, hunk: Hunk, rung: int) -> list[int]:
        """Every place (0-based) where the old lines stand under this rung's comparison, anchors respected."""
        form = _FORMS[rung]
        wanted = [form(line.text) for line in hunk.old]
        if rung == INDENTED and not any(wanted):
            return []
        lines, index = self._lines(rung)
        offset = min(range(len(wanted)), key=lambda i: len(index.get(wanted[i], ())))
        places = [
            place - offset
            for place in index.get(wanted[offset], ())
            if place >= offset and lines[place - offset : place - offset + len(wanted)] == wanted
        ]
        if rung == EXACT and hunk.strict:
            places = [at for at in places if self._newlines_agree(hunk, at)]
        if rung == INDENTED:
            places = [at for at in places if self.indentation(hunk, at) is not None]
        if hunk.at_end:
            places = [at for at in places if at + len(wanted) == len(lines)]
        return self._below_anchors(hunk, places)

    def indentation(self, hunk: Hunk, at: int) -> list[str] | None:
        """The added lines of a hunk as the file's indentation there wants them; None when it does not say."""
        present = self._content.lines[at : at + len(hunk.old)]
        mapping = indent_map([line.text for line in hunk.old], present)
        return None if mapping is None else reindent(mapping, [x.text for x in hunk.lines if x.tag == "+"])

    def _newlines_agree(self, hunk: Hunk, at: int) -> bool:
        last = len(self._content.lines) - 1
        return all(
            line.ended == (self._content.ended or at + i != last) for i, line in enumerate(hunk.old)
        )  # fmt: skip

    def _below_anchors(self, hunk: Hunk, places: list[int]) -> list[int]:
        """Of the candidates, the first below each place of the anchors. Anchors that stand nowhere, or only
        below, do not count against the single place that fits."""
        if not hunk.anchors or not places:
            return places
        ends = self._anchored(hunk.anchors)
        below = sorted({places[i] for end in ends if (i := bisect_left(places, end)) < len(places)})
        return below or (places if len(places) == 1 else [])

    def _anchored(self, anchors: Sequence[str]) -> list[int]:
        """The lines on which the last anchor stands below all others."""
        ends: list[int] | None = None
        for anchor in anchors:
            places = self._anchor_lines(anchor)
            if ends is None:
                ends = places
            else:
                ends = sorted({places[i] for end in ends if (i := bisect_left(places, end + 1)) < len(places)})
        return ends or []

    def _anchor_lines(self, anchor: str) -> list[int]:
        wanted = anchor.strip()
        lines, index = self._lines(INDENTED)
        return index.get(wanted) or [i for i, line in enumerate(lines) if line.startswith(wanted)]

    def _lines(self, rung: int) -> tuple[list[str], dict[str, list[int]]]:
        if rung not in self._index:
            form = _FORMS[rung]
            self._formed[rung] = [form(line) for line in self._content.lines]
            index: dict[str, list[int]] = {}
            for number, line in enumerate(self._formed[rung]):
                index.setdefault(line, []).append(number)
            self._index[rung] = index
        return self._formed[rung], self._index[rung]

    def _only(self, name: str, rung: int, places: list[int]) -> int:
        if len(places) > 1:
            raise ambiguous(self._path, name, places, _NAMES[rung])
        return places[0]


def _offset(hunk: Hunk, at: int) -> int:
    return 0 if hunk.start is None else at - (hunk.start - 1)


def _room(hunk: Hunk) -> tuple[int, int]:
    """Where the changed lines begin and end, counted in old lines."""
    return hunk.leading, len(hunk.old) - hunk.trailing


def _leftmost(hunks: Sequence[Hunk], options: list[tuple[int, list[int]]]) -> list[int] | None:
    chosen, free = [], 0
    for hunk, (_, places) in zip(hunks, options, strict=True):
        begin, end = _room(hunk)
        i = bisect_left(places, free - begin)
        if i == len(places):
            return None
        chosen.append(places[i])
        free = places[i] + max(end, begin + 1)
    return chosen


def _rightmost(hunks: Sequence[Hunk], options: list[tuple[int, list[int]]]) -> list[int] | None:
    chosen: list[int] = []
    free: int | None = None
    for hunk, (_, places) in zip(reversed(hunks), reversed(options), strict=True):
        begin, end = _room(hunk)
        fitting = [at for at in places if free is None or at + max(end, begin + 1) <= free]
        if not fitting:
            return None
        chosen.append(fitting[-1])
        free = fitting[-1] + begin
    return chosen[::-1]
