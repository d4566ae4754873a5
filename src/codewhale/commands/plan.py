"""/plan, and the offer after a turn of plan mode: the plan that was presented is carried over once the person approves
it. No model changes the mode."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from codewhale.commands.base import CommandContext, command, misuse
from codewhale.lib.ids import short_id
from codewhale.protocol.errors import CodeWhaleError, SessionError
from codewhale.protocol.events import Event, ListChanged, QuestionAnswered, QuestionAsked
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.ops import Answer, CommandOutput, SendMessage
from codewhale.protocol.ports import SessionControl

RUN, RUN_ASKING, KEEP = "Approve and run", "Approve, keep asking", "Keep planning"


class PlanLists(Protocol):  # where plans and checklists stand
    def plan(self, session: str) -> tuple[str, ...]: ...
    def keep(self, session: str, steps: Sequence[str]) -> ListChanged: ...


Send = Callable[[SendMessage], Awaitable[None]]
_Asked = tuple[str, int]  # a request, and the turns that the session had by then: the next one ends it
_NOTHING: _Asked = ("", 0)


class PlanCommand:
    """/plan, and the offers of all sessions."""

    def __init__(
        self, control: SessionControl, lists: PlanLists, tell: Callable[[str, Event], None], send: Send
    ) -> None:
        self._control = control
        self._lists = lists
        self._tell = tell
        self._send = send
        self._offered: dict[str, tuple[_Asked, tuple[str, ...]]] = {}

    @command("/plan", "[run]")
    async def plan(self, args: str, context: CommandContext) -> CommandOutput:
        """Show the plan, or approve it: agent mode, with its steps as the checklist."""
        if args not in ("", "run"):
            return misuse("Use /plan or /plan run.")
        if not args:
            lines = [f"{number:>3}. {step}" for number, step in enumerate(self._steps(context.session), 1)]
            return CommandOutput("\n".join([*lines, "Carry it out: /plan run"] if lines else ["There is no plan yet."]))
        try:
            await self._run(context.session)
        except CodeWhaleError as error:
            return CommandOutput(f"Not carried out: {error}.", ok=False)
        return CommandOutput("Plan approved.", turn=True)

    # ------------------------------------------------------------------ the offer

    def offer(self, session: str, steps: tuple[str, ...]) -> None:
        """A turn has ended that presented these steps: ask whether to carry them out, if there are any."""
        if not steps:
            self.withdraw(session)
            return
        request = short_id("plan")
        status = self._control.status(session)
        self._offered[session] = ((request, status.turns), steps)
        options = [{"label": RUN}, {"label": RUN_ASKING}, {"label": KEEP}]
        if status.approval in (Approval.SUGGEST, Approval.NEVER):
            del options[1]
        question = {"id": "plan", "header": "Plan", "question": f"Carry out this plan of {len(steps)} steps?"}
        self._tell(session, QuestionAsked(request, ({**question, "count": len(steps), "options": options},)))

    async def answer(self, op: Answer) -> bool:
        """Do what the person answered to an offer; whether it was the one that stands."""
        (request, turns), _ = self._offered.get(op.session, (_NOTHING, ()))
        if not request or op.request_id != request or not self._waits(op.session, turns):
            return False
        label = str(op.answers[0].get("label", "")) if op.answers else KEEP
        self.withdraw(op.session)
        self._tell(op.session, QuestionAnswered(request, op.answers, "person" if op.answers else "cancel"))
        if label in (RUN, RUN_ASKING):
            await self._run(op.session, asking=label == RUN_ASKING)
        elif label != KEEP:
            await self._send(SendMessage(op.session, str(op.answers[0].get("value", ""))))
        return True

    def _waits(self, session: str, turns: int) -> bool:
        status = self._control.status(session)
        return status.turns == turns and status.mode is Mode.PLAN and not status.busy

    def withdraw(self, session: str) -> None:
        """What was offered is no longer asked; the plan stays."""
        if session in self._offered:
            self._offered[session] = (_NOTHING, self._offered[session][1])

    def forget(self, session: str) -> None:
        self._offered.pop(session, None)

    def _steps(self, session: str) -> tuple[str, ...]:
        return self._offered.get(session, (_NOTHING, ()))[1] or self._lists.plan(session)

    async def _run(self, session: str, asking: bool = False) -> None:
        """Raises SessionError where there is no plan or nobody who could approve one, and while a turn runs."""
        status, steps = self._control.status(session), self._steps(session)
        if status.authority is not Authority.PERSON:
            raise SessionError("only you can approve a plan: open the session in the terminal interface")
        if not steps:
            raise SessionError("there is no plan; ask for one in plan mode")
        self._control.set_mode(session, Mode.AGENT if status.mode is Mode.PLAN else status.mode)
        if asking:
            self._control.set_approval(session, Approval.SUGGEST)
        self.withdraw(session)
        self._tell(session, self._lists.keep(session, steps))
        lines = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
        text = f"The plan is approved: carry it out now. Its steps are your checklist:\n{lines}"
        await self._send(SendMessage(session, text))
