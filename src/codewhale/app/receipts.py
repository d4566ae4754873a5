"""Receipts: what a log or a task says was checked, beside the files of its workspace as they are now."""

import os
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from codewhale.protocol.events import Event, GateRecorded, ListChanged, SessionOpened, TurnFinished
from codewhale.protocol.gates import GateRecord, WorkReceipt
from codewhale.protocol.modes import Mode
from codewhale.protocol.tasks import TaskRecord
from codewhale.services.testruns.tree import tree_hash
from codewhale.session.receipts import receipt


async def receipt_now(events: Iterable[Event]) -> WorkReceipt:
    """The receipt of a log. The workspace is hashed only where a gate was recorded and the folder is still there."""
    log = list(events)
    then = receipt(log, "")
    if not then.gates or not os.path.isdir(then.workspace):
        return then
    return receipt(log, (await tree_hash(then.workspace)).sha256)


async def with_receipt(record: TaskRecord) -> TaskRecord:
    """A task with its receipt, where it has run a gate."""
    task = record.task
    gates = [gate for value in record.updates.get("gate", ()) if (gate := _gate(value)) is not None]
    if not gates:
        return record
    log: list[Event] = [SessionOpened(1, task.workspace, Mode.AGENT, "", ""), *map(GateRecorded, gates)]
    log += [ListChanged("checklist", record.checklist), TurnFinished(1, "done", result={"answer": task.answer})]
    return replace(record, receipt=await receipt_now(log))


def _gate(value: object) -> GateRecord | None:
    try:
        return msgspec.convert(value, GateRecord)
    except msgspec.ValidationError:
        return None
