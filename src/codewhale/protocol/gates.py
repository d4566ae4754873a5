"""Gates: what a check came to, bound to the files it ran on; and the receipt of all that was checked."""

from typing import Literal

from msgspec import Struct

GateKind = Literal["fmt", "check", "clippy", "test", "custom"]
Standing = Literal["holds", "stale", "unbound"]


class GateRecord(Struct, frozen=True):
    """What a gate came to, by the job that ran it. `status` is passed, failed or timeout; `task_id` the durable task it
    belongs to, None without one. `tree_before` and `tree_after` are the hashes of the workspace ("": not known), and
    `workspace_tree_sha256` that hash where both are the same; `log_path` is the whole output with its `log_sha256`,
    None where it was not kept."""

    id: str
    gate: GateKind
    command: str
    cwd: str
    exit_code: int | None
    status: str
    classification: str
    duration_ms: int
    summary: str
    log_path: str | None
    recorded_at: str
    job_id: str
    task_id: str | None
    workspace_tree_sha256: str | None
    tree_before: str = ""
    tree_after: str = ""
    log_sha256: str = ""


class CheckedGate(Struct, frozen=True):
    """A gate and whether it tells anything of the files as they are now: it holds, it is stale (files were changed
    since), or it is bound to no state of them (they changed while it ran, or could not be hashed)."""

    gate: GateRecord
    standing: Standing


class WorkReceipt(Struct, frozen=True):
    """What of a session's work was verified, and by which gate; `claimed` is what was only said to be done. `tree` is
    the hash of the workspace as it is now, "" where that is not known."""

    workspace: str
    tree: str
    gates: tuple[CheckedGate, ...] = ()
    claimed: tuple[str, ...] = ()

    @property
    def verified(self) -> tuple[CheckedGate, ...]:
        """The gates that passed on the files as they are now."""
        return tuple(one for one in self.gates if one.standing == "holds" and one.gate.status == "passed")


def standing(gate: GateRecord, tree: str) -> Standing:
    """What a gate tells of a workspace whose hash is now `tree`."""
    if gate.tree_after and tree and gate.tree_after != tree:
        return "stale"
    return "holds" if tree and gate.workspace_tree_sha256 == tree else "unbound"
