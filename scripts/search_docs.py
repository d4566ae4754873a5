"""What sources say of their definitions, taken out of them: docstrings of Python, documentation comments of JavaScript
and TypeScript. Line numbers stay what they were."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from codewhale.codesearch.path_kinds import PathKinds

Documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

_END = re.compile(r"\.(?:\s|$)|\n\s*\n")
_COMMENT = re.compile(r"/\*\*(.*?)\*/", re.DOTALL)
_STAR = re.compile(r"^[ \t]*\* ?", re.MULTILINE)
_TAG = re.compile(r"^\s*@", re.MULTILINE)
_LINK = re.compile(r"\{@\w+\s+([^}|\s]+)[^}]*\}")
_DEFINES = re.compile(
    r"\s*(?:(?:export|default|declare|abstract|async|static|public|protected|readonly|override|get|set)\s+)*"
    r"(?:(?P<kind>function\s*\*?|class|interface|enum|type|const)\s+)?(?P<name>[A-Za-z]\w*)\s*(?P<call>\(?)"
)
_NO_NAMES = frozenset({"if", "for", "while", "switch", "return", "constructor", "import", "new", "await", "super"})


class Told(NamedTuple):
    """A definition: where it stands, what it is called, and the first sentence of what is said of it."""

    path: str
    start: int
    end: int
    name: str
    sentence: str


def bared(tree: Path) -> Iterator[Told]:
    """Take what is said out of a tree's files; what of it was said of public definitions of its code proper."""
    kinds = PathKinds()
    for file in sorted(tree.rglob("*")):
        take = {".py": _python, ".js": _comments, ".ts": _comments}.get(file.suffix)
        if take is None or not file.is_file():
            continue
        path = file.relative_to(tree).as_posix()
        text, told = take(path, file.read_text("utf-8"))
        file.write_text(text, "utf-8")
        yield from told if not kinds.of(path) else ()


def _python(path: str, text: str) -> tuple[str, list[Told]]:
    lines, told = text.split("\n"), []
    for node in ast.walk(ast.parse(text)):
        said = _docstring(node)
        if said is None:
            continue
        for row in range(said.lineno - 1, said.end_lineno or said.lineno):
            lines[row] = lines[row][: said.col_offset] + "..." if row == said.lineno - 1 else ""
        if isinstance(node, Documented) and not node.name.startswith("_"):
            sentence = " ".join(_END.split(ast.get_docstring(node) or "")[0].split())
            told.append(Told(path, node.lineno, node.end_lineno or node.lineno, node.name, sentence))
    return "\n".join(lines), told


def _docstring(node: ast.AST) -> ast.Expr | None:
    if isinstance(node, Documented | ast.Module) and node.body and ast.get_docstring(node) is not None:
        first = node.body[0]
        return first if isinstance(first, ast.Expr) else None
    return None


def _comments(path: str, text: str) -> tuple[str, list[Told]]:
    told = []
    for comment in _COMMENT.finditer(text):
        found = _DEFINES.match(text, comment.end())
        if found is None or found["name"] in _NO_NAMES or not (found["kind"] or found["call"]):
            continue
        said = _LINK.sub(r"\1", _TAG.split(_STAR.sub("", comment[1]))[0]).strip()
        line = text.count("\n", 0, found.start("name")) + 1
        told.append(Told(path, line, line, found["name"], " ".join(_END.split(said)[0].split())))
    return _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text), told
