"""Shell lines judged: allow what surely only reads, deny what must not happen in any mode, ask about all else.

Fail closed. Every simple command of a line is judged, in chains, pipes, substitutions, here-documents, wrappers and
`bash -c` down to three levels; the strictest verdict wins. Nothing is run; the disk is looked at for links alone, for
what patterns stand for, and for files that choose what runs.
"""

import re
from typing import Literal, NoReturn

from msgspec import Struct

from codewhale.permissions.shell.floor import LONGEST, Floor
from codewhale.permissions.shell.flow import may_run_input, sends
from codewhale.permissions.shell.harm import ShellCall, SimpleCommand, secret_word
from codewhale.permissions.shell.parse import INCOMPLETE, ParsedLine, Redirect, feed, parse
from codewhale.permissions.shell.paths import AskedError, ShellPaths, ask
from codewhale.permissions.shell.readings import Readings
from codewhale.permissions.shell.reads import look_anew
from codewhale.permissions.shell.strict_reader import read, words_of
from codewhale.permissions.shell.table import harm
from codewhale.permissions.shell.words import Word, odd_character

Verdict = Literal["allow", "ask", "deny"]
Profile = Literal["none", "read-only", "workspace-write"]

# What the grammar takes superlinear time for, and no honest line has so many of.
_CASE = re.compile(r"\bcase\b")
_TANGLES = 40
_PIPES = 1000
# Of a line that is too long, so many pieces are looked at, and so much of each.
_CUTS = re.compile(r"[;\n]|&&|\|\|?")
_PIECES, _LONG_PIECE = 2000, 4096
# What must be asked of a person even where a sandbox would contain it.
_A_PERSONS = frozenset(("shell.network", "shell.secret-read", "shell.outside", "shell.length", "shell.tangle"))


class ShellContext(Struct, frozen=True):
    """Where a line would run: absolute paths of the workspace, the working folder ("" for the workspace) and the
    person's home, whether a read-only sandbox is there to hold what a repository's settings may start, the text
    that the line is given as its input, and the folders beside the workspace that belong to the session."""

    workspace: str
    cwd: str = ""
    home: str = ""
    sandbox: bool = True
    stdin: str = ""
    folders: tuple[str, ...] = ()


class ShellJudgement(Struct, frozen=True):
    """What the analysis says of a line. A deny is the hard floor's, its rule begins with "floor."; the rule of an ask
    names what the line would do. `commands` are all simple ones, also those behind wrappers; `plain` says that the
    line is one of literal words and nothing else, `joined` that it is of several such, which every shell reads alike,
    and writes to no file by itself. `sandbox` is the profile to run it in: of an ask, "none" where no sandbox would
    make the question needless. `runs_input`: something in the line may run what it is given as input. `tests` are its
    first words where they run the project's tests."""

    verdict: Verdict
    rule: str
    reason: str
    commands: tuple[SimpleCommand, ...] = ()
    sandbox: Profile = "none"
    plain: bool = False
    joined: bool = False
    runs_input: bool = False
    tests: str = ""


def analyse(line: str, context: ShellContext) -> ShellJudgement:
    """Judge one line as bash would run it. Above 16 KiB nothing is allowed, and harm is looked for in its pieces."""
    if len(line) > LONGEST or len(line.encode("utf-8", "surrogatepass")) > LONGEST:
        return _overlong(line, context)
    if line.count("|") > _PIPES or _tangles(line) > _TANGLES:
        return ShellJudgement("ask", "shell.tangle", "The command is nested too deeply to check.")
    look_anew()
    places = ShellPaths(context.workspace, context.home, context.folders)
    known = {"PWD": context.cwd or context.workspace, "HOME": context.home or "/home/you"}
    parsed = parse(line, known)
    if context.stdin:
        feed(parsed, context.stdin)
    floor = Floor(places, known)
    refusal = floor.harm(line, parsed)
    commands = tuple([call.simple for call in floor.calls])
    runs = bool(context.stdin) and may_run_input(floor.calls, parsed.redirects)
    if refusal is None and runs:
        refusal = floor.harm(context.stdin[:LONGEST], parse(context.stdin[:LONGEST], known))
    if refusal is not None:
        return ShellJudgement("deny", refusal.rule, f"Refused: {refusal.reason}.", commands)
    steps = None if odd_character(line) else read(line)
    agreed = steps is not None and _agree(list(words_of(steps)), parsed)
    plain = (
        len(commands) == len(parsed.commands) == 1 and commands[0].known and not parsed.shapes and not parsed.redirects
    )
    plain = plain and agreed and not parsed.commands[0].assigns
    joined = plain or (agreed and all(command.known for command in commands) and not _writes_or_assigns(parsed))
    profile: Profile
    try:
        if steps is None or not agreed:
            _refuse_to_read(line, parsed)
        sandboxed = Readings(places, known["PWD"]).line(steps, bool(context.stdin))
        if runs:
            ask("shell.construct", "it may run its input as a program")
        if sandboxed and not context.sandbox:
            ask("shell.sandbox", "it only reads, but the project can decide what it starts, and there is no sandbox")
    except AskedError as asked:
        rule = _asked(asked.rule, floor.calls, parsed)
        profile = "none" if rule in _A_PERSONS else "workspace-write"
        return ShellJudgement("ask", rule, f"Needs approval: {asked.why}.", commands, profile, plain, joined, runs)
    profile = "read-only" if context.sandbox else "none"
    return ShellJudgement("allow", "shell.reads", "It only reads.", commands, profile, plain, joined)


def _writes_or_assigns(line: ParsedLine) -> bool:
    return any(command.assigns for command in line.commands) or any(map(_to_file, line.redirects))


def _to_file(redirect: Redirect) -> bool:
    return ">" in redirect.op and redirect.target.text not in ("", "/dev/null", "1", "2")


def _overlong(line: str, context: ShellContext) -> ShellJudgement:
    pieces = list(dict.fromkeys(piece.strip() for piece in _CUTS.split(line)))
    for piece in pieces[:_PIECES]:
        judged = analyse(piece[:_LONG_PIECE], context)
        if judged.verdict == "deny":
            return judged
    if len(pieces) > _PIECES:
        return ShellJudgement("ask", "shell.tangle", f"The line is longer than {LONGEST} bytes, in too many commands.")
    return ShellJudgement("ask", "shell.length", f"The command is longer than {LONGEST} bytes, too long to check.")


def _tangles(line: str) -> int:
    return line.count("=(") + line.count("<<") + (len(_CASE.findall(line)) if "case" in line else 0)


def _refuse_to_read(text: str, line: ParsedLine) -> NoReturn:
    """Ask, with the reason why the line is not one that every shell reads alike."""
    if odd := odd_character(text):
        ask("shell.bytes", f"it contains the character {odd}, which can be mistaken for another")
    written = next(filter(_to_file, line.redirects), None)
    if written is not None:
        ask("shell.redirect", f"it redirects to {written.target.text}")
    if line.shapes:
        ask("shell.construct", f"it contains {line.shapes[0]}")
    ask("shell.construct", "shells may read this line differently")


def _agree(strict: list[list[str | None]], line: ParsedLine) -> bool:
    """Whether the strict reader and the grammar read the same words, as far as they are no values. Two readings that
    were made apart seldom fail alike: what either of them takes wrongly becomes a question, never an allow."""
    if INCOMPLETE in line.shapes or len(strict) != len(line.commands):
        return False
    return all(_same(words, command.words) for words, command in zip(strict, line.commands, strict=True))


def _same(words: list[str | None], seen: list[Word]) -> bool:
    if words[0] == "[[":
        return bool(seen) and seen[0].text == "[["
    texts = [word.text for word in seen]
    return words == texts or (
        len(words) == len(texts) and all(one in (None, other) for one, other in zip(words, texts, strict=True))
    )


def _asked(rule: str, calls: list[ShellCall], line: ParsedLine) -> str:
    """The rule that a question names: what most needs a person, wherever in the line it stands."""
    if rule in _A_PERSONS:
        return rule
    words = {(word.text, word.names): word for call in calls for word in call.words[1:]}
    words |= {(redirect.target.text, ()): redirect.target for redirect in line.redirects}
    if any(secret_word(word) for word in words.values()):
        return "shell.secret-read"
    if any(_reaches(call) for call in calls):
        return "shell.network"
    if rule == "shell.unknown" and calls:
        called = next((call for call in calls if call.name not in ("cd", "echo", "env", "timeout")), calls[0])
        if called.name == "git":
            return "shell.git-write"
        return next((key for key, names in harm().asks.items() if called.name in names), rule)
    return rule


def _reaches(call: ShellCall) -> bool:
    words = harm().reaches.get(call.name)
    return (
        sends(call) or call.name in harm().asks["shell.network"] or bool(words and words.intersection(call.texts[:2]))
    )
