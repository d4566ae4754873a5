"""What of a session's work was verified, by its log and the files as they are now; and what was only claimed."""

from collections.abc import Iterable

from codewhale.lib.text import one_line
from codewhale.protocol.events import Event, GateRecorded, ListChanged, SessionOpened, TurnFinished
from codewhale.protocol.gates import CheckedGate, GateRecord, WorkReceipt, standing

MOST_GATES, MOST_CLAIMS = 200, 50


def receipt(events: Iterable[Event], tree: str) -> WorkReceipt:
    """The receipt of a log, oldest gate first; `tree` is the hash of its workspace now, "" where that is not known."""
    gates, done, workspace, answer = list[GateRecord](), dict[str, None](), "", ""
    for event in events:
        match event:
            case SessionOpened():
                workspace = event.workspace
            case GateRecorded(gate=gate):
                gates.append(gate)
            case ListChanged(items=items):
                steps = [str(item.get("content") or item.get("step")) for item in items if _is_done(item)]
                done = dict.fromkeys(steps)
            case TurnFinished(status="done", result=result):
                answer = str(result.get("answer") or "")
    checked = tuple(CheckedGate(gate, standing(gate, tree)) for gate in gates[-MOST_GATES:])
    claimed = [*done, *([answer.strip()] if answer.strip() else [])]
    return WorkReceipt(workspace, tree, checked, tuple(claimed[-MOST_CLAIMS:]))


def _is_done(item: dict[str, object]) -> bool:
    return item.get("status") == "completed"


def receipt_text(receipt: WorkReceipt) -> str:
    """What of a session's work was verified and what was only claimed, safe to print; "" where no gate was run."""
    if not receipt.gates:
        return ""
    rows = ["[receipt]", *(f"  {_gate(one)}" for one in receipt.gates)]
    rows += [f"  claimed, not verified: {one_line(text, 300)}" for text in receipt.claimed]
    return "".join(f"{row}\n" for row in rows)


_STANDING = {
    "holds": "the files are as they were",
    "stale": "stale: files were changed since",
    "unbound": "bound to no state of the files",
}


def _gate(checked: CheckedGate) -> str:
    gate = checked.gate
    ended = f"exit code {gate.exit_code}" if gate.exit_code is not None else gate.classification
    tree = f", tree {gate.tree_after[:12]}" if gate.tree_after else ""
    where = "" if gate.cwd == "." else f" in {one_line(gate.cwd, 100)}"
    command = f"`{one_line(gate.command, 200)}`{where}"
    return f"{gate.id} {gate.gate} {gate.status}: {command}, {ended}{tree}; {_STANDING[checked.standing]}"
