"""What a parsed source defines, calls and imports: one walk over its outer nodes, one query for the rest."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from codewhale.codesearch.grammars import Grammar
from codewhale.codesearch.model import Symbol

if TYPE_CHECKING:
    from tree_sitter import Node

WHOLE = 1500  # bytes: a definition no larger is one piece, whatever it holds
LARGE = 3000  # bytes: what is larger is looked into for definitions, whatever it is
_DEEPEST = 40
_MOST_SYMBOLS = 20_000
_LONGEST_NAME = 200
_HOLDERS = frozenset({"class", "struct", "enum", "trait", "interface", "impl", "module"})
_FUNCTIONS = frozenset(
    """arrow_function function_expression function generator_function function_definition lambda anonymous_function
    lambda_expression fun_expression function_literal""".split()
)
_TYPES = {
    "class": "class", "class_expression": "class", "struct_declaration": "struct", "struct_type": "struct",
    "union_declaration": "struct", "enum_declaration": "enum", "error_set_declaration": "enum",
    "opaque_declaration": "struct", "interface_type": "interface",
}  # fmt: skip
_ELIXIR = {
    "def": "fn", "defp": "fn", "defmacro": "macro", "defmacrop": "macro", "defguard": "macro", "defdelegate": "fn",
    "defmodule": "module", "defprotocol": "interface", "defimpl": "impl", "test": "fn", "describe": "module",
    "defstruct": "struct",
}  # fmt: skip
_LISP = {
    "defn": "fn", "defn-": "fn", "defmacro": "macro", "def": "const", "defonce": "const", "defmulti": "fn",
    "defmethod": "fn", "defprotocol": "interface", "defrecord": "struct", "deftype": "struct", "define": "const",
    "define-syntax": "macro", "ns": "module", "defun": "fn",
}  # fmt: skip
_NAME_TYPES = ("identifier", "name", "constant", "word", "atom", "symbol", "sym_lit", "string")
_STEPS = re.compile(r"::|[.:#]")
_PLAIN = re.compile(r"[^\s(){}<>\"',;=]+")


class SourceSpan(Struct, frozen=True, array_like=True):
    """Rows `start` to `end` (0-based, inclusive) that belong together."""

    start: int
    end: int
    kind: str
    name: str


class SourceOutline(Struct):
    """What was found in one source: definitions in the order of their lines, the pieces it falls into."""

    symbols: list[Symbol]
    pieces: list[SourceSpan]


def outline(grammar: Grammar, root: "Node") -> SourceOutline:
    """The definitions of a tree and the pieces they make."""
    walk = _Walk(grammar)
    walk.visit(root, "", False, 0)
    walk.symbols.sort(key=lambda symbol: symbol.line)
    return SourceOutline(walk.symbols, walk.pieces)


class _Walk:
    def __init__(self, grammar: Grammar) -> None:
        self.symbols: list[Symbol] = []
        self.pieces: list[SourceSpan] = []
        self._actions = grammar.actions
        self._into = grammar.into

    def visit(self, node: "Node", scope: str, inside: bool, depth: int) -> None:
        """Look for definitions among the children of `node`; `inside` a function constants do not count."""
        actions, into = self._actions, self._into
        for child in node.named_children:
            kind = child.kind_id
            action = actions.get(kind)
            if action is not None:
                if self._define(child, action, scope, inside, depth):
                    continue
            elif kind not in into and child.end_byte - child.start_byte <= LARGE:
                continue
            if depth < _DEEPEST and (action is None or kind in into or child.end_byte - child.start_byte > WHOLE):
                self.visit(child, scope, inside, depth + 1)

    def _define(self, node: "Node", action: str, scope: str, inside: bool, depth: int) -> bool:
        """Record what `node` defines; False when it turns out to define nothing."""
        told = _SPECIALS[action](node) if action[0] == "=" else (action, _name(node))
        if told is None or not told[1] or len(self.symbols) >= _MOST_SYMBOLS:
            return False
        kind, name = told
        if kind == "const" and inside:
            return False
        around, last = _split(name)
        scope = ".".join(filter(None, (scope, around)))
        start, end = node.start_point.row, node.end_point.row
        self.symbols.append(Symbol(last, kind, start + 1, end + 1, scope))
        size = node.end_byte - node.start_byte
        before = len(self.pieces)
        if depth < _DEEPEST and (kind in _HOLDERS or size > LARGE):
            self.visit(node, f"{scope}.{last}" if scope else last, inside or kind not in _HOLDERS, depth + 1)
        if size <= WHOLE or len(self.pieces) == before:
            del self.pieces[before:]
            self.pieces.append(SourceSpan(start, end, kind, last))
        return True


def _split(name: str) -> tuple[str, str]:
    """("a.b", "c") of a.b.c, a::b::c or a.b:c."""
    steps = [step for step in _STEPS.split(name) if step]
    return ".".join(steps[:-1]), steps[-1] if steps else name


def _text(node: "Node") -> str:
    return (node.text or b"")[:_LONGEST_NAME].decode("utf-8", "replace")


def _name(node: "Node") -> str:
    """The name a definition gives: its field of that name, its declarator, or the first word in it."""
    named = node.child_by_field_name("name")
    if named is None and (declared := node.child_by_field_name("declarator")) is not None:
        return _declared(declared)
    if named is None:
        named = node.child_by_field_name("type") if node.type == "impl_item" else _first_name(node)
    if named is None:
        return ""
    if named.type.endswith("string"):
        return _text(named).strip("\"'`")
    match = _PLAIN.match(_text(named).lstrip("&*"))
    return match[0] if match else ""


def _declared(node: "Node") -> str:
    """The name at the end of a chain of declarators."""
    for _ in range(_DEEPEST):
        inner = node.child_by_field_name("declarator") or _wrapped(node)
        if inner is None:
            break
        node = inner
    match = _PLAIN.match(_text(node))
    return match[0] if match else ""


def _wrapped(node: "Node") -> "Node | None":
    if node.type in ("parenthesized_declarator", "reference_declarator", "pointer_declarator"):
        return node.named_children[-1] if node.named_child_count else None
    return None


def _first_name(node: "Node") -> "Node | None":
    level = [node]
    for _ in range(3):
        level = [child for parent in level for child in parent.named_children[:6]]
        for child in level:
            if child.type.endswith(_NAME_TYPES):
                return child
    return None


def _by_value(value: "Node | None", name: str) -> tuple[str, str] | None:
    kind = "const" if value is None else _TYPES.get(value.type, "fn" if value.type in _FUNCTIONS else "const")
    return (kind, name) if name and not name.startswith(("{", "[")) else None


def _assigned(node: "Node") -> tuple[str, str] | None:
    children = node.named_children
    if len(children) < 2:
        return None
    left, right = children[0], children[-1]
    if right.type == "expression_list" and right.named_child_count:
        right = right.named_children[0]
    kind, name = _by_value(right, _text(left)) or ("", "")
    plain = _PLAIN.fullmatch(name)
    simple = left.type in ("identifier", "variable_list", "constant") or kind == "fn"
    return (kind, name) if plain and simple and "." not in name[:1] else None


def _constant(node: "Node") -> tuple[str, str] | None:
    left = node.child_by_field_name("left")
    return ("const", _text(left)) if left is not None and left.type == "constant" else None


def _function_only(node: "Node") -> tuple[str, str] | None:
    value = node.child_by_field_name("value")
    key = node.child_by_field_name("key") or node.child_by_field_name("property") or node.child_by_field_name("name")
    if value is None or key is None or value.type not in _FUNCTIONS:
        return None
    return "fn", _text(key).strip("\"'`")


def _receiver(node: "Node") -> tuple[str, str]:
    receiver = node.child_by_field_name("receiver")
    words = re.findall(r"\w+", _text(receiver)) if receiver is not None else []
    owner = next((word for word in words[1:] or words), "")
    return "fn", f"{owner}.{_name(node)}" if owner else _name(node)


def _typed(node: "Node") -> tuple[str, str]:
    inner = node.child_by_field_name("type")
    return _TYPES.get(inner.type, "type") if inner is not None else "type", _name(node)


def _prototype(node: "Node") -> tuple[str, str] | None:
    """A function that is declared; other declarations define nothing that is looked for."""
    declared = node.child_by_field_name("declarator")
    for _ in range(4):
        if declared is None or declared.type == "function_declarator":
            break
        declared = declared.child_by_field_name("declarator") or _wrapped(declared)
    return ("fn", _declared(declared)) if declared is not None and declared.type == "function_declarator" else None


def _bodied(node: "Node") -> tuple[str, str] | None:
    if node.child_by_field_name("body") is None or node.child_by_field_name("name") is None:
        return None
    return {"class": "class", "enum_": "enum"}.get(node.type[:5], "struct"), _name(node)


def _typedef(node: "Node") -> tuple[str, str] | None:
    inner = node.child_by_field_name("type")
    kind = "type" if inner is None else {"struct": "struct", "union_": "struct", "enum_s": "enum"}.get(inner.type[:6])
    return kind or "type", _name(node)


def _declarators(node: "Node") -> tuple[str, str] | None:
    for child in node.named_children:
        if child.type == "variable_declarator":
            return "const", _name(child)
        if child.type == "variable_declaration":
            return _declarators(child)
    return None


def _pattern(node: "Node") -> tuple[str, str] | None:
    pattern = node.child_by_field_name("pattern")
    if pattern is None or not _PLAIN.fullmatch(_text(pattern)):
        return None
    return ("fn" if any(child.type == "parameter" for child in node.named_children) else "const"), _text(pattern)


def _elixir(node: "Node") -> tuple[str, str] | None:
    target = node.child_by_field_name("target")
    kind = _ELIXIR.get(_text(target)) if target is not None and target.type == "identifier" else None
    given = next((child for child in node.named_children if child.type == "arguments"), None)
    if kind is None or given is None or not given.named_child_count:
        return None
    first = given.named_children[0]
    for _ in range(3):
        inner = first.child_by_field_name("left") if first.type == "binary_operator" else None
        inner = inner or (first.child_by_field_name("target") if first.type == "call" else None)
        if inner is None:
            break
        first = inner
    name = _text(first).strip('"')
    return (kind, name) if kind != "struct" and name else None


def _swift(node: "Node") -> tuple[str, str]:
    word = node.child_by_field_name("declaration_kind")
    kind = _text(word) if word is not None else "class"
    return {"extension": "impl", "actor": "class"}.get(kind, kind if kind in _HOLDERS else "class"), _name(node)


def _zig(node: "Node") -> tuple[str, str] | None:
    children = node.named_children
    value = children[-1] if len(children) > 1 else None
    if value is not None and value.type == "builtin_function":
        return None
    return _by_value(value, _name(node))


def _lisp(node: "Node") -> tuple[str, str] | None:
    children = node.named_children[:2]
    kind = _LISP.get(_text(children[0])) if len(children) == 2 else None
    match = re.match(r"\(?\s*([^\s()]+)", _text(children[1])) if kind else None
    if kind is None or match is None:
        return None
    return ("fn" if kind == "const" and _text(children[1]).startswith("(") else kind), match[1]


def _hcl(node: "Node") -> tuple[str, str] | None:
    words = [_text(child).strip('"') for child in node.named_children[:3] if child.type in ("identifier", "string_lit")]
    return ("const", words[-1]) if len(words) > 1 else None


def _r_assigned(node: "Node") -> tuple[str, str] | None:
    operator = node.child_by_field_name("operator")
    left, right = node.child_by_field_name("lhs"), node.child_by_field_name("rhs")
    if operator is None or _text(operator) not in ("<-", "=", "<<-") or left is None or left.type != "identifier":
        return None
    return _by_value(right, _text(left))


# (kind, name) of a node that its type alone does not tell, None when it defines nothing.
_SPECIALS: dict[str, Callable[["Node"], tuple[str, str] | None]] = {
    "=value": lambda node: _by_value(node.child_by_field_name("value"), _name(node)),
    "=assign": _assigned,
    "=constant": _constant,
    "=pair": _function_only,
    "=property": lambda node: _function_only(node) or ("const", _name(node)),
    "=receiver": _receiver,
    "=typed": _typed,
    "=prototype": _prototype,
    "=bodied": _bodied,
    "=typedef": _typedef,
    "=declarators": _declarators,
    "=pattern": _pattern,
    "=elixir": _elixir,
    "=swift": _swift,
    "=zig": _zig,
    "=lisp": _lisp,
    "=hcl": _hcl,
    "=rassign": _r_assigned,
}
