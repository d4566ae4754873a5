"""What a command line must never do by itself, in any mode: the shell's part of the hard floor.

Read generously: a command counts wherever it hides, with what can be known of its words put in. Most of it is rows of
harm.toml; here is what needs paths.
"""

import functools
import posixpath
import re
from collections.abc import Iterator

from msgspec import Struct

from codewhale.permissions.shell.parse import ParsedCommand, ParsedLine, Redirect
from codewhale.permissions.shell.paths import ShellPaths, secret
from codewhale.permissions.shell.table import Roles, harm
from codewhale.permissions.shell.words import UNKNOWN, Word
from codewhale.permissions.shell.wrappers import code_of, name_of

# The longest program in a line that is judged by words that meet in it.
_SHORT = 1500
# Words of a sub-command or of speech that are also names of secret files.
_SPOKEN = frozenset(
    "secret secrets token tokens credential credentials password passwords environ shadow keychain keychains".split()
)
_KEY = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.I)
_LETTER = re.compile(r"-[A-Za-z]")
_CONNECTS = re.compile(r"/dev/(?:tcp|udp)/")
_DELETERS = frozenset("rm shred unlink chmod chown mv truncate srm dd".split())
_LOSING = _DELETERS.union(("find", "rsync"))


class Harm(Struct, frozen=True):
    """One thing that must not happen: its rule (floor.KIND) and the reason."""

    rule: str
    reason: str


class SimpleCommand(Struct, frozen=True, gc=False):
    """One command of a line. `known`: every word is literal, so `argv` is what the shell will run. `where` is the
    folder that it runs in, "" where that is not known."""

    argv: tuple[str, ...]
    known: bool
    where: str = ""


class ShellCall(Struct, gc=False):
    """One command as harm is looked for in it: the program's name, all its words, the command it came from."""

    name: str
    words: list[Word]
    command: ParsedCommand
    roles: Roles
    _texts: list[str] | None = None
    _text: str = ""
    _simple: SimpleCommand | None = None

    @property
    def simple(self) -> SimpleCommand:
        if self._simple is None:
            known = False not in [word.literal for word in self.words]
            where = "" if self.command.within else self.command.where
            self._simple = SimpleCommand(tuple([word.text for word in self.words]), known, where)
        return self._simple

    @property
    def texts(self) -> list[str]:
        if self._texts is None:
            self._texts = [word.text for word in self.words[1:]]
        return self._texts

    @property
    def text(self) -> str:
        """The call as one text; of a variable with no known value, the name stands there."""
        if not self._text:
            self._text = " ".join([self.name, *self.texts])
            if UNKNOWN in self._text:
                self._text = " ".join([self.name, *(_spelled(word) for word in self.words[1:])])
        return self._text

    def letters(self) -> str:
        return "".join(text[1:] for text in self.texts if _LETTER.match(text))

    def operands(self) -> list[str]:
        return [text for text in self.texts if not text.startswith("-") or text == "-"]

    def has(self, *options: str) -> bool:
        """Whether one of these options is given, with or without a value glued to it."""
        return any(text.partition("=")[0] in options for text in self.texts)

    def values(self, *options: str) -> list[str]:
        """The values of these options, glued to them or behind them; some programs want one dash before a long one."""
        values = []
        texts = self.texts
        for at, text in enumerate(texts):
            for option in options:
                mark, glue = ("-" + option, "") if len(option) == 1 else ("--" + option, "=")
                if text in (mark, "-" + option):
                    values.extend(texts[at + 1 : at + 2])
                elif text.startswith(mark + glue):
                    values.append(text[len(mark + glue) :])
        return values


def _spelled(word: Word) -> str:
    return word.text.replace(UNKNOWN, f"${word.names[0]}" if word.names else "$()")


def harm_of(call: ShellCall, places: ShellPaths) -> Iterator[Harm]:
    text = call.text if call.roles.rows else ""
    for row in call.roles.rows:
        if row.when.search(text) if row.when is not None else call.texts not in (["--help"], ["--version"]):
            yield Harm(f"floor.{row.kind}", f"{call.name}: {row.why}")
    for name, _ in call.command.assigns:
        if name.startswith("CODEWHALE_"):
            yield Harm("floor.self-tamper", f"{name} is changed")
    for lost in _losses(call, places):
        yield Harm("floor.destroy", lost)
    for path in written(call):
        if places.guarded(path, call.command.where):
            yield Harm("floor.self-tamper", f"{call.name} writes {path}, which controls what starts or who can log in")
        if places.system(path, call.command.where):
            yield Harm("floor.destroy", f"{call.name} writes {path}, which belongs to the system")


def _losses(call: ShellCall, places: ShellPaths) -> Iterator[str]:
    """What wholes a command deletes or changes: the system, the home, with rm the workspace too."""
    name, folder = call.name, call.command.where
    if name not in _LOSING and "recursive" not in call.roles.sets:
        return
    if name in _DELETERS and call.command.words and name_of(call.command.words[0]) in ("xargs", "parallel"):
        inputs = [call.command.input.split(), *([word.text for word in fed.words[1:]] for fed in call.command.feeds)]
        for texts in inputs:
            for word in _roots_of_find(texts):
                lost = places.root(word, folder)
                if lost and lost != "the whole workspace":
                    yield f"{name} of all in {word} affects {lost}"
    if "recursive" in call.roles.sets:
        everything = name in ("mv", "shred", "srm", "chattr") or bool(set("rR") & set(call.letters()))
        everything = everything or call.has("--recursive", "--no-preserve-root", "--dir")
        for word in call.operands() if everything else ():
            lost = places.root(word, folder)
            if lost and (lost != "the whole workspace" or name in ("rm", "shred", "srm")):
                yield f"{name} {word.replace(UNKNOWN, '$')} affects {lost}"
    if name == "find":
        texts = call.texts
        if "-delete" in texts or _DELETERS.intersection(map(posixpath.basename, texts)):
            for word in _roots_of_find(texts):
                lost = places.root(word, folder)
                if lost and lost != "the whole workspace":
                    yield f"find {word} with deletion affects {lost}"
    if name == "rsync" and any(text.startswith("--del") for text in call.texts):
        lost = places.root((call.operands() or [""])[-1].rstrip("/") + "/", folder)
        if lost:
            yield f"rsync with deletion affects {lost}"


def _roots_of_find(texts: list[str]) -> Iterator[str]:
    for text in texts:
        if text.startswith(("-", "(", "!")) and text not in ("-L", "-H", "-P"):
            return
        if not text.startswith("-"):
            yield text


def written(call: ShellCall) -> list[str]:
    """The paths that a command writes, as far as its words tell."""
    name, sets = call.name, call.roles.sets
    in_place = name in ("sed", "gsed", "perl", "ruby", "yq", "sd") and ("i" in call.letters() or call.has("--in-place"))
    if "writes_all" in sets or in_place:
        return call.operands()
    if "writes_last" in sets:
        into, operands = call.values("t", "target-directory"), call.operands()
        return [*into, *operands[-1:], *(operands[:-1] if name == "mv" else ())]
    if name == "dd":
        return [text[3:] for text in call.operands() if text.startswith("of=")]
    if "writes_out" in sets:
        return call.values(
            "o", "output", "O", "output-document", "out", "C", "directory", "P", "f" if name == "ssh-keygen" else "o"
        )
    if name in ("xxd", "uniq"):
        return call.operands()[1:2]
    return call.values("f", "file") if name == "git" and call.operands()[:1] == ["config"] else []


def harm_of_redirect(redirect: Redirect, where: str, places: ShellPaths) -> Iterator[Harm]:
    """What a redirection writes that must not be written, or the connection it opens."""
    target = redirect.target.text
    if _CONNECTS.match(target):
        shell = any(name_of(fed.words[0]) in harm().names["shells"] for fed in redirect.feeds if fed.words)
        yield Harm("floor.remote-code" if shell else "floor.exfil", "it opens a connection to another machine")
    if not target or redirect.op in ("<", "<<<", "<&") or (redirect.op == ">&" and target.isdigit()):
        return
    if places.guarded(target, where):
        yield Harm("floor.self-tamper", f"{target} controls what starts or who can log in")
    if places.system(target, where):
        yield Harm("floor.self-tamper" if "sudoers" in target else "floor.destroy", f"{target} belongs to the system")


def connection(text: str) -> Iterator[Harm]:
    """A connection that the shell itself would open, in text that no grammar reads."""
    if _CONNECTS.search(text):
        yield Harm("floor.exfil", "it opens a connection to another machine")


def harm_of_code(call: ShellCall) -> Iterator[Harm]:
    """What a program handed to an interpreter in the line does that must not be done, by its text. A long one does many
    things, and words far apart in it say little: only its strings are looked at, as lines."""
    code = code_of(call.words, call.command.input) if "interpreters" in call.roles.sets else ""
    for row in harm().code if 0 < len(code) <= _SHORT else ():
        if row.when is not None and row.when.search(code):
            yield Harm(f"floor.{row.kind}", row.why)


def bomb(line: ParsedLine) -> Iterator[Harm]:
    """A function that calls itself in a pipeline or in the background."""
    for command in line.commands:
        called = command.words[0].text if command.words else ""
        if command.within and called == command.within and (command.piped or command.background):
            yield Harm("floor.destroy", "a function calls itself without end (a fork bomb)")


def secret_word(word: Word) -> bool:
    if any(_KEY.search(name) for name in word.names):
        return True
    return _secret_text(word.text.replace(UNKNOWN, ""))


@functools.lru_cache(maxsize=4096)
def _secret_text(text: str) -> bool:
    if len(text) < 4 or text.lstrip("-").isalnum():
        return text == "kubeconfig"
    parts = {text, text.lstrip("@<"), text.rpartition("@")[2], text.rpartition("=")[2]}
    return any(secret(part) for part in parts - _SPOKEN if "://" not in part and len(part) > 3)
