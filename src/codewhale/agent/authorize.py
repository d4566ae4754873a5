"""Whether a call may run: what policy says of it, and what the person says where policy asks."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from msgspec.structs import replace

from codewhale.agent.asking import Asking
from codewhale.agent.pending_call import PendingCall
from codewhale.agent.turn import Turn
from codewhale.permissions.folders import stands
from codewhale.protocol.blocks import Block
from codewhale.protocol.decisions import Decision, DecisionRequest, Opinion
from codewhale.protocol.errors import ConfigError, ToolError
from codewhale.protocol.events import ApprovalAsked, FolderAdded
from codewhale.protocol.modes import Approval, Authority
from codewhale.protocol.ops import Answer
from codewhale.protocol.tools import Effect, Subject, ToolSpec
from codewhale.session.session import Session

ELEVATION = "sandbox.elevation"

Outline = Callable[[], Awaitable[tuple[Block, ...]]]


class PermissionGate(Protocol):
    """Decides about calls, and keeps what was answered."""

    def decide(self, request: DecisionRequest) -> Decision:
        """Allow, ask where somebody is there to be asked, or deny."""

    def digest(self, request: DecisionRequest, arguments: Mapping[str, object]) -> str:
        """What would run, as a hash."""

    def answered(self, request: DecisionRequest, decision: Decision, answer: Answer | None) -> FolderAdded | None:
        """Note an answer (None is a no), and remember what was offered; a folder is for the session to keep. Raises
        ConfigError when that cannot be done."""


class CallRefused(ToolError):
    """A call that policy, a hook or the person refused."""

    def __init__(self, text: str, rule: str = "") -> None:
        super().__init__("permission_denied", text)
        self.rule = rule


def decision_request(
    session: Session,
    spec: ToolSpec,
    subjects: tuple[Subject, ...],
    call_id: str = "",
    opinions: tuple[Opinion, ...] = (),
) -> DecisionRequest:
    """What policy is asked of a call; `call_id` "" is one that is not to run yet."""
    state, rights = session.state, session.rights
    return DecisionRequest(
        tool=spec.name,
        effects=spec.effects,
        subjects=subjects,
        mode=rights.mode,
        authority=rights.authority,
        session=session.id,
        tainted=state.tainted,
        unseen=spec.previews,
        approval=rights.approval,
        workspace=state.workspace,
        origins=state.origins,
        opinions=opinions,
        call=call_id,
        folders=tuple(folder.path for folder in state.folders.values() if stands(folder)),
        scope=session.scope,
        owners=session.owners,
        approved=session.approved,
        lifted=tuple(session.lifted),
        server=spec.source,
    )


class Authorizer:
    """The gate, and the person behind it."""

    def __init__(self, gate: PermissionGate, asking: Asking) -> None:
        self._gate = gate
        self._asking = asking

    def decide(self, request: DecisionRequest) -> Decision:
        """Allow or ask. Raises CallRefused."""
        try:
            decision = self._gate.decide(request)
        except Exception as error:
            # What cannot be judged does not run, and the turn goes on.
            text = f"Could not decide whether this may run ({type(error).__name__}: {error})"
            raise CallRefused(f"{text}, so it does not. The user should report this.") from error
        if decision.verdict == "deny":
            raise CallRefused(f"{decision.reason} (rule {decision.rule})", decision.rule)
        return decision

    def begin(self, session: Session, request: DecisionRequest, decision: Decision) -> None:
        """A call begins to run, and uses up what it needs of what is let through once. Raises CallRefused."""
        which = " ".join(decision.lifted)
        if not set(decision.lifted) <= set(session.lifted):
            raise CallRefused(f"What was let through once ({which}) has been used up by another call.", decision.rule)
        for clause in decision.lifted:
            session.lifted.remove(clause)
        if which:
            self._gate.answered(request, decision, Answer(session.id, "", allowed=True, confirm=which))
            text = f"--allow-clause: {which} of the project's constitution was let through once, for {request.tool}"
            session.notice("warning", text, "clause_lifted")

    def reads_may(self, session: Session, tool: str) -> bool:
        """Whether a tool that only reads may be called."""
        rights = session.rights
        reads = (Effect.READS,)
        asked = DecisionRequest(tool, reads, (), rights.mode, rights.authority, session.id, scope=session.scope)
        return self._gate.decide(asked).verdict == "allow"

    async def ask(
        self, turn: Turn, call: PendingCall, request: DecisionRequest, decision: Decision, outline: Outline
    ) -> Decision | str:
        """Return once the person has allowed the call: the decision that it runs under, or the command that the person
        wrote in place of its own. What runs is what was allowed: the same bytes, the same outline, and nothing that has
        been forbidden since. Raises CallRefused and ToolError."""
        display = await outline()
        digest = self._gate.digest(request, call.arguments)
        answer = await self.allows(turn, call, request, decision, sha256=digest, display=display)
        if answer is None:
            raise CallRefused(f"The user denied this call ({decision.rule}).")
        if answer.command:
            return answer.command
        if self._gate.digest(request, call.arguments) != digest or await outline() != display:
            raise CallRefused(
                "A file that this command names has changed since it was shown for approval. Call it again."
            )
        now = self.decide(replace(request, approval=turn.session.rights.approval, scope=turn.session.scope))
        return now if answer.remember == "sandbox" and now.verdict == "allow" else decision

    async def allows(
        self,
        turn: Turn,
        call: PendingCall,
        request: DecisionRequest,
        decision: Decision,
        *,
        sha256: str = "",
        display: tuple[Block, ...] = (),
    ) -> Answer | None:
        """The answer by which the person who is there allows it, None for a no."""
        if request.authority is not Authority.PERSON or request.approval is Approval.NEVER:
            return None
        asked = ApprovalAsked(
            request_id="",
            call_id=request.call,
            tool=request.tool,
            subjects=request.subjects,
            reason=decision.reason,
            display=display,
            rule=decision.rule,
            kind="elevation" if decision.rule == ELEVATION else "clause" if decision.clauses else "policy",
            clauses=decision.clauses,
            sandbox=decision.sandbox,
            offer=decision.offer,
            sha256=sha256,
            allowances=decision.allowances,
            held=decision.held
            and not turn.session.state.owner,  # what is chosen for a session is chosen on its own card
        )
        with call.clock.waiting():
            answer = await self._asking.approval(turn, asked)
        if answer is not None and answer.remember == "sandbox" and asked.held:
            turn.session.change_approval(Approval.SANDBOX)
        try:
            added = self._gate.answered(request, decision, answer)
            if added is not None:
                turn.session.emit(added)
        except ConfigError as error:
            text = f"Allowed this once, but it could not be remembered: {error}"
            turn.session.notice("warning", text, "permissions")
        return answer
