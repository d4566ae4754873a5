"""Raw configuration values against the types that want them: where a value is wrong, which keys nobody
knows, what the environment says. Knows no setting by name."""

import re
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from codewhale.lib.patterns import lazy

Path = tuple[str, ...]

_BARE = lazy(r"[A-Za-z0-9_-]+")
# Types as a check names them, for people.
_KINDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "a table",
    "array": "a list",
}


class Fault(Struct, frozen=True):
    """A value that does not fit: its key path, what came and what is wanted."""

    path: Path
    received: Any
    wanted: str


def bare(kind: Any) -> Any:
    """The type without Annotated and without `| None`."""
    while typing.get_origin(kind) is typing.Annotated:
        kind = typing.get_args(kind)[0]
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        rest = [arg for arg in typing.get_args(kind) if arg is not type(None)]
        if len(rest) == 1:
            return bare(rest[0])
    return kind


def fields(kind: Any) -> dict[str, Any] | None:
    """Field names and types of a struct type, None for anything else."""
    kind = bare(kind)
    if isinstance(kind, type) and issubclass(kind, Struct):
        return {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    return None


def entry_kind(kind: Any) -> Any:
    """The value type of a `dict[str, T]`, None for anything else."""
    kind = bare(kind)
    if typing.get_origin(kind) is dict:
        return typing.get_args(kind)[1]
    return None


def child_kind(kind: Any, key: str) -> Any:
    """The type of `key` inside a table of type `kind`, None when it has no such key."""
    known = fields(kind)
    return known.get(key) if known is not None else entry_kind(kind)


def is_table(kind: Any) -> bool:
    """Whether values of this type are tables."""
    return fields(kind) is not None or entry_kind(kind) is not None


def find_fault(value: Any, kind: Any, path: Path) -> Fault | None:
    """The innermost value that keeps `value` from being a `kind`, or None when it is one."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        for key, child, child_type in _children(value, kind):
            fault = find_fault(child, child_type, (*path, key))
            if fault is not None:
                return fault
        return Fault(path, value, wanted(kind, error))
    return None


def wanted(kind: Any, error: msgspec.ValidationError) -> str:
    """What a value must be: the values there are, where they are few, else what the check says."""
    options = typing.get_args(bare(kind)) if typing.get_origin(bare(kind)) is typing.Literal else ()
    named = [f'"{option}"' if option != "" else '""' for option in options]
    if named:
        return f"must be one of {', '.join(named)}"
    said = (
        str(error).partition(" - at `")[0].replace("`", "").replace("Expected ", "must be ").replace(", got ", ", not ")
    )
    return re.sub(r"\b[a-z]+\b", lambda word: _KINDS.get(word[0], word[0]), said).replace(" | ", " or ")


def _children(value: Any, kind: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(value, dict):
        for key, child in value.items():
            child_type = child_kind(kind, key)
            if child_type is not None:
                yield key, child, child_type
    elif isinstance(value, list) and typing.get_origin(bare(kind)) in (list, tuple):
        item = typing.get_args(bare(kind))[0]
        for index, child in enumerate(value):
            yield str(index), child, item


def unknown_keys(value: Any, kind: Any, path: Path) -> Iterator[tuple[Path, tuple[str, ...]]]:
    """Keys inside `value` that `kind` does not have: (path, keys known there)."""
    if not isinstance(value, dict):
        return
    plain = bare(kind)
    known = plain.__struct_encode_fields__ if isinstance(plain, type) and issubclass(plain, Struct) else None
    for key, child in value.items():
        if known is not None and key not in known:
            yield (*path, key), known
        elif isinstance(child, dict) and (child_type := child_kind(kind, key)) is not None:
            # Types are looked up where they are needed alone: that takes longer than all the rest.
            yield from unknown_keys(child, child_type, (*path, key))


def leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    """Every value that is not a table, in key order of the tables; an empty table counts as a value."""
    if isinstance(value, dict) and value:
        for key, child in value.items():
            yield from leaves(child, (*path, str(key)))
    else:
        yield path, value


def merge(low: Any, high: Any) -> Any:
    """`high` over `low`: tables join key by key, anything else is replaced."""
    if not (isinstance(low, dict) and isinstance(high, dict)):
        return high
    joined = dict(low)
    for key, value in high.items():
        joined[key] = merge(joined[key], value) if key in joined else value
    return joined


def lookup(tree: Any, path: Path) -> Any:
    """The value at a key path, None where there is none."""
    for key in path:
        if not isinstance(tree, dict) or key not in tree:
            return None
        tree = tree[key]
    return tree


def nested(path: Path, value: Any) -> dict[str, Any]:
    """A tree that holds nothing but `value` at `path`."""
    for key in reversed(path):
        value = {key: value}
    return typing.cast(dict[str, Any], value)


def closest(word: str, known: typing.Iterable[str]) -> str:
    """The known word most like `word`, or ""."""
    import difflib

    found = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    return found[0] if found else ""


def dotted(path: Path) -> str:
    """A key path as people write it; keys that need quotes get them."""
    return ".".join(key if _BARE().fullmatch(key) else f'"{key}"' for key in path)


_SECRET = ("key", "token", "secret", "password", "authorization", "cookie")
_PASSWORD = lazy(r"://[^/\s]*:[^/\s]*@")


def is_secret(path: Path, value: Any) -> bool:
    """Whether a value must not be shown: text under a key that is named like a secret, `*_env` excepted, and a URL with
    a password in it."""
    name = path[-1].lower()
    named = not name.endswith("_env") and any(word in name for word in _SECRET)
    return isinstance(value, str) and bool(value) and (named or _PASSWORD().search(value) is not None)


def shown(path: Path, value: Any) -> str:
    """A value as one line of JSON, secrets masked."""
    if is_secret(path, value):
        return '"********"'
    return msgspec.json.encode(value, enc_hook=str).decode()


# ------------------------------------------------------------------ environment


def variable(path: Path) -> str:
    """The environment variable of a key path: CODEWHALE_PROVIDERS_DEEPSEEK_BASE_URL."""
    return "CODEWHALE_" + "_".join(_upper(key) for key in path)


def _upper(key: str) -> str:
    return "".join(char if char.isascii() and char.isalnum() else "_" for char in key).upper()


def from_environ(environ: Mapping[str, str], path: Path, kind: Any, present: Any) -> Iterator[tuple[str, Path, Any]]:
    """What the environment sets at or below `path`: (variable, path, type). An empty variable sets nothing.
    `present` is the table as the other layers leave it: its keys tell where a name ends."""
    name = variable(path)
    for entry in sorted(environ):
        if not environ[entry] or not entry.startswith(name):
            continue
        if entry == name and not is_table(kind):
            yield entry, path, kind
        elif entry.startswith(name + "_") and is_table(kind):
            found = _match(entry[len(name) + 1 :], kind, present)
            if found is not None:
                yield entry, (*path, *found[0]), found[1]


def _match(rest: str, kind: Any, present: Any) -> tuple[Path, Any] | None:
    known = fields(kind)
    names = known if known is not None else (present if isinstance(present, dict) else {})
    for key in sorted(names, key=len, reverse=True):
        child, upper = child_kind(kind, key), _upper(key)
        if rest == upper and not is_table(child):
            return (key,), child
        if rest.startswith(upper + "_") and is_table(child):
            found = _match(rest[len(upper) + 1 :], child, lookup(present, (key,)))
            if found is not None:
                return (key, *found[0]), found[1]
    return _match_new(rest, kind)


def _match_new(rest: str, kind: Any) -> tuple[Path, Any] | None:
    """A table that only the environment knows: everything before the name of one of its fields."""
    inner = fields(entry_kind(kind)) if entry_kind(kind) is not None else None
    for field in sorted(inner or (), key=len, reverse=True):
        name = rest.removesuffix("_" + _upper(field))
        if inner and name and name != rest and not is_table(inner[field]):
            return (name.lower(), field), inner[field]
    return None


def from_text(text: str, kind: Any) -> Any:
    """A value of `kind` out of text: text as it is where text is wanted, else a number, true or false, or
    JSON. Raises msgspec.ValidationError."""
    try:
        return _plain(msgspec.convert(text, kind, strict=False))
    except msgspec.ValidationError as error:
        try:
            return _plain(msgspec.convert(msgspec.json.decode(text), kind))
        except msgspec.MsgspecError:
            raise error


def _plain(value: Any) -> Any:
    """The value as a file would give it back: lists for tuples, text for enums."""
    return msgspec.json.decode(msgspec.json.encode(value))
