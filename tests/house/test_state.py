"""No module-level mutable state: what a module holds at its top is constant, or it is nothing."""

import ast
import re
from collections.abc import Iterator

from support.house import Source, sources

CONSTANT = re.compile(r"_*[A-Z][A-Z0-9_]*|__\w+__")
CONTAINERS = ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp
MUTATORS = {
    "add", "append", "appendleft", "clear", "discard", "extend", "insert", "pop", "popitem", "popleft", "remove",
    "reverse", "setdefault", "sort", "update",
}  # fmt: skip
TYPE_MAKERS = {"TypeVar", "ParamSpec", "NewType", "TypeAliasType", "namedtuple"}


def assigned(source: Source) -> Iterator[tuple[str, ast.expr, int]]:
    """(name, value, line) of every assignment at the top of a file."""
    for node in source.tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value, node.lineno
        elif isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
            yield node.target.id, node.value, node.lineno


def makes_type(value: ast.expr) -> bool:
    """Whether a call at the top of a file makes a type rather than a thing."""
    called = value.func if isinstance(value, ast.Call) else None
    return (called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")) in TYPE_MAKERS


def mutated(source: Source, names: set[str]) -> Iterator[tuple[str, int]]:
    """(name, line) where a top-level name is changed in place or rebound by `global`."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Global):
            yield from ((name, node.lineno) for name in node.names)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            if isinstance(node.value, ast.Name) and node.value.id in names:
                yield node.value.id, node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id in names:
                yield owner.id, node.lineno


def test_nothing_at_the_top_of_a_module_changes() -> None:
    found = []
    for source in sources():
        tops = {name: (value, line) for name, value, line in assigned(source)}
        for name, (value, line) in tops.items():
            held = isinstance(value, CONTAINERS) or (isinstance(value, ast.Call) and not makes_type(value))
            if held and not CONSTANT.fullmatch(name):
                found.append(f"{source.path}:{line}: {name} holds a mutable thing")
        containers = {name for name, (value, _) in tops.items() if isinstance(value, CONTAINERS | ast.Call)}
        found += [f"{source.path}:{line}: {name} is changed" for name, line in mutated(source, containers)]
    assert not found, "\n" + "\n".join(found)
