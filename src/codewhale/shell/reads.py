"""What only reads: commands held against a table of programs and their harmless options."""

import re
from collections.abc import Sequence

from msgspec import Struct

from codewhale.shell.checks import CHECKS, SYNTAXES
from codewhale.shell.paths import Places
from codewhale.shell.table import Reads, reads
from codewhale.shell.words import Word

_FOLDERS = re.compile(r"/(?:usr/)?bin/")
# Options of programs that take any whose value is never a path.
_TEXT_VALUES = frozenset(("e", "regexp", "include", "exclude", "exclude-dir", "format", "date", "pretty"))
_PATH_VALUES = frozenset(("r", "reference", "f", "file", "O", "exclude-from", "ignore-rev"))


class Reading(Struct, frozen=True):
    """The look at one command: the rule and reason why it must be asked about ("" when it only reads), and whether it
    needs the sandbox to do no more than that."""

    rule: str = ""
    why: str = ""
    sandboxed: bool = False


class Given(Struct):
    """The words of a call, sorted: names and letters of options as they came, their values, operands."""

    options: list[str]
    values: list[tuple[str, str]]
    operands: list[str]


class Candidate(Struct, frozen=True):
    """One command to judge: its words, where it runs, and whether paths of the workspace that are not known yet will
    join its words."""

    words: Sequence[Word]
    where: str
    more: bool = False


def only_reads(call: Candidate, places: Places) -> Reading:
    """Judge one command by its words."""
    name, where = program(call.words[0]), call.where
    if not name:
        return Reading("shell.unknown", f"{call.words[0].text} is not surely one of the system's programs")
    for word in call.words:
        why = "" if word.literal else _doubt(word)
        if why:
            return Reading("shell.expansion", why)
    rest = [word.text for word in call.words[1:]]
    table = reads()
    if len(rest) == 1 and rest[0] in table.versions and not call.more:
        sandboxed = name in table.versions.get(f"{rest[0]} sandboxed", ())
        if sandboxed or name in table.versions[rest[0]]:
            return Reading(sandboxed=sandboxed or name in table.versions["sandboxed"])
    rules: Reads | None
    if name == "git":
        while rest and (rest[0] in table.before_git or (rest[0] == "-C" and len(rest) > 1)):
            if rest[0] == "-C":
                rule, why = places.reading(rest[1], where)
                if rule:
                    return Reading(rule, why, True)
                where, rest = places.absolute(rest[1], where), rest[1:]
            rest = rest[1:]
        name = f"git {rest[0]}" if rest else "git"
        rules, rest = reads().git.get(rest[0]) if rest else None, rest[1:]
    else:
        rules = reads().programs.get(name)
    if rules is None:
        return Reading("shell.unknown", f"{name} is not known to only read")
    if call.more and not rules.any:
        return Reading("shell.option", f"{name} may take the name of a file for an option")
    rule, why = _look(name, rules, rest, where, places)
    return Reading(rule, why, rules.sandbox)


def program(word: Word) -> str:
    """The name of the program that a first word runs, "" where it is not surely the system's."""
    if not word.literal or not word.plain:
        return ""
    name = _FOLDERS.sub("", word.text, count=1) if word.text.startswith("/") else word.text
    return "" if "/" in name or "=" in name else name


def _doubt(word: Word) -> str:
    """Why it is not known well enough what a word will be. A pattern is, where every name it can stand for begins with
    what cannot be an option, and is not hidden."""
    if not word.glob or not word.known or word.names or "{" in word.text:
        return f"the value of ${word.names[0]} is not known before it runs" if word.names else "a word is not literal"
    head = re.split(r"[*?\[]", word.text, maxsplit=1)[0]
    if not head or (head.startswith("-") and "=" not in head):
        return f"{word.text} may become an option: a file can be named like one; write ./{word.text.lstrip('-')}"
    hidden = any(part.startswith(".") and re.search(r"[*?]", part) for part in word.text.split("/"))
    return f"{word.text} may stand for hidden files" if hidden or "[" in word.text else ""


def _look(name: str, rules: Reads, words: list[str], where: str, places: Places) -> tuple[str, str]:
    if rules.check in SYNTAXES:
        return SYNTAXES[rules.check](words, where, places)
    given = Given([], [], [])
    bad = _loosely(words, given) if rules.any else _strictly(rules, words, given)
    if bad:
        return "shell.option", f"{name} {bad} is not known to only read"
    count = len(given.operands)
    if not rules.least <= count <= rules.most:
        return "shell.option", f"{name} with {count} operands may do more than read"
    if rules.words and (given.operands[0] if given.operands else "") not in rules.words:
        return "shell.option", f"{name} {given.operands[0] if given.operands else ''} is not known to only read"
    why = CHECKS[rules.check](given.options, given.values, given.operands) if rules.check else ""
    return ("shell.option", why) if why else _paths(rules, given, where, places)


def _paths(rules: Reads, given: Given, where: str, places: Places) -> tuple[str, str]:
    paths = [] if rules.text else list(given.operands)
    if rules.pattern is not None and not rules.pattern.intersection(given.options):
        paths = paths[1:]
    for option, value in given.values:
        looks = "/" in value or value.startswith((".", "~"))
        if looks and (option in _PATH_VALUES or (rules.any and not rules.text and option not in _TEXT_VALUES)):
            paths.append(value)
    for path in paths:
        if rules.sandbox and ":" in path:  # git's REVISION:PATH
            path = path.partition(":")[2] or "."
        rule, why = places.reading(path, where)
        if rule:
            return rule, why
    return "", ""


def _loosely(words: list[str], given: Given) -> str:
    ended = False
    for word in words:
        if ended or not word.startswith("-"):
            given.operands.append(word)
        elif word == "--":
            ended = True
        elif word.startswith("--"):
            option, _, value = word[2:].partition("=")
            given.options.append(option)
            given.values.append((option, value))
        elif word != "-":
            given.options.extend(word[1:])
            given.values.append((word[1], word[2:]))
    return ""


def _strictly(rules: Reads, words: list[str], given: Given) -> str:
    """Sort the words; returns the first that is not allowed, "" for none."""
    waiting, ended = "", False
    for word in words:
        if waiting:
            given.values.append((waiting, word))
            waiting = ""
        elif ended or not word.startswith("-"):
            given.operands.append(word)
        elif word == "--":
            ended = True
        elif word != "-":
            allowed, waiting = (_long if word.startswith("--") else _short)(rules, word.lstrip("-"), given)
            if not allowed or word.startswith("---"):
                return word
    return f"without the value of {waiting}" if waiting else ""


def _long(rules: Reads, word: str, given: Given) -> tuple[bool, str]:
    """Whether a long option is allowed, and its name if its value is still to come."""
    option, equals, value = word.partition("=")
    given.options.append(option)
    if equals:
        given.values.append((option, value))
        return option + "=" in rules.long or option + "?" in rules.long, ""
    if option + "=" in rules.long:
        return True, option
    return option in rules.long or option + "?" in rules.long, ""


def _short(rules: Reads, letters: str, given: Given) -> tuple[bool, str]:
    """Whether all letters are allowed, and the one whose value is still to come."""
    if letters.isdigit():
        return rules.counts or rules.log, ""
    for at, letter in enumerate(letters):
        given.options.append(letter)
        if letter in rules.values:
            if at + 1 < len(letters):
                given.values.append((letter, letters[at + 1 :]))
                return True, ""
            return True, letter
        if letter not in rules.flags:
            return False, ""
    return True, ""
