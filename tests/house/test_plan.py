"""What the plan promises as a whole: how many rooms and arrows there are, and chains that types alone lead along."""

import ast
import importlib
import inspect
import re
import textwrap
import typing
from collections.abc import Callable
from typing import Any

import pytest

from support.house import definitions, floor, imports, rooms, sources

MOST_ROOMS, MOST_ARROWS = 29, 145
TYPE_LIKE = ast.Subscript | ast.BinOp | ast.Name  # what an alias of a type can be written as
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def test_rooms_and_arrows_are_few() -> None:
    arrows = {
        (source.room, link.target.split(".")[1])
        for source in sources()
        for link in imports(source)
        if link.target.count(".") and link.target.split(".")[1] != source.room
    }
    assert len(rooms()) <= MOST_ROOMS
    assert len(arrows) <= MOST_ARROWS


def words_of(node: ast.expr) -> set[str]:
    """The names in an annotation, those of one that stands as a string too."""
    names: set[str] = set()
    for one in ast.walk(node):
        if isinstance(one, ast.Constant) and isinstance(one.value, str) and one.value.isprintable():
            names |= set(re.findall(r"\w+", one.value))
        names |= {getattr(one, "id", ""), getattr(one, "attr", "")}
    return names


def names_any(node: ast.expr | None, loose_names: frozenset[str] = frozenset({"Any"})) -> bool:
    """Whether an annotation names Any, or another name for it."""
    return node is not None and not loose_names.isdisjoint(words_of(node))


def aliases_of_any(tree: ast.Module) -> frozenset[str]:
    """Any, and the names that a module gives to types that hold it."""
    names = {"Any"}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname for alias in node.names if alias.name == "Any" and alias.asname}
        elif isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, TYPE_LIKE):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if names_any(node.value, frozenset(names)):
                names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return frozenset(names)


def loose(tree: ast.Module, elsewhere: frozenset[str] = frozenset()) -> list[str]:
    """The public functions, and the constructors, whose signature names Any."""
    names = aliases_of_any(tree) | elsewhere
    return [
        node.name
        for node in definitions(tree)
        if isinstance(node, FUNCTIONS)
        and (not node.name.startswith("_") or node.name in ("__init__", "__call__"))
        and any(names_any(kind, names) for kind in [node.returns, *(arg.annotation for arg in parameters(node))])
    ]


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    given = node.args
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]


def test_public_functions_of_the_core_are_typed() -> None:
    rooms_typed = floor()["types"]["typed_rooms"]
    files = [source for source in sources() if source.room in rooms_typed or source.path.endswith("/client.py")]
    shared = frozenset(name for source in files for name in aliases_of_any(source.tree))
    assert [f"{source.path}: {name}" for source in files for name in loose(source.tree, shared)] == []


@pytest.mark.parametrize(
    "line",
    [
        "def f(a: Any) -> int: ...",
        "def f() -> dict[str, Any]: ...",
        "def f(*rest: Any) -> int: ...",
        "def f(**rest: typing.Any) -> int: ...",
        "def f(a: 'dict[str, Any]', /) -> int: ...",
        "class A:\n    def __init__(self, a: list[Any]) -> None: ...",
        "Item = dict[str, Any]\ndef f(a: Item) -> int: ...",
        "Item: TypeAlias = Any | None\nasync def f() -> Item: ...",
        "from typing import Any as Anything\ndef f(a: Anything) -> int: ...",
    ],
)
def test_any_is_seen_however_it_is_written(line: str) -> None:
    assert loose(ast.parse(line))
    assert not loose(ast.parse(re.sub(r"\bAny\b(?! as)|\bAnything\b(?=\))", "object", line)))


def test_the_agent_reads_no_metadata() -> None:
    assert [source.path for source in sources() if source.room == "agent" and "metadata.get" in source.text] == []


def test_a_session_has_few_attributes() -> None:
    [source] = [source for source in sources() if source.module == "codewhale.session.session"]
    [session] = [node for node in source.tree.body if isinstance(node, ast.ClassDef) and node.name == "Session"]
    public = {
        node.attr
        for node in ast.walk(session)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
        and not node.attr.startswith("_")
    }
    assert 0 < len(public) <= 12, sorted(public)


def fields_of(node: ast.ClassDef) -> list[str]:
    """The annotations of a struct's fields, as text."""
    return [ast.unparse(item.annotation) for item in node.body if isinstance(item, ast.AnnAssign)]


def test_structs_that_carry_functions_are_small() -> None:
    found = [
        f"{source.path}:{node.name}: {len(fields)} fields"
        for source in sources()
        for node in definitions(source.tree)
        if isinstance(node, ast.ClassDef) and "Struct" in {ast.unparse(base) for base in node.bases}
        if len(fields := fields_of(node)) > 8 and sum("Callable" in field for field in fields) > 2
    ]
    assert found == []


def callable_at(name: str) -> Callable[..., Any]:
    """The function or method at "module:Owner.name"."""
    module, _, path = name.partition(":")
    target: Any = importlib.import_module(f"codewhale.{module}")
    for part in path.split("."):
        target = inspect.getattr_static(target, part) if inspect.isclass(target) else getattr(target, part)
    return typing.cast(Callable[..., Any], getattr(target, "func", getattr(target, "__func__", target)))


def annotation(function: Callable[..., Any], name: str) -> ast.expr | None:
    """What a parameter is said to be ("return": the answer)."""
    node = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    assert isinstance(node, FUNCTIONS)
    if name == "return":
        return node.returns
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, *filter(None, [node.args.vararg])]
    return next((arg.annotation for arg in arguments if arg.arg == name), None)


def called_in(function: Callable[..., Any]) -> set[str]:
    """The names that a function calls or hands on."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return names | {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def kept(names: set[str]) -> set[str]:
    """Those names that are private attributes."""
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


@pytest.mark.parametrize("chain", floor()["chains"], ids=lambda chain: chain["name"])
def test_a_chain_can_be_followed_by_types_alone(chain: dict[str, Any]) -> None:
    """Each station is "module:Owner.function(parameter)", or (return): it has a type that is not Any, and it names a
    station before it, is named by one, or uses a private attribute that one uses."""
    walked: list[str] = []
    reached: list[tuple[set[str], set[str]]] = []
    tables = [called_in(callable_at(name)) for name in chain.get("tables", ())]
    for station in chain["stations"]:
        name, _, parameter = station.rstrip(")").partition("(")
        function = callable_at(name)
        kind = annotation(function, parameter)
        walked.append(f"{station}: {ast.unparse(kind) if kind is not None else 'nothing'}")
        print(walked[-1])
        assert kind is not None and not names_any(kind), "\n".join([*walked, "has no type"])
        short, names = set(name.rpartition(":")[2].split(".")), called_in(function)
        linked = any(short & before or former & names or kept(names & before) for former, before in reached)
        linked = linked or any(short & table and former & table for table in tables for former, _ in reached)
        assert linked or not reached, "\n".join([*walked, "nothing leads here"])
        reached.append((short, names))
