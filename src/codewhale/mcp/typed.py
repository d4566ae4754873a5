"""An entry as a person types it: an address, or a program with its arguments and, before it, variables."""

import re
from collections.abc import Iterable, Sequence

_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


def typed_entry(words: Sequence[str], env: Iterable[str] = (), headers: Iterable[str] = ()) -> dict[str, object]:
    """The entry of a line; `env` are NAME=VALUE, `headers` "Name: value"."""
    variables = {found[1]: found[2] for one in env if (found := _ASSIGNED.fullmatch(one))}
    words = list(words)
    while words and (found := _ASSIGNED.fullmatch(words[0])):
        variables[found[1]] = found[2]
        words.pop(0)
    if words and "://" in words[0] and len(words) == 1:
        said = {name.strip(): value.strip() for name, _, value in (one.partition(":") for one in headers)}
        return {"url": words[0], **({"headers": said} if said else {})}
    row: dict[str, object] = {"command": words[0] if words else "", "args": words[1:]}
    return row | ({"env": variables} if variables else {})
