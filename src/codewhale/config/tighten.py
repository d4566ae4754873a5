"""What a project's configuration may say over the person's own: only what makes things narrower. Pure; which keys
there are, and what is narrower for each, is handed in."""

from collections.abc import Callable, Mapping
from typing import Any

from codewhale.config.values import dotted, leaves, lookup, merge, nested

# What a project's value becomes over the value below it (None where none is set); None when it is refused.
Rule = Callable[[Any, Any], Any]
Rules = Mapping[str, Rule]


def chosen(below: Any, wanted: Any) -> Any:
    """A text that widens nothing, taken as it is."""
    return wanted if isinstance(wanted, str) else None


def joined(below: Any, wanted: Any) -> Any:
    """A list of texts that may only grow, such as what is forbidden."""
    if not isinstance(wanted, list) or not all(isinstance(item, str) for item in wanted):
        return None
    return list(dict.fromkeys((*(below or ()), *wanted)))


def ladder(*steps: str | bool, default: str | bool) -> Rule:
    """One of `steps`, narrowest first; never a step up from what stands below (`default` where nothing does)."""

    def rule(below: Any, wanted: Any) -> Any:
        here = below if below in steps else default
        if wanted not in steps or steps.index(wanted) > steps.index(here):
            return None
        return steps[steps.index(wanted)]

    return rule


def tightened(tree: Mapping[str, Any], below: Mapping[str, Any], rules: Rules) -> tuple[dict[str, Any], list[str]]:
    """What of a project's tree holds over the tree below it, and the keys that do not: those that are not a project's
    to set (named by their table where it has none that is), and those that would widen."""
    kept: dict[str, Any] = {}
    refused: dict[str, None] = {}
    tables = {key.partition(".")[0] for key in rules}
    for path, wanted in leaves(tree, ()):
        if not path:
            continue
        key = dotted(path)
        rule = rules.get(key)
        value = rule(lookup(below, path), wanted) if rule is not None else None
        if value is None:
            refused[key if path[0] in tables else dotted(path[:1])] = None
        else:
            kept = merge(kept, nested(path, value))
    return kept, sorted(refused)
