"""What the role of a session and its active skills refuse: a layer of the decision, whatever rules and rights allow."""

import posixpath
from collections.abc import Callable
from typing import TYPE_CHECKING

from codewhale.permissions.prefixes import begins
from codewhale.protocol.decisions import DecisionRequest, Opinion
from codewhale.protocol.scopes import Scope
from codewhale.protocol.tools import CommandSubject, Effect, JobSubject, PathSubject, Subject

if TYPE_CHECKING:
    from codewhale.permissions.shell.judge import ShellJudgement

_DOES = {
    Effect.READS: "reads",
    Effect.WRITES: "changes files",
    Effect.EXECUTES: "runs programs",
    Effect.NETWORK: "uses the network",
}
_ELSE = "Go on without it; what should be done that you may not do, say in your answer."
# What asks the person harms nobody, and is the way out of a restriction.
ALWAYS = frozenset(("request_user_input",))


def by_scope(
    request: DecisionRequest, analyse: "Callable[[CommandSubject, DecisionRequest], ShellJudgement] | None" = None
) -> Opinion | None:
    """The refusal of a call that the session's role or an active skill does not leave it; None where they do."""
    scope = request.scope
    if scope is None or (scope.skills and not scope.role and request.tool in ALWAYS):
        return None
    rule, who = _who(scope)
    if not scope.names(request.tool):
        return Opinion("deny", rule, f"{who}; it may not call {request.tool}.{_allowed(scope)} {_ELSE}")
    beyond = [effect for effect in request.effects if effect not in scope.effects]
    if beyond:
        does = " and ".join(_DOES[effect] for effect in beyond)
        return Opinion("deny", rule, f"{who}; it may not call what {does}, such as {request.tool}. {_ELSE}")
    beyond_lines = _other_line(scope, request, analyse)
    if beyond_lines:
        return Opinion("deny", rule, f"{who}; it may run {beyond_lines} {_ELSE}")
    if not scope.paths:
        return None
    if Effect.EXECUTES in request.effects:
        only = ", ".join(scope.paths)
        return Opinion("deny", rule, f"{who} that writes in {only} alone, and a program could write elsewhere. {_ELSE}")
    for subject in request.subjects:
        if isinstance(subject, PathSubject) and subject.write and not scope.writes(posixpath.normpath(subject.path)):
            only = ", ".join(scope.paths)
            return Opinion("deny", rule, f"{who} that writes in {only} alone; {subject.path} is elsewhere. {_ELSE}")
    return None


def _who(scope: Scope) -> tuple[str, str]:
    if not scope.skills:
        role = scope.role or "custom"
        what = "This is a task" if role == "task" else f"This is a sub-agent of the role {role}"
        return f"scope.{role}", what
    names = ", ".join(scope.skills)
    which = f"the active skill{'s' if len(scope.skills) > 1 else ''} {names}"
    if scope.role:
        return f"scope.{scope.role}", f"This is a sub-agent of the role {scope.role}, restricted by {which}"
    return f"skill.{scope.skills[-1]}", f"This session is restricted by {which} (the user lifts that with /skill off)"


def _allowed(scope: Scope) -> str:
    if not scope.skills or scope.tools is None:
        return ""
    return f" Allowed: {', '.join(scope.tools) or 'no tools'}."


def _other_line(
    scope: Scope,
    request: DecisionRequest,
    analyse: "Callable[[CommandSubject, DecisionRequest], ShellJudgement] | None",
) -> str:
    """What a command line may consist of that does not; "" where it does."""
    for tool, patterns in scope.lines:
        for subject in request.subjects:
            typed = isinstance(subject, JobSubject) and subject.text  # whichever tool began the job
            why = _not_of(patterns, subject, request, analyse) if typed or tool == request.tool else ""
            if why:
                return f"only commands of these forms: {', '.join(patterns)}. {why}"
    return ""


def _not_of(
    patterns: tuple[str, ...],
    subject: Subject,
    request: DecisionRequest,
    analyse: "Callable[[CommandSubject, DecisionRequest], ShellJudgement] | None",
) -> str:
    if isinstance(subject, JobSubject) or (isinstance(subject, CommandSubject) and subject.stdin):
        return "Input that a program may run as commands is none of them."
    if not isinstance(subject, CommandSubject):
        return ""
    judged = analyse(subject, request) if analyse is not None else None
    if judged is None or not judged.joined:
        return "Write it as plain commands, joined by && at most, without redirections."
    other = (one.argv for one in judged.commands if not any(begins(pattern, one.argv) for pattern in patterns))
    return next((f"{' '.join(argv[:3])[:80]!r} is another." for argv in other), "")
