"""What a turn of plan mode has presented: the steps that the plan tool recorded, else those that were only written."""

import re
from collections.abc import Iterable, Mapping, Sequence

from codewhale.lib.patterns import lazy
from codewhale.lib.text import one_line
from codewhale.protocol.events import Event, ListChanged, MessageAdded, TurnFinished, TurnStarted
from codewhale.session.lists import ListItem, Lists
from codewhale.session.session import Session

MOST_STEPS, STEP_LIMIT = 100, 1_000
_NUMBERED = lazy(r"^ {0,3}\d{1,3}[.)][ \t]+(\S.*)$", re.MULTILINE)
_BULLET = lazy(r"^ {0,3}[-*][ \t]+(\S.*)$", re.MULTILINE)
_PLAN = lazy(r"\bplan\b|计划|方案", re.IGNORECASE)


class SessionPlans:
    """The plans of the open sessions."""

    def __init__(self, lists: Lists) -> None:
        self._lists = lists
        self._read: dict[str, int] = {}

    def presented(self, session: Session) -> tuple[str, ...]:
        """The steps that a turn which has just ended presented."""
        first = self._read.get(session.id, 0) + 1
        self._read[session.id] = session.log.seq
        return presented(envelope.event for envelope in session.log.read(first))

    def plan(self, session: str) -> tuple[str, ...]:
        """The steps of the plan that was recorded last, as far as they are not done."""
        return open_steps(self._lists.get(session, "plan"))

    def keep(self, session: str, steps: Sequence[str]) -> ListChanged:
        """Make a checklist of steps."""
        items = [ListItem(id=number, content=step, status="pending") for number, step in enumerate(steps, 1)]
        self._lists.set(session, "checklist", items)
        return ListChanged("checklist", tuple(dict(item) for item in items))

    def forget(self, session: str) -> None:
        self._read.pop(session, None)


def presented(events: Iterable[Event]) -> tuple[str, ...]:
    """The steps that the last turn of these events presented; none where it did not end well."""
    steps: tuple[str, ...] = ()
    text = status = ""
    for event in events:
        match event:
            case TurnStarted():
                steps, text = (), ""
            case ListChanged(kind="plan", items=items):
                steps = open_steps(items)
            case MessageAdded(message=message) if message.role == "assistant":
                text = message.text
            case TurnFinished():
                status = event.status
    return (steps or written_steps(text)) if status == "done" else ()


def open_steps(items: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    """The steps of a recorded plan that are not done."""
    return tuple(str(item.get("step", "")) for item in items if item.get("status") != "completed")


def written_steps(text: str) -> tuple[str, ...]:
    """The numbered lines of a text, or its bullets where it calls itself a plan; none for less than two."""
    steps = _NUMBERED().findall(text)
    if len(steps) < 2 and _PLAN().search(text):
        steps = _BULLET().findall(text)
    return tuple(one_line(step, STEP_LIMIT) for step in steps[:MOST_STEPS]) if len(steps) > 1 else ()
