"""What a project's constitution tells the model, what it wants to have succeeded before work is done, and what of that
is missing."""

import re
from collections.abc import Iterable

from codewhale.lib.text import sanitise
from codewhale.permissions.shell.strict_reader import Pipeline, Simple, read
from codewhale.protocol.decisions import Clause
from codewhale.protocol.events import Passed
from codewhale.session.prompt import contained
from codewhale.session.work import WorkState

# What ends a line early, or lets a word be another program, for all that stands behind it.
_TURNS = frozenset(
    ". alias builtin cd command declare enable eval exec exit export hash kill logout popd pushd readonly return set "
    "shopt source trap typeset unalias unset".split()
)
LAW = (
    "# The project's constitution\nIt stands below what the developer asks for now, and above skills, rules and other "
    "files. CodeWhale enforces further clauses by itself: a refusal names them."
)
MOST_TOLD, MOST_NAMED = 8_000, 1_000
_NOT = re.compile(r"(?<!\S)!\s")


def unverified(clauses: Iterable[Clause], work: WorkState, folder: str = "") -> list[dict[str, str]] | None:
    """The clauses that want something which has not succeeded since the last change; None where none wants anything.
    `folder` is where the workspace lies below the folder that they are for."""
    wanted = [clause for clause in clauses if clause.command or clause.tool]
    if not wanted:
        return None
    missing = [one for one in wanted if work.changes and not any(_meets(one, each, folder) for each in work.passed)]
    return [{"clause": one.id, "text": one.text, "command": one.command or one.tool} for one in missing]


def law_text(clauses: Iterable[Clause]) -> str:
    """What a model is told of a constitution: the clauses that nothing enforces, and what must have succeeded; "" where
    there is none. What is too much is left out by name."""
    rows, left_out, room = list[str](), list[str](), MOST_TOLD
    for clause in clauses:
        if clause.held and clause.kind != "verification":
            continue
        must = f" (must have succeeded: {clause.command or clause.tool})" if clause.held else ""
        row = f"- {clause.id} {clause.kind}: {clause.text}{must}"
        room -= len(row) + 1
        rows += [row] if room >= 0 else []
        left_out += [clause.id] if room < 0 else []
    if not rows:
        return ""
    more = f"\n- left out for their length: {', '.join(left_out)[:MOST_NAMED]}" if left_out else ""
    return f"{LAW}\n<constitution>\n{contained(sanitise(chr(10).join(rows)))}{more}\n</constitution>"


def _meets(clause: Clause, passed: Passed, folder: str) -> bool:
    if clause.tool and passed.tool == clause.tool:
        return True
    place = passed.cwd.rstrip("/").removeprefix("./") or "."
    above = "/".join([".."] * len(folder.split("/"))) if folder else "."
    if not clause.command or place not in (".", above):
        return False
    if " ".join(passed.command.split()) == clause.command:
        return True
    return not passed.changed and _holds(passed.command, clause.command)


def _holds(line: str, command: str) -> bool:
    """Whether a line that succeeded ran a command whose failure would have been the line's."""
    steps, wanted = read(line), read(command)
    if not steps or not wanted or len(wanted) != 1 or any(step.by != "&&" for step in steps[:-1]) or _NOT.search(line):
        return False
    words = _words(wanted[0])
    for step in steps:
        here = _words(step)
        if words and here == words:
            return True
        if not here or None in here or here[0] in _TURNS:
            return False
    return False


def _words(step: Pipeline) -> list[str | None]:
    """The words of a step that is one simple command, behind what only bounds its time; none for any other one."""
    (stage, *more) = step.stages
    if more or not isinstance(stage, Simple) or stage.assigns:
        return []
    words = [term.text for term in stage.words]
    if words[:1] == ["timeout"] and len(words) > 2 and str(words[1])[:1].isdigit():
        return words[2:]
    return words[1:] if words[:1] in (["time"], ["nice"]) else words
