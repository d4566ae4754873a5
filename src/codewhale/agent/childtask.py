"""What a child is asked, what it came to, and how its owner's conversation is told of that."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from codewhale.catalog.schema import check
from codewhale.lib.patterns import lazy
from codewhale.lib.text import one_line
from codewhale.protocol.children import ChildPlan, ChildStatus, ChildView
from codewhale.protocol.events import ChildClosed, Envelope
from codewhale.protocol.ops import SendMessage
from codewhale.session.accounting import Accounts
from codewhale.session.state import SessionState
from codewhale.session.work import WorkState

if TYPE_CHECKING:
    from codewhale.agent.roles import ChildRole

SUMMARY_LIMIT = 240
FORM = """Answer with these sections, each under its name in capitals, "none" where there is nothing:
SUMMARY: what came of the task, in one to three sentences.
CHANGES: each file you changed, and how.
EVIDENCE: paths with lines, commands with exit codes, that show it.
RISKS: what may still be wrong or was not checked.
BLOCKERS: what kept you from finishing."""
_SUMMARY = lazy(r"^\W*SUMMARY\W*$|^\W*SUMMARY\W*?:\s*", re.MULTILINE)


class Outcome(Struct, frozen=True):
    """How a task ended: `answer` is its result, or as far as it came."""

    status: ChildStatus
    answer: str = ""
    error: str = ""


def brief(plan: ChildPlan, role: "ChildRole") -> SendMessage:
    """The first message of a child: its task as a packet of objective, scope and limits, and what its role says."""
    request, scope = plan.request, plan.scope
    form = FORM
    if request.schema is not None:
        form = wanted_form(request.schema)
    if request.paths:
        form = f"Change files below {', '.join(request.paths)} alone.\n\n{form}"
    named = {"model calls": request.limits.turns, "tokens": request.limits.tokens, "seconds": request.limits.seconds}
    limits = ", ".join(f"{most:g} {what}" for what, most in named.items() if most is not None)
    packet = f"scope: {', '.join(scope.effects) or 'nothing'}; paths: {', '.join(scope.paths) or 'all'}"
    packet += f"\nlimits: {limits or 'none of its own'}"
    words = f'<role name="{role.name}">\n{role.words.strip()}\n\n{form}\n</role>'
    return SendMessage("", request.objective, f"<task>\nobjective: the message above\n{packet}\n</task>\n{words}")


def fold(events: Iterable[Envelope]) -> tuple[SessionState, Accounts]:
    state, accounts = SessionState(), Accounts()
    for envelope in events:
        state.apply(envelope.event)
        accounts.apply(envelope.event)
    return state, accounts


def closed(view: ChildView, accounts: Accounts, work: WorkState) -> ChildClosed:
    """The record of an end, with what the child has used, and changed where it worked in its owner's workspace."""
    used = accounts.with_children({})
    steps, line = view.steps, summary_line(view)
    end = ChildClosed(view.session, view.status, line, view.name, steps, used.calls, used.as_one())
    return end if view.folder else replace(end, changes=work.changes, passed=tuple(work.passed))


def outcome_of(state: SessionState, stopped: bool) -> Outcome:
    """What the last task of a child came to, by its log. `stopped`: somebody stopped it."""
    end = state.last_end
    if end is None or state.turn_open:
        return Outcome("interrupted", "", "The process that ran it ended. A message lets it go on from its log.")
    answer = str(end.result.get("answer", "")).strip()
    if end.status == "interrupted":
        return Outcome("cancelled" if stopped else "interrupted", answer, end.reason)
    if end.status != "done":
        return Outcome("failed", answer, end.reason or f"It ended with status {end.status}.")
    return Outcome("completed", answer) if answer else Outcome("failed", "", "It ended without an answer.")


def misfit(outcome: Outcome, schema: dict[str, object] | None) -> str:
    """What is wrong with an answer that must fit a schema, as a message to whoever gave it; "" where it fits."""
    return unfit(outcome.answer, schema) if schema is not None and outcome.status == "completed" else ""


def wanted_form(schema: dict[str, object]) -> str:
    return f"Answer with JSON alone that fits this schema:\n{msgspec.json.encode(schema).decode()}"


def unfit(answer: str, schema: dict[str, object]) -> str:
    """What is wrong with an answer that must fit a schema, said to whoever gave it; "" where it fits."""
    text = answer.strip()
    fenced = re.fullmatch(r"```[a-z]*\n(.*)\n```", text, re.DOTALL)
    try:
        value = msgspec.json.decode(fenced[1] if fenced else text)
    except msgspec.DecodeError as error:
        return f"Your answer must be JSON alone, and it is none ({error}). Send only the JSON."
    problems = [f"{one.field or 'it'} must be {one.expected}, got {one.received}" for one in check(value, schema)[:5]]
    said = f"Your answer does not fit the schema: {'; '.join(problems)}. Send only the JSON, made right."
    return said if problems else ""


def fitting(outcome: Outcome, wrong: str) -> Outcome:
    """The outcome, where its answer is not in the form that was wanted: a failure."""
    return Outcome("failed", outcome.answer, f"Its answer does not fit the schema: {wrong}") if wrong else outcome


def summary_line(view: ChildView) -> str:
    """One line of what a child came to: of its summary where its answer has one."""
    text = view.answer
    if (section := _SUMMARY().search(text)) is not None:
        text = text[section.end() :].strip().split("\n\n", 1)[0]
    return one_line(" ".join((text or view.error).split()), SUMMARY_LIMIT)


def report_text(view: ChildView) -> str:
    """How the owner's conversation is told of an end: never the transcript."""
    summary = summary_line(view)
    whole = view.status == "completed" and " ".join(view.answer.split()) == summary
    facts: dict[str, object] = {
        "name": view.name,
        "agent_id": view.id,
        "status": view.status,
        "role": view.role,
        "summary_complete": whole,
        "next_action": "use_summary" if whole else "call_agent_eval",
    }
    if view.folder:
        facts["folder"] = view.folder
    if view.error:
        facts["error"] = one_line(view.error, 400)
    said = msgspec.json.encode(facts).decode()
    return f"<subagent_done>\n{view.name} ({view.role}) {view.status}: {summary}\n{said}\n</subagent_done>"
