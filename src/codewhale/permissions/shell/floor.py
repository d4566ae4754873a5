"""Harm looked for in a whole line: every command that hides in it, and every line inside the line."""

import re
from collections.abc import Iterable, Iterator

from codewhale.permissions.shell.flow import DataFlow, exfiltration, remote_code
from codewhale.permissions.shell.harm import Harm, ShellCall, bomb, connection, harm_of, harm_of_code, harm_of_redirect
from codewhale.permissions.shell.parse import INCOMPLETE, ParsedCommand, ParsedLine, parse
from codewhale.permissions.shell.paths import ShellPaths
from codewhale.permissions.shell.table import TAKERS, roles
from codewhale.permissions.shell.words import UNKNOWN, Word, bare, braces, in_dollar_single
from codewhale.permissions.shell.wrappers import Inner, carried, code_of, lines_in_code, name_of

DEEPEST = 3
LONGEST = 16 * 1024
# Commands looked at in one line, those inside it counted; one of many words and a long line inside count for more.
_MOST = 6000
_ECHO_OPTIONS = re.compile(r"\A(?:-[neE]+ )+")
_DIRECTIVE = re.compile(r"%(?:%|[-+ #0-9.*]*[a-zA-Z])")
_OPERATORS = re.compile(r"[;&|\n()`]+|\$\(|(?<!\S)[{}](?!\S)")


class Floor:
    """One search. `calls` are all it came by, those of the outermost line first and wrapped ones behind wrappers."""

    def __init__(self, places: ShellPaths, known: dict[str, str]) -> None:
        self._places = places
        self._known = known
        self._left = _MOST
        self._seen: set[str] = set()
        self._safe: set[tuple[str, str]] = set()
        self.calls: list[ShellCall] = []

    def harm(self, text: str, line: ParsedLine, depth: int = 0) -> Harm | None:
        """The first thing in a line, or in a line inside it, that must not happen."""
        self._seen.add(text)
        if INCOMPLETE in line.shapes:
            line.commands.extend(_rough(text, self._known))
        calls: list[ShellCall] = []
        for command in _distinct(line.commands):
            self._unwrap(command, calls)
        self.calls += calls
        telling = [call for call in calls if _tells(call)]
        if not line.redirects and not line.shapes and not telling:
            return None
        flow = DataFlow(calls, telling, _feeding(calls), line.redirects)
        return next(self._harms(text, line, flow, depth), None)

    def _harms(self, text: str, line: ParsedLine, flow: DataFlow, depth: int) -> Iterator[Harm]:
        for call in flow.telling:
            yield from self._alone(call)
        if INCOMPLETE in line.shapes:
            yield from connection(text)
        for redirect in line.redirects:
            yield from harm_of_redirect(redirect, line.variables.get("PWD", ""), self._places)
        yield from bomb(line)
        yield from remote_code(flow)
        yield from exfiltration(flow)
        if depth <= DEEPEST:
            yield from self._deeper(flow, depth)

    def _alone(self, call: ShellCall) -> Iterator[Harm]:
        """What a call does by itself; one that was looked at before is as harmless as it was then."""
        key = call.text, call.command.where
        if key not in self._safe or call.command.assigns:
            self._safe.add(key)
            yield from harm_of(call, self._places)

    def _unwrap(self, command: ParsedCommand, calls: list[ShellCall]) -> None:
        """Add a command, and the ones behind the wrappers in it."""
        waiting = [_split(command.words)]
        while waiting and (words := waiting.pop(0)) and self._left > 0:
            self._left -= 1 + len(words) // 10
            name = name_of(words[0])
            call = ShellCall(name, words, command, roles(name))
            calls.append(call)
            if call.roles.carries:
                waiting[:0] = _wrapped(carried(words))

    def _deeper(self, flow: DataFlow, depth: int) -> Iterator[Harm]:
        """Lines inside the line: behind -c, in eval, piped or handed to a shell, in the strings of a program."""
        for call in flow.telling:
            if not call.roles.lines:
                continue
            yield from harm_of_code(call)
            for text in self._lines(call, flow.sources(call)):
                if text in self._seen or len(text) > LONGEST or self._left <= 0:
                    continue
                self._left -= len(text) // 50
                known = {**self._known, "PWD": call.command.where or self._known["PWD"]}
                harm = self.harm(text, parse(text, known), depth + 1)
                if harm is not None:
                    yield harm

    def _lines(self, call: ShellCall, sources: list[ShellCall]) -> Iterator[str]:
        if call.roles.carries:
            yield from (inner.line for inner in carried(call.words) if inner.line is not None)
        if "shells" in call.roles.sets or call.name in TAKERS:
            yield from _printed_by(sources)
            yield from _inputs(call, sources)
        elif call.name == "xargs":
            texts = [*_printed_by(sources), *_inputs(call, sources)]
            yield from (" ".join([*call.texts, text]) for text in texts)
        elif "interpreters" in call.roles.sets:
            yield from lines_in_code(code_of(call.words, call.command.input))


def _wrapped(inner: Iterable[Inner]) -> list[list[Word]]:
    return [one.words for one in inner if one.line is None and one.words]


def _inputs(call: ShellCall, sources: list[ShellCall]) -> list[str]:
    """The texts that reach a command from a here-document, a here-string or the line's own input."""
    return list(dict.fromkeys(one.command.input for one in (call, *sources) if one.command.input))


def _printed_by(sources: list[ShellCall]) -> Iterator[str]:
    """What echo and printf among them print."""
    for source in sources:
        if source.name == "echo":
            yield _ECHO_OPTIONS.sub("", " ".join(source.texts))
        elif source.name == "printf" and source.texts:
            yield _printed(source.texts[0], list(reversed(source.texts[1:])))


def _printed(format: str, values: list[str]) -> str:
    """What printf makes of a format and its values, the last of which comes first; those left over stand behind."""

    def value(directive: re.Match[str]) -> str:
        return "%" if directive[0] == "%%" else values.pop() if values else ""

    return " ".join([in_dollar_single(_DIRECTIVE.sub(value, format)), *reversed(values)])


def _tells(call: ShellCall) -> bool:
    """Whether a call can be part of any harm other than by what it prints."""
    return call.roles.tells or bool(call.command.assigns) or UNKNOWN in call.words[0].text


def _distinct(commands: list[ParsedCommand]) -> Iterator[ParsedCommand]:
    """Commands without those that do again, on their own, what one before them did."""
    seen = set()
    for command in commands:
        if command.piped or command.feeds or command.redirects or command.input or command.assigns:
            yield command
            continue
        key = id(command.words), command.where, command.within, command.background
        if key not in seen:
            seen.add(key)
            yield command


def _feeding(calls: list[ShellCall]) -> dict[int, list[ShellCall]]:
    fed = [call for call in calls if call.command.feeds]
    if not fed:
        return {}
    by_command: dict[int, list[ShellCall]] = {}
    for call in calls:
        by_command.setdefault(id(call.command), []).append(call)
    feeding: dict[int, list[ShellCall]] = {}
    for call in fed:
        if id(call.command) not in feeding:
            feeding[id(call.command)] = [one for feed in call.command.feeds for one in by_command.get(id(feed), ())]
    return feeding


def _split(words: list[Word]) -> list[Word]:
    """The words as they may come to be: brace lists and blanks in unquoted values taken apart."""
    if False not in [word.literal for word in words]:
        return words
    if not any(word.names or "{" in word.text for word in words if not word.literal):
        return words
    out: list[Word] = []
    for word in words[:500]:
        parts = list(braces(word.text)) if "{" in word.text and not word.literal else [word.text]
        if "IFS" in word.names or (word.names and word.plain and " " in word.text.strip()):
            parts = [piece for part in parts for piece in part.split()]
        out.extend(Word(part, False, word.plain, word.glob, word.names) for part in parts)
    return out


def _rough(text: str, known: dict[str, str]) -> list[ParsedCommand]:
    """Commands as they look in text that no grammar reads: cut at every operator and blank."""
    commands = []
    for piece in _OPERATORS.split(text)[:200]:
        words = [bare(part.strip("'\"")) for word in piece.split()[:100] for part in braces(word)]
        if words and words[0].text:
            commands.append(ParsedCommand(words, [], [], [], where=known["PWD"]))
    return commands
