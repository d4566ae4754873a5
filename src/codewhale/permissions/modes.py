"""The first and the last layer of a decision: what a mode forbids, and what a call needs when nothing speaks for or
against it."""

from codewhale.protocol.decisions import Decision, DecisionRequest, Opinion
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.tools import Effect

CHANGES = frozenset({Effect.WRITES, Effect.EXECUTES})

READ = Opinion("allow", "mode.read", "Reading is always allowed.")
PLAN_READ = Opinion("allow", "mode.plan.read", "Reading is allowed in plan mode.")
WRITE = Opinion("allow", "mode.agent.write", "Workspace writes are allowed in agent mode.")
YOLO = Opinion("allow", "mode.yolo", "Yolo mode allows every call.")
AUTO = Opinion("allow", "authority.auto", "No rule asks for this call.")


def by_mode(request: DecisionRequest) -> Opinion | None:
    """What plan mode refuses; the other modes refuse nothing by themselves."""
    if request.mode is not Mode.PLAN or not CHANGES.intersection(request.effects):
        return None
    return Opinion(
        "deny",
        "mode.plan",
        f"Plan mode changes no file and runs no program, so {request.tool} is refused. Finish the plan with reading "
        "tools; the person can switch to agent mode (/mode agent, or --mode agent) to carry it out.",
    )


def by_need(request: DecisionRequest) -> Opinion:
    """What a call needs by what it does: reads and workspace writes run, programs and network writes are asked about,
    unless the person has said that what no rule asks for may run."""
    effects = request.effects
    if request.mode is Mode.PLAN:
        return PLAN_READ
    if all(effect is Effect.READS for effect in effects):
        return READ
    risky = Effect.EXECUTES in effects or (Effect.NETWORK in effects and Effect.WRITES in effects)
    unseen = request.unseen and request.authority is Authority.PERSON and request.mode is not Mode.YOLO
    if not risky and unseen:
        reason = f"{request.tool} writes text that the call does not show; look at the diff."
        return Opinion("ask", "mode.agent.unseen", reason)
    if request.mode is Mode.YOLO:
        return YOLO
    if not risky:
        return WRITE
    if runs_unasked(request) and not (request.tainted and Effect.NETWORK in effects):
        return AUTO
    return Opinion("ask", "mode.agent.execute", f"{request.tool} runs a program.")


def runs_unasked(request: DecisionRequest) -> bool:
    """Whether the person has said that what nothing asks about may run."""
    return request.authority is Authority.AUTO or request.approval is Approval.AUTO


def answered(request: DecisionRequest) -> bool:
    """Whether somebody is there who may be asked."""
    return request.authority is Authority.PERSON and request.approval is not Approval.NEVER


def unanswered(request: DecisionRequest, asked: Decision) -> Opinion:
    """The refusal that an ask becomes where nobody may be asked."""
    reason = asked.reason
    if request.authority is Authority.PERSON:
        text = f"{reason} The person has said that nothing is asked (approval never), so it is refused."
        return Opinion("deny", "approval.never", text)
    how = "`codewhale exec --auto` (runs what no rule asks about) or `--yolo`"
    if request.authority is Authority.AUTO or asked.rule.startswith(("file.", "secret.")):
        how = "a rule that allows it in permissions.toml"
        how += "" if request.mode is Mode.YOLO else ", or `--yolo`"
    text = f"{reason} Nobody is here to approve it. Go on without it, or end and say that it needs {how}."
    return Opinion("deny", f"authority.{request.authority.value}", text)
