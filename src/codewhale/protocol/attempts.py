"""Attempts at a change: the diff of a workspace at one moment, as a patch that is kept, and what it was for."""

from msgspec import Struct


class AttemptRecord(Struct, frozen=True):
    """One attempt. `base_sha` is the commit that the patch is a diff of ("" before the first commit), `base_ref` its
    branch; `head_ref` and `head_sha` are what was checked out. `patch_path` is the patch with its hash and size,
    `task_id` the durable task that it belongs to, None without one."""

    id: str
    attempt_group_id: str
    attempt_index: int
    attempt_count: int
    base_ref: str | None
    base_sha: str
    head_ref: str | None
    head_sha: str
    summary: str
    changed_files: tuple[str, ...]
    patch_path: str
    verification: tuple[str, ...]
    selected: bool
    recorded_at: str
    task_id: str | None
    patch_sha256: str
    patch_bytes: int
