"""An answer as JSON within its bytes: the weakest rows go first."""

from collections.abc import Callable
from typing import Any

from codewhale.lib.jsontext import pretty

# About two thousand tokens.
MOST_BYTES = 8_000


def fitted(rows: int, whole: Callable[[int], dict[str, Any]]) -> tuple[str, int]:
    """What `whole` says of the first rows, as many of `rows` as fit (at least one), and how many those are."""
    low, high = min(1, rows), rows
    while low < high:
        middle = (low + high + 1) // 2
        if len(pretty(whole(middle)).encode()) <= MOST_BYTES:
            low = middle
        else:
            high = middle - 1
    return pretty(whole(low)), low
