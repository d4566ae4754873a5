"""What every tool family shares: argument structs, the `tool` decorator, and the schema made from both.

The catalog is generated from these declarations and checked in; at run time only the family that is called
is imported.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from codewhale.protocol.blocks import Block
from codewhale.protocol.tools import CallContext, Effect, Preview, Subject, ToolResult, ToolSpec

A = TypeVar("A", bound="Args")
Run = Callable[[Any, CallContext], Awaitable[ToolResult | Preview]]
Subjects = Callable[[Any], tuple[Subject, ...]]


class Args(Struct, frozen=True, forbid_unknown_fields=True):
    """Base of argument structs: frozen, no unknown fields. A None default means the field may be absent."""


def Doc(text: str, **bounds: Any) -> Meta:
    """What a field means, for the schema; `bounds` are msgspec's (ge, le, min_length, max_length, pattern)."""
    return Meta(description=text, **bounds)


class ToolDecl(Struct, frozen=True):
    """A declaration as the decorator stored it on the method."""

    name: str
    effects: tuple[Effect, ...]
    subjects: Subjects | str
    parallel: bool
    polls: bool
    previews: bool = False
    gate: str = ""
    fetches: bool = False
    outline: Callable[[Any, str], tuple[Block, ...]] = lambda args, workspace: ()


def tool(
    name: str,
    *,
    effects: Iterable[Effect],
    subjects: Subjects | str = lambda args: (),
    parallel: bool = False,
    polls: bool = False,
    fetches: bool = False,
) -> Callable[[Callable[[Any, A, CallContext], Awaitable[ToolResult | Preview]]], Any]:
    """Declare an async method `(self, args, call)` as the tool `name`; its docstring is what the model reads. One that
    is annotated to return a Preview is approved by what that shows, and does nothing before.

    `effects` and `subjects` (a function, or the name of a method of the family) are all that policy sees. `parallel`:
    may run beside other parallel calls. `polls`: repeating it unchanged is normal, so the loop guard leaves it alone.
    `fetches`: gives back what was kept before.
    """

    def mark(method: Callable[[Any, A, CallContext], Awaitable[ToolResult | Preview]]) -> Any:
        ordered = tuple(sorted(set(effects)))
        previews = method.__annotations__.get("return") is Preview
        decl = ToolDecl(name, ordered, subjects, parallel, polls, previews, fetches=fetches)
        method.__tool__ = decl  # type: ignore[attr-defined]
        return method

    return mark


def gated(fact: str) -> Callable[[Any], Any]:
    """Close the tool declared below wherever the provider lacks `fact`, a row of `catalog.lifecycle.GATES`."""

    def mark(method: Any) -> Any:
        method.__tool__ = msgspec.structs.replace(method.__tool__, gate=fact)
        return method

    return mark


def outlined(outline: Callable[[Any, str], tuple[Block, ...]]) -> Callable[[Any], Any]:
    """Show whoever approves a call of the tool declared below what `outline` makes of its arguments and the workspace;
    that starts nothing."""

    def mark(method: Any) -> Any:
        method.__tool__ = msgspec.structs.replace(method.__tool__, outline=outline)
        return method

    return mark


class BoundTool(Struct, frozen=True):
    """A tool ready to run: its declaration, its argument type, the bound method and what policy sees."""

    decl: ToolDecl
    args: type[Args]
    run: Run
    subjects: Subjects


def declared(family: type) -> dict[str, tuple[ToolDecl, type[Args], Callable[..., Any]]]:
    """The tools that class `family` declares, by name: (declaration, argument type, function)."""
    found: dict[str, tuple[ToolDecl, type[Args], Callable[..., Any]]] = {}
    for method in vars(family).values():
        decl = getattr(method, "__tool__", None)
        if decl is not None:
            args = inspect.get_annotations(method, eval_str=True)["args"]
            found[decl.name] = (decl, args, method)
    return found


def bound(family: object) -> dict[str, BoundTool]:
    """The tools of a family object, by name."""
    return {
        name: BoundTool(
            decl,
            args,
            method.__get__(family),
            getattr(family, decl.subjects) if isinstance(decl.subjects, str) else decl.subjects,
        )
        for name, (decl, args, method) in declared(type(family)).items()
    }


def specs(family: type, key: str) -> list[ToolSpec]:
    """The catalog rows of a family class under its table key. Raises ValueError where a docstring is missing."""
    rows = []
    for name, (decl, args, method) in declared(family).items():
        if not method.__doc__:
            raise ValueError(f"tool {name} has no docstring")
        rows.append(
            ToolSpec(
                name=name,
                family=key,
                description=" ".join(inspect.cleandoc(method.__doc__).split()),
                parameters=schema(args),
                effects=decl.effects,
                parallel=decl.parallel,
                polls=decl.polls,
                previews=decl.previews,
                gate=decl.gate,
                fetches=decl.fetches,
            )
        )
    return rows


def schema(args: type[Args]) -> dict[str, Any]:
    """Canonical JSON Schema of an argument struct: references inlined, X-or-null collapsed to X, keys sorted,
    titles and null defaults dropped, no additional properties."""
    (root,), components = msgspec.json.schema_components([args], ref_template="#/{name}")
    canonical = _canonical(root, components)
    assert isinstance(canonical, dict)
    canonical.pop("description", None)
    return canonical


def _canonical(node: Any, components: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_canonical(item, components) for item in node]
    if not isinstance(node, dict):
        return node
    if "anyOf" in node:
        options = [option for option in node["anyOf"] if option.get("type") != "null"]
        rest = {key: value for key, value in node.items() if key != "anyOf"}
        node = {**rest, **(options[0] if len(options) == 1 else {"anyOf": options})}
    if "$ref" in node:
        said = {key: value for key, value in node.items() if key != "$ref"}
        return _canonical({**components[node["$ref"][2:]], **said}, components)
    out = {key: _canonical(value, components) for key, value in sorted(node.items()) if key != "title"}
    if out.get("default", 0) in (None, [], (), {}, ""):
        del out["default"]
    if "enum" in out:
        out["type"] = "string"
    if out.get("type") == "object" and "properties" in out:
        out["properties"] = {key: _canonical(v, components) for key, v in node["properties"].items()}
        out["required"] = [key for key in out["properties"] if key in node.get("required", ())]
    return out
