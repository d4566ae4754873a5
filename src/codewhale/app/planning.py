"""Plans that wait for the person: what was presented in plan mode is offered to be carried out, and carried over once
it is approved. No model changes the mode."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from codewhale.agent.control import SessionControls
from codewhale.agent.engine import Engine
from codewhale.lib.ids import short_id
from codewhale.lib.text import one_line
from codewhale.protocol.errors import SessionError
from codewhale.protocol.events import (
    ListChanged,
    MessageAdded,
    QuestionAnswered,
    QuestionAsked,
    TurnFinished,
    TurnStarted,
)
from codewhale.protocol.modes import Approval, Authority, Mode
from codewhale.protocol.ops import Answer, SendMessage
from codewhale.protocol.requests import Do
from codewhale.session.lists import ListItem, Lists
from codewhale.session.session import Session

MOST_STEPS, STEP_LIMIT = 100, 1_000
RUN, RUN_ASKING, KEEP = "Approve and run", "Approve, keep asking", "Keep planning"
_NUMBERED = re.compile(r"^ {0,3}\d{1,3}[.)][ \t]+(\S.*)$", re.MULTILINE)
_BULLET = re.compile(r"^ {0,3}[-*][ \t]+(\S.*)$", re.MULTILINE)
_PLAN = re.compile(r"\bplan\b|计划|方案", re.IGNORECASE)


class PlanOffers:
    """The plans of the open sessions, those that were presented last."""

    def __init__(self, engine: Engine, control: SessionControls, lists: Lists) -> None:
        self._engine = engine
        self._control = control
        self._lists = lists
        self._read: dict[str, int] = {}
        self._plans: dict[str, tuple[str, ...]] = {}
        self._open: dict[str, str] = {}

    def turn_ended(self, session: Session) -> None:
        """Offer what the turn has presented."""
        self._open.pop(session.id, None)
        steps = self._presented(session)
        if not steps:
            return
        self._plans[session.id] = steps
        request = self._open[session.id] = short_id("plan")
        options = [{"label": RUN}, {"label": RUN_ASKING}, {"label": KEEP}]
        if session.rights.approval in (Approval.SUGGEST, Approval.NEVER):
            del options[1]
        question = {"id": "plan", "header": "Plan", "question": f"Carry out this plan of {len(steps)} steps?"}
        session.emit(QuestionAsked(request, ({**question, "count": len(steps), "options": options},)))

    def _presented(self, session: Session) -> tuple[str, ...]:
        first = self._read.get(session.id, 0) + 1
        self._read[session.id] = session.log.seq
        steps: tuple[str, ...] = ()
        text = status = ""
        for envelope in session.log.read(first):
            match envelope.event:
                case TurnStarted():
                    steps, text = (), ""
                case ListChanged(kind="plan", items=items):
                    steps = _open_steps(items)
                case MessageAdded(message=message) if message.role == "assistant":
                    text = message.text
                case TurnFinished():
                    status = envelope.event.status
        return (steps or steps_of(text)) if status == "done" else ()

    def steps(self, session_id: str) -> tuple[str, ...]:
        """The plan that was presented last, as far as it is not done."""
        return self._plans.get(session_id) or _open_steps(self._lists.get(session_id, "plan"))

    async def answer(self, op: Answer, submit: Do) -> bool:
        """Do what the person answered to an offer; whether it was one that is open."""
        if not op.request_id or self._open.get(op.session) != op.request_id:
            return False
        session = self._engine.idle(op.session)
        del self._open[op.session]
        session.emit(QuestionAnswered(op.request_id, op.answers, "person" if op.answers else "cancel"))
        label = str(op.answers[0].get("label", "")) if op.answers else KEEP
        if label in (RUN, RUN_ASKING):
            await self.run(op.session, submit, asking=label == RUN_ASKING)
        elif op.answers and label != KEEP:
            await submit(SendMessage(op.session, str(op.answers[0].get("value", ""))))
        return True

    async def run(self, session_id: str, submit: Do, asking: bool = False) -> None:
        """Carry the plan over: agent mode, its steps as the checklist and as the task. Raises SessionError where there
        is no plan, nobody who could approve one, and while a turn runs."""
        session = self._engine.idle(session_id)
        steps = self.steps(session_id)
        if session.rights.authority is not Authority.PERSON:
            raise SessionError("only a person approves a plan: open the session in the terminal interface")
        if not steps:
            raise SessionError("there is no plan; ask for one in plan mode")
        self._open.pop(session_id, None)
        if session.state.mode is Mode.PLAN:
            self._control.set_mode(session_id, Mode.AGENT)
        if asking:
            self._control.set_approval(session_id, Approval.SUGGEST)
        items = [ListItem(id=number, content=step, status="pending") for number, step in enumerate(steps, 1)]
        self._lists.set(session_id, "checklist", items)
        session.emit(ListChanged("checklist", tuple(dict(item) for item in items)))
        lines = "\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1))
        text = f"The plan is approved: carry it out now. Its steps are your checklist:\n{lines}"
        await submit(SendMessage(session_id, text))

    def forget(self, session_id: str) -> None:
        self._read.pop(session_id, None)
        self._plans.pop(session_id, None)
        self._open.pop(session_id, None)


def _open_steps(items: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(str(item.get("step", "")) for item in items if item.get("status") != "completed")


def steps_of(text: str) -> tuple[str, ...]:
    """The steps of a plan that was only written: its numbered lines, or its bullets where it calls itself a plan."""
    steps = _NUMBERED.findall(text)
    if len(steps) < 2 and _PLAN.search(text):
        steps = _BULLET.findall(text)
    return tuple(one_line(step, STEP_LIMIT) for step in steps[:MOST_STEPS]) if len(steps) > 1 else ()
