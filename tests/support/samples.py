"""A sample of any struct, made from its types: for tests that say something of every event, op or message."""

import enum
from typing import Any

import msgspec
from msgspec import inspect


def sample(kind: Any) -> Any:
    """One value of a type, every field filled; of a union the first member that is not None."""
    return _make(inspect.type_info(kind))


def _make(info: inspect.Type) -> Any:
    match info:
        case inspect.StructType(cls=cls, fields=fields):
            return cls(**{field.name: _make(field.type) for field in fields})
        case inspect.EnumType(cls=cls):
            assert issubclass(cls, enum.Enum)
            return next(iter(cls))
        case inspect.UnionType(types=types):
            return _make(next(item for item in types if not isinstance(item, inspect.NoneType)))
        case inspect.VarTupleType(item_type=item):
            return (_make(item),)
        case inspect.TupleType(item_types=items):
            return tuple(_make(item) for item in items)
        case inspect.ListType(item_type=item):
            return [_make(item)]
        case inspect.DictType(value_type=value):
            return {"key": _make(value)}
        case inspect.LiteralType(values=values):
            return values[0]
        case inspect.BytesType():
            return b"\x00bytes"
        case inspect.RawType():
            return msgspec.Raw(b"{}")
        case _:
            return _plain(info)


def _plain(info: inspect.Type) -> Any:
    plain = {inspect.StrType: "text \u2028 \u00e9", inspect.IntType: 7, inspect.FloatType: 0.5, inspect.BoolType: True}
    return plain.get(type(info), "anything")
