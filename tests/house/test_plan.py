"""What the plan promises as a whole: how many rooms and arrows there are, and chains that types alone lead along."""

import ast
import importlib
import inspect
import textwrap
import typing
from collections.abc import Callable
from typing import Any

import pytest

from support.house import Source, definitions, floor, imports, rooms, sources

MOST_ROOMS, MOST_ARROWS = 22, 95
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


def names_any(node: ast.expr | None) -> bool:
    """Whether an annotation names Any."""
    return node is not None and any(isinstance(one, ast.Name) and one.id == "Any" for one in ast.walk(node))


def loose(source: Source) -> list[str]:
    """Public functions of a file whose signature names Any, as "path:name"."""
    return [
        f"{source.path.removeprefix('src/codewhale/')}:{node.name}"
        for node in definitions(source.tree)
        if isinstance(node, FUNCTIONS)
        and not node.name.startswith("_")
        and any(map(names_any, [node.returns, *(arg.annotation for arg in (*node.args.args, *node.args.kwonlyargs))]))
    ]


def test_public_functions_of_the_core_are_typed() -> None:
    plan = floor()["types"]
    files = [source for source in sources() if source.room in plan["typed_rooms"] or source.path.endswith("/client.py")]
    assert sorted(name for source in files for name in loose(source)) == sorted(plan["loose_functions"])


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
