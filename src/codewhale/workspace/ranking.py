"""How well a typed fragment fits a path: the order in which file search answers."""


def score(query: str, path: str) -> float | None:
    """From 0.55 to 1.0, or None when the letters of `query` do not even occur in order. Case does not count.

    Equal name 1.0, equal path .98; name begins with it .9, path .85; name holds it .75, path .7, each plus up to .08
    the more of the whole it is; letters in order in the name .6, in the path .55, plus up to .4 for closeness.
    """
    wanted, whole = query.casefold(), path.casefold()
    name = whole.rpartition("/")[2]
    if wanted in (name, whole):
        return 1.0 if wanted == name else 0.98
    for fits, base, target in (
        (name.startswith(wanted), 0.9, name),
        (whole.startswith(wanted), 0.85, whole),
        (wanted in name, 0.75, name),
        (wanted in whole, 0.7, whole),
    ):
        if fits:
            return base + 0.08 * len(wanted) / len(target)
    scattered = [
        base + 0.4 * fit
        for base, target in ((0.6, name), (0.55, whole))
        if (fit := _in_order(wanted, target)) is not None
    ]
    return max(scattered, default=None)


def _in_order(wanted: str, target: str) -> float | None:
    """0 to 1: how close together (.7) and how much of `target` (.3) the letters of `wanted` are, found in order."""
    first, at = -1, -1
    for char in wanted:
        at = target.find(char, at + 1)
        if at < 0:
            return None
        if first < 0:
            first = at
    if not wanted:
        return None
    return 0.7 * len(wanted) / (at - first + 1) + 0.3 * len(wanted) / len(target)
