"""Code as spans with the styles of its tokens. Bounded: known languages, short lines, small pieces; a language whose
lexer turns out to be slow is drawn plain from then on."""

import time
from collections.abc import Sequence
from typing import Any

from codewhale.display.transcript.lines import Span

MOST_CHARS = 16_384
MOST_LINE = 1_000
MOST_REMEMBERED = 2_000
SLOW_SECONDS = 0.25
PLAIN = "code"
# Languages that are coloured, by the words that fences and file endings name them with.
_LANGUAGES = {
    "python": "py pyi python3 pycon", "javascript": "js mjs cjs jsx", "typescript": "ts tsx mts",
    "bash": "sh zsh shell", "console": "shell-session", "json": "jsonc json5", "yaml": "yml", "toml": "",
    "ini": "cfg", "html": "htm", "xml": "svg", "css": "", "scss": "", "sql": "", "c": "h",
    "cpp": "c++ cc hpp cxx hh", "csharp": "cs c#", "java": "", "kotlin": "kt", "go": "golang", "rust": "rs",
    "ruby": "rb", "php": "", "swift": "", "scala": "", "lua": "", "perl": "pl", "r": "", "haskell": "hs",
    "elixir": "ex exs", "erlang": "erl", "clojure": "clj", "docker": "dockerfile", "make": "makefile mk",
    "cmake": "", "diff": "patch", "markdown": "md", "nix": "", "zig": "", "dart": "", "julia": "jl",
    "graphql": "gql", "protobuf": "proto", "terraform": "tf", "powershell": "ps1", "vue": "", "latex": "tex",
}  # fmt: skip
_NAMES = {word: name for name, words in _LANGUAGES.items() for word in (name, *words.split())}
# The first of these that a token's type begins with says how it looks.
_STYLES = (
    ("Token.Comment", "comment"),
    ("Token.Literal.String", "string"),
    ("Token.Literal.Number", "number"),
    ("Token.Keyword.Type", "type_"),
    ("Token.Keyword", "keyword"),
    ("Token.Operator.Word", "keyword"),
    ("Token.Name.Function", "function"),
    ("Token.Name.Class", "type_"),
    ("Token.Name.Decorator", "function"),
    ("Token.Name.Builtin", "type_"),
    ("Token.Name.Tag", "keyword"),
    ("Token.Name.Attribute", "function"),
    ("Token.Name.Exception", "type_"),
    ("Token.Generic.Deleted", "removed"),
    ("Token.Generic.Inserted", "added"),
    ("Token.Generic.Heading", "keyword"),
    ("Token.Generic.Subheading", "keyword"),
    ("Token.Generic.Prompt", "comment"),
)

Coloured = tuple[Span, ...]
GROUND = "on:code_background"


def language_of(path: str) -> str:
    """The word for the language of a file by its name, "" when it is not known."""
    name = path.rpartition("/")[2].lower()
    word = name.rpartition(".")[2] if "." in name else name
    return word if word in _NAMES else ""


def grounded(spans: Sequence[Span]) -> list[Span]:
    """Spans on the ground of code."""
    return [(text, f"{style} {GROUND}") for text, style in spans]


class Highlighter:
    """Colours code. Lexers are loaded when their language first comes up."""

    def __init__(self) -> None:
        self._lexers: dict[str, Any] = {}
        self._styles: dict[Any, str] = {}
        self._single: dict[tuple[str, str], Coloured] = {}

    def piece(self, lines: list[str], word: str) -> list[Coloured]:
        """The lines of a piece of code, each as spans."""
        lexer = self._lexer(word)
        if lexer is None or sum(map(len, lines)) > MOST_CHARS or max(map(len, lines), default=0) > MOST_LINE:
            return [((line, PLAIN),) for line in lines]
        began = time.thread_time()  # a machine that stalls is not a slow lexer
        coloured = self._coloured(lexer, lines)
        if time.thread_time() - began > SLOW_SECONDS:
            self._lexers[_NAMES.get(word.lower(), "")] = None
        return coloured

    def single(self, line: str, word: str) -> Coloured:
        """One line for itself; what was coloured lately is remembered."""
        key = (word, line)
        found = self._single.get(key)
        if found is None:
            if len(self._single) >= MOST_REMEMBERED:
                self._single.clear()
            found = self._single[key] = self.piece([line], word)[0]
        return found

    def _lexer(self, word: str) -> Any:
        name = _NAMES.get(word.lower(), "")
        if name and name not in self._lexers:
            from pygments.lexers import get_lexer_by_name

            self._lexers[name] = get_lexer_by_name(name, stripnl=False, ensurenl=True)
        return self._lexers.get(name)

    def _coloured(self, lexer: Any, lines: list[str]) -> list[Coloured]:
        found: list[Coloured] = []
        spans: list[Span] = []
        for kind, text in lexer.get_tokens("\n".join(lines)):
            style = self._styles.get(kind)
            if style is None:
                style = self._styles[kind] = _style(str(kind))
            first, *others = text.split("\n")
            if first:
                spans.append((first, style))
            for part in others:
                found.append(tuple(spans))
                spans = [(part, style)] if part else []
        if len(found) < len(lines):
            found.append(tuple(spans))
        same = len(found) >= len(lines) and all(
            "".join(text for text, _ in spans) == line for spans, line in zip(found, lines, strict=False)
        )
        return found[: len(lines)] if same else [((line, PLAIN),) for line in lines]


def _style(kind: str) -> str:
    return next((style for begin, style in _STYLES if kind.startswith(begin)), PLAIN)
