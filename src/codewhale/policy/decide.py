"""The first rule set: what each mode lets a call do, and what runs when nobody can be asked.

Pure. `decide` is the only gate; a verdict always names the rule that made it and says how to allow the call.
"""

from codewhale.protocol.decisions import Decision, DecisionRequest
from codewhale.protocol.modes import Authority, Mode
from codewhale.protocol.tools import Effect

_CHANGES = frozenset({Effect.WRITES, Effect.EXECUTES})


def decide(request: DecisionRequest, disabled: frozenset[str] = frozenset()) -> Decision:
    """Allow, ask or deny one call by mode, effects and authority; `disabled` tools are denied in every mode."""
    effects = frozenset(request.effects)
    if request.tool in disabled:
        return Decision(
            "deny",
            "config.tools.disabled",
            f"{request.tool} is switched off by the person's configuration (tools.disabled). Work without it.",
        )
    for opinion in request.opinions:
        if opinion.verdict == "deny":
            return Decision("deny", opinion.rule, opinion.reason)
    if request.mode is Mode.PLAN:
        return _plan(request, effects)
    if effects <= {Effect.READS}:
        return Decision("allow", "mode.read", "Reading is always allowed.")
    if request.mode is Mode.YOLO:
        return Decision("allow", "mode.yolo", "Yolo mode allows every call.")
    return _agent(request, effects)


def _plan(request: DecisionRequest, effects: frozenset[Effect]) -> Decision:
    if effects & _CHANGES:
        return Decision(
            "deny",
            "mode.plan",
            f"Plan mode changes no file and runs no program, so {request.tool} is refused. Finish the plan with "
            "reading tools; the person can switch to agent mode (/mode agent, or --mode agent) to carry it out.",
        )
    return Decision("allow", "mode.plan.read", "Reading is allowed in plan mode.")


def _agent(request: DecisionRequest, effects: frozenset[Effect]) -> Decision:
    risky = Effect.EXECUTES in effects or {Effect.NETWORK, Effect.WRITES} <= effects
    if not risky and request.unseen and request.authority is Authority.PERSON:
        return Decision(
            "ask", "mode.agent.unseen", f"{request.tool} writes text that the call does not show; look at the diff."
        )
    if not risky:
        return Decision("allow", "mode.agent.write", "Workspace writes are allowed in agent mode.")
    if request.authority is Authority.AUTO:
        return Decision("allow", "authority.auto", "No rule asks for this call.")
    if request.authority is Authority.PERSON:
        return Decision("ask", "mode.agent.execute", f"{request.tool} runs a program.")
    return Decision(
        "deny",
        "authority.headless",
        f"{request.tool} runs a program and nobody is here to approve it. Go on without it, or end and say that "
        "it needs `codewhale exec --auto` (runs what no rule asks about) or `--yolo`.",
    )
