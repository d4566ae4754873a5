"""Which facts cannot both hold, and which of them is the newer one."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from codewhale.memory.keys import claims, differ, stems, subject
from codewhale.memory.model import Fact
from codewhale.memory.slots import renews, taken_back

_LEAST_SHARED, _LEAST_PART = 2, 0.5  # words that a fact which says to be a change has in common with the one before it


def contradicts(one: Fact, other: Fact) -> bool:
    """Whether two facts cannot both hold."""
    return bool(superseded((one, other)))


def newer(one: Fact, other: Fact) -> Fact:
    """The one that holds where two contradict each other: a workspace's own before one for everything, then the later
    by date, where both have one, then by place in the file."""
    if one.scope != other.scope:
        return one if one.scope == "workspace" else other
    dates = (one.created[:16], other.created[:16])
    if all(dates) and dates[0] != dates[1]:
        return one if dates[0] > dates[1] else other
    return one if one.line > other.line else other


def superseded(facts: Iterable[Fact]) -> dict[str, str]:
    """For each fact that a newer one contradicts, the id of the newest that does."""
    every = list(facts)
    result, by_stem = _by_claims(every), defaultdict[str, list[Fact]](list)
    for fact in every:
        for stem in _said(fact.text):
            by_stem[stem].append(fact)
    for fact in every:
        for other in (*_refused_by(fact, by_stem), *_renewed_by(fact, by_stem)):
            later = newer(fact, other)
            result.setdefault((other if later is fact else fact).id, later.id)
    return result


def _by_claims(facts: Sequence[Fact]) -> dict[str, str]:
    by_key, result = defaultdict[str, list[tuple[Fact, str]]](list), dict[str, str]()
    for fact in facts:
        for claim in claims(fact):
            by_key[claim.key].append((fact, claim.value))
    for rows in by_key.values():
        latest, value = rows[0]
        for fact, other in rows[1:]:
            if newer(latest, fact) is fact:
                latest, value = fact, other
        result.update((fact.id, latest.id) for fact, other in rows if differ(value, other) and fact.id != latest.id)
    return result


def _refused_by(fact: Fact, by_stem: Mapping[str, Sequence[Fact]]) -> Iterator[Fact]:
    """What a fact takes back: it names that, and says the rest of the other too."""
    if not (found := taken_back(fact.text)):
        return
    kept, whole, first = map(_said, found)
    for other in by_stem.get(min(first, default=""), ()):
        if other is not fact and first <= _said(other.text) and _said(other.text) - whole <= kept:
            yield other


def _renewed_by(fact: Fact, by_stem: Mapping[str, Sequence[Fact]]) -> Iterator[Fact]:
    """The one older fact that a fact which says to be a change is nearest to; foreign words do not hide others so."""
    if fact.tainted or not renews(fact.text):
        return
    said = _about(fact.text)
    near = {other.id: other for stem in said for other in by_stem.get(stem, ()) if newer(fact, other) is fact}
    near.pop(fact.id, None)
    parts = {id: len(said & _about(other.text)) for id, other in near.items()}
    best = [id for id, part in parts.items() if part == max(parts.values())]
    if len(best) == 1 and parts[best[0]] >= max(_LEAST_SHARED, _LEAST_PART * len(_about(near[best[0]].text))):
        yield near[best[0]]


@lru_cache(maxsize=20_000)
def _said(text: str) -> frozenset[str]:
    return frozenset(stems(text))


@lru_cache(maxsize=20_000)
def _about(text: str) -> frozenset[str]:
    return frozenset(subject(text))
