"""What the role of a session refuses: a layer of the decision, whatever rules and rights allow."""

import posixpath

from codewhale.protocol.decisions import DecisionRequest, Opinion
from codewhale.protocol.tools import Effect, PathSubject

_DOES = {
    Effect.READS: "reads",
    Effect.WRITES: "changes files",
    Effect.EXECUTES: "runs programs",
    Effect.NETWORK: "uses the network",
}
_ELSE = "Go on without it; what should be done that you may not do, say in your answer."


def by_scope(request: DecisionRequest) -> Opinion | None:
    """The refusal of a call that the session's role does not leave it; None where it does."""
    scope = request.scope
    if scope is None:
        return None
    rule = f"scope.{scope.role or 'custom'}"
    who = f"This is a sub-agent of the role {scope.role or 'custom'}"
    if not scope.names(request.tool):
        return Opinion("deny", rule, f"{who}, which may not call {request.tool}. {_ELSE}")
    beyond = [effect for effect in request.effects if effect not in scope.effects]
    if beyond:
        does = " and ".join(_DOES[effect] for effect in beyond)
        return Opinion("deny", rule, f"{who}; it may not call what {does}, such as {request.tool}. {_ELSE}")
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
