"""Whether a line, and every line inside it, only reads: its commands gone through as the shell would, with what its
variables hold and where it is at each of them."""

import re
from itertools import chain

from msgspec import Struct

from codewhale.permissions.shell.floor import DEEPEST
from codewhale.permissions.shell.paths import ShellPaths, ask, expand, is_folder
from codewhale.permissions.shell.reads import Candidate, only_reads, program
from codewhale.permissions.shell.strict_reader import Compound, Part, Pipeline, Simple, Term, read
from codewhale.permissions.shell.words import GLOB, UNKNOWN, Word
from codewhale.permissions.shell.wrappers import quiet

# Commands looked at in one line, each round of a loop counted.
_MOST = 3000
_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
# Small names that mean something to zsh, or to programs when they are in the environment.
_TAKEN = re.compile(
    r"path|cdpath|fpath|manpath|mailpath|module_path|fignore|prompt|psvar|watch|argv|status|pipestatus|histchars"
    r"|options|commands|functions|aliases|parameters|npm_\w*|\w*_proxy|\w*_options|\w*_config\w*"
)
# Variables that change no more than how something looks.
_LOOKS = re.compile(r"LC_[A-Z]+|LANG|LANGUAGE|NO_COLOR|FORCE_COLOR|CLICOLOR(?:_FORCE)?|COLUMNS|LINES")
_RISKY = re.compile(
    r"PATH|LD_|DYLD|GIT|PYTHON|NODE|PERL|RUBY|BASH|ZSH|ENV|IFS|HOME|PWD|SHELL|LESS|PAGER|EDIT|VISUAL|BROWSER|GREP|LOC|NLS"
    r"|TERM|CONV|ALIAS|TMP|JAVA|CARGO|RUST|GO|MAKE|NPM|DOCKER|KUBE|AWS|SSH|GPG|CODEWHALE|PROMPT|PS\d|OPT|CONFIG|FLAGS|ARGS"
    r"|PRELOAD|AUDIT|DEBUG|LIB|MODULE|PLUGIN|EXEC|CMD|COMMAND|PROGRAM|WRAPPER|HOOK|INIT|RC|LUA|PHP|TCL|XDG|MAGIC|ZIP|TAR"
    r"|DIR|FILE|LOG|TRACE|OUT|DUMP|PROF|CACHE|STATE|SAVE|RECORD|GMON|GCOV|TAPE|GLOB|HIST|MAIL|TZ|POSIX|JQ|FZF|FD|RIP|SED|AWK|UV|PIP|VIRTUAL|CONDA|POETRY|OPEN|SSL|URL|PROXY|MALLOC"
)
_SWITCH = re.compile(r"\d{0,6}|true|false|yes|no|on|off")
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|COOKIE|PRIVATE", re.I)
# Programs whose output is one plain word or a few.
_TAME = frozenset("date pwd whoami hostname uname nproc id wc seq expr arch tty logname basename dirname".split())
_LISTED = ("grep", "sort", "head", "tail", "uniq")
_SETS = re.compile(r"[-+][eux]+|-[eux]*o|pipefail|errexit|nounset|xtrace")


class _State(Struct, gc=False):
    """What holds at a point of a line: its variables (None for a value that is not known), the folders it may be in,
    those in which it is when the last command failed, and whether its commands are given an input."""

    variables: dict[str, str | None]
    folders: tuple[str, ...]
    failed: tuple[str, ...] = ()
    fed: bool = False

    def copy(self) -> "_State":
        return _State(dict(self.variables), self.folders, (), self.fed)


class Readings:
    """One look at a line that runs in `folder`."""

    def __init__(self, places: ShellPaths, folder: str) -> None:
        self._places = places
        self._folder = folder
        self._left = _MOST
        self._sandboxed = False

    def line(self, steps: tuple[Pipeline, ...], fed: bool) -> bool:
        """Whether the line needs the sandbox to do no more than reading. Asks about the first thing that is more."""
        if not steps:
            ask("shell.construct", "it contains no command")
        self._script(steps, _State({}, (self._folder,), fed=fed), 0)
        return self._sandboxed

    def _script(self, steps: tuple[Pipeline, ...], state: _State, depth: int) -> None:
        """Go through pipelines. Behind && one is where the one before it succeeded, behind || where it failed, and
        behind anything else it may be in either place."""
        failed: tuple[str, ...] = ()
        skipped: tuple[str, ...] = ()
        for step in steps:
            state.failed = state.folders
            self._pipe(step, state, depth)
            if step.by == "&&":
                failed = _both(failed, state.failed)
                state.folders, skipped = _both(state.folders, skipped), ()
            elif step.by == "||":
                skipped = _both(skipped, state.folders)
                state.folders, failed = _both(failed, state.failed) or state.folders, ()
            else:
                state.folders = _both(state.folders, state.failed, failed, skipped)
                failed = skipped = ()
        state.failed = state.folders

    def _pipe(self, step: Pipeline, state: _State, depth: int) -> None:
        before: list[list[str]] | None = []
        alone = len(step.stages) == 1
        for number, stage in enumerate(step.stages):
            own = state if alone else state.copy()
            if number or stage.reads or stage.texts:
                own.fed = True
                self._files(stage, own, depth)
            if isinstance(stage, Simple):
                if alone and len(stage.words) == 1 and stage.words[0].text == "env":
                    ask("shell.unknown", "env without a command prints all environment variables")
                words = self._simple(stage, own, before if number else None, depth)
                before = None if before is None else [*before, words]
            else:
                self._block(stage, own, depth)
                before = None
        if alone and (step.stages[0].reads or step.stages[0].texts):
            state.fed = False

    def _files(self, stage: Simple | Compound, state: _State, depth: int) -> None:
        for term in stage.texts:
            self._one(term, state, depth)
        for term in stage.reads:
            if len(term.parts) != 1 or term.text is None or not term.bare or term.parts[0].kind != "text":
                ask("shell.redirect", "it redirects from something other than a plain file name")
            self._places.reading(term.text, *state.folders)

    def _block(self, block: Compound, state: _State, depth: int) -> None:
        if block.kind == "subshell":
            self._script(block.bodies[0], state.copy(), depth)
        elif block.kind == "group":
            self._script(block.bodies[0], state, depth)
        elif block.kind == "for":
            self._for(block, state, depth)
        elif block.kind == "while":
            ends = block.bodies[0][-1].stages[-1]
            if not (isinstance(ends, Simple) and ends.words and ends.words[0].text in ("read", "[", "[[", "test")):
                ask("shell.construct", "a loop may never end")
            self._forget(block, state)
            for body in block.bodies:
                self._round(body, state, depth)
        else:
            self._branches(block, state, depth)
        state.failed = state.folders

    def _branches(self, block: Compound, state: _State, depth: int) -> None:
        ends = []
        for number, body in enumerate(block.bodies):
            last = number == len(block.bodies) - 1
            if number % 2 == 0 and not last:
                self._script(body, state, depth)
                continue
            branch = state.copy()
            self._script(body, branch, depth)
            ends.append(branch)
        for end in ends:
            state.folders = _both(state.folders, end.folders)
            for name in {*state.variables, *end.variables}:
                if state.variables.get(name, "") != end.variables.get(name, ""):
                    state.variables[name] = None

    def _for(self, block: Compound, state: _State, depth: int) -> None:
        _assignable(block.name, None)
        values = [text for term in block.terms for text in self._texts(term, state, depth, loop=True)[0]]
        self._forget(block, state)
        for value in values:
            state.variables[block.name] = None if UNKNOWN in value else value
            self._round(block.bodies[0], state, depth)
        state.variables[block.name] = None

    def _round(self, body: tuple[Pipeline, ...], state: _State, depth: int) -> None:
        """A round of a loop, which must end where it began."""
        folders = state.folders
        self._script(body, state, depth)
        if state.folders != folders:
            ask("shell.construct", "a loop changes the folder")

    def _forget(self, block: Compound, state: _State) -> None:
        """What a loop assigns is not known in it: a later round may have done it."""
        waiting = [step for body in block.bodies for step in body]
        while waiting:
            for stage in waiting.pop().stages:
                if isinstance(stage, Compound):
                    waiting += [step for body in stage.bodies for step in body]
                    state.variables.update({stage.name: None} if stage.name else {})
                    continue
                state.variables.update({name: None for name, _ in stage.assigns})
                if stage.words and stage.words[0].text == "read":
                    state.variables.update({term.text: None for term in stage.words[1:] if term.text})

    def _simple(self, command: Simple, state: _State, before: list[list[str]] | None, depth: int) -> list[str]:
        """Look at one command; its words."""
        self._left -= 1
        if self._left < 0:
            ask("shell.construct", "it runs too many commands")
        first = command.words[0].text if command.words else None
        for name, term in command.assigns:
            value = self._one(term, state, depth)
            if not (name == "IFS" and first == "read"):
                _assignable(name, value if first is not None else None)
            if first is None:
                state.variables[name] = None if UNKNOWN in value else value
        if not command.words:
            return []
        condition = first == "[["
        words: list[Word] = []
        for term in command.words:
            if not condition and len(term.parts) == 1 and term.parts[0].kind == "text":
                words.append(Word(term.parts[0].text, plain=term.bare))
            else:
                words += self._words(term, state, depth, condition)
        texts = [word.text for word in words]
        if first == "read":
            for text in texts[1:]:
                if text not in ("-r", "-s"):
                    _assignable(text, None)
                    state.variables[text] = None
        elif (first in ("break", "continue") and all(text.isdigit() for text in texts[1:])) or (
            first == "set" and len(texts) > 1 and all(_SETS.fullmatch(text) for text in texts[1:])
        ):
            pass
        elif first == "cd":
            self._carry(words, state, before, depth)
            self._move(texts[1:], state)
        else:
            self._carry(words, state, before, depth)
        return texts

    def _move(self, operands: list[str], state: _State) -> None:
        """Follow cd: whether it works is known where the folder is there."""
        target = next((text for text in operands if text not in ("-P", "-L", "-e", "--")), "")
        moved = tuple(self._places.absolute(target, folder) for folder in state.folders)
        if not target or target == "-" or "" in moved:
            ask("shell.expansion", "its folder is only known when it runs")
        state.failed = () if all(map(is_folder, moved)) else state.folders
        state.folders = moved

    def _carry(self, words: list[Word], state: _State, before: list[list[str]] | None, depth: int) -> None:
        inner = quiet(words)
        if inner is None:
            self._sandboxed |= only_reads(Candidate(words, state.folders, fed=state.fed), self._places)
            return
        if depth >= DEEPEST:
            ask("shell.construct", "commands are wrapped in others more than three levels deep")
        if inner.line is not None:
            steps = read(inner.line)
            if steps is None or (program(words[0]) == "zsh" and not _plain(steps)):
                ask("shell.construct", "shells may read this line differently")
            if not steps:
                ask("shell.construct", "it contains no command")
            self._script(steps, _State({}, state.folders, fed=state.fed), depth + 1)
        elif inner.more:
            self._listed(before)
            self._sandboxed |= only_reads(Candidate(inner.words, state.folders, more=True, fed=True), self._places)
        else:
            self._carry(inner.words, state, before, depth + 1)

    def _listed(self, before: list[list[str]] | None) -> None:
        """xargs takes names of files below the folder from what lists them, and each must be one plain word."""
        first, *others = before or [[""]]
        name, texts = first[0] if first else "", first[1:]
        lists = {
            "find": "-printf" not in texts,
            "fd": True,
            "fdfind": True,
            "rg": bool({"-l", "--files", "--files-with-matches"}.intersection(texts)),
            "grep": any(re.fullmatch(r"-[rRinwEF]*l[rRinwEF]*|--files-with-matches", text) for text in texts),
            "git": texts[:1] == ["ls-files"],
        }
        if not lists.get(name, False) or any(not other or other[0] not in _LISTED for other in others):
            ask("shell.construct", "xargs takes arguments from input that is not known yet")
        why = self._places.odd_names(first)
        if why:
            ask("shell.construct", f"xargs may split this file name into several: {why}")

    # ------------------------------------------------------------------ words

    def _words(self, term: Term, state: _State, depth: int, condition: bool) -> list[Word]:
        if condition and term.text is not None:
            return [Word(term.text)]
        texts, pattern = self._texts(term, state, depth)
        names = (pattern,) if pattern else ()
        return [Word(text, plain=term.bare, glob=bool(pattern), names=names) for text in texts]

    def _one(self, term: Term, state: _State, depth: int) -> str:
        """The one text that a word is where nothing splits it."""
        return "".join(part.text if part.kind == "glob" else self._part(part, state, depth)[0] for part in term.parts)

    def _texts(self, term: Term, state: _State, depth: int, loop: bool = False) -> tuple[list[str], str]:
        """The words that a word becomes, and the pattern that they come from."""
        text, literal, glob = "", True, False
        for part in term.parts:
            value, tame = (part.text, True) if part.kind == "glob" else self._part(part, state, depth)
            text += value
            if part.quoted or part.kind == "text":
                literal = literal and not GLOB.search(value)
            elif loop and part.kind == "output":
                return [UNKNOWN], ""
            elif not value or re.search(r"\s", value) or (UNKNOWN in value and not tame):
                ask("shell.expansion", "an unquoted value may become several words")
            else:
                glob = glob or bool(GLOB.search(value))
        if not glob:
            return [text], ""
        if UNKNOWN in text or not literal:
            ask("shell.expansion", "a pattern is only known when it runs")
        return self._expanded(text, state), text

    def _expanded(self, text: str, state: _State) -> list[str]:
        names: dict[str, None] = {}
        for folder in state.folders:
            self._places.reading(text, folder)
            expanded = expand(text, folder)
            names.update(dict.fromkeys(expanded or ask("shell.expansion", f"{text} matches too many names")))
        bad = next((name for name in names if name != text and name.startswith(("-", "@", "+"))), "")
        if bad:
            ask("shell.expansion", f"{bad} is a file name that can be read as an option; write ./{text}")
        return list(names)

    def _part(self, part: Part, state: _State, depth: int) -> tuple[str, bool]:
        """What a part of a word is, UNKNOWN for what is not known, and whether that is at least one plain word."""
        if part.kind == "text":
            return part.text, True
        if part.kind == "number":
            return self._number(part.text, state), True
        if part.kind == "variable":
            return self._variable(part.text, state)
        inner = state.copy()
        self._script(part.steps, inner, depth + 1)
        if part.kind == "file":
            return "/dev/fd/63", True
        stage = part.steps[0].stages[0]
        words = [term.text for term in stage.words] if isinstance(stage, Simple) else []
        if len(part.steps) > 1 or len(part.steps[0].stages) > 1:
            return UNKNOWN, False
        if words == ["pwd"] and len(state.folders) == 1:
            return state.folders[0], True
        return UNKNOWN, bool(words) and (words[0] in _TAME or words[:2] == ["git", "rev-parse"])

    def _number(self, text: str, state: _State) -> str:
        for name in re.findall(r"[a-z_]\w*", text):
            if not (state.variables.get(name) or "").isdigit():
                ask("shell.expansion", f"the value of ${name} is only known when it runs")
        return "-1" if "-" in text else "0"

    def _variable(self, name: str, state: _State) -> tuple[str, bool]:
        if name in state.variables:
            value = state.variables[name]
            return (UNKNOWN, False) if value is None else (value, True)
        if name == "PWD" and len(state.folders) == 1:
            return state.folders[0], True
        if name == "HOME" and self._places.home:
            return self._places.home, True
        if _SECRET.search(name) or not re.fullmatch(r"[A-Z][A-Z0-9_]*", name):
            ask("shell.expansion", f"the value of ${name} is only known when it runs")
        return UNKNOWN, True


def _both(*folders: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(folders)))


def _plain(steps: tuple[Pipeline, ...]) -> bool:
    stages = [stage for step in steps for stage in step.stages]
    return all(
        isinstance(stage, Simple)
        and not stage.assigns
        and all(part.kind == "text" for term in stage.words for part in term.parts)
        for stage in stages
    )


def _assignable(name: str, value: str | None) -> None:
    """Asks about a variable that changes what programs do."""
    if _NAME.match(name) and not _TAKEN.fullmatch(name):
        return
    if value is not None and UNKNOWN not in value:
        if _LOOKS.fullmatch(name) and re.fullmatch(r"[\w.@-]*", value, re.A):
            return
        if name in ("PAGER", "GIT_PAGER") and value in ("", "cat"):
            return
        if not _RISKY.search(name) and re.fullmatch(r"[A-Z][A-Z0-9_]*", name) and _SWITCH.fullmatch(value):
            return
    ask("shell.environment", f"{name} is set for it")
