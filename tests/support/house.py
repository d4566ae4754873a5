"""The floor plan and the source, parsed once for all house tests: files, trees, rooms, imports."""

import ast
import functools
import gc
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
SRC = ROOT / "src" / "codewhale"
FLOOR = ROOT / "tests" / "house" / "floor.toml"
EXCEPTIONS = ROOT / "tests" / "house" / "exceptions.toml"
Described = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
LAZY_ROW = re.compile(r"codewhale(?:\.\w+)+:\w+")


class Source(NamedTuple):
    """One Python file: `path` from the repository's root, `module` its dotted name, `tree` its syntax."""

    path: str
    module: str
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """The room it belongs to; "" for the package's own top."""
        parts = self.module.split(".")
        return parts[1] if len(parts) > 1 else ""

    @property
    def member(self) -> str:
        """The sibling it belongs to inside its room; "" for the room's own top."""
        parts = self.module.split(".")
        return parts[2] if len(parts) > 2 else ""


class Import(NamedTuple):
    """One import of our own code: the module named, its line, and whether it stands inside a function."""

    target: str
    line: int
    inside: bool


@functools.cache
def floor() -> dict[str, Any]:
    """The floor plan."""
    return tomllib.loads(FLOOR.read_text())


def rooms() -> dict[str, dict[str, Any]]:
    """Rooms by name, in the plan's order."""
    return {room["name"]: room for room in floor()["room"]}


@functools.cache
def sources(folder: str = "src/codewhale") -> tuple[Source, ...]:
    """Every Python file under a folder of the repository, parsed."""
    found = []
    gc.collect()
    gc.disable()
    for path in sorted((ROOT / folder).rglob("*.py")):
        relative = path.relative_to(ROOT)
        inner = relative.relative_to("src") if folder.startswith("src") else relative
        parts = list(inner.with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        text = path.read_text()
        found.append(Source(relative.as_posix(), ".".join(parts), text, ast.parse(text)))
    gc.freeze()  # millions of nodes that stay: no collection need go through them
    gc.enable()
    return tuple(found)


@functools.cache
def modules() -> frozenset[str]:
    """Dotted names of all our modules."""
    return frozenset(source.module for source in sources())


def walk(tree: ast.AST, inside: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Every node with whether it stands inside a function."""
    for child in ast.iter_child_nodes(tree):
        yield child, inside
        yield from walk(child, inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))


@functools.cache
def nodes(path: str) -> tuple[ast.AST, ...]:
    """Every node of a source file, walked once for all tests."""
    return tuple(ast.walk(_trees()[path]))


@functools.cache
def _trees() -> dict[str, ast.Module]:
    return {source.path: source.tree for source in sources()}


def definitions(tree: ast.Module) -> Iterator[Described]:
    """Every class and function, however deep; none stands inside an expression."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, Described):
            yield node
        left += (
            one for one in ast.iter_child_nodes(node) if isinstance(one, ast.stmt | ast.excepthandler | ast.match_case)
        )


@functools.cache
def imports_of(path: str) -> tuple[Import, ...]:
    """The imports of a source file, found once for all tests."""
    return tuple(_imports(next(source for source in sources() if source.path == path)))


def imports(source: Source) -> tuple[Import, ...]:
    """Imports of our own code, rows of lazy tables included."""
    return imports_of(source.path)


def _imports(source: Source) -> Iterator[Import]:
    for node, inside in walk(source.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "codewhale":
                    yield Import(alias.name, node.lineno, inside)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "codewhale":
            for alias in node.names:
                deeper = f"{node.module}.{alias.name}"
                yield Import(deeper if deeper in modules() else node.module, node.lineno, inside)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and LAZY_ROW.fullmatch(node.value):
            yield Import(node.value.split(":")[0], node.lineno, False)


def may_import(room: str) -> set[str]:
    """What a room may import: room names, and dotted names for single modules."""
    plan = floor()
    allowed = {room, *rooms()[room]["imports"]}
    if room not in plan["everywhere"]:
        allowed |= {*plan["everywhere"], plan["machine"]}
    return allowed
