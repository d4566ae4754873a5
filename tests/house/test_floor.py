"""The floor plan: who may import whom, no circles, siblings apart, rooms within their ceilings."""

import ast
import re
from collections.abc import Iterable

import pytest

from support.house import ROOT, Source, floor, imports, may_import, nodes, rooms, sources


def complain(found: Iterable[str]) -> None:
    """Fail with everything found, one a line."""
    lines = sorted(set(found))
    assert not lines, "\n" + "\n".join(lines)


def test_every_file_stands_in_a_room() -> None:
    complain(
        f"{source.path}: no room {source.room!r} in floor.toml"
        for source in sources()
        if source.room not in rooms() and source.module not in ("codewhale", "codewhale.__main__")
    )


def test_rooms_import_only_what_the_plan_lists() -> None:
    found = []
    for source in sources():
        if source.room not in rooms():
            continue
        allowed = may_import(source.room)
        for link in imports(source):
            parts = link.target.split(".")
            if len(parts) > 1 and parts[1] not in allowed and ".".join(parts[1:3]) not in allowed:
                found.append(f"{source.path}:{link.line}: {source.room} may not import {link.target}")
    complain(found)


def test_our_own_code_is_imported_at_the_top_of_a_file() -> None:
    lazy = set(floor()["lazy_importers"])
    complain(
        f"{source.path}:{link.line}: imports {link.target} inside a function"
        for source in sources()
        if source.room not in lazy and source.path.removeprefix("src/codewhale/") not in lazy
        for link in imports(source)
        if link.inside
    )


def test_imports_are_absolute() -> None:
    complain(
        f"{path.relative_to(ROOT)}: relative import"
        for folder in ("src/codewhale", "tests", "scripts")
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"^\s*from \.", path.read_text(), re.M)
    )


def test_rooms_form_no_circle() -> None:
    edges: dict[str, set[str]] = {}
    for source in sources():
        for link in imports(source):
            parts = link.target.split(".")
            if len(parts) > 1 and parts[1] != source.room:
                edges.setdefault(source.room, set()).add(link.target if is_shared(link.target) else parts[1])
    complain(circles(edges))


def test_modules_form_no_circle() -> None:
    edges = {
        source.module: {link.target for link in imports(source) if link.target != source.module} for source in sources()
    }
    complain(circles(edges))


def is_shared(module: str) -> bool:
    """Whether a module is one of the shared files that a plan row opens by its dotted name."""
    return any(module == f"codewhale.{name}" for room in rooms().values() for name in room["imports"] if "." in name)


def circles(edges: dict[str, set[str]]) -> list[str]:
    """Each circle met on a depth-first walk, as "a -> b -> a"."""
    found: list[str] = []
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        if name in trail:
            found.append(" -> ".join((*trail[trail.index(name) :], name)))
        elif name not in done:
            for target in sorted(edges.get(name, ())):
                visit(target, (*trail, name))
            done.add(name)

    for name in sorted(edges):
        visit(name, ())
    return found


def test_siblings_do_not_import_one_another() -> None:
    found = []
    for source in sources():
        room = rooms().get(source.room, {})
        if not room.get("siblings"):
            continue
        for link in imports(source):
            parts = link.target.split(".")
            same_room = len(parts) > 2 and parts[1] == source.room
            if same_room and parts[2] not in (source.member, *room.get("shared", ())):
                found.append(f"{source.path}:{link.line}: sibling {link.target}")
    complain(found)


@pytest.mark.parametrize("room", rooms())
def test_room_is_within_its_ceilings(room: str) -> None:
    inside = [source for source in sources() if source.room == room]
    lines = sum(source.text.count("\n") for source in inside)
    names = sum(len(public_names(source)) for source in inside)
    assert lines <= rooms()[room]["ceiling"], f"{room}: {lines} lines"
    assert names <= rooms()[room]["public"], f"{room}: {names} public names"


def test_packages_of_a_room_are_within_their_ceilings() -> None:
    for room in rooms().values():
        ceilings = room.get("packages", {})
        lines = dict.fromkeys(ceilings, 0)
        for source in sources():
            if source.room == room["name"] and ceilings and source.path.count("/") > 3:
                lines[source.member] = lines.get(source.member, 0) + source.text.count("\n")
        complain(f"{name}: {count} lines" for name, count in lines.items() if not 0 < count <= ceilings.get(name, 0))


def public_names(source: Source) -> list[str]:
    """Classes and functions at the top of a file whose names do not begin with an underscore."""
    kinds = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return [node.name for node in source.tree.body if isinstance(node, kinds) and not node.name.startswith("_")]


STARTERS = {"fork", "forkpty", "system", "popen", "posix_spawn", "posix_spawnp", "startfile"}
START_MODULES = {"subprocess", "multiprocessing", "pty", "popen2"}


def starts_process(node: ast.AST) -> str:
    """What in this node starts a process; "" when nothing does."""
    if isinstance(node, ast.Import):
        names = [alias.name.split(".")[0] for alias in node.names]
        return next((name for name in names if name in START_MODULES), "")
    if isinstance(node, ast.ImportFrom) and not node.level:
        top = (node.module or "").split(".")[0]
        if top in START_MODULES or node.module == "asyncio.subprocess":
            return top
        return next((alias.name for alias in node.names if top in ("os", "asyncio") and is_starter(alias.name)), "")
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owner = node.value.id
        if owner in ("os", "asyncio", "posix") and is_starter(node.attr):
            return f"{owner}.{node.attr}"
    if isinstance(node, ast.Attribute) and node.attr in ("subprocess_exec", "subprocess_shell"):
        return node.attr
    return ""


def is_starter(name: str) -> bool:
    """Whether a name of `os` or `asyncio` starts a process."""
    return name in STARTERS or name.startswith(("exec", "spawn", "create_subprocess"))


def test_only_the_launcher_starts_processes() -> None:
    allowed = {f"src/codewhale/{name}" for name in floor()["launchers"]}
    complain(
        f"{source.path}:{getattr(node, 'lineno', 0)}: {starts_process(node)}"
        for source in sources()
        if source.path not in allowed
        for node in nodes(source.path)
        if starts_process(node)
    )


def test_only_cli_and_frontends_print() -> None:
    printers = set(floor()["printers"])
    complain(
        f"{source.path}:{node.lineno}: print"
        for source in sources()
        if source.room not in printers
        for node in nodes(source.path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    )


def test_file_and_class_names_say_something() -> None:
    files, classes = floor()["names"]["files"], tuple(floor()["names"]["classes"])
    found = []
    for source in sources():
        stem = source.module.rsplit(".", 1)[-1]
        if any(word in files for word in stem.split("_")):
            found.append(f"{source.path}: file name")
        for node in nodes(source.path):
            if isinstance(node, ast.ClassDef) and node.name.endswith(classes):
                found.append(f"{source.path}:{node.lineno}: class {node.name}")
    complain(found)


def test_every_package_has_its_init() -> None:
    complain(
        f"{folder.relative_to(ROOT)}: no __init__.py"
        for folder in {(ROOT / source.path).parent for source in sources()}
        if not (folder / "__init__.py").exists()
    )
