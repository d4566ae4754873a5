"""Commands that carry others: wrappers (env, timeout, xargs ...), shells with -c, programs with code in their words."""

import posixpath
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from codewhale.permissions.shell.table import harm, reads
from codewhale.permissions.shell.words import Word

_POSIX = frozenset("sh bash zsh dash".split())
# What runs the words behind it and changes nothing but how; the value is its options that take a value.
_QUIET = {"env": "", "timeout": "ks", "nice": "n", "stdbuf": "ioe", "command": ""}
_CARRY = _POSIX.union(_QUIET, ("xargs",))
_QUIET_OPTIONS = {
    "nice": r"-\d+|--adjustment=-?\d+",
    "timeout": r"--foreground|--preserve-status|-v|--verbose|--signal=\w+|--kill-after=[\d.]+[smhd]?",
    "command": r"-p",
    "stdbuf": r"--(?:input|output|error)=\w+",
}
_XARGS = re.compile(r"-[0rt]+|-[nPLs]\d*|--null|--no-run-if-empty|--max-(?:args|procs|lines)=\d+")
_SPLITS = re.compile(r"-\w*?S(.*)|--split-string(?:=(.*))?$", re.S)
_EXEC = re.compile(r"-(?:exec|ok)(?:dir)?|-[xX]|--exec(?:-batch)?")
_STRING = re.compile(r"'((?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)*)\"|`([^`\n]*)`|[%q][qx]?[({/]([^)}/]*)[)}/]")
# A string of one word that may be a command.
_PROGRAM = re.compile(r"(?:/(?:usr/)?s?bin/)?[a-z][\w.-]{2,}")
_LIST = re.compile(r"\[((?:\s*(?:'[^']*'|\"[^\"]*\")\s*,?)+)\]")
_ITEM = re.compile(r"'([^']*)'|\"([^\"]*)\"")


class Inner(Struct):
    """What a command carries: the words of another command (`more` when unknown words join them), or a line."""

    words: list[Word]
    line: str | None = None
    more: bool = False


def name_of(word: Word) -> str:
    """The program that a word names, whatever folder and quotes it is written with."""
    return posixpath.basename(word.text) if "/" in word.text and word.text[0] != "-" else word.text


def quiet(words: Sequence[Word]) -> Inner | None:
    """The command that a harmless wrapper runs, None where the words are anything else."""
    name = words[0].text
    if name.startswith("/"):
        name = re.sub(r"^/(?:usr/)?bin/", "", name)
    if name not in _CARRY or not words[0].plain or not words[0].literal:
        return None
    if name in _POSIX:
        return _shell_line([word for word in words[1:] if word.literal], len(words) - 1)
    rest = list(words[1:])
    if name == "xargs":
        return Inner(rest or [Word("echo")], more=True) if _skip(rest, "nPLs", _XARGS) else None
    if name not in _QUIET or not _skip(rest, _QUIET[name], re.compile(_QUIET_OPTIONS.get(name, r"(?!)"))):
        return None
    if name == "timeout" and (not rest or not re.fullmatch(r"[\d.]+[smhd]?", rest.pop(0).text)):
        return None
    return Inner(rest) if rest and "=" not in rest[0].text else None


def _skip(rest: list[Word], values: str, allowed: re.Pattern[str]) -> bool:
    """Take a wrapper's options off; False when one is not known."""
    while rest and rest[0].text.startswith("-"):
        option = rest.pop(0)
        lettered = len(option.text) > 1 and option.text[1] in values
        if not option.literal or not (lettered or allowed.fullmatch(option.text)):
            return False
        if lettered and len(option.text) == 2 and rest:
            rest.pop(0)
    return True


def _shell_line(words: list[Word], count: int) -> Inner | None:
    if count == len(words) == 2 and words[0].text in ("-c", "-lc", "-ec"):
        return Inner([], line=words[1].text)
    if count == len(words) == 3 and (words[0].text, words[1].text) == ("-l", "-c"):
        return Inner([], line=words[2].text)
    return None


def carried(words: Sequence[Word]) -> Iterator[Inner]:
    """Everything that a command may run beside itself, read generously: for finding harm, not for allowing."""
    name = name_of(words[0])
    if name not in harm().carrying:
        return
    names = harm().names
    if name in names["shells"] or name in names["liners"]:
        for at, word in enumerate(words[1:-1], 1):
            if re.fullmatch(r"-\w*[ceC]\w*|--command|-Command|--eval", word.text):
                yield Inner([], line=words[at + 1].text)
    if name in ("eval", "trap", "watch", "parallel", "xargs"):
        yield Inner([], line=" ".join(word.text for word in words[1:]))
    if name == "xargs" and (inner := quiet(words)) is not None:
        yield Inner(inner.words)
    if name == "ssh":
        yield from (Inner([], line=word.text) for word in words[1:] if " " in word.text)
    if name in ("env", "xargs") or name in names["shells"]:
        yield from _split_strings(words)
    if name in ("alias", "function"):
        yield from (Inner([], line=word.text.partition("=")[2]) for word in words[1:] if "=" in word.text)
    if name in names["carriers"]:
        yield from (Inner(list(words[at:])) for at in _starts(name, words))


def _starts(name: str, words: Sequence[Word]) -> Iterator[int]:
    """Where the command behind a wrapper begins: at its first operand that is no option's value. What stands behind
    an option may be one, or may be the command already."""
    if name in ("find", "fd", "fdfind"):
        yield from (at for at, word in enumerate(words[1:], 2) if _EXEC.fullmatch(word.text) and at < len(words))
        return
    if name == "command" and len(words) > 1 and words[1].text in ("-v", "-V"):
        return
    leading = harm().leading.get(name, 0)
    behind = False
    for at, word in enumerate(words[1:60], 1):
        text = word.text
        if text.startswith("-") and len(text) > 1:
            behind = text != "--"
            continue
        if not text or "=" in text.partition("/")[0]:
            continue
        if leading and not behind:
            leading -= 1
            continue
        yield at
        if not behind or is_known(name_of(word)):
            return
        behind = False


def is_known(name: str) -> bool:
    table = harm()
    return name in reads().programs or name in table.rows or any(name in names for names in table.asks.values())


def _split_strings(words: Sequence[Word]) -> Iterator[Inner]:
    for at, word in enumerate(words[1:], 1):
        match = _SPLITS.match(word.text) if word.text.startswith("-") else None
        if match:
            rest = [other.text for other in words[at + 1 :]]
            yield Inner([], line=" ".join([match[1] or match[2] or "", *rest]))


def code_of(words: Sequence[Word], input: str) -> str:
    """The program text that an interpreter is given, in its words or as its input; "" where it is given none."""
    if name_of(words[0]) not in harm().names["interpreters"]:
        return ""
    return "\n".join([word.text for word in words[1:] if len(word.text) > 2] + [input])


def lines_in_code(code: str, most: int = 12) -> Iterator[str]:
    """The string literals of a program: each may be a command line; and its list of strings, which may be one."""
    for number, match in enumerate(_STRING.finditer(code)):
        text = next(part for part in match.groups() if part is not None)
        if number < most and (" " in text or _PROGRAM.fullmatch(text)):
            yield re.sub(r"\\(.)", r"\1", text)
    for match in list(_LIST.finditer(code))[:most]:
        yield " ".join(one or other for one, other in _ITEM.findall(match[1]))
    if "!" in code:
        yield from (part.lstrip(":! ") for part in code.split("\n") if part.startswith((":!", "!")))
