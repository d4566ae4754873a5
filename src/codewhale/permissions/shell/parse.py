"""A shell line taken apart: every simple command in it, wherever it hides, and every shape that is more than words.

The grammar is tree-sitter's for bash. It is read leniently here, so that what is dangerous is found in broken lines
too; that a line is harmless is believed only where strict_reader.py reads the very same words.
"""

import functools
import posixpath
import re
from typing import TYPE_CHECKING

from msgspec import Struct

from codewhale.permissions.shell.words import UNKNOWN, Word, bare, in_dollar_single, in_double, joined

if TYPE_CHECKING:  # it is imported with the first line alone
    from tree_sitter import Language, Node

DEEPEST = 64
# Of a longer pipe, a command is taken to read from the first and the last ones before it.
_STAGES = 16
# What stands for a variable's value, where it has one.
_WITH_DEFAULT = re.compile(r"([A-Za-z_]\w*)(?::?[?=-]|%%?/\Z)")
# A command of words in which no character means anything: it is cut at blanks, and its nodes need no look.
_WORDS_ALONE = re.compile(rb"[\w@%+,./-]+(?: +[\w@%+=:,./-]+)*")
INCOMPLETE = "text that is not a complete command line"
_TRANSPARENT = frozenset(("program", "list", "negated_command", "subshell", "ERROR"))
_REDIRECTS = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))
_WORDS = frozenset(
    """word string raw_string ansi_c_string translated_string concatenation number simple_expansion expansion
    command_substitution process_substitution arithmetic_expansion brace_expression regex extglob_pattern
    variable_assignment variable_name special_variable_name test_operator""".split()
)
_SILENT = frozenset((";", "&&", "||", "\n", "|", "(", ")", "!", "comment"))
_SHAPES = {"&": "a command in the background", "|&": "|&", ";;": "case"}


class Redirect(Struct):
    """One redirection: its operator, descriptor ("" where none is written) and target; what is fed into it."""

    op: str
    fd: str
    target: Word
    feeds: "list[ParsedCommand]"


class ParsedCommand(Struct):
    """One simple command. `feeds` are the commands whose output it reads or carries in its words, `input` the text
    it is given by a here-document or here-string, `where` the folder it runs in ("" when that is not known),
    `within` the function that it stands in."""

    words: list[Word]
    assigns: list[tuple[str, Word]]
    feeds: "list[ParsedCommand]"
    redirects: list[Redirect]
    input: str = ""
    where: str = ""
    within: str = ""
    background: bool = False
    piped: bool = False
    carries: bool = False


class ParsedLine(Struct):
    """What a line holds. `shapes` names each construct that is more than commands of plain words."""

    commands: list[ParsedCommand]
    redirects: list[Redirect]
    shapes: list[str]
    variables: dict[str, str]


def parse(text: str, variables: dict[str, str]) -> ParsedLine:
    """Take a line apart; `variables` are the ones whose values are known. Never raises for any text."""
    source = text.encode("utf-8", "surrogatepass")
    walk = _Walk(source, dict(variables))
    import tree_sitter

    root = tree_sitter.Parser(_grammar()).parse(source).root_node
    if root.has_error:
        walk.line.shapes.append(INCOMPLETE)
    walk.statement(root, 0)
    return walk.line


def feed(line: ParsedLine, text: str) -> None:
    """Give a line its input: every command has it that reads from no other command and is given no text."""
    for command in line.commands:
        if not command.input and not (command.piped and command.feeds):
            command.input = text


@functools.cache
def _grammar() -> "Language":
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Language(tree_sitter_bash.language())


class _Walk:
    """One pass over the tree, in the order in which the shell would come by."""

    def __init__(self, source: bytes, variables: dict[str, str]) -> None:
        self._source = source
        self.line = ParsedLine([], [], [], variables)
        self._function = ""
        self._alone: dict[bytes, list[Word]] = {}

    def _text(self, node: "Node") -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def _shape(self, what: str) -> None:
        if what not in self.line.shapes:
            self.line.shapes.append(what)

    def statement(self, node: "Node", depth: int) -> None:
        """Whatever may stand where a command may stand."""
        kind = node.type
        if depth > DEEPEST:
            self._shape("commands nested too deep")
        elif kind == "command" or kind in ("declaration_command", "unset_command", "test_command"):
            self._command(node, depth)
        elif kind == "pipeline":
            self._pipeline(node, depth)
        elif kind == "redirected_statement":
            self._redirected(node, depth)
        elif kind == "subshell":
            self._subshell(node, depth)
        elif kind == "variable_assignment":
            self._shape("an assignment")
            self._assign(node, depth)
        elif kind == "function_definition":
            self._define(node, depth)
        elif node.is_named and kind in _WORDS:
            self._word(node, depth)
        else:
            self._children(node, depth)

    def _children(self, node: "Node", depth: int) -> None:
        if node.is_named and node.type not in _TRANSPARENT and node.type not in _SILENT:
            self._shape(node.type.replace("_", " "))
        begin = len(self.line.commands)
        for child in _flat(node) if node.type == "list" else node.children:
            if child.type in _SHAPES:
                self._shape(_SHAPES[child.type])
                for command in self.line.commands[begin:] if child.type == "&" else ():
                    command.background = True
            elif child.is_named:
                begin = len(self.line.commands)
                self.statement(child, depth + 1)

    def _subshell(self, node: "Node", depth: int) -> None:
        kept = dict(self.line.variables)
        self._children(node, depth)
        self.line.variables.clear()
        self.line.variables.update(kept)

    def _define(self, node: "Node", depth: int) -> None:
        name, outer = node.child_by_field_name("name"), self._function
        self._function = self._text(name) if name is not None else outer
        self._children(node, depth)
        self._function = outer

    def _pipeline(self, node: "Node", depth: int) -> None:
        first = len(self.line.commands)
        for child in node.children:
            if child.type == "|&":
                self._shape("|&")
            if not child.is_named:
                continue
            begin = len(self.line.commands)
            self.statement(child, depth + 1)
            before = self.line.commands[first:begin]
            if len(before) > 2 * _STAGES:
                self._shape("a pipe of very many commands")
                before = before[:_STAGES] + before[-_STAGES:]
            for command in self.line.commands[begin:]:
                command.piped = True
                command.feeds.extend(before)
                for redirect in command.redirects:
                    redirect.feeds.extend(before)

    def _redirected(self, node: "Node", depth: int) -> None:
        first = len(self.line.commands)
        for child in node.children:
            if child.type not in _REDIRECTS and child.is_named:
                self.statement(child, depth + 1)
        body = self.line.commands[first:]
        for child in node.children:
            if child.type in _REDIRECTS:
                self._redirect(child, body, depth)
        if not body:
            self._shape("a redirection without a command")

    def _redirect(self, node: "Node", body: list[ParsedCommand], depth: int) -> None:
        if node.type == "heredoc_redirect":
            self._shape("a here-document")
            self._heredoc(node, body, depth)
            return
        words = [child for child in node.children if child.is_named and child.type != "file_descriptor"]
        fd = next((self._text(child) for child in node.children if child.type == "file_descriptor"), "")
        op = next((child.type for child in node.children if not child.is_named), "<<<")
        begin = len(self.line.commands)
        for number, target in enumerate(words or [None]):
            word = self._word(target, depth) if target is not None else Word("", literal=False)
            if node.type == "herestring_redirect":
                self._shape("a here-string")
                for command in body:
                    command.input += word.text + "\n"
                    command.feeds.extend(self.line.commands[begin:])
            elif number == 0:
                redirect = Redirect(op, fd, word, [*body, *self.line.commands[begin:]])
                self.line.redirects.append(redirect)
                for command in body:
                    command.redirects.append(redirect)
                    command.feeds.extend(self.line.commands[begin:])
            elif body:
                body[-1].words.append(word)

    def _heredoc(self, node: "Node", body: list[ParsedCommand], depth: int) -> None:
        begin = len(self.line.commands)
        tail = []
        for child in node.children:
            if child.type == "heredoc_body":
                for command in body:
                    command.input += self._text(child)
                for part in child.children:
                    self.statement(part, depth + 1)
                for command in body:
                    command.feeds.extend(self.line.commands[begin:])
            elif child.type in _REDIRECTS:
                self._redirect(child, body, depth + 1)
            elif child.is_named and child.type not in ("heredoc_start", "heredoc_end"):
                tail.append(child)
        for child in tail:
            begin = len(self.line.commands)
            self.statement(child, depth + 1)
            for command in self.line.commands[begin:]:
                command.feeds.extend(body)

    def _assign(self, node: "Node", depth: int) -> tuple[str, Word]:
        parts = node.children
        name = self._text(parts[0]) if parts else ""
        if parts and parts[0].type == "subscript":
            self.statement(parts[0], depth + 1)
        value = self._word(parts[-1], depth) if len(parts) > 2 else Word("")
        if value.known and len(parts) > 2 and parts[1].type == "=":
            self.line.variables[name] = value.text
        else:
            self.line.variables.pop(name, None)
        return name, value

    def _command(self, node: "Node", depth: int) -> None:
        command = ParsedCommand([], [], [], [], where=self.line.variables.get("PWD", ""), within=self._function)
        kind = node.type
        raw = self._source[node.start_byte : node.end_byte] if kind == "command" else b""
        if raw in self._alone or _WORDS_ALONE.fullmatch(raw):
            if raw not in self._alone:
                self._alone[raw] = [Word(word) for word in raw.decode("ascii").split()]
            command.words = self._alone[raw]
            self.line.commands.append(command)
            self._moved(command)
            return
        begin = len(self.line.commands)
        kept = dict(self.line.variables)
        if node.type == "test_command" and self._text(node.children[0]) != "[":
            self._shape(self._text(node.children[0]))
        self._parts(node, command, depth)
        if command.words:
            self.line.variables.clear()
            self.line.variables.update(kept)
        carried = self.line.commands[begin:]
        command.carries = bool(carried)
        command.feeds.extend(carried)
        self.line.commands.append(command)
        if node.type == "declaration_command":
            self.line.variables.update({name: word.text for name, word in command.assigns if word.known})
        self._moved(command)

    def _moved(self, command: ParsedCommand) -> None:
        """Follow cd, so that later paths are taken from where they will be."""
        if command.words and command.words[0].text in ("cd", "pushd", "popd") and not self._function:
            targets = [word for word in command.words[1:] if word.text not in ("--", "-P", "-L", "-e")]
            word = targets[0] if targets else Word(self.line.variables.get("HOME", UNKNOWN))
            self.line.variables["PWD"] = _join(self.line.variables, word)

    def _parts(self, node: "Node", command: ParsedCommand, depth: int) -> None:
        for child in node.children:
            kind = child.type
            if kind == "variable_assignment" and not command.words:
                command.assigns.append(self._assign(child, depth))
            elif kind == "command_name":
                command.words.append(
                    self._word(child.children[0], depth) if child.children else bare(self._text(child))
                )
            elif kind in _REDIRECTS:
                self._redirect(child, [command], depth)
            elif kind == "variable_assignment":
                command.assigns.append(self._assign(child, depth))
                command.words.append(Word(self._text(child), literal=False))
            elif kind in _WORDS:
                command.words.append(self._word(child, depth))
            elif child.children:
                self._parts(child, command, depth + 1) if depth < DEEPEST else self._shape("commands nested too deep")
            else:
                text = self._text(child)
                command.words.append(Word(text) if text in ("[", "]") else bare(text))

    def _word(self, node: "Node", depth: int) -> Word:
        kind = node.type
        if depth > DEEPEST:
            self._shape("commands nested too deep")
            return Word(UNKNOWN, literal=False)
        if kind in ("word", "number", "test_operator", "variable_name") and not node.child_count:
            text = self._text(node)
            return Word(text) if text in ("[", "]") else _home(bare(text), self.line.variables)
        if kind == "string" or kind == "translated_string":
            return self._string(node, depth, kind == "string")
        if kind == "raw_string":
            return Word(self._text(node)[1:-1], plain=False)
        if kind == "ansi_c_string":
            return Word(in_dollar_single(self._text(node)[2:-1]), literal=False, plain=False)
        if kind == "concatenation":
            return _home(
                joined([self._piece(child, depth, n) for n, child in enumerate(node.children)]), self.line.variables
            )
        if kind == "simple_expansion":
            return _variable(self._text(node)[1:], self.line.variables)
        if kind == "expansion":
            inner = self._text(node)[2:-1]
            if inner.isidentifier():
                return _variable(inner, self.line.variables)
            match = _WITH_DEFAULT.match(inner)
            if match is not None and match[1] in self.line.variables:
                self._inside(node, depth)
                return _variable(match[1], self.line.variables)
        self._inside(node, depth)
        return Word(UNKNOWN, literal=False, names=tuple(self._names(node)))

    def _piece(self, node: "Node", depth: int, number: int) -> Word:
        if node.is_named and node.type != "word":
            return self._word(node, depth + 1)
        return bare(self._text(node), start=number == 0)

    def _string(self, node: "Node", depth: int, literal: bool) -> Word:
        if node.child_count == 2 and node.children[1].is_missing:
            return Word(self._text(node)[1:], literal=False, plain=False)
        at = node.start_byte + (1 if literal else 2)
        pieces: list[str] = []
        names: list[str] = []
        for child in node.children:
            if not child.is_named or child.type == "string_content":
                continue
            pieces.append(in_double(self._source[at : child.start_byte].decode("utf-8", "replace")))
            word = self._word(child, depth + 1)
            pieces.append(word.text)
            names.extend(word.names)
            literal = literal and word.text.isdigit() and word.literal
            at = child.end_byte
        pieces.append(in_double(self._source[at : max(at, node.end_byte - 1)].decode("utf-8", "replace")))
        return Word("".join(pieces), literal, plain=False, names=tuple(names))

    def _inside(self, node: "Node", depth: int) -> None:
        """Commands inside a word: each is a command of the line."""
        if node.type in ("command_substitution", "process_substitution"):
            self._shape("a substitution")
        for child in node.children:
            if child.is_named:
                self._inside(child, depth + 1) if child.type in _WORDS else self._nested(child, depth + 1)

    def _nested(self, node: "Node", depth: int) -> None:
        if node.type in ("subscript", "binary_expression", "unary_expression", "parenthesized_expression",
                         "ternary_expression", "postfix_expression", "array", "string_content"):  # fmt: skip
            self._inside(node, depth)
        else:
            self.statement(node, depth)

    def _names(self, node: "Node") -> list[str]:
        return [self._text(child) for child in node.children if child.type == "variable_name"][:4]


def _home(word: Word, variables: dict[str, str]) -> Word:
    if word.literal or not word.plain or not word.text.startswith("~"):
        return word
    name, slash, rest = word.text[1:].partition("/")
    if name in ("", "+"):
        home = variables.get("HOME" if not name else "PWD", UNKNOWN)
    else:
        home = "/root" if name == "root" else f"/home/{name}"
    return Word(home + slash + rest, literal=False, glob=word.glob, names=word.names)


def _variable(name: str, variables: dict[str, str]) -> Word:
    if name == "?":
        return Word("0", plain=False)
    return Word(variables.get(name, " " if name == "IFS" else UNKNOWN), literal=False, names=(name,))


def _flat(node: "Node") -> "list[Node]":
    """The parts of a list of commands, which the grammar nests to the left, in order."""
    parts: list[Node] = []
    while node.type == "list":
        first, *rest = node.children
        parts += reversed(rest)
        node = first
    return [node, *reversed(parts)]


def _join(variables: dict[str, str], word: Word) -> str:
    folder = variables.get("PWD", UNKNOWN)
    if not word.known or word.glob or word.text == "-":
        return UNKNOWN
    return posixpath.normpath(posixpath.join(folder, word.text))
