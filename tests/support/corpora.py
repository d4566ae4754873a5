"""Seeded sources of any size whose answers are known, and a model that is a function of its prompt."""

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from msgspec import Struct

LABELS = ("abuse", "billing", "crash", "delivery", "exchange")
NEEDLE = "The vault opens with 7391-KITE."
_RECORD = re.compile(r"^u(\d+) \| (\w+) \| (\d+) \|", re.MULTILINE)


class Corpus(Struct, frozen=True):
    """A file and what is in it: records by label, the pairs of users who both wrote of a crash and of billing, the
    amount of each label."""

    path: Path
    bytes: int
    labels: dict[str, int]
    pairs: int
    amounts: dict[str, int]


def corpus(path: Path, megabytes: int, seed: int = 7) -> Corpus:
    """Lines of users, labels and amounts; one needle, one emoji, some bytes that are no UTF-8."""
    made = random.Random(seed * 1000 + megabytes)
    labels: Counter[str] = Counter()
    amounts: Counter[str] = Counter()
    wrote: dict[str, set[str]] = {}
    size, most, needle, hidden = 0, megabytes << 20, made.randrange(megabytes << 20), False
    with path.open("wb") as file:
        for line in _lines(made):
            if not hidden and needle < size + len(line):
                line, hidden = f"{NEEDLE} \U0001f511\n".encode(), True
            elif found := _RECORD.match(line.decode("latin-1")):
                user, label, amount = found.groups()
                labels[label] += 1
                amounts[label] += int(amount)
                if int(user) < 40:
                    wrote.setdefault(user, set()).add(label)
            file.write(line)
            size += len(line)
            if size >= most:
                break
    both = sum({"crash", "billing"} <= kinds for kinds in wrote.values())
    return Corpus(path, size, dict(labels), len(list(combinations(range(both), 2))), dict(amounts))


def _lines(made: random.Random) -> Iterator[bytes]:
    filling = ["x" * made.randrange(40, 400) for _ in range(97)]
    odd = b"\xff\xfe bytes \xc3\x28 that are no text\n"
    while True:
        if made.random() < 0.001:
            yield odd
        user = made.randrange(40) if made.random() < 0.02 else made.randrange(40, 99_999)
        label, amount = made.choice(LABELS), made.randrange(1000)
        yield f"u{user} | {label} | {amount} | {made.choice(filling)}\n".encode()


def answer(prompt: str) -> str:
    """What the model says: it reads nothing but its prompt, and answers what its first line asks."""
    asked, _, part = prompt.partition("\n")
    records = _RECORD.findall(part)
    if "vault" in asked:
        found = re.search(r"opens with (\S+)\.", part)
        return found[1] if found else "none"
    if "How many records have each label" in asked:
        return json.dumps(Counter(label for _, label, _ in records))
    if "amount" in asked:
        sums: Counter[str] = Counter()
        for _, label, amount in records:
            sums[label] += int(amount)
        return json.dumps(sums)
    if "users below 40" in asked:
        return json.dumps([[int(user), label] for user, label, _ in records if int(user) < 40])
    return "I do not know"
