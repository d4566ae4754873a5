"""How well a need finds its tool, and how fast: our tools and three hundred of other servers, needs in the words of
somebody who knows none of them. Exit 1 below nine of ten.
"""

import gc
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import msgspec  # noqa: E402

from codewhale.catalog.registry import Catalog  # noqa: E402
from codewhale.catalog.search import ToolIndex  # noqa: E402
from support.toolneeds import needs, others, ranks, whole_index  # noqa: E402

BOUND = 0.9
PATTERNS = ("^git_", "pull.*request", "(row|column)s?$", "docker|kubernetes", "send_.*", "\\bpage\\b", "zzz")


def wilson(hits: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927)."""
    z, share = 1.96, hits / total
    middle, spread = share + z * z / (2 * total), z * math.sqrt(share * (1 - share) / total + z * z / (4 * total**2))
    return (middle - spread) / (1 + z * z / total), (middle + spread) / (1 + z * z / total)


def told(name: str, hits: int, total: int) -> str:
    """One line of figures."""
    low, high = wilson(hits, total)
    return f"{name:<28}{hits:>4} of {total:<4} {hits / total:7.1%}   ({low:.1%} to {high:.1%})"


def milliseconds(asked: list[str], search: Callable[[str], object]) -> str:
    """Median and 99th percentile of a search, in milliseconds of the processor."""
    for query in asked:
        search(query)
    gc.disable()
    took = []
    for query in asked * 3:
        began = time.process_time()
        search(query)
        took.append(1000 * (time.process_time() - began))
    gc.enable()
    took.sort()
    return f"median {took[len(took) // 2]:.2f} ms, 99th percentile {took[int(len(took) * 0.99)]:.2f} ms"


def main() -> int:
    """0 when the bound holds."""
    places, own = ranks(whole_index()), set(Catalog.load().rows)
    found = [place for _, _, place in places]
    for most in (1, 3, 8):
        print(told(f"among the first {most}", sum(0 < place <= most for place in found), len(found)))
    for name, mine in (("of them our own tools", True), ("and those of others", False)):
        some = [place for _, tool, place in places if (tool in own) is mine]
        print(told(name, sum(place > 0 for place in some), len(some)))
    rows = [*Catalog.load().rows.values(), *others()]
    many = [msgspec.structs.replace(row, name=f"{row.name}_{copy}") for copy in range(4) for row in rows][:1000]
    index = ToolIndex(many)
    print(f"by need, {len(many)} tools:    {milliseconds([need for need, _ in needs()], lambda q: index.words(q, 8))}")
    print(f"by pattern, {len(many)} tools: {milliseconds(list(PATTERNS) * 10, lambda q: index.pattern(q, 8))}")
    return 0 if sum(place > 0 for place in found) / len(found) >= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
