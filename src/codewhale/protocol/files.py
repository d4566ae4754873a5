"""File changes as data: what the one writer reports of each write. And where the relay of a session stands."""

from msgspec import Struct

HANDOFFS = (".codewhale/handoff.md", ".deepseek/handoff.md")  # in a workspace; the first is ours


class FileChange(Struct, frozen=True, omit_defaults=True):
    """One file as a write left it.

    `path` is workspace-relative, POSIX. `before` and `after` are sha256 in hex; `before` is None for a new
    file, `after` None for a deleted one. `before_artifact` names the artifact that keeps the former bytes.
    """

    path: str
    before: str | None
    after: str | None
    before_artifact: str | None = None
