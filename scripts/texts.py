"""Every text that a person can read, each with its file and line, from one list: the word files of each language, the
reasons of the tables of harm, and the phrases in the source (help, errors, notices, results)."""

import argparse
import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from codewhale.display.words import LANGUAGES

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "codewhale"
# Two plain words beside each other: what tells a phrase from a name, a pattern or a key.
PHRASE = re.compile(r"[A-Za-z'\u4e00-\u9fff]{2,}[,:;]? [a-z{(]")
# What only looks like a phrase: a query, a style of the interface, a style sheet, a pattern, a program.
OTHER = re.compile(
    r"^\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|PRAGMA|WITH|ALTER|import|\(allow|\(deny)\b|\bon:|"
    r"\b(bold|italic|underline)$|^bold |(background|border|color|display|dock|height|width): |\(\?[:m!=]|\\[bdsw]\b"
)

Text = tuple[str, str]


def words(source: Path) -> Iterator[Text]:
    """The entries of the word files: the English text, then the same in each other language."""
    folder = source / "display" / "words"
    for path in sorted((folder / LANGUAGES[0]).glob("*.json")):
        files = [folder / language / path.name for language in LANGUAGES]
        panels = [(file, file.read_text("utf-8").splitlines()) for file in files if file.exists()]
        entries = [json.loads("\n".join(lines)) for _, lines in panels]
        for key in dict.fromkeys(key for panel in entries for key in panel):
            for (file, lines), panel in zip(panels, entries, strict=True):
                if key in panel:
                    value = panel[key]
                    line = next(n for n, row in enumerate(lines, 1) if row.lstrip(" {").startswith(f'"{key}":'))
                    text = value if isinstance(value, str) else " / ".join(value.values())
                    yield f"{file.relative_to(source)}:{line}", f"{key}  {text}"


def reasons(path: Path, source: Path) -> Iterator[Text]:
    """What the rows of a table of harm give as their reason."""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if line.startswith("why = "):
            yield f"{path.relative_to(source)}:{number}", str(tomllib.loads(line)["why"])


def phrases(path: Path, source: Path) -> Iterator[Text]:
    """The string literals of a file that are phrases, docstrings and queries left out; values stand as {...}."""
    tree = ast.parse(path.read_bytes())
    silent = {id(part) for node in ast.walk(tree) for part in _silent(node)}
    place = path.relative_to(source)
    for node in ast.walk(tree):
        if id(node) in silent or not isinstance(node, ast.Constant | ast.JoinedStr):
            continue
        text = _text(node)
        if PHRASE.search(text) and not OTHER.search(text):
            yield f"{place}:{node.lineno}", text


def _silent(node: ast.AST) -> Iterator[ast.AST]:
    """What stands under a node and is no text of its own: a docstring, the parts of an f-string, an annotation."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        yield node.value
    if isinstance(node, ast.JoinedStr):
        for part in node.values:
            yield from ast.walk(part) if isinstance(part, ast.FormattedValue) else (part,)
    for note in (getattr(node, "annotation", None), getattr(node, "returns", None)):
        if isinstance(note, ast.AST):
            yield from ast.walk(note)


def _text(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else "{" + ast.unparse(part.value) + "}"
        for part in node.values
        if isinstance(part, ast.Constant | ast.FormattedValue)
    )


def listed(source: Path) -> list[Text]:
    """The whole list of a source tree: (file and line, text)."""
    tables = (text for path in sorted(source.rglob("*.toml")) for text in reasons(path, source))
    literals = (text for path in sorted(source.rglob("*.py")) for text in phrases(path, source))
    return [*words(source), *tables, *literals]


def main() -> None:
    """Print the list, or the part of it whose places hold a word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("place", nargs="?", default="", help="only places that hold this")
    wanted = parser.parse_args().place
    for place, text in listed(SOURCE):
        if wanted in place:
            print(f"{place}  {' '.join(text.split())}")


if __name__ == "__main__":
    main()
