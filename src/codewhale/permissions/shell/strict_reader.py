"""A strict reader of shell lines: the subset that all shells read alike, as a tree. What it does not know it gives up.

A line is believed harmless only where this reader and the grammar agree on each word. Neither would do alone: on some
thirty of a hundred thousand spoiled lines this one takes for a test or an echo what a shell reads otherwise.
Each part of a tree, as each word, is made once of what was made before, so that none can be in a circle (gc=False).
"""

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

Kind = Literal["text", "glob", "variable", "output", "number", "file"]

_BLANKS = r"(?:[ \t]++(?:\\\n[ \t]*+)*+)*+(?:(?<![^\s;|&()])\#[^\n]*+)?+"
_BLANK = re.compile(_BLANKS)
_LINES = rf"(?:{_BLANKS}\n)*+{_BLANKS}"
_BLANK_LINES = re.compile(_LINES)
_MORE = re.compile(rf"{_BLANKS}(?![;|)\n]|&(?!>)|\Z)")
_BAR = re.compile(rf"{_BLANKS}\|(?![|&]){_LINES}")
_OPERATOR = re.compile(rf"{_BLANKS}(&&|\|\||;(?!;)|\n|(?=\))|\Z){_LINES}")
# Words of one run each, with nothing in them that may be an assignment.
_PLAIN = re.compile(r"(?:[ \t]*+[A-Za-z0-9_@%+:,./^!\]-]++(?=[ \t\n;|&)]|\Z))+")
_RUN = re.compile(r"[A-Za-z0-9_@%+=:,./^!\]-]+|[^\x00-\x7f]+")
_DOUBLE = re.compile(r"[^\"\\$`]+")
_NAME = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})", re.A)
_MATH = re.compile(r"\$\(\(((?:[-0-9+*/% ]|[a-z_]\w*|\([-0-9a-z+*/% ]*\))*)\)\)", re.A)
_ASSIGN = re.compile(r"([A-Za-z_]\w*)=", re.A)
_REDIRECT = re.compile(
    r"(?P<fd>[12]?)(?P<op>>>|>&|>) *(?P<target>/dev/null|[12])(?=[\s;|&)]|\Z)|(?P<both>&> *)/dev/null(?=[\s;|&)]|\Z)"
    r"|(?P<reads><<<|<)(?![<>&(]) *"
)
_END = r"(?=[\s;|&()<>]|\Z)"
_RESERVED = re.compile(
    rf"(?:if|then|elif|else|fi|for|while|until|do|done|case|esac|function|select|coproc|\[\[|\]\]|\{{|\}}){_END}|\)"
)
_NOT = re.compile(rf"(?:!(?=[ \t]){_BLANKS})*")
_PROGRAM = re.compile(r"=[^\s=]")
DEEPEST = 16


class Part(Struct, frozen=True, gc=False):
    """A part of a word: text, a pattern, the value of a variable, the output of commands, a number that is worked out,
    or the name of a file that holds the output of commands. `quoted`: it stays one word, whatever is in it."""

    kind: Kind
    text: str = ""
    quoted: bool = False
    steps: "tuple[Pipeline, ...]" = ()


class Term(Struct, frozen=True, gc=False):
    """One word as it is written; `bare` when no quote, no escape and nothing to be worked out stands in it. `text` is
    what it surely is, patterns as they are written; None when that is worked out."""

    parts: tuple[Part, ...]
    bare: bool
    text: str | None


class Simple(Struct, frozen=True, gc=False):
    """A simple command. `reads` are the files it is fed, `texts` its here-strings; what it writes is thrown away."""

    assigns: tuple[tuple[str, Term], ...]
    words: tuple[Term, ...]
    reads: tuple[Term, ...] = ()
    texts: tuple[Term, ...] = ()


class Compound(Struct, frozen=True):
    """A compound command: its kind (group, subshell, if, while, for), a loop's variable and words, what it holds."""

    kind: str
    bodies: "tuple[tuple[Pipeline, ...], ...]"
    name: str = ""
    terms: tuple[Term, ...] = ()
    reads: tuple[Term, ...] = ()
    texts: tuple[Term, ...] = ()


class Pipeline(Struct, frozen=True, gc=False):
    stages: "tuple[Simple | Compound, ...]"
    by: str


def read(text: str) -> tuple[Pipeline, ...] | None:
    """The pipelines of a line, None for one with anything beyond the subset."""
    reader = _Reader(text)
    try:
        steps = reader.script(())
        return steps if reader.at == len(text) else None
    except _UnreadError:
        return None


def words_of(steps: tuple[Pipeline, ...]) -> Iterator[list[str | None]]:
    """The words of every simple command, in the order in which the grammar comes by."""
    for step in steps:
        for stage in step.stages:
            if isinstance(stage, Simple):
                texts = [term.text for term in stage.words]
                if None in texts or stage.assigns or stage.reads or stage.texts:
                    yield from _inner(*(value for _, value in stage.assigns), *stage.words, *stage.reads, *stage.texts)
                if texts:
                    yield texts
                continue
            yield from _inner(*stage.terms)
            for body in stage.bodies:
                yield from words_of(body)
            yield from _inner(*stage.reads, *stage.texts)


def _inner(*terms: Term) -> Iterator[list[str | None]]:
    for term in terms:
        for part in term.parts:
            yield from words_of(part.steps)


def _literal(text: str, bare: bool = True) -> Term:
    return Term((Part("text", text),), bare, text)


class _UnreadError(Exception):
    """The line is beyond the subset."""


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._depth = 0

    def script(self, ends: tuple[str, ...]) -> tuple[Pipeline, ...]:
        """Pipelines up to one of the words in `ends` (which is not taken), or to the end of the line."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise _UnreadError
        steps: list[Pipeline] = []
        self._space(_BLANK_LINES)
        while self.at < len(self.text) and not (ends and self._reserved() in ends):
            stages = self._pipe()
            operator = _OPERATOR.match(self.text, self.at)
            if operator is None:
                raise _UnreadError
            self.at = operator.end()
            steps.append(Pipeline(stages, operator[1]))
        if (not steps and ends) or (steps and steps[-1].by in ("&&", "||")):
            raise _UnreadError
        self._depth -= 1
        return tuple(steps)

    def _space(self, blank: re.Pattern[str] = _BLANK) -> None:
        match = blank.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def _reserved(self) -> str:
        match = _RESERVED.match(self.text, self.at)
        return match[0] if match else ""

    def _take(self, word: str) -> None:
        self._space(_BLANK_LINES)
        if self._reserved() != word:
            raise _UnreadError
        self.at += len(word)

    def _body(self, *ends: str) -> tuple[Pipeline, ...]:
        """The pipelines up to a word that is taken too."""
        body = self.script(ends)
        if self._reserved() not in ends:
            raise _UnreadError
        return body

    def _pipe(self) -> tuple[Simple | Compound, ...]:
        self._space(_NOT)
        stages = [self._command()]
        while bar := _BAR.match(self.text, self.at):
            self.at = bar.end()
            stages.append(self._command())
        return tuple(stages)

    def _command(self) -> Simple | Compound:
        if self.text.startswith("(", self.at) and not self.text.startswith("((", self.at):
            self.at += 1
            body = self._body(")")
            self.at += 1
            return self._behind(Compound("subshell", (body,)))
        word = self._reserved()
        if not word:
            return self._simple()
        self.at += len(word)
        if word == "[[":
            return self._condition()
        if word == "{" and self.text[self.at : self.at + 1] in (" ", "\t", "\n"):
            body = self._body("}")
            self._take("}")
            return self._behind(Compound("group", (body,)))
        if word in ("while", "until"):
            head = self._body("do")
            return self._behind(Compound("while", (head, self._loop())))
        if word == "if":
            return self._behind(Compound("if", tuple(self._branches())))
        if word == "for":
            return self._behind(self._for())
        raise _UnreadError

    def _branches(self) -> Iterator[tuple[Pipeline, ...]]:
        yield self._body("then")
        self._take("then")
        yield self._body("elif", "else", "fi")
        while self._reserved() == "elif":
            self._take("elif")
            yield self._body("then")
            self._take("then")
            yield self._body("elif", "else", "fi")
        if self._reserved() == "else":
            self._take("else")
            yield self._body("fi")
        self._take("fi")

    def _loop(self) -> tuple[Pipeline, ...]:
        self._take("do")
        body = self._body("done")
        self._take("done")
        return body

    def _for(self) -> Compound:
        self._space()
        match = re.compile(r"([a-zA-Z_]\w*)[ \t]+in[ \t]+", re.A).match(self.text, self.at)
        if match is None:
            raise _UnreadError
        self.at = match.end()
        terms = []
        while not self.text.startswith((";", "\n"), self.at):
            terms.append(self._term())
            self._space()
        self.at += 1
        return Compound("for", (self._loop(),), match[1], tuple(terms))

    def _condition(self) -> Simple:
        """What stands between [[ and ]]: words alone."""
        words = [_literal("[[")]
        self._space()
        while self._reserved() != "]]":
            words.append(self._term())
            self._space()
        self.at += 2
        return Simple((), (*words, _literal("]]")))

    def _simple(self) -> Simple:
        assigns: list[tuple[str, Term]] = []
        words: list[Term] = []
        reads: list[Term] = []
        texts: list[Term] = []
        while True:
            if plain := _PLAIN.match(self.text, self.at):
                words += map(_literal, plain[0].split())
                self.at = plain.end()
            if not self._more():
                break
            if self._redirect(reads, texts):
                continue
            named = _ASSIGN.match(self.text, self.at) if not words else None
            if named is None:
                words.append(self._term())
                continue
            self.at = named.end()
            ended = self.at == len(self.text) or self.text[self.at] in " \t\n;|&)"
            assigns.append((named[1], Term((), True, "") if ended else self._term(named=True)))
        if not words and not assigns:
            raise _UnreadError
        return Simple(tuple(assigns), tuple(words), tuple(reads), tuple(texts))

    def _behind(self, block: Compound) -> Compound:
        reads: list[Term] = []
        texts: list[Term] = []
        while self._more():
            if not self._redirect(reads, texts):
                raise _UnreadError
        return Compound(block.kind, block.bodies, block.name, block.terms, tuple(reads), tuple(texts))

    def _more(self) -> bool:
        """Whether a word or a redirection follows; blanks before it are taken."""
        more = _MORE.match(self.text, self.at)
        self.at = more.end() if more else self.at
        return more is not None

    def _redirect(self, reads: list[Term], texts: list[Term]) -> bool:
        match = _REDIRECT.match(self.text, self.at)
        if match is None:
            return False
        if match["op"] is not None and (match["op"] == ">&") != (match["target"] in ("1", "2")):
            raise _UnreadError
        self.at = match.end()
        if match["reads"]:
            (reads if match["reads"] == "<" else texts).append(self._term())
        return True

    def _term(self, named: bool = False) -> Term:
        text, parts, bare, begun = self.text, [], True, self.at
        while self.at < len(text) and (char := text[self.at]) not in " \t\n;|&)":
            run = _RUN.match(text, self.at)
            if run is not None:
                # A shell may take what stands behind = for a program, and ~ behind = or : for a folder.
                if char == "=" and self.at == begun and not named and _PROGRAM.match(text, self.at):
                    raise _UnreadError
                self.at = run.end()
                parts.append(Part("text", run[0]))
            elif char in "*?[":
                self.at += 1
                parts.append(Part("glob", char))
            elif (char == "#" and self.at > begun) or (
                char == "~" and (self.at > begun or named) and text[self.at - 1] not in "=:"
            ):
                self.at += 1
                parts.append(Part("text", char))
            elif (
                text.startswith("{}", self.at)
                and begun == self.at
                and text[self.at + 2 : self.at + 3] in ("", *" \t\n;|)")
            ):
                self.at += 2
                parts.append(Part("text", "{}"))
            else:
                bare = False
                parts += self._quoted_or_worked_out(char, begun)
        if self.at == begun:
            raise _UnreadError
        if len(parts) == 1 and parts[0].kind in ("text", "glob"):
            only = parts[0].text
            return _literal(only, bare) if only in ("[", "]") else Term((parts[0],), bare, only)
        fixed = all(part.kind in ("text", "glob") for part in parts)
        return Term(tuple(parts), bare, "".join(part.text for part in parts) if fixed else None)

    def _quoted_or_worked_out(self, char: str, begun: int) -> list[Part]:
        text = self.text
        if char == "'":
            end = text.find("'", self.at + 1)
            if end < 0:
                raise _UnreadError
            inner, self.at = text[self.at + 1 : end], end + 1
            return [Part("text", inner, quoted=True)]
        if char == '"':
            self.at += 1
            return list(self._double())
        if char == "\\" and text[self.at + 1 : self.at + 2] not in ("", "\n"):
            self.at += 2
            return [Part("text", text[self.at - 1], quoted=True)]
        if char == "~" and self.at == begun and text[self.at + 1 : self.at + 2] in ("", "/", " ", ";", "\n", ")"):
            self.at += 1
            return [Part("variable", "HOME", quoted=True)]
        if char == "<" and text.startswith("<(", self.at) and self.at == begun:
            return [self._steps("file", 2, True)]
        if char == "$":
            return [self._dollar(quoted=False)]
        raise _UnreadError

    def _double(self) -> Iterator[Part]:
        text = self.text
        yield Part("text", "", quoted=True)
        while True:
            run = _DOUBLE.match(text, self.at)
            if run is not None:
                self.at = run.end()
                yield Part("text", run[0], quoted=True)
            elif text.startswith('"', self.at):
                self.at += 1
                return
            elif text.startswith("$", self.at) and text[self.at + 1 : self.at + 2] in ('"', " ", "|", ")"):
                self.at += 1
                yield Part("text", "$", quoted=True)
            elif text.startswith("$", self.at):
                yield self._dollar(quoted=True)
            elif text.startswith("\\", self.at) and text[self.at + 1 : self.at + 2] not in ("", "\n"):
                char = text[self.at + 1]
                self.at += 2
                yield Part("text", char if char in '$`"\\' else "\\" + char, quoted=True)
            else:
                raise _UnreadError

    def _dollar(self, quoted: bool) -> Part:
        text = self.text
        if text.startswith("$?", self.at):
            self.at += 2
            return Part("number", "0", quoted)
        worked = _MATH.match(text, self.at)
        if worked is not None:
            self.at = worked.end()
            return Part("number", worked[1], quoted)
        if text.startswith("$(", self.at) and not text.startswith("$((", self.at):
            return self._steps("output", 2, quoted)
        named = _NAME.match(text, self.at)
        if named is None or (not named[2] and text.startswith("[", named.end())):
            raise _UnreadError
        self.at = named.end()
        return Part("variable", named[1] or named[2], quoted)

    def _steps(self, kind: Kind, skip: int, quoted: bool) -> Part:
        self.at += skip
        steps = self._body(")")
        self.at += 1
        return Part(kind, "", quoted, steps)
