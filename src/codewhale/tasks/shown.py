"""Tasks as programs, models and people read them."""

from typing import Any

from codewhale.lib.text import one_line
from codewhale.protocol.tasks import TaskBoard, TaskRecord, TaskView
from codewhale.session.receipts import receipt_text

_ANSWER = 12_000
_MOST_LINES = 40
_ALWAYS = (
    "id", "status", "prompt", "workspace", "mode", "model", "allow_shell", "auto_approve", "on_death", "created_at",
    "attempt",
)  # fmt: skip
_OPTIONAL = ("started_at", "ended_at", "duration_ms", "worker", "error", "stopping")


def task_object(view: TaskView) -> dict[str, Any]:
    """A task as programs and models read it."""
    said: dict[str, Any] = {name: getattr(view, name) for name in _ALWAYS}
    optional = {name: getattr(view, name) for name in _OPTIONAL}
    optional |= {"thread_id": view.session, "unfinished": list(view.unfinished)}
    said.update({key: value for key, value in optional.items() if value not in ("", None, [], False)})
    if view.answer:
        said["result"] = view.answer[:_ANSWER]
        if len(view.answer) > _ANSWER:
            said["result_left_out"] = len(view.answer) - _ANSWER
    return said


def record_object(record: TaskRecord) -> dict[str, Any]:
    """A task with its history as programs and models read it."""
    plural = {"gate": "gates", "attempt": "attempts", "github_event": "github_events"}
    lists: dict[str, list[Any]] = {"gates": [], "attempts": [], "artifacts": [], "github_events": []}
    for kind, values in record.updates.items():
        for value in values:
            lists.setdefault(plural.get(kind, kind), []).extend(value if isinstance(value, list) else [value])
    timeline = [{"timestamp": line.at, "kind": line.kind, "summary": line.text} for line in record.timeline]
    said = {"task": task_object(record.task), "checklist": list(record.checklist), **lists, "timeline": timeline}
    receipt = record.receipt
    if receipt is not None:
        gates = [{"gate": one.gate.id, "status": one.gate.status, "standing": one.standing} for one in receipt.gates]
        verified = [one.gate.id for one in receipt.verified]
        said["receipt"] = {"tree": receipt.tree, "gates": gates, "verified": verified, "claimed": list(receipt.claimed)}
    return said


def board_text(board: TaskBoard) -> str:
    """A listing for people."""
    rows = [_row(view) for view in board.tasks]
    more = sum(board.counts.values()) - len(rows)
    rows += [f"and {more:,} older ones"] if more > 0 else []
    rows = rows or ["There are no tasks. /task add PROMPT queues one."]
    workers = [f"works: {worker}" for worker in board.workers]
    return "\n".join(filter(None, (*rows, *workers, board.notice)))


def record_text(record: TaskRecord) -> str:
    """One task for people."""
    view = record.task
    facts = [
        ("prompt", view.prompt),
        ("folder", view.workspace),
        ("may", _rights(view)),
        ("session", view.session),
        ("worker", view.worker),
        ("answer", view.answer),
        ("error", view.error),
        *(("half done?", one) for one in view.unfinished),
        *(("todo", f"[{item.get('status', '')}] {item.get('content', '')}") for item in record.checklist),
    ]
    lines = [f"{label}: {one_line(text, 4000)}" for label, text in facts if text]
    left = len(record.timeline) - _MOST_LINES
    lines += [f"... {left} earlier lines"] if left > 0 else []
    lines += [
        f"{line.at[:19].replace('T', ' ')}  {line.kind:<8} {line.text}" for line in record.timeline[-_MOST_LINES:]
    ]
    lines += [f"artifact: {one_line(str(row.get('name')), 100)}" for row in record.artifacts()]
    lines += receipt_text(record.receipt).splitlines() if record.receipt is not None else []
    return "\n".join((_row(view), *lines))


def _row(view: TaskView) -> str:
    marks = [f"attempt {view.attempt}" if view.attempt > 1 else "", "is to end" if view.stopping else ""]
    said = ", ".join(filter(None, (view.status, *marks)))
    end = (view.answer if view.status == "completed" else view.error) or view.answer if view.over else ""
    about = " ".join((end or view.prompt).split())
    return f"{view.id}  {said}: {one_line(about, 120)}"


def _rights(view: TaskView) -> str:
    rights = [f"{view.mode} mode", "" if view.allow_shell else "no programs"]
    rights += ["asks for nothing" if view.auto_approve else "", "goes on by itself" * (view.on_death == "resume")]
    return ", ".join(filter(None, rights))
