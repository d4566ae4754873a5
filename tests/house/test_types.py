"""What types need: no module imported by a string, no two public classes of one name."""

import ast
from collections import Counter
from collections.abc import Iterable

from support.house import floor, nodes, sources


def imports_by_string(tree: Iterable[ast.AST]) -> bool:
    """Whether anything of `importlib` that takes a module's name, or `__import__`, is used."""
    for node in tree:
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if isinstance(node, ast.ImportFrom) and node.module == "importlib":
            name = next((alias.name for alias in node.names if alias.name == "import_module"), "")
        if name in ("import_module", "__import__", "find_spec"):
            return True
    return False


def test_a_use_of_an_import_by_string_is_seen() -> None:
    for text in ("__import__('a')", "importlib.import_module('a')", "from importlib import import_module as load"):
        assert imports_by_string(ast.walk(ast.parse(text))), text
    assert not imports_by_string(ast.walk(ast.parse("from importlib import resources\nimport a")))


def test_nothing_is_imported_by_a_string_but_what_the_plan_lists() -> None:
    files = {
        source.path.removeprefix("src/codewhale/") for source in sources() if imports_by_string(nodes(source.path))
    }
    listed = floor()["types"]["imports_by_string"]
    assert sorted(files - set(listed)) == []
    assert sorted(set(listed) - files) == [], "take these off the list in floor.toml: it may only shrink"


def test_no_two_public_classes_have_one_name() -> None:
    counts = Counter(
        node.name
        for source in sources()
        for node in source.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name: count for name, count in counts.items() if count > 1} == {}, "choose another name"
