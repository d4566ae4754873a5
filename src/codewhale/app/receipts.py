"""The receipt of a session at rest: its log beside the files of its workspace as they are now."""

import asyncio
import os
from collections.abc import Iterable

from codewhale.protocol.events import Event
from codewhale.protocol.gates import WorkReceipt
from codewhale.services.testruns.tree import tree_hash
from codewhale.session.receipts import receipt


def receipt_now(events: Iterable[Event]) -> WorkReceipt:
    """The receipt of a log. The workspace is hashed only where a gate was recorded and the folder is still there."""
    log = list(events)
    then = receipt(log, "")
    if not then.gates or not os.path.isdir(then.workspace):
        return then
    return receipt(log, asyncio.run(tree_hash(then.workspace)).sha256)
