"""Sizes and shape: files, functions, classes, parameters, nesting, docstrings. The tail is what tells trees apart."""

import ast
import functools
import tomllib
from collections.abc import Iterator

from support.house import EXCEPTIONS, ROOT, SRC, Source, definitions, floor, sources

LIMITS = floor()["sizes"]
DEEPER = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def length(node: ast.stmt) -> int:
    """Lines from the first to the last, decorators left out."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Parameters, keyword-only ones counted, `self` and `cls` not."""
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    given += [extra for extra in (node.args.vararg, node.args.kwarg) if extra]
    return len(given) - (bool(given) and given[0].arg in ("self", "cls"))


def nesting(body: list[ast.stmt]) -> int:
    """The deepest block inside a body; `elif` is no deeper than `if`, an inner function begins anew."""
    deepest = 0
    for node in body:
        if isinstance(node, DEEPER):
            deepest = max(deepest, 1 + max(nesting(inner) for inner in blocks(node)), beside(node))
    return deepest


def beside(node: ast.stmt) -> int:
    """The depth of an `elif` chain, counted as its first `if`."""
    chained = isinstance(node, ast.If) and len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If)
    return nesting(node.orelse) if chained and isinstance(node, ast.If) else 0


def blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    """The blocks of a compound statement, but an `elif`."""
    yield getattr(node, "body", [])
    if isinstance(node, ast.Match):
        for case in node.cases:
            yield case.body
    rest = getattr(node, "orelse", [])
    if not (isinstance(node, ast.If) and len(rest) == 1 and isinstance(rest[0], ast.If)):
        yield rest
    yield getattr(node, "finalbody", [])
    for caught in getattr(node, "handlers", []):
        yield caught.body


def is_offered(name: str) -> bool:
    """Whether a method is for other classes of ours; the toolkit alone calls actions and message handlers."""
    return not name.startswith(("_", "action_", "on_", "compose", "render", "watch_", "check_action"))


def measures(source: Source) -> Iterator[tuple[str, str, int]]:
    """(kind, name, value) of everything that has a limit."""
    yield "file", "", source.text.count("\n")
    for node in definitions(source.tree):
        if isinstance(node, ast.ClassDef):
            offered = [one for one in node.body if isinstance(one, FUNCTIONS) and is_offered(one.name)]
            yield "methods", node.name, len(offered)
        else:
            yield "function", node.name, length(node)
            yield "parameters", node.name, parameters(node)
            yield "nesting", node.name, nesting(node.body)


@functools.cache
def too_large() -> dict[str, int]:
    """Everything beyond its limit, by "kind:path:name"."""
    return {
        f"{kind}:{source.path}:{name}".rstrip(":"): value
        for folder in ("src/codewhale", "tests", "scripts")
        for source in sources(folder)
        for kind, name, value in measures(source)
        if value > LIMITS[kind]
    }


def exceptions() -> dict[str, int]:
    """What is too large and known to be."""
    return dict(tomllib.loads(EXCEPTIONS.read_text())["exceptions"])


def test_nothing_is_too_large() -> None:
    known = exceptions()
    found = [f"{name}: {value}" for name, value in too_large().items() if value > known.get(name, 0)]
    assert not found, "\n" + "\n".join(found)


def test_exceptions_only_shrink() -> None:
    large = too_large()
    assert len(exceptions()) <= LIMITS["exceptions"]
    assert {name for name, value in exceptions().items() if large.get(name, 0) < value} == set()


def test_every_module_says_what_it_holds() -> None:
    found = []
    for source in sources():
        said = ast.get_docstring(source.tree)
        if not said or len(said.splitlines()) > LIMITS["module_docstring"]:
            found.append(f"{source.path}: {len((said or '').splitlines())} lines of module docstring")
    assert not found, "\n" + "\n".join(found)


def test_source_is_one_package() -> None:
    assert (SRC / "py.typed").exists()
    assert not list((ROOT / "tests").rglob("__init__.py"))
